"""Files read by DuckDB, into memory or into sketches.

Each file is read by its own header and its own types: read together, DuckDB would match the
columns of CSV files by position, and round the decimals of one file to the integers of another.
A :class:`Reader` opens each file once, whatever is asked of it.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from narwhals import Expr

from calibrant._base import AnyArray
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import Cells
from calibrant.errors import CalibrantError, required
from calibrant.io.columns import (
    Columns,
    InvalidRows,
    Mask,
    OnInvalid,
    in_words,
    quoted,
    rules_of,
)
from calibrant.io.formats import (
    FORMATS,
    GroupForm,
    LabelKind,
    OpenFile,
    check_unique,
    format_of,
    is_integer,
    kind_of,
    opened,
)
from calibrant.io.frames import (
    SketchBuilder,
    comparable,
    key_of,
    keys_of,
    merged,
    renamed,
    sketch_in_engine,
)
from calibrant.progress import steps

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

# The number of values read before they are counted: 128 MiB of doubles. Counting has a fixed cost,
# and only many rows are worth the compiled pass.
_CHUNK_VALUES = 1 << 24
# The column of groups as they are written, beside the one of their values.
_GROUP = "calibrant: group "
# How lines of advice in the messages of DuckDB begin.
_ADVICE = ("Possible", "* ", "LINE ", "Column ", "The search space")


class Opened(NamedTuple):
    """The columns of a file that are asked for, and how the labels in each of them are written."""

    relation: DuckDBPyRelation
    forms: Mapping[str, GroupForm]


class Reader:
    """Files that DuckDB reads, each opened once."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        # It is asked how much is done, and prints nothing itself.
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        connection.execute("SET progress_bar_time = 0")
        self.connection = connection
        self._files: dict[Path, OpenFile | None] = {}
        self._asked: dict[Path, tuple[Columns, LabelKind]] = {}
        self._is_from_folder: dict[str, bool] = {}

    def steps(self, paths: Sequence[Path]) -> Iterator[Path]:
        """Yield files, while the progress of the query that runs is recorded."""
        return steps(paths, lambda: self.connection.query_progress() / 100)

    def file(self, path: Path) -> OpenFile | None:
        """Return a file, or None where it has no rows."""
        if path not in self._files:
            self._files[path] = opened(self.connection, path)
        return self._files[path]

    def open(
        self, path: Path, columns: Columns, label: LabelKind, where: Expr | None = None
    ) -> Opened | None:
        """Return the columns that are asked for, or None where a file has no rows."""
        file = self.file(path)
        if file is None:
            return None
        check_unique(file, columns)
        columns.check_known(file.all_types)
        for name in columns.names:
            is_from_folder = name in file.folders
            if self._is_from_folder.setdefault(name, is_from_folder) != is_from_folder:
                raise CalibrantError(
                    f"column {name!r} must be in all files or in the names of all folders; here it "
                    f"is in the name of {'a folder' if is_from_folder else 'none'}"
                )
        self._asked[path] = columns, label
        rows, asked = file.asked(columns, label)
        if columns.is_percent:
            asked |= {name: f"({asked[name]}) / 100" for name in columns.probs}
        groups = [name for name in columns.groups if name not in file.folders]
        if where is not None:
            # It sees all columns as values; groups are kept as written beside.
            seen = {name: file.sql(name) for name in file.all_types}
            seen |= {name: sql for name, sql in asked.items() if name not in groups}
            seen |= {_GROUP + name: asked[name] for name in groups}
            rows = nw.from_native(_selected(rows, seen)).filter(where).to_native()
            asked = {name: quoted(_GROUP * (name in groups) + name) for name in asked}
        forms = {name: file.form if name in groups else "values" for name in columns.labels}
        return Opened(_selected(rows, asked), forms)

    @contextmanager
    def errors_in(self, path: Path) -> Iterator[None]:
        """Name the file in errors, and explain those of DuckDB in one sentence."""
        from duckdb import Error

        try:
            yield
        except CalibrantError as problem:
            problem.source = str(path)
            raise
        # Arrow raises the errors of DuckDB as its own, which are OSErrors.
        except (Error, OSError) as problem:
            explained = self._explained(path, problem)
            explained.source = str(path)
            raise explained from problem

    def _explained(self, path: Path, problem: BaseException) -> CalibrantError:
        if "Invalid unicode" in str(problem):
            return CalibrantError(
                "the file must be in UTF-8, and is not",
                hint="save it so, as in Excel's 'CSV UTF-8'",
            )
        file = self._files.get(path)
        if file is not None and path in self._asked and "Could not convert" in str(problem):
            explained = file.explained(*self._asked[path])
            if explained is not None:
                return explained
        # The message of DuckDB, without its category and advice, on one line.
        lines = map(str.strip, str(problem).splitlines())
        message = " ".join(takewhile(lambda one: one and not one.startswith(_ADVICE), lines))
        message = re.sub(r"^[^:]*Error: ", "", message).partition(" Try setting ")[0]
        reason = message[:240].rstrip(". ").replace(str(path), path.name)
        return CalibrantError(f"cannot be read as {FORMATS[format_of(path)]}: {reason}")


@contextmanager
def connected() -> Iterator[Reader]:
    """Give a reader of files."""
    with required("reading files", "files", "duckdb"):
        import duckdb
    with duckdb.connect() as connection:
        yield Reader(connection)


def paths_of(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path or a glob names, in order."""
    text = os.fspath(source)
    path = Path(text)
    if "://" in text:
        rule = "must be a path or a glob of local files"
        raise CalibrantError(rule, argument="source", value=text, hint="download it first")
    if path.is_dir():
        raise CalibrantError(
            "must be a file or a glob",
            argument="source",
            value=text,
            found="the folder {value}",
            hint="give for example {example!r}",
            example=str(path / "*.parquet"),
        )
    if path.exists():
        return [path]
    paths = [Path(found) for found in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207  # absolute, too
    paths = [found for found in paths if found.is_file()]
    if not paths:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        raise CalibrantError(f"{what} {text!r}")
    return paths


def _selected(rows: DuckDBPyRelation, columns: Mapping[str, str]) -> DuckDBPyRelation:
    return rows.project(", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items()))


def _other_type(role: str, name: str) -> CalibrantError:
    return CalibrantError(
        "must hold the same type in all files", argument=role, **in_words(role, name)
    )


# Rows in memory.


class Rows(NamedTuple):
    """The columns of the valid rows, which of all rows these are, the others, and labels by column.

    Labels are those of groups and clusters.
    """

    columns: dict[str, AnyArray]
    is_valid: Mask
    invalid: InvalidRows
    labels: dict[str, list[Any]]


def read_rows(
    reader: Reader,
    paths: Sequence[Path],
    columns: Columns,
    *,
    any_label: bool,
    on_invalid: OnInvalid | None,
    limit: int | None = None,
) -> Rows | None:
    """Return the valid rows of all files, or None where there are more rows than `limit`.

    Text is accepted in the column of labels. With `any_label` labels may be anything; otherwise
    those out of range are dropped if asked for, or left to the measure: they may be classes.
    """
    drops_labels = on_invalid == "drop" and not any_label
    rules = [
        rule._replace(classes=())
        for rule in rules_of(columns)
        if drops_labels or (rule.role, rule.kind) != ("label", "outside")
    ]
    invalid, n_rows = InvalidRows(rules), 0
    parts: list[dict[str, AnyArray]] = []
    masks: list[Mask] = []
    forms: list[Mapping[str, GroupForm]] = []
    for path in reader.steps(paths):
        with reader.errors_in(path):
            found = reader.open(path, columns, "word" if any_label else "either")
            if found is None:
                continue
            relation, form = found
            schema = nw.from_native(relation).collect_schema()
            holds_text = schema.get(columns.label) in (nw.String, nw.Enum)
            replace(columns, is_multiclass=holds_text).bound(schema)
            if limit is not None:
                relation = relation.limit(limit + 1 - n_rows)
            part = _fetched(relation, columns)
            valid = _valid(part, invalid, path.name)
        n_rows += len(valid)
        if limit is not None and n_rows > limit:
            return None
        parts.append(part if valid.all() else {name: one[valid] for name, one in part.items()})
        masks.append(valid)
        forms.append(form)
    n_valid = n_rows - invalid.total
    invalid.refuse(n_valid, on_invalid)
    if not n_valid:
        raise CalibrantError(f"{paths[0].name} has no valid rows")
    labels = {
        name: _labels([part[name] for part in parts], [form[name] for form in forms])
        for name in columns.labels
    }
    return Rows(_concatenated(parts, columns), np.concatenate(masks), invalid, labels)


def _valid(part: dict[str, AnyArray], invalid: InvalidRows, within: str) -> Mask:
    """Return which rows of a file are valid, and record the others."""
    values = [part[rule.column] for rule in invalid.rules]
    for i, column in enumerate(values):
        if column.dtype.kind == "O":  # of text, rules check only whether it is missing
            values[i] = np.where(column == None, np.nan, 0.0)  # noqa: E711  # element by element
    valid = invalid.check(
        values, lambda name, row: part[name][row : row + 1].tolist()[0], within=within
    )
    return np.ones(len(values[0]), dtype=bool) if valid is None else valid


def _fetched(relation: DuckDBPyRelation, columns: Columns) -> dict[str, AnyArray]:
    """Return columns as numbers (nan where null), truth values, or text (None where null).

    A feature may also hold dates, which elsewhere are text.
    """
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    kinds = {name: kind_of(types[name]) for name in columns.names}
    casts = {"number": "DOUBLE", "boolean": "BOOLEAN"}
    targets = {name: casts.get(kind, "VARCHAR") for name, kind in kinds.items()}
    if columns.along is not None and kinds[columns.along] in ("date", "boolean"):
        targets[columns.along] = "TIMESTAMP" if kinds[columns.along] == "date" else "VARCHAR"
    # Groups that are integers or truth values stay exact, written as in JSON.
    exact = [name for name in columns.groups if types[name] == "BOOLEAN" or is_integer(types[name])]
    targets |= dict.fromkeys(exact, "VARCHAR")
    asked = []
    for i, name in enumerate(columns.names):
        # Files do not keep the zone of times: all are in UTC.
        zone = " AT TIME ZONE 'UTC'" * (types[name] == "TIMESTAMP WITH TIME ZONE")
        asked.append(f"CAST({quoted(name)}{zone} AS {targets[name]}) AS c{i}")
    found = relation.project(", ".join(asked)).fetchnumpy()
    part = {name: _filled(found[f"c{i}"]) for i, name in enumerate(columns.names)}
    for name in exact:
        written = part[name].tolist()
        keys = keys_of(set(written), "json")
        part[name] = np.array([keys[value] for value in written], dtype=object)
    return part


def _filled(values: Any) -> AnyArray:
    """Return an array without a mask: nan for a missing number, NaT for a date, None for text."""
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    kinds = {"O": (object, None), "M": (values.dtype, np.datetime64("NaT"))}
    dtype, missing = kinds.get(values.dtype.kind, (np.float64, np.nan))
    filled: AnyArray = np.array(values.data, dtype=dtype)
    filled[np.ma.getmaskarray(values)] = missing
    return filled


def _concatenated(parts: Sequence[dict[str, AnyArray]], columns: Columns) -> dict[str, AnyArray]:
    if len(parts) == 1:
        return parts[0]
    for role, name in (("label", columns.label), ("along", columns.along)):
        kinds = set() if name is None else {part[name].dtype.kind for part in parts}
        if name is not None and len(kinds) > 1 and kinds & {"O", "M"}:
            raise _other_type(role, name)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _labels(parts: Sequence[AnyArray], forms: Sequence[GroupForm]) -> list[Any]:
    """Return the label of each row, None where it has none."""
    written: dict[GroupForm, set[Any]] = {form: set() for form in forms}
    values: list[list[Any]] = []
    for part, form in zip(parts, forms, strict=True):
        some = part
        if part.dtype.kind != "O":
            # Integers for whole numbers, None for nan.
            present, inverse = np.unique(part, return_inverse=True)
            some = np.array([*map(key_of, present)], dtype=object)[inverse.reshape(len(part))]
        values.append(list(some))
        written[form].update(values[-1])
    keys = {form: keys_of(some, form) for form, some in written.items()}
    found = [keys[form][value] for some, form in zip(values, forms, strict=True) for value in some]
    same = comparable({key: key for key in set(found)})
    return [same[key] for key in found]


# Sketches.


# An open file with at least one row.
_Table = tuple[Path, nw.LazyFrame[Any], Columns, GroupForm]


def sketch_files(
    reader: Reader,
    paths: Sequence[Path],
    columns: Columns,
    cells: Cells,
    where: Expr | None = None,
    positive: Sequence[Any] | None = None,
) -> tuple[dict[Any, Sketch], InvalidRows]:
    """Return sketches of the rows of all files, by group or class, and the rows left out.

    With `positive`, the outcome of a row is whether its label is one of these.
    """
    tables = _tables(reader, paths, columns, where, positive)
    # Rows leave DuckDB through pyarrow; groups are summed faster inside.
    if columns.by is None and find_spec("pyarrow") is not None:
        return _streamed(reader, tables, cells, is_filtered=where is not None)
    return _pushed_down(reader, tables, columns, cells)


def _tables(
    reader: Reader,
    paths: Sequence[Path],
    columns: Columns,
    where: Expr | None,
    positive: Sequence[Any] | None,
) -> Iterator[_Table]:
    """Open the files that have rows, one after the other."""
    import duckdb

    is_word = columns.is_multiclass or positive is not None
    classes: tuple[Any, ...] | None = None
    for path in reader.steps(paths):
        with reader.errors_in(path):
            found = reader.open(path, columns, "word" if is_word else "number", where)
            if found is None:
                continue
            relation, form = found
            if positive is not None:
                label = columns.label
                labels = [duckdb.ConstantExpression(one) for one in positive]
                is_positive = duckdb.ColumnExpression(label).isin(*labels)
                others = duckdb.StarExpression(exclude=[label])
                relation = relation.select(others, is_positive.alias(label))
            frame = nw.from_native(relation)
            bound = columns.bound(frame.collect_schema())
            if classes not in (None, bound.classes):
                raise _other_type("label", columns.label)
            classes = bound.classes
        yield path, frame, bound, form.get(columns.by or "", "values")


def _streamed(
    reader: Reader, tables: Iterator[_Table], cells: Cells, *, is_filtered: bool
) -> tuple[dict[Any, Sketch], InvalidRows]:
    """Count the rows as DuckDB reads them."""
    builder = None
    for path, frame, columns, _ in tables:
        builder = builder or SketchBuilder(columns, cells)
        builder.begin(path.name + ", counting those kept by where" * is_filtered)
        with reader.errors_in(path):
            for chunk in _chunks(frame.to_native(), columns.names):
                builder.update(chunk)
    return ({}, InvalidRows(())) if builder is None else (builder.sketches, builder.invalid)


def _chunks(relation: DuckDBPyRelation, names: list[str]) -> Iterator[nw.DataFrame[Any]]:
    """Yield the rows in chunks large enough to be worth counting."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    relation = relation.project(", ".join(map(quoted, names)))
    # Relations have attributes for their columns, too: the class does not.
    name = "to_arrow_reader" if hasattr(type(relation), "to_arrow_reader") else "fetch_arrow_reader"
    for batch in getattr(relation, name)(_CHUNK_VALUES // len(names)):
        yield nw.from_native(pa.Table.from_batches([batch]), eager_only=True)


def _pushed_down(
    reader: Reader, tables: Iterator[_Table], columns: Columns, cells: Cells
) -> tuple[dict[Any, Sketch], InvalidRows]:
    """Let DuckDB sum the rows of each file, and merge the files."""
    parts: dict[GroupForm, list[dict[Any, Sketch]]] = {"values": [], "text": [], "json": []}
    invalid = InvalidRows(rules_of(columns))
    for path, frame, bound, groups in tables:
        with reader.errors_in(path):
            sketches, of_file = sketch_in_engine(frame, bound, cells)
        invalid.rules = of_file.rules
        invalid.merge(of_file, path.name)
        parts[groups].append(sketches)
    total = {form: merged(some) for form, some in parts.items()}
    return merged(renamed(one, keys_of(one, form)) for form, one in total.items()), invalid
