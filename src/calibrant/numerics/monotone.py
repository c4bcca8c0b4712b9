"""Isotonic regression in squared and in absolute error.

The L2 fit is scipy's. No library has the L1 fit in O(n log n): it is done here with one heap, in a
function that numba compiles where it is installed and the sequence is long; the result is the same
to the last bit.
"""

from __future__ import annotations

from heapq import heappop, heappush
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant._base import FloatArray

# Below this many values, loading the compiled code takes longer than it saves.
_MIN_COMPILED = 1 << 19


def isotonic_fit(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the non-decreasing f with the minimum sum of weight * (value - f)^2."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(value, weights=weight).x)


def isotonic_fit_l1(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the non-decreasing f with the minimum sum of weight * abs(value - f).

    Every f[i] is one of the values, bit for bit; the minimiser need not be unique.
    """
    if len(value) == 0:
        return value
    starts = np.flatnonzero(np.concatenate(([True], value[1:] != value[:-1])))
    runs = np.diff(np.append(starts, len(value)))
    best = _best_ends(value[starts], np.add.reduceat(weight, starts))
    # The last f has minimal cost; each one before it is as near to its own best as order allows.
    rising = np.minimum.accumulate(best[::-1])[::-1]
    return np.repeat(rising, runs)


def _best_ends(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return, for every prefix, the best last value of a rising sequence near that prefix."""
    downwards = np.argsort(-value, kind="stable")
    rank = np.empty_like(downwards)
    rank[downwards] = np.arange(len(value))
    mass, top = np.empty(len(value)), np.empty_like(rank)
    if len(value) >= _MIN_COMPILED and find_spec("numba"):
        from calibrant.numerics.compiled import compiled

        compiled(_trim)(rank, weight, mass, top)
    else:
        # Python reads single numbers from memoryviews much faster than from arrays.
        _trim(rank.data, weight.data, mass.data, top.data)
    return np.asarray(value[downwards][top])


def _trim(rank: Any, weight: Any, mass: Any, top: Any) -> None:
    """Write into `top` the rank of every prefix's best last value, rank 0 being the greatest.

    As a function of the last value g, the minimum cost of a prefix is convex and piecewise linear,
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
