"""What is drawn along a feature is what the table says."""

import matplotlib as mpl
import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantError
from calibrant.datasets import load_flares
from calibrant.plot import bias_along
from tests.plot.drawn import notes, words, written
from tests.tolerances import nearly

FLARES = load_flares()
DAYS = np.arange("2016-01-01", "2018-01-01", dtype="datetime64[D]")
MONTH = DAYS.astype("datetime64[M]").astype(int) % 12 + 1
SYSTEMS = {name: load_flares(name).y_prob for name in ("DAFFS", "NOAA")}
RNG = np.random.default_rng(0)
SITES = RNG.choice(["north", "south", None], FLARES.n).tolist()


def points(ax):
    """Return the marks of each series, as x and y."""
    marked = [line for line in ax.lines if line.get_marker() not in ("None", None)]
    return [(line.get_xdata(), line.get_ydata()) for line in marked]


def intervals(ax):
    """Return the two ends of each interval of each series."""
    return [np.array(lines.get_segments()) for lines in ax.collections]


def counts(ax):
    return [text.get_text() for text in ax.texts if text.get_text().isdigit()]


def test_numbers_are_at_their_means():
    ax = bias_along(*FLARES, MONTH)
    table = cb.bias_along(*FLARES, MONTH, simultaneous=True)
    ((x, y),) = points(ax)
    assert np.array_equal(x, np.arange(1, 13))
    assert np.array_equal(y, table.gap)
    (ends,) = intervals(ax)
    assert np.array_equal(ends[:, 0, 1], table.low)
    assert np.array_equal(ends[:, 1, 1], table.high)
    assert np.array_equal(ends[:, 0, 0], x)
    assert counts(ax) == [str(n) for n in table.n]
    assert "n = 731   95% simultaneous intervals" in written(ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature", "observed − predicted")


def test_dates_are_at_their_means():
    ax = bias_along(*FLARES, DAYS, simultaneous=False)
    table = cb.bias_along(*FLARES, DAYS)
    ((x, y),) = points(ax)
    assert np.allclose(x, mpl.dates.date2num(table.mean))
    assert np.array_equal(y, table.gap)
    assert ax.get_xlabel() == "date"
    assert "n = 731   95% pointwise intervals" in written(ax)


def test_names_go_from_top_to_bottom_and_the_missing_apart():
    ax = bias_along(*FLARES, SITES)
    table = cb.bias_along(*FLARES, SITES, simultaneous=True)
    ((x, y),) = points(ax)
    assert np.array_equal(x, table.gap)
    assert y[1] - y[0] == 1
    assert y[2] - y[1] > 1
    top, bottom = ax.get_ylim()[::-1]
    assert top < y[0] < y[2] < bottom
    assert [label.get_text() for label in ax.get_yticklabels()] == ["north", "south"]
    assert [label.get_text() for label in ax.get_yticklabels(minor=True)] == ["missing"]
    assert np.array_equal(intervals(ax)[0][:, :, 0], np.column_stack((table.low, table.high)))
    assert ax.get_xlabel() == "observed − predicted"


def test_missing_numbers_are_apart_and_not_joined():
    month = np.where(RNG.random(FLARES.n) < 0.1, np.nan, MONTH)
    ax = bias_along(*FLARES, month)
    ((x, _),) = points(ax)
    assert x[-1] > 12.9
    assert max(tick for tick in ax.get_xticks()) <= 12
    joining = [line for line in ax.lines if line.get_marker() in ("None", None)]
    assert max(line.get_xdata()[-1] for line in joining if len(line.get_xdata()) > 2) == 12
    assert [label.get_text() for label in ax.get_xticklabels(minor=True)] == ["missing"]


def test_outcomes_and_predictions():
    ax = bias_along(*FLARES, MONTH, deviation=False)
    table = cb.bias_along(*FLARES, MONTH, simultaneous=True)
    (_, observed), (_, predicted) = points(ax)
    assert np.array_equal(observed, table.mean_true)
    assert np.array_equal(predicted, table.mean_pred)
    (ends,) = intervals(ax)
    assert np.allclose(
        ends[:, :, 1], np.column_stack((table.low, table.high)) + table.mean_pred[:, None]
    )
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["observed", "predicted"]
    with pytest.raises(
        cb.CalibrantError, match="deviation must be True for several models; got False for 2"
    ):
        bias_along(FLARES.y_true, SYSTEMS, MONTH, deviation=False)


def test_the_level_of_no_bias_is_always_in_sight():
    ax = bias_along(np.ones(90), np.full(90, 0.2), np.arange(90) % 3)
    low, high = ax.get_ylim()
    assert low < 0 < high


def test_several_models_side_by_side():
    ax = bias_along(FLARES.y_true, SYSTEMS, MONTH)
    drawn = points(ax)
    for (_, y), p in zip(drawn, SYSTEMS.values(), strict=True):
        assert y == nearly(cb.bias_along(FLARES.y_true, p, MONTH).gap)
    marks = [line for line in ax.lines if line.get_marker() not in ("None", None)]
    assert len({(line.get_marker(), line.get_color()) for line in marks}) == 2
    places = [line.get_transform().transform((6, 0))[0] for line in marks]
    assert places[1] - places[0] == pytest.approx(6 * ax.figure.dpi / 72)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(SYSTEMS)


def test_a_second_call_adds_and_removes_nothing():
    ax = bias_along(FLARES.y_true, {"DAFFS": SYSTEMS["DAFFS"]}, MONTH)
    before = ax.get_children()
    bias_along(FLARES.y_true, {"NOAA": SYSTEMS["NOAA"]}, MONTH, ax=ax)
    assert set(before) <= set(ax.get_children())
    once = bias_along(FLARES.y_true, SYSTEMS, MONTH)
    for one, other in zip(points(ax), points(once), strict=True):
        assert np.array(one) == nearly(np.array(other))
    assert [words(note).split("\n")[-1] for note in notes(ax)] == list(SYSTEMS)
    # All of both is shown, the label of the counts beside them.
    ends = np.concatenate(intervals(ax))[:, :, 1]
    low, high = ax.spines["left"].get_bounds()
    assert low < ends.min() < ends.max() < high
    bottom, top = ax.get_ylim()
    assert ax.get_yticks(minor=True) == pytest.approx([bottom + 0.05 * (top - bottom)])
    with pytest.raises(cb.CalibrantError, match="of one kind; got names and numbers"):
        bias_along(*FLARES, SITES, ax=ax)


def test_missing_values_have_one_place():
    ax = bias_along([0, 1, 1], [0.2, 0.6, 0.7], ["a", "b", None])
    bias_along([0, 1, 1], [0.2, 0.6, 0.7], ["b", "a", None], ax=ax)
    with pytest.raises(cb.CalibrantError, match="new values would overlap the missing ones"):
        bias_along([0, 1, 1], [0.2, 0.6, 0.7], ["a", "c", None], ax=ax)


def test_models_of_different_names():
    one = cb.bias_along([0, 1, 1], [0.2, 0.6, 0.7], ["a", "b", "c"])
    other = cb.bias_along([0, 1], [0.2, 0.6], ["b", "d"])
    ax = bias_along({"one": one, "other": other}, color=["red", "blue"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c", "d"]
    assert [y.tolist() for _, y in points(ax)] == [[0, 1, 2], [1, 3]]
    # They do not share their rows, so no number of rows is written.
    assert not counts(ax)


def test_a_table_is_drawn_as_it_is():
    pl = pytest.importorskip("polars")
    table = cb.bias_along(*FLARES, pl.Series("month", MONTH), level=0.9)
    ax = bias_along(table, color="black", note="from a table")
    assert ax.get_xlabel() == "month"
    assert "from a table" in written(ax)
    for given in ({"level": 0.9}, {"y_prob": FLARES.y_prob}, {"feature": MONTH}):
        with pytest.raises(cb.CalibrantError, match="a BiasTable is drawn as it is"):
            bias_along(table, **given)


def test_no_words():
    assert "n =" not in written(bias_along(*FLARES, MONTH, note=False))


def long_names(n):
    names = [f"The department of affairs of the {k}th kind, and of many others" for k in range(25)]
    return np.array(names)[RNG.integers(0, 25, n)]


FEATURES = {
    "month": MONTH,
    "dates": DAYS,
    "dates, some missing": np.where(MONTH < 3, np.datetime64("NaT"), DAYS),
    "skewed": np.where(MONTH < 3, np.nan, RNG.lognormal(0, 2, FLARES.n)),
    "three names": SITES,
    "long names": long_names(FLARES.n),
    "one value": np.ones(FLARES.n),
    "nothing": [None] * FLARES.n,
    "truth": MONTH > 6,
}


@pytest.mark.parametrize("deviation", [True, False])
@pytest.mark.parametrize("n", [20, FLARES.n])
@pytest.mark.parametrize("name", FEATURES)
def test_nothing_is_cut_off_and_no_words_overlap(name, n, deviation):
    rows = (FLARES.y_true[-n:], FLARES.y_prob[-n:], FEATURES[name][-n:])
    figure = bias_along(*rows, deviation=deviation).figure
    figure.draw_without_rendering()
    page, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert -0.02 < page.x0 < page.x1 < width + 0.02
    assert -0.02 < page.y0 < page.y1 < height + 0.02
    (ax,) = figure.axes
    for axis in (ax.xaxis, ax.yaxis):
        labels = [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)]
        boxes = [label.get_window_extent() for label in labels if label.get_text()]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_an_axes_in_is_the_axes_out():
    ax = mpl.figure.Figure().subplots()
    assert bias_along(*FLARES, MONTH, ax=ax) is ax


def test_what_is_refused_leaves_the_picture_as_it_was():
    y, p, names = [0, 1] * 20, [0.5] * 40, ["a", "b"] * 20
    ax = bias_along(y, p, names)
    before = ax.get_children()
    with pytest.raises(CalibrantError, match="one kind"):
        bias_along(y, p, list(range(40)), ax=ax)
    with pytest.raises(CalibrantError, match="deviation must be True for several models"):
        bias_along(y, p, names, deviation=False, ax=ax)
    assert ax.get_children() == before


def test_a_single_date():
    day = np.array(["2020-01-01", "NaT"] * 20, dtype="datetime64[D]")
    ax = bias_along([0, 1] * 20, [0.5] * 40, day)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["2020-01-01"]


def test_a_table_knows_that_it_is_about_confidence():
    prob = RNG.dirichlet([1, 1, 1], 60)
    table = cb.bias_along(RNG.integers(3, size=60), prob, [0, 1] * 30)
    assert bias_along(table).get_ylabel() == "accuracy − confidence"
