"""Rows of equal score pooled, by one sort.

The result never depends on the order of the rows, to the last bit; but for `decisive`, which pools
more than rows of equal score, without sorting them all, where nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from calibrant.arrays import AnyArray, FloatArray
from calibrant.problem import Atoms, Block, Index

Keys = npt.NDArray[np.uint64]

_BLOCK_ROWS = 1 << 17
_CELLS = 1 << 16
_COLUMNS = tuple(column.name for column in fields(Atoms))
_ONE = np.uint64(1)
_BITS_OF_ONE = np.float64(1).view(np.uint64)


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


def pooled_keys(keys: Keys) -> Iterator[Atoms]:
    """Yield the atoms of sorted keys in blocks, no score in two of them."""
    start = 0
    while start < len(keys):
        last = keys[min(start + _BLOCK_ROWS, len(keys)) - 1]
        stop = int(np.searchsorted(keys, last | _ONE, side="right"))
        yield _pool_block(keys[start:stop])
        start = stop


def decisive(blocks: Callable[[], Iterator[Block]]) -> Atoms:
    """Return the steps that decide how far the walk of residuals strays, others pooled.

    Rows have 0/1 outcomes and weight 1. Gathered in narrow cells of scores, they tell where the
    walk stands at the ends of cells. Within a cell in which it rises by a in all and falls by b it
    stays below min(start + a, end + b) and above max(start - b, end - a). Only cells where that is
    beyond the farthest end may hold the farthest point: a few, whose rows are sorted.
    """
    counts, sums = np.zeros(2 * _CELLS, np.int64), np.zeros(2 * _CELLS)
    for p, y, _ in blocks():
        place = _cell(p) + _CELLS * y.astype(np.intp)
        np.add.at(counts, place, 1)
        np.add.at(sums, place, p)
    (zeros, ones), (pred_zero, pred_one) = counts.reshape(2, -1), sums.reshape(2, -1)
    is_open = _may_be_farthest(ones - pred_one, pred_zero)
    (closed,) = np.nonzero((zeros + ones > 0) & ~is_open)
    rows = (zeros + ones)[closed].astype(np.float64)
    pred, true = (pred_zero + pred_one)[closed], ones[closed].astype(np.float64)
    cells = Atoms(np.minimum(pred / rows, 1.0), rows, rows, rows, true, true - pred)
    single = [
        (p[chosen], y[chosen], None)
        for p, y, _ in blocks()
        for chosen in (np.flatnonzero(is_open[_cell(p)]),)
    ]
    n_single = sum(len(p) for p, _, _ in single)
    if n_single == 0:
        return cells
    atoms = joined(pooled_keys(sorted_keys(single, n_single)))
    order = np.argsort(np.concatenate((closed, _cell(atoms.score))), kind="stable")
    return _rearranged(joined((cells, atoms)), order)


def _cell(p: FloatArray) -> Index:
    """Return the cell of each score; 1 is in the last."""
    return np.asarray((p * (_CELLS * (1 - 2.0**-52))).astype(np.intp))


def _may_be_farthest(rise: FloatArray, fall: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell which cells may hold the highest or the lowest point of a walk that starts at 0."""
    end = np.cumsum(rise - fall)
    start = np.concatenate(([0.0], end[:-1]))
    above = np.minimum(start + rise, end + fall) > max(float(end.max()), 0.0)
    below = np.maximum(start - fall, end - rise) < min(float(end.min()), 0.0)
    return np.asarray(above | below)


def pooled_rows(p: FloatArray, y: FloatArray, w: FloatArray) -> Atoms:
    """Return the atoms of weighted or soft rows, sorted by score, outcome and weight."""
    order = np.lexsort((w, y, p))
    p, y, w = p[order], y[order], w[order]
    p += 0.0  # turns -0.0 into 0.0
    starts = _starts(p)
    rows = np.diff(starts, append=len(p)).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        squared = w * w
    sums = (np.add.reduceat(v, starts) for v in (w, squared, w * y, w * (y - p)))
    return Atoms(p[starts], rows, *sums)


def joined(blocks: Iterable[Atoms]) -> Atoms:
    """Return blocks of atoms as one."""
    parts = list(blocks)
    if len(parts) == 1:
        return parts[0]
    return Atoms(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


def _rearranged(atoms: Atoms, order: Index) -> Atoms:
    return Atoms(*(getattr(atoms, name)[order] for name in _COLUMNS))


def _pool_block(keys: Keys) -> Atoms:
    bits = keys >> _ONE
    score = bits.view(np.float64)
    # The bits of 1.0 times 0 or 1 are a double of that value, sooner made than by conversion.
    true = ((keys & _ONE) * _BITS_OF_ONE).view(np.float64)
    starts = _starts(bits)
    if len(starts) == len(keys):
        rows = np.ones(len(keys))
        return Atoms(score, rows, rows, rows, true, true - score)
    rows = np.diff(starts, append=len(keys)).astype(np.float64)
    score, true = score[starts], np.add.reduceat(true, starts)
    return Atoms(score, rows, rows, rows, true, true - rows * score)


def _starts(ordered: AnyArray) -> Index:
    new = np.empty(len(ordered), dtype=bool)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)
