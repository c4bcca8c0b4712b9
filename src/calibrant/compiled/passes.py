"""Passes over columns and tables, long ones on every core, in code compiled by numba.

Each core adds a stretch of rows to a table of its own; the tables are added up. Nothing here needs
numba until a pass is taken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from calibrant.arrays import AnyArray, FloatArray

_Result = TypeVar("_Result")

# What columns of few rows must hold.
USUAL = tuple(np.dtype(kind) for kind in (np.float64, np.int64, np.bool_))
# From so many rows on compiled code is faster: once it is loaded, or loading included where numba
# is loaded already, or not.
_WORTH_CALLING = 1 << 9
_WORTH_LOADING, _WORTH_LOADING_NUMBA = 1 << 15, 1 << 23
# Enough rows to be worth a core of their own; more, where memory is slower than the core.
_LEAST_SHARE, _LEAST_SHARE_TO_LOOK = 1 << 18, 1 << 21
# Numbers enough for two cores to look at: one alone is no faster than numpy.
WORTH_LOOKING = 2 * _LEAST_SHARE_TO_LOOK
# Bytes for the tables of all cores.
_MOST_SCRATCH = 1 << 26
# p * N is rounded once: offsets this near to a half are compared with the edges.
NEAR_EDGE = 0.5 - 1e-8
# Neighbouring rows that share a bin add to it in turns, since an addition must wait for the one
# before it to the same place.
LANES = 4
# Moments are kept up to this order, as many as `moments` adds side by side.
ORDER = 7
# How often to look for where f turns, and bends that rounding makes of f = 1.
VERTEX_STEPS, ROUNDING = 3, 1e-14
# Cells for logits that are out of reach.
N_OUTER = 4
# How many numbers are kept side by side for an outcome of a cell, and for a bin.
_OUTCOME, _BIN = 4, 4


def is_loaded() -> bool:
    """Tell whether everything has been compiled for short columns, by `load_compiled`."""
    zeros = sys.modules.get("calibrant.compiled.zeros")
    # Of all that is compiled for them the last.
    return zeros is not None and len(zeros.smoothed_mean.overloads) > 0


def is_worth_while(*columns: AnyArray) -> bool:
    """Tell whether compiled passes are at hand, suit these columns and would be faster."""
    n_rows = len(columns[0])
    if n_rows < _WORTH_CALLING or not all(map(_is_plain, columns)):
        return False
    if n_rows < _WORTH_LOADING:
        return is_loaded() and all(map(_is_usual, columns))
    is_here = "numba" in sys.modules
    return is_here or (n_rows >= _WORTH_LOADING_NUMBA and find_spec("numba") is not None)


def _is_plain(column: AnyArray) -> bool:
    """Tell whether a column holds numbers that compiled code reads."""
    return column.ndim == 1 and column.dtype.isnative and column.dtype.char in "?bBhHiIlLqQfd"


def _is_usual(column: AnyArray) -> bool:
    """Tell whether a column is of a kind that code has been compiled for beforehand."""
    flags = column.flags
    return flags.c_contiguous and flags.writeable and column.dtype in USUAL


def is_table_worth_while(table: AnyArray, n_numbers: int) -> bool:
    """Tell the same of a table of columns, a pass over which makes so many numbers."""
    return (
        8 * n_numbers <= _MOST_SCRATCH
        and n_numbers <= table.size
        and table.flags.c_contiguous
        and is_worth_while(table.reshape(-1))
    )


def are_unit(column: AnyArray) -> bool:
    """Tell whether all numbers lie in [0, 1]."""
    from calibrant.compiled import kernels

    def look(rows: slice) -> bool:
        return bool(kernels.are_unit(column[rows]))

    return all(_on_every_core(look, len(column), len(column) // _LEAST_SHARE_TO_LOOK))


def count(
    p: AnyArray, y: AnyArray, n_cells: int, reach: float, edges: FloatArray
) -> FloatArray | None:
    """Return counts, sums of d and of d^2, each by outcome and cell.

    Cells of scores; or, where `reach` is not 0, of logits from -reach to reach at `edges`, followed
    by those at 0, below, above and at 1. Return None where not every row is 0 or 1 with p in
    [0, 1].
    """
    from calibrant.compiled import kernels

    size = n_cells + (N_OUTER if reach else 0)
    table = _added_up(kernels.count, p, y, (n_cells, reach, edges), size * 2 * _OUTCOME)
    return None if table is None else table.reshape(size, 2, _OUTCOME).T[:3]


def moments(
    p: AnyArray, y: AnyArray, n_cells: int, of: tuple[float, float, float]
) -> FloatArray | None:
    """Return the sums of v d^q, q = 0..ORDER, one row a cell, folded.

    `of` has the parts of 1, y and p in v. Return None where not every row has p and y in [0, 1].
    """
    from calibrant.compiled.moments import gather

    size = n_cells * (ORDER + 1)
    table = _added_up(gather, p, y, (n_cells, of), 2 * size)
    return None if table is None else table[:size].reshape(n_cells, ORDER + 1)


def bin_sums(p: AnyArray, y: AnyArray, n_bins: int) -> FloatArray | None:
    """Return for each bin k/B <= p < (k+1)/B its rows and its sums of p, y and y - p.

    Return None where not every row has p and y in [0, 1].
    """
    from calibrant.compiled import kernels

    table = _added_up(kernels.add_up, p, y, (n_bins,), LANES * n_bins * _BIN)
    return None if table is None else table[: n_bins * _BIN].reshape(n_bins, _BIN).T


def column_bin_sums(
    table: AnyArray, outcome: AnyArray, n_bins: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rows of each column of a table and each bin, their sum, and how many are true.

    A row is true in the column of its outcome. Shapes (columns, bins).
    """
    from calibrant.compiled import kernels

    n_rows, n_columns = table.shape
    size = n_columns * n_bins

    def run(rows: slice) -> FloatArray:
        sums = np.zeros(3 * size)
        kernels.add_up_columns(table[rows].reshape(-1), n_columns, n_bins, sums[: 2 * size])
        counts = sums[2 * size :].reshape(n_columns, n_bins)
        kernels.count_true(table[rows], outcome[rows], n_bins, counts)
        return sums

    most = min(table.size // _LEAST_SHARE, _MOST_SCRATCH // (24 * size))
    sums = sum(_on_every_core(run, n_rows, most), np.zeros(3 * size))
    rows, total = sums[: 2 * size].reshape(n_bins, n_columns, 2).T
    return rows, total, sums[2 * size :].reshape(n_columns, n_bins)


def _added_up(
    kernel: Callable[..., Any], p: AnyArray, y: AnyArray, cells: tuple[Any, ...], size: int
) -> FloatArray | None:
    """Return the sum of all cores' tables of a size, or None where a row is not sound."""

    def run(rows: slice) -> FloatArray | None:
        table = _zeros(size)
        return table if kernel(p[rows], y[rows], *cells, table) else None

    most = min(len(p) // _LEAST_SHARE, _MOST_SCRATCH // (8 * size))
    total: FloatArray | None = None
    for table in _on_every_core(run, len(p), most):
        if table is None:
            return None
        total = table if total is None else total + table
    return total


def _zeros(size: int) -> FloatArray:
    """Return zeros of which every eight fill one line of the processor's cache."""
    line = 64
    zeros = np.zeros(size + line // 8)
    first = -zeros.__array_interface__["data"][0] % line // 8
    return zeros[first : first + size]


def _on_every_core(work: Callable[[slice], _Result], n_rows: int, most: int) -> list[_Result]:
    """Return what the work makes of stretches of rows, one a core, in order.

    No more cores than numba may use, or than `most`.
    """
    if most < 2:
        return [work(slice(n_rows))]
    from concurrent.futures import ThreadPoolExecutor

    from numba import get_num_threads

    n = min(get_num_threads(), most)
    stretches = [slice(n_rows * i // n, n_rows * (i + 1) // n) for i in range(n)]
    if n == 1:
        return [work(stretches[0])]
    with ThreadPoolExecutor(n - 1) as pool:
        others = pool.map(work, stretches[1:])
        # One stretch is done right here: starting a thread takes its time.
        return [work(stretches[0]), *others]
