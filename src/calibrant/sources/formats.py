"""Formats: a file as a DuckDB relation whose numbers can be trusted.

DuckDB judges the columns of text files by their first 20 480 rows, and rounds decimals that come
later to the whole numbers it has seen; so whole numbers are read as doubles from the start. Nor
may it skip lines that look like notes or comments.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import CalibrantError
from calibrant.sources.columns import Columns, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

# What a file's name ends with, and what that is called.
FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".txt": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".json": "JSON",
}
_COMPRESSED = (".gz", ".zst")
_WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")


def format_of(path: Path) -> str:
    """Return the ending that tells the format of a file."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSED:
        endings.pop()
    if not endings or endings[-1] not in FORMATS:
        raise CalibrantError(
            f"files must be called *{', *'.join(FORMATS)}, perhaps with {' or '.join(_COMPRESSED)} "
            f"behind; got {path.name!r}"
        )
    return endings[-1]


def open_relation(
    connection: DuckDBPyConnection, path: Path, columns: Columns
) -> DuckDBPyRelation | None:
    """Return the rows of a file, or None where it has none."""
    form = FORMATS[format_of(path)]
    if path.stat().st_size == 0:
        raise CalibrantError("the file is empty")
    # The name is data: nothing in it is a pattern.
    name = glob.escape(str(path))
    if form == "Parquet":
        relation = connection.read_parquet(name, hive_partitioning=True)
        return relation if _has_rows(relation) else None
    read = (
        _json_reader(connection, name)
        if form.startswith("JSON")
        else _csv_reader(connection, name, "\t" if form == "TSV" else None)
    )
    relation = read({})
    if not _has_rows(relation):
        return None
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    doubles = [name for name in columns.names if _WHOLE.fullmatch(types.get(name, ""))]
    doubles += _unwritten(relation, types, columns)
    return read({**types, **dict.fromkeys(doubles, "DOUBLE")}) if doubles else relation


def _csv_reader(
    connection: DuckDBPyConnection, name: str, separator: str | None
) -> Callable[[dict[str, str]], DuckDBPyRelation]:
    options: dict[str, Any] = {"header": True, "skiprows": 0, "comment": ""}
    if separator is not None:
        options["sep"] = separator

    def read(types: dict[str, str]) -> DuckDBPyRelation:
        doubles = {column: kind for column, kind in types.items() if kind == "DOUBLE"}
        return connection.read_csv(name, dtype=doubles or None, **options)

    return read


def _json_reader(
    connection: DuckDBPyConnection, name: str
) -> Callable[[dict[str, str]], DuckDBPyRelation]:
    return lambda types: connection.read_json(name, columns=types or None)


def _has_rows(relation: DuckDBPyRelation) -> bool:
    return bool(relation.limit(1).fetchall())


def _unwritten(relation: DuckDBPyRelation, types: dict[str, str], columns: Columns) -> list[str]:
    """List the columns of numbers in which nothing is written; refuse those that hold text."""
    found = []
    for role, name in columns.named():
        is_class = role == "label" and columns.is_multiclass
        if is_class or types.get(name) not in ("VARCHAR", "JSON"):
            continue
        values = _written(relation, name)
        if values:
            raise CalibrantError(f"{role} column {name!r} must hold numbers; {_strange(values)}")
        found.append(name)
    return found


def _written(relation: DuckDBPyRelation, name: str) -> list[str]:
    """Return the first few values in a column, where there are any."""
    values = relation.project(f"{quoted(name)} AS value").filter("value IS NOT NULL")
    rows = values.limit(1000).fetchall()
    return [str(row[0]) for row in rows]


def _strange(values: list[str]) -> str:
    """Show the first value that is not a number, and say what to do."""
    value = next((value for value in values if not _is_number(value)), values[0])
    if _DECIMAL_COMMA.fullmatch(value):
        return (
            f"got {value!r}: write a decimal point, or give the relation that "
            "duckdb.read_csv(..., decimal=',') returns"
        )
    return f"got the text {value!r:.40}: convert it first"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
