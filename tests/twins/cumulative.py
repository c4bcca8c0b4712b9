"""The cumulative walk, its statistics and their null laws, in fractions and by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def walk(y, p, w=None):
    """Return C_0 = 0, C_1, ..., one step a distinct score, as fractions."""
    w = [1] * len(p) if w is None else w
    total = sum(Fraction(wi) for wi in w)
    positions = [Fraction(0)]
    for score in sorted(set(p)):
        step = sum(
            Fraction(wi) * (Fraction(yi) - Fraction(pi))
            for yi, pi, wi in zip(y, p, w, strict=True)
            if pi == score
        )
        positions.append(positions[-1] + step / total)
    return positions


def mad(y, p, w=None):
    return max(abs(c) for c in walk(y, p, w))


def span(y, p, w=None):
    positions = walk(y, p, w)
    return max(positions) - min(positions)


def largest_interval(y, p, w=None):
    """The largest total miscalibration over any interval of scores (003, section 2.1.2)."""
    w = [1] * len(p) if w is None else w
    total = sum(Fraction(wi) for wi in w)
    scores = sorted(set(p))
    rows = list(zip(y, p, w, strict=True))
    return (
        max(
            abs(
                sum(
                    Fraction(wi) * (Fraction(yi) - Fraction(pi))
                    for yi, pi, wi in rows
                    if a <= pi <= b
                )
            )
            for a, b in itertools.combinations_with_replacement(scores, 2)
        )
        / total
    )


def sigma(p, w=None):
    w = [1] * len(p) if w is None else w
    variance = sum(
        Fraction(wi) ** 2 * Fraction(pi) * (1 - Fraction(pi)) for pi, wi in zip(p, w, strict=True)
    )
    return math.sqrt(variance) / float(sum(Fraction(wi) for wi in w))


def exact_p_value(statistic, y, p, w=None):
    """P(statistic >= observed) for y ~ Bernoulli(p), summed over all 2^n outcomes."""
    observed = statistic(y, p, w)
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=len(p)):
        if statistic(outcome, p, w) >= observed:
            total += math.prod(pi if yi else 1 - pi for yi, pi in zip(outcome, p, strict=True))
    return total


def cells(p, member):
    """Return the rows next to each distinct score of the group, nearest score, lower at a draw.

    Rows outside the group's range of scores are next to none. Midpoints are doubles, as scores
    are: among tenths it is up to rounding which neighbour is the nearer.
    """
    scores = sorted({pi for pi, inside in zip(p, member, strict=True) if inside})
    near = {score: [] for score in scores}
    for i, pi in enumerate(p):
        if scores[0] <= pi <= scores[-1]:
            near[nearest(pi, scores)].append(i)
    return near


def nearest(pi, scores):
    if pi in scores:
        return pi
    below = max(s for s in scores if s < pi)
    above = min(s for s in scores if s > pi)
    return below if pi <= below + (above - below) / 2 else above


def residuals(y, p):
    return [Fraction(yi) - Fraction(pi) for yi, pi in zip(y, p, strict=True)]


def residual_steps(residual, p, member, w):
    """Return the step of each cell: w (r - mean r of the cell) over the group's rows there."""
    steps = []
    for rows in cells(p, member).values():
        weight = sum(Fraction(w[i]) for i in rows)
        mean = sum(Fraction(w[i]) * residual[i] for i in rows) / weight
        steps.append(sum(Fraction(w[i]) * (residual[i] - mean) for i in rows if member[i]))
    return steps


def residual_walk(residual, p, member, w=None):
    w = [1] * len(p) if w is None else w
    total = sum(Fraction(wi) for wi, inside in zip(w, member, strict=True) if inside)
    steps = residual_steps(residual, p, member, w)
    return [Fraction(0), *(s / total for s in itertools.accumulate(steps))]


def group_walk(y, p, member, w=None):
    return residual_walk(residuals(y, p), p, member, w)


def shuffled_walks(y, p, member, w=None):
    """Yield the walk with the residuals of every cell permuted in every way."""
    groups = list(cells(p, member).values())
    residual = residuals(y, p)
    for orders in itertools.product(*(itertools.permutations(rows) for rows in groups)):
        shuffled = list(residual)
        for rows, order in zip(groups, orders, strict=True):
            for i, j in zip(rows, order, strict=True):
                shuffled[i] = residual[j]
        yield residual_walk(shuffled, p, member, w)


def group_sigma(y, p, member, w=None):
    """Standard deviation of the walk's end over all permutations within cells."""
    ends = [positions[-1] for positions in shuffled_walks(y, p, member, w)]
    mean = sum(ends) / len(ends)
    return math.sqrt(sum((e - mean) ** 2 for e in ends) / len(ends))


def group_p_value(y, p, member, w=None):
    """P(range >= observed) over all permutations within cells."""

    def reach(positions):
        return max(positions) - min(positions)

    observed = reach(group_walk(y, p, member, w))
    hits = [reach(positions) >= observed for positions in shuffled_walks(y, p, member, w)]
    return sum(hits) / len(hits)
