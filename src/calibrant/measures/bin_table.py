"""Counts, means and gaps, bin by bin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.binning import Binning, Side
from calibrant.measures.binned_error import BinCount, Strategy, read_binning
from calibrant.multiclass import one_problem
from calibrant.problem import Problem
from calibrant.results.tables import BinTable

__all__ = ["bin_table"]


def bin_table(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    closed: Side = "left",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> BinTable:
    """Return counts, mean prediction, mean outcome and gap, bin by bin.

    Parameters
    ----------
    y_true, y_prob, n_bins, strategy, closed
        As in :func:`calibrant.ece`.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        "confidence" or a class label; a table is about one binary problem.

    Returns
    -------
    BinTable
        Means and gap are nan where a bin is empty.

    Examples
    --------
    >>> bin_table([0, 1, 1], [0.25, 0.75, 1.0], n_bins=2)
                bin         n mean_pred mean_true      gap
            0 - 0.5         1    0.2500    0.0000  -0.2500
            0.5 - 1         2    0.8750    1.0000  +0.1250
    """
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return table_of(problem, read_binning(n_bins, strategy, closed))


def table_of(problem: Problem, binning: Binning) -> BinTable:
    """Return the table of one problem."""
    bins = binning.bins(problem)
    rows, weight, pred, true = problem.totals(bins, "rows", "weight", "pred", "true")
    with np.errstate(invalid="ignore"):
        mean_pred, mean_true = pred / weight, true / weight
    return BinTable(
        edges=bins.edges,
        n=rows.astype(np.int64),
        weight=weight,
        mean_pred=mean_pred,
        mean_true=mean_true,
        gap=mean_true - mean_pred,
    )
