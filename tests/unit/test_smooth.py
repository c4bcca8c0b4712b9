"""Smooth measures: the published examples, large samples, words and curves."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

import calibrant as cb
from calibrant import datasets
from calibrant.data import rows
from calibrant.data.rows import Sample
from calibrant.measures import smooth
from calibrant.numerics import smoothing
from tests.tolerances import ROUNDING
from tests.twins import smooth as twin


def test_the_two_point_example_of_logit_smoothing():
    # 004, Definition 3.1: p = sigmoid(+-0.0005), y the sign. Binned ECE jumps between 0 and 1/2
    # with the parity of the number of bins; smoothed errors do not.
    u = np.array([-0.0005, 0.0005])
    p, y = 1 / (1 + np.exp(-u)), np.array([0, 1])
    binned = [cb.ece(y, p, n_bins=b) for b in range(1, 101)]
    assert np.allclose(binned[0::2], 0.0, atol=1e-3)
    assert np.allclose(binned[1::2], 0.5, atol=1e-3)
    smoothed = np.array([cb.logit_smoothed_ece(y, p, sigma=1 / b) for b in range(1, 101)])
    assert np.all(np.abs(np.diff(smoothed[4:])) < 0.01)
    assert smoothed[4:].max() < 0.04
    assert cb.smooth_ece(y, p) < 0.02


def test_small_moves_of_predictions():
    # 000, Fig. 3: events move a little to the right and non-events to the left; 20-bin ECE leaps
    # from 0.01 to 0.33, smECE hardly moves.
    rng = np.random.default_rng(0)
    p = rng.choice(np.arange(1, 20, 2) / 20, 20_000)
    y = (rng.random(20_000) < p).astype(float)
    moved = np.where(y == 1, p + 1e-3, p - 1e-3)
    assert cb.ece(y, p, n_bins=20) < 0.02
    assert cb.ece(y, moved, n_bins=20) > 0.3
    assert abs(cb.smooth_ece(y, moved) - cb.smooth_ece(y, p)) < 0.015


@pytest.mark.parametrize("n", [50_000, 400_000])
def test_well_calibrated_large_samples(n):
    # Tenths make exact sums cheap: the twin works on the eleven distinct scores.
    rng = np.random.default_rng(n)
    p = rng.integers(0, 11, n) / 10
    y = (rng.random(n) < p).astype(np.int8)
    scores = np.arange(11) / 10
    weights = np.array([np.sum(p == s) for s in scores])
    means = np.array([y[p == s].mean() for s in scores])
    assert cb.smooth_ece(y, p) == pytest.approx(
        twin.smooth_fixed_point(means, scores, weights), abs=1e-9
    )


def test_a_million_continuous_scores():
    # One score a cell of 1e-4, hence the same sums from 10 000 pooled rows.
    rng = np.random.default_rng(5)
    n = 1_000_000
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int8)
    value = cb.smooth_ece(y, p)
    assert 0.002 < value < 0.005
    assert cb.smooth_ece(y, p, bandwidth=value) == pytest.approx(value, abs=1e-10)
    order6 = _by_many_moments(y, p, value)
    assert cb.smooth_ece(y, p, bandwidth=value) == pytest.approx(order6, abs=1e-9)


def _by_many_moments(y, p, s):
    moments = smoothing.cell_moments([(p, [(y - p) / len(p)])], 1, 1 << 14, 9)
    return smoothing.l1_norm(smoothing.coefficients(moments, smoothing.n_modes(s))[0], s)[0]


def test_multiclass_reductions():
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.ones(4), 300)
    y = np.array([rng.choice(4, p=row) for row in p])
    each = [cb.smooth_ece(y == c, p[:, c]) for c in range(4)]
    assert cb.smooth_ece(y, p, multiclass="classwise") == pytest.approx(np.mean(each))
    confidence = cb.smooth_ece(p.argmax(1) == y, p.max(1))
    assert cb.smooth_ece(y, p) == pytest.approx(confidence, abs=ROUNDING)
    assert cb.logit_smoothed_ece(y, p) == pytest.approx(
        cb.logit_smoothed_ece(p.argmax(1) == y, p.max(1)), abs=ROUNDING
    )
    # The confidence of four classes lives in [1/4, 1].
    mirrored = cb.density_ece(p.argmax(1) == y, p.max(1), bounds=(0.25, 1))
    assert cb.density_ece(y, p) == pytest.approx(mirrored, abs=1e-12)
    assert cb.density_ece(y, p, bounds=(0, 1)) != pytest.approx(mirrored, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda y, p: cb.smooth_ece(y, p, bandwidth=0), "bandwidth must be a positive number"),
        (lambda y, p: cb.smooth_ece(y, p, bandwidth="auto"), "bandwidth must be a positive"),
        (lambda y, p: cb.smooth_ece(y, p, scale="log"), "scale must be 'probability', 'logit' or"),
        (lambda y, p: cb.density_ece(y, p, bandwidth="scott"), "bandwidth must be .silverman. or"),
        (lambda y, p: cb.density_ece(y, p, bandwidth=-1), "bandwidth must be a positive"),
        (lambda y, p: cb.density_ece(y, p, kernel="box"), "kernel must be one of"),
        (lambda y, p: cb.density_ece(y, p, bounds=(0.5, 1)), "bounds must enclose every score"),
        (lambda y, p: cb.density_ece(y, p, bounds=(0.5,)), "bounds must be two numbers"),
        (lambda y, p: cb.density_ece(y, p, bounds=(1, 0)), "bounds must increase within"),
        (lambda y, p: cb.logit_smoothed_ece(y, p, sigma=0), "sigma must be a positive number"),
        (lambda y, p: cb.logit_smoothed_ece(y, p, noise="t"), "noise must be one of"),
        (
            lambda y, p: cb.logit_smoothed_ece(y, p, logits=p),
            "must be left out where y_prob is given",
        ),
        (lambda y, p: cb.logit_smoothed_ece(y, logits=[0.0, np.nan, 1.0]), "nan at index 1"),
        (
            lambda y, p: cb.logit_smoothed_ece(y, logits=[0.0]),
            "logits must have as many rows as y_true",
        ),
        (lambda y, p: cb.logit_smoothed_ece(y, logits=[[0.0]] * 3), r"must have shape \(n,\)"),
        (lambda y, p: cb.reliability_curve(y, p, method="lowess"), "method must be one of"),
        (lambda y, p: cb.reliability_curve(y, p, bandwidth=0.0), "bandwidth must be a positive"),
    ],
)
def test_bad_words(call, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        call([0, 1, 1], [0.2, 0.4, 0.9])


def test_certain_predictions_on_the_logit_scale_count_their_limits():
    y, p = [1, 0, 1, 0], [0.0, 0.0, 1.0, 1.0]
    assert cb.logit_smoothed_ece(y, p) == 0.5
    assert cb.smooth_ece(y, p, scale="logit") == pytest.approx(0.5)
    assert cb.logit_smoothed_ece(y, logits=[-np.inf, -np.inf, np.inf, np.inf]) == 0.5
    # Predictions so near 0 that their logits are hundreds away.
    assert cb.logit_smoothed_ece([1, 0], [1e-300, 0.5]) == pytest.approx(0.75, abs=1e-3)


def silverman(p, w=None):
    return cb.reliability_curve(
        np.asarray(p) > 0.5, p, method="density", band=None, sample_weight=w
    ).bandwidth


def test_silverman_with_ties_weights_and_constants():
    rng = np.random.default_rng(7)
    p = rng.random(1000)
    iqr = np.subtract(*np.quantile(p, [0.75, 0.25])) / 1.34
    rule = 0.9 * min(p.std(ddof=1), iqr) * 1000**-0.2
    assert silverman(p) == pytest.approx(rule, rel=5e-3)
    # No spread between the quartiles: the standard deviation alone.
    tied = np.r_[np.full(98, 0.5), 0.1, 0.9]
    assert silverman(tied) == pytest.approx(0.9 * tied.std(ddof=1) * 100**-0.2)
    assert silverman(np.full(5, 0.3)) == 0.01
    assert silverman([0.3]) == 0.01


@pytest.mark.parametrize("method", ["smooth", "density", "binned", "isotonic"])
def test_curves_are_increasing_probabilities(method):
    y, p = datasets.load_flares("DAFFS")
    curve = cb.reliability_curve(y, p, method=method, band=None)
    assert np.all(np.diff(curve.x) > 0)
    known = curve.y[~np.isnan(curve.y)]
    assert np.all((known >= 0) & (known <= 1))
    assert np.all(curve.density >= 0)
    assert np.all(np.isnan(curve.low))
    assert method in repr(curve)
    assert curve.to_dict()["method"] == method


def test_smooth_curve_is_kernel_regression():
    y, p = datasets.load_rain()
    curve = cb.reliability_curve(y, p, bandwidth="smece")
    s = cb.smooth_ece(y, p)
    assert curve.bandwidth == s
    for i in (0, 100, 400, 512):
        kernel = twin.reflected_gaussian(curve.x[i], p, s)
        assert curve.y[i] == pytest.approx(kernel @ y / kernel.sum(), abs=1e-9)
        assert curve.density[i] == pytest.approx(kernel.mean(), abs=1e-9)


def test_areas_are_the_measures():
    y, p = datasets.load_flares("NOAA")
    density = cb.reliability_curve(y, p, method="density")
    assert density.area == pytest.approx(cb.density_ece(y, p))
    assert cb.reliability_curve(y, p, method="binned").area == pytest.approx(cb.ece(y, p))
    isotonic = cb.reliability_curve(y, p, method="isotonic")
    assert np.all(np.diff(isotonic.y) >= 0)


def test_curve_is_unknown_where_there_are_no_scores():
    curve = cb.reliability_curve([0, 1, 1], [0.9, 0.95, 1.0], bandwidth=0.01)
    assert np.all(np.isnan(curve.y[curve.x < 0.8]))
    assert not np.isnan(curve.y[-1])
    diagonal = cb.reliability_curve([0.25, 0.5], [0.25, 0.5], bandwidth="smece")
    assert diagonal.bandwidth == 1e-3
    for rule in ("silverman", "none"):
        with pytest.raises(cb.CalibrantError, match="must be 'cv' or 'smece' or a positive number"):
            cb.reliability_curve([0, 1], [0.25, 0.5], bandwidth=rule)


def test_local_calibration_error_is_the_curve_less_the_score():
    y, p = datasets.load_flares("SIDC")
    local = cb.local_calibration_error(y, p)
    curve = cb.reliability_curve(y, p, method="density")
    np.testing.assert_allclose(local.y, curve.y - curve.x)
    compact = cb.local_calibration_error(y, p, kernel="triweight", bandwidth=0.01)
    assert np.isnan(compact.y).any()


def test_curves_take_one_problem():
    p = np.full((3, 3), 1 / 3)
    with pytest.raises(cb.CalibrantError, match="must select one binary problem"):
        cb.reliability_curve([0, 1, 2], p, multiclass="classwise")


@pytest.mark.parametrize("exponent", [-1, -2, -3, -6])
@pytest.mark.parametrize("side", [0, 1])
def test_scales_next_to_powers_of_two(exponent, side):
    s = float(np.nextafter(2.0**exponent, side))
    value = cb.smooth_ece([0, 1], [0.2, 0.3], bandwidth=s)
    assert value == pytest.approx(cb.smooth_ece([0, 1], [0.2, 0.3], bandwidth=s * 1.001), abs=1e-3)


def test_fixed_points_at_powers_of_two():
    y = [0.2731549436056534, 0.7648338420958296, 0.5083211015098238]
    assert cb.smooth_ece(y, [0.3125, 0.875, 0.4375]) == pytest.approx(0.0625, abs=1e-9)
    curve = cb.reliability_curve([0, 1], [0.2, 0.3], bandwidth="smece")
    assert curve.bandwidth == pytest.approx(0.25, abs=1e-9)


def test_silverman_counts_rows_not_weight():
    p = np.random.default_rng(8).random(500)
    assert silverman(p, np.full(500, 7.0)) == pytest.approx(silverman(p), rel=1e-12)
    # Quartiles of tied scores are those of the rows.
    tied = np.repeat([0.1, 0.3, 0.6], [30, 50, 20])
    rule = 0.9 * min(tied.std(ddof=1), np.subtract(*np.quantile(tied, [0.75, 0.25])) / 1.34)
    assert silverman(tied) == pytest.approx(rule * 100**-0.2)


def test_areas_and_densities_of_curves():
    y, p = [0, 1, 1, 0], [0.125, 0.25, 0.75, 0.875]
    binned = cb.reliability_curve(y, p, method="binned", n_bins=2)
    # Half of the rows in a bin of width one half: density 1.
    assert binned.density.tolist() == [1.0, 1.0]
    isotonic = cb.reliability_curve(y, p, method="isotonic")
    assert isotonic.y.tolist() == [0.0, 2 / 3, 2 / 3, 2 / 3]
    expected = (0.125 + (2 / 3 - 0.25) + (0.75 - 2 / 3) + (0.875 - 2 / 3)) / 4
    assert isotonic.area == pytest.approx(expected)
    local = cb.local_calibration_error(y, p, bandwidth=0.1)
    assert local.area == pytest.approx(cb.density_ece(y, p, bandwidth=0.1))
    with pytest.raises(cb.CalibrantError, match="bandwidth is ignored by method='binned'"):
        cb.reliability_curve(y, p, method="binned", bandwidth=0.1)


def test_gathering_errors_stay_within_their_bound():
    # The bound of the docstring of smoothing, at resolutions coarse enough for it to bite.
    s = 0.02
    # The edge of a cell is one of the places where the error is greatest.
    for p in (np.array([0.5 + 1e-12]), np.random.default_rng(9).random(400)):
        v = np.ones(len(p)) / len(p)
        exact = np.cos(np.pi * np.outer(np.arange(smoothing.n_modes(s) + 1), p)) @ v
        for n_moments, constant in ((3, 0.063), (4, 0.0146), (8, 0.000019)):
            for n_cells in (140, 150, 300):
                moments = smoothing.cell_moments([(p, [v])], 1, n_cells, n_moments)
                found = smoothing.coefficients(moments, smoothing.n_modes(s))[0]
                error = smoothing.l1_norm(exact - found, s)[0]
                bound = constant * (1 / (2 * n_cells * s)) ** n_moments
                assert error <= bound + ROUNDING
                assert len(p) > 1 or error > 0.9 * bound - ROUNDING


def test_first_guess_next_to_the_fixed_point():
    # The guess lies beside the answer here, where a rough look says nothing about the slope.
    y, p = [0, 1, 1, 1, 0, 0, 0, 0], [0.17, 0.23, 0.29, 0.45, 0.61, 0.83, 0.92, 0.95]
    w = [1, 1, 1, 8.50546896697256, 1, 1, 1, 1]
    s = cb.smooth_ece(y, p, sample_weight=w)
    assert s == pytest.approx(0.2977136172, abs=1e-9)
    assert cb.smooth_ece(y, p, sample_weight=w, bandwidth=s) == pytest.approx(s, abs=1e-9)


def test_residuals_that_all_but_touch_zero():
    y, p, w = [0, 1, 0, 0], [0.46, 0.84, 0.89, 0.71], [1, 6.917237415489358, 1, 1]
    assert cb.smooth_ece(y, p, sample_weight=w, bandwidth=0.1) == pytest.approx(
        0.09612007096, abs=1e-9
    )


@pytest.mark.parametrize("n", [25_000, 400_000])
def test_scores_at_the_edges_of_cells(n):
    n_cells, _ = smoothing.resolution(n, 1 / 128)
    score = np.array([0.3, 0.6]) // (1 / n_cells) / n_cells + np.array([1e-6, 1 - 1e-6]) / n_cells
    few = cb.smooth_ece([1.0, 0.0], score, bandwidth=1 / 128)
    many = cb.smooth_ece(np.repeat([1.0, 0.0], n // 2), np.repeat(score, n // 2), bandwidth=1 / 128)
    assert many == pytest.approx(few, abs=1e-9)


def test_very_many_rows_are_seen_in_part_first(monkeypatch):
    rng = np.random.default_rng(11)
    p = rng.random(40_000)
    calibrated, biased = rng.random(len(p)) < p, rng.random(len(p)) < p**2
    monkeypatch.setattr(rows, "_MIN_RUNS", 4)
    # Nothing is wrong but in the rows that are seen first, or nothing in these.
    seen = np.arange(len(p)) % 10_000 < 1 << 9
    first, last = np.where(seen, p**2, p), np.where(seen, p, p**2)
    samples = (calibrated, biased, first, last)
    expected = [cb.smooth_ece(y, p) for y in samples]
    monkeypatch.setattr(smooth, "_MANY", 10_000)
    assert Sample(biased, p).part().p.tolist() == p[seen].tolist()
    for y, value in zip(samples, expected, strict=True):
        assert cb.smooth_ece(y, p) == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("method", ["smooth", "density"])
def test_curves_have_points_where_scores_are(method):
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2000, 5000)
    curve = cb.reliability_curve(rng.random(5000) < p, p, method=method)
    known = curve.x[~np.isnan(curve.y)]
    assert np.sum((known > p.min()) & (known < p.max())) > 200
    assert (curve.x[0], curve.x[-1]) == (0, 1)
    # Smoothed residuals have no point beyond the scores, and the density falls to 0 at once.
    tolerance = 0.01 if method == "smooth" else 1e-3
    assert trapezoid(curve.density, curve.x) == pytest.approx(1, abs=tolerance)
