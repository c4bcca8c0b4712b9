"""The minimum detectable effect: the shift of all probabilities that a test finds in most samples.

Probabilities shifted by x are min(p + x, 1), or max(p - x, 0): near 0 and 1 they move by less. The
part "level" of :func:`calibrant.calibration_test` rejects by itself where its own P-value is at
most (1 - level) / 6, as joint P-values are at most six times those of any part. Its statistic is
the distance of the number of events from their expectation, both weighted; that number is taken to
be binomial with the mean and the variance that it has, or normal where they are large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import betainc, ndtr, ndtri

from calibrant._base import FloatArray
from calibrant.data.problem import Pooled, Problem
from calibrant.inference.joint_test import PARTS
from calibrant.numerics.probability import monotone_root

# Counts of at least this variance are normal: their tails differ little, and are many.
_NORMAL_VARIANCE = 1000.0
_PRECISION = 1e-6


def minimum_detectable_shift(problem: Problem, level: float, power: float = 0.8) -> float:
    """Return the shift of all probabilities, clipped at 0 and 1, that is detected with this power.

    It is the larger one of those upwards and downwards. A direction in which no shift is detected
    with this power, as where events are too few for their absence to be remarkable, is left out;
    where neither is detected it is 1. It is nan for soft labels, whose noise is unknown, and for
    predictions of 0 and 1 alone, which have no test. Outcomes do not matter otherwise.
    """
    pooled = problem.pooled
    noise = float(pooled.weight_squared @ (pooled.score * (1 - pooled.score)))
    if problem.is_soft or noise == 0:
        return math.nan
    # The weight of an event, in which weighted sums are counts.
    unit = noise / float(pooled.weight @ (pooled.score * (1 - pooled.score)))
    calibrated = _Count.of(pooled, pooled.score, unit)
    reach = calibrated.critical_distance((1 - level) / len(PARTS))

    def excess_power(sign: float, x: float) -> float:
        shifted = _Count.of(pooled, np.clip(pooled.score + sign * x, 0.0, 1.0), unit)
        return shifted.outside(calibrated.mean, reach) - power

    found = (
        monotone_root(partial(excess_power, sign), 0.0, 1.0, _PRECISION)
        for sign in (1.0, -1.0)
        if excess_power(sign, 1.0) >= 0
    )
    return max(found, default=1.0)


@dataclass(frozen=True)
class _Count:
    """A number of events by its mean and variance: binomial, or normal where they are many."""

    mean: float
    variance: float

    @classmethod
    def of(cls, pooled: Pooled, probability: FloatArray, unit: float) -> _Count:
        """Return the count of weighted events of these probabilities, in units of weight."""
        mean = float(pooled.weight @ probability) / unit
        return cls(mean, float(pooled.weight_squared @ (probability * (1 - probability))) / unit**2)

    def outside(self, centre: float, distance: float) -> float:
        """Return the probability of a count at least so far from a centre."""
        return (
            self._at_least(centre + distance) + 1 - self._at_least(centre - distance, strict=True)
        )

    def _at_least(self, x: float, *, strict: bool = False) -> float:
        """Return P(X >= x), or P(X > x)."""
        if self.variance >= _NORMAL_VARIANCE:
            return float(ndtr((self.mean - x) / math.sqrt(self.variance)))
        k = math.floor(x + _PRECISION) + 1 if strict else math.ceil(x - _PRECISION)
        if self.variance == 0 or k <= 0:
            return float(k <= self.mean + _PRECISION)
        # As good as Poisson where the variance is the mean.
        p = max(1 - self.variance / self.mean, _PRECISION)
        n = self.mean / p
        return float(betainc(k, n - k + 1, p)) if k <= n else 0.0

    def critical_distance(self, tail: float) -> float:
        """Return the smallest distance from the mean that has at most this probability."""
        if self.variance >= _NORMAL_VARIANCE:
            return float(-ndtri(tail / 2)) * math.sqrt(self.variance)
        k = np.arange(math.ceil(self.mean + 100 * math.sqrt(self.variance) + 100))
        distance: float
        for distance in np.unique(np.abs(k - self.mean)).tolist():
            if self.outside(self.mean, distance) <= tail:
                return distance
        return math.inf
