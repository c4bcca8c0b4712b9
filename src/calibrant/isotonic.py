"""Isotonic regression of outcomes on scores."""

from __future__ import annotations

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.problem import Pooled


def isotonic_fit(pooled: Pooled) -> FloatArray:
    """Return the non-decreasing function of the score nearest to the outcomes, at each score."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(pooled.true / pooled.weight, weights=pooled.weight)
    return np.asarray(fit.x)
