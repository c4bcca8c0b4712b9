"""Roots and fixed points of monotone functions."""

from __future__ import annotations

import math

import pytest

from calibrant.measures.smooth import fixed_point
from calibrant.numerics.probability import monotone_root
from tests.tolerances import ROUNDING


def test_fixed_point_wherever_one_starts():
    def norm(s):
        return 0.3 - 0.5 * s, -0.5

    for start in (1e-9, 0.01, 0.2 - 1e-4, 0.2, 0.2 + 1e-4, 0.9, 7.0):
        assert fixed_point(norm, 0.01, start) == pytest.approx(0.2, abs=ROUNDING)
    assert fixed_point(norm, 0.21, 0.3) is None


def test_roots_inside_and_outside():
    assert monotone_root(lambda x: math.exp(x) - 2, 0.0, 3.0, 1e-12) == pytest.approx(math.log(2))
    assert monotone_root(lambda x: x + 1, 0.0, 3.0, 1e-12) == 0
    assert monotone_root(lambda x: x - 5, 0.0, 3.0, 1e-12) == 3


def test_a_step_is_a_root():
    def step(x):
        return 1.0 if x >= 0.7 else -1.0

    assert monotone_root(step, 0.0, 1.0, 1e-6) == pytest.approx(0.7, abs=2e-6)


def test_each_point_is_looked_at_once():
    seen = []

    def rising(x):
        seen.append(x)
        return x**3 - 0.1

    monotone_root(rising, 0.0, 1.0, 1e-12)
    assert len(set(seen)) == len(seen)
