"""Differences between the proper scores of models on the same rows.

A mean score is a mean of losses, one a row, and so is a difference of two: its interval is that of
a mean, from the t-distribution. Where all but a few rows have the same outcome, the losses seen say
too little of the other: with none of them seen, losses may not vary at all. The variance is then at
least what outcomes drawn from the predictions would make it; for a difference, from the mean of
both models' predictions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.class_table import ClassTable
from calibrant.inference.estimate_result import Estimate
from calibrant.inference.paired import Difference
from calibrant.measures.registry import RowLosses
from calibrant.multiclass import check_is_one, read_table, reduce_table
from calibrant.problem import Index, Problem

# A chance that is smaller than any double is still not 0.
_SMALLEST = sys.float_info.min
# With fewer rows of any but the most common outcome, what was seen of them is not enough.
_FEW_EVENTS = 15


@dataclass(frozen=True, eq=False)
class Losses:
    """What rows cost a model.

    Attributes
    ----------
    seen
        The loss of each row.
    if_outcome
        What it would be for each outcome, one column an outcome.
    chance
        The model's own probability of each outcome.
    w
        The weights.
    is_rare
        Whether nearly all rows have the same outcome.
    """

    seen: FloatArray
    if_outcome: FloatArray
    chance: FloatArray
    w: FloatArray
    is_rare: bool

    def minus(self, other: Losses) -> Losses:
        """Return how much more rows cost this model than another."""
        with np.errstate(invalid="ignore"):
            if_outcome = self.if_outcome - other.if_outcome
        chance = (self.chance + other.chance) / 2
        return Losses(self.seen - other.seen, if_outcome, chance, self.w, self.is_rare)

    def mean(self) -> float:
        """Return the weighted mean loss."""
        return float(np.dot(self.w, self.seen) / self.w.sum())

    def least_variance(self) -> float:
        """Return the variance of the total loss if outcomes are drawn from the chances.

        Losses without limit, of outcomes that some model excludes, are left out.
        """
        loss = np.where(np.isfinite(self.if_outcome), self.if_outcome, 0.0)
        expected = np.sum(self.chance * loss, axis=1, keepdims=True)
        away = (loss - expected) ** 2 * np.isfinite(self.if_outcome)
        return float(np.dot(self.w**2, np.sum(self.chance * away, axis=1)))


@dataclass(frozen=True)
class MeanLoss:
    """A mean loss, or a difference of two, and what is known of its population.

    Attributes
    ----------
    mean, error
        The mean and its standard error.
    freedom
        Degrees of freedom: one less than there are rows or clusters.
    """

    mean: float
    error: float
    freedom: int

    @classmethod
    def of(cls, losses: Losses, cluster: Index | None) -> MeanLoss:
        """Return the mean of losses whose rows are independent, or clusters of them are."""
        mean, total = losses.mean(), float(losses.w.sum())
        away = losses.w * (losses.seen - mean)
        if cluster is not None:
            away = np.bincount(cluster, away).astype(np.float64)
        n = len(away)
        variance = float(np.dot(away, away)) * n / (n - 1)
        if losses.is_rare:
            variance = max(variance, losses.least_variance())
        return cls(mean, math.sqrt(variance) / total, n - 1)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval for the population's mean."""
        from scipy.special import stdtrit

        reach = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.mean - reach, self.mean + reach

    def estimate(self, measure: str, level: float, n: int) -> Estimate:
        """Return the mean as an estimate of a score."""
        low, high = self.interval(level)
        return Estimate(
            value=self.mean,
            bias_corrected=self.mean,
            low=max(low, 0.0),
            high=high,
            level=level,
            n=n,
            error_bound=0.0,
            measure=measure,
            method="t",
        )

    def difference(self, level: float) -> Difference:
        """Return what may be said of a difference."""
        from scipy.special import stdtr

        low, high = self.interval(level)
        if self.error == 0:
            # Equal in every row, or certain to differ.
            p_more, p_less = (1.0 if sign * self.mean <= 0 else _SMALLEST for sign in (1, -1))
        else:
            t = self.mean / self.error
            p_more, p_less = (max(float(stdtr(self.freedom, s * t)), _SMALLEST) for s in (-1, 1))
        return Difference(low, high, p_more, p_less)


def read_losses(
    row_losses: RowLosses,
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Losses:
    """Read the input of one model and return what its rows cost."""
    check_is_one(multiclass)
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    if isinstance(table, ClassTable) and multiclass is None:
        parts = [np.concatenate(part) for part in zip(*table.blocks(), strict=True)]
        chance, outcome, w = parts
        is_soft = table.is_soft
    else:
        problem: Problem = next(reduce_table(table, multiclass, labels).problems())
        p, y, w = problem.rows.columns()
        chance, outcome = np.stack((1 - p, p), axis=1), np.stack((1 - y, y), axis=1)
        is_soft = problem.is_soft
    seen, if_outcome = row_losses(chance, outcome)
    # Soft outcomes are not drawn: what was seen is all there is.
    few = not is_soft and len(w) - outcome.sum(axis=0).max() < _FEW_EVENTS
    return Losses(seen, if_outcome, chance, w, bool(few))
