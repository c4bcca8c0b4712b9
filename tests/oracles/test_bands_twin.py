"""Bands from cells against bands row by row, and formulas against draws.

Cells smooth by 0.2% more than rows do, which counts for more far from all rows, and tables of
kernels are linear between their points: limits agree to 2% of the width of the band. Quantiles of
2000 draws have standard errors of 0.06 standard deviations at 2.5%, and two of them differ by 0.09:
0.3 is hardly ever seen.
"""

import numpy as np
import pytest
from scipy.stats import norm

from calibrant import reliability_curve
from calibrant.curves.bands import KernelWindows
from calibrant.datasets import simulate
from calibrant.numerics.probability import max_proportion, min_proportion, rice_tail
from calibrant.numerics.smoothing import GAUSSIAN, TRIWEIGHT
from tests.twins import bands as twin

DRAWS = 2000
NEAR = 0.3
BANDWIDTH = 0.06
kinds = pytest.mark.parametrize("kind", ["plain", "tied", "rare", "weighted"])


def sample(kind, n=150, seed=3):
    scenario = {"tied": "tenths", "rare": "rare"}.get(kind, "overconfident")
    drawn = simulate(scenario, n, rng=seed)
    w = np.random.default_rng(seed).exponential(1, n) if kind == "weighted" else np.ones(n)
    return drawn.y_true.astype(float), drawn.y_prob, w


def looked_at(curve):
    """A few places where the curve is known."""
    return np.flatnonzero(~np.isnan(curve.y))[::32]


@kinds
@pytest.mark.parametrize("bandwidth", [0.02, BANDWIDTH, 0.7])
def test_confidence_at_each_point(kind, bandwidth):
    y, p, w = sample(kind)
    curve = reliability_curve(y, p, method="density", bandwidth=bandwidth, sample_weight=w)
    at = looked_at(curve)
    lower, upper = twin.confidence(twin.kernel_weights(curve.x[at], p, bandwidth) * w, y, 0.025)
    tolerance = 0.02 * (upper - lower).max()
    np.testing.assert_allclose(curve.low[at], lower, atol=tolerance)
    np.testing.assert_allclose(curve.high[at], upper, atol=tolerance)


@kinds
def test_how_far_out_a_whole_curve_gets(kind):
    y, p, w = sample(kind)
    options = {"method": "density", "bandwidth": BANDWIDTH, "simultaneous": True}
    curve = reliability_curve(y, p, sample_weight=w, **options)
    t = curve.x[~np.isnan(curve.y)]
    k = twin.kernel_weights(t, p, BANDWIDTH) * w
    drawn = twin.simultaneous_tail(k[::4], 0.95, 10_000, np.random.default_rng(0))
    rows = k / np.sqrt((k**2).sum(axis=1, keepdims=True))
    cosines = np.minimum((rows[1:] * rows[:-1]).sum(axis=1), 1)
    tail = rice_tail(0.95, np.arccos(cosines))
    # The quantile of so many draws has a standard error of 0.02.
    assert norm.isf(tail) == pytest.approx(norm.isf(drawn), abs=0.06)
    lower, upper = twin.confidence(k[::16], y, tail)
    # Far from most scores, rows gathered in cells widen the kernel by more than near them.
    tolerance = 0.03 * (upper - lower).max()
    known = np.flatnonzero(~np.isnan(curve.y))[::16]
    np.testing.assert_allclose(curve.low[known], lower, atol=tolerance)
    np.testing.assert_allclose(curve.high[known], upper, atol=tolerance)


@pytest.mark.parametrize("kernel", [GAUSSIAN, TRIWEIGHT])
@pytest.mark.parametrize("scale", [0.01, 0.3])
def test_kernel_windows_are_mirrored_kernels(kernel, scale):
    shape = {
        GAUSSIAN: lambda u: np.exp(-u * u / 2) / np.sqrt(2 * np.pi),
        TRIWEIGHT: lambda u: 35 / 32 * np.maximum(1 - u * u, 0) ** 3,
    }[kernel]
    t = np.linspace(0, 1, 41)
    score = (np.arange(200) + np.random.default_rng(1).random(200)) / 200
    images = [score + 2 * j for j in range(-3, 4)] + [2 * j - score for j in range(-3, 4)]
    direct = sum(shape((t[:, None] - image[None, :]) / scale) / scale for image in images)
    found = KernelWindows.around(t, score, scale, kernel).weights.toarray()
    np.testing.assert_allclose(found, direct, atol=2e-4 / scale)


@pytest.mark.parametrize("rows", [1, 2, 7, 30, 400])
@pytest.mark.parametrize("chance", [0.001, 0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("tail", [0.025, 0.001])
def test_shares_of_whole_counts(rows, chance, tail):
    low, high = twin.acceptance(chance, rows, tail)
    given = np.array([chance]), np.array([float(rows)]), np.array([tail])
    # Between whole counts the limit lies after the last one kept and before the next.
    least, greatest = min_proportion(*given)[0], max_proportion(*given)[0]
    step = 1 / rows
    assert high - 1e-3 * step <= greatest <= high + step * 1.001
    assert low - step * 1.001 <= least <= low + 1e-3 * step


@kinds
def test_consistency_is_where_calibrated_curves_lie(kind):
    y, p, _ = sample(kind)
    curve = reliability_curve(y, p, method="density", bandwidth=BANDWIDTH, band="consistency")
    at = looked_at(curve)
    k = twin.kernel_weights(curve.x[at], p, BANDWIDTH)
    drawn = twin.calibrated_curves(k, p, DRAWS, np.random.default_rng(2))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    spread = drawn.std(axis=0)
    # Limits for whole counts are farther out by up to one row: no farther, and no nearer.
    row = k.max(axis=1) / k.sum(axis=1)
    assert np.all(curve.high[at] >= high - NEAR * spread)
    assert np.all(curve.low[at] <= low + NEAR * spread)
    assert np.all(curve.high[at] <= high + row + NEAR * spread)
    assert np.all(curve.low[at] >= low - row - NEAR * spread)


def spans_from_each(m):
    lengths = [2**k for k in range(m.bit_length())]
    return [(i, min(i + length, m), 0.025 / len(lengths)) for length in lengths for i in range(m)]


def spans_of_all(m):
    lengths = [2**k for k in range(m.bit_length())]
    for length in lengths:
        starts = sorted({*range(0, m - length, max(1, length // 4)), m - length})
        for start in starts:
            yield start, start + length, 0.025 / len(lengths) / len(starts)


def test_honest_limits_of_all_scores():
    y, p, _ = sample("plain", 60)
    order = np.argsort(p)
    lower, upper = twin.honest(p[order], y[order], list(spans_of_all(60)))
    curve = reliability_curve(y, p, method="isotonic", simultaneous=True)
    np.testing.assert_allclose(curve.low, np.minimum(lower, curve.y), atol=1e-9)
    np.testing.assert_allclose(curve.high, np.maximum(upper, curve.y), atol=1e-9)


def test_honest_limits_of_one_score():
    y, p, _ = sample("plain", 60)
    order = np.argsort(p)
    curve = reliability_curve(y, p, method="isotonic")
    for i in (0, 17, 59):
        mine = [span for span in spans_from_each(60) if span[0] == i]
        _, upper = twin.honest(p[order], y[order], mine)
        assert curve.high[i] == pytest.approx(max(upper[i], curve.y[i]))


def test_honest_limits_of_pooled_scores():
    # More scores than cells: spans of cells bound only the scores before and after all of them.
    drawn = simulate("perfect", 1000, rng=4)
    order = np.argsort(drawn.y_prob)
    p, y = drawn.y_prob[order], drawn.y_true[order].astype(float)
    starts = np.unique(np.ceil(1000 * np.sin(np.pi / 2 * np.arange(512) / 512) ** 2).astype(int))
    edges = np.append(starts[starts < 1000], 1000)
    spans = [(edges[a], edges[b], tail) for a, b, tail in spans_of_all(len(edges) - 1)]
    lower, upper = twin.honest(p, y, spans)
    curve = reliability_curve(y, p, method="isotonic", simultaneous=True)
    np.testing.assert_allclose(curve.low, np.minimum(lower, curve.y), atol=1e-9)
    np.testing.assert_allclose(curve.high, np.maximum(upper, curve.y), atol=1e-9)


def test_isotonic_consistency_is_drawn():
    from scipy.optimize import isotonic_regression

    _, p, _ = sample("plain", 80)
    p = np.sort(p)
    rng = np.random.default_rng(5)
    drawn = np.array(
        [isotonic_regression((rng.random(80) < p).astype(float)).x for _ in range(DRAWS)]
    )
    curve = reliability_curve(
        np.zeros(80), p, method="isotonic", band="consistency", n_resamples=DRAWS
    )
    inside = ((curve.low <= drawn + 1e-9) & (drawn - 1e-9 <= curve.high)).mean(axis=0)
    # Where many curves agree, as on 0 or 1/2, limits cannot be met exactly.
    assert np.all(inside > 0.93)
    assert 0.945 < inside.mean() < 0.97
