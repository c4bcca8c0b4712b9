"""File formats: CSV, TSV, JSON and Parquet as DuckDB relations whose values are as written.

Text files are read as text, and the columns that are asked for become numbers by one rule from the
first row to the last. DuckDB alone would infer types from the first 20 480 rows, round later
decimals to integers, take words such as NA as null in all columns or in none, skip lines that look
like comments, rename columns of equal names, and replace columns by values in names of folders.
"""

from __future__ import annotations

import glob
import gzip
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import unquote

from calibrant.errors import CalibrantError
from calibrant.io.columns import Columns, in_words, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

# Formats by the ending of a file's name.
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
# The first bytes of files that are no text, and what they hold.
_STARTS = {
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PAR1": ".parquet",
    b"calibrnt": ".sketch",
}
_HOLDS = {".gz": "gzip", ".zst": "Zstandard", ".parquet": "Parquet", ".sketch": "a sketch"}
_JSON = re.compile(rb"\[\s*\{|\{\s*\"")
# The type of a column that is written as an object of its values by row number.
_BY_INDEX = re.compile(r"MAP\(|STRUCT\(\"0\" ")
# Words for a missing number in a text file, besides the empty field.
MISSING = ("NA", "NaN", "nan", "null", "NULL", ".")
_IS_MISSING = f"IN {MISSING}"
_INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
_NUMBER = re.compile(_INTEGER.pattern + r"|FLOAT|DOUBLE|DECIMAL.*")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_PROBABILITY_WITH_COMMA = re.compile(r"[01]|\d*,\d+")
_PERCENTAGE = re.compile(r"[\d.,]+ ?%")
# Folders such as site=a give a column; the types that its values may have.
_FOLDER = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_TYPES = {
    r"-?(0|[1-9]\d{0,17})": "BIGINT",
    r"-?\d+\.\d+": "DOUBLE",
    r"\d{4}-\d\d-\d\d": "DATE",
}
# What DuckDB reports for a quote or escape that it has not seen.
_NO_MARK = ("(empty)", "\0", "")
# The number of lines searched for one that is not blank, and of values inspected.
_MOST_LINES = 1000

# What the column of labels may hold: numbers and truth values; words, so that yes and no stay
# text; or either.
LabelKind = Literal["number", "word", "either"]
# How the groups of a file are written: as values, as text that may be numbers, or as JSON.
GroupForm = Literal["values", "text", "json"]


def kind_of(sql_type: str) -> str:
    """Return what a column of an SQL type holds: number, boolean, text, date or other."""
    if _NUMBER.fullmatch(sql_type):
        return "number"
    if sql_type == "DATE" or sql_type.startswith("TIMESTAMP"):
        return "date"
    kinds = {"BOOLEAN": "boolean", "VARCHAR": "text", "ENUM": "text"}
    return kinds.get(sql_type.partition("(")[0], "other")


def is_integer(sql_type: str) -> bool:
    """Tell whether a column of an SQL type holds integers."""
    return _INTEGER.fullmatch(sql_type) is not None


def format_of(path: Path) -> str:
    """Return the ending of a file's name that gives its format."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSED:
        endings.pop()
    if not endings or endings[-1] not in FORMATS:
        raise CalibrantError(
            f"files must be called *{', *'.join(FORMATS)}, perhaps with {' or '.join(_COMPRESSED)} "
            f"behind; got {path.name!r}"
        )
    return endings[-1]


def ending_of(start: bytes) -> str:
    """Return the ending of the name of a file that begins with these bytes."""
    for mark, ending in _STARTS.items():
        if start.startswith(mark):
            return ending
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return ".json"
    return ".jsonl" if text.startswith(b"{") else ".csv"


def _check_content(path: Path, form: str) -> None:
    """Refuse a file whose first bytes are those of another format."""
    with path.open("rb") as file:
        start = file.read(1024)
    ending = ending_of(start)
    held = _HOLDS.get(ending)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if held is None and form in ("CSV", "TSV") and _JSON.match(text):
        held = "JSON"
    if held in (None, form) or path.suffix.lower() in _COMPRESSED:
        return
    name = path.suffix + ending if ending in _COMPRESSED else ending
    raise CalibrantError(
        "the file holds {held}, not {form}",
        hint="rename it to *{name}",
        held=held,
        form=form,
        name=name,
    )


@dataclass(frozen=True)
class OpenFile:
    """A file and the types of its columns; here Parquet, which declares them."""

    connection: DuckDBPyConnection
    path: Path
    rows: DuckDBPyRelation  # the columns that are in the file
    types: Mapping[str, str]  # their SQL types, inferred from the first rows where not declared
    folders: Mapping[str, tuple[str, str]]  # value and type by name, of folders such as site=a
    # The fields of structures, scores.confidence: the names from the outermost in.
    nested: Mapping[str, Sequence[str]] = field(default_factory=dict)
    form: ClassVar[GroupForm] = "values"

    @property
    def all_types(self) -> dict[str, str]:
        """The SQL types of all columns, including those that folders give."""
        return {**self.types, **{name: kind for name, (_, kind) in self.folders.items()}}

    def sql(self, name: str) -> str:
        """Return a column in its type, as SQL."""
        if name in self.folders:
            value, kind = self.folders[name]
            return f"CAST({'NULL' if value == _NO_VALUE else _literal(value)} AS {kind})"
        column, *fields = self.nested.get(name, (name,))
        sql = quoted(column)
        for one in fields:
            sql = f"struct_extract({sql}, {_literal(one)})"
        return sql

    def asked(self, columns: Columns, label: LabelKind) -> tuple[DuckDBPyRelation, dict[str, str]]:
        """Return rows, and in them the columns that are asked for as SQL."""
        return self.rows, {name: self.sql(name) for name in columns.names}

    def header(self) -> list[str]:
        """Return the names of all columns as they are written."""
        asked = f"SELECT name, num_children FROM parquet_schema({_name(self.path)})"
        found = self.connection.sql(asked).fetchall()
        # The first is the root; the children of a column follow it.
        names, i = [], 1
        while i < len(found):
            names.append(found[i][0])
            n_children = found[i][1] or 0
            i += 1
            while n_children:
                n_children += (found[i][1] or 0) - 1
                i += 1
        return names

    def explained(self, columns: Columns, label: LabelKind) -> CalibrantError | None:
        """Return the error of a value that is not of the type asked for, if there is one."""
        return None


@dataclass(frozen=True)
class JsonFile(OpenFile):
    """A file of JSON: integers may be followed by decimals, and groups may be of any type."""

    form: ClassVar[GroupForm] = "json"

    def header(self) -> list[str]:
        return [name for name in self.types if name not in self.nested]

    def asked(self, columns: Columns, label: LabelKind) -> tuple[DuckDBPyRelation, dict[str, str]]:
        kinds = {name: self._kind(name, columns, label) for name in columns.names}
        types = {name: kind for name, kind in self.types.items() if name not in self.nested}
        for name, kind in kinds.items():
            if name in self.nested:
                types[self.nested[name][0]] = "JSON"
            elif name in self.types:
                types[name] = kind
        rows = _json(self.connection, self.path, types)
        return rows, {name: self._extracted(name, kind) for name, kind in kinds.items()}

    def _extracted(self, name: str, kind: str) -> str:
        """Return a column as SQL, a field of a structure that is read as JSON in its type."""
        if name not in self.nested:
            return OpenFile.sql(self, name)
        column, *fields = self.nested[name]
        path = "$" + "".join(f'."{one}"' for one in fields)
        if kind == "JSON":
            return f"json_extract({quoted(column)}, {_literal(path)})"
        return f"CAST(json_extract_string({quoted(column)}, {_literal(path)}) AS {kind})"

    def sql(self, name: str) -> str:
        sql = OpenFile.sql(self, name)
        return sql if name in self.folders else f"CAST({sql} AS {self.types[name]})"

    def _kind(self, name: str, columns: Columns, label: LabelKind) -> str:
        kind = self.all_types[name]
        if name in columns.groups and name not in self.folders:
            return "JSON"
        if name == columns.label and label == "word" and kind == "BOOLEAN":
            return "VARCHAR"
        if kind in ("VARCHAR", "JSON") and name in _numbers(columns, label):
            column = OpenFile.sql(self, name)
            values = _values(self.rows, f"{column} IS NOT NULL", column)
            if values:
                raise _no_number(name, columns, values)
            return "DOUBLE"
        return "DOUBLE" if is_integer(kind) else kind


@dataclass(frozen=True)
class TextFile(OpenFile):
    """A text file: every column is text, cast to numbers where they are asked for."""

    times: Mapping[str, str] = field(default_factory=dict)  # unusual formats of dates, by type
    options: str = ""  # of ``read_csv``, as SQL
    form: ClassVar[GroupForm] = "text"

    def sql(self, name: str) -> str:
        own = name not in self.folders
        return self._as(name, self.types[name]) if own else OpenFile.sql(self, name)

    def asked(self, columns: Columns, label: LabelKind) -> tuple[DuckDBPyRelation, dict[str, str]]:
        numbers = self._number_texts(columns)
        found = {
            name: OpenFile.sql(self, name)
            if name in (*columns.groups, *self.folders)
            else self._as(name, self._kind(name, columns, label), numbers[name])
            for name in columns.names
        }
        return self.rows, found

    def _number_texts(self, columns: Columns) -> dict[str, str]:
        """Return the text of columns as SQL, without percent signs and with decimal points."""
        comma = self._has_decimal_commas(columns)
        found = {}
        for name in columns.names:
            is_percent = columns.is_percent and name in columns.probs
            text = f"rtrim({quoted(name)}, ' %')" if is_percent else quoted(name)
            # A number with a decimal comma has no point.
            found[name] = f"translate({text}, ',.', '.,')" if comma else text
        return found

    def header(self) -> list[str]:
        rows = _csv(self.connection, self.path, list(self.types), f"{self.options}, header=false")
        return [str(cell) for cell in rows.limit(1).fetchall()[0]]

    def explained(self, columns: Columns, label: LabelKind) -> CalibrantError | None:
        numbers = self._number_texts(columns)
        for name in columns.names:
            if name in (*columns.groups, *self.folders):
                continue
            cast = self._as(name, self._kind(name, columns, label), numbers[name], strict=False)
            asked = f"row_number() OVER () - 1, {quoted(name)} AS t, {cast} AS v"
            invalid = self.rows.project(asked).filter(f"t NOT {_IS_MISSING} AND v IS NULL")
            found = invalid.limit(1).fetchall()
            if found:
                return _no_number(name, columns, [found[0][1]], found[0][0])
        return None

    def _kind(self, name: str, columns: Columns, label: LabelKind) -> str:
        """Return the type to which a column is cast."""
        kind = self.types[name]
        if name in (*columns.probs, columns.weight) or is_integer(kind):
            return "DOUBLE"
        if name == columns.label and label == "word" and kind == "BOOLEAN":
            return "VARCHAR"
        return "DOUBLE" if kind == "VARCHAR" and name in _numbers(columns, label) else kind

    def _as(self, name: str, kind: str, number: str = "", *, strict: bool = True) -> str:
        """Return a column cast to a type, null where a word such as NA is written.

        `number` is its text as SQL where it is cast to a number. Other text that is not of the type
        is an error, or null if not `strict`.
        """
        column = quoted(name)
        if kind == "VARCHAR":
            # Among truth values or numbers, words such as NA are missing values.
            is_text = self.types[name] == "VARCHAR"
            return column if is_text else f"CASE WHEN NOT {column} {_IS_MISSING} THEN {column} END"
        text = number if number and kind == "DOUBLE" else column
        cast = f"TRY_CAST({text} AS {kind})"
        if kind in self.times:
            cast = f"CAST(try_strptime({text}, {_literal(self.times[kind])}) AS {kind})"
        if not strict:
            return cast
        failing = f"CASE WHEN NOT {column} {_IS_MISSING} THEN CAST({text} AS {kind}) END"
        return f"coalesce({cast}, {failing})"

    def _has_decimal_commas(self, columns: Columns) -> bool:
        """Tell whether probabilities are written with a decimal comma."""
        for name in columns.probs:
            if self.types.get(name) == "VARCHAR":
                column = quoted(name)
                values = _values(self.rows, f"{column} NOT {_IS_MISSING}", column)
                if values and all(map(_PROBABILITY_WITH_COMMA.fullmatch, values)):
                    return True
        return False


def opened(connection: DuckDBPyConnection, path: Path) -> OpenFile | None:
    """Return a file, or None where it has no rows."""
    form = FORMATS[format_of(path)]
    if path.stat().st_size == 0:
        raise CalibrantError("the file is empty")
    _check_content(path, form)
    if path.suffix.lower() == ".gz":
        _check_sums(path)
    if form == "Parquet":
        rows = connection.read_parquet(_pattern(path), hive_partitioning=False)
        file = OpenFile(connection, path, rows, *_schema(rows, path))
    elif form.startswith("JSON"):
        rows = _json(connection, path)
        if all(_BY_INDEX.match(str(kind)) for kind in rows.types):
            raise CalibrantError(
                "each row must be an object; got one object per column",
                hint="write it anew, in pandas with orient='records'",
            )
        file = JsonFile(connection, path, rows, *_schema(rows, path))
    else:
        file = _text_file(connection, path, form)
    # No column is fetched: fetching some types needs further packages.
    return file if file.rows.limit(1).project("1").fetchall() else None


def check_unique(file: OpenFile, columns: Columns) -> None:
    """Refuse columns whose names differ in case at most: DuckDB renames the second p to "p_1"."""
    lower = {one.lower() for one in file.types}
    suspects = [name for name in columns.names if f"{name.lower()}_1" in lower]
    header = file.header() if suspects else []
    for one in suspects:
        same = [repr(name) for name in header if name.lower() == one.lower()]
        if len(same) > 1:
            raise CalibrantError(
                f"each column must have a name of its own, in whatever case; got {same[0]} and "
                f"{same[1]}: rename one of them"
            )


def _text_file(connection: DuckDBPyConnection, path: Path, form: str) -> TextFile:
    """Open a text file; its dialect is detected once, which is slow where columns are many."""
    # With a delimiter that does not occur every line is one value: blank ones are skipped.
    plain = "delim='\x01\x02\x03\x04', quote='', escape='', header=false, skip=0, comment=''"
    lines = _csv(connection, path, ["line"], plain).limit(_MOST_LINES).fetchall()
    is_blank = [line is None or not line.strip() for (line,) in lines]
    given = {"skip": str(0 if all(is_blank) else is_blank.index(False)), "comment": "''"}
    given |= {"delim": "'\t'"} if form == "TSV" else {}
    found = connection.sql(
        "SELECT Delimiter, Quote, Escape, Columns, DateFormat, TimestampFormat "
        f"FROM sniff_csv({_name(path)}, {_listed(given)}, header=true, nullstr={['', *MISSING]})"
    ).fetchall()
    delimiter, quote, escape, columns, date, timestamp = found[0]
    # Quotes may first occur after the rows that DuckDB inspects.
    quote = '"' if quote in _NO_MARK else quote
    escape = quote if escape in _NO_MARK else escape
    marks = {"delim": delimiter, "quote": quote, "escape": escape}
    options = _listed(given | {name: _literal(mark) for name, mark in marks.items()})
    types = {column["name"]: column["type"] for column in columns}
    if any(re.fullmatch(r"column\d+", name) for name in types):
        # DuckDB takes the name NA for a missing one.
        (cells,) = _csv(connection, path, types, f"{options}, header=false").limit(1).fetchall()
        pairs = zip(cells, types.items(), strict=True)
        named = {cell if cell in MISSING else name: kind for cell, (name, kind) in pairs}
        types = named if len(named) == len(types) else types
    times = {"DATE": date, "TIMESTAMP": timestamp}
    times = {kind: written for kind, written in times.items() if written}
    rows = _csv(connection, path, types, f"{options}, header=true")
    folders = _folders(path, types)
    return TextFile(connection, path, rows, types, folders, times=times, options=options)


def _csv(
    connection: DuckDBPyConnection, path: Path, names: Iterable[str], options: str
) -> DuckDBPyRelation:
    """Return the columns of a text file as text, null where a field is empty."""
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in names)
    return connection.sql(
        f"FROM read_csv({_name(path)}, auto_detect=false, {options}, nullstr='', "
        f"hive_partitioning=false, columns={{{columns}}})"
    )


def _json(
    connection: DuckDBPyConnection, path: Path, types: dict[str, str] | None = None
) -> DuckDBPyRelation:
    return connection.read_json(_pattern(path), columns=types, hive_partitioning=False)


def _schema(rows: DuckDBPyRelation, path: Path) -> tuple[Any, ...]:
    """Return the types of columns, those that folders give, and where fields of structures are."""
    nested: dict[str, tuple[str, ...]] = {}
    types: dict[str, str] = {}

    def add(place: tuple[str, ...], kind: Any) -> None:
        types[".".join(place)] = str(kind)
        if len(place) > 1:
            nested[".".join(place)] = place
        for name, child in kind.children if kind.id == "struct" else ():
            # A column that is called so itself goes before.
            if ".".join((*place, name)) not in rows.columns:
                add((*place, name), child)

    for name, kind in zip(rows.columns, rows.types, strict=True):
        add((name,), kind)
    return types, _folders(path, rows.columns), nested


def _folders(path: Path, own: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the columns that folders called NAME=VALUE add to those of the file itself."""
    taken = {name.lower() for name in own}
    found = {}
    for folder in path.parts[:-1]:
        named = _FOLDER.fullmatch(folder)
        if named and unquote(named[1]).lower() not in taken:
            value = unquote(named[2])
            kinds = (kind for form, kind in _TYPES.items() if re.fullmatch(form, value))
            found[unquote(named[1])] = value, next(kinds, "VARCHAR")
    return found


def _check_sums(path: Path) -> None:
    """Refuse a damaged file: DuckDB does not check the checksums of gzip."""
    try:
        with gzip.open(path) as content:
            while content.read(1 << 20):
                pass
    except (gzip.BadGzipFile, zlib.error, EOFError) as problem:
        is_other = "CRC check" in str(problem) or "Incorrect length" in str(problem)
        raise OSError("its checksum is wrong" if is_other else str(problem)) from problem


def _numbers(columns: Columns, label: LabelKind) -> list[str]:
    """Return the columns that must not hold text."""
    return [name for role, name in columns.named() if role != "label" or label == "number"]


def _values(rows: DuckDBPyRelation, condition: str, column: str) -> list[str]:
    """Return the first values of a column that satisfy a condition."""
    found = rows.filter(condition).project(f"CAST({column} AS VARCHAR)")
    return [value for (value,) in found.limit(_MOST_LINES).fetchall()]


def _no_number(
    name: str, columns: Columns, values: Sequence[str], position: int | None = None
) -> CalibrantError:
    """Return the error of the first value that is not a number."""
    roles = {other: role for role, other in columns.named()}
    role = roles.get(name, "along")
    value = next((value for value in values if not _is_number(value)), values[0])
    if _DECIMAL_COMMA.fullmatch(value):
        found, hint = "{value}", "write a decimal point"
    elif _PERCENTAGE.fullmatch(value):
        found, hint = "the percentage {value}", "{in_percent}"
    else:
        found = "the text {value}"
        hint = "convert it to 0 and 1 first" if role == "label" else "convert it first"
        if role == "prob" and position == 0:
            hint += ", unless label and prob are swapped"
    return CalibrantError(
        "must hold numbers",
        argument=role,
        value=value,
        found=found,
        position=position,
        hint=hint,
        **in_words(role, name),
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _pattern(path: Path) -> str:
    """Return the name of a file as a glob that matches this file alone."""
    return glob.escape(str(path))


def _name(path: Path) -> str:
    return _literal(_pattern(path))


def _literal(text: str) -> str:
    """Return text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _listed(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())
