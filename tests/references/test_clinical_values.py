"""The clinical table: values computed elsewhere, and those printed by others."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm, t

import calibrant as cb
from calibrant.datasets import load_flares
from calibrant.inference.heterogeneity import random_effects

REFERENCES = json.loads(Path(__file__).with_name("reference_values.json").read_text())


def load_adnex():
    """Read the case study where it is: it has no licence, and is no part of the repository."""
    for folder in Path(__file__).resolve().parents:
        path = folder / "shared" / "data" / "adnex_case_study.csv"
        if path.exists():
            return np.loadtxt(path, delimiter=",", skiprows=1).T
    pytest.skip("adnex_case_study.csv is not there")


LOADERS = {"flares_NOAA": lambda: load_flares("NOAA"), "adnex_case_study": load_adnex}


@pytest.mark.parametrize("data", LOADERS)
def test_clinical_summary(data):
    y, p = LOADERS[data]()
    expected = dict(REFERENCES[data]["section_14"])
    del expected["net_benefit_0_1"]  # in test_decisions.py
    found, fit = cb.clinical_summary(y, p), cb.calibration_slope_test(y, p)
    for name in ("intercept", "slope"):
        assert getattr(fit, f"{name}_error") == pytest.approx(expected.pop(f"{name}_se"), abs=1e-8)
    assert found.n == expected.pop("n")
    for name, value in expected.items():
        one = getattr(found, name.removesuffix("_loess"))
        assert one.value == pytest.approx(value, abs=1e-8), name
        assert one.low <= one.value <= one.high


def test_what_the_authors_of_the_guidance_print():
    y, p = load_adnex()
    printed = REFERENCES["adnex_case_study"]["published_python_of_van_calster"]
    found = cb.clinical_summary(y, p)
    for name in ("o_e", "intercept", "brier", "scaled_brier"):
        assert getattr(found, name).value == pytest.approx(printed[name], abs=1e-6)
    assert found.c_statistic.value == pytest.approx(printed["auroc"], abs=1e-6)
    # scikit-learn's default ridge draws the slope towards 0.
    assert 0 < found.slope.value - printed["slope_with_ridge"] < 0.004
    # Another loess: statsmodels' lowess is of degree 1, with robustness iterations.
    assert abs(found.ici.value - printed["ici"]) < 0.001
    assert abs(found.eci.value - printed["eci"]) < 0.0012


def test_slope_test_has_both_intercepts():
    y, p = LOADERS["flares_NOAA"]()
    expected = REFERENCES["flares_NOAA"]["section_14"]
    found = cb.calibration_slope_test(y, p)
    for name in ("intercept", "joint_intercept", "slope"):
        assert getattr(found, name) == pytest.approx(expected[name], abs=1e-8)
        low, high = getattr(found, f"{name}_interval")
        middle, reach = (low + high) / 2, (high - low) / 2
        assert middle == pytest.approx(expected[name], abs=1e-8)
        assert reach == pytest.approx(norm.ppf(0.975) * getattr(found, f"{name}_error"))


@pytest.mark.parametrize("data", LOADERS)
def test_against_statsmodels(data):
    sm = pytest.importorskip("statsmodels.api")
    y, p = LOADERS[data]()
    x, family = np.log(p / (1 - p)), sm.families.Binomial()
    joint = sm.GLM(y, sm.add_constant(x), family=family).fit(tol=1e-14)
    large = sm.GLM(y, np.ones_like(x), offset=x, family=family).fit(tol=1e-14)
    found = cb.calibration_slope_test(y, p)
    assert (found.joint_intercept, found.slope) == pytest.approx(tuple(joint.params), abs=1e-8)
    errors = found.joint_intercept_error, found.slope_error
    assert errors == pytest.approx(tuple(joint.bse), abs=1e-8)
    assert found.intercept == pytest.approx(large.params[0], abs=1e-8)
    assert found.intercept_error == pytest.approx(large.bse[0], abs=1e-8)


def test_random_effects_of_the_bcg_trials():
    """Printed by metafor for dat.bcg, log relative risks, method REML.

    Its README (4.3), rma(yi, vi, data=dat, test="knha"): tau^2 0.3132, tau 0.5597, estimate
    -0.7145, se 0.1808, t -3.9522 with 12 degrees of freedom, interval -1.1084 to -0.3206; and
    predict(res, transf=exp): 0.49, interval 0.33 to 0.73, prediction interval 0.14 to 1.76, which
    has k - 1 degrees of freedom where prediction="t" has the usual k - 2.

    Without test="knha": se 0.1798, interval -1.0669 to -0.3622.
    """
    trials = np.array(
        [
            (4, 119, 11, 128),
            (6, 300, 29, 274),
            (3, 228, 11, 209),
            (62, 13536, 248, 12619),
            (33, 5036, 47, 5761),
            (180, 1361, 372, 1079),
            (8, 2537, 10, 619),
            (505, 87886, 499, 87892),
            (29, 7470, 45, 7232),
            (17, 1699, 65, 1600),
            (186, 50448, 141, 27197),
            (5, 2493, 3, 2338),
            (27, 16886, 29, 17825),
        ],
        dtype=float,
    )
    a, b, c, d = trials.T
    effect = np.log(a / (a + b) / (c / (c + d)))
    variance = 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)
    found = random_effects(effect, variance)
    assert round(found.value, 4) == -0.7145
    assert round(found.tau**2, 4) == 0.3132
    assert round(found.tau, 4) == 0.5597
    assert round(found.standard_error, 4) == 0.1808
    assert round(found.value / found.standard_error, 4) == -3.9522
    assert (round(found.low, 4), round(found.high, 4)) == (-1.1084, -0.3206)
    ratio = found.exponential()
    assert [round(v, 2) for v in (ratio.value, ratio.low, ratio.high)] == [0.49, 0.33, 0.73]
    sides = np.array([-1, 1])
    reach = t.ppf(0.975, 12) * np.hypot(found.tau, found.standard_error)
    assert np.round(np.exp(found.value + sides * reach), 2).tolist() == [0.14, 1.76]
    # Without Hartung and Knapp the standard error is 1 / sqrt(sum W), as in prediction="t".
    error = 1 / np.sqrt(np.sum(1 / (variance + found.tau**2)))
    assert round(error, 4) == 0.1798
    ends = found.value + sides * norm.ppf(0.975) * error
    assert np.round(ends, 4).tolist() == [-1.0669, -0.3622]
    usual = random_effects(effect, variance, prediction="t")
    reach = t.ppf(0.975, 11) * np.hypot(found.tau, error)
    assert usual.prediction_high == pytest.approx(found.value + reach)


def test_sample_sizes_of_pavlou_and_others():
    """The test of their package sampsizeval: prevalence 0.057, c-statistic 0.77, errors 0.15."""
    prevalence, c = 0.057, 0.77
    spread = 2 * norm.ppf(c) ** 2
    mean = (2 * prevalence - 1) * spread / 2 + np.log(prevalence / (1 - prevalence))
    sd = np.sqrt(spread * (1 + prevalence * (1 - prevalence) * spread))
    scores = expit(norm.ppf((np.arange(200_000) + 0.5) / 200_000, mean, sd))
    width = 2 * norm.ppf(0.975) * 0.15
    assert cb.sample_size("slope", width, scores).n == pytest.approx(934, abs=2)
    assert cb.sample_size("intercept", width, scores).n == pytest.approx(897, abs=2)


def test_sample_size_of_riley_and_others():
    """The test of pmvalsampsize: prevalence 0.018, interval of O:E 1 wide, takes 905 rows.

    Their standard error is the first multiple of 0.0001 whose interval is wider.
    """
    assert cb.sample_size("o_e", 1.0, [0.018]).n == pytest.approx(905, abs=1)
