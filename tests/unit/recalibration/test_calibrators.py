"""Every calibrator on ordinary, small, tied, certain, weighted, soft and many-class data."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

from sklearn.exceptions import NotFittedError

import calibrant as cb
from calibrant import CalibrantError
from calibrant import recalibration as rc
from tests.tolerances import ROUNDING, nearly

RNG = np.random.default_rng(0)
P = RNG.random(200)
Y = (RNG.random(200) < P**2).astype(int)
T = np.linspace(0, 1, 101)
# Fits end when a step is small: rounding may decide which step is the last.
FITTED = 1e-9
ALL = {**rc.METHODS, "identity": rc.IdentityCalibrator}
NEVER_FALL = [
    *("shift", "temperature", "platt", "beta", "quadratic", "isotonic"),
    *("scaling_binning", "identity"),
    *("smooth_monotone", "density_monotone"),
]


def is_probability(q):
    return bool(np.all((q >= 0) & (q <= 1)))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.3], [1]),
        ([0.3], [0]),
        ([0.0], [1]),
        ([1.0], [1]),
        ([0.2, 0.8], [1, 1]),
        ([0.2, 0.8], [0, 0]),
        ([0.2, 0.8], [1, 0]),
        ([0.5] * 5, [0, 1, 1, 0, 1]),
        ([0.0, 1.0], [0, 1]),
        ([0.0, 0.0, 1.0, 1.0, 0.5], [0, 1, 0, 1, 1]),
        ([0.1, 0.1 + 1e-16, 0.1 + 2e-16, 0.9], [0, 1, 0, 1]),
        ([0.2, 0.4], [0.2, 0.4]),
        ([5e-324, 1 - 2**-53, 0.5], [0, 1, 1]),
    ],
    ids=str,
)
def test_defined_wherever_there_is_a_row(name, p, y):
    recalibrated = ALL[name]().fit(p, y).predict(T)
    assert recalibrated.shape == T.shape
    assert is_probability(recalibrated)
    if name in NEVER_FALL:
        assert np.all(np.diff(recalibrated) >= -ROUNDING)


@pytest.mark.parametrize("name", ALL)
def test_one_score_does_not_determine_a_slope(name):
    # 3 of 4 outcomes at one score: all but the identity and temperature find that there.
    recalibrated = ALL[name]().fit([0.4] * 400, [1, 1, 1, 0] * 100).predict([0.4])[0]
    expected = {
        "identity": 0.4,
        "ends": 0.4,
        # Shrunk towards temperature scaling.
        "vector": pytest.approx(0.75, abs=0.01),
        "matrix": pytest.approx(0.75, abs=0.01),
        "temperature": pytest.approx(0.5, abs=0.002),
        "noisy": pytest.approx(0.75, abs=1e-9),
    }
    assert recalibrated == expected.get(name, pytest.approx(0.75, abs=0.002))


def test_one_score_moves_only_the_intercept():
    map_ = rc.PlattCalibrator().fit([0.5, 0.5], [1, 0]).map_
    assert (map_.a, map_.b, map_.c) == (1.0, 1.0, 0.0)
    map_ = rc.BetaCalibrator().fit([0.5], [1]).map_
    # One row: its outcome counts as 2/3.
    assert (map_.a, map_.b, map_.c) == pytest.approx((1.0, 1.0, np.log(2)))


def test_predictions_of_0_and_1_stay_and_are_ignored():
    p, y = [0.0, 1.0, *P], [1, 0, *Y]
    for name in ("temperature", "platt", "beta"):
        with_ends, without = ALL[name]().fit(p, y).map_, ALL[name]().fit(P, Y).map_
        assert vars(with_ends) == pytest.approx(vars(without), abs=FITTED)
        assert ALL[name]().fit(p, y).predict([0.0, 1.0]).tolist() == [0.0, 1.0]
    for calibrator in (rc.PlattCalibrator(), rc.TemperatureCalibrator()):
        assert calibrator.fit([0.0, 1.0], [1, 0]).predict([0.3])[0] == nearly(0.3)


def test_outcomes_of_probability_0_are_ignored():
    rng = np.random.default_rng(0)
    prob = np.append(rng.dirichlet(np.ones(3), 50), [[0.6, 0.4, 0.0]] * 20, axis=0)
    label = np.append(rng.integers(0, 3, 50), [2] * 20)
    with_them, without = (
        rc.TemperatureCalibrator().fit(prob[:n], label[:n]).map_.temperature for n in (70, 50)
    )
    assert with_them == pytest.approx(without, abs=FITTED)


def test_no_slope_reverses_the_order():
    for name in ("temperature", "platt", "beta", "scaling_binning"):
        recalibrated = ALL[name]().fit(P, 1 - (P > 0.5)).predict(T[1:-1])
        assert np.ptp(recalibrated) < 0.03


def test_temperature_has_ends():
    foreseen = rc.TemperatureCalibrator().fit([0.4, 0.6], [0, 1]).map_
    assert 1 / foreseen.a == nearly(0.01)
    reversed_ = rc.TemperatureCalibrator().fit([0.4, 0.6], [1, 0]).map_
    assert 1 / reversed_.a == pytest.approx(100)
    # A likelihood that grows for ever, but by next to nothing, is not followed to the end.
    nearly_certain = rc.TemperatureCalibrator().fit([1e-6, 1 - 1e-6], [0, 1]).map_
    assert 1 < nearly_certain.a < 5


@pytest.mark.parametrize("name", ALL)
def test_weights_are_rows_and_those_of_weight_0_are_ignored(name):
    w = np.arange(len(P)) % 3
    weighted = ALL[name]().fit(P, Y, sample_weight=w).predict(T)
    repeated = ALL[name]().fit(np.repeat(P, w), np.repeat(Y, w)).predict(T)
    kept = ALL[name]().fit(P[w > 0], Y[w > 0], sample_weight=w[w > 0]).predict(T)
    assert weighted == pytest.approx(kept, abs=FITTED)
    # Silverman's rule, Platt's targets, penalties and added rows count rows, not weights.
    exact = ("identity", "ends", "temperature", "noisy")
    slack = 1e-6 if name in exact else 0.22 if name == "residual" else 0.03
    assert weighted == pytest.approx(repeated, abs=slack)
    scaled = ALL[name]().fit(P, Y, sample_weight=1e-3 * w).predict(T)
    assert scaled == pytest.approx(weighted, abs=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_refits_and_row_order(name):
    order = np.random.default_rng(1).permutation(len(P))
    first = ALL[name]().fit(P, Y).predict(T)
    assert ALL[name]().fit(P, Y).predict(T).tolist() == first.tolist()
    ALL[name]().fit([0.5], [1])
    assert ALL[name]().fit(P[order], Y[order]).predict(T) == pytest.approx(first, abs=FITTED)


@pytest.mark.parametrize("name", ALL)
def test_two_columns_labels_and_tensors_of_any_kind(name):
    expected = ALL[name]().fit(P, Y).predict(P)
    same = pytest.approx(expected, abs=FITTED)
    both = np.stack((1 - P, P), axis=1)
    fitted = ALL[name]().fit(both, np.where(Y, "yes", "no"), labels=["no", "yes"])
    assert fitted.predict(both)[:, 1] == same
    assert fitted.predict(both)[:, 0] == pytest.approx(1 - expected, abs=FITTED)
    assert fitted.predict(P) == same
    assert fitted.predict(P[:, None]) == same
    named = ALL[name]().fit(P.tolist(), np.where(Y, "yes", "no"), pos_label="yes")
    assert named.predict(P.tolist()) == same


@pytest.mark.parametrize("name", ALL)
def test_soft_labels_are_taken_as_they_are(name):
    soft = ALL[name]().fit(P, P**2).predict(T[10:90])
    near = {"identity": 0.3, "ends": 0.3, "temperature": 0.3, "platt": 0.15, "scaling_binning": 0.2}
    near |= {"shift": 0.1, "quadratic": 0.1, "residual": 0.1, "vector": 0.1, "matrix": 0.1}
    near |= {"histogram": 0.1, "noisy": 0.5, "smooth": 0.1, "smooth_monotone": 0.1}
    assert soft == pytest.approx(T[10:90] ** 2, abs=near.get(name, 0.05))


@pytest.mark.parametrize("name", ALL)
def test_several_classes(name):
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([2, 2, 2], 600)
    label = np.array([rng.choice(3, p=row) for row in truth])
    given = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    fitted = ALL[name]().fit(given, label)
    recalibrated = fitted.predict(given)
    assert recalibrated.shape == given.shape
    assert is_probability(recalibrated)
    assert recalibrated.sum(axis=1) == pytest.approx(1)
    if name in ("identity", "ends"):
        assert recalibrated.tolist() == given.tolist()
    elif name not in ("noisy", "shift"):
        assert cb.brier_score(label, recalibrated) < cb.brier_score(label, given) - 0.01
    one_map = name in ("identity", "ends", "temperature", "vector", "matrix")
    assert len(fitted.maps_) == (1 if one_map else 3)
    if not one_map:
        with pytest.raises(CalibrantError, match="3 maps, one per class"):
            fitted.to_sql("p")
    with pytest.raises(CalibrantError, match=r"must have 3 columns, as when fitted; got 1"):
        fitted.predict(P[:5])


def test_a_class_that_never_happened_and_rows_that_vanish():
    given = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.0, 0.0, 1.0]])
    fitted = rc.IsotonicCalibrator(pseudo_count=0).fit(given[:2], [0, 1])
    assert fitted.predict(given[:2]).tolist() == [[1, 0, 0], [0, 1, 0]]
    # Nothing is left of the last row, so it stays as it is.
    assert fitted.predict(given).tolist()[2] == [0, 0, 1]


def test_class_labels_by_name():
    given = np.array([[0.6, 0.4, 0.0], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]] * 10)
    by_name = rc.PlattCalibrator().fit(given, ["a", "b", "c"] * 10, labels=["a", "b", "c"])
    by_number = rc.PlattCalibrator().fit(given, [0, 1, 2] * 10)
    assert by_name.maps_ == by_number.maps_


SKETCHED = {
    "ends": 0.0,
    "shift": 1e-6,
    "quadratic": 1e-5,
    "residual": 1e-4,
    "vector": 1e-5,
    "matrix": 1e-5,
    "temperature": 1e-6,
    "platt": 1e-6,
    "beta": 1e-6,
    "smooth": 1e-6,
    "smooth_monotone": 1e-6,
    "density": 1e-4,
    "density_monotone": 1e-4,
    "identity": 0.0,
}


@pytest.mark.parametrize("name", SKETCHED)
def test_fitted_to_a_sketch(name):
    from_rows = ALL[name]().fit(P, Y).predict(T[3:-3])
    sketch = cb.Sketch().update(Y, P)
    assert ALL[name]().fit(sketch).predict(T[3:-3]) == pytest.approx(from_rows, abs=SKETCHED[name])
    assert 0.0 < np.ptp(rc.SmoothCalibrator().fit(cb.Sketch(60).update(Y, P)).predict(T))


def test_noise_and_bins_from_a_sketch():
    sketch = cb.Sketch().update(Y, P)
    noisy = [rc.NoisyCalibrator(rng=1).fit(*data).predict(P) for data in ((P, Y), (sketch,))]
    assert noisy[0] == pytest.approx(noisy[1], abs=1e-5)
    bins = rc.HistogramCalibrator(n_bins=12, strategy="uniform")
    assert bins.fit(sketch).predict(T) == nearly(bins.fit(P, Y).predict(T))


@pytest.mark.parametrize("name", ["isotonic", "histogram", "scaling_binning"])
def test_methods_that_refuse_sketches(name):
    with pytest.raises(CalibrantError, match="a sketch does not know"):
        ALL[name]().fit(cb.Sketch().update(Y, P))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.fit(Y.astype(float), P), r"look swapped.*fit\(y_prob, y_true\)"),
        (lambda c: c.fit(P), r"y_true is missing: fit takes \(y_prob, y_true\)"),
        (lambda c: c.fit(cb.Sketch(), P), "y_prob must be left out"),
        (lambda c: c.fit(P, cb.Sketch()), r"give it alone, fit\(sketch\)"),
        (lambda c: c.fit(cb.Sketch()), "sketch is empty"),
        (lambda c: c.fit(P + 1, Y), "must lie in"),
        (lambda c: c.fit(P, Y[:-1]), "y_prob must have as many rows as y_true"),
        (lambda c: c.fit([], []), "at least one row"),
        (lambda c: c.fit(P, Y, sample_weight=-P), "must not be negative"),
        (lambda c: c.fit(P, Y + 5), "5 and 6"),
        (lambda c: c.fit(np.stack((1 - P, P), 1), Y, pos_label=0), "pos_label must be left out"),
        (lambda c: c.fit(P, Y).predict([0.5, 1.5]), "must lie in"),
        (lambda c: c.fit(P, Y).predict([0.5, np.nan]), "must be finite"),
        (
            lambda c: c.fit(P, Y).predict(np.full((2, 3), 1 / 3)),
            r"must have one column or two, as when fitted; got 3",
        ),
        (lambda c: c.fit(P, Y).predict([[0.2, 0.2]]), "must have rows that sum to 1"),
    ],
)
def test_sentences(call, words):
    with pytest.raises(CalibrantError, match=words):
        call(rc.PlattCalibrator())


@pytest.mark.parametrize(
    ("calibrator", "words"),
    [
        (rc.SmoothCalibrator(bandwidth=-1), "bandwidth must be a positive number"),
        (rc.DensityCalibrator(bandwidth="scott"), "bandwidth must be 'silverman'"),
        (rc.DensityCalibrator(kernel="box"), "kernel must be one of"),
        (rc.SmoothCalibrator(bandwidth=1e300), r"bandwidth must be at most 1e\+06"),
        (rc.SmoothCalibrator(monotone="no"), "monotone must be True or False; got 'no'"),
        (rc.DensityCalibrator(monotone=1), "monotone must be True or False; got 1"),
        (rc.HistogramCalibrator(n_bins=10**20), "n_bins must be at most 1000000"),
        (rc.HistogramCalibrator(n_bins=0), "n_bins"),
        (rc.HistogramCalibrator(strategy="kmeans"), "strategy"),
        (rc.NoisyCalibrator(rng=-1), "rng must be"),
    ],
    ids=str,
)
def test_parameters_are_checked_by_fit(calibrator, words):
    with pytest.raises(CalibrantError, match=words):
        calibrator.fit(P, Y)


def test_before_fit(tmp_path):
    calibrator = rc.SmoothCalibrator()
    for use in (
        lambda: calibrator.predict(P),
        lambda: calibrator.map_,
        lambda: calibrator.to_sql("p"),
        lambda: calibrator.save(tmp_path / "x.json"),
    ):
        with pytest.raises(NotFittedError):
            use()


def test_noise_is_drawn_from_the_seed_or_the_generator():
    noisy = rc.NoisyCalibrator(rng=5).fit(P, Y)
    assert noisy.predict(P).tolist() == noisy.predict(P).tolist()
    other = rc.NoisyCalibrator(rng=6).fit(P, Y)
    assert noisy.map_ == other.map_
    assert noisy.predict(P).tolist() != other.predict(P).tolist()
    going_on = rc.NoisyCalibrator(rng=np.random.default_rng(5)).fit(P, Y)
    assert going_on.predict(P).tolist() == noisy.predict(P).tolist()
    assert going_on.predict(P).tolist() != noisy.predict(P).tolist()


def test_a_bandwidth_of_ones_own():
    wide = rc.SmoothCalibrator(bandwidth=50.0).fit(P, Y).predict(T)
    assert wide == pytest.approx(Y.mean())
    assert rc.NoisyCalibrator(bandwidth=0.3).fit(P, Y).map_.scale == 0.3
    # Perfectly calibrated: the scale does not fall to 0.
    assert rc.NoisyCalibrator().fit(P, P).map_.scale == 1e-3


@pytest.mark.parametrize(
    "name", [n for n in ALL if n not in ("identity", "ends", "shift", "noisy")]
)
def test_a_second_recalibration_changes_little(name):
    y, p = cb.datasets.simulate("overconfident", 20_000, rng=2)
    once = ALL[name]().fit(p, y).predict(p)
    twice = ALL[name]().fit(once, y).predict(once)
    assert np.abs(once - p).mean() > 0.05
    # Smoothing at scale s draws a slope towards the mean a little, every time.
    assert np.abs(twice - once).mean() < (0.011 if name.startswith("smooth") else 0.007)
