"""How drawings behave: nothing global changes, nothing is cut off, nothing is loaded early."""

import inspect
import io
import re
import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import calibrant as cb
from calibrant import plot
from calibrant.datasets import load_flares, load_imagenet, load_rain, simulate

FLARES = load_flares()
RNG = np.random.default_rng(0)
SYSTEMS = {name: load_flares(name).y_prob for name in ("DAFFS", "NOAA", "SIDC")}


def narrow():
    p = 0.97 + 0.03 * RNG.random(500)
    return RNG.random(500) < p, p


def three_scores():
    p = RNG.choice([0.1, 0.4, 0.8], 300)
    return RNG.random(300) < p, p


def many_rows():
    sketch = cb.Sketch().update(*load_imagenet())
    for _ in range(11):
        sketch = sketch + sketch
    assert sketch.n > 1e8
    return (sketch,)


def many_models():
    rows = simulate("overconfident", 400, rng=0)
    return rows.y_true, {
        f"a model called {k}": rows.y_prob**k for k in (0.4, 0.6, 0.8, 1, 2, 3, 4, 5, 6)
    }


def soft():
    p = RNG.random(200)
    return np.clip(p + 0.1 * RNG.standard_normal(200), 0, 1), p


INPUTS = {
    "flares": lambda: tuple(FLARES),
    "rain": lambda: tuple(load_rain()),
    "twenty rows": lambda: (FLARES.y_true[:20], FLARES.y_prob[:20]),
    "narrow": narrow,
    "three scores": three_scores,
    "one class": lambda: (np.ones(50), RNG.random(50)),
    "soft": soft,
    "many rows": many_rows,
    "models": lambda: (FLARES.y_true, SYSTEMS),
    "many models": many_models,
}
PICTURES = {
    "smooth": plot.reliability,
    "binned": lambda *rows: plot.reliability(*rows, method="binned"),
    "deviation": lambda *rows: plot.reliability(*rows, deviation=True),
    "cumulative": plot.cumulative,
    "sweep": lambda *rows: plot.bins_sweep(*rows, n_bins=(5, 10, 15, 20)),
    "murphy": lambda *rows: plot.murphy(*rows, n_resamples=39),
    "decision_curve": lambda *rows: plot.decision_curve(*rows),
}


SOME = {
    "binned": ("flares", "narrow", "soft", "models", "many rows"),
    "deviation": ("flares", "narrow"),
    "sweep": ("flares", "many rows", "many models"),
}
PAIRS = [(name, rows) for name in PICTURES for rows in SOME.get(name, INPUTS)]


@pytest.mark.parametrize(("picture", "rows"), PAIRS)
def test_nothing_is_cut_off_and_no_words_overlap(picture, rows):
    ax = PICTURES[picture](*INPUTS[rows]())
    figure = ax.figure
    figure.draw_without_rendering()
    page = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert -0.02 < page.x0 < page.x1 < width + 0.02
    assert -0.02 < page.y0 < page.y1 < height + 0.02
    for axis in (ax.xaxis, ax.yaxis, *(child.xaxis for child in ax.child_axes)):
        labels = [label for label in axis.get_ticklabels() if label.get_text()]
        boxes = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_settings_and_pyplot_are_left_alone():
    settings, figures = mpl.rcParams.copy(), plt.get_fignums()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for draw in (plot.reliability, plot.cumulative, plot.bins_sweep, plot.assessment):
        draw(FLARES.y_true[:50], FLARES.y_prob[:50]).figure.draw_without_rendering()
    plot.small_multiples(FLARES.y_true[:50], {"a": FLARES.y_prob[:50]})
    assert mpl.rcParams == settings
    assert plt.get_fignums() == figures
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_an_axes_in_is_the_axes_out():
    figure = mpl.figure.Figure()
    axes = figure.subplots(2, 2).flat
    for draw, ax in zip(
        (plot.reliability, plot.cumulative, plot.bins_sweep, plot.assessment), axes, strict=True
    ):
        assert draw(FLARES.y_true[:100], FLARES.y_prob[:100], ax=ax) is ax
    assert len(figure.axes) == 4


def test_same_call_same_picture():
    def picture():
        buffer = io.BytesIO()
        ax = plot.reliability(*FLARES)
        ax.figure.savefig(buffer, format="svg", metadata={"Date": None})
        return buffer.getvalue()

    with mpl.rc_context({"svg.hashsalt": "same"}):
        assert picture() == picture()


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_every_form_can_be_written(form, tmp_path):
    path = tmp_path / f"picture.{form}"
    plot.cumulative(*load_imagenet()).figure.savefig(path)
    assert 5_000 < path.stat().st_size < 200_000


def test_notebooks_show_what_is_returned():
    data, size = plot.reliability(*FLARES)._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert size == {"width": 378, "height": 423}
    data, _ = plot.small_multiples(FLARES.y_true, SYSTEMS)._repr_png_()
    assert data.startswith(b"\x89PNG")


def test_larger_letters_make_a_larger_figure():
    with mpl.rc_context({"font.size": 20}):
        large = plot.reliability(*FLARES).figure.get_size_inches()
    assert np.allclose(large, 2 * plot.reliability(*FLARES).figure.get_size_inches())


def test_on_black_colours_are_light():
    with mpl.rc_context({"axes.facecolor": "black"}):
        ax = plot.cumulative(*FLARES)
    line = max(ax.lines, key=lambda one: len(one.get_xdata()))
    assert sum(mpl.colors.to_rgb(line.get_color())) > 1.5


def test_colours_differ_in_grey():
    legend = plot.reliability(FLARES.y_true, SYSTEMS).get_legend()
    colors = [mpl.colors.to_rgb(line.get_color()) for line in legend.get_lines()]
    grey = np.sort(np.array(colors) @ [0.2126, 0.7152, 0.0722])
    assert np.diff(grey).min() > 0.1


def test_matplotlib_is_loaded_when_it_is_needed():
    code = """
import sys, calibrant.plot
print("matplotlib" in sys.modules)
calibrant.plot.reliability
print("matplotlib" in sys.modules, "matplotlib.pyplot" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True", "False"]


def test_names():
    imports = re.findall(r"from calibrant.plot.(\w+) import (\w+) as", inspect.getsource(plot))
    assert {name: module for module, name in imports} == plot._HOMES
    assert dir(plot) == sorted(plot.__all__)
    assert all(getattr(plot, name).__doc__ for name in plot.__all__)
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        plot.pie  # noqa: B018
