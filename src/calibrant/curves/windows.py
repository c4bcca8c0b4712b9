"""Windows: the weight of each narrow cell of scores at each point of a curve.

Every curve is a ratio of two sums over windows, sum k w y / sum k w. What a band needs beyond that
are sums of squares, which its noise has for variance, and how far windows overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from calibrant.arrays import FloatArray
from calibrant.numerics import smoothing
from calibrant.numerics.smoothing import Kernel
from calibrant.problem import Index

# Where a Gaussian has nothing left.
_REACH = 8.6


class Windows(Protocol):
    """Sums over the cells in each window; (..., cells) becomes (..., windows)."""

    def sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k v in each window."""

    def square_sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k^2 v in each window."""


@dataclass(frozen=True, eq=False)
class Spans:
    """Windows that hold the cells from `start` up to `end`, whole."""

    start: Index
    end: Index

    def sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of v in each span."""
        # Span by span: differences of running sums would lose light rows among heavy ones.
        padded = np.concatenate((of_cells, np.zeros((*of_cells.shape[:-1], 1))), axis=-1)
        ends = np.stack((self.start, self.end), axis=1).reshape(-1)
        return np.asarray(np.add.reduceat(padded, ends, axis=-1)[..., ::2])

    square_sums = sums


@dataclass(frozen=True, eq=False)
class KernelWindows:
    """A kernel around each of some points.

    Attributes
    ----------
    shares
        The weight of each cell in each window: a sparse matrix, one row per window.
    """

    shares: csr_array

    @classmethod
    def around(
        cls, t: FloatArray, score: FloatArray, scale: float, kernel: Kernel
    ) -> KernelWindows:
        """Return a kernel's windows around points t of [0, 1], mirrored at both ends.

        Cells divide [0, 1] evenly and lie at their mean `score`. In cosines the mirrored kernel is

            K(t, s) = (k(t - s) + k(t + s)) / 2,    k(d) = 1 + 2 sum_j m_j cos(pi j d),

        m_j being its multipliers: an even function of period 2, tabled over half a period.
        """
        n_cells = len(score)
        width = min(int(2 * _REACH * scale * n_cells) + 2, n_cells)
        first = np.clip(((t - _REACH * scale) * n_cells).astype(np.intp), 0, n_cells - width)
        cell = first[:, None] + np.arange(width)
        table = _kernel_table(scale, kernel)
        s, at = score[cell], t[:, None]
        shares = (_looked_up(table, np.abs(at - s)) + _looked_up(table, 1 - np.abs(1 - at - s))) / 2
        ends = width * np.arange(len(t) + 1)
        matrix = (shares.reshape(-1), cell.reshape(-1), ends)
        return cls(csr_array(matrix, shape=(len(t), n_cells)))

    def sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k v in each window."""
        return np.asarray((self.shares @ of_cells.T).T)

    def square_sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k^2 v in each window."""
        return np.asarray((self._squares @ of_cells.T).T)

    def arcs(self, variance: FloatArray) -> FloatArray:
        """Return the angle between the noise of each window and that of the next.

        Noise in the same rows has angle 0, in different rows a right angle.
        """
        own = self.square_sums(variance)
        shared = self.shares[:-1].multiply(self.shares[1:]) @ variance
        # Each by itself: the product of two may be beyond all numbers.
        root = np.sqrt(own)
        scale = root[:-1] * root[1:]
        cosines = np.divide(shared, scale, out=np.ones_like(scale), where=scale > 0)
        return np.asarray(np.arccos(np.minimum(cosines, 1.0)))

    @cached_property
    def _squares(self) -> csr_array:
        return self.shares.power(2)


def _kernel_table(scale: float, kernel: Kernel) -> FloatArray:
    modes = smoothing.n_modes(scale / kernel.roughness)
    multipliers = smoothing.filtered(np.ones(modes + 1), scale, kernel.multiplier)
    # What is left of waves where a compact kernel ends is no weight.
    return np.maximum(
        smoothing.series_values(multipliers, smoothing.grid_points(scale, modes)), 0.0
    )


def _looked_up(table: FloatArray, distance: FloatArray) -> FloatArray:
    """Return a table over [0, 1] at distances, linear between its points."""
    place = distance * (len(table) - 1)
    left = np.minimum(place.astype(np.intp), len(table) - 2)
    at_left = table[left]
    return np.asarray(at_left + (table[left + 1] - at_left) * (place - left))
