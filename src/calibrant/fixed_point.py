"""The scale at which a shrinking norm equals the scale itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.arrays import FloatArray

# The norm falls as the scale grows, so the fixed point is at least as near as this.
_TOLERANCE = 1e-13
_MOST_STEPS = 100
_STEP_DOWN = 4.0


def fixed_points(
    norm: Callable[[FloatArray], FloatArray], n_rows: int, lowest: float
) -> FloatArray:
    """Return for each row the s in [lowest, 1] with norm(s) = s, nan where it lies below.

    `norm` takes one scale a row and returns values in [0, 1] that do not grow with the scale. The
    search steps down from 1, cheap scales first, until it has the fixed point between two scales,
    then closes in by false position (Illinois).
    """
    high, low = np.ones(n_rows), np.full(n_rows, np.nan)
    g_high, g_low = norm(high) - high, np.full(n_rows, np.nan)
    was_above = np.ones(n_rows, dtype=bool)
    answer = np.full(n_rows, np.nan)
    answer[g_high >= -_TOLERANCE] = 1.0
    searching = g_high < -_TOLERANCE
    for _ in range(_MOST_STEPS):
        if not searching.any():
            break
        # Before there is a lower end: norm(high) never exceeds the fixed point.
        down = np.maximum(np.maximum(high / _STEP_DOWN, g_high + high), lowest)
        between = (low * g_high - high * g_low) / (g_high - g_low)
        s = np.where(searching, np.where(np.isnan(low), down, between), high)
        g = np.where(searching, norm(s) - s, 0.0)
        found = searching & (np.abs(g) <= _TOLERANCE)
        answer[found] = s[found]
        searching &= ~found & ~((s <= lowest) & (g < 0))
        above = g < 0
        # An end that stays twice running has its value halved, so that it moves soon.
        stays = np.where(above == was_above, 0.5, 1.0)
        high, low = np.where(above, s, high), np.where(above, low, s)
        g_high = np.where(above, g, g_high * stays)
        g_low = np.where(above, g_low * stays, g)
        was_above = above
    return answer
