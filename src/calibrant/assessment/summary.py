"""What an assessment says in words rests on: means, the line through the residuals, the walk.

All of it comes from the steps of the cumulative walk, which rows and sketches both know.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.measures.walk import Walk
from calibrant.problem import Atoms
from calibrant.results import Interval, Stretch


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
    def of(cls, steps: Atoms, level: float) -> Summary:
        """Summarise rows pooled by score."""
        from scipy.special import ndtri

        z = float(ndtri((1 + level) / 2))
        total, variance = float(steps.weight.sum()), residual_variance(steps)
        mean = float(steps.weight @ steps.score) / total
        bias, bias_error = float(steps.residual.sum()) / total, np.sqrt(variance.sum()) / total
        away = steps.score - mean
        spread = float(steps.weight @ (away * away))
        with np.errstate(invalid="ignore", divide="ignore"):
            tilt = np.divide(steps.residual @ away, spread)
            tilt_error = np.sqrt(variance @ (away * away)) / spread
        return cls(
            prevalence=float(steps.true.sum()) / total,
            mean_prediction=mean,
            bias=_around(bias, z * float(bias_error), level),
            slope=_around(1 + float(tilt), z * float(tilt_error), level),
        )


def residual_variance(steps: Atoms) -> FloatArray:
    """Return the sum of w^2 (y - p)^2 at each score, as if outcomes were 0 or 1.

    Exact for rows that count once; where weights differ at one score, they are taken to be as they
    are on average for both outcomes. At scores with nothing but the expected outcome it is at least
    what perfect calibration would make it.
    """
    p, true = steps.score, steps.true
    squares = true * (1 - p) ** 2 + (steps.weight - true) * p * p
    mean_weight = steps.weight_squared / steps.weight
    return np.asarray(mean_weight * squares)


def main_stretch(walk: Walk) -> Stretch:
    """Return the scores between the lowest and the highest point of a walk.

    That is the stretch over which outcomes deviate most in total: its deviation is ECCE-R.
    """
    deviation, fraction = walk.deviation, walk.fraction
    lowest, highest = int(deviation.argmin()), int(deviation.argmax())
    first, last = sorted((lowest, highest))
    if first == last:
        score = float(walk.score[0])
        return Stretch(score, score, 0.0, 0.0)
    share = float(fraction[last] - fraction[first])
    return Stretch(
        low=float(walk.score[first]),
        high=float(walk.score[last - 1]),
        share=share,
        gap=float(deviation[last] - deviation[first]) / share,
    )


def _around(value: float, reach: float, level: float) -> Interval:
    return Interval(value, value - reach, value + reach, level)
