"""Comparing models: cases with known answers, ranks, edges, and what is refused."""

import dataclasses
import math
from dataclasses import replace

import numpy as np
import pytest

from calibrant import CalibrantError, Sketch, brier_score, compare, ece, estimate, log_score, mce
from calibrant.datasets import simulate
from calibrant.inference.cell_noise import Cells
from calibrant.inference.intervals import View
from calibrant.inference.paired import NoisyError, difference
from calibrant.measures.norms import L1Norm, LinearImage
from tests.tolerances import assert_nearly_equal, nearly

ERRORS = [
    ("smooth_ece", {}),
    ("smooth_ece", {"bandwidth": 0.05}),
    ("ece", {}),
    ("ece", {"norm": "l2"}),
    ("ece", {"strategy": "quantile", "n_bins": 5}),
    ("ecce_mad", {}),
    ("ecce_r", {}),
    ("logit_smoothed_ece", {}),
]
SCORES = [("brier_score", {}), ("log_score", {})]
Z = 1.959964
every_error = pytest.mark.parametrize(("measure", "options"), ERRORS)
every_measure = pytest.mark.parametrize(("measure", "options"), ERRORS + SCORES)


def drawn(n=400, seed=0):
    """Return outcomes, calibrated predictions and overconfident ones."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, n)
    y = (rng.random(n) < p).astype(float)
    odds = (p / (1 - p)) ** 2.5
    return y, {"good": p, "bold": odds / (1 + odds)}


def one_pair(*given, **options):
    (pair,) = compare(*given, **options).pairs
    return pair


class TestKnownAnswers:
    @every_error
    def test_one_score_each_far_off(self, measure, options):
        # Each error is abs(mean residual): 0.4 and 0.2, both with the same noise, which cancels.
        y = np.repeat([1.0, 0.0], [700, 300])
        far, near = np.full(1000, 0.3), np.full(1000, 0.5)
        pair = one_pair(y, {"far": far, "near": near}, measure=measure, n_resamples=199, **options)
        assert pair.difference == pytest.approx(0.2, abs=2e-3)
        assert pair.low == pytest.approx(0.2, abs=5e-3)
        assert pair.high == pytest.approx(0.2, abs=5e-3)
        assert pair.better == "near"
        assert pair.p_value == pytest.approx(2 / 200)

    @every_error
    def test_opposite_errors_double_their_noise(self, measure, options):
        # Errors of 0.2 above and below: what makes one look worse makes the other look better.
        y = np.repeat([1.0, 0.0], [500, 500])
        pair = one_pair(
            *(y, {"high": np.full(1000, 0.7), "low": np.full(1000, 0.3)}),
            measure=measure,
            n_resamples=1000,
            **options,
        )
        half = 2 * Z * math.sqrt(0.25 / 1000)
        assert pair.difference == pytest.approx(0, abs=2e-3)
        assert pair.high == pytest.approx(half, rel=0.1)
        assert pair.low == pytest.approx(-half, rel=0.1)
        assert pair.better is None

    @every_measure
    def test_equal_predictions(self, measure, options):
        y, models = drawn()
        twice = {"a": models["bold"], "b": models["bold"]}
        pair = one_pair(y, twice, measure=measure, n_resamples=99, **options)
        assert (pair.difference, pair.low, pair.high) == (0, 0, 0)
        assert (pair.p_value, pair.better) == (1, None)

    @every_measure
    def test_predictions_whose_squares_are_nothing(self, measure, options):
        models = {"a": np.full(40, 1e-300), "b": np.full(40, 3e-300)}
        pair = one_pair(np.zeros(40), models, measure=measure, n_resamples=99, **options)
        assert pair.p_value <= 1
        assert pair.better is None

    def test_brier_score_of_constant_predictions(self):
        # Losses differ by 0.3^2 - 0.1^2 for y = 0 and 0.7^2 - 0.9^2 for y = 1: mean and sd by hand.
        y = np.repeat([0, 1], [30, 10])
        pair = one_pair(y, {"a": np.full(40, 0.3), "b": np.full(40, 0.1)}, measure="brier_score")
        gap = np.where(y == 1, 0.49 - 0.81, 0.09 - 0.01)
        assert pair.difference == pytest.approx(gap.mean())
        # Ten events are few: outcomes drawn from the mean prediction, 0.2, vary less than these.
        assert pair.high - pair.low == pytest.approx(
            2 * 2.022691 * gap.std(ddof=1) / math.sqrt(40), rel=1e-6
        )

    def test_without_events_nothing_is_certain(self):
        # The losses seen do not vary at all. An event would have cost b more.
        y, n = np.zeros(100), 100
        pair = one_pair(y, {"a": np.full(n, 0.02), "b": np.full(n, 0.01)}, measure="brier_score")
        assert pair.difference == pytest.approx(3e-4)
        assert pair.low < 0 < pair.high
        assert pair.p_value > 0.1


class TestSound:
    @every_measure
    @pytest.mark.parametrize("kind", ["plain", "weighted", "soft", "clusters"])
    def test_any_rows(self, measure, options, kind):
        y, models = drawn(seed=3)
        rng = np.random.default_rng(1)
        given = {"measure": measure, "n_resamples": 199, **options}
        if kind == "weighted":
            given["sample_weight"] = rng.exponential(1, 400) * (rng.random(400) < 0.9)
        if kind == "soft":
            y = rng.beta(5 * models["good"] + 0.1, 5 * (1 - models["good"]) + 0.1)
        if kind == "clusters":
            given["clusters"] = np.arange(400) // 4
        pair = one_pair(y, models, **given)
        assert pair.low <= pair.high
        assert 0 < pair.p_value <= 1
        assert pair.p_value <= 0.05 or pair.low <= 0 <= pair.high
        assert pair.p_value == pair.p_adjusted

    @every_measure
    @pytest.mark.parametrize(
        ("y", "a", "b"),
        [
            ([1, 0], [0.3, 0.3], [0.5, 0.6]),
            ([0, 0, 0], [0.1, 0.2, 0.9], [0.0, 0.0, 0.0]),
            ([0.0, 0.4, 1.0], [0.0, 0.4, 1.0], [0.1, 0.4, 0.9]),
            ([0.25, 0.5], [0.25, 0.5], [0.25, 0.75]),
            ([0, 1, 0, 1], [0.001, 0.999, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]),
        ],
    )
    def test_small_samples(self, measure, options, y, a, b):
        pair = one_pair(y, {"a": a, "b": b}, measure=measure, n_resamples=99, **options)
        assert pair.low <= pair.high
        assert 0 < pair.p_value <= 1
        assert np.isfinite([pair.low, pair.high, pair.bias_corrected]).all()

    @every_measure
    def test_the_other_way_round(self, measure, options):
        y, models = drawn(seed=5)
        given = {"measure": measure, "n_resamples": 499, **options}
        one = compare(y, models, **given)
        other = compare(y, dict(reversed(models.items())), **given)
        there, back = one.pair("bold", "good"), other.pair("bold", "good")
        near = 0.1 * (there.high - there.low)
        assert there.difference == nearly(back.difference)
        assert there.low == pytest.approx(back.low, abs=near)
        assert there.high == pytest.approx(back.high, abs=near)
        assert [model.name for model in one.models] == [model.name for model in other.models]

    def test_a_model_that_passes_for_calibrated_is_never_worse(self):
        # Noise gives the blunt model the larger error, though both are calibrated.
        rng = np.random.default_rng(0)
        larger = calls = 0
        for _ in range(20):
            share = (rng.integers(0, 10, 1000) + 0.5) / 10
            sharp = np.where(rng.random(1000) < share, 0.98, 0.02)
            y = (rng.random(1000) < sharp).astype(float)
            models = {"sharp": sharp, "blunt": 0.02 + 0.96 * share}
            found = compare(y, models, measure="ece", n_resamples=99)
            larger += found.pairs[0].difference < 0
            calls += found.pairs[0].better is not None
        assert larger == 20
        assert calls <= 1

    def test_worse_than_another_but_maybe_calibrated(self):
        # Its error is far above the other's, whose noise it shares, and not above that of noise.
        cells = Cells(np.ones((5, 2, 1)), 1.0, is_soft=False)
        image = LinearImage(L1Norm(), np.zeros_like, 1, lambda r, w: r)
        view = View(0.5, cells, image)
        noise, none = np.linspace(-0.01, 0.01, 99)[:, None], np.zeros((99, 1))
        other = NoisyError(replace(view, value=0.1), none, np.linspace(0, 1, 99))
        for most, called in ((0.4, True), (1.0, False)):
            model = NoisyError(view, noise, np.linspace(0, most, 99))
            found = difference(model, other, 0.95)
            assert (found.low > 0) is called
            assert (found.p_value <= 0.05) is called
            assert found.high > 0.4

    def test_a_higher_level_is_wider(self):
        y, models = drawn()
        narrow, wide = (one_pair(y, models, level=level) for level in (0.8, 0.99))
        assert wide.low < narrow.low <= narrow.high < wide.high


class TestSameAnswers:
    @every_error
    def test_models_by_themselves_are_estimates(self, measure, options):
        y, models = drawn(200)
        w, groups = np.random.default_rng(0).exponential(1, 200), np.arange(200) // 3
        given = {"rng": 7, "n_resamples": 99, "level": 0.9, "sample_weight": w, **options}
        for some in (None, groups):
            found = compare(y, models, measure=measure, clusters=some, **given)
            for name, p in models.items():
                alone = estimate(measure, y, p, clusters=some, **given)
                assert_nearly_equal(found[name].estimate, alone)

    @pytest.mark.parametrize("score", [brier_score, log_score])
    def test_scores_are_the_scores(self, score):
        y, models = drawn(200)
        w = np.random.default_rng(0).exponential(1, 200)
        found = compare(y, models, measure=score, sample_weight=w)
        for name, p in models.items():
            one = found[name].estimate
            assert one.value == pytest.approx(score(y, p, sample_weight=w), rel=1e-12)
            assert one.low < one.value < one.high
            assert (one.measure, one.method) == (score.__name__, "t")

    @every_measure
    def test_same_seed_same_comparison(self, measure, options):
        y, models = drawn(200)
        given = {"measure": measure, "n_resamples": 99, **options}
        first = compare(y, models, rng=3, **given)
        assert first == compare(y, models, rng=3, **given)
        assert first.measure == measure

    def test_a_function_is_its_name(self):
        y, models = drawn(200)
        by_name, by_function = (
            compare(y, models, measure=one, n_bins=5, n_resamples=99) for one in ("ece", ece)
        )
        assert by_name == by_function

    @every_measure
    def test_rows_of_weight_zero_do_not_matter(self, measure, options):
        y, models = drawn(300)
        w = np.repeat([1.0, 0.0, 2.0], 100)
        kept, groups = w > 0, np.arange(300) // 4
        given = {"measure": measure, "n_resamples": 99, **options}
        first = compare(y, models, sample_weight=w, clusters=groups, **given)
        rest = {name: p[kept] for name, p in models.items()}
        given |= {"sample_weight": w[kept], "clusters": groups[kept]}
        assert_nearly_equal(first, compare(y[kept], rest, **given))

    @pytest.mark.parametrize("measure", ["smooth_ece", "ece", "brier_score"])
    def test_many_rows_are_bundled(self, measure):
        y, models = drawn(3000)
        given = {"measure": measure, "n_resamples": 1000}
        rows = one_pair(y, models, **given)
        clusters = one_pair(y, models, clusters=np.arange(3000), **given)
        near = 0.15 * (rows.high - rows.low)
        assert clusters.low == pytest.approx(rows.low, abs=near)
        assert clusters.high == pytest.approx(rows.high, abs=near)

    @pytest.mark.parametrize("measure", ["smooth_ece", "brier_score"])
    def test_copies_of_rows_say_nothing_new(self, measure):
        y, models = drawn(300, seed=2)
        once = one_pair(y, models, measure=measure, clusters=np.arange(300))
        copies = {name: np.repeat(p, 9) for name, p in models.items()}
        labels = np.repeat(np.arange(300), 9)
        found = one_pair(np.repeat(y, 9), copies, measure=measure, clusters=labels)
        alone = one_pair(np.repeat(y, 9), copies, measure=measure)
        near = 0.1 * (once.high - once.low)
        assert (found.low, found.high) == pytest.approx((once.low, once.high), abs=near)
        assert alone.high - alone.low < 0.6 * (found.high - found.low)

    def test_pairing_matters(self):
        # Rows that both models share cancel; shuffled against each other they would not.
        rng = np.random.default_rng(4)
        p = rng.uniform(0.2, 0.8, 2000)
        y = (rng.random(2000) < p).astype(float)
        models = {"a": p + 0.19, "b": p + 0.15}
        paired = one_pair(y, models, measure="ecce_r", n_resamples=199)
        assert paired.high - paired.low < 0.02
        assert paired.better == "b"


class TestSeveralClasses:
    def given(self, n=300):
        rng = np.random.default_rng(1)
        a = rng.dirichlet(np.ones(3), n)
        y = np.array([rng.choice(3, p=row) for row in a])
        b = rng.dirichlet(np.ones(3), n)
        return y, a, b

    @pytest.mark.parametrize("measure", ["smooth_ece", "ece", "ecce_r"])
    def test_confidence_has_outcomes_of_its_own(self, measure):
        y, a, b = self.given()
        given = {"measure": measure, "n_resamples": 199}
        found = compare(y, {"a": a, "b": b}, **given)
        for name, p in (("a", a), ("b", b)):
            alone = estimate(measure, p.argmax(axis=1) == y, p.max(axis=1), n_resamples=199)
            assert_nearly_equal(found[name].estimate, alone)
        again = compare(y, {"a": a, "b": b}, multiclass="confidence", **given)
        assert_nearly_equal(found, again)
        assert found.pairs[0].better == "a"

    def test_one_class(self):
        y, a, b = self.given()
        one = compare(y, {"a": a, "b": b}, multiclass=2, n_resamples=99)
        alone = compare(y == 2, {"a": a[:, 2], "b": b[:, 2]}, n_resamples=99)
        assert_nearly_equal(one, alone)

    def test_full_scores(self):
        y, a, b = self.given()
        found = compare(y, {"a": a, "b": b}, measure="brier_score")
        assert found["a"].estimate.value == pytest.approx(brier_score(y, a))
        confidence = compare(y, {"a": a, "b": b}, measure="brier_score", multiclass="confidence")
        assert confidence["a"].estimate.value == pytest.approx(
            brier_score(y, a, multiclass="confidence")
        )

    def test_several_problems_are_refused(self):
        y, a, b = self.given(20)
        for measure in ("ece", "brier_score"):
            with pytest.raises(CalibrantError, match="must select one binary problem"):
                compare(y, {"a": a, "b": b}, measure=measure, multiclass="classwise")


@pytest.fixture(scope="module")
def found():
    """Return a comparison of four models, two of which are hardly different."""
    rows = simulate("perfect", 4000, rng=2)
    models = {
        "far": np.clip(rows.y_prob + 0.3, 0, 1),
        "fine": rows.y_prob,
        "near": np.clip(rows.y_prob + 0.1, 0, 1),
        "like fine": np.clip(rows.y_prob + 0.001, 0, 1),
    }
    return compare(rows.y_true, models, n_resamples=400)


class TestRanks:
    def test_rank_is_one_more_than_the_number_of_better_models(self, found):
        ranks = {model.name: model.rank for model in found.models}
        assert ranks == {"fine": 1, "like fine": 1, "near": 3, "far": 4}
        assert len(found.pairs) == 6
        assert found.pair("far", "near").better == "near"
        assert found.pair("fine", "like fine").better is None

    def test_holm(self, found):
        p = sorted(pair.p_value for pair in found.pairs)
        adjusted = sorted(pair.p_adjusted for pair in found.pairs)
        assert adjusted[0] == pytest.approx(6 * p[0])
        assert adjusted[-1] == pytest.approx(max(adjusted[-2], p[-1]))

    def test_turned(self, found):
        there, back = found.pair("far", "near"), found.pair("near", "far")
        assert (back.low, back.high) == (-there.high, -there.low)
        assert back.difference == -there.difference
        assert (back.a, back.b, back.better) == ("near", "far", "near")

    def test_unknown_names(self, found):
        with pytest.raises(CalibrantError, match=r"no model 'gone' here; there are: .*'fine'"):
            found["gone"]
        with pytest.raises(CalibrantError, match="not compared with itself"):
            found.pair("fine", "fine")


class TestResult:
    def test_print(self):
        y, models = drawn()
        lines = repr(compare(y, models, measure="ece", n_resamples=99)).splitlines()
        assert lines[0] == "ece of 2 models, n = 400; lower is better"
        assert lines[2].split() == ["rank", "model", "estimate", "95%", "interval", "raw", "value"]
        assert lines[3].split()[:2] == ["1", "good"]
        assert lines[7].startswith("good - bold")
        assert (
            lines[-1] == "rank = 1 + number of models better at p_adjusted <= 0.05 (Holm, 1 pair)"
        )

    def test_dictionary(self):
        y, models = drawn()
        found = compare(y, models, n_resamples=99)
        plain = found.to_dict()
        assert plain["measure"] == "smooth_ece"
        assert [model["name"] for model in plain["models"]] == [m.name for m in found.models]
        assert plain["models"][0]["estimate"]["n"] == 400
        assert plain["pairs"][0]["low"] == found.pairs[0].low

    def test_frame(self):
        pytest.importorskip("pandas")
        y, models = drawn()
        table = compare(y, models | {"flat": np.full(400, 0.5)}, n_resamples=150).to_frame()
        assert table["a"].tolist() == ["good", "good", "bold"]
        assert table["b"].tolist() == ["bold", "flat", "flat"]
        assert {"difference", "low", "high", "p_value", "p_adjusted"} <= set(table.columns)

    def test_frozen(self):
        y, models = drawn()
        with pytest.raises(dataclasses.FrozenInstanceError):
            compare(y, models, n_resamples=99).level = 0.5


class TestRefused:
    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ({"measure": "density_ece"}, "measure must be one of smooth_ece, ece.*brier_score"),
            ({"measure": mce}, "got 'mce'"),
            ({"measure": "ece", "norm": "max"}, "no interval for ece with norm='max'"),
            ({"measure": "ece", "bins": 3}, "ece has no option 'bins'"),
            ({"measure": "brier_score", "n_bins": 3}, "brier_score has no option 'n_bins'"),
            ({"level": 95}, "level must lie between 0 and 1"),
            ({"n_resamples": 0}, "n_resamples"),
            ({"n_resamples": 30}, "at least 39 for 1 pair at level 0.95.*got 30"),
            ({"rng": -1}, "rng"),
            ({"clusters": [1, 2]}, "one label per row; got 2 labels for 50"),
            ({"clusters": np.zeros(50), "measure": "brier_score"}, "at least 3 clusters"),
        ],
    )
    def test_settings(self, given, reason):
        y, models = drawn(50)
        with pytest.raises(CalibrantError, match=reason):
            compare(y, models, **given)

    def test_models(self):
        y, models = drawn(50)
        with pytest.raises(CalibrantError, match="at least two models by name; got 1"):
            compare(y, {"a": models["good"]})
        with pytest.raises(CalibrantError, match="by name; got ndarray"):
            compare(y, models["good"])

    @pytest.mark.parametrize("measure", ["smooth_ece", "brier_score"])
    def test_models_of_other_classes(self, measure):
        y, models = drawn(50)
        three = np.full((50, 3), 1 / 3)
        words = r"the same classes, .*; got 1 for 'good' and 3 for 'three'"
        with pytest.raises(CalibrantError, match=words):
            compare(y, {"good": models["good"], "three": three}, measure=measure)
        with pytest.raises(CalibrantError, match=r"got 3 for 'three' and 2 for 'two'"):
            compare(y, {"three": three.tolist(), "two": np.full((50, 2), 0.5)}, measure=measure)

    def test_one_column_and_two_are_both_binary(self):
        y, models = drawn(50)
        both = np.column_stack([1 - models["good"], models["good"]])
        assert one_pair(y, {"one": models["good"], "two": both}).difference == 0

    def test_sketches(self):
        y, models = drawn(50)
        sketch = Sketch().update(y, models["good"])
        for given in ((y, {"a": sketch, "b": sketch}), (sketch, {"a": 1, "b": 2}), (y, sketch)):
            with pytest.raises(CalibrantError, match="compare needs rows: sketches do not know"):
                compare(*given)

    @pytest.mark.parametrize("measure", ["smooth_ece", "brier_score"])
    def test_errors_say_which_model(self, measure):
        y, models = drawn(50)
        wrong = {"fine": models["good"], "wrong": models["good"] + 1}
        with pytest.raises(CalibrantError, match=r"model 'wrong': y_prob must lie in \[0, 1\]"):
            compare(y, wrong, measure=measure)
        short = {"fine": models["good"], "short": models["good"][:-1]}
        with pytest.raises(
            CalibrantError, match=r"model 'short': y_prob must have as many rows as y_true"
        ):
            compare(y, short, measure=measure)

    def test_one_row(self):
        for measure in ("ece", "brier_score"):
            with pytest.raises(CalibrantError, match="at least two rows"):
                compare([1], {"a": [0.5], "b": [0.6]}, measure=measure)

    def test_infinite_log_score(self):
        with pytest.raises(
            CalibrantError, match=r"model 'b': y_prob must not be 0 .* got 0.0 at index 1: "
        ):
            compare([0, 1], {"a": [0.5, 0.5], "b": [0.0, 0.0]}, measure="log_score")

    def test_certain_and_right_has_a_log_score(self):
        y = np.tile([0, 1], 50)
        found = compare(y, {"a": np.full(100, 0.5), "b": y.astype(float)}, measure="log_score")
        assert found["b"].estimate.value == 0
        assert found.pairs[0].better == "b"
