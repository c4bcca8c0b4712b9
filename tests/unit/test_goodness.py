"""Spiegelhalter's z and the calibration slope: hand-computed cases, edges, refusals."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm

from calibrant import CalibrantError, brier_score, calibration_slope_test, spiegelhalter_test
from calibrant.datasets import load_flares, load_rain
from calibrant.numerics import regression
from tests.tolerances import ROUNDING, assert_nearly_equal


def test_spiegelhalter_by_hand():
    # (y - p)(1 - 2p): .75 * .5, -.75 * -.5; variance 2 * .25 * .1875
    result = spiegelhalter_test([1, 0], [0.25, 0.75])
    assert result.statistic == 0.375
    assert result.sigma == pytest.approx(math.sqrt(0.09375) / 2)
    z = 0.75 / math.sqrt(0.09375)
    assert result.normalized == pytest.approx(z)
    assert result.p_value == pytest.approx(2 * norm.sf(z), rel=ROUNDING)
    assert result.n == 2
    assert repr(result) == (
        "TestResult(Brier score above expected: 0.375 = 2.45 sigma, p = 0.014, n = 2, asymptotic)"
    )


def test_spiegelhalter_is_the_excess_of_the_brier_score():
    y, p = load_rain()
    expected = np.mean(p * (1 - p))
    assert spiegelhalter_test(y, p).statistic == pytest.approx(brier_score(y, p) - expected)


def test_spiegelhalter_weights():
    w = np.array([3.0, 1.0])
    result = spiegelhalter_test([1, 0], [0.25, 0.875], sample_weight=w)
    excess = 3 * 0.75 * 0.5 + 0.875 * 0.75
    noise = 9 * 0.25 * 0.1875 + 0.5625 * 0.109375
    assert result.normalized == pytest.approx(excess / math.sqrt(noise))
    scaled = spiegelhalter_test([1, 0], [0.25, 0.875], sample_weight=5 * w)
    assert_nearly_equal(scaled, result)


def test_spiegelhalter_p_values_are_never_zero():
    n = 10**6
    assert spiegelhalter_test(np.ones(n), np.full(n, 0.01)).p_value > 0


def test_spiegelhalter_needs_something_left_to_chance():
    with pytest.raises(CalibrantError, match="must hold a prediction other than 0, 1/2 and 1"):
        spiegelhalter_test([0, 1, 1], [0.0, 0.5, 1.0])


def slow_slope(y, p, w):
    """Maximise the weighted likelihood with a general optimiser; sums row by row."""
    x = np.column_stack([np.ones(len(p)), logit(p)])

    def loss(b):
        return np.sum(w * (np.logaddexp(0, x @ b) - y * (x @ b)))

    def slope_of_loss(b):
        return x.T @ (w * (expit(x @ b) - y))

    fit = minimize(loss, [0.0, 1.0], jac=slope_of_loss, method="BFGS", options={"gtol": 1e-10})
    m = expit(x @ fit.x)
    inner = sum(wi * mi * (1 - mi) * np.outer(r, r) for wi, mi, r in zip(w, m, x, strict=True))
    outer = sum(wi**2 * mi * (1 - mi) * np.outer(r, r) for wi, mi, r in zip(w, m, x, strict=True))
    covariance = np.linalg.inv(inner) @ outer @ np.linalg.inv(inner)
    return fit.x, np.sqrt(np.diag(covariance)), slow_statistic(y, p, w, x)


def slow_statistic(y, p, w, x):
    u = sum(wi * (yi - pi) * r for yi, pi, wi, r in zip(y, p, w, x, strict=True))
    v = sum(wi**2 * pi * (1 - pi) * np.outer(r, r) for pi, wi, r in zip(p, w, x, strict=True))
    return u @ np.linalg.inv(v) @ u


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["overconfident", "shifted", "tied", "reversed"])
def test_slope_against_a_general_optimiser(weighted, kind):
    rng = np.random.default_rng(len(kind))
    p = rng.uniform(0.02, 0.98, 300)
    p = np.round(p, 1).clip(0.1, 0.9) if kind == "tied" else p
    truth = {
        "overconfident": lambda: expit(0.5 * logit(p)),
        "shifted": lambda: expit(logit(p) + 1),
        "tied": lambda: p,
        "reversed": lambda: 1 - p,
    }[kind]()
    y = (rng.random(300) < truth).astype(float)
    w = rng.exponential(1, 300) + 0.1 if weighted else None
    result = calibration_slope_test(y, p, sample_weight=w)
    fit, errors, statistic = slow_slope(y, p, np.ones(300) if w is None else w)
    assert (result.joint_intercept, result.slope) == pytest.approx(tuple(fit), abs=1e-6)
    found = result.joint_intercept_error, result.slope_error
    assert found == pytest.approx(tuple(errors), rel=1e-5)
    assert result.statistic == pytest.approx(statistic, rel=1e-11)
    assert result.p_value == pytest.approx(math.exp(-statistic / 2), rel=1e-8)
    assert result.n == 300


def test_slope_of_one_dimensional_case_by_hand():
    # Two scores: the fit passes through both means, 1/4 at .25 and 3/4 at .75.
    y, p = [1, 0, 0, 0, 1, 1, 1, 0], [0.25] * 4 + [0.75] * 4
    result = calibration_slope_test(y, p)
    assert result.slope == pytest.approx(1, abs=1e-12)
    assert (result.intercept, result.joint_intercept) == pytest.approx((0, 0), abs=1e-12)
    assert result.p_value == pytest.approx(1)
    # Means 1/2 and 3/4: logits 0 and log 3 at -log 3 and log 3.
    result = calibration_slope_test([1, 1, 0, 0, 1, 1, 1, 0], p)
    assert result.slope == pytest.approx(0.5, abs=1e-12)
    assert result.joint_intercept == pytest.approx(math.log(3) / 2, abs=1e-12)
    # At slope 1, with t = exp(a): 4 t / (t + 3) + 12 t / (3 t + 1) = 5 events.
    t = 5 / 9 + math.sqrt(25 / 81 + 5 / 3)
    assert result.intercept == pytest.approx(math.log(t), abs=1e-12)
    # U = (1, -log 3), V = 8 * .1875 * diag(1, log(3)^2).
    assert result.statistic == pytest.approx(2 / 1.5, rel=1e-12)
    assert result.p_value == pytest.approx(math.exp(-2 / 3), rel=1e-12)


def test_slope_is_indifferent_to_the_scale_of_weights():
    y, p = load_flares("NOAA")
    w = np.random.default_rng(0).random(len(y)) + 0.5
    a = calibration_slope_test(y, p, sample_weight=w)
    b = calibration_slope_test(y, p, sample_weight=1e6 * w)
    assert (a.slope, a.slope_error, a.p_value) == pytest.approx((b.slope, b.slope_error, b.p_value))


def test_slope_p_values_are_never_zero():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 200_000)
    result = calibration_slope_test(rng.random(200_000) < 1 - p, p)
    assert result.p_value == 2.2250738585072014e-308


def test_slope_far_from_one_is_found():
    # Newton's first step overshoots from slope 1 by far.
    rng = np.random.default_rng(1)
    p = rng.uniform(1e-9, 1e-7, 2000)
    y = rng.random(2000) < 0.5
    result = calibration_slope_test(y, p)
    assert abs(result.slope) < 1
    assert result.p_value < 1e-3


@pytest.mark.parametrize(
    ("y", "p", "sentence"),
    [
        ([0, 1, 1], [0.0, 1.0, 1.0], "y_prob must hold predictions strictly between 0 and 1"),
        ([0, 1, 0], [0.0, 0.4, 0.0], "two different values between 0 and 1.*; got only 0.4"),
        ([0, 1, 1], [0.5, 0.5, 0.5], "y_prob must have two different values.*; got only 0.5"),
        ([0.5, 1.0, 0.0], [0.1, 0.2, 0.3], "y_true must be 0 or 1 for a test.*soft labels"),
    ],
)
def test_slope_refuses(y, p, sentence):
    with pytest.raises(CalibrantError, match=sentence):
        calibration_slope_test(y, p)


def assert_tested_without_a_fit(y, p, w=None):
    result = calibration_slope_test(y, p, sample_weight=w)
    fit = (result.joint_intercept, result.joint_intercept_error, result.slope, result.slope_error)
    assert np.isnan(fit).all()
    y, p, w = np.array(y), np.array(p), np.ones(len(y)) if w is None else np.array(w)
    statistic = slow_statistic(y, p, w, np.column_stack([np.ones(len(p)), logit(p)]))
    assert result.statistic == pytest.approx(statistic, rel=1e-9)
    assert result.p_value == pytest.approx(math.exp(-statistic / 2), rel=1e-8)


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([1, 1], [0.25, 0.5]),
        ([0, 0], [0.25, 0.5]),
        ([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4]),
        ([1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4]),
        ([0, 0, 1, 1], [0.1, 0.2, 0.2, 0.4]),
    ],
)
def test_outcomes_that_do_not_overlap_are_tested_without_a_fit(y, p):
    assert_tested_without_a_fit(y, p)


def test_fits_that_fail_leave_the_test(monkeypatch):
    y, p = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]
    assert_tested_without_a_fit(y, p, [1e60, 1, 1, 1e60])
    assert calibration_slope_test(y, p).slope_error > 0
    monkeypatch.setattr(regression, "_MAX_ITERATIONS", 1)
    assert_tested_without_a_fit(y, p)


@pytest.mark.parametrize("low", [1e-100, 0.01, 0.3, 0.5, 1 - 1e-9])
def test_predictions_that_hardly_differ(low):
    # Two neighbouring doubles: nothing is known of the slope, and the result says so.
    high = np.nextafter(low, 1)
    result = calibration_slope_test(np.tile([0, 1, 1, 0, 0], 20), np.repeat([low, high], 50))
    # 20 events of 50 at either: an information of 100 * 0.4 * 0.6 per squared unit of logits,
    # which are (high - low) / (low (1 - low)) apart.
    expected = low * (1 - low) / (high - low) * 2 / math.sqrt(24)
    assert result.slope_error == pytest.approx(expected, rel=1e-6)
    assert result.slope == pytest.approx(0, abs=1e-6 * expected)


def test_neighbouring_predictions_count_as_one_beside_distant_ones():
    neighbours, y = [np.nextafter(0.2, 0), 0.2, np.nextafter(0.2, 1)], [1, 0, 0, 1] * 20 + [0] * 4
    apart, as_one = (
        calibration_slope_test(y, np.tile([*scores, 0.9], 21)) for scores in (neighbours, [0.2] * 3)
    )
    assert apart.slope == pytest.approx(as_one.slope, rel=1e-9)
    assert apart.p_value == pytest.approx(as_one.p_value, rel=1e-9)
    # The odds of the smallest double are 1e323 times smaller.
    assert 0 < calibration_slope_test([0, 1, 0, 0], [*neighbours, 5e-324]).p_value <= 1


def test_spiegelhalter_refuses_soft_labels():
    with pytest.raises(CalibrantError, match=r"y_true must be 0 or 1 for a test.*soft labels"):
        spiegelhalter_test([0.5, 1.0], [0.1, 0.2])


def test_repr():
    y, p = load_flares("NOAA")
    assert repr(calibration_slope_test(y, p)) == (
        "SlopeTestResult(slope 1.155 +- 0.1, intercept at slope 1 -0.1256 +- 0.1, "
        "p = 0.15, n = 731)"
    )
