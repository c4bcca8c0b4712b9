"""What cannot be drawn is refused in one sentence, whichever the argument."""

import math

import numpy as np
import pytest
from matplotlib.axes import Axes

import calibrant as cb
from calibrant import plot
from calibrant.datasets import load_flares

FLARES = load_flares()
N = len(FLARES.y_true)
SEASON = np.arange(N) // 92 % 4
# Results, so that nothing is measured anew for every value.
CURVE = cb.reliability_curve(*FLARES, band=None)
DRAWN = {
    "reliability": ((CURVE,), ("ax", "note", "margin", "deviation", "limits", "color", "table")),
    "cumulative": ((cb.cumulative_curve(*FLARES),), ("ax", "note", "color")),
    "bins_sweep": ((plot.BinsSweep.of(*FLARES, n_bins=[5, 9]),), ("ax",)),
    "bias_along": (
        (cb.bias_along(*FLARES, SEASON),),
        ("feature", "ax", "note", "deviation", "color"),
    ),
    "assessment": ((cb.assess(*FLARES, n_resamples=39),), ("ax",)),
    "small_multiples": (({"a": CURVE},), ("by", "kind", "n_columns", "figure")),
}
HOSTILE = [
    *(None, True, np.False_, "false", b"x", math.nan, math.inf, 0, -1, 2, 0.5, 10**400, 1j),
    *([], (), {}, {1}, [None], [[1, 2], [3]], (0.1, 0.9), (0.9, 0.1), ("a", "b"), object(), len),
    *(np.ones(3), np.ones((N, 2)), np.ones(3) * 1j, np.array(["a", "b"]), np.array(0.3)),
]


@pytest.mark.parametrize(
    ("name", "argument"), [(name, one) for name, (_, known) in DRAWN.items() for one in known]
)
def test_any_value_of_any_argument_is_drawn_or_refused_in_one_sentence(name, argument):
    given, sentences = DRAWN[name][0], []
    for value in HOSTILE:
        try:
            getattr(plot, name)(*given, **{argument: value})
        except cb.CalibrantError as problem:
            sentences.append(str(problem))
    assert sentences
    assert not any("\n" in sentence or len(sentence) > 300 for sentence in sentences)


@pytest.mark.parametrize("name", ["reliability", "cumulative", "bins_sweep", "assessment"])
def test_an_unknown_option_is_named_with_the_nearest(name):
    with pytest.raises(cb.CalibrantError, match=f"{name} has no option 'n_bin'; there are: "):
        getattr(plot, name)(*FLARES, n_bin=9)
    with pytest.raises(
        cb.CalibrantError, match=f"{name} has no option 'multi_class'.*'multiclass'"
    ):
        getattr(plot, name)(*FLARES, multi_class="confidence")


def test_nearest_options():
    with pytest.raises(cb.CalibrantError, match=r": did you mean 'n_bins'\?$"):
        plot.reliability(*FLARES, n_bin=9)
    with pytest.raises(cb.CalibrantError, match=r"bias_along has no .*: did you mean 'n_bins'\?$"):
        plot.bias_along(*FLARES, SEASON, n_bin=9)
    with pytest.raises(cb.CalibrantError, match=r": did you mean 'n_bins'\?$"):
        plot.small_multiples(*FLARES, by=SEASON, n_bin=9)


@pytest.mark.parametrize("n_bins", [[], (), np.ones(0), 5, np.array(5)])
def test_a_sweep_needs_numbers_of_bins(n_bins):
    with pytest.raises(cb.CalibrantError, match="n_bins must hold numbers of bins; got"):
        plot.bins_sweep(*FLARES, n_bins=n_bins)


def test_panels_by_a_column():
    panels = plot.small_multiples(*FLARES, by=SEASON[:, None], kind="cumulative")
    assert [ax.get_title() for ax in panels] == ["0", "1", "2", "3"]
    assert all(isinstance(ax, Axes) for ax in panels)


@pytest.mark.parametrize(
    ("rows", "by", "sentence"),
    [
        (([], []), [], "y_true must have at least one row"),
        (FLARES, 3, "by must be a list"),
        (FLARES, np.ones((N, 2)), r"by must have shape \(n,\); got \(731, 2\)"),
        ((1, 0.5), SEASON, "y_prob must be a list"),
        ((np.array(1), np.array(0.5)), SEASON, "y_true must have one value per row"),
    ],
)
def test_panels_of_nothing(rows, by, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        plot.small_multiples(*rows, by=by)
