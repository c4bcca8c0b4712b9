"""How far a share of events may lie from their chance: limits by Clopper and Pearson (1934).

With x events in n rows, neither necessarily whole, the limits of the chance of an event are the
beta quantiles

    lower = B(tail; x, n - x + 1),    upper = B(1 - tail; x + 1, n - x)

For whole counts each is missed with probability `tail` at most. They never meet: no event in n rows
still leaves a chance of up to 1 - tail^(1/n). Weighted sums count as n = (sum w)^2 / sum w^2 rows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaincinv

from calibrant.arrays import FloatArray

# Halvings that find a share to a ten-thousandth of its distance from the expectation.
_HALVINGS = 14


def lower_limit(share: FloatArray, rows: FloatArray, tail: FloatArray) -> FloatArray:
    """Return the least chance that a share of events in so many rows leaves possible."""
    events = share * rows
    some = events > 0
    # Without events the quantile is 0, whatever stands in for their number.
    found = betaincinv(np.where(some, events, 1.0), rows - events + 1, tail)
    return np.where(some, found, 0.0)


def upper_limit(share: FloatArray, rows: FloatArray, tail: FloatArray) -> FloatArray:
    """Return the greatest chance that a share of events in so many rows leaves possible."""
    return 1 - lower_limit(1 - share, rows, tail)


def greatest_share(chance: FloatArray, rows: FloatArray, tail: FloatArray) -> FloatArray:
    """Return the share of events above which `lower_limit` would exceed their chance.

    The other side of the same coin: the x with P(X >= x) = tail for X binomial, continued between
    whole numbers. Bernstein's inequality encloses it. Rows without end leave nothing to chance.
    """
    finite = np.isfinite(rows) & (rows > 0)
    n = np.where(finite, rows, 1.0)
    reach = -np.log(tail)
    low = n * chance
    high = low + 2 / 3 * reach + np.sqrt(2 * reach * low * (1 - chance)) + 1
    high = np.minimum(high, n)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        # The least number stands for no events, which are as many or more with certainty.
        is_likely = betainc(np.maximum(middle, 1e-300), n - middle + 1, chance) > tail
        low, high = np.where(is_likely, middle, low), np.where(is_likely, high, middle)
    return np.maximum(np.where(finite, high / n, chance), chance)


def least_share(chance: FloatArray, rows: FloatArray, tail: FloatArray) -> FloatArray:
    """Return the share of events below which `upper_limit` would fall short of their chance."""
    return np.minimum(1 - greatest_share(1 - chance, rows, tail), chance)
