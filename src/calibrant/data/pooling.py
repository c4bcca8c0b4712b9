"""Rows of equal score pooled, by one sort.

The result never depends on the order of the rows, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from calibrant._base import AnyArray, FloatArray
from calibrant.data.problem import Block, Index, Pooled

Keys = npt.NDArray[np.uint64]

_BLOCK_ROWS = 1 << 17
_COLUMNS = ("score", "rows", "weight", "weight_squared", "true", "residual")
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


def joined(blocks: Iterable[Pooled]) -> Pooled:
    """Return blocks of pooled rows as one."""
    parts = list(blocks)
    if len(parts) == 1:
        return parts[0]
    return Pooled(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


def rearranged(pooled: Pooled, order: Index) -> Pooled:
    """Return pooled rows in another order."""
    return Pooled(*(getattr(pooled, name)[order] for name in _COLUMNS))


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
    new = np.empty(len(ordered), dtype=bool)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)
