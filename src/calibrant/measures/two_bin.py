"""The averaged two-bin error (ATB): a calibration error that cannot be gamed on a finite sample.

The deviation C(q) of :func:`averaged_two_bin_error` is constant between two scores: the integral is
a sum of squares in which nothing cancels. Its root is the L2 norm of a linear function of the
residuals, which gives it intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import UniformBins
from calibrant.data.classes import reduce_classes, rows_or_sketch
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError, SketchError
from calibrant.measures.cumulative import bounds_in_cells, moves_in_cells
from calibrant.measures.norms import L2Norm, LinearImage
from calibrant.measures.registry import Measure, MeasureInfo

# Cells for the noise: the kernel 1 - abs(p - q) changes by less than 1/256 within a pair of them.
_NOISE_CELLS = 512
# What rounding may add to the sums of a sketch.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class TwoBinError(Measure):
    """The sum of squared deviations of two bins, averaged over the cut between them."""

    unbiased: bool = False

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        score, residual = problem.pooled.score, problem.pooled.residual / problem.weight
        below = np.cumsum(residual)
        total = below[-1]
        two_bins = below[:-1] ** 2 + (total - below[:-1]) ** 2
        # Cuts below the lowest score or above the highest leave all rows in one bin.
        value = float(total**2 * (1 - np.ptp(score)) + np.diff(score) @ two_bins)
        return self._without_own_pairs(value, problem) if self.unbiased else value

    def _without_own_pairs(self, value: float, problem: Problem) -> float:
        """Return the mean over pairs of different rows, given that over all pairs."""
        if problem.n < 2:
            raise CalibrantError(
                "needs at least two rows that carry weight",
                argument="unbiased",
                value=True,
                found="one",
            )
        squares = float(problem.pooled.weight_squared.sum())
        whole = problem.weight**2
        return (whole * value - _squared_residuals(problem)) / (whole - squares)

    def sketch_error(self, problem: Problem, value: float) -> float:
        """Bound the distance from the error of the rows themselves.

        Within each cell of a sketch C has bounds, wherever in it the rows are.
        """
        rise, fall = moves_in_cells(problem)
        total = float((rise - fall).sum())
        low, high = bounds_in_cells(rise, fall)

        def squares(below: FloatArray) -> FloatArray:
            return np.asarray(below**2 + (total - below) ** 2)

        most = np.maximum(squares(low), squares(high))
        least = squares(np.clip(total / 2, low, high))
        error = float((most - least).sum()) * problem.cell_width + _ROUNDING
        if not self.unbiased:
            return error
        return error / (1 - float(problem.pooled.weight_squared.sum()) / problem.weight**2)

    @property
    def no_interval(self) -> str:
        """Why there is no confidence interval."""
        return "with unbiased=True: leave it out, as the target is the same" * self.unbiased

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return C and C(1) - C between uniform cells; the error is their mean sum of squares."""

        def of_totals(r: FloatArray, w: FloatArray) -> FloatArray:
            scaled = r / (w.sum(axis=-1, keepdims=True) * np.sqrt(_NOISE_CELLS))
            below = np.cumsum(scaled, axis=-1)
            return np.concatenate((below, below[..., -1:] - below), axis=-1)

        cells = UniformBins.of(_NOISE_CELLS)
        return LinearImage(L2Norm(), cells.index, _NOISE_CELLS, of_totals, power=2)


def _squared_residuals(problem: Problem) -> float:
    """Return the sum of w^2 (y - p)^2."""
    if not problem.is_weighted:
        return problem.squared_error()
    if not problem.is_exact:
        raise SketchError(
            "must be False for a sketch of weighted rows, which does not know sums of squares",
            argument="unbiased",
            value=True,
            hint="give the rows",
        )
    p, y, w = problem.rows.columns()
    return float(np.sum((w * (y - p)) ** 2))


def read_two_bin_error(*, unbiased: bool = False) -> TwoBinError:
    """Parse the options of a call."""
    return TwoBinError(validation.as_flag(unbiased, "unbiased"))


@rows_or_sketch
def averaged_two_bin_error(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    unbiased: bool = False,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the squared deviations of two bins, averaged over where they meet; 0 is perfect.

    ATB = integral over q in [0, 1] of C(q)^2 + (C(1) - C(q))^2, with C(q) = (1/W) sum of
    w_i (y_i - p_i) over rows with p_i < q. It equals (1/W^2) sum_ij w_i w_j r_i r_j
    (1 - abs(p_i - p_j)), r = y - p. Reporting the true probabilities minimises its mean, whatever
    the number of rows: it cannot be gamed.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    unbiased : bool
        Leave out the pairs of a row with itself: (W^2 ATB - sum w_i^2 r_i^2) / (W^2 - sum w_i^2).
        Its mean is the error of the population, 0 under perfect calibration; it may be negative,
        and it can be gamed.
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
        The error, between m^2 / 2 and 1 where m is the mean of r: a square, whose root compares
        with other errors.

    See Also
    --------
    ecce_r : The largest deviation between two cuts.
    laplace_kernel_error : The same double sum with another kernel, and its root.

    Notes
    -----
    Truthful: where outcomes are independent with probabilities q, the mean of the error is

        (1/W^2) sum_ij w_i w_j (q_i - p_i) (q_j - p_j) (1 - abs(p_i - p_j))
        + (1/W^2) sum_i w_i^2 q_i (1 - q_i),

    a square that is 0 for p = q, and a term without p. For p = q the second term is all: the exact
    mean under perfect calibration. One sort, O(n log n). From a sketch of N cells it is known to
    about max abs(C) / N; :func:`calibrant.error_bound` has the bound.

    References
    ----------
    Hartline, Hu and Wu, "A perfectly truthful calibration measure" (2026).

    Examples
    --------
    >>> averaged_two_bin_error([0, 1], [0.25, 0.75])
    0.015625
    >>> averaged_two_bin_error([0, 1], [0.25, 0.75], unbiased=True)
    -0.03125
    """
    error = read_two_bin_error(unbiased=unbiased)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    # A mean of squares over classes; unbiased ones may be negative.
    return float(reduction.weights @ [error(problem) for problem in reduction.problems()])


MEASURES = (
    MeasureInfo(
        averaged_two_bin_error,
        label="ATB",
        title="Averaged two-bin error (ATB)",
        meaning="Squared deviation of two bins, averaged over where they meet: cannot be gamed on "
        "a finite sample.",
        definition="∫ C(q)² + (C(1) − C(q))² dq, with C(q) the sum of w (y − p) / W over p < q.",
        make=read_two_bin_error,
        sketch="probability",
        in_assess=True,
        order=6,
    ),
)
