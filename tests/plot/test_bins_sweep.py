"""What a sweep over numbers of bins draws is what the measures say."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.datasets import load_flares
from calibrant.plot import BinsSweep, bins_sweep

FLARES = load_flares()
COUNTS = (2, 5, 9, 30)


def drawn(ax):
    return [(line.get_xdata(), line.get_ydata()) for line in ax.lines]


def test_lines_are_the_measures():
    uniform, quantile, logit, smooth = drawn(bins_sweep(*FLARES, n_bins=COUNTS))
    assert np.array_equal(uniform[0], COUNTS)
    assert np.allclose(uniform[1], [cb.ece(*FLARES, n_bins=k) for k in COUNTS])
    by_mass = [cb.ece(*FLARES, n_bins=k, strategy="quantile") for k in COUNTS]
    assert np.allclose(quantile[1], by_mass)
    smoothed = [cb.logit_smoothed_ece(*FLARES, sigma=1 / k) for k in logit[0]]
    assert np.allclose(logit[1], smoothed)
    assert set(smooth[1]) == {cb.smooth_ece(*FLARES)}


def test_the_interval_of_smooth_ece():
    ax = bins_sweep(*FLARES, n_bins=COUNTS, level=0.9, rng=2)
    estimate = cb.estimate("smooth_ece", *FLARES, level=0.9, rng=2)
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert {heights.min(), heights.max()} == {estimate.low, estimate.high}
    assert "smECE, 90% interval" in [text.get_text() for text in ax.texts]


def test_names_stand_at_the_ends_apart_from_each_other():
    ax = bins_sweep(*FLARES, n_bins=COUNTS)
    heights = np.sort([text.xy[1] for text in ax.texts])
    assert np.diff(heights).min() > 0.05 * np.ptp(ax.get_ylim())


def test_a_sketch_knows_bins_that_divide_its_cells():
    ax = bins_sweep(cb.Sketch(n_cells=2520).update(*FLARES))
    uniform, smooth = drawn(ax)
    assert [k for k in range(1, 101) if 2520 % k == 0] == list(uniform[0])
    assert np.allclose(uniform[1], [cb.ece(*FLARES, n_bins=int(k)) for k in uniform[0]])
    assert len(smooth[0]) == 2


def test_the_default_is_one_to_a_hundred():
    ax = bins_sweep(FLARES.y_true[:50], FLARES.y_prob[:50])
    assert np.array_equal(drawn(ax)[0][0], np.arange(1, 101))


def test_many_bins_are_on_a_logarithmic_axis():
    ax = bins_sweep(*FLARES, n_bins=2 ** np.arange(3, 11))
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()][:3] == ["8", "16", "32"]


def test_several_models():
    days = {name: load_flares(name).y_prob for name in ("DAFFS", "NOAA")}
    ax = bins_sweep(FLARES.y_true, days, n_bins=COUNTS)
    assert len(ax.lines) == 6
    legend = ax.get_legend()
    smoothed = "LS-ECE, $\\sigma$ = 1/bins"
    assert [text.get_text() for text in legend.get_texts()] == ["ECE", smoothed, "smECE"]
    assert {text.get_text() for text in ax.texts} == {"DAFFS", "NOAA"}


def test_words_keep_to_the_lines_that_they_are_about():
    ax = bins_sweep(FLARES.y_true, {"a": FLARES.y_prob, "b": FLARES.y_prob}, n_bins=COUNTS)
    ax.figure.draw_without_rendering()
    first, last = ax.transData.transform([(2, 0), (30, 0)])[:, 0]
    label = ax.xaxis.label.get_window_extent()
    assert np.isclose((label.x0 + label.x1) / 2, (first + last) / 2, atol=5)
    legend = ax.get_legend().get_window_extent()
    assert last - 5 < legend.x0 < last + 0.1 * (last - first)


def test_a_sweep_is_a_result():
    sweep = BinsSweep.of(*FLARES, n_bins=COUNTS)
    assert np.array_equal(drawn(bins_sweep(sweep))[0][1], sweep.uniform)
    assert repr(sweep).startswith("BinsSweep(2 to 30 bins, ECE 0.0")
    assert sweep.to_dict()["n_bins"] == list(COUNTS)
    names = {text.get_text() for text in bins_sweep({"a": sweep, "b": sweep}).texts}
    assert names == {"a", "b"}
    with pytest.raises(cb.CalibrantError, match="a BinsSweep is drawn as it is"):
        bins_sweep(sweep, level=0.9)


def test_numbers_of_bins_are_checked():
    with pytest.raises(cb.CalibrantError, match="n_bins must be a whole number"):
        bins_sweep(*FLARES, n_bins=[5, 0])
