"""Logistic regression of outcomes on logarithms of scores, as the parametric calibrators need it.

Scores of exactly 0 and 1 have infinite logarithms. No finite parameters move them, so that they
say nothing about which parameters are best: they are left out of the fit and keep their limits.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from calibrant.arrays import FloatArray
from calibrant.numerics.probability import logit
from calibrant.problem import Pooled, Problem
from calibrant.recalibration.maps import LogisticMap

# Logarithms that vary by less than this are taken to be one: a slope would be a billion.
_LEAST_SPREAD = 1e-9


def fit_logistic(problem: Problem, *, one_slope: bool) -> LogisticMap:
    """Return the likeliest LogisticMap with a, b >= 0 (and a = b), under Platt's targets.

    The likelihood is concave: if the best of all has a negative coefficient, the best of those
    allowed has one that is 0, and is found among the fits without one or both.
    """
    pooled = problem.pooled
    inside = (pooled.score > 0) & (pooled.score < 1)
    if not inside.any():
        return LogisticMap(1.0, 1.0, 0.0)
    score, weight = pooled.score[inside], pooled.weight[inside]
    target = _targets(pooled, inside)
    share = weight / weight.sum()
    if np.ptp(logit(score)) < _LEAST_SPREAD:
        # One score cannot tell a slope: only what is added moves.
        return LogisticMap(1.0, 1.0, float(logit(share @ target) - logit(share @ score)))
    log_p, log_q = np.log(score), -np.log1p(-score)
    terms = np.stack([log_p + log_q] if one_slope else [log_p, log_q])
    fit = _best_allowed(terms, target, share)
    return LogisticMap(fit.slopes[0], fit.slopes[-1], fit.added)


def _targets(pooled: Pooled, inside: npt.NDArray[np.bool_]) -> FloatArray:
    """Return mean outcomes drawn a little towards each other, so that a finite fit exists.

    An outcome of 1 counts as (N1 + 1) / (N1 + 2), one of 0 as 1 / (N0 + 2), where N1 and N0 are
    the numbers of rows of either outcome (Platt 1999, section 2.2). Weights decide in what share.
    """
    weight, true = pooled.weight[inside], pooled.true[inside]
    share = min(max(float(true.sum() / weight.sum()), 0.0), 1.0)
    rows = float(pooled.rows[inside].sum())
    n_one, n_zero = rows * share, rows * (1 - share)
    high, low = (n_one + 1) / (n_one + 2), 1 / (n_zero + 2)
    return low + (high - low) * np.clip(true / weight, 0.0, 1.0)


class _Fit(NamedTuple):
    slopes: FloatArray
    added: float
    likelihood: float


def _best_allowed(terms: FloatArray, target: FloatArray, share: FloatArray) -> _Fit:
    """Return the likeliest fit with slopes of at least 0."""
    varying = np.flatnonzero(np.ptp(terms, axis=1) >= _LEAST_SPREAD).tolist()
    for size in range(len(varying), 0, -1):
        fits = [_fit(terms, list(kept), target, share) for kept in combinations(varying, size)]
        allowed = [fit for fit in fits if fit.slopes.min() >= 0]
        if allowed:
            return max(allowed, key=lambda fit: fit.likelihood)
    level = float(logit(np.dot(share, target)))
    return _Fit(np.zeros(len(terms)), level, np.nan)


def _fit(terms: FloatArray, kept: list[int], target: FloatArray, share: FloatArray) -> _Fit:
    """Return the likeliest fit whose other slopes are 0."""
    centre = terms[kept] @ share
    # In standard units the search takes few steps.
    size = np.sqrt((terms[kept] - centre[:, None]) ** 2 @ share)
    x = ((terms[kept] - centre[:, None]) / size[:, None]).T
    # The penalty is far below noise, and makes the solution unique where two scores must tell
    # three parameters.
    model = LogisticRegression(C=1e8, solver="newton-cholesky", tol=1e-9)
    # A row whose target is t is a share t of outcome 1 and the rest of outcome 0.
    outcome = np.repeat([1, 0], len(share))
    model.fit(
        np.concatenate((x, x)), outcome, np.concatenate((share * target, share * (1 - target)))
    )
    slopes = np.zeros(len(terms))
    slopes[kept] = model.coef_[0] / size
    added = float(model.intercept_[0] - slopes[kept] @ centre)
    z = slopes @ terms + added
    return _Fit(slopes, added, -float(share @ (np.logaddexp(0.0, z) - target * z)))
