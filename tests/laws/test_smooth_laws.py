"""What must hold of the smooth family for any data at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb

SLACK = 1e-9
UNIT = st.floats(0, 1)
SCALE = st.floats(0.004, 3)


@st.composite
def samples(draw, score=UNIT, outcome=None):
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from([0.0, 1.0]) if outcome is None else outcome, score),
            min_size=1,
            max_size=25,
        )
    )
    y, p = np.array(rows).T
    return y, p


@given(data=samples(), s=SCALE, factor=st.floats(1, 10))
def test_smoothing_more_never_raises_the_error(data, s, factor):
    y, p = data
    assert cb.smooth_ece(y, p, bandwidth=factor * s) <= cb.smooth_ece(y, p, bandwidth=s) + SLACK


@given(data=samples(), s=SCALE)
def test_between_the_mean_residual_and_the_unsmoothed_error(data, s):
    y, p = data
    places = np.unique(p)
    unsmoothed = sum(abs(np.sum((y - p)[p == place])) for place in places) / len(p)
    value = cb.smooth_ece(y, p, bandwidth=s)
    assert abs(np.mean(y - p)) - SLACK <= value <= unsmoothed + SLACK
    assert unsmoothed <= np.mean(np.abs(y - p)) + SLACK


@given(data=samples())
def test_the_fixed_point_is_one_and_unique(data):
    y, p = data
    value = cb.smooth_ece(y, p)
    if value > 0.004:
        assert cb.smooth_ece(y, p, bandwidth=value) == pytest.approx(value, abs=SLACK)
        assert cb.smooth_ece(y, p, bandwidth=0.9 * value) > 0.9 * value
        assert cb.smooth_ece(y, p, bandwidth=1.1 * value) < 1.1 * value


@given(data=samples())
def test_events_and_non_events_are_alike(data):
    y, p = data
    for measure in (
        cb.smooth_ece,
        lambda y, p: cb.smooth_ece(y, p, scale="logit", bandwidth=0.5),
        lambda y, p: cb.density_ece(y, p, bandwidth=0.1),
        lambda y, p: cb.logit_smoothed_ece(y, p, sigma=0.5),
        lambda y, p: cb.logit_smoothed_ece(y, p, sigma=0.5, noise="uniform"),
    ):
        # 1 - p rounds, and the logit of a p next to 0 or 1 feels it: keep away from both.
        q = np.round(0.01 + 0.98 * p, 3)
        assert measure(1 - y, 1 - q) == pytest.approx(measure(y, q), abs=1e-8)


# Scores next to each other take seconds: fewer examples than usual.
@settings(max_examples=20)
@given(data=samples(), seed=st.integers(0, 2**32 - 1))
def test_row_order_and_repetition(data, seed):
    y, p = data
    rng = np.random.default_rng(seed)
    order, times = rng.permutation(len(y)), rng.integers(1, 4, len(y))
    for measure in (
        cb.smooth_ece,
        lambda y, p, **w: cb.density_ece(y, p, bandwidth=0.1, **w),
        lambda y, p, **w: cb.logit_smoothed_ece(y, p, sigma=0.5, **w),
        lambda y, p, **w: cb.logit_smoothed_ece(y, p, sigma=0.5, noise="uniform", **w),
    ):
        value = measure(y, p)
        assert measure(y[order], p[order]) == pytest.approx(value, abs=1e-10)
        repeated = measure(np.repeat(y, times), np.repeat(p, times))
        assert measure(y, p, sample_weight=times) == pytest.approx(repeated, abs=1e-10)


@given(data=samples(), seed=st.integers(0, 2**32 - 1), reach=st.floats(0, 0.05))
def test_moving_predictions_moves_the_error_no_faster_than_smoothing_allows(data, seed, reach):
    # abs(smECE_s(p) - smECE_s(q)) <= (1 + sqrt(2/pi)/s) mean abs(p - q): each residual moves by
    # abs(p - q), and its kernel by sqrt(2/pi)/s abs(p - q) in L1 (000, Lemma 25 as corrected).
    y, p = data
    q = np.clip(p + np.random.default_rng(seed).uniform(-reach, reach, len(p)), 0, 1)
    moved = np.mean(np.abs(p - q))
    for s in (0.01, 0.1, 0.5):
        change = abs(cb.smooth_ece(y, p, bandwidth=s) - cb.smooth_ece(y, q, bandwidth=s))
        assert change <= (1 + np.sqrt(2 / np.pi) / s) * moved + SLACK


@given(data=samples(), s=st.floats(0.01, 1))
def test_the_area_seen_is_near_the_error(data, s):
    # 000, Lemma 10.
    y, p = data
    curve = cb.reliability_curve(y, p, bandwidth=s)
    assert curve.bandwidth == s
    assert abs(curve.area - cb.smooth_ece(y, p, bandwidth=s)) <= np.sqrt(2 / np.pi) * s + SLACK


@given(p=st.lists(UNIT, min_size=1, max_size=30))
def test_labels_equal_to_predictions_have_no_smooth_error(p):
    assert cb.smooth_ece(p, p) == 0.0
    assert cb.smooth_ece(p, p, bandwidth=0.1) == 0.0


@given(data=samples(score=st.floats(0.001, 0.999)), sigma=st.floats(0.05, 3))
def test_logit_smoothing_is_bounded(data, sigma):
    y, p = data
    for noise in ("gaussian", "uniform"):
        assert -SLACK <= cb.logit_smoothed_ece(y, p, sigma=sigma, noise=noise) <= 1 + SLACK
