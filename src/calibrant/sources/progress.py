"""Progress: a line on a terminal that tells how far reading has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def progress() -> Iterator[Callable[[str, int], None]]:
    """Give a function to call with the name of a file and the number of its rows just read."""
    if sys.stderr is None or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda name, n_rows: None
        return
    from rich.console import Console  # type: ignore[import-not-found, unused-ignore]
    from rich.progress import (  # type: ignore[import-not-found, unused-ignore]
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

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
