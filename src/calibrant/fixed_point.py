"""The scale at which a shrinking norm equals the scale itself."""

from __future__ import annotations

import math
from collections.abc import Callable

_MOST_STEPS = 100
# From this near, one more secant, not followed by another look, is right to 1e-12.
_NEAR = 1e-9


def fixed_point(norm: Callable[[float], float], lowest: float, guess: float) -> float | None:
    """Return the s in [lowest, 1] with norm(s) = s, or None where it lies below.

    `norm` gives values in [0, 1] that do not grow with the scale, so that norm(s) - s falls at
    least as fast as -s. The search starts from a guess and goes by secants, kept between the
    scales known to lie on either side.
    """
    # Norms of noise fall like s^(-1/2), true errors hardly at all: begin somewhere between.
    low, high, slope = 0.0, 1.0, -1.25
    last = min(max(guess, lowest), 1.0)
    g_last = norm(last) - last
    for _ in range(_MOST_STEPS):
        if abs(g_last) <= _NEAR:
            break
        if g_last < 0 and last <= lowest:
            return None
        low, high = (last, high) if g_last > 0 else (low, last)
        s = last - g_last / slope
        s = min(max(s if low < s < high else math.sqrt(low * high), lowest), 1.0)
        if s == last:
            break
        g = norm(s) - s
        slope = min((g - g_last) / (s - last), -1.0)
        last, g_last = s, g
    return max(last - g_last / slope, 0.0)
