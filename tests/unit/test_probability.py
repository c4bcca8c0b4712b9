"""Limits of proportions, ranks and adjusted P-values at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from calibrant.numerics.probability import (
    benjamini_hochberg,
    holm,
    logit,
    max_proportion,
    min_proportion,
    proportion_lower,
    proportion_upper,
    rank_p_value,
    weibull_quantile,
)
from tests.tolerances import ROUNDING


def arrays(*numbers):
    return [np.array([number], dtype=np.float64) for number in numbers]


def test_whole_counts_are_as_rare_as_the_tail():
    # Of 50 trials of probability 0.3, at least 22 is as rare as the tail, 21 is not.
    tail = float(binom.sf(21, 50, 0.3))
    assert max_proportion(*arrays(0.3, 50, tail))[0] == pytest.approx(22 / 50, abs=1e-7)
    assert min_proportion(*arrays(0.7, 50, tail))[0] == pytest.approx(28 / 50, abs=1e-7)


@pytest.mark.parametrize("probability", [0.0, 1e-300, 0.5, 1.0])
@pytest.mark.parametrize("n", [0.0, 1e-5, 1.0, math.inf])
def test_proportions_at_the_edges(probability, n):
    low, high = (f(*arrays(probability, n, 0.025))[0] for f in (min_proportion, max_proportion))
    assert 0 <= low <= probability <= high <= 1
    if n in (0.0, math.inf) or probability in (0, 1):
        assert (low, high) == pytest.approx((probability, probability), abs=ROUNDING)


def test_limits_of_no_event_and_of_every_event():
    assert proportion_lower(*arrays(0, 20, 0.025))[0] == 0
    assert proportion_upper(*arrays(1, 20, 0.025))[0] == 1
    rule = 1 - 0.025 ** (1 / 20)
    assert proportion_upper(*arrays(0, 20, 0.025))[0] == pytest.approx(rule, abs=ROUNDING)
    assert proportion_lower(*arrays(1, 20, 0.025))[0] == pytest.approx(1 - rule, abs=ROUNDING)


def test_ranks():
    simulated = np.array([1.0, 2.0, 3.0])
    assert rank_p_value(simulated, 3.5, 0.0) == 1 / 4
    assert rank_p_value(simulated, 2.0, 0.0) == 3 / 4
    assert rank_p_value(simulated, 2.0 + 1e-10, 1e-9) == 3 / 4
    assert weibull_quantile(simulated, 0.25) == pytest.approx(1.0, abs=ROUNDING)
    assert weibull_quantile(simulated, 0.01) == 1
    assert weibull_quantile(simulated, 0.99) == 3


@pytest.mark.parametrize("adjusted", [holm, benjamini_hochberg])
def test_adjusting_nothing(adjusted):
    assert adjusted([]).shape == (0,)
    assert np.isnan(adjusted([math.nan, math.nan])).all()
    assert adjusted([0.9, 0.8]).max() <= 1


def test_logits():
    u = np.array([-700.0, -30.0, 0.0, 3.0, 30.0])
    # Next to 1 doubles are 1e-16 apart, a thousandth of what is left at 30.
    assert logit(expit(u)) == pytest.approx(u, abs=2e-3)
    assert logit(np.array([0.0, 1.0])).tolist() == [-math.inf, math.inf]


@pytest.mark.parametrize("n", [1, 2, 39, 1000])
@pytest.mark.parametrize("level", [0.0, 0.003, 0.025, 0.5, 0.975, 1.0])
def test_weibull_quantiles_are_those_of_numpy(n, level):
    values = np.random.default_rng(n).normal(size=n)
    expected = np.quantile(values, level, method="weibull")
    # Both interpolate once, from one end or the other: a few roundings.
    assert weibull_quantile(values, level) == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)
