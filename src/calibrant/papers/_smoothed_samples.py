"""Smoothed errors of many samples of one size at once: ECE_d, smECE and LS-ECE.

The counterpart of `calibrant.papers._samples` for kernels, in the cosine space of
`calibrant.cosine`, whose arrays hold a sample a row. Samples are smoothed together with others of
like bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant import cosine
from calibrant.arrays import FloatArray
from calibrant.logits import logit
from calibrant.papers._samples import Samples
from calibrant.problem import Index

# Nothing finer is resolved: the paper's own grid has steps of 0.0003.
FINEST_BANDWIDTH = 5e-4
# Errors of integrals stay below 2e-5, far below what chance does to estimates.
_POINTS_PER_SCALE = 16
_MARGIN = 1e-9
# Moments of rows about the centres of cells: by the bound of `cosine` errors stay below 1e-4, and
# they are near 1e-6.
_CELLS_PER_SCALE, _ORDER = 8, 2
_NEWTON_STEPS = 12
_CLOSE = 1e-6


def silverman(samples: Samples, constant: float = 0.9) -> FloatArray:
    """Return Silverman's bandwidth of every sample: constant min(sd, IQR / 1.34) n^(-1/5)."""
    p = samples.p
    deviation = p.std(axis=1, ddof=1)
    low, high = np.quantile(p, [0.25, 0.75], axis=1, method="hazen")
    spread = (high - low) / 1.34
    size = np.where(spread > 0, np.minimum(deviation, spread), deviation)
    width = np.where(size > 1e-12, constant * size * samples.n**-0.2, 0.01)
    return np.maximum(width, FINEST_BANDWIDTH)


def density_error(samples: Samples, bandwidth: float | FloatArray) -> FloatArray:
    """Return ECE_d of every sample, by the Gaussian kernel."""
    low = np.minimum(samples.lowest, samples.p[:, :1])
    length = 1 - low
    x = (samples.p - low) / length
    scales = np.broadcast_to(bandwidth, len(x)) / length[:, 0]
    error = np.empty(len(x))
    for rows in _alike(scales):
        a = _spectra(x[rows], [np.ones_like(x[rows]), samples.y[rows]], float(scales[rows].min()))
        weight, true = _smoothed(a, scales[rows])
        t = low[rows] + length[rows] * np.linspace(0, 1, weight.shape[-1])
        error[rows] = _mean_size(true - t * weight)[0] / samples.n
    return error


def smooth_error(samples: Samples) -> FloatArray:
    """Return smECE of every sample: the scale at which smECE_s equals s."""
    noise = 0.25 * samples.n ** (-1 / 3)
    lowest = noise / 2
    a = _spectra(samples.p, [samples.residual], lowest)[0] / samples.n
    s = np.clip(np.abs(a[:, 0]) + noise, lowest, 1.0)
    open_rows = np.arange(len(s))
    for _ in range(_NEWTON_STEPS):
        scale = s[open_rows]
        value, steepness = _mean_size(_smoothed(a[open_rows], scale))
        # By the heat equation the error falls by 2 s abs(h') at each zero of h.
        step = (value - scale) / (1 + 2 * scale * steepness)
        s[open_rows] = np.clip(scale + step, lowest, 1.0)
        open_rows = open_rows[np.abs(step) > _CLOSE * scale]
        if not len(open_rows):
            break
    # The few that are finer, or do not settle, are left to the measure itself.
    for row in np.union1d(open_rows, np.flatnonzero(s <= lowest)):
        s[row] = cb.smooth_ece(samples.y[row], samples.p[row])
    return np.asarray(s)


def logit_smoothed_error(samples: Samples, sigma: float) -> FloatArray:
    """Return LS-ECE of every sample under uniform noise, as `calibrant.logit_smoothed_ece`."""
    with np.errstate(divide="ignore"):
        u = logit(samples.p)
    w = np.isfinite(u).astype(np.float64)
    # Rows at infinity stay there, and count where their outcome is the wrong one.
    at_infinity = ((1 - w) * np.abs(samples.residual)).sum(axis=1)
    u = np.where(w > 0, u, 0.0)
    ends = np.concatenate((u - sigma / 2, u + sigma / 2), axis=1)
    order = np.argsort(ends, axis=1, kind="stable")
    ends = np.take_along_axis(ends, order, 1)
    weight, true = (
        np.cumsum(np.take_along_axis(np.concatenate((v, -v), axis=1), order, 1), axis=1)[:, :-1]
        for v in (w, w * samples.y)
    )
    low, high = ends[:, :-1], ends[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = logit(np.clip(true / weight, 0.0, 1.0))
    zero = np.clip(np.nan_to_num(zero), low, high)

    def antiderivative(v: FloatArray) -> FloatArray:
        return np.asarray(true * v - weight * np.logaddexp(0.0, v))

    middle = antiderivative(zero)
    area = np.abs(middle - antiderivative(low)) + np.abs(antiderivative(high) - middle)
    return np.asarray((area.sum(axis=1) / sigma + at_infinity) / samples.n)


def _spectra(x: FloatArray, values: list[FloatArray], scale: float) -> FloatArray:
    """Return the cosine coefficients of every sample, shape (values, samples, modes + 1)."""
    n_samples = len(x)
    n_cells, order = _good_size(_CELLS_PER_SCALE / scale), _ORDER
    # All samples side by side on one line; a hair inside their ends, to stay apart.
    side_by_side = np.clip(x, _MARGIN, 1 - _MARGIN) + np.arange(n_samples)[:, None]
    block = (side_by_side / n_samples).ravel(), [value.ravel() for value in values]
    moments = cosine.gather([block], len(values), n_samples * n_cells, order)
    moments = moments.reshape(len(values), order + 1, n_samples, n_cells)
    return cosine.coefficients(np.moveaxis(moments, 2, 1), cosine.n_modes(scale))


def _smoothed(a: FloatArray, scales: FloatArray) -> FloatArray:
    """Return what coefficients stand for on a grid of [0, 1], each sample smoothed at its scale."""
    finest = float(scales.min())
    a = a[..., : cosine.n_modes(finest) + 1]
    n_points = _good_size(max(_POINTS_PER_SCALE / finest, a.shape[-1]))
    return cosine.values(cosine.damped(a, scales), n_points)


def _mean_size(f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of abs(f) over [0, 1], and the sum of abs(f') over the zeros of f.

    By trapezoids, mended in the cells where f changes its sign: see `calibrant.absolute`.
    """
    size, n_cells = np.abs(f), f.shape[-1] - 1
    left, right = size[..., :-1], size[..., 1:]
    rise = np.where((f[..., :-1] < 0) != (f[..., 1:] < 0), left + right, 0.0)
    lacking = rise / 6 - np.divide(left * right, rise, out=np.zeros_like(rise), where=rise > 0)
    mean = (0.5 * (left + right) + lacking).sum(axis=-1) / n_cells
    return mean, rise.sum(axis=-1) * n_cells


def _good_size(at_least: float) -> int:
    """Return a power of two."""
    return 1 << int(np.ceil(np.log2(max(at_least, 64))))


def _alike(scales: FloatArray) -> Iterator[Index]:
    """Yield samples whose scales are within a factor of two."""
    octave = np.floor(np.log2(scales))
    for one in np.unique(octave):
        yield np.flatnonzero(octave == one)
