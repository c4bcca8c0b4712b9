"""The compiled loops; importing this module imports numba.

A stretch of rows at a time: what is the same for all rows is done in one loop that the processor
does several rows at a time, and what differs in a loop of its own. Scores are known to lie in
[0, 1], but where a loop says that it looks; others would be counted in a wrong cell.

Numba keeps compiled code on disk until this file changes: constants of `passes` are compiled in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from calibrant.compiled.passes import LANES, NEAR_EDGE

_STRETCH = 256
# Threads run side by side, and dividing by 0 is not an error but infinite.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when it is called, and keep that for the next process."""
    try:
        kept: Callable[..., Any] = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # there is nowhere to keep the compiled code for the next process
        kept = njit(**_OPTIONS)(function)
    return kept


@compiled
def are_unit(values: Any) -> bool:
    """Tell whether all values lie in [0, 1]."""
    for start in range(0, len(values), _STRETCH):
        stretch = values[start : start + _STRETCH]
        sound: Any = True
        for j in range(len(stretch)):
            sound &= (stretch[j] >= 0) & (stretch[j] <= 1)
        if not sound:
            return False
    return True


@compiled
def count(p: Any, y: Any, n_cells: int, reach: float, edges: Any, sums: Any) -> bool:
    """Add rows to (count, sum of d, sum of d^2, none) of each cell and outcome, if all are sound.

    Sound are scores in [0, 1] with outcomes 0 and 1. Cells divide [0, 1]; or, where `reach` is not
    0, the logits from -reach to reach, at `edges`.
    """
    places, offsets = np.empty(_STRETCH, np.uint32), np.empty(_STRETCH)
    for start in range(0, len(p), _STRETCH):
        scores, outcomes = p[start : start + _STRETCH], y[start : start + _STRETCH]
        sound: Any = True
        for j in range(len(scores)):
            x, outcome = scores[j], outcomes[j]
            sound &= (x >= 0) & (x <= 1) & ((outcome == 0) | (outcome == 1))
        if not sound:
            return False
        if reach > 0:
            _locate_logits(scores, n_cells, reach, edges, places, offsets)
        else:
            _locate(scores, n_cells, places, offsets)
        for j in range(len(scores)):
            places[j] = np.uint32(8) * places[j] + np.uint32(4) * np.uint32(outcomes[j])
        for j in range(len(scores)):
            place, offset = places[j], offsets[j]
            sums[place] += 1
            sums[place + np.uint32(1)] += offset
            sums[place + np.uint32(2)] += offset * offset
    return True


@compiled
def add_up(p: Any, y: Any, n_bins: int, sums: Any) -> bool:
    """Add rows to the sums of 1, p, y and y - p of each bin, if all are sound.

    Sound are scores and outcomes in [0, 1]. What is beyond the bins is scratch.
    """
    places, offsets = np.empty(_STRETCH, np.uint32), np.empty(_STRETCH)
    for start in range(0, len(p), _STRETCH):
        scores, outcomes = p[start : start + _STRETCH], y[start : start + _STRETCH]
        sound: Any = True
        for j in range(len(scores)):
            score, outcome = scores[j], outcomes[j]
            sound &= (score >= 0) & (score <= 1) & (outcome >= 0) & (outcome <= 1)
        if not sound:
            return False
        _locate(scores, n_bins, places, offsets)
        for j in range(len(scores)):
            place = np.uint32(4) * (np.uint32(j % LANES) * np.uint32(n_bins) + places[j])
            score, outcome = np.float64(scores[j]), np.float64(outcomes[j])
            sums[place] += 1
            sums[place + np.uint32(1)] += score
            sums[place + np.uint32(2)] += outcome
            sums[place + np.uint32(3)] += outcome - score
    # Rows were added over several lanes in turn.
    for i in range(4 * n_bins):
        for lane in range(1, LANES):
            sums[i] += sums[4 * n_bins * lane + i]
    return True


@compiled
def add_up_columns(p: Any, n_columns: int, n_bins: int, sums: Any) -> None:
    """Add a table, row by row, to (count, sum) of each bin and, within it, each column."""
    places, offsets = np.empty(_STRETCH, np.uint32), np.empty(_STRETCH)
    column, width = np.uint32(0), np.uint32(2 * n_columns)
    for start in range(0, len(p), _STRETCH):
        scores = p[start : start + _STRETCH]
        _locate(scores, n_bins, places, offsets)
        for j in range(len(scores)):
            place = places[j] * width + column
            sums[place] += 1
            sums[place + np.uint32(1)] += np.float64(scores[j])
            column += np.uint32(2)
            if column == width:
                column = np.uint32(0)


@compiled
def count_true(table: Any, outcome: Any, n_bins: int, counts: Any) -> None:
    """Add rows to the counts of each column and bin, in the column of their outcome."""
    places, offsets = np.empty(_STRETCH, np.uint32), np.empty(_STRETCH)
    scores = np.empty(_STRETCH)
    for start in range(0, len(outcome), _STRETCH):
        columns = outcome[start : start + _STRETCH]
        for j in range(len(columns)):
            scores[j] = table[start + j, columns[j]]
        _locate(scores[: len(columns)], n_bins, places, offsets)
        for j in range(len(columns)):
            counts[columns[j], places[j]] += 1


@compiled
def _locate(p: Any, n_cells: Any, cells: Any, offsets: Any) -> None:
    """Write down the cell of each row, k/N <= p < (k+1)/N, and its offset from the centre."""
    last, on_edge = np.uint32(n_cells - 1), np.False_
    for i in range(len(p)):
        x = np.float64(p[i]) * n_cells
        k = np.int32(x)
        offset = x - np.float64(k) - 0.5
        on_edge |= abs(offset) > NEAR_EDGE
        # Whatever p is, nothing is written beyond the last cell.
        cells[i] = min(np.uint32(k), last)
        offsets[i] = offset
    if not on_edge:
        return
    for i in range(len(p)):
        if abs(offsets[i]) > NEAR_EDGE:
            score, cell = np.float64(p[i]), int(cells[i])
            # So near to an edge the product may be on its wrong side.
            if score < cell / n_cells:
                cell -= 1
            elif score >= (cell + 1) / n_cells:
                cell += 1
            cell = min(max(cell, 0), n_cells - 1)
            cells[i] = np.uint32(cell)
            offsets[i] = score * n_cells - cell - 0.5


@compiled
def _locate_logits(
    p: Any, n_cells: Any, reach: float, edges: Any, cells: Any, offsets: Any
) -> None:
    """Write down the same on the scale of logits, from -reach to reach.

    After the last cell come four more, for p = 0, below the first, beyond the last, and for p = 1.
    """
    width = 2 * reach / n_cells
    for i in range(len(p)):
        x = np.float64(p[i])
        if edges[0] <= x < edges[n_cells]:
            place = (np.log(x / (1 - x)) + reach) / width
            k = min(max(np.int64(place), 0), n_cells - 1)
            # The logarithm may be on the wrong side of an edge.
            if x < edges[k]:
                k -= 1
            elif x >= edges[k + 1]:
                k += 1
            offsets[i] = place - k - 0.5
        else:
            beyond = 3 if x == 1 else 2
            k = n_cells + ((0 if x == 0 else 1) if x < edges[0] else beyond)
            offsets[i] = 0.0
        cells[i] = np.uint32(k)
