"""Shards: several files as one sketch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.cli.files import glance
from calibrant.cli.request import Request
from calibrant.errors import CalibrantError
from calibrant.sketches.state import Sketch
from calibrant.sources import groups
from calibrant.sources.columns import Columns
from calibrant.sources.sketching import sketch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def merged(paths: Sequence[Path]) -> Sketch:
    """Return the sketches that files hold as one."""
    first, *others = map(Sketch.load, paths)
    return sum(others, start=first)


def sketched(
    connection: DuckDBPyConnection,
    paths: Sequence[Path],
    columns: Columns,
    request: Request,
    n_cells: int | None = None,
) -> Sketch | dict[Any, Sketch]:
    """Return a sketch of the rows of all files, or sketches by group or class."""
    prob: Any = columns.probs if columns.is_multiclass else columns.probs[0]
    if columns.classes:
        prob = dict(zip(columns.classes, columns.probs, strict=True))
    parts = [
        sketch(
            path,
            label=columns.label,
            prob=prob,
            weight=columns.weight,
            by=columns.by,
            on_invalid="drop" if request.drops else "raise",
            n_cells=n_cells,
        )
        for path in paths
        if glance(connection, path) is not None
    ]
    if not parts:
        raise CalibrantError(f"{paths[0].name} has no rows")
    whole = [part for part in parts if isinstance(part, Sketch)]
    if whole:
        return sum(whole[1:], start=whole[0])
    by_key = groups.merged(part for part in parts if isinstance(part, dict))
    return by_key if columns.is_multiclass else groups.in_order(by_key)
