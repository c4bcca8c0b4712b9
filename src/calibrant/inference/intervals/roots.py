"""Quantiles of simulated numbers, and where a rising function of them crosses 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.arrays import FloatArray

_MAX_STEPS = 200


def quantile(values: FloatArray, level: float) -> float:
    """Return the value that one more draw stays below with this probability.

    Weibull's: of n values the k-th is the quantile of k / (n + 1).
    """
    return float(np.quantile(values, level, method="weibull"))


def crossing(rising: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Return where a rising function is 0, or the end nearer to that; by secants in a bracket.

    Functions here take the norms of a thousand simulated images each time, and are themselves no
    more precise than the tolerance: stopping where the function is as small as that takes two
    thirds of the evaluations of `scipy.optimize.brentq`, which looks at the bracket alone. Each
    step cuts off at least a twentieth of the bracket; where the tolerance is finer than floating
    point, the search ends after 200 of them.
    """
    at_low, at_high = rising(low), rising(high)
    if at_low >= 0:
        return low
    if at_high <= 0:
        return high
    for _ in range(_MAX_STEPS):
        if high - low <= tolerance:
            break
        fraction = min(max(at_low / (at_low - at_high), 0.05), 0.95)
        x = low + fraction * (high - low)
        at_x = rising(x)
        if abs(at_x) <= tolerance:
            return x
        if at_x < 0:
            low, at_low = x, at_x
        else:
            high, at_high = x, at_x
    return high
