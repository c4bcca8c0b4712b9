"""What a sketch keeps, merges and refuses."""

from __future__ import annotations

import copy
import hashlib
import pickle

import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantError, SketchError
from calibrant.numerics import compiled_sums
from tests.tolerances import ROUNDING
from tests.twins import sketch as twin


def assert_like_twin(sketch, y, p, w=None):
    expected = twin.sums(y, p, sketch.n_cells, w)
    moments = sketch.table.moments
    filled = {
        (int(cell), int(outcome)) for outcome, cell in zip(*np.nonzero(moments[0]), strict=True)
    }
    assert filled == set(expected)
    for (cell, outcome), sums in expected.items():
        for q in range(3):
            assert moments[q, outcome, cell] == pytest.approx(float(sums[q]), abs=1e-12)


def edges_and_neighbours(n_cells):
    k = np.arange(n_cells + 1) / n_cells
    near = np.concatenate((k, np.nextafter(k, 0), np.nextafter(k, 1), np.arange(101) / 100))
    return np.unique(np.clip(near, 0, 1))


@pytest.mark.parametrize("n_cells", [1, 2, 7, 90, 100, 240])
def test_cells_hold_what_their_edges_say(n_cells):
    p = edges_and_neighbours(n_cells)
    y = np.arange(len(p)) % 2
    assert_like_twin(cb.Sketch(n_cells).update(y, p), y.tolist(), p.tolist())


@pytest.mark.parametrize("n_cells", [1, 2, 7, 240])
def test_edges_of_logits_are_correctly_rounded(n_cells):
    assert cb.Sketch(n_cells, "logit").cells.edges.tolist() == twin.logit_edges(n_cells)


def test_edges_of_logits_are_the_same_everywhere():
    edges = cb.Sketch(scale="logit").cells.edges.astype("<f8")
    digest = "045a55f9fee01af8a84845bf16206e6bd9427b75b760c016be97ad405f1fb5a2"
    assert hashlib.sha256(edges.tobytes()).hexdigest() == digest


@pytest.mark.parametrize("n_cells", [1, 2, 7, 240])
def test_cells_of_logits_hold_what_their_edges_say(n_cells):
    edges = np.array(twin.logit_edges(n_cells))
    beside = [edges, np.nextafter(edges, 0), np.nextafter(edges, 1), [0.0, 5e-324, 1 - 1e-9, 1.0]]
    p = np.concatenate(beside)
    counts = cb.Sketch(n_cells, "logit").update(np.zeros(len(p)), p).table.counts[0]
    inner = np.histogram(p[(p >= edges[0]) & (p < edges[-1])], edges)[0]
    below, above = (p > 0) & (p < edges[0]), (p >= edges[-1]) & (p < 1)
    outer = [np.sum(p == 0), below.sum(), above.sum(), np.sum(p == 1)]
    assert counts.tolist() == [*inner, *outer]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("label", [bool, np.int8, np.uint16, np.float32])
def test_any_dtype(dtype, label):
    rng = np.random.default_rng(0)
    p = rng.random(200).astype(dtype)
    y = (rng.random(200) < p).astype(label)
    assert_like_twin(cb.Sketch(40).update(y, p), y.astype(int).tolist(), p.astype(float).tolist())


def test_weights_and_soft_labels():
    rng = np.random.default_rng(1)
    p, y, w = rng.random(100), rng.random(100), rng.random(100)
    weighted = cb.Sketch(20).update(y, p, w)
    assert_like_twin(weighted, y.tolist(), p.tolist(), w.tolist())
    assert weighted.weight == pytest.approx(w.sum())
    assert weighted.n == 100
    np.testing.assert_allclose(weighted.table.squares.sum(), (w * w).sum())
    assert weighted.table.true_squared == pytest.approx(np.dot(w, y * y))
    soft = cb.Sketch(20).update(y, p)
    assert soft.table.is_soft
    assert not soft.table.is_weighted


def test_counted_and_weighed_rows_together():
    rng = np.random.default_rng(2)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(float)
    w = np.concatenate((np.ones(30), rng.random(30)))
    both = cb.Sketch(20).update(y[:30], p[:30]).update(y[30:], p[30:], w[30:])
    assert_like_twin(both, y.tolist(), p.tolist(), w.tolist())
    once = cb.Sketch(20).update(y, p, w)
    np.testing.assert_allclose(both.table.moments, once.table.moments, atol=ROUNDING)
    np.testing.assert_allclose(both.table.squares, once.table.squares)


def test_rows_of_weight_nought_do_not_exist():
    assert cb.Sketch().update([0, 1], [0.5, 0.75], [0, 2.0]).n == 1


def test_no_rows_change_nothing():
    sketch = cb.Sketch().update([], [])
    assert sketch == cb.Sketch()
    assert sketch.n == 0


def test_logit_cells():
    sketch = cb.Sketch(40, scale="logit")
    p = [0.0, 1e-12, 0.5, 1 - 1e-12, 1.0, np.nextafter(1, 0), 5e-324]
    sketch.update([0, 0, 1, 1, 1, 1, 0], p)
    rows = sketch.table.rows
    assert rows[20] == 1
    assert sketch.table.offsets[1, 20] == -0.5 + 0.25j
    assert rows[40:].tolist() == [1, 2, 2, 1]
    assert rows.sum() == 7


def test_logit_offsets_are_those_of_the_logits():
    rng = np.random.default_rng(3)
    p = rng.beta(0.1, 0.1, 500)
    p = p[p < 1]
    u = np.log(p) - np.log1p(-p)
    sketch = cb.Sketch(80, scale="logit").update(np.ones(len(p)), p)
    inside = np.abs(u) < 20
    place = (u[inside] + 20) * 2
    expected = np.bincount(np.floor(place).astype(int), place - np.floor(place) - 0.5, 84)
    np.testing.assert_allclose(sketch.table.offsets[1].real, expected, atol=1e-10)


def test_refused_rows_leave_the_sketch_alone():
    sketch = cb.Sketch().update([0, 1], [0.25, 0.5])
    before = sketch.to_bytes()
    for y, p in (([0, 1], [0.5, 1.5]), ([0, 1], [0.5, np.nan]), ([0, 2], [0.5, 0.5])):
        with pytest.raises(CalibrantError):
            sketch.update(y, p)
    assert sketch.to_bytes() == before


def test_different_cells_do_not_merge():
    with pytest.raises(SketchError, match="100 cells on the probability scale and 200 cells"):
        cb.Sketch(100) + cb.Sketch(200)
    with pytest.raises(SketchError, match="on the logit scale"):
        cb.Sketch(100) + cb.Sketch(100, scale="logit")


def test_nothing_is_added_by_0():
    sketch = cb.Sketch(10).update([1], [0.5])
    assert sketch + 0 == 0 + sketch == sketch
    assert sum([sum([sketch]), sum([])]) == sketch


@pytest.mark.parametrize("other", [1, None, "sketch", 0.5])
def test_other_things_do_not_merge(other):
    with pytest.raises(TypeError):
        cb.Sketch() + other
    with pytest.raises(TypeError):
        other + cb.Sketch()


def test_merging_shares_no_memory():
    a, b = cb.Sketch(10).update([1], [0.5], [2.0]), cb.Sketch(10)
    merged = a + b
    before = merged.to_bytes()
    a.update([0], [0.25], [1.0])
    b.update([0], [0.25])
    assert merged.to_bytes() == before


def test_copies_are_their_own():
    sketch = cb.Sketch(10).update([1, 0], [0.5, 0.25], [2.0, 1.0])
    copies = [copy.copy(sketch), copy.deepcopy(sketch), pickle.loads(pickle.dumps(sketch))]
    for one in copies:
        assert one == sketch
        one.update([1], [0.75])
        assert one != sketch
    assert sketch.n == 2


def test_it_travels_light():
    assert len(pickle.dumps(cb.Sketch().update([1], [0.5]))) < 400


def test_labels_of_any_kind():
    named = cb.Sketch().update(["no", "yes"], [0.25, 0.5], pos_label="yes")
    assert named == cb.Sketch().update([0, 1], [0.25, 0.5])
    with pytest.raises(SketchError, match="merged with"):
        named.update(named, None)


def test_batches_that_weigh_nothing():
    sketch = cb.Sketch().update([0, 1], [0.25, 0.5], [0.0, 0.0])
    assert sketch.n == 0
    assert cb.Sketch().update(np.empty((0, 1)), np.empty((0, 1))).n == 0
    with pytest.raises(CalibrantError, match="sample_weight"):
        cb.Sketch().update([0], [0.5], [0.0, 0.0])


def test_table_and_cells_must_fit():
    a, b = cb.Sketch(10), cb.Sketch(20)
    with pytest.raises(SketchError, match="does not fit"):
        cb.Sketch.of_table(a.cells, b.table)


def test_equality_is_of_state():
    a, b = (cb.Sketch().update([0, 1], [0.25, 0.75]) for _ in range(2))
    assert a == b
    assert a != b.update([1], [0.5])
    assert a != "sketch"
    assert cb.Sketch(10) != cb.Sketch(20)
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_allclose_sees_what_matters():
    a = cb.Sketch().update([0, 1], [0.25, 0.75], [1.0, 0.3])
    b = cb.Sketch().update([0, 1], [0.25, 0.75], [1.0, 0.3 + 1e-15])
    assert a.allclose(b)
    assert a != b
    assert not a.allclose(cb.Sketch().update([0, 1], [0.25, 0.75], [1.0, 0.3001]))
    assert not a.allclose(cb.Sketch().update([1, 1], [0.25, 0.75], [1.0, 0.3]))
    assert not a.allclose(cb.Sketch().update([0, 1], [0.25, 0.75]))
    assert not a.allclose(cb.Sketch(100))
    with pytest.raises(SketchError, match="must be a Sketch; got int"):
        a.allclose(3)


def test_what_differs_in_one_sum_alone_is_not_close():
    def one(y, p, w=None):
        return cb.Sketch(10).update(y, p, w)

    for a, b in (
        (one([1], [0.51]), one([1], [0.52])),
        (one([1, 1], [0.5, 0.5], [1.0, 3.0]), one([1, 1], [0.5, 0.5], [2.0, 2.0])),
        (one([0.5, 0.5], [0.5, 0.5]), one([0.25, 0.75], [0.5, 0.5])),
    ):
        assert a != b
        assert not a.allclose(b)


def test_counts_end_where_they_would_be_inexact():
    sketch = cb.Sketch(2).update([0], [0.5])
    sketch.table.counts[0, 1] = 2**53
    with pytest.raises(SketchError, match="2\\^53"):
        sketch + cb.Sketch(2).update([0], [0.5])


@pytest.mark.parametrize(
    ("n_cells", "scale"),
    [(0, "probability"), (2.5, "probability"), ((1 << 21) + 1, "logit"), (10, "p")],
)
def test_impossible_sketches(n_cells, scale):
    with pytest.raises(CalibrantError):
        cb.Sketch(n_cells, scale)


def test_repr():
    text = "Sketch(n=2, weight=2, 50400 cells on the probability scale)"
    assert repr(cb.Sketch().update([0, 1], [0.25, 0.75])) == text


def test_long_columns_are_counted_on_trial(monkeypatch):
    monkeypatch.setattr(compiled_sums, "is_worth_while", lambda *_: False)
    rng = np.random.default_rng(5)
    p = rng.random(70_000)
    y = (rng.random(70_000) < p).astype(float)
    parts = [cb.Sketch().update(y[rows], p[rows]) for rows in np.array_split(np.arange(70_000), 9)]
    whole = cb.Sketch().update(y, p)
    assert whole.allclose(sum(parts))
    soft = np.where(np.arange(70_000) == 69_999, 0.5, y)
    assert cb.Sketch().update(soft, p).table.is_soft
    before = whole.to_bytes()
    for wrong in (2.0, -1.0, np.nan, np.inf, 1e200):
        with pytest.raises(CalibrantError, match="y_true"):
            whole.update(np.where(np.arange(70_000) == 69_998, wrong, y), p)
    for wrong in (1.5, np.nan):
        with pytest.raises(CalibrantError, match="69998"):
            whole.update(y, np.where(np.arange(70_000) == 69_998, wrong, p))
    assert whole.to_bytes() == before
