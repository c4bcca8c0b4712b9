"""Logistic regression by maximum weighted likelihood.

The model is logit P(y = 1) = offset + intercept + x @ slopes. It is fitted by Newton's method with
step halving to columns of mean 0 and variance 1, where coefficients hardly depend on each other;
each iteration takes one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant._base import FloatArray

_MAX_ITERATIONS = 100
# Newton's method doubles the number of correct digits: after a step whose mean square, weighted by
# the information, is as small as this the fit is exact up to rounding.
_SMALL_SQUARE = 1e-16
# Relative error of a log-likelihood that rounding may cause.
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression, with the covariance of (intercept, *slopes).

    The inverse of their information is the A^-1 of the covariance A^-1 B A^-1.
    """

    intercept: float
    slopes: FloatArray
    covariance: FloatArray
    inverse_information: FloatArray
    log_likelihood: float


def fit_logistic(
    x: FloatArray,
    true: FloatArray,
    weight: FloatArray,
    *,
    weight_squared: FloatArray | None = None,
    offset: FloatArray | float = 0.0,
    ridge: float | FloatArray = 0.0,
) -> LogisticFit:
    """Fit logit P(y = 1) = offset + intercept + x @ slopes to pooled rows.

    `true`, `weight` and `weight_squared` are the sums of w y, w and w^2 (w by default) over the
    rows pooled at each x, of which no column is constant. The penalty is ridge / 2, one for all or
    one per column, times the weight times the squared slopes of the standardised columns: it
    selects one of the equally good fits of collinear columns.

    The covariance is A^-1 B A^-1 with A = sum w m (1 - m) z z', B = sum w^2 m (1 - m) z z',
    z = (1, x) and m the fitted probabilities; the log-likelihood is less the penalty. Where the
    likelihood has no maximum, or none that can be found, as where outcomes are separated by x,
    numpy.linalg.LinAlgError is raised.
    """
    u, centre, scale = standardize(x, weight)
    design = np.column_stack((np.ones(len(u)), u))
    penalty = np.append(0.0, np.broadcast_to(ridge * weight.sum(), u.shape[1]))
    likelihood = _Likelihood(design, true, weight, offset, penalty)
    coefficients = likelihood.maximum()
    fitted = likelihood.probability(coefficients)
    squares = weight if weight_squared is None else weight_squared
    # Back to the units of x, whose slopes are those of u over the scale.
    back = np.diag(np.append(1.0, 1 / scale))
    back[0, 1:] = -centre / scale
    spread = back @ np.linalg.inv(likelihood.information(fitted))
    noise = _moments(design, squares * fitted * (1 - fitted))
    intercept, *slopes = (back @ coefficients).tolist()
    return LogisticFit(
        intercept=intercept,
        slopes=np.array(slopes),
        covariance=spread @ noise @ spread.T,
        inverse_information=spread @ back.T,
        log_likelihood=likelihood.log(coefficients),
    )


def standardize(x: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (x - centre) / scale, of weighted mean 0 and variance 1, with centre and scale."""
    centre = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - centre) ** 2, axis=0, weights=weight))
    return (x - centre) / scale, centre, scale


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The penalised likelihood of pooled rows as a function of the coefficients of a design."""

    design: FloatArray
    true: FloatArray
    weight: FloatArray
    offset: FloatArray | float
    penalty: FloatArray

    def log(self, coefficients: FloatArray) -> float:
        """Return the log-likelihood less the penalty."""
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is not finite
            logit = self.offset + self.design @ coefficients
            loss = self.weight @ np.logaddexp(0, logit) + self.penalty @ coefficients**2 / 2
            return float(self.true @ logit - loss)

    def probability(self, coefficients: FloatArray) -> FloatArray:
        """Return the fitted probabilities."""
        from scipy.special import expit

        return np.asarray(expit(self.offset + self.design @ coefficients))

    def information(self, fitted: FloatArray) -> FloatArray:
        """Return the negative second derivative."""
        return _moments(self.design, self.weight * fitted * (1 - fitted)) + np.diag(self.penalty)

    def maximum(self) -> FloatArray:
        """Return the coefficients of the maximum, by Newton's method with step halving."""
        coefficients = np.zeros(self.design.shape[1])
        reached = self.log(coefficients)
        for _ in range(_MAX_ITERATIONS):
            fitted = self.probability(coefficients)
            excess = self.true - self.weight * fitted
            gradient = excess @ self.design - self.penalty * coefficients
            information = self.information(fitted)
            step = np.linalg.solve(information, gradient)
            if not np.isfinite(step).all():
                break
            if step @ gradient <= _SMALL_SQUARE * np.trace(information):
                return coefficients + step
            # The function is concave: some fraction of the step raises it, up to rounding.
            lowest = reached - _ROUNDING * abs(reached)
            while not (reached := self.log(coefficients + step)) >= lowest:
                step = step / 2
                if not step.any():
                    raise np.linalg.LinAlgError("the likelihood is not finite")
            coefficients = coefficients + step
        raise np.linalg.LinAlgError("the likelihood has no maximum within reach")


def _moments(design: FloatArray, weight: FloatArray) -> FloatArray:
    return np.asarray((design.T * weight) @ design)
