"""Calibrators of all classes together: objective, maps, SQL, files."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

import calibrant as cb
from calibrant import CalibrantError
from calibrant import recalibration as rc
from tests.twins import recalibration as twin

# Searches end when derivatives are small.
FITTED = 1e-5
JOINT = [rc.TemperatureCalibrator(mix=True), rc.VectorCalibrator(), rc.MatrixCalibrator()]


def simulated(n=400, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(n_classes), n)
    label = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    given = truth**1.7 * np.linspace(0.7, 1.5, n_classes)
    return given / given.sum(axis=1, keepdims=True), label


def parameters(map_):
    weights = np.diag(map_.weights) if map_.weights.ndim == 1 else map_.weights
    return weights, map_.bias


@pytest.mark.parametrize("calibrator", JOINT[1:])
@pytest.mark.parametrize("ridge", [0.3, 1.0])
def test_nothing_near_has_a_smaller_loss(calibrator, ridge):
    p, y = simulated()
    full = isinstance(calibrator, rc.MatrixCalibrator)
    map_ = type(calibrator)(ridge=ridge).fit(p, y).map_
    weights, bias = parameters(map_)
    best = twin.softmax_loss(p, y, map_.temperature, weights, bias, ridge)
    rng = np.random.default_rng(1)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            step = rng.standard_normal(weights.shape)
            step = step if full else np.diag(np.diag(step))
            other = weights + size * step, bias + size * rng.standard_normal(len(bias))
            assert twin.softmax_loss(p, y, map_.temperature, *other, ridge) > best


# Single precision where there are many classes for the rows, double where there are few.
@pytest.mark.parametrize(("n", "n_classes"), [(8000, 40), (60_000, 5)])
@pytest.mark.parametrize("calibrator", JOINT[1:])
def test_many_rows_are_fitted_to_four_digits(calibrator, n, n_classes):
    p, y = simulated(n, n_classes)
    map_ = calibrator.fit(p, y).map_
    diagonal, (weights, bias) = map_.weights.ndim == 1, parameters(map_)
    x, identity = map_.logarithms(p), np.eye(n_classes)
    penalty = n_classes / n * np.where(identity, 1, n_classes - 1)

    def loss(u):
        slopes, b = u[:-n_classes].reshape(n_classes, -1), u[-n_classes:]
        z = x @ (identity + slopes).T + b
        q = np.exp(z - logsumexp(z, axis=1, keepdims=True))
        value = -np.log(q[np.arange(n), y]).mean() + np.sum(penalty * slopes**2)
        q[np.arange(n), y] -= 1
        slope = q.T @ x / n + 2 * penalty * slopes
        slope = slope * identity if diagonal else slope
        intercept = q.mean(axis=0) + 2 * n_classes / n * b
        return value + n_classes / n * (b @ b), np.append(slope, intercept)

    start = np.append(weights - identity, bias)
    options = {"gtol": 1e-9, "ftol": 0, "maxiter": 12}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    assert np.abs(found.x - start).max() < 1e-4
    # Temperature scaling: the derivative of the log score with respect to 1 / T, over its variance.
    logs = np.log(p)
    t = p ** (1 / map_.temperature)
    t /= t.sum(axis=1, keepdims=True)
    mean = (t * logs).sum(axis=1)
    excess = np.mean(mean - logs[np.arange(n), y])
    assert abs(excess) / np.mean((t * logs**2).sum(axis=1) - mean**2) < 1e-6


def test_the_loss_by_hand():
    # Two rows of probability 1/2 at temperature 1: x = log 1/2, whatever the mix.
    p = np.full((2, 2), 0.5)
    assert twin.softmax_loss(p, [0, 1], 1.0, np.eye(2), np.zeros(2), 1.0) == pytest.approx(
        np.log(2)
    )
    off = np.array([[1.0, 3.0], [0.0, 1.0]])
    bias = np.array([3 * np.log(2), 0])  # takes back what M adds
    penalty = 2 / 2 * (bias[0] ** 2 + 9)
    assert twin.softmax_loss(p, [0, 1], 1.0, off, bias, 1.0) == pytest.approx(np.log(2) + penalty)


def test_a_large_ridge_is_temperature_scaling():
    p, y = simulated()
    temperature = rc.TemperatureCalibrator(mix=True).fit(p, y).predict(p)
    for calibrator in (rc.VectorCalibrator(ridge=1e9), rc.MatrixCalibrator(ridge=1e9)):
        assert calibrator.fit(p, y).predict(p) == pytest.approx(temperature, abs=FITTED)


def test_distortions_are_found():
    p, y = simulated(20_000, 3)
    for calibrator in JOINT[1:]:
        q = calibrator.fit(p, y).predict(p)
        assert cb.log_score(y, q) < cb.log_score(y, JOINT[0].fit(p, y).predict(p)) - 0.005


def test_weights_and_soft_labels():
    p, y = simulated(300)
    w = np.arange(300) % 3
    for calibrator in JOINT:
        kept = calibrator.fit(p[w > 0], y[w > 0], sample_weight=w[w > 0]).predict(p)
        assert calibrator.fit(p, y, sample_weight=w).predict(p) == pytest.approx(kept, abs=FITTED)
        soft = calibrator.fit(p, np.eye(4)[y]).predict(p)
        assert soft == pytest.approx(calibrator.fit(p, y).predict(p), abs=FITTED)


def test_two_classes_from_rows_and_from_a_sketch():
    y, p = cb.datasets.simulate("overconfident", 3000)
    both = np.stack((1 - p, p), axis=1)
    for calibrator in JOINT:
        q = calibrator.fit(p, y).predict(p)
        assert calibrator.fit(both, y).predict(both)[:, 1] == pytest.approx(q, abs=FITTED)
        sketched = calibrator.fit(cb.Sketch().update(y, p)).predict(p)
        assert sketched == pytest.approx(q, abs=1e-4)
        assert cb.brier_score(y, q) < cb.brier_score(y, p)


@pytest.mark.parametrize("calibrator", [*JOINT, rc.PlattCalibrator(), rc.IsotonicCalibrator()])
def test_sql_of_ten_classes_equals_predict(calibrator):
    duckdb = pytest.importorskip("duckdb")
    p, y = simulated(500, 10)
    names = [f"class {k}" for k in range(10)]
    fitted = calibrator.fit(p, y)
    connection = duckdb.connect()
    kinds = ", ".join(f'"{name}" DOUBLE' for name in names)
    connection.execute(f"CREATE TABLE t (i INTEGER, {kinds})")
    rows = [[k, *row] for k, row in enumerate(p[:40].tolist())]
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 11)})", rows)
    query = f"SELECT {', '.join(fitted.to_sql(names))} FROM t ORDER BY i"
    assert np.array(connection.execute(query).fetchall()) == pytest.approx(
        fitted.predict(p[:40]), abs=1e-12
    )
    connection.execute('UPDATE t SET "class 3" = NULL')
    assert set(connection.execute(query).fetchall()) == {(None,) * 10}


def test_sql_needs_a_column_for_every_class():
    p, y = simulated()
    with pytest.raises(CalibrantError, match="column must name 4 columns; got 2"):
        rc.VectorCalibrator().fit(p, y).to_sql(["a", "b"])


@pytest.mark.parametrize("calibrator", JOINT)
def test_files_and_damage(calibrator, tmp_path):
    p, y = simulated()
    path = tmp_path / "classes.json"
    fitted = calibrator.fit(p, y)
    fitted.save(path)
    again = rc.load(path)
    assert again.predict(p).tolist() == fitted.predict(p).tolist()
    assert again.maps_ == fitted.maps_
    text = path.read_text()
    path.write_text(text.replace("0.", "0.1", 1))
    with pytest.raises(CalibrantError, match="damaged"):
        rc.load(path)


def test_auto_chooses_among_maps_of_all_classes():
    p, y = simulated(3000)
    found = rc.recalibrate(y, p, n_resamples=50)
    assert [one.method for one in found.candidates] == ["temperature", "vector", "matrix"]
    assert found.method in ("vector", "matrix")
    calibrated = np.random.default_rng(1).dirichlet(np.ones(4), 600)
    label = (calibrated.cumsum(1) > np.random.default_rng(2).random((600, 1))).argmax(1)
    assert rc.recalibrate(label, calibrated, n_resamples=50).method == "none"


@pytest.mark.parametrize(
    "calibrator", [rc.VectorCalibrator(ridge=0), rc.MatrixCalibrator(ridge=-1)]
)
def test_ridge_is_positive(calibrator):
    with pytest.raises(CalibrantError, match="ridge must be a positive number"):
        calibrator.fit(*simulated())
