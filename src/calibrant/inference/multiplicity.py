"""P-values of several questions asked at once, adjusted for their number.

An adjusted P-value of at most a is what counts as a finding at level a:

===================  =====================================================================
holm                 at most a chance a of any false finding, however the questions depend
benjamini_hochberg   at most a share a of findings false on average, for independent questions
===================  =====================================================================

A P-value of nan stands for a question that was not asked: it stays nan, and the others are adjusted
for their own number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Return Holm's step-down adjustment: the i-th smallest of m counts m - i + 1 times."""
    p, order = _in_order(p_values)
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1))
    return _put_back(p, order, adjusted)


def benjamini_hochberg(p_values: npt.ArrayLike) -> FloatArray:
    """Return Benjamini and Hochberg's step-up adjustment: the i-th smallest of m counts m / i."""
    p, order = _in_order(p_values)
    m = len(order)
    adjusted = np.minimum.accumulate((p[order] * m / np.arange(1, m + 1))[::-1])[::-1]
    return _put_back(p, order, adjusted)


def _in_order(p_values: npt.ArrayLike) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Return the P-values, and where they are from the smallest to the largest."""
    p = np.asarray(p_values, dtype=np.float64)
    (asked,) = np.nonzero(~np.isnan(p))
    return p, asked[np.argsort(p[asked], kind="stable")]


def _put_back(p: FloatArray, order: npt.NDArray[np.intp], adjusted: FloatArray) -> FloatArray:
    result = p.copy()
    result[order] = np.minimum(adjusted, 1.0)
    return result
