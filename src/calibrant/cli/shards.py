"""Shards: several files as one sketch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.cli.columns import class_names
from calibrant.cli.outcomes import label_named, word_of
from calibrant.cli.request import Request
from calibrant.cli.rows import opened
from calibrant.labels import check_two_labels
from calibrant.sketches.state import Sketch
from calibrant.sources import sketching
from calibrant.sources.columns import Columns, quoted
from calibrant.sources.files import Reader, sketch_files
from calibrant.sources.groups import key_of

# More labels than this are none.
_MOST_LABELS = 10_000


def merged(paths: Sequence[Path]) -> Sketch:
    """Return the sketches that files hold as one."""
    first, *others = map(Sketch.load, paths)
    return sum(others, start=first)


def sketched(
    reader: Reader,
    paths: Sequence[Path],
    columns: Columns,
    request: Request,
    n_cells: int | None = None,
) -> Sketch | dict[Any, Sketch]:
    """Return a sketch of the rows of all files, or sketches by group or class."""
    prob: Any = columns.probs[0]
    positive = None
    if columns.is_multiclass or request.pos_label is not None:
        values = _labels(reader, paths, columns)
        if columns.is_multiclass:
            prob = dict(zip(_classes(columns, values), columns.probs, strict=True))
        else:
            positive = _positive(str(request.pos_label), values)
    asked = Columns.read(columns.label, prob, columns.weight, columns.by)
    read = partial(sketch_files, reader, paths, asked, positive=positive)
    return sketching.sketched(read, asked, n_cells, "probability", request.on_invalid or "raise")


def _labels(reader: Reader, paths: Sequence[Path], columns: Columns) -> dict[str, Any]:
    """Return the labels that occur, by what they are called."""
    column = quoted(columns.label)
    found = []
    for path in paths:
        with reader.saying(path):
            table = opened(reader, path, columns, "word")
            if table is not None:
                known = table.relation.filter(f"{column} IS NOT NULL").project(column)
                found += known.distinct().limit(_MOST_LABELS).fetchall()
    return {word_of(value): value for (value,) in found}


def _classes(columns: Columns, values: Mapping[str, Any]) -> list[Any]:
    """Return the class of each column of probabilities, as it is among the labels."""
    names = class_names(columns, values)
    if not all(isinstance(value, int | float) for value in values.values()):
        return names
    try:
        return [key_of(float(name)) for name in names]
    except ValueError:
        return names


def _positive(text: str, values: Mapping[str, Any]) -> Any:
    """Return the label that is meant, where there is no more than one other."""
    name = label_named(text, values)
    check_two_labels(sorted(values), name)
    return values.get(name, name)
