"""Intervals for calibration errors: cases with known answers, edges, and what is refused."""

import math
import tracemalloc

import numpy as np
import pytest

from calibrant import (
    CalibrantError,
    Estimate,
    Sketch,
    SketchError,
    ecce_mad,
    ecce_r,
    ece,
    estimate,
    logit_smoothed_ece,
    mce,
    smooth_ece,
)
from calibrant.data.rows import Sample
from calibrant.datasets import simulate
from calibrant.inference import intervals
from calibrant.inference.intervals import View
from calibrant.measures.registry import measures
from tests.tolerances import assert_nearly_equal, nearly

MEASURES = [
    ("smooth_ece", {}),
    ("smooth_ece", {"bandwidth": 0.05}),
    ("ece", {}),
    ("ece", {"norm": "l2"}),
    ("ece", {"strategy": "quantile", "n_bins": 5}),
    ("ecce_mad", {}),
    ("ecce_r", {}),
    ("logit_smoothed_ece", {}),
]
FUNCTIONS = {
    "smooth_ece": smooth_ece,
    "ece": ece,
    "ecce_mad": ecce_mad,
    "ecce_r": ecce_r,
    "logit_smoothed_ece": logit_smoothed_ece,
}
Z = 1.959964
every_measure = pytest.mark.parametrize(("measure", "options"), MEASURES)


def drawn(scenario, n, seed=0):
    sample = simulate(scenario, n, rng=seed)
    return sample.y_true.astype(float), sample.y_prob


def check_sound(found):
    assert 0 <= found.low <= found.high <= 1
    assert found.low <= found.bias_corrected <= found.high
    assert found.bias_corrected <= found.value + 1e-12
    assert math.copysign(1, found.bias_corrected) == 1  # "-0.0000" would be printed


class TestKnownAnswers:
    @every_measure
    def test_one_score_far_off_gives_the_normal_interval(self, measure, options):
        # Every error is abs(mean residual) then: 0.7 - 0.5, with sd sqrt(0.25 / n).
        y, p = np.repeat([1.0, 0.0], [700, 300]), np.full(1000, 0.5)
        found = estimate(measure, y, p, n_resamples=20_000, **options)
        half = Z * math.sqrt(0.25 / 1000)
        # A fifth of the lower tail is spent on the rectangle, and for sums half of the rest on
        # linear bounds; nothing for the l2 norm.
        z = Z if "norm" in options else 2.053749 if measure.startswith("ecce") else 2.326348
        below = half * z / Z
        tolerance = 0.04 * half if measure != "logit_smoothed_ece" else 0.1 * half
        assert found.value == pytest.approx(0.2, abs=1e-3)
        assert found.low == pytest.approx(0.2 - below, abs=tolerance)
        assert found.high == pytest.approx(0.2 + half, abs=tolerance)
        assert found.bias_corrected == pytest.approx(0.2, abs=0.002)

    @every_measure
    def test_certain_and_right(self, measure, options):
        # None of 100 surprises seen: z^2 / n, the variance of a count of mean x being x.
        y = np.repeat([0.0, 1.0], 50)
        found = estimate(measure, y, y, **options)
        assert (found.value, found.low, found.bias_corrected) == (0, 0, 0)
        assert found.high == pytest.approx(Z**2 / 100, rel=1e-6)

    @every_measure
    def test_certain_and_wrong(self, measure, options):
        found = estimate(measure, np.zeros(50), np.ones(50), **options)
        assert found.value == pytest.approx(1, abs=1e-12)
        assert found.high == 1
        assert found.low > 0.6
        check_sound(found)

    def test_noise_of_one_bin_at_perfect_calibration(self):
        # abs of a normal mean: refuted beyond 2.24 sd, the 97.5% quantile of abs(Z); and errors
        # near 0 beyond 2.43 sd, the 98.5% quantile.
        p = np.full(10_000, 0.5)
        sd = 0.5 / 100
        for deviation, refuted in ((2.1, False), (2.6, True)):
            y = (np.arange(10_000) < 5000 + round(deviation * sd * 10_000)).astype(float)
            found = estimate("ece", y, p, n_bins=1, n_resamples=20_000)
            assert (found.low > 0) is refuted

    def test_soft_labels_that_equal_the_predictions(self):
        p = np.linspace(0, 1, 101)
        found = estimate("smooth_ece", p, p)
        assert (found.value, found.low, found.high) == (0, 0, 0)


class TestEdges:
    @every_measure
    @pytest.mark.parametrize(
        ("y", "p"),
        [
            ([1], [0.3]),
            ([0], [0.0]),
            ([1], [0.0]),
            ([0.25], [0.5]),
            ([0, 1], [0.5, 0.5]),
            ([0, 0, 0], [0.1, 0.2, 0.9]),
            ([1, 1, 1], [0.1, 0.2, 1.0]),
            ([0.0, 0.4, 1.0], [0.0, 0.5, 1.0]),
            ([0, 1, 0, 1], [1e-12, 1 - 1e-12, 0.0, 1.0]),
        ],
    )
    def test_small_samples(self, measure, options, y, p):
        found = estimate(measure, y, p, n_resamples=50, **options)
        assert 0 <= found.low <= found.high <= 1
        assert np.isfinite(found.bias_corrected)
        assert found.n == len(y)
        check_sound(found)

    def test_certain_and_wrong_both_ways(self):
        # The mean residual is 0, and says next to nothing.
        found = estimate("ece", [1, 0], [0.0, 1.0], n_bins=1)
        assert (found.value, found.low) == (0, 0)
        assert found.high > 0.5

    @every_measure
    def test_a_single_row_says_little(self, measure, options):
        found = estimate(measure, [1], [0.3], **options)
        assert found.low == 0
        assert found.high > 0.9

    @every_measure
    @pytest.mark.parametrize("scenario", ["perfect", "rare", "tenths", "softmax"])
    def test_ends_are_in_order(self, measure, options, scenario):
        for seed in range(5):
            check_sound(estimate(measure, *drawn(scenario, 100, seed), n_resamples=100, **options))

    def test_high_may_be_below_the_value(self):
        found = estimate("ece", *drawn("perfect", 100_000, seed=1), n_bins=100)
        assert found.low == 0
        assert found.high < found.value

    @every_measure
    def test_a_higher_level_is_wider(self, measure, options):
        sample = drawn("overconfident", 500)
        narrow = estimate(measure, *sample, level=0.8, **options)
        wide = estimate(measure, *sample, level=0.99, **options)
        assert wide.low <= narrow.low
        assert wide.high > narrow.high


class TestSameAnswers:
    @every_measure
    def test_same_seed_same_interval(self, measure, options):
        sample = drawn("overconfident", 300)
        first, again, other = (
            estimate(measure, *sample, rng=seed, n_resamples=99, **options) for seed in (3, 3, 4)
        )
        assert first == again
        assert first != other
        generator = np.random.default_rng(3)
        assert first == estimate(measure, *sample, rng=generator, n_resamples=99, **options)

    @every_measure
    def test_value_is_the_measure(self, measure, options):
        y, p = drawn("softmax", 300)
        w = np.random.default_rng(0).exponential(1, 300)
        found = estimate(measure, y, p, sample_weight=w, n_resamples=39, **options)
        assert found.value == nearly(FUNCTIONS[measure](y, p, sample_weight=w, **options))
        by_function = estimate(FUNCTIONS[measure], y, p, sample_weight=w, n_resamples=39, **options)
        assert by_function == found

    @every_measure
    def test_the_unit_of_weights_does_not_matter(self, measure, options):
        y, p = drawn("overconfident", 300)
        w = np.random.default_rng(0).integers(1, 5, 300)
        one, other = (
            estimate(measure, y, p, sample_weight=w * unit, **options) for unit in (1, 1024)
        )
        assert other.low == pytest.approx(one.low, abs=1e-9)
        assert other.high == pytest.approx(one.high, abs=1e-9)

    @every_measure
    def test_rows_of_weight_zero_do_not_matter(self, measure, options):
        y, p = drawn("overconfident", 300)
        w = np.repeat([1.0, 0.0, 2.0], 100)
        groups = np.arange(300) // 4
        kept = w > 0
        for some in (None, groups):
            first = estimate(measure, y, p, sample_weight=w, clusters=some, **options)
            rest = None if some is None else some[kept]
            other = estimate(
                measure, y[kept], p[kept], sample_weight=w[kept], clusters=rest, **options
            )
            assert_nearly_equal(first, other)

    def test_confidence_of_several_classes(self):
        rng = np.random.default_rng(1)
        p = rng.dirichlet(np.ones(3), 400)
        y = np.array([rng.choice(3, p=row) for row in p])
        top, right = p.max(axis=1), p.argmax(axis=1) == y
        assert_nearly_equal(estimate("ece", y, p), estimate("ece", right, top))
        one = estimate("ece", y, p, multiclass=2)
        assert_nearly_equal(one, estimate("ece", y == 2, p[:, 2]))


class TestSketches:
    @every_measure
    @pytest.mark.parametrize("scenario", ["perfect", "overconfident", "tenths", "rare"])
    def test_a_sketch_answers_like_the_rows(self, measure, options, scenario):
        if "strategy" in options:
            pytest.skip("a sketch knows uniform bins only")
        y, p = drawn(scenario, 5000)
        scale = "logit" if measure == "logit_smoothed_ece" else "probability"
        rows = estimate(measure, y, p, n_resamples=4000, **options)
        sketch = Sketch(scale=scale).update(y, p)
        sketch = estimate(measure, sketch, n_resamples=4000, **options)
        assert rows.error_bound == 0 < sketch.error_bound
        assert sketch.n == rows.n
        near = 0.1 * (rows.high - rows.low) + 2 * sketch.error_bound
        assert sketch.low == pytest.approx(rows.low, abs=near)
        assert sketch.high == pytest.approx(rows.high, abs=near)

    def test_the_bound_is_added_at_both_ends(self):
        y, p = drawn("overconfident", 3000)
        coarse = estimate("ecce_r", Sketch(n_cells=60).update(y, p))
        rows = estimate("ecce_r", y, p)
        assert coarse.error_bound > 0.001
        assert coarse.low < rows.low
        assert coarse.high > rows.high

    def test_weighted_and_soft_sketches(self):
        y, p = drawn("overconfident", 3000)
        w = np.random.default_rng(5).exponential(1, 3000)
        rows = estimate("ece", y, p, sample_weight=w)
        sketch = estimate("ece", Sketch().update(y, p, w))
        assert sketch.high - sketch.low == pytest.approx(rows.high - rows.low, rel=0.1)
        soft = 0.3 * p + 0.3
        rows = estimate("ece", soft, p)
        sketch = estimate("ece", Sketch().update(soft, p))
        assert sketch.high - sketch.low > rows.high - rows.low

    def test_the_scale_must_fit(self):
        sketch = Sketch().update([0, 1], [0.2, 0.7])
        with pytest.raises(SketchError, match="logit scale"):
            estimate("logit_smoothed_ece", sketch)


class TestClusters:
    @every_measure
    @pytest.mark.parametrize("scenario", ["perfect", "overconfident"])
    def test_clusters_of_one_row_change_little(self, measure, options, scenario):
        y, p = drawn(scenario, 2000)
        rows = estimate(measure, y, p, **options)
        clusters = estimate(measure, y, p, clusters=np.arange(2000), **options)
        assert clusters.low == pytest.approx(rows.low, abs=0.1 * (rows.high - rows.low))
        assert clusters.high == pytest.approx(rows.high, abs=0.1 * (rows.high - rows.low))

    @every_measure
    def test_copies_of_rows_say_nothing_new(self, measure, options):
        # So many rows that calibration is clearly rejected: where it hardly is, low jumps from 0.
        y, p = drawn("softmax", 900, seed=2)
        group = np.arange(900)
        once = estimate(measure, y, p, clusters=group, n_resamples=4000, **options)
        copies = [np.repeat(values, 9) for values in (y, p)]
        labels = np.repeat(group, 9).astype(str)
        found = estimate(measure, *copies, clusters=labels, n_resamples=4000, **options)
        alone = estimate(measure, *copies, **options)
        near = 0.08 * (once.high - once.low)
        assert found.low == pytest.approx(once.low, abs=near)
        assert found.high == pytest.approx(once.high, abs=near)
        assert alone.high - alone.low < 0.6 * (found.high - found.low)

    def test_few_clusters_make_wide_intervals(self):
        y, p = drawn("perfect", 1000)
        with pytest.warns(UserWarning, match="only 3 clusters"):
            few = estimate("ece", y, p, clusters=np.arange(1000) % 3)
        many = estimate("ece", y, p, clusters=np.arange(1000) % 100)
        assert few.high > many.high
        assert few.low == 0

    def test_many_clusters_are_bundled(self):
        y, p = drawn("overconfident", 6000)
        groups = np.arange(6000) // 2
        found = estimate("smooth_ece", y, p, clusters=groups)
        rows = estimate("smooth_ece", y, p)
        assert found == estimate("smooth_ece", y, p, clusters=groups)
        assert found.high == pytest.approx(rows.high, abs=0.15 * (rows.high - rows.low))
        assert found.low == pytest.approx(rows.low, abs=0.15 * (rows.high - rows.low))

    def test_one_outcome_only(self):
        found = estimate("smooth_ece", np.zeros(40), np.full(40, 0.01), clusters=np.arange(40) // 2)
        assert found.low == 0
        assert found.high > 0.03

    def test_refused(self):
        y, p = [0, 1, 1], [0.1, 0.5, 0.8]
        with pytest.raises(CalibrantError, match="one label per row; got 2 labels for 3"):
            estimate("ece", y, p, clusters=[1, 2])
        with pytest.raises(CalibrantError, match="at least 3 clusters; got 1"):
            estimate("ece", y, p, clusters=["a", "a", "a"])
        with pytest.raises(CalibrantError, match="labels of one"):
            estimate("ece", y, p, clusters=np.array(["a", 2, 1], dtype=object))
        for missing in ([1.0, np.nan, 2.0], np.array(["a", None, "b"], dtype=object)):
            with pytest.raises(
                CalibrantError, match="no missing or masked values; got one at index"
            ):
                estimate("ece", y, p, clusters=missing)
        with pytest.raises(CalibrantError, match="a sketch does not know"):
            estimate("ece", Sketch().update(y, p), clusters=[1, 2, 3])


class TestRefused:
    @pytest.mark.parametrize(
        ("measure", "options", "reason"),
        [
            ("ece", {"norm": "max"}, "norm='max'"),
            ("ece", {"debias": True}, "bias_corrected"),
            ("ece", {"assignment": "convex"}, "assignment='convex'"),
            ("ece", {"weighting": "width"}, "weighting='width'"),
            ("ece", {"n_bins": "sweep"}, "chosen by the outcomes"),
            ("ece", {"n_bins": "cv"}, "chosen by the outcomes"),
            ("smooth_ece", {"scale": "logit"}, "scales other than 'probability'"),
            ("ecce_r", {"normalize": True}, "normalize=True"),
            ("logit_smoothed_ece", {"noise": "uniform"}, "noise='gaussian'"),
        ],
    )
    def test_measures_without_an_interval(self, measure, options, reason):
        with pytest.raises(CalibrantError, match=f"no interval for {measure} .*{reason}"):
            estimate(measure, [0, 1], [0.2, 0.6], **options)

    @pytest.mark.parametrize("measure", ["brier_score", "mce", mce, None, 3])
    def test_other_measures(self, measure):
        with pytest.raises(CalibrantError, match="measure must be one of smooth_ece, ece"):
            estimate(measure, [0, 1], [0.2, 0.6])

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ({"level": 95}, "level must lie between 0 and 1; got 95"),
            ({"level": 0}, "level must be a positive number"),
            ({"method": "percentile"}, "method must be one of 'uniform'; got 'percentile'"),
            ({"n_resamples": 0}, "n_resamples"),
            ({"rng": -1}, "rng"),
            ({"bins": 10}, "ece has no option 'bins'"),
        ],
    )
    def test_other_words(self, given, reason):
        with pytest.raises(CalibrantError, match=reason):
            estimate("ece", [0, 1], [0.2, 0.6], **given)

    def test_several_problems(self):
        p = np.full((4, 3), 1 / 3)
        with pytest.raises(CalibrantError, match="one binary problem"):
            estimate("ece", [0, 1, 2, 0], p, multiclass="classwise")


def test_result():
    found = estimate("ece", *drawn("overconfident", 400), n_bins="sqrt")
    assert isinstance(found, Estimate)
    assert found.to_dict()["low"] == found.low
    assert repr(found).startswith("Estimate(ece = 0.")
    assert "95% interval" in repr(found)


@pytest.mark.parametrize("n_events", [1, 11])
def test_an_outcome_as_rare_as_allowed_refutes_nothing(n_events):
    # Of 60 rows with p = 0.1 as many events as this, or farther from 6, have a chance of 0.048,
    # and farther ones of 0.0132: the 97.5 % quantile of the error is this very number.
    sample = Sample(np.arange(60) < n_events, np.full(60, 0.1))
    error = measures()["ece"].read({})
    view = View.of(error, sample, error(sample))
    noise = intervals.Noise.around(view, 0.025, 4000, np.random.default_rng(0))
    assert noise.calibrated


@pytest.mark.parametrize("measure", ["smooth_ece", "ece", "ecce_r", "logit_smoothed_ece"])
def test_what_few_draws_show_many_would_show_too(measure, monkeypatch):
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    y = rng.random(3000) < 0.5 + 0.4 * (p - 0.5)
    soon = estimate(measure, y, p, n_resamples=4000, rng=0)
    assert soon.low > 0
    monkeypatch.setattr(intervals, "_is_far_from_calibrated", lambda *_: False)
    late = estimate(measure, y, p, n_resamples=4000, rng=0)
    assert soon.low != late.low  # not drawn alike
    # Two sets of 4000 draws: their quantiles of 2.5 % differ by a few percent of a width.
    width = late.high - late.low
    assert [soon.low, soon.high] == pytest.approx([late.low, late.high], abs=0.08 * width)


@pytest.mark.parametrize("clustered", [False, True])
def test_memory_of_very_many_bins(clustered):
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p
    options = {"n_bins": 1_000_000, "n_resamples": 200}
    if clustered:
        options["clusters"] = np.arange(500) // 2
    tracemalloc.start()
    found = estimate("ece", y, p, **options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Every row in a bin of its own.
    assert found.value == pytest.approx(np.mean(np.abs(y - p)))
    # Of bins only those with rows take part: edges and sums of all are some 50 megabytes.
    assert peak < 3e8


def test_too_many_bins():
    p = np.linspace(0, 1, 30_000)
    y = np.arange(30_000) % 2
    with pytest.raises(
        CalibrantError, match="at most 16384 bins with rows in them for an interval"
    ):
        estimate("ece", y, p, n_bins=30_000)
    with pytest.raises(CalibrantError, match="n_bins must be at most 1000000; got 1000001"):
        estimate("ece", y, p, n_bins=1_000_001)


@pytest.mark.parametrize("size", [1e-6, 1e-4])
def test_memory_of_intervals_of_nearly_perfect_predictions(size):
    rng = np.random.default_rng(1)
    y, u = rng.integers(0, 2, 400), rng.random(400)
    p = np.where(y, 1 - size * u, size * u)
    tracemalloc.start()
    found = estimate("smooth_ece", y, p)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # None of 400 was wrong: at most a hundredth may be, by the rule of three and some more.
    assert found.low == 0
    assert 3 / 400 < found.high < 0.02
    # Nearly all of 16384 cells are empty, and are not drawn: they took 130 megabytes.
    assert peak < 3e7
