"""Sheets: tables without lines that fit the terminal, however long the names of their rows.

What a row is called is worth more than any of its numbers. Where not all fits, names lose their
middle, as far as `_LEAST_NAME`; then columns are left out, in the order that the sheet gives, and
named below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from calibrant.results.formatting import shortened

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDE_GAP, _GAP = 3, 2
_LEAST_NAME = 16
_BETWEEN = " - "


class _Row(NamedTuple):
    names: tuple[str, ...]
    cells: tuple[str, ...]
    style: str


@dataclass
class Sheet:
    """A table with the names of rows on the left and numbers on the right.

    Attributes
    ----------
    name
        The heading of names.
    headings
        Those of numbers.
    spare
        The headings that can be done without, those to leave out first first.
    """

    name: str
    headings: Sequence[str]
    spare: Sequence[str] = ()
    rows: list[_Row] = field(default_factory=list)

    def add(self, *names: str, cells: Iterable[str], style: str = "") -> None:
        """Add a row about one thing, or about one thing less another."""
        self.rows.append(_Row(names, tuple(cells), style))

    def parts(self, width: int, *, plain: bool = False) -> list[RenderableType]:
        """Return the table, fitted to a width, and a line about what it leaves out."""
        from rich.cells import cell_len

        natural = max(cell_len(_BETWEEN.join(names)) for names in self._all_names())
        shown, left_out, gap = list(self.headings), [], _WIDE_GAP
        room = width - self._taken(shown, gap)
        if room < natural:
            gap = _GAP
            room = width - self._taken(shown, gap)
        for heading in self.spare:
            if room >= min(natural, _LEAST_NAME):
                break
            shown.remove(heading)
            left_out.append(heading)
            room = width - self._taken(shown, gap)
        table = self._table(shown, max(1, min(natural, room)), gap, "..." if plain else "\u2026")
        note = f"Too narrow here for {', '.join(left_out)}; --json has all."
        return [table, note] if left_out else [table]

    def _all_names(self) -> list[tuple[str, ...]]:
        return [(self.name,), *(row.names for row in self.rows)]

    def _column(self, heading: str) -> list[str]:
        place = self.headings.index(heading)
        return [row.cells[place] if place < len(row.cells) else "" for row in self.rows]

    def _taken(self, headings: Sequence[str], gap: int) -> int:
        """Return how wide columns of numbers are, with the gap before each."""
        widths = (max(map(len, (heading, *self._column(heading)))) for heading in headings)
        return sum(gap + width for width in widths)

    def _table(self, headings: Sequence[str], room: int, gap: int, ellipsis: str) -> RenderableType:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
        table.add_column(self.name, no_wrap=True)
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        columns = [self._column(heading) for heading in headings]
        for i, row in enumerate(self.rows):
            cells = [column[i] for column in columns]
            table.add_row(_fitted(row.names, room, ellipsis), *cells, style=row.style)
        return table


def _fitted(names: Sequence[str], room: int, ellipsis: str) -> str:
    """Return names in so much room, those that are longer than their share without a middle."""
    from rich.cells import cell_len

    free = room - len(_BETWEEN) * (len(names) - 1)
    lengths = [cell_len(name) for name in names]
    fitted = dict(enumerate(names))
    # From the shortest on: what one does not need is for the others.
    for turn, i in enumerate(sorted(range(len(names)), key=lengths.__getitem__)):
        share = free // (len(names) - turn)
        fitted[i] = shortened(names[i], share, ellipsis=ellipsis, width=cell_len)
        free -= cell_len(fitted[i])
    return _BETWEEN.join(fitted[i] for i in range(len(names)))
