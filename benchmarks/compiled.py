"""With compiled code, and without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import calibrant as cb
from calibrant.compiled import passes


def load() -> bool:
    """Load what the extra `fast` compiles, and tell whether it is there."""
    if find_spec("numba") is None:
        return False
    cb.load_compiled()
    return True


@contextmanager
def numpy_alone() -> Iterator[None]:
    """Leave compiled code aside for a while."""
    at_hand = passes.is_loaded, passes.is_worth_while
    passes.is_loaded, passes.is_worth_while = (lambda: False), (lambda *_: False)
    try:
        yield
    finally:
        passes.is_loaded, passes.is_worth_while = at_hand
