"""Bands: cases computed by hand, edges, words; that they never collapse."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from calibrant import CalibrantError, Sketch, local_calibration_error, reliability_curve
from calibrant.datasets import simulate
from calibrant.numerics.probability import (
    max_proportion,
    min_proportion,
    proportion_lower,
    proportion_upper,
    rice_tail,
    sidak_tail,
    student_tail,
)

METHODS = ("smooth", "density", "binned", "isotonic")
BANDS = ("confidence", "consistency")
every_method = pytest.mark.parametrize("method", METHODS)
every_band = pytest.mark.parametrize(
    ("band", "simultaneous"), list(itertools.product(BANDS, (False, True)))
)


def band_of(y, p, **options):
    return reliability_curve(y, p, **({"n_resamples": 100} | options))


def known(curve):
    return ~np.isnan(curve.y)


def check_is_a_band(curve):
    lower, upper = curve.low[known(curve)], curve.high[known(curve)]
    assert np.all((lower >= 0) & (lower <= upper) & (upper <= 1))
    np.testing.assert_array_equal(np.isnan(curve.low), np.isnan(curve.y))
    np.testing.assert_array_equal(np.isnan(curve.high), np.isnan(curve.y))


# By hand.


def test_one_event_in_two_rows():
    curve = reliability_curve([0, 1], [0.4, 0.6], method="binned", n_bins=1)
    # (1 - x)^2 = 0.975.
    assert curve.low[0] == pytest.approx(1 - math.sqrt(0.975))
    assert curve.high[0] == pytest.approx(math.sqrt(0.975))
    assert (curve.band, curve.level, curve.simultaneous) == ("confidence", 0.95, False)
    assert "0.95 confidence band" in repr(curve)


def test_two_bins_together():
    curve = reliability_curve([0, 0], [0.1, 0.9], method="binned", n_bins=2, simultaneous=True)
    # One row a bin: each limit is missed with probability a, and (1 - 2 a)^2 = 0.95.
    assert curve.high.tolist() == pytest.approx([(1 + math.sqrt(0.95)) / 2] * 2)


def test_what_calibrated_bins_show():
    # Two rows of chance 1/2: no count of events is as rare as a = 0.025 on either side.
    rare = reliability_curve([0, 1], [0.5, 0.5], method="binned", n_bins=1, band="consistency")
    assert (rare.low[0], rare.high[0]) == (0, 1)
    # Of 10 rows, P(X >= 8) = 56/1024 and P(X >= 9) = 11/1024: the curve may be 0.8, not 0.9.
    more = reliability_curve([0] * 10, [0.5] * 10, method="binned", n_bins=1, band="consistency")
    assert 0.8 < more.high[0] < 0.9
    assert more.low[0] == pytest.approx(1 - more.high[0])


def test_isotonic_limits_by_hand():
    # Two scores of five rows: spans of one and of two cells share the tail.
    p, y = np.repeat([0.2, 0.8], 5), np.repeat([0, 1], 5)
    curve = reliability_curve(y, p, method="isotonic")
    # No event in five rows; for the upper limit at 0.8, nothing but events: no limit.
    assert curve.high[0] == pytest.approx(1 - (0.025 / 2) ** (1 / 5))
    assert curve.high[1] == 1
    assert curve.low[0] == 0
    # Together: two spans of one cell and one of two, a quarter and a half of the tail each.
    whole = reliability_curve(y, p, method="isotonic", simultaneous=True)
    assert whole.high[0] == pytest.approx(1 - (0.025 / 4) ** (1 / 5))


def test_tails():
    assert rice_tail(0.95, np.zeros(3)) == pytest.approx(0.025, abs=1e-8)
    assert sidak_tail(0.95, 1) == pytest.approx(0.025)
    assert (1 - 2 * sidak_tail(0.9, 7)) ** 7 == pytest.approx(0.9)
    # On a path once around a half circle the greatest of all is the length of a normal vector in
    # the plane, P(length > z) = exp(-z^2 / 2); both ends, which are one place, count twice.
    exact = norm.sf(math.sqrt(-2 * math.log(0.05)))
    assert 0.75 * exact < rice_tail(0.95, np.full(10, np.pi / 10)) < exact
    assert student_tail(np.array([0.025]), 10)[0] == pytest.approx(norm.sf(2.262157), abs=1e-7)


def test_limits_of_proportions_and_of_probabilities_are_inverse():
    rng = np.random.default_rng(0)
    chance, rows = rng.uniform(0.001, 0.999, 300), rng.uniform(1, 500, 300)
    tail = np.full(300, 0.01)
    high, low = max_proportion(chance, rows, tail), min_proportion(chance, rows, tail)
    inside = (high < 1 - 1e-9) & (low > 1e-9)
    assert proportion_lower(high, rows, tail)[inside] == pytest.approx(chance[inside], rel=1e-6)
    assert proportion_upper(low, rows, tail)[inside] == pytest.approx(chance[inside], rel=1e-6)
    assert np.all((low <= chance) & (chance <= high))


# Bands never collapse, and hold what they are about.


@every_method
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_leaves_room(method, simultaneous, outcome):
    p = np.random.default_rng(1).beta(1, 9, 60)
    curve = band_of(np.full(60, outcome), p, method=method, simultaneous=simultaneous)
    check_is_a_band(curve)
    near, far = (curve.low, curve.high) if outcome == 0 else (curve.high, curve.low)
    if method == "smooth":
        # Smoothed residuals keep the slope of the diagonal within a bandwidth, which is wide where
        # the last few of 60 scores are.
        assert np.all(np.abs(near[known(curve)] - outcome) < 0.3)
        assert np.median(np.abs(near[known(curve)] - outcome)) < 0.05
        return
    assert np.all(near[known(curve)] == outcome)
    # Sixty rows are all there is to refute by.
    assert np.all(np.abs(far[known(curve)] - outcome) > 1 / 60)


@every_method
@every_band
@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([1], [0.3]),
        ([0, 1], [0.0, 1.0]),
        ([0, 1, 1, 0, 1, 0], [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]),
        ([0.0, 0.25, 1.0], [0.1, 0.5, 0.5]),
        (np.arange(20) % 3 == 0, np.linspace(0.01, 0.99, 20)),
    ],
)
def test_few_rows_and_few_scores(method, band, simultaneous, y, p):
    curve = band_of(y, p, method=method, band=band, simultaneous=simultaneous)
    check_is_a_band(curve)
    if band == "confidence":
        y, lower, upper = (v[known(curve)] for v in (curve.y, curve.low, curve.high))
        assert np.all((lower <= y) & (y <= upper) & (lower < upper))


@every_method
def test_whole_curves_have_wider_bands(method):
    drawn = simulate("overconfident", 300, rng=2)
    for band in BANDS:
        one, whole, surer = (
            band_of(drawn.y_true, drawn.y_prob, method=method, band=band, **options)
            for options in ({}, {"simultaneous": True}, {"level": 0.99})
        )
        inside = known(one)
        for wider in (whole, surer):
            assert np.all(wider.low[inside] <= one.low[inside])
            assert np.all(wider.high[inside] >= one.high[inside])
            assert np.mean((wider.high - wider.low)[inside] > (one.high - one.low)[inside]) > 0.5


def test_consistency_is_about_smoothed_predictions():
    p = np.random.default_rng(3).random(20_000)
    options = {"bandwidth": 0.1, "band": "consistency"}
    curve = reliability_curve(p > 0.5, p, method="density", **options)
    # At 0 predictions are smoothed with those above: 0.1 sqrt(2 / pi) on average, not 0.
    assert curve.low[0] > 0.05
    assert (curve.low[0] + curve.high[0]) / 2 == pytest.approx(0.0798, abs=5e-3)
    middle = len(curve.x) // 2
    assert curve.low[middle] < 0.5 < curve.high[middle]
    # Where residuals are smoothed it is about the diagonal.
    curve = reliability_curve(p > 0.5, p, **options)
    assert curve.low[0] == 0
    np.testing.assert_allclose((curve.low + curve.high)[10:-10] / 2, curve.x[10:-10], atol=5e-3)


@every_method
def test_certain_predictions_leave_nothing_to_chance(method):
    p = np.repeat([0.0, 1.0], 50)
    options = {"bandwidth": 0.01} if method in ("smooth", "density") else {}
    curve = band_of(1 - p, p, method=method, band="consistency", **options)
    ends = curve.low[[0, -1]], curve.high[[0, -1]]
    np.testing.assert_allclose(ends, [[0, 1], [0, 1]], atol=1e-12)


@every_method
@every_band
def test_mirrored_outcomes_have_mirrored_bands(method, band, simultaneous):
    if method == "isotonic" and (simultaneous or band == "consistency"):
        pytest.skip("other spans, or drawn in another order")
    rng = np.random.default_rng(4)
    # On no edge of a bin, and mirrored without rounding.
    p = rng.integers(0, 256, 200) / 256 + 1 / 512
    y = rng.random(200) < p**2
    options = {"method": method, "band": band, "simultaneous": simultaneous, "n_bins": 8}
    if method in ("smooth", "density"):
        options["bandwidth"] = 0.07
    curve, mirror = band_of(y, p, **options), band_of(~y, 1 - p, **options)
    inside = known(curve)
    np.testing.assert_allclose(curve.low[inside], 1 - mirror.high[::-1][inside], atol=2e-3)


# Weights, soft labels, clusters, sketches.


@every_method
@every_band
def test_only_relative_weights_matter(method, band, simultaneous):
    drawn = simulate("softmax", 150, rng=5)
    options = {"method": method, "band": band, "simultaneous": simultaneous}
    plain = band_of(drawn.y_true, drawn.y_prob, **options)
    sevens = band_of(drawn.y_true, drawn.y_prob, sample_weight=np.full(150, 7.0), **options)
    np.testing.assert_allclose(plain.low, sevens.low, atol=1e-6)
    np.testing.assert_allclose(plain.high, sevens.high, atol=1e-6)


def test_uneven_weights_are_worth_fewer_rows():
    y, p, w = [0] * 5, [0.5] * 5, [4, 1, 1, 1, 1]
    curve = reliability_curve(y, p, sample_weight=w, method="binned")
    assert curve.high[0] == pytest.approx(1 - 0.025 ** (20 / 64))


@every_method
def test_soft_labels_say_more_than_drawn_ones(method):
    rng = np.random.default_rng(6)
    p = rng.beta(2, 2, 400)
    chance = np.clip(0.8 * p + 0.1 + rng.normal(0, 0.02, 400), 0, 1)
    width = {"bandwidth": 0.1} if method in ("smooth", "density") else {}
    soft = band_of(chance, p, method=method, **width)
    hard = band_of(rng.random(400) < chance, p, method=method, **width)
    assert np.nanmean(soft.high - soft.low) < 0.5 * np.nanmean(hard.high - hard.low)


def test_one_soft_row_is_no_certainty():
    curve = reliability_curve([0.3], [0.3], method="binned")
    assert curve.low[0] < 0.02
    assert curve.high[0] > 0.9


@every_method
def test_rows_that_belong_together_are_worth_one(method):
    drawn = simulate("overconfident", 120, rng=7)
    y, p = np.repeat(drawn.y_true, 4), np.repeat(drawn.y_prob, 4)
    options = {"method": method, "bandwidth": 0.08} if method == "smooth" else {"method": method}
    if method == "density":
        options["bandwidth"] = 0.08
    alone, many = band_of(drawn.y_true, drawn.y_prob, **options), band_of(y, p, **options)
    together = band_of(y, p, clusters=np.repeat(np.arange(120), 4), **options)
    widths = [np.nanmean(curve.high - curve.low) for curve in (many, alone, together)]
    assert widths[0] < 0.8 * widths[1]
    assert widths[2] == pytest.approx(widths[1], rel=0.1)


def test_clusters_under_calibration():
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(80), 5)
    p = rng.beta(2, 2, 80)[groups]
    y = rng.random(80)[groups] < p
    options = {"band": "consistency", "bandwidth": 0.1}
    rows, clusters = band_of(y, p, **options), band_of(y, p, clusters=groups, **options)
    ratio = np.nanmean(clusters.high - clusters.low) / np.nanmean(rows.high - rows.low)
    assert 1.5 < ratio < 3


def test_very_many_clusters_are_bundled():
    drawn = simulate("perfect", 3000, rng=9)
    single = band_of(drawn.y_true, drawn.y_prob, clusters=np.arange(3000), method="binned")
    plain = band_of(drawn.y_true, drawn.y_prob, method="binned")
    width = np.nanmean(single.high - single.low) / np.nanmean(plain.high - plain.low)
    assert 1 <= width < 1.1


@pytest.mark.parametrize("method", ["smooth", "density", "binned"])
@every_band
@pytest.mark.parametrize("weighted", [False, True])
def test_sketches_have_the_bands_of_their_rows(method, band, simultaneous, weighted):
    drawn = simulate("sinusoidal", 2000, rng=10)
    w = np.random.default_rng(11).exponential(1, 2000) if weighted else None
    options = {"method": method, "band": band, "simultaneous": simultaneous}
    if method == "density":
        options["bandwidth"] = 0.05
    sketch = Sketch().update(drawn.y_true, drawn.y_prob, sample_weight=w)
    found = reliability_curve(sketch, **options)
    rows = reliability_curve(drawn.y_true, drawn.y_prob, sample_weight=w, **options)
    # A sketch's rows may cross from one narrow cell to the next, and it has other distinct scores,
    # between which ranks are linear: a band of a third of the bandwidth shows more of that.
    tolerance = 1.5e-2 if method == "smooth" else 2e-3
    low, high = (np.interp(rows.x, found.x, v) for v in (found.low, found.high))
    np.testing.assert_allclose(low, rows.low, atol=tolerance)
    np.testing.assert_allclose(high, rows.high, atol=tolerance)


def test_confidence_problem_has_its_own_domain():
    rng = np.random.default_rng(12)
    p = rng.dirichlet(np.ones(3), 200)
    y = [rng.choice(3, p=row) for row in p]
    curve = reliability_curve(y, p, method="density", simultaneous=True)
    assert curve.x[0] == pytest.approx(1 / 3)
    check_is_a_band(curve)


@pytest.mark.parametrize("bandwidth", [3e-4, 3.0])
@every_band
def test_extreme_bandwidths(bandwidth, band, simultaneous):
    drawn = simulate("rare", 500, rng=13)
    options = {"bandwidth": bandwidth, "band": band, "simultaneous": simultaneous}
    curve = reliability_curve(drawn.y_true, drawn.y_prob, **options)
    check_is_a_band(curve)
    if bandwidth > 1:
        # All residuals are smoothed into one.
        inside = known(curve) & (curve.high < 1)
        assert np.ptp((curve.high - curve.x)[inside]) < 1e-6


def test_bands_do_not_shrink_with_the_grid():
    # A hundred times the rows: a tenth of the width, from about as many numbers.
    widths = []
    for n in (2000, 200_000):
        drawn = simulate("overconfident", n, rng=14)
        curve = reliability_curve(drawn.y_true, drawn.y_prob, bandwidth=0.06)
        inside = known(curve)
        widths.append(np.average((curve.high - curve.low)[inside], weights=curve.density[inside]))
    assert widths[0] / widths[1] == pytest.approx(10, rel=0.1)


# Local calibration error.


def test_local_bands_are_those_of_the_curve_less_the_score():
    drawn = simulate("overconfident", 300, rng=15)
    for options in ({}, {"band": "consistency"}, {"simultaneous": True}):
        local = local_calibration_error(drawn.y_true, drawn.y_prob, **options)
        curve = reliability_curve(drawn.y_true, drawn.y_prob, method="density", **options)
        np.testing.assert_allclose(local.low, curve.low - curve.x)
        np.testing.assert_allclose(local.high, curve.high - curve.x)
    assert local.method == "local"
    assert np.isnan(local_calibration_error([0, 1], [0.2, 0.6], band=None).high).all()


# Words.


@every_method
def test_no_band(method):
    curve = reliability_curve([0, 1, 1], [0.2, 0.4, 0.9], method=method, band=None)
    assert np.isnan(curve.low).all()
    assert np.isnan(curve.high).all()
    assert curve.band is None
    assert curve.to_dict()["level"] is None
    assert "confidence" not in repr(curve)


@pytest.mark.parametrize("method", ["smooth", "isotonic"])
def test_same_seed_same_bytes(method):
    drawn = simulate("rare", 100, rng=17)
    options = {"method": method, "band": "consistency", "rng": 3}
    first = band_of(drawn.y_true, drawn.y_prob, **options)
    again = band_of(drawn.y_true, drawn.y_prob, **options)
    assert first.high.tobytes() == again.high.tobytes()
    assert first.low.tobytes() == again.low.tobytes()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"band": "bootstrap"}, "band must be one of 'confidence', 'consistency'; got 'bootstrap'"),
        ({"band": "percentile"}, "band must be one of"),
        ({"level": 95}, "level must lie between 0 and 1; got 95: 0.95 is 95%"),
        ({"level": 0}, "level must be a positive number"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 39"),
        ({"rng": -1}, "rng must be a whole number"),
        ({"clusters": [1, 2]}, "clusters must have one label per row"),
        ({"clusters": [1, 1, 1]}, "clusters must hold at least 3 clusters"),
    ],
)
def test_bad_words(options, sentence):
    with pytest.raises(CalibrantError, match=sentence):
        reliability_curve([0, 1, 1], [0.2, 0.4, 0.9], **options)


def test_narrow_bandwidths_with_many_scores_in_clusters():
    p = np.linspace(0, 1, 2000)
    with pytest.raises(
        CalibrantError,
        match=r"bandwidth must be at least 0\.001 where clusters is given; got 0\.0001",
    ):
        reliability_curve(np.arange(2000) % 2, p, bandwidth=1e-4, clusters=np.arange(2000) // 2)


def test_too_many_drawn_curves():
    p = np.linspace(0, 1, 1000)
    y = np.arange(1000) % 2
    sentence = r"n_resamples must be at most 3\d{4} for the band of a curve of so many scores"
    with pytest.raises(CalibrantError, match=sentence):
        reliability_curve(y, p, method="isotonic", band="consistency", n_resamples=100_000)
    with pytest.raises(CalibrantError, match="n_bins must leave at most 8192 bins with rows in"):
        reliability_curve(
            np.arange(20_000) % 2,
            np.linspace(0, 1, 20_000),
            method="binned",
            n_bins=20_000,
            clusters=np.arange(20_000) // 2,
        )


def test_bad_words_about_local_errors():
    y, p = [0, 1, 1], [0.2, 0.4, 0.9]
    with pytest.raises(CalibrantError, match=r"band must be one of .*; got 'percentile'"):
        local_calibration_error(y, p, band="percentile")


def test_sketches_know_no_clusters():
    sketch = Sketch().update([0, 1], [0.2, 0.7])
    with pytest.raises(CalibrantError, match="clusters needs rows"):
        reliability_curve(sketch, clusters=[0, 1])
