"""The fast binned errors against their slow twin, over every combination of keywords."""

import itertools

import numpy as np
import pytest

import calibrant as cb
from calibrant.data.binning import EqualMass, Uniform, largest_monotone, leave_one_out
from calibrant.data.rows import Sample
from tests.twins import binned as twin

EDGES = [0.0, 0.05, 0.3, 0.31, 0.7, 1.0]


def scores(kind, n, rng):
    return {
        "continuous": lambda: rng.random(n),
        "tenths": lambda: rng.integers(0, 11, n) / 10,
        "hundredths": lambda: rng.integers(0, 101, n) / 100,
        "confident": lambda: 1 - rng.random(n) ** 6 * 1e-3,
        "ends": lambda: rng.choice([0.0, 1.0, 0.5], n),
        "one value": lambda: np.full(n, 0.29),
    }[kind]()


@pytest.mark.parametrize("kind", ["continuous", "tenths", "hundredths", "confident", "ends"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("soft", [False, True])
def test_every_combination_of_keywords(kind, weights, soft):
    rng = np.random.default_rng([len(kind), weights, soft])
    n = 40
    p = scores(kind, n, rng)
    y = rng.random(n) if soft else (rng.random(n) < p).astype(float)
    w = rng.integers(1, 5, n) / 2 if weights else None
    for n_bins, strategy, assignment, norm, weighting, closed in itertools.product(
        (1, 10, 15),
        ("uniform", "quantile", EDGES),
        ("hard", "convex"),
        ("l1", "l2", "max"),
        ("mass", "width"),
        ("left", "right"),
    ):
        keywords = {
            "n_bins": n_bins,
            "strategy": strategy,
            "assignment": assignment,
            "norm": norm,
            "weighting": weighting,
            "closed": closed,
        }
        fast = cb.ece(y, p, sample_weight=w, **keywords)
        weight_list = None if w is None else w.tolist()
        slow = twin.binned_error(y.tolist(), p.tolist(), weight_list, **keywords)
        assert fast == pytest.approx(slow, abs=1e-12), keywords


@pytest.mark.parametrize("strategy", ["uniform", "quantile", EDGES])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_debiased(strategy, norm, closed):
    rng = np.random.default_rng(5)
    p = rng.integers(1, 20, 300) / 20
    y = (rng.random(300) < p**1.5).astype(int)
    keywords = {"strategy": strategy, "norm": norm, "closed": closed, "n_bins": 7, "debias": True}
    slow = twin.binned_error(y.tolist(), p.tolist(), **keywords)
    assert slow > 0
    assert cb.ece(y, p, **keywords) == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("kind", ["continuous", "tenths", "confident", "one value"])
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("seed", range(4))
def test_counts_chosen_from_the_data(kind, closed, seed):
    rng = np.random.default_rng(seed)
    n = 25
    p = scores(kind, n, rng)
    weighted = seed % 2 == 1
    w = rng.integers(1, 4, n).astype(float) if weighted else None
    y = (rng.random(n) < p).astype(float)
    sample = Sample(y, p, w)
    rows = y.tolist(), p.tolist(), [1] * n if w is None else w.tolist()
    for layout, strategy in ((Uniform(closed), "uniform"), (EqualMass(), "quantile")):
        side = closed if strategy == "uniform" else "left"
        assert largest_monotone(sample, layout) == twin.sweep_count(*rows, strategy, side)
        assert leave_one_out(sample, layout) == twin.cv_count(*rows, strategy, side)


def test_leave_one_out_of_soft_labels():
    rng = np.random.default_rng(1)
    p, y = rng.random(30), rng.random(30)
    fast = leave_one_out(Sample(y, p), Uniform())
    assert fast == twin.cv_count(y.tolist(), p.tolist(), [1] * 30, "uniform")


@pytest.mark.parametrize("seed", range(5))
def test_sweep_looks_at_every_count(seed):
    # The quick look near the last failure must never pass over a monotone count.
    rng = np.random.default_rng(seed)
    p = np.sort(rng.random(400)) ** 3
    y = (rng.random(400) < p).astype(float)
    for layout in (Uniform(), EqualMass()):
        sample = Sample(y, p)
        found = largest_monotone(sample, layout)
        monotone = [b for b in range(1, 401) if _means_rise(sample, layout.bins(sample, b))]
        assert found == max(monotone)


def _means_rise(sample, bins):
    weight, true = sample.totals(bins, "weight", "true")
    means = true[weight > 0] / weight[weight > 0]
    return np.all(np.diff(means) >= 0)


def test_sweep_over_more_counts_than_one_batch():
    # Labels that rise but for one pair: with n bins it shows, and it still does with many fewer.
    n = 3000
    p = (np.arange(n) + 0.5) / n
    y = (np.arange(n) >= n // 2).astype(float)
    assert largest_monotone(Sample(y, p), EqualMass()) == n
    y[n // 2 - 2], y[n // 2 + 1] = 1, 0
    sample = Sample(y, p)
    for layout in (Uniform(), EqualMass()):
        found = largest_monotone(sample, layout)
        assert found == max(
            b for b in range(1, n + 1) if _means_rise(sample, layout.bins(sample, b))
        )
        assert found < n
