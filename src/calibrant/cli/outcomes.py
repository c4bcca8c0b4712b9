"""Outcomes and classes as they are written: options are text, so what they name must be, too."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from calibrant.arrays import AnyArray
from calibrant.sources.groups import key_of

# What a group is called whose rows say nothing about it.
_NO_GROUP = "(none)"


def as_text(values: AnyArray) -> AnyArray:
    """Return labels as text: whole numbers without a point, truth values as true and false."""
    if values.dtype.kind == "O":
        return values.astype(str)
    present, inverse = np.unique(values, return_inverse=True)
    words = [word_of(value) for value in present]
    return np.array(words, dtype=str)[inverse.reshape(len(values))]


def word_of(value: object) -> str:
    """Return one label as text."""
    value = key_of(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def label_named(text: str, present: Collection[str]) -> str:
    """Return the label that an option names: 1.0 names 1, and true names True."""
    same = [word for word in present if _is_same(word, text)]
    return same[0] if len(same) == 1 and text not in present else text


def as_groups(values: AnyArray) -> list[object]:
    """Return the group of each row: whole numbers whole, and None where there is none."""
    if values.dtype.kind == "O":
        return list(values)
    present, inverse = np.unique(values, return_inverse=True)
    keys = np.array([key_of(value) for value in present], dtype=object)
    return list(keys[inverse.reshape(len(values))])


def _is_same(word: str, text: str) -> bool:
    try:
        return float(word) == float(text)
    except ValueError:
        return word.lower() == text.lower()


def group_name(group: object) -> str:
    """Return what people read of a group."""
    return _NO_GROUP if group is None else str(group)
