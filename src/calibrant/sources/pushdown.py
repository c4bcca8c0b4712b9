"""Pushdown: one expression, run by the engine that holds the table; only cells come back.

The engine adds up, for each cell (and group), what a sketch keeps. The cell of a score is found
without trusting how an engine rounds: p * N taken to a whole number, which some engines do by
rounding and some by truncation, is the cell or one of its neighbours, and comparing p with the
edges k/N decides. Rows that break rule i are counted in "cell" -1 - i.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibrant.arrays import AnyArray
from calibrant.errors import MissingDependencyError
from calibrant.sketches.cells import ProbabilityCells
from calibrant.sketches.state import Sketch
from calibrant.sketches.table import CellTable
from calibrant.sources.columns import Columns, quoted
from calibrant.sources.faults import Example, Faults, broken_in_engine, rules_of
from calibrant.sources.groups import key_of

Lazy = nw.LazyFrame[Any]
Cells = dict[str, AnyArray]

# Short names of our own: those of the table may be anything.
_LABEL, _WEIGHT, _BY, _FAULT, _CELL = "y", "w", "g", "fault", "cell"
_SUMS = ("n", "soft", "w0", "w1", "w2", "d0", "d1", "e0", "e1", "yy")


def sketch_in_engine(
    frame: Lazy, columns: Columns, n_cells: int
) -> tuple[dict[Any, Sketch], Faults]:
    """Return sketches by group or class, and what is known of the rows not counted."""
    faults = Faults(rules_of(columns))
    rows = _with_faults(_renamed(frame, columns), columns, faults)
    if columns.is_multiclass:
        _count_faults(_collected(rows.group_by(_FAULT).agg(nw.len().alias("rows"))), faults)
        sketches = _by_class(rows, columns, n_cells, faults)
    else:
        cells = _collected(_summed(rows.with_columns(p=nw.col("p0")), columns, n_cells))
        _count_faults(cells, faults)
        sketches = _by_group(cells, columns, n_cells)
    return sketches, _with_examples(rows, columns, faults)


def _renamed(frame: Lazy, columns: Columns) -> Lazy:
    """Return the columns under short names, numbers as doubles."""
    frame, column = _addressable(frame)
    parts = [
        column(name) if role == "label" and columns.is_multiclass else column(name).cast(nw.Float64)
        for role, name in columns.named()
    ]
    named = [part.alias(name) for part, name in zip(parts, _short_names(columns), strict=True)]
    return frame.select(*named, *([] if columns.by is None else [column(columns.by).alias(_BY)]))


def _addressable(frame: Lazy) -> tuple[Lazy, Callable[[str], nw.Expr]]:
    """Return the frame and how its columns are addressed.

    Spark, and DuckDB before 2.0, read dots and quotes in a name: their columns are numbered first.
    """
    names = frame.collect_schema().names()
    numbers = [f"c{i}" for i in range(len(names))]
    native = frame.to_native()
    if frame.implementation.is_pyspark():
        native = native.toDF(*numbers)
    elif frame.implementation.is_duckdb():
        pairs = zip(names, numbers, strict=True)
        native = native.project(", ".join(f"{quoted(name)} AS {number}" for name, number in pairs))
    else:
        return frame, nw.col
    return nw.from_native(native), lambda name: nw.col(f"c{names.index(name)}")


def _with_faults(rows: Lazy, columns: Columns, faults: Faults) -> Lazy:
    """Add the number of the first rule that each row breaks, or the number of rules."""
    n_rules = len(faults.rules)
    codes = [
        nw.when(broken_in_engine(rule, _short_names(columns)[code // 2]))
        .then(nw.lit(code))
        .otherwise(nw.lit(n_rules))
        for code, rule in enumerate(faults.rules)
    ]
    return rows.with_columns(nw.min_horizontal(*codes).alias(_FAULT))


def _short_names(columns: Columns) -> list[str]:
    """List the short names in the order of the columns that are checked."""
    weight = [] if columns.weight is None else [_WEIGHT]
    return [*(f"p{i}" for i in range(len(columns.probs))), _LABEL, *weight]


def _summed(rows: Lazy, columns: Columns, n_cells: int) -> Lazy:
    """Return the sums of a sketch for each cell and group of rows with p, y and perhaps w."""
    p, y, k, size = nw.col("p"), nw.col(_LABEL), nw.col("k"), nw.col("size")
    is_sound = nw.col(_FAULT) == len(rules_of(columns))
    place = nw.when(is_sound).then(p * n_cells).otherwise(nw.lit(0.0))
    rows = rows.with_columns(k=place.cast(nw.Int64).cast(nw.Float64))
    # A column of its own for N: dividing by a number, polars multiplies by its inverse instead.
    rows = rows.with_columns(size=k * 0 + n_cells)
    above = nw.when(p >= (k + 1) / size).then(k + 1).otherwise(k)
    rows = rows.with_columns(k=nw.when(p < k / size).then(k - 1).otherwise(above))
    rows = rows.with_columns(k=nw.when(k < size).then(k).otherwise(k - 1))
    w = nw.lit(1.0) if columns.weight is None else nw.col(_WEIGHT)
    rows = rows.with_columns(
        d=p * n_cells - k - 0.5,
        w0=w * (1 - y),
        w1=w * y,
        w2=w * w,
        # What weighs nothing counts for nothing, once it is known to be sound.
        n=nw.when(is_sound & (w == 0)).then(nw.lit(0)).otherwise(nw.lit(1)),
        soft=nw.when((y > 0) & (y < 1) & (w > 0)).then(nw.lit(1)).otherwise(nw.lit(0)),
        cell=nw.when(is_sound).then(k).otherwise(-1.0 - nw.col(_FAULT)).cast(nw.Int64),
    )
    d, w0, w1 = nw.col("d"), nw.col("w0"), nw.col("w1")
    rows = rows.with_columns(d0=w0 * d, d1=w1 * d, e0=w0 * d * d, e1=w1 * d * d, yy=w1 * y)
    keys = [_CELL] if columns.by is None else [_CELL, _BY]
    return rows.group_by(keys).agg(*(nw.col(name).sum() for name in _SUMS))


def _collected(frame: Lazy) -> Cells:
    """Return what the engine has worked out, as columns."""
    names = frame.collect_schema().names()
    if frame.implementation.is_duckdb():
        # DuckDB hands out plain rows without pyarrow or pandas.
        rows = frame.to_native().fetchall()
        return {name: _array(name, [row[i] for row in rows]) for i, name in enumerate(names)}
    try:
        table = frame.collect()
    except ImportError as problem:
        raise MissingDependencyError(
            f"fetching cells from {frame.implementation.value} needs {problem.name}: "
            f"pip install {problem.name}"
        ) from problem
    return {name: _array(name, table[name].to_list()) for name in names}


def _array(name: str, values: list[Any]) -> AnyArray:
    """Return a column of numbers, or of whatever names groups, exactly."""
    if name != _BY and all(isinstance(value, int | float) for value in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _count_faults(found: Cells, faults: Faults) -> None:
    if _CELL in found:
        codes, counts = -1 - found[_CELL], found["n"]
    else:
        codes, counts = found[_FAULT], found["rows"]
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        if 0 <= code < len(faults.rules):
            faults.add(code, int(count))


def _by_class(rows: Lazy, columns: Columns, n_cells: int, faults: Faults) -> dict[Any, Sketch]:
    """Ask for the cells of one class after the other: each reads only its own column."""
    n_rules = len(faults.rules)
    if faults.total:
        rows = rows.filter(nw.col(_FAULT) == n_rules)
    sketches = {}
    for i, name in enumerate(columns.classes):
        is_true = nw.when(nw.col(_LABEL) == name).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        asked = {"p": nw.col(f"p{i}"), _LABEL: is_true, _FAULT: nw.lit(n_rules)}
        weight = [] if columns.weight is None else [_WEIGHT]
        cells = _collected(_summed(rows.select(*weight, **asked), columns, n_cells))
        sketches[name] = _sketch(cells, columns.weight is not None, n_cells)
    return sketches


def _by_group(cells: Cells, columns: Columns, n_cells: int) -> dict[Any, Sketch]:
    """Return one sketch for each group, the group of everything being None."""
    counted = cells[_CELL] >= 0
    groups: dict[Any, list[int]] = {} if columns.by else {None: np.flatnonzero(counted).tolist()}
    if columns.by is not None:
        for i in np.flatnonzero(counted).tolist():
            groups.setdefault(key_of(cells[_BY][i]), []).append(i)
    return {
        key: _sketch(
            {name: cells[name][at] for name in (_CELL, *_SUMS)}, bool(columns.weight), n_cells
        )
        for key, at in groups.items()
    }


def _sketch(found: Cells, is_weighted: bool, n_cells: int) -> Sketch:
    """Return the sketch made of sums over cells, each of which occurs once."""
    cells = ProbabilityCells(n_cells)
    table = CellTable.empty(cells.size)
    at = found[_CELL].astype(np.intp)
    for outcome in (0, 1):
        table.offsets[outcome, at] = found[f"d{outcome}"] + 1j * found[f"e{outcome}"]
    table.is_weighted = is_weighted
    table.is_soft = bool(found["soft"].any())
    weight = np.stack((found["w0"], found["w1"]))
    if not (is_weighted or table.is_soft):
        table.counts[:, at] = weight
        return Sketch.of_table(cells, table)
    weighed = table.weighing()
    weighed.rows[at] = found["n"]
    weighed.weight[:, at] = weight
    weighed.squares[at] = found["w2"]
    weighed.true_squared = float(found["yy"].sum())
    return Sketch.of_table(cells, table)


def _with_examples(rows: Lazy, columns: Columns, faults: Faults) -> Faults:
    """Ask for the least value that breaks each rule that is broken: it says most."""
    for code in faults.counts:
        name = _short_names(columns)[code // 2]
        broken = rows.filter(nw.col(_FAULT) == code).select(name)
        example = Example(_collected(broken.sort(name).head(1))[name].tolist()[0])
        rule = faults.rules[code]
        if rule.role == "prob" and rule.kind == "outside":
            largest = _collected(broken.select(nw.col(name).max()))[name].tolist()[0]
            example = example._replace(largest=largest)
        faults.examples[code] = example
    return faults
