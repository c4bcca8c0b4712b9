"""Binned measures: tables, relatives, and the rules for the number of bins."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.data.binning import UniformBins
from tests.tolerances import ROUNDING
from tests.twins import binned as twin


def test_table_by_hand():
    table = cb.bin_table([0, 1, 1, 0], [0.1, 0.3, 0.9, 1.0], n_bins=4, sample_weight=[1, 2, 1, 1])
    assert table.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert table.n.tolist() == [1, 1, 0, 2]
    assert table.weight.tolist() == [1, 2, 0, 2]
    np.testing.assert_allclose(table.mean_pred, [0.1, 0.3, np.nan, 0.95])
    np.testing.assert_allclose(table.mean_true, [0, 1, np.nan, 0.5])
    np.testing.assert_allclose(table.gap, [-0.1, 0.7, np.nan, -0.45])
    assert "0.5 - 0.75 0 0.0000         -         -       -" in repr(table)


def test_table_adds_up_to_the_error():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p
    table = cb.bin_table(y, p)
    assert np.nansum(table.weight * np.abs(table.gap)) / 500 == pytest.approx(cb.ece(y, p))
    assert table.n.sum() == 500


def test_table_as_dict_and_frame():
    table = cb.bin_table([0, 1], [0.25, 0.75], n_bins=2)
    assert table.to_dict()["n"] == [1, 1]
    pytest.importorskip("pandas")
    frame = table.to_frame()
    names = ["low", "high", "n", "weight", "mean_pred", "mean_true", "gap"]
    assert frame.columns.tolist() == names
    assert frame["gap"].tolist() == [-0.25, 0.25]


def test_results_are_frozen():
    table = cb.bin_table([0, 1], [0.25, 0.75])
    with pytest.raises(AttributeError):
        table.n = None
    with pytest.raises(ValueError, match="read-only"):
        table.n[0] = 7


def test_relatives_are_ece_by_other_names():
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    w = rng.integers(1, 5, 300)
    assert cb.mce(y, p, sample_weight=w) == cb.ece(y, p, norm="max", sample_weight=w)
    assert cb.ace(y, p, norm="l2") == cb.ece(y, p, strategy="quantile", norm="l2")
    assert cb.soft_label_ece(y, p) == cb.ece(y, p, n_bins=10)


def test_square_root_counts_rows_not_weight():
    rng = np.random.default_rng(2)
    p = rng.random(120)
    y = rng.random(120) < p
    w = rng.integers(1, 9, 120)
    by_rule = cb.ece(y, p, n_bins="sqrt", sample_weight=w)
    assert by_rule == cb.ece(y, p, n_bins=10, sample_weight=w)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("rule", ["sweep", "cv"])
def test_rules_through_the_front_door(strategy, rule):
    rng = np.random.default_rng(3)
    p = rng.random(40)
    y = (rng.random(40) < p).astype(int)
    count = {"sweep": twin.sweep_count, "cv": twin.cv_count}[rule]
    n_bins = count(y.tolist(), p.tolist(), [1] * 40, strategy)
    assert n_bins > 1
    by_rule = cb.ece(y, p, n_bins=rule, strategy=strategy)
    assert by_rule == cb.ece(y, p, n_bins=n_bins, strategy=strategy)


def test_bins_of_weighted_rows_are_looked_up_for_the_count_chosen_alone(monkeypatch):
    # Each of some hundred counts is a pass over sorted rows, not a search of each row's bin.
    searched, search = [], UniformBins.index
    monkeypatch.setattr(UniformBins, "index", lambda *of: searched.append(of) or search(*of))
    rng = np.random.default_rng(3)
    p, w = rng.random(1000), rng.integers(1, 4, 1000)
    cb.ece(rng.random(1000) < p, p, n_bins="cv", sample_weight=w)
    assert len(searched) <= 1


@pytest.mark.parametrize("rule", ["sqrt", "sweep", "cv"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_one_row(rule, strategy):
    assert cb.ece([1], [0.25], n_bins=rule, strategy=strategy) == 0.75


def test_debiasing_lowers_the_error_of_calibrated_predictions():
    rng = np.random.default_rng(4)
    plain, l1, l2 = [], [], []
    for _ in range(200):
        p = rng.random(500)
        y = (rng.random(500) < p).astype(int)
        plain.append(cb.ece(y, p))
        l1.append(cb.ece(y, p, debias=True))
        l2.append(cb.ece(y, p, norm="l2", debias=True))
    assert np.mean(l1) < 0.6 * np.mean(plain)
    # The squared error is unbiased before it is floored: it falls on 0 about half the time.
    assert 0.3 < np.mean(np.array(l2) == 0) < 0.7


def test_debiased_squared_error_is_unbiased():
    # Two bins with true gaps of 0.1: the squared l2 error is 0.01 on average.
    rng = np.random.default_rng(5)
    p = np.repeat([0.25, 0.75], 50)
    truth = np.repeat([0.35, 0.65], 50)
    squares = []
    for _ in range(4000):
        y = (rng.random(100) < truth).astype(int)
        value = cb.ece(y, p, n_bins=2, norm="l2", debias=True)
        plain = cb.ece(y, p, n_bins=2, norm="l2")
        counts = [y[:50].mean(), y[50:].mean()]
        bias = np.mean([m * (1 - m) / 49 for m in counts])
        assert value == pytest.approx(np.sqrt(max(plain**2 - bias, 0)), abs=1e-12)
        squares.append(plain**2 - bias)
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - 0.01) < 4 * error


def test_large_samples_pass_through_blocks():
    rng = np.random.default_rng(6)
    n = 200_001
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int8)
    index = np.minimum((p * 15).astype(int), 14)
    sums = [abs(np.sum((y - p)[index == k])) for k in range(15)]
    assert cb.ece(y, p) == pytest.approx(np.sum(sums) / n, abs=ROUNDING)
