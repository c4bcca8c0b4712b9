"""The scale at which a shrinking norm equals the scale itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

_MOST_STEPS = 100
# Steps of Newton's, in units of the scale, after which no further look is taken. Where zeros of
# what the norm is of come or go, its slope has a root's bend: the error is the step to 3/2.
_SHORT, NEAR = 3e-7, 3e-3


class _Look(NamedTuple):
    scale: float
    gap: float
    slope: float


Norm = Callable[[float], tuple[float, float]]


def fixed_point(norm: Norm, lowest: float, start: float, short: float = _SHORT) -> float | None:
    """Return the s in [lowest, 1] with norm(s) = s, or None where it lies below.

    `norm` gives values in [0, 1] and their derivative, which is nowhere positive, so that
    norm(s) - s falls at least as fast as -s. Goes by the cubic through the last two looks, between
    the scales known to lie on either side, and stops at a step of Newton's that is `short`.
    """
    low, high = 0.0, 1.0
    s = min(max(start, lowest), 1.0)
    last: _Look | None = None
    for _ in range(_MOST_STEPS):
        value, derivative = norm(s)
        look = _Look(s, value - s, derivative - 1)
        if look.gap < 0 and s <= lowest:
            return None
        low, high = (s, high) if look.gap > 0 else (low, s)
        newton, target = _newton(look), _root(look, last)
        step = abs(newton - s)
        if step <= short * s:
            return target if abs(target - newton) <= step else newton
        if not low < target < high:
            target = newton if low < newton < high else math.sqrt(low * high)
        last, s = look, min(max(target, lowest), 1.0)
    return s


def _newton(look: _Look) -> float:
    return look.scale - look.gap / look.slope


def _root(look: _Look, last: _Look | None) -> float:
    """Return where the gap closes: by Newton, or by Hermite's cubic for the scale given the gap."""
    if last is None or last.gap == look.gap:
        return _newton(look)
    rise = last.gap - look.gap
    t = -look.gap / rise
    secant = (last.scale - look.scale) / rise
    start, end = 1 / look.slope - secant, 1 / last.slope - secant
    return look.scale + t * rise * (secant + (1 - t) * (start * (1 - t) - end * t))
