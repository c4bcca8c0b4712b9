"""What people see: a verdict, a table and a picture, as wide as the terminal and as plain as asked.

Colours appear on a terminal alone, and not where NO_COLOR is set.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from calibrant.cli.messages import is_terminal, write

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from calibrant.assessment.classes import ClassRow
    from calibrant.assessment.group_result import GroupTable
    from calibrant.assessment.result import Assessment

# From here on table and picture stand side by side.
_WIDE = 110
_WIDEST = 120
_MOST_CLASSES = 20


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
    # Tables fill their last column with blanks, which nobody needs in a file.
    write("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()))


def width() -> int:
    """Return how many characters fit on a line: 80 where the output is no terminal."""
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)


def is_plain() -> bool:
    """Tell whether the output knows no more than ASCII."""
    try:
        "⠿█│".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return True
    return False


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal that something is going on."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def assessment_parts(assessment: Assessment) -> list[RenderableType]:
    """Return an assessment as parts to show."""
    from rich.table import Table
    from rich.text import Text

    from calibrant.cli.diagram import diagram

    picture = diagram(assessment, plain=is_plain())
    numbers = estimate_table(assessment)
    parts: list[RenderableType] = [Text(str(assessment.verdict), style="bold"), ""]
    if width() >= _WIDE:
        grid = Table.grid(padding=(0, 4))
        grid.add_row(numbers, picture)
        parts += [grid, ""]
    else:
        parts += [numbers, "", picture, ""]
    if assessment.classes:
        parts += [class_table(assessment.classes), ""]
    parts.append(
        f"n = {assessment.n}, prevalence {assessment.prevalence:.4g}, mean prediction "
        f"{assessment.mean_prediction:.4g}, Brier score {assessment.brier_score:.4g}"
    )
    return [*parts, *(f"- {note}" for note in assessment.notes)]


def estimate_table(assessment: Assessment) -> Table:
    """Return errors, bias and slope with their intervals as a table."""
    digits = decimals(one.high for one in assessment.estimates)
    level = f"{100 * assessment.settings.level:g}%"
    table = plain_table("error", "value", f"{level} interval", "less noise")
    for one in assessment.estimates:
        cells = [f"{x:.{digits}f}" for x in (one.value, one.low, one.high, one.bias_corrected)]
        table.add_row(one.measure, cells[0], f"{cells[1]} to {cells[2]}", cells[3])
    for name, interval in (("bias", assessment.bias), ("slope", assessment.slope)):
        value, low, high = (f"{x:.4f}" for x in (interval.value, interval.low, interval.high))
        table.add_row(name, value, f"{low} to {high}", "")
    return table


def class_table(classes: Sequence[ClassRow]) -> Table:
    """Return the classes, or the first of many, as a table."""
    table = plain_table("class", "prevalence", "mean prediction", "smooth_ece", "ece")
    for one in classes[:_MOST_CLASSES]:
        numbers = (one.prevalence, one.mean_prediction, one.smooth_ece, one.ece)
        table.add_row(str(one.label), *(f"{x:.4f}" for x in numbers))
    if len(classes) > _MOST_CLASSES:
        table.add_row(f"... and {len(classes) - _MOST_CLASSES} more, see --json")
    return table


def group_parts(table: GroupTable) -> list[RenderableType]:
    """Return a table of groups, those that are miscalibrated marked, as parts to show."""
    level = f"{100 * table.level:g}%"
    headings = ("n", "observed", "predicted", "smooth_ece", f"{level} interval", "P adjusted")
    shown = plain_table("group", *headings)
    for row in table:
        error = row.smooth_ece
        shown.add_row(
            str(row.group),
            str(row.n),
            *(f"{x:.4f}" for x in (row.prevalence, row.mean_prediction, error.value)),
            f"{error.low:.4f} to {error.high:.4f}",
            p_value(row.p_adjusted) + (" *" if row.p_adjusted <= 1 - table.level else "  "),
            style="bold" if row.p_adjusted <= 1 - table.level else "",
        )
    parts: list[RenderableType] = [shown, ""]
    found = f"* miscalibrated: P, adjusted for the number of groups, at most {1 - table.level:.2g}"
    parts.append(found if table.miscalibrated else "Miscalibration detected in no group.")
    small = [str(row.group) for row in table if row.small]
    if small:
        listed = ", ".join(small[:_MOST_CLASSES]) + (", ..." * (len(small) > _MOST_CLASSES))
        parts.append(f"- Too few rows or events to say much: {listed}.")
    parts += [f"- {row.group}: {row.note}." for row in table if row.note]
    return parts


def p_value(value: float) -> str:
    """Return a P-value with two figures, and nothing where there is no test."""
    if math.isnan(value):
        return ""
    return f"{value:.2g}" if value >= 1e-300 else "< 1e-300"


def plain_table(first: str, *others: str) -> Table:
    """Return an empty table without lines: words on the left, numbers on the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def decimals(values: Iterable[float]) -> int:
    """Return how many decimals show the least of the positive numbers with two figures."""
    positive = [value for value in values if value > 0]
    least = min(positive, default=1.0)
    return min(max(1 - math.floor(math.log10(least)), 4), 9)
