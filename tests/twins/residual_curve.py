"""Residuals smoothed along scores, row by row: every kernel weight, every row left out."""

import numpy as np

from tests.twins.bands import clopper_pearson
from tests.twins.smooth import reflected_gaussian


def axis(p):
    """The places of all scores, 0.1 p + 0.9 F(p): equal scores have the middle of their ranks."""
    p = np.asarray(p, float)
    rank = np.array([np.sum(p < one) + np.sum(p == one) / 2 for one in p])
    fraction = (rank - rank.min()) / np.ptp(rank) if np.ptp(rank) else 0 * rank
    return 0.1 * p + 0.9 * fraction


def deviation(u, place, r, w, s):
    """The mean residual around places u, weighted by the kernel."""
    k = reflected_gaussian(np.asarray(u)[:, None], place[None, :], s) * w
    return k @ r / k.sum(axis=1)


def losses(place, r, w, scales):
    """The squared error of each row predicted from the others, less r^2: (scales, rows)."""
    found = []
    for s in scales:
        k = reflected_gaussian(place[:, None], place[None, :], s) * w
        np.fill_diagonal(k, 0.0)
        found.append((r - k @ r / k.sum(axis=1)) ** 2 - r**2)
    return np.array(found)


def chosen(place, r, w, scales):
    """The geometric mean of the best scale and the largest within a standard error of it."""
    each = losses(place, r, w, scales)
    total = each @ w
    best = np.argmin(total)
    error = np.sqrt((each - each[best]) ** 2 @ w**2)
    largest = max(s for s, t, e in zip(scales, total, error, strict=True) if t - total[best] <= e)
    return np.sqrt(scales[best] * largest)


def limits(t, u, place, p, y, w, s, fitted, tail):
    """Limits at scores t, which lie at u: those of the proportion of events, moved to t."""
    k = reflected_gaussian(np.asarray(u)[:, None], place[None, :], s) * w
    mean, pred = k @ y / k.sum(axis=1), k @ p / k.sum(axis=1)
    rows = k.sum(axis=1) ** 2 / (k**2).sum(axis=1)
    within = k**2 @ (fitted * (1 - fitted)) / (k**2).sum(axis=1)
    # Two events and two other rows are added to all.
    near, each = (
        (rows * rows * v + 2 * rows + 4) / (rows + 4) ** 2 for v in (mean * (1 - mean), within)
    )
    found = [clopper_pearson(m, n, tail) for m, n in zip(mean, rows * near / each, strict=True)]
    return np.clip(np.array(found).T + t - pred, 0, 1)
