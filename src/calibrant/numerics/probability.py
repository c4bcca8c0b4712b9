"""Distributions of Brownian motion, limits of proportions, critical values and P-values.

Brownian motion on [0, 1]. ``brownian_max`` is the distribution of max abs(B), ``brownian_range``
that of max B - min B. Each has two series: one that converges fast for small x, used for the
distribution function below a crossover, and one in normal tails Q that converges fast for large x,
used for the survival function above it, so that neither tail is lost to subtraction from 1:

    P(max <= x)   = (2/pi) sum_{k>=0} (-1)^k / (k + 1/2) exp(-(k + 1/2)^2 pi^2 / (2 x^2))
    P(max > x)    = 4 sum_{k>=0} (-1)^k Q((2k + 1) x)
    P(range <= x) = sum_{k>=0} (8/x^2 + 2 / ((k + 1/2)^2 pi^2)) exp(-2 (k + 1/2)^2 pi^2 / x^2)
    P(range > x)  = 8 sum_{k>=1} (-1)^(k-1) k Q(k x)

Against sums with 400 digits, `sf` and `cdf` are right to a relative 1e-12 down to 1e-300.

Proportions. With x events in n trials, neither necessarily whole, Clopper and Pearson's (1934)
limits of the probability of an event are the beta quantiles

    lower = B(tail; x, n - x + 1),    upper = B(1 - tail; x + 1, n - x)

For whole counts each is missed with probability at most `tail`; they never coincide. Weighted sums
count as n = (sum w)^2 / sum w^2 trials.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray, IntArray


def monotone_root(
    rising: Callable[[float], float], low: float, high: float, tolerance: float
) -> float:
    """Return the root of a non-decreasing function, or the end of the interval nearest to it."""
    from scipy.optimize import brentq

    known = cache(rising)  # brentq begins at the ends
    if known(low) >= 0:
        return low
    if known(high) <= 0:
        return high
    return float(brentq(known, low, high, xtol=tolerance))


# At the crossovers the next term of either series is below 1e-17.
_TERMS = 8
# Beyond these limits probabilities are 0 in double precision.
_LOWEST, _HIGHEST = 0.03, 40.0
_XTOL = 1e-15
# A standard normal variable is never larger than this.
_FARTHEST = 38.0
# Beta quantiles cannot take smaller tails.
_MIN_TAIL = 1e-30
_PRECISION = 1e-9

Series = Callable[[FloatArray], FloatArray]


def logit(p: FloatArray) -> FloatArray:
    """Return log(p / (1 - p)), infinite at 0 and 1.

    `scipy.special.logit` takes six times as long, as numpy takes several logarithms at a time.
    1 - p is rounded by half a unit in its last place at most, and from p = 1/2 on not at all.
    """
    with np.errstate(divide="ignore"):
        return np.log(p / (1 - p))


@dataclass(frozen=True)
class BrownianDistribution:
    """The distribution of a functional of Brownian motion, with the methods of ``scipy.stats``.

    `lower` and `upper` are the terms of P(X <= x) up to the crossover and of P(X > x) beyond it.
    """

    name: str
    expectation: float
    crossover: float
    lower: Series = field(repr=False)
    upper: Series = field(repr=False)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Return P(X <= x)."""
        lower, upper, is_low = self._both_tails(x)
        return np.where(is_low, lower, 1 - upper)[()]

    def sf(self, x: npt.ArrayLike) -> FloatArray:
        """Return P(X > x)."""
        lower, upper, is_low = self._both_tails(x)
        return np.where(is_low, 1 - lower, upper)[()]

    def mean(self) -> float:
        """Return the expected value."""
        return self.expectation

    def ppf(self, q: npt.ArrayLike) -> FloatArray:
        """Return the x with P(X <= x) = q; nan where q is not in [0, 1]."""
        q = np.asarray(q, dtype=np.float64)
        return np.array([self._quantile(float(one)) for one in q.flat]).reshape(q.shape)[()]

    def _both_tails(self, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray, Any]:
        x = np.asarray(x, dtype=np.float64)
        lower = self.lower(np.clip(x, _LOWEST, self.crossover)).sum(axis=0)
        upper = self.upper(np.clip(x, self.crossover, _HIGHEST)).sum(axis=0)
        return lower, upper, x < self.crossover

    def _quantile(self, q: float) -> float:
        if not 0 < q < 1:
            return {0.0: 0.0, 1.0: math.inf}.get(q, math.nan)
        # 1 - q is exact on the upper side, where q is at least a half.
        if q < 0.5:
            return monotone_root(lambda x: float(self.cdf(x) - q), _LOWEST, _HIGHEST, _XTOL)
        return monotone_root(lambda x: float(1 - q - self.sf(x)), _LOWEST, _HIGHEST, _XTOL)


def _max_lower(x: FloatArray) -> FloatArray:
    half = _terms(x) + 0.5
    sign = 1 - 2 * (_terms(x) % 2)
    return np.asarray(2 / np.pi * sign / half * np.exp(-((half * np.pi / x) ** 2) / 2))


def _max_upper(x: FloatArray) -> FloatArray:
    k = _terms(x)
    return np.asarray(4 * (1 - 2 * (k % 2)) * _normal_sf((2 * k + 1) * x))


def _range_lower(x: FloatArray) -> FloatArray:
    half = _terms(x) + 0.5
    factor = 8 / x**2 + 2 / (half * np.pi) ** 2
    return np.asarray(factor * np.exp(-2 * (half * np.pi / x) ** 2))


def _range_upper(x: FloatArray) -> FloatArray:
    k = _terms(x) + 1
    return np.asarray(8 * (2 * (k % 2) - 1) * k * _normal_sf(k * x))


def _terms(x: FloatArray) -> FloatArray:
    """Return 0, 1, 2, ... along a new leading axis."""
    return np.arange(_TERMS, dtype=np.float64).reshape((_TERMS,) + (1,) * x.ndim)


def _normal_sf(x: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(-x))


brownian_max = BrownianDistribution("max |B|", math.sqrt(math.pi / 2), 1.4, _max_lower, _max_upper)
brownian_range = BrownianDistribution(
    "range of B", math.sqrt(8 / math.pi), 2.0, _range_lower, _range_upper
)


def proportion_lower(proportion: FloatArray, n: FloatArray, tail: FloatArray) -> FloatArray:
    """Return Clopper and Pearson's lower limit, given the proportion of events in n trials."""
    from scipy.special import betaincinv

    events = proportion * n
    some = events > 0
    # Without events the quantile is 0, whatever is given for their number.
    found = betaincinv(np.where(some, events, 1.0), n - events + 1, tail)
    return np.where(some, found, 0.0)


def proportion_upper(proportion: FloatArray, n: FloatArray, tail: FloatArray) -> FloatArray:
    """Return Clopper and Pearson's upper limit, given the proportion of events in n trials."""
    return 1 - proportion_lower(1 - proportion, n, tail)


def max_proportion(probability: FloatArray, n: FloatArray, tail: FloatArray) -> FloatArray:
    """Return the proportion of events above which their `proportion_lower` exceeds a probability.

    The x / n with P(X >= x) = tail for X binomial, continued between whole numbers; the
    probability itself where n is infinite or 0.
    """
    from scipy.special import bdtrik

    inside = np.isfinite(n) & (n > 0) & (probability > 0) & (probability < 1)
    trials = np.where(inside, n, 1.0)
    others = bdtrik(tail, trials, np.where(inside, 1 - probability, 0.5))
    return np.maximum(np.where(inside, 1 - others / trials, probability), probability)


def min_proportion(probability: FloatArray, n: FloatArray, tail: FloatArray) -> FloatArray:
    """Return the proportion of events below which `proportion_upper` is under a probability."""
    return np.minimum(1 - max_proportion(1 - probability, n, tail), probability)


# Critical values of bands are given as tails: the probability on either side of a band.


def pointwise_tail(level: float) -> float:
    """Return the tail of a band that holds at each point by itself."""
    return (1 - level) / 2


def sidak_tail(level: float, n: int) -> float:
    """Return the tail of a band that holds at n independent points together."""
    return float(-np.expm1(math.log(level) / n)) / 2


def rice_tail(level: float, arcs: FloatArray) -> float:
    """Return the tail of a band that holds for a whole curve of normal noise.

    Standardised noise runs along the unit sphere, and the angles between its points, `arcs`, add
    up to the length L of its path. It leaves [-z, z] for the first time at its start, or on its
    way: Rice's formula expects L exp(-z^2 / 2) / pi such crossings. As they are rare and far apart,

        P(inside) = (1 - 2 Q(z)) exp(-L exp(-z^2 / 2) / pi),

    Q being the normal tail, which is Sun and Loader's (1994) tube formula where P is near 1.
    """
    length = float(arcs.sum())

    def inside(z: float) -> float:
        crossings = length / math.pi * math.exp(-z * z / 2)
        return math.erf(z / math.sqrt(2)) * math.exp(-crossings) - level

    return float(_normal_sf(np.asarray(monotone_root(inside, 0.0, _FARTHEST, _PRECISION))))


def student_tail(tail: FloatArray, n_clusters: int | IntArray) -> FloatArray:
    """Return the normal tail at the quantile that Student's t with n - 1 degrees of freedom has.

    For bands whose standard error is estimated from n clusters.
    """
    from scipy.special import ndtr, stdtrit

    return np.asarray(np.maximum(ndtr(stdtrit(n_clusters - 1, tail)), _MIN_TAIL))


def weibull_quantile(values: FloatArray, level: float) -> float:
    """Return the value that one more draw stays below with this probability."""
    # What np.quantile(values, level, method="weibull") returns, in a fifth of the time.
    last = len(values) - 1
    place = min(max((last + 2) * level - 1, 0.0), float(last))
    below = int(place)
    ends = np.partition(values, (below, min(below + 1, last)))[below : below + 2]
    return float(ends[0] + (place - below) * (ends[-1] - ends[0]))


# P-values that are smaller than any double are not 0.
SMALLEST = sys.float_info.min


def rank_p_value(simulated: FloatArray, observed: float, tolerance: float) -> float:
    """Return (1 + number of simulated values >= observed) / (1 + number of simulated values).

    Values that differ by at most the tolerance are equal.
    """
    reaching = np.count_nonzero(simulated >= observed - tolerance)
    return float((1 + reaching) / (1 + len(simulated)))


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Return Holm's adjusted P-values: the i-th smallest of m times m - i + 1, made to rise.

    Rejecting those up to a makes any false rejection at most as probable as a, however the tests
    depend on each other. P-values of nan stay nan and do not count.
    """
    adjusted = np.array(p_values, dtype=np.float64)
    (known,) = np.nonzero(~np.isnan(adjusted))
    order = known[np.argsort(adjusted[known], kind="stable")]
    rising = np.maximum.accumulate(adjusted[order] * np.arange(len(order), 0, -1))
    adjusted[order] = np.minimum(rising, 1.0)
    return adjusted


def benjamini_hochberg(p_values: npt.ArrayLike) -> FloatArray:
    """Return Benjamini and Hochberg's adjusted P-values.

    Of those up to a, a proportion of at most a is falsely rejected on average, for independent
    tests. P-values of nan stay nan and do not count.
    """
    from scipy.stats import false_discovery_control

    adjusted = np.array(p_values, dtype=np.float64)
    known = ~np.isnan(adjusted)
    adjusted[known] = false_discovery_control(adjusted[known])
    return adjusted
