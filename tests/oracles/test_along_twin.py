"""bias_along against its slow twin."""

import numpy as np
import pytest

from calibrant import bias_along
from tests.twins.along import equal_mass_parts, gap_interval


def drawn(seed, n=120):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 1, n)
    return rng, (rng.random(n) < p**1.5).astype(float), p


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("soft", [False, True])
def test_gaps_and_limits(seed, clustered, soft):
    rng, y, p = drawn(seed)
    if soft:
        y = np.clip(y + rng.normal(0, 0.2, len(y)), 0, 1)
    w = rng.exponential(1, len(y)) if seed % 2 else np.ones(len(y))
    feature = rng.choice(["a", "b", "c", "d"], len(y), p=[0.5, 0.4, 0.08, 0.02])
    clusters = rng.integers(0, 12, len(y)) if clustered else None
    table = bias_along(y, p, feature, sample_weight=w, clusters=clusters, level=0.9)
    for k, name in enumerate(table.label):
        rows = feature == name
        given = (part[rows].tolist() for part in (y, p, w))
        own = None if clusters is None else clusters[rows].tolist()
        expected = gap_interval(*given, 0.05, own)
        found = (table.gap[k], table.low[k], table.high[k])
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_bins(seed):
    rng, y, p = drawn(seed)
    feature = rng.integers(0, 60, len(y)) ** 2 if seed % 2 else rng.integers(-9, 4, len(y)).clip(-3)
    w = rng.integers(1, 4, len(y))
    table = bias_along(y, p, feature, sample_weight=w, n_bins=6, n_values=1)
    part = np.array(equal_mass_parts(feature.tolist(), w.tolist(), 6))
    assert len(table) == len(set(part))
    for k, code in enumerate(sorted(set(part))):
        rows = part == code
        assert (table.minimum[k], table.maximum[k]) == (feature[rows].min(), feature[rows].max())
        assert table.mean[k] == pytest.approx(np.average(feature[rows], weights=w[rows]))
        assert (table.n[k], table.weight[k]) == (rows.sum(), w[rows].sum())
