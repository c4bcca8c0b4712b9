"""What a cumulative plot draws is what its results say."""

import numpy as np
import pytest
from matplotlib.patches import Polygon

import calibrant as cb
from calibrant.datasets import load_flares, load_imagenet, load_rain
from calibrant.plot import cumulative
from tests.plot.drawn import notes, words, written
from tests.tolerances import nearly

FLARES = load_flares()
CURVE = cb.cumulative_curve(*FLARES)


def longest(ax):
    return max(ax.lines, key=lambda line: len(line.get_xdata()))


def triangles(ax):
    return [one for one in ax.patches if isinstance(one, Polygon)]


def scores_on_top(ax):
    (top,) = ax.child_axes
    return dict(zip(top.get_xticks(), [x.get_text() for x in top.get_xticklabels()], strict=True))


def test_the_curve_is_drawn_point_by_point():
    line = longest(cumulative(CURVE))
    assert np.array_equal(line.get_xdata(), CURVE.fraction)
    assert np.array_equal(line.get_ydata(), CURVE.deviation)


def test_a_long_curve_keeps_its_range():
    images = load_imagenet()
    line = longest(cumulative(*images))
    curve = cb.cumulative_curve(*images)
    assert len(line.get_xdata()) < 5000 < len(curve.fraction)
    assert np.ptp(line.get_ydata()) == np.ptp(curve.deviation)
    assert line.get_ydata()[-1] == curve.deviation[-1]


def test_the_triangle_is_four_sigma_high():
    ax = cumulative(CURVE)
    (triangle,) = triangles(ax)
    assert np.isclose(np.ptp(triangle.get_xy()[:, 1]), 4 * CURVE.sigma)
    assert triangle.get_xy()[:, 0].min() == 0
    assert "2\\sigma" in written(ax)
    low, high = ax.get_ylim()
    assert low < -2 * CURVE.sigma < 2 * CURVE.sigma < high


def test_scores_stand_where_the_curve_reaches_them():
    for place, score in scores_on_top(cumulative(CURVE)).items():
        below = (FLARES.y_prob < float(score)).mean()
        up_to = (FLARES.y_prob <= float(score)).mean()
        assert below <= place <= up_to or np.isclose(place, below, atol=2 / 731)


def test_few_scores_are_all_written_and_stand_amid_their_rows():
    rain = load_rain()
    for place, score in scores_on_top(cumulative(*rain)).items():
        assert (rain.y_prob < float(score)).mean() < place < (rain.y_prob <= float(score)).mean()


@pytest.mark.parametrize("data", [load_flares, load_rain, load_imagenet])
def test_scores_do_not_run_into_each_other(data):
    places = np.sort(list(scores_on_top(cumulative(*data()))))
    assert np.diff(places).min() > 0.08
    assert len(places) > 3


def test_the_ends_of_the_range_are_marked():
    (marks,) = [line for line in cumulative(CURVE).lines if line.get_marker() == "o"]
    assert sorted(marks.get_ydata()) == [CURVE.deviation.min(), CURVE.deviation.max()]


def test_the_note_is_the_test():
    test = cb.cumulative_test(*FLARES)
    text = written(cumulative(*FLARES)).replace("\N{NO-BREAK SPACE}", " ")
    assert f"ECCE-R {test.statistic:.3g} = {test.normalized:.3g} $\\sigma$" in text
    assert "P = 1.5 × 10⁻⁵" in text
    assert f"{test.p_value:.1e}" == "1.5e-05"
    assert "n = 731" in text


def test_options_go_to_the_test():
    options = {"statistic": "max", "method": "monte_carlo", "n_resamples": 99, "rng": 1}
    test = cb.cumulative_test(*FLARES, **options)
    text = written(cumulative(*FLARES, **options))
    assert f"ECCE-MAD {test.statistic:.3g}" in text
    assert test.is_least
    assert "P ≤ 0.01" in text


def test_options_that_nobody_knows_are_refused():
    for y, note in ((FLARES.y_true, False), (FLARES.y_true / 2, True)):
        with pytest.raises(cb.CalibrantError, match="no option 'n_bins'; there are: statistic"):
            cumulative(y, FLARES.y_prob, note=note, n_bins=5)


def test_p_values_beyond_doubles_are_bounds():
    assert "P < 10⁻³⁰⁰" in written(cumulative(*load_imagenet()))


def test_soft_labels_have_an_interval_and_no_triangle():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = np.clip(p + 0.1 * rng.standard_normal(200), 0, 1)
    ax = cumulative(y, p)
    assert not triangles(ax)
    assert "95% interval" in written(ax)


def test_predictions_without_any_doubt():
    ax = cumulative([0, 1, 1], [0.0, 1.0, 0.0])
    assert not triangles(ax)
    assert list(scores_on_top(ax).values()) == ["0", "1"]


def test_several_models():
    ax = cumulative(FLARES.y_true, {"a": FLARES.y_prob, "b": load_flares("NOAA").y_prob})
    assert not ax.child_axes
    assert len(triangles(ax)) == 2
    names = [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()]
    assert names == ["a", "b"]


def test_a_second_call_adds_and_removes_nothing():
    other = load_flares("NOAA").y_prob
    ax = cumulative(FLARES.y_true, {"a": FLARES.y_prob})
    before, (top,) = ax.get_children(), ax.child_axes
    cumulative(FLARES.y_true, {"b": other}, ax=ax)
    assert set(before) <= set(ax.get_children())
    assert ax.child_axes == [top]
    assert [words(note).split("\n")[0] for note in notes(ax)] == ["a", "b"]
    first, second = (one.get_xy()[:, 0] for one in triangles(ax))
    assert first.max() == nearly(second.min())
    low, high = ax.get_ylim()
    curve = cb.cumulative_curve(FLARES.y_true, other)
    assert low < min(curve.deviation.min(), CURVE.deviation.min())
    assert high > max(curve.deviation.max(), CURVE.deviation.max())
    colors = {line.get_color() for line in ax.lines if len(line.get_xdata()) > 20}
    assert len(colors) == 2


def test_the_triangles_of_models_do_not_lie_on_each_other():
    days = {name: load_flares(name).y_prob for name in ("DAFFS", "NOAA", "SIDC")}
    spans = [one.get_xy()[:, 0] for one in triangles(cumulative(FLARES.y_true, days))]
    assert [span.min() for span in spans[1:]] == nearly([span.max() for span in spans[:-1]])


def test_a_key_that_finds_no_free_corner_makes_room():
    x = np.linspace(0, 1, 500)
    everywhere = cb.CumulativeCurve(x, x, np.sin(40 * x), 0.1)
    without, with_key = cumulative(everywhere), cumulative({"a": everywhere, "b": everywhere})
    assert np.ptp(with_key.get_ylim()) > 1.15 * np.ptp(without.get_ylim())


def test_a_result_is_drawn_as_it_is():
    with pytest.raises(cb.CalibrantError, match="a CumulativeCurve is drawn as it is"):
        cumulative(CURVE, statistic="max")
    group = FLARES.y_prob > 0.3
    curve = cb.subpopulation_curve(*FLARES, group=group, against="calibration")
    assert np.array_equal(longest(cumulative(curve)).get_ydata(), curve.deviation)


def test_names_of_several_calls_do_not_overlap():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=1000)
    ax = None
    for shift in (-0.1, 0.1, -0.2, 0.2):
        y = (rng.random(1000) < p + shift).astype(float)
        ax = cumulative(y, {f"a model with a long name {shift}": p}, ax=ax)
    ax.figure.draw_without_rendering()
    places = [note.get_window_extent() for note in notes(ax)]
    assert len(places) == 4
    for i, place in enumerate(places):
        assert not any(place.overlaps(other) for other in places[:i])
