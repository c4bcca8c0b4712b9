"""assess: everything at once, and words that say no more than the test does."""

import json

import numpy as np
import pytest

from calibrant import (
    CalibrantError,
    Sketch,
    assess,
    bin_table,
    brier_score,
    calibration_slope_test,
    calibration_test,
    estimate,
    murphy_curve,
    reliability_curve,
    threshold_regret,
)
from calibrant import cumulative_curve as whole_walk
from calibrant.datasets import load_flares, simulate
from calibrant.measures.smooth import SmoothError
from tests.tolerances import assert_nearly_equal, nearly

FEW = {"n_resamples": 100}


@pytest.fixture(scope="module")
def rows():
    drawn = simulate("overconfident", 3000, rng=1)
    return drawn.y_true, drawn.y_prob


@pytest.fixture(scope="module")
def found(rows):
    return assess(*rows, **FEW)


def test_estimates_are_those_of_estimate(rows, found):
    for name in ("smooth_ece", "ece", "ecce_r", "ecce_mad", "logit_smoothed_ece"):
        assert_nearly_equal(found[name], estimate(name, *rows, **FEW))


def test_other_numbers(rows, found):
    y, p = rows
    assert found.n == found.weight == 3000
    assert found.prevalence == pytest.approx(y.mean())
    assert found.mean_prediction == pytest.approx(p.mean())
    assert found.brier_score == nearly(brier_score(y, p))
    assert found.test == calibration_test(y, p, **FEW)
    assert found.bins.gap == nearly(bin_table(y, p).gap)
    assert found.settings.seed == 0
    assert found.settings.problem == "binary"


def test_bias_and_calibration_slope(rows, found):
    y, p = rows
    r, fit = y - p, calibration_slope_test(y, p)
    assert found.slope.value == pytest.approx(fit.slope, rel=1e-6)
    assert found.slope.high - found.slope.value == pytest.approx(
        1.959964 * fit.slope_error, rel=1e-6
    )
    assert found.bias.value == pytest.approx(r.mean())
    assert found.bias.value - found.bias.low == pytest.approx(
        1.959964 * np.sqrt((r * r).sum()) / len(r), rel=1e-6
    )


def test_slope_of_confident_rows_in_cells():
    g = np.random.default_rng(0)
    p = np.clip(g.beta(0.05, 0.05, 30_000), 1e-300, 1 - 1e-16)
    y = (g.random(len(p)) < 1 / (1 + ((1 - p) / p) ** 0.8)).astype(float)
    slope, fit = assess(y, p, **FEW).slope, calibration_slope_test(y, p)
    # Rows are gathered in 1024 cells, which cost a hundredth of the standard error.
    assert slope.value == pytest.approx(fit.slope, abs=0.01 * fit.slope_error)
    assert slope.high - slope.value == pytest.approx(1.959964 * fit.slope_error, rel=0.01)


@pytest.mark.parametrize("events", [0, 36])
@pytest.mark.filterwarnings("error")
def test_outcomes_all_but_separated_by_the_scores(events):
    y, p = [1] * events + [0] * (36 - events) + [1] * 15 + [0] * 9, [0.05] * 36 + [0.6] * 24
    found = assess(y, p, **FEW)
    assert found.verdict.detected == (events > 0)
    slope = json.loads(found.to_json())["slope"]
    assert (slope["value"], slope["high"]) == (None, None)


def test_no_event_seen_does_not_refute_predictions_of_few():
    # Calibrated: in 100 rows at 0.01 there is no event 37% of the time.
    found = assess(np.zeros(100), np.linspace(0.005, 0.015, 100), **FEW)
    error = np.sqrt(np.sum(np.linspace(0.005, 0.015, 100) * (1 - np.linspace(0.005, 0.015, 100))))
    assert found.bias.high - found.bias.value == pytest.approx(1.959964 * error / 100, rel=1e-6)
    assert np.isnan(found.slope.value)


def test_the_score_range_is_that_of_the_cumulative_range(rows, found):
    where, curve = found.verdict.score_range, whole_walk(*rows)
    y, p = rows
    inside = (p >= where.low) & (p <= where.high)
    assert abs(where.gap * where.fraction) == pytest.approx(found["ecce_r"].value)
    assert where.fraction == pytest.approx(inside.mean())
    assert where.gap == pytest.approx((y - p)[inside].mean())
    assert curve.deviation.max() - curve.deviation.min() == pytest.approx(found["ecce_r"].value)


def test_the_verdict_comes_first(found):
    assert found.verdict.direction == "over-confident"
    assert repr(found).startswith("Predictions are over-confident. Where it says ")


@pytest.mark.parametrize(
    ("scenario", "direction"),
    [("underconfident", "under-confident"), ("shifted", "too high"), ("perfect", "none detected")],
)
def test_directions(scenario, direction):
    drawn = simulate(scenario, 20_000, rng=3)
    verdict = assess(drawn.y_true, drawn.y_prob, **FEW).verdict
    assert verdict.direction == direction
    assert verdict.detected == (direction != "none detected")


def test_where_nothing_is_detected_no_interval_begins_above_0():
    drawn = simulate("perfect", 300, rng=2)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        found = assess(rng.random(300) < drawn.y_prob, drawn.y_prob, **FEW)
        lows = [one.low for one in found.estimates]
        assert found.verdict.detected or not any(lows)


def test_confidence_and_classes():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet([0.3, 0.3, 0.3], 4000)
    flat = prob**0.5 / (prob**0.5).sum(axis=1, keepdims=True)
    y = (rng.random(4000)[:, None] > flat.cumsum(axis=1)).sum(axis=1)
    found = assess(y, prob, **FEW)
    assert found.settings.problem == "confidence"
    assert found.verdict.direction == "over-confident"
    assert " confident and right " in str(found.verdict)
    assert [row.label for row in found.classes] == [0, 1, 2]
    means = f"accuracy {found.prevalence:.4g}, mean confidence {found.mean_prediction:.4g}, "
    assert means in repr(found)
    one = assess(y, prob, multiclass=1, **FEW)
    means = f"prevalence {one.prevalence:.4g}, mean prediction {one.mean_prediction:.4g}, "
    assert means in repr(one)
    assert one.classes == ()
    assert one.settings.problem == "class 1"
    assert one["ece"].value == nearly(found.classes[1].ece)
    assert one["smooth_ece"].value == nearly(found.classes[1].smooth_ece)
    with pytest.raises(CalibrantError, match="must select one binary problem"):
        assess(y, prob, multiclass="classwise")


def test_a_sketch_stands_in(rows, found):
    sketched = assess(Sketch().update(*rows), **FEW)
    assert sketched["smooth_ece"].value == pytest.approx(found["smooth_ece"].value, abs=1e-8)
    assert sketched["ece"].value == pytest.approx(found["ece"].value, abs=1e-12)
    assert sketched.verdict.direction == found.verdict.direction
    assert sketched.brier_score == pytest.approx(found.brier_score, abs=1e-12)
    assert [curve.method for curve in sketched.curves] == ["smooth", "binned"]
    with pytest.raises(CalibrantError, match="there is no estimate of 'logit_smoothed_ece' here"):
        sketched["logit_smoothed_ece"]
    assert any(note.startswith("No logit_smoothed_ece") for note in sketched.notes)
    with pytest.raises(CalibrantError, match="there is no 'isotonic' curve here"):
        sketched.curve("isotonic")


def test_a_coarse_sketch_of_calibrated_rows():
    # So well calibrated that smECE is finer than the cells: curves are as fine as these allow.
    p = (np.arange(200_000) + 0.5) / 200_000
    sketch = Sketch(2520).update(p, p)
    assert sketch.n == 200_000
    found = assess(sketch, **FEW)
    assert found.curve("smooth").bandwidth == 1
    assert reliability_curve(sketch, bandwidth="smece").bandwidth == 8 / 2520
    with pytest.raises(CalibrantError, match=r"bandwidth must be at least 0\.0032; got 0\.001"):
        reliability_curve(sketch, bandwidth=0.001)


def test_many_rows_are_pooled_unless_that_would_blur(monkeypatch):
    monkeypatch.setattr("calibrant.assessment.assess._MANY_ROWS", 100_000)
    drawn = simulate("overconfident", 100_000, rng=1)
    found = assess(drawn.y_true, drawn.y_prob, **FEW)
    for name in ("smooth_ece", "ece", "ecce_r", "logit_smoothed_ece"):
        exact = estimate(name, drawn.y_true, drawn.y_prob, **FEW)
        assert 0 < found[name].error_bound < 1e-4
        assert abs(found[name].value - exact.value) <= found[name].error_bound
        assert found[name].high == pytest.approx(exact.high, rel=0.02)
    assert not any("logit" in note for note in found.notes)
    tied = assess(drawn.y_true, np.round(drawn.y_prob, 1), **FEW)
    assert tied["ecce_r"].error_bound == 0


@pytest.mark.parametrize("many", [10**6, 1000], ids=["rows", "pooled"])
def test_the_smooth_error_is_solved_for_once(monkeypatch, many):
    solved, measure = [], SmoothError.__call__

    def counting(self, problem):
        solved.append(problem.is_exact)
        return measure(self, problem)

    monkeypatch.setattr("calibrant.assessment.assess._MANY_ROWS", many)
    monkeypatch.setattr(SmoothError, "__call__", counting)
    assess(*simulate("overconfident", 1000, rng=1), **FEW)
    assert solved == [many > 1000]


def test_predictions_that_leave_nothing_to_chance():
    right = assess([0, 1, 1], [0, 1, 1], **FEW)
    assert right.test is None
    assert not right.verdict.detected
    wrong = assess([1, 1, 1], [0, 1, 1], **FEW)
    assert wrong.verdict.detected
    assert wrong.verdict.heading == "Predictions are all 0 or 1"
    assert wrong.verdict.text.endswith("Give probabilities, such as those of predict_proba.")
    assert "3 predictions of exactly 0 or 1, and 1 of them contradicted" in " ".join(wrong.notes)


def test_one_contradiction_among_pooled_rows(monkeypatch):
    monkeypatch.setattr("calibrant.assessment.assess._MANY_ROWS", 20_000)
    drawn = simulate("perfect", 30_000, rng=0)
    p = drawn.y_prob.copy()
    p[np.flatnonzero(drawn.y_true)[7]] = 0
    found = assess(drawn.y_true, p, **FEW)
    assert found.verdict.detected
    assert "1 prediction of exactly 0 or 1, and 1 of them contradicted" in " ".join(found.notes)


def test_soft_labels():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    found = assess(np.clip(p + 0.1 + 0.02 * rng.standard_normal(400), 0, 1), p, **FEW)
    assert found.verdict.direction == "too low"
    assert ", labels average " in found.verdict.text


def test_notes_on_the_data():
    assert "There is only 1 row." in assess([1], [0.3], **FEW).notes
    assert "Every outcome is 1." in assess([1], [0.3], **FEW).notes
    y = np.r_[np.ones(3), np.zeros(997)]
    notes = assess(y, np.linspace(0.001, 0.01, 1000), sample_weight=np.full(1000, 2.0), **FEW).notes
    assert "Outcome 1 is rare: about 3 rows have it." in notes
    assert "Rows are weighted: they weigh as much as 1000 of equal weight." in notes


def test_one_row_and_one_score():
    found = assess([1], [0.3], **FEW)
    assert not found.verdict.detected
    assert np.isnan(found.slope.value)
    same = assess([0, 1] * 100, [0.2] * 200, **FEW)
    assert same.verdict.direction == "too low"
    assert "Where it says 20%, it happens 50% of the time." in same.verdict.text


@pytest.mark.parametrize("options", [{"n_resamples": 39}, {"level": 0.9999}, {"level": 1 - 1e-7}])
def test_what_is_beyond_doubt_is_detected_at_any_level_from_any_number_of_draws(options):
    assert assess(np.zeros(60), np.full(60, 0.9), **(FEW | options)).verdict.detected


def test_the_same_seed_gives_the_same_assessment(rows):
    first, second = (json.dumps(assess(*rows, rng=7, **FEW).to_dict()) for _ in range(2))
    assert first == second
    assert assess(*rows, rng=np.random.default_rng(7), **FEW).settings.seed is None


def test_to_dict_is_plain_and_small(found):
    plain = found.to_dict()
    assert plain["verdict"]["direction"] == "over-confident"
    assert plain["estimates"][0]["measure"] == "smooth_ece"
    assert len(plain["cumulative"]["score"]) <= 2100
    json.dumps(plain, allow_nan=False)


def test_to_frame(found):
    pytest.importorskip("pandas")
    table = found.to_frame()
    assert table["measure"].tolist()[0] == "smooth_ece"
    assert table["low"].tolist() == [one.low for one in found.estimates]


def test_a_thinned_walk_keeps_its_turns(rows):
    whole = whole_walk(*rows)
    thin = whole.thinned(300)
    assert len(thin.score) <= 310
    assert thin.deviation.max() == whole.deviation.max()
    assert thin.deviation.min() == whole.deviation.min()
    assert (thin.fraction[0], thin.fraction[-1]) == (0, 1)
    assert thin.deviation[-1] == whole.deviation[-1]
    assert whole.thinned(5000) is whole


def test_it_can_be_drawn(found):
    ax = found.plot()
    assert len(ax.child_axes) == 3
    assert found.plot(ax=ax.figure.add_subplot()) is not ax
    data, size = found._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert size["width"] > size["height"]


def test_curves_have_bands_for_the_whole_of_them(rows, found):
    for curve in found.curves:
        whole = reliability_curve(*rows, method=curve.method, simultaneous=True)
        assert curve.simultaneous
        inside = np.isin(whole.x, curve.x)
        assert curve.high == nearly(whole.high[inside])


def test_a_thinned_isotonic_curve_keeps_its_steps(rows):
    whole = reliability_curve(*rows, method="isotonic")
    thin = whole.thinned(200)
    assert len(thin.x) < 300 < len(whole.x)
    np.testing.assert_array_equal(np.unique(thin.y), np.unique(whole.y))
    assert thin.density.sum() == pytest.approx(1)
    # Steps stay where they are: the curve between its points is the same.
    np.testing.assert_allclose(np.interp(whole.x, thin.x, thin.y), whole.y, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": 95}, "level must lie between 0 and 1"),
        ({"n_bins": 0}, "n_bins"),
        ({"tolerance": 2}, "tolerance must be"),
        ({"tolerance": "1%"}, "tolerance must be"),
        ({"n_resamples": 0}, "n_resamples must be a whole number"),
        ({"rng": -1}, "rng must be a whole number"),
    ],
)
def test_bad_options(rows, options, said):
    with pytest.raises(CalibrantError, match=said):
        assess(*rows, **options)


def test_outcomes_of_one_kind_have_a_level_only():
    p = np.linspace(0.2, 0.5, 200)
    verdict = assess(np.ones(200), p).verdict
    assert verdict.direction == "too low"
    assert verdict.fault == "level"


def test_scores_the_wrong_way_round():
    rows = simulate("perfect", 1000, rng=3)
    verdict = assess(rows.y_true, 1 - rows.y_prob).verdict
    assert verdict.heading == "Outcomes fall as predictions rise"


def test_the_noise_of_soft_outcomes_is_their_own():
    p = np.linspace(0.05, 0.9, 400)
    y = p + 0.01 + np.where(np.arange(400) % 2, 1e-3, -1e-3)
    found = assess(y, p)
    assert found.verdict.direction == "too low"
    residual = y - p
    error = np.sqrt(np.sum(residual**2)) / 400
    assert found.bias.high - found.bias.value == pytest.approx(1.959964 * error, rel=1e-6)


def test_many_bins(rows):
    found = assess(*rows, n_bins=10_000, **FEW)
    assert found["ece"].value == pytest.approx(estimate("ece", *rows, n_bins=10_000).value)
    with pytest.raises(CalibrantError, match="n_bins must be at most 10000 for an assessment"):
        assess(*rows, n_bins=10_001, **FEW)


def test_a_threshold_adds_its_regret():
    y, p = load_flares("DAFFS")
    found = assess(y, p, threshold=0.25, **FEW)
    expected = threshold_regret(y, p, 0.25, **FEW)
    assert (found.regret.value, found.regret.low, found.regret.high) == nearly(
        (expected.value, expected.low, expected.high)
    )
    assert "regret at 0.25" in repr(found)
    assert found.settings.threshold == 0.25
    assert found.murphy.loss == nearly(murphy_curve(y, p).thinned().loss)
    without = assess(y, p, **FEW)
    assert without.regret is None
    assert "regret" not in repr(without)
    with pytest.raises(CalibrantError, match="threshold must lie strictly between 0 and 1"):
        assess(y, p, threshold=25)


def test_clusters_count_in_every_curve():
    # Between clusters outcomes differ, not between scores: single rows would show many bends.
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(40), 25)
    p = rng.random(40)[site]
    y = rng.random(40)[site] < p
    found = assess(y, p, clusters=site, n_resamples=39).curve("smooth")
    alone = reliability_curve(y, p, clusters=site)
    assert found.bandwidth == pytest.approx(alone.bandwidth)
    assert found.bandwidth > 2 * assess(y, p, n_resamples=39).curve("smooth").bandwidth
