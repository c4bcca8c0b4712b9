"""The compiled pass against the pass in numpy."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import calibrant as cb
from calibrant.errors import CalibrantError
from calibrant.sketches import compiled

pytest.importorskip("numba")


@pytest.fixture
def always_compiled(monkeypatch):
    monkeypatch.setattr(compiled, "_WORTH_CALLING", 1)
    monkeypatch.setattr(compiled, "_WORTH_LOADING", 1)
    monkeypatch.setattr(compiled, "_LEAST_SHARE", 100)


def in_numpy(y, p, n_cells=50_400):
    return sum(
        cb.Sketch(n_cells).update(y[rows], p[rows]) for rows in (slice(0, 7), slice(7, None))
    )


def some_rows(kind, n=3000):
    rng = np.random.default_rng(3)
    p = {
        "continuous": rng.random(n),
        "hundredths": rng.integers(0, 101, n) / 100,
        "edges": np.concatenate((np.arange(n - 2) / 50_400, [0.0, 1.0])),
        "beside edges": np.nextafter(np.arange(1, n + 1) / 50_400, rng.integers(0, 2, n)),
    }[kind]
    return rng.random(n) < p, p


@pytest.mark.parametrize("kind", ["continuous", "hundredths", "edges", "beside edges"])
@pytest.mark.parametrize("p_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y_dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64])
def test_same_as_numpy(kind, p_dtype, y_dtype, monkeypatch):
    y, p = some_rows(kind)
    y, p = y.astype(y_dtype), p.astype(p_dtype)
    expected = in_numpy(y, p)
    monkeypatch.setattr(compiled, "_WORTH_CALLING", 1)
    monkeypatch.setattr(compiled, "_WORTH_LOADING", 1)
    counted = []
    count = compiled.count

    def counting(*rows):
        counted.append(count(*rows))
        return counted[-1]

    monkeypatch.setattr(compiled, "count", counting)
    assert cb.Sketch().update(y, p).allclose(expected)
    assert counted[0] is not None


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


def test_small_data_never_load_numba(monkeypatch):
    y, p = some_rows("continuous", 1 << 16)
    assert compiled.is_worth_while(cb.Sketch().cells, y, p)
    assert not compiled.is_worth_while(cb.Sketch(scale="logit").cells, y, p)
    assert not compiled.is_worth_while(cb.Sketch().cells, y[:3000], p[:3000])
    monkeypatch.delitem(sys.modules, "numba")
    assert not compiled.is_worth_while(cb.Sketch().cells, y, p)


def test_nowhere_to_keep_compiled_code(monkeypatch):
    import numba

    real = numba.njit

    def without_cache(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function")
        return real(**options)

    monkeypatch.setattr(numba, "njit", without_cache)
    compiled._kernel.cache_clear()
    sums = np.zeros(80)
    assert compiled._kernel()(np.array([0.5]), np.array([1.0]), 10, sums)
    assert sums[44:48].tolist() == [1, -0.5, 0.25, 0]
    compiled._kernel.cache_clear()
