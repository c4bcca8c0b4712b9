"""The joint test straight from its definition, statistic by statistic and row by row."""

import numpy as np
from scipy.special import logit


def cells(y, p, w):
    """Return score, weight, sum of w^2, residual total and its variance at each distinct score."""
    found = []
    for s in sorted(set(p)):
        at = [i for i in range(len(p)) if p[i] == s]
        weight, squares = sum(w[i] for i in at), sum(w[i] ** 2 for i in at)
        residual = sum(w[i] * (y[i] - s) for i in at)
        found.append((s, weight, squares, residual, squares * s * (1 - s)))
    return map(np.array, zip(*found, strict=True))


def statistics(y, p, w):
    """Return level, spread, range, smooth, fine and local."""
    score, weight, squares, r, v = cells(y, p, w)
    return [
        abs(r.sum()) / np.sqrt(v.sum()),
        spread(score, r, v),
        excursion_range(r) / np.sqrt(v.sum()),
        smooth(r, v),
        fine(score, r, v),
        local(weight, r, v, squares.sum() / len(y)),
    ]


def spread(score, r, v):
    inner = (score > 0) & (score < 1)
    s, r, v = score[inner], r[inner], v[inner]
    x = logit(s) - np.average(logit(s), weights=v)
    norm = np.sqrt(np.sum(v * x**2))
    return abs(np.sum(r * x)) / norm if norm > 1e-9 else 0.0


def excursion_range(r):
    heights = [0.0]
    for one in r:
        heights.append(heights[-1] + one)
    return max(heights) - min(heights)


def smooth(r, v):
    total, found = v.sum(), 0.0
    u = [(v[:c].sum() + v[c] / 2) / total for c in range(len(v))]
    for k in range(1, 32):
        a = np.sqrt(2 / total) * sum(r[c] * np.cos(np.pi * k * u[c]) for c in range(len(v)))
        found += np.exp(-((np.pi * k / 32) ** 2)) * a * a
    return found


def fine(score, r, v):
    t = (score - score.min()) / (np.ptp(score) or 1.0)
    found = []
    for k in range(1, 65):
        x = np.column_stack([np.cos(np.pi * k * t), np.sin(np.pi * k * t)])
        sums, variance = r @ x, x.T @ np.diag(v) @ x
        found.append(sums @ np.linalg.pinv(variance, rcond=1e-9, hermitian=True) @ sums)
    return max(found)


def local(weight, r, v, one_row):
    edge = np.concatenate(([0.0], np.cumsum(weight))) / weight.sum()
    middle = (edge[1:] + edge[:-1]) / 2
    intervals = {(c, c + 1) for c in range(len(weight)) if weight[c] / weight.sum() >= 0.01}
    for half_powers in range(7):
        width = 0.01 * 2 ** (half_powers / 2)
        n_steps = int(np.ceil(4 * (1 / width - 1)))
        for step in range(n_steps + 1):
            left = (1 - width) * step / n_steps
            ends = [int(np.sum(middle < end)) for end in (left, left + width)]
            intervals.add(tuple(ends))
    found = []
    for first, last in intervals:
        if last > first:
            z = abs(r[first:last].sum()) / np.sqrt(one_row + v[first:last].sum())
            found.append(z - np.sqrt(2 * np.log(1 / min(edge[last] - edge[first], 1.0))))
    return max(found)


def minimum_rank(values):
    """Return the joint P-value of the first of several samples, by counting."""
    n, n_parts = values.shape
    minima, sizes = [], []
    for b in range(n):
        ranks = [sum(values[:, k] >= values[b, k]) for k in range(n_parts)]
        z = (values[b] - values.mean(axis=0)) / values.std(axis=0)
        minima.append(min(ranks))
        sizes.append(max(z.max(), 0.0))
    as_extreme = [
        minima[b] < minima[0] or (minima[b] == minima[0] and sizes[b] >= sizes[0]) for b in range(n)
    ]
    return sum(as_extreme) / n
