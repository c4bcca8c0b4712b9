"""The bandwidth of a smooth reliability curve, by leave-one-out squared error of the residuals.

Residuals r = y - p are smoothed with the Gaussian K_s reflected at 0 and 1. The curve at scale s is
t + m_s(t), and what it predicts of row i from the others is closed:

    m_s(t)    = sum_j w_j K_s(t, p_j) r_j / sum_j w_j K_s(t, p_j) = R_s(t) / D_s(t)
    m_s^-i    = (R_s(p_i) - k r_i) / (D_s(p_i) - k),    k = w_i K_s(p_i, p_i)
    loss of s = sum_i w_i [(r_i - m_s^-i)^2 - r_i^2]

Let s_0 have the minimum loss, and let s_1 be the largest scale whose loss exceeds it by at most one
standard error of the difference of the two, which is paired row by row. Chosen is sqrt(s_0 s_1):
s_0 leaves curves jagged, s_1 smooths narrow deviations away. For calibrated predictions every scale
is unbiased and s_1 is the largest of all.

Where scores are so sparse that the others say nothing at scale s, the row is predicted at the next
larger scale. Rows that depend on each other in clusters are predicted from the other tenths of the
clusters. Rows are gathered in cells a fifth of the smallest scale wide: one pass, then the same
work for any n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant._base import FloatArray
from calibrant.data.problem import Index, Problem
from calibrant.inference.intervals import Cells, Clusters
from calibrant.measures.smooth import MIN_CURVE_BANDWIDTH
from calibrant.numerics import smoothing

# At this scale everything is smoothed to one constant; smaller ones are each this much less.
_LARGEST, _RATIO = 1.0, 0.8
_CELLS_PER_SCALE = 5
# Of the weight of one row at its own score: where the others count for less, they say nothing.
_NEGLIGIBLE = 1e-3
# Parts of the clusters, each predicted from the others.
_FOLDS = 10
# Losses differ by rounding, relative to the sum of squared residuals.
_ROUNDING = 1e-12


def cross_validated_bandwidth(problem: Problem, clusters: Clusters | None = None) -> float:
    """Return the bandwidth at which a curve predicts rows left out about as well as it can."""
    smallest = max(MIN_CURVE_BANDWIDTH, problem.finest_scale)
    n_scales = 1 + math.ceil(math.log(smallest / _LARGEST) / math.log(_RATIO))
    scales = np.geomspace(_LARGEST, smallest, n_scales)
    grid = _Grid(smoothing.fast_length(_CELLS_PER_SCALE / smallest), scales)
    if clusters is None:
        losses = _leave_one_out(grid, problem)
    else:
        losses = _leave_fold_out(grid, problem, clusters)
    return math.sqrt(math.prod(scales[[*losses.least()]]))


@dataclass(frozen=True, eq=False)
class _Units:
    """Rows of one cell that have nearly the same residual."""

    cell: Index
    residual: FloatArray
    weight: FloatArray
    weight_squared: FloatArray

    @classmethod
    def of(cls, cells: Cells) -> _Units:
        """Return the rows of either outcome in each cell; soft ones a deviation below and above."""
        cell, (weight, squares, _, residual, both) = _filled(cells.sides)
        mean = residual / weight
        if not cells.is_soft:
            return cls(cell, mean, weight, squares)
        spread = np.sqrt(np.maximum(both / squares - mean**2, 0.0))
        r = np.concatenate((mean - spread, mean + spread))
        return cls(np.tile(cell, 2), r, np.tile(weight / 2, 2), np.tile(squares / 2, 2))


def _filled(sides: FloatArray) -> tuple[Index, FloatArray]:
    """Return the cells of each filled side, and the sums there, (5, units)."""
    side, cell = np.nonzero(sides[0])
    return cell, sides[:, side, cell]


@dataclass(frozen=True, eq=False)
class _Grid:
    """Cells around the points 0, 1/N, ..., 1, and the scales at which they are smoothed."""

    n_steps: int
    scales: FloatArray

    def gather(self, problem: Problem) -> Cells:
        """Sum the rows over the cells."""
        return Cells.gather(problem, self._cell_of, self.n_steps + 1)

    def _cell_of(self, p: FloatArray) -> Index:
        return np.rint(p * self.n_steps).astype(np.intp)

    def smoothed(self, totals: FloatArray) -> FloatArray:
        """Return totals of cells smoothed at each scale, (scales, cells)."""
        from scipy.fft import dct

        # Of what this transform takes twice.
        inner = np.concatenate((totals[:1], totals[1:-1] / 2, totals[-1:]))
        a = np.broadcast_to(dct(inner, type=1), (len(self.scales), len(totals)))
        return smoothing.series_values(smoothing.damped(a, self.scales), self.n_steps)

    def diagonal(self) -> FloatArray:
        """Return K_s(t, t) = (k(0) + k(2t)) / 2 at the centre of each cell, k being of period 2."""
        kernel = self.smoothed(np.append(1.0, np.zeros(self.n_steps)))
        place = 2 * np.arange(self.n_steps + 1)
        return (kernel[:, :1] + kernel[:, np.minimum(place, 2 * self.n_steps - place)]) / 2


@dataclass(frozen=True, eq=False)
class _Losses:
    """The loss per weight of each scale, from the largest on, in independent units.

    `weight` and `weight_squared` are the sums of w and of w^2 in each unit.
    """

    each: FloatArray
    weight: FloatArray
    weight_squared: FloatArray

    def least(self) -> tuple[int, int]:
        """Return which scale has the minimum loss, and which is the largest within its error."""
        total = self.each @ self.weight
        best = int(np.argmin(total))
        error = np.sqrt(np.square(self.each - self.each[best]) @ self.weight_squared)
        rounding = _ROUNDING * float(np.abs(self.each[best]) @ self.weight)
        near = total - total[best] <= error + rounding
        return best, int(np.flatnonzero(near)[0])


def _leave_one_out(grid: _Grid, problem: Problem) -> _Losses:
    """Return the losses where each row is predicted from all others."""
    cells = grid.gather(problem)
    units = _Units.of(cells)
    density, residual, own = (
        v[:, units.cell]
        for v in (grid.smoothed(cells.weight), grid.smoothed(cells.residual), grid.diagonal())
    )
    own *= units.weight_squared / units.weight
    predicted = _ratio(residual - own * units.residual, density - own, own)
    return _Losses(
        _squared_error(units.residual, predicted), units.weight, units.weight_squared
    )


def _leave_fold_out(grid: _Grid, problem: Problem, clusters: Clusters) -> _Losses:
    """Return the losses where each tenth of the clusters is predicted from the others."""
    fold, losses = clusters.bundle % _FOLDS, []
    cells = grid.gather(problem)
    density, residual, own = cells.weight, cells.residual, grid.diagonal()
    for k in np.unique(fold):
        left_out = grid.gather(problem.rows.take(np.flatnonzero(fold == k)))
        units = _Units.of(left_out)
        predicted = _ratio(
            grid.smoothed(residual - left_out.residual)[:, units.cell],
            grid.smoothed(density - left_out.weight)[:, units.cell],
            own[:, units.cell] * units.weight_squared / units.weight,
        )
        losses.append(_squared_error(units.residual, predicted) @ units.weight)
    each = np.stack(losses, axis=1)
    return _Losses(each, np.ones(each.shape[1]), np.ones(each.shape[1]))


def _ratio(residual: FloatArray, density: FloatArray, own: FloatArray) -> FloatArray:
    """Return the mean residual at each scale, or at the next larger one where nothing is near."""
    known = density > _NEGLIGIBLE * own
    # Nothing is near at any scale where there is but one row.
    found = np.divide(residual, density, out=np.zeros_like(residual), where=known)
    last = np.maximum.accumulate(np.where(known, np.arange(len(known))[:, None], 0), axis=0)
    return np.take_along_axis(found, last, axis=0)


def _squared_error(residual: FloatArray, predicted: FloatArray) -> FloatArray:
    """Return by how much the squared error of predicted residuals exceeds that of none."""
    return predicted * (predicted - 2 * residual)
