"""Compiled passes over long columns against those of numpy: the same up to rounding."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import calibrant as cb
from calibrant.numerics import compiled_sums, smoothing
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
    sums = compiled_sums.column_bin_sums

    def counting(table, outcome, n_bins):
        found.append(n_bins)
        return sums(table, outcome, n_bins)

    monkeypatch.setattr(compiled_sums, "column_bin_sums", counting)
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
@pytest.mark.parametrize("n", [1, 3, 255, 256, 257, 1023, 2500])
def test_moments_of_any_number_of_rows(n):
    rng = np.random.default_rng(n)
    p = np.concatenate(([1.0, 0.0], rng.random(n)))[:n]
    y, n_cells = rng.random(n), 37
    found = compiled_sums.moments(p, y, n_cells, (0.25, 1.0, -1.0))
    expected = smoothing.cell_moments([(p, [0.25 + y - p])], 1, n_cells, compiled_sums.N_MOMENTS)[0]
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.usefixtures("compiled")
def test_bins_of_any_number_of_rows():
    rng = np.random.default_rng(5)
    for n in (1, 255, 256, 257, 2500):
        p, y = rng.random(n), rng.integers(0, 2, n)
        found = compiled_sums.bin_sums(p, y, 15)
        expected = [np.bincount((p * 15).astype(int), v, 15) for v in (p * 0 + 1, p, y, y - p)]
        assert found == pytest.approx(np.array(expected), abs=1e-12)


def test_one_rule_for_when_compiled_code_serves(monkeypatch):
    monkeypatch.setattr(compiled_sums, "MIN_ROWS", 5000)
    p = np.random.default_rng(3).random(6000)
    y = p > 0.5
    assert compiled_sums.is_worth_while(p, y)
    assert compiled_sums.is_worth_while(p[::-1], y.astype(np.int8))
    assert not compiled_sums.is_worth_while(p[:4999], y[:4999])
    assert not compiled_sums.is_worth_while(p.astype(np.float16), y)
    assert not compiled_sums.is_worth_while(p.astype(">f8"), y)
    assert compiled_sums.is_table_worth_while(p.reshape(-1, 4), 100)
    assert not compiled_sums.is_table_worth_while(p.reshape(-1, 4).T, 100)
    assert not compiled_sums.is_table_worth_while(p.reshape(-1, 4), 6001)
    # Whether numba has been imported makes no difference; whether it is installed does.
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not compiled_sums.is_worth_while(p, y)
    assert not compiled_sums.is_table_worth_while(p.reshape(-1, 4), 100)


def test_what_was_called_before_does_not_change_a_result():
    y, p = some_rows("continuous")
    before = [measure(y, p) for measure in (cb.ece, cb.smooth_ece)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_sums, "MIN_ROWS", 1)
        cb.smooth_ece(y, p)
    assert [measure(y, p) for measure in (cb.ece, cb.smooth_ece)] == before


def test_compiled_code_writes_nowhere_else():
    from calibrant.numerics import compiled

    residual = (0.0, 1.0, -1.0)
    for loop, shape, more in (
        (compiled.add_moments, (15, 4), (residual,)),
        (compiled.add_counts, (15, 2, 3), ()),
    ):
        for score in (np.nan, np.inf, -np.inf, -1e-17, 1.01, -5.0, 1e300, 0.0, 1.0):
            # In the middle of numbers that nothing may touch.
            size = int(np.prod(shape))
            whole = np.full(300 + size, 7.0)
            table = whole[100 : 100 + size].reshape(shape)
            is_valid = loop(np.full(9, score), np.zeros(9), 15, *more, table)
            assert is_valid == (0 <= score <= 1)
            assert np.all(whole[:100] == 7)
            assert np.all(whole[100 + size :] == 7)


def test_no_folder_for_compiled_code(monkeypatch):
    from calibrant.numerics import compiled

    real = compiled.njit

    def without_cache(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function")
        return real(**options)

    monkeypatch.setattr(compiled, "njit", without_cache)

    def twice(x):
        return 2 * x

    assert compiled.compiled(twice)(3) == 6
