"""Bands row by row, straight from their definitions: every row's kernel weight, every draw."""

import numpy as np
from scipy.stats import beta, binom, norm

from tests.twins.smooth import reflected_gaussian


def kernel_weights(t, p, s):
    """What each row counts at each point, shape (points, rows)."""
    return reflected_gaussian(np.asarray(t)[:, None], np.asarray(p)[None, :], s)


def clopper_pearson(mean, rows, tail):
    """Limits of a proportion seen in so many rows, each missed with probability `tail`."""
    events, others = mean * rows, (1 - mean) * rows
    lower = beta.ppf(tail, events, others + 1) if events > 0 else 0.0
    upper = beta.isf(tail, events + 1, others) if others > 0 else 1.0
    return lower, upper


def confidence(k, y, tail):
    """Limits of sum k y / sum k at each point, from effective rows (sum k)^2 / sum k^2."""
    means = k @ y / k.sum(axis=1)
    rows = k.sum(axis=1) ** 2 / (k**2).sum(axis=1)
    return np.array([clopper_pearson(m, n, tail) for m, n in zip(means, rows, strict=True)]).T


def simultaneous_tail(k, level, n_draws, rng):
    """The tail that makes the greatest of all standardised sums of k z stay inside so often."""
    unit = k / np.sqrt((k**2).sum(axis=1, keepdims=True))
    greatest = np.abs(unit @ rng.standard_normal((k.shape[1], n_draws))).max(axis=0)
    return norm.sf(np.quantile(greatest, level))


def calibrated_curves(k, p, n_draws, rng):
    """Curves of outcomes drawn as predicted, shape (draws, points)."""
    share = k / k.sum(axis=1, keepdims=True)
    return np.array([share @ (rng.random(len(p)) < p) for _ in range(n_draws)])


def bootstrap_curves(t, p, y, s, n_draws, rng):
    """Curves of rows drawn again, shape (draws, points)."""
    curves = []
    for _ in range(n_draws):
        rows = rng.integers(0, len(p), len(p))
        k = kernel_weights(t, p[rows], s)
        curves.append(k @ y[rows] / k.sum(axis=1))
    return np.array(curves)


def acceptance(mean, rows, tail):
    """The least and greatest share of whole counts that Clopper-Pearson would not refuse."""
    counts = np.arange(rows + 1)
    kept = (binom.cdf(counts, rows, mean) > tail) & (binom.sf(counts - 1, rows, mean) > tail)
    return counts[kept].min() / rows, counts[kept].max() / rows


def honest(p, y, spans):
    """Bounds of every non-decreasing chance: from each (start, end, tail) of sorted rows."""
    lower, upper = np.zeros(len(p)), np.ones(len(p))
    for start, end, tail in spans:
        low, high = clopper_pearson(y[start:end].mean(), end - start, tail)
        # What holds on average over a span holds for every score below or above all of it.
        upper[p <= p[start]] = np.minimum(upper[p <= p[start]], high)
        lower[p >= p[end - 1]] = np.maximum(lower[p >= p[end - 1]], low)
    return lower, upper
