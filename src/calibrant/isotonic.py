"""Isotonic regression of outcomes on scores."""

from __future__ import annotations

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.problem import Atoms


def isotonic_fit(atoms: Atoms) -> FloatArray:
    """Return the non-decreasing function of the score nearest to the outcomes, at each atom."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(atoms.true / atoms.weight, weights=atoms.weight)
    return np.asarray(fit.x)
