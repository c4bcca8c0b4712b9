"""Rows into cells: the pass over the rows by which a sketch is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant import checks
from calibrant.arrays import AnyArray, FloatArray, IntArray, as_array
from calibrant.numerics import passes
from calibrant.problem import Index
from calibrant.reading import read_sample
from calibrant.sample import Sample
from calibrant.sketches.cells import Cells
from calibrant.sketches.table import CellTable, Offsets

# From so many rows on, it is faster to count them while they are checked, on trial.
_LONG = 1 << 15
# Counts of fewer rows than this are kept in half the memory while rows are counted.
_MOST_IN_32_BITS = 1 << 31


def add_rows(
    cells: Cells, table: CellTable, y_true: Any, y_prob: Any, sample_weight: Any, pos_label: Any
) -> None:
    """Add rows to a table; they are checked before any is added."""
    y, p = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
    if y.size == p.size == 0 and sample_weight is None:
        return
    if sample_weight is pos_label is None:
        counted = _counted(cells, y, p)
        if counted is not None:
            table.add_counts(*counted)
            return
    if sample_weight is not None and _weighs_nothing(as_array(sample_weight, "sample_weight"), p):
        return
    sample = read_sample(y, p, sample_weight=sample_weight, pos_label=pos_label)
    table.is_weighted |= sample.is_weighted
    deposit = Deposit(cells, table)
    for p, y, w in sample.blocks():
        is_soft = not checks.all_zero_or_one(y)
        table.is_soft |= is_soft
        if w is None and not is_soft:
            deposit.count(p, y)
        else:
            deposit.weigh(p, y, np.ones(len(p)) if w is None else w)


def _counted(cells: Cells, y: AnyArray, p: AnyArray) -> tuple[IntArray, Offsets] | None:
    """Return counts and offsets of many rows, or None where they are few, or not all sound."""
    is_plain = y.dtype.kind in "buif" and p.dtype.kind == "f" and y.shape == p.shape
    if not is_plain or p.ndim != 1 or len(p) < _LONG:
        return None
    # On the logit scale most of the time is that of logarithms, which numpy takes no longer for.
    is_compiled = cells.scale == "probability" and passes.is_worth_while(p, y)
    return (_count_compiled if is_compiled else _count)(cells, y, p)


def _count_compiled(cells: Cells, y: AnyArray, p: AnyArray) -> tuple[IntArray, Offsets] | None:
    found = passes.counts(p, y, cells.n_cells)
    if found is None:
        return None
    number, first, second = found
    return number.astype(np.int64), first + 1j * second


def _count(cells: Cells, y: AnyArray, p: AnyArray) -> tuple[IntArray, Offsets] | None:
    """Return counts and offsets of these rows, or None where any is not 0/1 with p in [0, 1]."""
    table = CellTable.empty(cells.size)
    if len(p) < _MOST_IN_32_BITS:
        table.counts = table.counts.astype(np.int32)
    deposit = Deposit(cells, table)
    for scores, outcomes, _ in Sample(y, p).blocks():
        if not (checks.are_unit(scores) and checks.all_zero_or_one(outcomes)):
            return None
        deposit.count(scores, outcomes)
    return table.counts, table.offsets


def _weighs_nothing(w: AnyArray, p: AnyArray) -> bool:
    """Tell whether all weights are 0, as those of a batch in a stream may well be."""
    return w.shape == p.shape and w.dtype.kind in "buif" and not w.any()


class Deposit:
    """Adds blocks of rows to a table, in memory made once: fresh memory costs more than work."""

    def __init__(self, cells: Cells, table: CellTable) -> None:
        self._cells, self._table = cells, table
        self._cell = self._offset = self._share = np.empty(0)
        self._short, self._place = np.empty(0, np.int32), np.empty(0, np.intp)
        self._powers = np.empty(0, np.complex128)

    def count(self, p: FloatArray, y: FloatArray) -> None:
        """Add rows of weight 1 and outcome 0 or 1."""
        cell, powers, share = self._locate(p)
        np.multiply(y, self._cells.size, out=share)
        share += cell
        place, counts = self._places(share), self._table.counts.reshape(-1)
        # A number of another type would be converted at every row.
        np.add.at(counts, place, counts.dtype.type(1))
        np.add.at(self._table.offsets.reshape(-1), place, powers)

    def weigh(self, p: FloatArray, y: FloatArray, w: FloatArray) -> None:
        """Add rows of any weights and outcomes, each partly under either outcome."""
        cell, powers, share = self._locate(p)
        place = self._places(cell)
        weighed = self._table.weighing()
        np.add.at(weighed.rows, place, 1)
        np.add.at(weighed.squares, place, w * w)
        weighed.true_squared += float((w * y * y).sum())
        for outcome, part in enumerate((1 - y, y)):
            np.multiply(w, part, out=share)
            np.add.at(weighed.weight[outcome], place, share)
            np.add.at(self._table.offsets[outcome], place, share * powers)

    def _places(self, cell: FloatArray) -> Index:
        """Return whole numbers as such, by way of 32 bits: processors convert several at a time."""
        short, place = self._short[: len(cell)], self._place[: len(cell)]
        np.copyto(short, cell, casting="unsafe")
        np.copyto(place, short)
        return place

    def _locate(self, p: FloatArray) -> tuple[FloatArray, Offsets, FloatArray]:
        """Return cells, d + i d^2 of the offsets d in them, and spare room."""
        n = len(p)
        if n > len(self._cell):
            self._cell, self._offset, self._share = np.empty((3, n))
            self._short, self._place = np.empty(n, np.int32), np.empty(n, np.intp)
            self._powers = np.empty(n, np.complex128)
        cell, offset, powers = self._cell[:n], self._offset[:n], self._powers[:n]
        self._cells.locate(p, cell, offset)
        powers.real = offset
        np.multiply(offset, offset, out=powers.imag)
        return cell, powers, self._share[:n]
