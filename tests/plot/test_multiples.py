"""Small multiples: a panel each, with the same limits."""

import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import calibrant as cb
from calibrant.datasets import load_flares
from calibrant.plot import small_multiples
from tests.plot.drawn import written
from tests.tolerances import nearly

FLARES = load_flares()
SEASON = np.arange(731) // 183


def points(ax):
    (ribbon, *_) = [one for one in ax.get_children() if isinstance(one, LineCollection)]
    return np.array([segment[0] for segment in ribbon.get_segments()])


def assert_drawn(curve, ax):
    x, y = points(ax).T
    at = np.abs(curve.x[:, None] - x).argmin(axis=0)
    assert x == nearly(curve.x[at])
    assert y == nearly(curve.y[at])


def test_a_panel_a_group():
    panels = small_multiples(*FLARES, by=SEASON, band=None)
    assert [ax.get_title() for ax in panels] == ["0", "1", "2", "3"]
    for season, ax in enumerate(panels):
        rows = SEASON == season
        curve = cb.reliability_curve(FLARES.y_true[rows], FLARES.y_prob[rows], band=None)
        assert_drawn(curve, ax)


def test_rows_without_a_group_and_groups_of_two_columns():
    west = np.where(SEASON % 2, "west", None)
    (first, none) = small_multiples(*FLARES, by=west.tolist(), kind="cumulative")
    assert (first.get_title(), none.get_title()) == ("west", "(none)")
    crossed = {"season": SEASON // 2, "side": SEASON % 2}
    panels = small_multiples(*FLARES, by=crossed, kind="cumulative")
    assert [ax.get_title() for ax in panels] == ["0, 0", "0, 1", "1, 0", "1, 1"]


def test_weights_go_with_their_rows():
    weight = np.where(SEASON == 1, 2.0, 0.5 + FLARES.y_prob)
    panels = small_multiples(*FLARES, by=SEASON, sample_weight=weight, band=None)
    rows = SEASON == 3
    curve = cb.reliability_curve(
        FLARES.y_true[rows], FLARES.y_prob[rows], sample_weight=weight[rows], band=None
    )
    assert_drawn(curve, panels[3])


def test_clusters_go_with_their_rows():
    week, rows = np.arange(731) // 7, SEASON == 3
    panels = small_multiples(*FLARES, by=SEASON, clusters=week, band=None)
    found = cb.estimate("smooth_ece", FLARES.y_true[rows], FLARES.y_prob[rows], clusters=week[rows])
    low, high = re.search(r"([.\d]+) to ([.\d]+)", written(panels[3])).groups()
    assert (float(low), float(high)) == pytest.approx((found.low, found.high), abs=6e-4)


def test_a_panel_a_class():
    p = np.column_stack((FLARES.y_prob, 0.7 * (1 - FLARES.y_prob), 0.3 * (1 - FLARES.y_prob)))
    y = np.where(FLARES.y_true, "flare", "quiet")
    labels = ["flare", "quiet", "else"]
    panels = small_multiples(y, p, multiclass="classwise", labels=labels, band=None)
    assert [ax.get_title() for ax in panels] == labels
    curve = cb.reliability_curve(y == "quiet", p[:, 1], band=None)
    assert_drawn(curve, panels[1])


def test_limits_are_shared():
    panels = small_multiples(
        FLARES.y_true, {"a": FLARES.y_prob, "b": FLARES.y_prob**2}, kind="cumulative"
    )
    assert panels[0].get_ylim() == panels[1].get_ylim()
    rng = np.random.default_rng(0)
    p = np.where(SEASON > 1, 0.05 * rng.random(731), 0.2 * rng.random(731))
    panels = small_multiples(rng.random(731) < p, p, by=SEASON > 1)
    assert panels[0].get_xlim() == panels[1].get_xlim()


def test_notes_are_short():
    (ax, *_) = small_multiples(*FLARES, by=SEASON)
    assert written(ax).startswith("smECE 0.")
    assert "n = 183" in written(ax)
    assert "band" not in written(ax)
    assert ax.figure.get_supxlabel() == "95% simultaneous band"
    (ax, *_) = small_multiples(*FLARES, by=SEASON, method="isotonic", n_resamples=39)
    assert written(ax).startswith("miscalibration 0.")


def test_long_names_stay_above_their_panels():
    names = np.array(["The northern region, with all of the islands", "x" * 80])[SEASON // 2]
    panels = small_multiples(*FLARES, by=names, band=None)
    panels.figure.draw_without_rendering()
    left, right = (ax.title.get_window_extent() for ax in panels)
    assert left.x1 < right.x0
    assert panels[0].get_title().startswith("The northern")
    assert panels[0].get_title().endswith("islands")


def test_words_stand_outside_only():
    panels = small_multiples(*FLARES, by=SEASON, n_columns=2)
    assert [bool(ax.get_xlabel()) for ax in panels] == [False, False, True, True]
    assert [bool(ax.get_ylabel()) for ax in panels] == [True, False, True, False]


def test_results_and_a_figure_of_ones_own():
    figure = Figure()
    curves = {"smooth": cb.reliability_curve(*FLARES)}
    panels = small_multiples(curves, figure=figure)
    assert panels.figure is figure
    assert list(figure.axes) == list(panels)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "needs several panels"),
        ({"by": [1, 2]}, "by must have one label per row; got 2 labels for 731 rows"),
        ({"by": ["a", 1, None] * 243 + [1, 2]}, "by must hold labels of one type"),
        ({"multiclass": "classwise"}, "needs one column of probabilities per class"),
        ({"by": SEASON, "kind": "pie"}, "kind must be one of 'reliability', 'cumulative'"),
        ({"by": SEASON, "n_columns": 0}, "n_columns must be a whole number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        small_multiples(*FLARES, **options)


def test_the_lowest_panel_of_each_column_has_numbers():
    panels = small_multiples(*FLARES, by=np.arange(731) % 5, n_columns=3)
    labelled = [bool(ax.get_xlabel()) for ax in panels]
    assert labelled == [False, False, True, True, True]
    assert panels[2].xaxis.get_tick_params()["labelbottom"]
    assert not panels[1].xaxis.get_tick_params()["labelbottom"]


def test_long_words_are_divided_where_their_parts_join():
    names = ["HistGradientBoostingClassifier", "a_model_with_a_very_long_name"]
    panels = small_multiples(FLARES.y_true, dict.fromkeys(names, FLARES.y_prob))
    titles = [ax.get_title() for ax in panels]
    assert titles[0] == "HistGradientBoosting\nClassifier"
    assert "_\n" in titles[1]
