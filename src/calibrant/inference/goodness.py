"""Two classical tests of calibration: Spiegelhalter's z and the calibration slope and intercept.

Both look for one kind of departure only: predictions too extreme or too timid, or, for the second,
also too high or too low throughout. :func:`calibrant.cumulative_test` looks for any kind.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.errors import CalibrantError
from calibrant.multiclass import one_problem
from calibrant.problem import Atoms, Problem
from calibrant.results import SlopeTestResult, TestResult

__all__ = ["calibration_slope_test", "spiegelhalter_test"]

# A chance that is smaller than any double is still not 0.
_SMALLEST = sys.float_info.min
_MAX_NEWTON_STEPS = 100
# Newton's method doubles the number of right digits: after a step of this size the fit is exact.
_SMALL_STEP = 1e-8
# How much of the log-likelihood its own rounding may hide.
_ROUNDING = 1e-10
_NO_FIT = (
    "the calibration slope could not be fitted: by weight, the predictions of the two outcomes "
    "hardly overlap; more rows are needed"
)


def spiegelhalter_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> TestResult:
    """Test perfect calibration by Spiegelhalter's z: is the Brier score what it should be.

    z = sum w_i (y_i - p_i)(1 - 2 p_i) / sqrt(sum w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)), nearly
    standard normal for calibrated predictions. The numerator over W is the Brier score minus its
    expected value.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`, without soft labels.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        "confidence" or a class label; a test is about one binary problem.

    Returns
    -------
    TestResult
        `statistic` is the excess of the Brier score, `normalized` is z: positive where predictions
        are too extreme, negative where they are too timid. The P-value is two-sided.

    Notes
    -----
    The test sees nothing of errors that leave the Brier score as expected, whatever their size.
    It is undefined where every prediction is 0, 1/2 or 1.

    References
    ----------
    Spiegelhalter, "Probabilistic prediction in patient management and clinical trials" (1986).

    Examples
    --------
    >>> spiegelhalter_test([0, 1, 1, 0, 1], [0.9, 0.8, 0.9, 0.1, 0.7])
    TestResult(Brier score above expected: 0.064 = 0.6228 sigma, p = 0.533, n = 5, asymptotic)
    """
    problem = _hard(one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label))
    atoms = problem.atoms
    lean = 1 - 2 * atoms.score
    noise = atoms.weight_squared * lean**2 * atoms.score * (1 - atoms.score)
    total = atoms.weight.sum()
    excess, sigma = float(atoms.residual @ lean / total), float(np.sqrt(noise.sum()) / total)
    if sigma == 0:
        raise CalibrantError(
            "Spiegelhalter's z needs a prediction other than 0, 1/2 and 1; y_prob has none, "
            "so the Brier score is not left to chance"
        )
    z = excess / sigma
    return TestResult(
        statistic=excess,
        normalized=z,
        p_value=max(math.erfc(abs(z) / math.sqrt(2)), _SMALLEST),
        sigma=sigma,
        n=problem.n,
        test="Brier score above expected",
        method="asymptotic",
    )


def calibration_slope_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> SlopeTestResult:
    """Test calibration slope 1 and intercept 0 by logistic recalibration.

    Fits logit P(y = 1) = a + b logit(p) by maximum (weighted) likelihood and tests (a, b) = (0, 1)
    by Wald's statistic d' V^-1 d, d = (a, b - 1). b < 1 says predictions are too extreme, b > 1
    too timid; a > 0 too low at p = 1/2, a < 0 too high.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`, without soft labels; predictions of 0 and 1, whose logit is
        infinite, are refused.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        "confidence" or a class label; a test is about one binary problem.

    Returns
    -------
    SlopeTestResult
        Slope, intercept, their standard errors and the joint P-value.

    Notes
    -----
    V = A^-1 B A^-1 with A = sum w m (1 - m) x x' and B = sum w^2 m (1 - m) x x', x = (1, logit p)
    and m the fitted probabilities: the inverse information where rows count once, and right for
    weights that are not counts, too, where a likelihood ratio would not be. For calibrated
    predictions a nominal 5% was 3 to 5% at n = 50 and 4 to 5% from n = 200 on.

    The fit exists only where the scores of the two outcomes overlap; otherwise the slope would be
    infinite, and the test raises.

    References
    ----------
    Cox, "Two further applications of a model for binary regression" (1958).

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> y_true, y_prob = load_flares("NOAA")
    >>> calibration_slope_test(y_true, y_prob)
    SlopeTestResult(slope 1.155 +- 0.1, intercept -0.02635 +- 0.12, p = 0.15, n = 731)
    """
    problem = _hard(one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label))
    atoms = problem.atoms
    _check_fit_exists(atoms)
    try:
        fit = _Recalibration.of(atoms)
    except np.linalg.LinAlgError:
        raise CalibrantError(_NO_FIT) from None
    intercept, slope = fit.coefficients
    errors = np.sqrt(np.diag(fit.covariance))
    return SlopeTestResult(
        intercept=float(intercept),
        slope=float(slope),
        intercept_error=float(errors[0]),
        slope_error=float(errors[1]),
        statistic=fit.statistic,
        # The survival function of chi-squared with 2 degrees of freedom.
        p_value=max(math.exp(-fit.statistic / 2), _SMALLEST),
        n=problem.n,
    )


@dataclass(frozen=True, eq=False)
class _Recalibration:
    """A fitted logistic recalibration.

    Attributes
    ----------
    coefficients
        Intercept and slope.
    covariance
        Their covariance.
    statistic
        Wald's statistic of (0, 1).
    """

    coefficients: FloatArray
    covariance: FloatArray
    statistic: float

    @classmethod
    def of(cls, atoms: Atoms) -> _Recalibration:
        x = np.log(atoms.score) - np.log1p(-atoms.score)
        # Fitted in standard units of x, where the two coefficients hardly depend on each other.
        centre = float(np.average(x, weights=atoms.weight))
        scale = float(np.sqrt(np.average((x - centre) ** 2, weights=atoms.weight)))
        u = (x - centre) / scale
        null = np.array([centre, scale])
        fitted, information = _fit(u, atoms, null)
        m = _probability(u, fitted)
        inverse = np.linalg.inv(information)
        covariance = inverse @ _moments(u, atoms.weight_squared * m * (1 - m)) @ inverse
        distance = fitted - null
        back = np.array([[1.0, -centre / scale], [0.0, 1 / scale]])
        return cls(
            coefficients=back @ fitted,
            covariance=back @ covariance @ back.T,
            statistic=float(distance @ np.linalg.solve(covariance, distance)),
        )


def _hard(problem: Problem) -> Problem:
    if problem.is_soft:
        raise CalibrantError(
            "the test needs 0/1 outcomes, whose noise is known; y_true has soft labels"
        )
    return problem


def _check_fit_exists(atoms: Atoms) -> None:
    ends = (atoms.score == 0) | (atoms.score == 1)
    if ends.any():
        value = atoms.score[ends][0]
        rows = int(atoms.rows[ends].sum())
        raise CalibrantError(
            "the calibration slope needs predictions strictly between 0 and 1, where logits are "
            f"finite; got {value:g} ({rows} row{'s' if rows > 1 else ''} of 0 or 1): use "
            "cumulative_test, or say what these rows should count as"
        )
    if len(atoms.score) == 1:
        raise CalibrantError(
            "the calibration slope needs two different predictions; every y_prob is "
            f"{atoms.score[0]:g}"
        )
    ones, zeros = atoms.score[atoms.true > 0], atoms.score[atoms.true < atoms.weight]
    if not len(ones) or not len(zeros):
        raise CalibrantError(
            f"the calibration slope needs both outcomes; every y_true is {1 if len(ones) else 0}"
        )
    if zeros[-1] <= ones[0] or ones[-1] <= zeros[0]:
        below, above = ("0", "1") if zeros[-1] <= ones[0] else ("1", "0")
        raise CalibrantError(
            "the calibration slope is infinite: no prediction of a row with outcome "
            f"{below} exceeds that of any row with outcome {above}; more rows are needed"
        )


def _fit(x: FloatArray, atoms: Atoms, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Maximise the likelihood of a + b x by Newton's method; return (a, b) and the information."""
    coefficients = start
    likelihood = _log_likelihood(x, atoms, coefficients)
    for _ in range(_MAX_NEWTON_STEPS):
        fitted = _probability(x, coefficients)
        excess = atoms.true - atoms.weight * fitted
        information = _moments(x, atoms.weight * fitted * (1 - fitted))
        step = np.linalg.solve(information, [excess.sum(), excess @ x])
        if np.abs(step).max() < _SMALL_STEP:
            return coefficients + step, information
        # The likelihood is concave, so some fraction of the step improves it, up to rounding.
        least = likelihood - _ROUNDING * abs(likelihood)
        while (reached := _log_likelihood(x, atoms, coefficients + step)) < least:
            step = step / 2
        coefficients, likelihood = coefficients + step, reached
    raise CalibrantError(_NO_FIT)


def _log_likelihood(x: FloatArray, atoms: Atoms, coefficients: FloatArray) -> float:
    logit = coefficients[0] + coefficients[1] * x
    return float(atoms.true @ logit - atoms.weight @ np.logaddexp(0, logit))


def _probability(x: FloatArray, coefficients: FloatArray) -> FloatArray:
    from scipy.special import expit

    return np.asarray(expit(coefficients[0] + coefficients[1] * x))


def _moments(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Return sum weight (1, x)' (1, x)."""
    first, second = weight @ x, weight @ (x * x)
    return np.array([[weight.sum(), first], [first, second]])
