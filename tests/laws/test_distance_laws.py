"""What must hold of distances to calibration for any data at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import (
    distance_bounds,
    interval_error,
    laplace_kernel_error,
    smooth_ece,
    weak_calibration_error,
    weak_calibration_witness,
)
from tests.tolerances import ROUNDING, nearly

MEASURES = {
    "weak": weak_calibration_error,
    "laplace": laplace_kernel_error,
    "interval": interval_error,
    "low": lambda y, p, **w: distance_bounds(y, p, **w).low,
    "high": lambda y, p, **w: distance_bounds(y, p, **w).high,
}
SCORE = st.integers(0, 64).map(lambda k: k / 64) | st.floats(0, 1)


@st.composite
def samples(draw, score=SCORE):
    rows = draw(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 0.25]), score), min_size=1))
    y, p = np.array(rows, dtype=float).T
    return y, p


@pytest.mark.parametrize("name", MEASURES)
@given(data=samples(), seed=st.integers(0, 2**32 - 1))
def test_row_order_does_not_matter(name, data, seed):
    y, p = data
    order = np.random.default_rng(seed).permutation(len(y))
    measure = MEASURES[name]
    assert measure(y[order], p[order]) == nearly(measure(y, p))


@pytest.mark.parametrize("name", MEASURES)
@given(data=samples(), seed=st.integers(0, 2**32 - 1))
def test_weight_k_is_a_row_k_times(name, data, seed):
    y, p = data
    times = np.random.default_rng(seed).integers(1, 4, len(y))
    measure = MEASURES[name]
    repeated = measure(np.repeat(y, times), np.repeat(p, times))
    assert measure(y, p, sample_weight=times) == pytest.approx(repeated, abs=1e-12)


@pytest.mark.parametrize("name", MEASURES)
@given(data=samples(score=st.integers(0, 64).map(lambda k: k / 64)))
def test_turning_events_into_non_events(name, data):
    y, p = data
    measure = MEASURES[name]
    assert measure(1 - y, 1 - p) == pytest.approx(measure(y, p), abs=1e-12)


@pytest.mark.parametrize("name", MEASURES)
@given(data=samples())
def test_a_soft_row_is_a_mixture_of_hard_ones(name, data):
    y, p = data
    measure = MEASURES[name]
    both = np.repeat([1.0, 0.0], len(y)), np.tile(p, 2)
    split = measure(*both, sample_weight=np.concatenate([y, 1 - y]))
    assert split == pytest.approx(measure(y, p), abs=1e-12)


@given(data=samples())
def test_order_of_the_distances(data):
    y, p = data
    mean = abs(np.mean(y - p))
    total = np.abs(np.bincount(np.unique(p, return_inverse=True)[1], y - p)).sum() / len(y)
    wce, bounds = weak_calibration_error(y, p), distance_bounds(y, p)
    slack = ROUNDING
    assert mean <= wce + slack
    assert max(mean, wce / 2) <= bounds.low + slack
    assert bounds.low <= bounds.high + slack
    assert bounds.high <= min(2 * wce, interval_error(y, p)) + slack
    assert interval_error(y, p) <= total + slack
    assert laplace_kernel_error(y, p) ** 2 <= wce * total + slack


@given(data=samples())
def test_witness_attains_the_error(data):
    witness = weak_calibration_witness(*data)
    assert np.abs(witness.value).max() <= 1 + ROUNDING
    assert np.all(np.abs(np.diff(witness.value)) <= np.diff(witness.score) + ROUNDING)
    assert witness.value @ witness.residual == pytest.approx(witness.error, abs=1e-12)


@given(data=samples(), size=st.floats(0, 0.1), seed=st.integers(0, 2**32 - 1))
def test_moving_predictions_moves_the_distance_no_further(data, size, seed):
    y, p = data
    moved = np.clip(p + size * np.random.default_rng(seed).uniform(-1, 1, len(p)), 0, 1)
    movement = np.abs(moved - p).mean()
    assert abs(weak_calibration_error(y, moved) - weak_calibration_error(y, p)) <= (
        2 * movement + 1e-12
    )
    # dCE itself moves by at most the movement, so the bounds of one hold for the other.
    assert distance_bounds(y, moved).low <= distance_bounds(y, p).high + movement + 1e-12


@given(data=samples(), scale=st.sampled_from([0.01, 0.1, 0.5]))
def test_smooth_ece_bounds_and_is_bounded(data, scale):
    # 000, Lemma 21 and Corollary 24, the latter with the constant of the total variation put right.
    y, p = data
    smooth = smooth_ece(y, p, bandwidth=scale)
    steepness = np.sqrt(2 / np.pi)
    assert weak_calibration_error(y, p) <= smooth + steepness * scale + 1e-9
    assert smooth <= (1 + steepness / scale) * distance_bounds(y, p).high + 1e-9
