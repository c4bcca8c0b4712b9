"""What all results share: frozen, printed well, turned into dictionaries and frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd


class Result:
    """What all results share: fields that do not change, arrays included."""

    def __post_init__(self) -> None:
        """Lock the arrays, so that a result stays what was measured."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                # A view, so that the array of whoever made the result is not locked with it.
                locked = value.view()
                locked.flags.writeable = False
                object.__setattr__(self, field.name, locked)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, arrays as lists, dates as text, nan as None."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


def frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns as a pandas table."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError("to_frame needs pandas", hint="pip install pandas") from None
    return pd.DataFrame(dict(columns))


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, date):
        return value.isoformat()
    return None if isinstance(value, float) and np.isnan(value) else value
