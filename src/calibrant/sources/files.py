"""Files: what DuckDB reads, file by file.

Each file is read by its own header and its own types: read together, DuckDB would match the
columns of CSV files by position, and round the decimals of one file to the whole numbers of
another.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
from narwhals import Expr

from calibrant.errors import CalibrantError, MissingDependencyError
from calibrant.sketches.cells import Cells
from calibrant.sketches.state import Sketch
from calibrant.sources.columns import Columns, quoted
from calibrant.sources.faults import Faults, rules_of
from calibrant.sources.formats import FORMATS, format_of, open_relation
from calibrant.sources.groups import merged
from calibrant.sources.progress import progress
from calibrant.sources.pushdown import sketch_in_engine
from calibrant.sources.tally import Tally

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

# How many values are read before they are counted: 128 MiB of doubles. Counting has a fixed cost,
# and only a long stretch of rows is worth the compiled pass.
_STRETCH = 1 << 24
# How many rows DuckDB hands over at a time, at most.
_BATCH = 1 << 20


class Table(NamedTuple):
    """An open file with at least one row."""

    path: Path
    frame: nw.LazyFrame[Any]
    columns: Columns


def sketch_files(
    source: str | os.PathLike[str], columns: Columns, where: Expr | None, cells: Cells
) -> tuple[dict[Any, Sketch], Faults]:
    """Return sketches of the rows of all files, by group or class, and the rows not counted."""
    try:
        import duckdb
    except ImportError as problem:
        raise MissingDependencyError(
            "reading files needs duckdb: pip install 'calibrant[files]'"
        ) from problem
    paths = paths_of(source)
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")  # there is one of ours
        tables = _tables(connection, paths, columns, where)
        # Rows come out of DuckDB by way of pyarrow; groups are better told apart inside.
        if columns.by is None and find_spec("pyarrow") is not None:
            return _streamed(tables, cells, is_filtered=where is not None)
        return _pushed_down(tables, columns, cells)


def paths_of(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path or a glob names, in order."""
    text = os.fspath(source)
    path = Path(text)
    if "://" in text:
        raise CalibrantError(
            f"source must be a path or a glob of local files; got {text!r}: open it with duckdb "
            "and give the relation"
        )
    if path.is_dir():
        raise CalibrantError(
            f"source must be a file or a glob; {text!r} is a folder: give for example "
            f"{str(path / '*.parquet')!r}"
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
    connection: DuckDBPyConnection, paths: list[Path], columns: Columns, where: Expr | None
) -> Iterator[Table]:
    """Open the files that have rows, one after the other."""
    classes: tuple[Any, ...] | None = None
    for path in paths:
        with saying(path):
            relation = open_relation(
                connection, path, columns, "word" if columns.is_multiclass else "number"
            )
            if relation is None:
                continue
            frame = nw.from_native(relation)
            bound = columns.bound(frame.collect_schema())
            if classes not in (None, bound.classes):
                raise CalibrantError(
                    f"label column {columns.label!r} must hold text or numbers in all files alike"
                )
            classes = bound.classes
        yield Table(path, frame if where is None else frame.filter(where), bound)


def _streamed(
    tables: Iterator[Table], cells: Cells, *, is_filtered: bool
) -> tuple[dict[Any, Sketch], Faults]:
    """Count the rows as DuckDB reads them."""
    tally = None
    with progress() as show:
        for path, frame, columns in tables:
            tally = tally or Tally(columns, cells)
            tally.begin(f" of {path.name}" + ", counting those kept by where" * is_filtered)
            with saying(path):
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
    tables: Iterator[Table], columns: Columns, cells: Cells
) -> tuple[dict[Any, Sketch], Faults]:
    """Let DuckDB add up the rows of each file, and add up the files."""
    parts, faults = [], Faults(rules_of(columns))
    for path, frame, bound in tables:
        with saying(path):
            sketches, wrong = sketch_in_engine(frame, bound, cells)
        faults.rules = wrong.rules
        faults.merge(wrong, f"in {path.name}")
        parts.append(sketches)
    return merged(parts), faults


@contextmanager
def saying(path: Path) -> Iterator[None]:
    """Say in which file something is wrong, and what, in one sentence."""
    from duckdb import Error

    try:
        yield
    except CalibrantError as problem:
        raise CalibrantError(f"{path}: {problem}") from problem
    # Arrow hands on the errors of DuckDB as its own, which are OSErrors.
    except (Error, OSError) as problem:
        if "Invalid unicode" in str(problem):
            raise CalibrantError(
                f"{path} must be in UTF-8, and is not: save it so, as in Excel's 'CSV UTF-8'"
            ) from problem
        form = FORMATS[format_of(path)]
        raise CalibrantError(f"{path} cannot be read as {form}: {_reason(problem)}") from problem


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
