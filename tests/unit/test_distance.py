"""Distances to calibration: hand-computed cases, edges, results."""

import numpy as np
import pytest

from calibrant import (
    CalibrantError,
    distance_bounds,
    interval_error,
    laplace_kernel_error,
    weak_calibration_error,
    weak_calibration_witness,
)
from calibrant.measures.distance import _shifted_ece
from tests.tolerances import ROUNDING, nearly

MEASURES = [weak_calibration_error, laplace_kernel_error, interval_error]


def test_weak_calibration_error_by_hand():
    # Residual 3/4 at one score; there is nowhere to carry it.
    assert weak_calibration_error([1], [0.25]) == 0.75
    # Residuals 1/2 at 0 and -1/4 at 1/2: a quarter is carried half way, a quarter is dropped.
    assert weak_calibration_error([1, 0], [0.0, 0.5]) == 0.375
    # The other way round: too high on the whole.
    assert weak_calibration_error([0, 1], [1.0, 0.5]) == 0.375
    # Residuals 1/4, 1/4, -1/4: one quarter is carried from 0.25 to 0.75, the other dropped.
    y, p = [0.75, 1.0, 0.0], [0.0, 0.25, 0.75]
    assert weak_calibration_error(y, p) == pytest.approx(0.5 / 4 + 1 / 4, abs=ROUNDING)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_one_row(measure, p):
    # One score: the error is the size of its residual, exactly 0 where y = p.
    assert measure([p], [p]) == 0
    assert measure([1], [p]) == pytest.approx(1 - p, abs=ROUNDING)
    assert measure([0], [p]) == pytest.approx(p, abs=ROUNDING)


@pytest.mark.parametrize("measure", MEASURES)
def test_perfect_on_every_score(measure):
    y, p = [0, 1, 0, 0, 0, 1], [0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    assert measure(y, p) == 0
    assert measure([0.1, 0.7, 1.0], [0.1, 0.7, 1.0]) == 0


@pytest.mark.parametrize("measure", MEASURES)
def test_scores_at_the_smallest_distance(measure):
    tiny = 5e-324
    assert measure([0, 1, 1], [0.0, tiny, 2 * tiny]) == pytest.approx(2 / 3, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_classwise_is_the_mean_over_classes(measure):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 60)
    y = rng.integers(0, 3, 60)
    each = [measure(y, p, multiclass=c) for c in range(3)]
    assert measure(y, p, multiclass="classwise") == pytest.approx(np.mean(each), abs=ROUNDING)
    right = (p.argmax(axis=1) == y).astype(int)
    assert measure(y, p) == nearly(measure(right, p.max(axis=1)))


@pytest.mark.parametrize("function", [weak_calibration_witness, distance_bounds])
def test_results_are_about_one_problem(function):
    with pytest.raises(CalibrantError, match="one binary problem"):
        function([0, 1, 2], np.eye(3), multiclass="classwise")


def test_witness_shows_where_predictions_are_off():
    # Low scores too low and high ones too high: over-confident, the witness falls throughout.
    p = np.array([0.125, 0.25, 0.75, 0.875])
    falling = weak_calibration_witness([0.25, 0.375, 0.625, 0.75], p).value
    assert np.array_equal(np.diff(falling), -np.diff(p))
    rising = weak_calibration_witness([0.0, 0.125, 0.875, 1.0], p).value
    assert np.array_equal(np.diff(rising), np.diff(p))
    # Too low everywhere: level at 1; too high everywhere: level at -1.
    assert weak_calibration_witness(p + 0.125, p).value.tolist() == [1, 1, 1, 1]
    assert weak_calibration_witness(p - 0.125, p).value.tolist() == [-1, -1, -1, -1]


def test_witness_as_data():
    witness = weak_calibration_witness([0, 1], [0.25, 0.75])
    assert witness.to_dict() == {
        "score": [0.25, 0.75],
        "value": [0.5, 1.0],
        "residual": [-0.125, 0.125],
        "error": 0.0625,
    }
    assert repr(witness) == "LipschitzWitness(error=0.0625, 2 scores from 0.25 to 0.75)"


def test_bounds_meet_where_all_residuals_have_one_sign():
    bounds = distance_bounds([0.5, 0.75], [0.25, 0.5])
    assert bounds.low == bounds.high == 0.25
    assert bounds.to_dict() == {"low": 0.25, "high": 0.25}
    assert repr(bounds) == "DistanceBounds(0.25 <= distance <= 0.25)"


def test_expected_ece_of_shifted_bins():
    score, residual = np.array([0.0, 0.25, 1.0]), np.array([0.1, -0.2, 0.3])
    # Width 1/2: the first two are parted half of the time, the last one always from them.
    assert _shifted_ece(score, residual, 0.5) == pytest.approx(0.5 * (0.1 + 0.3) + 0.5 * 0.6)
    # Width 1: parted a quarter of the time; the last two meet then, and are parted otherwise.
    assert _shifted_ece(score, residual, 1.0) == pytest.approx(0.25 * 0.2 + 0.75 * 0.4)
    assert _shifted_ece(score, residual, 0.125) == pytest.approx(0.6)


def test_interval_error_stops_at_the_right_width():
    # A few residuals of alternate sign, 2^-20 apart: only bins of middling width are good.
    p = 0.5 + np.arange(64) * 2.0**-20
    y = np.arange(64) % 2
    residual = (y - p) / 64
    sums = [_shifted_ece(p, residual, 2.0**-k) + 2.0**-k for k in range(40)]
    assert interval_error(y, p) == nearly(min(sums))
    assert 0 < np.argmin(sums) < 20
