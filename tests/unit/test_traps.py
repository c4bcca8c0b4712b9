"""Defects seen in other libraries by running them, each as a test of this one."""

import numpy as np
import pytest

import calibrant as cb
from tests.tolerances import ROUNDING


def test_probability_one_falls_into_the_last_bin():
    # torchmetrics and relplot say 0.525: p = 1 lands in a bin of its own.
    assert cb.ece([1, 0], [0.95, 1.0], n_bins=10) == 0.475
    assert cb.ece([1, 0], [0.95, 1.0], n_bins=10, closed="right") == 0.475


def test_forecasts_on_exact_edges():
    # 0.29 * 100 is 28.999999999999996: truncation puts it one bin too low.
    table = cb.bin_table([0], [0.29], n_bins=100)
    assert np.flatnonzero(table.n).tolist() == [29]
    table = cb.bin_table([0], [0.29], n_bins=100, closed="right")
    assert np.flatnonzero(table.n).tolist() == [28]


@pytest.mark.parametrize("n_bins", [3, 7, 10, 15, 49, 100, 1000, 12345])
def test_every_edge_belongs_to_the_bin_it_opens_or_closes(n_bins):
    edges = np.arange(n_bins + 1) / n_bins
    bins = np.arange(n_bins)
    y = np.zeros(n_bins + 1)
    left = cb.bin_table(y, edges, n_bins=n_bins).n
    assert left.tolist() == [1] * (n_bins - 1) + [2]
    right = cb.bin_table(y, edges, n_bins=n_bins, closed="right").n
    assert right.tolist() == [2] + [1] * (n_bins - 1)
    # One unit in the last place to either side of an inner edge.
    below, above = np.nextafter(edges[1:-1], 0), np.nextafter(edges[1:-1], 1)
    for closed in ("left", "right"):
        below_n = cb.bin_table(y[2:], below, n_bins=n_bins, closed=closed).n
        above_n = cb.bin_table(y[2:], above, n_bins=n_bins, closed=closed).n
        assert np.repeat(bins, below_n).tolist() == bins[:-1].tolist()
        assert np.repeat(bins, above_n).tolist() == bins[1:].tolist()


def test_edges_are_correctly_rounded():
    # linspace(0, 1, 11) has 0.30000000000000004 and 0.6000000000000001.
    assert cb.bin_table([0], [0.5], n_bins=10).edges.tolist() == [k / 10 for k in range(11)]


def test_float16_does_not_vanish():
    # torchmetrics returns 0 for float16 from n = 100 000 on.
    p = np.full(150_000, 0.75, dtype=np.float16)
    y = np.zeros(150_000, dtype=np.int8)
    y[:75_000] = 1
    assert cb.ece(y, p) == 0.25


def test_counts_do_not_stop_at_two_to_the_24():
    # In float32, 2^24 + 1 = 2^24.
    n = 2**24 + 10_000
    p = np.full(n, 0.5, dtype=np.float32)
    y = np.zeros(n, dtype=np.int8)
    y[: n // 2] = 1
    assert cb.bin_table(y, p, n_bins=2).n.tolist() == [0, n]
    assert cb.ece(y, p) == 0.0


def test_a_value_just_above_one_is_refused_not_squashed():
    # torchmetrics applies a sigmoid to the whole batch.
    with pytest.raises(cb.CalibrantError, match="rounding"):
        cb.ece([1, 0], np.array([1.0000001, 0.2], dtype=np.float32))


def test_nan_is_refused():
    with pytest.raises(cb.CalibrantError, match="finite"):
        cb.ece([1, 0], [np.nan, 0.2])


def test_k_bins_are_k_bins():
    # MAPIE makes k - 1 of them.
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    for strategy in ("uniform", "quantile"):
        assert len(cb.bin_table(p < 0.5, p, n_bins=10, strategy=strategy).n) == 10


def test_equal_mass_bins_with_ties_are_order_free_and_never_raise():
    # netcal raises on tied scores, MAPIE's bins depend on the order of rows.
    rng = np.random.default_rng(1)
    p = rng.integers(0, 4, 500) / 3
    y = rng.integers(0, 2, 500)
    value = cb.ece(y, p, strategy="quantile")
    for _ in range(5):
        order = rng.permutation(500)
        assert cb.ece(y[order], p[order], strategy="quantile") == pytest.approx(value, abs=ROUNDING)
    assert cb.ece(np.ones(9), np.full(9, 0.5), strategy="quantile") == 0.5


def test_neighbouring_doubles_can_be_cut():
    p = [0.5, np.nextafter(0.5, 1)]
    assert cb.bin_table([0, 1], p, n_bins=2, strategy="quantile").n.tolist() == [1, 1]
    p = [np.nextafter(1, 0), 1.0]
    assert cb.bin_table([0, 1], p, n_bins=2, strategy="quantile").n.tolist() == [1, 1]


def test_soft_labels_are_not_rounded():
    # probmetrics takes their argmax.
    assert cb.ece([0.6, 0.6], [0.6, 0.6]) == 0.0
    soft = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]
    assert cb.ece(soft, soft, multiclass="classwise") == 0.0


def test_swapped_arguments_are_noticed():
    rng = np.random.default_rng(2)
    p = rng.random(100)
    y = (rng.random(100) < p).astype(float)
    with pytest.raises(cb.CalibrantError, match="swapped"):
        cb.ece(p, y)


def test_negative_zero_is_zero():
    assert cb.ace([0, 1], [-0.0, 0.0], n_bins=2) == 0.5
    assert len(cb.bin_table([0, 1], [-0.0, 0.0], strategy="quantile").n) == 1
    assert cb.ece([0, 1], [-0.0, 0.0], closed="right") == 0.5
