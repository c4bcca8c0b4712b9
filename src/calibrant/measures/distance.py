"""How far predictions are from calibrated ones.

The distance to calibration (dCE) is the least mean movement of predictions that calibrates them,
where rows of equal prediction may move apart: the infimum of E abs(p - q) over all joint laws of
(p, y, q) with E[y | q] = q (Błasiok and Nakkiran 2023, Def. 5). It has no simple formula; these
measures bound it. All are norms of one signed measure, residual nu_i = sum of w (y - p) / W at
each distinct score p_i:

==========================  =====================================================================
weak calibration error      sup of sum_i v(p_i) nu_i over 1-Lipschitz v from [0, 1] to [-1, 1]
Laplace kernel error        sqrt(sum_ij nu_i nu_j exp(-abs(p_i - p_j)))
interval error              inf over k of (expected binned ECE, random bins of width 2^-k) + 2^-k
==========================  =====================================================================

Unlike the ECE they change little when predictions do. They take soft labels: a row of label y
counts as y rows of label 1 and 1 - y of label 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.measures.transport import cheapest_transport
from calibrant.multiclass import one_problem, reduce_classes
from calibrant.problem import Problem
from calibrant.results.values import DistanceBounds, LipschitzWitness

__all__ = [
    "distance_bounds",
    "interval_error",
    "laplace_kernel_error",
    "weak_calibration_error",
    "weak_calibration_witness",
]

# Widths below 2^-52 cannot lower the interval error by more than that: see interval_error.
_FINEST = 52


@dataclass(frozen=True)
class WeakCalibrationError(Measure):
    """The largest mean of v(p) (y - p) over 1-Lipschitz v within [-1, 1]."""

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        return cheapest_transport(problem).cost


@dataclass(frozen=True)
class LaplaceKernelError(Measure):
    """The root mean of r_i r_j exp(-abs(p_i - p_j)) over all pairs of rows."""

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        atoms = problem.rows.pooled
        residual = atoms.residual / problem.weight
        # Scores lie in [0, 1], so no exponential here is far from 1.
        onward = np.cumsum((residual * np.exp(-atoms.score))[::-1])[::-1] * np.exp(atoms.score)
        fresh = -np.expm1(-2 * np.diff(atoms.score))
        return float(np.sqrt(onward[0] ** 2 + np.dot(fresh, onward[1:] ** 2)))


@dataclass(frozen=True)
class IntervalError(Measure):
    """The least of (expected binned ECE at width 2^-k) + 2^-k over k >= 0."""

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        residual = problem.rows.pooled.residual / problem.weight
        least = float(np.abs(residual).sum())
        for k in range(_FINEST + 1):
            width = 2.0**-k
            binned = _shifted_ece(problem.rows.pooled.score, residual, width)
            least = min(least, binned + width)
            if binned >= least:
                break
        return least


def weak_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the largest mean of v(p) (y - p) over 1-Lipschitz v within [-1, 1]; 0 is perfect.

    Also known as smooth calibration error. It equals abs(m) + sum_i gap_i abs(C_i - D_i) with m
    the mean residual, C the running mean of residuals over increasing scores, and D the nearest
    monotone sequence from 0 to m: what must be dropped, plus what must be carried times how far.

    Parameters
    ----------
    y_true, y_prob, sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.

    Returns
    -------
    float
        The error, exact up to rounding; at least abs(m), at most the mean of abs(y - p).

    Notes
    -----
    It bounds the distance to calibration on both sides: see :func:`distance_bounds`. O(n log n);
    a million distinct scores take about a second, a fifth of that where numba is installed.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), Def. 11.
    Hu, Jambulapati, Tian and Yang, "Testing calibration in nearly-linear time" (2024): another
    algorithm.

    Examples
    --------
    >>> weak_calibration_error([0, 1], [0.25, 0.75])
    0.0625
    >>> weak_calibration_error([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    0.0
    """
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(WeakCalibrationError())


def weak_calibration_witness(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> LipschitzWitness:
    """Return a function v that attains the weak calibration error: where predictions are off.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        "confidence" or a class label; a witness is about one binary problem.

    Returns
    -------
    LipschitzWitness
        v at every distinct score. It falls where predictions spread too far (low ones too low,
        high ones too high), rises where they spread too little, and is level where neither
        matters; the level itself is 1 if predictions are too low on the whole, -1 if too high.

    Examples
    --------
    >>> witness = weak_calibration_witness([0, 1], [0.25, 0.75])
    >>> witness
    LipschitzWitness(error=0.0625, 2 scores from 0.25 to 0.75)
    >>> witness.value
    array([0.5, 1. ])
    >>> float(witness.value @ witness.residual)
    0.0625
    """
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    transport = cheapest_transport(problem)
    return LipschitzWitness(
        score=transport.score,
        value=transport.witness(),
        residual=transport.residual,
        error=transport.cost,
    )


def distance_bounds(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> DistanceBounds:
    """Return bounds on the distance to calibration, the least mean movement that calibrates.

    With wCE the weak calibration error and m the mean residual,

        max(abs(m), wCE / 2) <= low <= dCE <= high = 2 wCE - abs(m).

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        "confidence" or a class label; bounds are on one binary problem.

    Returns
    -------
    DistanceBounds
        `low` and `high`, for the sample itself: they say nothing about sampling noise.

    Notes
    -----
    Upper: to carry residual e from a to b, exchange weight e of label 1 at a with as much of label
    0 at b, a movement of 2 e abs(a - b); then move what remains at each score to its mean outcome,
    which for a total residual of m moves predictions by abs(m).

    Lower: for calibrated q, E v(q) (y - q) = 0; so E v(p) (y - p) <= L dCE, where L bounds the
    slopes of v(p) (y - p) for y = 0 and y = 1. The witness v of the weak calibration error gives
    L <= 2; the constant that may be added to v is chosen for the best bound. A large constant
    gives abs(m).

    The paper prints dCE <= wCE (Theorem 20). That fails: for y = 0 and 1 at p = 0.45 and
    0.55, wCE = 0.0225 and dCE = 0.045.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, "A unifying theory of distance from calibration" (2023):
    wCE / 2 <= dCE <= 2 wCE.

    Examples
    --------
    >>> distance_bounds([0, 1], [0.45, 0.55])
    DistanceBounds(0.0375 <= distance <= 0.045)
    """
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    transport = cheapest_transport(problem)
    return DistanceBounds(transport.least_distance(), transport.movement)


def laplace_kernel_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the root mean of r_i r_j exp(-abs(p_i - p_j)) over all pairs of rows; 0 is perfect.

    r = y - p; pairs count with weight w_i w_j, and rows are paired with themselves too. It is the
    kernel (MMCE) calibration error with the Laplace kernel.

    Parameters
    ----------
    y_true, y_prob, sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.

    Returns
    -------
    float
        The error, at most the square root of the weak calibration error.

    Notes
    -----
    Exact, one pass over sorted scores. With S_i = sum_{j >= i} nu_j exp(-(p_j - p_i)), the mean is
    S_1^2 + sum_{i > 1} (1 - exp(-2 (p_i - p_{i-1}))) S_i^2, in which nothing cancels.

    References
    ----------
    Kumar, Sarawagi and Jain, "Trainable calibration measures" (2018).
    Błasiok, Gopalan, Hu and Nakkiran, "A unifying theory of distance from calibration" (2023).

    Examples
    --------
    >>> laplace_kernel_error([1, 1], [0.5, 0.5])
    0.5
    """
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(LaplaceKernelError())


def interval_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the least of (expected binned ECE at width 2^-k) + 2^-k over k >= 0; 0 is perfect.

    Bins [u + j 2^-k, u + (j + 1) 2^-k) start at a uniformly random u; those at the ends of [0, 1]
    are cut short, not wrapped. The expectation over u is exact.

    Parameters
    ----------
    y_true, y_prob, sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.

    Returns
    -------
    float
        The error: at least the distance to calibration, at most sum_i abs(nu_i), the ECE with a
        bin for every distinct score (the limit of many bins).

    Notes
    -----
    With C(t) the running mean residual of scores below t, the expected ECE at width h is
    (1/h) times the integral of abs(C(t + h) - C(t)) over all t. Halving bins never lowers it, so
    the expected ECE F_k rises with k: no width beyond k can give less than F_k, and the search
    ends once F_k reaches the least sum so far. It ends at k = 52 in any case, where less than
    2^-52 could still be gained. O(n) for each k after one sort.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, "A unifying theory of distance from calibration" (2023):
    the surrogate interval calibration error.

    Examples
    --------
    >>> interval_error([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    0.0
    >>> interval_error([0, 1], [0.499, 0.501])
    0.063186
    """
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(IntervalError())


def _shifted_ece(score: FloatArray, residual: FloatArray, width: float) -> float:
    """Return the expected ECE over bins of one width with a random start."""
    # Residuals within [t, t + width): they enter at score - width and leave at score.
    moment = np.concatenate((score - width, score))
    order = np.argsort(moment, kind="stable")
    within = np.cumsum(np.concatenate((residual, -residual))[order])
    return float(np.dot(np.abs(within[:-1]), np.diff(moment[order])) / width)


MEASURES = (
    MeasureInfo(
        weak_calibration_error,
        label="weak calibration error",
        title="Weak calibration error",
        meaning="How far outcomes are from predictions along any function of the scores that "
        "changes slowly.",
        definition="max over v of Σ w (y − p) v(p) / W, with v 1-Lipschitz and within [−1, 1].",
        make=WeakCalibrationError,
    ),
    MeasureInfo(
        laplace_kernel_error,
        label="Laplace kernel error",
        title="Laplace kernel calibration error",
        meaning="Root mean product of the deviations of two rows, less the farther apart they are.",
        definition="√(Σ Σ w w' (y − p) (y' − p') exp(−|p − p'|)) / W, over all pairs of rows.",
        make=LaplaceKernelError,
    ),
    MeasureInfo(
        interval_error,
        label="interval error",
        title="Interval calibration error",
        meaning="The binned error under a random shift, plus the width of the bins, where that is "
        "least.",
        definition="min over k of E ECE over bins of width 2⁻ᵏ with a random start, + 2⁻ᵏ.",
        make=IntervalError,
    ),
)
