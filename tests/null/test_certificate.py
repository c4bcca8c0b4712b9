"""The bound on the cutoff calibration error is never exceeded, and is what its formula says."""

import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantError, certificate, ecce_r
from tests.tolerances import nearly

N, SAMPLES = 100, 2000
SHAPES = {
    "calibrated": (lambda rng: rng.random(N), lambda p: p),
    "a coin": (lambda rng: np.full(N, 0.5), lambda p: p),
    "over-confident": (lambda rng: rng.beta(0.5, 0.5, N), lambda p: 0.5 + 0.5 * (p - 0.5)),
    "too high": (lambda rng: rng.beta(2, 5, N), lambda p: 0.5 * p),
    "alternating": (lambda rng: rng.random(N), lambda p: p * (1 - p) * 4 * (p % 0.1 < 0.05)),
}


def range_of_sums(differences):
    """Return the range of cumulative sums from 0, of each row of differences."""
    sums = np.cumsum(differences, axis=-1) / N
    return np.maximum(sums.max(axis=-1), 0) - np.minimum(sums.min(axis=-1), 0)


@pytest.mark.parametrize("name", SHAPES)
def test_no_sample_violates_it(name):
    scores, truth_of = SHAPES[name]
    rng = np.random.default_rng(4)
    p = np.sort(scores(rng))
    truth = truth_of(p)
    target = ecce_r(truth, p)
    y = (rng.random((SAMPLES, N)) < truth).astype(float)
    # One score makes one increment.
    is_one = p[0] == p[-1]
    found = np.abs((y - p).mean(axis=1)) if is_one else range_of_sums(y - p)
    bounds = found + 2 * np.sqrt(np.log(2 / 0.05) / (2 * N))
    assert [certificate(y[k], p) for k in range(5)] == nearly(np.minimum(bounds[:5], 1).tolist())
    assert np.count_nonzero(bounds < target) == 0


def test_weights_count_by_their_effective_number():
    y, p = cb.datasets.load_rain()
    w = np.random.default_rng(0).exponential(size=len(p))
    rows = w.sum() ** 2 / (w @ w)
    expected = ecce_r(y, p, sample_weight=w) + 2 * np.sqrt(np.log(2 / 0.1) / (2 * rows))
    assert certificate(y, p, sample_weight=w, level=0.9) == nearly(expected)
    assert certificate(y, p, sample_weight=7 * w, level=0.9) == nearly(expected)
    assert certificate(y, p, level=0.9) < certificate(y, p, level=0.99)
    assert certificate([1], [0.0]) == 1


def test_of_a_sketch_it_includes_the_error_bound():
    y, p = cb.datasets.load_imagenet("densenet161")
    sketch = cb.Sketch().update(y, p)
    found = certificate(sketch) - cb.error_bound(sketch, "ecce_r")
    assert found == pytest.approx(certificate(y, p), abs=cb.error_bound(sketch, "ecce_r"))


def test_refusals():
    with pytest.raises(CalibrantError, match="level must lie between 0 and 1"):
        certificate([0, 1], [0.2, 0.7], level=1.5)
    with pytest.raises(CalibrantError, match="one binary problem"):
        certificate([0, 1], [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], multiclass="classwise")
