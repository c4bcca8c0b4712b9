"""Local regression of residuals on scores, as a matrix: loess as R has it, and kernel means.

A smoother is linear in the outcomes: the curve at points t is L y, for a matrix L that depends on
the scores alone. Loess fits at each t a polynomial of degree 2 to the nearest part of the rows by
least squares, with weights w (1 - u^3)^3, u being the distance from t over that of the farthest of
them (Cleveland, 1979). It reproduces the scores themselves, L p = p, so that the curve of outcomes
less the diagonal is the curve of residuals, L y - p = L (y - p).

Up to `DIRECT` distinct scores the fit is made at each of them. Beyond, rows are added up in cells,
half of them of equal weight and half of equal width, the fit is made at the mean scores of the
cells, in windows as wide as those of the rows, and interpolated linearly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray

SPAN = 0.75
# More distinct scores than these are added up in so many cells.
DIRECT, _CELLS = 1000, 800
# Of the largest eigenvalue of the moments of a local fit, what smaller ones are taken for rounding.
_SINGULAR = 1e-12
# Rounding of sums of weights, and bisections that leave nothing of an interval.
_ROUNDING, _BISECTIONS = 1e-12, 60


class Smoother(Protocol):
    """A smoother of values at sorted scores that depends on the scores alone."""

    def reach(self, x: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
        """Return the bandwidth at each point."""

    def matrix(
        self, x: FloatArray, weight: FloatArray, at: FloatArray, reach: FloatArray
    ) -> FloatArray:
        """Return the weight of each value at each point, shape (points, scores)."""


@dataclass(frozen=True)
class Loess:
    """Local regression of degree 2; windows hold floor(span n) of n rows, or as much weight."""

    n_rows: int
    span: float = SPAN

    def reach(self, x: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
        """Return the smallest distance from each point within which lies so much of the weight."""
        running = np.concatenate(([0.0], np.cumsum(weight)))
        held = max(math.floor(self.span * self.n_rows + 1e-5), 1) / self.n_rows
        target = held * running[-1] * (1 - _ROUNDING)
        low, high = np.zeros(len(at)), np.maximum(at - x[0], x[-1] - at)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            first, last = _window(x, at, middle)
            enough = running[last] - running[first] >= target
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        first, last = _window(x, at, high)
        # Exactly the distance of the farthest score, and none where it is the point itself.
        return np.maximum(at - x[first], x[last - 1] - at)

    def matrix(
        self, x: FloatArray, weight: FloatArray, at: FloatArray, reach: FloatArray
    ) -> FloatArray:
        """Return the first row of (X' K X)^-1 X' K at each point, X = (1, u, u^2), K weights."""
        wide = reach[:, None]
        # A window of a single score has no width: its mean is the fit.
        u = (x - at[:, None]) / np.where(wide > 0, wide, 1.0)
        cubes = np.abs(u)
        cubes *= cubes * cubes
        kernel = np.maximum(1 - cubes, 0.0)
        kernel *= kernel * kernel
        kernel = weight * np.where(wide > 0, kernel, u == 0)
        part, sums = kernel, [kernel.sum(axis=1)]
        for _ in range(4):
            part = part * u
            sums.append(part.sum(axis=1))
        moments = np.array([[sums[i + j] for j in range(3)] for i in range(3)])
        a, b, c = _first_row_of_inverse(np.moveaxis(moments, 2, 0)).T[:, :, None]
        return np.asarray(kernel * (a + u * (b + u * c)))


@dataclass(frozen=True)
class GaussianMeans:
    """Weighted means with the Gaussian kernel, reflected at 0 and 1."""

    bandwidth: float

    def reach(self, x: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
        """Return the bandwidth at each point, everywhere the same."""
        return np.full(len(at), self.bandwidth)

    def matrix(
        self, x: FloatArray, weight: FloatArray, at: FloatArray, reach: FloatArray
    ) -> FloatArray:
        """Return the kernel weights of the scores at each point, which sum to 1."""
        kernel = np.zeros((len(at), len(x)))
        for mirrored in (x, -x, 2 - x):
            kernel += np.exp(-0.5 * ((at[:, None] - mirrored) / reach[:, None]) ** 2)
        kernel *= weight
        return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def smoothed_at_scores(
    smoother: Smoother, x: FloatArray, weight: FloatArray, value: FloatArray
) -> FloatArray:
    """Return mean values at sorted scores smoothed, at each of the scores."""
    if len(x) <= DIRECT:
        return np.asarray(smoother.matrix(x, weight, x, smoother.reach(x, weight, x)) @ value)
    cells = ScoreCells.of(x, weight, _CELLS)
    knots = np.unique(np.concatenate((x[:1], cells.score, x[-1:])))
    matrix = smoother.matrix(cells.score, cells.weight, knots, smoother.reach(x, weight, knots))
    return np.interp(x, knots, matrix @ cells.means(weight, value))


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Cells of sorted scores, none of them without any.

    Attributes
    ----------
    edges
        The edges between neighbouring cells; a cell holds its left edge.
    starts
        The first score of each cell.
    score, weight
        The mean score and the weight of each.
    """

    edges: FloatArray
    starts: npt.NDArray[np.intp]
    score: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, x: FloatArray, weight: FloatArray, n_cells: int) -> ScoreCells:
        """Return at most so many cells, half of equal weight and half of equal width."""
        fraction = np.arange(1, n_cells // 2) / (n_cells // 2)
        running = np.cumsum(weight)
        by_weight = x[np.searchsorted(running, fraction * running[-1])]
        edges = np.union1d(by_weight, x[0] + fraction * (x[-1] - x[0]))
        starts = np.flatnonzero(np.diff(np.searchsorted(edges, x, side="right"), prepend=-1))
        held = np.add.reduceat(weight, starts)
        return cls(x[starts[1:]], starts, np.add.reduceat(weight * x, starts) / held, held)

    def means(self, weight: FloatArray, value: FloatArray) -> FloatArray:
        """Return the mean of values at the scores in each cell."""
        return np.asarray(np.add.reduceat(weight * value, self.starts) / self.weight)

    def index(self, p: FloatArray) -> npt.NDArray[np.intp]:
        """Return the cell that holds each score."""
        return np.searchsorted(self.edges, p, side="right")


def _window(
    x: FloatArray, at: FloatArray, reach: FloatArray
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.searchsorted(x, at - reach), np.searchsorted(x, at + reach, side="right")


def _first_row_of_inverse(moments: FloatArray) -> FloatArray:
    """Return the first row of the pseudoinverse of each matrix, its columns scaled alike."""
    scale = np.sqrt(np.einsum("nii->ni", moments))
    scale = np.where(scale > 0, scale, 1.0)
    unit = moments / (scale[:, :, None] * scale[:, None, :])
    inverse = np.linalg.pinv(unit, rcond=_SINGULAR, hermitian=True)
    return np.asarray(inverse[:, 0] / (scale * scale[:, :1]))
