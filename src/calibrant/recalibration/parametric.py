"""Platt's, beta and isotonic calibrators, and the one that changes nothing."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from calibrant.class_table import ClassTable
from calibrant.problem import Problem
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.logistic import fit_logistic
from calibrant.recalibration.maps import LogisticMap, PiecewiseLinearMap


class PlattCalibrator(Calibrator):
    """Mend probabilities by logistic regression on their logits: sigmoid(a logit(p) + c).

    Notes
    -----
    Fitted by maximum likelihood with a >= 0, so that no order is reversed, and with Platt's
    targets in place of 0 and 1, so that a fit exists for whatever outcomes: an outcome of 1 counts
    as (N1 + 1) / (N1 + 2), one of 0 as 1 / (N0 + 2). Probabilities of exactly 0 and 1 are left
    out of the fit and stay what they are: nothing is clipped. Where all scores are equal a = 1.
    Never falls. From a sketch, rows are taken at the mean score of their cell.

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

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        return fit_logistic(problem, one_slope=True)


class BetaCalibrator(Calibrator):
    """Mend probabilities by the beta family: sigmoid(a log(p) - b log(1 - p) + c), a, b >= 0.

    Two slopes bend the two ends apart: a is about small probabilities, b about large ones.

    Notes
    -----
    As for :class:`~calibrant.recalibration.PlattCalibrator`, which is the case a = b.

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

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        return fit_logistic(problem, one_slope=False)


class IsotonicCalibrator(Calibrator):
    """Mend probabilities by isotonic regression, the non-decreasing fit nearest to outcomes.

    Notes
    -----
    scikit-learn's ``IsotonicRegression``: straight between the scores that it saw, level beyond
    them. It often ends at 0 and 1, where a surprise has an infinite log score.
    Never falls. Refuses sketches, which do not know the order of scores within a cell.

    References
    ----------
    Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability
    estimates" (2002).

    Examples
    --------
    >>> IsotonicCalibrator().fit([0.1, 0.4, 0.6], [0, 1, 0]).predict([0.1, 0.25, 0.9]).tolist()
    [0.0, 0.25, 0.5]
    """

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        pooled = problem.rows.pooled
        model = IsotonicRegression(y_min=0.0, y_max=1.0)
        model.fit(pooled.score, pooled.true / pooled.weight, pooled.weight)
        return PiecewiseLinearMap(model.X_thresholds_, model.y_thresholds_)


class IdentityCalibrator(Calibrator):
    """Leave probabilities as they are.

    Examples
    --------
    >>> IdentityCalibrator().fit([0.1, 0.9], [0, 1]).predict([0.3]).tolist()
    [0.3]
    """

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        return _identity()

    def _fit_classes(self, table: ClassTable) -> tuple[PiecewiseLinearMap, ...]:
        # One map for all columns: there is nothing to divide by a sum.
        return (_identity(),)


def _identity() -> PiecewiseLinearMap:
    ends = np.array([0.0, 1.0])
    return PiecewiseLinearMap(ends, ends)
