"""Groups: the values of a column as keys, and dictionaries of sketches by them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from calibrant.sketches.state import Sketch
from calibrant.sources.formats import MISSING, GroupForm

# Codes with a zero in front are no numbers.
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_NUMBER = re.compile(_WHOLE.pattern + r"(\.\d*)?([eE][+-]?\d+)?")


def key_of(value: Any) -> Any:
    """Return the key of a group: None for null and nan, and whole numbers whole."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value != value:
        return None
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def keys_of(written: Iterable[Any], form: GroupForm) -> dict[Any, Any]:
    """Return the keys of groups by what files write."""
    found = [value for value in written if value is not None]
    if form == "text":
        keys = _keys_of_text(found)
    else:
        keys = {value: _key_of_json(value) if form == "json" else key_of(value) for value in found}
    return {**keys, None: None}


def alike(keys: Iterable[Any]) -> dict[Any, Any]:
    """Return keys that can be compared, by keys: text where one is text and another a number."""
    known = list(keys)
    is_mixed = len({_kind_of(key) for key in known if key is not None}) > 1
    return {key: str(key) if is_mixed and key is not None else key for key in known}


def renamed(sketches: Mapping[Any, Sketch], keys: Mapping[Any, Any]) -> dict[Any, Sketch]:
    """Return sketches by other keys, those of the same one added up."""
    return merged({keys[key]: sketch} for key, sketch in sketches.items())


def in_order(sketches: Mapping[Any, Sketch]) -> dict[Any, Sketch]:
    """Return the groups in the order of their keys, null last."""
    found = renamed(sketches, alike(sketches))
    keys = sorted(key for key in found if key is not None) + [None] * (None in found)
    return {key: found[key] for key in keys}


def merged(parts: Iterable[Mapping[Any, Sketch]]) -> dict[Any, Sketch]:
    """Return the sum of the sketches of each group."""
    total: dict[Any, Sketch] = {}
    for part in parts:
        for key, sketch in part.items():
            total[key] = total[key] + sketch if key in total else sketch
    return total


def _keys_of_text(texts: list[str]) -> dict[str, Any]:
    """Return numbers where all are, words such as NA among them being no group; else text."""
    numbers = {text: _number(text) for text in texts if _NUMBER.fullmatch(text)}
    if not numbers or any(text not in numbers and text not in MISSING for text in texts):
        return {text: text for text in texts}
    return {text: numbers.get(text) for text in texts}


def _number(text: str) -> Any:
    return int(text) if _WHOLE.fullmatch(text) else key_of(float(text))


def _key_of_json(text: str) -> Any:
    value = key_of(json.loads(text))
    return text if isinstance(value, list | dict) else value


def _kind_of(key: Any) -> type:
    return float if isinstance(key, int | float) and not isinstance(key, bool) else type(key)
