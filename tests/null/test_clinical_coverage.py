"""Intervals of the clinical table hold the population values as often as they say."""

import numpy as np
import pytest

from calibrant import clinical_summary
from calibrant.datasets import simulate
from studies.clinical import predicted, truth

REPETITIONS = 200
# Of 200 samples 95% is 190 +- 3; the lowest is four standard deviations below.
LEAST = 0.89


@pytest.mark.parametrize("name", ["perfect", "overconfident"])
def test_coverage(name):
    exact = truth(name)
    held = dict.fromkeys(exact, 0)
    for seed in range(REPETITIONS):
        y, p = simulate(name, 200, rng=np.random.default_rng([5, seed]))
        found = clinical_summary(y, p, n_resamples=100, rng=seed)
        for measure, value in exact.items():
            one = getattr(found, measure)
            held[measure] += one.low <= value + 1e-9 and value - 1e-9 <= one.high
    assert {m: n for m, n in held.items() if n < LEAST * REPETITIONS} == {}


def test_prediction_intervals_hold_new_centres():
    for row in predicted(20, 999, repetitions=60):
        if row.prediction == "integrated":
            assert row.covered >= 0.85 * row.repetitions, row.measure
