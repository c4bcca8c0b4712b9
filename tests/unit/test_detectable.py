"""The minimum detectable shift: against exact binomial power, clipping, edges."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from calibrant.data.rows import read_sample
from calibrant.inference.detectable import minimum_detectable_shift

SIXTH = 0.05 / 6


def detectable(p, w=None, **options):
    return minimum_detectable_shift(
        read_sample(np.zeros(len(p)), p, sample_weight=w), **({"level": 0.95} | options)
    )


def binomial_power(n, p, q):
    """Return the power of the exact two-sided test of the number of events."""
    k = np.arange(n + 1)
    away = np.abs(k - n * p)
    tail = np.array([binom.pmf(k[away >= one - 1e-9], n, p).sum() for one in away])
    return binom.pmf(k[tail <= SIXTH], n, q).sum()


@pytest.mark.parametrize(("n", "p"), [(50, 0.5), (40, 0.1), (200, 0.02), (30, 0.9)])
def test_equal_scores_against_the_binomial_distribution(n, p):
    x = detectable(np.full(n, p))
    powers = [binomial_power(n, p, min(max(p + s * x, 0.0), 1.0)) for s in (1, -1)]
    # The larger of the two shifts, and a direction that is never detected is left out.
    possible = [binomial_power(n, p, q) >= 0.8 for q in (1.0, 0.0)]
    found = [power for power, is_possible in zip(powers, possible, strict=True) if is_possible]
    assert min(found) == pytest.approx(0.8, abs=1e-3)


def test_many_rows_are_normal():
    p = (np.arange(100_000) + 0.5) / 100_000
    sigma = math.sqrt(np.mean(p * (1 - p)) / 100_000)
    x = detectable(p)
    # Clipped at 0 or 1 the mean moves by x - x^2 / 2.
    expected = (norm.isf(SIXTH / 2) + norm.ppf(0.8)) * sigma
    assert x - x * x / 2 == pytest.approx(expected, rel=0.01)


def test_clipping_makes_larger_shifts_necessary():
    # Half of the predictions near 0, where no shift downwards is possible.
    p = np.repeat([0.001, 0.5], 500)
    free = detectable(np.full(1000, 0.5))
    assert detectable(p) > 1.3 * free


def test_more_rows_and_less_power_need_less():
    assert detectable(np.full(400, 0.3)) < detectable(np.full(100, 0.3))
    assert detectable(np.full(400, 0.3), power=0.5) < detectable(np.full(400, 0.3))
    assert detectable(np.full(400, 0.3), level=0.8) < detectable(np.full(400, 0.3))


def test_weights():
    p = np.random.default_rng(0).uniform(0.1, 0.9, 300)
    assert detectable(p, np.full(300, 7.0)) == pytest.approx(detectable(p))
    uneven = np.where(np.arange(300) % 10 == 0, 20.0, 1.0)
    assert detectable(p, uneven) > 1.5 * detectable(p)


def test_edges():
    assert detectable([0.5]) == 1
    assert detectable([0.01] * 20) < 0.5
    assert math.isnan(detectable([0.0, 1.0]))
    soft = read_sample(np.array([0.2, 0.7]), np.array([0.3, 0.6]))
    assert math.isnan(minimum_detectable_shift(soft, 0.95))
