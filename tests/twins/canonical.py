"""Canonical calibration error, one pair of rows at a time."""

from __future__ import annotations

import math

SMALLEST = 5e-324


def log_kernel(centre, point, bandwidth):
    """Take the logarithm of the Dirichlet density around `centre` over its value there."""
    total = 0.0
    for s, t in zip(centre, point, strict=True):
        if s > 0:
            total += s / bandwidth * (math.log(max(t, SMALLEST)) - math.log(s))
    return total


def one_hot(label, n_classes):
    return [1.0 if c == label else 0.0 for c in range(n_classes)]


def estimate(i, prob, outcome, w, bandwidth):
    """Return P(c | s_i) for every class from the rows other than i."""
    others = [j for j in range(len(prob)) if j != i]
    logs = {j: log_kernel(prob[j], prob[i], bandwidth) for j in others}
    greatest = max(logs.values())
    weight = {j: w[j] * math.exp(logs[j] - greatest) for j in others}
    total = math.fsum(weight.values())
    return [
        math.fsum(weight[j] * outcome[j][c] for j in others) / total for c in range(len(prob[0]))
    ]


def losses(prob, outcome, w, bandwidth):
    """Return the mean leave-one-out squared error and the canonical calibration error."""
    squared = absolute = 0.0
    for i, s in enumerate(prob):
        p = estimate(i, prob, outcome, w, bandwidth)
        squared += w[i] * sum((a - b) ** 2 for a, b in zip(p, outcome[i], strict=True))
        gaps = (y * abs(a - b) for y, a, b in zip(outcome[i], p, s, strict=True))
        absolute += w[i] * sum(gaps)
    return squared / sum(w), absolute / sum(w)


def canonical_error(prob, outcome, w, bandwidth=None):
    if bandwidth is not None:
        return losses(prob, outcome, w, bandwidth)[1]
    return min(losses(prob, outcome, w, 2.0**-k) for k in range(11))[1]
