"""The pass over unweighted rows compiled by numba, on every core.

Each core checks a stretch of rows, and if they are sound adds them to a table of its own; what it
finds wrong, the pass in numpy looks at again and says in words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant.arrays import AnyArray, IntArray
from calibrant.sketches.cells import NEAR_EDGE, Cells
from calibrant.sketches.table import Offsets

# Below this many rows the pass in numpy is as fast, or faster than loading the compiled code.
_WORTH_CALLING = 1 << 15
_WORTH_LOADING = 1 << 23
# Enough rows to be worth a core of its own.
_LEAST_SHARE = 1 << 18
# Bytes for the tables of all cores.
_MOST_SCRATCH = 1 << 26
_STRETCH = 256
# Numbers kept for a cell: for each outcome the count, the sums of d and d^2, and none.
_ENTRY = 8


def is_worth_while(cells: Cells, y: AnyArray, p: AnyArray) -> bool:
    """Tell whether the compiled pass is at hand, suits these arrays and would be faster."""
    least = _WORTH_CALLING if "numba" in sys.modules else _WORTH_LOADING
    return (
        len(p) >= least
        and cells.scale == "probability"
        and y.ndim == p.ndim == 1
        and len(y) == len(p)
        and p.dtype in (np.float32, np.float64)
        and (y.dtype.kind in "bui" or y.dtype in (np.float32, np.float64))
        and p.dtype.isnative
        and y.dtype.isnative
        and find_spec("numba") is not None
    )


def count(cells: Cells, y: AnyArray, p: AnyArray) -> tuple[IntArray, Offsets] | None:
    """Return counts and offsets of these rows, or None where any is not 0/1 with p in [0, 1]."""
    cores = _cores(cells.size, len(p))
    cuts = [len(p) * i // cores for i in range(cores + 1)]
    # What is added to together lies together in memory: the count, the sums of d and d^2.
    sums = np.zeros((cores, cells.size * _ENTRY))
    kernel = _kernel()

    def run(i: int) -> bool:
        rows = slice(cuts[i], cuts[i + 1])
        return bool(kernel(p[rows], y[rows], cells.n_cells, sums[i]))

    with ThreadPoolExecutor(cores) as pool:
        sound = all(list(pool.map(run, range(cores))))
    if not sound:
        return None
    number, first, second, _ = sums.sum(axis=0).reshape(cells.size, 2, 4).T
    return number.astype(np.int64), first + 1j * second


def _cores(size: int, n_rows: int) -> int:
    """Return how many cores to use: no more than this process may, rows are worth, or fit."""
    import numba

    fit = _MOST_SCRATCH // (size * _ENTRY * 8)
    return max(1, min(int(numba.get_num_threads()), n_rows // _LEAST_SHARE, fit))


def _count_rows(p: Any, y: Any, n_cells: Any, sums: Any) -> bool:  # noqa: C901 - compiled whole
    """Add rows to `sums` until one is not sound; tell whether all were.

    A stretch of rows at a time: what is the same for all of them is done in one loop that the
    processor does several rows at a time, and what differs in loops of its own.
    """
    places, offsets = np.empty(_STRETCH, np.uint32), np.empty(_STRETCH)
    for start in range(0, len(p), _STRETCH):
        stop = min(start + _STRETCH, len(p))
        sound: Any = True
        on_edge: Any = False
        for i in range(start, stop):
            x = np.float64(p[i])
            k = np.int32(x * n_cells)
            offset = x * n_cells - np.float64(k) - 0.5
            sound &= (x >= 0) & (x <= 1) & ((y[i] == 0) | (y[i] == 1))
            on_edge |= abs(offset) > NEAR_EDGE
            places[i - start] = np.uint32(8 * k + 4 * np.int32(y[i]))
            offsets[i - start] = offset
        if not sound:
            return False
        if on_edge:
            for i in range(start, stop):
                if abs(offsets[i - start]) > NEAR_EDGE:
                    x = np.float64(p[i])
                    k = np.int32(x * n_cells)
                    # So near to an edge the product may be on its wrong side.
                    if x < k / n_cells:
                        k -= 1
                    elif x >= (k + 1) / n_cells:
                        k += 1
                    k = min(k, n_cells - 1)
                    places[i - start] = np.uint32(8 * k + 4 * np.int32(y[i]))
                    offsets[i - start] = x * n_cells - k - 0.5
        for j in range(stop - start):
            place, offset = places[j], offsets[j]
            sums[place] += 1
            sums[place + np.uint32(1)] += offset
            sums[place + np.uint32(2)] += offset * offset
    return True


@cache
def _kernel() -> Callable[..., bool]:
    from numba import njit

    try:
        compiled: Callable[..., bool] = njit(cache=True, nogil=True)(_count_rows)
    except RuntimeError:  # there is nowhere to keep the compiled code for the next process
        compiled = njit(nogil=True)(_count_rows)
    return compiled
