"""Dask with workers in processes of their own gives the sketch that numpy gives."""

import os

import narwhals as nw
import numpy as np
import pytest

from calibrant import Sketch, sketch
from tests import PATIENCE

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

pytestmark = [
    pytest.mark.slow,
    # What Dask does inside is its own business.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Return a client of two worker processes, which end with it."""
    patient = {f"distributed.comm.timeouts.{what}": PATIENCE for what in ("connect", "tcp")}
    with (
        dask.config.set(patient),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path_factory.mktemp("dask")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def table(columns):
    """Return the rows in four parts."""
    return dd.from_pandas(pd.DataFrame(columns), npartitions=4)


def test_workers_are_processes_of_their_own(client):
    pids = set(client.run(os.getpid).values())
    assert len(pids) == 2
    assert os.getpid() not in pids


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_same_sketch_as_numpy(client, table, columns, scale):
    made = sketch(table, label="y", prob="p", scale=scale)
    expected = Sketch(scale=scale).update(columns["y"], columns["p"])
    assert np.array_equal(made.table.counts, expected.table.counts)
    assert made.allclose(expected)


def test_soft_labels_weights_groups_and_where(client, table, columns):
    made = sketch(
        table, label="s", prob="p", weight="w", by="g", where=nw.col("p") > 0.5, n_cells=100
    )
    for group in "ab":
        kept = (columns["g"] == group) & (columns["p"] > 0.5)
        s, p, w = (columns[name][kept] for name in "spw")
        assert made[group].allclose(Sketch(100).update(s, p, w))


def test_null_and_out_of_range(client):
    table = pd.DataFrame({"p": [0.25, 0.75, None, 1.5], "y": [True, False, True, True]})
    with pytest.warns(
        UserWarning, match="^2 rows of 4 left out: 1 with null or nan in 'p', 1 with"
    ):
        made = sketch(dd.from_pandas(table, npartitions=2), label="y", prob="p", on_invalid="drop")
    assert made == Sketch().update([1, 0], [0.25, 0.75])


def _shard(y, p):
    return Sketch().update(y, p).to_bytes()


def test_shards_sketched_by_the_workers_add_up(client, columns):
    parts = zip(np.array_split(columns["y"], 4), np.array_split(columns["p"], 4), strict=True)
    futures = [client.submit(_shard, y, p) for y, p in parts]
    merged = sum(map(Sketch.from_bytes, client.gather(futures)))
    assert merged.allclose(Sketch().update(columns["y"], columns["p"]))
