"""What must hold of cumulative measures and tests for any data at all."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from calibrant import (
    calibration_slope_test,
    cumulative_curve,
    cumulative_test,
    ecce_mad,
    ecce_r,
    spiegelhalter_test,
    subpopulation_curve,
    subpopulation_test,
)
from tests.tolerances import ROUNDING, assert_nearly_equal, nearly

# Multiples of 2^-6: 1 - p is exact, and ties stay ties.
DYADIC = st.integers(0, 64).map(lambda k: k / 64)
ANY_SCORE = st.one_of(st.floats(0, 1), DYADIC)
HARD = st.integers(0, 1).map(float)
MEASURES = pytest.mark.parametrize("measure", [ecce_mad, ecce_r])


@st.composite
def samples(draw, score=ANY_SCORE, outcome=HARD, least=1):
    n = draw(st.integers(least, 40))
    rows = draw(st.lists(st.tuples(outcome, score), min_size=n, max_size=n))
    y, p = np.array(rows, dtype=float).T
    # Soft labels with forecasts of 0 and 1 alone are refused as swapped.
    assume(not (np.isin(p, (0, 1)).all() and p.min() < p.max() and len(np.unique(y)) > 2))
    return y, p


@st.composite
def weighted(draw, **options):
    y, p = draw(samples(**options))
    w = draw(st.lists(st.floats(0.01, 100), min_size=len(y), max_size=len(y)))
    return y, p, draw(st.sampled_from([None, np.array(w)]))


def reordered(seed, *columns):
    order = np.random.default_rng(seed).permutation(len(columns[0]))
    return [None if column is None else column[order] for column in columns]


@given(data=weighted(outcome=st.floats(0, 1)), seed=st.integers(0, 2**32 - 1))
def test_row_order_does_not_matter_to_errors(data, seed):
    y, p, w = data
    y2, p2, w2 = reordered(seed, y, p, w)
    for measure in (ecce_mad, ecce_r):
        assert measure(y2, p2, sample_weight=w2) == nearly(measure(y, p, sample_weight=w))
    a, b = cumulative_curve(y, p, sample_weight=w), cumulative_curve(y2, p2, sample_weight=w2)
    assert a.deviation == nearly(b.deviation)
    assert a.fraction == nearly(b.fraction)


@given(data=weighted(score=st.floats(0.001, 0.999), least=2), seed=st.integers(0, 2**32 - 1))
def test_row_order_does_not_matter_to_tests(data, seed):
    y, p, w = data
    member = np.arange(len(y)) % 2 == 0
    y2, p2, w2, member2 = reordered(seed, y, p, w, member)
    for method in ("asymptotic", "monte_carlo"):
        keywords = {"method": method, "n_resamples": 39}
        first = cumulative_test(y, p, sample_weight=w, **keywords)
        assert_nearly_equal(cumulative_test(y2, p2, sample_weight=w2, **keywords), first)
        one = outcome_of(subpopulation_test, y, p, group=member, sample_weight=w, **keywords)
        two = outcome_of(subpopulation_test, y2, p2, group=member2, sample_weight=w2, **keywords)
        assert_nearly_equal(one, two)
    for test in (spiegelhalter_test, calibration_slope_test):
        one = outcome_of(test, y, p, sample_weight=w)
        assert_nearly_equal(outcome_of(test, y2, p2, sample_weight=w2), one)


def outcome_of(test, *args, **keywords):
    """The result as plain values, nan being None, or the sentence with which it was refused."""
    try:
        return test(*args, **keywords).to_dict()
    except ValueError as refusal:
        return str(refusal)


@MEASURES
@given(data=samples(score=DYADIC), seed=st.integers(0, 2**32 - 1))
def test_weight_k_is_a_row_k_times(measure, data, seed):
    y, p = data
    times = np.random.default_rng(seed).integers(1, 4, len(y))
    repeated = measure(np.repeat(y, times), np.repeat(p, times))
    assert measure(y, p, sample_weight=times) == pytest.approx(repeated, abs=ROUNDING)


@given(data=weighted(score=DYADIC))
def test_turning_events_into_non_events(data):
    y, p, w = data
    turned = ecce_r(1 - y, 1 - p, sample_weight=w)
    assert turned == pytest.approx(ecce_r(y, p, sample_weight=w), abs=ROUNDING)


@given(data=weighted(outcome=st.floats(0, 1)))
def test_bounds(data):
    y, p, w = data
    mad, span = ecce_mad(y, p, sample_weight=w), ecce_r(y, p, sample_weight=w)
    residual = y - p
    slack = ROUNDING
    assert abs(np.average(residual, weights=w)) <= mad + slack
    assert mad <= span + slack
    assert span <= 2 * mad + slack
    assert span <= np.average(np.abs(residual), weights=w) + slack


@given(data=weighted(outcome=st.floats(0, 1)))
def test_errors_are_read_off_the_curve(data):
    y, p, w = data
    curve = cumulative_curve(y, p, sample_weight=w)
    assert ecce_mad(y, p, sample_weight=w) == nearly(np.abs(curve.deviation).max())
    assert ecce_r(y, p, sample_weight=w) == pytest.approx(np.ptp(curve.deviation), abs=ROUNDING)
    assert curve.fraction[0] == curve.deviation[0] == 0
    assert curve.fraction[-1] == 1
    assert np.all(np.diff(curve.fraction) > 0)


@MEASURES
@given(p=st.lists(ANY_SCORE, min_size=1, max_size=30))
def test_labels_that_equal_predictions_have_no_error(measure, p):
    assert measure(np.array(p), np.array(p)) == 0


@given(data=weighted(score=st.floats(0.01, 0.99)), factor=st.floats(1e-3, 1e3))
def test_the_scale_of_weights_is_nothing(data, factor):
    y, p, w = data
    assume(w is not None)
    a = cumulative_test(y, p, sample_weight=w)
    b = cumulative_test(y, p, sample_weight=factor * w)
    assert (a.statistic, a.sigma) == pytest.approx((b.statistic, b.sigma), rel=1e-12, abs=ROUNDING)
    assert a.p_value == pytest.approx(b.p_value, rel=1e-9)


@given(data=weighted(score=st.floats(0.001, 0.999), least=2))
def test_the_slope_test_needs_no_fit(data):
    y, p, w = data
    assume(np.ptp(p) > 1e-6)
    result = calibration_slope_test(y, p, sample_weight=w)
    assert 0 < result.p_value <= 1
    fit = (result.joint_intercept, result.joint_intercept_error, result.slope, result.slope_error)
    assert np.isnan(fit).all() or np.isfinite(fit).all()


@given(data=weighted(score=st.floats(0.01, 0.99)), seed=st.integers(0, 100))
def test_p_values_lie_above_zero_and_up_to_one(data, seed):
    y, p, w = data
    for statistic in ("range", "max"):
        for method in ("asymptotic", "monte_carlo"):
            result = cumulative_test(
                y, p, sample_weight=w, statistic=statistic, method=method, n_resamples=39, rng=seed
            )
            assert 0 < result.p_value <= 1


@given(data=weighted())
def test_a_group_of_everyone_has_no_others(data):
    y, p, w = data
    with pytest.raises(ValueError, match="group cannot be compared with its population"):
        subpopulation_curve(y, p, group=np.ones(len(y), dtype=bool), sample_weight=w)


@given(score=ANY_SCORE, y=HARD, w=st.lists(st.floats(0.01, 100), min_size=2, max_size=30))
def test_rows_all_alike_leave_no_noise(score, y, w):
    member = np.arange(len(w)) % 2 == 0
    curve = subpopulation_curve(
        np.full(len(w), y), np.full(len(w), score), group=member, sample_weight=w
    )
    np.testing.assert_array_equal(curve.deviation, 0)
    assert curve.sigma == 0


@given(data=weighted(score=DYADIC), seed=st.integers(0, 2**32 - 1))
def test_a_group_and_the_others_deviate_oppositely_at_shared_scores(data, seed):
    y, p, w = data
    member = np.random.default_rng(seed).random(len(y)) < 0.5
    p = np.concatenate([p, p])
    y, member = np.concatenate([y, 1 - y]), np.concatenate([member, ~member])
    w = None if w is None else np.concatenate([w, w])
    assume(member.any() and not member.all())
    ours, theirs = (subpopulation_curve(y, p, group=g, sample_weight=w) for g in (member, ~member))
    total, others = (np.sum(g if w is None else w[g]) for g in (member, ~member))
    np.testing.assert_allclose(ours.deviation * total, -theirs.deviation * others, atol=1e-10)
    assert ours.sigma * total == pytest.approx(theirs.sigma * others, abs=1e-10)
