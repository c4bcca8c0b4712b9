"""Noise drawn in cells against resampled rows: the same distributions, within sampling error.

The standard error of a tenth percentile of 2000 values is 0.04 of their standard deviation.
"""

from functools import partial

import numpy as np
import pytest

import calibrant as cb
from calibrant.data.binning import Bins
from calibrant.data.rows import Sample
from calibrant.inference.cell_noise import Clusters
from calibrant.inference.intervals import View
from calibrant.measures.registry import measures
from calibrant.measures.smooth import SmoothError
from tests.twins.bootstrap import calibrated_values, cluster_bootstrap

RESAMPLES = 2000
NEAR = 0.2


@pytest.mark.parametrize("measure", ["ece", "ecce_r"])
def test_noise_of_clusters(measure):
    rng = np.random.default_rng(8)
    groups = rng.integers(0, 100, 1500)
    p = rng.random(1500)
    # All rows of a cluster share one uniform draw: outcomes depend on each other.
    y = (rng.random(100)[groups] < p * 0.6 + 0.05).astype(float)
    values = cluster_bootstrap(getattr(cb, measure), y, p, groups, RESAMPLES, rng)
    sample = Sample(y, p)
    clusters = Clusters.read(groups, None, sample, rng)
    view = View.of(measures()[measure].read({}), sample, 0.0, clusters)
    drawn = view.image.norm.of(
        view.of_noise(view.cells.residual + view.cells.noise(RESAMPLES, rng))
    )
    levels = [0.1, 0.9]
    expected = np.quantile(values, levels)
    assert np.quantile(drawn, levels) == pytest.approx(expected, abs=NEAR * values.std())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "bandwidth"), [(60, 0.1), (3000, 0.02), (3000, 0.003)])
def test_noise_of_calibrated_outcomes(n, bandwidth, weighted):
    rng = np.random.default_rng(n)
    p = rng.beta(2, 2, n)
    w = rng.exponential(1, n) if weighted else np.ones(n)
    twin = partial(cb.smooth_ece, bandwidth=bandwidth)
    values = calibrated_values(twin, p, w, RESAMPLES, rng)
    view = View.of(SmoothError(bandwidth), Sample(p > 0.5, p, w), 0.0)
    drawn = view.image.norm.of(view.of_noise(view.cells.calibrated_noise(RESAMPLES, rng)))
    levels = [0.1, 0.5, 0.9]
    expected = np.quantile(values, levels)
    assert np.quantile(drawn, levels) == pytest.approx(expected, abs=NEAR * values.std())


@pytest.mark.parametrize("kind", ["spread", "tiny", "close", "one", "from 0 to 1"])
def test_bins_of_many_scores_are_found_as_by_searching(kind):
    rng = np.random.default_rng(5)
    starts = {
        "spread": rng.random(512),
        "tiny": rng.random(3) / (1 << 16),
        "close": 0.5 + rng.random(40) / (1 << 20),
        "one": np.array([0.25]),
        "from 0 to 1": np.linspace(0, 1, 513),
    }[kind]
    starts = np.unique(starts)
    p = np.concatenate((starts, np.nextafter(starts, 1), np.nextafter(starts, 0), rng.random(999)))
    p = np.concatenate((p, rng.random(999) / (1 << 16), [0.0, 1.0]))
    expected = np.maximum(np.searchsorted(starts, p, side="right") - 1, 0)
    many = np.tile(p, 1 + (1 << 14) // len(p))
    found = Bins.starting_at(starts).index(many)
    assert found[: len(p)].tolist() == expected.tolist()
