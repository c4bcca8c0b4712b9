"""Tables as sketches, by group or class: rows in memory, and lazy tables inside their engine.

An engine adds up what a sketch keeps for each key (and group); only cells come back. Keys are

    k + 2    cell k, where the arithmetic of the engine, however it rounds, leaves no doubt
    p        the score itself, from 0 to 1, where p is near an edge: few scores are, and the table
             of edges decides about them here
    -1 - i   for rows that break rule i
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibrant._base import AnyArray
from calibrant.data import validation
from calibrant.data.labels import objects
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import ABOVE, BELOW, LOGIT_REACH, Cells, CellTable
from calibrant.errors import MissingDependencyError
from calibrant.io.columns import Columns, Example, InvalidRows, quoted, rules_of
from calibrant.io.formats import MISSING, GroupForm

Frame = nw.DataFrame[Any]
Lazy = nw.LazyFrame[Any]
Sums = dict[str, AnyArray]

# Codes with leading zeros are not numbers.
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_NUMBER = re.compile(_WHOLE.pattern + r"(\.\d*)?([eE][+-]?\d+)?")
# Short names for columns: those of the table may be anything.
_LABEL, _WEIGHT, _BY, _RULE, _KEY = "y", "w", "g", "rule", "key"
_CODE = "calibrant: code of the group"
# In cells, more than the error of any engine's arithmetic.
_DOUBT = 2.0**-20
_SUMS = ("n", "soft", "w0", "w1", "w2", "d0", "d1", "e0", "e1", "yy")


# Keys of groups.


def key_of(value: Any) -> Any:
    """Return the key of a group: None for null and nan, integers for whole numbers."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value != value:
        return None
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def keys_of(written: Iterable[Any], form: GroupForm) -> dict[Any, Any]:
    """Return the keys of groups by what files write."""
    found = [value for value in written if value is not None]
    if form == "values":
        keys = {value: key_of(value) for value in found}
    elif form == "json":
        values = {text: key_of(json.loads(text)) for text in found}
        # Python takes true for 1: where both occur they are text.
        keys = comparable(
            {text: text if isinstance(key, list | dict) else key for text, key in values.items()}
        )
    else:
        # Numbers where all texts are numbers or words such as NA, for no group; else text.
        numbers = {
            text: int(text) if _WHOLE.fullmatch(text) else key_of(float(text))
            for text in found
            if _NUMBER.fullmatch(text)
        }
        is_text = not numbers or not numbers.keys() | set(MISSING) >= set(found)
        keys = {text: text if is_text else numbers.get(text) for text in found}
    return {**keys, None: None}


def comparable(keys: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return keys that can be compared: all are text where they are of several types."""
    kinds = {type(key) for key in keys.values() if key is not None}
    if len(kinds) < 2 or kinds == {int, float}:
        return dict(keys)
    return {written: None if key is None else str(key) for written, key in keys.items()}


def renamed(sketches: Mapping[Any, Sketch], keys: Mapping[Any, Any]) -> dict[Any, Sketch]:
    """Return sketches by other keys, those of the same key merged."""
    return merged({keys[key]: sketch} for key, sketch in sketches.items())


def in_order(sketches: Mapping[Any, Sketch]) -> dict[Any, Sketch]:
    """Return the groups in the order of their keys, null last."""
    found = renamed(sketches, comparable({key: key for key in sketches}))
    keys = sorted(key for key in found if key is not None) + [None] * (None in found)
    return {key: found[key] for key in keys}


def merged(parts: Iterable[Mapping[Any, Sketch]]) -> dict[Any, Sketch]:
    """Return the sum of the sketches of each group."""
    total: dict[Any, Sketch] = {}
    for part in parts:
        for key, sketch in part.items():
            total[key] = total[key] + sketch if key in total else sketch
    return total


# Rows in memory.


class SketchBuilder:
    """Sketches by group or class (None is the key of all rows), and the invalid rows left out."""

    def __init__(self, columns: Columns, cells: Cells) -> None:
        self.columns = columns
        self.sketches: dict[Any, Sketch] = {}
        self.invalid = InvalidRows(rules_of(columns))
        self._cells = cells
        self._n_seen = 0
        self._source: str | None = None

    def begin(self, source: str | None) -> None:
        """Count rows from 0 again, in what errors call `source`."""
        self._n_seen, self._source = 0, source

    def update(self, frame: Frame) -> None:
        """Add the valid rows of a frame."""
        frame = frame.select(self.columns.names)
        values = self._values(frame)
        valid = self.invalid.check(
            [column for column in values for _ in ("missing", "outside")],
            lambda name, row: frame[name][row : row + 1].to_list()[0],
            start=self._n_seen,
            within=self._source,
        )
        self._n_seen += len(frame)
        if valid is not None:
            frame = frame.filter(valid.tolist())
            values = self._values(frame)
        for key, (p, y, *weight) in self._groups(frame, values):
            sketch = self.sketches.setdefault(key, Sketch(self._cells.n_cells, self._cells.scale))
            sketch.update(y, p, *weight)

    def _groups(self, frame: Frame, values: list[AnyArray]) -> Iterator[tuple[Any, list[AnyArray]]]:
        """Yield the rows of each group or class as columns: p, y and perhaps w."""
        columns = self.columns
        if columns.by is not None:
            known = frame.select(columns.by).unique().drop_nulls().with_row_index(_CODE)
            coded = frame.join(known, on=columns.by, how="left")  # perhaps in another order
            # Null matches nothing in a join and gets the last code.
            codes = np.asarray(coded[_CODE].fill_null(len(known)).to_numpy()).astype(np.intp)
            order = np.argsort(codes, kind="stable")
            values = [column[order] for column in self._values(coded)]
            keys = [*map(key_of, known[columns.by].to_list()), None]
            stop = 0
            for key, count in zip(keys, np.bincount(codes, minlength=len(keys)), strict=True):
                start, stop = stop, stop + int(count)
                if count:
                    yield key, [column[start:stop] for column in values]
        elif columns.is_multiclass:
            *probs, codes = values[: len(columns.probs) + 1]
            for code, (name, p) in enumerate(zip(columns.classes, probs, strict=True)):
                yield name, [p, codes == code, *values[len(probs) + 1 :]]
        else:
            yield None, values

    def _values(self, frame: Frame) -> list[AnyArray]:
        """Return the checked columns as numbers, null being nan."""
        return [
            _codes(frame[name], self.columns.classes)
            if role == "label" and self.columns.is_multiclass
            else _numbers(frame[name], f"{role} column {name!r}")
            for role, name in self.columns.named()
        ]


def _numbers(series: nw.Series[Any], called: str) -> AnyArray:
    """Return a column as numbers, without a copy where its values are plain and all there."""
    if series.dtype == nw.Object:
        return validation.as_numbers(series.to_numpy(), called)
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


# Lazy tables, inside their engine.


def sketch_in_engine(
    frame: Lazy, columns: Columns, cells: Cells
) -> tuple[dict[Any, Sketch], InvalidRows]:
    """Return sketches by group or class, and the invalid rows left out."""
    invalid = InvalidRows(rules_of(columns))
    names, n_rules = _short_names(columns), len(invalid.rules)
    broken = [
        nw.when(rule.broken_in_engine(names[code // 2]))
        .then(nw.lit(code))
        .otherwise(nw.lit(n_rules))
        for code, rule in enumerate(invalid.rules)
    ]
    # The first rule that a row breaks, or the number of rules.
    rows = _renamed(frame, columns).with_columns(nw.min_horizontal(*broken).alias(_RULE))
    if columns.is_multiclass:
        counts = _collected(rows.group_by(_RULE).agg(nw.len().alias("rows")))
        _count_invalid(counts[_RULE], counts["rows"], invalid)
        sketches = _by_class(rows, columns, cells, invalid)
    else:
        found = _collected(_summed(rows.with_columns(p=nw.col("p0")), columns, cells))
        _count_invalid(-1 - found[_KEY], found["n"], invalid)
        sketches = _by_group(found, columns, cells)
    _add_examples(rows, columns, invalid)
    return sketches, invalid


def _renamed(frame: Lazy, columns: Columns) -> Lazy:
    """Return the columns under short names, numbers as doubles."""
    # Spark, and DuckDB before 2.0, read dots and quotes in a name: columns are numbered first.
    known = {name: name for name in frame.collect_schema().names()}
    numbered = {name: f"c{i}" for i, name in enumerate(known)}
    native = frame.to_native()
    if frame.implementation.is_pyspark():
        frame, known = nw.from_native(native.toDF(*numbered.values())), numbered
    elif frame.implementation.is_duckdb():
        asked = ", ".join(f"{quoted(name)} AS {number}" for name, number in numbered.items())
        frame, known = nw.from_native(native.project(asked)), numbered
    found = []
    for (role, name), short in zip(columns.named(), _short_names(columns), strict=True):
        column = nw.col(known[name])
        is_class = role == "label" and columns.is_multiclass
        found.append((column if is_class else column.cast(nw.Float64)).alias(short))
    if columns.by is not None:
        found.append(nw.col(known[columns.by]).alias(_BY))
    return frame.select(*found)


def _short_names(columns: Columns) -> list[str]:
    """List the short names in the order of the columns that are checked."""
    weight = [] if columns.weight is None else [_WEIGHT]
    return [*(f"p{i}" for i in range(len(columns.probs))), _LABEL, *weight]


def _summed(rows: Lazy, columns: Columns, cells: Cells) -> Lazy:
    """Return the sums of a sketch for each key and group of rows with p, y and perhaps w."""
    y, d = nw.col(_LABEL), nw.col("d")
    is_valid = nw.col(_RULE) == len(rules_of(columns))
    w = nw.lit(1.0) if columns.weight is None else nw.col(_WEIGHT)
    rows = _with_keys(rows.with_columns(valid=is_valid), cells).with_columns(
        w0=w * (1 - y),
        w1=w * y,
        w2=w * w,
        # Rows of weight 0 are ignored, but must be valid.
        n=nw.when(is_valid & (w == 0)).then(nw.lit(0)).otherwise(nw.lit(1)),
        soft=nw.when((y > 0) & (y < 1) & (w > 0)).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    w0, w1 = nw.col("w0"), nw.col("w1")
    rows = rows.with_columns(d0=w0 * d, d1=w1 * d, e0=w0 * d * d, e1=w1 * d * d, yy=w1 * y)
    keys = [_KEY] if columns.by is None else [_KEY, _BY]
    return rows.group_by(keys).agg(*(nw.col(name).sum() for name in _SUMS))


def _with_keys(rows: Lazy, cells: Cells) -> Lazy:
    """Add each row's key, and its offset d from the centre where the key is an inner cell."""
    p, q, place, k, d = (nw.col(name) for name in ("p", "q", "place", "k", "d"))
    low, high = float(cells.edges[0]), float(cells.edges[-1])
    rows = rows.with_columns(inside=nw.col("valid") & (p >= low) & (p < high))
    # Engines refuse the logarithm of 0, even in rows that do not use it.
    rows = rows.with_columns(q=nw.when(nw.col("inside")).then(p).otherwise(nw.lit(0.5)))
    # The place in cells from the first edge, and a bound of its error.
    if cells.scale == "probability":
        rows, doubt = rows.with_columns(place=q * cells.n_cells), nw.lit(_DOUBT)
    else:
        # Near p = 1 doubles, and so the edges, are far apart on the logit scale.
        rows = rows.with_columns(place=((q / (1 - q)).log() + LOGIT_REACH) / cells.width)
        doubt = _DOUBT + 2.0**-52 / cells.width / (1 - q)
    # Some engines round to integers, some truncate.
    rows = rows.with_columns(k=place.cast(nw.Int64).cast(nw.Float64))
    rows = rows.with_columns(k=nw.when(place < k).then(k - 1).otherwise(k))
    rows = rows.with_columns(d=place - k - 0.5)
    clear = nw.col("inside") & (d > doubt - 0.5) & (d < 0.5 - doubt)
    below, above = (float(cells.n_cells + outer + 2) for outer in (BELOW, ABOVE))
    beside = nw.when((p >= high) & (p < 1)).then(nw.lit(above)).otherwise(p)
    beside = nw.when((p > 0) & (p < low)).then(nw.lit(below)).otherwise(beside)
    key = nw.when(clear).then(k + 2).otherwise(beside)
    return rows.with_columns(
        key=nw.when(nw.col("valid")).then(key).otherwise(-1.0 - nw.col(_RULE)),
        d=nw.when(clear).then(d).otherwise(nw.lit(0.0)),
    )


def _collected(frame: Lazy) -> Sums:
    """Return the columns that the engine computes."""
    names = frame.collect_schema().names()
    if frame.implementation.is_duckdb():
        # Plain rows need neither pyarrow nor pandas.
        rows = frame.to_native().fetchall()
        return {name: _array(name, [row[i] for row in rows]) for i, name in enumerate(names)}
    try:
        table = frame.collect()
    except ImportError as problem:
        raise MissingDependencyError(
            "fetching cells from {engine} needs {package}",
            hint="pip install {package}",
            engine=frame.implementation.value,
            package=problem.name,
        ) from problem
    return {name: _array(name, table[name].to_list()) for name in names}


def _array(name: str, values: list[Any]) -> AnyArray:
    """Return a column of numbers, or of whatever names groups, exactly."""
    if name != _BY and all(isinstance(value, int | float) for value in values):
        return np.array(values)
    return objects(values)


def _count_invalid(codes: AnyArray, counts: AnyArray, invalid: InvalidRows) -> None:
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        if 0 <= code < len(invalid.rules):
            invalid.add(int(code), int(count))


def _by_class(
    rows: Lazy, columns: Columns, cells: Cells, invalid: InvalidRows
) -> dict[Any, Sketch]:
    """Return the sketch of each class, in one query per class that reads its column alone."""
    n_rules = len(invalid.rules)
    if invalid.total:
        rows = rows.filter(nw.col(_RULE) == n_rules)
    sketches = {}
    for i, name in enumerate(columns.classes):
        is_true = nw.when(nw.col(_LABEL) == name).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        asked = {"p": nw.col(f"p{i}"), _LABEL: is_true, _RULE: nw.lit(n_rules)}
        weight = [] if columns.weight is None else [_WEIGHT]
        found = _collected(_summed(rows.select(*weight, **asked), columns, cells))
        sketches[name] = _sketch(found, columns.weight is not None, cells)
    return sketches


def _by_group(found: Sums, columns: Columns, cells: Cells) -> dict[Any, Sketch]:
    """Return one sketch for each group, the group of everything being None."""
    groups: dict[Any, list[int]] = {} if columns.by else {None: []}
    for i in np.flatnonzero(found[_KEY] >= 0).tolist():
        groups.setdefault(key_of(found[_BY][i]) if columns.by else None, []).append(i)
    is_weighted = columns.weight is not None
    return {
        group: _sketch({name: found[name][at] for name in (_KEY, *_SUMS)}, is_weighted, cells)
        for group, at in groups.items()
    }


def _sketch(found: Sums, is_weighted: bool, cells: Cells) -> Sketch:
    """Return the sketch made of sums over keys."""
    place = found[_KEY].astype(np.float64) - 2
    # The sums of the offsets of rows from the centres of their cells, by outcome.
    offsets = np.stack([found[f"d{y}"] + 1j * found[f"e{y}"] for y in (0, 1)])
    (single,) = np.nonzero(place < 0)
    if len(single):
        p = np.asarray(found[_KEY][single], dtype=np.float64)
        here, d = np.empty((2, len(p)))
        cells.locate(p, here, d)
        place[single] = here
        for outcome in (0, 1):
            offsets[outcome, single] = found[f"w{outcome}"][single] * (d + 1j * d * d)
    table, at = CellTable.empty(cells.size), place.astype(np.intp)
    np.add.at(table.offsets.T, at, offsets.T)
    table.is_weighted = is_weighted
    table.is_soft = bool(found["soft"].any())
    weight = np.stack((found["w0"], found["w1"]))
    if not (is_weighted or table.is_soft):
        np.add.at(table.counts.T, at, weight.T.astype(np.int64))
        return Sketch.of_table(cells, table)
    weighed = table.weighing()
    np.add.at(weighed.rows, at, found["n"])
    np.add.at(weighed.weight.T, at, weight.T)
    np.add.at(weighed.squares, at, found["w2"])
    weighed.true_squared = float(found["yy"].sum())
    return Sketch.of_table(cells, table)


def _add_examples(rows: Lazy, columns: Columns, invalid: InvalidRows) -> None:
    """Fetch the smallest value that breaks each broken rule: it explains most."""
    for code in invalid.counts:
        name = _short_names(columns)[code // 2]
        broken = rows.filter(nw.col(_RULE) == code).select(name)
        example = Example(_collected(broken.sort(name).head(1))[name].tolist()[0])
        rule = invalid.rules[code]
        if rule.role == "prob" and rule.kind == "outside":
            largest = _collected(broken.select(nw.col(name).max()))[name].tolist()[0]
            example = example._replace(largest=largest)
        invalid.examples[code] = example
