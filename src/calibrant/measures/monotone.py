"""The rising sequence nearest to a given one in weighted absolute difference.

O(n log n) with one heap. Compiled by numba where it is installed and the sequence long: it is the
very same function, so the result is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from heapq import heappop, heappush
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant.arrays import FloatArray

# Below this many values, loading the compiled code takes longer than it saves.
_WORTH_COMPILING = 1 << 19


def nearest_rising(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the non-decreasing f with the least sum of weight * abs(value - f).

    Every f[i] is one of the values, bit for bit. Where several sequences are nearest, one is
    returned.
    """
    if len(value) == 0:
        return value
    starts = np.flatnonzero(np.concatenate(([True], value[1:] != value[:-1])))
    runs = np.diff(np.append(starts, len(value)))
    best = _best_ends(value[starts], np.add.reduceat(weight, starts))
    # The last f is where its cost is least; each one before it as near to its own best as order
    # allows.
    rising = np.minimum.accumulate(best[::-1])[::-1]
    return np.repeat(rising, runs)


def _best_ends(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return, for every prefix, the best last value of a rising sequence near that prefix."""
    downwards = np.argsort(-value, kind="stable")
    rank = np.empty_like(downwards)
    rank[downwards] = np.arange(len(value))
    mass, top = np.empty(len(value)), np.empty_like(rank)
    if len(value) >= _WORTH_COMPILING and find_spec("numba"):
        _compiled()(rank, weight, mass, top)
    else:
        # Python reads single numbers from memoryviews much faster than from arrays.
        _trim(rank.data, weight.data, mass.data, top.data)
    return np.asarray(value[downwards][top])


def _trim(rank: Any, weight: Any, mass: Any, top: Any) -> None:
    """Write into `top` the rank of every prefix's best last value, rank 0 being the greatest.

    As a function of the last value g, the least cost of a prefix is convex and piecewise linear,
    and level beyond its minimum, since a lower end is as good. It is kept as its breakpoints,
    the greatest on top of a heap, with the change of slope at each in `mass`. A further value v
    adds weight * abs(v - g): a change of slope of 2 * weight at v, after which trimming `weight`
    off the top makes the far end level again.
    """
    heap = [rank[0]]
    mass[rank[0]] = weight[0]
    top[0] = rank[0]
    for i in range(1, len(rank)):
        new = rank[i]
        mass[new] = 2 * weight[i]
        heappush(heap, new)
        rest = mass[heap[0]] - weight[i]
        while rest <= 0:
            heappop(heap)
            rest += mass[heap[0]]
        mass[heap[0]] = rest
        top[i] = heap[0]


@cache
def _compiled() -> Callable[..., None]:
    from numba import njit

    try:
        compiled: Callable[..., None] = njit(cache=True)(_trim)
    except RuntimeError:  # there is nowhere to keep the compiled code for the next process
        compiled = njit(_trim)
    return compiled
