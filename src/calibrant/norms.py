"""Norms: how many gaps become one number, over bins and over classes alike."""

from __future__ import annotations

from enum import Enum

import numpy as np

from calibrant.arrays import FloatArray


class Norm(Enum):
    """A weighted norm of gaps: mean, root mean square or maximum of their absolute values."""

    L1 = "l1"
    L2 = "l2"
    MAX = "max"

    def of(self, gaps: FloatArray, weights: FloatArray) -> float:
        """Return the norm of `gaps` under weights that sum to 1; the maximum ignores them."""
        if self is Norm.L1:
            return float(np.dot(weights, np.abs(gaps)))
        if self is Norm.L2:
            return float(np.sqrt(np.dot(weights, gaps * gaps)))
        return float(np.max(np.abs(gaps)))
