"""Evidence for recalibration: tests of the identity, and of gains on held-out rows.

Score tests of the identity for one probability, with residuals r = y - p that have variance
p (1 - p) under calibration: U = sum w phi(p) r, V = sum w^2 p (1 - p) phi phi', U' V^-1 U is
chi-squared with as many degrees of freedom as there are functions phi:

=======  =============================================================
level    1: the mean outcome is not the mean probability
spread   logit p: probabilities are too extreme, or not extreme enough
shape    cos(pi j p), j = 0..5: any smooth difference
=======  =============================================================

For several classes phi are the logarithms of the probabilities, together (one temperature) or by
class, and the classes themselves.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtrc, stdtr

from calibrant._base import AnyArray, FloatArray
from calibrant.data.validation import Generator
from calibrant.measures.scores import Score
from calibrant.numerics.probability import logit

_DRAWS = 100_000
# The highest frequency of the test of shape.
_N_COSINES = 5
# Directions whose variance is below this fraction of the largest are taken to have none.
_NEGLIGIBLE = 1e-9
# A test of so many directions needs so many rows for each.
_ROWS_PER_DIRECTION = 5


def identity_p_value(p: FloatArray, y: FloatArray, w: FloatArray, soft: bool) -> float:
    """Return the P-value of the hypothesis that probabilities are calibrated, three tests in one.

    The smallest of the P-values of level, spread and shape, times three, and at least 2^-n.

    Parameters
    ----------
    p, y, w : ndarray of shape (n,)
        Probabilities, outcomes and weights.
    soft : bool
        Whether outcomes are soft labels, whose variance is unknown and taken from the residuals.
    """
    smallest = math.ldexp(1.0, -min(len(p), 1000))
    inside = (p > 0) & (p < 1)
    if np.any(~inside & (p != y) & (w > 0)):
        return smallest  # impossible under the hypothesis
    p, y, w = p[inside], y[inside], w[inside]
    if len(p) == 0:
        return 1.0
    variance = (y - p) ** 2 if soft else p * (1 - p)
    bases = (np.ones((len(p), 1)), logit(p)[:, None], _cosines(p))
    tests = [score_test(basis, w, y - p, variance) for basis in bases]
    return float(min(max(3 * min(tests), smallest), 1.0))


def shape_p_value(
    p: FloatArray, q: FloatArray, y: FloatArray, w: FloatArray, soft: bool, n_fitted: int
) -> float:
    """Return the P-value of the test of shape for probabilities q, a fitted function of p.

    Degrees of freedom are reduced by the number of fitted coefficients.
    """
    inside = (q > 0) & (q < 1)
    p, q, y, w = (v[inside] for v in (p, q, y, w))
    variance = (y - q) ** 2 if soft else q * (1 - q)
    return score_test(_cosines(p), w, y - q, variance, n_fitted) if len(p) else 1.0


def _cosines(p: FloatArray) -> FloatArray:
    return np.asarray(np.cos(np.pi * np.arange(_N_COSINES + 1) * p[:, None]))


def classes_p_value(p: FloatArray, y: FloatArray, w: FloatArray, soft: bool) -> float:
    """Return the P-value of the hypothesis that class probabilities are calibrated.

    That of one temperature, or of a slope and an intercept for every class if the rows suffice,
    whichever is smaller, times the number of tests, and at least 2^-n.

    Parameters
    ----------
    p, y : ndarray of shape (n, C)
        Probabilities, and outcomes as rows of 0 and 1 or soft labels.
    w : ndarray of shape (n,)
        Weights.
    soft : bool
        Whether outcomes are soft labels, whose variance is unknown and taken from the residuals.
    """
    n, n_classes = p.shape
    smallest = math.ldexp(1.0, -min(n, 1000))
    if np.any((p == 0) & (y > 0) & (w > 0)[:, None]):
        return smallest
    with np.errstate(divide="ignore"):
        x = np.where(p > 0, np.log(p), 0.0)
    residual = y - p
    along = (x * residual).sum(axis=1)
    spread = along**2 if soft else (p * x * x).sum(axis=1) - (p * x).sum(axis=1) ** 2
    tests = [score_test(np.ones((n, 1)), w, along, spread)]
    if 2 * n_classes * _ROWS_PER_DIRECTION <= n:
        both = np.concatenate((x * residual, residual), axis=1) * w[:, None]
        if soft:
            variance = both.T @ both
        else:
            parts = np.concatenate((p * x, p), axis=1) * w[:, None]
            squares = w**2 @ (p * x * x), w**2 @ (p * x), w**2 @ p
            variance = np.block(
                [
                    [np.diag(squares[0]), np.diag(squares[1])],
                    [np.diag(squares[1]), np.diag(squares[2])],
                ]
            )
            variance -= parts.T @ parts
        tests.append(_chi_squared(both.sum(axis=0), variance))
    return float(min(max(len(tests) * min(tests), smallest), 1.0))


def score_test(
    basis: FloatArray, w: FloatArray, residual: FloatArray, variance: FloatArray, n_fitted: int = 0
) -> float:
    """Return the P-value of sum w phi r = 0 for the columns phi of a basis."""
    covariance = (basis.T * (w * w * variance)) @ basis
    return _chi_squared(basis.T @ (w * residual), covariance, n_fitted)


def _chi_squared(total: FloatArray, covariance: FloatArray, n_fitted: int = 0) -> float:
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NEGLIGIBLE * max(values[-1], 0.0)
    if not kept.any():
        return 1.0
    statistic = ((total @ vectors[:, kept]) ** 2 / values[kept]).sum()
    return float(chdtrc(max(int(kept.sum()) - n_fitted, 1), statistic))


def outcome_noise(p: AnyArray, q: FloatArray, score: Score) -> FloatArray:
    """Return for every row the variance of S(p, y) - S(q, y) with y drawn from m = (p + q) / 2.

    There neither is better on average, exactly so for the Brier score. With g_c the difference for
    outcome c, up to a constant: sum_c m_c (g_c - sum_k m_k g_k)^2.
    """
    p = np.asarray(p, dtype=np.float64)
    if score == "brier":
        change = 2 * (q - p)
        if p.ndim == 1:
            change = np.stack((np.zeros_like(p), change), axis=1)
    if p.ndim == 1:
        p, q = (np.stack((1 - v, v), axis=1) for v in (p, q))
    middle = (p + q) / 2
    if score == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(middle > 0, np.log(q) - np.log(p), 0.0)
    with np.errstate(invalid="ignore"):
        # About the mean: next to 0 or 1 a difference of sums would cancel.
        mean = (middle * change).sum(axis=1, keepdims=True)
        variance = (middle * (change - mean) ** 2).sum(axis=1)
    return np.where(np.isinf(change).any(axis=1), np.inf, variance)


def joint_tails(
    mean: FloatArray, error: FloatArray, covariance: FloatArray, n: int, rng: Generator
) -> FloatArray:
    """Return one-sided P-values of several correlated means, adjusted for their number.

    That of a mean is the probability that the maximum of as many Student's t variables, with n - 1
    degrees of freedom and the correlations of `covariance`, exceeds mean / error, from 100 000
    draws. It lies between the tail of one t and the number of means times that, which decides where
    draws are too few; it is at least 2^-n, the probability that n differences all have the same
    sign, and 1 for a mean that is not positive.
    """
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    freedom = max(n - 1, 1)
    single = stdtr(freedom, -t)
    size = np.sqrt(covariance.diagonal())
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    values, vectors = np.linalg.eigh(covariance * np.outer(scale, scale))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = rng.standard_normal((_DRAWS, len(size))) @ root.T
    maximum = normal.max(axis=1) / np.sqrt(rng.chisquare(freedom, _DRAWS) / freedom)
    n_beyond = _DRAWS - np.searchsorted(np.sort(maximum), t)
    p_value = np.clip((1 + n_beyond) / (1 + _DRAWS), single, single * len(t))
    p_value = np.clip(p_value, 2.0 ** -min(n, 1000), 1.0)
    return np.where((mean > 0) & (n > 1), p_value, 1.0)
