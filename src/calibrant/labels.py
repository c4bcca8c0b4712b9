"""Outcomes and class labels as people write them, as numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from calibrant import checks
from calibrant.arrays import AnyArray, as_array, column_labels, is_real
from calibrant.errors import CalibrantError, shown
from calibrant.problem import Index


def read_outcomes(y: AnyArray, pos_label: Any, labels: Sequence[Any] | None = None) -> AnyArray:
    """Return outcomes of one binary problem as real numbers in [0, 1].

    Two labels of any kind become 0 and 1 when `pos_label` names the positive one, or `labels` both
    of them, the positive one last.
    """
    if labels is not None:
        names = column_names(labels, 2)
        positive = names[1] if pos_label is None else pos_label
        return np.asarray(label_codes(y, labels, 2) == column_of(positive, labels, 2, "pos_label"))
    if pos_label is not None:
        return _is_positive(y, pos_label)
    if not is_real(y):
        y = _numbers_in_disguise(y)
    checks.check_outcomes(y)
    return y


def label_codes(y: AnyArray, labels: Sequence[Any] | None, n_classes: int) -> Index:
    """Return the column of each row's label."""
    if labels is not None:
        return _codes_by_name(y, column_names(labels, n_classes))
    if y.dtype.kind == "b":
        raise CalibrantError(
            f"y_true must hold class labels for {n_classes} columns of y_prob; got true and false: "
            "give the column that they speak of, or the labels"
        )
    if not is_real(y):
        y = _class_numbers(y, n_classes)
    checks.check_finite(y, "y_true")
    wrong = (y != np.round(y)) | (y < 0) | (y >= n_classes)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise CalibrantError(
            f"y_true must hold class numbers 0 to {n_classes - 1}; got {y[row].item()!r} at index "
            f"{row}: name the columns of y_prob with labels= if classes are called otherwise"
        )
    return y.astype(np.intp)


def column_names(labels: Any, n_classes: int) -> list[Any]:
    """Return the names of the columns of y_prob, in order."""
    names = labels if isinstance(labels, range) else as_array(labels, "labels").tolist()
    # Of a single value numpy makes no list.
    flat = isinstance(names, list | range) and all(isinstance(name, Hashable) for name in names)
    if not flat or len(names) != n_classes or len(set(names)) != n_classes:
        raise CalibrantError(
            f"labels must name the {n_classes} columns of y_prob, each once; got {shown(names)}"
        )
    return list(names)


def column_of(
    label: Any, labels: Sequence[Any] | None, n_classes: int, name: str = "multiclass"
) -> int:
    """Return the column that a class label names; `name` is the argument it came as."""
    names = list(range(n_classes)) if labels is None else column_names(labels, n_classes)
    check_scalar(label, name)
    if label not in names:
        words = "'confidence', 'classwise', 'top_label' or " if name == "multiclass" else ""
        known = ", ".join(repr(one) for one in names[:6]) + (", ..." if n_classes > 6 else "")
        raise CalibrantError(f"{name} must be {words}a class label ({known}); got {shown(label)}")
    return names.index(label)


def check_scalar(label: Any, name: str) -> None:
    """Refuse anything but one label."""
    if isinstance(label, np.ndarray) or not isinstance(label, Hashable) or is_missing(label):
        raise CalibrantError(f"{name} must be one label; got {shown(label)}")


def check_column_order(y_prob: Any, labels: Sequence[Any] | None) -> None:
    """Refuse a dataframe whose columns are named after the classes in another order."""
    names = column_labels(y_prob)
    if names is None:
        return
    expected = list(range(len(names))) if labels is None else column_names(labels, len(names))
    if names != expected and set(names) == set(expected):
        raise CalibrantError(
            f"y_prob must have its columns in the order of the classes, {expected!r:.60}; got "
            f"{names!r:.60}: reorder them"
        )


def _is_positive(y: AnyArray, pos_label: Any) -> AnyArray:
    check_scalar(pos_label, "pos_label")
    if is_real(y) and isinstance(pos_label, Number | np.bool_):
        # No need to sort numbers to see that there are only two.
        checks.check_finite(y, "y_true")
        positive = np.asarray(y == pos_label)
        rest = y[~positive]
        if len(rest) == 0 or rest.min() == rest.max():
            return positive
    present, inverse = _distinct(y)
    positive = np.array([label == pos_label for label in present], dtype=bool)
    check_two_labels(present, pos_label)
    return positive[inverse]


def check_two_labels(present: Sequence[Any], pos_label: Any) -> None:
    """Refuse more than one label beside the positive one."""
    others = [label for label in present if label != pos_label]
    if len(others) > 1:
        listed = ", ".join(repr(label) for label in others[:4])
        hint = ": give y_prob one column a class with labels" if len(present) > 2 else ""
        raise CalibrantError(
            f"y_true must have two labels, one of them pos_label={shown(pos_label)}; "
            f"the others are {listed}{', ...' if len(others) > 4 else ''}{hint}"
        )


def _codes_by_name(y: AnyArray, names: list[Any]) -> Index:
    columns = {name: column for column, name in enumerate(names)}
    present, inverse = _distinct(y)
    known = np.array([columns.get(label, -1) for label in present], dtype=np.intp)
    codes = known[inverse]
    if known.min() < 0:
        row = int(np.argmax(codes < 0))
        raise CalibrantError(
            f"y_true must hold the given labels; got {present[inverse[row]]!r} at index {row}, "
            f"which is not among {names!r:.60}"
        )
    return codes


def _distinct(y: AnyArray) -> tuple[list[Any], Index]:
    """Return the labels that occur, as Python values, and which of them each row has."""
    if is_real(y):
        checks.check_finite(y, "y_true")
    if is_real(y) or y.dtype.kind in "US":
        present, inverse = np.unique(y, return_inverse=True)
        return present.tolist(), inverse.reshape(len(y))
    # Objects of mixed types cannot be sorted, but they can be looked up.
    found: dict[Any, int] = {}
    inverse = np.empty(len(y), dtype=np.intp)
    for row, label in enumerate(y.tolist()):
        if is_missing(label) or not isinstance(label, Hashable):
            raise CalibrantError(
                f"y_true must have a label in every row; got {label!r:.40} at index {row}: "
                "remove or fill such rows"
            )
        inverse[row] = found.setdefault(label, len(found))
    return list(found), inverse


def _numbers_in_disguise(y: AnyArray) -> AnyArray:
    """Return objects that are numbers or booleans; ask what labels mean."""
    # Text never is a number here, not even "0" and "1".
    if y.dtype.kind == "O" and not any(isinstance(value, str | bytes) for value in y):
        return checks.as_numbers(y, "y_true")
    present, _ = _distinct(y)
    if len(present) == 2:
        raise CalibrantError(checks.two_labels_sentence(sorted(present, key=str), "y_true"))
    if len(present) == 1:
        raise CalibrantError(
            f"y_true must be 0 or 1 (or soft, in [0, 1]); every row is {present[0]!r}: "
            "name the positive label with pos_label"
        )
    raise CalibrantError(
        "y_true must be 0 or 1 (or soft, in [0, 1]) for one column of probabilities; it has "
        f"{len(present)} labels such as {present[0]!r}: give y_prob one column a class with labels"
    )


def _class_numbers(y: AnyArray, n_classes: int) -> AnyArray:
    if y.dtype.kind == "O" and not any(isinstance(value, str | bytes) for value in y):
        return checks.as_numbers(y, "y_true")
    raise CalibrantError(
        f"y_true has labels such as {y.tolist()[0]!r}: name the {n_classes} columns of y_prob in "
        "order with labels="
    )


def is_missing(label: Any) -> bool:
    """Tell whether there is no label: None, nan, or what dataframes have instead."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, float | np.floating | np.datetime64) and bool(label != label)


def sorted_names(names: list[Any], argument: str) -> list[Any]:
    """Return names sorted, refusing those of several kinds, which have no order."""
    try:
        return sorted(names)
    except TypeError:
        kinds = sorted({type(name).__name__ for name in names})
        raise CalibrantError(
            f"{argument} must hold labels of one kind, which have an order; got "
            f"{', '.join(kinds)}: make them all text, say"
        ) from None
