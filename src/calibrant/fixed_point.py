"""The scale at which a shrinking norm equals the scale itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

_MOST_STEPS = 100
# Steps so short that the next look would find nothing.
_SHORT = 1e-6
_SHORT_AFTER_SHORT = 1e-7


class _Look(NamedTuple):
    scale: float
    gap: float
    slope: float


Norm = Callable[[float], tuple[float, float]]


def fixed_point(norm: Norm, rough_norm: Norm, lowest: float, guess: float) -> float | None:
    """Return the s in [lowest, 1] with norm(s) = s, or None where it lies below.

    `norm` gives values in [0, 1] and their derivative, which is nowhere positive, so that
    norm(s) - s falls at least as fast as -s. The search starts with a rough look at a guess, goes
    by the cubic through the last two looks, and is kept between the scales known to lie on either
    side.
    """
    low, high = 0.0, 1.0
    s = min(max(guess, lowest), 1.0)
    last: _Look | None = None
    for _ in range(_MOST_STEPS):
        value, derivative = (rough_norm if last is None else norm)(s)
        look = _Look(s, value - s, derivative - 1)
        if look.gap < 0 and s <= lowest:
            return None
        target = _root(look, last)
        if last is not None:
            low, high = (s, high) if look.gap > 0 else (low, s)
            if _is_near(target, look, last):
                return target
        if not low < target < high:
            target = math.sqrt(low * high)
        last, s = look, min(max(target, lowest), 1.0)
    return s


def _is_near(target: float, look: _Look, last: _Look) -> bool:
    """Tell whether what remains beyond the target is near 1e-12 of the scale."""
    s, step, before = look.scale, abs(target - look.scale), abs(look.scale - last.scale)
    return step <= _SHORT * s or step * before <= _SHORT_AFTER_SHORT * s * s


def _root(look: _Look, last: _Look | None) -> float:
    """Return where the gap closes: by Newton, or by Hermite's cubic for the scale given the gap."""
    if last is None or last.gap == look.gap:
        return look.scale - look.gap / look.slope
    rise = last.gap - look.gap
    t = -look.gap / rise
    secant = (last.scale - look.scale) / rise
    start, end = 1 / look.slope - secant, 1 / last.slope - secant
    return look.scale + t * rise * (secant + (1 - t) * (start * (1 - t) - end * t))
