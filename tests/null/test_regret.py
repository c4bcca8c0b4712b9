"""How often the interval of the regret at a threshold covers, at zero regret too."""

import numpy as np
import pytest

from calibrant import threshold_regret


def regret_of(truth, score, threshold):
    """Return the regret of a population with these true probabilities at sorted scores."""
    saved = np.concatenate(([0.0], np.cumsum(threshold - truth)))
    starts = np.flatnonzero(np.diff(score, prepend=-1.0))
    start = np.searchsorted(score, threshold)
    return float(saved[[*starts, len(score)]].max() - saved[start]) / len(score)


def beta(a, b):
    return lambda rng, n: rng.beta(a, b, n)


def flat(p):
    # No cut-off between 0.1 and 0.6 is better than another.
    return np.where(p <= 0.1, 0.1, np.where(p < 0.6, 0.3, 0.8))


# Scores, true probability, threshold, rows, and whether the regret is 0.
POPULATIONS = {
    "calibrated": (beta(2, 2), lambda p: p, 0.3, 500, True),
    "as good from 0.1 to 0.6": (beta(1, 1), flat, 0.3, 500, True),
    "no information": (beta(1, 1), lambda p: np.full_like(p, 0.3), 0.3, 1000, True),
    "rare, no information": (beta(1, 50), lambda p: np.full_like(p, 0.01), 0.01, 1000, True),
    "over-confident": (beta(2, 2), lambda p: 0.5 + 0.6 * (p - 0.5), 0.25, 1000, False),
    "too high": (beta(2, 3), lambda p: 0.6 * p, 0.2, 2000, False),
    "rare, too high": (beta(1, 50), lambda p: 0.5 * p, 0.02, 3000, False),
    "reversed": (beta(2, 2), lambda p: 1 - p, 0.4, 300, False),
    "tenths": (
        lambda rng, n: np.round(rng.random(n), 1), lambda p: np.clip(2 * p - 0.5, 0, 1), 0.3, 400,
        False,
    ),
    "few rows": (beta(1, 1), lambda p: 0.5 + 0.3 * (p - 0.5), 0.8, 50, False),
}  # fmt: skip


@pytest.mark.parametrize("name", POPULATIONS)
def test_the_interval_covers(name):
    draw, truth, threshold, n, is_zero = POPULATIONS[name]
    score = np.sort(draw(np.random.default_rng(0), 400_000))
    target = regret_of(truth(score), score, threshold)
    # A finite population has a little regret where cut-offs are as good as each other.
    assert (target < 1e-12) == is_zero
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(100):
        p = draw(rng, n)
        y = rng.random(n) < truth(p)
        found = threshold_regret(y, p, threshold, n_resamples=200, rng=rng)
        inside += found.low <= target + 1e-12 <= found.high + 2e-12
    # Measured with 400 samples: 95 to 100%. 100 samples may be short of 95% by 3%.
    assert inside >= 92
