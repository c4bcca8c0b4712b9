"""Residuals smoothed along the scores: the scale that varies with their density, and its choice.

Where scores crowd together, as those of confident models do near 0 and 1, outcomes can be resolved
finely; where they are sparse a kernel as narrow would see a row or two. So scores are smoothed at

    u = G(p) = 0.1 p + 0.9 F(p),   F(p) the fraction of rows with smaller scores,

with the Gaussian K_s reflected at 0 and 1: nearly over ranks, so that every window holds enough
rows, yet scores far apart are not neighbours. For evenly spread scores u is p. G depends on scores
alone: calibrated predictions are unbiased at every scale here, too. The scale s is chosen by the
leave-one-out squared error of the residuals r = y - p, whose closed form is

    m_s(u)    = sum_j w_j K_s(u, u_j) r_j / sum_j w_j K_s(u, u_j) = R_s(u) / D_s(u)
    m_s^-i    = (R_s(u_i) - k r_i) / (D_s(u_i) - k),    k = w_i K_s(u_i, u_i)
    loss of s = sum_i w_i [(r_i - m_s^-i)^2 - r_i^2].

Let s_0 have the minimum loss, and let s_1 be the largest scale whose loss exceeds it by at most one
standard error of the difference of the two, which is paired row by row. Chosen is sqrt(s_0 s_1):
s_0 leaves curves jagged, s_1 smooths narrow deviations away. For calibrated predictions s_1 is
mostly the largest scale of all.

Where scores are so sparse that the others say nothing at scale s, the row is predicted at the next
larger scale. Rows that depend on each other in clusters are predicted from the other tenths of the
clusters. Rows are gathered in cells a fifth of the smallest scale wide: two passes, then the same
work for any n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant._base import FloatArray
from calibrant.data.problem import Index, Problem
from calibrant.inference.cell_noise import Cells, Clusters
from calibrant.measures.smooth import MIN_CURVE_BANDWIDTH
from calibrant.numerics import smoothing
from calibrant.numerics.smoothing import Axis

# The fraction of ranks in the place of a score, and the number of scores between which they are
# taken to be linear.
_RANKS, _KNOTS = 0.9, 64
_DISTINCT = 1e-200
# The smallest scale has so many rows, each counted by four times its squared residual unless soft,
# and a window at this scale three and a half times as many.
_ROWS = 5.0
# At this scale everything is smoothed to one constant; smaller ones are each this much less.
_LARGEST, _RATIO = 1.0, 0.8
_CELLS_PER_SCALE = 5
# Of the weight of one row at its own score: where the others count for less, they say nothing.
_NEGLIGIBLE = 1e-3
# Parts of the clusters, each predicted from the others.
_FOLDS = 10
# Losses differ by rounding, relative to the sum of squared residuals.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ScoreAxis:
    """The interval of u = 0.1 p + 0.9 F(p), linear between some of the scores.

    `score` and `place` are p and u there, both increasing from 0 to 1.
    """

    score: FloatArray
    place: FloatArray
    length = 1.0

    @classmethod
    def of(cls, problem: Problem) -> ScoreAxis:
        """Return the axis of a problem's scores; equal ones have the middle of their ranks."""
        score, first, rows = np.unique(problem.scores, return_index=True, return_counts=True)
        rank = first + rows / 2
        rank -= rank[0]
        fraction = rank / rank[-1] if len(rank) > 1 else np.zeros(1)
        kept = np.unique(np.linspace(0, len(score) - 1, _KNOTS).astype(np.intp))
        score, fraction = score[kept], fraction[kept]
        known = np.concatenate(([0.0], score, [1.0])), np.concatenate(([0.0], fraction, [1.0]))
        # Slopes between scores that differ by next to nothing would overflow.
        apart = np.append(True, np.diff(known[0]) > _DISTINCT)
        p, below = (v[apart] for v in known)
        return cls(p, p + _RANKS * (below - p))

    def fractions(self, u: FloatArray) -> FloatArray:
        """Return where scores lie in the interval."""
        return np.interp(u, self.score, self.place)

    def positions(self, fraction: FloatArray) -> FloatArray:
        """Return the scores at fractions of the interval."""
        return np.interp(fraction, self.place, self.score)


def cross_validated_bandwidth(
    problem: Problem, axis: Axis, clusters: Clusters | None = None
) -> float:
    """Return the scale at which smoothed residuals predict rows left out about best."""
    rows = float(problem.n)
    if not problem.is_soft:
        # Rows that are as good as certain say little: a coin toss is a whole one.
        rows = max(4 * rows * problem.squared_error() / problem.weight, 1.0)
    smallest = min(max(MIN_CURVE_BANDWIDTH, problem.finest_scale, _ROWS / rows), _LARGEST)
    n_scales = 2 + int(math.log(smallest / _LARGEST) / math.log(_RATIO))
    scales = np.geomspace(_LARGEST, smallest, n_scales)
    grid = _Grid(axis, smoothing.fast_length(_CELLS_PER_SCALE / smallest), scales)
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
    """Cells around the points 0, 1/N, ..., 1 of an axis, and the scales that smooth them."""

    axis: Axis
    n_steps: int
    scales: FloatArray

    def gather(self, problem: Problem) -> Cells:
        """Sum the rows over the cells."""
        return Cells.gather(problem, self._cell_of, self.n_steps + 1)

    def _cell_of(self, p: FloatArray) -> Index:
        return np.rint(self.axis.fractions(p) * self.n_steps).astype(np.intp)

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
    return _Losses(_squared_error(units.residual, predicted), units.weight, units.weight_squared)


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
