"""Point masses: single scores with so many rows that diagrams mark them one by one.

Where there are few distinct scores, each is a point mass. Among many, a score is one if it holds a
twentieth of the weight, at least thirty rows, and ten times as many as the scores next to it: of
rounded scores, all of which hold many rows, none need stand out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray, TabularResult
from calibrant.data.binning import UniformBins
from calibrant.data.problem import Index, Pooled, Problem

Mask = npt.NDArray[np.bool_]

# Up to this many distinct scores, with at least so many rows per score on average, are all marked.
_MAX_FEW, _MIN_MEAN_ROWS = 20, 5
# Among more, a mass has at least this fraction of the weight, this many rows, and this many times
# the median number of rows of its neighbours, of which there are so many on either side.
_MIN_FRACTION, _MIN_ROWS, _MIN_RATIO, _NEIGHBOURS = 0.05, 30, 10.0, 2
# Rows are sorted only in those of so many bins that may hold a mass: in most samples none.
_BINS = 10_000
# Scores that differ by less than this fraction of themselves differ by rounding.
_ROUNDING = 2.0**-50
# A cell of a sketch holds one score if its rows have at most this standard deviation, in widths.
_MAX_SPREAD = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class PointMasses(TabularResult):
    """Single scores that many rows have, each with its mean outcome.

    Attributes
    ----------
    score
        The scores, increasing.
    outcome
        The mean outcome at each score.
    share
        The fraction of the total weight at each score.
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
        """Return the same masses with outcome - score in place of the outcome."""
        return replace(self, outcome=self.outcome - self.score)

    def where(self, kept: Mask) -> PointMasses:
        """Return some of the masses."""
        return replace(
            self, score=self.score[kept], outcome=self.outcome[kept], share=self.share[kept]
        )


def point_masses(problem: Problem) -> PointMasses:
    """Return the point masses of a problem; of a sketch, those that it can resolve."""
    points, is_single = _points_of_rows(problem) if problem.is_exact else _points_of_cells(problem)
    rows, weight, true = points.rows, points.weight, points.true
    is_all = bool(is_single.all() and rows.sum() == problem.n) and are_few(rows)
    kept = is_single & is_all
    if not is_all:
        is_large = (weight >= _MIN_FRACTION * problem.weight) & (rows >= _MIN_ROWS)
        for k in np.flatnonzero(is_single & is_large):
            around = np.r_[rows[max(k - _NEIGHBOURS, 0) : k], rows[k + 1 : k + 1 + _NEIGHBOURS]]
            kept[k] = len(around) == 0 or rows[k] >= _MIN_RATIO * np.median(around)
    weight = weight[kept]
    return PointMasses(points.score[kept], true[kept] / weight, weight / problem.weight, is_all)


def are_few(rows: npt.NDArray[np.number]) -> bool:
    """Tell whether scores with these numbers of rows are few enough to be marked one by one."""
    return len(rows) <= _MAX_FEW and bool(rows.sum() >= _MIN_MEAN_ROWS * len(rows))


def _points_of_rows(problem: Problem) -> tuple[Pooled, Mask]:
    """Return the scores in and next to bins that may hold a mass; all, where they are few."""
    bins = UniformBins.of(_BINS)
    (weight,) = problem.totals(bins, "weight")
    filled = np.flatnonzero(weight)
    # Rounding may divide each of a few scores between two bins.
    if len(filled) <= 2 * _MAX_FEW:
        chosen = filled
    else:
        pairs = weight[:-1] + weight[1:] >= _MIN_FRACTION * weight.sum()
        heavy = np.flatnonzero((np.append(pairs, False) | np.append(False, pairs))[filled])
        near = heavy[:, None] + np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1)
        chosen = filled[np.unique(np.clip(near, 0, len(filled) - 1))]
    if len(chosen) == 0:
        return Pooled(*np.empty((6, 0))), np.empty(0, dtype=bool)
    # The pooling of all rows is computed once and kept.
    is_all = len(chosen) == len(filled)
    pooled = problem.rows.pooled if is_all else _pooled_in(problem, bins, chosen)
    close = np.diff(pooled.score) <= _ROUNDING * pooled.score[1:]
    points = _joined(pooled, close)
    return points, np.ones(len(points.score), dtype=bool)


def _pooled_in(problem: Problem, bins: UniformBins, chosen: Index) -> Pooled:
    """Return the rows of some bins pooled by score."""
    is_chosen = np.zeros(bins.n_bins, dtype=bool)
    is_chosen[chosen] = True
    is_in = np.concatenate([is_chosen[bins.index(p)] for p, _, _ in problem.rows.blocks()])
    return problem.rows.take(np.flatnonzero(is_in)).pooled


def _points_of_cells(problem: Problem) -> tuple[Pooled, Mask]:
    """Return the cells of a sketch, and which of them hold a single score."""
    cells, most = problem.pooled, _MAX_SPREAD * problem.cell_width
    is_single = np.asarray(cells.spread <= most)
    close = (np.diff(cells.score) <= most) & is_single[1:] & is_single[:-1]
    return _joined(cells, close), is_single[np.append(True, ~close)]


def _joined(pooled: Pooled, close: Mask) -> Pooled:
    """Return pooled rows with each score that is close to the one before joined to it."""
    if not close.any():
        return pooled
    first = np.flatnonzero(np.append(True, ~close))
    _, *sums = pooled.columns()
    return Pooled(pooled.score[first], *np.add.reduceat(sums, first, axis=1))
