"""The frame of a study: its tables measured and kept, its page written, its figures drawn.

A study is a module or package of `studies` that uses calibrant as its users do and ends in

    STUDY = Study("smooth-ece", parts=parts, report=report)

``parts(quick)`` lists the tables to measure. A `Part` is a table made cell by cell: ``measure`` is
called with the values of one cell and yields its rows, frozen dataclasses with fields of type str,
int or float whose first fields are the cell's values. Rows are kept in ``NAME/PART.csv``; a cell
whose rows are there is not measured again, so a cell must not depend on others measured before it:
give each its own seed.

``report(tables)`` turns the rows, by name of part and in the order of the cells, into a `Report`:
the text of the page, further tables such as comparisons, and functions that draw the figures.
Expensive computations belong in parts, so that the page is quickly made again from the files. It
links figures as ``NAME/FIGURE.png``.
"""

from __future__ import annotations

import csv
import io
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.progress import TaskID

FloatArray = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

# A row is a frozen dataclass with fields of type str, int or float.
Row = Any
Tables = Mapping[str, Sequence[Row]]
Progress = Callable[[str, int, int], None]

# The default folder of pages.
OUT = "build/papers"
# Short cells are not worth a write each; this much work may be lost when a machine stops.
_SECONDS_BETWEEN_WRITES = 2.0
_DOTS_PER_INCH = 110


@dataclass(frozen=True)
class Part:
    """One table of a study, measured cell by cell.

    Attributes
    ----------
    name
        The name of the table and of its file.
    row
        The dataclass of its rows.
    cells
        What is to be measured: the values of the first fields of the rows.
    measure
        Called with the values of a cell, yields its rows.
    """

    name: str
    row: type[Row]
    cells: Sequence[tuple[str | int | float, ...]]
    measure: Callable[..., Iterable[Row]]


@dataclass(frozen=True)
class Report:
    """The page of a study, further tables, and functions that draw its figures."""

    text: str
    tables: Tables = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """The experiments of a paper: what is measured, and what is shown of it."""

    name: str
    parts: Callable[[bool], Sequence[Part]]
    report: Callable[[Tables], Report]


@dataclass(frozen=True, repr=False)
class StudyRun:
    """The files that a run of a study wrote.

    Attributes
    ----------
    name
        The study.
    page
        The path of the page.
    files
        The paths of all tables and figures.
    tables
        The rows of every table, by name.
    """

    name: str
    page: Path
    files: tuple[Path, ...]
    tables: Tables

    def __repr__(self) -> str:
        return f"StudyRun({self.name}: {self.page} and {len(self.files)} tables and figures)"


# Running.


def run_study(
    study: Study, out: str | os.PathLike[str], quick: bool, progress: Progress | None
) -> StudyRun:
    """Measure what is missing and write page, tables and figures."""
    home = Path(out, "quick") if quick else Path(out)
    folder = home / study.name
    folder.mkdir(parents=True, exist_ok=True)
    with _bar(study.name) if progress is None else nullcontext(progress) as step:
        tables = {
            part.name: measured(part, folder / f"{part.name}.csv", step)
            for part in study.parts(quick)
        }
    return write_report(study, tables, home)


def measured(part: Part, path: Path, progress: Progress) -> Sequence[Row]:
    """Return the rows of all cells, measuring those that the file at `path` lacks."""
    known: dict[tuple[object, ...], list[Row]] = {}
    width = len(part.cells[0])
    for row in read_csv(path, part.row):
        known.setdefault(astuple(row)[:width], []).append(row)
    missing = [cell for cell in part.cells if cell not in known]
    n_cells, n_before = len(part.cells), len(part.cells) - len(missing)
    progress(part.name, n_before, n_cells)
    written = time.monotonic()
    try:
        for n_now, cell in enumerate(missing, 1):
            known[cell] = _rows_of(part, cell)
            progress(part.name, n_before + n_now, n_cells)
            if time.monotonic() - written > _SECONDS_BETWEEN_WRITES:
                _write_rows(path, known)
                written = time.monotonic()
    finally:
        # Also when interrupted: what has been measured is not measured again.
        if missing:
            _write_rows(path, known)
    return [row for cell in part.cells for row in known[cell]]


def _rows_of(part: Part, cell: tuple[str | int | float, ...]) -> list[Row]:
    rows = list(part.measure(*cell))
    # Rows that do not start with their cell could not be found again.
    if not rows or any(astuple(row)[: len(cell)] != cell for row in rows):
        raise ValueError(f"rows of {part.name} must start with their cell; got {rows!r:.80}")
    return rows


def write_report(study: Study, tables: Tables, home: Path) -> StudyRun:
    """Write the report on measured tables: a page in `home`, the rest in a folder beside it."""
    report = study.report(tables)
    folder = home / study.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in report.tables.items():
        _write(folder / f"{name}.csv", to_csv(rows))
    for name, draw in report.figures.items():
        _write(folder / f"{name}.png", _png(draw()))
    page = home / f"{study.name}.md"
    _write(page, report.text.encode())
    everything = {**tables, **report.tables}
    files = [*(f"{name}.csv" for name in everything), *(f"{name}.png" for name in report.figures)]
    return StudyRun(study.name, page, tuple(folder / file for file in files), everything)


def _write_rows(path: Path, known: dict[tuple[object, ...], list[Row]]) -> None:
    _write(path, to_csv(row for rows in known.values() for row in rows))


def _write(path: Path, content: bytes) -> None:
    """Write a file as a whole, or leave the old one when interrupted."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)


def _png(figure: Figure) -> bytes:
    image = io.BytesIO()
    # Without the version of matplotlib in it, the same figure is the same bytes.
    figure.savefig(image, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return image.getvalue()


@contextmanager
def _bar(study: str) -> Iterator[Progress]:
    """Give a function to call with a table's name, its cells measured, and all its cells."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda table, done, total: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (*Bar.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as shown:
        tasks: dict[str, TaskID] = {}

        def step(table: str, done: int, total: int) -> None:
            if table not in tasks:
                tasks[table] = shown.add_task(f"{study} {table}", total=total)
            shown.update(tasks[table], completed=done)

        yield step


# Rows as lines of a CSV file, and back without loss.


def to_csv(rows: Iterable[Row]) -> bytes:
    """Return rows of one dataclass as CSV, under the names of its fields."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        types = _types(type(rows[0]))
        writer.writerow(types)
        # Python's own numbers, whose text reads back as the same number.
        of_types = tuple(types.values())
        for row in rows:
            writer.writerow(
                [kind(value) for kind, value in zip(of_types, astuple(row), strict=True)]
            )
    return text.getvalue().encode()


def read_csv(path: Path, row: type[Row]) -> list[Row]:
    """Read the rows of a file, none if it is not there."""
    if not path.exists():
        return []
    types = _types(row)
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines, list(types))
        if header != list(types):
            raise ValueError(
                f"{path} must have the columns {','.join(types)}; got {','.join(header)}: "
                "remove it to measure again"
            )
        return [
            row(*(kind(text) for kind, text in zip(types.values(), line, strict=True)))
            for line in lines
        ]


def _types(row: type[Row]) -> dict[str, type]:
    hints = get_type_hints(row)
    return {field.name: hints[field.name] for field in fields(row)}


# Published and reproduced numbers side by side, in Markdown.

# Deviations beyond this many Monte-Carlo errors need an explanation.
REMARKABLE = 3.0


@dataclass(frozen=True)
class Comparison:
    """A published number beside ours; made by :func:`compared`.

    Attributes
    ----------
    table, row, column
        Where the number is printed.
    published
        As printed.
    ours
        The number measured here.
    error
        Standard deviation of the difference: Monte-Carlo noise of both, and rounding in print.
    deviation
        The difference, ours - published, in units of `error`.
    note
        The reason of the deviation, where it is known.
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
        """Whether the deviation needs an explanation."""
        return abs(self.deviation) > REMARKABLE


def compared(
    table: str, row: str, column: str, published: str, ours: float, noise: float, note: str = ""
) -> Comparison:
    """Compare our number with a printed one.

    `noise` is the Monte-Carlo standard deviation of the difference: 0 where both are exact. The
    printed digits give what rounding in print adds.
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


def by_table(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Return the grid of every published table, by its name."""
    return {
        table: side_by_side((one for one in comparisons if one.table == table), table)
        for table in dict.fromkeys(one.table for one in comparisons)
    }


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
    """Return a Markdown table; all columns but the first are aligned right."""
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def picture(study: str, name: str, caption: str) -> str:
    """Return a figure with its caption."""
    return f"![{caption}]({study}/{name}.png)\n\n*{caption}*"


def page(*blocks: str) -> str:
    """Join headings, paragraphs, tables and figures into a page."""
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def _place(one: Comparison) -> str:
    # A deviation that rounds to 0 has no sign.
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


# Figures that touch no global state, in one style.

# Distinguishable by colour-blind readers too (Okabe and Ito), and by their markers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v", "P")
GREY = "#555555"
LIGHT = "#D9D9D9"


def figure(n_rows: int, n_columns: int, width: float, height: float, **options: Any) -> Figure:
    """Return an empty figure with axes in rows and columns; `options` as of `subplots`."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    for axes in drawn.subplots(n_rows, n_columns, squeeze=False, **options).flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=LIGHT, linewidth=0.6)
        axes.set_axisbelow(True)
    return drawn


def from_zero(axes: Axes) -> None:
    """Let the vertical axis start at 0 and end above what is drawn."""
    axes.set_ylim(0, 1.08 * axes.dataLim.ymax)


def legend_below(drawn: Figure, axes: Axes, n_columns: int) -> None:
    """Put the legend of one of the axes below all of them."""
    handles, labels = axes.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=n_columns, frameon=False)
