"""Labels as numbers: outcomes with two labels, class labels, labels of groups and clusters."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import takewhile
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant._base import AnyArray
from calibrant.data import validation
from calibrant.data.problem import Index
from calibrant.data.validation import (
    as_array,
    column_labels,
    is_real,
    missing_values,
    one_column,
    read_weights,
)
from calibrant.errors import CalibrantError, shown

# Two words for an outcome, the positive one last, in any case.
_NATURAL_ORDER = (("no", "yes"), ("false", "true"), ("n", "y"))


def read_outcomes(y: AnyArray, pos_label: Any, labels: Sequence[Any] | None = None) -> AnyArray:
    """Return outcomes of one binary problem as real numbers in [0, 1].

    Two labels of any kind become 0 and 1 when `pos_label` names the positive one, or `labels` both
    of them, the positive one last. Words that anybody would order, such as no and yes, need
    neither.
    """
    if labels is not None:
        names = column_names(labels, 2)
        positive = names[1] if pos_label is None else pos_label
        return np.asarray(label_codes(y, labels, 2) == column_of(positive, labels, 2, "pos_label"))
    if pos_label is not None:
        return _is_positive(y, pos_label)
    if not is_real(y):
        if not _may_hold_numbers(y):
            present, inverse = _distinct(y)
            positive = natural_outcomes(present)
            if positive is None:
                raise validation.not_binary(sorted(present, key=str), y)
            return np.array(positive, dtype=bool)[inverse]
        y = validation.as_numbers(y, "y_true")
    validation.check_outcomes(y)
    return y


def natural_outcomes(labels: Iterable[Any]) -> list[bool] | None:
    """Return which labels are positive where anybody would know, such as no and yes; else None.

    Examples
    --------
    >>> natural_outcomes(["Yes", "No"])
    [True, False]
    """
    words = [label.lower() if isinstance(label, str) else None for label in labels]
    for negative, positive in _NATURAL_ORDER:
        if {*words} <= {negative, positive}:
            return [word == positive for word in words]
    return None


def label_codes(y: AnyArray, labels: Sequence[Any] | None, n_classes: int) -> Index:
    """Return the column of each row's label."""
    if labels is not None:
        return _codes_by_name(y, column_names(labels, n_classes))
    if y.dtype.kind == "b":
        raise CalibrantError(
            "must hold class labels for {n_classes} columns of probabilities",
            argument="y_true",
            found="True and False",
            hint="give the column of one class, or name the columns with {labels}",
            n_classes=n_classes,
        )
    if not is_real(y):
        if not _may_hold_numbers(y):
            raise unnamed_columns(y, n_classes)
        y = validation.as_numbers(y, "y_true")
    validation.check_finite(y, "y_true")
    wrong = (y != np.round(y)) | (y < 0) | (y >= n_classes)
    rule = "must hold class numbers from 0 to {last}"
    hint = "if the classes have other names, name the columns of {y_prob} with {labels}"
    validation.refuse(y, wrong, "y_true", rule, hint, last=n_classes - 1)
    return y.astype(np.intp)


def column_names(labels: Any, n_classes: int) -> list[Any]:
    """Return the names of the columns of y_prob, in order."""
    names = labels if isinstance(labels, range) else as_array(labels, "labels").tolist()
    # Of a single value numpy makes no list.
    flat = isinstance(names, list | range) and all(isinstance(name, Hashable) for name in names)
    if not flat or len(names) != n_classes or len(set(names)) != n_classes:
        raise CalibrantError(
            "must name the {n_classes} columns of {y_prob}, each once",
            argument="labels",
            value=names,
            n_classes=n_classes,
        )
    return list(names)


def column_of(
    label: Any, labels: Sequence[Any] | None, n_classes: int, name: str = "multiclass"
) -> int:
    """Return the column that a class label names; `name` is the argument it came as."""
    names = list(range(n_classes)) if labels is None else column_names(labels, n_classes)
    check_scalar(label, name)
    if label not in names:
        reduction = " or a reduction such as 'confidence'" if name == "multiclass" else ""
        raise CalibrantError(
            "must be a class label ({known}){reduction}",
            argument=name,
            value=label,
            known=listed(names),
            reduction=reduction,
        )
    return names.index(label)


def check_scalar(label: Any, name: str) -> None:
    """Refuse anything but one label."""
    if isinstance(label, np.ndarray) or not isinstance(label, Hashable) or is_missing(label):
        raise CalibrantError("must be one label", argument=name, value=label)


def labels_of_columns(
    names: Sequence[Any], y: AnyArray, labels: Sequence[Any] | None
) -> list[Any] | None:
    """Return the class of each column of a dataframe by its name, None where names are no classes.

    Classes are `labels`, if given, or else those that occur in `y`.
    """
    if labels is not None:
        known = column_names(labels, len(names))
        return list(names) if set(names) == set(known) else known
    if y.ndim != 1 or len(y) == 0:
        return None
    present = {_text(label): _whole(label) for label in _distinct(y)[0]}
    found = class_names([_text(name) for name in names], present)
    if not present.keys() <= set(found):
        return None
    is_whole = all(isinstance(label, int) for label in present.values())
    return [present.get(name, int(name) if is_whole and name.isdigit() else name) for name in found]


def class_names(names: Sequence[str], present: Collection[str]) -> list[str]:
    """Return the class that the name of each column means, as classes are called in `present`.

    These are the names without as much of their common prefix and suffix as gives the most of the
    classes, or else the numbers from 0.

    Examples
    --------
    >>> class_names(["p_cat", "p_cow"], {"cat", "cow"})
    ['cat', 'cow']
    """
    front, back = n_common(names), n_common([name[::-1] for name in names])
    candidates = [
        [name[start : len(name) - stop] for name in names]
        for start in range(front + 1)
        for stop in range(back + 1)
    ]
    candidates.append([str(i) for i in range(len(names))])
    return max(candidates, key=lambda each: len(set(present).intersection(each)))


def n_common(names: Sequence[str]) -> int:
    """Return the length of the common prefix of names."""
    return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False)))


def positive_of(labels: Sequence[Any]) -> Any:
    """Return the positive one of two labels: by their order, if there is one, or else the last."""
    natural = natural_outcomes(labels)
    if natural is None and set(labels) == {0, 1}:
        natural = [bool(label) for label in labels]
    return labels[1 if natural is None else natural.index(True)]


def check_two_labels(present: Sequence[Any], pos_label: Any) -> None:
    """Refuse more than one label beside the positive one."""
    if len(present) > 2:
        raise CalibrantError(
            "must have two labels where {pos_label} is given",
            argument="y_true",
            value=present,
            found="{n_labels} ({known})",
            hint=validation.ONE_COLUMN_PER_CLASS,
            n_labels=len(present),
            known=listed(present),
        )
    if len(present) == 2 and pos_label not in present:
        raise CalibrantError(
            "must be one of the labels in {y_true} ({known})",
            argument="pos_label",
            value=pos_label,
            known=listed(present),
        )


def unnamed_columns(y: AnyArray, n_classes: int) -> CalibrantError:
    """Return the error of class names where it is unknown which column has which."""
    return CalibrantError(
        "must hold class numbers, as the {n_classes} columns of {y_prob} have no names",
        argument="y_true",
        value=y.tolist()[0],
        position=0,
        hint="name the columns in order with {labels}",
        n_classes=n_classes,
    )


def is_missing(label: Any) -> bool:
    """Tell whether there is no label: None, nan, or what dataframes have instead."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, float | np.floating | np.datetime64) and bool(label != label)


def sorted_names(names: list[Any], argument: str) -> list[Any]:
    """Return names sorted, refusing those of several types, which have no order."""
    try:
        return sorted(names)
    except TypeError:
        kinds = sorted({type(name).__name__ for name in names})
        raise CalibrantError(
            "must hold labels of one type, which can be sorted",
            argument=argument,
            value=kinds,
            found="{kinds}",
            hint="convert them all to text",
            kinds=", ".join(kinds),
        ) from None


def listed(names: Sequence[Any]) -> str:
    """Return the first few labels as sentences list them."""
    return ", ".join(map(shown, names[:6])) + ", ..." * (len(names) > 6)


def _is_positive(y: AnyArray, pos_label: Any) -> AnyArray:
    check_scalar(pos_label, "pos_label")
    if is_real(y) and isinstance(pos_label, Number | np.bool_):
        # No need to sort numbers to see that there are only two.
        validation.check_finite(y, "y_true")
        positive = np.asarray(y == pos_label)
        rest = y[~positive]
        if len(rest) == 0 or rest.min() == rest.max():
            return positive
    present, inverse = _distinct(y)
    positive = np.array([label == pos_label for label in present], dtype=bool)
    check_two_labels(present, pos_label)
    return positive[inverse]


def _codes_by_name(y: AnyArray, names: list[Any]) -> Index:
    columns = {name: column for column, name in enumerate(names)}
    present, inverse = _distinct(y)
    known = np.array([columns.get(label, -1) for label in present], dtype=np.intp)
    codes = known[inverse]
    if known.min() < 0:
        rule = "must hold the class labels {known}"
        validation.refuse(y, codes < 0, "y_true", rule, known=listed(names))
    return codes


def _distinct(y: AnyArray) -> tuple[list[Any], Index]:
    """Return the outcomes that occur, and which of them each row has; none may be missing."""
    if is_real(y):
        validation.check_finite(y, "y_true")
    elif y.dtype.kind not in "US":
        missing = [is_missing(label) or not isinstance(label, Hashable) for label in y.tolist()]
        rule, hint = "must have a label in every row", "remove or fill such rows"
        validation.refuse(y, np.array(missing), "y_true", rule, hint)
        return factors(y.tolist())
    present, inverse = np.unique(y, return_inverse=True)
    return present.tolist(), inverse.reshape(len(y))


def factors(values: Iterable[Any]) -> tuple[list[Any], Index]:
    """Return the distinct values in order of appearance, and which of them each row has."""
    number: dict[Any, int] = {}
    codes = [number.setdefault(value, len(number)) for value in values]
    return list(number), np.array(codes, dtype=np.intp)


def objects(values: Sequence[Any]) -> AnyArray:
    """Return values as they are in an array: numpy would make text of 1 in [1, "a"]."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _may_hold_numbers(y: AnyArray) -> bool:
    """Tell whether there are objects and no text, which never is a number here, not even "0"."""
    return y.dtype.kind == "O" and not any(isinstance(value, str | bytes) for value in y)


def read_labels(
    given: Any, name: str, sample_weight: Any, n_rows: int, *, allow_missing: bool = True
) -> tuple[list[Any], Index]:
    """Read one label per row; return the distinct ones in order, and which of them each row has.

    A label may be a number, text, a truth value or a date; what is missing (None, nan, null) has
    the label None, the last. Whole numbers are whole however they are stored, so that a column of
    floats makes the same labels as one of integers, and as :func:`calibrant.sketch` makes with
    ``by``. Rows of weight 0 are left out: `n_rows` counts the others. Several columns, of a
    dataframe or a mapping, make a label together, a tuple.
    """
    columns = list(given) if isinstance(given, Mapping) else column_labels(given)
    if columns is not None and len(columns) > 1:
        return _crossed(
            read_labels(given[one], name, sample_weight, n_rows, allow_missing=allow_missing)
            for one in columns
        )
    if isinstance(given, Mapping) and columns:
        given = given[columns[0]]
    labels, missing = _labels(given, name)
    if missing.any() and not allow_missing:
        raise missing_values(name, missing)
    weight = read_weights(sample_weight, len(labels))
    if weight is not None:
        labels, missing = labels[weight > 0], missing[weight > 0]
    if len(labels) != n_rows:
        weighted = "" if weight is None else " with positive weight"
        raise CalibrantError(
            "must have one label per row",
            argument=name,
            value=len(labels),
            found="{value} labels for {n_rows} rows" + weighted,
            n_rows=n_rows,
        )
    return _codes(labels, missing, name)


def rows_by_code(code: Index, n: int) -> list[Index]:
    """Return the rows that have each of the codes 0 to n - 1."""
    order = np.argsort(code, kind="stable")
    return np.split(order, np.searchsorted(code[order], np.arange(1, n)))


def _crossed(parts: Iterable[tuple[list[Any], Index]]) -> tuple[list[Any], Index]:
    """Return the combinations of labels that occur, in order, and which of them each row has."""
    names, codes = zip(*parts, strict=True)
    present, code = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    labels = [tuple(one[k] for one, k in zip(names, row, strict=True)) for row in present.tolist()]
    return labels, code.reshape(-1)


def _labels(given: Any, name: str) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
    """Return labels, and where they are missing: columns of dataframes know that themselves."""
    import narwhals.stable.v2 as nw

    column = nw.from_native(given, series_only=True, pass_through=True)
    is_column = isinstance(column, nw.Series)
    if is_column or isinstance(given, list | tuple):
        labels = objects(column.to_list() if is_column else given)
    else:
        labels = one_column(as_array(given, name), name)
    missing = _are_missing(labels)
    return labels, missing | column.is_null().to_numpy() if is_column else missing


def _are_missing(labels: AnyArray) -> npt.NDArray[np.bool_]:
    if labels.dtype.kind == "O":
        return np.array([is_missing(label) for label in labels.tolist()], dtype=bool)
    return np.asarray(labels != labels)


def _codes(labels: AnyArray, missing: npt.NDArray[np.bool_], name: str) -> tuple[list[Any], Index]:
    """Return the distinct labels in order, and the number of each row's label."""
    known = labels[~missing]
    if known.dtype.kind == "O":
        for label in known.tolist():
            if not isinstance(label, Hashable):
                raise CalibrantError("must hold hashable labels", argument=name, value=label)
        present, inverse = factors(known.tolist())
    else:
        values, inverse = np.unique(known, return_inverse=True)
        present = values.tolist()
    present = [_whole(label) for label in present]
    names = sorted_names(present, name)
    order = {label: number for number, label in enumerate(names)}
    code = np.full(len(labels), len(names), dtype=np.intp)
    code[~missing] = np.array([order[label] for label in present], dtype=np.intp)[inverse]
    return [*names, None] if missing.any() else names, code


def _text(label: Any) -> str:
    return str(_whole(label))


def _whole(label: Any) -> Any:
    """Return a label as a Python value, whole numbers as integers."""
    label = label.item() if isinstance(label, np.generic) else label
    return int(label) if isinstance(label, float) and label.is_integer() else label
