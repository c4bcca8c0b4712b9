"""The bin table: counts, means and gaps of the bins of a reliability diagram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, IntArray, TabularResult
from calibrant.data.binning import Bins, Side
from calibrant.data.classes import one_problem, rows_or_sketch
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.formatting import TextTable
from calibrant.measures.binned import BinCount, Strategy, read_binning


@dataclass(frozen=True, eq=False, repr=False)
class BinTable(TabularResult):
    """Predictions and outcomes bin by bin.

    Attributes
    ----------
    edges
        The edges of the bins, one more than there are bins.
    n
        Rows in each bin.
    weight
        Total weight of each bin.
    mean_pred, mean_true
        Weighted means of prediction and outcome; nan where a bin is empty.
    gap
        mean_true - mean_pred: positive where predictions are too low; nan where a bin is empty.
    """

    edges: FloatArray
    n: IntArray
    weight: FloatArray
    mean_pred: FloatArray
    mean_true: FloatArray
    gap: FloatArray

    def _columns(self) -> dict[str, Any]:
        names = ("n", "weight", "mean_pred", "mean_true", "gap")
        columns = {"low": self.edges[:-1], "high": self.edges[1:]}
        return columns | {name: getattr(self, name) for name in names}

    def _printed(self) -> list[TextTable]:
        columns = self._columns()
        if np.array_equal(self.weight, self.n):
            del columns["weight"]
        ends = zip(columns.pop("low"), columns.pop("high"), strict=True)
        return [TextTable.of({"bin": [f"{low:.4g} - {high:.4g}" for low, high in ends], **columns})]


@rows_or_sketch
def bin_table(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    closed: Side = "left",
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> BinTable:
    """Return counts, mean prediction, mean outcome and gap, bin by bin.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or its rule: "sqrt" is floor(sqrt(n)), "sweep" the largest number for which
        mean outcomes do not decrease, "cv" that of the smallest leave-one-out squared error.
    strategy : {"uniform", "quantile"} or array_like
        Bins of equal width or nearly equal weight, or edges from 0 to 1, which fix `n_bins`.
    closed : {"left", "right"}
        Which edge belongs to a bin; 0 and 1 always belong to the outer bins.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    BinTable
        Means and gap are nan where a bin is empty.

    See Also
    --------
    ece : The error over these bins as one number.
    reliability_curve : Outcomes as a function of the score, with confidence bands.

    Examples
    --------
    >>> bin_table([0, 1, 1], [0.25, 0.75, 1.0], n_bins=2)
        bin n mean_pred mean_true     gap
    0 - 0.5 1    0.2500    0.0000 -0.2500
    0.5 - 1 2    0.8750    1.0000  0.1250
    """
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return table_of(problem, read_binning(n_bins, strategy, closed).bins(problem))


def table_of(problem: Problem, bins: Bins) -> BinTable:
    """Return the table of one problem."""
    rows, weight, pred, true = problem.totals(bins, "rows", "weight", "pred", "true")
    with np.errstate(invalid="ignore"):
        mean_pred, mean_true = pred / weight, true / weight
    means = mean_pred, mean_true, mean_true - mean_pred
    return BinTable(bins.edges, rows.astype(np.int64), weight, *means)
