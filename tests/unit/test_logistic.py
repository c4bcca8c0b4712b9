"""Logistic regression: against a general optimiser, and where there is no maximum."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.numerics.regression import fit_logistic

RNG = np.random.default_rng(0)
X = RNG.normal([1.0, -50.0], [2.0, 0.1], (300, 2))
WEIGHT = RNG.uniform(0.5, 3.0, 300)
OFFSET = RNG.normal(size=300)
Y = (RNG.random(300) < expit(OFFSET + 0.3 * X[:, 0] + X[:, 1] + 49)).astype(float)


def log_likelihood(intercept, slopes, offset):
    z = offset + intercept + X @ slopes
    return float(WEIGHT @ (Y * z - np.logaddexp(0, z)))


@pytest.mark.parametrize("offset", [0.0, OFFSET], ids=["none", "offset"])
def test_against_a_general_optimiser(offset):
    fit = fit_logistic(X, WEIGHT * Y, WEIGHT, offset=offset)
    centred = X - [1.0, -50.0]
    slow = minimize(
        lambda b: -log_likelihood(b[0] - b[1:] @ [1.0, -50.0], b[1:], offset),
        np.zeros(3),
        jac=lambda b: (
            -(WEIGHT * (Y - expit(offset + b[0] + centred @ b[1:])))
            @ np.column_stack((np.ones(300), centred))
        ),
        options={"gtol": 1e-8},
    )
    assert fit.slopes == pytest.approx(slow.x[1:], abs=1e-6)
    assert fit.intercept == pytest.approx(slow.x[0] - slow.x[1:] @ [1.0, -50.0], abs=1e-4)
    assert fit.log_likelihood == pytest.approx(-slow.fun, rel=1e-12)


def test_the_covariance_is_the_sandwich():
    fit = fit_logistic(X, WEIGHT * Y, WEIGHT, weight_squared=WEIGHT**2, offset=OFFSET)
    z = np.column_stack((np.ones(300), X))
    m = expit(OFFSET + fit.intercept + X @ fit.slopes)
    bread = np.linalg.inv((z.T * (WEIGHT * m * (1 - m))) @ z)
    expected = bread @ ((z.T * (WEIGHT**2 * m * (1 - m))) @ z) @ bread
    assert fit.covariance == pytest.approx(expected, rel=1e-6)
    counts = fit_logistic(X, WEIGHT * Y, WEIGHT, offset=OFFSET)
    assert counts.covariance == pytest.approx(bread, rel=1e-6)


def test_separated_outcomes_have_no_fit_without_a_ridge():
    x, y, w = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 0.0, 1.0]), np.ones(3)
    with pytest.raises(np.linalg.LinAlgError):
        fit_logistic(x, y, w)
    weak, strong = (fit_logistic(x, y, w, ridge=ridge).slopes[0] for ridge in (1e-3, 1.0))
    assert 0 < strong < weak < np.inf


def test_a_ridge_chooses_among_collinear_columns():
    x, y, w = np.array([[0.0, 0.0], [1.0, 3.0]]), np.array([1.0, 3.0]), np.full(2, 4.0)
    fit = fit_logistic(x, y, w, ridge=1e-8)
    # Standardised, both columns are the same and count the same.
    assert fit.slopes[0] == pytest.approx(3 * fit.slopes[1])
    assert expit(fit.intercept + x @ fit.slopes) == pytest.approx([0.25, 0.75], abs=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_likelihood_that_is_not_finite_ends():
    with pytest.raises(np.linalg.LinAlgError):
        fit_logistic(X, WEIGHT * Y, WEIGHT, offset=np.where(np.arange(300) == 0, np.inf, 0.0))
