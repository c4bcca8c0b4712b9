"""Regrets computed elsewhere, and net benefits that others print."""

from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from tests.references.test_clinical_values import load_adnex
from tests.references.test_reference_values import LOADERS, REFERENCES

HERE = Path(__file__).parent

# dcurves 1.1.7: dca(data=df_binary, outcome="cancer", modelnames=[...], thresholds=[...]).
DCURVES = {
    "threshold": [0.05, 0.1, 0.15, 0.2, 0.35, 0.5],
    "all": [
        0.09473684210526317, 0.04444444444444445, -0.011764705882352927, -0.07499999999999998,
        -0.32307692307692304, -0.72,
    ],
    "cancerpredmarker": [
        0.1055438596491228, 0.08740740740740742, 0.07921568627450981, 0.06733333333333334,
        0.05015384615384615, 0.02133333333333334,
    ],
    "famhistory": [
        0.025614035087719297, 0.018518518518518517, 0.010588235294117645, 0.0016666666666666635,
        -0.03333333333333334, -0.08933333333333335,
    ],
}  # fmt: skip


@pytest.mark.parametrize("data", LOADERS)
def test_regret(data):
    y, p = LOADERS[data]()
    expected = REFERENCES[data]["section_11"]["threshold_regret"]
    for threshold, regret in expected.items():
        found = cb.threshold_regret(y, p, float(threshold), n_resamples=39)
        assert found.value == pytest.approx(regret, abs=1e-12)
    curve = cb.murphy_curve(y, p, thresholds=[float(threshold) for threshold in expected])
    assert curve.regret == pytest.approx(list(expected.values()), abs=1e-12)


def test_net_benefits_of_dcurves():
    with (HERE / "dcurves_binary.csv").open() as file:
        next(file)
        names = next(file).strip().split(",")
        rows = dict(zip(names, np.loadtxt(file, delimiter=",").T, strict=True))
    models = {name: rows[name] for name in ("famhistory", "cancerpredmarker")}
    found = cb.decision_curve(rows["cancer"], models, thresholds=DCURVES["threshold"])
    for name, curve in found.items():
        assert curve.net_benefit == pytest.approx(DCURVES[name], abs=1e-12)
        assert curve.treat_all == pytest.approx(DCURVES["all"], abs=1e-12)


def test_net_benefit_of_noaa():
    expected = REFERENCES["flares_NOAA"]["section_14"]["net_benefit_0_1"]
    curve = cb.decision_curve(*LOADERS["flares_NOAA"](), thresholds=[0.1])
    assert curve.net_benefit[0] == pytest.approx(expected, abs=1e-12)


def test_net_benefit_of_the_adnex_case_study():
    outcome, risk = load_adnex()
    expected = REFERENCES["adnex_case_study"]
    curve = cb.decision_curve(outcome, risk, thresholds=[0.1])
    ours = expected["section_14"]["net_benefit_0_1"]
    assert curve.net_benefit[0] == pytest.approx(ours, abs=1e-12)
    printed = expected["published_python_of_van_calster"]["net_benefit_at_0.1"]
    assert curve.net_benefit[0] == pytest.approx(printed, abs=5e-7)
