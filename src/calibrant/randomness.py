"""How calls say what is random in them: a seed or a generator, and how many draws."""

from __future__ import annotations

import numpy as np

from calibrant.errors import CalibrantError

Generator = np.random.Generator


def read_generator(rng: int | Generator) -> Generator:
    """Read a seed or a generator; the same seed always gives the same draws."""
    if isinstance(rng, Generator):
        return rng
    if not _is_whole(rng) or rng < 0:
        raise CalibrantError(
            f"rng must be a whole number of at least 0 or a numpy Generator; got {rng!r}"
        )
    return np.random.default_rng(int(rng))


def check_resamples(n_resamples: int) -> None:
    """Refuse a number of draws that is not a positive whole number."""
    if not _is_whole(n_resamples) or n_resamples < 1:
        raise CalibrantError(
            f"n_resamples must be a whole number of at least 1; got {n_resamples!r}"
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
