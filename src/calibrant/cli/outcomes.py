"""Outcomes and classes as they are written: options are text, so what they name must be, too."""

from __future__ import annotations

import numpy as np

from calibrant.arrays import AnyArray
from calibrant.sources.groups import key_of

# DuckDB reads these as true and false, too.
_TRUE, _FALSE = {"true", "yes", "t", "y", "1"}, {"false", "no", "f", "n", "0"}


def as_text(values: AnyArray) -> AnyArray:
    """Return labels as text: whole numbers without a point, truth values as true and false."""
    if values.dtype.kind == "O":
        return values.astype(str)
    present, inverse = np.unique(values, return_inverse=True)
    words = [_word(key_of(value)) for value in present]
    return np.array(words, dtype=str)[inverse.reshape(len(values))]


def label_named(text: str, values: AnyArray) -> str:
    """Return the label that an option names, as `as_text` writes it."""
    if values.dtype.kind == "b" and text.lower() in _TRUE | _FALSE:
        return _word(text.lower() in _TRUE)
    if values.dtype.kind in "fiu":
        try:
            return _word(key_of(float(text)))
        except ValueError:
            return text
    return text


def as_groups(values: AnyArray) -> list[object]:
    """Return the group of each row: whole numbers whole, and None where there is none."""
    if values.dtype.kind == "O":
        return list(values)
    present, inverse = np.unique(values, return_inverse=True)
    keys = np.array([key_of(value) for value in present], dtype=object)
    return list(keys[inverse.reshape(len(values))])


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
