"""Formats: a file as a DuckDB relation whose numbers can be trusted.

DuckDB judges the columns of text files by their first 20 480 rows, and rounds decimals that come
later to the whole numbers it has seen; so whole numbers are read as doubles from the start. Nor
may it skip lines that look like notes or comments, or rename a column because another has its name.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
# What people write in CSV files where there is nothing.
MISSING = ["", "NA", "NaN", "nan", "null", "NULL", "."]
_WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_PROBABILITY_WITH_COMMA = re.compile(r"[01]|\d*,\d+")
_PERCENTAGE = re.compile(r"[\d.,]+ ?%")

# What the column of labels may hold: numbers and truth values; or words, so that yes and no stay
# what they are; or either.
LabelKind = Literal["number", "word", "either"]
Reader = Callable[[dict[str, str]], "DuckDBPyRelation"]


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
    connection: DuckDBPyConnection, path: Path, columns: Columns, label: LabelKind
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
    if form.startswith("JSON"):
        return _trusted(_json_reader(connection, name), columns, label)
    options = csv_options(form)
    relation = connection.read_csv(name, **options)
    _check_unique(connection, name, options, relation.columns, columns)
    if any(_has_decimal_commas(relation, prob) for prob in columns.probs):
        options["decimal"] = ","
    return _trusted(_csv_reader(connection, name, options), columns, label)


def csv_options(form: str) -> dict[str, Any]:
    """Return how a file of text is read, as DuckDB's reader takes it."""
    options: dict[str, Any] = {"header": True, "skiprows": 0, "comment": ""}
    options |= {"na_values": MISSING, "sep": "\t" if form == "TSV" else None}
    return options


def _trusted(read: Reader, columns: Columns, label: LabelKind) -> DuckDBPyRelation | None:
    """Return the rows with the columns that are asked for as they are meant."""
    relation = read({})
    if not _has_rows(relation):
        return None
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    kinds = {name: "DOUBLE" for name in columns.names if _WHOLE.fullmatch(types.get(name, ""))}
    kinds |= dict.fromkeys(_unwritten(relation, types, columns, label), "DOUBLE")
    if label == "word" and types.get(columns.label) == "BOOLEAN":
        kinds[columns.label] = "VARCHAR"
    return read({**types, **kinds}) if kinds else relation


def _csv_reader(connection: DuckDBPyConnection, name: str, options: dict[str, Any]) -> Reader:
    def read(types: dict[str, str]) -> DuckDBPyRelation:
        # What else DuckDB has seen is left to it: dates have formats.
        plain = {column: kind for column, kind in types.items() if kind in ("DOUBLE", "VARCHAR")}
        return connection.read_csv(name, dtype=plain or None, **options)

    return read


def _json_reader(connection: DuckDBPyConnection, name: str) -> Reader:
    return lambda types: connection.read_json(name, columns=types or None)


def _check_unique(
    connection: DuckDBPyConnection,
    name: str,
    options: dict[str, Any],
    found: list[str],
    columns: Columns,
) -> None:
    """Refuse a column whose name, in whatever case, another has: DuckDB renames one of them.

    It calls the second p of a header "p_1", so that the header is read only where there is one.
    """
    lower = [one.lower() for one in found]
    suspects = [name for name in columns.names if f"{name.lower()}_1" in lower]
    if not suspects:
        return
    raw = connection.read_csv(name, **{**options, "header": False}, all_varchar=True)
    header = [str(cell) for cell in raw.limit(1).fetchall()[0]]
    for one in suspects:
        same = [repr(cell) for cell in header if cell.lower() == one.lower()]
        if len(same) > 1:
            raise CalibrantError(
                f"each column must have a name of its own, in whatever case; got {same[0]} and "
                f"{same[1]}: rename one of them"
            )


def _has_decimal_commas(relation: DuckDBPyRelation, name: str) -> bool:
    """Tell whether probabilities, which have no thousands to part, are written with a comma."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    values = _written(relation, name) if types.get(name) == "VARCHAR" else []
    return bool(values) and all(map(_PROBABILITY_WITH_COMMA.fullmatch, values))


def _has_rows(relation: DuckDBPyRelation) -> bool:
    # No column is fetched: those that nobody asked for may be of types Python has no package for.
    return bool(relation.limit(1).project("1").fetchall())


def _unwritten(
    relation: DuckDBPyRelation, types: dict[str, str], columns: Columns, label: LabelKind
) -> list[str]:
    """List the columns of numbers in which nothing is written; refuse those that hold text."""
    found = []
    for role, name in columns.named():
        may_be_text = role == "label" and label != "number"
        if may_be_text or types.get(name) not in ("VARCHAR", "JSON"):
            continue
        values = _written(relation, name)
        if values:
            way_out = "convert it to 0 and 1 first" if role == "label" else "convert it first"
            found_instead = _strange(values, way_out)
            raise CalibrantError(f"{role} column {name!r} must hold numbers; {found_instead}")
        found.append(name)
    return found


def _written(relation: DuckDBPyRelation, name: str) -> list[str]:
    """Return the first few values in a column, where there are any."""
    values = relation.project(f"{quoted(name)} AS value").filter("value IS NOT NULL")
    rows = values.limit(1000).fetchall()
    return [str(row[0]) for row in rows]


def _strange(values: list[str], way_out: str) -> str:
    """Show the first value that is not a number, and say what to do."""
    value = next((value for value in values if not _is_number(value)), values[0])
    if _DECIMAL_COMMA.fullmatch(value):
        return (
            f"got {value!r}: write a decimal point, or give the relation that "
            "duckdb.read_csv(..., decimal=',') returns"
        )
    if _PERCENTAGE.fullmatch(value):
        return f"got the percentage {value!r}: write it as a number from 0 to 1"
    return f"got the text {value!r:.40}: {way_out}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
