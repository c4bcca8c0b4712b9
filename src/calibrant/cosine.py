"""The reflected Gaussian in cosine space.

The Gaussian of scale s, reflected at 0 and 1 as often as need be, is the heat kernel of an
interval with insulated ends, and cosines diagonalise it. For a measure m = sum_i v_i delta_{p_i}:

    a_k     = sum_i v_i cos(pi k p_i)
    h_s(t)  = a_0 + 2 sum_{k >= 1} a_k exp(-(pi k s)^2 / 2) cos(pi k t)

All reflections are included, no mass is lost at 0 and 1, and beyond k = 2.8/s nothing is left.

Coefficients come from one pass over the rows. Rows are gathered into N cells, each keeping the
moments m_q = sum v d^q of its rows' offsets d from its centre, q = 0..Q; a Taylor expansion of the
cosine about the centres and one FFT a moment give every a_k. Smoothed at scale s, what is left out
has L1 norm at most

    c_Q (1 / (2 N s))^(Q+1) sum abs(v),     c_2 < 0.26,  c_6 < 0.0071,

since moving a Gaussian's centre by d changes it by at most E abs(He_{Q+1}(Z)) (d/s)^(Q+1)/(Q+1)!
beyond the first Q terms of its Taylor series, and reflection only brings mass together.

Arrays may have leading axes: each row along the last axis is a problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray

# exp(-x^2 / 2) is below the rounding of a double here.
_GAUSSIAN_REACH = 8.6
# Points of the evaluation grid per scale s. The error of the integral of abs(h) at a sign change
# is about (step/s)^4 / 400 of s times the height of h: 2e-10 of it.
POINTS_PER_SCALE = 64
_ROUGH_POINTS_PER_SCALE = 12
# Means over the first cell of the cubic through the first four values.
_END_WEIGHTS = np.array([9.0, 19.0, -5.0, 1.0]) / 24
_MANY_ROWS = 300_000
# Sixty-four megabytes of moments at order 2. Scales below FINEST_SCALE are out of reach.
MOST_CELLS = 1 << 21
FINEST_SCALE = 16 / MOST_CELLS


def gaussian(omega: FloatArray) -> FloatArray:
    """Return the Fourier transform of the standard normal density."""
    return np.asarray(np.exp(-0.5 * omega * omega))


def n_modes(scale: float) -> int:
    """Return the largest k whose mode the Gaussian of this scale does not extinguish."""
    return int(np.ceil(_GAUSSIAN_REACH / (np.pi * scale)))


def resolution(n_rows: int, scale: float) -> tuple[int, int]:
    """Return (cells, order of moments) that keep the error near 1e-10 at this scale.

    Few rows: many moments and few cells, for the FFT's sake. Many rows: few moments and many
    cells, for the rows' sake. Where scores are spread out, errors of rows average out and the
    actual error is far below the bound in the module's docstring.
    """
    few = n_rows < _MANY_ROWS or 128 / scale > MOST_CELLS
    order, cells_per_scale = (6, 8) if few else (2, 128)
    return min(_good_size(max(cells_per_scale / scale, 64)), MOST_CELLS), order


def spectrum(x: FloatArray, values_at_x: Sequence[FloatArray], scale: float) -> FloatArray:
    """Return the cosine coefficients of sum v delta_x, x in [0, 1], one row a set of values."""
    n_cells, order = resolution(len(x), scale)
    moments = gather([(x, values_at_x)], len(values_at_x), n_cells, order)
    return coefficients(moments, min(n_modes(scale), n_cells))


def gather(
    blocks: Iterable[tuple[FloatArray, Sequence[FloatArray]]],
    n_values: int,
    n_cells: int,
    order: int,
) -> FloatArray:
    """Return moments (n_values, order+1, n_cells) of blocks of (places in [0, 1], values)."""
    moments = np.zeros((n_values, order + 1, n_cells))
    for x, block_values in blocks:
        offset = x * n_cells
        cell = np.minimum(offset.astype(np.intp), n_cells - 1)
        offset -= cell
        offset -= 0.5
        for total, value in zip(moments, block_values, strict=True):
            part = value
            for q in range(order + 1):
                total[q] += np.bincount(cell, part, minlength=n_cells)
                if q < order:
                    part = part * offset
    return moments


def coefficients(moments: FloatArray, modes: int) -> FloatArray:
    """Return a_0..a_modes from moments of shape (..., Q+1, N), offsets in units of a cell."""
    order, n_cells = moments.shape[-2] - 1, moments.shape[-1]
    spectrum = np.fft.rfft(moments, 2 * n_cells, axis=-1)[..., : modes + 1]
    angle = np.pi * np.arange(modes + 1) / n_cells
    # Horner's rule for sum_q (-i angle)^q / q! m_q.
    total = spectrum[..., order, :]
    for q in range(order, 0, -1):
        total = spectrum[..., q - 1, :] + total * (-1j * angle / q)
    # Cell j is centred half a cell beyond j / N.
    return np.asarray((total * np.exp(-0.5j * angle)).real)


def damped(
    a: FloatArray, scale: npt.ArrayLike, multiplier: Callable[[FloatArray], FloatArray] = gaussian
) -> FloatArray:
    """Return the coefficients after smoothing; `scale` has the leading axes of `a` or none."""
    s = np.asarray(scale)[..., None]
    return a * multiplier(_pi_k(a.shape[-1]) * s)


def values(b: FloatArray, n_points: int) -> FloatArray:
    """Return b_0 + 2 sum b_k cos(pi k t) at t = 0, 1/n, ..., 1 (n even and above the modes)."""
    return _with_integral(b, n_points)[0]


def abs_integral(a: FloatArray, scale: npt.ArrayLike, *, rough: bool = False) -> FloatArray:
    """Return the integral over [0, 1] of abs(h_s) for each row of coefficients.

    h and its antiderivative are evaluated on a grid; where h changes sign inside a cell, the
    parabola with the same end values and integral tells by how much the parts of either sign
    exceed their difference. A rough integral takes a coarser grid and straight lines: it is
    cheaper, and off by about 1e-6.
    """
    finest = float(np.min(scale))
    modes = min(n_modes(finest), a.shape[-1] - 1)
    n_points = grid_points(finest, modes, _ROUGH_POINTS_PER_SCALE if rough else POINTS_PER_SCALE)
    h, integral = _with_integral(damped(a[..., : modes + 1], scale), n_points)
    mean = (integral[..., 1:] - integral[..., :-1]) * n_points
    return _rough_abs_mean(h, mean) if rough else _abs_mean(h, mean)


def abs_mean_of_samples(g: FloatArray) -> FloatArray:
    """Return the mean of abs(g) over an interval from its values on a fine uniform grid.

    The mean over each cell comes from the cubic through the four nearest values.
    """
    middle = (13 * (g[..., 1:-2] + g[..., 2:-1]) - g[..., :-3] - g[..., 3:]) / 24
    first = g[..., :4] @ _END_WEIGHTS
    last = g[..., -4:] @ _END_WEIGHTS[::-1]
    return _abs_mean(g, np.concatenate((first[..., None], middle, last[..., None]), axis=-1))


def grid_points(scale: float, modes: int, points_per_scale: int = POINTS_PER_SCALE) -> int:
    """Return how many steps of [0, 1] show a function smooth at this scale in all detail."""
    return _good_size(max(points_per_scale / scale, modes + 1))


def _rough_abs_mean(h: FloatArray, mean: FloatArray) -> FloatArray:
    """Return nearly the mean of abs(h), which falls in a straight line where it changes sign."""
    size = np.abs(h)
    left, right = size[..., :-1], size[..., 1:]
    lesser = np.minimum(left, right)
    flips = h[..., :-1] * h[..., 1:] < 0
    # A straight line from l to -r lies above 0 by l^2 / (l + r) / 2 and below by r^2 / (l + r) / 2.
    excess = np.divide(lesser * lesser, left + right, out=np.zeros_like(left), where=flips)
    return np.asarray((np.abs(mean) + excess).sum(axis=-1) / mean.shape[-1])


def _abs_mean(h: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the mean of abs(h) from its values at the ends of cells and its means over them."""
    n_cells = mean.shape[-1]
    total = np.asarray(np.abs(mean).sum(axis=-1))
    left, right = h[..., :-1], h[..., 1:]
    flips = np.flatnonzero(left * right < 0)
    left, mid, right = (v.reshape(-1)[flips] for v in (left, mean, right))
    # The straight line between the ends has its zero at u; the bow of the parabola over it adds
    # 6 bow u (1 - u), which moves the zero too little to matter.
    u = left / (left - right)
    bow = mid - (left + right) / 2
    part = u * (left / 2 + bow * u * (3 - 2 * u))
    excess = np.abs(part) + np.abs(mid - part) - np.abs(mid)
    added = np.bincount(flips // n_cells, excess, minlength=total.size)
    return np.asarray((total + added.reshape(total.shape)) / n_cells)


def _with_integral(b: FloatArray, n_points: int) -> tuple[FloatArray, FloatArray]:
    """Return the series and its antiderivative from 0 on the grid, by one FFT.

    The series is even in t and its antiderivative odd (but for b_0 t), so one real transform over
    a whole period holds both.
    """
    x = np.fft.irfft(b * _both_parts(b.shape[-1]), 2 * n_points, axis=-1)
    x *= n_points
    forward = x[..., : n_points + 1]
    # x[0] once more, then the second half of the period backwards.
    backward = np.empty_like(forward)
    backward[..., 0] = x[..., 0]
    backward[..., 1:] = x[..., : n_points - 1 : -1]
    linear = b[..., :1] * _unit_grid(n_points)
    return forward + backward, linear + (forward - backward)


@lru_cache(maxsize=8)
def _unit_grid(n_points: int) -> FloatArray:
    return np.arange(n_points + 1, dtype=np.float64) / n_points


@lru_cache(maxsize=64)
def _pi_k(size: int) -> FloatArray:
    return np.pi * np.arange(size, dtype=np.float64)


@lru_cache(maxsize=64)
def _both_parts(size: int) -> npt.NDArray[np.complex128]:
    """Return what turns b_k into the coefficient of both cos(pi k t) and sin(pi k t) / (pi k)."""
    k = np.arange(1, size)
    return np.concatenate(([1.0 + 0j], 1 - 1j / (np.pi * k)))


def _good_size(at_least: float) -> int:
    """Return a size that the FFT likes: 1, 5/4 or 3/2 times a power of two."""
    power = 1 << max(2, int(np.ceil(np.log2(at_least))) - 1)
    return next(
        size for size in (power, power * 5 // 4, power * 3 // 2, 2 * power) if size >= at_least
    )
