"""A sketch as a problem that measures can ask, with bounds on the error of its answers.

A row at offset d from its cell's centre is represented by its terms of order 0, 1 and 2 in d.
Smoothed by a Gaussian whose scale is s cells, the remainder has L1 norm at most

    c_3 / (32 s^3),   c_q = E abs(He_q(Z)) / q!,

as in :mod:`calibrant.numerics.smoothing`. Its prediction, expanded in the same way, lacks multiples
of abs(d)^3 <= d^2 / 2, whose sum over the rows is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from calibrant._base import FloatArray
from calibrant.data.problem import (
    MOST_SCORES,
    Assignment,
    CellOf,
    Line,
    Pooled,
    Problem,
    Quantity,
    with_extremes,
)
from calibrant.data.rows import Sample
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import (
    ABOVE,
    AT_ONE,
    AT_ZERO,
    BELOW,
    LOGIT_REACH,
    N_OUTER,
    CellTable,
)
from calibrant.errors import SketchError
from calibrant.numerics import smoothing
from calibrant.numerics.smoothing import GAUSSIAN_RADIUS, LineSpectrum, Span

# Upper bounds of E abs(He_q(Z)) / q! for q = 1, 2, 3.
_C1, _C2, _C3 = 0.80, 0.49, 0.26
# The rounding error of the FFT and of integration.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SketchProblem(Problem):
    """One binary problem known by the cells of a sketch on either scale."""

    sketch: Sketch

    @property
    def rows(self) -> Sample:
        """Refused, and with it every question that is not answered from cells."""
        raise SketchError(
            "a sketch does not know single rows, nor their order within a cell: give the rows, "
            "y_true and y_prob"
        )

    @property
    def _table(self) -> CellTable:
        return self.sketch.table

    @cached_property
    def n(self) -> int:
        return self._table.n

    @cached_property
    def weight(self) -> float:
        return self.sketch.weight

    @property
    def is_weighted(self) -> bool:
        return self._table.is_weighted

    @property
    def is_soft(self) -> bool:
        return self._table.is_soft

    @property
    def cell_width(self) -> float:
        """The width of a cell, on the scale of the sketch over its range."""
        return 1 / self.sketch.n_cells

    @cached_property
    def scores(self) -> FloatArray:
        """Sorted scores, those of a cell at its centre: all of them, or tens of thousands."""
        centre, _ = self._cells
        order = np.argsort(centre, kind="stable")
        rows = self._table.rows[order]
        n = min(self.n, MOST_SCORES)
        rank = np.floor(np.arange(n) / n * self.n)
        found = centre[order][np.searchsorted(np.cumsum(rows), rank, side="right")]
        return found if n == self.n else with_extremes(found, centre[order][rows > 0])

    def cell_sums(self, cell_of: CellOf, n_cells: int) -> FloatArray:
        """Return sums over the rows of any cells of scores, shape (5, 2, n_cells).

        Rows are taken to be at the centres of their cells. Soft rows are known only as weight on
        either outcome, as if outcomes had been drawn: this overstates their noise.
        """
        cell = cell_of(self._cells[0])
        sums = [np.bincount(cell, v, minlength=n_cells) for v in self._own_sums.reshape(10, -1)]
        return np.asarray(np.stack(sums).reshape(5, 2, n_cells), dtype=np.float64)

    @cached_property
    def _own_sums(self) -> FloatArray:
        """The sums of `cell_sums` over each cell of the sketch."""
        weight, (_, pred) = self._table.weight, self._cells
        total: FloatArray = weight.sum(axis=0)
        squares = self._table.squares
        per_weight = np.divide(squares, total, out=np.zeros_like(total), where=total > 0)
        residual = weight * [[0.0], [1.0]] - pred
        mean = np.divide(residual, weight, out=np.zeros_like(weight), where=weight > 0)
        squares = weight * per_weight
        return np.stack((weight, squares, pred, residual, squares * mean**2))

    @cached_property
    def _cells(self) -> tuple[FloatArray, FloatArray]:
        """The centre of each cell, and the sums of w p by outcome."""
        p0, p1, p2 = self._expansion
        mass, first, second = self._moments
        inner = p0 * mass + p1 * first + p2 / 2 * second
        if self.sketch.cells.size == self.sketch.n_cells:
            return p0, inner
        # Beyond the range of logit cells predictions are within 2e-9 of 0 or 1.
        ends = np.repeat([0.0, 1.0], N_OUTER // 2)
        outer = ends * self._table.moments[0, :, self.sketch.n_cells :]
        return np.concatenate((p0, ends)), np.concatenate((inner, outer), axis=1)

    @cached_property
    def _expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.sketch.cells.expansion()

    @cached_property
    def _moments(self) -> FloatArray:
        """The sums of w, w d, w d^2 by outcome and inner cell."""
        return np.asarray(self._table.moments[:, :, : self.sketch.n_cells])

    def _cell_moments(self, quantity: Quantity) -> FloatArray:
        """Return the sums of v, v d and v d^2 over the rows of each inner cell."""
        both: FloatArray = self._moments.sum(axis=1)
        one: FloatArray = self._moments[:, 1]
        if quantity == "true":
            return one
        if quantity in ("weight", "rows"):
            return both
        # p = p0 + p1 d + p2 d^2 / 2 within a cell; powers of d beyond the second are not kept.
        p0, p1, p2 = self._expansion
        pred = p0 * both
        pred[:2] += p1 * both[1:]
        pred[0] += p2 / 2 * both[2]
        return pred if quantity == "pred" else one - pred

    def _smoothing_error(self, cells_per_scale: float, quantity: Quantity) -> float:
        """Bound the L1 error, divided by W, of a quantity smoothed at a scale of so many cells."""
        p0, _, _ = self._expansion
        zero, one = self._moments[0]
        slope = self.sketch.cells.steepest
        reach = 1 / cells_per_scale
        mass = {"weight": zero + one, "true": one, "rows": zero + one}.get(quantity)
        if mass is not None:
            return _C3 * reach**3 * float(mass.sum()) / 32 / self.weight
        # In p and y - p, p itself is expanded: each order lacks the terms of the next.
        size_of_one = p0 if quantity == "pred" else 1 - p0
        size = float(np.dot(zero, p0 + slope) + np.dot(one, size_of_one + slope))
        squares = float(self._moments[2].sum())
        lacking = 2 * slope**3 + _C1 * reach * slope**2 + _C2 * reach**2 * slope
        return (_C3 * reach**3 * size / 32 + lacking * squares / 2) / self.weight


class ProbabilitySketch(SketchProblem):
    """One binary problem known by its cells of probability."""

    @cached_property
    def sum_error(self) -> float:
        # Rows are added one after another; an offset is at most a cell's width.
        size = self.cell_width if self._table.weighed is None else 1.0
        return 1e-12 + 2.0**-52 * size * float(self._table.rows.max())

    def totals(self, assignment: Assignment, *quantities: Quantity) -> FloatArray:
        n_cells, n_bins = self.sketch.n_cells, assignment.n_bins
        if not assignment.is_uniform:
            raise SketchError(
                "a sketch does not know sums over bins that are not uniform, hard and closed on "
                "the left: give the rows, y_true and y_prob"
            )
        if n_cells % n_bins:
            raise SketchError(
                "must divide the {size} cells of the sketch",
                argument="n_bins",
                value=n_bins,
                hint="use another number, or give the rows",
                size=n_cells,
            )
        cells = np.array([self._of_cells(quantity) for quantity in quantities])
        return np.asarray(cells.reshape(len(quantities), n_bins, -1).sum(axis=2))

    def spectrum(self, scale: float, *quantities: Quantity) -> FloatArray:
        moments = np.array([self._cell_moments(quantity) for quantity in quantities])
        return smoothing.coefficients(moments, smoothing.n_modes(scale))

    def spectrum_error(self, scale: float, quantity: Quantity) -> float:
        return self._smoothing_error(scale * self.sketch.n_cells, quantity) + _ROUNDING

    @cached_property
    def pooled(self) -> Pooled:
        """The rows pooled by cell, each cell at its mean score."""
        rows, squares = self._table.rows, self._table.squares
        filled = rows > 0
        weight, first, second = self._cell_moments("weight")[:, filled]
        pred, true = (self._of_cells(quantity)[filled] for quantity in ("pred", "true"))
        # Rounding may make the difference of squares negative.
        variance = np.maximum(second / weight - (first / weight) ** 2, 0.0)
        return Pooled(
            score=np.minimum(pred / weight, 1.0),
            rows=rows[filled].astype(np.float64),
            weight=weight,
            weight_squared=squares[filled],
            true=true,
            residual=true - pred,
            spread=np.sqrt(variance) * self.cell_width,
        )

    def squared_error(self) -> float:
        p0, width = self._expansion[0], self.cell_width
        mass, first, second = self._moments
        # p^2 = c^2 + 2 c d / N + (d / N)^2, row by row.
        squares = p0 * p0 * mass + 2 * p0 * first * width + second * width**2
        crossed = p0 * mass[1] + first[1] * width
        total = squares.sum() - 2 * crossed.sum() + self._table.true_squared
        return max(float(total), 0.0)

    def logit_line(self, tails: float) -> Line:
        """Refused."""
        raise _other_scale("logit")

    def _of_cells(self, quantity: Quantity) -> FloatArray:
        """Return the sum of a quantity over the rows of each cell."""
        if quantity == "rows":
            return self._table.rows.astype(np.float64)
        return np.asarray(self._cell_moments(quantity)[0])


class LogitSketch(SketchProblem):
    """One binary problem known by its cells of logits.

    Rows beyond the range of the cells are taken to be at infinity: their predictions are within
    2e-9 of 0 or 1, and their positions matter only where the outcome is the improbable one.
    """

    @property
    def rows(self) -> Sample:
        """Refused, and with it all that is not asked on the logit scale."""
        raise _other_scale("probability")

    def logit_line(self, tails: float) -> Line:
        if tails > LOGIT_REACH:
            rule = "a sketch smooths logits at scales up to {maximum:g}"
            raise SketchError(rule, value=tails, maximum=LOGIT_REACH)
        width = self.sketch.cells.width
        margin = int(np.ceil(GAUSSIAN_RADIUS * tails / width))
        reach = LOGIT_REACH + margin * width
        whole = Span(-reach, reach)

        def interval(scale: float, *quantities: Quantity) -> LineSpectrum:
            moments = np.array([self._cell_moments(quantity) for quantity in quantities])
            moments = np.pad(moments, ((0, 0), (0, 0), (margin, margin)))
            modes = smoothing.n_modes(scale / (2 * reach))
            return LineSpectrum(whole, smoothing.coefficients(moments, modes))

        def error(scale: float, quantity: Quantity) -> float:
            placed = self._smoothing_error(scale / width, quantity)
            return placed + self._unplaced(scale) + _ROUNDING

        return Line(interval, self._ends, partial(max, self.finest_scale * 2 * LOGIT_REACH), error)

    def _ends(self, quantity: Quantity) -> tuple[float, float]:
        zero, one = self._outer
        weight = zero + one
        value = {"true": one, "residual": one - weight * [0.0, 0.0, 1.0, 1.0]}.get(quantity, weight)
        return float(value[[AT_ZERO, BELOW]].sum()), float(value[[ABOVE, AT_ONE]].sum())

    @property
    def _outer(self) -> FloatArray:
        """The weight of each outcome in the four outer cells."""
        return self._table.weight[:, self.sketch.n_cells :]

    def _unplaced(self, scale: float) -> float:
        """Bound the error of taking rows in the outer cells to be at infinity."""
        zero, one = self._outer
        surprises = one[BELOW] + zero[ABOVE]
        rest = one[ABOVE] + zero[BELOW]
        # Surprises may or may not cancel against residuals nearby. The residuals of others are at
        # most exp(-20), and at most exp(scale^2 / 2 - 20) on average over the noise.
        moved = np.exp(min(scale**2 / 2 - LOGIT_REACH, 0.0))
        return float(2 * surprises + moved * rest) / self.weight


def problem_of(sketch: Sketch) -> Problem:
    """Return a sketch as a problem that measures can ask."""
    if sketch.n == 0:
        raise SketchError("the sketch is empty", hint="update it with rows first")
    return ProbabilitySketch(sketch) if sketch.scale == "probability" else LogitSketch(sketch)


def _other_scale(scale: str) -> SketchError:
    other = "logit" if scale == "probability" else "probability"
    return SketchError(
        "this needs a sketch on the {scale} scale, or the rows",
        value=other,
        found="one on the {value} scale",
        hint="make another on that scale",
        scale=scale,
    )
