"""Quantiles of simulated numbers, and where a rising function of them crosses 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.arrays import FloatArray

_MAX_STEPS = 200


def quantile(values: FloatArray, level: float) -> float:
    """Return the value that one more draw stays below with this probability.

    Weibull's: of n values the k-th is the quantile of k / (n + 1). Much of what `numpy.quantile`
    does is for other cases.
    """
    last = len(values) - 1
    place = min(max(level * (len(values) + 1) - 1, 0.0), float(last))
    below = int(place)
    above = min(below + 1, last)
    parted = np.partition(values, (below, above))
    low, high = float(parted[below]), float(parted[above])
    return low + (place - below) * (high - low)


def crossing(rising: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Return where a rising function is 0, or the end nearer to that; by secants in a bracket.

    Each step cuts off at least a twentieth of the bracket. Where `tolerance` is finer than numbers
    are, the search ends after 200 of them with the upper end of what is left.
    """
    at_low, at_high = rising(low), rising(high)
    if at_low >= 0:
        return low
    if at_high <= 0:
        return high
    for _ in range(_MAX_STEPS):
        if high - low <= tolerance:
            break
        share = min(max(at_low / (at_low - at_high), 0.05), 0.95)
        x = low + share * (high - low)
        at_x = rising(x)
        if abs(at_x) <= tolerance:
            return x
        if at_x < 0:
            low, at_low = x, at_x
        else:
            high, at_high = x, at_x
    return high
