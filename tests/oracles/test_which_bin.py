"""Which bin holds a score: every way that finds it, against comparing the score with the edges.

Engines that make sketches are compared with `Sketch.update` in test_sources.py and test_torch.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.data.binning import Bins, Uniform, UniformBins
from calibrant.data.rows import Sample

SIZES = [1, 2, 3, 10, 15, 16, 49, 100, 240, 2520, 50_400, 1 << 16]


def scores(n_bins):
    """Return scores on the edges k / n_bins and next to them on both sides, and others."""
    edges = np.arange(n_bins + 1) / n_bins
    others = [0.0, 5e-324, 1e-300, 0.29, 0.57, np.nextafter(1, 0), 1.0]
    p = np.concatenate((edges, np.nextafter(edges, 0), np.nextafter(edges, 1), others))
    return np.random.default_rng(n_bins).permutation(p[p <= 1])


def by_comparison(p, n_bins, closed="left"):
    """Return the bin of each score, found by comparing it with the correctly rounded edges."""
    inner = np.arange(1, n_bins) / n_bins
    return np.searchsorted(inner, p, side="right" if closed == "left" else "left")


def counts(p, n_bins):
    return np.bincount(by_comparison(p, n_bins), minlength=n_bins).tolist()


@pytest.mark.parametrize("n_bins", SIZES)
@pytest.mark.parametrize("closed", ["left", "right"])
def test_uniform_bins(n_bins, closed):
    p, expected = scores(n_bins), by_comparison(scores(n_bins), n_bins, closed)
    bins = UniformBins.of(n_bins, closed)
    assert bins.index(p).tolist() == expected.tolist()
    starts = np.searchsorted(np.sort(expected), np.arange(n_bins))
    assert bins.starts(np.sort(p)).tolist() == starts.tolist()


@pytest.mark.parametrize("n_bins", SIZES)
@pytest.mark.parametrize("n_rows", [100, 1 << 15])
def test_bins_between_any_edges(n_bins, n_rows):
    p = np.resize(scores(n_bins), n_rows)
    edges = np.arange(n_bins + 1) / n_bins
    assert Bins(edges, np.diff(edges)).index(p).tolist() == by_comparison(p, n_bins).tolist()


@pytest.mark.parametrize("n_bins", SIZES)
def test_cuts_between_distinct_scores(n_bins):
    p = np.unique(scores(n_bins))
    pooled = Sample(np.zeros(len(p)), p).pooled
    cuts = Uniform().cut(pooled, np.arange(n_bins + 1), n_bins)
    assert np.diff(cuts).tolist() == counts(p, n_bins)


@pytest.mark.parametrize("n_bins", SIZES)
def test_cells_of_a_sketch(n_bins):
    p = scores(n_bins)
    assert cb.Sketch(n_bins).update(np.zeros(len(p)), p).table.rows.tolist() == counts(p, n_bins)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 10, 15, 16, 49, 100, 240, 2520])
@pytest.mark.parametrize("way", ["numpy", "compiled"])
def test_table_of_bins(n_bins, way, request):
    if way == "compiled":
        pytest.importorskip("numba")
        request.getfixturevalue("compiled")
    p = scores(n_bins)
    assert cb.bin_table(np.zeros(len(p)), p, n_bins=n_bins).n.tolist() == counts(p, n_bins)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 10, 15, 49, 100])
@pytest.mark.parametrize("way", ["numpy", "compiled"])
def test_classes_of_a_table(n_bins, way, request):
    if way == "compiled":
        pytest.importorskip("numba")
        request.getfixturevalue("compiled")
    p = scores(n_bins)
    y = by_comparison(p, n_bins) % 2
    binary = [cb.ece(y, p, n_bins=n_bins), cb.ece(1 - y, 1 - p, n_bins=n_bins)]
    both = cb.ece(y, np.stack((1 - p, p), axis=1), n_bins=n_bins, multiclass="classwise")
    assert both == pytest.approx(np.mean(binary), abs=1e-12)


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("n_parts", [2, 16])
@pytest.mark.parametrize("kind", ["uniform", "uneven", "narrow"])
def test_parts_of_bins_lie_within_them(kind, n_parts, closed):
    edges = {
        "uniform": np.arange(16) / 15,
        "uneven": np.array([0.0, 0.1, 0.29, 0.3, 0.57, 0.99, 1.0]),
        "narrow": np.array([0.0, 0.5, np.nextafter(0.5, 1), 0.5 + 1e-15, 1.0]),
    }[kind]
    bins = Bins(edges, np.diff(edges), closed)
    if kind == "uniform":
        bins = UniformBins.of(15, closed)
    parts = bins.divided(n_parts)
    p = np.concatenate((scores(15), edges, np.nextafter(edges, 0), np.nextafter(edges[:-1], 1)))
    p = np.concatenate((p, parts.edges, np.nextafter(parts.edges, 0)))
    assert parts.n_bins == n_parts * bins.n_bins
    assert (parts.index(p) // n_parts).tolist() == bins.index(p).tolist()
