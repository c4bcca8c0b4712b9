"""Murphy curves, decision curves and the regret at a threshold: by hand, edges, results."""

from fractions import Fraction

import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantError, SketchError, decision_curve, murphy_curve, threshold_regret
from calibrant.data.sketch_problem import problem_of
from calibrant.inference.regret import Cutoffs, _distances
from tests.tolerances import ROUNDING, nearly
from tests.twins import decisions as twin

Y, P = [0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75]


def test_by_hand():
    # At 1/2 two rows are acted on: one false alarm and one miss, each of 1/2, over four rows.
    curve = murphy_curve(Y, P, thresholds=[0.25, 0.5, 0.75, 0.8])
    assert curve.loss.tolist() == nearly([0.125, 0.25, 0.25, 0.1])
    # Recalibrated, all predictions are 1/2: up to there all rows are acted on.
    assert curve.recalibrated_loss.tolist() == nearly([0.125, 0.25, 0.125, 0.1])
    assert twin.isotonic(Y, P) == [Fraction(1, 2)] * 4
    # Reversed predictions, at 1/2: two false alarms and two misses; acting on all rows costs half.
    found = murphy_curve([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], thresholds=[0.5])
    assert (found.loss[0], found.recalibrated_loss[0], found.regret[0]) == nearly((0.5, 0.25, 0.25))
    assert twin.regret([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], 0.5) == Fraction(1, 4)


def test_every_threshold_that_matters():
    curve = murphy_curve(Y, P)
    assert curve.threshold.tolist() == [0, 0.25, 0.25, 0.5, 0.75, 0.75, 1]
    # Jumps down or up at the scores, as two rows of each score are acted on no longer.
    assert curve.loss.tolist() == nearly([0, 0.125, 0.25, 0.25, 0.25, 0.125, 0])
    assert murphy_curve([1, 0], [0.0, 1.0]).threshold.tolist() == [0, 0, 0.5, 1]
    assert murphy_curve([1, 0], [0.0, 1.0]).loss.tolist() == [0, 0.5, 0.5, 0.5]


def test_net_benefit_by_hand():
    curve = decision_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], thresholds=[0.2, 0.5])
    # Hits 2/4, false alarms 1/4 at an exchange rate of 1/4; hits and false alarms 1/4 at 1.
    assert curve.net_benefit.tolist() == nearly([0.4375, 0.0])
    assert curve.treat_all.tolist() == nearly([0.375, 0.0])
    assert curve.recalibrated.tolist() == nearly([0.4375, 0.25])
    assert curve.lost.tolist() == nearly([0, 0.25])
    scaled = decision_curve(
        [0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], thresholds=[0.2, 0.5], standardize=True
    )
    assert scaled.net_benefit.tolist() == nearly([0.875, 0.0])
    assert decision_curve(Y, P).threshold.max() < 1


def test_regret_is_that_of_the_curve():
    y, p = cb.datasets.load_flares("DAFFS")
    curve = murphy_curve(y, p, thresholds=[0.1, 0.25, 0.6])
    for t, expected in zip(curve.threshold, curve.regret, strict=True):
        found = threshold_regret(y, p, float(t))
        assert found.value == nearly(expected)
        assert 0 <= found.low <= found.value <= found.high <= max(t, 1 - t)
        assert found.n == 731


def test_a_band():
    y, p = cb.datasets.load_rain()
    curve = murphy_curve(y, p, thresholds=[0.0, 0.3, 0.5], band="confidence", n_resamples=100)
    assert curve.band.threshold.tolist() == [0.3, 0.5]
    assert curve.band.regret.tolist() == nearly(curve.regret[1:].tolist())
    assert curve.band.loss.tolist() == nearly(curve.loss[1:].tolist())
    alone = threshold_regret(y, p, 0.3, n_resamples=100)
    assert (curve.band.low[0], curve.band.high[0]) == nearly((alone.low, alone.high))
    assert murphy_curve(y, p).band is None
    assert len(murphy_curve(y, p, band="confidence", n_resamples=39).band.threshold) == 49


def test_models_by_name():
    y, a = cb.datasets.load_flares("DAFFS")
    _, b = cb.datasets.load_flares("NOAA")
    found = decision_curve(y, {"DAFFS": a, "NOAA": b}, thresholds=[0.25])
    assert list(found) == ["DAFFS", "NOAA"]
    assert found["NOAA"].net_benefit == nearly(decision_curve(y, b, thresholds=[0.25]).net_benefit)


@pytest.mark.parametrize("threshold", [0.25, 0.5])
def test_of_a_sketch(threshold):
    y, p = cb.datasets.load_rain()  # tenths, some of them at the threshold
    sketch = cb.Sketch().update(y, p)
    exact = threshold_regret(y, p, threshold)
    found = threshold_regret(sketch, threshold=threshold)
    assert found.value == nearly(exact.value)
    assert found.low <= exact.low + 1e-12
    assert found.high >= exact.high - 1e-12
    curve = murphy_curve(sketch, thresholds=[0.1, threshold])
    assert curve.loss == nearly(murphy_curve(y, p, thresholds=[0.1, threshold]).loss)


def test_sketches_allow_for_the_order_within_cells():
    rng = np.random.default_rng(3)
    for _ in range(200):
        n, threshold = int(rng.integers(2, 60)), rng.uniform(0.05, 0.95)
        p = rng.random(n)
        y = (rng.random(n) < p).astype(float)
        cells = problem_of(cb.Sketch(int(rng.integers(1, 30))).update(y, p))
        found = threshold_regret(cells, threshold=threshold, n_resamples=39)
        exact = threshold_regret(y, p, threshold, n_resamples=39)
        assert abs(found.value - exact.value) <= Cutoffs.of(cells)._error(threshold) + ROUNDING
    with pytest.raises(SketchError):
        threshold_regret(cb.Sketch(), threshold=0.5)


def test_soft_labels_weights_and_rows_of_weight_0():
    rng = np.random.default_rng(0)
    p, y, w = rng.integers(0, 9, 30) / 8, rng.integers(0, 5, 30) / 4, rng.integers(0, 4, 30)
    kept = w > 0
    for t in (0.125, 0.3, 0.5, 0.875):
        curve = murphy_curve(y, p, thresholds=[t], sample_weight=w)
        expected = twin.loss(y[kept], p[kept], t, w[kept].tolist())
        assert curve.loss[0] == nearly(float(expected))
        expected = twin.regret(y[kept].tolist(), p[kept].tolist(), t, w[kept].tolist())
        assert curve.regret[0] == nearly(float(expected))
        assert threshold_regret(y, p, t, sample_weight=w).value == nearly(float(expected))


def test_one_row_one_class_and_half_precision():
    assert murphy_curve([1], [0.25], thresholds=[0.5]).loss.tolist() == [0.5]
    found = threshold_regret([0] * 20, np.full(20, 0.75, dtype=np.float16), 0.5)
    assert (found.value, found.low > 0) == (0.5, True)
    found = threshold_regret([0], [0.75], 0.5)
    assert (found.value, found.low, found.high) == (0.5, 0.0, 0.5)
    found = threshold_regret([0], [0.25], 0.5)
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high > 0
    assert decision_curve([0, 0], [0.2, 0.4], thresholds=[0.3]).treat_all[0] < 0


def test_classes():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet([1, 1, 1], 60), rng.integers(0, 3, 60)
    one = threshold_regret(y, p, 0.4, multiclass=1)
    assert one.value == nearly(threshold_regret(y == 1, p[:, 1], 0.4).value)
    with pytest.raises(CalibrantError, match="one binary problem"):
        murphy_curve(y, p, multiclass="classwise")


def test_refusals():
    for threshold in (0, 1, -0.2, "half", None, float("nan")):
        with pytest.raises(CalibrantError, match="threshold must lie strictly between 0 and 1"):
            threshold_regret(Y, P, threshold)
    with pytest.raises(CalibrantError, match="thresholds must not decrease"):
        murphy_curve(Y, P, thresholds=[0.5, 0.2])
    with pytest.raises(CalibrantError, match="thresholds must lie"):
        murphy_curve(Y, P, thresholds=[0.5, 1.2])
    with pytest.raises(CalibrantError, match="must be below 1"):
        decision_curve(Y, P, thresholds=[0.5, 1.0])
    with pytest.raises(CalibrantError, match="divides by the prevalence"):
        decision_curve([0, 0], [0.2, 0.4], standardize=True)
    with pytest.raises(CalibrantError, match="at least one model"):
        decision_curve(Y, {})
    with pytest.raises(CalibrantError, match="band must be"):
        murphy_curve(Y, P, band="percentile")


def test_thinned():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    curve = murphy_curve(rng.random(20_000) < p**2, p)
    few = curve.thinned(500)
    assert len(few.threshold) <= 501
    assert few.regret.max() == curve.regret.max()
    assert murphy_curve(Y, P).thinned().loss.tolist() == murphy_curve(Y, P).loss.tolist()


def test_printed():
    y, p = cb.datasets.load_rain()
    assert repr(threshold_regret(y, p, 0.5)).startswith("ThresholdRegret(regret 0.026 at 0.5, 95%")
    assert repr(murphy_curve(y, p)).startswith("MurphyCurve(30 points, regret at most 0.03343")
    assert "standardized" in repr(decision_curve(y, p, standardize=True))
    assert "threshold" in murphy_curve(y, p)._repr_html_()
    names = ["threshold", "loss", "recalibrated_loss", "regret"]
    assert list(murphy_curve(y, p).to_dict())[:4] == names


def test_distances_reach_the_end():
    assert _distances(0).tolist() == []
    assert _distances(3).tolist() == [1, 2, 3]
    assert _distances(10**6)[[0, 63, -1]].tolist() == [1, 64, 10**6]
