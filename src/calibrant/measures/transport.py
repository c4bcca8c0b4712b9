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

from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.numerics.monotone import isotonic_fit_l1
from calibrant.problem import Pooled, Problem


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
