"""Single places that hold so many rows that they are marked by themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray, IntArray
from calibrant.results.tables import BinTable

__all__ = ["Places", "marked_places"]

# Up to so many places, each of several rows on average, are all marked.
_FEW, _SEVERAL_ROWS = 20, 5
# Among more, a place is marked that holds this share of the weight, no fewer rows than this, and so
# many times as many as each of the two next to it on either side, on average.
_LARGE, _MANY_ROWS, _TIMES, _NEXT = 0.05, 10, 10.0, 2
# Bins next to each other whose means are closer than this share of their widths are one place: a
# score on the edge between them, rounded either way.
_CLOSE = 0.2


@dataclass(frozen=True, eq=False)
class Places:
    """Narrow places among the scores, each with the mean outcome there.

    Attributes
    ----------
    score, outcome
        The mean score and the mean outcome of each place.
    share
        The share of all rows that it holds, by weight.
    is_all
        Whether there are no other rows.
    """

    score: FloatArray
    outcome: FloatArray
    share: FloatArray
    is_all: bool

    def less_scores(self) -> Places:
        """Return the same places with outcomes less scores."""
        return replace(self, outcome=self.outcome - self.score)

    def where(self, kept: npt.NDArray[np.bool_]) -> Places:
        """Return some of the places."""
        return replace(
            self, score=self.score[kept], outcome=self.outcome[kept], share=self.share[kept]
        )


def marked_places(table: BinTable) -> Places:
    """Return the places to be marked: each where there are few, else those that stand out."""
    first = _first_bins(table)
    end = np.append(first[1:], len(table.n))
    columns = (
        table.n,
        table.weight,
        table.weight * table.mean_pred,
        table.weight * table.mean_true,
    )
    sums = np.add.reduceat(np.nan_to_num(columns), first, axis=1)
    filled = sums[1] > 0
    n, weight, pred, true = sums[:, filled]
    share = weight / weight.sum()
    is_all = len(n) <= _FEW and n.sum() >= _SEVERAL_ROWS * len(n)
    kept = np.full(len(n), is_all)
    if not is_all:
        for k in np.flatnonzero((share >= _LARGE) & (n >= _MANY_ROWS)):
            kept[k] = _stands_out(table.n, first[filled][k], end[filled][k])
    return Places((pred / weight)[kept], (true / weight)[kept], share[kept], is_all)


def _first_bins(table: BinTable) -> IntArray:
    """Return the first bin of each place."""
    width = np.diff(table.edges)
    with np.errstate(invalid="ignore"):
        close = np.diff(table.mean_pred) <= _CLOSE * np.minimum(width[1:], width[:-1])
    return np.flatnonzero(np.append(True, ~close))


def _stands_out(n: IntArray, first: int, end: int) -> bool:
    """Tell whether bins from first to end hold far more rows than each of those next to them."""
    around = np.r_[n[max(first - _NEXT, 0) : first], n[end : end + _NEXT]]
    # Chance may have left them three standard deviations short of what they would hold.
    most = around.sum() + 3 * np.sqrt(around.sum() + 1)
    return bool(n[first:end].sum() >= _TIMES * most / len(around))
