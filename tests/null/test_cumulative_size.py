"""How often the cumulative test rejects perfect calibration at 5%, over 4000 samples each.

The standard error of a rate of 5% is 0.34% here, so a true 5% stays within 4% to 6% by three of
them. A rank P-value among 39 simulated walks and the observed one is a test of level exactly 5%
(2 in 40) wherever statistics are continuous; that is as good as 9999 walks for a rate.
"""

import numpy as np
import pytest

from calibrant.data.rows import Sample
from calibrant.inference.null_simulation import TIE, calibrated_outcomes, simulate
from calibrant.measures.cumulative import Statistic, cumulative_differences
from calibrant.numerics.probability import brownian_max, brownian_range, rank_p_value
from tests.tolerances import ROUNDING

LEVEL = 0.05
REPETITIONS = 4000
WALKS = 39
LAWS = {Statistic.MAX: brownian_max, Statistic.RANGE: brownian_range}
SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "near 0": lambda rng, n: rng.beta(1, 19, n),
    "tenths": lambda rng, n: rng.integers(0, 11, n) / 10,
}


def calibrated(rng, n, scores):
    p = SCORES[scores](rng, n)
    return rng.random(n) < p, p


def monte_carlo_rates(n, scores, weighted=False):
    rng = np.random.default_rng([n, len(scores), weighted])
    rejected = dict.fromkeys(Statistic, 0)
    for _ in range(REPETITIONS):
        y, p = calibrated(rng, n, scores)
        sample = Sample(y, p, rng.exponential(1, n) if weighted else None)
        walk = cumulative_differences(sample)
        high, low = simulate(calibrated_outcomes(sample), WALKS, rng)
        for statistic in Statistic:
            simulated = statistic.of(high, low) / walk.total
            p_value = rank_p_value(simulated, walk.excursion(statistic), TIE * walk.sigma)
            rejected[statistic] += p_value <= LEVEL
    return {statistic: times / REPETITIONS for statistic, times in rejected.items()}


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("n", [10, 50, 1000])
def test_monte_carlo(n, scores):
    rates = monte_carlo_rates(n, scores)
    assert max(rates.values()) <= 0.06
    if n >= 50 and scores != "tenths":
        assert min(rates.values()) >= 0.04


@pytest.mark.parametrize("scores", ["uniform", "tenths"])
@pytest.mark.parametrize("n", [10, 50])
def test_monte_carlo_with_weights(n, scores):
    rates = monte_carlo_rates(n, scores, weighted=True)
    assert max(rates.values()) <= 0.06


def asymptotic_rates(n, scores, seed):
    """Walk over many samples at once; ties make one step."""
    rng = np.random.default_rng(seed)
    rejected = dict.fromkeys(Statistic, 0)
    for _ in range(REPETITIONS // 100):
        p = np.sort(SCORES[scores](rng, (100, n)), axis=1)
        residual = (rng.random(p.shape) < p) - p
        walked = np.cumsum(residual, axis=1)
        tied_with_next = np.zeros(p.shape, dtype=bool)
        tied_with_next[:, :-1] = p[:, 1:] == p[:, :-1]
        walked[tied_with_next] = 0.0
        high, low = walked.max(axis=1).clip(min=0), walked.min(axis=1).clip(max=0)
        sigma = np.sqrt(np.sum(p * (1 - p), axis=1))
        for statistic, law in LAWS.items():
            rejected[statistic] += np.sum(law.sf(statistic.of(high, low) / sigma) <= LEVEL)
    return {statistic: times / REPETITIONS for statistic, times in rejected.items()}


@pytest.mark.parametrize("scores", ["uniform", "near 0"])
def test_asymptotic_without_heavy_ties(scores):
    rates = asymptotic_rates(2000, scores, seed=len(scores))
    assert all(abs(rate - LEVEL) <= 0.01 for rate in rates.values()), rates


def test_asymptotic_is_conservative_with_heavy_ties():
    rates = asymptotic_rates(2000, "tenths", seed=0)
    assert 0.02 < rates[Statistic.MAX] < 0.045
    assert 0.01 < rates[Statistic.RANGE] < 0.035


@pytest.mark.parametrize("n", [200, 1000])
def test_both_ways_of_walking_agree(n):
    # The vectorised walks above are those of the package.
    rng = np.random.default_rng(n)
    y, p = calibrated(rng, n, "tenths")
    walk = cumulative_differences(Sample(y, p))
    order = np.argsort(p, kind="stable")
    walked = np.cumsum(y[order] - p[order])[np.append(np.diff(p[order]) > 0, True)]
    for statistic in Statistic:
        expected = statistic.of(max(walked.max(), 0), min(walked.min(), 0)) / n
        assert walk.excursion(statistic) == pytest.approx(expected, abs=ROUNDING)
