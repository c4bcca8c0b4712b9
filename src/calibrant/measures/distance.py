"""The cheapest way to cancel residuals: carry them to other scores, or drop them.

Carrying a unit of residual a distance d costs d, dropping it costs 1. The least cost is the weak
calibration error (linear programming duality; :meth:`Transport.witness`). Scores lie within a
distance of 1, so it never pays to drop residuals of both signs: what is dropped is the mean
residual m, all of one sign. With C the running sum of residuals over increasing scores, the
residual dropped so far is then a rising sequence between 0 and m (falling if m < 0), the rest is
carried onward, and

    weak calibration error = abs(m) + min over such sequences D of sum_i gap_i abs(C_i - D_i).

The minimum is the nearest rising sequence to C, cut off at 0 and m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._base import FloatArray, Result
from calibrant.data.classes import one_problem, reduce_classes
from calibrant.data.problem import Pooled, Problem
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.numerics.monotone import isotonic_fit_l1

__all__ = [
    "distance_bounds",
    "interval_error",
    "laplace_kernel_error",
    "weak_calibration_error",
    "weak_calibration_witness",
]


@dataclass(frozen=True, eq=False)
class Transport:
    """A cheapest way to cancel the residuals of one problem.

    Attributes
    ----------
    score
        The distinct scores, increasing.
    residual
        Sum of w (y - p) / W at each of them.
    flow
        What is carried from each score to the next; negative where it is carried back.
    dropped
        What is dropped: the mean residual.
    """

    score: FloatArray
    residual: FloatArray
    flow: FloatArray
    dropped: float

    @property
    def work(self) -> float:
        """What the carrying costs."""
        return float(np.dot(np.diff(self.score), np.abs(self.flow)))

    @property
    def cost(self) -> float:
        """What carrying and dropping cost: the weak calibration error."""
        return abs(self.dropped) + self.work

    @property
    def movement(self) -> float:
        """How far predictions move, at most, to calibrate them by this transport.

        To carry residual e from a to b, weight e of label 1 at a changes places with as much of
        label 0 at b: a movement of 2 e abs(a - b). What remains at each score is then moved to
        its mean outcome.
        """
        return abs(self.dropped) + 2 * self.work

    def witness(self) -> FloatArray:
        """Return v at each score, 1-Lipschitz and within [-1, 1], with sum of v residual = cost.

        Every such v is worth at most the cost, and exactly the cost if it falls at full slope
        wherever residual is carried on, rises so wherever it is carried back, and is 1 (or -1)
        wherever positive (or negative) residual is dropped. Some v does all that; hence so does
        the highest v <= 1 with those slopes (the lowest v >= -1), which is made here.
        """
        sign = np.copysign(1.0, self.dropped)
        gap, flow = np.diff(self.score), sign * self.flow
        onward = _highest(np.where(flow > 0, -gap, gap))
        back = _highest(np.where(flow < 0, -gap, gap)[::-1])[::-1]
        return np.asarray(sign * np.minimum(onward, back))

    def least_distance(self) -> float:
        """Return a lower bound on the movement that calibrates predictions in any way.

        If q is calibrated, E v(q) (y - q) = 0, so E v(p) (y - p) is at most E abs(p - q) times the
        greatest slope of v(p) (y - p) in p. Here v is the witness plus the best constant.
        """
        mean, score = abs(self.dropped), self.score
        v = np.copysign(1.0, self.dropped) * self.witness()
        with np.errstate(over="ignore"):  # between scores closer than rounding
            slope = np.clip(np.diff(v) / np.diff(score), -1.0, 1.0)
        # The slopes of (p - y) v(p) for y = 0 and 1 are extreme at the ends of the linear pieces
        # of v; beyond the outer scores v is level and they are v.
        ends = ((v[:-1], score[:-1]), (v[1:], score[1:]))
        slopes = np.concatenate([v, *(u + (p - y) * slope for u, p in ends for y in (0, 1))])
        # Adding a constant to v adds it to every slope: centred, the greatest size is least.
        centre, greatest = (slopes.max() + slopes.min()) / 2, np.ptp(slopes) / 2
        if greatest == 0:
            return mean
        return float(max(mean, (self.cost - centre * mean) / greatest))


def cheapest_transport(problem: Problem) -> Transport:
    """Return a cheapest way to cancel the residuals of a problem."""
    pooled = problem.rows.pooled
    residual = pooled.residual / problem.weight
    running = np.cumsum(residual)
    # What rounding leaves of nothing must not decide which way the witness slopes.
    nil = _rounding(pooled, problem)
    dropped = float(running[-1]) if abs(running[-1]) > nil else 0.0
    sign = np.copysign(1.0, dropped)
    signed = sign * running[:-1]
    gone = isotonic_fit_l1(np.clip(signed, 0.0, abs(dropped)), np.diff(pooled.score))
    flow = sign * (signed - gone)
    return Transport(pooled.score, residual, np.where(np.abs(flow) > nil, flow, 0.0), dropped)


def _rounding(pooled: Pooled, problem: Problem) -> float:
    """Return how far rounding may put a running sum of residuals from where it is."""
    size = float(pooled.true @ (1 - pooled.score) + (pooled.weight - pooled.true) @ pooled.score)
    return float(4 * np.finfo(np.float64).eps * np.sqrt(problem.n)) * size / problem.weight


def _highest(climb: FloatArray) -> FloatArray:
    """Return the highest v <= 1 that climbs by no more than `climb` at each step."""
    height = np.concatenate(([0.0], np.cumsum(climb)))
    return np.asarray(1 + height - np.maximum.accumulate(height))


# Numbers that come with a range, a place or parts.


@dataclass(frozen=True, repr=False)
class DistanceBounds(Result):
    """Bounds on the distance to calibration of a sample."""

    low: float
    high: float

    def __repr__(self) -> str:
        return f"DistanceBounds({self.low:.6g} <= distance <= {self.high:.6g})"


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzWitness(Result):
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

    def __repr__(self) -> str:
        span = f"{len(self.score)} scores from {self.score[0]:.6g} to {self.score[-1]:.6g}"
        return f"LipschitzWitness(error={self.error:.6g}, {span})"


# How far predictions are from calibrated ones.
#
# The distance to calibration (dCE) is the least mean movement of predictions that calibrates them,
# where rows of equal prediction may move apart: the infimum of E abs(p - q) over all joint laws of
# (p, y, q) with E[y | q] = q (Błasiok and Nakkiran 2023, Def. 5). It has no simple formula; these
# measures bound it. All are norms of one signed measure, residual nu_i = sum of w (y - p) / W at
# each distinct score p_i:
#
# ==========================  =====================================================================
# weak calibration error      sup of sum_i v(p_i) nu_i over 1-Lipschitz v from [0, 1] to [-1, 1]
# Laplace kernel error        sqrt(sum_ij nu_i nu_j exp(-abs(p_i - p_j)))
# interval error              inf over k of (expected binned ECE, random bins of width 2^-k) + 2^-k
# ==========================  =====================================================================
#
# Unlike the ECE they change little when predictions do. They take soft labels: a row of label y
# counts as y rows of label 1 and 1 - y of label 0.

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
