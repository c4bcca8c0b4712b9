"""Cumulative errors, curves and P-values against their slow twin."""

import math

import numpy as np
import pytest

from calibrant import (
    cumulative_curve,
    cumulative_test,
    ecce_mad,
    ecce_r,
    subpopulation_curve,
    subpopulation_test,
)
from calibrant.data import rows
from calibrant.data.rows import Sample
from calibrant.measures import cumulative as module
from calibrant.measures.cumulative import Statistic, cumulative_differences
from tests.tolerances import ROUNDING
from tests.twins import cumulative as twin

KINDS = ["continuous", "tenths", "confident", "ends", "one value"]


def scores(kind, n, rng):
    return {
        "continuous": lambda: rng.random(n),
        "tenths": lambda: rng.integers(0, 11, n) / 10,
        "confident": lambda: 1 - rng.random(n) ** 6 * 1e-3,
        "ends": lambda: rng.choice([0.0, 1.0, 0.5], n),
        "one value": lambda: np.full(n, 0.29),
    }[kind]()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("soft", [False, True])
def test_errors_and_curve(kind, weights, soft):
    rng = np.random.default_rng([len(kind), weights, soft])
    p = scores(kind, 60, rng)
    y = rng.random(60) if soft else (rng.random(60) < p**2).astype(float)
    w = rng.exponential(1, 60) if weights else None
    rows = y.tolist(), p.tolist(), None if w is None else w.tolist()
    assert ecce_mad(y, p, sample_weight=w) == pytest.approx(float(twin.mad(*rows)), abs=ROUNDING)
    assert ecce_r(y, p, sample_weight=w) == pytest.approx(float(twin.span(*rows)), abs=ROUNDING)
    assert twin.span(*rows) == twin.largest_interval(*rows)
    curve = cumulative_curve(y, p, sample_weight=w)
    np.testing.assert_allclose(curve.deviation, [float(c) for c in twin.walk(*rows)], atol=ROUNDING)
    np.testing.assert_array_equal(curve.score[1:], np.unique(p))
    if not soft:
        assert curve.sigma == pytest.approx(twin.sigma(*rows[1:]), rel=ROUNDING)
        normalized = ecce_r(y, p, sample_weight=w, normalize=True)
        assert normalized == pytest.approx(float(twin.span(*rows)) / curve.sigma, rel=ROUNDING)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", ["continuous", "tenths"])
@pytest.mark.parametrize("statistic", ["max", "range"])
def test_simulated_p_values_against_all_outcomes(kind, weights, statistic):
    rng = np.random.default_rng([len(kind), weights])
    p = rng.random(9) if kind == "continuous" else rng.integers(1, 4, 9) / 10
    w = rng.integers(1, 3, 9) / 2 if weights else None
    y = (rng.random(9) < p).astype(int)
    reach = twin.mad if statistic == "max" else twin.span
    exact = twin.exact_p_value(reach, y.tolist(), p.tolist(), None if w is None else w.tolist())
    n_resamples = 20_000
    found = cumulative_test(
        y, p, sample_weight=w, statistic=statistic, method="monte_carlo", n_resamples=n_resamples
    ).p_value
    assert found == pytest.approx(exact, abs=4.5 * math.sqrt(exact * (1 - exact) / n_resamples))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_group_walk(kind, weights, seed):
    rng = np.random.default_rng([len(kind), weights, seed])
    p = scores(kind, 50, rng)
    y = (rng.random(50) < 0.5).astype(float)
    member = rng.random(50) < (0.2, 0.5, 0.9)[seed]
    w = rng.exponential(1, 50) if weights else None
    rows = y.tolist(), p.tolist(), member.tolist(), None if w is None else w.tolist()
    curve = subpopulation_curve(y, p, group=member, sample_weight=w)
    np.testing.assert_allclose(
        curve.deviation, [float(c) for c in twin.group_walk(*rows)], atol=ROUNDING
    )


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("p", [[0.25] * 3 + [0.5] * 4, [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.9]])
def test_group_sigma_and_p_value_against_all_permutations(weights, p):
    y, member = [1, 0, 1, 0, 1, 0, 0], [True, False, False, True, True, False, True]
    w = [1.0, 2.0, 0.5, 1.5, 1.0, 3.0, 0.25] if weights else None
    found = subpopulation_test(
        y, p, group=member, sample_weight=w, method="monte_carlo", n_resamples=20_000
    )
    assert found.sigma == pytest.approx(twin.group_sigma(y, p, member, w), rel=ROUNDING)
    exact = twin.group_p_value(y, p, member, w)
    error = math.sqrt(exact * (1 - exact) / 20_000)
    assert found.p_value == pytest.approx(exact, abs=4.5 * error + 1e-4)


SCORES = {
    "continuous": lambda rng, n: rng.random(n),
    "tenths": lambda rng, n: rng.integers(0, 11, n) / 10,
    "one": lambda rng, n: np.full(n, 0.3),
    "certain": lambda rng, n: rng.integers(0, 2, n) * 1.0,
    "confident": lambda rng, n: rng.beta(0.1, 0.05, n),
    "rare": lambda rng, n: rng.beta(1, 200, n),
}


@pytest.mark.parametrize("n_cells", [1, 7, 64, 1 << 16])
@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("power", [1.0, 1.4, 0.5])
def test_rows_pooled_between_extremes_have_the_same_extremes(monkeypatch, n_cells, kind, power):
    monkeypatch.setattr(module, "_CELLS", n_cells)
    monkeypatch.setattr(module, "_MANY", 1)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = SCORES[kind](rng, 700)
        sample = Sample((rng.random(700) < p**power).astype(float), p)
        found, exact = (cumulative_differences(sample, only_extremes=few) for few in (True, False))
        assert found.total == 700
        for statistic in Statistic:
            assert found.excursion(statistic) == pytest.approx(
                exact.excursion(statistic), abs=ROUNDING
            )
        assert np.all(np.diff(found.score) >= 0)


def test_few_of_many_rows_are_sorted(monkeypatch):
    sorted_rows = []
    real = rows.sorted_keys
    monkeypatch.setattr(
        *(rows, "sorted_keys"),
        lambda blocks, n: sorted_rows.append(n) or real(blocks, n),
    )
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    y = (rng.random(200_000) < p).astype(float)
    found = cumulative_test(y, p)
    assert sum(sorted_rows) < 2000
    exact = cumulative_differences(Sample(y, p))
    assert found.statistic == pytest.approx(exact.excursion(Statistic.RANGE), rel=1e-12)
    assert found.sigma == pytest.approx(exact.sigma, rel=1e-9)
    assert ecce_mad(y, p) == pytest.approx(exact.excursion(Statistic.MAX), rel=1e-12)
