"""Moments of rows within cells as a compiled loop; importing this module imports numba.

A cell keeps eight sums side by side, one line of the processor's cache. Compilers add to them one
by one; here they are told to do it four at a time, for four rows at a time.

Numba keeps compiled code on disk until this file changes: what is compiled in stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from calibrant.compiled.fetching import ask_for
from calibrant.compiled.kernels import compiled

N_SUMS = 8
_STRETCH = 256
# A hair less than 1, so that p = 1 falls into the last cell.
_JUST_BELOW = 1 - 2.0**-52
_FOUR = ir.VectorType(ir.DoubleType(), 4)


@compiled
def gather(p: Any, y: Any, n_cells: int, of: tuple[float, float, float], sums: Any) -> bool:
    """Add rows to the sums of v d^q, q = 0..7, of each cell, if all are sound.

    `of` says what to add up: its three numbers times 1, y and p make v.

    Sound are scores and outcomes in [0, 1]. Cells are folded as `calibrant.cosine` has them; what
    is beyond them is scratch.
    """
    places, offsets, values = np.zeros(_STRETCH, np.uint32), np.zeros(_STRETCH), np.zeros(_STRETCH)
    one, of_y, of_p = of
    size, unfolded = n_cells * _JUST_BELOW, sums[n_cells * N_SUMS :]
    for start in range(0, len(p), _STRETCH):
        scores, outcomes = p[start : start + _STRETCH], y[start : start + _STRETCH]
        sound: Any = True
        for j in range(len(scores)):
            score, outcome = np.float64(scores[j]), np.float64(outcomes[j])
            sound &= (score >= 0) & (score <= 1) & (outcome >= 0) & (outcome <= 1)
            x = score * size
            k = np.int32(x)
            places[j] = np.uint32(N_SUMS) * np.uint32(k)
            offsets[j] = x - np.float64(k) - 0.5
            values[j] = one + of_y * outcome + of_p * score
        if not sound:
            return False
        # The last stretch may end amid four rows.
        values[len(scores) :] = 0
        for j in range(0, len(scores), 4):
            # A line of the cache holds eight rows.
            if j % 8 == 0:
                ask_for(p, start + _STRETCH + j)
                ask_for(y, start + _STRETCH + j)
            _add_four_rows(unfolded, places, values, offsets, j)
    _fold(unfolded.reshape(n_cells, N_SUMS), sums[: unfolded.size].reshape(n_cells, N_SUMS))
    return True


@compiled
def _fold(cells: Any, folded: Any) -> None:
    """Copy even cells from the left and odd ones from the right, these as seen from there."""
    for k in range(len(cells)):
        is_odd = k % 2 == 1
        place, sign = (len(cells) - 1 - k // 2, -1.0) if is_odd else (k // 2, 1.0)
        for q in range(0, N_SUMS, 2):
            folded[place, q] = cells[k, q]
            folded[place, q + 1] = sign * cells[k, q + 1]


def _addition(
    typing: Any, sums: Any, places: Any, values: Any, offsets: Any, j: Any
) -> tuple[Any, Callable[..., Any]]:
    """Add v d^q, q = 0..7, of rows j to j + 3 to the eight sums at the place of each."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        *arrays, first = arguments
        sums, places, values, offsets = (
            context.make_array(kind)(context, builder, array).data
            for kind, array in zip(signature.args, arrays, strict=False)
        )
        value, offset = (_four_at(builder, of, first) for of in (values, offsets))
        powers = [value]
        for _ in range(3):
            powers.append(builder.fmul(powers[-1], offset))
        square = builder.fmul(offset, offset)
        fourth = builder.fmul(square, square)
        lower = _transposed(builder, powers)
        upper = _transposed(builder, [builder.fmul(power, fourth) for power in powers])
        for i in range(4):
            place = builder.load(builder.gep(places, [builder.add(first, first.type(i))]))
            start = builder.zext(place, first.type)
            _add(builder, sums, start, lower[i])
            _add(builder, sums, builder.add(start, first.type(4)), upper[i])
        return context.get_dummy_value()

    return types.void(sums, places, values, offsets, j), generate


_add_four_rows: Any = intrinsic(_addition)


def _four_at(builder: Any, array: Any, place: Any) -> Any:
    """Return four neighbouring numbers."""
    return builder.load(_address(builder, array, place), align=8)


def _add(builder: Any, array: Any, place: Any, four: Any) -> None:
    """Add to four neighbouring numbers."""
    address = _address(builder, array, place)
    builder.store(builder.fadd(builder.load(address, align=8), four), address, align=8)


def _address(builder: Any, array: Any, place: Any) -> Any:
    return builder.bitcast(builder.gep(array, [place]), _FOUR.as_pointer())


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Return the columns of four rows of four."""

    def picked(left: Any, right: Any, *which: int) -> Any:
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 4), which)
        return builder.shuffle_vector(left, right, mask)

    a, b, c, d = rows
    even_ab, odd_ab = picked(a, b, 0, 4, 2, 6), picked(a, b, 1, 5, 3, 7)
    even_cd, odd_cd = picked(c, d, 0, 4, 2, 6), picked(c, d, 1, 5, 3, 7)
    return [
        picked(even_ab, even_cd, 0, 1, 4, 5),
        picked(odd_ab, odd_cd, 0, 1, 4, 5),
        picked(even_ab, even_cd, 2, 3, 6, 7),
        picked(odd_ab, odd_cd, 2, 3, 6, 7),
    ]
