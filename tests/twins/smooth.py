"""Smooth errors by direct sums over rows and reflections, and integration between sign changes."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq


def gaussian(t, s):
    return np.exp(-0.5 * (t / s) ** 2) / (s * np.sqrt(2 * np.pi))


def reflected_gaussian(t, x, s):
    """The density at t of x + s Z folded into [0, 1]: every image of x counts, also at 0 and 1."""
    reach = int(np.ceil(10 * s)) + 1
    total = 0.0
    for j in range(-reach, reach + 1):
        total = total + gaussian(t - x - 2 * j, s) + gaussian(t + x - 2 * j, s)
    return total


def smooth_error(y, p, w, s):
    """smECE at scale s."""
    w = np.ones(len(p)) if w is None else np.asarray(w, float)

    def h(t):
        t = np.atleast_1d(t)
        kernel = reflected_gaussian(t[:, None], np.asarray(p)[None, :], s)
        return kernel @ (w * (np.asarray(y) - p)) / w.sum()

    return sum(abs_integral(h, *ends, s) for ends in occupied(p, s, 0.0, 1.0))


def occupied(x, s, low, high):
    """Ends of the intervals within 12 scales of any place: elsewhere a Gaussian is below 1e-31."""
    x = np.unique(x)
    (cuts,) = np.nonzero(np.diff(x) > 24 * s)
    for part in np.split(x, cuts + 1):
        yield max(part[0] - 12 * s, low), min(part[-1] + 12 * s, high)


def line_error(u, r, s):
    """smECE at scale s of residual measure r at finite places u on the line."""
    u, r = np.asarray(u, float), np.asarray(r, float)

    def h(t):
        return gaussian(np.atleast_1d(t)[:, None] - u[None, :], s) @ r

    return sum(abs_integral(h, *ends, s) for ends in occupied(u, s, -np.inf, np.inf))


def logit_smoothed_error(u, y, w, s):
    """LS-ECE with Gaussian noise at finite logits u; weights sum to 1."""
    u, y, w = (np.asarray(v, float) for v in (u, y, w))

    def g(t):
        t = np.atleast_1d(t)
        kernel = gaussian(t[:, None] - u[None, :], s)
        return kernel @ (w * y) - kernel @ w / (1 + np.exp(-t))

    return sum(abs_integral(g, *ends, s) for ends in occupied(u, s, -np.inf, np.inf))


def uniform_logit_smoothed_error(u, y, w, s):
    """LS-ECE with noise uniform on [-s/2, s/2]."""
    u, y, w = (np.asarray(v, float) for v in (u, y, w))
    ends = np.unique(np.concatenate((u - s / 2, u + s / 2)))
    total = 0.0
    for low, high in itertools.pairwise(ends):
        inside = np.abs(u - (low + high) / 2) <= s / 2
        true, weight = np.sum((w * y)[inside]), np.sum(w[inside])
        points = []
        if 0 < true < weight:
            zero = np.log(true / (weight - true))
            points = [zero] if low < zero < high else []
        value, _ = quad(
            lambda v, a=true, b=weight: abs(a - b / (1 + np.exp(-v))),
            low,
            high,
            points=points or None,
            epsabs=1e-12,
            epsrel=1e-12,
        )
        total += value / s
    return total


def density_error(y, p, w, h, kernel, low=0.0, high=1.0):
    """The integral of abs(g - t f), kernels mirrored at both ends as often as need be."""
    y, p = np.asarray(y, float), np.asarray(p, float)
    w = np.ones(len(p)) if w is None else np.asarray(w, float)
    length = high - low

    def shape(d):
        if kernel == "gaussian":
            return gaussian(d, h)
        return 35 / 32 / h * np.clip(1 - (d / h) ** 2, 0, None) ** 3

    def g(t):
        t = np.atleast_1d(t)[:, None]
        reach = int(np.ceil(10 * h / length)) + 1
        images = sum(
            shape(t - p - 2 * j * length) + shape(t + p - 2 * low - 2 * j * length)
            for j in range(-reach, reach + 1)
        )
        return images @ (w * y) / w.sum() - t[:, 0] * (images @ w) / w.sum()

    return sum(abs_integral(g, *ends, h) for ends in occupied(p, h, low, high))


def abs_integral(h, low, high, s):
    """Integrate abs(h) over short panels, cut at the zeros that a grid of s/20 shows."""
    grid = np.linspace(low, high, int(np.ceil((high - low) / s * 20)) + 2)
    values = h(grid)
    # Far out, where only rounding is left, signs mean nothing.
    values[np.abs(values) < 1e-14 * np.abs(values).max()] = 0.0
    flips = np.flatnonzero(values[:-1] * values[1:] < 0)
    zeros = [brentq(lambda t: float(h(t)[0]), grid[i], grid[i + 1], xtol=1e-12 * s) for i in flips]
    cuts = np.sort(np.concatenate((grid, zeros)))
    nodes, weights = np.polynomial.legendre.leggauss(6)
    middle, half = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts) / 2
    points = middle[:, None] + half[:, None] * nodes
    panels = (h(points.reshape(-1)).reshape(points.shape) * weights).sum(axis=1) * half
    return float(np.abs(panels).sum())


def smooth_fixed_point(y, p, w=None):
    """The one s with smECE_s = s, or 0, looked for from large scales down."""
    w = np.ones(len(p)) if w is None else np.asarray(w, float)
    if np.all(np.asarray(y) == p):
        return 0.0
    high = 1.0
    while smooth_error(y, p, w, high / 2) < high / 2:
        high /= 2
    return brentq(lambda s: smooth_error(y, p, w, s) - s, high / 2, high, xtol=1e-12 * high)


def sampled_logit_smoothed_error(u, y, sigma, n_points, rng):
    """The estimator of the paper (004, section 5): Monte-Carlo points, kernel regression."""
    u, y = np.asarray(u, float), np.asarray(y, float)
    points = rng.choice(u, n_points) + sigma * rng.standard_normal(n_points)
    total = 0.0
    for t in points:
        kernel = gaussian(t - u, sigma)
        total += abs(np.dot(kernel, y) / kernel.sum() - 1 / (1 + np.exp(-t)))
    return total / n_points
