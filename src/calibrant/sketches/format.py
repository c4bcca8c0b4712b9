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

from calibrant.arrays import AnyArray
from calibrant.errors import SketchError
from calibrant.sketches.cells import MOST_CELLS, Cells, make_cells
from calibrant.sketches.table import MOST_ROWS, CellTable, Weighed

_MAGIC = b"calibrnt"
_VERSION = 1
_HEADER = struct.Struct("<8sHBBIId")
HEADER_SIZE = _HEADER.size
_DIGEST = 16
_WEIGHED, _IS_WEIGHTED, _IS_SOFT = 1, 2, 4
# Bytes of a filled cell: its index, counts and offsets; and what the weighed part adds.
_COUNTED_SIZE, _WEIGHED_SIZE = 4 + 2 * 8 + 4 * 8, 8 + 2 * 8 + 8


def to_bytes(cells: Cells, table: CellTable) -> bytes:
    """Return a sketch as bytes."""
    weighed = table.weighed
    filled = np.flatnonzero((table.rows > 0) | (table.offsets != 0).any(axis=0))
    flags = _WEIGHED * (weighed is not None)
    flags |= _IS_WEIGHTED * table.is_weighted | _IS_SOFT * table.is_soft
    header = _HEADER.pack(
        _MAGIC,
        _VERSION,
        ("probability", "logit").index(cells.scale),
        flags,
        cells.n_cells,
        len(filled),
        0.0 if weighed is None else weighed.true_squared,
    )
    arrays: list[AnyArray] = [filled.astype("<u4"), table.counts[:, filled].astype("<i8")]
    arrays.append(table.offsets[:, filled].astype("<c16"))
    if weighed is not None:
        arrays.append(weighed.rows[filled].astype("<i8"))
        arrays += [part[..., filled].astype("<f8") for part in (weighed.weight, weighed.squares)]
    content = b"".join((header, *(array.tobytes() for array in arrays)))
    return content + _checksum(content)


def from_bytes(data: bytes) -> tuple[Cells, CellTable]:
    """Return the sketch that bytes hold, or refuse them in one sentence."""
    content = _checked(data)
    _, _, scale, flags, n_cells, n_filled, true_squared = _HEADER.unpack_from(content)
    cells = make_cells(n_cells, ("probability", "logit")[scale])
    reader = _Reader(content, n_filled)
    filled = reader.take("<u4").astype(np.intp)
    table = CellTable.empty(cells.size)
    table.is_weighted, table.is_soft = bool(flags & _IS_WEIGHTED), bool(flags & _IS_SOFT)
    if n_filled and (filled[-1] >= cells.size or np.any(np.diff(filled) <= 0)):
        raise SketchError("sketch bytes make no sense: cells out of order or out of range")
    table.counts[:, filled] = reader.take("<i8", 2)
    table.offsets[:, filled] = reader.take("<c16", 2)
    if flags & _WEIGHED:
        weighed = table.weighed = Weighed.empty(cells.size)
        weighed.rows[filled] = reader.take("<i8")
        weighed.weight[:, filled] = reader.take("<f8", 2)
        weighed.squares[filled] = reader.take("<f8")
        weighed.true_squared = true_squared
    if not (_is_plausible(table) and (flags & _WEIGHED or true_squared == 0 == flags)):
        raise SketchError("sketch bytes make no sense: no rows could have given these numbers")
    return cells, table


class _Reader:
    """Takes arrays off bytes, one after another."""

    def __init__(self, content: bytes, n_filled: int) -> None:
        self._content, self._n_filled, self._at = content, n_filled, _HEADER.size

    def take(self, dtype: str, n_rows: int = 1) -> AnyArray:
        size = self._n_filled * n_rows * np.dtype(dtype).itemsize
        array = np.frombuffer(self._content, dtype, self._n_filled * n_rows, self._at)
        self._at += size
        return array.reshape(n_rows, -1)[0] if n_rows == 1 else array.reshape(n_rows, -1)


def check_header(header: bytes, size: int) -> None:
    """Refuse what does not begin like a sketch, or is not of the size that it says."""
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
    due = HEADER_SIZE + n_filled * cell_size + _DIGEST
    if size != due:
        what = "cut short" if size < due else "damaged"
        raise SketchError(f"sketch bytes are {what}: {size} of them where {due} are due")


def _checked(data: bytes) -> bytes:
    """Return the bytes without their checksum, or say why they are no sketch."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SketchError(f"a sketch is read from bytes; got {type(data).__name__}")
    data = bytes(data)
    check_header(data[:HEADER_SIZE], len(data))
    content, checksum = data[:-_DIGEST], data[-_DIGEST:]
    if _checksum(content) != checksum:
        raise SketchError("sketch bytes are damaged: their checksum does not match")
    return content


def _is_plausible(table: CellTable) -> bool:
    """Tell whether rows could have given these numbers, whoever made the checksum."""
    weighed = table.weighed or Weighed.empty(table.size)
    parts = (table.counts, weighed.rows, weighed.weight, weighed.squares)
    if not all(bool(np.all(np.isfinite(part) & (part >= 0))) for part in parts):
        return False
    rows = float(table.counts.sum(dtype=np.float64) + weighed.rows.sum(dtype=np.float64))
    mass = weighed.weight.sum(axis=0)
    room = table.weight * (0.5 + 1e-6)
    first, second = table.offsets.real, table.offsets.imag
    return (
        rows <= MOST_ROWS
        and bool(np.all((weighed.rows > 0) == (mass > 0)))
        and bool(np.all((weighed.squares > 0) <= (mass > 0)))
        and bool(np.all(np.abs(first) <= room))
        and bool(np.all((second >= 0) & (second <= room / 2)))
        and 0 <= weighed.true_squared <= float(weighed.weight[1].sum()) * (1 + 1e-6)
    )


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
