"""Tally: rows in memory, a table or a stretch of one at a time, into sketches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibrant import checks
from calibrant.arrays import AnyArray
from calibrant.problem import Index
from calibrant.sketches.cells import Cells
from calibrant.sketches.state import Sketch
from calibrant.sources.columns import Columns
from calibrant.sources.faults import (
    Example,
    Faults,
    broken_in_memory,
    most_telling,
    rules_of,
)
from calibrant.sources.groups import key_of

Frame = nw.DataFrame[Any]

_CODE = "calibrant: code of the group"


class Tally:
    """Sketches by group or class (the key of everything is None), and the rows not counted."""

    def __init__(self, columns: Columns, cells: Cells) -> None:
        self.columns = columns
        self.sketches: dict[Any, Sketch] = {}
        self.faults = Faults(rules_of(columns))
        self._cells = cells
        self._n_seen = 0
        self._origin: str | None = None

    def begin(self, origin: str | None) -> None:
        """Count places from 0 again, in words that say of what."""
        self._n_seen, self._origin = 0, origin

    def take(self, frame: Frame) -> None:
        """Count the rows of a frame that break no rule."""
        sound = self._without_faults(frame.select(self.columns.names))
        self._n_seen += len(frame)
        for key, rows in self._groups(sound):
            self._count(key, rows)

    def _groups(self, frame: Frame) -> Iterator[tuple[Any, list[AnyArray]]]:
        """Yield the rows of each group or class as columns: p, y and perhaps w."""
        columns = self.columns
        if columns.by is not None:
            frame, starts, order, keys = _coded(frame, columns.by)
            values = [column[order] for column in self._values(frame)]
            for key, start, stop in zip(keys, starts[:-1], starts[1:], strict=True):
                yield key, [column[start:stop] for column in values]
            return
        values = self._values(frame)
        if not columns.is_multiclass:
            yield None, values
            return
        *probs, codes = values[: len(columns.probs) + 1]
        for code, (name, p) in enumerate(zip(columns.classes, probs, strict=True)):
            yield name, [p, codes == code, *values[len(probs) + 1 :]]

    def _count(self, key: Any, rows: list[AnyArray]) -> None:
        p, y, *weight = rows
        sketch = self.sketches.setdefault(key, Sketch(self._cells.n_cells, self._cells.scale))
        sketch.update(y, p, *weight)

    def _values(self, frame: Frame) -> list[AnyArray]:
        """Return the checked columns as numbers, null being nan."""
        return [
            _codes(frame[name], self.columns.classes)
            if role == "label" and self.columns.is_multiclass
            else _numbers(frame[name], f"{role} column {name!r}")
            for role, name in self.columns.named()
        ]

    def _without_faults(self, frame: Frame) -> Frame:
        """Return the rows that break no rule, and note the others."""
        values = self._values(frame)
        rules = self.faults.rules[1::2]
        if all(rule.all_sound(column) for rule, column in zip(rules, values, strict=True)):
            return frame
        seen = np.zeros(len(frame), dtype=bool)
        for code, rule in enumerate(self.faults.rules):
            broken = broken_in_memory(rule, values[code // 2]) & ~seen
            if broken.any():
                row = most_telling(values[code // 2], broken)
                value = frame[rule.column][row : row + 1].to_list()[0]
                largest = float(values[code // 2][broken].max())
                example = Example(value, self._n_seen + row, self._origin, largest)
                self.faults.add(code, int(broken.sum()), example)
            seen |= broken
        return frame.filter((~seen).tolist())


def _numbers(series: nw.Series[Any], called: str) -> AnyArray:
    """Return a column as numbers, without a copy where its values are plain and all there."""
    if series.dtype == nw.Object:
        return checks.as_numbers(series.to_numpy(), called)
    if series.dtype == nw.Decimal or series.null_count():
        series = series.cast(nw.Float64)
    return np.asarray(series.to_numpy())


def _codes(series: nw.Series[Any], classes: tuple[Any, ...]) -> AnyArray:
    """Return the number of each row's class, -1 where it is none of them and nan where null."""
    codes = np.full(len(series), -1.0)
    if series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    for code, name in enumerate(classes):
        codes[(series == name).fill_null(False).to_numpy().astype(bool)] = code
    codes[series.is_null().to_numpy()] = np.nan
    return codes


def _coded(frame: Frame, by: str) -> tuple[Frame, list[int], Index, list[Any]]:
    """Return the frame, in any order, and where each group's rows stand in an order of them."""
    known = frame.select(by).unique().drop_nulls().with_row_index(_CODE)
    coded = frame.join(known, on=by, how="left")
    # A group that is null finds no partner and gets the code after all others.
    codes = np.asarray(coded[_CODE].fill_null(len(known)).to_numpy()).astype(np.intp)
    order = np.argsort(codes, kind="stable")
    starts = [0, *np.cumsum(np.bincount(codes, minlength=len(known) + 1)).tolist()]
    keys = [key_of(value) for value in known[by].to_list()] + [None]
    if starts[-2] == starts[-1]:
        starts, keys = starts[:-1], keys[:-1]
    return coded, starts, order, keys
