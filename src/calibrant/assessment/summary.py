"""What the words of an assessment rest on: means, the line through residuals, cumulative sums.

All of it comes from rows pooled by score, which rows and sketches both know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.measures.cumulative_differences import CumulativeDifferences
from calibrant.problem import Pooled, Problem
from calibrant.results.values import Interval, Stretch


@dataclass(frozen=True, eq=False)
class Summary:
    """First and second moments of scores and residuals.

    Attributes
    ----------
    prevalence, mean_prediction
        Weighted means of outcomes and predictions.
    bias
        prevalence - mean_prediction: negative where predictions are too high on average.
    slope
        How fast outcomes rise with predictions, 1 + the slope of residuals on scores by least
        squares: below 1 where predictions are too extreme. nan where there is one score only.
    """

    prevalence: float
    mean_prediction: float
    bias: Interval
    slope: Interval

    @classmethod
    def of(cls, problem: Problem, level: float) -> Summary:
        """Summarise the rows of a problem."""
        from scipy.special import ndtri

        z, pooled = float(ndtri((1 + level) / 2)), problem.pooled
        if problem.is_soft:
            z *= _soft_share(problem)
        total = float(pooled.weight.sum())
        mean = float(pooled.weight @ pooled.score) / total
        bias = float(pooled.residual.sum()) / total
        bias_error = residual_noise(pooled, np.ones_like(pooled.score)) / total
        away = pooled.score - mean
        spread = float(pooled.weight @ (away * away))
        with np.errstate(invalid="ignore", divide="ignore"):
            tilt = np.divide(pooled.residual @ away, spread)
            tilt_error = np.divide(residual_noise(pooled, away), spread)
        return cls(
            prevalence=float(pooled.true.sum()) / total,
            mean_prediction=mean,
            bias=_around(bias, z * bias_error, level),
            slope=_around(1 + float(tilt), z * float(tilt_error), level),
        )


def residual_noise(pooled: Pooled, factor: FloatArray) -> float:
    """Return the standard deviation of the sum of f w (y - p), f being a factor at each score.

    It is the root of the sum of (f w (y - p))^2, as if outcomes were 0 or 1. Exact for rows that
    count once; where weights differ at one score, they are taken to be as they are on average for
    both outcomes. Where few outcomes of one kind were seen residuals may say too little: it is
    never less than under perfect calibration.
    """
    p, true = pooled.score, pooled.true
    mean_weight = pooled.weight_squared / pooled.weight
    seen = mean_weight * (true * (1 - p) ** 2 + (pooled.weight - true) * p * p)
    calibrated = pooled.weight_squared * p * (1 - p)
    squares = factor * factor
    return float(np.sqrt(max(seen @ squares, calibrated @ squares)))


def _soft_share(problem: Problem) -> float:
    """Return how much noise soft outcomes have, as a share of what outcomes of 0 and 1 would have.

    Where in the scores they have it is taken to be the same.
    """
    pooled = problem.pooled
    mean_weight = float(pooled.weight_squared.sum()) / problem.weight
    most = residual_noise(pooled, np.ones_like(pooled.score))
    return min(math.sqrt(problem.squared_error() * mean_weight) / most, 1.0) if most > 0 else 1.0


def main_stretch(differences: CumulativeDifferences) -> Stretch:
    """Return the scores between the lowest and the highest cumulative difference.

    That is the stretch over which outcomes deviate most in total: its deviation is ECCE-R.
    """
    deviation, fraction = differences.deviation, differences.fraction
    lowest, highest = int(deviation.argmin()), int(deviation.argmax())
    first, last = sorted((lowest, highest))
    if first == last:
        score = float(differences.score[0])
        return Stretch(score, score, 0.0, 0.0)
    share = float(fraction[last] - fraction[first])
    return Stretch(
        low=float(differences.score[first]),
        high=float(differences.score[last - 1]),
        share=share,
        gap=float(deviation[last] - deviation[first]) / share,
    )


def _around(value: float, reach: float, level: float) -> Interval:
    return Interval(value, value - reach, value + reach, level)
