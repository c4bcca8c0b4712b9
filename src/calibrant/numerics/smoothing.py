"""Kernel smoothing of weighted points on an interval, in cosine space.

The Gaussian of scale s, reflected at 0 and 1 as often as need be, is the heat kernel of an
interval with insulated ends, and cosines diagonalise it. For a measure m = sum_i v_i delta_{x_i}:

    a_k     = sum_i v_i cos(pi k x_i)
    h_s(t)  = a_0 + 2 sum_{k >= 1} a_k exp(-(pi k s)^2 / 2) cos(pi k t)

All reflections are included, no mass is lost at 0 and 1, and beyond k = 2.8/s nothing is left.

Coefficients come from one pass over the points. These are gathered into N cells, each of which
keeps the moments sum v d^q, q = 0..Q, of the offsets d from its centre in units of its width.
Within a cell the cosine is replaced by the polynomial that interpolates it at the Q + 1 Chebyshev
nodes, so that one DCT or DST per moment gives every a_k. Smoothed at scale s, the error of this has
L1 norm at most

    c_Q (1 / (2 N s))^(Q+1) sum abs(v),     c_Q = E abs(He_{Q+1}(Z)) / (Q+1)! / 2^Q,
    c_2 < 0.063,  c_3 < 0.0146,  c_7 < 0.000019:

a Gaussian moved by d differs from its interpolant in d by a mean of its (Q+1)-th derivatives over
(Q+1)!, times the product of the distances from d to the nodes, which is at most
(half a cell)^(Q+1) / 2^Q for Chebyshev's; and reflection only brings mass together.

Points on the whole line are smoothed by the same means: :class:`Span` and :class:`Packed` map them
to an interval wide enough for nothing to be reflected.

Arrays may have leading axes: each row along the last axis is a problem of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from calibrant._base import FloatArray, IntArray
from calibrant.numerics.abs_integral import abs_integral_even, rough_abs_integral_even

# exp(-x^2 / 2) is below the rounding of a double here.
_GAUSSIAN_CUTOFF = 8.6
# Beyond so many scales a Gaussian has nothing left.
GAUSSIAN_RADIUS = 9.0
# Grid points per scale: to show a function in all detail, and to integrate abs(h_s).
_POINTS_PER_SCALE = 64
_POINTS_TO_INTEGRATE = 16
# More points than these are given only as far as integration needs them.
_MANY_POINTS = 1 << 20
_MIN_POINTS = 64
# Cells per scale for an error below 5e-10 with four moments and below 2e-11 with eight, wherever in
# their cells points are. There must be more cells than the 2.8 modes per scale.
_CELLS_PER_SCALE = {4: 37, 8: 3}
_MIN_CELLS = 64
# Four moments in so many cells take 4 MB: more would not stay in the processor's cache.
_MAX_CELLS = 1 << 17
# Series of so few modes are kept for the next call: making them takes longer than using them.
_MAX_CACHED = 1 << 12
# At scales below this one, moments and their transforms would take a third of a gigabyte.
FINEST_SCALE = 2.0**-17
# Up to so many scales an interval is taken whole, which needs no sorted points.
FEW_SCALES = 1 << 12
MAX_SCALES = 1 / FINEST_SCALE

Bounds = tuple[float, float]
NO_BOUNDS = (-math.inf, math.inf)
Block = tuple[FloatArray, Sequence[FloatArray]]


# Kernels


@dataclass(frozen=True)
class Kernel:
    """A kernel of unit scale on the line."""

    multiplier: Callable[[FloatArray], FloatArray]  # its Fourier transform
    peak: float  # its value at 0
    radius: float  # how far from 0 it is not 0, or not 0 after truncation of its cosine series
    roughness: float  # how many times more finely than a Gaussian it must be resolved
    third: float  # the L1 norm of its third derivative, over 3!
    widening: float  # the L1 norm of its derivative with respect to its scale


def _gaussian(omega: FloatArray) -> FloatArray:
    return np.exp(omega * omega * -0.5)


def _triweight(omega: FloatArray) -> FloatArray:
    from scipy.special import spherical_jn

    small = omega < 1e-2
    safe = np.where(small, 1.0, omega)
    # 105 j_3(x) / x^3, by its series where the quotient would lose digits.
    return np.where(small, 1 - omega**2 / 18, 105 * spherical_jn(3, safe) / safe**3)


GAUSSIAN = Kernel(
    _gaussian, 1 / np.sqrt(2 * np.pi), GAUSSIAN_RADIUS, 1.0, third=0.252, widening=0.968
)
# (35/32) (1 - u^2)^3 on [-1, 1]: its transform falls like 105 / x^4 only.
TRIWEIGHT = Kernel(_triweight, 35 / 32, 1.5, 128.0, third=91 / 16, widening=1.042)
KERNELS = {"gaussian": GAUSSIAN, "triweight": TRIWEIGHT}


# Cosine coefficients


def n_modes(scale: float) -> int:
    """Return the largest k whose mode the Gaussian of this scale does not extinguish."""
    return math.ceil(_GAUSSIAN_CUTOFF / (math.pi * scale))


def resolution(n_points: int, scale: float) -> tuple[int, int]:
    """Return the (cells, moments) that keep the error below 1e-9 at this scale.

    Four moments, which are soon gathered, where points are at least as many as the cells needed;
    else eight in fewer cells, which are soon transformed. Where points are spread out, their errors
    average out and the actual error is far below the bound in the module's docstring.
    """
    n_cells = _n_cells(4, scale)
    return (n_cells, 4) if n_cells <= min(n_points, _MAX_CELLS) else (_n_cells(8, scale), 8)


def _n_cells(n_moments: int, scale: float) -> int:
    return fast_length(max(_CELLS_PER_SCALE[n_moments] / scale, _MIN_CELLS))


def fast_length(at_least: float) -> int:
    """Return a number, not much larger, of points that an FFT is fast for."""
    from scipy.fft import next_fast_len

    return int(next_fast_len(math.ceil(at_least), real=True))


def spectrum(blocks: Iterable[Block], n_values: int, n_points: int, scale: float) -> FloatArray:
    """Return the cosine coefficients of blocks of (x in [0, 1], values), one row per value."""
    n_cells, n_moments = resolution(n_points, scale)
    moments = cell_moments(blocks, n_values, n_cells, n_moments)
    return coefficients(moments, n_modes(scale))


def cell_moments(
    blocks: Iterable[Block], n_values: int, n_cells: int, n_moments: int
) -> FloatArray:
    """Return the moments, (n_values, n_moments, n_cells), of blocks of (x in [0, 1], values)."""
    moments = np.zeros((n_values, n_moments, n_cells))
    for x, values in blocks:
        offset = x * n_cells
        cell = offset.astype(np.intp)
        np.minimum(cell, n_cells - 1, out=cell)  # 1 is in the last cell
        offset -= cell
        offset -= 0.5
        for sums, value in zip(moments, values, strict=True):
            power = np.array(value)
            for moment in sums:
                np.add.at(moment, cell, power)  # in less time than bincount with weights
                power *= offset
    return moments


def coefficients(moments: FloatArray, modes: int) -> FloatArray:
    """Return a_0..a_modes, fewer than cells, from moments of shape (..., Q+1, cells).

    With x_j the centre of cell j and u = pi k / N, cos(pi k (x_j + d / N)) is
    cos(pi k x_j) cos(u d) - sin(pi k x_j) sin(u d): even powers of d take a DCT-2, odd ones a DST.
    """
    from scipy.fft import dct, dst

    n_moments, n_cells = moments.shape[-2:]
    factors = _offset_series if modes <= _MAX_CACHED else _offset_series.__wrapped__
    even, odd = factors(n_cells, n_moments, modes)
    cosines = dct(moments[..., ::2, :], axis=-1)[..., : modes + 1]
    sines = dst(moments[..., 1::2, :], axis=-1)[..., :modes]
    a = (cosines * even).sum(axis=-2)
    a[..., 1:] -= (sines * odd).sum(axis=-2)
    return np.asarray(a)


@lru_cache(maxsize=16)
def _offset_series(n_cells: int, n_moments: int, modes: int) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of even powers of d in cos(u d) / 2 and of odd ones in sin(u d) / 2.

    One row per power; halves because scipy's transforms are twice the sums. Interpolated at
    Chebyshev's nodes; one column per mode, from 0 and from 1 on.
    """
    node = np.cos(np.pi * (np.arange(n_moments) + 0.5) / n_moments) / 2
    interpolation = np.linalg.inv(np.vander(node, increasing=True)) / 2
    angle = np.multiply.outer(node, np.pi / n_cells * np.arange(modes + 1))
    return interpolation[::2] @ np.cos(angle), interpolation[1::2] @ np.sin(angle[:, 1:])


# Smoothed functions


def damped(a: FloatArray, scale: float | FloatArray) -> FloatArray:
    """Return the coefficients after smoothing; `scale` has the leading axes of `a` or none."""
    return filtered(a, scale, _gaussian)


def filtered(
    a: FloatArray, scale: float | FloatArray, multiplier: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Return the coefficients after smoothing with a kernel, given its Fourier transform."""
    frequency = np.multiply.outer(np.pi * scale, np.arange(a.shape[-1]))
    return np.asarray(a * multiplier(frequency))


def series_values(b: FloatArray, n_points: int) -> FloatArray:
    """Return b_0 + 2 sum b_k cos(pi k t) at t = 0, 1/n, ..., 1 (n above the modes)."""
    return np.fft.irfft(b, 2 * n_points, axis=-1, norm="forward")[..., : n_points + 1]


def grid_points(scale: float, modes: int) -> int:
    """Return how many steps of [0, 1] show a function smooth at this scale in all detail."""
    wanted = min(_POINTS_PER_SCALE / scale, max(_MANY_POINTS, _POINTS_TO_INTEGRATE / scale))
    return 1 << math.ceil(math.log2(max(wanted, modes + 1, _MIN_POINTS)))


def integration_points(scale: float, modes: int) -> int:
    """Return how many steps of [0, 1] suffice to integrate a function smooth at this scale."""
    return fast_length(max(_POINTS_TO_INTEGRATE / scale, modes + 1, _MIN_POINTS))


def l1_norm(a: FloatArray, scale: float, *, rough: bool = False) -> tuple[float, float]:
    """Return the integral over [0, 1] of abs(h_s), and its derivative with respect to the scale.

    By the heat equation dh/ds = s h'', so that the derivative is -2 s times the sum of abs(h')
    over the zeros of h: at 0 and 1 h' is 0. `rough` values take half the time: five digits of the
    integral and two of the derivative.
    """
    modes = min(n_modes(scale), len(a) - 1)
    n_points = integration_points(scale, modes)
    h = series_values(damped(a[: modes + 1], scale), n_points)
    integral, steepness = (rough_abs_integral_even if rough else abs_integral_even)(h)
    return integral, -2 * scale * steepness


def l2_norm(a: FloatArray, scale: float) -> float:
    """Return the root of the integral over [0, 1] of h_s^2."""
    b = damped(a[: n_modes(scale) + 1], scale)
    return math.sqrt(2 * float(b @ b) - float(b[0]) ** 2)


# Intervals of the line


class Axis(Protocol):
    """An interval that holds points of the line."""

    @property
    def length(self) -> float:
        """The length of the interval."""

    def fractions(self, u: FloatArray) -> FloatArray:
        """Return where points of the line lie in the interval, from 0 to 1."""

    def positions(self, fraction: FloatArray) -> FloatArray:
        """Return where fractions of the interval lie on the line."""


@dataclass(frozen=True)
class Span:
    """All of the line from one point to another."""

    low: float
    high: float

    @property
    def length(self) -> float:
        """The length of the interval."""
        return self.high - self.low

    def fractions(self, u: FloatArray) -> FloatArray:
        """Return where points of the line lie in the interval, from 0 to 1."""
        return (u - self.low) / self.length

    def positions(self, fraction: FloatArray) -> FloatArray:
        """Return where fractions of the interval lie on the line."""
        return self.low + self.length * fraction


@dataclass(frozen=True, eq=False)
class Packed:
    """An interval around points, with gaps between them shortened to twice the kernel's radius.

    Points further apart than that are not smoothed into each other, however far apart they are. So
    the length, in scales, is bounded by the number of distinct points, however small the scale.
    """

    first: FloatArray  # the first point of each run without a shortened gap, on the line
    start: FloatArray  # and within the interval
    length: float
    radius: float  # how far points are smoothed

    @classmethod
    def around(cls, u: FloatArray, radius: float, bounds: Bounds = NO_BOUNDS) -> Packed:
        """Pack increasing points u; what is smoothed beyond the bounds is reflected."""
        begins = run_starts(u, radius)
        first, last = u[begins], u[np.append(begins[1:], len(u)) - 1]
        start = np.cumsum(np.append(min(u[0] - bounds[0], radius), last - first + 2 * radius))
        length = float(start[-1]) - 2 * radius + min(bounds[1] - float(u[-1]), radius)
        return cls(first, start[:-1], length, radius)

    def fractions(self, u: FloatArray) -> FloatArray:
        """Return where points within the radius of those packed lie in the interval."""
        run = np.searchsorted(self.first[1:] - self.radius, u, side="right")
        return np.minimum((self.start[run] + (u - self.first[run])) / self.length, 1.0)

    def positions(self, fraction: FloatArray) -> FloatArray:
        """Return where fractions of the interval lie on the line."""
        inside = fraction * self.length
        run = np.searchsorted(self.start[1:] - self.radius, inside, side="right")
        return np.asarray(self.first[run] + (inside - self.start[run]))


@dataclass(frozen=True, eq=False)
class LineSpectrum:
    """Points of the line, ready to be smoothed."""

    axis: Axis
    coefficients: FloatArray  # cosine coefficients over it, one row per set of values


def run_starts(u: FloatArray, radius: float) -> IntArray:
    """Return where runs of increasing points begin, more than twice the radius apart."""
    with np.errstate(over="ignore"):
        return np.append(0, np.flatnonzero(np.diff(u) > 2 * radius) + 1)


def packed_spectrum(
    u: FloatArray,
    values: Sequence[FloatArray],
    scale: float,
    radius: float,
    bounds: Bounds = NO_BOUNDS,
) -> LineSpectrum:
    """Return the spectrum of increasing points u, packed, for scales from `scale` on.

    `radius` is that of the kernel at the coarsest of these scales.
    """
    packed = Packed.around(u, radius, bounds)
    block = packed.fractions(u), values
    return LineSpectrum(packed, spectrum([block], len(values), len(u), scale / packed.length))


def finest_packed(u: FloatArray, scale: float, radius: float, bounds: Bounds = NO_BOUNDS) -> float:
    """Return the smallest scale, from `scale` on, for which increasing points u can be packed.

    `radius` is that of the kernel in units of its scale. At scale s gaps g add up to
    sum min(g, 2 radius s), the minimum over k of the sum of the k narrowest and 2 radius s for each
    of the others.
    """
    if len(u) < 2 or Packed.around(u, radius * scale, bounds).length <= MAX_SCALES * scale:
        return scale
    gaps = np.sort(np.diff(u))
    others = np.arange(len(gaps) - 1, -1, -1)
    left = MAX_SCALES - 2 * radius * (others + 1)
    found = np.cumsum(gaps)[left > 0] / left[left > 0]
    return max(float(found.min()), scale)
