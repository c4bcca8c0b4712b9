"""Whether the shift that a verdict says would be detected is detected, and what verdicts name."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import assess, calibration_test


@pytest.mark.parametrize(
    ("n", "low", "width"), [(800, 0.3, 0.4), (400, 0.0, 0.02)], ids=["even", "rare"]
)
def test_the_smallest_detectable_shift_is_detected(n, low, width):
    rng = np.random.default_rng(0)
    p = low + width * rng.random(n)
    size = assess(rng.random(n) < p, p, n_resamples=100).verdict.smallest_detectable
    found = [
        calibration_test(rng.random(n) < p + size, p, n_resamples=199).p_value <= 0.05
        for _ in range(200)
    ]
    # At least 80% is promised, by the level alone; other parts of the test may see more. 200
    # samples show it to 3%.
    assert 0.73 <= np.mean(found) <= 0.97


@pytest.mark.parametrize(
    ("curve", "direction"),
    [
        (lambda p: expit(logit(p) - 0.4), "too high"),
        (lambda p: p**0.8, "too low"),
        (lambda p: expit(0.65 * logit(p)), "over-confident"),
        (lambda p: expit(1.5 * logit(p)), "under-confident"),
        (lambda p: np.clip(p + 0.1 * np.sin(6 * np.pi * p), 0, 1), "mixed"),
    ],
    ids=["high", "low", "over", "under", "shape"],
)
def test_faults_are_named(curve, direction):
    rng, directions = np.random.default_rng(1), Counter()
    for _ in range(20):
        p = rng.beta(0.8, 0.9, 3000)
        verdict = assess(rng.random(3000) < curve(p), p, n_resamples=100).verdict
        directions[verdict.direction] += 1
    assert directions[direction] >= 18


def test_calibrated_predictions_are_called_nothing():
    rng, n_named = np.random.default_rng(2), 0
    for _ in range(100):
        p = rng.beta(0.8, 2.5, 400)
        n_named += assess(rng.random(400) < p, p, n_resamples=100).verdict.detected
    # 5%, and three standard errors.
    assert n_named <= 11
