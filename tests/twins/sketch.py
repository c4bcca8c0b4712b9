"""A sketch straight from its definition: one row at a time, one dictionary of sums."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction


def logit_edges(n_cells):
    """Return the rounded probabilities at the logits -20 + 40 k / N, by 50 decimal digits."""
    with localcontext(prec=50):
        odds = [((Decimal(40 * k) / n_cells) - 20).exp() for k in range(n_cells + 1)]
        return [float(x / (1 + x)) for x in odds]


def cell_of(p, n_cells):
    """Return the last k whose rounded k/N is not above p; 1 belongs to the last cell."""
    edges = [k / n_cells for k in range(1, n_cells)]
    return bisect_right(edges, p)


def sums(y_true, y_prob, n_cells, sample_weight=None):
    """Return {(cell, outcome): [weight, sum w d, sum w d^2]} in exact arithmetic."""
    table = defaultdict(lambda: [Fraction(0)] * 3)
    weights = [1] * len(y_true) if sample_weight is None else sample_weight
    for y, p, w in zip(y_true, y_prob, weights, strict=True):
        cell = cell_of(p, n_cells)
        offset = Fraction(p) * n_cells - cell - Fraction(1, 2)
        for outcome, share in ((0, 1 - Fraction(y)), (1, Fraction(y))):
            mass = Fraction(w) * share
            if mass:
                old = table[cell, outcome]
                table[cell, outcome] = [old[q] + mass * offset**q for q in range(3)]
    return dict(table)
