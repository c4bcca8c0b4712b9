"""The canonical calibration error against its twin, and against known truth."""

import numpy as np
import pytest

from calibrant import density_ece
from tests.twins import canonical as twin


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("concentration", [0.1, 1.0])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("bandwidth", ["silverman", 0.5, 0.01])
def test_against_the_twin(n_classes, concentration, weights, soft, bandwidth):
    rng = np.random.default_rng([n_classes, weights, soft])
    n = 15
    prob = rng.dirichlet(np.full(n_classes, concentration), n)
    label = rng.integers(0, n_classes, n)
    outcome = rng.dirichlet(np.ones(n_classes), n) if soft else label
    w = rng.integers(1, 5, n) / 2 if weights else None
    found = density_ece(outcome, prob, bandwidth=bandwidth, sample_weight=w, multiclass="canonical")
    rows = outcome if soft else np.eye(n_classes)[label]
    weight = [1.0] * n if w is None else w.tolist()
    width = None if bandwidth == "silverman" else bandwidth
    expected = twin.canonical_error(prob.tolist(), rows.tolist(), weight, width)
    assert found == pytest.approx(expected, abs=1e-11)


def known_truth(n, n_classes, temperature, rng):
    """Draw predictions, labels from their powers, and the canonical error of the two."""
    logits = 1.5 * rng.normal(size=(n, n_classes))
    logits[np.arange(n), rng.integers(0, n_classes, n)] += 9 * rng.random(n)
    prob, truth = (np.exp(t * logits) for t in (1.0, temperature))
    prob, truth = (p / p.sum(axis=1, keepdims=True) for p in (prob, truth))
    label = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, n_classes - 1)
    return (label, prob), np.abs(truth - prob)[np.arange(n), label].mean()


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.5])
def test_near_a_known_truth(n_classes, temperature):
    rng = np.random.default_rng(n_classes)
    rows, truth = known_truth(2000, n_classes, temperature, rng)
    # Calibrated predictions (truth 0) show the bias of noise.
    allowed = 0.045 if temperature == 1 else 0.025
    assert density_ece(*rows, multiclass="canonical") == pytest.approx(truth, abs=allowed)


def test_noise_fades_with_more_rows():
    rng = np.random.default_rng(1)

    def error(n):
        return density_ece(*known_truth(n, 3, 1.0, rng)[0], multiclass="canonical")

    small = np.mean([error(100) for _ in range(20)])
    assert error(4000) < 0.7 * small
