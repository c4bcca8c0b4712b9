"""What Murphy plots and decision curves draw is what the curves say."""

import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantError
from calibrant.datasets import load_flares
from calibrant.plot import decision_curve, murphy
from tests.tolerances import nearly

Y, P = load_flares("DAFFS")
MODELS = {"DAFFS": P, "NOAA": load_flares("NOAA").y_prob}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_murphy_lines_and_areas():
    curve = cb.murphy_curve(Y, P, band="confidence", n_resamples=100)
    ax = murphy(curve)
    loss, recalibrated = ax.lines
    assert np.array_equal(loss.get_xdata(), curve.threshold)
    assert np.array_equal(loss.get_ydata(), curve.loss)
    assert np.array_equal(recalibrated.get_ydata(), curve.recalibrated_loss)
    # The area of the regret, and the band: the loss less the ends of its intervals.
    _, band = (one.get_paths()[0].vertices for one in ax.collections)
    top = band[np.isclose(band[:, 0], 0.5), 1].max()
    middle = np.flatnonzero(curve.band.threshold == 0.5)[0]
    assert top == nearly(curve.band.loss[middle] - curve.band.low[middle])
    assert legend(ax)[-1] == "recalibrated, 95% pointwise band"


def test_murphy_marks_a_regret():
    regret = cb.threshold_regret(Y, P, 0.25, n_resamples=100)
    ax = murphy(Y, P, regret=regret, band=None)
    assert list(ax.lines[-1].get_xdata()) == [0.25, 0.25]
    assert legend(ax)[-1].startswith("regret at 0.25: 0.004 (0.000–0.01")
    assert len(ax.collections) == 1


def test_models_by_name():
    ax = murphy(Y, MODELS)
    assert legend(ax) == ["DAFFS", "NOAA"]
    assert len(ax.collections) == 2
    ax = decision_curve(Y, MODELS, standardize=True)
    assert legend(ax) == ["DAFFS", "NOAA", "treat all", "treat none"]
    assert ax.get_ylabel() == "standardized net benefit"
    curves = cb.decision_curve(Y, MODELS, thresholds=[0.1, 0.2, 0.3])
    ax = decision_curve(curves)
    assert np.array_equal(ax.lines[0].get_ydata(), curves["DAFFS"].net_benefit)


def test_a_further_call_adds():
    ax = decision_curve(Y, {"DAFFS": P})
    bottom = ax.get_ylim()[0]
    decision_curve(Y, {"NOAA": MODELS["NOAA"]}, ax=ax)
    assert len(ax.lines) == 4 + 2
    assert ax.get_ylim()[0] == bottom
    assert ax.lines[0].get_color() != ax.lines[-1].get_color()


def test_decision_curve_lines():
    curve = cb.decision_curve(Y, P)
    ax = decision_curve(Y, P, threshold=0.25)
    net, recalibrated, everyone, nobody, mark = ax.lines
    assert net.get_ydata() == nearly(curve.net_benefit)
    assert recalibrated.get_ydata() == nearly(curve.recalibrated)
    assert everyone.get_ydata() == nearly(curve.treat_all)
    assert set(nobody.get_ydata()) == {0}
    at = cb.decision_curve(Y, P, thresholds=[0.25]).net_benefit[0]
    # Interpolated, while net benefits bend a little between two scores.
    assert mark.get_ydata() == pytest.approx([0, at], abs=1e-5)
    assert legend(ax)[2] == "lost to miscalibration"


def test_many_rows_are_thinned():
    rng = np.random.default_rng(0)
    p = rng.random(30_000)
    ax = decision_curve(rng.random(30_000) < p, p)
    assert len(ax.lines[0].get_xdata()) <= 2050
    assert len(murphy(cb.murphy_curve(rng.random(30_000) < p, p)).lines[0].get_xdata()) <= 2050


def test_refusals():
    with pytest.raises(CalibrantError, match="a MurphyCurve is drawn as it is: leave out level"):
        murphy(cb.murphy_curve(Y, P), level=0.9)
    with pytest.raises(CalibrantError, match="a DecisionCurve is drawn as it is"):
        decision_curve(cb.decision_curve(Y, P), standardize=True)
    with pytest.raises(CalibrantError, match="bandwidth"):
        murphy(Y, P, bandwidth=0.1)


def test_thresholds_above_all_low_predictions_are_not_shown():
    ax = decision_curve(Y, P / 10)
    assert ax.get_xlim() == (0, nearly(1.1 * P.max() / 10))
    decision_curve(Y, P, ax=ax)
    assert ax.get_xlim() == (0, 1)
    assert decision_curve(Y, P / 10, threshold=0.3).get_xlim() == (0, 0.3)
