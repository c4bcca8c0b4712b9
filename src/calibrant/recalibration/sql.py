"""SQL expressions: names quoted, numbers exact, and many pieces found by few comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.errors import CalibrantError


def identifier(name: object) -> str:
    """Return a column's name as a quoted identifier, whatever characters it has."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise CalibrantError("must be the name of a column", argument="column", value=name)
    return '"' + name.replace('"', '""') + '"'


def number(value: float) -> str:
    """Return a double as a literal that is read back bit for bit.

    An exponent makes it a double rather than a decimal number; a negative one is bracketed.
    """
    digits = repr(float(value))
    literal = digits if "e" in digits else digits + "e0"
    return f"({literal})" if value < 0 else literal


def within_unit(column: str, expression: str) -> str:
    """Return an expression that is NULL where the column is NULL, nan or not in [0, 1]."""
    return f"CASE WHEN {column} >= 0 AND {column} <= 1 THEN {expression} END"


def by_cuts(column: str, cuts: Sequence[float], pieces: Sequence[str]) -> str:
    """Return piece k where cuts[k-1] <= column < cuts[k], by halving: log2 comparisons a row."""
    if len(pieces) == 1:
        return pieces[0]
    middle = len(pieces) // 2
    below = by_cuts(column, cuts[: middle - 1], pieces[:middle])
    above = by_cuts(column, cuts[middle:], pieces[middle:])
    return f"CASE WHEN {column} < {number(cuts[middle - 1])} THEN {below} ELSE {above} END"
