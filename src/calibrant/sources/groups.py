"""Groups: the values of a column as keys, and dictionaries of sketches by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrant.sketches.state import Sketch


def key_of(value: Any) -> Any:
    """Return the key of a group: None for null and nan, and whole numbers whole."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value != value:
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def in_order(sketches: dict[Any, Sketch]) -> dict[Any, Sketch]:
    """Return the groups in the order of their keys, null last."""
    known = [key for key in sketches if key is not None]
    keys = sorted(known) + [None] * (None in sketches)
    return {key: sketches[key] for key in keys}


def merged(parts: Iterable[dict[Any, Sketch]]) -> dict[Any, Sketch]:
    """Return the sum of the sketches of each group."""
    total: dict[Any, Sketch] = {}
    for part in parts:
        for key, sketch in part.items():
            total[key] = total[key] + sketch if key in total else sketch
    return total
