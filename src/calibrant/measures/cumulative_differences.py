"""Cumulative differences of outcomes and predictions, one increment per distinct score.

With C_k = (1/W) sum over rows of score at most s_k of w (y - p), and C_0 = 0:

=========  =======================  ====================================================
ECCE-MAD   max_k abs(C_k)           the maximum absolute deviation from 0
ECCE-R     max_k C_k - min_k C_k    the largest total deviation over any interval of scores
sigma_n    sqrt(sum w^2 p(1-p))/W   standard deviation of C_n under perfect calibration
=========  =======================  ====================================================

Tied scores make one increment, so the order of rows does not matter: to the last bit, unless there
are so many that only those near the extremes are sorted.
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
    """The maximum excursion, from the highest and lowest values (which include the start, 0)."""

    MAX = "max"
    RANGE = "range"

    def of(self, high: FloatArray, low: FloatArray) -> FloatArray:
        """Return the statistic of each pair of extremes."""
        # Adding 0.0 turns -0.0 into 0.0.
        return (np.maximum(high, -low) if self is Statistic.MAX else high - low) + 0.0


@dataclass(frozen=True, eq=False)
class CumulativeDifferences:
    """Differences summed over increasing scores.

    Attributes
    ----------
    score
        The distinct scores, one per increment.
    weight
        The weight that each increment represents.
    increment
        The sum of differences at each score; cumulative sums are divided by the total weight.
    sigma
        Standard deviation of the last cumulative sum under the null hypothesis; nan where unknown.
    """

    score: FloatArray
    weight: FloatArray
    increment: FloatArray
    sigma: float

    @property
    def total(self) -> float:
        """The total weight that cumulative sums are divided by."""
        return float(self.weight.sum())

    @property
    def fraction(self) -> FloatArray:
        """The cumulative fraction of the weight, from 0 to 1."""
        passed = np.concatenate(([0.0], np.cumsum(self.weight)))
        return np.asarray(passed / passed[-1])

    @property
    def deviation(self) -> FloatArray:
        """The cumulative sums, from the start at 0."""
        return np.concatenate(([0.0], np.cumsum(self.increment))) / self.total

    def excursion(self, statistic: Statistic) -> float:
        """Return the maximum excursion."""
        position = np.cumsum(self.increment)
        high, low = position.max().clip(min=0), position.min().clip(max=0)
        return float(statistic.of(high, low) / self.total)


def cumulative_differences(
    problem: Problem, *, only_extremes: bool = False
) -> CumulativeDifferences:
    """Return the cumulative sums of w (y - p).

    Where only their extremes and sigma matter, those of many rows have fewer increments.
    """
    is_plain = problem.is_exact and not problem.is_weighted and not problem.is_soft
    if only_extremes and is_plain and problem.n >= _MANY:
        pooled = _pooled_between_extremes(problem.rows)
    else:
        pooled = problem.pooled
    noise = pooled.weight_squared * pooled.score * (1 - pooled.score)
    sigma = np.nan if problem.is_soft else float(np.sqrt(noise.sum()) / pooled.weight.sum())
    return CumulativeDifferences(pooled.score, pooled.weight, pooled.residual, sigma)


def excursion_error(problem: Problem) -> float:
    """Bound how much larger the excursion over the rows of a sketch may be than over its cells.

    Within a cell cumulative sums rise by sum w y (1 - p) in all and fall by sum w (1 - y) p: beyond
    the values at its two ends they go by the smaller of these.
    """
    if problem.is_exact:
        return 0.0
    n_cells = round(1 / problem.cell_width)
    residual = problem.cell_sums(UniformBins.of(n_cells).index, n_cells)[3]
    return float(np.minimum(residual[1], -residual[0]).max()) / problem.weight + _ROUNDING


def _pooled_between_extremes(rows: Sample) -> Pooled:
    """Return 0/1 outcomes of weight 1 pooled by score near the extremes, by cell elsewhere.

    Sums over narrow cells of scores give the cumulative sums at the ends of cells. Within a cell in
    which these rise by a in all and fall by b they stay below min(start + a, end + b) and above
    max(start - b, end - a). Only cells where that is beyond all ends of cells may hold an extreme:
    a few, whose rows are sorted.
    """
    bins = UniformBins.of(_CELLS)
    count, _, pred, residual, _ = rows.cell_sums(bins.index, _CELLS)
    is_open = _may_hold_extreme(residual[1], -residual[0])
    (closed,) = np.nonzero((count.sum(axis=0) > 0) & ~is_open)
    n, p = count[:, closed].sum(axis=0), pred[:, closed].sum(axis=0)
    true = count[1, closed]
    cells = Pooled(np.minimum(p / n, 1.0), n, n, n, true, true - p)
    near = []
    for score, y, _ in rows.blocks():
        (inside,) = np.nonzero(is_open[bins.index(score)])
        near.append((score[inside], y[inside]))
    scores, outcomes = (np.concatenate(parts) for parts in zip(*near, strict=True))
    if not len(scores):
        return cells
    single = Sample(outcomes, scores).pooled
    order = np.argsort(np.concatenate((closed, bins.index(single.score))), kind="stable")
    return rearranged(joined((cells, single)), order)


def _may_hold_extreme(rise: FloatArray, fall: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell which cells may hold the highest or the lowest of cumulative sums that start at 0."""
    end = np.cumsum(rise - fall)
    start = np.concatenate(([0.0], end[:-1]))
    above = np.minimum(start + rise, end + fall) > max(float(end.max()), 0.0)
    below = np.maximum(start - fall, end - rise) < min(float(end.min()), 0.0)
    return np.asarray(above | below)


def known_sigma(differences: CumulativeDifferences, purpose: str) -> float:
    """Return sigma, refusing where there is no noise to compare with."""
    if np.isnan(differences.sigma):
        raise CalibrantError(
            "must be 0 or 1 for {purpose}, as the noise of soft labels is unknown",
            argument="y_true",
            found="soft labels",
            purpose=purpose,
        )
    if differences.sigma == 0:
        raise CalibrantError(
            "must hold a prediction strictly between 0 and 1 for {purpose}: without any there is "
            "no noise",
            argument="y_prob",
            purpose=purpose,
        )
    return differences.sigma
