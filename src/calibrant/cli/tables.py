"""Tables: how the files of a command line become what measures take.

Up to four million rows are held in memory, so that every question can be answered. More become a
sketch, in one pass and in memory that does not grow: binned errors stay exact, smooth ones within
a certified bound, and what needs single rows is refused or left out. Where several classes need
the rows whatever their number, all are held.

A file that ``calibrant sketch`` wrote is taken as it is; several are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calibrant.cli.columns import class_names
from calibrant.cli.files import columns_of, is_sketch, local_files
from calibrant.cli.messages import in_columns, say
from calibrant.cli.outcomes import as_text, label_named
from calibrant.cli.request import Request
from calibrant.cli.rows import Reading, Rows
from calibrant.cli.shards import merged, sketched
from calibrant.cli.terminal import waiting
from calibrant.errors import CalibrantError
from calibrant.sources.columns import Columns
from calibrant.sources.files import Reader, connected

MOST_ROWS = 4_000_000
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Data:
    """What was read, as measures take it.

    Attributes
    ----------
    pair
        Outcomes and predictions, or one sketch, or sketches by group.
    about
        What else measures are told about rows: weights, classes, the positive label.
    groups
        The group of each row, where groups were asked for.
    feature
        The feature of each row, where one was asked for.
    columns
        Where it came from; None for a sketch.
    is_joined
        Whether rows come from several files.
    """

    pair: tuple[Any, ...]
    about: Mapping[str, Any]
    groups: Any = None
    columns: Columns | None = None
    is_joined: bool = False
    feature: Any = None

    def ask(self, question: Callable[..., Answer], **options: Any) -> Answer:
        """Return the answer to a question, or an error in words of columns and options."""
        with in_columns(self.columns, " of all files" if self.is_joined else ""):
            return question(*self.pair, **self.about, **options)


def read(request: Request, *, needs_rows: bool = False) -> Data:
    """Read the files of a request as one problem: rows, or a sketch where that will do."""
    (data,) = read_each(replace(request, each=False), needs_rows=needs_rows).values()
    return data


def read_each(request: Request, *, needs_rows: bool = False) -> dict[str, Data]:
    """Read the files of a request, with each column of probabilities by itself if so asked."""
    with local_files(request) as paths:
        if all(is_sketch(path) for path in paths):
            request.check_speaks_of_no_column()
            return {paths[0].stem: Data((merged(paths),), {})}
        if any(is_sketch(path) for path in paths):
            raise CalibrantError("sketches and tables cannot be read together: sketch the tables")
        with connected() as reader:
            columns = columns_of(reader, paths, request)
            table = Table(reader, paths, columns, request, needs_rows)
            if request.each and not columns.is_multiclass:
                return table.each()
            return {paths[0].stem if columns.is_multiclass else columns.probs[0]: table.whole()}


@dataclass(frozen=True)
class Table:
    """Files that hold rows, and which of their columns are meant."""

    reader: Reader
    paths: Sequence[Path]
    columns: Columns
    request: Request
    needs_rows: bool

    def whole(self) -> Data:
        """Return everything as one problem."""
        rows = self._rows()
        if rows is None:
            return self._sketch(self.columns)
        return self._data(rows, self.columns)

    def each(self) -> dict[str, Data]:
        """Return a problem for each column of probabilities, by its name."""
        columns = self.columns
        names = [str(name) for name in columns.classes or columns.probs]
        alone = [replace(columns, probs=(one,), classes=()) for one in columns.probs]
        rows = self._rows()
        if rows is None:
            return {name: self._sketch(one) for name, one in zip(names, alone, strict=True)}
        return {name: self._data(rows, one) for name, one in zip(names, alone, strict=True)}

    def _rows(self) -> Rows | None:
        """Return the rows, unless there are very many and a sketch will do."""
        any_label = self.request.pos_label is not None or self.columns.is_multiclass
        limit = None if self.columns.is_multiclass or self.needs_rows else MOST_ROWS
        with waiting("reading"):
            rows = Reading(self.columns, any_label, self.request.on_invalid, limit).rows(
                self.reader, self.paths
            )
        if rows is None:
            say(f"there are more than {limit} rows: they are kept as a sketch")
            return None
        rows.faults.warn(int(rows.kept.sum()), stacklevel=1)
        return rows

    def _sketch(self, columns: Columns) -> Data:
        with in_columns(columns):
            made = sketched(self.reader, self.paths, columns, self.request)
        return Data((made,), {}, columns=columns)

    def _data(self, rows: Rows, columns: Columns) -> Data:
        request, values = self.request, rows.columns
        y = values[columns.label]
        about: dict[str, Any] = {}
        if columns.weight is not None:
            about["sample_weight"] = values[columns.weight]
        if request.multiclass is not None:
            about["multiclass"] = request.multiclass
        if request.pos_label is not None or columns.is_multiclass:
            y = as_text(y)
            present = np.unique(y).tolist()
        elif y.dtype.kind == "f" and bool(np.all(y == np.trunc(y))):
            y = y.astype(np.int64)  # as it was written, should anything be said of it
        p = values[columns.probs[0]]
        if request.pos_label is not None:
            about["pos_label"] = label_named(request.pos_label, present)
        if columns.is_multiclass:
            about["labels"] = class_names(columns, present)
            p = np.column_stack([values[name] for name in columns.probs])
        feature = None if columns.along is None else values[columns.along]
        is_joined = len(self.paths) > 1
        return Data((y, p), about, rows.groups, columns, is_joined, feature)
