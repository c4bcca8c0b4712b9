"""PriorShift: the closed form, Saerens' estimate and its interval."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

import calibrant as cb
from calibrant import CalibrantError
from calibrant.recalibration import PriorShift, load
from tests.tolerances import nearly
from tests.twins import recalibration as twin


def predictions(rng, rate, n, distance=1.5):
    """Return probabilities, calibrated at a rate of 1/2, of rows of which `rate` are events."""
    y = rng.random(n) < rate
    x = rng.standard_normal(n) + distance * y
    return 1 / (1 + np.exp(-(distance * x - distance**2 / 2)))


def class_predictions(rng, rates, n):
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    y = rng.choice(3, p=rates, size=n)
    x = rng.standard_normal((n, 2)) + centres[y]
    p = np.exp(x @ centres.T - (centres**2).sum(axis=1) / 2)
    return p / p.sum(axis=1, keepdims=True)


def test_the_closed_form():
    p = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    fitted = PriorShift(0.4, 0.05).fit(p)
    assert fitted.predict(p)[1:-1] == nearly(twin.shifted(p[1:-1], 0.4, 0.05))
    assert fitted.predict(p)[[0, -1]].tolist() == [0, 1]
    assert (fitted.rate_, fitted.low_, fitted.high_) == (0.05, 0.05, 0.05)
    assert PriorShift(0.5, 0.01).fit([0.5]).predict([0.5])[0] == nearly(0.01)
    back = PriorShift(0.05, 0.4).fit(p).predict(fitted.predict(p))
    assert back == nearly(p)


def test_the_closed_form_of_classes():
    p = np.array([[0.2, 0.3, 0.5], [0.0, 0.5, 0.5]])
    expected = p * [0.5 / 0.2, 0.25 / 0.4, 0.25 / 0.4]
    fitted = PriorShift([0.2, 0.4, 0.4], [0.5, 0.25, 0.25]).fit(p)
    assert fitted.predict(p) == nearly(expected / expected.sum(axis=1, keepdims=True))
    assert fitted.rate_.tolist() == [0.5, 0.25, 0.25]


def test_the_estimate_is_where_em_ends():
    rng = np.random.default_rng(0)
    p = predictions(rng, 0.2, 400)
    both = np.stack((1 - p, p), axis=1)
    expected = twin.saerens(both, np.array([0.5, 0.5]))[1]
    assert PriorShift().fit(p).rate_ == pytest.approx(expected, abs=1e-6)
    assert PriorShift().fit(both).rate_ == pytest.approx(expected, abs=1e-6)
    sketch = cb.Sketch().update(np.zeros(400), p)
    assert PriorShift().fit(sketch).rate_ == pytest.approx(expected, abs=1e-4)
    q = class_predictions(rng, [0.6, 0.3, 0.1], 300)
    expected = twin.saerens(q, np.full(3, 1 / 3), steps=3000)
    assert PriorShift(np.full(3, 1 / 3)).fit(q).rate_ == pytest.approx(expected, abs=1e-5)


def test_limits_are_where_the_likelihood_has_fallen():
    p = predictions(np.random.default_rng(1), 0.3, 300)
    fitted = PriorShift().fit(p)

    def likelihood(b):
        return np.log(b * p / 0.5 + (1 - b) * (1 - p) / 0.5).sum()

    for end in (fitted.low_, fitted.high_):
        fall = 2 * (likelihood(fitted.rate_) - likelihood(end))
        assert fall == pytest.approx(3.841458820694124, rel=1e-4)


def test_the_interval_covers_the_rate():
    rng = np.random.default_rng(2)
    for rate, n in ((0.1, 400), (0.02, 400), (0.5, 100)):
        fits = [PriorShift().fit(predictions(rng, rate, n)) for _ in range(200)]
        covered = np.mean([one.low_ <= rate <= one.high_ for one in fits])
        # Nominal 95%; 200 samples have a standard error of 1.5%.
        assert covered >= 0.92
        assert np.mean([one.high_ - one.low_ for one in fits]) < 0.5


def test_the_interval_of_classes_covers():
    rng, rates = np.random.default_rng(3), np.array([0.7, 0.2, 0.1])
    fits = [
        PriorShift(np.full(3, 1 / 3)).fit(class_predictions(rng, rates, 200)) for _ in range(100)
    ]
    covered = np.mean([(one.low_ <= rates) & (rates <= one.high_) for one in fits], axis=0)
    assert covered.min() >= 0.88


def test_edges():
    assert PriorShift().fit([1.0, 1.0]).rate_ == pytest.approx(1.0)
    assert PriorShift().fit([0.5, 0.5]).low_ == pytest.approx(0.0)
    assert PriorShift().fit([0.5, 0.5]).high_ == pytest.approx(1.0)
    never = PriorShift(0.5, 0.0).fit([0.2]).predict([0.2, 0.9])
    assert np.all((never >= 0) & (never < 1e-200))
    weighted = PriorShift().fit([0.2, 0.9, 0.5], sample_weight=[2, 2, 0])
    assert weighted.rate_ == pytest.approx(PriorShift().fit([0.2, 0.9]).rate_, abs=1e-6)


def test_files(tmp_path):
    fitted = PriorShift(0.5, 0.1, mix=True).fit([0.5] * 9)
    assert fitted.predict([0.0])[0] == nearly(0.05)
    fitted.save(tmp_path / "prior.json")
    assert load(tmp_path / "prior.json").predict([0.3]) == fitted.predict([0.3])


@pytest.mark.parametrize(
    ("calibrator", "words"),
    [
        (PriorShift(0.0), "trained_rate must be a frequency, .* all of them positive; got 0.0"),
        (PriorShift(1.5), "trained_rate must be a frequency"),
        (PriorShift("half"), "trained_rate must be a frequency"),
        (PriorShift(0.5, [0.2, 0.3, 0.5]), "new_rate must have as many classes as trained_rate"),
        (PriorShift([0.5, 0.6]), "which add up to 1"),
        (PriorShift(0.5, level=95), "level must lie between 0 and 1"),
        (PriorShift([0.2, 0.3, 0.5]), "must have 3 columns"),
    ],
    ids=str,
)
def test_sentences(calibrator, words):
    with pytest.raises(CalibrantError, match=words):
        calibrator.fit([0.3, 0.6])
