"""How often the joint test, and tests with clusters, reject perfect calibration at 5%."""

import numpy as np
import pytest

from calibrant import (
    bias_along,
    calibration_slope_test,
    calibration_test,
    cumulative_test,
    spiegelhalter_test,
)
from calibrant.data.rows import read_sample
from calibrant.inference.detectable import minimum_detectable_shift
from studies.power import (
    ALTERNATIVES,
    CALIBRATED,
    CLUSTERED,
    N_CLUSTERS,
    correlated_outcomes,
    joint_p_values,
)

SHARED = 20


def rate(population, n, repetitions, rng):
    """Return how often samples of a population are rejected."""
    rejected = 0
    for _ in range(repetitions // SHARED):
        p = population.scores(rng, n)
        w = None if population.weights is None else population.weights(rng, n)
        outcomes = rng.random((SHARED, n)) < population.truth(p)
        rejected += sum(one["joint"] <= 0.05 for one in joint_p_values(outcomes, p, w, rng))
    return rejected / repetitions


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("uniform", 30),
        ("tenths, 0 and 1 among them", 200),
        ("rare events, Beta(1, 99)", 500),
        ("uniform, exponential weights", 200),
        ("uniform", 9000),
    ],
)
def test_size(name, n):
    # Standard error 1%.
    assert 0.02 <= rate(CALIBRATED[name], n, 500, np.random.default_rng(n)) <= 0.08


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("over-confident: sigmoid(0.8 logit p)", 0.55),
        ("shifted: p - 0.03", 0.3),
        ("p + 0.1 sin(6 pi p)", 0.85),
        ("p + 0.1 sin(40 pi p)", 0.8),
        ("bump: p + 0.4 within 0.015 of 1/2", 0.38),
        ("stated confidences, 0.97 at 1", 0.5),
    ],
)
def test_power(name, least):
    # Standard error at most 3.5%, and about ten points less than what was measured with more.
    assert rate(ALTERNATIVES[name], 1000, 200, np.random.default_rng(1)) >= least


def test_size_with_clusters():
    # 50 clusters with intraclass correlation 0.2, and 400 samples: standard error 1.1%.
    rng, repetitions = np.random.default_rng(2), 400
    scores, _ = CLUSTERED["scores independent of clusters"]
    cluster = np.repeat(np.arange(N_CLUSTERS), 6)
    rejected = np.zeros(5)
    for _ in range(repetitions):
        p = scores(rng, cluster)
        y = correlated_outcomes(rng, p, cluster)
        drawn = {"clusters": cluster, "n_resamples": 99, "rng": rng}
        p_values = [
            calibration_test(y, p, **drawn).p_value,
            cumulative_test(y, p, **drawn).p_value,
            calibration_slope_test(y, p, clusters=cluster).p_value,
            spiegelhalter_test(y, p, clusters=cluster).p_value,
            1 - bias_along(y, p, np.zeros(len(p)), clusters=cluster).is_biased[0],
        ]
        rejected += np.array(p_values) <= 0.05
    assert (rejected / repetitions >= 0.015).all()
    assert (rejected / repetitions <= 0.085).all()


def test_correlation_of_the_outcomes_of_a_cluster():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(N_CLUSTERS), 2)
    p = np.full(2 * N_CLUSTERS, 0.3)
    pairs = np.concatenate(
        [correlated_outcomes(rng, p, cluster).reshape(-1, 2) for _ in range(400)]
    )
    assert pairs.mean() == pytest.approx(0.3, abs=0.01)
    assert np.corrcoef(pairs.T)[0, 1] == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(("a", "b", "n", "signs"), [(1, 1, 300, (1, -1)), (1, 60, 400, (1,))])
def test_the_minimum_detectable_shift_is_detected(a, b, n, signs):
    # Of 7 expected events even the absence of all is detected too seldom.
    rng = np.random.default_rng(n)
    p = rng.beta(a, b, n)
    x = minimum_detectable_shift(read_sample(np.zeros(n), p), 0.95)
    for sign in signs:
        outcomes = rng.random((100, n)) < np.clip(p + sign * x, 0, 1)
        found = [one["joint"] <= 0.05 for one in joint_p_values(outcomes, p, None, rng)]
        # Standard error 4%.
        assert np.mean(found) >= 0.7
