"""Columns of numbers, dates or names, with missing values.

bool, text and categories are names; None, nan and null are missing values.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant._base import AnyArray
from calibrant.data import validation
from calibrant.data.labels import factors, is_missing, objects
from calibrant.data.validation import as_array, one_column
from calibrant.errors import CalibrantError

Kind = Literal["names", "numbers", "dates"]
Mask = npt.NDArray[np.bool_]

_DATES = "datetime64[us]"
# The names of types that have missing values.
_WITH_MISSING = ("NAType", "NaTType", "float", "float64", "float32", "datetime64")


@dataclass(frozen=True, eq=False)
class Feature:
    """One value per row."""

    kind: Kind
    values: AnyArray  # numbers as float64, dates to the microsecond, names as objects
    missing: Mask
    name: str = ""  # of the column, if it has one
    order: tuple[Any, ...] = ()  # all names in the order of an ordered column; empty for others

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, which: Mask) -> Feature:
        """Return the feature of some of the rows."""
        return replace(self, values=self.values[which], missing=self.missing[which])


def read_feature(feature: Any) -> Feature:
    """Read a list, an array or a dataframe's column."""
    import narwhals.stable.v2 as nw

    column = nw.from_native(feature, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        return _from_column(column)
    if isinstance(feature, list | tuple):
        # numpy would make text of 1 in [1, "a"].
        return _from_objects(feature)
    return _from_array(one_column(as_array(feature, "feature"), "feature"))


def _from_column(column: Any) -> Feature:
    """Read the column of a dataframe by its type."""
    import narwhals.stable.v2 as nw

    dtype, name = column.dtype, str(column.name or "")
    missing = np.asarray(column.is_null().to_numpy(), dtype=bool)
    if dtype.is_numeric():
        return _numbers(column.cast(nw.Float64).to_numpy(), name)
    if dtype in (nw.Date, nw.Datetime):
        if getattr(dtype, "time_zone", None) is not None:
            column = column.dt.replace_time_zone(None)
        since_1970 = np.array(column.dt.timestamp("us").fill_null(0).to_numpy(), dtype=np.int64)
        return Feature("dates", since_1970.view(_DATES), missing, name)
    if dtype in (nw.Boolean, nw.String, nw.Categorical, nw.Enum):
        order = tuple(dtype.categories) if dtype == nw.Enum else ()
        return Feature("names", objects(column.to_list()), missing, name, order)
    if dtype == nw.Object:
        return _from_objects(column.to_list(), name)
    raise _unknown_type(dtype)


def _from_array(values: AnyArray) -> Feature:
    kind = values.dtype.kind
    if kind in "iuf":
        return _numbers(values)
    if kind == "M":
        return Feature("dates", values.astype(_DATES), np.isnat(values))
    if kind in "bUTO":
        return _from_objects(values.tolist())
    raise _unknown_type(values.dtype)


def _from_objects(values: Sequence[Any], name: str = "") -> Feature:
    """Read objects by the types of their values: numbers, dates or else names."""
    types = set(map(type, values)) - {type(None)}
    # Numbers have nan; of other types only some have missing values.
    if not _are_numbers(types) and any(one.__name__ in _WITH_MISSING for one in types):
        values = [None if is_missing(value) else value for value in values]
        types = set(map(type, values)) - {type(None)}
    if _are_numbers(types):
        return _numbers(np.array(values, dtype=np.float64), name)
    if types and all(issubclass(one, date | np.datetime64) for one in types):
        distinct, code = factors(values)
        local = [v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in distinct]
        dates = np.array(local, dtype=_DATES)[code]
        return Feature("dates", dates, np.isnat(dates), name)
    for one in types:
        if not issubclass(one, Hashable):
            raise _unknown_type(one.__name__)
    missing = np.array([value is None for value in values], dtype=bool)
    return Feature("names", objects(values), missing, name)


def _are_numbers(types: set[type]) -> bool:
    # Decimal is no Real, and bool is one.
    numbers = (issubclass(one, Real) or one.__name__ == "Decimal" for one in types)
    return bool(types) and all(numbers) and bool not in types


def _numbers(values: AnyArray, name: str = "") -> Feature:
    missing = np.isnan(np.asarray(values, dtype=np.float64))
    numbers = np.where(missing, 0.0, values).astype(np.float64)
    validation.check_finite(numbers, "feature")
    return Feature("numbers", numbers, missing, name)


def _unknown_type(what: object) -> CalibrantError:
    return CalibrantError(
        "must hold numbers, dates, names or bool",
        argument="feature",
        value=str(what),
        found="{what}",
        hint="convert it first",
        what=what,
    )
