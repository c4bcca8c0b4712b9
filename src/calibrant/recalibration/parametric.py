"""Parametric calibrators of one probability: functions of its logit.

====================  =============================================
calibrator            map, with x = logit(p)
====================  =============================================
ShiftCalibrator       sigmoid(x + c)
PlattCalibrator       sigmoid(a x + c)
BetaCalibrator        sigmoid(a log p - b log(1 - p) + c)
QuadraticCalibrator   sigmoid(a + b x + c x^2)
====================  =============================================

Temperature scaling, sigmoid(x / T), is in :mod:`calibrant.recalibration.multiclass`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.problem import Problem
from calibrant.numerics.probability import logit, monotone_root
from calibrant.numerics.regression import fit_logistic, standardize
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.maps import LogisticMap, QuadraticMap

# Logarithms of scores that vary by less than this are taken to be constant: a slope would be of
# the order of a billion.
_MIN_RANGE = 1e-9
# Far below sampling noise; it makes the fit unique where two scores determine three coefficients.
_RIDGE = 1e-8


class ShiftCalibrator(Calibrator):
    """A shift of all logits: sigmoid(logit(p) + c).

    What a new base rate does to the probabilities of a calibrated classifier.

    Parameters
    ----------
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    Fitted by maximum likelihood with Platt's targets, as for
    :class:`~calibrant.recalibration.PlattCalibrator`. Probabilities of exactly 0 and 1 stay as they
    are. The map is increasing. In a sketch, rows are taken at the mean score of their cell.

    See Also
    --------
    PriorShift : The shift between two known base rates, or without outcomes.
    PlattCalibrator : Adds a slope.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("shifted", 20_000)
    >>> ShiftCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.09, 0.47, 0.89])
    """

    n_coefficients = 1

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        scores = _Scores.of(problem)
        return LogisticMap(1.0, 1.0, 0.0 if scores is None else scores.shift())


class PlattCalibrator(Calibrator):
    """Platt scaling: logistic regression on logits, sigmoid(a logit(p) + c) with a >= 0.

    Parameters
    ----------
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    Fitted by maximum likelihood with Platt's targets in place of 0 and 1, so that a fit exists for
    any outcomes: an outcome of 1 counts as (N1 + 1) / (N1 + 2), one of 0 as 1 / (N0 + 2), with N1
    and N0 the numbers of rows of either outcome. Probabilities of exactly 0 and 1 are left out of
    the fit and stay as they are: nothing is clipped. Where all scores are equal, a = 1. The map is
    non-decreasing. In a sketch, rows are taken at the mean score of their cell.

    See Also
    --------
    BetaCalibrator : Separate slopes for small and for large probabilities.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines" (1999).

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> PlattCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.21, 0.5 , 0.79])
    """

    n_coefficients = 2

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        return _fit_logistic_map(problem, one_slope=True)


class BetaCalibrator(Calibrator):
    """Beta calibration: sigmoid(a log(p) - b log(1 - p) + c) with a, b >= 0.

    The slope a describes small probabilities, b large ones.

    Parameters
    ----------
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    Fitted like :class:`~calibrant.recalibration.PlattCalibrator`, which is the case a = b.

    See Also
    --------
    PlattCalibrator : One slope.

    References
    ----------
    Kull, Silva Filho and Flach, "Beyond sigmoids: how to obtain well-calibrated probabilities
    from binary classifiers with beta calibration" (2017).

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> BetaCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.2 , 0.5 , 0.78])
    """

    n_coefficients = 3

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        return _fit_logistic_map(problem, one_slope=False)


class QuadraticCalibrator(Calibrator):
    """Quadratic scaling: sigmoid(a + b x + c x^2) with x = logit(p).

    Parameters
    ----------
    ridge : float
        Factor of the penalty (ridge / n) c^2 of the mean cross-entropy.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    Fitted like :class:`~calibrant.recalibration.PlattCalibrator`, which is the case c = 0, with
    b >= 0. A parabola turns round: beyond its turning point, where few or no rows are, the map is
    held constant, so that it never decreases.

    See Also
    --------
    BetaCalibrator : Another map of three coefficients.

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, "Structured matrix scaling for multi-class calibration"
    (2026), of which this is the binary case.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> QuadraticCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.2 , 0.5 , 0.78])
    """

    n_coefficients = 3

    def __init__(self, ridge: float = 1.0, mix: bool = False) -> None:
        self.ridge = ridge
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> QuadraticMap:
        ridge, scores = validation.as_positive(self.ridge, "ridge"), _Scores.of(problem)
        if scores is None or scores.is_one:
            return QuadraticMap(0.0 if scores is None else scores.shift(), 1.0, 0.0)
        line = logit(scores.score)
        x = np.column_stack((line, line * line))
        fit = _fit_quadratic(x, scores, ridge / scores.rows, [0, 1])
        if fit[1] < 0:
            fit = _fit_quadratic(x, scores, ridge / scores.rows, [1])
        return QuadraticMap(*fit)


def _fit_quadratic(
    x: FloatArray, scores: _Scores, penalty: float, kept: list[int]
) -> tuple[float, float, float]:
    """Return a, b and c of the regression on some of the columns x and x^2."""
    x = x[:, kept]
    kept = [k for k, extent in zip(kept, np.ptp(x, axis=0), strict=True) if extent >= _MIN_RANGE]
    x = x[:, np.ptp(x, axis=0) >= _MIN_RANGE]
    _, _, scale = standardize(x, scores.weight)
    # Of the standardised columns, whose coefficients are those of x times the scale.
    ridge = np.where(np.array(kept) == 1, 2 * penalty / scale**2, 0.0) + _RIDGE
    fit = fit_logistic(x, scores.target * scores.weight, scores.weight, ridge=ridge)
    slopes = dict(zip(kept, fit.slopes.tolist(), strict=True))
    return fit.intercept, slopes.get(0, 0.0), slopes.get(1, 0.0)


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores strictly between 0 and 1, with their weights and Platt's targets.

    Scores of 0 and 1 have infinite logarithms: no finite coefficients move them, so that they do
    not bear on the fit.
    """

    score: FloatArray
    weight: FloatArray
    target: FloatArray
    rows: float

    @classmethod
    def of(cls, problem: Problem) -> _Scores | None:
        """Return the scores of a problem, None where there are none."""
        pooled = problem.pooled
        inside = (pooled.score > 0) & (pooled.score < 1)
        if not inside.any():
            return None
        score, weight, true = (v[inside] for v in (pooled.score, pooled.weight, pooled.true))
        # Platt's targets (1999, section 2.2) in place of 0 and 1; the rows are divided into N1 and
        # N0 in proportion to the weights of the two outcomes.
        rows = float(pooled.rows[inside].sum())
        n_one = rows * min(max(float(true.sum() / weight.sum()), 0.0), 1.0)
        high, low = (n_one + 1) / (n_one + 2), 1 / (rows - n_one + 2)
        return cls(score, weight, low + (high - low) * np.clip(true / weight, 0.0, 1.0), rows)

    @property
    def is_one(self) -> bool:
        """Whether there is one score, which does not determine a slope."""
        return bool(np.ptp(logit(self.score)) < _MIN_RANGE)

    def shift(self) -> float:
        """Return the most likely change of all logits: the mean is then that of the targets."""
        from scipy.special import expit

        x, true = logit(self.score), self.target @ self.weight
        middle = float(logit(true / self.weight.sum()))

        def excess(change: float) -> float:
            return float(self.weight @ expit(x + change) - true)

        return monotone_root(excess, middle - float(x.max()), middle - float(x.min()), 1e-12)


def _fit_logistic_map(problem: Problem, *, one_slope: bool) -> LogisticMap:
    """Return the LogisticMap of maximum likelihood with a, b >= 0, or a = b."""
    scores = _Scores.of(problem)
    if scores is None:
        return LogisticMap(1.0, 1.0, 0.0)
    if scores.is_one:
        return LogisticMap(1.0, 1.0, scores.shift())
    log_p, log_q = np.log(scores.score), -np.log1p(-scores.score)
    x = np.column_stack([log_p + log_q] if one_slope else [log_p, log_q])
    intercept, slopes = _fit_nonnegative(x, scores.target, scores.weight)
    return LogisticMap(slopes[0], slopes[-1], intercept)


def _fit_nonnegative(
    x: FloatArray, target: FloatArray, weight: FloatArray
) -> tuple[float, FloatArray]:
    """Return intercept and slopes of the logistic regression of maximum likelihood, slopes >= 0.

    The likelihood is concave: if its maximum has a negative slope, the constrained maximum has one
    that is 0, and is found among the fits without one column or several.
    """
    varying = np.flatnonzero(np.ptp(x, axis=0) >= _MIN_RANGE).tolist()
    for size in range(len(varying), 0, -1):
        fits = [
            (fit_logistic(x[:, kept], target * weight, weight, ridge=_RIDGE), kept)
            for kept in map(list, combinations(varying, size))
        ]
        allowed = [(fit, kept) for fit, kept in fits if fit.slopes.min() >= 0]
        if allowed:
            best, kept = max(allowed, key=lambda one: one[0].log_likelihood)
            slopes = np.zeros(x.shape[1])
            slopes[kept] = best.slopes
            return best.intercept, slopes
    return float(logit(np.dot(weight, target) / weight.sum())), np.zeros(x.shape[1])
