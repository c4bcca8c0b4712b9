"""Bias along a feature, part by part and row by row, straight from the definition."""

import numpy as np
from scipy.stats import norm, t

from tests.twins.bands import clopper_pearson


def equal_mass_parts(values, w, n_bins):
    """The bin of each value: every cut is where the weight below is nearest to its share."""
    distinct = sorted(set(values))
    below = [sum(w[i] for i, v in enumerate(values) if v < cut) for cut in distinct] + [sum(w)]
    cuts = {int(np.argmin([abs(b - k * sum(w) / n_bins) for b in below])) for k in range(1, n_bins)}
    starts = sorted(distinct[cut] for cut in cuts if 0 < cut < len(distinct))
    return [sum(start <= v for start in starts) for v in values]


def gap_interval(y, p, w, tail, clusters=None):
    """The gap of one part and its limits."""
    total, squares = sum(w), sum(wi**2 for wi in w)
    m = sum(wi * yi for wi, yi in zip(w, y, strict=True)) / total
    mean_pred = sum(wi * pi for wi, pi in zip(w, p, strict=True)) / total
    n, z2 = total**2 / squares, norm.ppf(tail) ** 2
    # Rows more, half of them events, at the mean prediction.
    near = (n * m + z2 / 2) / (n + z2)
    away = [yi - pi - (near - mean_pred) for yi, pi in zip(y, p, strict=True)]
    seen = sum((wi * a) ** 2 for wi, a in zip(w, away, strict=True))
    more = ((1 - near) ** 2 + (0 - near) ** 2) / 2
    variance = (n * seen / squares + z2 * more) / (n + z2)
    rows = n * near * (1 - near) / variance
    if clusters is not None:
        names = set(clusters)
        if len(names) == 1:
            return m - mean_pred, -mean_pred, 1 - mean_pred
        sums = [
            sum(wi * a for wi, a, c in zip(w, away, clusters, strict=True) if c == name)
            for name in names
        ]
        g = len(names)
        rows /= max(1, sum(s**2 for s in sums) * g / (g - 1) / seen)
        tail = norm.cdf(t.ppf(tail, g - 1))
    low, high = clopper_pearson(m, rows, tail)
    return m - mean_pred, low - mean_pred, high - mean_pred
