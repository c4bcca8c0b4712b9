"""The slow twin itself, on cases computed by hand."""

import pytest

from tests.twins import binned as twin


def test_ece_by_hand():
    # Two bins: [0, .5) holds .1 and .3 (y 0, 1), [.5, 1] holds .5 and .9 (y 1, 1).
    y, p = [0, 1, 1, 1], [0.1, 0.3, 0.5, 0.9]
    # residual sums: -.1 + .7 = .6 and .5 + .1 = .6; over n = 4: .3
    assert twin.binned_error(y, p, n_bins=2) == pytest.approx(0.3)
    # gaps .3 and .3
    assert twin.binned_error(y, p, n_bins=2, norm="l2") == pytest.approx(0.3)
    assert twin.binned_error(y, p, n_bins=2, norm="max") == pytest.approx(0.3)
    # closed right moves .5 to the first bin: sums .1.. -> -.1 + .7 + .5 = 1.1 and .1
    assert twin.binned_error(y, p, n_bins=2, closed="right") == pytest.approx(0.3)
    assert twin.binned_error(y, p, n_bins=2, closed="right", norm="max") == pytest.approx(1.1 / 3)


def test_convex_by_hand():
    # Centres .25 and .75; p = .5 gives half to each, p = .25 all to the first.
    y, p = [1, 0], [0.5, 0.25]
    # bin 0: .5 * .5 - .25 = 0; bin 1: .5 * .5 = .25
    assert twin.binned_error(y, p, n_bins=2, assignment="convex") == pytest.approx(0.125)


def test_quantile_edges_by_hand():
    assert twin.quantile_edges([0.1, 0.2, 0.3, 0.4], [1] * 4, 2) == [0.0, 0.25, 1.0]
    # A heavy tie: nothing can be cut inside it.
    assert twin.quantile_edges([0.5] * 9 + [0.9], [1] * 10, 5) == [0.0, 0.7, 1.0]
    # Weight 3 on .1 balances the other three.
    assert twin.quantile_edges([0.1, 0.2, 0.3, 0.4], [3, 1, 1, 1], 2) == pytest.approx(
        [0.0, 0.15, 1.0]
    )


def test_width_of_equal_mass_bins_by_hand():
    # First scores .1 and .3: widths .2 and .7; nothing below .1 counts.
    p = [0.1, 0.2, 0.3, 0.4]
    assert twin.widths_of(p, [0.0, 0.25, 1.0], "quantile") == pytest.approx([0.2, 0.7])


def test_counts_by_hand():
    # Perfectly ordered labels: every count is monotone, so n itself.
    assert twin.sweep_count([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], [1] * 4, "quantile") == 4
    # A falling pair: only one bin is monotone.
    assert twin.sweep_count([1, 0], [0.2, 0.8], [1, 1], "uniform") == 1
    # Left out, each row of one bin is predicted by the mean of the others.
    assert twin.leave_one_out_loss([0, 1], [0.2, 0.8], [1, 1], [0.0, 1.0]) == pytest.approx(2.0)
