"""What a measure may ask of one binary calibration problem.

A problem is a weighted set of rows (p, y): a prediction in [0, 1] and an outcome in [0, 1]. Rows in
memory, :class:`~calibrant.data.rows.Sample`, answer every question exactly; a sketch answers within
bounds that it states, or refuses. Measures are written against these questions alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray
from calibrant.numerics import smoothing
from calibrant.numerics.probability import logit
from calibrant.numerics.smoothing import FEW_SCALES, GAUSSIAN_RADIUS, LineSpectrum, Span

if TYPE_CHECKING:
    from calibrant.data.rows import Sample

Index = npt.NDArray[np.intp]
Block = tuple[FloatArray, FloatArray, FloatArray | None]
Blocks = Iterator[tuple[FloatArray, Sequence[FloatArray]]]
# What is summed over rows: 1, w, w p, w y and w (y - p).
Quantity = Literal["rows", "weight", "pred", "true", "residual"]
# Takes scores to the index of the cell that holds each.
CellOf = Callable[[FloatArray], Index]

# So many scores show well enough where the others lie.
MOST_SCORES = 1 << 16
# Scales of fewer cells than this are not resolved: the error would exceed the quantity itself.
_CELLS_PER_SCALE = 8


class Assignment(Protocol):
    """How rows are assigned to bins."""

    @property
    def n_bins(self) -> int:
        """The number of bins."""

    @property
    def is_uniform(self) -> bool:
        """Whether bin k of B holds exactly the scores k/B <= p < (k+1)/B, the last one also 1."""

    def weights(self, p: FloatArray) -> Iterator[tuple[Index, FloatArray | None]]:
        """Yield (bin of each row, weight of each row in it); None means weights of 1."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """Rows pooled by score, in increasing order of score."""

    score: FloatArray  # the distinct scores; of a sketch the mean score of each cell
    rows: FloatArray  # the number of rows at each score, and over these the sums of
    weight: FloatArray  # w,
    weight_squared: FloatArray  # w^2,
    true: FloatArray  # w y
    residual: FloatArray  # and w (y - p), taken row by row so that it is exactly 0 where y = p
    spread: FloatArray | float = 0.0  # standard deviation of the scores in a cell of a sketch

    @cached_property
    def running_weight(self) -> FloatArray:
        """The weight below each score, and at last all of it."""
        return np.concatenate(([0.0], np.cumsum(self.weight)))

    @cached_property
    def running_true(self) -> FloatArray:
        """The sum of w y below each score, and at last all of it."""
        return np.concatenate(([0.0], np.cumsum(self.true)))

    def columns(self) -> list[FloatArray]:
        """Return the scores and the sums over the rows of each."""
        return [getattr(self, one.name) for one in fields(self)[:-1]]

    def some(self, which: Index | npt.NDArray[np.bool_]) -> Pooled:
        """Return the rows at some of the scores, in this order."""
        return Pooled(*(column[which] for column in self.columns()))

    @property
    def inner(self) -> Pooled:
        """The rows with a score strictly between 0 and 1, which has a logit."""
        inside = (self.score > 0) & (self.score < 1)
        return self if inside.all() else self.some(inside)


def joined(parts: Iterable[Pooled]) -> Pooled:
    """Return several pools of rows as one."""
    columns = zip(*(part.columns() for part in parts), strict=True)
    return Pooled(*map(np.concatenate, columns))


class Problem(ABC):
    """One binary calibration problem.

    What an implementation does not answer is asked of its rows, where a sketch refuses it.
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of rows that carry weight."""

    @property
    @abstractmethod
    def weight(self) -> float:
        """The total weight W."""

    @property
    @abstractmethod
    def is_weighted(self) -> bool:
        """Whether rows carry weights of their own."""

    @property
    @abstractmethod
    def is_soft(self) -> bool:
        """Whether any outcome lies strictly between 0 and 1."""

    @property
    @abstractmethod
    def rows(self) -> Sample:
        """The rows themselves, validated."""

    @property
    def effective_rows(self) -> float:
        """The effective number of rows, W^2 / sum w^2."""
        return self.weight**2 / float(self.pooled.weight_squared.sum())

    @property
    def cell_width(self) -> float:
        """The width of the cells in which scores are known; 0 where they are known exactly."""
        return 0.0

    @property
    def is_exact(self) -> bool:
        """Whether answers are those of the rows themselves, without any error."""
        return self.cell_width == 0

    @property
    def finest_scale(self) -> float:
        """The smallest scale that `spectrum` resolves."""
        return _CELLS_PER_SCALE * self.cell_width or smoothing.FINEST_SCALE

    @property
    def sum_error(self) -> float:
        """A bound on the rounding error of sums, divided by W."""
        return 0.0

    def spectrum_error(self, scale: float, quantity: Quantity) -> float:
        """Bound the L1 norm of the error of a quantity smoothed at `scale`, divided by W."""
        return 0.0

    def part(self) -> Problem:
        """Return the problem of some of many rows, taken evenly from all of them."""
        return self.rows.part()

    @property
    def pooled(self) -> Pooled:
        """The rows pooled by score, or by cells of nearly equal scores."""
        return self.rows.pooled

    @property
    def scores(self) -> FloatArray:
        """Sorted scores that show where the rows lie: all of them, or tens of thousands.

        The smallest and the largest of all are among them, and of those strictly between 0 and 1.
        """
        return self.rows.scores

    def totals(self, assignment: Assignment, *quantities: Quantity) -> FloatArray:
        """Return the sums over bins, one row per quantity.

        "rows" counts rows, "weight" sums w, "pred" w p, "true" w y and "residual" w (y - p).
        """
        return self.rows.totals(assignment, *quantities)

    def cell_sums(self, cell_of: CellOf, n_cells: int) -> FloatArray:
        """Return sums over the rows of any cells of scores, shape (5, 2, n_cells).

        The sums are those of w, w^2, w p, w r and (w r)^2 with r = y - p, over the rows with
        y <= p and over those with y > p: for 0/1 outcomes, over either outcome.
        """
        return self.rows.cell_sums(cell_of, n_cells)

    def squared_error(self) -> float:
        """Return the sum of w (p - y)^2."""
        return self.rows.squared_error()

    def spectrum(self, scale: float, *quantities: Quantity) -> FloatArray:
        """Return the cosine coefficients of the measure of each quantity on [0, 1], one row each.

        a_k = sum of v cos(pi k p) over the rows, for every k that smoothing at `scale` leaves
        alive (see :mod:`calibrant.numerics.smoothing`).
        """
        return self.rows.spectrum(scale, *quantities)

    def logit_line(self, tails: float) -> Line:
        """Return the rows at their logits, with margins for noise of scale `tails` around them."""
        return self.rows.logit_line(tails)


def with_extremes(some: FloatArray, known: FloatArray) -> FloatArray:
    """Return some scores sorted, with the extremes of those known, and of those within (0, 1)."""
    ends = [known.min(), known.max()]
    if ends[0] == 0 or ends[1] == 1:
        inner = known[(known > 0) & (known < 1)]
        ends += [inner.min(), inner.max()] if len(inner) else []
    return np.sort(np.concatenate((some, ends)))


def logit_range(problem: Problem) -> tuple[float, float] | None:
    """Return the smallest and the largest finite logit, or None where there is none."""
    inner = problem.scores[(problem.scores > 0) & (problem.scores < 1)]
    if not len(inner):
        return None
    low, high = logit(inner[[0, -1]]).tolist()
    return low, high


@dataclass(frozen=True)
class Line:
    """Sums over rows on the whole line, such as at their logits, ready to be smoothed."""

    # Takes a scale and quantities to an interval for smoothing them at this scale.
    interval: Callable[..., LineSpectrum]
    # The sums of a quantity over rows at minus infinity and at infinity, which nothing moves.
    ends: Callable[[Quantity], tuple[float, float]]
    # The smallest scale, from the given one on, that `interval` resolves.
    finest: Callable[[float], float]
    # Bounds the L1 norm of the error of a quantity smoothed at a scale, divided by W.
    error: Callable[[float, Quantity], float]


def line_of_rows(
    blocks: Callable[..., Blocks],
    in_order: Callable[..., tuple[FloatArray, Sequence[FloatArray]]],
    ends: Callable[[Quantity], tuple[float, float]],
    span: tuple[float, float] | None,
    n_rows: int,
    tails: float,
) -> Line:
    """Return rows on the line, whose finite positions have this span, for smoothing at `tails`.

    `blocks` takes quantities and yields (positions, values of each quantity) block by block;
    `in_order` returns the same of all rows by increasing position.
    """
    low, high = span or (0.0, 0.0)
    whole = Span(low - GAUSSIAN_RADIUS * tails, high + GAUSSIAN_RADIUS * tails)

    def interval(scale: float, *quantities: Quantity) -> LineSpectrum:
        if whole.length > FEW_SCALES * scale:
            return smoothing.packed_spectrum(*in_order(*quantities), scale, GAUSSIAN_RADIUS * tails)
        placed = ((whole.fractions(u), values) for u, values in blocks(*quantities))
        a = smoothing.spectrum(placed, len(quantities), n_rows, scale / whole.length)
        return LineSpectrum(whole, a)

    def finest(scale: float) -> float:
        is_short = whole.length <= FEW_SCALES * scale
        return scale if is_short else smoothing.finest_packed(in_order()[0], scale, GAUSSIAN_RADIUS)

    return Line(interval, ends, finest, lambda scale, quantity: 0.0)
