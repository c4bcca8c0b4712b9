"""Rows asked for before they are needed; importing this module imports numba.

Loops that work on a stretch of rows at a time read in bursts, too short for processors to see what
comes next. Asked for a stretch ahead, rows are there when their turn comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_NUMBER = ir.IntType(32)
_ADDRESS = ir.IntType(8).as_pointer()
# To be read, at once and again, as data.
_HOW = (_NUMBER(0), _NUMBER(3), _NUMBER(1))


def _asking(typing: Any, column: Any, place: Any) -> tuple[Any, Callable[..., Any]]:
    """Ask for the row at a place, which may be beyond the end; nothing in scattered columns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, row = arguments
        if column.layout == "C":
            start = context.make_array(column)(context, builder, array).data
            address = builder.bitcast(builder.gep(start, [row]), _ADDRESS)
            kind = ir.FunctionType(ir.VoidType(), [_ADDRESS, _NUMBER, _NUMBER, _NUMBER])
            ask = builder.module.declare_intrinsic("llvm.prefetch", [_ADDRESS], kind)
            builder.call(ask, [address, *_HOW])
        return context.get_dummy_value()

    return types.void(column, place), generate


ask_for: Any = intrinsic(_asking)
