"""The logit and its inverse, at full precision and without warnings."""

from __future__ import annotations

import numpy as np

from calibrant.arrays import FloatArray


def logit(p: FloatArray) -> FloatArray:
    """Return log(p / (1 - p)), infinite at 0 and 1."""
    # 1 - p is rounded by half a unit in its last place at most, and from p = 1/2 on not at all.
    with np.errstate(divide="ignore"):
        return np.log(p / (1 - p))


def sigmoid(u: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-u)) without overflow."""
    small = np.exp(-np.abs(u))
    return np.asarray(np.where(u >= 0, 1.0, small) / (1 + small))
