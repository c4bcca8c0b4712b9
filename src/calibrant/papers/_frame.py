"""The frame of a paper: what it measures, what it shows, and what a run leaves behind.

A paper is a module of this room that uses calibrant as its users do and ends in

    PAPER = Paper("smece", parts=parts, report=report)

``parts(quick)`` lists the tables to measure. A `Part` is a table made cell by cell: ``measure`` is
called with the values of one cell and gives its rows, frozen dataclasses with fields of type str,
int or float whose first fields are the cell's values. Rows are kept in ``NAME/PART.csv``; a cell
whose rows are there is not measured again, so a cell must not depend on others measured before it:
give each its own seed.

``report(tables)`` turns the rows, by name of part and in the order of the cells, into a `Report`:
the text of the page, further tables such as comparisons, and functions that draw the figures. What
takes long is left to parts, so that the page is soon made again from the files. It links figures as
``NAME/FIGURE.png``. For its words see `calibrant.papers._page`, `Comparison` above all, and for
figures `calibrant.papers._drawing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A row is a frozen dataclass with fields of type str, int or float.
Row = Any
Tables = Mapping[str, Sequence[Row]]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Part:
    """One table of a paper, measured cell by cell.

    Attributes
    ----------
    name
        The name of the table and of its file.
    row
        The dataclass of its rows.
    cells
        What is to be measured: the values of the first fields of the rows.
    measure
        Called with the values of a cell, gives its rows.
    """

    name: str
    row: type[Row]
    cells: Sequence[tuple[str | int | float, ...]]
    measure: Callable[..., Iterable[Row]]


@dataclass(frozen=True)
class Report:
    """What a paper shows of its tables: a page, further tables, and what draws its figures."""

    text: str
    tables: Tables = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """A paper's experiments."""

    name: str
    parts: Callable[[bool], Sequence[Part]]
    report: Callable[[Tables], Report]


@dataclass(frozen=True, repr=False)
class PaperRun:
    """What running a paper left behind.

    Attributes
    ----------
    name
        The paper.
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
        return f"PaperRun({self.name}: {self.page} and {len(self.files)} tables and figures)"
