"""Numbers as a page shows them: with the digits that count, and nothing made up."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = [
    "UNKNOWN",
    "Number",
    "count",
    "decimals",
    "figures",
    "fixed",
    "p_value",
    "percent",
    "share",
]

_MINUS = "\N{MINUS SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")
# P-values below this are all one to a reader; the smallest doubles stand for "smaller still".
_LEAST_P_VALUE = 1e-300


@dataclass(frozen=True)
class Number:
    """A number and how it is written."""

    value: float | None
    text: str


UNKNOWN = Number(None, "\N{EN DASH}")


def _spelled(value: float, text: str) -> Number:
    """Return a number with its text; one that is not known has none."""
    if not math.isfinite(value):
        return UNKNOWN
    return Number(value, text.replace("-", _MINUS))


def fixed(value: float, digits: int) -> Number:
    """Return a number with so many decimals."""
    # Adding 0 after rounding, so that nothing is said to be minus nothing.
    return _spelled(value, f"{round(value, digits) + 0.0:.{digits}f}")


def figures(value: float, n: int = 4) -> Number:
    """Return a number with so many figures that count."""
    text = f"{value:.{n}g}"
    if "e" not in text:
        return _spelled(value, text)
    mantissa, exponent = text.split("e")
    return Number(value, _power(mantissa, int(exponent)))


def count(n: int) -> Number:
    """Return a whole number, its digits in groups of three."""
    text = f"{n:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return Number(int(n), text if n >= 10_000 else str(n))


def share(value: float) -> Number:
    """Return a share with three decimals, or with three figures where it is small."""
    return fixed(value, 3) if value == 0 or value >= 0.01 else figures(value, 3)


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:g}%"


def p_value(value: float) -> Number:
    """Return a P-value with two figures, as powers of ten where it is small."""
    if value < _LEAST_P_VALUE:
        return Number(value, f"< {_power('1', -300)}")
    if value >= 1e-4:
        return Number(value, f"{value:.2g}")
    mantissa, exponent = f"{value:.1e}".split("e")
    return Number(value, _power(mantissa, int(exponent)))


def decimals(low: float, high: float) -> int:
    """Return how many decimals show an interval to two figures of its width."""
    width = high - low
    if not (math.isfinite(width) and width > 0):
        return 4
    return min(max(1 - math.floor(math.log10(width)), 2), 10)


def _power(mantissa: str, exponent: int) -> str:
    times = f"{mantissa}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}".replace("-", _MINUS)
    ten = f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return ten if mantissa == "1" else times + ten
