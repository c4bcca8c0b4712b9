"""Progress: a line on a terminal that tells how far a paper has come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from calibrant.papers._frame import Progress


@contextmanager
def bar(paper: str) -> Iterator[Progress]:
    """Give a function to call with a table's name, its cells measured, and all its cells."""
    if sys.stderr is None or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda table, done, total: None
        return
    from rich.console import Console  # type: ignore[import-not-found, unused-ignore]
    from rich.progress import (  # type: ignore[import-not-found, unused-ignore]
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar  # type: ignore[import-not-found, unused-ignore]

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as shown:
        tasks: dict[str, Any] = {}

        def step(table: str, done: int, total: int) -> None:
            if table not in tasks:
                tasks[table] = shown.add_task(f"{paper} {table}", total=total)
            shown.update(tasks[table], completed=done)

        yield step
