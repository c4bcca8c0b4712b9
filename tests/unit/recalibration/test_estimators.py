"""Calibrators as scikit-learn estimators.

Only those of scikit-learn's own checks are run that do not fit to generated data: it has features
of any size and sign in several columns, and calibrators refuse all but probabilities. The other
properties are tested here, or with the calibrators, on probabilities.
"""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

import calibrant as cb
from calibrant import CalibrantError
from calibrant import recalibration as rc
from tests.tolerances import nearly

CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_set_params",
    "check_valid_tag_types",
]
CALIBRATORS = {
    type(make()).__name__: type(make()) for make in (*rc.METHODS.values(), rc.IdentityCalibrator)
}
P, Y = (
    cb.datasets.simulate("overconfident", 200).y_prob,
    cb.datasets.simulate("overconfident", 200).y_true,
)


@pytest.mark.parametrize("kind", CALIBRATORS.values())
@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_scikit_learn(kind, name):
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip("this scikit-learn has no such check")
    check(kind.__name__, kind())


@pytest.mark.parametrize("kind", CALIBRATORS.values())
def test_parameters_have_defaults(kind):
    estimator_checks.check_parameters_default_constructible(kind.__name__, kind())


@pytest.mark.parametrize("kind", CALIBRATORS.values())
def test_fit_returns_itself_and_changes_nothing_it_was_given(kind):
    p, y, w = P.copy(), Y.copy(), np.ones(len(P))
    estimator = kind()
    params = estimator.get_params()
    assert estimator.fit(p, y, sample_weight=w) is estimator
    assert estimator.get_params() == params
    fitted = copy.deepcopy(vars(estimator))
    estimator.predict(p)
    assert vars(estimator).keys() == fitted.keys()
    assert estimator.maps_ == fitted["maps_"]
    assert (p == P).all()
    assert (y == Y).all()
    assert (w == 1).all()
    # Arrays that must not be written to are read.
    for array in (p, y, w):
        array.flags.writeable = False
    estimator.fit(p, y, sample_weight=w).predict(p)


@pytest.mark.parametrize("kind", CALIBRATORS.values())
def test_copies_of_all_kinds(kind):
    fitted = kind().fit(P, Y)
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        check_is_fitted(again)
        assert again.predict(P).tolist() == fitted.predict(P).tolist()
    fresh = clone(fitted)
    assert not hasattr(fresh, "maps_")
    assert fresh.get_params() == fitted.get_params()


@pytest.mark.parametrize("kind", CALIBRATORS.values())
def test_rows_are_recalibrated_independently(kind):
    if kind is rc.NoisyCalibrator:
        pytest.skip("each row has noise of its own")
    fitted = kind().fit(P, Y)
    together = fitted.predict(P)
    assert np.array([fitted.predict([p])[0] for p in P[:20]]) == nearly(together[:20])
    assert fitted.predict(P[::-1]) == nearly(together[::-1])


def test_cross_validation_and_grid_search():
    y, p = cb.datasets.simulate("overconfident", 500)
    recalibrated = cross_val_predict(rc.PlattCalibrator(), p[:, None], y, cv=KFold(3))
    assert recalibrated.shape == (500,)
    assert cb.brier_score(y, recalibrated) < cb.brier_score(y, p)

    def score(estimator, p, y):
        return -cb.brier_score(y, estimator.predict(p))

    search = GridSearchCV(rc.SmoothCalibrator(), {"bandwidth": [0.02, 0.1]}, scoring=score, cv=3)
    assert search.fit(p, y).best_params_["bandwidth"] == 0.1


@pytest.mark.parametrize("kind", CALIBRATORS.values())
def test_probabilities_and_outcomes_are_no_metadata(kind):
    routing = kind().get_metadata_routing()
    assert set(routing.fit.requests) == {"sample_weight", "labels", "pos_label"}
    assert not routing.predict.requests


@pytest.mark.parametrize(
    ("documented", "function"),
    [
        *((kind, kind.__init__) for kind in CALIBRATORS.values() if "__init__" in vars(kind)),
        (rc.Calibrator.fit, rc.Calibrator.fit),
        (rc.Calibrator.predict, rc.Calibrator.predict),
        (rc.recalibrate, rc.recalibrate),
        (rc.cross_fitted, rc.cross_fitted),
        (rc.load, rc.load),
    ],
    ids=lambda one: getattr(one, "__qualname__", None),
)
def test_every_parameter_is_documented_with_its_type(documented, function):
    text = inspect.getdoc(documented)
    for name in inspect.signature(function).parameters:
        assert name == "self" or re.search(rf"^{name} : \S", text, re.MULTILINE), name


def test_the_base_classes_are_abstract():
    with pytest.raises(NotImplementedError):
        rc.Calibrator().fit(P, Y)
    with pytest.raises(NotImplementedError):
        rc.ProbabilityMap()(P)
    with pytest.raises(CalibrantError, match="cannot be written as SQL"):
        rc.ProbabilityMap().to_sql("p")
