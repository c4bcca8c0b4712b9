"""Values for real data, computed elsewhere slowly and exactly (tolerance 1e-10)."""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant.datasets import load_flares, load_imagenet, load_rain

REFERENCES = json.loads(Path(__file__).with_name("reference_values.json").read_text())
LOADERS = {
    "rain": load_rain,
    "flares_DAFFS": lambda: load_flares("DAFFS"),
    "flares_NOAA": lambda: load_flares("NOAA"),
    "resnet34": lambda: load_imagenet("resnet34"),
    "densenet161": lambda: load_imagenet("densenet161"),
}
MEASURES = {
    "smooth_ece": (lambda y, p: cb.smooth_ece(y, p), 1e-9),
    "smooth_ece_at_0_05": (lambda y, p: cb.smooth_ece(y, p, bandwidth=0.05), 1e-9),
    "ece10": (lambda y, p: cb.ece(y, p, n_bins=10), 1e-12),
    "ece15": (lambda y, p: cb.ece(y, p), 1e-12),
    "ecce_mad": (lambda y, p: cb.ecce_mad(y, p), 1e-12),
    "ecce_r": (lambda y, p: cb.ecce_r(y, p), 1e-12),
    # A Riemann sum of step sigma/40 stands behind these two: it is good to 1e-6.
    "ls_ece_0_1": (lambda y, p: cb.logit_smoothed_ece(y, p, sigma=0.1), 1e-6),
    "ls_ece_1": (lambda y, p: cb.logit_smoothed_ece(y, p, sigma=1.0), 1e-6),
}


@pytest.mark.parametrize("data", LOADERS)
@pytest.mark.parametrize("measure", MEASURES)
def test_reference_value(data, measure):
    y, p = LOADERS[data]()
    function, tolerance = MEASURES[measure]
    assert function(y, p) == pytest.approx(REFERENCES[data][measure], abs=tolerance)
    assert len(y) == REFERENCES[data]["n"]


@pytest.mark.parametrize("data", LOADERS)
def test_sigma(data):
    y, p = LOADERS[data]()
    result = cb.cumulative_test(y, p)
    assert result.sigma == pytest.approx(REFERENCES[data]["sigma_n"], abs=1e-12)


@pytest.mark.parametrize("data", ["flares_DAFFS", "flares_NOAA", "resnet34"])
def test_relplot_is_near_where_few_predictions_are_0_or_1(data):
    metrics = pytest.importorskip("relplot.metrics")
    y, p = LOADERS[data]()
    theirs = float(metrics.smECE(np.asarray(p), np.asarray(y, dtype=float)))
    assert theirs == pytest.approx(REFERENCES[data]["relplot_1_0_3_smECE"], abs=1e-6)
    assert theirs == pytest.approx(cb.smooth_ece(y, p), abs=4e-4)
