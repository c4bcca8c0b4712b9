"""A reliability diagram in characters: outcomes against predictions, and where predictions are.

The curve is a solid line, perfect calibration a dotted one, so that they differ without colour.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from calibrant.cli.braille import Dots

if TYPE_CHECKING:
    from rich.text import Text

    from calibrant.assessment.result import Assessment
    from calibrant.results.curves import Curve

_WIDTH, _HEIGHT = 36, 15
_MARGIN = 5
# Every how many dots there is one on the line of perfect calibration.
_SPARSE = 3
# Where all scores are small, the picture ends at one of these.
_TOPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_BLOCKS, _PLAIN_BLOCKS = " ▁▂▃▄▅▆▇█", " .:-=+*#%"
# Less than this share of the highest block is nothing to look at.
_LEAST_SHOWN = 0.01
Step = tuple[tuple[float, float], tuple[float, float]]
_DIAGONAL, _CURVE, _DENSITY = "dim", "bold cyan", "cyan"


def diagram(assessment: Assessment, *, plain: bool = False) -> Text:
    """Return the picture; a plain one is of characters that every terminal has."""
    from rich.text import Text

    curve = assessment.curve("smooth")
    steps = _steps(assessment)
    top = _top(max(value for step in steps for point in step for value in point))
    layers = (_diagonal(), _line(steps, top))
    lines = [Text(f"{'':{_MARGIN}} observed", style=_DIAGONAL)]
    lines += [
        Text(f"{_tick(row, top):>{_MARGIN}} {'|' if plain else '│'}") + body
        for row, body in enumerate(_overlaid(layers, plain=plain))
    ]
    corner, edge = ("+", "-") if plain else ("└", "─")
    lines.append(Text(f"{'0':>{_MARGIN}} {corner}{edge * _WIDTH}"))
    blocks = _PLAIN_BLOCKS if plain else _BLOCKS
    lines.append(Text(f"{'':{_MARGIN}}  ") + Text(_density(curve, top, blocks), style=_DENSITY))
    middle, end = f"{top / 2:g}", f"{top:g}"
    ruler = f"0{middle:^{_WIDTH - 1 - len(end)}}{end}"
    lines.append(Text(f"{'':{_MARGIN}}  {ruler}"))
    lines.append(
        Text(f"{'':{_MARGIN}}  {'predicted (blocks: how often)':>{_WIDTH}}", style=_DIAGONAL)
    )
    return Text("\n").join(lines)


def _steps(assessment: Assessment) -> list[Step]:
    """Return the smooth curve from point to point, where there are scores; else dots of bins."""
    curve, scores = assessment.curve("smooth"), assessment.cumulative.score
    points = list(zip(curve.x.tolist(), curve.y.tolist(), strict=True))
    shown = [scores[0] <= x <= scores[-1] and math.isfinite(y) for x, y in points]
    steps = [
        (points[i], points[i + 1]) for i in range(len(points) - 1) if shown[i] and shown[i + 1]
    ]
    if steps:
        return steps
    binned = assessment.curve("binned")
    return [(one, one) for one in zip(binned.x.tolist(), binned.y.tolist(), strict=True)]


def _top(largest: float) -> float:
    return next((top for top in _TOPS if largest <= top), 1.0)


def _tick(row: int, top: float) -> str:
    """Return what stands beside a row, the first being the top one."""
    return {0: f"{top:g}", _HEIGHT // 2: f"{top / 2:g}"}.get(row, "")


def _diagonal() -> Dots:
    dots = Dots(_WIDTH, _HEIGHT)
    n = max(dots.size)
    for i in range(0, n, _SPARSE):
        dots.mark(i / (n - 1), i / (n - 1))
    return dots


def _line(steps: list[Step], top: float) -> Dots:
    dots = Dots(_WIDTH, _HEIGHT)
    for (a, b), (c, d) in steps:
        dots.line((a / top, b / top), (c / top, d / top))
    return dots


def _overlaid(layers: tuple[Dots, Dots], *, plain: bool) -> list[Text]:
    """Return the rows of the diagonal with the curve on top."""
    from rich.text import Text

    diagonal, curve = layers
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


def _density(curve: Curve, top: float, blocks: str) -> str:
    """Return how many predictions there are along the axis, as blocks of different height."""
    found = []
    for i in range(_WIDTH):
        inside = (curve.x >= i / _WIDTH * top) & (curve.x <= (i + 1) / _WIDTH * top)
        found.append(float(curve.density[inside].mean()) if inside.any() else math.nan)
    most = max((value for value in found if value > 0), default=1.0)
    shares = [value / most if value >= _LEAST_SHOWN * most else 0.0 for value in found]
    return "".join(blocks[math.ceil(share * (len(blocks) - 1))] for share in shares)
