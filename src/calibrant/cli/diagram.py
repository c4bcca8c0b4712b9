"""A reliability diagram in characters: outcomes against predictions, and where predictions are.

The curve is a solid line, perfect calibration a dotted one, so that they differ without colour. A
braille character is two dots wide and four dots high.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from calibrant.curves.reliability_view import Window

if TYPE_CHECKING:
    from rich.text import Text

    from calibrant.assessment.assess import Assessment
    from calibrant.curves.reliability_view import ReliabilityView

_WIDTH, _HEIGHT = 36, 15
_MARGIN = 5
# The distance, in dots, between dots on the line of perfect calibration.
_SPARSE = 3
_BLOCKS, _PLAIN_BLOCKS = " ▁▂▃▄▅▆▇█", " .:-=+*#%"
# Less than this fraction of the highest block is not shown.
_MINIMUM_SHOWN = 0.01
Point = tuple[float, float]
_DIAGONAL, _CURVE, _DENSITY = "dim", "bold cyan", "cyan"
# Which bit of a braille character is the dot in this row and column of it.
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


@dataclass
class Dots:
    """A picture of characters, with the point (0, 0) at its lower left."""

    width: int
    height: int
    dots: set[tuple[int, int]] = field(default_factory=set)

    @property
    def size(self) -> tuple[int, int]:
        """How many dots there are from left to right and from bottom to top."""
        return 2 * self.width, 4 * self.height

    def mark(self, x: float, y: float) -> None:
        """Set the dot nearest to a point of the unit square; points outside are left out."""
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
    """Return the picture; a plain one is of characters that every terminal has."""
    from rich.text import Text

    view = assessment.reliability_view("smooth")
    window = Window.around([view])
    start, middle, end = (f"{at:g}" for at in np.linspace(window.low, window.high, 3))
    margin = max(_MARGIN, *map(len, (start, middle, end)))
    ticks = {0: end, _HEIGHT // 2: middle}
    lines = [Text(f"{'':{margin}} observed", style=_DIAGONAL)]
    lines += [
        Text(f"{ticks.get(row, ''):>{margin}} {'|' if plain else '│'}") + body
        for row, body in enumerate(_overlaid(_diagonal(), _line(view, window), plain=plain))
    ]
    corner, edge = ("+", "-") if plain else ("└", "─")
    lines.append(Text(f"{start:>{margin}} {corner}{edge * _WIDTH}"))
    blocks = _density(view, window, _PLAIN_BLOCKS if plain else _BLOCKS)
    lines.append(Text(f"{'':{margin}}  ") + Text(blocks, style=_DENSITY))
    ruler = f"{start}{middle:^{_WIDTH - len(start) - len(end)}}{end}"
    lines.append(Text(f"{'':{margin}}  {ruler}"))
    lines.append(
        Text(f"{'':{margin}}  {'predicted (blocks: how often)':>{_WIDTH}}", style=_DIAGONAL)
    )
    return Text("\n").join(lines)


def _diagonal() -> Dots:
    dots = Dots(_WIDTH, _HEIGHT)
    n = max(dots.size)
    for i in range(0, n, _SPARSE):
        dots.mark(i / (n - 1), i / (n - 1))
    return dots


def _line(view: ReliabilityView, window: Window) -> Dots:
    """Return the curve from point to point where it is known, and point masses as dots."""
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


def _overlaid(diagonal: Dots, curve: Dots, *, plain: bool) -> list[Text]:
    """Return the rows of the diagonal with the curve on top."""
    from rich.text import Text

    rows = []
    if plain:
        pairs = zip(diagonal.plain_rows("."), curve.plain_rows("*"), strict=True)
        blank = " "
    else:
        both = Dots(_WIDTH, _HEIGHT, diagonal.dots | curve.dots)
        pairs = zip(both.rows(), curve.rows(), strict=True)
        blank = chr(0x2800)
    for below, above in pairs:
        row = Text()
        for under, over in zip(below, above, strict=True):
            is_curve = over != blank
            shown = over if plain and is_curve else under
            row.append(" " if shown == blank else shown, _CURVE if is_curve else _DIAGONAL)
        rows.append(row)
    return rows


def _density(view: ReliabilityView, window: Window, blocks: str) -> str:
    """Return how many predictions there are along the axis, as blocks of different height."""
    x, density = view.density()
    edges = np.linspace(window.low, window.high, _WIDTH + 1)
    inside = [(x >= low) & (x <= high) for low, high in pairwise(edges)]
    found = [float(density[one].mean()) if one.any() else 0.0 for one in inside]
    most = max(found) or 1.0
    heights = [value / most if value >= _MINIMUM_SHOWN * most else 0.0 for value in found]
    return "".join(blocks[math.ceil(height * (len(blocks) - 1))] for height in heights)
