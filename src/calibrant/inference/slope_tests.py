"""Two classical tests of calibration: Spiegelhalter's z, and the calibration slope and intercept.

Both look for one kind of departure: over- or under-confident predictions or, for the second, also
predictions that are too high or too low throughout. :func:`calibrant.cumulative_test` looks for any
kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri, stdtr

from calibrant._base import FloatArray, Result
from calibrant.data import validation
from calibrant.data.classes import hard_problem, rows_or_sketch
from calibrant.data.problem import Index, Pooled, Problem
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.formatting import counted, p_equation
from calibrant.inference.cell_noise import check_clusters, read_codes
from calibrant.inference.cumulative_tests import TestResult
from calibrant.numerics.probability import SMALLEST
from calibrant.numerics.regression import LogisticFit, fit_logistic, standardize


@dataclass(frozen=True, repr=False)
class SlopeTestResult(Result):
    """The calibration slope and intercepts, logit P(y = 1) = a + b logit(p), tested.

    Attributes
    ----------
    slope, joint_intercept
        The coefficients fitted together, 1 and 0 for calibrated predictions; nan where the outcomes
        are separated and there is no fit.
    intercept
        The intercept at slope 1: calibration-in-the-large, 0 for calibrated predictions, positive
        where they are too low.
    slope_error, joint_intercept_error, intercept_error
        Their standard errors.
    slope_interval, joint_intercept_interval, intercept_interval
        Their confidence intervals, coefficient +- z times standard error.
    statistic
        Rao's score statistic at intercept 0 and slope 1, which needs no fit; with clusters, its
        variance is that between clusters.
    p_value
        Probability of a larger statistic under perfect calibration, never 0: chi-squared with 2
        degrees of freedom, or Hotelling's T-squared of so many clusters.
    n
        The number of rows tested.
    level
        The confidence level of the intervals.
    n_excluded
        The number of predictions of 0 and 1, whose logits are infinite: they are not tested.
    n_clusters
        The number of clusters; 0 where rows are independent.
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    statistic: float
    p_value: float
    n: int
    joint_intercept: float
    joint_intercept_error: float
    intercept_interval: tuple[float, float]
    slope_interval: tuple[float, float]
    joint_intercept_interval: tuple[float, float]
    level: float
    n_excluded: int = 0
    n_clusters: int = 0

    def _printed(self) -> list[str]:
        slope = f"slope {self.slope:.4g} +- {self.slope_error:.2g}"
        intercept = f"intercept at slope 1 {self.intercept:.4g} +- {self.intercept_error:.2g}"
        rows = f"n = {self.n}" + f" in {self.n_clusters} clusters" * (self.n_clusters > 0)
        without = f", without {counted(self.n_excluded, 'prediction')} of 0 or 1"
        without *= self.n_excluded > 0
        p_value = p_equation(self.p_value)
        return [f"SlopeTestResult({slope}, {intercept}, {p_value}, {rows}{without})"]


@rows_or_sketch
def spiegelhalter_test(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
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
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.

        Soft labels, whose noise is unknown, are refused.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

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

    With `clusters` the numerator is the sum of the totals S_g of G clusters. Its variance is
    G / (G - 1) times the sum of D_g^2, D_g = S_g - mean S, in which the squares of single rows are
    replaced by their expected value, known under perfect calibration, so that only covariances are
    estimated; it is never taken to be less than that of independent rows. z is compared with
    Student's t with Satterthwaite's degrees of freedom, 3 (sum D_g^2)^2 / sum D_g^4, at most G - 1:
    fewer where clusters are unequal. With 50 clusters of intraclass correlation 0.2 a nominal 5%
    was 5 to 6%, also for rare events.

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
    problem = hard_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    pooled = problem.pooled
    factor = 1 - 2 * pooled.score
    noise = float(pooled.weight_squared @ (factor**2 * pooled.score * (1 - pooled.score)))
    if noise == 0:
        raise CalibrantError(
            "must hold a prediction other than 0, 1/2 and 1 for Spiegelhalter's z: there is no "
            "noise in the Brier score",
            argument="y_prob",
        )
    n_clusters, dof = 0, math.inf
    if clusters is not None:
        known = _read_clusters(clusters, sample_weight, problem, pooled)
        deviation, covariance = known.spread(factor[:, None])
        noise += max(float(covariance[0, 0]), 0.0)
        n_clusters, dof = known.n, _satterthwaite(deviation[:, 0])
    total = float(pooled.weight.sum())
    excess, sigma = float(pooled.residual @ factor) / total, math.sqrt(noise) / total
    z = excess / sigma
    return TestResult(
        statistic=excess,
        normalized=z,
        p_value=max(_two_sided(z, dof), SMALLEST),
        sigma=sigma,
        n=problem.n,
        test="Brier score above expected",
        method="asymptotic",
        n_clusters=n_clusters,
    )


def calibration_slope_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    level: float = 0.95,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> SlopeTestResult:
    """Test calibration slope 1 and intercept 0, those of calibrated predictions.

    In logit P(y = 1) = a + b logit(p), tests (a, b) = (0, 1) by the score statistic U' V^-1 U, with
    U = sum w (y - p) x, V = sum w^2 p (1 - p) x x' and x = (1, logit p): chi-squared with 2 degrees
    of freedom for calibrated predictions. Beside it, a and b as fitted by maximum (weighted)
    likelihood: predictions are over-confident where b < 1, under-confident where b > 1. The
    intercept is that at b = 1, positive where predictions are too low and negative where they are
    too high; the joint intercept, fitted beside b, describes p = 1/2 alone.

    Parameters
    ----------
    y_true : array_like
        Outcomes: 0/1, bool or yes/no; two labels with `pos_label`; or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).

        Predictions of 0 and 1, whose logits are infinite, are left out and counted in
        `n_excluded`; predictions that are all the same are refused.
    level : float
        Confidence level.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    SlopeTestResult
        The joint P-value; slope and both intercepts with standard errors and intervals, nan where
        there is no fit.

    See Also
    --------
    clinical_summary : These and other measures in the table of a clinical validation.
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

    With `clusters`, U is the sum of the scores U_g of G clusters, and V becomes V + E: E is
    G / (G - 1) times the sum of (U_g - mean U)(U_g - mean U)', less the squares of single rows,
    whose expected value V is known under perfect calibration, so that only covariances are
    estimated. In no direction is the variance taken to be less than V. The statistic X is compared
    with Hotelling's T-squared, P = (1 + X / (G - 1))^(1 - G / 2): with 50 clusters of intraclass
    correlation 0.2 a nominal 5% was 5 to 7%, also for rare events. The B of the standard errors is
    G / (G - 1) times the sum of the squares of clusters' scores at the fit.

    References
    ----------
    Cox, "Two further applications of a model for binary regression" (1958).
    Rao, "Large sample tests of statistical hypotheses concerning several parameters with
    applications to problems of estimation" (1948).
    Liang and Zeger, "Longitudinal data analysis using generalized linear models" (1986): the
    variance between clusters.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> y_true, y_prob = load_flares("NOAA")
    >>> calibration_slope_test(y_true, y_prob)
    SlopeTestResult(slope 1.155 +- 0.1, intercept at slope 1 -0.1256 +- 0.1, p = 0.15, n = 731)
    """
    level = validation.as_level(level)
    problem = hard_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    pooled = problem.rows.pooled.inner
    _check_logits(pooled)
    n = int(pooled.rows.sum())
    origin, x = relative_logits(pooled)
    # U' V^-1 U, in units of x where V is a multiple of the identity.
    noise = pooled.weight_squared * pooled.score * (1 - pooled.score)
    u, _, _ = standardize(x, noise)
    known = None
    if clusters is None:
        statistic = float((pooled.residual.sum() ** 2 + (pooled.residual @ u) ** 2) / noise.sum())
        # The survival function of chi-squared with 2 degrees of freedom.
        p_value = math.exp(-statistic / 2)
    else:
        known = _read_clusters(clusters, sample_weight, problem, pooled)
        _, excess = known.spread(np.column_stack((np.ones_like(u), u)))
        variance, direction = np.linalg.eigh(excess)
        along = np.array([pooled.residual.sum(), pooled.residual @ u]) @ direction
        statistic = float((along**2 / (noise.sum() + np.maximum(variance, 0.0))).sum())
        # The survival function of T-squared, (G - 1) F 2 / (G - 2) with F of 2 and G - 2 degrees.
        p_value = (1 + statistic / (known.n - 1)) ** (1 - known.n / 2)
    fit = LogisticRecalibration.of(pooled, (origin, x), known)
    return SlopeTestResult(
        **vars(fit),
        statistic=statistic,
        p_value=max(p_value, SMALLEST),
        n=n,
        n_excluded=problem.n - n,
        n_clusters=0 if known is None else known.n,
        intercept_interval=_interval(fit.intercept, fit.intercept_error, level),
        slope_interval=_interval(fit.slope, fit.slope_error, level),
        joint_intercept_interval=_interval(fit.joint_intercept, fit.joint_intercept_error, level),
        level=level,
    )


@dataclass(frozen=True, eq=False)
class ClusteredRows:
    """Rows that may depend on each other within clusters, in order of their scores."""

    score: FloatArray  # score, true, weight: those of each row
    true: FloatArray
    weight: FloatArray
    place: Index  # the place of its score among those pooled
    code: Index | None  # its cluster; None where each row is one
    n: int  # the number of clusters

    @classmethod
    def of(cls, problem: Problem, pooled: Pooled, cluster: Index | None) -> ClusteredRows:
        """Return the rows of a problem from the lowest to the highest of the scores pooled."""
        p, y, w = problem.rows.columns()
        (inside,) = np.nonzero((p >= pooled.score[0]) & (p <= pooled.score[-1]))
        order = inside[np.argsort(p[inside])]
        place = np.repeat(np.arange(len(pooled.score)), pooled.rows.astype(np.intp))
        code, n = None, len(order)
        if cluster is not None:
            names, code = np.unique(cluster[order], return_inverse=True)
            n = len(names)
        return cls(p[order], y[order], w[order], place, code, n)

    def residuals(self, factors: FloatArray, expected: FloatArray | None = None) -> FloatArray:
        """Return w (y - m) of each row times factors at each pooled score.

        The expected outcomes m at each pooled score are the scores themselves by default.
        """
        mean = self.score if expected is None else expected[self.place]
        return np.asarray((self.weight * (self.true - mean))[:, None] * factors[self.place])

    def totals(self, rows: FloatArray) -> FloatArray:
        """Return the sums of rows over each cluster."""
        if self.code is None:
            return rows
        return np.column_stack([np.bincount(self.code, one) for one in rows.T])

    def spread(self, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the deviations of the clusters' totals from their mean, and excess covariances.

        The latter are those of the sum of totals, without the squares of single rows.
        """
        rows = self.residuals(factors)
        totals = self.totals(rows)
        deviation = totals - totals.mean(axis=0)
        correction = self.n / (self.n - 1)
        return deviation, correction * (deviation.T @ deviation) - rows.T @ rows


def _read_clusters(
    clusters: Any, sample_weight: Any, problem: Problem, pooled: Pooled
) -> ClusteredRows:
    """Read one cluster label per row; rows of scores that were not pooled are left out."""
    rows = ClusteredRows.of(problem, pooled, read_codes(clusters, sample_weight, problem.n))
    check_clusters(rows.n)
    return rows


def _satterthwaite(deviation: FloatArray) -> float:
    """Return the degrees of freedom of the variance between clusters, from their deviations.

    For normal totals of variances v_g, 2 (sum v)^2 / (2 sum v^2); v^2 is a third of the expected
    fourth power.
    """
    squared, most = deviation**2, len(deviation) - 1
    fourth = float(squared @ squared)
    return min(3 * float(squared.sum()) ** 2 / fourth, most) if fourth > 0 else most


def _two_sided(z: float, dof: float) -> float:
    """Return the P-value of z: Student's t, which is normal with infinite degrees of freedom."""
    if math.isinf(dof):
        return math.erfc(abs(z) / math.sqrt(2))
    return 2 * float(stdtr(dof, -abs(z)))


def _interval(value: float, error: float, level: float) -> tuple[float, float]:
    reach = float(ndtri((1 + level) / 2)) * error
    return value - reach, value + reach


def _check_logits(pooled: Pooled) -> None:
    """Refuse scores between 0 and 1 that do not determine a slope."""
    if not len(pooled.score):
        raise CalibrantError(
            "must hold predictions strictly between 0 and 1 for the calibration slope, as logits "
            "must be finite",
            argument="y_prob",
        )
    if len(pooled.score) == 1:
        raise CalibrantError(
            "must have two different values between 0 and 1 for the calibration slope",
            argument="y_prob",
            value=pooled.score[0],
            found="only {value}",
        )


def relative_logits(pooled: Pooled) -> tuple[float, FloatArray]:
    """Return the logit of one prediction, and how far those of all of them are from it."""
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


@dataclass(frozen=True)
class LogisticRecalibration:
    """Coefficients of logit P(y = 1) = a + b logit(p), with their standard errors.

    `intercept` is a at b = 1, `joint_intercept` and `slope` are fitted together; nan without a fit.
    """

    intercept: float
    intercept_error: float
    slope: float = math.nan
    slope_error: float = math.nan
    joint_intercept: float = math.nan
    joint_intercept_error: float = math.nan

    @classmethod
    def of(
        cls,
        pooled: Pooled,
        logits: tuple[float, FloatArray],
        clusters: ClusteredRows | None = None,
    ) -> LogisticRecalibration:
        """Fit rows pooled by score, given the logit of one score and how far others are from it.

        Standard errors are those of maximum likelihood, or robust, from the sums over clusters.
        """
        origin, x = logits
        ones, zeros = pooled.score[pooled.true > 0], pooled.score[pooled.true < pooled.weight]
        if not len(ones) or not len(zeros):
            return cls(math.nan, math.nan)
        level = _fitted(np.empty((len(x), 0)), origin + x, pooled, clusters)
        if level is None:
            return cls(math.nan, math.nan)
        at_one = level.intercept, math.sqrt(level.covariance[0, 0])
        # A finite slope needs of each outcome a prediction below one of the other.
        if ones[0] >= zeros[-1] or zeros[0] >= ones[-1]:
            return cls(*at_one)
        fit = _fitted(x[:, None], origin + x, pooled, clusters)
        if fit is None:
            return cls(*at_one)
        # The fit adds a + b x to the logits origin + x; the intercept is that at a logit of 0.
        at_zero = np.array([[1.0, -origin], [0.0, 1.0]])
        joint, slope = (at_zero @ [fit.intercept, fit.slopes[0]] + [0.0, 1.0]).tolist()
        errors = np.sqrt(np.diag(at_zero @ fit.covariance @ at_zero.T)).tolist()
        return cls(*at_one, slope, errors[1], joint, errors[0])


def _fitted(
    x: FloatArray, offset: FloatArray, pooled: Pooled, clusters: ClusteredRows | None
) -> LogisticFit | None:
    """Return the fit of logits offset + a + x @ b; None where there is none."""
    squares = pooled.weight_squared
    try:
        fit = fit_logistic(x, pooled.true, pooled.weight, weight_squared=squares, offset=offset)
    except np.linalg.LinAlgError:
        return None
    if clusters is None:
        return fit
    fitted = expit(offset + fit.intercept + x @ fit.slopes)
    scores = clusters.totals(clusters.residuals(np.column_stack((np.ones(len(x)), x)), fitted))
    spread = scores @ fit.inverse_information
    with np.errstate(over="ignore"):  # events at 1e-200 leave the intercept unknown
        covariance = clusters.n / max(clusters.n - 1, 1) * (spread.T @ spread)
    return replace(fit, covariance=covariance)
