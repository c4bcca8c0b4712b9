"""The cumulative walk: deviations summed over increasing scores, one step a distinct score.

With C_k = (1/W) sum over rows of score at most s_k of w (y - p), and C_0 = 0:

=========  =======================  ====================================================
ECCE-MAD   max_k abs(C_k)           the largest deviation of the walk from 0
ECCE-R     max_k C_k - min_k C_k    the largest total deviation over any interval of scores
sigma_n    sqrt(sum w^2 p(1-p))/W   standard deviation of C_n under perfect calibration
=========  =======================  ====================================================

Tied scores make one step, so the order of rows does not matter: to the last bit, unless there are
so many that those which decide nothing are summed as they come (`extreme_walk`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray
from calibrant.binning import UniformBins
from calibrant.errors import CalibrantError
from calibrant.pooling import joined, rearranged
from calibrant.problem import Pooled, Problem
from calibrant.sample import Sample

# From so many rows on, sorting those near the extremes alone is four times as fast as sorting all
# (measured at 10^7); the cells in which the others are pooled.
_MANY, _CELLS = 1 << 17, 1 << 16
# What rounding may add to the sums of a sketch.
_ROUNDING = 1e-9


class Statistic(Enum):
    """How far a walk strays, from its highest and lowest points (which include its start, 0)."""

    MAX = "max"
    RANGE = "range"

    def of(self, high: FloatArray, low: FloatArray) -> FloatArray:
        """Return the statistic of each walk."""
        # Adding 0.0 turns -0.0 into 0.0.
        return (np.maximum(high, -low) if self is Statistic.MAX else high - low) + 0.0


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk over increasing scores.

    Attributes
    ----------
    score
        The distinct scores, one a step.
    weight
        The weight that each step speaks for.
    step
        The summed deviation of each step; the walk itself is divided by the total weight.
    sigma
        Standard deviation of the walk's end under the null hypothesis; nan where unknown.
    """

    score: FloatArray
    weight: FloatArray
    step: FloatArray
    sigma: float

    @property
    def total(self) -> float:
        """The total weight that the walk is divided by."""
        return float(self.weight.sum())

    @property
    def fraction(self) -> FloatArray:
        """The share of the weight passed, from 0 to 1."""
        passed = np.concatenate(([0.0], np.cumsum(self.weight)))
        return np.asarray(passed / passed[-1])

    @property
    def deviation(self) -> FloatArray:
        """Where the walk stands, from its start at 0."""
        return np.concatenate(([0.0], np.cumsum(self.step))) / self.total

    def reach(self, statistic: Statistic) -> float:
        """Return how far the walk strays."""
        return _reach(self.step, self.total, statistic)


def calibration_walk(problem: Problem) -> Walk:
    """Return the walk of outcomes minus predictions."""
    return _walk(problem, problem.pooled)


def extreme_walk(problem: Problem) -> Walk:
    """Return a walk with the same extremes and noise, in fewer steps where rows are many."""
    is_long = problem.is_exact and problem.n >= _MANY
    if not is_long or problem.is_weighted or problem.is_soft:
        return calibration_walk(problem)
    return _walk(problem, _pooled_between_extremes(problem.rows))


def excursion_error(problem: Problem) -> float:
    """Bound how much farther than over the cells of a sketch the walk over its rows may go.

    Within a cell the walk rises by sum w y (1 - p) in all and falls by sum w (1 - y) p, and ends
    where both are spent: beyond its two ends it goes by the smaller of them.
    """
    if problem.is_exact:
        return 0.0
    n_cells = round(1 / problem.cell_width)
    residual = problem.cell_sums(UniformBins.of(n_cells).index, n_cells)[3]
    return float(np.minimum(residual[1], -residual[0]).max()) / problem.weight + _ROUNDING


def _walk(problem: Problem, pooled: Pooled) -> Walk:
    sigma = np.nan if problem.is_soft else _sigma(pooled)
    return Walk(pooled.score, pooled.weight, pooled.residual, sigma)


def _pooled_between_extremes(rows: Sample) -> Pooled:
    """Return 0/1 outcomes of weight 1 pooled by score near the extremes, by cell elsewhere.

    Summed over narrow cells of scores, residuals tell where the walk stands at the ends of cells.
    Within a cell in which it rises by a in all and falls by b it stays below
    min(start + a, end + b) and above max(start - b, end - a). Only cells where that is beyond the
    farthest end may hold the farthest point: a few, whose rows are sorted.
    """
    bins = UniformBins.of(_CELLS)
    count, _, pred, residual, _ = rows.cell_sums(bins.index, _CELLS)
    is_open = _may_hold_extreme(residual[1], -residual[0])
    (closed,) = np.nonzero((count.sum(axis=0) > 0) & ~is_open)
    n, p = count[:, closed].sum(axis=0), pred[:, closed].sum(axis=0)
    true = count[1, closed]
    cells = Pooled(np.minimum(p / n, 1.0), n, n, n, true, true - p)
    near = [np.flatnonzero(is_open[bins.index(p)]) for p, _, _ in rows.blocks()]
    if not any(map(len, near)):
        return cells
    chosen = [(p[i], y[i]) for (p, y, _), i in zip(rows.blocks(), near, strict=True)]
    scores, outcomes = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
    single = Sample(outcomes, scores).pooled
    order = np.argsort(np.concatenate((closed, bins.index(single.score))), kind="stable")
    return rearranged(joined((cells, single)), order)


def _may_hold_extreme(rise: FloatArray, fall: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell which cells may hold the highest or the lowest point of a walk that starts at 0."""
    end = np.cumsum(rise - fall)
    start = np.concatenate(([0.0], end[:-1]))
    above = np.minimum(start + rise, end + fall) > max(float(end.max()), 0.0)
    below = np.maximum(start - fall, end - rise) < min(float(end.min()), 0.0)
    return np.asarray(above | below)


def known_sigma(walk: Walk, purpose: str) -> float:
    """Return a walk's sigma, refusing walks without noise to compare with."""
    if np.isnan(walk.sigma):
        raise CalibrantError(
            f"{purpose} needs 0/1 outcomes, whose noise is known; y_true has soft labels"
        )
    if walk.sigma == 0:
        raise CalibrantError(
            f"{purpose} needs a prediction strictly between 0 and 1; every y_prob is 0 or 1, "
            "which leaves nothing to chance"
        )
    return walk.sigma


def _sigma(pooled: Pooled) -> float:
    noise = pooled.weight_squared * pooled.score * (1 - pooled.score)
    return float(np.sqrt(noise.sum()) / pooled.weight.sum())


def _reach(step: FloatArray, total: float, statistic: Statistic) -> float:
    position = np.cumsum(step)
    high, low = position.max().clip(min=0), position.min().clip(max=0)
    return float(statistic.of(high, low) / total)
