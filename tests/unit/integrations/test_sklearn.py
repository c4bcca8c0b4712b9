"""Displays and scorers by scikit-learn's conventions."""

import importlib
import pickle
import sys

import numpy as np
import pytest

import calibrant as cb

sklearn = pytest.importorskip("sklearn")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.collections import PathCollection  # noqa: E402
from matplotlib.legend import Legend  # noqa: E402
from sklearn.datasets import load_iris, make_classification  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

from calibrant.integrations.sklearn import (  # noqa: E402
    CalibrationScorer,
    CumulativeDisplay,
    ReliabilityDisplay,
    neg_ace,
    neg_ecce_mad,
    neg_ecce_r,
    neg_ece,
    neg_logit_smoothed_ece,
    neg_mce,
    neg_smooth_ece,
    neg_weak_calibration_error,
)
from calibrant.measures.registry import measures  # noqa: E402
from tests.tolerances import assert_nearly_equal, nearly  # noqa: E402

X, Y = make_classification(600, random_state=0)
NAMES = np.array(["no", "yes"])[Y]
MODEL = GaussianNB().fit(X[:300], NAMES[:300])
P = MODEL.predict_proba(X[300:])[:, 1]
IRIS = load_iris()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    ("scorer", "measure"),
    [
        (neg_ace, cb.ace),
        (neg_ecce_mad, cb.ecce_mad),
        (neg_ecce_r, cb.ecce_r),
        (neg_ece, cb.ece),
        (neg_logit_smoothed_ece, cb.logit_smoothed_ece),
        (neg_mce, cb.mce),
        (neg_smooth_ece, cb.smooth_ece),
        (neg_weak_calibration_error, cb.weak_calibration_error),
    ],
)
def test_a_scorer_is_a_negative_error(scorer, measure):
    assert scorer(MODEL, X[300:], NAMES[300:]) == nearly(-measure(Y[300:], P))
    assert repr(scorer) == f"CalibrationScorer({measure.__name__})"


def test_every_calibration_error_has_a_scorer():
    module = importlib.import_module("calibrant.integrations.sklearn")
    errors = [info for info in measures().values() if info.kind == "error"]
    assert set(module.__all__) >= {f"neg_{info.name}" for info in errors}
    for info in errors:
        assert getattr(module, f"neg_{info.name}").measure is info.function
    assert "neg_ece" in dir(module)
    with pytest.raises(AttributeError, match="no attribute 'neg_brier_score'"):
        module.neg_brier_score  # noqa: B018


def test_scorers_take_options_and_weights():
    weight = np.arange(300) % 3
    scorer = CalibrationScorer(cb.ece, n_bins=7, pos_label="no")
    expected = -cb.ece(1 - Y[300:], 1 - P, n_bins=7, sample_weight=weight)
    assert np.isclose(scorer(MODEL, X[300:], NAMES[300:], sample_weight=weight), expected)
    assert repr(scorer) == "CalibrationScorer(ece, n_bins=7, pos_label='no')"


@pytest.mark.parametrize(
    ("measure", "options", "sentence"),
    [
        ("ece", {}, "measure must be a function of calibrant's, such as .*; got 'ece'"),
        (None, {}, "measure must be a function .*; got None"),
        (cb.ece, {"n_bin": 5}, "ece has no option 'n_bin'; there are: .*: did you mean 'n_bins'"),
        (cb.brier_score, {"labels": [0, 1]}, "brier_score has no option 'labels'"),
    ],
)
def test_a_scorer_refuses_what_it_cannot_score_with(measure, options, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        CalibrationScorer(measure, **options)


@pytest.mark.parametrize("display", [ReliabilityDisplay, CumulativeDisplay])
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": 3}, "name must be text; got 3"),
        ({"name": np.ones(2)}, "name must be text; got ndarray of shape"),
        ({"ax": "here"}, "ax must be a matplotlib Axes; got 'here'"),
        ({"note": 3}, "note must be True, False, a result or text; got 3"),
        ({"n_bin": 3}, "has no option 'n_bin'; there are: .*sample_weight"),
    ],
)
def test_displays_refuse_what_cannot_be_drawn(display, options, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        display.from_predictions(Y[300:], P, **options)


def test_cross_validation():
    scores = cross_val_score(GaussianNB(), X, NAMES, scoring=neg_smooth_ece, cv=KFold(3))
    folds = KFold(3).split(X)
    by_hand = [
        -cb.smooth_ece(Y[test], GaussianNB().fit(X[fit], Y[fit]).predict_proba(X[test])[:, 1])
        for fit, test in folds
    ]
    assert np.allclose(scores, by_hand)


def test_grid_search_prefers_the_better_calibrated():
    grid = {"var_smoothing": [1e-9, 1e-1, 1e3]}
    found = GridSearchCV(GaussianNB(), grid, scoring=neg_ece, cv=3).fit(X, NAMES)
    assert found.best_score_ == found.cv_results_["mean_test_score"].max()
    assert neg_ece(found, X, NAMES) == nearly(neg_ece(found.best_estimator_, X, NAMES))


def test_folds_without_some_of_the_classes():
    # Sorted by class, a fold has one or two of the three, and labels are not 0, 1, 2.
    labels = 2 * IRIS.target
    scoring = {
        "confidence": neg_ece,
        "classwise": CalibrationScorer(cb.ece, multiclass="classwise"),
    }
    found = cross_validate(GaussianNB(), IRIS.data, labels, scoring=scoring, cv=KFold(9))
    for k, (fit, test) in enumerate(KFold(9).split(IRIS.data)):
        p = GaussianNB().fit(IRIS.data[fit], labels[fit]).predict_proba(IRIS.data[test])
        expected = -cb.ece(IRIS.target[test], p)
        assert np.isclose(found["test_confidence"][k], expected)
        expected = -cb.ece(IRIS.target[test], p, multiclass="classwise")
        assert np.isclose(found["test_classwise"][k], expected)


def test_weights_are_routed():
    weight = np.random.default_rng(0).random(600)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = CalibrationScorer(cb.ece).set_score_request(sample_weight=True)
        model = GaussianNB().set_fit_request(sample_weight=False)
        given = {"params": {"sample_weight": weight}, "cv": KFold(3)}
        scores = cross_val_score(model, X, NAMES, scoring=scorer, **given)
    fit, test = next(KFold(3).split(X))
    p = GaussianNB().fit(X[fit], Y[fit]).predict_proba(X[test])[:, 1]
    assert np.isclose(scores[0], -cb.ece(Y[test], p, sample_weight=weight[test]))


def test_scorers_travel_between_processes():
    again = pickle.loads(pickle.dumps(neg_smooth_ece))
    assert again(MODEL, X, NAMES) == nearly(neg_smooth_ece(MODEL, X, NAMES))


def test_without_scikit_learn_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.utils.validation", None)
    for name in [name for name in sys.modules if name.startswith("calibrant.integrations.sk")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(cb.MissingDependencyError, match=r"pip install 'calibrant\[sklearn\]'"):
        importlib.import_module("calibrant.integrations.sklearn")


def test_models_without_probabilities_are_refused():
    model = LinearSVC(dual=False).fit(X, Y)
    with pytest.raises(cb.CalibrantError, match="LinearSVC has no predict_proba"):
        neg_ece(model, X, Y)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        neg_ece(GaussianNB(), X, Y)


def test_a_reliability_display_keeps_its_results():
    display = ReliabilityDisplay.from_estimator(MODEL, X[300:], NAMES[300:])
    curve = cb.reliability_curve(Y[300:], P)
    assert display.curve.y == nearly(curve.y)
    assert display.note.value == nearly(cb.smooth_ece(Y[300:], P))
    assert (display.estimator_name, display.pos_label) == ("GaussianNB", "yes")
    assert display.line_ in display.ax_.collections
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xlabel() == "predicted probability of class yes"
    assert plt.get_fignums() == [display.figure_.number]


def test_a_reliability_display_draws_what_plot_reliability_draws():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(2000) < 0.3, 0.25, rng.uniform(0.2, 0.55, 2000))
    y = (rng.random(2000) < p).astype(float)
    display = ReliabilityDisplay.from_predictions(y, p)
    drawn, again = display.ax_, display.plot(ax=plt.figure().subplots()).ax_
    alone = cb.plot.reliability(y, p)
    (discs,) = [one for one in alone.collections if isinstance(one, PathCollection)]
    assert discs.get_offsets().tolist() == [[0.25, pytest.approx(y[p == 0.25].mean())]]
    for ax in (drawn, again):
        assert [type(one) for one in ax.collections] == [type(one) for one in alone.collections]
        (found,) = [one for one in ax.collections if isinstance(one, PathCollection)]
        assert np.array_equal(found.get_offsets(), discs.get_offsets())
        assert ax.get_xlim() == alone.get_xlim()
    percentages = [text.get_text() for text in drawn.texts if text.get_text().endswith("%")]
    assert percentages == [text.get_text() for text in alone.texts if text.get_text().endswith("%")]


def test_the_other_class():
    display = ReliabilityDisplay.from_estimator(MODEL, X[300:], NAMES[300:], pos_label="no")
    curve = cb.reliability_curve(1 - Y[300:], 1 - P)
    assert np.allclose(display.curve.y, curve.y, equal_nan=True)


def test_a_cumulative_display_keeps_its_results():
    display = CumulativeDisplay.from_predictions(Y[300:], P, name="Bayes")
    assert_nearly_equal(display.note, cb.cumulative_test(Y[300:], P))
    assert np.array_equal(display.line_.get_ydata(), display.curve.deviation)
    assert "Bayes" in display.ax_.get_legend().get_texts()[0].get_text()


def test_displays_share_an_axes():
    first = ReliabilityDisplay.from_estimator(MODEL, X[300:], NAMES[300:])
    other = LogisticRegression().fit(X[:300], NAMES[:300])
    ReliabilityDisplay.from_estimator(other, X[300:], NAMES[300:], ax=first.ax_, name="logistic")
    assert first.line_ in first.ax_.get_children()
    keys = [one for one in first.ax_.get_children() if isinstance(one, Legend)]
    names = [key.get_texts()[0].get_text().split(":")[0] for key in keys]
    assert sorted(names) == ["GaussianNB", "logistic"]


def test_displays_are_drawn_again():
    display = ReliabilityDisplay.from_predictions(Y[300:], P, method="binned", n_bins=5)
    ax = plt.figure().subplots()
    assert display.plot(ax=ax, name="again", deviation=True) is display
    assert display.ax_ is ax
    assert ax.get_ylabel() == "observed − predicted"


def test_more_than_two_classes_are_drawn_by_confidence():
    model = GaussianNB().fit(IRIS.data, IRIS.target_names[IRIS.target])
    y = IRIS.target_names[IRIS.target]
    display = ReliabilityDisplay.from_estimator(model, IRIS.data, y)
    p = model.predict_proba(IRIS.data)
    assert display.note.value == nearly(cb.smooth_ece(IRIS.target, p))
    assert display.ax_.get_xlabel() == "confidence"
    of_one = ReliabilityDisplay.from_estimator(model, IRIS.data, y, multiclass="virginica")
    assert of_one.note.value == nearly(cb.smooth_ece(IRIS.target == 2, p[:, 2]))
