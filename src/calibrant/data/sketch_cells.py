"""The cells of a sketch, and the sums over the rows of each.

Cell k holds the scores e_k <= p < e_{k+1}: the rule of :mod:`calibrant.data.binning`. The edges
e_0 < ... < e_N are doubles, the same on every machine, and comparison with them decides, so that
every engine that counts rows into cells agrees to the last row.

On the probability scale e_k is k/N, correctly rounded, and the last cell also holds 1. Any number
of bins that divides N is made of whole cells. The default, 50 400 = 2^5 3^2 5^2 7, is divided by
every number up to 10, by 12, 15, 20, 25, 30, 50, 100 and by many others, and suits the FFT.

On the logit scale uniform cells of p would lose the tails. There, N cells of equal width cover
logits from -20 to 20 (p from 2e-9 to 1 - 2e-9): e_k is the probability at the logit -20 + 40 k/N,
correctly rounded. Four more cells hold p = 0, the rest below, the rest above, and p = 1.

A row's offset is its distance from its cell's centre in units of the cell's width, from -1/2 to
1/2; in the four outer cells it is 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray, IntArray
from calibrant.data.binning import UniformBins
from calibrant.numerics.probability import logit

Scale = Literal["probability", "logit"]
# Sums of w d and w d^2 as real and imaginary part: numpy adds both in hardly more time than one.
Offsets = npt.NDArray[np.complex128]

DEFAULT_CELLS = 50_400
# A hundred megabytes: a forged header must not be able to ask for more.
MOST_CELLS = 1 << 21
# Whole numbers up to here are exact in a double.
MOST_ROWS = 2**53
LOGIT_REACH = 20
# p * N is rounded once: offsets this near to a half are compared with the edges.
_NEAR_EDGE = 0.5 - 1e-8
# The outer cells of the logit scale, counted from the first after the inner ones.
N_OUTER = 4
AT_ZERO, BELOW, ABOVE, AT_ONE = range(N_OUTER)


@dataclass(frozen=True)
class Cells(ABC):
    """`n_cells` cells of equal width on a scale, and perhaps some outer ones."""

    n_cells: int
    scale: ClassVar[Scale]
    # The length of the scale, the maximum of dp/du along it, and the number of outer cells.
    length: ClassVar[float]
    max_slope: ClassVar[float]
    n_outer: ClassVar[int]

    @property
    def size(self) -> int:
        """The number of cells, the outer ones included."""
        return self.n_cells + self.n_outer

    @property
    def width(self) -> float:
        """The width of an inner cell on this scale."""
        return self.length / self.n_cells

    @property
    def steepest(self) -> float:
        """The maximum change of p over a cell."""
        return self.max_slope * self.width

    @property
    @abstractmethod
    def edges(self) -> FloatArray:
        """The n_cells + 1 edges of the inner cells."""

    @abstractmethod
    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write the cell of each score, a whole number, and its offset from the centre."""

    @abstractmethod
    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p, dp/dd and d2p/dd2 at the centre of each inner cell, d being the offset."""


class ProbabilityCells(Cells):
    """Cells of equal width over [0, 1]."""

    scale: ClassVar[Scale] = "probability"
    length, max_slope, n_outer = 1.0, 1.0, 0

    @cached_property
    def _bins(self) -> UniformBins:
        return UniformBins.of(self.n_cells)

    @property
    def edges(self) -> FloatArray:
        """The correctly rounded k / n_cells."""
        return self._bins.edges

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        np.multiply(p, self.n_cells, out=offset)
        np.floor(offset, out=cell)
        offset -= cell
        offset -= 0.5
        # The product is rounded once: only next to an edge may it be on the wrong side.
        if offset.max() > _NEAR_EDGE or offset.min() < -_NEAR_EDGE:
            (near,) = np.nonzero(np.abs(offset) > _NEAR_EDGE)
            found = self._bins.index(p[near])
            cell[near], offset[near] = found, p[near] * self.n_cells - found - 0.5

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the centres, the width and no curvature."""
        centre = (np.arange(self.n_cells) + 0.5) / self.n_cells
        return centre, np.full(self.n_cells, self.width), np.zeros(self.n_cells)


class LogitCells(Cells):
    """Cells of equal width over the logits from -20 to 20, and four for what lies outside."""

    scale: ClassVar[Scale] = "logit"
    length, max_slope, n_outer = 2.0 * LOGIT_REACH, 1 / 4, N_OUTER

    @cached_property
    def edges(self) -> FloatArray:
        """The correctly rounded probabilities at the logits -20 + 40 k / n_cells."""
        return _logit_edges(self.n_cells)

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        edges, n = self.edges, self.n_cells
        (outside,) = np.nonzero((p < edges[0]) | (p >= edges[-1]))
        place = logit(p)
        place[outside] = 0.0
        place += LOGIT_REACH
        place /= self.width
        k = np.clip(place, 0, n - 1).astype(np.intp)
        k -= p < edges.take(k)
        k += p >= edges.take(k + 1)
        cell[:] = k
        np.subtract(place, cell, out=offset)
        offset -= 0.5
        if len(outside):
            x = p[outside]
            outer = np.select([x == 0, x == 1, x < 0.5], [AT_ZERO, AT_ONE, BELOW], ABOVE)
            cell[outside], offset[outside] = n + outer, 0.0

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sigmoid and its derivatives at the centres."""
        from scipy.special import expit

        u = (np.arange(self.n_cells, dtype=np.float64) + 0.5) * self.width - LOGIT_REACH
        p, q = expit(u), expit(-u)
        return p, p * q * self.width, p * q * (q - p) * self.width**2


# Kept for a few numbers of cells: an edge takes a microsecond.
@lru_cache(maxsize=4)
def _logit_edges(n_cells: int) -> FloatArray:
    """Return the correctly rounded probabilities at the logits -20 + 40 k / n_cells.

    The exp of a mathematical library differs in the last bit between processors, so the odds are
    whole numbers of 2^-240: starting at exp(-20), each is the one before times exp(40 / n_cells),
    and Python divides whole numbers with one, correct, rounding.
    """
    one = 1 << 240
    ratio = _exp(2 * LOGIT_REACH, n_cells, one)
    odds, edges = one * one // _exp(LOGIT_REACH, 1, one), np.empty(n_cells + 1)
    for k in range(n_cells + 1):
        edges[k] = odds / (one + odds)
        odds = odds * ratio // one
    edges.flags.writeable = False
    return edges


def _exp(numerator: int, denominator: int, one: int) -> int:
    """Return exp(numerator / denominator) in units of 1 / one, by its power series."""
    total, term, n = one, one, 1
    while term:
        term = term * numerator // (denominator * n)
        total, n = total + term, n + 1
    return total


def make_cells(n_cells: int, scale: Scale) -> Cells:
    """Return the cells of a sketch."""
    return ProbabilityCells(n_cells) if scale == "probability" else LogitCells(n_cells)


@dataclass(eq=False)
class Weighed:
    """Sums over rows that carry weights or are soft."""

    rows: IntArray  # the number of rows in each cell
    weight: FloatArray  # sums of w (1 - y) and of w y, shape (2, cells)
    squares: FloatArray  # the sum of w^2 in each cell
    true_squared: float = 0.0  # the sum of w y^2 over all cells

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return the sums over no rows."""
        return cls(np.zeros(size, dtype=np.int64), np.zeros((2, size)), np.zeros(size))

    def __add__(self, other: Weighed) -> Weighed:
        return Weighed(
            self.rows + other.rows,
            self.weight + other.weight,
            self.squares + other.squares,
            self.true_squared + other.true_squared,
        )


@dataclass(eq=False)
class CellTable:
    """Sums over the rows of each cell, the first axis being outcome 0 and 1.

    A soft row y is weight y under outcome 1 and 1 - y under outcome 0.
    """

    counts: IntArray  # the number of rows of weight 1, shape (2, cells)
    offsets: Offsets  # sums of w d + i w d^2 of the offsets d of all rows, shape (2, cells)
    weighed: Weighed | None = None  # None where no row carries a weight or is soft
    is_weighted: bool = False  # whether any rows came with weights
    is_soft: bool = False  # whether any outcome lay between 0 and 1

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return the table of no rows."""
        return cls(np.zeros((2, size), dtype=np.int64), np.zeros((2, size), dtype=np.complex128))

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.counts.shape[1])

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.rows.sum())

    @property
    def rows(self) -> IntArray:
        """The number of rows in each cell."""
        counted: IntArray = self.counts.sum(axis=0)
        return counted if self.weighed is None else counted + self.weighed.rows

    @property
    def weight(self) -> FloatArray:
        """The weight of each outcome in each cell, shape (2, cells)."""
        counted = self.counts.astype(np.float64)
        return counted if self.weighed is None else counted + self.weighed.weight

    @property
    def squares(self) -> FloatArray:
        """The sum of w^2 in each cell."""
        counted: FloatArray = self.counts.sum(axis=0).astype(np.float64)
        return counted if self.weighed is None else counted + self.weighed.squares

    @property
    def true_squared(self) -> float:
        """The sum of w y^2 over all rows."""
        counted = float(self.counts[1].sum())
        return counted if self.weighed is None else counted + self.weighed.true_squared

    @property
    def moments(self) -> FloatArray:
        """The sums of w, w d and w d^2 (first axis) by outcome (second) and cell (third)."""
        return np.stack((self.weight, self.offsets.real, self.offsets.imag))

    def weighing(self) -> Weighed:
        """Return the part for weighted and soft rows, added if there was none."""
        if self.weighed is None:
            self.weighed = Weighed.empty(self.size)
        return self.weighed

    def copy(self) -> CellTable:
        """Return a table with the same numbers and no shared array."""
        return self + CellTable.empty(self.size)

    def __add__(self, other: CellTable) -> CellTable:
        parts = [part for part in (self.weighed, other.weighed) if part is not None]
        return CellTable(
            self.counts + other.counts,
            self.offsets + other.offsets,
            # Added to nothing even where there is one part, so that no array is shared.
            sum(parts[1:], parts[0] + Weighed.empty(self.size)) if parts else None,
            self.is_weighted or other.is_weighted,
            self.is_soft or other.is_soft,
        )

    def same(self, other: CellTable) -> bool:
        """Tell whether two tables are equal in every cell, bit for bit."""
        names = ("is_weighted", "is_soft", "true_squared", "rows", "weight", "squares", "offsets")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def close(self, other: CellTable, rtol: float, width: float) -> bool:
        """Tell whether counts are equal and sums differ by `rtol` of their cell's weight.

        Sums of offsets are compared in units of the scale, on which a cell has this width.
        """
        if (self.is_weighted, self.is_soft) != (other.is_weighted, other.is_soft):
            return False
        if not np.array_equal(self.rows, other.rows):
            return False
        tolerance = rtol * self.weight.sum(axis=0)
        return bool(
            np.all(np.abs(self.weight - other.weight) <= tolerance)
            and np.all(np.abs(self.offsets - other.offsets) * width <= tolerance)
            and np.allclose(self.squares, other.squares, rtol=rtol, atol=0)
            and abs(self.true_squared - other.true_squared) <= tolerance.sum()
        )
