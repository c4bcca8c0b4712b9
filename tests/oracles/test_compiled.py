"""Compiled passes over long columns against those of numpy."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import calibrant as cb
from calibrant import absolute, checks, cosine
from calibrant.compiled import loading, passes
from calibrant.errors import MissingDependencyError
from tests.compiled_or_not import N, in_numpy, some_rows
from tests.tolerances import ROUNDING, nearly

pytest.importorskip("numba")


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("kind", ["continuous", "tenths", "edges", "beside edges"])
@pytest.mark.parametrize("dtypes", [(bool, "f8"), ("i8", "f4"), ("f8", "f8"), ("u1", "f8")])
def test_same_as_numpy(kind, dtypes):
    y, p = some_rows(kind)
    y, p = y.astype(dtypes[0]), p.astype(dtypes[1])
    for measure in (cb.ece, cb.mce, cb.smooth_ece, cb.density_ece):
        assert measure(y, p) == pytest.approx(in_numpy(measure, y, p), abs=1e-12)
    table, expected = cb.bin_table(y, p, n_bins=10), in_numpy(cb.bin_table, y, p, n_bins=10)
    assert table.n.tolist() == expected.n.tolist()
    for column in ("weight", "mean_pred", "mean_true", "gap"):
        ours, theirs = getattr(table, column), getattr(expected, column)
        assert ours == pytest.approx(theirs, abs=1e-12, nan_ok=True)


def some_classes(kind, n_classes, n=500):
    rng = np.random.default_rng(7)
    p = rng.gamma(0.5, size=(n, n_classes))
    if kind == "tenths":
        p = np.eye(n_classes)[rng.integers(0, n_classes, n)]
        p = np.round(0.7 * p + 0.3 * np.roll(p, 1, axis=1), 1)
    return rng.integers(0, n_classes, n), p / p.sum(axis=1, keepdims=True)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("n_classes", [2, 3, 7, 300])
@pytest.mark.parametrize("kind", ["continuous", "tenths"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_tables_of_classes(n_classes, kind, dtype):
    y, p = some_classes(kind, n_classes)
    p = p.astype(dtype)
    for options in ({}, {"n_bins": 10}, {"norm": "l2"}, {"norm": "max"}, {"weighting": "width"}):
        options |= {"multiclass": "classwise"}
        expected = in_numpy(cb.ece, y, p, **options)
        assert cb.ece(y, p, **options) == pytest.approx(expected, abs=1e-12)


@pytest.fixture
def passed(monkeypatch):
    """List the numbers of bins of all passes over tables."""
    found = []
    sums = passes.column_bin_sums

    def counting(table, outcome, n_bins):
        found.append(n_bins)
        return sums(table, outcome, n_bins)

    monkeypatch.setattr(passes, "column_bin_sums", counting)
    return found


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("n_bins", [1, 40, 60, 2000, "sweep", "cv"])
def test_there_are_few_passes_over_a_table(n_bins, passed):
    y, p = some_classes("continuous", 9)
    found = cb.ece(y, p, multiclass="classwise", n_bins=n_bins)
    expected = in_numpy(cb.ece, y, p, multiclass="classwise", n_bins=n_bins)
    assert found == pytest.approx(expected, abs=1e-12)
    # Beyond a few bins a row the sums would be as large as the table.
    most = {1: 1, 40: 1, 60: 1, 2000: 0}.get(n_bins, 2)
    assert len(passed) <= most
    assert len(set(passed)) == len(passed)


@pytest.mark.usefixtures("compiled")
def test_an_assessment_passes_over_a_table_once_for_each_number_of_bins(passed):
    y, p = some_classes("continuous", 9)
    cb.assess(y, p, n_resamples=100, rng=0)
    assert len(set(passed)) == len(passed)


@pytest.mark.usefixtures("compiled")
def test_tables_of_classes_are_passed_once(passed):
    y, p = some_classes("continuous", 7)
    cb.ece(y, p, multiclass="classwise")
    assert len(passed) == 1
    w = np.linspace(1, 2, len(y))
    for given, options in (
        (p, {"sample_weight": w}),
        (p, {"closed": "right"}),
        (p, {"strategy": "quantile"}),
        (np.asfortranarray(p), {}),
    ):
        options |= {"multiclass": "classwise"}
        expected = in_numpy(cb.ece, y, p, **options)
        assert cb.ece(y, given, **options) == pytest.approx(expected, abs=1e-12)
    soft = np.roll(p, 1, axis=0)
    expected = in_numpy(cb.ece, soft, p, multiclass="classwise")
    assert cb.ece(soft, p, multiclass="classwise") == pytest.approx(expected, abs=1e-12)
    assert len(passed) == 1


@pytest.mark.usefixtures("compiled")
def test_soft_labels_and_columns_that_are_not_contiguous():
    _, p = some_rows("continuous")
    wide = np.stack((p, 1 - p), axis=1)
    soft = p**2
    for measure in (cb.ece, cb.smooth_ece):
        assert measure(soft, wide[:, 0]) == pytest.approx(in_numpy(measure, soft, p), abs=1e-12)


@pytest.mark.usefixtures("compiled")
def test_what_the_passes_do_not_know_is_left_to_numpy():
    y, p = some_rows("tenths")
    w = np.linspace(1, 2, N)
    for measure, options in (
        (cb.ece, {"sample_weight": w}),
        (cb.ece, {"closed": "right"}),
        (cb.ece, {"assignment": "convex"}),
    ):
        assert measure(y, p, **options) == nearly(in_numpy(measure, y, p, **options))
    weighted = cb.smooth_ece(y, p, sample_weight=w)
    assert weighted == pytest.approx(in_numpy(cb.smooth_ece, y, p, sample_weight=w), abs=ROUNDING)
    halves = np.linspace(0, 1, N).astype(np.float16)
    assert cb.ece(y, halves) == nearly(in_numpy(cb.ece, y, halves))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("n", [1, 3, 4, 255, 256, 257, 1023])
def test_moments_of_any_number_of_rows(n):
    rng = np.random.default_rng(n)
    p = np.concatenate(([1.0, 0.0], rng.random(n)))[:n]
    y, n_cells = rng.random(n), 37
    found = passes.moments(p, y, n_cells, (0.25, 1.0, -1.0))
    moments = cosine.gather([(p, [0.25 + y - p])], 1, n_cells, 8)[0, : passes.ORDER + 1]
    assert found == pytest.approx(cosine._folded(moments), abs=1e-12)
    folded = cosine.folded_coefficients(found, 100)
    assert folded == pytest.approx(cosine.coefficients(moments, 100), abs=1e-11)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("scale", [2.0, 0.5, 0.06, 0.031, 0.03, 0.004])
def test_smoothed_series(scale):
    for seed in range(20):
        a = np.random.default_rng(seed).normal(size=600) / 100
        if seed % 2:
            # A zero next to either end.
            a[0] -= cosine.values(cosine.damped(a, scale), 5000)[1 if seed % 4 == 1 else -2]
        ours, theirs = cosine.abs_integral(a, scale), in_numpy(cosine.abs_integral, a, scale)
        # Next to an end f is flat, and rounding moves a zero, and the slope there.
        assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-12)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", [0, 1000, N - 1])
def test_one_score_outside(dtype, place):
    scores = np.random.default_rng(0).random(N).astype(dtype)
    assert checks.are_unit(scores)
    one = dtype(1)
    for outside in (np.nextafter(one, dtype(2)), -np.finfo(dtype).tiny, np.nan, np.inf, -np.inf):
        scores[place] = outside
        assert not checks.are_unit(scores)
        assert not in_numpy(checks.are_unit, scores)
    for inside in (one, dtype(0), dtype(-0.0), np.nextafter(one, dtype(0))):
        scores[place] = inside
        assert checks.are_unit(scores)
        assert in_numpy(checks.are_unit, scores)


@pytest.mark.usefixtures("compiled")
def test_whole_numbers_outside():
    assert checks.are_unit(np.arange(N) % 2)
    assert not checks.are_unit(np.arange(N, dtype=np.uint16) % 3)


def test_small_data_never_load_numba(monkeypatch):
    p = np.random.default_rng(3).random(1 << 16)
    y = p > 0.5
    monkeypatch.setattr(passes, "is_loaded", lambda: False)
    assert passes.is_worth_while(p, y)
    assert not passes.is_worth_while(p[:3000], y[:3000])
    assert not passes.is_worth_while(p.astype(np.float16), y)
    assert not passes.is_worth_while(p.astype(">f8"), y)
    monkeypatch.delitem(sys.modules, "numba")
    assert not passes.is_worth_while(p, y)


def test_small_data_use_what_is_loaded_if_it_was_compiled_for_them():
    cb.load_compiled()
    p = np.random.default_rng(3).random(1000)
    y = p > 0.5
    assert passes.is_loaded()
    assert passes.is_worth_while(p, y)
    assert passes.is_worth_while(p, y.astype(np.int64))
    assert not passes.is_worth_while(p[:100], y[:100])
    assert not passes.is_worth_while(p[::2], y[::2])
    assert not passes.is_worth_while(p.astype(np.float32), y)
    for measure in (cb.ece, cb.smooth_ece):
        assert measure(y, p) == pytest.approx(in_numpy(measure, y, p), abs=1e-12)


def test_without_numba_there_is_nothing_to_load(monkeypatch):
    monkeypatch.setattr(loading, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match="fast"):
        cb.load_compiled()


def test_compiled_code_writes_nowhere_else():
    from calibrant.compiled import kernels, moments

    residual = (0.0, 1.0, -1.0)
    for kernel, size, more in (
        (moments.gather, 16, (residual,)),
        (kernels.add_up, passes.LANES * 4, ()),
    ):
        for score in (np.nan, np.inf, -np.inf, -1e-17, 1.01, -5.0, 1e300, 0.0, 1.0):
            # In the middle of numbers that nothing may touch.
            whole = np.full(300 + 15 * size, 7.0)
            table = whole[100 : 100 + 15 * size]
            is_sound = kernel(np.full(9, score), np.zeros(9), 15, *more, table)
            assert is_sound == (0 <= score <= 1)
            assert np.all(whole[:100] == 7)
            assert np.all(whole[100 + 15 * size :] == 7)


def test_nowhere_to_keep_compiled_code(monkeypatch):
    from calibrant.compiled import kernels

    real = kernels.njit

    def without_cache(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function")
        return real(**options)

    monkeypatch.setattr(kernels, "njit", without_cache)

    def twice(x):
        return 2 * x

    assert kernels.compiled(twice)(3) == 6


def smooth_periods():
    """Yield even functions over a period: with many zeros, with none, and that nearly touch 0."""
    rng = np.random.default_rng(0)
    for i in range(200):
        b = rng.normal(size=rng.integers(2, 40))
        b *= np.exp(-rng.random() * np.arange(len(b)))
        b[0] += 2 * (i % 3 == 0) * np.abs(b[1:]).sum()
        f = np.fft.irfft(b, 256, norm="forward")
        yield f - (i % 4 == 0) * f.min() * (1 - 1e-6)


@pytest.mark.usefixtures("compiled")
def test_integral_of_absolute_values():
    for f in smooth_periods():
        size = np.abs(f).max()
        mean, steepness = absolute.even_mean(f)
        expected, expected_steepness = in_numpy(absolute.even_mean, f)
        assert mean == pytest.approx(expected, abs=ROUNDING * size)
        assert steepness == pytest.approx(expected_steepness, abs=1e-12 * size, rel=1e-12)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e20])
def test_integral_of_tiny_and_huge_values(size):
    f = np.fft.irfft(np.random.default_rng(1).normal(size=30), 128) * size
    expected = in_numpy(absolute.even_mean, f)
    assert absolute.even_mean(f) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.usefixtures("compiled")
def test_dips_between_grid_points_are_seen():
    t = np.arange(128) / 64
    f = (np.cos(np.pi * t) - np.cos(np.pi * 20.4 / 64)) ** 2 - 1e-6
    assert np.all(f > 0)  # nothing to be seen on the grid
    _, steepness = absolute.even_mean(f)
    assert steepness == pytest.approx(in_numpy(absolute.even_mean, f)[1], rel=1e-12)
    assert steepness > 0


def test_tables_have_room_for_what_is_added():
    from calibrant.compiled import moments

    assert moments.N_SUMS == passes.ORDER + 1
