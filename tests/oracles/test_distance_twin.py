"""Distances against linear programs, double sums and exact fractions."""

import numpy as np
import pytest

from calibrant import (
    distance_bounds,
    interval_error,
    laplace_kernel_error,
    weak_calibration_error,
    weak_calibration_witness,
)
from calibrant.numerics import regression
from tests.tolerances import ROUNDING, nearly
from tests.twins import distance as twin

KINDS = ["continuous", "tenths", "ends", "confident", "close", "one value"]


def problem(kind, n, seed):
    rng = np.random.default_rng([seed, n, KINDS.index(kind)])
    p = {
        "continuous": lambda: rng.random(n),
        "tenths": lambda: rng.integers(0, 11, n) / 10,
        "ends": lambda: rng.choice([0.0, 0.5, 1.0], n),
        "confident": lambda: 1 - rng.random(n) ** 6 * 1e-3,
        "close": lambda: 0.3 + rng.integers(0, 3, n) * 1e-9,
        "one value": lambda: np.full(n, 0.29),
    }[kind]()
    shape = seed % 4
    truth = [p, np.clip(p + 0.2, 0, 1), 0.5 + 0.4 * (p - 0.5), 1 - p][shape]
    y = truth if seed % 3 == 2 else (rng.random(n) < truth).astype(float)
    w = rng.integers(1, 5, n) / 2 if seed % 2 else None
    return y, p, w


def lists(y, p, w):
    return y.tolist(), p.tolist(), None if w is None else w.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 12])
@pytest.mark.parametrize("seed", range(12))
def test_every_distance(kind, n, seed):
    y, p, w = problem(kind, n, seed)
    for fast, slow in (
        (weak_calibration_error, twin.weak_calibration_error),
        (laplace_kernel_error, twin.laplace_kernel_error),
        (interval_error, twin.interval_error),
    ):
        found, expected = fast(y, p, sample_weight=w), slow(*lists(y, p, w))
        # The double sum of the kernel error cancels before the root is taken.
        tolerance = 3e-8 if fast is laplace_kernel_error and expected < 1e-6 else 1e-12
        assert found == pytest.approx(expected, abs=tolerance), fast.__name__


@pytest.mark.parametrize("kind", ["continuous", "tenths", "confident"])
def test_weak_calibration_error_of_more_rows(kind):
    for seed in range(4):
        y, p, w = problem(kind, 40, seed)
        expected = twin.weak_calibration_error(*lists(y, p, w))
        assert weak_calibration_error(y, p, sample_weight=w) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 30, 3000])
@pytest.mark.parametrize("seed", range(4))
def test_witness(kind, n, seed):
    y, p, w = problem(kind, n, seed)
    witness = weak_calibration_witness(y, p, sample_weight=w)
    assert np.array_equal(witness.score, np.unique(p))
    assert np.abs(witness.value).max() <= 1 + ROUNDING
    assert np.all(np.abs(np.diff(witness.value)) <= np.diff(witness.score) + ROUNDING)
    attained = witness.value[np.searchsorted(witness.score, p)] * (y - p)
    assert np.average(attained, weights=w) == pytest.approx(witness.error, abs=1e-12)
    assert witness.value @ witness.residual == pytest.approx(witness.error, abs=1e-12)
    assert witness.error == nearly(weak_calibration_error(y, p, sample_weight=w))


@pytest.mark.parametrize("seed", range(24))
def test_bounds_hold_the_distance(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    p = rng.integers(0, 11, n) / 10
    y = (rng.random(n) < [p, 1 - p, 0.8 * p, 0.5 + 0 * p][seed % 4]).astype(float)
    bounds = distance_bounds(y, p)
    # Places on the grid, and wherever a group of rows may meet; rounding other places to the grid
    # and repairing their means moves rows by at most twice its step.
    step = 1 / 240
    distance = twin.distance_to_calibration(y.tolist(), p.tolist(), extra=np.arange(241) * step)
    assert bounds.low <= distance + 1e-9
    assert bounds.high >= distance - 2 * step
    wce, mean = weak_calibration_error(y, p), abs(np.mean(y - p))
    assert bounds.low >= max(mean, wce / 2) - ROUNDING
    assert bounds.high <= 2 * wce + ROUNDING


def test_printed_theorem_fails_where_the_bounds_hold():
    wce = weak_calibration_error([0, 1], [0.45, 0.55])
    distance = twin.distance_to_calibration([0, 1], [0.45, 0.55], extra=np.arange(201) / 200)
    assert wce == pytest.approx(0.0225, abs=ROUNDING)
    assert distance == pytest.approx(0.045, abs=1e-9)
    bounds = distance_bounds([0, 1], [0.45, 0.55])
    assert bounds.low == pytest.approx(0.0375, abs=ROUNDING)
    assert bounds.high == pytest.approx(0.045, abs=ROUNDING)


@pytest.mark.parametrize("seed", range(30))
def test_nearest_rising_sequence(seed):
    # The best rising sequence has all its values among the given ones: try them all.
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    value = rng.integers(0, 6, n) / 4 if seed % 2 else rng.normal(size=n)
    weight = rng.random(n)
    found = regression.isotonic_fit_l1(value, weight)
    assert np.all(np.diff(found) >= 0)
    assert np.isin(found, value).all()
    levels = np.unique(value)
    cost = np.zeros(len(levels))
    for v, w in zip(value, weight, strict=True):
        cost = np.minimum.accumulate(cost) + w * np.abs(levels - v)
    assert weight @ np.abs(value - found) == pytest.approx(cost.min(), abs=ROUNDING)


def test_compiled_search_is_as_good(monkeypatch):
    pytest.importorskip("numba")
    from calibrant.numerics.compiled import compiled as in_machine_code

    rng = np.random.default_rng(3)
    value, weight = np.cumsum(rng.normal(0.05, 1, 5000)), rng.random(5000)
    pure = regression.isotonic_fit_l1(value, weight)
    monkeypatch.setattr(regression, "_MIN_COMPILED", 1)
    compiled = regression.isotonic_fit_l1(value, weight)
    assert np.all(np.diff(compiled) >= 0)
    costs = [weight @ np.abs(value - found) for found in (pure, compiled)]
    assert costs[1] == nearly(costs[0])
    assert in_machine_code(regression._trim).signatures  # it did run


def test_relplot_estimates_the_same_quantities():
    relplot = pytest.importorskip("relplot.metrics")
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < 0.5 + 0.5 * (p - 0.5)).astype(float)
    np.random.seed(0)  # noqa: NPY002 - it draws from the global state
    assert laplace_kernel_error(y, p) == pytest.approx(
        relplot.laplace_calibration_approx(p, y, terms=4_000_000), abs=4e-3
    )
    assert interval_error(y, p) == pytest.approx(relplot.intCE_rand(p, y, trials=100), abs=2e-3)
