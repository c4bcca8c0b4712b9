"""How numbers, names and tables are written: in results, pictures, pages and on the terminal.

Numbers have the digits that mean something: those of an interval two digits of its width, P-values
two significant digits, and a P-value that is only a bound its sign.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

# P-values below this are printed as a bound: the smallest doubles represent all smaller numbers.
_MINIMUM_P_VALUE = 1e-300
_MINUS = "\N{MINUS SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
# Of tables with more rows, so many are shown at either end.
_MAX_ROWS, _END_ROWS = 60, 10
# Numbers in this range have a fixed number of decimals in tables, others significant digits.
_FIXED_RANGE = (1e-3, 1e4)
_MISSING = "-"
_NO_GROUP = "(none)"
_LATEX_SPECIAL = re.compile(r"[&%$#_{}]")
# A hyphen before a number, not within a name.
_LATEX_HYPHEN = re.compile(r"(?<!\w)-(?=\d)")
# Fields of results on the scale of their interval.
_INTERVAL_FIELDS = ("value", "difference", "bias_corrected", "low", "high")


class Number(str):
    """The text of a number, as it is printed, with the number itself.

    Attributes
    ----------
    value
        The number with all its digits; None where it is not known.
    """

    value: float | None

    def __new__(cls, text: str, value: float | None) -> Number:
        """Return a text that knows its number."""
        self = super().__new__(cls, text)
        self.value = value
        return self


UNKNOWN = Number("\N{EN DASH}", None)


def decimals(low: float, high: float, minimum: int = 2) -> int:
    """Return the number of decimals that shows two significant digits of an interval's width."""
    width = high - low
    if not (math.isfinite(width) and width > 0):
        return max(4, minimum)
    return min(max(1 - math.floor(math.log10(width)), minimum), 10)


def interval_digits(low: Iterable[float], high: Iterable[float]) -> int:
    """Return the number of decimals for a column of intervals, that of the narrowest."""
    return max((decimals(*ends, 3) for ends in zip(low, high, strict=True)), default=4)


def fixed(value: float, digits: int) -> Number:
    """Return a number with a given number of decimals; what rounds to 0 has no sign."""
    return _printed(value, f"{round(value, digits) + 0.0:.{digits}f}")


def with_interval(value: float, low: float, high: float) -> tuple[Number, Number, Number]:
    """Return a value and the ends of its interval with the decimals that its width shows."""
    digits = decimals(low, high)
    return fixed(value, digits), fixed(low, digits), fixed(high, digits)


def significant(value: float, digits: int = 4) -> Number:
    """Return a number with a given number of significant digits."""
    return _printed(value, f"{value:.{digits}g}")


def proportion(value: float) -> Number:
    """Return a proportion with three decimals, or three significant digits where it is small."""
    return fixed(value, 3) if value == 0 or value >= 0.01 else significant(value, 3)


def count(n: int) -> Number:
    """Return a whole number, its digits in groups of three."""
    return Number(f"{n:,}", int(n))


def short_count(n: int) -> str:
    """Return a whole number in at most four characters.

    Examples
    --------
    >>> short_count(950), short_count(12_345), short_count(3_400_000)
    ('950', '12k', '3.4M')
    """
    for unit, name in _UNITS:
        if n >= unit:
            return f"{n / unit:.2g}{name}" if n < 100 * unit else f"{n / unit:.0f}{name}"
    return str(n)


def counted(n: int, noun: str) -> str:
    """Return a number of things: 1 row, 2,000 rows."""
    return f"{count(n)} {noun}" + ("" if n == 1 else "s")


def group_name(group: object) -> str:
    """Return the name of a group for people, labels of several columns one after the other.

    Text is quoted where it could be taken for another group: with spaces that are not shown, or
    called like the group of rows that have none.

    Examples
    --------
    >>> group_name("web"), group_name(" web"), group_name(None), group_name(("web", 2024))
    ('web', "' web'", '(none)', 'web, 2024')
    """
    if isinstance(group, tuple):
        return ", ".join(map(group_name, group))
    name = _NO_GROUP if group is None else str(group)
    is_unclear = name != " ".join(name.split()) or name in ("", _NO_GROUP)
    return repr(name) if isinstance(group, str) and is_unclear else name


def percent(value: float) -> str:
    """Return a proportion, such as a confidence level, in percent."""
    text = f"{100 * value:g}%"
    return f"{100 * value:.15g}%" if text == "100%" else text


def plain_p_value(value: float, *, is_bound: bool = False) -> tuple[str, str]:
    """Return the sign and the number of a P-value in ASCII, with two significant digits.

    The minimum that resamples can give is a bound, rounded up; below 1e-300 it is "< 1e-300".

    Examples
    --------
    >>> plain_p_value(0.0312), plain_p_value(1 / 701, is_bound=True), plain_p_value(2e-308)
    (('=', '0.031'), ('<=', '0.0015'), ('<', '1e-300'))
    """
    if value < _MINIMUM_P_VALUE:
        return "<", f"{_MINIMUM_P_VALUE:.0e}"
    if not is_bound:
        return "=", f"{value:.2g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    # 1 / 1000 must not be rounded up because of its last bit.
    return "<=", f"{math.ceil(value / unit - 1e-9) * unit:.2g}"


def p_equation(value: float, *, is_bound: bool = False) -> str:
    """Return a P-value in ASCII as an equation or an inequality, such as p = 0.03."""
    return f"p {' '.join(plain_p_value(value, is_bound=is_bound))}"


def p_value(value: float, *, is_bound: bool = False) -> Number:
    """Return a P-value with two significant digits, after its sign where that is not equality."""
    if math.isnan(value):
        return UNKNOWN
    sign, number = plain_p_value(value, is_bound=is_bound)
    text = _typeset_number(number)
    return Number(text if sign == "=" else f"{typeset(sign)} {text}", value)


def p_statement(value: float, *, is_bound: bool = False) -> str:
    """Return a P-value as an equation or an inequality, such as P = 0.03."""
    sign, number = plain_p_value(value, is_bound=is_bound)
    return f"P {typeset(sign)} {_typeset_number(number)}"


def typeset(text: str) -> str:
    """Return a sentence with typeset inequality signs."""
    return text.replace("<=", "\N{LESS-THAN OR EQUAL TO}")


def shortened(
    name: str, most: int = 40, *, ellipsis: str = "…", width: Callable[[str], int] = len
) -> str:
    """Return a name on one line of limited width, without its middle where it is too long.

    `width` measures texts, by default by the number of their characters.

    Examples
    --------
    >>> shortened("the department of affairs", 15)
    'the dep…affairs'
    """
    name = " ".join(name.split())
    if width(name) <= most:
        return name
    for kept in range(most - len(ellipsis), 0, -1):
        front, back = name[: kept - kept // 2], name[len(name) - kept // 2 :]
        text = f"{front.rstrip()}{ellipsis}{back.lstrip()}"
        if width(text) <= most:
            return text
    return ellipsis[:most]


@dataclass(frozen=True)
class TextTable:
    """Columns of text under their names; columns of numbers are aligned on the right.

    Examples
    --------
    >>> print(TextTable.of({"model": ["a", "b"], "gap": [0.25, -0.125]}))
    model     gap
    a      0.2500
    b     -0.1250
    """

    columns: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[Any]], digits: int = 4) -> TextTable:
        """Return the table of values, numbers with so many decimals; empty columns are left out."""
        texts = {name: cells(values, digits) for name, values in columns.items()}
        return cls({name: text for name, text in texts.items() if name or any(text)})

    def __str__(self) -> str:
        columns = [_aligned(name, _ends(column)) for name, column in self.columns.items()]
        return "\n".join(" ".join(row).rstrip() for row in zip(*columns, strict=True))

    def to_html(self) -> str:
        """Return the table as HTML."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        rows = zip(*map(_ends, self.columns.values()), strict=True)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        columns = []
        for name, cells in self.columns.items():
            rule = "---:" if _are_numbers(cells) else "---"
            columns.append([_in_markdown(name), rule, *map(_in_markdown, cells)])
        return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))

    def to_latex(self) -> str:
        """Return the table as a LaTeX tabular with booktabs rules."""
        escaped = (
            [_LATEX_SPECIAL.sub(r"\\\g<0>", cell) for cell in row] for row in self._all_rows()
        )
        cells = ([_LATEX_HYPHEN.sub("$-$", cell) for cell in row] for row in escaped)
        head, *body = (rf"{' & '.join(row)} \\" for row in cells)
        first = rf"\begin{{tabular}}{{{'l' * len(self.columns)}}}"
        rows = [first, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
        return "\n".join(rows)

    def _all_rows(self) -> list[tuple[str, ...]]:
        return [tuple(self.columns), *zip(*self.columns.values(), strict=True)]


def cells(values: Iterable[Any], digits: int = 4) -> list[str]:
    """Return a column of values as text."""
    given = values.tolist() if isinstance(values, np.ndarray) else list(values)
    sizes = [abs(one) for one in given if isinstance(one, float) and math.isfinite(one)]
    is_fixed = not any(sizes) or _FIXED_RANGE[0] <= max(sizes) < _FIXED_RANGE[1]

    def cell(value: Any) -> str:
        if value is None or value != value:
            return _MISSING
        if not isinstance(value, float):
            return " ".join(str(value).split())
        # Adding 0 takes the sign off a zero.
        return f"{round(value, digits) + 0.0:.{digits}f}" if is_fixed else f"{value:.4g}"

    return [cell(one) for one in given]


def p_cells(values: Iterable[float], is_bound: Iterable[bool] = ()) -> list[str]:
    """Return a column of P-values, or bounds of them, as text."""
    return [p_text(one, is_bound=bound) for one, bound in zip_longest(values, is_bound)]


def p_text(value: float, missing: str = _MISSING, *, is_bound: bool | None = False) -> str:
    """Return a P-value in ASCII, after its sign where that is not equality."""
    if math.isnan(value):
        return missing
    sign, number = plain_p_value(value, is_bound=bool(is_bound))
    return number if sign == "=" else f"{sign} {number}"


def interval_cells(low: Iterable[float], high: Iterable[float], digits: int = 4) -> list[str]:
    """Return a column of intervals as text."""
    low = list(low)
    ends = cells([*low, *high], digits)
    return [f"{one} to {other}" for one, other in zip(ends, ends[len(low) :], strict=False)]


def field_text(name: str, value: Any, interval: tuple[Any, Any] = (None, None)) -> str:
    """Return a field of a result as text, given the interval that the result has, if any."""
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=4, threshold=8, separator=", ", max_line_width=9999)
        return text if len(value) <= 8 else f"{text} of {len(value)}"
    if not isinstance(value, float):
        return repr(value)
    if name.startswith("p_"):
        return p_text(value, "nan")
    if isinstance(interval[0], float) and name in _INTERVAL_FIELDS:
        return f"{value:.{decimals(*interval, 3)}f}"
    return f"{value:.4g}"


def _ends(column: Sequence[str]) -> list[str]:
    """Return the rows of a column that are shown."""
    if len(column) <= _MAX_ROWS:
        return list(column)
    return [*column[:_END_ROWS], "...", *column[-_END_ROWS:]]


def _in_markdown(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", html.escape(text, quote=False))


def _are_numbers(column: Sequence[str]) -> bool:
    return all(cell[:1] in "+-.<0123456789" for cell in column)


def _aligned(name: str, column: Sequence[str]) -> list[str]:
    is_number = _are_numbers(column)
    width = max(map(len, (name, *column)))
    return [cell.rjust(width) if is_number else cell.ljust(width) for cell in (name, *column)]


def _printed(value: float, text: str) -> Number:
    return Number(_typeset_number(text), value) if math.isfinite(value) else UNKNOWN


def _typeset_number(text: str) -> str:
    """Return the text of a number with a minus sign, and powers of ten in superscript."""
    mantissa, _, exponent = text.replace("-", _MINUS).partition("e")
    if not exponent:
        return mantissa
    power = f"10{str(int(exponent.replace(_MINUS, '-'))).translate(_SUPERSCRIPTS)}"
    times = "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}"
    return power if mantissa == "1" else f"{mantissa}{times}{power}"
