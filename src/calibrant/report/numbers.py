"""Numbers as a page shows them: with the digits that count, and nothing made up."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.results.p_values import TestResult, printed_p_value

__all__ = [
    "UNKNOWN",
    "Number",
    "count",
    "decimals",
    "figures",
    "fixed",
    "p_value",
    "percent",
    "said_p_value",
    "share",
    "typeset",
]

_MINUS = "\N{MINUS SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")
_AT_MOST = "\N{LESS-THAN OR EQUAL TO}"


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


def p_value(value: float, *, is_least: bool = False) -> Number:
    """Return a P-value with two figures, its sign before it where that is not equality."""
    sign, text = printed_p_value(value, is_least=is_least)
    mantissa, _, exponent = text.partition("e")
    if exponent:
        text = _power(mantissa, int(exponent))
    return Number(value, text if sign == "=" else f"{typeset(sign)} {text}")


def said_p_value(test: TestResult) -> str:
    """Return the P-value of a test in words."""
    text = p_value(test.p_value, is_least=test.is_least).text
    return f"P {text}" if text[0] in f"<{_AT_MOST}" else f"P = {text}"


def typeset(text: str) -> str:
    """Return a sentence of the library with signs as they are printed."""
    return text.replace("<=", _AT_MOST)


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
