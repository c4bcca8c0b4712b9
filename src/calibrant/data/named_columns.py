"""Columns by name: arguments that name columns of a dataframe, and rows that pair by index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.data.labels import listed
from calibrant.data.validation import as_flag, comes_from
from calibrant.errors import CalibrantError

# Libraries whose columns have an index.
_INDEXED = ("pandas", "modin", "cudf")


def read_columns(data: Any, align: Any, **arguments: Any) -> tuple[Any, ...]:
    """Return arguments that describe rows, names replaced by the columns of `data` they name.

    A text names a column, a list of texts a dataframe of columns, and in a mapping each value is
    one or the other; everything else is returned as it is. With `align`, those that have an index
    must have the same one; otherwise all indexes are dropped.
    """
    frame = None if data is None else _frame(data)
    found = {name: _resolved(frame, name, value) for name, value in arguments.items()}
    if not as_flag(align, "align"):
        return tuple(map(_without_index, found.values()))
    check_same_index(found, "{align}=False pairs rows by position")
    return tuple(found.values())


def check_same_index(
    arguments: Mapping[str, Any], hint: str = "reindex one, or pair rows by position: .to_numpy()"
) -> None:
    """Refuse columns with as many rows but other indexes, which do not belong together."""
    first: tuple[str, Any] | None = None
    for name, value in arguments.items():
        for one in value.values() if isinstance(value, Mapping) else (value,):
            if not comes_from(one, *_INDEXED) or not hasattr(one, "index"):
                continue
            first = first or (name, one.index)
            same_length = len(first[1]) == len(one.index)
            if same_length and first[1] is not one.index and not first[1].equals(one.index):
                raise CalibrantError(
                    "must have the same index as {first}",
                    argument=name,
                    value=type(one),
                    found="another one",
                    hint=hint,
                    first=first[0],
                )


def _without_index(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_index(one) for name, one in value.items()}
    indexed = comes_from(value, *_INDEXED) and hasattr(value, "reset_index")
    return value.reset_index(drop=True) if indexed else value


def _frame(data: Any) -> Any:
    import narwhals.stable.v2 as nw

    frame = nw.from_native(data, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise CalibrantError(
            "must be a dataframe in memory, such as one of pandas, polars or pyarrow",
            argument="data",
            value=type(data),
            hint="collect it first, or make a sketch of it with calibrant.sketch",
        )
    return frame


def _resolved(frame: Any, argument: str, value: Any) -> Any:
    """Return the column or the columns that a value names, or the value itself."""
    if isinstance(value, Mapping) and frame is not None:
        return {name: _resolved(frame, argument, one) for name, one in value.items()}
    if frame is None and isinstance(value, str):
        raise CalibrantError(
            "must have one value per row",
            argument=argument,
            value=value,
            hint="to name a column give the dataframe as {data}",
        )
    names = [value] if isinstance(value, str) else value
    is_list = isinstance(names, list | tuple) and len(names) > 0
    if frame is None or not is_list or not all(isinstance(name, str) for name in names):
        return value
    known = frame.columns
    for name in names:
        if name not in known:
            raise CalibrantError(
                "must name columns of {data} ({known})",
                argument=argument,
                value=name,
                known=listed(known),
            )
    return frame[value if isinstance(value, str) else list(names)].to_native()
