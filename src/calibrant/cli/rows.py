"""Rows: the columns of files, read into memory and checked.

What is wrong is told with its column, its row and its file. Rows are counted from 1, the header
not being one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from calibrant.arrays import AnyArray
from calibrant.cli.columns import kind_of
from calibrant.errors import CalibrantError
from calibrant.sources.columns import Columns, quoted
from calibrant.sources.faults import Example, Faults, Mask, Rule, broken_in_memory, rules_of
from calibrant.sources.files import saying
from calibrant.sources.formats import open_relation

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

Columned = dict[str, AnyArray]


@dataclass(frozen=True)
class Reading:
    """What to read, and what to do about rows that cannot be counted.

    Attributes
    ----------
    columns
        The columns.
    any_label
        Whether outcomes may be called anything, because the positive one or every class is named.
    drops
        Whether rows that cannot be counted are left out rather than refused.
    limit
        How many rows may be held in memory; None for any number.
    """

    columns: Columns
    any_label: bool
    drops: bool
    limit: int | None

    def rows(self, connection: DuckDBPyConnection, paths: Sequence[Path]) -> Columned | None:
        """Return all rows as columns, or None where there are more than may be."""
        faults, parts, n_read = Faults(list(self._rules())), [], 0
        for path in paths:
            with saying(path):
                relation = self._opened(connection, path)
                if relation is None:
                    continue
                if self.limit is not None:
                    relation = relation.limit(self.limit + 1 - n_read)
                part = _fetched(relation, self.columns.names)
                n_read += self._n_rows(part)
                parts.append(self._sound(part, faults, path))
            if self.limit is not None and n_read > self.limit:
                return None
        if not self.drops:
            faults.refuse()
        n_kept = sum(map(self._n_rows, parts))
        faults.warn(n_kept, stacklevel=1)
        if not n_kept:
            raise CalibrantError(f"{paths[0].name} has no rows that can be counted")
        return _joined(parts, self.columns)

    def _n_rows(self, part: Columned) -> int:
        return len(part[self.columns.label])

    def _opened(self, connection: DuckDBPyConnection, path: Path) -> DuckDBPyRelation | None:
        # Text is welcome in the column of labels: whether it makes sense is seen later.
        relation = open_relation(connection, path, replace(self.columns, is_multiclass=True))
        if relation is None:
            return None
        schema = nw.from_native(relation).collect_schema()
        holds_text = schema.get(self.columns.label) in (nw.String, nw.Enum)
        replace(self.columns, is_multiclass=holds_text).bound(schema)
        return relation

    def _rules(self) -> Iterator[Rule]:
        for rule in rules_of(self.columns):
            # What is no outcome is refused later, in better words; here it can be left out.
            if (
                rule.role == "label"
                and rule.kind == "outside"
                and (self.any_label or not self.drops)
            ):
                continue
            yield rule._replace(classes=())

    def _sound(self, part: Columned, faults: Faults, path: Path) -> Columned:
        """Return the rows that can be counted, and note the others."""
        wrong: Mask = np.zeros(self._n_rows(part), dtype=bool)
        for code, rule in enumerate(faults.rules):
            values = part[rule.column]
            broken = broken_in_memory(rule, _numbers(values)) & ~wrong
            if broken.any():
                row = int(np.argmax(broken))
                example = Example(
                    values[row : row + 1].tolist()[0], f"at index {row} of {path.name}"
                )
                faults.add(code, int(broken.sum()), example)
            wrong |= broken
        return {name: values[~wrong] for name, values in part.items()} if wrong.any() else part


def _fetched(relation: DuckDBPyRelation, names: Sequence[str]) -> Columned:
    """Return columns as numbers (nan where null), truth values, or text (None where null)."""
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    asked = [f"{_cast(quoted(name), kinds[name])} AS c{i}" for i, name in enumerate(names)]
    found = relation.project(", ".join(asked)).fetchnumpy()
    return {name: _filled(found[f"c{i}"]) for i, name in enumerate(names)}


def _cast(column: str, kind: str) -> str:
    target = {"number": "DOUBLE", "boolean": "BOOLEAN"}.get(kind_of(kind), "VARCHAR")
    return f"CAST({column} AS {target})"


def _filled(values: Any) -> AnyArray:
    """Return an array without a mask: nan for a missing number, None for missing text."""
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    if values.dtype.kind == "O":
        filled = np.array(values.data, dtype=object)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    numbers = np.array(values.data, dtype=np.float64)
    numbers[np.ma.getmaskarray(values)] = np.nan
    return numbers


def _numbers(values: AnyArray) -> AnyArray:
    """Return what rules can judge: text is 0, and nan where there is none."""
    if values.dtype.kind != "O":
        return values
    return np.where(values == None, np.nan, 0.0)  # noqa: E711  # element by element


def _joined(parts: Sequence[Columned], columns: Columns) -> Columned:
    kinds = {part[columns.label].dtype.kind == "O" for part in parts}
    if len(kinds) > 1:
        raise CalibrantError(
            f"label column {columns.label!r} must hold text or numbers in all files alike"
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
