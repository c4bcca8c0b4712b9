"""Sums over the rows of long columns in one pass, compiled, on every core.

They are used where numba is installed and a column has at least 2^23 rows, or a table as many
numbers: importing numba takes half a second, which shorter columns do not save. Earlier calls make
no difference, so that the same call has the same result. Compiled sums and those of numpy differ by
the order of additions alone: relative to the sum of absolute values by less than 1e-12.

Each core adds a range of rows to a table of its own; the tables are added up. The loops themselves
are in :mod:`calibrant.numerics.compiled`, which imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from calibrant._base import AnyArray, FloatArray

_Result = TypeVar("_Result")

MIN_ROWS = 1 << 23
# Fewer rows are not worth a thread of their own.
_MIN_ROWS_PER_THREAD = 1 << 18
# Bytes for the tables of all threads.
_MAX_BYTES = 1 << 26
# Moments that the loops keep of each cell.
N_MOMENTS = 4


def is_worth_while(*columns: AnyArray) -> bool:
    """Tell whether compiled passes serve these columns."""
    return (
        len(columns[0]) >= MIN_ROWS
        and all(map(_is_plain, columns))
        and find_spec("numba") is not None
    )


def is_table_worth_while(table: AnyArray, n_sums: int) -> bool:
    """Tell whether compiled passes serve a table of columns, summed up in so many numbers."""
    return (
        table.size >= max(MIN_ROWS, n_sums)
        and 8 * n_sums <= _MAX_BYTES
        and table.flags.c_contiguous
        and _is_plain(table.reshape(-1))
        and find_spec("numba") is not None
    )


def _is_plain(column: AnyArray) -> bool:
    """Tell whether a column holds numbers that compiled code reads."""
    return column.ndim == 1 and column.dtype.isnative and column.dtype.char in "?bBhHiIlLqQfd"


def moments(
    p: AnyArray, y: AnyArray, n_cells: int, of: tuple[float, float, float]
) -> FloatArray | None:
    """Return the sums of v d^q, q = 0..3, over the rows of each cell, one row per q.

    d is the offset from the centre of one of the equal cells of [0, 1], in units of its width, and
    v is made of 1, y and p, times the three numbers `of`. Return None where p or y leaves [0, 1].
    """
    from calibrant.numerics import compiled

    sums = _summed(compiled.add_moments, p, y, (n_cells, of), (n_cells, N_MOMENTS))
    return None if sums is None else sums.T


def counts(p: AnyArray, y: AnyArray, n_cells: int) -> FloatArray | None:
    """Return the sums of 1, d and d^2 over the rows of each cell k/N <= p < (k+1)/N and outcome.

    Shape (3, 2, n_cells). Return None where not every row is 0 or 1 with p in [0, 1].
    """
    from calibrant.numerics import compiled

    sums = _summed(compiled.add_counts, p, y, (n_cells,), (n_cells, 2, 3))
    return None if sums is None else sums.T


def bin_sums(p: AnyArray, y: AnyArray, n_bins: int) -> FloatArray | None:
    """Return for each bin k/B <= p < (k+1)/B its rows and its sums of p, y and y - p.

    Return None where not every row is 0 or 1 with p in [0, 1].
    """
    found = counts(p, y, n_bins)
    if found is None:
        return None
    (zeros, ones), offsets = found[0], found[1].sum(axis=0)
    rows = zeros + ones
    pred = ((np.arange(n_bins) + 0.5) * rows + offsets) / n_bins
    return np.stack((rows, pred, ones, ones - pred))


def column_bin_sums(
    table: AnyArray, outcome: AnyArray, n_bins: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rows of each column of a table and each bin, their sum, and how many are true.

    All of the table lies in [0, 1]; a row is true in the column of its outcome; (columns, bins).
    """
    from calibrant.numerics import compiled

    n_rows, n_columns = table.shape

    def run(rows: slice) -> tuple[FloatArray, FloatArray]:
        sums, true = np.zeros((n_bins, n_columns, 2)), np.zeros((n_columns, n_bins))
        compiled.add_table(table[rows].reshape(-1), n_columns, n_bins, sums)
        compiled.add_true_classes(table[rows], outcome[rows], n_bins, true)
        return sums, true

    n_threads = min(table.size // _MIN_ROWS_PER_THREAD, _max_tables(3 * n_bins * n_columns))
    parts = _on_every_core(run, n_rows, n_threads)
    sums, true = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
    rows, total = sums.T
    return rows, total, true


def _summed(
    loop: Callable[..., bool],
    p: AnyArray,
    y: AnyArray,
    cells: tuple[Any, ...],
    shape: tuple[int, ...],
) -> FloatArray | None:
    """Return the sum of all threads' tables of a shape, or None where a row is invalid."""

    def run(rows: slice) -> FloatArray | None:
        table = np.zeros(shape)
        return table if loop(p[rows], y[rows], *cells, table) else None

    n_tables = min(len(p) // _MIN_ROWS_PER_THREAD, _max_tables(int(np.prod(shape))))
    total = np.zeros(shape)
    for table in _on_every_core(run, len(p), n_tables):
        if table is None:
            return None
        total += table
    return total


def _max_tables(size: int) -> int:
    return _MAX_BYTES // (8 * size)


def _on_every_core(work: Callable[[slice], _Result], n_rows: int, most: int) -> list[_Result]:
    """Return the results of work on ranges of rows, in order, on no more than `most` threads."""
    from concurrent.futures import ThreadPoolExecutor

    from numba import get_num_threads

    n = max(min(get_num_threads(), most), 1)
    ranges = [slice(n_rows * i // n, n_rows * (i + 1) // n) for i in range(n)]
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(work, ranges))
