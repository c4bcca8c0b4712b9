"""Limits of the mean outcome in each part of the rows, given the predictions.

Where predictions explain part of the outcomes, the mean outcome of n rows has a larger effective
sample size: that of a proportion of events with the variance of the mean of y - p. Its limits are
those of Clopper and Pearson at that size. What predictions explain is shrunk by a few rows that
they do not explain: few rows with good predictions are no proof of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant.arrays import FloatArray, IntArray
from calibrant.numerics.probability import proportion_lower, proportion_upper, student_tail
from calibrant.problem import Index


@dataclass(frozen=True, eq=False)
class PartSums:
    """Rows added up in parts.

    Attributes
    ----------
    code
        The part of each row.
    share, residual
        The fraction of the weight of its part that each row has, and its outcome less its
        prediction.
    weight, pred, true
        The weight of each part, its mean prediction and its mean outcome.
    """

    code: Index
    share: FloatArray
    residual: FloatArray
    weight: FloatArray
    pred: FloatArray
    true: FloatArray

    @classmethod
    def gather(cls, code: Index, p: FloatArray, y: FloatArray, w: FloatArray) -> PartSums:
        """Add up rows."""
        weight = np.bincount(code, w).astype(np.float64)
        share = w / weight[code]
        pred, true = (np.bincount(code, share * v).astype(np.float64) for v in (p, y))
        pred, true = np.minimum(pred, 1.0), np.minimum(true, 1.0)  # but for rounding
        return cls(code, share, y - p, weight, pred, true)

    def limits(self, tail: float, clusters: Index | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the limits of the mean probability of events in each part, at this tail."""
        squares = np.bincount(self.code, self.share**2)
        n, more = 1 / squares, float(ndtri(tail)) ** 2
        near = (self.true * n + more / 2) / (n + more)
        moved = self.share * (self.residual - (near - self.pred)[self.code])
        seen = n * np.bincount(self.code, moved**2)
        # Of the rows added half are events, at the mean prediction.
        variance = near * (1 - near)
        unexplained = (n * seen + more * (0.5 - variance)) / (n + more)
        rows, tails = n * variance / unexplained, np.full(len(n), tail)
        if clusters is not None:
            number, effect = _design(self.code, clusters, moved)
            # One cluster tells nothing of others.
            rows = np.where(number > 1, rows / effect, 0.0)
            tails = student_tail(tails, np.maximum(number, 2))
        return proportion_lower(self.true, rows, tails), proportion_upper(self.true, rows, tails)


def _design(code: Index, clusters: Index, moved: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the number of clusters in each part, and how much more they vary than rows do."""
    n_parts = int(code.max()) + 1
    pairs, place = np.unique(clusters * n_parts + code, return_inverse=True)
    part, total = pairs % n_parts, np.bincount(place, moved)
    number = np.bincount(part).astype(np.int64)
    together = np.bincount(part, total**2) * number / np.maximum(number - 1, 1)
    apart = np.bincount(code, moved**2)
    effect = np.divide(together, apart, out=np.ones(n_parts), where=apart > 0)
    return number, np.maximum(effect, 1.0)
