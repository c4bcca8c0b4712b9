"""CalibrantClassifierCV: scikit-learn's checks, pipelines, searches, and better probabilities."""

import contextlib
import warnings
from unittest import SkipTest

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import calibrant as cb
from calibrant import CalibrantError
from calibrant.recalibration import CalibrantClassifierCV, IdentityCalibrator, PlattCalibrator

# Folds, Platt's targets and penalties count rows: a weight of 2 is not the row twice.
EXPECTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "folds and penalties count rows"
    for kind in ("dense", "sparse")
}


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_checks_of_scikit_learn(estimator):
    model = CalibrantClassifierCV(estimator, cv=3)
    checks = list(estimator_checks_generator(model, expected_failed_checks=EXPECTED, mark="skip"))
    assert len(checks) > 40
    for one, check in checks:
        # Classifiers warn of the data that the checks are about.
        with warnings.catch_warnings(action="ignore"), contextlib.suppress(SkipTest):
            check(one)


def rows(n=800, seed=0, **options):
    return make_classification(n, n_redundant=10, random_state=seed, **options)


def test_probabilities_are_better():
    x, y = rows(3000)
    raw = GaussianNB().fit(x[:1500], y[:1500]).predict_proba(x[1500:])
    model = CalibrantClassifierCV(GaussianNB()).fit(x[:1500], y[:1500])
    assert model.method_ != "none"
    assert cb.brier_score(y[1500:], model.predict_proba(x[1500:])) < cb.brier_score(y[1500:], raw)
    assert model.predict_proba(x[1500:]).sum(axis=1) == pytest.approx(1)


def test_the_calibrator_sees_held_out_predictions_only():
    x, y = rows()
    y = np.random.default_rng(0).integers(0, 2, 800)  # nothing to learn
    forest = RandomForestClassifier(20, random_state=0)
    assert cb.brier_score(y, forest.fit(x, y).predict_proba(x)) < 0.1
    model = CalibrantClassifierCV(forest, method="platt").fit(x, y)
    # Held-out predictions are worthless: the map is nearly constant.
    assert np.ptp(model.calibrator_.predict([0.01, 0.99])) < 0.2


def test_scores_searches_and_pipelines():
    pandas = pytest.importorskip("pandas")
    x, y = rows(300)
    assert cross_val_score(CalibrantClassifierCV(cv=3), x, y, cv=3).min() > 0.7
    grid = {"estimator__C": [1e-3, 1.0], "method": ["platt", "auto"]}
    search = GridSearchCV(
        CalibrantClassifierCV(LogisticRegression(), cv=3), grid, scoring="neg_brier_score", cv=2
    )
    assert search.fit(x, y).best_estimator_.predict_proba(x).shape == (300, 2)
    frame = pandas.DataFrame({"a": x[:, 0], "b": np.where(x[:, 1] > 0, "up", "down")})
    columns = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["b"]))
    inside = make_pipeline(columns, CalibrantClassifierCV(cv=3)).fit(frame, y)
    outside = CalibrantClassifierCV(make_pipeline(columns, LogisticRegression()), cv=3)
    assert inside.predict_proba(frame).shape == outside.fit(frame, y).predict_proba(frame).shape
    assert list(outside.feature_names_in_) == ["a", "b"]


def test_several_classes_and_labels_of_any_kind():
    x, y = load_digits(return_X_y=True)
    names = np.array([f"digit {k}" for k in range(10)])[y]
    model = CalibrantClassifierCV(GaussianNB(), cv=3).fit(x[:1200], names[:1200])
    assert model.method_ in ("temperature", "vector", "matrix")
    raw = GaussianNB().fit(x[:1200], y[:1200]).predict_proba(x[1200:])
    assert cb.brier_score(y[1200:], model.predict_proba(x[1200:])) < cb.brier_score(y[1200:], raw)
    assert set(model.predict(x[1200:])) <= set(names)


def test_folds_of_ones_own_weights_and_rare_classes():
    x, y = rows(200)
    w = np.arange(200) % 3
    model = CalibrantClassifierCV(cv=KFold(4), method=PlattCalibrator()).fit(x, y, sample_weight=w)
    assert model.calibrator_.maps_
    rare = np.where(np.arange(200) == 7, 2, y)
    kept = CalibrantClassifierCV().fit(x, rare)
    assert kept.method_ == "none"
    assert isinstance(kept.calibrator_, IdentityCalibrator)
    assert kept.predict_proba(x).shape == (200, 3)


def test_same_seed_same_result():
    x, y = rows(200)
    first, second = (CalibrantClassifierCV(rng=4).fit(x, y).predict_proba(x) for _ in range(2))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"cv": 1}, "cv must be a whole number of at least 2"),
        ({"cv": None}, "cv must be a whole number of at least 2"),
        ({"proper_score": "auc"}, "proper_score must be one of"),
    ],
    ids=str,
)
def test_sentences(options, words):
    with pytest.raises(CalibrantError, match=words):
        CalibrantClassifierCV(**options).fit(*rows(60))
