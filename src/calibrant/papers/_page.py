"""The words of a page: published and reproduced numbers side by side, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Deviations beyond this many Monte-Carlo errors want a reason.
REMARKABLE = 3.0


@dataclass(frozen=True)
class Comparison:
    """A published number beside ours; make one with :func:`compared`.

    Attributes
    ----------
    table, row, column
        Where the number is printed.
    published
        As printed.
    ours
        What was measured here.
    error
        Standard deviation of the difference: Monte-Carlo noise of both, and rounding in print.
    deviation
        The difference, ours - published, in units of `error`.
    note
        Why it deviates, where that is known.
    """

    table: str
    row: str
    column: str
    published: str
    ours: float
    error: float
    deviation: float
    note: str = ""

    @property
    def is_remarkable(self) -> bool:
        """Whether the deviation wants a reason."""
        return abs(self.deviation) > REMARKABLE


def compared(
    table: str, row: str, column: str, published: str, ours: float, noise: float, note: str = ""
) -> Comparison:
    """Compare our number with a printed one.

    `noise` is the standard deviation of the difference by chance: 0 where both are exact. What
    rounding in print adds is known from the printed digits.
    """
    error = math.hypot(noise, _unit(published) / math.sqrt(12))
    deviation = (ours - float(published)) / error
    return Comparison(table, row, column, published, ours, error, deviation, note)


def side_by_side(comparisons: Iterable[Comparison], corner: str = "") -> str:
    """Return a grid with "published, ours, (deviation)" in every place, remarkable ones bold."""
    comparisons = list(comparisons)
    rows = list(dict.fromkeys(one.row for one in comparisons))
    columns = list(dict.fromkeys(one.column for one in comparisons))
    places = {(one.row, one.column): _place(one) for one in comparisons}
    return grid(
        [corner, *columns],
        [[row, *(places.get((row, column), "") for column in columns)] for row in rows],
    )


def reasons(comparisons: Iterable[Comparison]) -> str:
    """Return a list of the remarkable deviations with their reasons."""
    found = [one for one in comparisons if one.is_remarkable]
    if not found:
        return f"No number deviates by more than {REMARKABLE:g} Monte-Carlo errors."
    return "\n".join(
        f"- {one.table}, {one.row}, {one.column}: {one.published} published, "
        f"{_like(one.ours, one.published)} here ({one.deviation:+.1f}). {one.note}".rstrip()
        for one in found
    )


def grid(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are set right."""
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def picture(paper: str, name: str, caption: str) -> str:
    """Return a figure with its caption."""
    return f"![{caption}]({paper}/{name}.png)\n\n*{caption}*"


def page(*blocks: str) -> str:
    """Join headings, paragraphs, tables and figures into a page."""
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def _place(one: Comparison) -> str:
    # Nothing is said to deviate by minus nothing.
    deviation = f"({round(one.deviation, 1) + 0.0:+.1f})".replace("+0.0", "0")
    deviation = f"**{deviation}**" if one.is_remarkable else deviation
    # A narrow column may break before the deviation, but not between the two numbers.
    return f"{one.published}\u00a0·\u00a0{_like(one.ours, one.published)} {deviation}"


def _like(value: float, printed: str) -> str:
    """Return a number with as many digits as the printed one has."""
    mantissa, e, _ = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return f"{value:.{decimals}{'e' if e else 'f'}}"


def _unit(printed: str) -> float:
    """Return one unit in the last printed digit."""
    mantissa, _, exponent = printed.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
