"""Group labels as people hold them: which rows belong together, and under which name.

A label may be a number, text, a truth value or a date; what is missing (None, nan, null) is a group
of its own, named None. Whole numbers are whole however they are stored, so that a column of floats
makes the same names as one of integers, and as :func:`calibrant.sketch` makes with ``by``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.arrays import AnyArray, as_array
from calibrant.errors import CalibrantError
from calibrant.labels import is_missing, sorted_names
from calibrant.problem import Index
from calibrant.reading import one_column, read_weights


def read_groups(groups: Any, sample_weight: Any, n_rows: int) -> Iterator[tuple[Any, Index]]:
    """Yield the name and the rows of each group, in the order of names, None last.

    `n_rows` counts the rows that carry weight; the others are left out.
    """
    labels, missing = _labels(groups)
    if sample_weight is not None:
        weight = read_weights(sample_weight, len(labels))
        carries = np.ones(len(labels), dtype=bool) if weight is None else weight > 0
        labels, missing = labels[carries], missing[carries]
    if len(labels) != n_rows:
        raise CalibrantError(
            "must have one label per row",
            argument="groups",
            value=len(labels),
            found="{value} labels for {n_rows} rows with positive weight",
            n_rows=n_rows,
        )
    names, code = _codes(labels, missing)
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(1, len(names)))
    yield from zip(names, np.split(order, ends), strict=True)


def _labels(groups: Any) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
    """Return labels, and where they are missing: columns of dataframes know that themselves."""
    import narwhals.stable.v1 as nw

    column = nw.from_native(groups, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        missing = column.is_null().to_numpy()
        labels = np.empty(len(missing), dtype=object)
        labels[:] = column.to_list()
        return labels, missing | _are_missing(labels)
    if isinstance(groups, list | tuple):
        # As they are: numpy would make text of 1 in [1, "a"].
        labels = np.empty(len(groups), dtype=object)
        labels[:] = list(groups)
    else:
        labels = one_column(as_array(groups, "groups"), "groups")
    return labels, _are_missing(labels)


def _are_missing(labels: AnyArray) -> npt.NDArray[np.bool_]:
    if labels.dtype.kind in "fcmM":
        return np.asarray(labels != labels)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.array([is_missing(label) for label in labels.tolist()], dtype=bool)


def _codes(labels: AnyArray, missing: npt.NDArray[np.bool_]) -> tuple[list[Any], Index]:
    """Return the names of the groups, and the number of each row's group."""
    found: dict[Any, int] = {}
    code = np.empty(len(labels), dtype=np.intp)
    (known,) = np.nonzero(~missing)
    if labels.dtype.kind == "O":
        code[known] = [_number(label, found) for label in labels[known].tolist()]
    else:
        present, inverse = np.unique(labels[known], return_inverse=True)
        numbers = np.array([_number(label, found) for label in present.tolist()], dtype=np.intp)
        code[known] = numbers[inverse]
    names = sorted_names(list(found), "groups")
    place = np.empty(len(found), dtype=np.intp)
    place[[found[name] for name in names]] = np.arange(len(names))
    code[known] = place[code[known]]
    if len(known) < len(labels):
        code[missing] = len(names)
        names.append(None)
    return names, code


def _number(label: Any, found: dict[Any, int]) -> int:
    label = label.item() if isinstance(label, np.generic) else label
    if not isinstance(label, Hashable):
        raise CalibrantError("must hold hashable labels", argument="groups", value=label)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return found.setdefault(label, len(found))
