"""From class probabilities to binary problems: class, class-wise, confidence, top-label.

===========  ==========================================================================
reduction    the binary problem(s)
===========  ==========================================================================
class c      (P[:, c], 1{y = c})
classwise    every class c, combined with equal weights
confidence   (max_c P, 1{argmax = y})
top_label    confidence among the rows predicted as c, combined by predicted weight
===========  ==========================================================================

Ties in the argmax go to the first column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant._base import AnyArray
from calibrant.data import validation
from calibrant.data.arrays import as_array
from calibrant.data.classes import ClassTable, Reduction
from calibrant.data.labels import (
    check_column_order,
    check_scalar,
    column_of,
    label_codes,
    unnamed_columns,
)
from calibrant.data.problem import Problem
from calibrant.data.rows import Sample, read_sample
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_problem import problem_of
from calibrant.data.validation import one_column, read_weights
from calibrant.errors import CalibrantError


def reduce_classes(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Reduction:
    """Read the input of a measure and return the binary problems that it represents."""
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduce_table(table, multiclass, labels)


def reduce_table(
    table: Problem | ClassTable, multiclass: Any, labels: Sequence[Any] | None
) -> Reduction:
    """Return the binary problems that a table represents."""
    if not isinstance(table, ClassTable):
        return Reduction.of(table)
    if multiclass == "classwise":
        return table.classwise()
    if multiclass == "top_label":
        return table.top_label()
    if multiclass is None or multiclass == "confidence":
        return Reduction.of(table.confidence())
    return Reduction.of(table.one_class(column_of(multiclass, labels, table.n_classes)))


def one_problem(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Problem:
    """Read input that must be one binary problem; one that was read before is returned as it is."""
    if isinstance(y_true, Problem):
        return y_true
    check_is_one(multiclass)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return next(reduction.problems())


def check_is_one(multiclass: Any) -> None:
    """Refuse what represents several binary problems."""
    if isinstance(multiclass, str) and multiclass in ("classwise", "top_label"):
        raise CalibrantError(
            "must select one binary problem here",
            argument="multiclass",
            value=multiclass,
            hint="give 'confidence' or a class label",
        )


def read_table(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Problem | ClassTable:
    """Read a sketch, one column (or two complementary ones) as a sample, or a class table."""
    if isinstance(y_true, Sketch):
        given = (y_prob, sample_weight, multiclass, labels, pos_label)
        names = ("y_prob", "sample_weight", "multiclass", "labels", "pos_label")
        return _read_sketch(y_true, dict(zip(names, given, strict=True)))
    p = as_array(y_prob, "y_prob")
    if p is not y_prob:  # an array has no names for its columns
        check_column_order(y_prob, labels)
    if multiclass is not None:
        check_scalar(multiclass, "multiclass")
    if p.ndim == 2 and p.shape[1] == 2 and multiclass is None:
        return _read_two_columns(y_true, p, sample_weight, labels, pos_label)
    if p.ndim == 2 and p.shape[1] > 1:
        if pos_label is not None:
            raise CalibrantError(
                "is for binary problems",
                argument="pos_label",
                value=pos_label,
                found="{value} and {n_classes} classes",
                hint="{multiclass} selects one class",
                n_classes=p.shape[1],
            )
        return read_classes(y_true, p, sample_weight, labels)
    if multiclass is not None:
        raise CalibrantError(
            "needs one column of probabilities per class",
            argument="multiclass",
            value=multiclass,
            found="{value} and {columns}",
            hint="give {y_prob} of shape (n, classes)",
            columns="one column" if p.ndim < 3 else f"{p.ndim} axes",
        )
    return read_sample(y_true, p, sample_weight=sample_weight, pos_label=pos_label, labels=labels)


def _read_sketch(sketch: Sketch, given: Mapping[str, Any]) -> Problem:
    """Read a sketch, which is one binary problem with all there is to say about it."""
    for name, value in given.items():
        if value is not None:
            raise CalibrantError(
                "must be left out: a sketch represents all rows and weights", argument=name
            )
    return problem_of(sketch)


def _read_two_columns(
    y_true: Any, p: AnyArray, sample_weight: Any, labels: Sequence[Any] | None, pos_label: Any
) -> Sample:
    """Read the probabilities of both outcomes, the positive one in the second column."""
    p, y = _checked_matrix(p), as_array(y_true, "y_true")
    positive = 1
    if pos_label is not None:
        positive = _positive_column(pos_label, labels)
    elif labels is None and y.dtype.kind not in "buif" and y.ndim == 1:
        raise unnamed_columns(y, 2)
    if y.ndim == 2 and y.shape[1] == 2:
        y, pos_label, labels = y[:, positive], None, None
    return read_sample(
        y, p[:, positive], sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )


def _positive_column(pos_label: Any, labels: Sequence[Any] | None) -> int:
    if labels is None and pos_label not in (0, 1):
        raise CalibrantError(
            "must be 0 or 1, as the two columns of {y_prob} have no names",
            argument="pos_label",
            value=pos_label,
            hint="name the columns in order with {labels}",
        )
    return column_of(pos_label, labels, 2, "pos_label")


def read_classes(
    y_true: Any, y_prob: Any, sample_weight: Any, labels: Sequence[Any] | None
) -> ClassTable:
    """Read one column per class as a class table."""
    p = as_array(y_prob, "y_prob")
    check_column_order(y_prob, labels)
    if p.ndim != 2 or p.shape[1] < 2:
        raise CalibrantError(
            "must have one column per class",
            argument="y_prob",
            value=p.shape,
            found="shape {value}",
        )
    p = _checked_matrix(p)
    y = as_array(y_true, "y_true")
    validation.check_not_empty(y, "y_true")
    validation.check_same_length(y, "y_true", p, "y_prob")
    if y.ndim == 2 and y.shape[1] > 1:
        outcome = _checked_soft(y, p.shape[1])
    else:
        outcome = label_codes(one_column(y, "y_true"), labels, p.shape[1])
    w = read_weights(sample_weight, len(p))
    if w is not None and w.min() == 0:
        kept = np.flatnonzero(w)
        p, outcome, w = p[kept], outcome[kept], w[kept]
    return ClassTable(p, outcome, w)


def _checked_matrix(p: AnyArray) -> AnyArray:
    validation.check_not_empty(p, "y_prob")
    p = validation.as_numbers(p, "y_prob")
    validation.check_probabilities(p)
    validation.check_row_sums(p)
    return p


def _checked_soft(y: AnyArray, n_classes: int) -> AnyArray:
    if y.shape[1] != n_classes:
        raise CalibrantError(
            "must have one column per column of {y_prob}",
            argument="y_true",
            value=y.shape[1],
            found="{value} and {n_classes}",
            n_classes=n_classes,
        )
    y = validation.as_numbers(y, "y_true")
    validation.check_probabilities(y, "y_true")
    validation.check_row_sums(y, "y_true")
    return y
