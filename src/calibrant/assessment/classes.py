"""Class-wise rows of an assessment: each class against the rest, without intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.binning import UniformBins
from calibrant.class_table import ClassTable
from calibrant.measures.binned_error import BinnedError
from calibrant.measures.smooth_error import SmoothError
from calibrant.results.result import Result

__all__ = ["ClassRow"]


@dataclass(frozen=True)
class ClassRow(Result):
    """One class against the rest.

    Attributes
    ----------
    label
        The class.
    prevalence, mean_prediction
        How often it occurs and how often it is predicted to.
    smooth_ece, ece
        Calibration errors of its probability.
    """

    label: Any
    prevalence: float
    mean_prediction: float
    smooth_ece: float
    ece: float


def class_rows(
    table: ClassTable, labels: Sequence[Any] | None, binned: BinnedError
) -> Iterator[ClassRow]:
    """Yield a row for every class, in the order of the columns."""
    smooth, everything = SmoothError(), UniformBins.of(1)
    names = range(table.n_classes) if labels is None else labels
    for label, problem in zip(names, table.classwise().problems(), strict=True):
        weight, pred, true = problem.totals(everything, "weight", "pred", "true")[:, 0].tolist()
        yield ClassRow(label, true / weight, pred / weight, smooth(problem), binned(problem))
