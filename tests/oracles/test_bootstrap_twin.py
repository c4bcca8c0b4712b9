"""Draws from cells against draws of rows: the same laws, within what chance leaves.

The standard error of a tenth percentile of 2000 values is 0.04 of their standard deviation.
"""

import numpy as np
import pytest

from calibrant.datasets import simulate
from calibrant.inference.estimate import estimate
from calibrant.inference.intervals.views import SmoothCells, step_finder
from calibrant.measures.binned import ece
from calibrant.measures.cumulative import ecce_mad, ecce_r
from calibrant.measures.logit import logit_smoothed_ece
from calibrant.measures.smooth import smooth_ece
from calibrant.sample import Sample
from tests.twins.bootstrap import calibrated_values, cluster_bootstrap, row_bootstrap

RESAMPLES = 2000
NEAR = 0.2
MEASURES = [
    (smooth_ece, {}),
    (smooth_ece, {"bandwidth": 0.05}),
    (ece, {"n_bins": 8}),
    (ece, {"n_bins": 8, "norm": "l2"}),
    (ecce_mad, {}),
    (ecce_r, {}),
    (logit_smoothed_ece, {"sigma": 0.3}),
]
every_measure = pytest.mark.parametrize(("measure", "options"), MEASURES)


def sample(kind, seed=3):
    rng = np.random.default_rng(seed)
    drawn = simulate("tenths" if kind == "tied" else "overconfident", 80, rng=seed)
    y, p, w = drawn.y_true.astype(float), drawn.y_prob, np.ones(80)
    if kind == "weighted":
        w = rng.exponential(1, 80)
    if kind == "soft":
        y = rng.beta(5 * p + 0.1, 5 * (1 - p) + 0.1)
    return y, p, w


def with_options(measure, options):
    return lambda y, p, **given: measure(y, p, **given, **options)


def check_same_percentiles(found, values):
    expected = np.quantile(values, [0.1, 0.9])
    assert found.low == pytest.approx(expected[0], abs=NEAR * values.std())
    assert found.high == pytest.approx(expected[1], abs=NEAR * values.std())


@every_measure
@pytest.mark.parametrize("kind", ["plain", "tied", "weighted", "soft"])
def test_percentiles_of_rows(measure, options, kind):
    y, p, w = sample(kind)
    twin = with_options(measure, options)
    values = row_bootstrap(twin, y, p, w, RESAMPLES, np.random.default_rng(0))
    found = estimate(
        measure,
        *(y, p),
        method="percentile",
        level=0.8,
        n_resamples=RESAMPLES,
        sample_weight=None if kind in ("plain", "tied") else w,
        **options,
    )
    check_same_percentiles(found, values)


@pytest.mark.parametrize("measure", [ece, ecce_r])
def test_percentiles_of_clusters(measure):
    rng = np.random.default_rng(8)
    groups = rng.integers(0, 100, 1500)
    p = rng.random(1500)
    # Everyone of a group shares one chance: outcomes depend on each other.
    y = (rng.random(100)[groups] < p * 0.6 + 0.05).astype(float)
    values = cluster_bootstrap(measure, y, p, groups, RESAMPLES, np.random.default_rng(0))
    found = estimate(
        measure, y, p, method="percentile", level=0.8, n_resamples=RESAMPLES, groups=groups
    )
    check_same_percentiles(found, values)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "bandwidth"), [(60, 0.1), (3000, 0.02), (3000, 0.003)])
def test_noise_of_calibrated_outcomes(n, bandwidth, weighted):
    rng = np.random.default_rng(n)
    p = rng.beta(2, 2, n)
    w = rng.exponential(1, n) if weighted else np.ones(n)
    twin = with_options(smooth_ece, {"bandwidth": bandwidth})
    values = calibrated_values(twin, p, w, RESAMPLES, rng)
    cells = SmoothCells.of(Sample(p > 0.5, p, w), bandwidth, None)
    view = cells.view(bandwidth, 0.0)
    drawn = view.shape.of(view.of_noise(cells.cells.calibrated_noise(RESAMPLES, rng)))
    levels = [0.1, 0.5, 0.9]
    expected = np.quantile(values, levels)
    assert np.quantile(drawn, levels) == pytest.approx(expected, abs=NEAR * values.std())


@pytest.mark.parametrize("kind", ["spread", "tiny", "close", "one", "from 0 to 1"])
def test_steps_are_found_as_by_searching(kind):
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
    assert step_finder(starts)(p).tolist() == expected.tolist()
