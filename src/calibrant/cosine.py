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

    c_Q (1 / (2 N s))^(Q+1) sum abs(v),     c_2 < 0.25,  c_6 < 0.012,

since moving a Gaussian's centre by d changes it by at most E abs(He_{Q+1}(Z)) (d/s)^(Q+1)/(Q+1)!
beyond the first Q terms of its Taylor series, and reflection only brings mass together.

Arrays may have leading axes: each row along the last axis is a problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray

# exp(-x^2 / 2) is below the rounding of a double here.
_GAUSSIAN_REACH = 8.6
# Points of the evaluation grid per scale s. The error of the integral of abs(h) at a sign change
# is about (step/s)^4 / 400 of s times the height of h: 1e-12 or less.
_POINTS_PER_SCALE = 32
# Means over the first cell of the cubic through the first four values.
_END_WEIGHTS = np.array([9.0, 19.0, -5.0, 1.0]) / 24
_MANY_ROWS = 300_000
# Sixty-four megabytes of moments at order 2. Scales below FINEST_SCALE are out of reach.
MOST_CELLS = 1 << 21
FINEST_SCALE = 16 / MOST_CELLS


def gaussian(omega: FloatArray) -> FloatArray:
    """Return the Fourier transform of the standard normal density."""
    return np.asarray(np.exp(-0.5 * omega**2))


def n_modes(scale: float) -> int:
    """Return the largest k whose mode the Gaussian of this scale does not extinguish."""
    return int(np.ceil(_GAUSSIAN_REACH / (np.pi * scale)))


def resolution(n_rows: int, scale: float) -> tuple[int, int]:
    """Return (cells, order of moments) that keep the error near 1e-10 at this scale.

    Few rows: many moments and few cells, for the FFT's sake. Many rows: few moments and many
    cells, for the rows' sake. Where scores are spread out, errors of rows average out and the
    actual error is far below the bound in the module's docstring.
    """
    order, cells_per_scale = (6, 8) if n_rows < _MANY_ROWS else (2, 128)
    return min(_power_of_two(max(cells_per_scale / scale, 64)), MOST_CELLS), order


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
    return a * multiplier(np.pi * np.arange(a.shape[-1]) * s)


def values(b: FloatArray, n_points: int) -> FloatArray:
    """Return b_0 + 2 sum b_k cos(pi k t) at t = 0, 1/n, ..., 1 (n even and above the modes)."""
    return _with_integral(b, n_points)[0]


def abs_integral(a: FloatArray, scale: npt.ArrayLike) -> FloatArray:
    """Return the integral over [0, 1] of abs(h_s) for each row of coefficients.

    h and its antiderivative are evaluated on a grid; where h changes sign inside a cell, the
    parabola with the same end values and integral tells by how much the parts of either sign
    exceed their difference.
    """
    finest = float(np.min(scale))
    modes = min(n_modes(finest), a.shape[-1] - 1)
    n_points = grid_points(finest, modes)
    h, integral = _with_integral(damped(a[..., : modes + 1], scale), n_points)
    return _abs_mean(h, np.diff(integral, axis=-1) * n_points)


def abs_mean_of_samples(g: FloatArray) -> FloatArray:
    """Return the mean of abs(g) over an interval from its values on a fine uniform grid.

    The mean over each cell comes from the cubic through the four nearest values.
    """
    middle = (13 * (g[..., 1:-2] + g[..., 2:-1]) - g[..., :-3] - g[..., 3:]) / 24
    first = g[..., :4] @ _END_WEIGHTS
    last = g[..., -4:] @ _END_WEIGHTS[::-1]
    return _abs_mean(g, np.concatenate((first[..., None], middle, last[..., None]), axis=-1))


def grid_points(scale: float, modes: int) -> int:
    """Return how many steps of [0, 1] show a function smooth at this scale in all detail."""
    return _power_of_two(max(_POINTS_PER_SCALE / scale, 2 * modes + 2))


def _abs_mean(h: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the mean of abs(h) from its values at the ends of cells and its means over them."""
    left, right = h[..., :-1], h[..., 1:]
    total = np.asarray(np.abs(mean).sum(axis=-1))
    # The parabola's slopes at the two ends of a cell: if they point towards zero and away again,
    # it can dip through zero and back.
    slope_left = 6 * mean - 4 * left - 2 * right
    slope_right = 2 * left + 4 * right - 6 * mean
    crosses = (left * right < 0) | ((slope_left * left < 0) & (slope_right * right > 0))
    cells = np.flatnonzero(crosses)
    n_cells = mean.shape[-1]
    left, mean, right = (v.reshape(-1)[cells] for v in (left, mean, right))
    excess = _parabola_variation(left, mean, right) - np.abs(mean)
    added = np.bincount(cells // n_cells, excess, minlength=total.size)
    return np.asarray((total + added.reshape(total.shape)) / n_cells)


def _with_integral(b: FloatArray, n_points: int) -> tuple[FloatArray, FloatArray]:
    """Return the series and its antiderivative from 0 on the grid, by one FFT.

    The series is even in t and its antiderivative odd (but for b_0 t), so one real transform over
    a whole period holds both.
    """
    k = np.arange(b.shape[-1])
    k[0] = 1
    both = b * (1 - 1j / (np.pi * k))
    both[..., 0] = b[..., 0]
    x = np.fft.irfft(both, 2 * n_points, axis=-1) * (2 * n_points)
    forward = x[..., : n_points + 1]
    backward = np.concatenate((x[..., :1], x[..., : n_points - 1 : -1]), axis=-1)
    t = np.arange(n_points + 1) / n_points
    return (forward + backward) / 2, b[..., :1] * t + (forward - backward) / 2


def _parabola_variation(left: FloatArray, mean: FloatArray, right: FloatArray) -> FloatArray:
    """Return the integral over [0, 1] of abs(q), q the parabola with these ends and mean."""
    slope = 6 * mean - 4 * left - 2 * right
    bend = 3 * (left + right - 2 * mean)
    root = np.sqrt(np.maximum(slope**2 - 4 * left * bend, 0.0))
    # The stable form of both roots; a missing root falls outside and is clipped to an end.
    half = -(slope + np.copysign(root, slope)) / 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        roots = np.stack((half / bend, left / half))
    roots = np.sort(np.clip(np.nan_to_num(roots, nan=0.0), 0.0, 1.0), axis=0)
    ends = np.concatenate((np.zeros((1, len(left))), roots, np.ones((1, len(left)))))
    area = ends * (left + ends * (slope / 2 + ends * bend / 3))
    return np.asarray(np.abs(np.diff(area, axis=0)).sum(axis=0))


def _power_of_two(at_least: float) -> int:
    return 1 << int(np.ceil(np.log2(at_least)))
