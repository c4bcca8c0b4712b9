"""Files: the paths that a command line stands for, and a first look into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from calibrant.cli.columns import choose
from calibrant.cli.request import Request
from calibrant.cli.standard_input import spooled
from calibrant.errors import CalibrantError
from calibrant.sources.columns import Columns
from calibrant.sources.files import Reader, paths_of


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


def columns_of(reader: Reader, paths: Sequence[Path], request: Request) -> Columns:
    """Return the columns that are meant, by the first file that has rows."""
    for path in paths:
        with reader.saying(path):
            file = reader.file(path)
            if file is not None:
                return choose(request, file)
    raise CalibrantError(f"{paths[0].name} has no rows")
