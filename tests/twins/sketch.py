"""A sketch straight from its definition: one row at a time, one dictionary of sums."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from fractions import Fraction


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
