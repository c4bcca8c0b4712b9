"""The data of a command line, as measures take it.

Up to four million rows are held in memory, so that every question can be answered. More become a
sketch, in one pass and in constant memory: binned errors stay exact, smooth ones within a certified
bound, and what needs single rows is refused or left out. Where several classes, or the command,
need the rows, all are held. A file that ``calibrant sketch`` wrote is taken as it is; several are
merged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibrant._base import AnyArray, draft_of
from calibrant.cli.inputs import (
    as_text,
    chosen_columns,
    classes_of,
    expanded,
    is_sketch,
    label_named,
    label_text,
    local_files,
)
from calibrant.cli.messages import in_columns, say
from calibrant.cli.options import Request
from calibrant.data.labels import check_two_labels, natural_outcomes
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.io import sketching
from calibrant.io.columns import Columns, quoted
from calibrant.io.files import Reader, Rows, connected, read_rows, sketch_files
from calibrant.io.formats import FORMATS, format_of, kind_of
from calibrant.io.frames import key_of
from calibrant.progress import shown

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

MOST_ROWS = 4_000_000
# Where no prediction is larger, it was no percentage before it was divided by 100.
_SUSPICIOUS = 0.01
_ADDED = "calibrant_recalibrated"
# The maximum number of distinct labels that are listed.
_MOST_LABELS = 10_000
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Data:
    """The data of one model."""

    pair: tuple[Any, ...]  # outcomes and predictions, or one sketch, or sketches by group
    # Further arguments that describe rows: weights, clusters, classes, the positive label.
    options: Mapping[str, Any]
    # Groups, feature: the group and the feature of each row, where they were asked for.
    groups: Any = None
    columns: Columns | None = None  # the columns of the files; None for a sketch
    is_joined: bool = False  # whether rows come from several files
    feature: Any = None

    def call(self, function: Callable[..., Result], **options: Any) -> Result:
        """Return the result of a function of the data; its errors name columns and options."""
        with in_columns(self.columns, " of all files" if self.is_joined else ""):
            return function(*self.pair, **self.options, **options)


def read(request: Request, *, needs_rows: bool = False) -> dict[str, Data]:
    """Read the models of a request by name, as rows, or as sketches where these are enough."""
    if request.probs and request.classes:
        raise CalibrantError(
            "--prob names models, and --classes the classes of one model: leave out one of them"
        )
    with local_files(request) as paths:
        if all(map(is_sketch, paths)):
            request.check_names_no_column()
            return {paths[0].stem: Data((merged(paths),), {})}
        if any(map(is_sketch, paths)):
            raise CalibrantError("sketches and tables cannot be read together: sketch the tables")
        with connected() as reader:
            return Table(reader, paths, request, needs_rows).models()


@contextmanager
def open_table(request: Request, no_sketch: str) -> Iterator[Table]:
    """Give the files of a request as a table, or say `no_sketch` where one is a sketch."""
    with local_files(request) as paths:
        if any(map(is_sketch, paths)):
            raise CalibrantError(no_sketch)
        with connected() as reader:
            yield Table(reader, paths, request, needs_rows=True)


def merged(paths: Sequence[Path]) -> Sketch:
    """Return the sketches that files hold as one."""
    first, *others = map(Sketch.load, paths)
    return sum(others, start=first)


@dataclass(frozen=True)
class Table:
    """Open files that hold rows."""

    reader: Reader
    paths: Sequence[Path]
    request: Request
    needs_rows: bool

    @cached_property
    def columns(self) -> Columns:
        """The columns that are meant."""
        return chosen_columns(self.reader, self.paths, self.request)

    def each(self) -> dict[str, Columns]:
        """Return the columns of each model by its name, that of classes being the file's."""
        columns = self.columns
        if columns.is_multiclass:
            return {self.paths[0].stem: columns}
        names = [str(name) for name in columns.classes or columns.probs]
        alone = (replace(columns, probs=(one,), classes=()) for one in columns.probs)
        return dict(zip(names, alone, strict=True))

    def models(self) -> dict[str, Data]:
        """Return the models by name."""
        rows, each = self._rows(), self.each()
        if rows is not None:
            return {name: self._data(rows, one) for name, one in each.items()}
        return {name: self._sketched(one) for name, one in each.items()}

    def sketches(self, columns: Columns, n_cells: int | None = None) -> Sketch | dict[Any, Sketch]:
        """Return a sketch of all rows, or sketches by group or class."""
        prob: Any = columns.probs[0]
        positive: list[Any] | None = None
        if columns.is_multiclass:
            labels = self._labels(columns)
            prob = dict(zip(_classes(columns, labels), columns.probs, strict=True))
        elif self.request.pos_label is not None:
            labels = self._labels(columns)
            name = label_named(self.request.pos_label, labels)
            check_two_labels(sorted(labels), name)
            positive = [labels.get(name, name)]
        elif self._holds_text(columns.label):
            labels = self._labels(columns)
            natural = natural_outcomes(labels)
            if natural is not None:
                words = [label for label, yes in zip(labels, natural, strict=True) if yes]
                positive = words or ["yes"]  # which does not occur
        asked = Columns.read(columns.label, prob, columns.weight, columns.by)
        asked = replace(asked, is_percent=columns.is_percent)
        read = partial(sketch_files, self.reader, self.paths, asked, positive=positive)
        on_invalid = self.request.on_invalid or "raise"
        return sketching.sketched(read, asked, n_cells, "probability", on_invalid)

    def extended(self, given: Sequence[str]) -> tuple[DuckDBPyRelation, dict[str, str]]:
        """Return the table to write, and the new column by each column of probabilities."""
        path, *others = self.paths
        if others:
            raise CalibrantError("--out takes one table at a time")
        with self.reader.errors_in(path):
            if FORMATS[format_of(path)].startswith("JSON"):
                raise CalibrantError("--out takes tables in CSV or Parquet")
            file = self.reader.file(path)
            if file is None:
                raise CalibrantError("it has no rows")
            whole = file.rows  # columns of text files as text
            _, probs = expanded(given, whole.columns, "--prob")
            Columns(probs[0], probs).check_known(dict.fromkeys(whole.columns))
            made = {prob: f"{prob}_recalibrated" for prob in probs}
            for name in made.values():
                if name in whole.columns:
                    raise CalibrantError(f"there is a column {name!r} already")
        return whole, made

    def write_recalibrated(
        self, given: Sequence[str], predict: Callable[[AnyArray], AnyArray], out: Path
    ) -> None:
        """Write the table with one more column for each column of probabilities, and report it.

        All other columns pass from file to file, those of text files as they are written.
        """
        reader, paths = self.reader, self.paths
        whole, made = self.extended(given)
        probs = tuple(made)
        columns = Columns(probs[0], probs, is_percent=self.request.is_percent)
        rows = read_rows(reader, paths, columns, any_label=True, on_invalid=self.request.on_invalid)
        assert rows is not None  # there is no limit
        p = [rows.columns[prob] for prob in probs]
        values = np.full((len(rows.is_valid), len(probs)), np.nan)
        recalibrated = predict(np.column_stack(p) if len(p) > 1 else p[0])
        unit = 100 if columns.is_percent else 1
        values[rows.is_valid] = unit * recalibrated.reshape(-1, len(probs))
        added = _with_columns(
            reader.connection, whole, dict(zip(made.values(), values.T, strict=True))
        )
        _write(added, out, reader, paths[0])
        n_empty = int((~rows.is_valid).sum())
        empty = f", empty in {n_empty:,} of its rows" * bool(n_empty)
        names = ", ".join(map(repr, made.values()))
        say(f"wrote {out}, with the column{'s' * (len(made) > 1)} {names}{empty}")

    def _rows(self) -> Rows | None:
        """Return the rows, unless there are very many and a sketch is enough."""
        request, columns = self.request, self.columns
        is_needed = self.needs_rows or bool(columns.is_multiclass or columns.keys)
        limit = None if is_needed else MOST_ROWS
        with shown("reading"), in_columns(columns):
            rows = read_rows(
                self.reader,
                self.paths,
                columns,
                any_label=request.pos_label is not None or columns.is_multiclass,
                on_invalid=request.on_invalid,
                limit=limit,
            )
        if rows is None:
            say(f"there are more than {limit:,} rows: they are kept as a sketch")
        else:
            rows.invalid.warn(int(rows.is_valid.sum()), stacklevel=1)
            largest = max(rows.columns[name].max() for name in columns.probs)
            if columns.is_percent and largest <= _SUSPICIOUS:
                say(f"--percent: no prediction is above {100 * _SUSPICIOUS:g}%; is it needed?")
        return rows

    def _sketched(self, columns: Columns) -> Data:
        with in_columns(columns):
            return Data((self.sketches(columns),), {}, columns=columns)

    def _holds_text(self, name: str) -> bool:
        """Tell whether a column of the first file that has rows holds text."""
        files = (self.reader.file(path) for path in self.paths)
        types = next(file.all_types for file in files if file is not None)
        return kind_of(types.get(name, "")) == "text"

    def _labels(self, columns: Columns) -> dict[str, Any]:
        """Return the labels that occur, by their text."""
        column = quoted(columns.label)
        found = []
        for path in self.paths:
            with self.reader.errors_in(path):
                opened = self.reader.open(path, columns, "word")
                if opened is not None:
                    known = opened.relation.filter(f"{column} IS NOT NULL").project(column)
                    found += known.distinct().limit(_MOST_LABELS).fetchall()
        return {label_text(value): value for (value,) in found}

    def _data(self, rows: Rows, columns: Columns) -> Data:
        request, values = self.request, rows.columns
        y, p = values[columns.label], values[columns.probs[0]]
        options: dict[str, Any] = {}
        if columns.weight is not None:
            options["sample_weight"] = values[columns.weight]
        if request.clusters is not None:
            options["clusters"] = rows.labels[request.clusters]
        if request.multiclass is not None:
            options["multiclass"] = request.multiclass
        if request.pos_label is not None or columns.is_multiclass:
            y = as_text(y)
            present = np.unique(y).tolist()
            if request.pos_label is not None:
                options["pos_label"] = label_named(request.pos_label, present)
            if columns.is_multiclass:
                options["labels"] = classes_of(columns, present)
                p = np.column_stack([values[name] for name in columns.probs])
        elif y.dtype.kind == "f" and bool(np.all(y == np.trunc(y))):
            y = y.astype(np.int64)  # so that messages show labels as they are written
        feature = None if columns.along is None else values[columns.along]
        groups = self._groups(rows)
        return Data((y, p), options, groups, columns, len(self.paths) > 1, feature)

    def _groups(self, rows: Rows) -> Any:
        """Return the groups of rows, those of several columns by name."""
        groups = {name: rows.labels[name] for name in self.request.by}
        return groups if len(groups) > 1 else next(iter(groups.values()), None)


def _classes(columns: Columns, labels: Mapping[str, Any]) -> list[Any]:
    """Return the class of each column of probabilities, of the type of the labels."""
    names = classes_of(columns, labels)
    if not all(isinstance(value, int | float) for value in labels.values()):
        return names
    try:
        return [key_of(float(name)) for name in names]
    except ValueError:
        return names


def _with_columns(
    connection: DuckDBPyConnection, table: DuckDBPyRelation, columns: dict[str, AnyArray]
) -> DuckDBPyRelation:
    """Return a table with further columns, nan as null; rows keep their order."""
    short = {f"c{i}": np.ascontiguousarray(values) for i, values in enumerate(columns.values())}
    connection.register(_ADDED, short)
    named = [
        f"CASE WHEN NOT isnan(m.{column}) THEN m.{column} END AS {quoted(name)}"
        for column, name in zip(short, columns, strict=True)
    ]
    both = table.query("t", f"SELECT t.*, {', '.join(named)} FROM t POSITIONAL JOIN {_ADDED} AS m")
    assert both is not None  # it is a query
    return both


def _write(table: DuckDBPyRelation, out: Path, reader: Reader, source: Path) -> None:
    """Write a table, whole or not at all."""
    from duckdb import Error

    with draft_of(out) as draft:
        try:
            if out.suffix.lower() != ".parquet":
                table.write_csv(str(draft))
            else:
                table.write_parquet(str(draft))
        except Error as problem:
            # Where writing fails, the message of DuckDB names the file, and then the reason.
            reason = re.search(rf'{draft.name}\W*: ([^"\n]+)', str(problem))
            if reason is None:
                with reader.errors_in(source):
                    raise
            raise OSError(f"{out}: {reason[1]}") from problem
