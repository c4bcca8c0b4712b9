"""Shards: several files as one sketch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.cli.columns import class_names
from calibrant.cli.files import glance
from calibrant.cli.outcomes import label_named, word_of
from calibrant.cli.request import Request
from calibrant.cli.rows import opened
from calibrant.errors import CalibrantError
from calibrant.labels import check_two_labels
from calibrant.sketches.state import Sketch
from calibrant.sources import groups
from calibrant.sources.columns import Columns, quoted
from calibrant.sources.files import saying
from calibrant.sources.groups import key_of
from calibrant.sources.sketching import sketch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

# More labels than this are none.
_MOST_LABELS = 10_000


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
    full = [path for path in paths if glance(connection, path) is not None]
    if not full:
        raise CalibrantError(f"{paths[0].name} has no rows")
    sources: Sequence[Any] = full
    prob: Any = columns.probs[0]
    if columns.is_multiclass or request.pos_label is not None:
        relations = [_with_words(connection, path, columns) for path in full]
        values = _labels(relations, columns.label)
        if columns.is_multiclass:
            prob = dict(zip(_classes(columns, values), columns.probs, strict=True))
        else:
            positive = _positive(str(request.pos_label), values)
            sources = [_compared(relation, columns.label, positive) for relation in relations]
    parts = [
        sketch(
            source,
            label=columns.label,
            prob=prob,
            weight=columns.weight,
            by=columns.by,
            on_invalid=request.on_invalid or "raise",
            n_cells=n_cells,
        )
        for source in sources
    ]
    whole = [part for part in parts if isinstance(part, Sketch)]
    if whole:
        return sum(whole[1:], start=whole[0])
    by_key = groups.merged(part for part in parts if isinstance(part, dict))
    return by_key if columns.is_multiclass else groups.in_order(by_key)


def _with_words(connection: DuckDBPyConnection, path: Path, columns: Columns) -> DuckDBPyRelation:
    with saying(path):
        relation = opened(connection, path, columns, "word")
    assert relation is not None  # it has rows
    return relation


def _labels(relations: Sequence[DuckDBPyRelation], label: str) -> dict[str, Any]:
    """Return the labels that occur, by what they are called."""
    column = quoted(label)
    found = [
        value
        for relation in relations
        for (value,) in relation.filter(f"{column} IS NOT NULL")
        .project(column)
        .distinct()
        .limit(_MOST_LABELS)
        .fetchall()
    ]
    return {word_of(value): value for value in found}


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


def _compared(relation: DuckDBPyRelation, label: str, positive: Any) -> DuckDBPyRelation:
    """Return rows whose outcomes are whether the label is the positive one."""
    from duckdb import ColumnExpression, ConstantExpression, StarExpression

    is_positive = ColumnExpression(label) == ConstantExpression(positive)
    others = StarExpression(exclude=[label])
    return relation.select(others, is_positive.alias(label))
