"""How far out limits must lie for a whole curve to stay within them."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, stdtrit

from calibrant.arrays import FloatArray, IntArray
from calibrant.inference.intervals.roots import crossing

# No normal number gets so far.
_FARTHEST = 38.0
# What lies farther out than this makes no difference, and is more than beta quantiles can take.
_LEAST = 1e-30
_PRECISION = 1e-9


def pointwise_tail(level: float) -> float:
    """Return the chance to miss on either side at one point."""
    return (1 - level) / 2


def independent_tail(level: float, n: int) -> float:
    """Return the tail that keeps n independent points inside together (Šidák)."""
    return float(-np.expm1(math.log(level) / n)) / 2


def connected_tail(level: float, arcs: FloatArray) -> float:
    """Return the tail that keeps a whole curve of normal noise inside.

    Standardised noise runs along the unit sphere, and the angles between its points add up to the
    length L of its path. It leaves [-z, z] for the first time at its start, or on its way: Rice's
    formula expects L exp(-z^2 / 2) / pi such crossings. As they are rare and far apart,

        P(inside) = (1 - 2 Q(z)) exp(-L exp(-z^2 / 2) / pi),

    Q being the normal tail, which is Sun and Loader's (1994) tube formula where P is near 1.
    """
    length = float(arcs.sum())

    def inside(z: float) -> float:
        crossings = length / math.pi * math.exp(-z * z / 2)
        return math.erf(z / math.sqrt(2)) * math.exp(-crossings) - level

    return float(ndtr(-crossing(inside, 0.0, _FARTHEST, _PRECISION)))


def widened_tail(tail: FloatArray, n_clusters: int | IntArray) -> FloatArray:
    """Return the normal tail as far out as this tail of Student's t with n - 1 degrees of freedom.

    The noise of clusters is known from so many of them only.
    """
    return np.asarray(np.maximum(ndtr(stdtrit(n_clusters - 1, tail)), _LEAST))
