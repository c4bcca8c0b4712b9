"""Losses of decisions row by row, and isotonic regression by pooling, in exact fractions."""

from __future__ import annotations

from fractions import Fraction


def loss(y, p, threshold, w=None):
    """Return the mean loss of acting where p >= threshold."""
    w = [1] * len(p) if w is None else w
    t, total = Fraction(threshold), Fraction(0)
    for yi, pi, wi in zip(y, p, w, strict=True):
        cost = t * (1 - Fraction(yi)) if pi >= t else (1 - t) * Fraction(yi)
        total += Fraction(wi) * cost
    return total / sum(map(Fraction, w))


def isotonic(y, p, w=None):
    """Return the isotonic regression of outcomes on predictions at every row: pool violators."""
    w = [1] * len(p) if w is None else w
    blocks = []
    for score in sorted(set(p)):
        here = [i for i, pi in enumerate(p) if pi == score]
        rows = [(Fraction(w[i]), Fraction(y[i])) for i in here]
        blocks.append([sum(a for a, _ in rows), sum(a * b for a, b in rows), [score]])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            weight, true, scores = blocks.pop()
            blocks[-1] = [blocks[-1][0] + weight, blocks[-1][1] + true, blocks[-1][2] + scores]
    value = {score: true / weight for weight, true, scores in blocks for score in scores}
    return [value[score] for score in p]


def regret(y, p, threshold, w=None):
    """Return what isotonic recalibration saves at a threshold."""
    return loss(y, p, threshold, w) - loss(y, isotonic(y, p, w), threshold, w)


def net_benefit(y, p, threshold, w=None):
    """Return hits less false alarms at their exchange rate, per row."""
    w = [1] * len(p) if w is None else w
    t, total = Fraction(threshold), Fraction(0)
    for yi, pi, wi in zip(y, p, w, strict=True):
        if pi >= t:
            total += Fraction(wi) * (Fraction(yi) - (1 - Fraction(yi)) * t / (1 - t))
    return total / sum(map(Fraction, w))
