"""Spreads of many scores, which are not sorted, against those of few, which are."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.data.rows import Sample
from calibrant.measures import density as module
from calibrant.measures.density import spreads
from tests.tolerances import ROUNDING

RNG = np.random.default_rng(5)
SCORES = {
    "spread out": lambda n: RNG.random(n),
    "next to 0": lambda n: RNG.random(n) ** 9 / 1e5,
    "next to 1": lambda n: 1 - RNG.random(n) / 1e6,
    "tenths": lambda n: RNG.integers(0, 11, n) / 10,
    "at edges of cells": lambda n: RNG.integers(0, 1025, n) / 1024,
    "zeros and ones": lambda n: np.where(np.arange(n) < n // 4, 0.0, 1.0),
    "one score": lambda n: np.full(n, 0.3),
    "single precision": lambda n: RNG.random(n).astype(np.float32),
}


@pytest.mark.parametrize("kind", SCORES)
def test_many_rows_as_few(kind, monkeypatch):
    monkeypatch.setattr(module, "_MANY", 1)
    for n in (4, 5, 6, 7, 100, 2001, 2002, 2003, 2004):
        p = SCORES[kind](n)
        sample = Sample(np.zeros(n), p)
        low, high = np.quantile(p.astype(np.float64), [0.25, 0.75], method="hazen")
        assert spreads(sample) == pytest.approx(
            (p.astype(np.float64).std(), high - low), abs=ROUNDING
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_MANY", 1 << 30)
            expected = spreads(sample)
        assert spreads(sample) == pytest.approx(expected, abs=ROUNDING)
