"""The numbers that a sketch keeps: for each cell, weights and sums of offsets by outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray, IntArray

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
