"""What must hold of losses, net benefits and regrets for any data at all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calibrant import (
    brier_score,
    decision_curve,
    ecce_r,
    murphy_curve,
    score_decomposition,
    threshold_regret,
)
from tests.laws.test_cumulative_laws import ANY_SCORE, reordered, weighted
from tests.tolerances import ROUNDING, nearly
from tests.twins import decisions as twin

INNER = st.one_of(st.floats(0.001, 0.999), st.integers(1, 63).map(lambda k: k / 64))


def area(threshold, values):
    return float(np.trapezoid(values, threshold))


@given(data=weighted())
def test_twice_the_integral_is_the_brier_score(data):
    y, p, w = data
    curve = murphy_curve(y, p, sample_weight=w)
    parts = score_decomposition(y, p, sample_weight=w)
    assert 2 * area(curve.threshold, curve.loss) == nearly(brier_score(y, p, sample_weight=w))
    assert 2 * area(curve.threshold, curve.regret) == nearly(parts.miscalibration)
    assert (np.diff(curve.threshold) >= 0).all()


@given(data=weighted(outcome=st.floats(0, 1)))
def test_regret_is_at_most_ecce_r_at_every_threshold(data):
    y, p, w = data
    curve = murphy_curve(y, p, sample_weight=w)
    assert curve.regret.max() <= ecce_r(y, p, sample_weight=w) + ROUNDING


@given(data=weighted(outcome=st.floats(0, 1)), threshold=INNER, seed=st.integers(0, 2**32 - 1))
def test_regret(data, threshold, seed):
    y, p, w = data
    found = threshold_regret(y, p, threshold, sample_weight=w, n_resamples=39)
    curve = murphy_curve(y, p, thresholds=[threshold], sample_weight=w)
    assert found.value == nearly(curve.regret[0])
    assert 0 <= found.low <= found.value <= found.high <= 1
    y2, p2, w2 = reordered(seed, y, p, w)
    again = threshold_regret(y2, p2, threshold, sample_weight=w2, n_resamples=39)
    assert again.value == nearly(found.value)


@given(data=weighted(score=st.integers(0, 64).map(lambda k: k / 64)), threshold=INNER)
def test_as_row_by_row(data, threshold):
    y, p, w = data
    args = y.tolist(), p.tolist(), threshold, None if w is None else w.tolist()
    curve = murphy_curve(y, p, thresholds=[threshold], sample_weight=w)
    assert curve.loss[0] == nearly(float(twin.loss(*args)))
    assert curve.regret[0] == nearly(float(twin.regret(*args)))
    found = decision_curve(y, p, thresholds=[threshold], sample_weight=w)
    # Net benefits grow like 1 / (1 - threshold), and so does rounding.
    rounding = ROUNDING / (1 - threshold)
    assert abs(found.net_benefit[0] - float(twin.net_benefit(*args))) <= rounding
    best = max(found.net_benefit[0], found.treat_all[0], 0.0)
    assert found.recalibrated[0] >= best - rounding


@given(data=weighted(score=ANY_SCORE), copies=st.integers(2, 3))
def test_weight_2_is_the_row_twice(data, copies):
    y, p, _ = data
    grid = np.arange(1, 8) / 8
    once = murphy_curve(y, p, thresholds=grid, sample_weight=np.full(len(y), copies))
    more = murphy_curve(np.repeat(y, copies), np.repeat(p, copies), thresholds=grid)
    assert once.regret == nearly(more.regret)
