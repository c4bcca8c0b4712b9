"""Checks of the few options that the loaders and simulators take."""

import operator
from collections.abc import Iterable
from typing import SupportsIndex

from calibrant.errors import CalibrantError


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the named choices."""
    choices = tuple(choices)
    if value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise CalibrantError(f"{name} must be one of {allowed}; got {value!r}")


def as_count(name: str, value: SupportsIndex) -> int:
    """Return a whole number of at least 1, refusing anything else."""
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise CalibrantError(f"{name} must be a whole number of at least 1; got {value!r}")
    return count
