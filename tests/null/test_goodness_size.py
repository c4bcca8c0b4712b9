"""How often Spiegelhalter's z and the calibration slope reject perfect calibration at 5%."""

import numpy as np
import pytest

from calibrant import calibration_slope_test, spiegelhalter_test

REPETITIONS = 2000


def rate(test, n, scores, weighted=False):
    rng = np.random.default_rng([n, weighted])
    rejected = 0
    for _ in range(REPETITIONS):
        p = rng.beta(*scores, n)
        w = rng.exponential(1, n) if weighted else None
        rejected += test(rng.random(n) < p, p, sample_weight=w).p_value <= 0.05
    return rejected / REPETITIONS


@pytest.mark.parametrize("test", [spiegelhalter_test, calibration_slope_test])
@pytest.mark.parametrize("weighted", [False, True])
def test_size(test, weighted):
    # Standard error 0.5%.
    assert 0.035 <= rate(test, 300, (1, 1), weighted) <= 0.065


@pytest.mark.parametrize("test", [spiegelhalter_test, calibration_slope_test])
def test_size_with_few_events(test):
    # 5 expected among 50 rows.
    assert 0.035 <= rate(test, 50, (1, 9)) <= 0.065


def test_size_with_hardly_an_event():
    # Half an event expected: about 8%, as the documentation says, mostly without a fit.
    assert 0.06 <= rate(calibration_slope_test, 50, (1, 99)) <= 0.1
    assert rate(spiegelhalter_test, 50, (1, 99)) <= 0.085
