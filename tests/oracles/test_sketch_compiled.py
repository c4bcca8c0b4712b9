"""Rows counted by the compiled pass against those counted by numpy."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantError
from calibrant.data import sketch
from calibrant.numerics import compiled_sums

pytest.importorskip("numba")


@pytest.fixture
def always_compiled(monkeypatch):
    monkeypatch.setattr(sketch, "_LONG", 1)
    monkeypatch.setattr(compiled_sums, "MIN_ROWS", 1)
    monkeypatch.setattr(compiled_sums, "_MIN_ROWS_PER_THREAD", 100)


def in_numpy(y, p):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_sums, "MIN_ROWS", float("inf"))
        return cb.Sketch().update(y, p)


def some_rows(kind, n=3000):
    rng = np.random.default_rng(3)
    p = {
        "continuous": rng.random(n),
        "hundredths": rng.integers(0, 101, n) / 100,
        "edges": np.concatenate((np.arange(n - 2) / 50_400, [0.0, 1.0])),
        "beside edges": np.nextafter(np.arange(1, n + 1) / 50_400, rng.integers(0, 2, n)),
        "far out": np.append(rng.choice([0, 1e-300, 1e-9, 2e-9, 3e-9, 1 - 1e-9], n - 1), 1.0),
    }[kind]
    return rng.random(len(p)) < p, p


@pytest.mark.usefixtures("always_compiled")
@pytest.mark.parametrize("kind", ["continuous", "hundredths", "edges", "beside edges", "far out"])
@pytest.mark.parametrize("p_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y_dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64])
def test_same_as_numpy(kind, p_dtype, y_dtype, monkeypatch):
    y, p = some_rows(kind)
    y, p = y.astype(y_dtype), p.astype(p_dtype)
    counted = []
    count = compiled_sums.counts

    def counting(*rows):
        counted.append(count(*rows))
        return counted[-1]

    monkeypatch.setattr(compiled_sums, "counts", counting)
    assert cb.Sketch().update(y, p).allclose(in_numpy(y, p))
    (found,) = counted
    assert found is not None


@pytest.mark.usefixtures("always_compiled")
def test_several_cores_and_strides():
    y, p = some_rows("continuous")
    wide = np.stack((p, 1 - p), axis=1)
    once = cb.Sketch().update(y, wide[:, 0])
    assert once.n == len(p)
    assert once.allclose(in_numpy(y, p))
    assert cb.Sketch().update(y[::-1], p[::-1]).allclose(once)


@pytest.mark.usefixtures("always_compiled")
@pytest.mark.parametrize("bad", [1.5, -1e-9, np.nan, np.inf])
def test_bad_scores_are_refused_in_words_and_nothing_is_kept(bad):
    y, p = some_rows("continuous")
    p[1234] = bad
    sketch = cb.Sketch()
    with pytest.raises(CalibrantError, match="1234"):
        sketch.update(y, p)
    assert sketch == cb.Sketch()


@pytest.mark.usefixtures("always_compiled")
def test_labels_that_are_not_0_or_1():
    y, p = some_rows("continuous")
    soft = y.astype(float)
    soft[7] = 0.25
    assert cb.Sketch().update(soft, p).table.is_soft
    for label in (2, -1):
        wrong = y.astype(np.int64)
        wrong[7] = label
        with pytest.raises(CalibrantError):
            cb.Sketch().update(wrong, p)
    unknown = y.astype(float)
    unknown[7] = np.nan
    with pytest.raises(CalibrantError):
        cb.Sketch().update(unknown, p)
