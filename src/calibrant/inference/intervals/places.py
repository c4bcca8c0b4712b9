"""Cells of scores within bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.binning import Bins
from calibrant.problem import CellOf, Index, Problem

_CELLS_PER_BIN, _FEW_BINS = 16, 512


@dataclass(frozen=True, eq=False)
class BinCells:
    """Cells within bins.

    Within a bin only the variance p(1 - p) varies: slowly, and in narrow bins hardly at all. Very
    many bins therefore have one cell each, and only those that hold rows.

    Attributes
    ----------
    cell_of
        Says where scores belong.
    n_bins, per_bin
        How many bins there are, and cells in each.
    """

    cell_of: CellOf
    n_bins: int
    per_bin: int

    @classmethod
    def of(cls, problem: Problem, bins: Bins) -> BinCells:
        """Return cells for the noise of sums over bins."""
        if bins.n_bins > _FEW_BINS:
            filled = problem.totals(bins, "rows")[0] > 0
            place = np.maximum(np.cumsum(filled) - 1, 0)
            return cls(lambda p: place[bins.index(p)], int(filled.sum()), 1)
        scale = _CELLS_PER_BIN / np.diff(bins.edges)

        def cell_of(p: FloatArray) -> Index:
            k = bins.index(p)
            part = ((p - bins.edges[k]) * scale[k]).astype(np.intp)
            return k * _CELLS_PER_BIN + np.clip(part, 0, _CELLS_PER_BIN - 1)

        return cls(cell_of, bins.n_bins, _CELLS_PER_BIN)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self.n_bins * self.per_bin
