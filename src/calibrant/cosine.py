"""The reflected Gaussian in cosine space.

The Gaussian of scale s, reflected at 0 and 1 as often as need be, is the heat kernel of an
interval with insulated ends, and cosines diagonalise it. For a measure m = sum_i v_i delta_{p_i}:

    a_k     = sum_i v_i cos(pi k p_i)
    h_s(t)  = a_0 + 2 sum_{k >= 1} a_k exp(-(pi k s)^2 / 2) cos(pi k t)

All reflections are included, no mass is lost at 0 and 1, and beyond k = 2.8/s nothing is left.

Coefficients come from one pass over the rows. Rows are gathered into N cells, each keeping the
moments m_q = sum v d^q of its rows' offsets d from its centre, q = 0..Q. Within a cell the cosine
is taken for the polynomial that meets it at Chebyshev's Q + 1 places, so that one FFT a moment
gives every a_k. Smoothed at scale s, what is left out has L1 norm at most

    c_Q (1 / (2 N s))^(Q+1) sum abs(v),     c_Q = E abs(He_{Q+1}(Z)) / (Q+1)! / 2^Q,
    c_2 < 0.063,  c_4 < 0.0031,  c_6 < 0.00011,  c_7 < 0.000019:

a Gaussian moved by d differs from its interpolant in d by a mean of its (Q+1)-th derivatives over
(Q+1)!, times the product of the distances from d to the places, which Chebyshev's keep below
(half a cell)^(Q+1) / 2^Q; and reflection only brings mass together.

Arrays may have leading axes: each row along the last axis is a problem of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from calibrant import absolute
from calibrant.arrays import FloatArray
from calibrant.compiled import passes

# Takes an even function over a period; returns the mean of its size and the slopes at its zeros.
AbsMean = Callable[[FloatArray], tuple[float, float]]

_Array = TypeVar("_Array", bound=npt.NDArray[Any])
_Table = TypeVar("_Table")

# exp(-x^2 / 2) is below the rounding of a double here.
_GAUSSIAN_REACH = 8.6
# Points per scale s: to show a function in all detail, and to integrate abs(h_s).
_POINTS_PER_SCALE = 64
_POINTS_TO_INTEGRATE = 16
# More points than these are given only as far as integration needs them.
_MANY_POINTS = 1 << 20
_LEAST_POINTS = 64
# At scales below this one moments and their transforms would take more than a third of a gigabyte.
FINEST_SCALE = 2.0**-17
# Cells per scale that moments up to an order ask for: the error is below 5e-10 wherever in their
# cells scores are.
_CELLS_PER_SCALE = {2: 256, 4: 12, 6: 3, 7: 2}
# (above so many rows, order of moments, as long as there are no more cells than this): many cells
# are slow to fill once they are too many for the cache.
_ORDERS = ((0, 6, math.inf), (20_000, 4, math.inf), (500_000, 2, 1 << 15))
_SHORT = 4096
# So few terms, over all points, that compiled code adds them up sooner than an FFT is begun.
_FEW_TERMS = 1 << 16


def n_modes(scale: float) -> int:
    """Return the largest k whose mode the Gaussian of this scale does not extinguish."""
    return math.ceil(_GAUSSIAN_REACH / (math.pi * scale))


def resolution(n_rows: int, scale: float) -> tuple[int, int]:
    """Return (cells, order of moments) that keep the error below 1e-9 at this scale.

    Few rows: many moments and few cells, for the FFT's sake. Many rows: few moments and many
    cells, for the rows' sake. Where scores are spread out, errors of rows average out and the
    actual error is far below the bound in the module's docstring.
    """
    # The order of moments falls as rows grow in number, as long as there is room for the cells.
    for above_rows, order, most_cells in reversed(_ORDERS):
        n_cells = cells_for(order, scale)
        if n_rows > above_rows and n_cells <= most_cells:
            break
    return n_cells, order


def cells_for(order: int, scale: float) -> int:
    """Return how many cells with moments up to an order resolve a scale."""
    return _good_size(max(_CELLS_PER_SCALE[order] / scale, 64))


def spectrum(x: FloatArray, values_at_x: Sequence[FloatArray], scale: float) -> FloatArray:
    """Return the cosine coefficients of sum v delta_x, x in [0, 1], one row a set of values."""
    n_cells, order = resolution(len(x), scale)
    moments = gather([(x, values_at_x)], len(values_at_x), n_cells, order)
    return coefficients(moments, n_modes(scale))


def gather(
    blocks: Iterable[tuple[FloatArray, Sequence[FloatArray]]],
    n_values: int,
    n_cells: int,
    order: int,
) -> FloatArray:
    """Return moments (n_values, order+1, n_cells) of blocks of (places in [0, 1], values).

    The order is even.
    """
    zeroth = np.zeros((n_values, n_cells))
    # Moments 1 and 2, 3 and 4, ... as real and imaginary parts: numpy scatters a complex number in
    # hardly more time than a real one.
    pairs = np.zeros((n_values, order // 2, n_cells), dtype=np.complex128)
    # A hair less than the number of cells, so that 1 falls into the last one.
    just_below = n_cells * (1 - 2.0**-52)
    n_rows = -1
    for x, block_values in blocks:
        if len(x) != n_rows:
            n_rows = len(x)
            # Made once, and again for a shorter last block: fresh memory costs more than work.
            offset, floor, cell = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows, np.intp)
            short = np.empty(n_rows, np.int32)
            pair = np.empty(n_rows, dtype=np.complex128)
            odd, even = pair.real, pair.imag
        np.multiply(x, just_below, out=offset)
        # By way of 32 bits, which processors convert several at a time.
        np.copyto(short, offset, casting="unsafe")
        cell[:] = floor[:] = short
        offset -= floor
        offset -= 0.5
        for total, totals, value in zip(zeroth, pairs, block_values, strict=True):
            np.add.at(total, cell, value)
            last = value
            for higher in totals:
                np.multiply(last, offset, out=odd)
                np.multiply(odd, offset, out=even)
                np.add.at(higher, cell, pair)
                last = even
    moments = np.empty((n_values, order + 1, n_cells))
    moments[:, 0], moments[:, 1::2], moments[:, 2::2] = zeroth, pairs.real, pairs.imag
    return moments


def coefficients(moments: FloatArray, modes: int) -> FloatArray:
    """Return a_0..a_modes from moments of shape (..., Q+1, N), offsets in units of a cell."""
    return folded_coefficients(_folded(moments), modes)


def folded_coefficients(folded: FloatArray, modes: int) -> FloatArray:
    """Return the same from moments of shape (..., N, Q+1) whose cells are folded.

    Folded are even cells from the left and odd ones from the right, the offsets of these counted
    leftwards. After Makhoul: the transform of N such numbers has the cosine sums of even moments as
    its real parts, half a cell aside, and the sine sums of odd ones as its imaginary parts. Without
    it 2N numbers would have to be transformed, half of them zeros.
    """
    n_cells, n_moments = folded.shape[-2:]
    spectrum = np.ascontiguousarray(np.fft.rfft(folded, axis=-2))
    which, factors = _mode_table(n_cells, modes, n_moments)
    parts = np.take(spectrum.view(np.float64), which, axis=-2)
    return np.asarray(np.einsum("...kj,kj->...k", parts, factors))


def _folded(moments: FloatArray) -> FloatArray:
    n_moments, n_cells = moments.shape[-2:]
    folded = np.empty((*moments.shape[:-2], n_cells, n_moments))
    middle = (n_cells + 1) // 2
    folded[..., :middle, :] = moments[..., ::2].swapaxes(-1, -2)
    folded[..., middle:, :] = moments[..., 1::2][..., ::-1].swapaxes(-1, -2)
    np.negative(folded[..., middle:, 1::2], out=folded[..., middle:, 1::2])
    return folded


def damped(a: FloatArray, scale: float | FloatArray) -> FloatArray:
    """Return the coefficients after smoothing; `scale` has the leading axes of `a` or none."""
    size, square = a.shape[-1], scale * scale
    # Made for the next power of two, so that one table serves many scales.
    log_damping = _log_damping(1 << size.bit_length())[:size]
    return a * np.exp(log_damping * (square if isinstance(square, float) else square[..., None]))


def filtered(
    a: FloatArray, scale: float, multiplier: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Return the coefficients after smoothing with another kernel, given its Fourier transform."""
    return a * multiplier(np.pi * scale * np.arange(a.shape[-1], dtype=np.float64))


def values(b: FloatArray, n_points: int) -> FloatArray:
    """Return b_0 + 2 sum b_k cos(pi k t) at t = 0, 1/n, ..., 1 (n above the modes)."""
    return _period(b, n_points)[..., : n_points + 1]


@overload
def abs_integral(a: FloatArray, scale: float, mean: AbsMean = ...) -> tuple[float, float]: ...
@overload
def abs_integral(a: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]: ...
def abs_integral(
    a: FloatArray, scale: float | FloatArray, mean: AbsMean = absolute.even_mean
) -> tuple[float, float] | tuple[FloatArray, FloatArray]:
    """Return the integral over [0, 1] of abs(h_s), and its derivative with respect to the scale.

    By the heat equation dh/ds = s h'', so that the derivative is -2 s times the sum of abs(h')
    over the zeros of h: at 0 and 1 h' is nil. Several rows have a scale each. Where compiled code
    is loaded it takes the mean of short series itself, exactly.
    """
    if not isinstance(scale, float):
        pairs = [abs_integral(row, s, mean) for row, s in zip(a, scale.tolist(), strict=True)]
        integrals, slopes = np.array(pairs).T
        return integrals, slopes
    modes = min(n_modes(scale), len(a) - 1)
    n_points = _good_size(max(_POINTS_TO_INTEGRATE / scale, modes + 1, _LEAST_POINTS))
    if passes.is_loaded() and modes * n_points <= _FEW_TERMS:
        integral, steepness = absolute.smoothed_mean(a[: modes + 1], scale, _cosines(n_points))
    else:
        integral, steepness = mean(_period(damped(a[: modes + 1], scale), n_points))
    return integral, -2 * scale * steepness


def root_mean_square(a: FloatArray, scale: float) -> float:
    """Return the root of the integral over [0, 1] of h_s^2."""
    b = damped(a[: n_modes(scale) + 1], scale)
    return math.sqrt(2 * float(b @ b) - float(b[0]) ** 2)


def grid_points(scale: float, modes: int) -> int:
    """Return how many steps of [0, 1] show a function smooth at this scale in all detail."""
    wanted = min(_POINTS_PER_SCALE / scale, max(_MANY_POINTS, _POINTS_TO_INTEGRATE / scale))
    return _good_size(max(wanted, modes + 1, _LEAST_POINTS))


def _period(b: FloatArray, n_points: int) -> FloatArray:
    """Return the series at t = 0, 1/n, ... over a whole period [0, 2)."""
    return np.fft.irfft(b, 2 * n_points, axis=-1, norm="forward")


def _kept_if_small(make: Callable[..., _Table]) -> Callable[..., _Table]:
    """Keep a few short tables between calls: making them costs more than using them."""
    keep = lru_cache(maxsize=16)(make)

    def table(*sizes: int) -> _Table:
        return keep(*sizes) if max(sizes) <= _SHORT else make(*sizes)

    return table


@_kept_if_small
def _cosines(n_points: int) -> FloatArray:
    # Not locked: compiled code takes arrays that cannot be written to for another type.
    return np.cos(np.pi * np.arange(n_points + 1) / n_points)


@_kept_if_small
def _log_damping(size: int) -> FloatArray:
    return _locked(-0.5 * (np.pi * np.arange(size, dtype=np.float64)) ** 2)


@_kept_if_small
def _mode_table(
    n_cells: int, modes: int, n_moments: int
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return where to find each mode in the transform of N cells, and what its parts add to it.

    They add the real parts of their products with the coefficients of d^q in exp(-i angle (1/2 +
    d)). Beyond N/2 a transform goes on as its own mirror image, conjugated, and so on.
    """
    mode = np.arange(modes + 1)
    angle = np.pi * mode / n_cells
    places = np.cos(np.pi * (np.arange(n_moments) + 0.5) / n_moments) / 2
    # Cell j is centred half a cell beyond j / N.
    met = np.exp(-1j * np.multiply.outer(angle, 0.5 + places))
    factors = met @ np.linalg.inv(np.vander(places, increasing=True)).T
    mode %= n_cells
    is_mirrored = mode > n_cells // 2
    which = np.where(is_mirrored, n_cells - mode, mode)
    factors = np.where(is_mirrored[:, None], factors, factors.conj())
    return _locked(which), _locked(factors.view(np.float64))


def _locked(array: _Array) -> _Array:
    array.flags.writeable = False
    return array


def _good_size(at_least: float) -> int:
    """Return a size that the FFT likes: 1, 5/4 or 3/2 times a power of two."""
    power = 1 << max(3, math.frexp(at_least)[1])
    if at_least <= power * 5 // 8:
        return power // 2 if at_least <= power // 2 else power * 5 // 8
    return power * 3 // 4 if at_least <= power * 3 // 4 else power
