"""The strip on the right: how far recalibrated scores spread."""

import numpy as np
import pytest
from matplotlib.patches import StepPatch

import calibrant as cb
from calibrant.datasets import load_flares, load_rain
from calibrant.plot import reliability
from tests.plot.drawn import notes

FLARES = load_flares()


def strip(ax):
    """Return the edges and the lengths of the bars along the right."""
    (bars,) = [
        one
        for one in ax.get_children()
        if isinstance(one, StepPatch) and one.orientation == "horizontal"
    ]
    values, edges, baseline = bars.get_data()
    return edges, values - baseline


def base_rate(ax):
    """Return where the line across the whole of the Axes is."""
    (line,) = [one for one in ax.lines if one.get_transform() == ax.get_yaxis_transform("grid")]
    return line.get_ydata()[0]


def check_bars(ax, value, share):
    edges, length = strip(ax)
    amount, _ = np.histogram(value, edges, weights=share)
    assert np.array_equal(length > 0, amount > 0)
    assert len(set(np.round(length, 3))) > 2
    slope = np.polyfit(amount[amount > 0], length[amount > 0], 1)
    assert slope[0] > 0
    assert np.allclose(np.polyval(slope, amount[amount > 0]), length[amount > 0])


def test_what_the_isotonic_fit_makes_of_every_row():
    ax = reliability(*FLARES, method="isotonic", margin="both")
    curve = cb.reliability_curve(*FLARES, method="isotonic", band=None)
    fitted = curve.y[np.searchsorted(curve.x, FLARES.y_prob)]
    check_bars(ax, fitted, np.ones(FLARES.n))
    assert base_rate(ax) == pytest.approx(FLARES.y_true.mean())
    assert base_rate(reliability(curve, margin="both")) == pytest.approx(FLARES.y_true.mean())


def test_a_bar_a_bin():
    ax = reliability(*FLARES, method="binned", n_bins=10, margin="both")
    table = cb.bin_table(*FLARES, n_bins=10)
    check_bars(ax, table.mean_true, table.weight)
    assert base_rate(reliability(table, margin="both")) == pytest.approx(FLARES.y_true.mean())


def test_what_a_smooth_curve_makes_of_scores():
    rain = load_rain()
    curve = cb.reliability_curve(*rain, band=None)
    for rows in (rain, (cb.Sketch().update(*rain),)):
        ax = reliability(*rows, margin="both")
        check_bars(ax, np.interp(rain.y_prob, curve.x, curve.y), np.ones(rain.n))
        assert base_rate(ax) == pytest.approx(rain.y_true.mean())
    edges, length = strip(reliability(curve, margin="both"))
    assert edges[:-1][length > 0].max() < np.nanmax(curve.y)
    assert edges[1:][length > 0].min() > np.nanmin(curve.y)


def test_the_diagram_keeps_its_place_beside_the_strip():
    ax = reliability(*FLARES, margin="both")
    assert ax.get_xlim()[1] > 1.1
    assert ax.spines["bottom"].get_bounds() == (0, 1)
    assert max(ax.get_xticks()) == 1
    limits = ax.get_xlim()
    reliability(*load_rain(), ax=ax)
    assert ax.get_xlim() == limits


def test_narrow_windows_keep_all_within_them():
    rng = np.random.default_rng(0)
    p = 0.97 + 0.03 * rng.random(500)
    ax = reliability(rng.random(500) < p, p, method="isotonic", margin="both")
    low, high = ax.spines["bottom"].get_bounds()
    assert 0.9 < low < high == 1
    edges, length = strip(ax)
    assert (edges[0], edges[-1]) == (low, high)
    assert length.max() > 0
    ax = reliability(*FLARES, method="binned", n_bins=4, limits=(0, 0.6), margin="both")
    assert max(one.get_x() + one.get_width() for one in ax.patches if hasattr(one, "get_x")) <= 0.6


def test_nothing_is_cut_off_and_words_stay_apart():
    for rows in (FLARES, load_rain()):
        ax = reliability(*rows, method="isotonic", margin="both")
        figure = ax.figure
        figure.draw_without_rendering()
        page = figure.get_tightbbox()
        assert (0, 0) < (page.x0 + 0.02, page.y0 + 0.02)
        assert (page.x1, page.y1) <= tuple(figure.get_size_inches() + 0.02)
        words = [one for one in (*ax.texts, *ax.get_xticklabels()) if one.get_text()]
        boxes = [one.get_window_extent() for one in (*words, *notes(ax))]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_displays_have_it_too():
    integration = pytest.importorskip("calibrant.integrations.sklearn")
    display = integration.ReliabilityDisplay.from_predictions(*FLARES, margin="both")
    assert strip(display.ax_)[1].max() > 0


def test_where_it_has_no_meaning_it_is_refused():
    with pytest.raises(cb.CalibrantError, match="describes one model; got 2"):
        reliability(FLARES.y_true, {"a": FLARES.y_prob, "b": FLARES.y_prob}, margin="both")
    with pytest.raises(cb.CalibrantError, match="a diagram of deviations does not have"):
        reliability(*FLARES, deviation=True, margin="both")
    with pytest.raises(cb.CalibrantError, match="a diagram of deviations does not have"):
        reliability(cb.local_calibration_error(*FLARES), margin="both")
    with pytest.raises(cb.CalibrantError, match="needs the number of rows in each bin"):
        reliability(cb.reliability_curve(*FLARES, method="binned"), margin="both")
    with pytest.raises(cb.CalibrantError, match="margin must be True, False or 'both'; got 'left'"):
        reliability(*FLARES, margin="left")


def test_a_refusal_leaves_the_axes_as_it_was():
    ax = reliability(*FLARES)
    before = ax.get_children()
    with pytest.raises(cb.CalibrantError, match="got 2"):
        reliability(*load_rain(), margin="both", ax=ax)
    assert ax.get_children() == before


def test_notes_keep_clear_of_the_base_rate():
    # The curve leaves the upper left corner free, but the base rate runs through it.
    rng = np.random.default_rng(0)
    p = rng.uniform(0.75, 1, 500)
    y = (rng.random(500) < p).astype(float)
    ax = reliability(y, p, margin="both", limits=(0, 1))
    ax.figure.draw_without_rendering()
    (note,) = notes(ax)
    box = note.get_window_extent()
    _, height = ax.transData.transform((0, y.mean()))
    assert not box.y0 < height < box.y1
