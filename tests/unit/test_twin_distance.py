"""The slow twins of the distances, on cases worked by hand."""

import math

import pytest

from tests.tolerances import ROUNDING
from tests.twins import distance as twin


def test_weak_calibration_error():
    # One score: v = 1 there. Two of opposite residual 1/8 at distance 1/2: 1/2 * 1/8.
    assert twin.weak_calibration_error([1], [0.25]) == pytest.approx(0.75, abs=ROUNDING)
    assert twin.weak_calibration_error([0, 1], [0.25, 0.75]) == pytest.approx(1 / 16, abs=ROUNDING)
    # Residuals -1/4 and 1/2: 1/4 is carried over a distance of 1/2, 1/4 is left.
    assert twin.weak_calibration_error([0, 1], [0.5, 0.0]) == pytest.approx(0.375, abs=ROUNDING)


def test_distance_to_calibration():
    # Rows of label 0 and 1 at 0.45 and 0.55: exchanging 0.45 of each moves 2 * 0.45 * 0.1 / 2.
    found = twin.distance_to_calibration([0, 1], [0.45, 0.55])
    assert found == pytest.approx(0.045, abs=1e-12)
    # Three rows of label 1 and one of label 0, all at 1/2: all move to 3/4.
    y, p = [1, 1, 1, 0], [0.5] * 4
    assert twin.distance_to_calibration(y, p, extra=[0.75]) == pytest.approx(0.25, abs=1e-12)
    assert twin.distance_to_calibration([0, 1], [0.5, 0.5]) == pytest.approx(0, abs=1e-12)


def test_laplace_kernel_error():
    assert twin.laplace_kernel_error([1], [0.25]) == pytest.approx(0.75)
    # Residuals -1/2 and 1/2 at distance 1/2: (2/4 - 2/4 exp(-1/2)) / 4 under the root.
    expected = math.sqrt((1 - math.exp(-0.5)) / 8)
    assert twin.laplace_kernel_error([0, 0.5], [0.5, 0.0]) == pytest.approx(expected)


def test_shifted_ece():
    y, p = [0, 1], [0.25, 0.75]
    # A line of the grid of width 1 falls between the scores half of the time: then 1/8 + 1/8.
    assert twin.shifted_ece(y, p, None, 1) == 0.125
    # Width 1/2: always parted.
    assert twin.shifted_ece(y, p, None, 0.5) == 0.25


def test_interval_error():
    # Width 1: 0.125 + 1; width 1/2: 0.25 + 1/2; smaller widths tend to 0.25.
    assert twin.interval_error([0, 1], [0.25, 0.75]) == 0.25
    # Residuals -+1/4 (nearly) at distance 1/64: width 2^-k parts them with chance 2^k / 64;
    # 2^k / 128 + 2^-k (nearly) is least at k = 3 and 4.
    y, p = [0, 1], [0.5 - 1 / 128, 0.5 + 1 / 128]
    least = min(2**k / 64 * (0.5 - 1 / 128) + 2.0**-k for k in range(7))
    assert twin.interval_error(y, p) == least
    assert twin.interval_error([0, 1], [0.5, 0.5]) == 0
