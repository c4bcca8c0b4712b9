"""How likely the best of several correlated improvements is by noise alone."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

from calibrant.arrays import FloatArray
from calibrant.randomness import Generator

_DRAWS = 100_000


def joint_tails(
    mean: FloatArray, error: FloatArray, covariance: FloatArray, n: int, rng: Generator
) -> FloatArray:
    """Return, for each mean, the chance that any of them is so many errors above 0 by noise.

    That is the tail of the greatest of as many Student's t's, with n - 1 degrees of freedom and
    the correlations of `covariance`, drawn 100 000 times; it lies between the tail of one t and
    the number of means times that, which counts where draws are too few. It is at least 2^-n,
    since so often n differences all have the same sign by chance; and 1 for a mean not above 0.
    """
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    freedom = max(n - 1, 1)
    single = stdtr(freedom, -t)
    greatest = np.sort(_greatest(covariance, freedom, rng))
    beyond = _DRAWS - np.searchsorted(greatest, t, side="left")
    chance = np.clip((1 + beyond) / (1 + _DRAWS), single, single * len(t))
    chance = np.clip(chance, 2.0 ** -min(n, 1000), 1.0)
    return np.where((mean > 0) & (n > 1), chance, 1.0)


def _greatest(covariance: FloatArray, freedom: int, rng: Generator) -> FloatArray:
    """Draw the greatest of several t's that are correlated like this."""
    size = np.sqrt(covariance.diagonal())
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    values, vectors = np.linalg.eigh(covariance * np.outer(scale, scale))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = rng.standard_normal((_DRAWS, len(size))) @ root.T
    return np.asarray(normal.max(axis=1) / np.sqrt(rng.chisquare(freedom, _DRAWS) / freedom))
