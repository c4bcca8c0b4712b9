"""How often intervals hold the population value: a short slice of `python -m studies coverage`.

A true 95% is seen at 91% or more of 150 samples, but for one time in a hundred; seeds are fixed.
"""

import numpy as np
import pytest

from calibrant import estimate
from calibrant.datasets import SCENARIOS, simulate
from studies.sparse import SPARSE

REPETITIONS = 150
RESAMPLES = 100
LEAST = 0.91
MEASURES = {
    "smooth_ece": lambda scenario: scenario.smooth_ece(),
    "ece": lambda scenario: scenario.binned_ece(15),
    "ecce_r": lambda scenario: scenario.ecce_r(),
}
every_measure = pytest.mark.parametrize("measure", MEASURES)


def intervals(measure, scenario, n, **options):
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng([len(scenario), n, repetition])
        drawn = simulate(scenario, n, rng=rng)
        yield estimate(
            measure, drawn.y_true, drawn.y_prob, n_resamples=RESAMPLES, rng=repetition, **options
        )


@every_measure
@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("scenario", ["rare", "tenths", "softmax"])
def test_coverage(measure, scenario, n):
    truth = MEASURES[measure](SCENARIOS[scenario])
    held = [
        found.low <= truth + 1e-9 and found.high >= truth - 1e-9
        for found in intervals(measure, scenario, n)
    ]
    assert np.mean(held) >= LEAST


@pytest.mark.parametrize(
    ("scenario", "options"),
    [
        ("one_percent", {"n_bins": 100}),
        ("top", {}),
        ("stated", {"n_bins": 20}),
        ("certain", {"n_bins": 50}),
    ],
)
def test_sparse_errors(scenario, options):
    # With the noise of only 1.25 standard deviations taken off, 75 to 91% of low ends were right.
    population = SPARSE[scenario]
    truth = population.binned_ece(options.get("n_bins", 15))
    found = []
    for repetition in range(REPETITIONS):
        y, p = simulate(population, 20_000, rng=np.random.default_rng([3, repetition]))
        found.append(estimate("ece", y, p, n_resamples=199, rng=repetition, **options))
    low, high, centre = np.array([(one.low, one.high, one.bias_corrected) for one in found]).T
    assert np.mean(low <= truth + 1e-9) >= 0.94
    assert np.mean(high >= truth - 1e-9) >= 0.94
    # Less than a third of what noise adds is left.
    added = np.median([one.value for one in found]) - truth
    assert abs(np.median(centre) - truth) < added / 3


@pytest.mark.parametrize(("fraction", "wrong"), [(0.5, 1), (0.5, 2), (0.9, 2)])
def test_certain_predictions_of_large_weight(fraction, wrong):
    # In one sample of three, or of seven, none of them is seen to be wrong.
    n, certain = 150, int(150 * fraction)
    p = np.repeat([1.0, 0.7], [certain, n - certain])
    w = np.where(p == 1, 20.0, 1.0)
    rate, held = np.where(p == 1, 1 - wrong / certain, 0.7), 0
    for repetition in range(REPETITIONS):
        y = np.random.default_rng([9, repetition]).random(n) < rate
        found = estimate("ece", y, p, sample_weight=w, n_resamples=RESAMPLES, rng=repetition)
        held += found.low <= wrong * 20 / w.sum() <= found.high
    assert held >= LEAST * REPETITIONS


@every_measure
@pytest.mark.parametrize("n", [50, 200, 1000])
def test_perfect_calibration(measure, n):
    found = list(intervals(measure, "perfect", n))
    assert np.mean([one.low == 0 for one in found]) >= 0.95
    # Nothing but noise: the high end falls as the noise does.
    assert np.median([one.high for one in found]) < 2 / n**0.5


@pytest.mark.parametrize("measure", ["smooth_ece", "ece"])
def test_clusters_at_perfect_calibration(measure):
    # Six rows share one draw: without groups they look like much more evidence than they are.
    refuted = {"rows": 0, "clusters": 0}
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng([7, repetition])
        groups = np.repeat(np.arange(60), 6)
        p = np.clip(rng.beta(2, 2, 60)[groups] + rng.normal(0, 0.05, 360), 0, 1)
        y = rng.random(60)[groups] < p
        for name, labels in (("rows", None), ("clusters", groups)):
            found = estimate(measure, y, p, clusters=labels, n_resamples=RESAMPLES, rng=repetition)
            refuted[name] += found.low > 0
    assert refuted["clusters"] <= 0.05 * REPETITIONS
    assert refuted["rows"] > 0.3 * REPETITIONS
