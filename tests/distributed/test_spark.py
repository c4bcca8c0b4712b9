"""PySpark with executors in processes of their own gives the sketch that numpy gives."""

import os
import shutil
import sys
import time
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

import calibrant
from calibrant import CalibrantError, Sketch, sketch
from tests import PATIENCE

pyspark = pytest.importorskip("pyspark")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
    pytest.skip("Spark needs Java, and there is none on the path", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,
    # What PySpark does inside is its own business.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Return a session with two executors; their processes end with it."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    # The executors must find the Python of the driver, and leave their logs where we say.
    settings = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        session = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .appName("calibrant")
            .config("spark.ui.enabled", "false")
            .config("spark.executorEnv.PYTHONPATH", str(Path(calibrant.__file__).parents[1]))
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.executor.memory", "512m")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
        pyspark.SparkContext._gateway.shutdown()
        pyspark.SparkContext._gateway.proc.stdin.close()
        pyspark.SparkContext._gateway.proc.wait(PATIENCE)
        pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="module")
def table(spark, columns):
    """Return the rows spread over both executors."""
    return spark.createDataFrame(pd.DataFrame(columns)).repartition(4)


def test_executors_are_processes_of_their_own(spark, table):
    pids = spark.sparkContext.parallelize(range(4), 4).map(lambda _: os.getpid()).collect()
    assert os.getpid() not in pids
    # Beside the driver. Work begins when one of them is there: the other may come later.
    status = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
    until = time.monotonic() + PATIENCE
    while status().size() - 1 < 2:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert status().size() - 1 == 2


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_same_sketch_as_numpy(table, columns, scale):
    made = sketch(table, label="y", prob="p", scale=scale)
    expected = Sketch(scale=scale).update(columns["y"], columns["p"])
    assert np.array_equal(made.table.counts, expected.table.counts)
    assert made.allclose(expected)


def test_soft_labels_weights_groups_and_where(table, columns):
    made = sketch(
        table, label="s", prob="p", weight="w", by="g", where=nw.col("p") > 0.5, n_cells=100
    )
    for group in "ab":
        kept = (columns["g"] == group) & (columns["p"] > 0.5)
        s, p, w = (columns[name][kept] for name in "spw")
        assert made[group].allclose(Sketch(100).update(s, p, w))


def test_null_nan_out_of_range_and_any_name(spark):
    name = 'a.`b` "c"; DROP TABLE t'
    rows = [(0.25, True), (0.75, False), (None, True), (float("nan"), True), (1.5, True)]
    table = spark.createDataFrame(rows, schema=["p", "label.1"]).withColumnRenamed("p", name)
    with pytest.warns(
        UserWarning, match=r"^3 rows of 5 left out: 2 with null or nan in .*, 1 with"
    ):
        made = sketch(table, label="label.1", prob=name, on_invalid="drop")
    assert made == Sketch().update([1, 0], [0.25, 0.75])
    with pytest.raises(CalibrantError, match=r"must have a value in every row; got null or nan"):
        sketch(table, label="label.1", prob=name)


def test_one_sketch_a_class(spark):
    rows = [("x", 0.75, 0.25), ("y", 0.5, 0.5)]
    made = sketch(
        spark.createDataFrame(rows, schema=["label", "a", "b"]),
        label="label",
        prob={"x": "a", "y": "b"},
    )
    assert made["y"] == Sketch(2520).update([0, 1], [0.25, 0.5])


def test_shards_sketched_by_the_executors_add_up(spark, table, columns):
    def shard(frames):
        made = Sketch()
        for frame in frames:
            made.update(frame["y"], frame["p"])
        yield pd.DataFrame({"sketch": [made.to_bytes()]})

    rows = table.mapInPandas(shard, "sketch binary").collect()
    merged = sum(Sketch.from_bytes(bytes(row.sketch)) for row in rows)
    assert merged.allclose(Sketch().update(columns["y"], columns["p"]))
