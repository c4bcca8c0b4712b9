"""Sketches: constant-size, mergeable summaries of any number of rows."""

from __future__ import annotations

import copy
import math
import os
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import AnyArray, FloatArray, IntArray, write_atomically
from calibrant.data import validation
from calibrant.data.problem import Index
from calibrant.data.rows import Sample, read_sample
from calibrant.data.sketch_cells import (
    DEFAULT_CELLS,
    MOST_CELLS,
    MOST_ROWS,
    Cells,
    CellTable,
    Offsets,
    Scale,
    make_cells,
)
from calibrant.data.sketch_format import HEADER_SIZE, check_header, from_bytes, to_bytes
from calibrant.data.validation import as_array
from calibrant.errors import CalibrantError, SketchError
from calibrant.numerics import compiled_sums

# From so many rows on, it is faster to count them while they are checked.
_LONG = 1 << 15
# Counts of fewer rows than this are kept in half the memory while rows are counted.
_MAX_IN_32_BITS = 1 << 31


class Sketch:
    """Constant-size, mergeable summary of one binary calibration problem.

    For each cell of scores and each outcome it keeps the weight of the rows and the sums of their
    offsets from the cell's centre and of the offsets' squares: counts are whole numbers held
    exactly, and offsets are small and centred, so nothing is lost however many rows there are.

    A sketch replaces the pair ``(y_true, y_prob)`` in measures, curves and tests. Binned errors, at
    any number of bins that divides `n_cells`, and the Brier score are exact; smooth and cumulative
    measures come within a bound that :func:`calibrant.error_bound` gives; what a sketch cannot
    answer is refused with a :class:`calibrant.SketchError`.

    Parameters
    ----------
    n_cells : int
        Number of cells of scores. A sketch takes 48 bytes per cell, 2.4 MB by default (80 bytes
        once rows carry weights or are soft). For one sketch per class take fewer: with 2520 cells
        a thousand classes are 120 MB.
    scale : {"probability", "logit"}
        "probability": cells of equal width from 0 to 1. "logit": of equal width in logits from
        -20 to 20, for :func:`calibrant.logit_smoothed_ece` and the logit scale of
        :func:`calibrant.smooth_ece`, with four more cells for what lies outside.

    See Also
    --------
    calibrant.sketch : Sketches of files and dataframes, by group if asked.
    calibrant.error_bound : How far a measure of a sketch may be from that of its rows.

    Notes
    -----
    Two sketches are equal where all their numbers are, bit for bit. The last bits of sums depend on
    batches, cores and whether numba is installed: compare sketches of the same rows with
    :meth:`allclose`. Several threads must not update one sketch: give each its own, and add them.

    Examples
    --------
    >>> monday = Sketch().update([0, 1], [0.25, 0.75])
    >>> tuesday = Sketch().update([1], [0.5])
    >>> week = monday + tuesday
    >>> week.n
    3
    >>> week.allclose(sum([tuesday, monday]))
    True
    """

    def __init__(self, n_cells: int = DEFAULT_CELLS, scale: Scale = "probability") -> None:
        validation.check_choice(scale, "scale", get_args(Scale))
        n_cells = validation.as_count(n_cells, "n_cells", maximum=MOST_CELLS)
        self._cells: Cells = make_cells(n_cells, scale)
        self._table = CellTable.empty(self._cells.size)

    @classmethod
    def of_table(cls, cells: Cells, table: CellTable) -> Self:
        """Return a sketch that holds a table, which is not copied."""
        if table.size != cells.size:
            raise SketchError(f"a table of {table.size} cells does not fit {cells.size} of them")
        if table.n > MOST_ROWS:
            raise SketchError(f"a sketch counts up to 2^53 rows exactly; this would make {table.n}")
        made = cls.__new__(cls)
        made._cells, made._table = cells, table
        return made

    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        pos_label: Any = None,
    ) -> Self:
        """Add rows; where any is refused, none is added.

        Parameters
        ----------
        y_true : array_like
            Outcomes: 0/1, bool or yes/no; two labels with `pos_label`; or classes.
        y_prob : array_like of shape (n,)
            Predicted probabilities.
        sample_weight : array_like, optional
            Non-negative weights; rows of weight 0 are ignored.
        pos_label : label, optional
            Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

        Returns
        -------
        Sketch
            The sketch itself.
        """
        if isinstance(y_true, Sketch):
            raise SketchError("sketches are merged with +: update takes rows")
        _add_rows(self._cells, self._table, y_true, y_prob, sample_weight, pos_label)
        return self

    def __add__(self, other: object) -> Sketch:
        # sum() starts from 0.
        if isinstance(other, int) and other == 0:
            return copy.copy(self)
        if not isinstance(other, Sketch):
            return NotImplemented
        if self._cells != other._cells:
            raise SketchError(
                f"sketches must have the same cells to be merged; got {self._cells_in_words()} "
                f"and {other._cells_in_words()}"
            )
        return Sketch.of_table(self._cells, self._table + other._table)

    __radd__ = __add__

    def __copy__(self) -> Sketch:
        return Sketch.of_table(self._cells, self._table.copy())

    def __deepcopy__(self, memo: object) -> Sketch:
        return copy.copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled as the bytes that it has in files.
        return Sketch.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        return self._cells == other._cells and self._table.same(other._table)

    __hash__ = None  # type: ignore[assignment]  # it is mutable

    def allclose(self, other: Sketch, *, rtol: float = 1e-12) -> bool:
        """Tell whether two sketches hold the same rows, up to rounding of their sums.

        Counts must be equal; sums of weights and of scores (logits, on that scale) may differ by
        `rtol` of the weight in their cell, as they do when the same rows were merged in another
        order or on another processor. Rows given weights of 1 are not the same as rows given none.
        """
        if not isinstance(other, Sketch):
            raise SketchError("must be a Sketch", argument="other", value=type(other))
        if not 0 <= validation.as_float(rtol) < math.inf:
            raise CalibrantError("must be a number of at least 0", argument="rtol", value=rtol)
        return self._cells == other._cells and self._table.close(
            other._table, float(rtol), self._cells.width
        )

    @property
    def n_cells(self) -> int:
        """The number of cells of scores, outer ones excluded."""
        return self._cells.n_cells

    @property
    def scale(self) -> Scale:
        """The scale on which cells have equal width."""
        return self._cells.scale

    @property
    def cells(self) -> Cells:
        """The cells."""
        return self._cells

    @property
    def table(self) -> CellTable:
        """The sums over the rows of each cell; `update` changes them."""
        return self._table

    @property
    def n(self) -> int:
        """The number of rows."""
        return self._table.n

    @property
    def weight(self) -> float:
        """The total weight of the rows."""
        return float(self._table.weight.sum())

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes, which :meth:`from_bytes` reads on any machine."""
        return to_bytes(self._cells, self._table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the sketch that :meth:`to_bytes` wrote; damaged bytes raise SketchError."""
        return cls.of_table(*from_bytes(data))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a file, as a whole or not at all."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a sketch from a file; a missing, damaged or foreign one raises SketchError."""
        try:
            with Path(path).open("rb") as file:
                # Only what begins like a sketch and has its size is read to the end.
                check_header(file.read(HEADER_SIZE), os.fstat(file.fileno()).st_size)
                file.seek(0)
                return cls.from_bytes(file.read())
        except SketchError as problem:
            problem.source = str(path)
            raise
        except OSError as problem:
            raise SketchError(problem.strerror or str(problem), source=str(path)) from problem

    def _cells_in_words(self) -> str:
        return f"{self.n_cells} cells on the {self.scale} scale"

    def __repr__(self) -> str:
        return f"Sketch(n={self.n}, weight={self.weight:.10g}, {self._cells_in_words()})"


def _add_rows(
    cells: Cells, table: CellTable, y_true: Any, y_prob: Any, sample_weight: Any, pos_label: Any
) -> None:
    """Add rows to a table; they are checked before any is added."""
    y, p = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
    if y.size == p.size == 0 and sample_weight is None:
        return
    if sample_weight is pos_label is None:
        counted = _counted(cells, y, p)
        if counted is not None:
            table.counts += counted[0]
            table.offsets += counted[1]
            return
    if sample_weight is not None:
        weights = as_array(sample_weight, "sample_weight")
        # All weights of a batch in a stream may be 0.
        if weights.shape == p.shape and weights.dtype.kind in "buif" and not weights.any():
            return
    sample = read_sample(y, p, sample_weight=sample_weight, pos_label=pos_label)
    table.is_weighted |= sample.is_weighted
    adder = _Adder(cells, table)
    for p, y, w in sample.blocks():
        is_soft = not validation.all_zero_or_one(y)
        table.is_soft |= is_soft
        if w is None and not is_soft:
            adder.count(p, y)
        else:
            adder.weigh(p, y, np.ones(len(p)) if w is None else w)


def _counted(cells: Cells, y: AnyArray, p: AnyArray) -> tuple[IntArray, Offsets] | None:
    """Return counts and offsets of many rows, None where they are few or not all 0/1 and valid."""
    is_plain = y.dtype.kind in "buif" and p.dtype.kind == "f" and y.shape == p.shape
    if not is_plain or p.ndim != 1 or len(p) < _LONG:
        return None
    # On the logit scale most of the time is that of logarithms, for which numpy is as fast.
    if cells.scale == "probability" and compiled_sums.is_worth_while(p, y):
        found = compiled_sums.counts(p, y, cells.n_cells)
        return None if found is None else (found[0].astype(np.int64), found[1] + 1j * found[2])
    table = CellTable.empty(cells.size)
    if len(p) < _MAX_IN_32_BITS:
        table.counts = table.counts.astype(np.int32)
    adder = _Adder(cells, table)
    for scores, outcomes, _ in Sample(y, p).blocks():
        if not (validation.are_unit(scores) and validation.all_zero_or_one(outcomes)):
            return None
        adder.count(scores, outcomes)
    return table.counts, table.offsets


class _Adder:
    """Adds blocks of rows to a table, in memory that is allocated once."""

    def __init__(self, cells: Cells, table: CellTable) -> None:
        self._cells, self._table = cells, table
        self._allocate(0)

    def _allocate(self, n: int) -> None:
        self._cell, self._offset, self._value = np.empty((3, n))
        self._short, self._index = np.empty(n, np.int32), np.empty(n, np.intp)
        self._powers = np.empty(n, np.complex128)

    def count(self, p: FloatArray, y: FloatArray) -> None:
        """Add rows of weight 1 and outcome 0 or 1."""
        cell, powers, place = self._locate(p)
        np.multiply(y, self._cells.size, out=place)
        place += cell
        index, counts = self._as_index(place), self._table.counts.reshape(-1)
        # A number of another type would be converted at every row.
        np.add.at(counts, index, counts.dtype.type(1))
        np.add.at(self._table.offsets.reshape(-1), index, powers)

    def weigh(self, p: FloatArray, y: FloatArray, w: FloatArray) -> None:
        """Add rows of any weights and outcomes, each partly under either outcome."""
        cell, powers, weight = self._locate(p)
        index = self._as_index(cell)
        weighed = self._table.weighing()
        np.add.at(weighed.rows, index, 1)
        np.add.at(weighed.squares, index, w * w)
        weighed.true_squared += float((w * y * y).sum())
        for outcome, part in enumerate((1 - y, y)):
            np.multiply(w, part, out=weight)
            np.add.at(weighed.weight[outcome], index, weight)
            np.add.at(self._table.offsets[outcome], index, weight * powers)

    def _as_index(self, cell: FloatArray) -> Index:
        """Return whole numbers as such, by way of 32 bits: processors convert several at a time."""
        short, index = self._short[: len(cell)], self._index[: len(cell)]
        np.copyto(short, cell, casting="unsafe")
        np.copyto(index, short)
        return index

    def _locate(self, p: FloatArray) -> tuple[FloatArray, Offsets, FloatArray]:
        """Return cells, d + i d^2 of the offsets d in them, and memory for as many numbers."""
        n = len(p)
        if n > len(self._cell):
            self._allocate(n)
        cell, offset, powers = self._cell[:n], self._offset[:n], self._powers[:n]
        self._cells.locate(p, cell, offset)
        powers.real = offset
        np.multiply(offset, offset, out=powers.imag)
        return cell, powers, self._value[:n]
