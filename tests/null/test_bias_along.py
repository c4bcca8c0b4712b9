"""How often intervals of the gap along a feature hold, at few rows and rare outcomes too.

A true 95% of 400 is seen at 92% or more but for one time in two hundred; seeds are fixed.
"""

import numpy as np
import pytest

from calibrant import bias_along

PARTS, REPETITIONS, LEAST = 20, 20, 0.92


def sharp(rng, n):
    p = rng.beta(0.2, 0.2, n)
    return p, p


def rare(rng, n):
    q = 0.02 * rng.random(n)
    return q / 10, q


def one_sided(rng, n):
    high = rng.random(n) < 0.5
    return np.where(high, 0.99, 0.01), np.where(high, 0.6, 0.01)


@pytest.mark.parametrize("draw", [sharp, rare, one_sided])
@pytest.mark.parametrize("rows", [5, 40, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_hold(draw, rows, weighted):
    rng = np.random.default_rng([rows, weighted])
    feature, held = np.arange(PARTS * rows) % PARTS, []
    for _ in range(REPETITIONS):
        p, q = draw(rng, len(feature))
        w = rng.exponential(1, len(p)) if weighted else np.ones(len(p))
        table = bias_along((rng.random(len(p)) < q).astype(int), p, feature, sample_weight=w)
        truth = np.bincount(feature, w * (q - p)) / np.bincount(feature, w)
        held.append((table.low <= truth + 1e-12) & (truth <= table.high + 1e-12))
    assert np.mean(held) >= LEAST


def test_intervals_of_clusters_hold():
    rng, held, naive = np.random.default_rng(5), [], []
    cluster = np.repeat(np.arange(120), 10)
    for _ in range(60):
        p = rng.uniform(0.1, 0.9, len(cluster))
        shift = 0.1 * rng.choice([-1, 1], 120)[cluster]
        y = rng.random(len(p)) < p + shift
        for found, groups in ((held, cluster), (naive, None)):
            table = bias_along(y, p, cluster % 4, clusters=groups)
            found.append((table.low <= 0) & (table.high >= 0))
    assert np.mean(held) >= LEAST > np.mean(naive)


def test_all_at_once():
    rng, held = np.random.default_rng(6), []
    for _ in range(100):
        p = rng.random(600)
        table = bias_along(rng.random(600) < p, p, np.arange(600) % 15, simultaneous=True)
        held.append(not table.is_biased.any())
    assert np.mean(held) >= 0.9
