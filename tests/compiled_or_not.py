"""The same by compiled code and by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.numerics import compiled_sums

N = 3000


def in_numpy(measure, *rows, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_sums, "MIN_ROWS", float("inf"))
        return measure(*rows, **options)


def some_rows(kind):
    rng = np.random.default_rng(3)
    p = {
        "continuous": rng.random(N),
        "tenths": rng.integers(0, 11, N) / 10,
        "edges": np.concatenate((np.arange(N - 2) % 16 / 15, [0.0, 1.0])),
        "beside edges": np.nextafter(np.arange(1, N + 1) % 15 / 15, rng.integers(0, 2, N)),
    }[kind]
    return rng.random(N) < p**1.5, p
