"""The integral of abs(f) over [0, 1], for a smooth f known on a uniform grid.

In units of a grid step, and with the first value counted by half, the sum of f up to grid point j
is by Euler and Maclaurin less than the integral up to the middle of the next step by

    M - E_0,    M = f'/24 - 7 f^(3)/5760 + 31 f^(5)/967680  in that middle,
                E = f'/12 - f^(3)/720 + f^(5)/30240         at a grid point.

So where f has a zero at v, counted from the middle of its step, the trapezoidal sum of abs(f) is
corrected by

    -2 Q(v),    Q(v) = M + integral from 0 to v of P,

times the sign that f has beyond the zero; P is the polynomial through the six nearest values.
Where v is known to within e only, the integral of abs(P) is too small by e^2 abs(P')/2, or
P(v)^2 / abs(2 P'). Two zeros within one step, where f dips below the axis and comes back between
two grid points, are looked for too. With 16 points per scale of a Gaussian the error is near 1e-12.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray

# Zeros: the six values around each, with the sign that makes f rise through it, and v, nearly.
_Zeros = tuple[FloatArray, FloatArray]

# The values that P goes through, counted from the grid point before a zero.
_NEAREST = np.arange(-2, 4)
_STENCIL = _NEAREST[:, None]
# Takes six values to the coefficients of P, lowest degree first.
_POLYNOMIAL = np.linalg.inv(np.vander(_NEAREST - 0.5, increasing=True))
_MIDDLE_TERM = np.array([0, 1 / 24, 0, -7 / 960, 0, 31 / 8064]) @ _POLYNOMIAL
_END_TERM = np.array([0, 1 / 12, 0, -1 / 120, 0, 1 / 252]) @ np.linalg.inv(
    np.vander(_NEAREST.astype(np.float64), increasing=True)
)
# From six values to coefficients of powers of v: of -2 Q, of P and of P'.
_POWERS = np.arange(7)[:, None]
_CORRECTION = -2 * np.vstack((_MIDDLE_TERM, _POLYNOMIAL / _POWERS[1:]))
_VALUE = np.vstack((_POLYNOMIAL, np.zeros(6)))
_SLOPE = np.roll(_POWERS * _VALUE, -1, axis=0)
_SERIES = np.vstack((_CORRECTION, _VALUE, _SLOPE))
# And to c, b, a of the parabola a v^2 / 2 + b v - c / 2 through the ends of the step that bends as
# the four nearest values do.
_BEND = np.array([0, 1, -1, -1, 1, 0]) / 2
_PARABOLA = np.array((_BEND / 4 - [0, 0, 1, 1, 0, 0], [0, 0, -1, 1, 0, 0], _BEND))
# Values beyond either end of a grid by the polynomial through the six values there.
_BEYOND = np.vander(np.arange(6.0, 9.0), 6, increasing=True) @ np.linalg.inv(
    np.vander(np.arange(6.0), increasing=True)
)
# Newton steps towards the vertex of a dip, and bends that are rounding errors of f = 1.
_VERTEX_STEPS, _ROUNDING = 3, 1e-14
_TINY = np.finfo(np.float64).tiny


def abs_integral(f: FloatArray) -> float:
    """Return the integral of abs(f) over [0, 1] from its values at 0, 1/N, ..., 1, six or more."""
    n_steps = len(f) - 1
    before, after = _BEYOND @ f[5::-1], _BEYOND @ f[-6:]
    # What lies before 0 stands at the end, where indices below 0 find it.
    around = np.concatenate((f, after, before[1::-1]))
    start, end = (
        np.where(f[place] < 0, -1.0, 1.0) * (around[_NEAREST + place] @ _END_TERM)
        for place in (0, n_steps)
    )
    return _integral(around, n_steps)[0] + float(start - end) / n_steps


def abs_integral_even(f: FloatArray) -> tuple[float, float]:
    """Return the integral of abs(f) over [0, 1], and the sum of abs(f') over the zeros of f.

    f is even about 0 and about 1, and is given at 0, 1/N, ..., 1.
    """
    return _integral(np.concatenate((f, f[-2:-5:-1], f[2:0:-1])), len(f) - 1)


def rough_abs_integral_even(f: FloatArray) -> tuple[float, float]:
    """Return the same in half the time, the integral to five digits or so and the slopes to two.

    Zeros are those of straight lines between the grid points.
    """
    n_steps = len(f) - 1
    size, negative = np.abs(f), f < 0
    (place,) = (negative[1:] != negative[:-1]).nonzero()
    left, right = f[place], f[place + 1]
    rise = np.abs(right - left)
    steepness = float(rise.sum())
    total = float(size.sum() - (size[0] + size[-1]) / 2)
    total += steepness / 6 + float((left * (right / rise)).sum())
    return total / n_steps, steepness * n_steps


def _integral(f: FloatArray, n_steps: int) -> tuple[float, float]:
    """Return the integral, but for what the ends add, and the sum of abs(f') over the zeros.

    f has values at 0, ..., n_steps, three more beyond, and at its end two of those before 0.
    """
    inner = f[: n_steps + 1]
    size, negative = np.abs(inner), inner < 0
    correction, steepness = _at_zeros(*_crossings(f, negative))
    # A parabola comes at most an eighth of its bend nearer to the axis than the nearer of two
    # grid points, whose neighbours then have six times its value or more between them.
    (near,) = (np.abs(inner[:-2] + inner[2:]) > 5 * size[1:-1]).nonzero()
    if len(near):
        steps = np.union1d(near, near + 1)
        steps = steps[negative[steps] == negative[steps + 1]]
        more = _at_zeros(*_dips(f[_STENCIL + steps], _ROUNDING * size.max()))
        correction, steepness = correction + more[0], steepness + more[1]
    total = float(size.sum() - (size[0] + size[-1]) / 2) + correction
    return total / n_steps, steepness * n_steps


def _at_zeros(stencil: FloatArray, v: FloatArray) -> tuple[float, float]:
    """Return the sum of the corrections for the zeros, and of f' there."""
    each = _polynomials(stencil, v)
    _, value, slope = each
    # The value shows how far v is from the zero.
    value *= value / (np.hypot(value, slope) + _TINY)
    correction, second_order, steepness = np.add.reduce(each, axis=1).tolist()
    return correction + second_order, steepness


def _polynomials(stencil: FloatArray, v: FloatArray) -> FloatArray:
    """Return -2 Q, P and P' at v."""
    series = (_SERIES @ stencil).reshape(3, 7, -1)
    return np.asarray(np.add.reduce(series * v**_POWERS, axis=1))


def _crossings(f: FloatArray, negative: npt.NDArray[np.bool_]) -> _Zeros:
    """Return the zeros between grid points of different sign: those of a parabola."""
    (place,) = (negative[1:] != negative[:-1]).nonzero()
    stencil = f[_STENCIL + place] * np.where(negative[place], 1.0, -1.0)
    c, b, a = _PARABOLA @ stencil
    # b is above 0, and only rounding takes the sum under the root below it.
    v = c / (b + np.sqrt(np.abs(b * b + a * c)))
    return stencil, np.minimum(np.maximum(v, -0.5), 0.5)


def _dips(stencil: FloatArray, rounding: float) -> _Zeros:
    """Return both zeros within steps that f leaves on the side where it came in."""
    _, rise, bend = _PARABOLA @ stencil
    # Bends of the size of rounding errors mean nothing, and dividing by them is unwise.
    turns = np.abs(bend) > np.maximum(2 * np.abs(rise), rounding)
    stencil, bend = stencil[:, turns], bend[turns]
    v = np.zeros(len(bend))
    for _ in range(_VERTEX_STEPS):
        _, value, slope = _polynomials(stencil, v)
        v = np.clip(v - slope / bend, -0.5, 0.5)
    depth = -value / bend
    below = (depth > 0) & (stencil[2] * bend > 0)
    rising, v = stencil[:, below] * np.sign(bend[below]), v[below]
    half = np.sqrt(2 * depth[below])
    return np.hstack((-rising, rising)), np.hstack((v - half, v + half))
