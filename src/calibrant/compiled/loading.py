"""Loading compiled code before it is needed."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from calibrant.compiled import passes
from calibrant.errors import MissingDependencyError

__all__ = ["load_compiled"]


def load_compiled() -> None:
    """Load the code of the extra ``fast``, for many calls on few rows.

    Long columns load what they need by themselves: those of 8 million rows, or of 33 000 where
    numba has been imported. After this call columns of 512 rows use it too, if scores are float64
    and outcomes float64, int64 or bool, each in one piece; others of fewer than 33 000 rows are
    left to numpy. It takes about a second, and the first time on a machine a dozen, while numba
    compiles. Values differ from those of numpy alone by 1e-9 at most, usually by 1e-15.

    Raises
    ------
    MissingDependencyError
        Where numba is not installed.
    """
    if find_spec("numba") is None:
        raise MissingDependencyError(
            "load_compiled needs numba", hint="pip install 'calibrant[fast]'"
        )
    from calibrant.compiled import zeros

    p = np.linspace(0, 1, 16)
    for dtype in passes.USUAL:
        y = np.zeros(len(p), dtype)
        passes.moments(p, y, 8, (0.0, 1.0, -1.0))
        passes.bin_sums(p, y, 4)
    passes.column_bin_sums(p.reshape(4, 4), np.zeros(4, np.intp), 4)
    tables = np.zeros((21, 6)), np.zeros((3, 6))
    zeros.even_mean(p, 8, *tables)
    zeros.smoothed_mean(p, 0.5, p, *tables)
