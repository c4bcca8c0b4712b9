"""Numbers that come with a range, a place or parts."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.arrays import FloatArray
from calibrant.results.result import Result


@dataclass(frozen=True, repr=False)
class Interval(Result):
    """A number and how far off it may be."""

    value: float
    low: float
    high: float
    level: float

    def excludes(self, other: float) -> bool:
        """Tell whether a number lies outside; an unknown interval excludes nothing."""
        return other < self.low or other > self.high

    def __repr__(self) -> str:
        return (
            f"{self.value:.4g} ({100 * self.level:g}% interval {self.low:.4g} to {self.high:.4g})"
        )


@dataclass(frozen=True)
class Stretch(Result):
    """A stretch of scores and the mean deviation over it.

    Attributes
    ----------
    low, high
        The least and the greatest score in it.
    share
        Its share of the weight.
    gap
        The mean of y - p over it.
    """

    low: float
    high: float
    share: float
    gap: float


@dataclass(frozen=True)
class ScoreDecomposition(Result):
    """A mean score split into what calibration costs, what discrimination gains, and the rest.

    score = miscalibration - discrimination + uncertainty, up to rounding.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True, repr=False)
class DistanceBounds(Result):
    """Bounds on the distance to calibration of a sample."""

    low: float
    high: float

    def __repr__(self) -> str:
        return f"DistanceBounds({self.low:.6g} <= distance <= {self.high:.6g})"


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzWitness(Result):
    """A function v that attains the weak calibration error, at every distinct score.

    Attributes
    ----------
    score
        The distinct scores, increasing.
    value
        v at each score: 1-Lipschitz and within [-1, 1].
    residual
        Sum of w (y - p) / W at each score.
    error
        The weak calibration error, the sum of value * residual.
    """

    score: FloatArray
    value: FloatArray
    residual: FloatArray
    error: float

    def __repr__(self) -> str:
        span = f"{len(self.score)} scores from {self.score[0]:.6g} to {self.score[-1]:.6g}"
        return f"LipschitzWitness(error={self.error:.6g}, {span})"
