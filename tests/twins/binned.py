"""Binned errors, one row and one bin at a time, in exact fractions where order matters."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def uniform_edges(n_bins):
    return [k / n_bins for k in range(n_bins + 1)]


def quantile_edges(p, w, n_bins):
    """Cut midway between the distinct scores nearest to cumulative weight i W / B."""
    scores = sorted(set(p))
    mass = [sum(Fraction(wi) for pi, wi in zip(p, w, strict=True) if pi <= s) for s in scores]
    total = mass[-1]
    cuts = set()
    for i in range(1, n_bins):
        target = total * i / n_bins
        # Boundaries lie after each score; 0 and the total are the two ends, where nothing is cut.
        boundaries = [Fraction(0), *mass]
        j = min(range(len(boundaries)), key=lambda j: (abs(boundaries[j] - target), j))
        if 0 < j < len(scores):
            cuts.add(j)
    inner = []
    for j in sorted(cuts):
        low, high = scores[j - 1], scores[j]
        middle = (low + high) / 2
        inner.append(middle if middle > low else high)
    return [0.0, *inner, 1.0]


def bin_of(p, edges, closed):
    last = len(edges) - 2
    for k in range(last + 1):
        low, high = edges[k], edges[k + 1]
        if closed == "left" and (low <= p < high or (k == last and p == high)):
            return k
        if closed == "right" and (low < p <= high or (k == 0 and p == low)):
            return k
    raise AssertionError(p)


def shares_of(p, edges, closed, assignment):
    """Return the share of a row in each bin."""
    n_bins = len(edges) - 1
    shares = [0.0] * n_bins
    if assignment == "hard":
        shares[bin_of(p, edges, closed)] = 1.0
        return shares
    centres = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
    if p <= centres[0]:
        shares[0] = 1.0
    elif p >= centres[-1]:
        shares[-1] = 1.0
    else:
        j = max(j for j in range(n_bins) if centres[j] <= p)
        t = (p - centres[j]) / (centres[j + 1] - centres[j])
        shares[j], shares[j + 1] = 1 - t, t
    return shares


def widths_of(p, edges, strategy):
    if strategy != "quantile":
        return [b - a for a, b in itertools.pairwise(edges)]
    firsts = [min(x for x in p if bin_of(x, edges, "left") == k) for k in range(len(edges) - 1)]
    return [b - a for a, b in zip(firsts, [*firsts[1:], 1.0], strict=True)]


def edges_of(p, w, n_bins, strategy):
    if strategy == "uniform":
        return uniform_edges(n_bins)
    if strategy == "quantile":
        return quantile_edges(p, w, n_bins)
    return list(strategy)


def binned_error(
    y,
    p,
    w=None,
    *,
    n_bins=15,
    strategy="uniform",
    assignment="hard",
    norm="l1",
    weighting="mass",
    closed="left",
    debias=False,
):
    w = [1] * len(p) if w is None else w
    edges = edges_of(p, w, n_bins, strategy)
    closed = "left" if isinstance(strategy, str) and strategy == "quantile" else closed
    widths = widths_of(p, edges, strategy)
    total = math.fsum(w)
    shares = [shares_of(pi, edges, closed, assignment) for pi in p]
    terms = []
    for k in range(len(edges) - 1):
        mass = math.fsum(wi * s[k] for wi, s in zip(w, shares, strict=True))
        if mass == 0:
            continue
        rows = sum(s[k] for s in shares)
        residual = math.fsum(
            wi * s[k] * (yi - pi) for yi, pi, wi, s in zip(y, p, w, shares, strict=True)
        )
        outcome = math.fsum(wi * s[k] * yi for yi, wi, s in zip(y, w, shares, strict=True)) / mass
        gap = residual / mass
        counts = widths[k] if weighting == "width" else mass / total
        variance = outcome * (1 - outcome) / (rows - 1) if debias else 0.0
        terms.append((counts, gap, variance))
    if norm == "max":
        return max(abs(gap) for _, gap, _ in terms)
    if norm == "l2":
        return math.sqrt(max(math.fsum(c * (g * g - v) for c, g, v in terms), 0.0))
    return max(math.fsum(c * (abs(g) - folded_excess(g, v)) for c, g, v in terms), 0.0)


def folded_excess(gap, variance):
    """E abs(N(gap, variance)) - abs(gap)."""
    if variance == 0:
        return 0.0
    s = math.sqrt(variance)
    mean = s * math.sqrt(2 / math.pi) * math.exp(-gap * gap / (2 * variance))
    return mean + gap * math.erf(gap / (s * math.sqrt(2))) - abs(gap)


def is_monotone(y, p, w, edges, closed):
    means = []
    for k in range(len(edges) - 1):
        rows = [i for i in range(len(p)) if bin_of(p[i], edges, closed) == k]
        if rows:
            means.append(
                sum(Fraction(w[i]) * Fraction(y[i]) for i in rows)
                / sum(Fraction(w[i]) for i in rows)
            )
    return all(a <= b for a, b in itertools.pairwise(means))


def sweep_count(y, p, w, strategy, closed="left"):
    """The largest count up to n whose bin means never decrease."""
    return max(
        b for b in range(1, len(p) + 1) if is_monotone(y, p, w, edges_of(p, w, b, strategy), closed)
    )


def leave_one_out_loss(y, p, w, edges, closed="left"):
    """Predict every row from the other rows of its bin, or from all others if it is alone."""
    loss = 0.0
    for i in range(len(p)):
        others = [
            j
            for j in range(len(p))
            if j != i and bin_of(p[j], edges, closed) == bin_of(p[i], edges, closed)
        ]
        others = others or [j for j in range(len(p)) if j != i]
        guess = sum(w[j] * y[j] for j in others) / sum(w[j] for j in others) if others else 0.0
        loss += w[i] * (y[i] - guess) ** 2
    return loss


def cv_count(y, p, w, strategy, closed="left"):
    reach = min(len(p), math.ceil(10 * len(p) ** (1 / 3)))
    losses = [
        leave_one_out_loss(y, p, w, edges_of(p, w, b, strategy), closed)
        for b in range(1, reach + 1)
    ]
    best = min(losses)
    return 1 + next(k for k, loss in enumerate(losses) if loss <= best + 1e-12)
