"""recalibrate: held-out rows only, a test of the right size, and reproducible results."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

import calibrant as cb
from calibrant import CalibrantError
from calibrant import recalibration as rc
from calibrant.recalibration.evidence import (
    classes_p_value,
    identity_p_value,
    joint_tails,
    outcome_noise,
    score_test,
)
from calibrant.recalibration.search import assign_folds, read_rows
from tests.tolerances import assert_nearly_equal, nearly

QUICK = {"n_resamples": 50}


def simulated(scenario, n, seed=0):
    drawn = cb.datasets.simulate(scenario, n, rng=seed)
    return drawn.y_true, drawn.y_prob


class Memory(rc.Calibrator):
    """Map every score to whether it was among those of the fit."""

    def _fit_problem(self, problem):
        score = problem.rows.pooled.score
        edges = np.sort(np.concatenate((score, np.nextafter(score, 2))))
        return rc.StepMap(edges, np.arange(len(edges) + 1) % 2)


def test_no_map_was_fitted_to_the_rows_it_recalibrates():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 50), rng.permutation(50) / 64
    assert Memory().fit(p, y).predict(p).tolist() == [1] * 50
    assert rc.cross_fitted(Memory(), p, y).tolist() == [0] * 50


def test_folds_are_even_in_size():
    table = read_rows(np.arange(103) < 12, np.full(103, 0.5), None, None)
    fold = assign_folds(table, None, 5, 0)
    assert sorted(np.bincount(fold)) == [20, 20, 21, 21, 21]
    assert fold.tolist() == assign_folds(table, None, 5, 0).tolist()
    assert fold.tolist() != assign_folds(table, None, 5, 1).tolist()


def test_every_fold_has_rows_of_positive_weight():
    table = read_rows(np.arange(100) % 2, np.full(100, 0.5), None, None)
    weight = np.where(np.arange(100) < 5, 2.0, 0.0)
    assert sorted(assign_folds(table, weight, 5, 0)[:5]) == [0, 1, 2, 3, 4]
    assert sorted(np.bincount(assign_folds(table, weight, 5, 0))) == [20] * 5
    with pytest.raises(CalibrantError, match="number of rows with positive weight, 5; got 6"):
        assign_folds(table, weight, 6, 0)


def test_helps_where_the_error_is_large():
    y, p = simulated("overconfident", 3000)
    found = rc.recalibrate(y, p, **QUICK)
    assert found.helps
    assert found.method == "temperature"
    assert found.p_value < 1e-3
    assert found.before["smooth_ece"].value == nearly(cb.smooth_ece(y, p))
    assert found.after["smooth_ece"].value == nearly(cb.smooth_ece(y, found.held_out))
    assert found.after["smooth_ece"].value < 0.03
    assert found.score_before == pytest.approx(cb.brier_score(y, p))
    best = next(one for one in found.candidates if one.method == found.method)
    assert best.score == pytest.approx(cb.brier_score(y, found.held_out))
    assert best.improvement == pytest.approx(found.score_before - best.score)
    assert best.p_value < 0.05
    assert len(found.candidates) == 7
    # The calibrator itself was fitted to all rows, and mixed with the identity.
    again = type(found.calibrator)(**found.calibrator.get_params()).fit(p, y)
    shrunk = p + found.strength * (again.predict(p) - p)
    assert found.predict(p) == pytest.approx(shrunk, abs=1e-9)  # fits end by rounding
    assert found.strength == pytest.approx(best.strength * (1 - np.sqrt(found.p_value / 0.05)))
    assert repr(found).startswith("Recalibrated by temperature: on held-out rows (5 folds) ")


def test_keeps_calibrated_predictions():
    for seed in range(3):
        y, p = simulated("perfect", 1000, seed)
        found = rc.recalibrate(y, p, **QUICK)
        assert not found.helps
        assert found.method == "none"
        assert found.after is found.before
        assert found.held_out.tolist() == p.tolist()
        assert found.predict([0.123]).tolist() == [0.123]
        assert repr(found).startswith("Left as given: no significant miscalibration (P = ")


def test_miscalibration_that_no_method_removes_is_not_called_insignificant():
    y = (np.random.default_rng(0).random(300) < 0.7).astype(float)
    found = rc.recalibrate(y, np.full(300, 0.5), method="temperature", **QUICK)
    assert found.method == "none"
    assert found.p_value < 1e-3
    assert "the probabilities are miscalibrated (P = " in repr(found).partition("\n")[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_calibrators_are_chosen_as_their_names_are(seed):
    y, p = simulated("underconfident", 400, seed)
    names = ("shift", "platt", "isotonic")
    by_name = rc.recalibrate(y, p, method=names, **QUICK)
    given = rc.recalibrate(y, p, method=[rc.METHODS[name]() for name in names], **QUICK)
    assert given.method == str(rc.METHODS[by_name.method]())
    assert given.held_out == pytest.approx(by_name.held_out, abs=1e-12)


def test_auto_among_others():
    y, p = simulated("overconfident", 300)
    found = rc.recalibrate(y, p, method=["auto", "histogram"], **QUICK)
    assert {"platt", "residual", "histogram"} <= {one.method for one in found.candidates}


def test_few_rows_are_no_evidence():
    assert rc.recalibrate([1, 1, 1], [0.5, 0.5, 0.5], cv=2, **QUICK).method == "none"
    # No event among 60 rare ones: predicting 0 would score better here, and means nothing.
    p = np.random.default_rng(0).beta(1, 99, 60)
    assert rc.recalibrate(np.zeros(60), p, **QUICK).method == "none"


def test_the_same_call_the_same_answer():
    y, p = simulated("sinusoidal", 800)
    first, second = (rc.recalibrate(y, p, rng=3, **QUICK) for _ in range(2))
    assert repr(first) == repr(second)
    assert first.held_out.tolist() == second.held_out.tolist()
    assert first.candidates == second.candidates


def test_methods_by_name_and_by_value():
    y, p = simulated("overconfident", 600)
    found = rc.recalibrate(y, p, method=["platt", rc.SmoothCalibrator(bandwidth=0.1)], **QUICK)
    names = [one.method for one in found.candidates]
    assert names == ["platt", "SmoothCalibrator(bandwidth=0.1)"]
    alone = rc.recalibrate(y, p, method="platt", **QUICK).candidates[0]
    assert alone.improvement == pytest.approx(found.candidates[0].improvement)
    assert alone.p_value <= found.candidates[0].p_value <= 2 * alone.p_value + 1e-4


def test_methods_make_new_calibrators():
    for make in rc.METHODS.values():
        first, second = make(), make()
        assert first is not second
        assert first.fit([0.2, 0.6, 0.7], [0, 1, 1]).maps_
        assert not hasattr(second, "maps_")
        assert not hasattr(make(), "maps_")
    with pytest.raises(TypeError):
        rc.METHODS["platt"] = rc.BetaCalibrator


def test_the_test_by_hand():
    # Four rows with improvements 0.3, 0.1, 0.1, 0.1.
    mean, error, n = 0.15, np.sqrt(np.var([0.3, 0.1, 0.1, 0.1], ddof=1) / 4), 4
    p_value = joint_tails(
        np.array([mean]), np.array([error]), np.array([[error**2]]), n, np.random.default_rng(0)
    )
    # t = 3 with 3 degrees of freedom: 0.0288; but four equal signs have probability 1/16.
    assert p_value.tolist() == [0.0625]
    rng = np.random.default_rng(0)
    p_value = joint_tails(np.array([3.0]), np.array([1.0]), np.eye(1), 11, rng)
    assert p_value[0] == pytest.approx(0.006671828, rel=1e-6)
    # Two that are one count once; two apart count nearly twice.
    for other, factor in ((1.0, 1.0), (0.0, 2.0)):
        both = np.array([[1.0, other], [other, 1.0]])
        tails = joint_tails(np.array([2.0, 1.0]), np.ones(2), both, 10**6, rng)
        assert tails[0] == pytest.approx(factor * 0.02275, rel=0.05)
    nothing = joint_tails(np.array([0.0, -1.0, 1.0]), np.zeros(3), np.zeros((3, 3)), 5, rng)
    assert nothing.tolist() == [1.0, 1.0, 2**-5]


def test_noise_of_outcomes_midway_by_hand():
    # Brier, p = 0.4, q = 0.6: outcomes change the difference by 2 (q - p) = 0.4, at m = 1/2.
    assert outcome_noise(np.array([0.4]), np.array([0.6]), "brier") == pytest.approx(0.04)
    gap = np.log(0.6 / 0.4) - np.log(0.4 / 0.6)
    assert outcome_noise(np.array([0.4]), np.array([0.6]), "log") == pytest.approx(gap**2 / 4)
    both = np.array([[0.6, 0.4, 0.0]]), np.array([[0.4, 0.6, 0.0]])
    assert outcome_noise(*both, "brier") == pytest.approx(0.16)
    assert outcome_noise(*both, "log") == pytest.approx(gap**2 / 4)
    assert outcome_noise(np.array([0.0, 0.5]), np.array([0.0, 0.0]), "log").tolist() == [0, np.inf]
    # Next to 1, q - p = e and 1 - m = e / 2: 4 e^2 m (1 - m).
    e = 2.0**-53
    assert outcome_noise(np.array([1 - e]), np.array([1.0]), "brier") == pytest.approx(
        2 * e**3, rel=1e-9, abs=0
    )


@pytest.mark.parametrize("score", ["brier", "log"])
def test_scores_are_those_of_the_measures(score):
    rng = np.random.default_rng(0)
    measure = {"brier": cb.brier_score, "log": cb.log_score}[score]
    soft = rng.random(30), rng.random(30)
    classes = rng.integers(0, 4, 30), rng.dirichlet(np.ones(4), 30)
    for y, p in (soft, classes):
        found = rc.recalibrate(y, p, score=score, method="platt", **QUICK)
        assert found.score_before == pytest.approx(measure(y, p))
        held_out = rc.cross_fitted(rc.PlattCalibrator(), p, y)
        shrunk = p + found.candidates[0].strength * (held_out - p)
        assert found.candidates[0].score == pytest.approx(measure(y, shrunk))


def test_infinite_scores():
    y, p = simulated("overconfident", 400)
    p = np.where(np.arange(400) == 7, 1.0 - y[7], p)
    with pytest.raises(
        CalibrantError,
        match=r"log score infinite; got 0.0 at index 7: use score='brier' or mix=True",
    ):
        rc.recalibrate(y, p, score="log", **QUICK)
    w = np.arange(400) != 7
    found = rc.recalibrate(y, p, score="log", sample_weight=w, **QUICK)
    assert np.isfinite([one.score for one in found.candidates]).all()
    plain = rc.IsotonicCalibrator(pseudo_count=0)
    y, p = simulated("perfect", 400, 3)
    found = rc.recalibrate(y, p, score="log", method=[plain, "platt"], **QUICK)
    if found.candidates[0].strength == 1:
        assert found.candidates[0].score == np.inf
    assert np.isfinite(found.score_before)


def test_weights():
    y, p = simulated("overconfident", 500)
    w = np.random.default_rng(0).integers(0, 3, 500)
    found = rc.recalibrate(y, p, sample_weight=w, method="platt", **QUICK)
    assert found.score_before == pytest.approx(cb.brier_score(y, p, sample_weight=w))
    held_out = rc.cross_fitted(rc.PlattCalibrator(), p, y, sample_weight=w)
    shrunk = p + found.candidates[0].strength * (held_out - p)
    assert found.candidates[0].score == pytest.approx(cb.brier_score(y, shrunk, sample_weight=w))


def test_several_classes_by_name():
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([2, 2, 2], 900)
    label = np.array([rng.choice(["a", "b", "c"], p=row) for row in truth])
    given = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    names = ["a", "b", "c"]
    found = rc.recalibrate(label, given, labels=names, method=["temperature", "platt"], **QUICK)
    assert found.method == "temperature"
    assert found.held_out.shape == given.shape
    assert found.before["smooth_ece"].value == nearly(cb.smooth_ece(label, given, labels=names))
    assert cb.log_score(label, found.predict(given), labels=names) < cb.log_score(
        label, given, labels=names
    )


def test_two_columns_and_soft_labels():
    y, p = simulated("overconfident", 500)
    both = np.stack((1 - p, p), axis=1)
    found = rc.recalibrate(y, both, method="platt", **QUICK)
    assert_nearly_equal(found.candidates, rc.recalibrate(y, p, method="platt", **QUICK).candidates)
    assert found.predict(both).shape == (500, 2)
    soft = rc.recalibrate(p**2, p, method="beta", **QUICK)
    assert soft.method == "beta"


def test_as_plain_values():
    pytest.importorskip("pandas")
    y, p = simulated("overconfident", 300)
    found = rc.recalibrate(y, p, **QUICK)
    plain = found.to_dict()
    assert "calibrator" not in plain
    assert plain["candidates"][0]["method"] == "shift"
    assert plain["before"]["n"] == 300
    assert len(plain["held_out"]) == 300
    assert found.to_frame()["method"].tolist() == [one.method for one in found.candidates]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "method must be one of 'auto'"),
        ({"method": []}, "at least one method"),
        ({"method": None}, "method must name at least one method.*; got None: 'auto' tries"),
        ({"method": [3]}, "method must be one of"),
        ({"score": "auc"}, "score must be one of"),
        ({"level": 95}, "level must lie between 0 and 1"),
        ({"cv": 1}, "cv must be between 2 and the number of rows, 4; got 1"),
        ({"cv": 5}, "cv must be between 2 and the number of rows, 4; got 5"),
        ({"cv": 2.0}, "cv must be a whole number"),
        ({"cv": 10**400}, "cv must be between 2 and the number of rows, 4; got 1000"),
        ({"n_resamples": 38}, "n_resamples must be a whole number of at least 39; got 38"),
        ({"rng": None}, "rng must be"),
        ({"sample_weight": [1, 1]}, "one weight per row"),
        ({"pos_label": 7}, "pos_label must be one of the labels in y_true .* got 7"),
    ],
    ids=str,
)
def test_sentences(options, words):
    with pytest.raises(CalibrantError, match=words):
        rc.recalibrate([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], **({"cv": 2} | options))


def test_only_calibrators_are_cross_fitted():
    for wrong in (None, "platt", rc.PlattCalibrator, []):
        with pytest.raises(CalibrantError, match="calibrator must be one of calibrant"):
            rc.cross_fitted(wrong, [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], cv=2)


def test_sketches_and_swapped_arguments():
    y, p = simulated("overconfident", 100)
    with pytest.raises(CalibrantError, match="cannot be split into folds"):
        rc.recalibrate(cb.Sketch().update(y, p), None)
    with pytest.raises(CalibrantError, match="cannot be split into folds"):
        rc.cross_fitted(rc.PlattCalibrator(), cb.Sketch().update(y, p), y)
    with pytest.raises(CalibrantError, match=r"y_true and y_prob look swapped"):
        rc.recalibrate(p, y.astype(float))
    with pytest.raises(CalibrantError, match=r"fit\(y_prob, y_true\)"):
        rc.cross_fitted(rc.PlattCalibrator(), y.astype(float), p)


def test_predictions_of_0_and_1_that_were_wrong():
    # Stated confidences, of which 1.0 is right in 17 of 20 rows.
    rng = np.random.default_rng(0)
    p = np.repeat(np.arange(1, 21) / 20, 20)
    y = (rng.random(400) < p).astype(int)
    y[-3:] = 0
    found = rc.recalibrate(y, p, **QUICK)
    assert found.method == "ends"
    assert found.predict([0.5, 1.0]).tolist() == pytest.approx([0.5, 18 / 21])
    assert found.p_value < 1e-100
    # Beside another error, both are corrected.
    q = np.where(p < 1, p / 2, p)
    z = np.where(p < 1, rng.random(400) < q, y).astype(int)
    both = rc.recalibrate(z, p, **QUICK)
    assert both.method not in ("none", "ends")
    assert both.predict([1.0])[0] == pytest.approx(18 / 21)
    assert both.predict([0.5])[0] < 0.35


def test_no_finite_log_score_becomes_infinite():
    # A step: isotonic blocks of one outcome, and fresh rows to the contrary.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p = rng.random(200)
        y = (rng.random(200) < np.where(p < 0.5, 0.02, 0.98)).astype(int)
        fresh = np.concatenate((rng.random(500), [1e-12, 1 - 1e-12]))
        found = rc.recalibrate(y, p, **QUICK)
        for outcome in (0, 1):
            assert np.isfinite(cb.log_score(np.full(502, outcome), found.predict(fresh)))


@pytest.mark.parametrize("name", [n for n in rc.METHODS if n != "noisy"])
def test_no_method_makes_a_finite_log_score_infinite(name):
    rng = np.random.default_rng(1)
    p = np.concatenate((rng.random(60), [0.0] * 5, [1.0] * 5))
    y = (p > 0.5).astype(int)
    fresh = np.array([1e-9, 0.001, 0.3, 0.7, 0.999, 1 - 1e-9])
    q = rc.METHODS[name]().fit(p, y).predict(fresh)
    assert np.all((q > 0) & (q < 1))
    mixed = rc.METHODS[name]
    if "mix" in mixed().get_params():
        q = mixed(mix=True).fit(p, y).predict([0.0, 0.5, 1.0])
        assert np.all((q >= 0.5 / 71) & (q <= 1 - 0.5 / 71))


def test_mixing_makes_log_scores_finite():
    y, p = simulated("overconfident", 400)
    p = np.where(np.arange(400) == 7, 1.0 - y[7], p)
    found = rc.recalibrate(y, p, score="log", mix=True, **QUICK)
    assert np.isfinite(found.score_before)
    assert np.isfinite(cb.log_score(y, found.predict(p)))
    assert found.predict([0.0])[0] > 0


def test_the_score_test_by_hand():
    # Level alone: four rows of 1/2, all events: (4 - 2)^2 / (4 / 4) = 4, one degree of freedom.
    p, y, w = np.full(4, 0.5), np.ones(4), np.ones(4)
    assert score_test(np.ones((4, 1)), w, y - p, p * (1 - p)) == pytest.approx(0.0455002639)
    # Of one score, level, spread and shape are one and the same; 2^-4 is the least.
    assert identity_p_value(p, y, w, False) == pytest.approx(3 * 0.0455002639)
    assert identity_p_value(np.array([0.0, 0.5]), np.array([1.0, 0.0]), w[:2], False) == 0.25


def test_size_of_the_test_of_calibration():
    rng = np.random.default_rng(5)
    p_values = []
    for _ in range(400):
        p = rng.random(300)
        p_values.append(identity_p_value(p, (rng.random(300) < p) * 1.0, np.ones(300), False))
    assert np.mean(np.array(p_values) <= 0.05) <= 0.08  # 5% and two standard errors
    p_values = []
    for _ in range(200):
        q = rng.dirichlet(np.ones(3), 300)
        label = np.eye(3)[(q.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)]
        p_values.append(classes_p_value(q, label, np.ones(300), False))
    assert np.mean(np.array(p_values) <= 0.05) <= 0.09


@pytest.mark.parametrize("y", [np.ones(200), np.zeros(200, dtype=int)], ids=["ones", "zeros"])
def test_outcomes_all_alike_get_a_warning(y):
    p = np.linspace(0.2, 0.8, 200)
    with pytest.warns(UserWarning, match="all outcomes are alike") as caught:
        assert rc.recalibrate(y, p, n_resamples=39).helps
    assert caught[0].filename == __file__
    others = np.r_[y, 1 - y]
    with pytest.warns(UserWarning, match="all outcomes are alike"):
        rc.recalibrate(others, np.r_[p, p], sample_weight=np.repeat([1, 0], 200), n_resamples=39)


def test_one_row_is_too_few():
    with pytest.raises(CalibrantError, match="at least two rows that carry weight"):
        rc.recalibrate([1], [0.5])


def test_a_sketch_alone_is_refused():
    for function in (rc.recalibrate, rc.calibration_gain):
        with pytest.raises(CalibrantError, match="does not know single rows"):
            function(cb.Sketch().update([0, 1], [0.2, 0.7]))
