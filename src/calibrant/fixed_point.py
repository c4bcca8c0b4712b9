"""The scale at which a shrinking norm equals the scale itself."""

from __future__ import annotations

import math
from collections.abc import Callable

# Where calibration errors usually lie: as good a first guess as any.
_FIRST_GUESS = 0.05
_MOST_STEPS = 100
# How near the rough norm brings the search before the exact one takes over; from within the
# second, one more secant, not followed by another look, is right to 1e-12.
_ROUGHLY = 1e-6
_EXACTLY = 1e-9

Norm = Callable[[float], float]


def fixed_point(norm: Norm, rough_norm: Norm, lowest: float) -> float | None:
    """Return the s in [lowest, 1] with norm(s) = s, or None where it lies below.

    `norm` gives values in [0, 1] that do not grow with the scale, so that an s with
    abs(norm(s) - s) within the tolerance is itself within it of the fixed point. `rough_norm`,
    nearly the same and cheaper, leads most of the way. The search is by secants, kept between the
    scales known to lie on either side.
    """
    start, slope, _ = _search(rough_norm, lowest, max(_FIRST_GUESS, lowest), -1.0, _ROUGHLY)
    s, _, found = _search(norm, lowest, start, slope, _EXACTLY)
    return s if found else None


def _search(
    norm: Norm, lowest: float, start: float, slope: float, tolerance: float
) -> tuple[float, float, bool]:
    """Return where the search ends, the slope there, and whether it ends at the fixed point."""
    low, high = 0.0, 1.0
    last = start
    g_last = norm(last) - last
    for _ in range(_MOST_STEPS):
        if abs(g_last) <= tolerance:
            return max(last - g_last / slope, 0.0), slope, True
        if g_last < 0 and last <= lowest:
            return last, slope, False
        low, high = (last, high) if g_last > 0 else (low, last)
        s = last - g_last / slope
        if not low < s < high:
            s = math.sqrt(low * high)
        s = min(max(s, lowest), 1.0)
        if s == last:
            return last, slope, True
        g = norm(s) - s
        # The slope of norm(s) - s is at most -1; rounding may hide it.
        slope = min((g - g_last) / (s - last), -1.0)
        last, g_last = s, g
    return last, slope, True
