"""Rows from outside: checked, and made a sample of; labels of groups and clusters.

Long plain columns are not read twice: compiled passes check rows while they add them up, and
whatever else asks for the rows has them checked first (:attr:`Sample.rows`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant import checks
from calibrant.arrays import AnyArray, as_array, missing_values
from calibrant.errors import CalibrantError
from calibrant.labels import is_missing, read_outcomes, sorted_names
from calibrant.numerics import passes
from calibrant.problem import Index
from calibrant.sample import Sample


def read_sample(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
) -> Sample:
    """Check one-dimensional input and make a sample of it; zero-weight rows are left out."""
    y, p = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
    for array, name in ((y, "y_true"), (p, "y_prob")):
        checks.check_not_empty(array, name)
    y, p = one_column(y, "y_true"), one_column(p, "y_prob")
    checks.check_same_length(y, "y_true", p, "y_prob")
    is_plain = sample_weight is pos_label is labels is None and passes.is_worth_while(p, y)
    if is_plain and not checks.may_be_swapped(y, p):
        return Sample(y, p, is_validated=False)
    p = checks.as_numbers(p, "y_prob")
    checks.check_probabilities(p)
    y = read_outcomes(y, pos_label, labels)
    checks.check_not_swapped(y, p)
    return Sample(y, p).weighted(read_weights(sample_weight, len(p)))


def read_weights(sample_weight: Any, n: int) -> AnyArray | None:
    """Return checked weights, or None where every row counts once."""
    if sample_weight is None:
        return None
    w = one_column(as_array(sample_weight, "sample_weight"), "sample_weight")
    w = checks.as_numbers(w, "sample_weight")
    checks.check_weights(w, n)
    return w


def one_column(array: AnyArray, name: str) -> AnyArray:
    """Return shape (n,) or (n, 1) as (n,)."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    checks.check_one_axis(array, name)
    return array


def read_labels(
    given: Any, name: str, sample_weight: Any, n_rows: int, *, allow_missing: bool = True
) -> tuple[list[Any], Index]:
    """Read one label per row; return the distinct ones in order, and which of them each row has.

    A label may be a number, text, a truth value or a date; what is missing (None, nan, null) has
    the label None, the last. Whole numbers are whole however they are stored, so that a column of
    floats makes the same labels as one of integers, and as :func:`calibrant.sketch` makes with
    ``by``. Rows of weight 0 are left out: `n_rows` counts the others.
    """
    labels, missing = _labels(given, name)
    if missing.any() and not allow_missing:
        raise missing_values(name, missing)
    weight = read_weights(sample_weight, len(labels))
    if weight is not None:
        labels, missing = labels[weight > 0], missing[weight > 0]
    if len(labels) != n_rows:
        raise CalibrantError(
            "must have one label per row",
            argument=name,
            value=len(labels),
            found="{value} labels for {n_rows} rows with positive weight",
            n_rows=n_rows,
        )
    return _codes(labels, missing, name)


def _labels(given: Any, name: str) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
    """Return labels, and where they are missing: columns of dataframes know that themselves."""
    import narwhals.stable.v1 as nw

    column = nw.from_native(given, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        missing = column.is_null().to_numpy()
        labels = np.empty(len(missing), dtype=object)
        labels[:] = column.to_list()
        return labels, missing | _are_missing(labels)
    if isinstance(given, list | tuple):
        # As they are: numpy would make text of 1 in [1, "a"].
        labels = np.empty(len(given), dtype=object)
        labels[:] = list(given)
    else:
        labels = one_column(as_array(given, name), name)
    return labels, _are_missing(labels)


def _are_missing(labels: AnyArray) -> npt.NDArray[np.bool_]:
    if labels.dtype.kind in "fcmM":
        return np.asarray(labels != labels)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.array([is_missing(label) for label in labels.tolist()], dtype=bool)


def _codes(labels: AnyArray, missing: npt.NDArray[np.bool_], name: str) -> tuple[list[Any], Index]:
    """Return the distinct labels, and the number of each row's label."""
    found: dict[Any, int] = {}
    code = np.empty(len(labels), dtype=np.intp)
    (known,) = np.nonzero(~missing)
    if labels.dtype.kind == "O":
        code[known] = [_number(label, found, name) for label in labels[known].tolist()]
    else:
        present, inverse = np.unique(labels[known], return_inverse=True)
        numbers = [_number(label, found, name) for label in present.tolist()]
        code[known] = np.array(numbers, dtype=np.intp)[inverse]
    names = sorted_names(list(found), name)
    place = np.empty(len(found), dtype=np.intp)
    place[[found[label] for label in names]] = np.arange(len(names))
    code[known] = place[code[known]]
    if len(known) < len(labels):
        code[missing] = len(names)
        names.append(None)
    return names, code


def _number(label: Any, found: dict[Any, int], name: str) -> int:
    label = label.item() if isinstance(label, np.generic) else label
    if not isinstance(label, Hashable):
        raise CalibrantError("must hold hashable labels", argument=name, value=label)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return found.setdefault(label, len(found))
