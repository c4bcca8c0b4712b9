"""What a reliability diagram shows: numbers that all who draw it share."""

import numpy as np
import pytest

import calibrant as cb
from calibrant import plot
from calibrant.curves.reliability_view import Window, level_runs, view_of_curve, view_of_rows
from calibrant.data import classes
from calibrant.datasets import load_flares, load_rain
from calibrant.measures.smooth import Residuals
from tests.tolerances import nearly

FLARES = load_flares()


def counted(monkeypatch, where, name):
    """Count the calls of a function."""
    calls, function = [], getattr(where, name)

    def counting(*args, **kwargs):
        calls.append(name)
        return function(*args, **kwargs)

    monkeypatch.setattr(where, name, counting)
    return calls


@pytest.mark.parametrize("method", ["smooth", "binned", "isotonic", "density"])
def test_rows_are_read_and_the_error_is_solved_for_once(monkeypatch, method):
    calls = counted(monkeypatch, classes, "read_sample")
    solved = counted(monkeypatch, Residuals, "fixed_point")
    plot.reliability(*FLARES, method=method)
    assert len(calls) == 1
    assert len(solved) == (method == "smooth")


def test_a_cumulative_plot_reads_its_rows_once(monkeypatch):
    calls = counted(monkeypatch, classes, "read_sample")
    plot.cumulative(*FLARES)
    plot.bins_sweep(*FLARES, n_bins=[5, 10])
    assert len(calls) == 2


@pytest.mark.parametrize("method", ["smooth", "binned", "isotonic"])
def test_rows_and_their_assessment_have_one_view(method):
    own = view_of_rows(*FLARES, {"method": method})
    found = cb.assess(*FLARES).reliability_view(method)
    assert Window.around([own]) == Window.around([found])
    window = Window.around([own])
    for deviation in (False, True):
        one, other = (view.drawn(window, deviation=deviation) for view in (own, found))
        np.testing.assert_array_equal(np.isfinite(one.y), np.isfinite(other.y))
        for name in ("x", "y", "low", "high"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
    assert own.axis_names() == found.axis_names() == ("predicted probability", "observed frequency")
    if method != "isotonic":
        assert own.measured.value == nearly(found.measured.value)


def test_a_curve_is_known_where_rows_count_for_one_row_a_bandwidth_away():
    y, p = np.tile([0, 1], 25), np.repeat([0.2, 0.6], 25)
    options = {"method": "density", "bandwidth": 0.03, "band": None}
    view = view_of_rows(y, p, options, measured=False)
    x, known = view.curve.x, view.known
    kernel = np.exp(-0.5 * ((x[:, None] - p) / 0.03) ** 2).sum(axis=1)
    expected = (kernel >= np.exp(-0.5)) & (x >= 0.17) & (x <= 0.63)
    # But for points at the very edge.
    assert (known != expected).mean() < 0.01
    assert known.sum() > 20
    assert not known[(x > 0.32) & (x < 0.48)].any()


def test_without_rows_all_of_a_curve_is_known():
    curve = cb.reliability_curve(*FLARES, bandwidth=0.02)
    np.testing.assert_array_equal(view_of_curve(curve).known, np.isfinite(curve.y))


@pytest.mark.parametrize(
    ("scores", "most"),
    [
        (np.linspace(0.1, 0.9, 300), 1),
        (np.linspace(0.2, 0.25, 3000), 0.35),
        (np.linspace(0.98, 1, 3000), 0.1),
    ],
)
def test_windows_show_all_scores_and_end_at_round_numbers(scores, most):
    y = (np.arange(len(scores)) * 7919 % 1000) / 1000 < scores
    window = Window.around([view_of_rows(y, scores, {}, measured=False)])
    assert window.low <= scores.min() <= scores.max() <= window.high
    assert window.span <= most
    assert round(window.low, 4) == window.low
    assert window.holds(np.array([window.low, window.high])).all()
    assert not window.holds(np.array([window.low - 0.01, window.high + 0.01])).any()


def test_recalibrated_scores_keep_the_base_rate():
    rain = load_rain()
    for method in ("isotonic", "binned"):
        found = view_of_rows(*rain, {"method": method}, measured=False).recalibrated()
        assert found.fraction.sum() == nearly(1.0)
        assert found.base_rate == nearly(np.mean(rain.y_true))
        assert found.score @ found.fraction == nearly(found.base_rate)


def test_level_runs_are_from_their_first_point_to_their_last():
    y, p = [1, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.5, 0.5, 0.9]
    curve = cb.reliability_curve(y, p, method="isotonic", band=None)
    assert curve.x[level_runs(curve)].tolist() == [[0.1, 0.3]]


def test_density_by_outcome_adds_up():
    view = view_of_rows(*FLARES, {}, measured=False)
    ones, zeros = view.density_by_outcome()
    np.testing.assert_allclose(ones + zeros, view.curve.density, rtol=1e-12)
    x, density = view_of_rows(*FLARES, {"method": "isotonic"}, measured=False).density()
    assert np.dot(np.diff(x), density[1:] + density[:-1]) / 2 == nearly(1.0)
