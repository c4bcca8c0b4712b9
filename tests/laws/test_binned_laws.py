"""What must hold of binned measures for any data at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import calibrant as cb
from tests.tolerances import ROUNDING

# Multiples of 2^-6: 1 - p is exact, and no score leaves its bin.
DYADIC = st.integers(0, 64).map(lambda k: k / 64)
POINT_MEASURES = {
    "ece": lambda y, p, **w: cb.ece(y, p, **w),
    "quantile": lambda y, p, **w: cb.ece(y, p, strategy="quantile", n_bins=5, **w),
    "convex": lambda y, p, **w: cb.ece(y, p, assignment="convex", **w),
    "l2": lambda y, p, **w: cb.ece(y, p, norm="l2", **w),
    "mce": lambda y, p, **w: cb.mce(y, p, **w),
    "width": lambda y, p, **w: cb.ece(y, p, weighting="width", **w),
    "brier": lambda y, p, **w: cb.brier_score(y, p, **w),
    "miscalibration": lambda y, p, **w: cb.score_decomposition(y, p, **w).miscalibration,
}


@st.composite
def samples(draw, score=DYADIC, outcome=st.integers(0, 1).map(float)):
    n = draw(st.integers(1, 40))
    rows = draw(st.lists(st.tuples(outcome, score), min_size=n, max_size=n))
    y, p = np.array(rows, dtype=float).T
    return y, p


@pytest.mark.parametrize("name", POINT_MEASURES)
@given(data=samples(), seed=st.integers(0, 2**32 - 1))
def test_row_order_does_not_matter(name, data, seed):
    y, p = data
    order = np.random.default_rng(seed).permutation(len(y))
    measure = POINT_MEASURES[name]
    assert measure(y[order], p[order]) == pytest.approx(measure(y, p), abs=ROUNDING)


@pytest.mark.parametrize("name", POINT_MEASURES)
@given(data=samples(), seed=st.integers(0, 2**32 - 1))
def test_weight_k_is_a_row_k_times(name, data, seed):
    y, p = data
    times = np.random.default_rng(seed).integers(1, 4, len(y))
    measure = POINT_MEASURES[name]
    repeated = measure(np.repeat(y, times), np.repeat(p, times))
    assert measure(y, p, sample_weight=times) == pytest.approx(repeated, abs=ROUNDING)


@given(
    data=samples(),
    n_bins=st.sampled_from([1, 2, 3, 8, 10, 15]),
    assignment=st.sampled_from(["hard", "convex"]),
    norm=st.sampled_from(["l1", "l2", "max"]),
    weighting=st.sampled_from(["mass", "width"]),
)
def test_turning_events_into_non_events_swaps_the_closed_side(
    data, n_bins, assignment, norm, weighting
):
    y, p = data
    keywords = {"n_bins": n_bins, "assignment": assignment, "norm": norm, "weighting": weighting}
    left = cb.ece(y, p, closed="left", **keywords)
    right = cb.ece(1 - y, 1 - p, closed="right", **keywords)
    assert left == pytest.approx(right, abs=ROUNDING)


@given(
    p=hnp.arrays(float, st.integers(1, 50), elements=st.floats(0, 1)),
    strategy=st.sampled_from(["uniform", "quantile"]),
    assignment=st.sampled_from(["hard", "convex"]),
    norm=st.sampled_from(["l1", "l2", "max"]),
)
def test_labels_equal_to_predictions_have_no_error_at_all(p, strategy, assignment, norm):
    assert cb.ece(p, p, strategy=strategy, assignment=assignment, norm=norm) == 0.0
    assert cb.brier_score(p, p) == 0.0


@given(data=samples(score=st.floats(0, 1), outcome=st.floats(0, 1)))
def test_order_of_norms_and_bounds(data):
    y, p = data
    l1, l2, worst = (cb.ece(y, p, norm=norm) for norm in ("l1", "l2", "max"))
    assert l1 <= l2 + 1e-12
    assert l2 <= worst + 1e-12
    assert abs(np.mean(y - p)) - 1e-12 <= l1 <= np.mean(np.abs(y - p)) + 1e-12


@given(data=samples(score=st.floats(0, 1)), n_bins=st.integers(1, 30))
def test_finer_bins_never_lower_the_error(data, n_bins):
    y, p = data
    assert cb.ece(y, p, n_bins=n_bins) <= cb.ece(y, p, n_bins=2 * n_bins) + 1e-12


@given(data=samples(score=st.floats(0, 1)), n_bins=st.integers(1, 60))
def test_equal_mass_bins_hold_every_row_once(data, n_bins):
    y, p = data
    table = cb.bin_table(y, p, n_bins=n_bins, strategy="quantile")
    assert table.n.sum() == len(p)
    assert 1 <= len(table.n) <= min(n_bins, len(np.unique(p)))
    assert np.all(table.n > 0)
