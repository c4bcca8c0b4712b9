"""How far predictions are from calibrated ones.

The lower distance to calibration (dCE) is the smallest mean movement of predictions that calibrates
them, where rows of equal prediction may move apart: the infimum of E abs(p - q) over all joint
distributions of (p, y, q) with E[y | q] = q (Błasiok and Nakkiran 2023, Def. 5). The distance to
the nearest calibrated function of the score may be larger. It has no simple formula; these measures
bound it. All are norms of one signed measure, nu_i = sum of w (y - p) / W
at each distinct score p_i:

==========================  =====================================================================
weak calibration error      sup of sum_i v(p_i) nu_i over 1-Lipschitz v from [0, 1] to [-1, 1]
Laplace kernel error        sqrt(sum_ij nu_i nu_j exp(-abs(p_i - p_j)))
interval error              inf over k of (expected binned ECE, random bins of width 2^-k) + 2^-k
==========================  =====================================================================

Unlike the ECE they change little when predictions do. They take soft labels: a row of label y
counts as y rows of label 1 and 1 - y of label 0.

By duality the weak calibration error is the cost of the cheapest way to cancel residuals, where
moving a unit over a distance d costs d and dropping it costs 1. Scores lie within a distance of 1,
so it never pays to drop residuals of both signs: what is dropped is the mean residual m. With C the
cumulative sum of residuals over increasing scores, the residual dropped so far is a monotone
sequence D from 0 to m, the rest moves on, and

    weak calibration error = abs(m) + min over such sequences D of sum_i gap_i abs(C_i - D_i).

The minimum is the L1 isotonic regression of C, clipped to [0, m].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, Result, TabularResult
from calibrant.data.classes import of_rows, one_problem, reduce_classes
from calibrant.data.problem import Problem
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.numerics.regression import isotonic_fit_l1


@dataclass(frozen=True, repr=False)
class DistanceBounds(Result):
    """Bounds on the lower distance to calibration of a sample."""

    low: float
    high: float

    def _printed(self) -> list[str]:
        return [f"DistanceBounds({self.low:.6g} <= distance <= {self.high:.6g})"]


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzWitness(TabularResult):
    """A function v that attains the weak calibration error, at every distinct score.

    Attributes
    ----------
    score
        The distinct scores, increasing.
    value
        v at each score: 1-Lipschitz and within [-1, 1].
    residual
        Sum of w (y - p) / W at each score.
    error
        The weak calibration error, the sum of value * residual.
    """

    score: FloatArray
    value: FloatArray
    residual: FloatArray
    error: float

    def _printed(self) -> list[str]:
        span = f"{len(self.score)} scores from {self.score[0]:.6g} to {self.score[-1]:.6g}"
        return [f"LipschitzWitness(error={self.error:.6g}, {span})"]


@dataclass(frozen=True, eq=False)
class Transport:
    """A cheapest way to cancel the residuals of one problem by moving and dropping them."""

    score: FloatArray  # the distinct scores, increasing
    residual: FloatArray  # the sum of w (y - p) / W at each of them
    flow: FloatArray  # what moves from each score to the next; negative where it moves back
    dropped: float  # what is dropped: the mean residual

    @property
    def work(self) -> float:
        """The cost of moving residuals."""
        return float(np.dot(np.diff(self.score), np.abs(self.flow)))

    @property
    def cost(self) -> float:
        """The cost of moving and dropping: the weak calibration error."""
        return abs(self.dropped) + self.work

    def witness(self) -> FloatArray:
        """Return v at each score, 1-Lipschitz and within [-1, 1], with sum of v residual = cost.

        For every such v the sum is at most the cost. It equals the cost if v has slope -1 wherever
        residual moves on, slope 1 wherever it moves back, and is 1 (or -1) wherever positive (or
        negative) residual is dropped. Such a v exists; hence the highest v <= 1 with those slopes
        (the lowest v >= -1), which is computed here, has these properties too.
        """
        sign = np.copysign(1.0, self.dropped)
        gap, flow = np.diff(self.score), sign * self.flow
        onward = _highest(np.where(flow > 0, -gap, gap))
        back = _highest(np.where(flow < 0, -gap, gap)[::-1])[::-1]
        return np.asarray(sign * np.minimum(onward, back))

    @property
    def min_distance(self) -> float:
        """A lower bound on the lower distance to calibration: see :func:`distance_bounds`."""
        mean, score = abs(self.dropped), self.score
        v = np.copysign(1.0, self.dropped) * self.witness()
        with np.errstate(over="ignore"):  # between scores closer than rounding
            slope = np.clip(np.diff(v) / np.diff(score), -1.0, 1.0)
        # The slopes of (p - y) v(p) for y = 0 and 1 are extreme at the ends of the linear pieces
        # of v; beyond the outer scores v is constant and they are v.
        ends = ((v[:-1], score[:-1]), (v[1:], score[1:]))
        slopes = np.concatenate([v, *(u + (p - y) * slope for u, p in ends for y in (0, 1))])
        # Adding a constant to v adds it to every slope: centred, the steepest is least steep.
        centre, steepest = (slopes.max() + slopes.min()) / 2, np.ptp(slopes) / 2
        if steepest == 0:
            return mean
        return float(max(mean, (self.cost - centre * mean) / steepest))


def cheapest_transport(problem: Problem) -> Transport:
    """Return a cheapest way to cancel the residuals of a problem."""
    pooled = problem.rows.pooled
    residual = pooled.residual / problem.weight
    running = np.cumsum(residual)
    # Rounding errors of cumulative sums must not decide which way the witness slopes.
    size = float(pooled.true @ (1 - pooled.score) + (pooled.weight - pooled.true) @ pooled.score)
    nil = 4 * np.finfo(np.float64).eps * np.sqrt(problem.n) * size / problem.weight
    dropped = float(running[-1]) if abs(running[-1]) > nil else 0.0
    sign = np.copysign(1.0, dropped)
    signed = sign * running[:-1]
    dropped_so_far = isotonic_fit_l1(np.clip(signed, 0.0, abs(dropped)), np.diff(pooled.score))
    flow = sign * (signed - dropped_so_far)
    return Transport(pooled.score, residual, np.where(np.abs(flow) > nil, flow, 0.0), dropped)


def _highest(climb: FloatArray) -> FloatArray:
    """Return the highest v <= 1 that rises by no more than `climb` from each score to the next."""
    height = np.concatenate(([0.0], np.cumsum(climb)))
    return np.asarray(1 + height - np.maximum.accumulate(height))


@dataclass(frozen=True)
class WeakCalibrationError(Measure):
    """The largest mean of v(p) (y - p) over 1-Lipschitz v within [-1, 1]."""

    def __call__(self, problem: Problem) -> float:
        return cheapest_transport(problem).cost


@dataclass(frozen=True)
class LaplaceKernelError(Measure):
    """The root mean of r_i r_j exp(-abs(p_i - p_j)) over all pairs of rows."""

    def __call__(self, problem: Problem) -> float:
        score, residual = problem.rows.pooled.score, problem.rows.pooled.residual / problem.weight
        # S_i of laplace_kernel_error. Scores lie in [0, 1]: no exponential here is far from 1.
        sums = np.cumsum((residual * np.exp(-score))[::-1])[::-1] * np.exp(score)
        factor = -np.expm1(-2 * np.diff(score))
        return float(np.sqrt(sums[0] ** 2 + np.dot(factor, sums[1:] ** 2)))


@dataclass(frozen=True)
class IntervalError(Measure):
    """The minimum of (expected binned ECE at width 2^-k) + 2^-k over k >= 0."""

    def __call__(self, problem: Problem) -> float:
        residual = problem.rows.pooled.residual / problem.weight
        smallest = float(np.abs(residual).sum())
        # No width below 2^-52 can lower the error by more than that.
        for width in 2.0 ** -np.arange(53):
            binned = _shifted_ece(problem.rows.pooled.score, residual, width)
            smallest = min(smallest, binned + width)
            if binned >= smallest:
                break
        return float(smallest)


def _shifted_ece(score: FloatArray, residual: FloatArray, width: float) -> float:
    """Return the expected ECE over bins of one width with a random start."""
    # The sum of residuals in [t, t + width) changes where a score enters or leaves the bin.
    start = np.concatenate((score - width, score))
    order = np.argsort(start, kind="stable")
    sums = np.cumsum(np.concatenate((residual, -residual))[order])
    return float(np.dot(np.abs(sums[:-1]), np.diff(start[order])) / width)


@of_rows
def weak_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the largest mean of v(p) (y - p) over 1-Lipschitz v within [-1, 1]; 0 is perfect.

    Also known as smooth calibration error. It equals abs(m) + sum_i gap_i abs(C_i - D_i) with m
    the mean residual, C the cumulative sums of residuals over increasing scores divided by W, and D
    the nearest monotone sequence from 0 to m.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error, exact up to rounding; at least abs(m), at most the mean of abs(y - p).

    See Also
    --------
    weak_calibration_witness : The function v.
    distance_bounds : Bounds on the lower distance to calibration by this error.

    Notes
    -----
    O(n log n); a million distinct scores take about a second, a fifth of that with numba.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), Def. 11.
    Hu et al., "Testing calibration in nearly-linear time" (2024): another algorithm.

    Examples
    --------
    >>> weak_calibration_error([0, 1], [0.25, 0.75])
    0.0625
    >>> weak_calibration_error([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    0.0
    """
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(WeakCalibrationError())


@of_rows
def weak_calibration_witness(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> LipschitzWitness:
    """Return a function v that attains the weak calibration error.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    LipschitzWitness
        v at every distinct score. It falls where predictions are over-confident (low ones too low,
        high ones too high), rises where they are under-confident, and is flat where neither
        matters, at 1 if predictions are too low on the whole and at -1 if they are too high.

    See Also
    --------
    weak_calibration_error : The error alone.

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
    found = cheapest_transport(problem)
    return LipschitzWitness(found.score, found.witness(), found.residual, found.cost)


@of_rows
def distance_bounds(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> DistanceBounds:
    """Return bounds on the lower distance to calibration, the least movement that calibrates.

    Predictions move so far on average; rows of equal prediction may move apart.

    With wCE the weak calibration error and m the mean residual,

        max(abs(m), wCE / 2) <= low <= dCE <= high = 2 wCE - abs(m).

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    DistanceBounds
        `low` and `high`, for the sample itself: they do not account for sampling noise.

    See Also
    --------
    weak_calibration_error, smooth_ece : Errors that bound the distance too.

    Notes
    -----
    Upper: to move residual e from a to b, exchange weight e of label 1 at a with as much of label
    0 at b, a movement of 2 e abs(a - b); then move what remains at each score to its mean outcome,
    which for a total residual of m moves predictions by abs(m).

    Lower: for calibrated q, E v(q) (y - q) = 0; so E v(p) (y - p) <= L dCE, where L bounds the
    slopes of v(p) (y - p) for y = 0 and y = 1. The witness v of the weak calibration error gives
    L <= 2; the best constant is added to v. A large constant gives abs(m).

    The paper prints dCE <= wCE (Theorem 20). That fails: for y = 0 and 1 at p = 0.45 and
    0.55, wCE = 0.0225 and dCE = 0.045. The nearest calibrated function of the score, 1/2
    everywhere, is 0.05 away: the distance to calibration is not bounded by `high`.

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
    found = cheapest_transport(problem)
    return DistanceBounds(found.min_distance, abs(found.dropped) + 2 * found.work)


@of_rows
def laplace_kernel_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the root mean of r_i r_j exp(-abs(p_i - p_j)) over all pairs of rows; 0 is perfect.

    r = y - p; pairs count with weight w_i w_j, and rows are paired with themselves too. It is the
    kernel (MMCE) calibration error with the Laplace kernel.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error, at most the square root of the weak calibration error.

    See Also
    --------
    weak_calibration_error : The maximum over Lipschitz functions instead.

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


@of_rows
def interval_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the minimum of (expected binned ECE at width 2^-k) + 2^-k over k >= 0; 0 is perfect.

    Bins [u + j 2^-k, u + (j + 1) 2^-k) start at a uniformly random u; those at the ends of [0, 1]
    are cut short, not wrapped. The expectation over u is exact.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error: at least the lower distance to calibration, at most sum_i abs(nu_i), the ECE
        with a bin for every distinct score (the limit of many bins).

    See Also
    --------
    ece : Bins of one width.
    distance_bounds : Bounds on the lower distance to calibration.

    Notes
    -----
    With C(t) the sum of residuals of scores below t, divided by W, the expected ECE at width h is
    (1/h) times the integral of abs(C(t + h) - C(t)) over all t. Halving bins never lowers it: the
    expected ECE F_k rises with k, and the search ends once F_k reaches the smallest sum so far. It
    ends at k = 52 in any case, where less than 2^-52 could be gained. O(n) per k after one sort.

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
