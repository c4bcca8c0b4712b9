"""What calibrators are given: (y_prob, y_true), in scikit-learn's order of X and y."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant._base import AnyArray, FloatArray
from calibrant.data import validation
from calibrant.data.classes import ClassTable, read_table
from calibrant.data.problem import Problem
from calibrant.data.rows import Sample
from calibrant.data.sketch import Sketch
from calibrant.data.validation import as_array, is_real, one_column
from calibrant.errors import CalibrantError


def read_fit(
    y_prob: Any,
    y_true: Any,
    sample_weight: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Problem | ClassTable:
    """Read what a calibrator is fitted to: rows of one binary problem, of classes, or a sketch."""
    check_order(y_prob, y_true)
    if isinstance(y_prob, Sketch):
        return read_table(y_prob, y_true, sample_weight, None, labels, pos_label)
    _check_positive_column(y_prob, pos_label)
    return read_table(y_true, y_prob, sample_weight, None, labels, pos_label)


def read_rows(
    y_true: Any, y_prob: Any, labels: Sequence[Any] | None, pos_label: Any
) -> Sample | ClassTable:
    """Read rows that are to be divided into parts, all of them whatever their weight."""
    if isinstance(y_prob, Sketch) or isinstance(y_true, Sketch):
        raise CalibrantError(
            "a sketch cannot be divided into parts",
            hint="give the rows, or fit a calibrator to it",
        )
    _check_positive_column(y_prob, pos_label)
    table = read_table(y_true, y_prob, None, None, labels, pos_label)
    return table if isinstance(table, ClassTable) else table.rows


def read_column(y_prob: Any) -> FloatArray:
    """Read one column of probabilities, shape (n,) or (n, 1)."""
    p = as_array(y_prob, "y_prob")
    validation.check_not_empty(p, "y_prob")
    return _probabilities(one_column(p, "y_prob"))


def read_predictions(y_prob: Any, n_classes: int) -> FloatArray:
    """Read probabilities to map: one or two columns of two classes, else one column per class."""
    p = as_array(y_prob, "y_prob")
    validation.check_not_empty(p, "y_prob")
    if n_classes == 2 and (p.ndim == 1 or p.shape[1:] == (1,)):
        return _probabilities(one_column(p, "y_prob"))
    if p.ndim != 2 or p.shape[1] != n_classes:
        columns = "one column or two" if n_classes == 2 else f"{n_classes} columns"
        raise CalibrantError(
            "must have {columns}, as when fitted",
            argument="y_prob",
            value=p.shape if p.ndim > 2 else p.shape[1] if p.ndim == 2 else 1,
            columns=columns,
        )
    p = _probabilities(p)
    validation.check_row_sums(p)
    return p


def check_order(y_prob: Any, y_true: Any) -> None:
    """Recognise (y_true, y_prob), the order of measures, where (y_prob, y_true) is wanted."""
    if isinstance(y_prob, Sketch):
        return
    if isinstance(y_true, Sketch):
        raise CalibrantError(
            "must not be a sketch, which represents {y_prob}, too",
            argument="y_true",
            hint="give it alone, fit(sketch)",
        )
    if y_true is None:
        raise CalibrantError("is missing", argument="y_true", hint="fit takes ({y_prob}, {y_true})")
    p, y = as_array(y_prob, "y_prob"), as_array(y_true, "y_true")
    if p.ndim != 1 or p.shape != y.shape or len(p) == 0 or not (is_real(p) and is_real(y)):
        return
    try:
        validation.check_not_swapped(y, p)
    except CalibrantError as problem:
        raise CalibrantError(
            problem.rule,
            argument=problem.argument,
            hint="calibrators take scikit-learn's order, fit({y_prob}, {y_true})",
        ) from None


def _check_positive_column(y_prob: Any, pos_label: Any) -> None:
    """Refuse to take any but the second of two columns for the positive class."""
    shape = as_array(y_prob, "y_prob").shape
    if pos_label is not None and len(shape) == 2 and shape[1] == 2:
        raise CalibrantError(
            "must be left out with two columns of probabilities, of which the second is that of "
            "the positive class",
            argument="pos_label",
            hint="{labels} names both in order",
        )


def _probabilities(p: AnyArray) -> FloatArray:
    p = validation.as_numbers(p, "y_prob")
    validation.check_probabilities(p)
    return np.asarray(p, dtype=np.float64)
