"""How often Spiegelhalter's z and the calibration slope reject perfect calibration at 5%."""

import numpy as np
import pytest

from calibrant.inference.goodness import calibration_slope_test, spiegelhalter_test

REPETITIONS = 2000


@pytest.mark.parametrize("test", [spiegelhalter_test, calibration_slope_test])
@pytest.mark.parametrize("weighted", [False, True])
def test_size(test, weighted):
    rng = np.random.default_rng(weighted)
    n, rejected = 300, 0
    for _ in range(REPETITIONS):
        p = rng.random(n)
        w = rng.exponential(1, n) if weighted else None
        rejected += test(rng.random(n) < p, p, sample_weight=w).p_value <= 0.05
    # Standard error 0.5%.
    assert 0.035 <= rejected / REPETITIONS <= 0.065
