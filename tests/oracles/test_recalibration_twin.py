"""Calibrators against their slow twins and against scikit-learn's own."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as cb
from calibrant import recalibration as rc
from tests.tolerances import ROUNDING, nearly
from tests.twins import recalibration as twin


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.5, 1.0, n)
    y = (rng.random(n) < p**2).astype(float)
    return p, y


@pytest.mark.parametrize("weighted", [False, True])
def test_smooth_is_the_kernel_regression_at_smece(weighted):
    p, y = rows()
    w = np.random.default_rng(1).random(len(p)) if weighted else None
    fitted = rc.SmoothCalibrator().fit(p, y, sample_weight=w)
    s = cb.smooth_ece(y, p, sample_weight=w)
    knots = fitted.map_.x
    assert np.diff(knots).max() <= s / 16
    expected = twin.kernel_regression(p, y, w, s, knots)
    assert fitted.predict(knots) == pytest.approx(expected, abs=1e-8)
    # Between the knots it is straight, and not far from the curve.
    between = (knots[1:] + knots[:-1]) / 2
    expected = twin.kernel_regression(p, y, w, s, between)
    assert fitted.predict(between) == pytest.approx(expected, abs=1e-3)


def test_density_is_bayes_rule_at_silverman():
    p, y = rows()
    iqr = np.subtract(*np.quantile(p, [0.75, 0.25], method="hazen"))
    h = 0.9 * min(p.std(ddof=1), iqr / 1.34) * len(p) ** -0.2
    fitted = rc.DensityCalibrator().fit(p, y)
    t = fitted.map_.x
    one, rest = twin.kernel_regression, y == 1
    # f(t | y = 1) P(y = 1) / f(t), each density by itself.
    kernel = twin.reflected_gaussian(t[:, None], p[None, :], h)
    bayes = kernel[:, rest].mean(axis=1) * rest.mean() / kernel.mean(axis=1)
    inside = np.clip(bayes, t / 61, 1 - (1 - t) / 61)
    assert fitted.predict(t) == pytest.approx(inside, abs=1e-8)
    assert one(p, y, None, h, t) == pytest.approx(bayes, abs=1e-12)


def test_monotone_is_the_nearest_rising_curve():
    p, y = rows(40, seed=5)
    y = 1 - y  # falls
    plain = rc.SmoothCalibrator(bandwidth=1.0).fit(p, y).map_
    rising = rc.SmoothCalibrator(bandwidth=1.0, monotone=True).fit(p, y).map_
    density = twin.reflected_gaussian(plain.x[:, None], p[None, :], 1.0).mean(axis=1)
    assert rising.y == pytest.approx(twin.isotonic(plain.y, density), abs=1e-8)


@pytest.mark.parametrize("one_slope", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_logistic_maps_are_the_likeliest(one_slope, seed):
    p, y = rows(80, seed)
    if seed == 3:
        y = 1 - y  # the likeliest slopes would be negative
    kind = rc.PlattCalibrator if one_slope else rc.BetaCalibrator
    fitted = kind().fit(p, y)
    a, b, c = twin.beta(p, y, one_slope)
    assert (fitted.map_.a, fitted.map_.b, fitted.map_.c) == pytest.approx((a, b, c), abs=2e-3)
    q = 1 / (1 + np.exp(-(a * np.log(p) - b * np.log(1 - p) + c)))
    assert fitted.predict(p) == pytest.approx(q, abs=2e-4)


def test_platt_is_nearly_scikit_learns_logistic_regression():
    p, y = rows(5000)
    u = np.log(p / (1 - p))[:, None]
    model = LogisticRegression(C=1e9).fit(u, y)
    recalibrated = rc.PlattCalibrator().fit(p, y).predict(p)
    assert recalibrated == pytest.approx(model.predict_proba(u)[:, 1], abs=1e-3)


def test_isotonic_is_scikit_learns_and_the_formula():
    p, y = rows(50)
    p = np.round(p, 1)
    fitted = rc.IsotonicCalibrator(pseudo_count=0).fit(p, y)
    t = np.linspace(0, 1, 201)
    model = IsotonicRegression(out_of_bounds="clip").fit(p, y)
    assert fitted.predict(t) == pytest.approx(model.predict(t), abs=ROUNDING)
    scores, where, count = np.unique(p, return_inverse=True, return_counts=True)
    means = np.bincount(where, y) / count
    assert fitted.predict(scores) == pytest.approx(twin.isotonic(means, count), abs=ROUNDING)


def test_histogram_is_the_mean_of_the_bin():
    p, y = rows(12)
    assert len(np.unique(np.floor(10 * p))) < 10  # some bins are empty
    fitted = rc.HistogramCalibrator(pseudo_count=0, n_bins=10, strategy="uniform").fit(p, y)
    for q in np.arange(21) / 20:
        assert fitted.predict([q])[0] == nearly(twin.binned_means(p, y, np.arange(11) / 10, q))


def test_scaling_binning_averages_platt_over_the_bins():
    p, y = rows(90)
    fitted = rc.ScalingBinningCalibrator(n_bins=6).fit(p, y)
    platt = rc.PlattCalibrator().fit(p, y).predict(np.sort(p))
    # 90 distinct scores: 15 a bin.
    assert fitted.map_.values == pytest.approx(platt.reshape(6, 15).mean(axis=1))
    assert fitted.predict(np.sort(p)) == pytest.approx(np.repeat(fitted.map_.values, 15))


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_temperature_is_the_likeliest(n_classes):
    rng = np.random.default_rng(n_classes)
    logits = rng.normal(size=(300, n_classes))
    label = np.array([rng.choice(n_classes, p=np.exp(u) / np.exp(u).sum()) for u in logits])
    prob = np.exp(2 * logits)
    prob /= prob.sum(axis=1, keepdims=True)
    fitted = rc.TemperatureCalibrator().fit(prob, label)
    t = twin.temperature(prob, label)
    found = fitted.map_.temperature if n_classes > 2 else 1 / fitted.map_.a
    assert found == pytest.approx(t, rel=1e-5)
    power = prob ** (1 / t)
    expected = power / power.sum(axis=1, keepdims=True)
    assert fitted.predict(prob) == pytest.approx(expected, abs=1e-5)


def test_piecewise_linear_maps_piece_by_piece():
    rng = np.random.default_rng(2)
    x, y = np.sort(rng.random(9)), rng.random(9)
    map_ = rc.PiecewiseLinearMap(x, y)
    t = np.concatenate((x, rng.random(50), [0.0, 1.0]))
    expected = [twin.piecewise_linear(x, y, one) for one in t]
    assert map_.predict(t) == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("scenario", ["overconfident", "softmax", "tenths", "rare"])
def test_noise_moves_by_twice_smece_at_most(scenario):
    y, p = cb.datasets.simulate(scenario, 150, rng=4)
    fitted = rc.NoisyCalibrator().fit(p, y)
    smece, map_ = cb.smooth_ece(y, p), fitted.map_
    assert map_.scale == pytest.approx(smece, rel=1e-6)
    outcome = twin.kernel_regression(p, y, None, smece, map_.x)
    assert map_.y == pytest.approx(outcome, abs=1e-7)
    assert twin.mean_movement(p, None, map_.scale, map_.outcome) <= 2 * smece


@pytest.mark.parametrize("scenario", ["overconfident", "softmax", "tenths"])
def test_noise_makes_predictions_calibrated(scenario):
    # New noise for each of many copies of the rows represents its distribution.
    y, p = (np.tile(v, 400) for v in cb.datasets.simulate(scenario, 150, rng=4))
    recalibrated = rc.NoisyCalibrator(rng=7).fit(p[:150], y[:150]).predict(p)
    assert cb.smooth_ece(y, p) > 0.04
    assert cb.smooth_ece(y, recalibrated) < 0.009  # calibrated rows have 0.3 n^(-1/3) = 0.0077
    assert abs(recalibrated - p).mean() <= 2 * cb.smooth_ece(y[:150], p[:150])


@pytest.mark.parametrize("s", [0.05, 0.3])
def test_residuals_are_smoothed(s):
    p, y = rows()
    fitted = rc.ResidualCalibrator(bandwidth=s).fit(p, y)
    t = np.linspace(0, 1, 41)
    expected = np.clip(twin.residual_map(p, y, s, t), t / 61, 1 - (1 - t) / 61)
    assert fitted.predict(t) == pytest.approx(expected, abs=1e-4)  # straight between knots


def test_the_bandwidth_of_residuals_is_the_best_for_rows_left_out():
    p, y = rows(80, seed=3)
    scales = (0.5, 0.3, 0.2, 0.12, 0.08, 0.05, 0.03, 0.02, 0.012)
    errors = []
    for s in scales:
        others = [np.arange(80) != i for i in range(80)]
        left_out = [twin.residual_map(p[o], y[o], s, p[~o])[0] for o in others]
        errors.append(np.sum((y - left_out) ** 2))
    best = rc.ResidualCalibrator(bandwidth=scales[int(np.argmin(errors))]).fit(p, y)
    t = np.linspace(0, 1, 11)
    assert rc.ResidualCalibrator().fit(p, y).predict(t) == pytest.approx(best.predict(t), abs=1e-6)
