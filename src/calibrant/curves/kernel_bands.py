"""Bands around kernel estimates: from cells a fraction of the bandwidth wide, whatever n."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.binning import UniformBins
from calibrant.curves.bands import Band, Limits
from calibrant.curves.evidence import Evidence
from calibrant.curves.windows import KernelWindows
from calibrant.errors import CalibrantError
from calibrant.inference.noise import Cells
from calibrant.numerics.probability import rice_tail
from calibrant.numerics.smoothing import Axis, Kernel
from calibrant.problem import Index, Problem
from calibrant.results.curves import Curve

# Rows gathered in cells a fifth of the bandwidth wide are as good as smoothed by 0.2% more.
_CELLS_PER_SCALE, _FEWEST_CELLS = 5, 64
# More cells than these, for each of a thousand bundles of clusters, would fill the memory.
_MOST_CLUSTER_CELLS = 5000


@dataclass(frozen=True)
class Grid:
    """Even cells over the interval that holds the scores."""

    axis: Axis
    n_cells: int

    @classmethod
    def under(cls, curve: Curve, axis: Axis) -> Grid:
        """Return cells narrow enough for a curve's bandwidth."""
        wanted = _CELLS_PER_SCALE * axis.length / curve.bandwidth
        return cls(axis, max(round(wanted), _FEWEST_CELLS))

    def unit(self, p: FloatArray) -> FloatArray:
        """Return scores as fractions of the interval."""
        return np.clip(self.axis.fractions(p), 0.0, 1.0)

    def cell_of(self, p: FloatArray) -> Index:
        """Return the cell of each score."""
        return self._bins.index(self.unit(p))

    @cached_property
    def _bins(self) -> UniformBins:
        return UniformBins.of(self.n_cells)

    def windows(self, curve: Curve, cells: Cells, kernel: Kernel) -> KernelWindows:
        """Return the kernel around each point of a curve where that is known."""
        t, scale = curve.x[~np.isnan(curve.y)], curve.bandwidth / self.axis.length
        return KernelWindows.around(self.unit(t), self.unit(cells.score), scale, kernel)


def kernel_limits(problem: Problem, curve: Curve, axis: Axis, kernel: Kernel, band: Band) -> Limits:
    """Return the limits of the share of events around each point; nan where that is not known."""
    grid = Grid.under(curve, axis)
    if band.clusters is not None and grid.n_cells > _MOST_CLUSTER_CELLS:
        least = _CELLS_PER_SCALE * axis.length / _MOST_CLUSTER_CELLS
        raise CalibrantError(
            "must be at least {minimum:.2g} where {clusters} is given",
            argument="bandwidth",
            value=curve.bandwidth,
            found="{given:.2g}",
            minimum=least,
            given=curve.bandwidth,
        )
    cells = Cells.gather(problem, grid.cell_of, grid.n_cells)
    windows = grid.windows(curve, cells, kernel)
    clusters = band.cluster_sums(problem, grid.cell_of, grid.n_cells)
    tail = band.tail(lambda level: rice_tail(level, windows.arcs(cells.weight_squared)))
    known = ~np.isnan(curve.y)
    lower, upper = np.full_like(curve.x, np.nan), np.full_like(curve.x, np.nan)
    evidence = Evidence(cells, windows, clusters)
    lower[known], upper[known] = band.limits(evidence, curve.y[known], tail)
    return lower, upper
