"""Loops over rows, compiled by numba; importing this module imports it.

Rows are taken in blocks: a first loop, which the compiler vectorises, finds their cells; a second
adds them up. Scores outside [0, 1] are never added: a loop returns False at the first such block.

Numba caches compiled code on disk until this file changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit

_BLOCK = 256
# p * N is rounded once: offsets this near to a half are compared with the edges.
_NEAR_EDGE = 0.5 - 1e-8
# Threads run in parallel, and dividing by 0 gives infinity.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is compiled when it is first called."""
    try:
        found: Callable[..., Any] = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # there is no folder to cache the compiled code in
        found = njit(**_OPTIONS)(function)
    return found


@compiled
def add_moments(p: Any, y: Any, n_cells: int, of: tuple[float, float, float], sums: Any) -> bool:
    """Add v, v d, v d^2 and v d^3 of rows to the sums of their cells.

    v is the sum of 1, y and p times the three numbers `of`. Return False where a score or an
    outcome is outside [0, 1].
    """
    cells, offsets, values = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK), np.empty(_BLOCK)
    last = np.int32(n_cells - 1)
    of_one, of_y, of_p = of
    for start in range(0, len(p), _BLOCK):
        scores, outcomes = p[start : start + _BLOCK], y[start : start + _BLOCK]
        is_valid: Any = True
        for j in range(len(scores)):
            x, outcome = np.float64(scores[j]), np.float64(outcomes[j])
            is_valid &= (x >= 0) & (x <= 1) & (outcome >= 0) & (outcome <= 1)
            # Beside an edge either cell will do.
            k = min(np.int32(x * n_cells), last)
            cells[j] = np.uint32(k)
            offsets[j] = x * n_cells - np.float64(k) - 0.5
            values[j] = of_one + of_y * outcome + of_p * x
        if not is_valid:
            return False
        for j in range(len(scores)):
            cell, v, d = cells[j], values[j], offsets[j]
            squared = d * d
            sums[cell, 0] += v
            sums[cell, 1] += v * d
            sums[cell, 2] += v * squared
            sums[cell, 3] += v * d * squared
    return True


@compiled
def add_counts(p: Any, y: Any, n_cells: int, sums: Any) -> bool:
    """Add 1, d and d^2 of rows to the sums of their cell and outcome.

    Return False where a score is outside [0, 1] or an outcome is neither 0 nor 1.
    """
    cells, offsets = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK)
    for start in range(0, len(p), _BLOCK):
        scores, outcomes = p[start : start + _BLOCK], y[start : start + _BLOCK]
        if not _locate(scores, n_cells, cells, offsets):
            return False
        is_valid: Any = True
        for j in range(len(scores)):
            is_valid &= (outcomes[j] == 0) | (outcomes[j] == 1)
        if not is_valid:
            return False
        for j in range(len(scores)):
            k, outcome, d = cells[j], np.uint32(outcomes[j]), offsets[j]
            sums[k, outcome, 0] += 1
            sums[k, outcome, 1] += d
            sums[k, outcome, 2] += d * d
    return True


@compiled
def add_table(p: Any, n_columns: int, n_bins: int, sums: Any) -> None:
    """Add 1 and p of a table in [0, 1], row by row, to the sums of each bin and column."""
    cells, offsets = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK)
    column, last = np.uint32(0), np.uint32(n_columns - 1)
    for start in range(0, len(p), _BLOCK):
        scores = p[start : start + _BLOCK]
        _locate(scores, n_bins, cells, offsets)
        for j in range(len(scores)):
            sums[cells[j], column, 0] += 1
            sums[cells[j], column, 1] += np.float64(scores[j])
            column = column + np.uint32(1) if column < last else np.uint32(0)


@compiled
def add_true_classes(table: Any, outcome: Any, n_bins: int, counts: Any) -> None:
    """Count the rows of a table in the column of their outcome, by bin."""
    cells, offsets = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK)
    scores = np.empty(_BLOCK)
    for start in range(0, len(outcome), _BLOCK):
        columns = outcome[start : start + _BLOCK]
        for j in range(len(columns)):
            scores[j] = table[start + j, columns[j]]
        _locate(scores[: len(columns)], n_bins, cells, offsets)
        for j in range(len(columns)):
            counts[columns[j], cells[j]] += 1


@compiled
def _locate(p: Any, n_cells: Any, cells: Any, offsets: Any) -> bool:
    """Write the cell of each score, k/N <= p < (k+1)/N, and the offset from its centre, in cells.

    1 is in the last cell. Return False where a score is outside [0, 1].
    """
    last = np.int32(n_cells - 1)
    is_valid: Any = True
    is_near: Any = False
    for j in range(len(p)):
        x = np.float64(p[j])
        is_valid &= (x >= 0) & (x <= 1)
        product = x * n_cells
        k = min(np.int32(product), last)
        offset = product - np.float64(k) - 0.5
        is_near |= abs(offset) > _NEAR_EDGE
        cells[j] = np.uint32(k)
        offsets[j] = offset
    if not is_valid:
        return False
    if not is_near:
        return True
    for j in range(len(p)):
        if abs(offsets[j]) > _NEAR_EDGE:
            x, cell = np.float64(p[j]), int(cells[j])
            # So near to an edge the product may be on its wrong side.
            if x < cell / n_cells:
                cell -= 1
            elif x >= (cell + 1) / n_cells and cell < last:
                cell += 1
            cells[j] = np.uint32(cell)
            offsets[j] = x * n_cells - cell - 0.5
    return True
