"""Two classical tests of calibration: Spiegelhalter's z, and the calibration slope and intercept.

Both look for one kind of departure: over- or under-confident predictions or, for the second, also
predictions that are too high or too low throughout. :func:`calibrant.cumulative_test` looks for any
kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, Result
from calibrant.data.classes import RowOptions, one_problem
from calibrant.data.problem import Pooled, Problem
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.formatting import plain_p_value
from calibrant.inference.cumulative_tests import SMALLEST, TestResult
from calibrant.numerics.logistic import fit_logistic, standardize


@dataclass(frozen=True, repr=False)
class SlopeTestResult(Result):
    """The calibration intercept and slope, logit P(y = 1) = intercept + slope logit(p), tested.

    Attributes
    ----------
    intercept, slope
        The fitted coefficients, 0 and 1 for calibrated predictions; nan where the outcomes are
        separated and there is no fit.
    intercept_error, slope_error
        Their standard errors.
    statistic
        Rao's score statistic at intercept 0 and slope 1, which needs no fit.
    p_value
        Probability of a larger statistic under perfect calibration: chi-squared with 2 degrees of
        freedom, never 0.
    n
        The number of rows tested.
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    statistic: float
    p_value: float
    n: int

    def _printed(self) -> list[str]:
        sign, number = plain_p_value(self.p_value)
        slope = f"slope {self.slope:.4g} +- {self.slope_error:.2g}"
        intercept = f"intercept {self.intercept:.4g} +- {self.intercept_error:.2g}"
        return [f"SlopeTestResult({slope}, {intercept}, p {sign} {number}, n = {self.n})"]


@overload
def spiegelhalter_test(y_true: Sketch, **options: Unpack[RowOptions]) -> TestResult: ...
@overload
def spiegelhalter_test(
    y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[RowOptions]
) -> TestResult: ...
def spiegelhalter_test(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> TestResult:
    """Test perfect calibration by Spiegelhalter's z: the Brier score against its expectation.

    z = sum w_i (y_i - p_i)(1 - 2 p_i) / sqrt(sum w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)), nearly
    standard normal for calibrated predictions, unless events are very few. The numerator over W is
    the Brier score minus its expected value.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no or soft labels in [0, 1]; two labels with `pos_label`; or
        classes. A sketch replaces both arrays.

        Soft labels, whose noise is unknown, are refused.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of a dataframe's columns, where they
        are those of the classes, or else 0 to C - 1.
    pos_label : label, optional
        The label whose probability `y_prob` is, where the two labels are not 0 and 1, no and yes,
        or false and true.

    Returns
    -------
    TestResult
        `statistic` is the excess of the Brier score, `normalized` is z: positive where predictions
        are over-confident, negative where they are under-confident. The P-value is two-sided.

    See Also
    --------
    calibration_slope_test : Slope and intercept, which tell in which direction predictions err.
    cumulative_test : Has power against any kind of miscalibration.

    Notes
    -----
    The test has no power against errors that leave the Brier score as expected, whatever their
    size. It is undefined where every prediction is 0, 1/2 or 1.

    For calibrated predictions a nominal 5% was 4 to 5% where at least 2 events and 2 non-events
    were expected, and anything from 2 to 8% with fewer: 7 to 8% for predictions from Beta(1, 99) at
    n = 50, half an event.

    References
    ----------
    Spiegelhalter, "Probabilistic prediction in patient management and clinical trials" (1986).

    Examples
    --------
    >>> spiegelhalter_test([0, 1, 1, 0, 1], [0.9, 0.8, 0.9, 0.1, 0.7])
    TestResult(Brier score above expected: 0.064 = 0.623 sigma, p = 0.53, n = 5, asymptotic)
    """
    problem = _hard(one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label))
    pooled = problem.pooled
    factor = 1 - 2 * pooled.score
    noise = pooled.weight_squared * factor**2 * pooled.score * (1 - pooled.score)
    total = pooled.weight.sum()
    excess, sigma = float(pooled.residual @ factor / total), float(np.sqrt(noise.sum()) / total)
    if sigma == 0:
        raise CalibrantError(
            "must hold a prediction other than 0, 1/2 and 1 for Spiegelhalter's z: there is no "
            "noise in the Brier score",
            argument="y_prob",
        )
    z = excess / sigma
    return TestResult(
        statistic=excess,
        normalized=z,
        p_value=max(math.erfc(abs(z) / math.sqrt(2)), SMALLEST),
        sigma=sigma,
        n=problem.n,
        test="Brier score above expected",
        method="asymptotic",
    )


def calibration_slope_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> SlopeTestResult:
    """Test calibration slope 1 and intercept 0, those of calibrated predictions.

    In logit P(y = 1) = a + b logit(p), tests (a, b) = (0, 1) by the score statistic U' V^-1 U, with
    U = sum w (y - p) x, V = sum w^2 p (1 - p) x x' and x = (1, logit p): chi-squared with 2 degrees
    of freedom for calibrated predictions. Beside it, a and b as fitted by maximum (weighted)
    likelihood: predictions are over-confident where b < 1, under-confident where b > 1; too low at
    p = 1/2 where a > 0, too high where a < 0.

    Parameters
    ----------
    y_true : array_like
        Outcomes: 0/1, bool or yes/no; two labels with `pos_label`; or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).

        Predictions of 0 and 1, whose logit is infinite, are refused; so are predictions that are
        all the same.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of a dataframe's columns, where they
        are those of the classes, or else 0 to C - 1.
    pos_label : label, optional
        The label whose probability `y_prob` is, where the two labels are not 0 and 1, no and yes,
        or false and true.

    Returns
    -------
    SlopeTestResult
        The joint P-value; slope, intercept and their standard errors, nan where there is no fit.

    See Also
    --------
    spiegelhalter_test : The Brier score against its expectation.
    cumulative_test : Has power against any kind of miscalibration.

    Notes
    -----
    The test needs no fit. The fit exists only where the predictions of the two outcomes overlap:
    otherwise the slope would be infinite, and the coefficients are nan beside a sound P-value.

    For calibrated predictions a nominal 5% was 4.8 to 5.3% where at least 5 events and 5 non-events
    were expected, 6% with 2 of the rarer kind and up to 9% with fewer. The test allows for weights
    that are not counts, where a likelihood ratio would not.

    The covariance of the coefficients is A^-1 B A^-1 with A = sum w m (1 - m) x x',
    B = sum w^2 m (1 - m) x x' and m the fitted probabilities: the inverse information where rows
    count once.

    References
    ----------
    Cox, "Two further applications of a model for binary regression" (1958).
    Rao, "Large sample tests of statistical hypotheses concerning several parameters with
    applications to problems of estimation" (1948).

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> y_true, y_prob = load_flares("NOAA")
    >>> calibration_slope_test(y_true, y_prob)
    SlopeTestResult(slope 1.155 +- 0.1, intercept -0.02635 +- 0.12, p = 0.15, n = 731)
    """
    problem = _hard(one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label))
    pooled = problem.rows.pooled
    origin, x = _logits(pooled)
    # U' V^-1 U, in units of x where V is a multiple of the identity.
    noise = pooled.weight_squared * pooled.score * (1 - pooled.score)
    u, _, _ = standardize(x, noise)
    statistic = float((pooled.residual.sum() ** 2 + (pooled.residual @ u) ** 2) / noise.sum())
    intercept, slope, intercept_error, slope_error = _fit(origin, x, pooled)
    return SlopeTestResult(
        intercept=intercept,
        slope=slope,
        intercept_error=intercept_error,
        slope_error=slope_error,
        statistic=statistic,
        # The survival function of chi-squared with 2 degrees of freedom.
        p_value=max(math.exp(-statistic / 2), SMALLEST),
        n=problem.n,
    )


def _hard(problem: Problem) -> Problem:
    """Return the problem, refusing soft labels."""
    if problem.is_soft:
        raise CalibrantError(
            "must be 0 or 1 for a test, as the noise of soft labels is unknown",
            argument="y_true",
            found="soft labels",
        )
    return problem


def _logits(pooled: Pooled) -> tuple[float, FloatArray]:
    """Return the logit of one prediction, and how far those of all of them are from it."""
    ends = (pooled.score == 0) | (pooled.score == 1)
    if ends.any():
        raise CalibrantError(
            "must lie strictly between 0 and 1 for the calibration slope, as logits must be finite",
            argument="y_prob",
            value=pooled.score[ends][0],
            count=int(pooled.rows[ends].sum()),
            hint="use the cumulative test, or change these predictions",
        )
    if len(pooled.score) == 1:
        raise CalibrantError(
            "must have two different values for the calibration slope",
            argument="y_prob",
            value=pooled.score[0],
            found="{value} in every row",
        )
    x = np.log(pooled.score) - np.log1p(-pooled.score)
    middle = len(x) // 2
    near = pooled.score[middle]
    low, high = np.minimum(pooled.score, near), np.maximum(pooled.score, near)
    # Logits of neighbouring predictions differ by less than logarithms are rounded by, so they are
    # compared by their odds ratio; far from each other it may overflow.
    with np.errstate(over="ignore"):
        excess = (high - low) / low / (1 - high)
    apart = np.copysign(np.log1p(excess), pooled.score - near)
    return float(x[middle]), np.where(excess < 1, apart, x - x[middle])


def _fit(origin: float, x: FloatArray, pooled: Pooled) -> tuple[float, float, float, float]:
    """Return intercept, slope and their standard errors for logits origin + x, or nan."""
    ones, zeros = pooled.score[pooled.true > 0], pooled.score[pooled.true < pooled.weight]
    # A finite fit needs of each outcome a prediction below one of the other.
    if not len(ones) or not len(zeros) or ones[0] >= zeros[-1] or zeros[0] >= ones[-1]:
        return (math.nan,) * 4
    squares, offset = pooled.weight_squared, origin + x
    try:
        fit = fit_logistic(
            x[:, None], pooled.true, pooled.weight, weight_squared=squares, offset=offset
        )
    except np.linalg.LinAlgError:
        return (math.nan,) * 4
    # The fit adds a + b x to the logits origin + x; the intercept is that at a logit of 0.
    at_zero = np.array([[1.0, -origin], [0.0, 1.0]])
    intercept, slope = at_zero @ [fit.intercept, fit.slopes[0]] + [0.0, 1.0]
    errors = np.sqrt(np.diag(at_zero @ fit.covariance @ at_zero.T))
    return float(intercept), float(slope), float(errors[0]), float(errors[1])
