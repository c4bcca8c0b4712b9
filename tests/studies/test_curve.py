"""The study of the smooth curve: populations, what is counted, and a quick run of it."""

import numpy as np
import pytest

import calibrant as cb
from studies import curve


@pytest.fixture(scope="module")
def run(quickly):
    return quickly("curve")


def test_populations():
    assert len(curve.POPULATIONS) == 24
    rng = np.random.default_rng(0)
    for scores, truth in curve.POPULATIONS.values():
        p = scores.points()
        assert np.all(np.diff(p) >= 0)
        assert np.all((truth.probability(p) >= 0) & (truth.probability(p) <= 1))
        drawn = scores.sample(4000, rng)
        # A mean of 4000 is within four standard errors of the population's.
        assert abs(drawn.mean() - p.mean()) < 4 * p.std() / np.sqrt(4000)


def test_better_models_have_better_curves(run):
    rows = {(row.population, row.rule): row for row in run.tables["cells"]}
    for name in ("calibrated", "calibrated, U-shaped", "calibrated, confident"):
        assert rows[name, "cv"].error < 0.7 * rows[name, "smece"].error
    held = [row.pointwise for row in run.tables["cells"] if row.rule == "cv"]
    # 96 samples.
    assert np.mean(held) > 0.9


def test_the_population_has_the_curve_of_all_its_rows():
    scores, truth = curve.POPULATIONS["slope 0.6"]
    p = scores.points()
    q = truth.probability(p)
    own = cb.reliability_curve(q, p, bandwidth="cv", band=None)
    target = curve.population_curve(own, p, p, q)
    np.testing.assert_allclose(target[1:-1], own.y[1:-1], atol=1e-3)
