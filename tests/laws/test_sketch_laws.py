"""A sketch is a commutative monoid: any split, any order, any number of merges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cb
from tests.tolerances import ROUNDING


@st.composite
def split_rows(draw):
    n = draw(st.integers(1, 60))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    kind = draw(st.sampled_from(["uniform", "hundredths", "ends"]))
    p = {
        "uniform": rng.random(n),
        "hundredths": rng.integers(0, 101, n) / 100,
        "ends": rng.beta(0.05, 0.05, n),
    }[kind]
    y = (rng.random(n) < p).astype(float)
    if draw(st.booleans()):
        # Some soft labels among hard ones, so that parts may have none.
        y = np.where(rng.random(n) < 0.2, rng.random(n), y)
    w = rng.random(n) + 0.1 if draw(st.booleans()) else None
    part = rng.integers(0, draw(st.integers(1, 7)), n)
    return y, p, w, part, rng


@given(split_rows(), st.sampled_from(["probability", "logit"]))
def test_any_split_and_order_is_one_pass(rows, scale):
    y, p, w, part, rng = rows
    whole = cb.Sketch(120, scale).update(y, p, w)
    parts = [
        cb.Sketch(120, scale).update(y[mine], p[mine], None if w is None else w[mine])
        for mine in (part == k for k in rng.permutation(part.max() + 1))
        if mine.any()
    ]
    merged = sum(parts)
    assert merged.allclose(whole)
    assert np.array_equal(merged.table.rows, whole.table.rows)


@given(split_rows())
def test_merging_is_commutative_to_the_last_bit_and_has_a_nothing(rows):
    y, p, w, part, _ = rows
    mine = part == 0
    a = cb.Sketch(120).update(y[mine], p[mine], None if w is None else w[mine])
    b = cb.Sketch(120).update(y[~mine], p[~mine], None if w is None else w[~mine])
    assert a + b == b + a
    assert a + cb.Sketch(120) == a
    assert (a + (b + a)).allclose((a + b) + a)


def test_resuming_from_a_file_is_as_if_never_stopped(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = rng.random(1000) < p
    once = cb.Sketch().update(y[:400], p[:400]).update(y[400:], p[400:])
    cb.Sketch().update(y[:400], p[:400]).save(tmp_path / "half")
    assert cb.Sketch.load(tmp_path / "half").update(y[400:], p[400:]) == once


@pytest.mark.parametrize("n_parts", [1, 10, 1000])
def test_binned_error_of_shards_is_that_of_all_rows(n_parts):
    rng = np.random.default_rng(4)
    p = rng.integers(0, 101, 2000) / 100
    y = rng.random(2000) < p
    shards = np.array_split(np.arange(2000), n_parts)
    merged = sum(cb.Sketch().update(y[rows], p[rows]) for rows in shards)
    assert cb.ece(merged, n_bins=10) == pytest.approx(cb.ece(y, p, n_bins=10), abs=ROUNDING)
