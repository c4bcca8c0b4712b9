"""Sketches as bytes, version 1.

All numbers are little-endian, and cells that hold nothing are left out:

=================  =====================================================================
header, 28 bytes   magic "calibrnt"; version, u16; scale (0 probability, 1 logit), u8;
                   flags (1 weighed part, 2 weighted, 4 soft), u8; n_cells, u32;
                   number m of filled cells, u32; sum of w y^2 of the weighed part, f64
filled cells       their indices, increasing: m of u32
counts             rows of weight 1 by outcome: 2 m of i64
offsets            sums of w d and w d^2 by outcome: 4 m of f64
weighed part       if flagged: rows, m of i64; weight by outcome, 2 m of f64; sums of w^2, m of f64
checksum           BLAKE2b of all the above, 16 bytes
=================  =====================================================================
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import numpy.typing as npt

from calibrant._base import AnyArray
from calibrant.data import validation
from calibrant.data.sketch_cells import (
    MOST_CELLS,
    MOST_ROWS,
    Cells,
    CellTable,
    Scale,
    Weighed,
    make_cells,
)
from calibrant.errors import SketchError

_MAGIC = b"calibrnt"
_VERSION = 1
_HEADER = struct.Struct("<8sHBBIId")
HEADER_SIZE = _HEADER.size
_DIGEST = 16
_SCALES: tuple[Scale, ...] = ("probability", "logit")
_WEIGHED, _IS_WEIGHTED, _IS_SOFT = 1, 2, 4
# Bytes of a filled cell: its index, counts and offsets; and what the weighed part adds.
_COUNTED_SIZE, _WEIGHED_SIZE = 4 + 2 * 8 + 4 * 8, 8 + 2 * 8 + 8
# The relative rounding error of the sums of very many rows, and the rounding error of a logit near
# 20, where doubles next to 1 are 5e-8 apart.
_ROUNDING, _LOGIT_ROUNDING = 1e-6, 2e-7


def to_bytes(cells: Cells, table: CellTable) -> bytes:
    """Return a sketch as bytes."""
    weighed = table.weighed
    filled = np.flatnonzero((table.rows > 0) | (table.offsets != 0).any(axis=0))
    flags = _WEIGHED * (weighed is not None)
    flags |= _IS_WEIGHTED * table.is_weighted | _IS_SOFT * table.is_soft
    true_squared = 0.0 if weighed is None else weighed.true_squared
    start = _MAGIC, _VERSION, _SCALES.index(cells.scale), flags
    header = _HEADER.pack(*start, cells.n_cells, len(filled), true_squared)
    arrays = [filled.astype("<u4")]
    arrays += [table.counts[:, filled].astype("<i8"), table.offsets[:, filled].astype("<c16")]
    if weighed is not None:
        arrays.append(weighed.rows[filled].astype("<i8"))
        arrays += [part[..., filled].astype("<f8") for part in (weighed.weight, weighed.squares)]
    content = b"".join((header, *(array.tobytes() for array in arrays)))
    return content + _checksum(content)


def from_bytes(data: bytes) -> tuple[Cells, CellTable]:
    """Return the sketch that bytes hold, or refuse them in one sentence."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SketchError("must be bytes", argument="data", value=type(data))
    data = bytes(data)
    check_header(data[:HEADER_SIZE], len(data))
    content, checksum = data[:-_DIGEST], data[-_DIGEST:]
    if _checksum(content) != checksum:
        raise SketchError("sketch bytes are damaged: their checksum does not match")
    _, _, scale, flags, n_cells, n_filled, true_squared = _HEADER.unpack_from(content)
    cells = make_cells(n_cells, _SCALES[scale])
    start = HEADER_SIZE

    def take(dtype: str, n_rows: int = 1) -> AnyArray:
        nonlocal start
        array = np.frombuffer(content, dtype, n_filled * n_rows, start)
        start += array.nbytes
        return array if n_rows == 1 else array.reshape(n_rows, -1)

    filled = take("<u4").astype(np.intp)
    table = CellTable.empty(cells.size)
    table.is_weighted, table.is_soft = bool(flags & _IS_WEIGHTED), bool(flags & _IS_SOFT)
    if n_filled and (filled[-1] >= cells.size or np.any(np.diff(filled) <= 0)):
        raise SketchError("sketch bytes make no sense: cells out of order or out of range")
    table.counts[:, filled] = take("<i8", 2)
    table.offsets[:, filled] = take("<c16", 2)
    if flags & _WEIGHED:
        weighed = table.weighed = Weighed.empty(cells.size)
        weighed.rows[filled] = take("<i8")
        weighed.weight[:, filled] = take("<f8", 2)
        weighed.squares[filled] = take("<f8")
        weighed.true_squared = true_squared
    if not (_is_plausible(cells, table) and (flags & _WEIGHED or true_squared == 0 == flags)):
        raise SketchError("sketch bytes make no sense: no rows could have given these numbers")
    return cells, table


def check_header(header: bytes, size: int) -> None:
    """Refuse what does not begin like a sketch, or has another size than its header states."""
    if not header.startswith(_MAGIC):
        raise SketchError(f"not a sketch: its first bytes are {header[:8]!r}, not {_MAGIC!r}")
    if len(header) < HEADER_SIZE:
        raise SketchError(f"sketch bytes are cut short: only {size} of them")
    _, version, scale, flags, n_cells, n_filled, _ = _HEADER.unpack(header)
    if version > _VERSION:
        raise SketchError(
            f"sketch bytes are of version {version}, newer than this calibrant reads "
            f"({_VERSION}): upgrade calibrant"
        )
    if version < 1 or scale > 1 or not 1 <= n_cells <= MOST_CELLS or flags > 7:
        raise SketchError("sketch bytes make no sense: impossible version, scale, cells or flags")
    cell_size = _COUNTED_SIZE + (_WEIGHED_SIZE if flags & _WEIGHED else 0)
    expected = HEADER_SIZE + n_filled * cell_size + _DIGEST
    if size != expected:
        what = "cut short" if size < expected else "damaged"
        raise SketchError(f"sketch bytes are {what}: {size} of them, expected {expected}")


def _is_plausible(cells: Cells, table: CellTable) -> bool:
    """Tell whether rows could have given these numbers, whoever made the checksum."""
    weighed = table.weighed or Weighed.empty(table.size)
    parts = (table.counts, weighed.rows, weighed.weight, weighed.squares, table.offsets)
    if not all(bool(np.isfinite(part).all()) for part in parts):
        return False
    rows = float(table.counts.sum(dtype=np.float64) + weighed.rows.sum(dtype=np.float64))
    if table.counts.min() < 0 or weighed.rows.min() < 0 or rows > MOST_ROWS:
        return False
    return (
        _are_weights(weighed, is_weighted=table.is_weighted)
        and _are_soft(weighed, is_soft=table.is_soft)
        and _are_offsets(table, cells)
    )


def _are_weights(weighed: Weighed, *, is_weighted: bool) -> bool:
    """Tell whether so many rows can have these sums of w and w^2 in each cell."""
    rows, weight, squares = weighed.rows, weighed.weight.sum(axis=0), weighed.squares
    low, high = (validation.MIN_WEIGHT, validation.MAX_WEIGHT) if is_weighted else (1.0, 1.0)
    if weighed.weight.min() < 0 or not (
        _at_most(low * rows, weight) and _at_most(weight, high * rows)
    ):
        return False
    # The mean of squares is at least the square of the mean, and at most that of all in one row.
    square = weight * weight
    return _at_most(square, rows * squares) and _at_most(squares, square if is_weighted else rows)


def _are_soft(weighed: Weighed, *, is_soft: bool) -> bool:
    """Tell whether the sum of w y^2 can belong to these sums of w and w y; y^2 = y if not soft."""
    weight, true, squared = weighed.weight.sum(), weighed.weight[1].sum(), weighed.true_squared
    low = true * (true / weight if weight > 0 else 0.0) if is_soft else true
    return _at_most(low, squared) and _at_most(squared, true)


def _are_offsets(table: CellTable, cells: Cells) -> bool:
    """Tell whether rows within half a cell of its centre can have these sums of w d and w d^2."""
    weight, first, second = table.weight, np.abs(table.offsets.real), table.offsets.imag
    half = 0.5 + (_LOGIT_ROUNDING / cells.width if cells.scale == "logit" else 0.0)
    return (
        _at_most(first, half * weight)
        and _at_most(second, half * half * weight)
        and bool(np.all(second >= 0))
        # By the Cauchy-Schwarz inequality, but for rounding.
        and _at_most(first * first, weight * second + np.square(_ROUNDING * weight))
        and not table.offsets[:, cells.n_cells :].any()
    )


def _at_most(value: npt.ArrayLike, most: npt.ArrayLike) -> bool:
    """Tell whether sums are at most so large, up to rounding."""
    return bool(np.all(np.asarray(value) <= np.asarray(most) * (1 + _ROUNDING)))


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
