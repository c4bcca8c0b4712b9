"""Results in a terminal: a verdict, tables and a reliability diagram in characters.

All is as wide as the terminal, and 80 characters elsewhere. Colours appear on a terminal alone, and
not where NO_COLOR is set. Curve and diagonal differ without colour: one is solid, one dotted.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._base import Result, columns_of
from calibrant.cli.messages import is_terminal, write
from calibrant.curves.reliability_view import Window
from calibrant.formatting import (
    TextTable,
    count,
    group_name,
    interval_cells,
    p_cells,
    percent,
    shortened,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from calibrant.assessment.assess import Assessment, ClassRow
    from calibrant.assessment.groups import GroupTable
    from calibrant.curves.reliability_view import ReliabilityView

# From this width on table and diagram are side by side; nothing is wider than the second.
_WIDE, _WIDEST = 110, 120
_MOST_CLASSES = 20
# The diagram, in characters; the distance of the dots of its diagonal.
_WIDTH, _HEIGHT, _MARGIN = 36, 15, 5
_SPARSE = 3
_DIAGONAL, _CURVE, _DENSITY = "dim", "bold cyan", "cyan"
_BLOCKS, _PLAIN_BLOCKS = " ▁▂▃▄▅▆▇█", " .:-=+*#%"
# Densities below this fraction of the maximum are not shown.
_MINIMUM_SHOWN = 0.01
# The bits of a braille character, two dots wide and four high, by row and column.
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800
# Of sheets: gaps between columns, the minimum width of names, and what joins two names.
_WIDE_GAP, _GAP = 3, 2
_MINIMUM_NAME = 16
_BETWEEN = " - "
Point = tuple[float, float]


# Output.


def show(*parts: RenderableType) -> None:
    """Write parts to standard output, one below the other."""
    from rich.console import Console

    on_terminal = is_terminal(sys.stdout)
    colourless = bool(os.environ.get("NO_COLOR")) or not on_terminal
    page = io.StringIO()
    console = Console(
        file=page,
        width=width(),
        force_terminal=on_terminal,
        color_system=None if colourless else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(*parts, sep="\n")
    # Tables fill their last column with blanks.
    write("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()))


def width() -> int:
    """Return the number of characters of a line: 80 where the output is no terminal."""
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)


def is_plain() -> bool:
    """Tell whether the encoding of the output lacks braille and blocks."""
    try:
        "⠿█│".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return True
    return False


# Results.


def assessment_parts(assessment: Assessment) -> list[RenderableType]:
    """Return an assessment as parts to show."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    picture = diagram(assessment, plain=is_plain())
    (table,) = tables_of(assessment)
    numbers = fitted(table, spare=["raw value"])
    verdict = assessment.verdict
    parts: list[RenderableType] = [Text(f"{verdict.heading}.", style="bold"), verdict.details, ""]
    if width() >= _WIDE:
        grid = Table.grid(padding=(0, 4))
        grid.add_row(Group(*numbers), picture)
        parts += [grid, ""]
    else:
        parts += [*numbers, "", picture, ""]
    if assessment.classes:
        parts += [*class_parts(assessment.classes), ""]
    observed, predicted = assessment.mean_names
    problem = assessment.settings.problem
    of_what = "" if problem == "binary" else f" of the {problem}"
    parts.append(
        f"n = {count(assessment.n)}, {observed} {assessment.prevalence:.4g}, {predicted} "
        f"{assessment.mean_prediction:.4g}, Brier score{of_what} "
        f"{assessment.brier_score:.4g}"
    )
    return [*parts, *(f"- {note}" for note in assessment.notes)]


def model_heading(name: str) -> list[RenderableType]:
    """Return the name of one of several models as parts to show, nothing where it is empty."""
    from rich.text import Text

    return [Text(name, style="bold underline"), ""] if name else []


def class_parts(classes: Sequence[ClassRow]) -> list[RenderableType]:
    """Return the classes, or the first of many, as parts to show."""
    names = ("prevalence", "mean_prediction", "smooth_ece", "ece")
    labels = [str(one.label) for one in classes[:_MOST_CLASSES]]
    table = TextTable.of({"class": labels, **columns_of(classes[:_MOST_CLASSES], names)})
    n_more = len(classes) - _MOST_CLASSES
    more = [f"... and {n_more} more, see --json"] if n_more > 0 else []
    return [*fitted(table, spare=["ece", "mean_prediction", "prevalence"]), *more]


def group_parts(table: GroupTable) -> list[RenderableType]:
    """Return a table of groups, miscalibrated ones marked, as parts to show."""
    interval = f"{percent(table.level)} interval"
    errors = columns_of((row.smooth_ece for row in table), ("bias_corrected", "low", "high"))
    detected = [row.p_adjusted <= 1 - table.level for row in table]
    columns: dict[str, list[Any]] = {
        "group": [group_name(row.group) for row in table],
        "n": [count(row.n) for row in table],
        "observed": [row.prevalence for row in table],
        "predicted": [row.mean_prediction for row in table],
        "estimate": errors["bias_corrected"],
        interval: interval_cells(errors["low"], errors["high"]),
        "P adjusted": p_cells((row.p_adjusted for row in table), (row.is_least for row in table)),
        "": ["*" * one for one in detected],
        "tolerance": [row.answer.removesuffix(" tolerance") for row in table],
    }
    # The direction of an error is seen last of all to go.
    spare = ["P adjusted", "n", interval, "observed", "predicted"]
    parts = [*fitted(TextTable.of(columns), spare=spare, bold=detected), ""]
    parts.append(f"estimate: smooth_ece, bias-corrected; tolerance {table.tolerance:g}")
    found = f"* miscalibrated: P, adjusted for the number of groups, at most {1 - table.level:.2g}"
    parts.append(found if table.miscalibrated else "Miscalibration detected in no group.")
    small = [group_name(row.group) for row in table if row.small]
    if small:
        listed = ", ".join(small[:_MOST_CLASSES]) + (", ..." * (len(small) > _MOST_CLASSES))
        parts.append(f"- Too few rows or events for a conclusion: {listed}.")
    parts += [f"- {group_name(row.group)}: {row.note}." for row in table if row.note]
    return parts


def tables_of(result: Result) -> list[TextTable]:
    """Return the tables that a result prints."""
    return [part for part in result._printed() if isinstance(part, TextTable)]


def fitted(
    table: TextTable, *, spare: Sequence[str] = (), bold: Sequence[bool] = ()
) -> list[RenderableType]:
    """Return a table as parts that fit the terminal."""
    return Sheet(table, spare, bold).parts(width(), plain=is_plain())


# The reliability diagram.


@dataclass
class Dots:
    """A picture of characters, with the point (0, 0) at its lower left."""

    width: int
    height: int
    dots: set[tuple[int, int]] = field(default_factory=set)

    @property
    def size(self) -> tuple[int, int]:
        """The number of dots from left to right and from bottom to top."""
        return 2 * self.width, 4 * self.height

    def mark(self, x: float, y: float) -> None:
        """Set the dot nearest to a point of the unit square; points outside are ignored."""
        if 0 <= x <= 1 and 0 <= y <= 1:
            across, up = self.size
            self.dots.add((round(x * (across - 1)), round(y * (up - 1))))

    def line(self, start: Point, end: Point) -> None:
        """Set the dots between two points."""
        steps = max(
            1, *(round(abs(b - a) * n) for a, b, n in zip(start, end, self.size, strict=True))
        )
        for step in range(steps + 1):
            part = step / steps
            self.mark(*(a + part * (b - a) for a, b in zip(start, end, strict=True)))

    def rows(self) -> list[str]:
        """Return the picture, one string per row of characters, the top one first."""
        codes = [[_BLANK] * self.width for _ in range(self.height)]
        for x, y in self.dots:
            down = 4 * self.height - 1 - y
            codes[down // 4][x // 2] |= _BITS[down % 4][x % 2]
        return ["".join(map(chr, row)) for row in codes]

    def plain_rows(self, mark: str) -> list[str]:
        """Return the picture without braille: a mark wherever there are dots."""
        return ["".join(" " if c == chr(_BLANK) else mark for c in row) for row in self.rows()]


def diagram(assessment: Assessment, *, plain: bool = False) -> Text:
    """Return the reliability diagram of an assessment; a plain one is in ASCII."""
    from rich.text import Text

    view = assessment.reliability_view("smooth")
    window = Window.around([view])
    start, middle, end = (f"{at:g}" for at in np.linspace(window.low, window.high, 3))
    margin = max(_MARGIN, *map(len, (start, middle, end)))
    ticks = {0: end, _HEIGHT // 2: middle}
    lines = [Text(f"{'':{margin}} observed", style=_DIAGONAL)]
    lines += [
        Text(f"{ticks.get(row, ''):>{margin}} {'|' if plain else '│'}") + body
        for row, body in enumerate(_overlaid(_line(view, window), plain=plain))
    ]
    corner, edge = ("+", "-") if plain else ("└", "─")
    lines.append(Text(f"{start:>{margin}} {corner}{edge * _WIDTH}"))
    blocks = _density(view, window, _PLAIN_BLOCKS if plain else _BLOCKS)
    lines.append(Text(f"{'':{margin}}  ") + Text(blocks, style=_DENSITY))
    ruler = f"{start}{middle:^{_WIDTH - len(start) - len(end)}}{end}"
    lines.append(Text(f"{'':{margin}}  {ruler}"))
    lines.append(Text(f"{'':{margin}}  {'predicted (blocks: density)':>{_WIDTH}}", style=_DIAGONAL))
    return Text("\n").join(lines)


def _line(view: ReliabilityView, window: Window) -> Dots:
    """Return the curve where it is known as lines, and point masses as dots."""
    dots, curve = Dots(_WIDTH, _HEIGHT), view.drawn(window)
    points = (np.column_stack((curve.x, curve.y)) - window.low) / window.span
    known = np.isfinite(curve.y)
    for i in np.flatnonzero(known[:-1] & known[1:]):
        dots.line(points[i], points[i + 1])
    masses = view.marks(window)
    if masses is not None:
        for x, y in zip(masses.score, masses.outcome, strict=True):
            dots.mark((x - window.low) / window.span, (y - window.low) / window.span)
    return dots


def _overlaid(curve: Dots, *, plain: bool) -> list[Text]:
    """Return the rows of the dotted diagonal with the curve on top."""
    from rich.text import Text

    diagonal, n = Dots(_WIDTH, _HEIGHT), max(curve.size)
    for i in range(0, n, _SPARSE):
        diagonal.mark(i / (n - 1), i / (n - 1))
    if plain:
        pairs = zip(diagonal.plain_rows("."), curve.plain_rows("*"), strict=True)
        blank = " "
    else:
        both = Dots(_WIDTH, _HEIGHT, diagonal.dots | curve.dots)
        pairs = zip(both.rows(), curve.rows(), strict=True)
        blank = chr(_BLANK)
    rows = []
    for below, above in pairs:
        row = Text()
        for under, over in zip(below, above, strict=True):
            is_curve = over != blank
            shown = over if plain and is_curve else under
            row.append(" " if shown == blank else shown, _CURVE if is_curve else _DIAGONAL)
        rows.append(row)
    return rows


def _density(view: ReliabilityView, window: Window, blocks: str) -> str:
    """Return the density of predictions as blocks of different height."""
    x, density = view.density()
    edges = np.linspace(window.low, window.high, _WIDTH + 1)
    inside = [(x >= low) & (x <= high) for low, high in pairwise(edges)]
    found = [float(density[one].mean()) if one.any() else 0.0 for one in inside]
    most = max(found) or 1.0
    heights = [value / most if value >= _MINIMUM_SHOWN * most else 0.0 for value in found]
    return "".join(blocks[math.ceil(height * (len(blocks) - 1))] for height in heights)


# Tables.


@dataclass(frozen=True)
class Sheet:
    """A table without rules that fits the terminal: names of rows on the left, then numbers.

    Where not all fits, names are shortened in the middle, down to `_MINIMUM_NAME` characters; then
    columns are left out and named below the table.
    """

    table: TextTable  # the first of its columns has the names
    spare: Sequence[str] = ()  # the columns that may be left out, in this order
    bold: Sequence[bool] = ()  # which rows are bold, if any

    def parts(self, width: int, *, plain: bool = False) -> list[RenderableType]:
        """Return the table, fitted to a width, and a line about the columns left out."""
        from rich.cells import cell_len

        first, *shown = self.table.columns
        natural = max(map(cell_len, (first, *self.table.columns[first])))
        left_out, gap = [], _WIDE_GAP
        space = width - self._taken(shown, gap)
        if space < natural:
            gap = _GAP
            space = width - self._taken(shown, gap)
        for heading in self.spare:
            if space >= min(natural, _MINIMUM_NAME):
                break
            shown.remove(heading)
            left_out.append(heading)
            space = width - self._taken(shown, gap)
        table = self._table(shown, max(1, min(natural, space)), gap, "..." if plain else "\u2026")
        note = f"Too narrow here for {', '.join(left_out)}; --json has all."
        return [table, note] if left_out else [table]

    def _taken(self, headings: Sequence[str], gap: int) -> int:
        """Return the width of columns of numbers, with the gap before each."""
        columns = ((heading, *self.table.columns[heading]) for heading in headings)
        return sum(gap + max(map(len, column)) for column in columns)

    def _table(
        self, headings: Sequence[str], space: int, gap: int, ellipsis: str
    ) -> RenderableType:
        from rich.table import Table

        (first, names), *_ = self.table.columns.items()
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
        table.add_column(first, no_wrap=True)
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        columns = [self.table.columns[heading] for heading in headings]
        for i, name in enumerate(names):
            style = "bold" * bool(self.bold and self.bold[i])
            cells = [column[i] for column in columns]
            table.add_row(_fitted(name.split(_BETWEEN), space, ellipsis), *cells, style=style)
        return table


def _fitted(names: Sequence[str], space: int, ellipsis: str) -> str:
    """Return the names of a difference in a given space, long ones shortened in the middle."""
    from rich.cells import cell_len

    free = space - len(_BETWEEN) * (len(names) - 1)
    lengths = [cell_len(name) for name in names]
    fitted = dict(enumerate(names))
    # From the shortest on: space that one does not need is left to the others.
    for turn, i in enumerate(sorted(range(len(names)), key=lengths.__getitem__)):
        limit = free // (len(names) - turn)
        fitted[i] = shortened(names[i], limit, ellipsis=ellipsis, width=cell_len)
        free -= cell_len(fitted[i])
    return _BETWEEN.join(fitted[i] for i in range(len(names)))
