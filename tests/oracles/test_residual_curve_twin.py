"""The default smooth curve against sums over rows.

Choosing the scale gathers rows in cells a fifth of the smallest scale wide, and bands in cells a
fifth of the scale: losses agree to a few per cent of their differences, limits to 2% of the width.
"""

import numpy as np
import pytest

import calibrant as cb
from calibrant.curves import residual_smoothing
from calibrant.curves.residual_smoothing import ScoreAxis, cross_validated_bandwidth
from calibrant.data.rows import Sample
from calibrant.datasets import simulate
from tests.twins import residual_curve as twin

kinds = pytest.mark.parametrize("kind", ["plain", "tied", "rare", "weighted", "soft"])


def sample(kind, n=60, seed=3):
    drawn = simulate({"tied": "tenths", "rare": "rare"}.get(kind, "overconfident"), n, rng=seed)
    rng = np.random.default_rng(seed)
    w = rng.exponential(1, n) if kind == "weighted" else np.ones(n)
    y = drawn.y_true.astype(float)
    return (np.clip(y, 0.2, 0.9) if kind == "soft" else y), drawn.y_prob, w


def test_places_by_hand():
    # Ranks 0, 1.5, 1.5 and 3 after the first: a third of the way is none, a half, a half, one.
    axis = ScoreAxis.of(Sample(np.zeros(4), np.array([0.2, 0.4, 0.4, 0.9])))
    expected = [0.02, 0.04 + 0.45, 0.09 + 0.9]
    np.testing.assert_allclose(axis.fractions(np.array([0.2, 0.4, 0.9])), expected)
    np.testing.assert_allclose(axis.positions(np.array(expected)), [0.2, 0.4, 0.9])
    np.testing.assert_allclose(axis.fractions(np.array([0.0, 1.0])), [0, 1])


@kinds
def test_places(kind):
    y, p, _ = sample(kind)
    np.testing.assert_allclose(ScoreAxis.of(Sample(y, p)).fractions(p), twin.axis(p), atol=1e-12)


@kinds
@pytest.mark.parametrize("bandwidth", ["cv", 0.02, 0.3])
def test_the_curve(kind, bandwidth):
    y, p, w = sample(kind)
    curve = cb.reliability_curve(y, p, sample_weight=w, bandwidth=bandwidth, band=None)
    place, at, s = p, lambda t: t, curve.bandwidth
    if bandwidth == "cv":
        # The band is of a third of the bandwidth, and holds the curve.
        place, at, s = twin.axis(p), ScoreAxis.of(Sample(y, p)).fractions, s / 3
    known = np.flatnonzero(~np.isnan(curve.y))[::16]
    t = curve.x[known]
    moved = twin.deviation(at(t), place, y - p, w, curve.bandwidth)
    # Cubic interpolation between points a sixty-fourth of the scale apart.
    np.testing.assert_allclose(curve.y[known], np.clip(t + moved, 0, 1), atol=1e-7)


@kinds
def test_the_choice(kind):
    y, p, w = sample(kind, 120)
    rows = 120 if kind == "soft" else 4 * 120 * np.average((y - p) ** 2, weights=w)
    smallest = min(5 / rows, 1)
    scales = np.geomspace(1, smallest, 2 + int(np.log(smallest) / np.log(0.8)))
    problem = Sample(y, p, w if kind == "weighted" else None)
    found = cross_validated_bandwidth(problem, ScoreAxis.of(problem))
    # Two scales may be as good as equal: either neighbour is as good a choice.
    expected = twin.chosen(twin.axis(p), y - p, w, scales)
    assert abs(np.log(found / expected)) <= 1.01 * np.log(scales[0] / scales[1]) / 2


@pytest.mark.parametrize("kind", ["plain", "tied", "rare", "weighted"])
@pytest.mark.parametrize("bandwidth", ["cv", 0.05])
def test_the_band(kind, bandwidth):
    y, p, w = sample(kind, 150)
    curve = cb.reliability_curve(y, p, sample_weight=w, bandwidth=bandwidth)
    place, at, s = p, lambda t: t, curve.bandwidth
    if bandwidth == "cv":
        # The band is of a third of the bandwidth, and holds the curve.
        place, at, s = twin.axis(p), ScoreAxis.of(Sample(y, p)).fractions, s / 3
    known = np.flatnonzero(~np.isnan(curve.y))[::32]
    t, fitted = curve.x[known], np.interp(p, curve.x, curve.y)
    low, high = twin.limits(t, at(t), place, p, y, w, s, fitted, 0.025)
    low, high = np.minimum(low, curve.y[known]), np.maximum(high, curve.y[known])
    tolerance = 0.03 * (high - low).max()
    np.testing.assert_allclose(curve.low[known], low, atol=tolerance)
    np.testing.assert_allclose(curve.high[known], high, atol=tolerance)


@kinds
def test_the_area_is_smece_at_that_scale(kind):
    y, p, w = sample(kind)
    for s in (0.01, 0.2):
        curve = cb.reliability_curve(y, p, sample_weight=w, bandwidth=s, band=None)
        assert curve.area == pytest.approx(cb.smooth_ece(y, p, sample_weight=w, bandwidth=s))


def test_rows_of_a_cluster_do_not_predict_each_other():
    rng = np.random.default_rng(5)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(float)
    many_p, many_y = np.repeat(p, 10), np.repeat(y, 10)
    cluster = np.repeat(np.arange(60), 10)
    # A copy of a row predicts it perfectly, and so does the smallest scale.
    alone, together = (
        cb.reliability_curve(many_y, many_p, clusters=labels).bandwidth
        for labels in (None, cluster)
    )
    assert alone < 0.02
    assert together > 0.1


def test_calibrated_predictions_have_a_straight_line():
    p = np.random.default_rng(0).beta(2, 2, 4000)
    y = np.random.default_rng(1).random(4000) < p
    curve = cb.reliability_curve(y, p)
    assert curve.bandwidth > 0.5
    assert np.ptp(curve.y - curve.x) < 0.02


def test_narrow_deviations_are_found():
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    bump = 0.2 * np.exp(-0.5 * ((p - 0.65) / 0.05) ** 2)
    curve = cb.reliability_curve(rng.random(20_000) < p - bump, p)
    gap = curve.y - curve.x
    assert np.interp(0.65, curve.x, gap) == pytest.approx(-0.2, abs=0.05)
    assert np.abs(gap[curve.x < 0.4]).mean() < 0.02


def test_the_smallest_scale_holds_a_few_rows():
    problem = Sample(np.array([0, 1, 0]), np.array([0.1, 0.5, 0.9]))
    assert cross_validated_bandwidth(problem, ScoreAxis.of(problem)) == 1
    assert residual_smoothing._ROWS > 1
