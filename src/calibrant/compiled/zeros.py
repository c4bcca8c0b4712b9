"""The integral of abs(f) as a compiled loop; importing this module imports numba.

The same as `calibrant.absolute`, which tells how and why, one cell after another.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrant.compiled.kernels import compiled
from calibrant.compiled.passes import ROUNDING, VERTEX_STEPS

_TINY = float(np.finfo(np.float64).tiny)


@compiled
def even_mean(f: Any, n_cells: int, series: Any, parabola: Any) -> tuple[float, float]:
    """Return the mean of abs(f) over half a period, and the sum of abs(f') over its zeros there.

    f has values at 0, ..., n_cells, three or more beyond, and at its end two of those before 0.
    `series` takes six values around a cell to coefficients of -2 Q, P and P', and `parabola` takes
    them to c, b, a.
    """
    total, most = -(abs(f[0]) + abs(f[n_cells])) / 2, 0.0
    for j in range(n_cells + 1):
        total += abs(f[j])
        most = max(most, abs(f[j]))
    six, steepness, was_near = np.empty(6), 0.0, False
    for j in range(n_cells):
        left, right = f[j], f[j + 1]
        is_near = j + 1 < n_cells and abs(left + f[j + 2]) > 5 * abs(right)
        crosses = (left < 0) != (right < 0)
        if crosses or is_near or was_near:
            # Indices below 0 find the end.
            for i in range(6):
                six[i] = f[j + i - 2]
            if crosses:
                lacking, slope = _at_crossing(six, series, parabola)
            else:
                lacking, slope = _at_dip(six, series, parabola, ROUNDING * most)
            total += lacking
            steepness += slope
        was_near = is_near
    return total / n_cells, steepness * n_cells


@compiled
def smoothed_mean(
    a: Any, scale: float, cosines: Any, series: Any, parabola: Any
) -> tuple[float, float]:
    """Return the same of a cosine series smoothed at a scale, given cos(pi t) at 0, 1/N, ..., 1."""
    n_cells = len(cosines) - 1
    f, last = np.zeros(n_cells + 6), np.zeros(n_cells + 1)
    # Clenshaw's sum, all points side by side.
    for k in range(len(a) - 1, 0, -1):
        angle = math.pi * k * scale
        b = 2 * a[k] * math.exp(-angle * angle / 2)
        for j in range(n_cells + 1):
            this = f[j]
            f[j] = 2 * cosines[j] * this - last[j] + b
            last[j] = this
    for j in range(n_cells + 1):
        f[j] = cosines[j] * f[j] - last[j] + a[0]
    # It is even about both ends.
    for i in range(1, 4):
        f[n_cells + i] = f[n_cells - i]
    f[-1], f[-2] = f[1], f[2]
    return even_mean(f, n_cells, series, parabola)  # type: ignore[no-any-return]


@compiled
def _at_crossing(six: Any, series: Any, parabola: Any) -> tuple[float, float]:
    """Return what abs(f) lacks for a zero between values of different sign, and its slope."""
    sign = 1.0 if six[2] < 0 else -1.0
    c, b = sign * _dot(parabola, 0, six), sign * _dot(parabola, 1, six)
    a = sign * _dot(parabola, 2, six)
    v = c / (b + math.sqrt(abs(b * b + a * c)))
    return _at_zero(six, sign, min(max(v, -0.5), 0.5), series)  # type: ignore[no-any-return]


@compiled
def _at_dip(six: Any, series: Any, parabola: Any, rounding: float) -> tuple[float, float]:
    """Return the same for both zeros of a cell that f leaves on the side where it came in."""
    rise, bend = _dot(parabola, 1, six), _dot(parabola, 2, six)
    if abs(bend) <= max(2 * abs(rise), rounding):
        return 0.0, 0.0
    v, value = 0.0, 0.0
    for _ in range(VERTEX_STEPS):
        value, slope = _polynomial(series, 7, six, v), _polynomial(series, 14, six, v)
        v = min(max(v - slope / bend, -0.5), 0.5)
    depth = -value / bend
    if depth <= 0 or six[2] * bend <= 0:
        return 0.0, 0.0
    sign, half = (1.0 if bend > 0 else -1.0), math.sqrt(2 * depth)
    falling = _at_zero(six, -sign, v - half, series)
    rising = _at_zero(six, sign, v + half, series)
    return falling[0] + rising[0], falling[1] + rising[1]


@compiled
def _at_zero(six: Any, sign: float, v: float, series: Any) -> tuple[float, float]:
    """Return what abs(f) lacks for a zero at v, and the slope there, of f times a sign."""
    lacking = sign * _polynomial(series, 0, six, v)
    value, slope = sign * _polynomial(series, 7, six, v), sign * _polynomial(series, 14, six, v)
    return lacking + value * (value / (math.hypot(value, slope) + _TINY)), slope


@compiled
def _polynomial(series: Any, start: int, six: Any, v: float) -> float:
    """Return the polynomial at v whose coefficients seven rows of a table take from six values."""
    total = 0.0
    for power in range(6, -1, -1):
        total = total * v + _dot(series, start + power, six)
    return total


@compiled
def _dot(table: Any, row: int, six: Any) -> float:
    total = 0.0
    for i in range(6):
        total += table[row, i] * six[i]
    return total
