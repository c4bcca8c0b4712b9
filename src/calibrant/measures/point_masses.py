"""Point masses as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray, Result
from calibrant.data.binning import UniformBins
from calibrant.data.problem import Index, Pooled, Problem
from calibrant.data.rows import Sample

__all__ = ["are_few", "point_masses"]


@dataclass(frozen=True, eq=False)
class PointMasses(Result):
    """Single scores that many rows have, each with the mean outcome there.

    Attributes
    ----------
    score
        The scores, increasing.
    outcome
        The mean outcome of the rows that have each.
    share
        Their share of all rows, by weight.
    is_all
        Whether there are no other scores.
    """

    score: FloatArray
    outcome: FloatArray
    share: FloatArray
    is_all: bool

    def __len__(self) -> int:
        return len(self.score)

    def less_scores(self) -> PointMasses:
        """Return the same masses with outcomes less scores."""
        return replace(self, outcome=self.outcome - self.score)

    def where(self, kept: npt.NDArray[np.bool_]) -> PointMasses:
        """Return some of the masses."""
        return replace(
            self, score=self.score[kept], outcome=self.outcome[kept], share=self.share[kept]
        )


# Point masses: single scores that so many rows have that diagrams mark them one by one.
#
# Where there are few distinct scores, each is one. Among many, a score is one if it holds a twentieth
# of the weight, no fewer than thirty rows, and ten times as many as the scores next to it: of rounded
# scores, all of which hold many rows, none need stand out.

Mask = npt.NDArray[np.bool_]

# Up to so many scores, each of several rows on average, are all marked.
_FEW, _SEVERAL_ROWS = 20, 5
# The least share of the weight, the fewest rows, how many times as many as its neighbours, and how
# many of those there are on either side.
_LARGE, _MANY_ROWS, _TIMES, _NEXT = 0.05, 30, 10.0, 2
# Rows are sorted only in those of so many bins that may hold a mass: in most samples none.
_BINS = 10_000
# Scores so close to each other, as a share of them, are one, rounded this way and that.
_ROUNDING = 2.0**-50
# A cell of a sketch holds one score if its rows spread over no more than this share of its width.
_SPREAD = 0.05


def point_masses(problem: Problem) -> PointMasses:
    """Return the scores to be marked one by one: of a sketch those that it can tell from others."""
    points, is_single = _points_of_rows(problem) if problem.is_exact else _points_of_cells(problem)
    rows, weight, true = points.rows, points.weight, points.true
    is_all = bool(is_single.all() and rows.sum() == problem.n) and are_few(rows)
    kept = is_single & is_all
    if not is_all:
        is_large = (weight >= _LARGE * problem.weight) & (rows >= _MANY_ROWS)
        for k in np.flatnonzero(is_single & is_large):
            around = np.r_[rows[max(k - _NEXT, 0) : k], rows[k + 1 : k + 1 + _NEXT]]
            kept[k] = len(around) == 0 or rows[k] >= _TIMES * np.median(around)
    weight = weight[kept]
    return PointMasses(points.score[kept], true[kept] / weight, weight / problem.weight, is_all)


def are_few(rows: npt.NDArray[np.number]) -> bool:
    """Tell whether places that hold so many rows each are few enough to be marked one by one."""
    return len(rows) <= _FEW and bool(rows.sum() >= _SEVERAL_ROWS * len(rows))


def _points_of_rows(problem: Problem) -> tuple[Pooled, Mask]:
    """Return the scores in and next to bins that may hold a mass; all, where they are few."""
    bins = UniformBins.of(_BINS)
    (weight,) = problem.totals(bins, "weight")
    looked_at = _worth_a_look(weight)
    if len(looked_at) == 0:
        none = np.empty(0)
        return Pooled(none, none, none, none, none, none), np.empty(0, dtype=bool)
    # All rows know their order already, or once for all who ask.
    is_all = len(looked_at) == np.count_nonzero(weight)
    pooled = problem.rows.pooled if is_all else _pooled_in(problem, bins, looked_at)
    close = np.diff(pooled.score) <= _ROUNDING * pooled.score[1:]
    points = _joined(pooled, close)
    return points, np.ones(len(points.score), dtype=bool)


def _pooled_in(problem: Problem, bins: UniformBins, chosen: Index) -> Pooled:
    """Return the rows of some bins pooled by score."""
    is_chosen = np.zeros(bins.n_bins, dtype=bool)
    is_chosen[chosen] = True
    p, y, w = [], [], []
    for block in problem.rows.blocks():
        rows = np.flatnonzero(is_chosen[bins.index(block[0])])
        p.append(block[0][rows])
        y.append(block[1][rows])
        if block[2] is not None:
            w.append(block[2][rows])
    weights = np.concatenate(w) if w else None
    return Sample(np.concatenate(y), np.concatenate(p), weights).pooled


def _worth_a_look(weight: FloatArray) -> Index:
    """Return the bins that may hold a mass, and those filled bins that hold its neighbours."""
    filled = np.flatnonzero(weight)
    # Scores rounded to either side of an edge make twice as many bins of a few.
    if len(filled) <= 2 * _FEW:
        return filled
    pairs = weight[:-1] + weight[1:] >= _LARGE * weight.sum()
    heavy = np.flatnonzero((np.append(pairs, False) | np.append(False, pairs))[filled])
    near = heavy[:, None] + np.arange(-_NEXT, _NEXT + 1)
    return np.asarray(filled[np.unique(np.clip(near, 0, len(filled) - 1))])


def _points_of_cells(problem: Problem) -> tuple[Pooled, Mask]:
    """Return the cells of a sketch, and which of them hold a single score."""
    cells, most = problem.pooled, _SPREAD * problem.cell_width
    is_single = np.asarray(cells.spread <= most)
    close = (np.diff(cells.score) <= most) & is_single[1:] & is_single[:-1]
    return _joined(cells, close), is_single[np.append(True, ~close)]


def _joined(pooled: Pooled, close: Mask) -> Pooled:
    """Return pooled rows, those joined whose score is close to the one before."""
    if not close.any():
        return pooled
    first = np.flatnonzero(np.append(True, ~close))
    sums = (pooled.rows, pooled.weight, pooled.weight_squared, pooled.true, pooled.residual)
    return Pooled(pooled.score[first], *np.add.reduceat(sums, first, axis=1))
