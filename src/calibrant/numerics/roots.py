"""Roots of monotone functions, and the scale at which a falling norm equals the scale itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

_MAX_STEPS = 100
# Newton steps, in units of the scale, after which the norm is not evaluated again. Where zeros of
# what the norm is of come or go, its slope has a root's bend: the error is the step to 3/2.
_SHORT, ROUGH = 3e-7, 3e-3


class _Point(NamedTuple):
    scale: float
    gap: float
    slope: float


Norm = Callable[[float], tuple[float, float]]


def fixed_point(norm: Norm, lowest: float, start: float, short: float = _SHORT) -> float | None:
    """Return the s in [lowest, 1] with norm(s) = s, or None where it lies below.

    `norm` gives values in [0, 1] and their derivative, which is nowhere positive, so that
    norm(s) - s falls at least as fast as -s. Goes by the cubic through the last two points, between
    the scales known to lie on either side, and stops at a Newton step that is `short`.
    """
    low, high = 0.0, 1.0
    s = min(max(start, lowest), 1.0)
    last: _Point | None = None
    for _ in range(_MAX_STEPS):
        value, derivative = norm(s)
        point = _Point(s, value - s, derivative - 1)
        if point.gap < 0 and s <= lowest:
            return None
        low, high = (s, high) if point.gap > 0 else (low, s)
        newton, target = _newton(point), _inverse_cubic(point, last)
        step = abs(newton - s)
        if step <= short * s:
            return target if abs(target - newton) <= step else newton
        if not low < target < high:
            target = newton if low < newton < high else math.sqrt(low * high)
        last, s = point, min(max(target, lowest), 1.0)
    return s


def _newton(point: _Point) -> float:
    return point.scale - point.gap / point.slope


def _inverse_cubic(point: _Point, last: _Point | None) -> float:
    """Return where the gap closes, by Hermite's cubic for the scale given the gap, or by Newton."""
    if last is None or last.gap == point.gap:
        return _newton(point)
    rise = last.gap - point.gap
    t = -point.gap / rise
    secant = (last.scale - point.scale) / rise
    start, end = 1 / point.slope - secant, 1 / last.slope - secant
    return point.scale + t * rise * (secant + (1 - t) * (start * (1 - t) - end * t))


def monotone_root(
    rising: Callable[[float], float], low: float, high: float, tolerance: float
) -> float:
    """Return where a non-decreasing function is 0, or the end nearer to that."""
    from scipy.optimize import brentq

    known = cache(rising)  # brentq begins at the ends
    if known(low) >= 0:
        return low
    if known(high) <= 0:
        return high
    return float(brentq(known, low, high, xtol=tolerance))
