"""A few pictures stay what they were when somebody last looked at them.

Letters and layout differ a little between versions of matplotlib, so pictures are compared under
the version that drew them, and that is to be the pinned one. With CALIBRANT_REDRAW=1 they are drawn
anew: look at them before they are kept.
"""

import os
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread, imsave
from PIL import Image

import calibrant as cb
from calibrant import plot
from calibrant.datasets import load_flares, load_imagenet, load_rain

GOLDEN = Path(__file__).parent / "golden"
DPI = 60
DAYS = np.arange("2016-01-01", "2018-01-01", dtype="datetime64[D]")


def drawn_by(path):
    """Return the series of matplotlib that drew a picture, such as "3.11"."""
    with Image.open(path) as picture:
        return re.search(r"\d+\.\d+", picture.info["Software"])[0]


def networks():
    return {name: cb.Sketch().update(*load_imagenet(name)) for name in ("resnet34", "densenet161")}


def masses():
    """Return rows of which three tenths have score 0, a tenth 1, and the rest lie between."""
    p = np.r_[np.zeros(300), np.linspace(0.05, 0.95, 600), np.ones(100)]
    return (np.arange(1000) * 7919 % 1000 < 1000 * (0.1 + 0.7 * p)).astype(float), p


def added():
    """Return one model drawn onto the diagram of another."""
    days = load_flares()
    ax = plot.reliability(days.y_true, {"DAFFS": days.y_prob})
    return plot.reliability(days.y_true, {"NOAA": load_flares("NOAA").y_prob}, ax=ax)


PICTURES = {
    "smooth": lambda: plot.reliability(*load_flares()),
    "few_scores": lambda: plot.reliability(*load_rain()),
    "binned": lambda: plot.reliability(*load_flares(), method="binned", n_bins=10),
    "isotonic": lambda: plot.reliability(*load_flares(), method="isotonic"),
    "masses": lambda: plot.reliability(*masses()),
    "recalibrated": lambda: plot.reliability(*load_flares(), method="isotonic", margin="both"),
    "models": lambda: plot.reliability(networks()),
    "added": added,
    "cumulative": lambda: plot.cumulative(*load_flares()),
    "bias_along": lambda: plot.bias_along(*load_flares(), DAYS),
    "sweep": lambda: plot.bins_sweep(*load_flares(), n_bins=range(2, 52, 2)),
    "murphy": lambda: plot.murphy(*load_flares(), n_resamples=100),
    "decision_curve": lambda: plot.decision_curve(*load_flares(), threshold=0.25),
}


def test_the_pinned_matplotlib_drew_them():
    pins = (Path(__file__).parents[2] / "constraints.txt").read_text()
    pinned = re.search(r"^matplotlib==(\d+\.\d+)", pins, re.MULTILINE)[1]
    assert {path.stem for path in GOLDEN.glob("*.png")} == set(PICTURES)
    assert {drawn_by(path) for path in GOLDEN.glob("*.png")} == {pinned}


@pytest.mark.parametrize("name", PICTURES)
def test_picture(name):
    path, redraw = GOLDEN / f"{name}.png", bool(os.environ.get("CALIBRANT_REDRAW"))
    if not redraw and not mpl.__version__.startswith(drawn_by(path)):
        pytest.skip(f"drawn by matplotlib {drawn_by(path)}; this is {mpl.__version__}")
    with mpl.rc_context(mpl.rcParamsDefault | {"backend": "agg"}):
        figure = PICTURES[name]().figure
        figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        drawn = np.asarray(canvas.buffer_rgba())[:, :, :3] / 255
    if redraw:
        imsave(path, drawn, pil_kwargs={"optimize": True})
    golden = imread(path)[:, :, :3]
    assert drawn.shape == golden.shape
    away = np.abs(drawn - golden).max(axis=2)
    assert (away > 0.25).mean() < 0.003
    assert away.mean() < 0.003
