"""Rows: the columns of files, read into memory and checked.

What is wrong is told with its column, its row and its file. Rows are counted from 1, the header
not being one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import narwhals.stable.v2 as nw
import numpy as np

from calibrant._base import AnyArray
from calibrant.cli.inputs import (
    Request,
    as_groups,
    as_text,
    class_names,
    columns_of,
    is_sketch,
    kind_of,
    label_named,
    local_files,
    word_of,
)
from calibrant.cli.messages import in_columns, say
from calibrant.cli.screen import waiting
from calibrant.data.labels import check_two_labels
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.io import sketching
from calibrant.io.columns import Columns, quoted
from calibrant.io.files import Opened, Reader, connected, sketch_files
from calibrant.io.formats import GroupForm, LabelKind
from calibrant.io.frames import alike, key_of, keys_of
from calibrant.io.invalid_rows import (
    Example,
    Faults,
    Mask,
    OnInvalid,
    Rule,
    broken_in_memory,
    most_telling,
    rules_of,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

Columned = dict[str, AnyArray]
_TARGETS = {"number": "DOUBLE", "boolean": "BOOLEAN"}


class Rows(NamedTuple):
    """The rows that can be counted as columns, which of all rows they are, and what ails others."""

    columns: Columned
    kept: Mask
    faults: Faults
    groups: list[Any] | None


@dataclass(frozen=True)
class Reading:
    """What to read, and what to do about rows that cannot be counted.

    Attributes
    ----------
    columns
        The columns.
    any_label
        Whether outcomes may be called anything, because the positive one or every class is named.
    on_invalid
        Whether rows that cannot be counted are left out or refused; None where nothing else than
        refusal is known.
    limit
        How many rows may be held in memory; None for any number.
    """

    columns: Columns
    any_label: bool
    on_invalid: OnInvalid | None
    limit: int | None

    def rows(self, reader: Reader, paths: Sequence[Path]) -> Rows | None:
        """Return all rows, or None where there are more than may be."""
        faults, parts, kept, n_read = Faults(list(self._rules())), [], [], 0
        forms: list[GroupForm] = []
        for path in paths:
            with reader.saying(path):
                label: LabelKind = "word" if self.any_label else "either"
                found = opened(reader, path, self.columns, label)
                if found is None:
                    continue
                relation = found.relation
                if self.limit is not None:
                    relation = relation.limit(self.limit + 1 - n_read)
                part = _fetched(relation, self.columns)
                forms.append(found.groups)
                sound = self._sound(part, faults, path)
                n_read += len(sound)
                kept.append(sound)
                parts.append(part if sound.all() else _only(part, sound))
            if self.limit is not None and n_read > self.limit:
                return None
        n_kept = sum(int(sound.sum()) for sound in kept)
        faults.refuse(n_kept, self.on_invalid)
        if not n_kept:
            raise CalibrantError(f"{paths[0].name} has no rows that can be counted")
        by = self.columns.by
        groups = None if by is None else _groups([part[by] for part in parts], forms)
        return Rows(_joined(parts, self.columns), np.concatenate(kept), faults, groups)

    def _rules(self) -> Iterator[Rule]:
        for rule in rules_of(self.columns):
            # What is no outcome is refused later, in better words; here it can be left out.
            if (
                rule.role == "label"
                and rule.kind == "outside"
                and (self.any_label or self.on_invalid != "drop")
            ):
                continue
            yield rule._replace(classes=())

    def _sound(self, part: Columned, faults: Faults, path: Path) -> Mask:
        """Return which rows can be counted, and note the others."""
        wrong: Mask = np.zeros(len(part[self.columns.label]), dtype=bool)
        for code, rule in enumerate(faults.rules):
            values, numbers = part[rule.column], _numbers(part[rule.column])
            broken = broken_in_memory(rule, numbers) & ~wrong
            if broken.any():
                row = most_telling(numbers, broken)
                value, largest = values[row : row + 1].tolist()[0], float(numbers[broken].max())
                example = Example(value, row, path.name, largest)
                faults.add(code, int(broken.sum()), example)
            wrong |= broken
        return ~wrong


def opened(reader: Reader, path: Path, columns: Columns, label: LabelKind) -> Opened | None:
    """Return the rows of a file that has all columns, or None where it has no rows.

    Text is welcome in the column of labels: whether it makes sense is seen later.
    """
    found = reader.open(path, columns, label)
    if found is not None:
        schema = nw.from_native(found.relation).collect_schema()
        holds_text = schema.get(columns.label) in (nw.String, nw.Enum)
        replace(columns, is_multiclass=holds_text).bound(schema)
    return found


def _only(part: Columned, rows: Mask) -> Columned:
    return {name: values[rows] for name, values in part.items()}


def _fetched(relation: DuckDBPyRelation, columns: Columns) -> Columned:
    """Return columns as numbers (nan where null), truth values, or text (None where null).

    A feature may also be of dates, which elsewhere are but names.
    """
    sql = dict(zip(relation.columns, map(str, relation.types), strict=True))
    kinds = {name: kind_of(sql[name]) for name in columns.names}
    targets = {name: _TARGETS.get(kind, "VARCHAR") for name, kind in kinds.items()}
    if columns.along is not None:
        # Truth values are names, with nulls among them or without.
        of_feature = {"date": "TIMESTAMP", "boolean": "VARCHAR"}
        along = columns.along
        targets[along] = of_feature.get(kinds[along], targets[along])
    by = columns.groups
    if by is not None and _is_exact(sql[by]):
        targets[by] = "VARCHAR"  # doubles would not keep all whole numbers apart
    names = columns.names
    asked = [
        f"CAST({_zoned(name, sql)} AS {targets[name]}) AS c{i}" for i, name in enumerate(names)
    ]
    found = relation.project(", ".join(asked)).fetchnumpy()
    part = {name: _filled(found[f"c{i}"]) for i, name in enumerate(names)}
    if by is not None and _is_exact(sql[by]):
        known = keys_of(set(part[by].tolist()), "json")
        part[by] = np.array([known[value] for value in part[by].tolist()], dtype=object)
    return part


def _zoned(name: str, sql: dict[str, str]) -> str:
    """Return a column, times with a zone as those of Greenwich: a file does not keep the zone."""
    is_zoned = sql[name] == "TIMESTAMP WITH TIME ZONE"
    return quoted(name) + (" AT TIME ZONE 'UTC'" if is_zoned else "")


def _filled(values: Any) -> AnyArray:
    """Return an array without a mask: nan for a missing number, NaT for a date, None for text."""
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    if values.dtype.kind == "O":
        filled = np.array(values.data, dtype=object)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    if values.dtype.kind == "M":
        return np.where(np.ma.getmaskarray(values), np.datetime64("NaT"), values.data)
    numbers = np.array(values.data, dtype=np.float64)
    numbers[np.ma.getmaskarray(values)] = np.nan
    return numbers


def _numbers(values: AnyArray) -> AnyArray:
    """Return what rules can judge: text is 0, and nan where there is none."""
    if values.dtype.kind != "O":
        return values
    return np.where(values == None, np.nan, 0.0)  # noqa: E711  # element by element


def _joined(parts: Sequence[Columned], columns: Columns) -> Columned:
    _check_alike(parts, "label", columns.label)
    if columns.along is not None:
        _check_alike(parts, "along", columns.along)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _is_exact(sql_type: str) -> bool:
    """Tell whether values are whole numbers or truth values, which JSON writes as SQL does."""
    return sql_type == "BOOLEAN" or (kind_of(sql_type) == "number" and "INT" in sql_type)


def _groups(parts: Sequence[AnyArray], forms: Sequence[GroupForm]) -> list[Any]:
    """Return the group of each row, None where there is none."""
    written: dict[GroupForm, set[Any]] = {form: set() for form in forms}
    for part, form in zip(parts, forms, strict=True):
        written[form].update(as_groups(part))
    keys = {form: keys_of(values, form) for form, values in written.items()}
    found = [
        [keys[form][value] for value in as_groups(part)]
        for part, form in zip(parts, forms, strict=True)
    ]
    same = alike({key for part in found for key in part})
    return [same[key] for part in found for key in part]


def _check_alike(parts: Sequence[Columned], role: str, name: str) -> None:
    kinds = {part[name].dtype.kind for part in parts}
    if len(kinds) > 1 and kinds & {"O", "M"}:
        raise CalibrantError(f"{role} column {name!r} must hold the same type in all files")


# Shards: several files as one sketch.

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


# Tables: how the files of a command line become what measures take.
#
# Up to four million rows are held in memory, so that every question can be answered. More become a
# sketch, in one pass and in memory that does not grow: binned errors stay exact, smooth ones within
# a certified bound, and what needs single rows is refused or left out. Where several classes need
# the rows whatever their number, all are held.
#
# A file that ``calibrant sketch`` wrote is taken as it is; several are merged.

MOST_ROWS = 4_000_000
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Data:
    """What was read, as measures take it.

    Attributes
    ----------
    pair
        Outcomes and predictions, or one sketch, or sketches by group.
    about
        What else measures are told about rows: weights, classes, the positive label.
    groups
        The group of each row, where groups were asked for.
    feature
        The feature of each row, where one was asked for.
    columns
        Where it came from; None for a sketch.
    is_joined
        Whether rows come from several files.
    """

    pair: tuple[Any, ...]
    about: Mapping[str, Any]
    groups: Any = None
    columns: Columns | None = None
    is_joined: bool = False
    feature: Any = None

    def ask(self, question: Callable[..., Answer], **options: Any) -> Answer:
        """Return the answer to a question, or an error in words of columns and options."""
        with in_columns(self.columns, " of all files" if self.is_joined else ""):
            return question(*self.pair, **self.about, **options)


def read(request: Request, *, needs_rows: bool = False) -> Data:
    """Read the files of a request as one problem: rows, or a sketch where that will do."""
    (data,) = read_each(replace(request, each=False), needs_rows=needs_rows).values()
    return data


def read_each(request: Request, *, needs_rows: bool = False) -> dict[str, Data]:
    """Read the files of a request, with each column of probabilities by itself if so asked."""
    with local_files(request) as paths:
        if all(is_sketch(path) for path in paths):
            request.check_speaks_of_no_column()
            return {paths[0].stem: Data((merged(paths),), {})}
        if any(is_sketch(path) for path in paths):
            raise CalibrantError("sketches and tables cannot be read together: sketch the tables")
        with connected() as reader:
            columns = columns_of(reader, paths, request)
            table = Table(reader, paths, columns, request, needs_rows)
            if request.each and not columns.is_multiclass:
                return table.each()
            return {paths[0].stem if columns.is_multiclass else columns.probs[0]: table.whole()}


@dataclass(frozen=True)
class Table:
    """Files that hold rows, and which of their columns are meant."""

    reader: Reader
    paths: Sequence[Path]
    columns: Columns
    request: Request
    needs_rows: bool

    def whole(self) -> Data:
        """Return everything as one problem."""
        rows = self._rows()
        if rows is None:
            return self._sketch(self.columns)
        return self._data(rows, self.columns)

    def each(self) -> dict[str, Data]:
        """Return a problem for each column of probabilities, by its name."""
        columns = self.columns
        names = [str(name) for name in columns.classes or columns.probs]
        alone = [replace(columns, probs=(one,), classes=()) for one in columns.probs]
        rows = self._rows()
        if rows is None:
            return {name: self._sketch(one) for name, one in zip(names, alone, strict=True)}
        return {name: self._data(rows, one) for name, one in zip(names, alone, strict=True)}

    def _rows(self) -> Rows | None:
        """Return the rows, unless there are very many and a sketch will do."""
        any_label = self.request.pos_label is not None or self.columns.is_multiclass
        limit = None if self.columns.is_multiclass or self.needs_rows else MOST_ROWS
        with waiting("reading"):
            rows = Reading(self.columns, any_label, self.request.on_invalid, limit).rows(
                self.reader, self.paths
            )
        if rows is None:
            say(f"there are more than {limit} rows: they are kept as a sketch")
            return None
        rows.faults.warn(int(rows.kept.sum()), stacklevel=1)
        return rows

    def _sketch(self, columns: Columns) -> Data:
        with in_columns(columns):
            made = sketched(self.reader, self.paths, columns, self.request)
        return Data((made,), {}, columns=columns)

    def _data(self, rows: Rows, columns: Columns) -> Data:
        request, values = self.request, rows.columns
        y = values[columns.label]
        about: dict[str, Any] = {}
        if columns.weight is not None:
            about["sample_weight"] = values[columns.weight]
        if request.multiclass is not None:
            about["multiclass"] = request.multiclass
        if request.pos_label is not None or columns.is_multiclass:
            y = as_text(y)
            present = np.unique(y).tolist()
        elif y.dtype.kind == "f" and bool(np.all(y == np.trunc(y))):
            y = y.astype(np.int64)  # as it was written, should anything be said of it
        p = values[columns.probs[0]]
        if request.pos_label is not None:
            about["pos_label"] = label_named(request.pos_label, present)
        if columns.is_multiclass:
            about["labels"] = class_names(columns, present)
            p = np.column_stack([values[name] for name in columns.probs])
        feature = None if columns.along is None else values[columns.along]
        is_joined = len(self.paths) > 1
        return Data((y, p), about, rows.groups, columns, is_joined, feature)
