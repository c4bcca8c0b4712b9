"""Progress: a line on a terminal that tells how far reading has come."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
from narwhals import Expr

from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import Cells
from calibrant.errors import CalibrantError, MissingDependencyError
from calibrant.io.columns import Columns, in_words, quoted
from calibrant.io.formats import (
    FORMATS,
    GroupForm,
    LabelKind,
    OpenFile,
    check_unique,
    format_of,
    opened,
)
from calibrant.io.frames import Tally, keys_of, merged, renamed, sketch_in_engine
from calibrant.io.invalid_rows import Faults, rules_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


@contextmanager
def progress() -> Iterator[Callable[[str, int], None]]:
    """Give a function to call with the name of a file and the number of its rows just read."""
    if sys.stderr is None or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda name, n_rows: None
        return
    from rich.console import Console  # type: ignore[import-not-found, unused-ignore]
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # How many rows files hold is known only once they are read: the bar just moves.
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rows"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("reading", total=None)
        yield lambda name, n_rows: bar.update(task, description=f"reading {name}", advance=n_rows)


# Files: what DuckDB reads, file by file.
#
# Each file is read by its own header and its own types: read together, DuckDB would match the
# columns of CSV files by position, and round the decimals of one file to the whole numbers of
# another.

# How many values are read before they are counted: 128 MiB of doubles. Counting has a fixed cost,
# and only a long stretch of rows is worth the compiled pass.
_STRETCH = 1 << 24
# How many rows DuckDB hands over at a time, at most.
_BATCH = 1 << 20
# What groups are called as they are written, beside what they look like.
_GROUP = "calibrant: group"


class Opened(NamedTuple):
    """The columns of a file that are asked for, and how its groups are written."""

    relation: DuckDBPyRelation
    groups: GroupForm


class Reader:
    """Files that DuckDB reads, each of them looked at once."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        connection.execute("SET enable_progress_bar = false")  # there is one of ours
        self.connection = connection
        self._files: dict[Path, OpenFile | None] = {}
        self._asked: dict[Path, tuple[Columns, LabelKind]] = {}
        self._is_from_folder: dict[str, bool] = {}

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
        self._check_origin(file, columns)
        self._asked[path] = columns, label
        rows, asked = file.asked(columns, label)
        group = None if columns.groups in file.folders else columns.groups
        if where is not None:
            rows = _filtered(file, rows, asked, group, where)
            asked = {name: quoted(_GROUP if name == group else name) for name in asked}
        return Opened(_selected(rows, asked), "values" if group is None else file.form)

    @contextmanager
    def saying(self, path: Path) -> Iterator[None]:
        """Say in which file something is wrong, and what, in one sentence."""
        from duckdb import Error

        try:
            yield
        except CalibrantError as problem:
            problem.source = str(path)
            raise
        # Arrow hands on the errors of DuckDB as its own, which are OSErrors.
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
        reason = _reason(problem).replace(str(path), path.name)
        return CalibrantError(f"cannot be read as {FORMATS[format_of(path)]}: {reason}")

    def _check_origin(self, file: OpenFile, columns: Columns) -> None:
        """Refuse a column that is in some files and in the names of the folders of others."""
        for name in columns.names:
            is_from_folder = name in file.folders
            if self._is_from_folder.setdefault(name, is_from_folder) != is_from_folder:
                raise CalibrantError(
                    f"column {name!r} must be in all files or in the names of all folders; here it "
                    f"is in the name of {'a folder' if is_from_folder else 'none'}"
                )


@contextmanager
def connected() -> Iterator[Reader]:
    """Give a reader of files."""
    try:
        import duckdb
    except ImportError as problem:
        raise MissingDependencyError(
            "reading files needs duckdb", hint="pip install 'calibrant[files]'"
        ) from problem
    with duckdb.connect() as connection:
        yield Reader(connection)


class Table(NamedTuple):
    """An open file with at least one row."""

    path: Path
    frame: nw.LazyFrame[Any]
    columns: Columns
    groups: GroupForm


def sketch_files(
    reader: Reader,
    paths: Sequence[Path],
    columns: Columns,
    cells: Cells,
    where: Expr | None = None,
    positive: Any = None,
) -> tuple[dict[Any, Sketch], Faults]:
    """Return sketches of the rows of all files, by group or class, and the rows not counted.

    With `positive`, outcomes are whether the label is that one.
    """
    tables = _tables(reader, paths, columns, where, positive)
    # Rows come out of DuckDB by way of pyarrow; groups are better told apart inside.
    if columns.by is None and find_spec("pyarrow") is not None:
        return _streamed(reader, tables, cells, is_filtered=where is not None)
    return _pushed_down(reader, tables, columns, cells)


def paths_of(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path or a glob names, in order."""
    text = os.fspath(source)
    path = Path(text)
    if "://" in text:
        raise CalibrantError(
            "must be a path or a glob of local files",
            argument="source",
            value=text,
            hint="download it first",
        )
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


def _tables(
    reader: Reader, paths: Sequence[Path], columns: Columns, where: Expr | None, positive: Any
) -> Iterator[Table]:
    """Open the files that have rows, one after the other."""
    is_word = columns.is_multiclass or positive is not None
    classes: tuple[Any, ...] | None = None
    for path in paths:
        with reader.saying(path):
            found = reader.open(path, columns, "word" if is_word else "number", where)
            if found is None:
                continue
            relation = found.relation
            if positive is not None:
                relation = _compared(relation, columns.label, positive)
            frame = nw.from_native(relation)
            bound = columns.bound(frame.collect_schema())
            if classes not in (None, bound.classes):
                raise CalibrantError(
                    "must hold the same type in all files",
                    argument="label",
                    **in_words("label", columns.label),
                )
            classes = bound.classes
        yield Table(path, frame, bound, found.groups)


def _filtered(
    file: OpenFile,
    rows: DuckDBPyRelation,
    asked: Mapping[str, str],
    group: str | None,
    where: Expr,
) -> DuckDBPyRelation:
    """Return the rows that are meant, with all columns as they look, and groups as written."""
    seen = {
        name: asked[name] if name in asked and name != group else file.sql(name)
        for name in file.all_types
    }
    if group is not None:
        seen[_GROUP] = asked[group]
    relation: DuckDBPyRelation = nw.from_native(_selected(rows, seen)).filter(where).to_native()
    return relation


def _selected(rows: DuckDBPyRelation, columns: Mapping[str, str]) -> DuckDBPyRelation:
    return rows.project(", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items()))


def _compared(relation: DuckDBPyRelation, label: str, positive: Any) -> DuckDBPyRelation:
    """Return rows whose outcomes are whether the label is the positive one."""
    from duckdb import ColumnExpression, ConstantExpression, StarExpression

    is_positive = ColumnExpression(label) == ConstantExpression(positive)
    others = StarExpression(exclude=[label])
    return relation.select(others, is_positive.alias(label))


def _streamed(
    reader: Reader, tables: Iterator[Table], cells: Cells, *, is_filtered: bool
) -> tuple[dict[Any, Sketch], Faults]:
    """Count the rows as DuckDB reads them."""
    tally = None
    with progress() as show:
        for path, frame, columns, _ in tables:
            tally = tally or Tally(columns, cells)
            tally.begin(path.name + ", counting those kept by where" * is_filtered)
            with reader.saying(path):
                for stretch in _stretches(frame.to_native(), columns.names):
                    tally.take(stretch)
                    show(path.name, len(stretch))
    return ({}, Faults(())) if tally is None else (tally.sketches, tally.faults)


def _stretches(relation: DuckDBPyRelation, names: list[str]) -> Iterator[nw.DataFrame[Any]]:
    """Yield the rows in stretches long enough to be worth counting."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    relation = relation.project(", ".join(map(quoted, names)))
    # Relations have attributes for their columns, too: the class does not.
    name = "to_arrow_reader" if hasattr(type(relation), "to_arrow_reader") else "fetch_arrow_reader"
    batches: list[Any] = []
    n_rows = 0
    for batch in getattr(relation, name)(_BATCH):
        batches.append(batch)
        n_rows += len(batch)
        if n_rows * len(names) >= _STRETCH:
            yield nw.from_native(pa.Table.from_batches(batches), eager_only=True)
            batches, n_rows = [], 0
    if batches:
        yield nw.from_native(pa.Table.from_batches(batches), eager_only=True)


def _pushed_down(
    reader: Reader, tables: Iterator[Table], columns: Columns, cells: Cells
) -> tuple[dict[Any, Sketch], Faults]:
    """Let DuckDB add up the rows of each file, and add up the files."""
    parts: dict[GroupForm, list[dict[Any, Sketch]]] = {"values": [], "text": [], "json": []}
    faults = Faults(rules_of(columns))
    for path, frame, bound, groups in tables:
        with reader.saying(path):
            sketches, wrong = sketch_in_engine(frame, bound, cells)
        faults.rules = wrong.rules
        faults.merge(wrong, path.name)
        parts[groups].append(sketches)
    total = {form: merged(some) for form, some in parts.items()}
    return merged(renamed(one, keys_of(one, form)) for form, one in total.items()), faults


def _reason(problem: BaseException) -> str:
    """Return what DuckDB says, without its category and advice, on one line."""
    lines = [line.strip() for line in str(problem).splitlines()]
    said = []
    for line in lines:
        if line.startswith(("Possible", "* ", "LINE ", "Column ", "The search space")) or not line:
            break
        said.append(line)
    category, colon, rest = " ".join(said).partition(": ")
    words = rest if colon and category.endswith("Error") else " ".join(said)
    return words[:240].rstrip(". ")
