"""The study of the clinical table: its population values, and a quick run."""

import numpy as np
import pytest
from scipy.special import logit

from studies import clinical


@pytest.fixture(scope="module")
def run(quickly):
    return quickly("clinical")


def test_a_quick_run_covers(run):
    for row in run.tables["pooled"]:
        assert row.covered >= 0.8 * row.repetitions, row
    for row in run.tables["pooled_centres"]:
        assert row.covered >= 0.75 * row.repetitions or row.prediction == "t"
    assert "ICI" in run.page.read_text()


def test_population_values():
    perfect = clinical.truth("perfect")
    for name, value in {
        "o_e": 1,
        "intercept": 0,
        "slope": 1,
        "ici": 0,
        "emax": 0,
        "eci": 0,
    }.items():
        assert perfect[name] == pytest.approx(value, abs=1e-8)
    # E p(1 - p) and its ratio to 1/4, for Beta(2, 2).
    assert perfect["brier"] == pytest.approx(0.2)
    assert perfect["scaled_brier"] == pytest.approx(0.2)
    assert clinical.truth("overconfident")["slope"] == pytest.approx(0.6)


def test_c_statistic_of_the_population():
    # By counting pairs of a large sample.
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 4000)
    y = rng.random(4000) < 1 / (1 + np.exp(-0.6 * logit(p)))
    c = np.mean(p[y][:, None] > p[~y])
    # Its standard error is 0.009.
    assert clinical.truth("overconfident")["c_statistic"] == pytest.approx(c, abs=0.04)


def test_the_whole_study_has_every_cell():
    summaries, centres = clinical.parts(False)
    assert {(name, n) for name, n, _ in summaries.cells} == {
        (name, n) for name in clinical.POPULATIONS for n in clinical.SIZES
    }
    assert {k for k, _ in centres.cells} == set(clinical.CENTRES)
