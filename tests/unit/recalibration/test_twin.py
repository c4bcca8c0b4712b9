"""The slow twins of calibrators, against cases worked out by hand."""

import numpy as np
import pytest

from tests.twins import recalibration as twin


def test_kernel_regression():
    # By symmetry a half in the middle, whatever the scale; one row is all there is to know.
    assert twin.kernel_regression([0.2, 0.8], [0, 1], None, 0.3, 0.5) == pytest.approx(0.5)
    assert twin.kernel_regression([0.2], [1], None, 0.3, 0.9) == pytest.approx(1.0)
    # Twice the weight is the row twice: 2 / 3 in the middle.
    assert twin.kernel_regression([0.2, 0.8], [0, 1], [1, 2], 0.3, 0.5) == pytest.approx(2 / 3)


def test_isotonic():
    assert twin.isotonic([0, 1, 0, 1], [1, 1, 1, 1]).tolist() == [0, 0.5, 0.5, 1]
    assert twin.isotonic([1, 0], [3, 1]).tolist() == [0.75, 0.75]


def test_piecewise_linear():
    values = [twin.piecewise_linear([0.2, 0.6], [0.0, 1.0], p) for p in (0.1, 0.2, 0.3, 0.6, 1)]
    assert values == pytest.approx([0, 0, 0.25, 1, 1])


def test_binned_means():
    p, y = np.array([0.1, 0.5, 1.0]), np.array([1.0, 0.0, 1.0])
    values = [twin.binned_means(p, y, [0, 0.25, 0.5, 1], q) for q in (0.0, 0.3, 0.5, 1.0)]
    assert values == [1.0, 0.375, 0.5, 0.5]


def test_targets():
    assert twin.platt_targets(np.array([1.0, 1, 0])).tolist() == [0.75, 0.75, 1 / 3]


def test_beta():
    # Two scores and one slope: both targets are met, 3/4 and 1/4 from two rows of either outcome.
    p, y = np.array([0.2, 0.2, 0.8, 0.8]), np.array([0.0, 0, 1, 1])
    a, b, c = twin.beta(p, y, one_slope=True)
    assert (a, b, c) == pytest.approx((np.log(3) / np.log(4), np.log(3) / np.log(4), 0), abs=1e-5)


def test_temperature():
    # 3 of 4 outcomes as foreseen with odds of 9: T halves the logit.
    prob = np.array([[0.1, 0.9]] * 4)
    assert twin.temperature(prob, [1, 1, 1, 0]) == pytest.approx(2.0, abs=1e-4)


def test_mean_movement():
    # To the place the noise led to: the mean of abs(noise), while it stays inside.
    moved = twin.mean_movement([0.5], None, 0.05, lambda t: t)
    assert moved == pytest.approx(0.05 * np.sqrt(2 / np.pi), rel=1e-5)
