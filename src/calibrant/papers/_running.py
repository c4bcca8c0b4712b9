"""Running a paper: measure what is not on file yet, then write page, tables and figures."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.errors import CalibrantError
from calibrant.files import write_atomically
from calibrant.papers._csv import read_csv, to_csv
from calibrant.papers._frame import Paper, PaperRun, Part, Progress, Row, Tables
from calibrant.papers._progress import bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Short cells are not worth a write each; this much work may be lost when a machine stops.
_SECONDS_BETWEEN_WRITES = 2.0
_DOTS_PER_INCH = 110


def run_paper(
    paper: Paper, out: str | os.PathLike[str], quick: bool, progress: Progress | None
) -> PaperRun:
    """Measure what is missing and write everything."""
    home = Path(out, "quick") if quick else Path(out)
    folder = home / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    with bar(paper.name) if progress is None else nullcontext(progress) as step:
        tables = {
            part.name: measured(part, folder / f"{part.name}.csv", step)
            for part in paper.parts(quick)
        }
    return write_report(paper, tables, home)


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
        raise CalibrantError(f"rows of {part.name} must start with their cell; got {rows!r:.80}")
    return rows


def write_report(paper: Paper, tables: Tables, home: Path) -> PaperRun:
    """Write what a paper shows of its tables: a page in `home`, the rest in a folder beside it."""
    report = paper.report(tables)
    folder = home / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in report.tables.items():
        write_atomically(folder / f"{name}.csv", to_csv(rows))
    for name, draw in report.figures.items():
        write_atomically(folder / f"{name}.png", _png(draw()))
    page = home / f"{paper.name}.md"
    write_atomically(page, report.text.encode())
    everything = {**tables, **report.tables}
    files = [*(f"{name}.csv" for name in everything), *(f"{name}.png" for name in report.figures)]
    return PaperRun(paper.name, page, tuple(folder / file for file in files), everything)


def _write_rows(path: Path, known: dict[tuple[object, ...], list[Row]]) -> None:
    write_atomically(path, to_csv(row for rows in known.values() for row in rows))


def _png(figure: Figure) -> bytes:
    image = io.BytesIO()
    # Without the version of matplotlib in it, the same figure is the same bytes.
    figure.savefig(image, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return image.getvalue()
