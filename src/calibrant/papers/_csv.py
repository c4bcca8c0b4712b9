"""Rows of a table as lines of a CSV file, and back without loss."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, fields
from pathlib import Path
from typing import get_type_hints

from calibrant.errors import CalibrantError
from calibrant.papers._frame import Row


def to_csv(rows: Iterable[Row]) -> bytes:
    """Return rows of one dataclass as CSV, under the names of its fields."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        types = _types(type(rows[0]))
        writer.writerow(types)
        # Python's own numbers, whose text reads back as the same number.
        of_types = tuple(types.values())
        for row in rows:
            writer.writerow(
                [kind(value) for kind, value in zip(of_types, astuple(row), strict=True)]
            )
    return text.getvalue().encode()


def read_csv(path: Path, row: type[Row]) -> list[Row]:
    """Read the rows of a file, none if it is not there."""
    if not path.exists():
        return []
    types = _types(row)
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines, list(types))
        if header != list(types):
            raise CalibrantError(
                f"{path} must have the columns {','.join(types)}; got {','.join(header)}: "
                "remove it to measure again"
            )
        return [
            row(*(kind(text) for kind, text in zip(types.values(), line, strict=True)))
            for line in lines
        ]


def _types(row: type[Row]) -> dict[str, type]:
    hints = get_type_hints(row)
    return {field.name: hints[field.name] for field in fields(row)}
