"""What must hold of calibrators and their maps for any data at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

import calibrant as cb
from calibrant import recalibration as rc
from tests.tolerances import ROUNDING

UNIT = st.floats(0, 1)
TENTHS = st.integers(0, 10).map(lambda k: k / 10)
GRID = np.linspace(0, 1, 41)
NEVER_FALL = [
    *("temperature", "platt", "beta", "isotonic", "scaling_binning"),
    *("smooth_monotone", "density_monotone"),
]


@st.composite
def samples(draw, max_size=20):
    score = draw(st.sampled_from([UNIT, TENTHS]))
    outcome = draw(st.sampled_from([st.sampled_from([0.0, 1.0]), UNIT]))
    rows = draw(st.lists(st.tuples(score, outcome), min_size=1, max_size=max_size))
    p, y = np.array(rows).T
    # Forecasts of 0 and 1 alone with labels between look swapped.
    return (p, y) if np.any((p > 0) & (p < 1)) else (p, np.round(y))


@st.composite
def knots(draw):
    x = np.unique(draw(st.lists(UNIT, min_size=1, max_size=12)))
    return x, np.array(draw(st.lists(UNIT, min_size=len(x), max_size=len(x))))


@pytest.mark.parametrize("name", rc.METHODS)
@settings(max_examples=25)
@given(data=samples())
def test_probabilities_stay_probabilities(name, data):
    p, y = data
    recalibrated = rc.METHODS[name]().fit(p, y).predict(np.concatenate((GRID, p)))
    assert np.all((recalibrated >= 0) & (recalibrated <= 1))
    if name in NEVER_FALL:
        assert np.all(np.diff(recalibrated[: len(GRID)]) >= -ROUNDING)


@pytest.mark.parametrize("name", rc.METHODS)
@settings(max_examples=15)
@given(data=samples(), seed=st.integers(0, 2**32 - 1))
def test_neither_order_nor_unit_of_weight_matters(name, data, seed):
    p, y = data
    rng = np.random.default_rng(seed)
    order, w = rng.permutation(len(p)), rng.uniform(0.5, 2, len(p))
    first = rc.METHODS[name]().fit(p, y, sample_weight=w).predict(GRID)
    again = rc.METHODS[name]().fit(p[order], y[order], sample_weight=3 * w[order]).predict(GRID)
    # Steps may move by rounding where scores are next to each other, slopes where two are.
    assert np.quantile(np.abs(first - again), 0.8) <= 1e-6


@given(data=knots(), p=st.lists(UNIT, min_size=1, max_size=30))
def test_between_knots_nothing_leaves_their_range(data, p):
    x, y = data
    map_, p = rc.PiecewiseLinearMap(x, y), np.array(p)
    value = map_.predict(p)
    piece = np.searchsorted(x, p, side="right") - 1
    left, right = y[np.maximum(piece, 0)], y[np.minimum(piece + 1, len(x) - 1)]
    assert np.all(value >= np.minimum(left, right))
    assert np.all(value <= np.maximum(left, right))
    assert map_.predict(x).tolist() == y.tolist()
    assert value == pytest.approx(np.interp(p, x, y), abs=1e-12)


@given(data=knots(), p=st.lists(UNIT, min_size=2, max_size=30))
def test_rising_knots_make_rising_maps(data, p):
    x, y = data
    value = rc.PiecewiseLinearMap(x, np.sort(y)).predict(np.sort(p))
    assert np.all(np.diff(value) >= 0)


@settings(max_examples=40)
@given(data=samples())
def test_noise_moves_by_twice_smece_at_most_on_average(data):
    p, y = data
    smece = cb.smooth_ece(y, p)
    map_ = rc.NoisyCalibrator().fit(p, y).map_
    # The distribution of the noise by its quantiles, the same for every row.
    normal = np.sort(np.random.default_rng(0).standard_normal(20_000))
    moved = [np.abs(map_.draw(np.full(20_000, one), Fixed(normal)) - one).mean() for one in p]
    assert np.mean(moved) <= 2 * max(smece, 1e-3) * 1.02


class Fixed:
    """A generator that returns given values."""

    def __init__(self, normal):
        self.normal = normal

    def standard_normal(self, shape):
        return self.normal


@settings(max_examples=20)
@given(data=samples())
def test_files_keep_every_bit(data, tmp_path_factory):
    p, y = data
    path = tmp_path_factory.getbasetemp() / "calibrator.json"
    for fitted in (rc.SmoothCalibrator().fit(p, y), rc.IsotonicCalibrator().fit(p, y)):
        fitted.save(path)
        assert rc.load(path).predict(GRID).tolist() == fitted.predict(GRID).tolist()
