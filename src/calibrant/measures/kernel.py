"""The squared kernel calibration error: a mean over pairs of rows, unbiased and quick to compare.

Noise adds nothing to it on average, and a mean over pairs has a standard error by the jackknife, so
that the difference of two models has a plain interval. It is not a distance: it has no unit that a
person could act on, and may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.classes import of_rows, reduce_classes
from calibrant.data.problem import Index, Problem
from calibrant.errors import CalibrantError
from calibrant.measures.registry import Measure, MeasureInfo

_MIN_BANDWIDTH = 1e-3
# Beyond so many bandwidths an exponential would lose digits in running sums.
_SPAN = 16.0
# Of the squared sum of weights, what the pairs of different rows must have not to be mere rounding.
_MIN_PAIRS = 1e-9


@dataclass(frozen=True)
class SquaredKernelError(Measure):
    """The mean of r_i r_j exp(-abs(p_i - p_j) / bandwidth) over pairs of different rows."""

    bandwidth: float = 0.1

    def __call__(self, problem: Problem) -> float:
        _, _, w = problem.rows.columns()
        if problem.n < 2:
            raise CalibrantError(
                "must hold at least two rows for pairs", argument="y_true", value=1
            )
        all_pairs = float(w.sum()) ** 2
        pairs = all_pairs - float(w @ w)
        if pairs < _MIN_PAIRS * all_pairs:
            raise CalibrantError(
                "must not be all but in one row, for pairs",
                argument="sample_weight",
                value=float(w.max()),
            )
        return float(self.row_sums(problem, np.arange(problem.n)).sum() / pairs)

    def row_sums(self, problem: Problem, cluster: Index) -> FloatArray:
        """Return, for each row, its sum of w_i w_j r_i r_j k over the rows of other clusters."""
        p, y, w = problem.rows.columns()
        residual = w * (y - p)
        sums = _kernel_sums(p, residual, self.bandwidth)
        if cluster.max() + 1 == len(p):
            return np.asarray(residual * (sums - residual))
        # Clusters side by side, so far from each other that nothing is left of the kernel.
        apart = p + cluster * (1 + 40 * self.bandwidth)
        return np.asarray(residual * (sums - _kernel_sums(apart, residual, self.bandwidth)))


def _kernel_sums(x: FloatArray, v: FloatArray, bandwidth: float) -> FloatArray:
    """Return the sums over j of v_j exp(-abs(x_i - x_j) / bandwidth), in time of a sort."""
    order = np.argsort(x, kind="stable")
    place, amount = x[order] / bandwidth, v[order]
    below = _decaying_sums(place, amount)
    above = _decaying_sums(-place[::-1], amount[::-1])[::-1]
    sums = np.empty_like(below)
    sums[order] = below + above - amount
    return sums


def _decaying_sums(place: FloatArray, amount: FloatArray) -> FloatArray:
    """Return the sums over j <= i of amount_j exp(place_j - place_i), for ascending places."""
    sums, carried, before = np.empty_like(amount), 0.0, float(place[0])
    start = 0
    while start < len(place):
        end = int(np.searchsorted(place, place[start] + _SPAN, side="right"))
        own = place[start:end] - place[start]
        carried *= np.exp(before - place[start])
        sums[start:end] = (np.cumsum(amount[start:end] * np.exp(own)) + carried) * np.exp(-own)
        carried, before, start = float(sums[end - 1]), float(place[end - 1]), end
    return sums


def _make(bandwidth: float = 0.1) -> SquaredKernelError:
    bandwidth = validation.as_bandwidth(bandwidth)
    validation.check_minimum(bandwidth, "bandwidth", _MIN_BANDWIDTH)
    return SquaredKernelError(bandwidth)


@of_rows
def skce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    bandwidth: float = 0.1,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the unbiased squared kernel calibration error; 0 on average if calibrated.

    The mean of r_i r_j exp(-abs(p_i - p_j) / bandwidth) over all pairs of different rows, with
    r = y - p and weights w_i w_j.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    bandwidth : float
        The distance of scores over which residuals count together, at least 0.001.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error, which is negative in about half of all calibrated samples.

    See Also
    --------
    compare : Its differences between models have more power than those of other errors.
    laplace_kernel_error : The root of the mean over all pairs, rows with themselves included.

    Notes
    -----
    O(n log n). The population value is 0 only under perfect calibration, since the kernel is
    characteristic. A shift of all predictions by d gives nearly d^2 at wide bandwidths.

    References
    ----------
    Widmann, Lindsten and Zachariah, "Calibration tests in multi-class classification" (2019).

    Examples
    --------
    >>> skce([1, 1, 0], [0.5, 0.5, 0.5])
    -0.0833
    """
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(_make(bandwidth))


MEASURES = (
    MeasureInfo(
        skce,
        label="SKCE",
        title="Squared kernel calibration error (SKCE)",
        meaning="Mean product of the residuals of pairs of rows with similar scores; unbiased.",
        definition="Σ over i ≠ j of w w r r exp(−|p − p′| / bandwidth) / Σ over i ≠ j of w w.",
        make=_make,
        row_sums=SquaredKernelError.row_sums,
    ),
)
