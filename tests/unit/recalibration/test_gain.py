"""The gain of recalibration: its parts, its noise, and that it is not biased upwards."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

import calibrant as cb
from calibrant import CalibrantError
from calibrant.datasets import simulate
from calibrant.recalibration import (
    IdentityCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
    calibration_gain,
    cross_fitted,
)
from tests.tolerances import nearly


def test_is_the_mean_difference_of_held_out_scores():
    y, p = cb.datasets.load_rain()
    found = calibration_gain(y, p, method="platt", rng=3)
    q = cross_fitted(PlattCalibrator(), p, y, rng=3)
    gain = (p - y) ** 2 - (q - y) ** 2
    assert found.value == nearly(gain.mean())
    assert found.value == nearly(cb.brier_score(y, p) - cb.brier_score(y, q))
    # The standard deviation of single rows, or that of outcomes drawn between the two, if larger.
    assert found.standard_error >= np.std(gain, ddof=1) / np.sqrt(len(y)) - 1e-12
    inwards = np.abs(q - 0.5) < np.abs(p - 0.5)
    assert found.over_confidence == nearly(gain[inwards].sum() / len(y))
    assert found.over_confidence + found.under_confidence == nearly(found.value)
    assert (found.method, found.score, found.cv, found.n) == ("platt", "brier", 5, 347)


def test_log_score():
    y, p = simulate("overconfident", 1000, rng=2)
    found = calibration_gain(y, p, score="log", method=TemperatureCalibrator(), cv=4)
    q = cross_fitted(TemperatureCalibrator(), p, y, cv=4)
    assert found.value == nearly(cb.log_score(y, p) - cb.log_score(y, q))
    assert found.value > 3 * found.standard_error
    assert calibration_gain(y, p, score="log").value == pytest.approx(found.value, abs=0.01)


@pytest.mark.parametrize("name", ["overconfident", "underconfident"])
def test_the_two_kinds(name):
    y, p = simulate(name, 3000, rng=1)
    found = calibration_gain(y, p)
    larger = max(found.over_confidence, found.under_confidence)
    assert larger == getattr(found, f"{name[:-9]}_confidence")
    assert found.value > 3 * found.standard_error


def test_the_level_is_not_fitted_for_nothing():
    # With as many events in every fold, the level of the others would be right, and a gain.
    gains = []
    for seed in range(100):
        y, p = simulate("perfect", 100, rng=seed)
        gains.append(calibration_gain(y, p, method="shift", rng=seed).value)
    assert np.mean(gains) < -0.0012


def test_calibrated_predictions_gain_nothing_on_average():
    gains, miscalibrations, z = [], [], []
    for seed in range(40):
        y, p = simulate("perfect", 300, rng=seed)
        found = calibration_gain(y, p, method="platt", rng=seed)
        gains.append(found.value)
        z.append(found.value / found.standard_error)
        miscalibrations.append(cb.score_decomposition(y, p).miscalibration)
    # Maps fit noise: the decomposition takes that for miscalibration, held-out rows do not.
    assert np.mean(miscalibrations) > 0.004
    assert np.mean(gains) < 0.001
    # Three standard errors are never reached.
    assert max(z) < 3


def test_the_gain_of_a_known_population():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 6000)
    logit = np.log(p / (1 - p))
    truth = 1 / (1 + np.exp(-0.6 * logit - 0.2))
    y = (rng.random(6000) < truth).astype(float)
    found = calibration_gain(y, p, method="platt")
    # Platt scaling is right here: it gains the mean of (p - truth)^2, but for noise.
    assert abs(found.value - np.mean((p - truth) ** 2)) < 3 * found.standard_error


def test_identity_gains_nothing():
    y, p = cb.datasets.load_rain()
    found = calibration_gain(y, p, method=IdentityCalibrator())
    assert (found.value, found.standard_error, found.under_confidence) == (0, 0, 0)


def test_weights_classes_and_soft_labels():
    y, p = simulate("overconfident", 400, rng=5)
    w = np.r_[np.ones(300), np.zeros(100)]
    found = calibration_gain(y, p, method="platt", sample_weight=w)
    assert found.n == 300
    assert found.value == nearly(calibration_gain(y, p, method="platt", sample_weight=4 * w).value)
    rng = np.random.default_rng(0)
    prob = rng.dirichlet([0.3, 0.3, 0.3], 600)
    label = rng.integers(0, 3, 600)
    classes = calibration_gain(label, prob, method="temperature")
    q = cross_fitted(TemperatureCalibrator(), prob, label)
    assert classes.value == nearly(cb.brier_score(label, prob) - cb.brier_score(label, q))
    assert classes.over_confidence > 0.1
    soft = calibration_gain(np.clip(p + 0.1, 0, 1), p, method="platt")
    assert soft.value > 0


def test_same_seed_same_result():
    y, p = simulate("overconfident", 300, rng=5)
    assert calibration_gain(y, p, rng=2) == calibration_gain(y, p, rng=2)
    again = calibration_gain(y, p, rng=np.random.default_rng(2))
    assert np.isfinite(again.value)


def test_refusals():
    y, p = [0, 1, 0, 1], [0.0, 0.0, 0.4, 0.6]
    with pytest.raises(CalibrantError, match="makes the log score infinite"):
        calibration_gain(y, p, score="log", cv=2)
    with pytest.raises(CalibrantError, match="method must be"):
        calibration_gain(y, p, method="magic")
    with pytest.raises(CalibrantError, match="cv must be between 2 and"):
        calibration_gain(y, p, method="platt", cv=9)
    with pytest.raises(CalibrantError, match="a sketch cannot be split"):
        calibration_gain(cb.Sketch().update(y, p), None)


def test_printed():
    y, p = cb.datasets.load_rain()
    assert repr(calibration_gain(y, p, method="platt")).startswith("CalibrationGain(brier gain 0.0")
