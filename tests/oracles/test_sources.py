"""Every engine against numpy: the same cells to the last row, wherever the scores lie."""

import importlib
from functools import cache

import narwhals as nw
import numpy as np
import pytest

from calibrant import Sketch, sketch


def _polars(columns):
    return importlib.import_module("polars").DataFrame(columns)


def _pandas(columns):
    return importlib.import_module("pandas").DataFrame(columns)


def _pyarrow(columns):
    return importlib.import_module("pyarrow").table(columns)


def _duckdb(columns):
    return importlib.import_module("duckdb").from_arrow(_pyarrow(columns))


def _dask(columns):
    return importlib.import_module("dask.dataframe").from_pandas(_pandas(columns), npartitions=3)


def _ibis(columns):
    # By way of pyarrow, which keeps nan and null apart.
    return importlib.import_module("ibis").memtable(_pyarrow(columns))


ENGINES = {
    "polars": _polars,
    "polars lazy": lambda columns: _polars(columns).lazy(),
    "pandas": _pandas,
    "pyarrow": _pyarrow,
    "duckdb": _duckdb,
    "dask": _dask,
    "ibis": _ibis,
}


@pytest.fixture(params=ENGINES)
def table(request):
    """Return a function that makes a table of an engine out of columns."""
    module = {"dask": "dask.dataframe"}.get(request.param, request.param.split()[0])
    pytest.importorskip(module)
    if request.param in ("duckdb", "ibis"):
        pytest.importorskip("pyarrow")
    return ENGINES[request.param]


@cache
def edges(n_cells, scale="probability"):
    """Return scores on every edge of the cells, and next to it on both sides."""
    k = Sketch(n_cells, scale).cells.edges
    others = [0.0, 5e-324, 1e-300, 0.29, 0.57, np.nextafter(1, 0), 1.0]
    p = np.concatenate((k, np.nextafter(k, 0), np.nextafter(k, 1), others))
    return p[p <= 1]


def rows(p, seed=0):
    """Return outcomes, soft outcomes, weights and groups for scores."""
    rng = np.random.default_rng(seed)
    w = rng.exponential(size=len(p))
    w[rng.random(len(p)) < 0.1] = 0
    return {
        "p": p,
        "y": (rng.random(len(p)) < p).astype(np.int64),
        "s": rng.random(len(p)),
        "w": w,
        "g": rng.choice(["a", "b", "c"], len(p)),
    }


@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize("n_cells", [7, 100, 2520, 50_400])
def test_scores_on_and_next_to_every_edge(table, n_cells, scale):
    columns = rows(edges(n_cells, scale))
    made = sketch(table(columns), label="y", prob="p", n_cells=n_cells, scale=scale)
    expected = Sketch(n_cells, scale).update(columns["y"], columns["p"])
    assert np.array_equal(made.table.counts, expected.table.counts)
    assert made.allclose(expected)


def test_scores_in_single_precision(table):
    columns = rows(np.unique(edges(100).astype(np.float32)))
    made = sketch(table(columns), label="y", prob="p", n_cells=100)
    assert made.allclose(Sketch(100).update(columns["y"], columns["p"]))


@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize(
    ("label", "weight"), [("y", None), ("y", "w"), ("s", None), ("s", "w")], ids=str
)
def test_weights_and_soft_labels(table, label, weight, scale):
    columns = rows(edges(2520, scale))
    expected = Sketch(2520, scale).update(columns[label], columns["p"], columns.get(weight))
    made = sketch(table(columns), label=label, prob="p", weight=weight, n_cells=2520, scale=scale)
    assert made.allclose(expected)
    assert made.table.true_squared == pytest.approx(expected.table.true_squared, rel=1e-12)


def test_groups(table):
    columns = rows(edges(2520))
    made = sketch(table(columns), label="y", prob="p", weight="w", by="g", n_cells=2520)
    assert list(made) == ["a", "b", "c"]
    for group, one in made.items():
        y, p, w = (columns[name][columns["g"] == group] for name in "ypw")
        assert one.allclose(Sketch(2520).update(y, p, w))


def test_where(table):
    columns = rows(edges(100))
    made = sketch(table(columns), label="y", prob="p", where=nw.col("g") != "a")
    kept = columns["g"] != "a"
    assert made.allclose(Sketch().update(columns["y"][kept], columns["p"][kept]))


def test_classes(table):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 200)
    label = rng.integers(0, 3, 200)
    columns = dict(zip("abc", probs.T, strict=True))
    by_number = sketch(table({**columns, "y": label}), label="y", prob=list("abc"))
    names = np.array(["x", "y", "z"])[label]
    by_name = sketch(table({**columns, "y": names}), label="y", prob=dict(zip("xyz", "abc")))  # noqa: B905
    for i in range(3):
        expected = Sketch(2520).update(label == i, probs[:, i])
        assert by_number[i].allclose(expected)
        assert by_name["xyz"[i]].allclose(expected)


def test_nan_null_and_values_out_of_range_are_left_out_and_nothing_else(table):
    bad = [np.nan, -0.0001, 1.0001, np.inf, -np.inf, -5e-324, np.nextafter(1, 2), 1e300]
    p = np.concatenate((np.repeat(bad, 5), edges(100)))
    columns = rows(np.clip(np.nan_to_num(p), 0, 1)) | {"p": p}
    with pytest.warns(UserWarning, match="^40 rows of .* 5 with null or nan in 'p', 35 with 'p' o"):
        made = sketch(table(columns), label="y", prob="p", on_invalid="drop", n_cells=100)
    assert made.allclose(Sketch(100).update(columns["y"][40:], p[40:]))


def test_any_name_of_a_column(table):
    names = ['"; DROP TABLE t; --', "it's", "a b.c", "\\", "`", "é🙂", "p0", "fault", "k", "y"]
    columns = {name: [i / 16, 1 - i / 16] for i, name in enumerate(names)}
    made = sketch(table({**columns, "label's": [0, 1]}), label="label's", prob=names)
    for i, p in enumerate(columns.values()):
        assert made[i] == Sketch(2520).update([i == 0, i == 1], p)


def test_booleans_of_a_relation_over_csv(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "rows.csv").write_text("p,y\n0.25,true\n0.75,false\n,\n")
    relation = duckdb.read_csv(str(tmp_path / "rows.csv"))
    with pytest.warns(UserWarning, match="1 row of 3 left out"):
        made = sketch(relation, label="y", prob="p", on_invalid="drop")
    assert made == Sketch().update([1, 0], [0.25, 0.75])
