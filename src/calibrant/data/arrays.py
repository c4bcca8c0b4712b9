"""Whatever people hold their numbers in, as a numpy array.

Only containers are converted here: nothing looks at the values, nothing is cast to float64, and an
array that numpy can already see is never copied. Value checks live in :mod:`calibrant.data.validation`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from calibrant._base import AnyArray
from calibrant.errors import CalibrantError

# Numbers that can be taken block by block to float64 without an intermediate copy.
_REAL_KINDS = "buif"


_DATAFRAME_LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "cudf")


def as_array(values: Any, name: str) -> AnyArray:
    """Return `values` as a numpy array of any dtype, without copying where numpy allows it."""
    if type(values) is np.ndarray:
        return values
    try:
        return _convert(values, name)
    except CalibrantError:
        raise
    except (TypeError, ValueError, RuntimeError, OverflowError) as problem:
        raise CalibrantError(
            "cannot be read as an array of numbers or labels: {reason}",
            argument=name,
            reason=str(problem),
        ) from problem


def _convert(values: Any, name: str) -> AnyArray:
    if values is None:
        raise CalibrantError("is missing", argument=name, hint="give ({y_true}, {y_prob})")
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(values, name)
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if isinstance(values, (list, tuple)):
        return _from_sequence(values, name)
    if _comes_from(values, "torch"):
        return _from_torch(values)
    if _comes_from(values, *_DATAFRAME_LIBRARIES):
        return _from_dataframe_library(values, name)
    if hasattr(values, "__array__") or hasattr(values, "__dlpack__"):
        return np.asarray(values)
    raise CalibrantError(
        "must be a list, an array, a tensor or a dataframe column",
        argument=name,
        value=type(values),
        hint="wrap it in list(...)" if hasattr(values, "__iter__") else None,
    )


def is_real(array: AnyArray) -> bool:
    """Tell whether the array holds plain real numbers or booleans."""
    return array.dtype.kind in _REAL_KINDS


def _comes_from(values: Any, *packages: str) -> bool:
    # An object of a package can only exist once that package is imported, so a look at its
    # class's module costs nothing and imports nothing.
    root = type(values).__module__.partition(".")[0]
    return root in packages and root in sys.modules


def _unmasked(values: np.ma.MaskedArray[Any, Any], name: str) -> AnyArray:
    if np.ma.is_masked(values):
        raise missing_values(name, np.ma.getmaskarray(values))
    return np.asarray(values.data)


def _from_sequence(values: list[Any] | tuple[Any, ...], name: str) -> AnyArray:
    try:
        return np.asarray(values)
    except ValueError as problem:
        if "inhomogeneous" not in str(problem):
            raise
        raise CalibrantError(
            "must be rectangular",
            argument=name,
            value=type(values),
            found="rows of different lengths",
        ) from None


def _from_torch(tensor: Any) -> AnyArray:
    tensor = tensor.detach().cpu()
    # numpy knows no bfloat16; float32 holds each of its values exactly.
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def _from_dataframe_library(values: Any, name: str) -> AnyArray:
    import narwhals.stable.v1 as nw

    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise CalibrantError(
            "must be in memory",
            argument=name,
            value=type(values),
            found="a lazy frame",
            hint="collect it first",
        )
    if isinstance(native, nw.Series):
        missing = native.is_null()
        if missing.any():
            raise missing_values(name, missing.to_numpy())
        return np.asarray(native.to_numpy())
    if isinstance(native, nw.DataFrame):
        return np.asarray(native.to_numpy())
    return np.asarray(values)


def missing_values(name: str, missing: AnyArray) -> CalibrantError:
    """Return the error of missing values, given which values are missing."""
    return CalibrantError(
        "must have no missing or masked values",
        argument=name,
        value=None,
        found="one",
        position=int(np.argmax(missing)),
        count=int(np.count_nonzero(missing)),
        hint="remove or fill them",
    )


def column_labels(values: Any) -> list[Any] | None:
    """Return the names of the columns of a dataframe; None where there are no columns."""
    if not _comes_from(values, *_DATAFRAME_LIBRARIES):
        return None
    import narwhals.stable.v1 as nw

    frame = nw.from_native(values, eager_only=True, pass_through=True)
    return frame.columns if isinstance(frame, nw.DataFrame) else None
