"""Rows: the columns of files, read into memory and checked.

What is wrong is told with its column, its row and its file. Rows are counted from 1, the header
not being one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from calibrant.arrays import AnyArray
from calibrant.cli.columns import kind_of
from calibrant.cli.outcomes import as_groups
from calibrant.errors import CalibrantError
from calibrant.sources.columns import Columns, quoted
from calibrant.sources.faults import (
    Example,
    Faults,
    Mask,
    OnInvalid,
    Rule,
    broken_in_memory,
    most_telling,
    rules_of,
)
from calibrant.sources.files import Opened, Reader
from calibrant.sources.formats import GroupForm, LabelKind
from calibrant.sources.groups import alike, keys_of

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
