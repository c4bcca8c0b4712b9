"""Class labels and the columns of y_prob that they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.arrays import AnyArray, as_array
from calibrant.errors import CalibrantError
from calibrant.problem import Index


def label_codes(y: AnyArray, labels: Sequence[Any] | None, n_classes: int) -> Index:
    """Return the column of each row's label."""
    if labels is not None:
        return _codes_by_name(y, column_names(labels, n_classes))
    if y.dtype.kind not in "buif":
        raise CalibrantError(
            f"y_true has labels such as {y[0]!r}: name the {n_classes} columns of y_prob in order "
            "with labels="
        )
    codes = y.astype(np.intp)
    wrong = (codes != y) | (codes < 0) | (codes >= n_classes)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise CalibrantError(
            f"y_true must hold class numbers 0 to {n_classes - 1}; got {y[row].item()!r} at index "
            f"{row}: name the columns of y_prob with labels= if classes are called otherwise"
        )
    return codes


def _codes_by_name(y: AnyArray, names: list[Any]) -> Index:
    columns = {name: column for column, name in enumerate(names)}
    present, inverse = np.unique(y, return_inverse=True)
    known = np.array([columns.get(label, -1) for label in present.tolist()], dtype=np.intp)
    codes = known[inverse.reshape(len(y))]
    if known.min() < 0:
        row = int(np.argmax(codes < 0))
        raise CalibrantError(
            f"y_true must hold the given labels; got {y.tolist()[row]!r} at index {row}, "
            f"which is not among the {len(names)} labels"
        )
    return codes


def column_names(labels: Sequence[Any], n_classes: int) -> list[Any]:
    """Return the names of the columns of y_prob, in order."""
    names = as_array(labels, "labels").tolist()
    if len(names) != n_classes or len(set(names)) != n_classes:
        raise CalibrantError(
            f"labels must name the {n_classes} columns of y_prob, each once; got {names!r:.80}"
        )
    return list(names)


def column_of(label: Any, labels: Sequence[Any] | None, n_classes: int) -> int:
    """Return the column that a class label names."""
    names = list(range(n_classes)) if labels is None else column_names(labels, n_classes)
    if label not in names:
        raise CalibrantError(
            "multiclass must be 'confidence', 'classwise', 'top_label' or a class label; "
            f"got {label!r}, which names no column"
        )
    return names.index(label)
