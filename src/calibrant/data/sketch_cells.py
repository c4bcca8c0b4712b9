"""Cells: which score is counted where in a sketch.

Cell k holds the scores e_k <= p < e_{k+1}: the rule of :mod:`calibrant.data.binning`. The edges
e_0 < ... < e_N are doubles in a table, the same on every machine, and a score belongs where
comparing it with them puts it: arithmetic only guesses. So every engine that counts rows into cells
agrees to the last row.

On the probability scale e_k is k/N, correctly rounded, and the last cell also holds 1. Any number
of bins that divides N is made of whole cells. The default, 50 400 = 2^5 3^2 5^2 7, is divided by
every number up to 10, by 12, 15, 20, 25, 30, 50, 100 and by many others, and suits the FFT.

On the logit scale uniform cells of p would lose the tails. There, N cells of equal width cover
logits from -20 to 20 (p from 2e-9 to 1 - 2e-9): e_k is the probability at the logit -20 + 40 k/N,
correctly rounded. Four more cells hold what lies outside: p = 0, the rest below, the rest above,
and p = 1.

A row's offset is its distance from its cell's centre in units of the cell's width, from -1/2 to
1/2; in the four outer cells it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray, IntArray
from calibrant.data.binning import UniformBins
from calibrant.numerics.probability import logit

Scale = Literal["probability", "logit"]

DEFAULT_CELLS = 50_400
# A hundred megabytes: a few forged bytes must not be able to ask for more.
MOST_CELLS = 1 << 21
LOGIT_REACH = 20
# p * N is rounded once: offsets this near to a half are compared with the edges.
NEAR_EDGE = 0.5 - 1e-8
# The outer cells of the logit scale, counted from the first after the inner ones.
N_OUTER = 4
AT_ZERO, BELOW, ABOVE, AT_ONE = range(N_OUTER)


@dataclass(frozen=True)
class Cells:
    """A way to divide the scores into `n_cells` inner cells and perhaps some outer ones."""

    n_cells: int
    scale: ClassVar[Scale]

    @property
    def edges(self) -> FloatArray:
        """The n_cells + 1 edges of the inner cells."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of cells, the outer ones included."""
        raise NotImplementedError

    @property
    def width(self) -> float:
        """The width of an inner cell on this scale."""
        raise NotImplementedError

    @property
    def steepest(self) -> float:
        """The maximum change of p over a cell."""
        raise NotImplementedError

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write the cell of each score, a whole number, and its offset from the centre."""
        raise NotImplementedError

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p, dp/dd and d2p/dd2 at the centre of each inner cell, d being the offset."""
        raise NotImplementedError


class ProbabilityCells(Cells):
    """Cells of equal width over [0, 1]."""

    scale: ClassVar[Scale] = "probability"

    @cached_property
    def _bins(self) -> UniformBins:
        return UniformBins.of(self.n_cells)

    @property
    def edges(self) -> FloatArray:
        """The correctly rounded k / n_cells."""
        return self._bins.edges

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.n_cells

    @property
    def width(self) -> float:
        """The width of a cell."""
        return 1 / self.n_cells

    @property
    def steepest(self) -> float:
        """The maximum change of p over a cell."""
        return self.width

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write the cell of each score and its offset from the cell's centre."""
        np.multiply(p, self.n_cells, out=offset)
        np.floor(offset, out=cell)
        offset -= cell
        offset -= 0.5
        # The product is rounded once: only next to an edge may it be on the wrong side.
        if offset.max() > NEAR_EDGE or offset.min() < -NEAR_EDGE:
            (near,) = np.nonzero(np.abs(offset) > NEAR_EDGE)
            found = self._bins.index(p[near])
            cell[near], offset[near] = found, p[near] * self.n_cells - found - 0.5

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the centres, the width and no curvature."""
        centre = (np.arange(self.n_cells) + 0.5) / self.n_cells
        return centre, np.full(self.n_cells, 1 / self.n_cells), np.zeros(self.n_cells)


class LogitCells(Cells):
    """Cells of equal width over the logits from -20 to 20, and four for what lies outside."""

    scale: ClassVar[Scale] = "logit"

    @cached_property
    def edges(self) -> FloatArray:
        """The correctly rounded probabilities at the logits -20 + 40 k / n_cells."""
        return logit_edges(self.n_cells)

    @property
    def size(self) -> int:
        """The number of cells, the outer ones included."""
        return self.n_cells + N_OUTER

    @property
    def width(self) -> float:
        """The width of an inner cell, in logits."""
        return 2 * LOGIT_REACH / self.n_cells

    @property
    def steepest(self) -> float:
        """The maximum change of p over a cell: a quarter of that of its logit."""
        return self.width / 4

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write the cell of each score and its offset from the cell's centre."""
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
            outer = np.where(
                x < 0.5, np.where(x == 0, AT_ZERO, BELOW), np.where(x == 1, AT_ONE, ABOVE)
            )
            cell[outside], offset[outside] = n + outer, 0.0

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sigmoid and its derivatives at the centres."""
        from scipy.special import expit

        u = (np.arange(self.n_cells, dtype=np.float64) + 0.5) * self.width - LOGIT_REACH
        p, q = expit(u), expit(-u)
        return p, p * q * self.width, p * q * (q - p) * self.width**2


# The edges of a few numbers of cells are kept: they take a microsecond each.
@lru_cache(maxsize=4)
def logit_edges(n_cells: int) -> FloatArray:
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
    total = term = one
    n = 1
    while term:
        term = term * numerator // (denominator * n)
        total += term
        n += 1
    return total


def make_cells(n_cells: int, scale: Scale) -> Cells:
    """Return the cells of a sketch."""
    return ProbabilityCells(n_cells) if scale == "probability" else LogitCells(n_cells)


# The numbers that a sketch keeps: for each cell, weights and sums of offsets by outcome.

# Whole numbers up to here are exact in a double.
MOST_ROWS = 2**53

# Sums of w d and w d^2 as real and imaginary part: numpy scatters a complex number in hardly more
# time than a real one.
Offsets = npt.NDArray[np.complex128]


@dataclass(eq=False)
class Weighed:
    """What is known of rows that carry weights or are soft.

    Attributes
    ----------
    rows
        How many there are in each cell.
    weight
        The sums of w (1 - y) and of w y, shape (2, cells).
    squares
        The sum of w^2 in each cell.
    true_squared
        The sum of w y^2 over all cells.
    """

    rows: IntArray
    weight: FloatArray
    squares: FloatArray
    true_squared: float = 0.0

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return what is known of no rows."""
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

    Attributes
    ----------
    counts
        How many rows of weight 1 have either outcome, shape (2, cells).
    offsets
        Sums of w d + i w d^2 of the offsets d of all rows, shape (2, cells). A soft row y is
        weight y under outcome 1 and 1 - y under outcome 0.
    weighed
        What there is beside the counts, if any row carries a weight or is soft.
    is_weighted, is_soft
        Whether any rows came with weights, and whether any outcome lay between 0 and 1.
    """

    counts: IntArray
    offsets: Offsets
    weighed: Weighed | None = None
    is_weighted: bool = False
    is_soft: bool = False

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return the table of no rows."""
        return cls(np.zeros((2, size), dtype=np.int64), np.zeros((2, size), dtype=np.complex128))

    @property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.counts.shape[1])

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum()) + (
            0 if self.weighed is None else int(self.weighed.rows.sum())
        )

    @property
    def rows(self) -> IntArray:
        """How many rows each cell holds."""
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
        """Return the part for weighted and soft rows, made if there was none."""
        if self.weighed is None:
            self.weighed = Weighed.empty(self.size)
        return self.weighed

    def add_counts(self, counts: IntArray, offsets: Offsets) -> None:
        """Add rows of weight 1 and outcome 0 or 1."""
        self.counts += counts
        self.offsets += offsets

    def copy(self) -> CellTable:
        """Return a table of its own with the same numbers."""
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
        """Tell whether two tables say the same of every cell, bit for bit."""
        return (self.is_weighted, self.is_soft, self.true_squared) == (
            other.is_weighted,
            other.is_soft,
            other.true_squared,
        ) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("rows", "weight", "squares", "offsets")
        )

    def close(self, other: CellTable, rtol: float, width: float) -> bool:
        """Tell whether counts are equal and sums differ by `rtol` of their cell's weight.

        Sums of offsets are compared in units of the scale, of which a cell is `width`: that is
        what logarithms round.
        """
        if (self.is_weighted, self.is_soft) != (other.is_weighted, other.is_soft):
            return False
        if not np.array_equal(self.rows, other.rows):
            return False
        room = rtol * self.weight.sum(axis=0)
        return bool(
            np.all(np.abs(self.weight - other.weight) <= room)
            and np.all(np.abs(self.offsets - other.offsets) * width <= room)
            and np.allclose(self.squares, other.squares, rtol=rtol, atol=0)
            and abs(self.true_squared - other.true_squared) <= room.sum()
        )
