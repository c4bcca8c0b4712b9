"""Whether the error that a verdict says would be found is found.

What a verdict finds is what its test finds, whose size is tested in test_cumulative_size.py.
"""

import numpy as np

from calibrant import assess, cumulative_test

REPETITIONS = 1000


def test_the_smallest_detectable_error_is_detected():
    rng, n = np.random.default_rng(0), 800
    p = 0.3 + 0.4 * rng.random(n)
    size = assess(rng.random(n) < p, p, n_resamples=100).verdict.smallest_detectable
    found = [
        cumulative_test(rng.random(n) < p - size, p).p_value <= 0.05 for _ in range(REPETITIONS)
    ]
    # At least 80% is promised; far more, and a smaller error should have been named.
    assert 0.77 <= np.mean(found) <= 0.86


def test_the_smallest_detectable_error_among_few_events():
    rng, n = np.random.default_rng(2), 400
    p = 0.02 * rng.random(n)
    size = assess(rng.random(n) < p, p, n_resamples=100).verdict.smallest_detectable
    method = {"method": "monte_carlo", "n_resamples": 199}
    found = [
        cumulative_test(rng.random(n) < p + size, p, **method).p_value <= 0.05 for _ in range(300)
    ]
    # By the limit law alone 0.64 were. Counts come in steps, and so does what is found.
    assert 0.72 <= np.mean(found) <= 0.9


def test_the_number_of_rows_that_would_show_a_deviation():
    rng = np.random.default_rng(1)
    p = 0.3 + 0.4 * rng.random(200_000)
    y = rng.random(len(p)) < p - 0.05
    verdict = assess(y, p, n_resamples=100).verdict
    few = len(p) // 200
    found = [cumulative_test(y[k::200], p[k::200]).p_value <= 0.05 for k in range(200)]
    # 0.05 at 1000 rows: the verdict's law, read the other way, is right about the share found.
    assert verdict.n_needed is not None
    assert abs(verdict.n_needed - few) < 0.35 * few
    assert 0.72 <= np.mean(found) <= 0.9
