"""Files: the paths that a command line stands for, and a first look into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.cli.columns import choose, look_at
from calibrant.cli.request import Request
from calibrant.cli.standard_input import spooled
from calibrant.errors import CalibrantError, MissingDependencyError
from calibrant.sources.columns import Columns
from calibrant.sources.files import paths_of, saying
from calibrant.sources.formats import open_relation

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

# What looks at a file has not asked for any column yet.
_NONE_YET = Columns("", ())


@contextmanager
def local_files(request: Request) -> Iterator[list[Path]]:
    """Give the paths of all files that names and patterns stand for; - is standard input."""
    names = request.files
    if names.count("-") > 1:
        raise CalibrantError("- is standard input, which can be read only once")
    if request.form is not None and "-" not in names:
        raise CalibrantError("--format is for standard input: files tell it by their names")
    with ExitStack() as stack:
        yield [
            stack.enter_context(spooled(request.form)) if name == "-" else Path(name)
            for name in named_files(names)
        ]


def named_files(names: Sequence[str]) -> list[str]:
    """Return the names of files that names and patterns stand for."""
    return [
        file for name in names for file in ([name] if name == "-" else map(str, paths_of(name)))
    ]


def is_sketch(path: Path) -> bool:
    """Tell whether a file is called like a sketch."""
    return path.suffix == ".sketch"


@contextmanager
def connected() -> Iterator[DuckDBPyConnection]:
    """Give a connection to DuckDB, which reads all files."""
    try:
        import duckdb
    except ImportError as problem:
        raise MissingDependencyError(
            "reading files needs duckdb: pip install 'calibrant[files]'"
        ) from problem
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        yield connection


def glance(connection: DuckDBPyConnection, path: Path) -> DuckDBPyRelation | None:
    """Return the rows of a file, or None where it has none."""
    with saying(path):
        return open_relation(connection, path, _NONE_YET, "either")


def columns_of(connection: DuckDBPyConnection, paths: Sequence[Path], request: Request) -> Columns:
    """Return the columns that are meant, by the first file that has rows."""
    for path in paths:
        relation = glance(connection, path)
        if relation is not None:
            return choose(request, look_at(relation))
    raise CalibrantError(f"{paths[0].name} has no rows")
