"""Rows in memory: one binary problem that answers every question exactly.

Arrays are kept as they came, whatever their dtype: work is done in float64 block by block, so that
reading ten million float32 predictions copies none of them. Long plain columns are not read twice:
compiled passes check rows while they add them up, and everything else has them checked first
(:attr:`Sample.rows`). Measures that need order ask for :attr:`Sample.pooled`, which sorts once and
does not depend on the order of the rows, to the last bit.

Arguments that name columns of a dataframe become those columns first (:func:`read_columns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant._base import AnyArray, FloatArray
from calibrant.data import validation
from calibrant.data.labels import listed, read_outcomes
from calibrant.data.problem import (
    MOST_SCORES,
    Assignment,
    Block,
    Blocks,
    CellOf,
    Index,
    Line,
    Pooled,
    Problem,
    Quantity,
    joined,
    line_of_rows,
    logit_range,
    with_extremes,
)
from calibrant.data.validation import as_array, as_flag, comes_from, one_column, read_weights
from calibrant.errors import CalibrantError
from calibrant.numerics import compiled_sums, smoothing
from calibrant.numerics.probability import logit

Keys = npt.NDArray[np.uint64]

# Libraries whose columns have an index.
_INDEXED = ("pandas", "modin", "cudf")
# Small enough for a block and its temporaries to stay in cache, and for the allocator to keep them.
BLOCK_ROWS = 1 << 14
# Sorted rows are pooled in larger blocks.
_BLOCK_ROWS = 1 << 17
_LANES = 4
_LANE_OF_ROW = np.arange(BLOCK_ROWS) % _LANES
# A part of a sample is a sixty-fourth of it, in runs of rows that fill pages of memory.
_RUN_ROWS, _MIN_RUNS, _MAX_RUNS, _ONE_IN = 1 << 9, 1 << 5, 1 << 8, 64
# The coefficients of 1, y and p in quantities of rows of weight 1.
_COEFFICIENTS: dict[Quantity, tuple[float, float, float]] = {
    "rows": (1.0, 0.0, 0.0),
    "weight": (1.0, 0.0, 0.0),
    "pred": (0.0, 0.0, 1.0),
    "true": (0.0, 1.0, 0.0),
    "residual": (0.0, 1.0, -1.0),
}
# The rows of `compiled_sums.bin_sums`.
UNIFORM_SUMS: dict[Quantity, int] = {"rows": 0, "weight": 0, "pred": 1, "true": 2, "residual": 3}
_ONE = np.uint64(1)
_BITS_OF_ONE = np.float64(1).view(np.uint64)


def read_sample(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
) -> Sample:
    """Check one-dimensional input and make a sample of it; zero-weight rows are left out."""
    y, p = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
    for array, name in ((y, "y_true"), (p, "y_prob")):
        validation.check_not_empty(array, name)
    y, p = one_column(y, "y_true"), one_column(p, "y_prob")
    validation.check_same_length(y, "y_true", p, "y_prob")
    is_plain = sample_weight is pos_label is labels is None and compiled_sums.is_worth_while(p, y)
    if is_plain and not validation.may_be_swapped(y, p):
        return Sample(y, p, is_validated=False)
    p = validation.as_numbers(p, "y_prob")
    validation.check_probabilities(p)
    if pos_label is labels is None and validation.is_real(y):
        validation.check_outcomes(y)
    else:
        y = read_outcomes(y, pos_label, labels)
    validation.check_not_swapped(y, p)
    return Sample(y, p).weighted(read_weights(sample_weight, len(p)))


@dataclass(frozen=True, eq=False)
class Sample(Problem):
    """One binary calibration problem held as rows.

    The constructor trusts its arguments: arrays from outside go through :func:`read_sample`.
    """

    y: AnyArray  # outcomes in [0, 1], shape (n,), any real dtype
    p: AnyArray  # predictions, likewise
    w: AnyArray | None = None  # positive weights, or None when every row counts once
    lowest: float = 0.0  # the smallest possible score: 1/C for the top class of C, else 0
    is_validated: bool = True  # False for plain columns that have not been checked yet

    @property
    def rows(self) -> Sample:
        """The sample itself, refused if any row is invalid."""
        if not self.is_validated:
            _ = self._checked  # cached: a sample that cached itself would never be freed
        return self

    @cached_property
    def _checked(self) -> bool:
        validation.check_probabilities(self.p)
        validation.check_outcomes(self.y)
        validation.check_not_swapped(self.y, self.p)
        return True

    def weighted(self, w: AnyArray | None) -> Sample:
        """Return the same rows under weights `w`, without those of weight 0."""
        if w is None:
            return self
        weighted = Sample(self.y, self.p, w)
        return weighted if w.min() > 0 else weighted.take(np.flatnonzero(w))

    @property
    def n(self) -> int:
        return len(self.p)

    @cached_property
    def weight(self) -> float:
        return float(self.n) if self.w is None else float(self.w.sum(dtype=np.float64))

    @property
    def is_weighted(self) -> bool:
        return self.w is not None

    @cached_property
    def is_soft(self) -> bool:
        y = self.rows.y
        if y.dtype.kind != "f":
            return False
        blocks = (y[start : start + BLOCK_ROWS] for start in range(0, self.n, BLOCK_ROWS))
        return not all(map(validation.all_zero_or_one, blocks))

    def blocks(self) -> Iterator[Block]:
        """Yield the rows as float64 (p, y, w) blocks; w is None where every row counts once."""
        rows = self.rows
        for start in range(0, self.n, BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            w = None if rows.w is None else _float64(rows.w[some])
            yield _float64(rows.p[some]), _float64(rows.y[some]), w

    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return all rows as float64 (p, y, w), copied only where the dtype differs."""
        rows = self.rows
        w = np.ones(self.n) if rows.w is None else _float64(rows.w)
        return _float64(rows.p), _float64(rows.y), w

    def take(self, which: slice | Index) -> Sample:
        """Return the sample of some of the rows."""
        rows = self.rows
        w = None if rows.w is None else rows.w[which]
        return Sample(rows.y[which], rows.p[which], w, rows.lowest)

    def part(self) -> Sample:
        y, p = self._some(self.y), self._some(self.p)
        # A part alone would not tell the position of an invalid row.
        if not self.is_validated and not (validation.are_unit(p) and validation.are_unit(y)):
            return self.rows.part()
        return Sample(y, p, None if self.w is None else self._some(self.w), self.lowest)

    def _some(self, column: AnyArray) -> AnyArray:
        """Return runs of rows taken from all of a column."""
        n_runs = min(max(self.n // (_ONE_IN * _RUN_ROWS), _MIN_RUNS), _MAX_RUNS)
        starts = range(0, self.n, max(self.n // n_runs, _RUN_ROWS))
        return np.concatenate([column[start : start + _RUN_ROWS] for start in starts])

    def totals(self, assignment: Assignment, *quantities: Quantity) -> FloatArray:
        if assignment.is_uniform and (columns := self._compiled_columns()):
            found = compiled_sums.bin_sums(*columns, assignment.n_bins)
            if found is not None:
                return found[[UNIFORM_SUMS[quantity] for quantity in quantities]]
        # Neighbouring rows often share a bin, and an addition to a bin must wait for the one before
        # it: taking turns over a few copies of the bins is faster.
        has_lanes = self.n > BLOCK_ROWS
        lanes = _LANE_OF_ROW * assignment.n_bins if has_lanes else None
        sums = np.zeros((len(quantities), (_LANES if has_lanes else 1) * assignment.n_bins))
        for p, y, w in self.blocks():
            values = [_per_row(quantity, p, y, w) for quantity in quantities]
            for index, part in assignment.weights(p):
                place = index if lanes is None else index + lanes[: len(index)]
                for total, value in zip(sums, values, strict=True):
                    each = value if part is None else part if value is None else value * part
                    total += np.bincount(place, each, minlength=len(total))
        if has_lanes:
            sums = sums.reshape(len(quantities), _LANES, -1).sum(axis=1)
        return sums

    def spectrum(self, scale: float, *quantities: Quantity) -> FloatArray:
        n_cells, n_moments = smoothing.resolution(self.n, scale)
        if n_moments == compiled_sums.N_MOMENTS and (columns := self._compiled_columns()):
            found = [
                compiled_sums.moments(*columns, n_cells, _COEFFICIENTS[one]) for one in quantities
            ]
            if all(one is not None for one in found):
                return smoothing.coefficients(np.array(found), smoothing.n_modes(scale))
        blocks = ((p, row_values(quantities, p, y, w)) for p, y, w in self.blocks())
        return smoothing.spectrum(blocks, len(quantities), self.n, scale)

    def _compiled_columns(self) -> tuple[AnyArray, AnyArray] | None:
        """Return p and y where compiled passes, which check all rows, are worth while."""
        is_worth_while = self.w is None and compiled_sums.is_worth_while(self.p, self.y)
        return (self.p, self.y) if is_worth_while else None

    def logit_line(self, tails: float) -> Line:
        def blocks(*quantities: Quantity) -> Blocks:
            for p, y, w in self.blocks():
                values = row_values(quantities, p, y, w)
                inside = (p > 0) & (p < 1)
                if not inside.all():
                    p, values = p[inside], [value[inside] for value in values]
                yield logit(p), values

        def in_order(*quantities: Quantity) -> tuple[FloatArray, list[FloatArray]]:
            inner = self.pooled.inner
            return logit(inner.score), [getattr(inner, quantity) for quantity in quantities]

        def ends(quantity: Quantity) -> tuple[float, float]:
            sums = np.zeros(2)
            for p, y, w in self.blocks():
                (value,) = row_values([quantity], p, y, w)
                sums += value[p == 0].sum(), value[p == 1].sum()
            return float(sums[0]), float(sums[1])

        return line_of_rows(blocks, in_order, ends, logit_range(self), self.n, tails)

    def squared_error(self) -> float:
        total = 0.0
        for p, y, w in self.blocks():
            squares = np.square(y - p)
            total += float(squares.sum() if w is None else (w * squares).sum())
        return total

    @cached_property
    def pooled(self) -> Pooled:
        if self.w is None and not self.is_soft:
            first, *others = pooled_keys(sorted_keys(self.blocks(), self.n))
            return joined((first, *others)) if others else first
        return pooled_rows(*self.columns())

    @cached_property
    def scores(self) -> FloatArray:
        """Sorted scores: all of them, or every k-th of many and the extremes."""
        if self.n <= MOST_SCORES:
            return np.sort(self.columns()[0])
        step, seen = -(-self.n // MOST_SCORES), 0
        kept, extremes = [], []
        for p, _, _ in self.blocks():
            kept.append(p[-seen % step :: step])
            extremes.append(with_extremes(p[:0], p))
            seen += len(p)
        return with_extremes(np.concatenate(kept), np.concatenate(extremes))

    def cell_sums(self, cell_of: CellOf, n_cells: int) -> FloatArray:
        if self.is_weighted or self.is_soft:
            return self._weighted_cell_sums(cell_of, n_cells)
        count, pred = np.zeros((2, 2 * n_cells))
        for p, y, _ in self.blocks():
            place = cell_of(p) + n_cells * (y != 0)
            np.add.at(count, place, 1.0)
            np.add.at(pred, place, p)
        residual = np.repeat([0.0, 1.0], n_cells) * count - pred
        # Cells are narrow: residuals of one outcome are nearly equal there.
        squared = np.divide(residual**2, count, out=np.zeros(2 * n_cells), where=count > 0)
        return np.stack((count, count, pred, residual, squared)).reshape(5, 2, n_cells)

    def _weighted_cell_sums(self, cell_of: CellOf, n_cells: int) -> FloatArray:
        sums = np.zeros((5, 2 * n_cells))
        for p, y, given in self.blocks():
            w = np.ones(len(p)) if given is None else given
            place, part = cell_of(p) + n_cells * (y > p), w * (y - p)
            for total, value in zip(sums, (w, w * w, w * p, part, part * part), strict=True):
                np.add.at(total, place, value)
        return sums.reshape(5, 2, n_cells)


def _per_row(
    quantity: Quantity, p: FloatArray, y: FloatArray, w: FloatArray | None
) -> FloatArray | None:
    """Return a quantity of each row, None where it is 1."""
    if quantity in ("rows", "weight"):
        return w if quantity == "weight" else None
    value = y - p if quantity == "residual" else p if quantity == "pred" else y
    return value if w is None else w * value


def row_values(
    quantities: Iterable[Quantity], p: FloatArray, y: FloatArray, w: FloatArray | None
) -> list[FloatArray]:
    """Return each quantity of each row."""
    values = (_per_row(quantity, p, y, w) for quantity in quantities)
    return [np.ones(len(p)) if value is None else value for value in values]


def _float64(array: AnyArray) -> FloatArray:
    return np.asarray(array, dtype=np.float64)


def sorted_keys(blocks: Iterable[Block], n_rows: int) -> Keys:
    """Return rows of 0/1 outcomes and weight 1 as sorted integers.

    A double in [0, 1] has its two highest bits clear and sorts like the integer of the same bits,
    so the outcome fits below it: one plain sort of 64-bit integers, no argsort, no ties to break.
    """
    keys = np.empty(n_rows, dtype=np.uint64)
    start = 0
    for p, y, _ in blocks:
        block = keys[start : start + len(p)]
        np.add(p, 0.0, out=block.view(np.float64))  # turns -0.0 into 0.0
        np.left_shift(block, _ONE, out=block)
        block |= y.astype(np.uint64)
        start += len(p)
    keys.sort()
    return keys


def pooled_keys(keys: Keys) -> Iterator[Pooled]:
    """Pool sorted keys by score in blocks, no score in two of them."""
    start = 0
    while start < len(keys):
        last = keys[min(start + _BLOCK_ROWS, len(keys)) - 1]
        stop = int(np.searchsorted(keys, last | _ONE, side="right"))
        yield _pool_block(keys[start:stop])
        start = stop


def pooled_rows(p: FloatArray, y: FloatArray, w: FloatArray) -> Pooled:
    """Pool weighted or soft rows by score; they are sorted by score, outcome and weight."""
    order = np.lexsort((w, y, p))
    p, y, w = p[order], y[order], w[order]
    p += 0.0  # turns -0.0 into 0.0
    starts = _starts(p)
    rows = np.diff(starts, append=len(p)).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        squared = w * w
    sums = (np.add.reduceat(v, starts) for v in (w, squared, w * y, w * (y - p)))
    return Pooled(p[starts], rows, *sums)


def _pool_block(keys: Keys) -> Pooled:
    bits = keys >> _ONE
    score = bits.view(np.float64)
    # The bits of 1.0 times 0 or 1 are a double of that value, sooner made than by conversion.
    true = ((keys & _ONE) * _BITS_OF_ONE).view(np.float64)
    starts = _starts(bits)
    if len(starts) == len(keys):
        rows = np.ones(len(keys))
        return Pooled(score, rows, rows, rows, true, true - score)
    rows = np.diff(starts, append=len(keys)).astype(np.float64)
    score, true = score[starts], np.add.reduceat(true, starts)
    return Pooled(score, rows, rows, rows, true, true - rows * score)


def _starts(ordered: AnyArray) -> Index:
    return np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)


def read_columns(data: Any, align: Any, **arguments: Any) -> tuple[Any, ...]:
    """Return arguments that describe rows, names replaced by the columns of `data` they name.

    A text names a column, a list of texts a dataframe of columns, and in a mapping each value is
    one or the other; everything else is returned as it is. No other argument may name the column
    of `y_true`. With `align`, those that have an index must have the same one; otherwise all
    indexes are dropped.
    """
    frame = None if data is None else _frame(data)
    if frame is not None:
        names = {name: list(_named(value)) for name, value in arguments.items()}
        validation.check_not_label(names.pop("y_true"), names, "y_true")
    found = {name: _resolved(frame, name, value) for name, value in arguments.items()}
    if not as_flag(align, "align"):
        return tuple(map(_without_index, found.values()))
    check_same_index(found, "{align}=False pairs rows by position")
    return tuple(found.values())


def check_same_index(
    arguments: Mapping[str, Any], hint: str = "reindex one, or pair rows by position: .to_numpy()"
) -> None:
    """Refuse columns with as many rows but other indexes, which do not belong together."""
    first: tuple[str, Any] | None = None
    for name, value in arguments.items():
        for one in value.values() if isinstance(value, Mapping) else (value,):
            if not comes_from(one, *_INDEXED) or not hasattr(one, "index"):
                continue
            first = first or (name, one.index)
            same_length = len(first[1]) == len(one.index)
            if same_length and first[1] is not one.index and not first[1].equals(one.index):
                raise CalibrantError(
                    "must have the same index as {first}",
                    argument=name,
                    value=type(one),
                    found="another one",
                    hint=hint,
                    first=first[0],
                )


def _without_index(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_index(one) for name, one in value.items()}
    indexed = comes_from(value, *_INDEXED) and hasattr(value, "reset_index")
    return value.reset_index(drop=True) if indexed else value


def _frame(data: Any) -> Any:
    import narwhals.stable.v2 as nw

    frame = nw.from_native(data, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise CalibrantError(
            "must be a dataframe in memory, such as one of pandas, polars or pyarrow",
            argument="data",
            value=type(data),
            hint="collect it first, or make a sketch of it with calibrant.sketch",
        )
    return frame


def _named(value: Any) -> Iterator[str]:
    """Yield the names of columns in an argument."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _named(one)


def _resolved(frame: Any, argument: str, value: Any) -> Any:
    """Return the column or the columns that a value names, or the value itself."""
    if isinstance(value, Mapping) and frame is not None:
        return {name: _resolved(frame, argument, one) for name, one in value.items()}
    if frame is None and isinstance(value, str):
        raise CalibrantError(
            "must have one value per row",
            argument=argument,
            value=value,
            hint="to name a column give the dataframe as {data}",
        )
    names = [value] if isinstance(value, str) else value
    is_list = isinstance(names, list | tuple) and len(names) > 0
    if frame is None or not is_list or not all(isinstance(name, str) for name in names):
        return value
    known = frame.columns
    for name in names:
        if name not in known:
            raise CalibrantError(
                "must name columns of {data} ({known})",
                argument=argument,
                value=name,
                known=listed(known),
            )
    return frame[value if isinstance(value, str) else list(names)].to_native()
