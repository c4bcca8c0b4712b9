"""Effective sample sizes of the windows of a curve.

A weighted proportion m = sum k w y / sum k w whose noise has variance V has the effective sample
size n = m(1 - m) / V: a plain proportion of so many rows has the same variance. For 0/1 outcomes of
independent rows that is (sum k w)^2 / sum (k w)^2. Soft labels, whose noise is known from residuals
alone, often have a larger one than there are rows; clusters have a smaller one (Korn and Graubard,
1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.curves.windows import Windows
from calibrant.inference.noise import Cells, Clusters
from calibrant.problem import CellOf, Problem


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """The weight and the outcomes of each bundle of clusters in each cell, (bundles, cells)."""

    weight: FloatArray
    true: FloatArray
    n_clusters: int

    @classmethod
    def gather(
        cls, problem: Problem, cell_of: CellOf, n_cells: int, clusters: Clusters
    ) -> ClusterSums:
        """Gather them in one pass."""
        n_bundles, start = int(clusters.bundle.max()) + 1, 0
        sums = np.zeros((2, n_bundles * n_cells))
        for p, y, given in problem.rows.blocks():
            rows = slice(start, start + len(p))
            start = rows.stop
            w = clusters.sign[rows] if given is None else given * clusters.sign[rows]
            place = clusters.bundle[rows] * n_cells + cell_of(p)
            np.add.at(sums[0], place, w)
            np.add.at(sums[1], place, w * y)
        weight, true = sums.reshape(2, n_bundles, n_cells)
        return cls(weight, true, clusters.n)

    def design_effect(self, moved: FloatArray, variance: FloatArray) -> FloatArray:
        """Return how much more the noise of windows varies than independent rows' would.

        `moved` holds the residuals of each bundle in each window, (bundles, windows), and
        `variance` the sum of the rows' squared ones. It counts as 1 at least.
        """
        together = np.square(moved).sum(axis=0) * (self.n_clusters / (self.n_clusters - 1))
        effect = np.divide(together, variance, out=np.ones_like(variance), where=variance > 0)
        return np.asarray(np.maximum(effect, 1.0))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Cells seen through windows.

    Attributes
    ----------
    cells, windows
        The rows, and what they count where.
    clusters
        Their clusters, where rows are not independent.
    """

    cells: Cells
    windows: Windows
    clusters: ClusterSums | None = None

    @cached_property
    def weight(self) -> FloatArray:
        """Sum of k w."""
        return self.windows.sums(self.cells.weight)

    @cached_property
    def mean_true(self) -> FloatArray:
        """The proportion of events."""
        cells = self.cells
        pred: FloatArray = cells.sides[2].sum(axis=0)
        return self._mean(cells.residual + pred)

    @cached_property
    def mean_pred(self) -> FloatArray:
        """The proportion of events to expect under perfect calibration."""
        return self._mean(np.asarray(self.cells.sides[2].sum(axis=0)))

    def rows(self, share: FloatArray) -> FloatArray:
        """Return the effective sample size of an observed proportion of events."""
        rows = self.weight**2 / self._squares
        if not self.cells.is_soft and self.clusters is None:
            return rows
        # Half an event and half a non-event more: known not to be 0 or 1.
        near = (share * rows + 0.5) / (rows + 1)
        seen = self._seen_variance(near)
        if self.cells.is_soft:
            rows = near * (1 - near) * self.weight**2 / (seen + self._unseen)
        if self.clusters is None:
            return rows
        moved = self.windows.sums(self.clusters.true)
        moved -= near * self.windows.sums(self.clusters.weight)
        return rows / self.clusters.design_effect(moved, seen)

    def calibrated_rows(self, share: FloatArray) -> FloatArray:
        """Return the effective sample size of the proportion expected under perfect calibration.

        Infinitely many where predictions are certain.
        """
        variance = self.windows.square_sums(self.cells.calibrated_variance)
        if self.cells.is_soft:
            variance = variance + self._unseen
        if self.clusters is not None:
            seen = self.windows.square_sums(self.cells.residual_squared)
            residual = self.clusters.true - self.cells.score * self.clusters.weight
            variance = variance * self.clusters.design_effect(self.windows.sums(residual), seen)
        certain = np.full_like(variance, np.inf)
        total = share * (1 - share) * self.weight**2
        return np.divide(total, variance, out=certain, where=variance > 0)

    @cached_property
    def _squares(self) -> FloatArray:
        """Sum of (k w)^2."""
        return self.windows.square_sums(self.cells.weight_squared)

    @cached_property
    def _unseen(self) -> FloatArray:
        """The most that one row more could add to the variance of soft labels: it lies in [0, 1].

        Without it one soft row, which shows no variance, would be certainty.
        """
        return (self._squares / self.weight) ** 2 / 4

    def _mean(self, of_cells: FloatArray) -> FloatArray:
        return np.clip(self.windows.sums(of_cells) / self.weight, 0.0, 1.0)

    def _seen_variance(self, share: FloatArray) -> FloatArray:
        """Return the sum of (k w)^2 (y - share)^2, from cells narrow enough to have one score."""
        cells, score = self.cells, self.cells.score
        per_weight = np.divide(
            cells.weight_squared, cells.weight, out=np.zeros_like(score), where=cells.weight > 0
        )
        moved = per_weight * cells.residual
        squared = cells.residual_squared + score * (2 * moved + score * cells.weight_squared)
        mixed = moved + score * cells.weight_squared
        total = self.windows.square_sums(squared)
        total += share * (share * self._squares - 2 * self.windows.square_sums(mixed))
        return np.maximum(total, 0.0)
