"""What a reliability diagram draws is what its results say."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

import calibrant as cb
from calibrant.datasets import load_flares, load_rain, simulate
from calibrant.plot import reliability
from tests.plot.drawn import notes, words, written
from tests.tolerances import nearly

FLARES = load_flares()
SMOOTH = cb.reliability_curve(*FLARES)


def of_kind(ax, kind):
    return [artist for artist in ax.get_children() if isinstance(artist, kind)]


def ribbons(ax):
    """The curves of kernels, whose lines vary in width."""
    found = of_kind(ax, LineCollection)
    return [one for one in found if len(set(np.round(one.get_linewidths(), 6))) > 1]


def band(ax):
    """The corners of the one band, lower edge first."""
    (area,) = [one for one in ax.collections if one.get_zorder() == 1.5]
    return area.get_paths()[0].vertices


def test_a_smooth_curve_is_drawn_point_by_point():
    (ribbon,) = ribbons(reliability(SMOOTH))
    points = np.array([segment[0] for segment in ribbon.get_segments()])
    assert np.array_equal(points, np.column_stack((SMOOTH.x, SMOOTH.y))[:-1])


def test_its_width_carries_the_density():
    # Along a straight line; of a curve as much less as it is longer.
    line = replace(SMOOTH, y=SMOOTH.x, low=SMOOTH.x, high=SMOOTH.x)
    (ribbon,) = ribbons(reliability(line))
    middle = (line.density[:-1] + line.density[1:]) / 2
    width = np.array(ribbon.get_linewidths())
    # The density of a few points of print is nearly that of one.
    assert np.corrcoef(width, middle)[0, 1] > 0.999
    assert np.argmax(width) == pytest.approx(np.argmax(middle), abs=10)


def test_a_steep_line_is_thin():
    x = np.linspace(0, 1, 401)
    curve = replace(SMOOTH, x=x, y=np.clip(8 * (x - 0.5) + 0.5, 0, 1), density=np.ones(401))
    curve = replace(curve, low=curve.y, high=curve.y)
    (ribbon,) = ribbons(reliability(curve, margin=False))
    width = np.array(ribbon.get_linewidths())
    assert width[200] - width.min() < 1e-9
    assert width[50] == pytest.approx(width.max())


def test_the_band_is_that_of_the_curve():
    corners = band(reliability(SMOOTH))
    for edge in (SMOOTH.low, SMOOTH.high):
        for x, y in zip(SMOOTH.x[::64], edge[::64], strict=True):
            assert np.isclose(corners, (x, y), rtol=0, atol=1e-12).all(axis=1).any()


def test_the_band_of_data_is_that_of_an_assessment():
    whole = cb.assess(*FLARES, n_resamples=100).curve("smooth")
    ax = reliability(*FLARES)
    assert "95% simultaneous band" in written(ax)
    shown = band(ax)
    for edge in (whole.low, whole.high):
        for x, y in zip(whole.x[::64], edge[::64], strict=True):
            assert np.isclose(shown, (x, y), rtol=0, atol=1e-12).all(axis=1).any()
    assert "95% pointwise band" in written(reliability(*FLARES, simultaneous=False))
    assert "95% pointwise band" in written(reliability(SMOOTH))


def test_a_line_does_not_hide_its_band():
    close = replace(SMOOTH, low=SMOOTH.y - 0.003, high=SMOOTH.y + 0.003)
    widest = [max(ribbons(reliability(one))[0].get_linewidths()) for one in (SMOOTH, close)]
    assert widest[0] > 4
    points = 0.006 * 300  # the inside of the diagram is about 300 points high
    assert widest[1] < points


def test_words_do_not_lie_on_curves_or_bands():
    wide = cb.reliability_curve(*FLARES, bandwidth=0.1)
    wide = replace(wide, low=wide.y - 0.35, high=wide.y + 0.35)
    free, crowded = reliability(SMOOTH, note="a\nb"), reliability(wide, note="a long line\n" * 8)
    for ax, is_above in ((free, False), (crowded, True)):
        ax.figure.draw_without_rendering()
        (note,) = notes(ax)
        assert words(note).startswith("a")
        assert bool(note.get_window_extent().y0 >= ax.bbox.y1) == is_above


def test_level_stretches_of_an_isotonic_curve_are_heavier():
    y, p = [1, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.5, 0.5, 0.9]
    curve = cb.reliability_curve(y, p, method="isotonic")
    (heavy,) = [
        one for one in of_kind(reliability(curve), LineCollection) if one.get_linewidths()[0] > 3
    ]
    assert np.array(heavy.get_segments()).tolist() == [[[0.1, 1 / 3], [0.3, 1 / 3]]]


def test_a_single_score_has_its_interval():
    ax = reliability([0, 1, 0, 0] * 25, [0.3] * 100, method="isotonic")
    curve = cb.reliability_curve(
        [0, 1, 0, 0] * 25, [0.3] * 100, method="isotonic", simultaneous=True
    )
    (stick,) = [one for one in of_kind(ax, LineCollection) if len(one.get_segments())]
    assert np.allclose(stick.get_segments()[0][:, 1], (curve.low[0], curve.high[0]))


def test_no_band_is_drawn_where_there_is_none():
    ax = reliability(*FLARES, band=None)
    assert not [one for one in ax.collections if one.get_zorder() == 1.5]
    assert "band" not in written(ax)


def test_data_are_drawn_as_the_curve_that_is_made_of_them():
    (ribbon,) = ribbons(reliability(*FLARES, band=None))
    points = np.array([segment[0] for segment in ribbon.get_segments()])
    at = np.abs(SMOOTH.x[:, None] - points[:, 0]).argmin(axis=0)
    assert points[:, 1] == nearly(SMOOTH.y[at])


def test_the_note_is_the_estimate():
    estimate = cb.estimate("smooth_ece", *FLARES)
    ax = reliability(*FLARES)
    assert f"smECE {estimate.bias_corrected:.3f}" in written(ax)
    assert f"95% interval {estimate.low:.3f} to {estimate.high:.3f}" in written(ax)
    assert "n = 731" in written(ax)
    assert "95% simultaneous band" in written(ax)


def test_level_and_seed_go_to_the_estimate_and_to_the_band():
    ax = reliability(*FLARES, level=0.8, rng=3, simultaneous=True)
    estimate = cb.estimate("smooth_ece", *FLARES, level=0.8, rng=3)
    assert f"80% interval {estimate.low:.3f} to {estimate.high:.3f}" in written(ax)
    assert "80% simultaneous band" in written(ax)


def test_notes_of_ones_own():
    assert "of the sun" in written(reliability(*FLARES, note="of the sun"))
    assert written(reliability(*FLARES, note=False)) == ""
    assert written(reliability(SMOOTH, note=False)) == ""


def test_the_margin_shows_every_outcome():
    ax = reliability(*FLARES)
    ups, downs = of_kind(ax, StepPatch)
    places = np.round(np.linspace(0, 1, 201), 12)
    table = cb.bin_table(*FLARES, n_bins=200)
    assert np.allclose(ups.get_data().edges, places)
    ones = np.nan_to_num(table.mean_true) * table.n
    for steps, amount in ((ups, ones), (downs, table.n - ones)):
        length = np.abs(steps.get_data().values - steps.get_data().baseline)
        assert np.array_equal(length > 0, amount > 1e-9)
        shown = length[amount > 1e-9]
        slope = np.polyfit(amount[amount > 1e-9], shown, 1)
        assert np.allclose(np.polyval(slope, amount[amount > 1e-9]), shown)


def test_the_margin_of_a_curve_alone_is_its_density_split_by_outcome():
    up, down = reliability(replace(SMOOTH, low=np.nan * SMOOTH.x)).collections[1:]
    upper, lower = (np.abs(a.get_paths()[0].vertices[:, 1] - 0.075).max() for a in (up, down))
    ones, zeros = SMOOTH.density * SMOOTH.y, SMOOTH.density * (1 - SMOOTH.y)
    assert np.isclose(upper / lower, ones.max() / zeros.max())


def test_few_scores_are_marked_one_by_one():
    rain = load_rain()
    ax = reliability(*rain)
    (dots,) = of_kind(ax, PathCollection)
    scores = np.unique(rain.y_prob)
    means = [rain.y_true[rain.y_prob == score].mean() for score in scores]
    assert np.allclose(dots.get_offsets(), np.column_stack((scores, means)))


def test_many_scores_are_not():
    assert not of_kind(reliability(*FLARES), PathCollection)


def test_a_binned_curve_has_bars_counts_and_intervals():
    options = {"n_bins": 10}
    ax = reliability(*FLARES, method="binned", **options)
    table = cb.bin_table(*FLARES, **options)
    curve = cb.reliability_curve(*FLARES, method="binned", simultaneous=True, **options)
    bars = of_kind(ax, Rectangle)[:10]
    assert np.allclose([bar.get_height() for bar in bars], table.mean_true)
    assert np.allclose([bar.get_x() for bar in bars], table.edges[:-1])
    counts = [text.get_text() for text in ax.texts if text.get_text().isdigit()]
    assert counts == [str(n) for n in table.n]
    (lines,) = [one for one in of_kind(ax, LineCollection) if len(one.get_segments()) == 10]
    drawn = np.array(lines.get_segments())
    assert np.allclose(drawn[:, 0], np.column_stack((curve.x, curve.low)))
    assert np.allclose(drawn[:, 1], np.column_stack((curve.x, curve.high)))
    assert f"ECE {cb.estimate('ece', *FLARES, **options).bias_corrected:.3f}" in written(ax)


def counts_in(ax):
    """The numbers of rows written in a binned diagram, from left to right, as numbers."""
    found = [one for one in ax.texts if re.fullmatch(r"[0-9.]+[kM]?", one.get_text())]
    units = {"k": 1e3, "M": 1e6}
    return found, [float(t.get_text().rstrip("kM")) * units.get(t.get_text()[-1], 1) for t in found]


def u_shaped(n):
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 0.3, n)
    return (rng.random(n) < p).astype(float), p


@pytest.mark.parametrize("n_bins", [10, 15, 20, 30])
@pytest.mark.parametrize("options", [{}, {"deviation": True}, {"margin": False}])
def test_every_bin_has_its_count_the_first_and_the_last_too(n_bins, options):
    y, p = u_shaped(20_000)
    ax = reliability(y, p, method="binned", n_bins=n_bins, note=False, **options)
    words, counts = counts_in(ax)
    # A count of thousands is rounded to two figures.
    assert counts == pytest.approx(cb.bin_table(y, p, n_bins=n_bins).n, rel=0.05)
    ax.figure.draw_without_rendering()
    boxes = [one.get_window_extent() for one in words]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    # Nor are they hidden by points.
    (line,) = [one for one in ax.lines if one.get_marker() == "o"]
    at = ax.transData.transform(np.column_stack(line.get_data()))
    radius = line.get_markersize() / 2 * ax.figure.dpi / 72
    for box in boxes:
        away = np.maximum(np.maximum(box.min - at, at - box.max), 0)
        assert np.linalg.norm(away, axis=1).min() > radius


def test_bins_too_narrow_for_their_counts_are_told_in_words():
    y, p = u_shaped(20_000)
    ax = reliability(y, p, method="binned", strategy="quantile")
    assert "1.3k rows per bin" in written(ax)
    assert not counts_in(ax)[0]
    ax = reliability(y, p, method="binned", n_bins=100)
    n = cb.bin_table(y, p, n_bins=100).n
    assert f"{n.min()} to {n.max() / 1000:.2g}k rows per bin" in written(ax)
    assert "per bin" not in written(reliability(y, p, method="binned"))


def test_bars_are_the_darker_the_more_rows_they_hold():
    ax = reliability(*FLARES, method="binned", n_bins=10)
    n = cb.bin_table(*FLARES, n_bins=10).n
    opaque = np.array([bar.get_facecolor()[3] for bar in of_kind(ax, Rectangle)[:10]])
    assert np.array_equal(np.argsort(opaque), np.argsort(n))
    assert opaque.max() > 2 * opaque.min()
    # Numbers are still read on the darkest.
    grey = 1 - opaque.max() * (1 - np.array(of_kind(ax, Rectangle)[np.argmax(n)].get_facecolor()))
    words = next(text for text in ax.texts if text.get_text() == str(n.max()))
    assert contrast(grey[:3], to_rgb(words.get_color())) > 3


def contrast(one, other):
    """The ratio of luminances by which a screen's colours are told apart."""
    linear = np.array([one, other]) ** 2.2 @ [0.2126, 0.7152, 0.0722] + 0.05
    return linear.max() / linear.min()


def test_a_bin_table_is_drawn_as_it_is():
    table = cb.bin_table(*FLARES, n_bins=5)
    ax = reliability(table)
    bars = of_kind(ax, Rectangle)[:5]
    assert np.allclose([bar.get_height() for bar in bars], table.mean_true)


def test_an_isotonic_curve_keeps_its_corners():
    curve = cb.reliability_curve(*FLARES, method="isotonic", band=None)
    ax = reliability(*FLARES, method="isotonic", band=None)
    line = max(ax.lines, key=lambda one: len(one.get_xdata()))
    assert len(line.get_xdata()) < len(curve.x)
    assert np.allclose(np.interp(curve.x, line.get_xdata(), line.get_ydata()), curve.y)
    split = cb.score_decomposition(*FLARES)
    assert f"miscalibration {split.miscalibration:.3g}" in written(ax)


def test_deviations_are_less_the_diagonal():
    ax = reliability(SMOOTH, deviation=True)
    (ribbon,) = ribbons(ax)
    points = np.array([segment[0] for segment in ribbon.get_segments()])
    assert np.allclose(points[:, 1], (SMOOTH.y - SMOOTH.x)[:-1])
    low, high = ax.spines["left"].get_bounds()
    assert -low == high > np.nanmax(np.abs(SMOOTH.low - SMOOTH.x))


def test_a_local_calibration_error_is_a_deviation_already():
    local = cb.local_calibration_error(*FLARES, band=None)
    ax = reliability(local)
    (ribbon,) = ribbons(ax)
    assert np.allclose([segment[0][1] for segment in ribbon.get_segments()], local.y[:-1])
    assert ax.get_ylabel() == "observed − predicted"


def test_consistency_bands_are_grey_and_say_so():
    ax = reliability(*FLARES, band="consistency")
    (area,) = [one for one in ax.collections if one.get_zorder() == 1.5]
    red, green, blue = area.get_facecolor()[0, :3]
    assert red == green == blue
    assert "grey: 95% simultaneous consistency band" in written(ax)
    ax = reliability(*FLARES, method="binned", band="consistency", n_bins=10)
    assert "grey: 95% simultaneous consistency intervals" in written(ax)


def test_what_every_band_says_of_itself():
    def said(**options):
        return written(reliability(*FLARES, n_resamples=39, **options))

    assert "95% simultaneous intervals" in said(method="binned", simultaneous=True)
    assert "grey: 95% simultaneous consistency band" in said(band="consistency", simultaneous=True)


def test_predictions_that_are_all_alike():
    low, high = reliability([0, 1] * 50_000, [0.5] * 100_000).get_xlim()
    assert 0.01 < high - low < 0.1


def test_the_whole_of_the_scores_is_shown():
    ax = reliability(*FLARES)
    assert ax.get_xlim() == (0, 1)
    assert ax.get_ylim()[1] == 1
    assert ax.get_aspect() == 1


def test_scores_in_a_narrow_range_fill_the_axes():
    rng = np.random.default_rng(0)
    p = 0.97 + 0.03 * rng.random(2000)
    ax = reliability(rng.random(2000) < p, p)
    low, high = ax.get_xlim()
    assert 0.85 < low < 0.97
    assert high == 1
    ups, _ = of_kind(ax, StepPatch)
    inside = np.diff(ups.get_data().edges)[0]
    assert 0.5 < 200 * inside / (high - low) < 2
    assert reliability(rng.random(2000) < p, p, limits=(0, 1)).get_xlim() == (0, 1)


def test_a_curve_of_which_nothing_is_seen_is_left_out():
    curve = cb.reliability_curve([0, 1], [0.3, 0.7], method="density", bandwidth=1e-3, band=None)
    unseen = replace(curve, y=np.full_like(curve.y, np.nan))
    (ribbon,) = of_kind(reliability(unseen, limits=(0, 1), margin=False), LineCollection)
    assert len(ribbon.get_segments()) == 0


def test_curves_end_where_rows_do():
    p = np.repeat([0.1, 0.4, 0.8], 200)
    y = np.tile([0, 1], 300)
    options = {"method": "density", "bandwidth": 0.02, "band": None}
    curve = cb.reliability_curve(y, p, **options)
    (ribbon,) = of_kind(reliability(y, p, **options), LineCollection)
    x = np.array(ribbon.get_segments())[:, :, 0]
    # As far as 200 rows at one score count for as much as one row a bandwidth away.
    reach = 0.02 * np.sqrt(1 + 2 * np.log(200))
    away = np.abs(x[:, :, None] - [0.1, 0.4, 0.8]).min(axis=2)
    assert np.isfinite(curve.y).sum() > len(x)
    assert reach - 0.005 < away.max() <= reach
    assert 0.08 - 1e-9 <= x.min() < x.max() <= 0.82 + 1e-9


def test_a_sketch_draws_the_same_curve():
    ax = reliability(cb.Sketch().update(*FLARES), band=None)
    segments = np.array(ribbons(ax)[0].get_segments())
    # It has other distinct scores, between which ranks are linear.
    known = np.interp(segments[:, 0, 0], SMOOTH.x, SMOOTH.y)
    assert np.allclose(segments[:, 0, 1], known, atol=5e-3)


def test_several_models_are_told_apart():
    days = {name: load_flares(name).y_prob for name in ("DAFFS", "NOAA", "SIDC")}
    ax = reliability(FLARES.y_true, days)
    assert len(ribbons(ax)) == 3
    colors = [tuple(ribbon.get_colors()[0]) for ribbon in ribbons(ax)]
    assert len(set(colors)) == 3
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [name.split(":")[0] for name in names] == list(days)
    heading = ax.get_legend().get_title().get_text()
    assert heading.split("   ") == ["smECE (95% interval)", "95% simultaneous band"]


def test_a_second_call_adds_and_removes_nothing():
    other = load_flares("NOAA").y_prob
    ax = reliability(FLARES.y_true, {"a": FLARES.y_prob})
    before, first = ax.get_children(), ax.get_legend()
    (mine,) = ax.plot([0.2, 0.3], [0.5, 0.6])
    assert reliability(FLARES.y_true, {"b": other}, ax=ax) is ax
    assert {*before, mine} <= set(ax.get_children())
    assert first in notes(ax)
    once = reliability(FLARES.y_true, {"a": FLARES.y_prob, "b": other})
    # Alone a line is thicker than among others.
    for one, two in zip(ribbons(once), ribbons(ax), strict=True):
        assert np.array(one.get_segments()) == nearly(np.array(two.get_segments()))
        assert np.array(one.get_colors()) == nearly(np.array(two.get_colors()))
    assert [words(note).split("\n")[-1][0] for note in notes(ax)] == ["a", "b"]


def test_a_second_call_widens_the_limits():
    low, high = FLARES.y_prob / 10, 0.9 + FLARES.y_prob / 10
    ax = reliability(FLARES.y_true, low, limits=(0, 0.2), note=False)
    reliability(FLARES.y_true, high, limits=(0.5, 1), note=False, ax=ax)
    assert ax.get_xlim() == ax.spines["left"].get_bounds() == (0.5, 1)
    reliability(FLARES.y_true, low, note=False, ax=ax)
    assert ax.get_xlim() == (0, 1)
    labels = [label.get_text() for label in ax.get_yticklabels(minor=True)]
    assert labels == ["outcome 0", "outcome 1"]
    bottom, top = ax.get_ylim()
    places = (np.array(ax.get_yticks(minor=True)) - bottom) / (top - bottom)
    assert places == pytest.approx([0.04, 0.11])


def test_outcomes_of_a_second_call_are_outlines():
    ax = reliability(*FLARES)
    reliability(FLARES.y_true, load_flares("NOAA").y_prob, ax=ax)
    filled = [one.get_fill() for one in of_kind(ax, StepPatch)]
    assert filled == [True, True, False, False]


def test_deviations_and_frequencies_do_not_mix():
    ax = reliability(*FLARES, deviation=True)
    with pytest.raises(cb.CalibrantError, match="deviation must be True on this Axes"):
        reliability(*load_rain(), ax=ax)


def test_keys_lie_on_nothing_and_stay_within_the_figure():
    ax = Figure(figsize=(6.4, 4.8), layout="compressed").add_subplot()
    for name in ("DAFFS", "NOAA"):
        days = {f"forecasts of {name}": load_flares(name).y_prob}
        reliability(FLARES.y_true, days, ax=ax)
    figure = ax.figure
    figure.draw_without_rendering()
    keys = [note.get_window_extent() for note in notes(ax)]
    shapes = [one.get_paths()[0].vertices for one in ax.collections if one.get_zorder() == 1.5]
    shapes += [np.concatenate(one.get_segments()) for one in ribbons(ax)]
    assert len(shapes) == 4
    drawn = ax.transData.transform(np.concatenate(shapes))
    assert not keys[0].overlaps(keys[1])
    for key in keys:
        assert not key.count_contains(drawn)
        assert figure.bbox.contains(key.x0, key.y0)
        assert figure.bbox.contains(key.x1, key.y1)


def test_colors_of_ones_own():
    ax = reliability(FLARES.y_true, {"a": FLARES.y_prob, "b": FLARES.y_prob}, color=["k", "red"])
    assert [tuple(one.get_colors()[0][:3]) for one in ribbons(ax)] == [(0, 0, 0), (1, 0, 0)]
    with pytest.raises(cb.CalibrantError, match="got 3 for 1 models"):
        reliability(*FLARES, color=["k", "r", "b"])


def test_confidences_are_called_so():
    rows = simulate("softmax", 200, rng=0)
    p = np.column_stack((rows.y_prob, (1 - rows.y_prob) / 2, (1 - rows.y_prob) / 2))
    ax = reliability(np.where(rows.y_true, 0, 1), p)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("confidence", "accuracy")
    ax = reliability(np.where(rows.y_true, 0, 1), p, multiclass=0)
    assert ax.get_xlabel() == "predicted probability"


def test_options_without_a_say_are_refused():
    with pytest.raises(cb.CalibrantError, match="a Curve is drawn as it is: leave out n_bins"):
        reliability(SMOOTH, n_bins=10)
    with pytest.raises(cb.CalibrantError, match="a BinTable is drawn as it is: leave out y_prob"):
        reliability(cb.bin_table(*FLARES), FLARES.y_prob)
    with pytest.raises(cb.CalibrantError, match="table goes with a Curve"):
        reliability(*FLARES, table=cb.bin_table(*FLARES))
    with pytest.raises(cb.CalibrantError, match="y_prob must hold at least one model"):
        reliability(FLARES.y_true, {})


def test_a_table_beside_a_curve_says_where_outcomes_lie():
    table = cb.bin_table(*FLARES, n_bins=20)
    ups, _ = of_kind(reliability(SMOOTH, table=table), StepPatch)
    assert np.array_equal(ups.get_data().edges, table.edges)


@pytest.mark.parametrize(
    ("y_true", "y_prob"),
    [([1], [0.5]), ([0, 0], [0.0, 0.0]), ([0, 1], [0.0, 1.0]), ([0.5], [0.5]), ([1] * 9, [1] * 9)],
)
@pytest.mark.parametrize("method", ["smooth", "density", "binned", "isotonic"])
def test_the_least_data_there_can_be(y_true, y_prob, method):
    options = {"bandwidth": 0.1} if method == "density" else {}
    ax = reliability(y_true, y_prob, method=method, **options)
    ax.figure.draw_without_rendering()
    assert ax.collections


@pytest.mark.parametrize(
    "limits", [(2, 3), (0.5, 0.2), (0.3, 0.3), (-1, 0.5), (0, np.nan), "ab", 1]
)
def test_limits_hold_scores(limits):
    with pytest.raises(cb.CalibrantError, match=r"limits must be two scores"):
        reliability(*FLARES, limits=limits)


# Axes of logits, and names at the ends of lines.


def confident():
    rng = np.random.default_rng(4)
    p = 1 / (1 + np.exp(-rng.normal(0, 4, 600)))
    p[:60] = 0
    return (rng.random(600) < 0.1 + 0.8 * p).astype(int), p


def test_axes_of_logits():
    ax = reliability(*confident(), scale="logit")
    assert (ax.get_xscale(), ax.get_yscale()) == ("logit", "logit")
    assert ax.get_xlim() == pytest.approx((0.001, 0.999))
    assert [0.001, 0.5, 0.999] == [t for t in ax.get_xticks() if t in (0.001, 0.5, 0.999)]
    # Tenths of the rows have score 0, and are marked at the edge.
    (marks,) = of_kind(ax, PathCollection)
    assert marks.get_offsets()[0, 0] == pytest.approx(0.001)
    ax.figure.canvas.draw()
    # A line goes on to the edges.
    (line,) = of_kind(ax, LineCollection)
    x = np.array(line.get_segments())[:, :, 0]
    assert x.min() <= 0.001
    assert x.max() >= 0.999


def test_a_sketch_on_axes_of_logits_has_no_strip():
    ax = reliability(cb.Sketch().update(*confident()), scale="logit", limits=(0.01, 0.99))
    assert ax.get_ylim() == pytest.approx((0.01, 0.99))


@pytest.mark.parametrize(
    "options",
    [{"deviation": True}, {"margin": "both"}, {"limits": (0, 1)}],
    ids=lambda options: next(iter(options)),
)
def test_what_axes_of_logits_cannot_show(options):
    with pytest.raises(cb.CalibrantError, match="logit"):
        reliability(*confident(), scale="logit", **options)
    with pytest.raises(cb.CalibrantError, match="scale must be"):
        reliability(*confident(), scale="log")
    ax = reliability(*confident())
    with pytest.raises(cb.CalibrantError, match="scale must be 'probability' on this Axes"):
        reliability(*confident(), scale="logit", ax=ax)


def test_many_names_stand_at_the_ends_of_their_lines():
    y, p = FLARES
    models = {name: p**power for name, power in zip("abcd", (0.5, 1, 1.5, 2), strict=True)}
    ax = reliability(y, models)
    assert ax.get_legend() is None
    names = {text.get_text().split(":")[0]: text for text in ax.texts}
    assert set("abcd") < set(names)
    heights = np.sort([names[name].xyann[1] for name in "abcd"])
    assert np.all(np.diff(heights) > 0.03)
    ends = [names[name].xy for name in "abcd"]
    assert all(x == pytest.approx(1, abs=0.05) for x, _ in ends)


def test_bands_of_several_models_are_lighter():
    alone = reliability(*FLARES).collections
    several = reliability(FLARES.y_true, {"a": FLARES.y_prob, "b": FLARES.y_prob**2}).collections
    of_alone, of_several = (max(c.get_alpha() or 0 for c in found) for found in (alone, several))
    assert of_several < of_alone


def test_long_notes_of_deviations_stay_within_the_figure():
    ax = reliability(*simulate("overconfident", 20_000, rng=0), deviation=True)
    figure = ax.figure
    for dpi in (72, 100, 200):
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        (note,) = notes(ax)
        assert note.get_window_extent().x1 <= figure.bbox.x1


def test_many_models_on_axes_of_logits_are_named():
    rows = simulate("overconfident", 2000, rng=0)
    models = dict.fromkeys("abcd", rows.y_prob)
    ax = reliability(rows.y_true, models, scale="logit")
    ax.figure.draw_without_rendering()
    names = [one for one in ax.texts if one.get_text()[0] in "abcd"]
    assert len(names) == 4
    for one in names:
        assert ax.bbox.y0 <= one.get_window_extent().y0 <= ax.bbox.y1


def test_curves_on_axes_of_logits_end_where_scores_do():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.7, 3000)
    y = (rng.random(3000) < p).astype(float)
    (line,) = of_kind(reliability(y, p, scale="logit"), LineCollection)
    x = np.concatenate(line.get_segments())[:, 0]
    assert p.min() <= x.min()
    assert x.max() <= p.max()


def test_densities_leave_out_intervals_of_few_rows():
    p = np.r_[np.linspace(0.1, 0.2, 500), 0.8, 0.81]
    y = np.arange(502) % 2
    (line,) = of_kind(reliability(y, p, method="density", bandwidth=0.01), LineCollection)
    assert np.concatenate(line.get_segments())[:, 0].max() < 0.3


def test_a_single_score_at_the_edge_has_its_outcomes_below():
    bars = of_kind(reliability(np.arange(500) % 5 < 2, np.full(500, 0.3)), StepPatch)
    assert len(bars) == 2
    for one in bars:
        heights, edges, baseline = one.get_data()
        width = np.diff(edges)[heights != baseline]
        assert width > 0.8 * np.diff(edges).max()
        assert not one.get_clip_on()
