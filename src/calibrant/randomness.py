"""How calls say what is random in them: a seed or a generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import CalibrantError

Generator = np.random.Generator


def read_generator(rng: Any) -> Generator:
    """Read a seed or a generator; the same seed always gives the same draws."""
    if isinstance(rng, Generator):
        return rng
    is_whole = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    if not is_whole or rng < 0:
        raise CalibrantError(
            "must be a whole number of at least 0 or a numpy Generator", argument="rng", value=rng
        )
    return np.random.default_rng(int(rng))
