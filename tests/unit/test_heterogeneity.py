"""Random effects over centres: by hand, against direct maximisation, edges, refusals."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import norm, t

from calibrant import CalibrantError, calibration_slope_test, clinical_summary, heterogeneity
from calibrant.inference.heterogeneity import random_effects


def draw(k=12, spread=0.4, rows=300, seed=0):
    rng = np.random.default_rng(seed)
    centre = np.repeat(np.arange(k), rows)
    a = rng.normal(0.2, spread, k)
    x = rng.normal(-1, 1.4, len(centre))
    return (rng.random(len(centre)) < expit(a[centre] + x)).astype(int), expit(x), centre


def test_equal_variances_by_hand():
    # tau^2 is the variance of the effects less the sampling variance.
    y = np.array([-1.0, 0.0, 1.0, 2.0])
    found = random_effects(y, np.full(4, 0.5), prediction="t")
    assert found.value == pytest.approx(0.5)
    assert found.tau**2 == pytest.approx(y.var(ddof=1) - 0.5)
    error = math.sqrt(y.var(ddof=1) / 4)
    assert found.standard_error == pytest.approx(error)
    assert found.high - found.low == pytest.approx(2 * t.ppf(0.975, 3) * error)
    reach = t.ppf(0.975, 2) * math.sqrt(found.tau**2 + y.var(ddof=1) / 4)
    assert found.prediction_high == pytest.approx(0.5 + reach)


def test_effects_that_vary_less_than_their_noise_have_no_tau():
    found = random_effects(np.array([0.1, 0.0, -0.1]), np.array([1.0, 2.0, 1.5]))
    assert found.tau == 0
    weight = 1 / np.array([1.0, 2.0, 1.5])
    assert found.value == pytest.approx(weight @ [0.1, 0, -0.1] / weight.sum())


@pytest.mark.parametrize("seed", range(8))
def test_restricted_likelihood_is_maximal(seed):
    rng = np.random.default_rng(seed)
    v = rng.exponential(1, 9) + 0.05
    y = rng.normal(0, np.sqrt(v + rng.choice([0.1, 1, 10])))

    def loss(tau2):
        w = 1 / (v + tau2)
        return -np.log(w).sum() + np.log(w.sum()) + w @ (y - w @ y / w.sum()) ** 2

    tau2 = random_effects(y, v).tau ** 2
    best = minimize_scalar(loss, bounds=(0, 100), method="bounded", options={"xatol": 1e-10})
    assert loss(tau2) <= min(best.fun, loss(0.0)) + 1e-9


def test_integrated_prediction_by_direct_integration():
    y, v = np.array([-0.4, 0.3, 0.1, 0.6, -0.1]), np.array([0.1, 0.05, 0.2, 0.1, 0.04])
    found = random_effects(y, v)

    def parts(tau):
        w = 1 / (v + tau**2)
        mean = w @ y / w.sum()
        likelihood = np.prod(np.sqrt(w)) / np.sqrt(w.sum()) * np.exp(-(w @ (y - mean) ** 2) / 2)
        return likelihood, mean, math.sqrt(tau**2 + 1 / w.sum())

    def below(x):
        def density(tau):
            likelihood, mean, sd = parts(tau)
            return likelihood * norm.cdf((x - mean) / sd)

        total = quad(lambda tau: parts(tau)[0], 0, np.inf)[0]
        return quad(density, 0, np.inf)[0] / total

    assert below(found.prediction_low) == pytest.approx(0.025, abs=1e-5)
    assert below(found.prediction_high) == pytest.approx(0.975, abs=1e-5)


def test_prediction_intervals_agree_where_centres_are_many_and_differ_much():
    y = np.random.default_rng(0).normal(0, 1, 400)
    a, b = (random_effects(y, np.full(400, 0.01), prediction=how) for how in ("integrated", "t"))
    assert a.prediction_high == pytest.approx(b.prediction_high, rel=0.01)
    assert a.low == b.low


def test_two_centres_have_no_prediction_interval():
    found = random_effects(np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    assert math.isnan(found.prediction_low)
    assert math.isfinite(found.low)


def test_centres_have_the_values_of_their_rows():
    y, p, centre = draw()
    found = heterogeneity(y, p, centre)
    own = clinical_summary(y[centre == 3], p[centre == 3])
    row = found.centres[3]
    assert (row.centre, row.n, row.n_events) == (3, 300, int(y[centre == 3].sum()))
    fit = calibration_slope_test(y[centre == 3], p[centre == 3])
    assert row.o_e.high == pytest.approx(own.o_e.high)
    for name in ("intercept", "slope"):
        assert getattr(row, name).value == pytest.approx(getattr(own, name).value)
        assert getattr(row, name).high == pytest.approx(getattr(fit, f"{name}_interval")[1])


def test_pooled_o_e_is_pooled_on_the_log_scale():
    y, p, centre = draw()
    found = heterogeneity(y, p, centre)
    z = 2 * 1.959963984540054
    effects = [(math.log(r.o_e.value), math.log(r.o_e.high / r.o_e.low) / z) for r in found.centres]
    effect, error = np.array(effects).T
    expected = random_effects(effect, error**2)
    assert found.o_e.value == pytest.approx(math.exp(expected.value))
    assert found.o_e.tau == pytest.approx(expected.tau)
    assert found.o_e.prediction_high == pytest.approx(math.exp(expected.prediction_high))


def test_order_of_rows_and_names_of_centres_do_not_matter():
    y, p, centre = draw(k=4)
    order = np.random.default_rng(1).permutation(len(y))
    names = np.array(["north", "south", "east", "west"])[centre]
    a, b = heterogeneity(y, p, centre), heterogeneity(y[order], p[order], names[order])
    assert b.slope.value == pytest.approx(a.slope.value)
    assert [row.centre for row in b.centres] == ["east", "north", "south", "west"]


def test_weights_of_zero_leave_rows_out():
    y, p, centre = draw(k=4)
    w = np.where(np.arange(len(y)) % 2, 1.0, 0.0)
    a = heterogeneity(y, p, centre, sample_weight=w)
    b = heterogeneity(y[w > 0], p[w > 0], centre[w > 0])
    assert a.o_e.value == pytest.approx(b.o_e.value)
    assert a.intercept.tau == pytest.approx(b.intercept.tau)


def test_centres_without_events_or_slope():
    y, p, centre = draw(k=6, rows=60)
    y[centre == 2] = 0
    found = heterogeneity(y, p, centre)
    assert found.centres[2].o_e.value == 0
    assert (found.o_e.n_centres, found.slope.n_centres, found.intercept.n_centres) == (6, 5, 5)
    only = heterogeneity([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])
    assert math.isnan(only.slope.value)
    assert only.slope.n_centres == 0


def test_printed_and_framed():
    y, p, centre = draw(k=5)
    found = heterogeneity(y, p, centre)
    text = repr(found)
    assert text.startswith("Heterogeneity(5 centres)")
    assert "new centre" in text
    frame = found.to_frame()
    assert len(frame) == 5
    assert "slope_high" in frame.columns


def test_refusals():
    y, p, centre = draw(k=3)
    with pytest.raises(CalibrantError, match="at least two centres"):
        heterogeneity(y, p, np.zeros(len(y)))
    with pytest.raises(CalibrantError, match="centre must have one label per row"):
        heterogeneity(y, p, centre[1:])
    with pytest.raises(CalibrantError, match="prediction must be one of"):
        heterogeneity(y, p, centre, prediction="normal")
