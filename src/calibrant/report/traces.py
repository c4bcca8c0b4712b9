"""What diagrams are made of: plotly's traces and axes as plain dictionaries.

Colours are named, not given: "--series-1" and its like stand in the page's style sheet, so that one
diagram is right on a light screen, on a dark one and on paper. "--series-1 / 0.2" is the same
colour, four fifths transparent.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.report.models import Model

__all__ = [
    "COLORS",
    "MARGIN",
    "Spec",
    "axis",
    "band",
    "color",
    "dash",
    "figure",
    "guide",
    "hover_texts",
    "line",
    "plain",
    "plotly_text",
    "sticks",
]

Spec = dict[str, Any]

COLORS = 6
_DASHES = ("solid", "dash", "dashdot", "dot")
_BAND = 0.16
MARGIN = {"l": 58, "r": 14, "t": 12, "b": 50}


def color(model: Model, alpha: float | None = None) -> str:
    """Return the colour of a model."""
    name = f"--series-{model.place % COLORS + 1}"
    return name if alpha is None else f"{name} / {alpha}"


def dash(model: Model) -> str:
    """Return the dashes of a model's lines, which tell models apart without colour."""
    return _DASHES[model.place % len(_DASHES)]


def plain(values: FloatArray) -> list[float | None]:
    """Return numbers as JSON knows them."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def plotly_text(text: str) -> str:
    """Escape text from data, which plotly reads for tags; of entities it knows these three."""
    return html.escape(text, quote=False)


def hover_texts(model: Model, said: Iterable[Sequence[str]]) -> list[str]:
    """Return what is said of each point as lines in plotly's markup, after the model's name."""
    head = f"<b>{plotly_text(model.name)}</b><br>" if model.name else ""
    return [head + "<br>".join(map(plotly_text, words)) for words in said]


def line(model: Model, x: FloatArray, y: FloatArray, text: Sequence[str], **more: Any) -> Spec:
    """Return a line of a model, with what is said of each point."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": plain(x),
        "y": plain(y),
        "text": list(text),
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": color(model), "width": 2.2, "dash": dash(model)},
        "meta": {"model": model.place, "told": True},
        **more,
    }


def band(model: Model, x: FloatArray, lower: FloatArray, upper: FloatArray) -> Spec:
    """Return the area between two lines, wherever both are known."""
    known = np.isfinite(lower) & np.isfinite(upper)
    starts = np.flatnonzero(known & ~np.r_[False, known[:-1]])
    ends = np.flatnonzero(known & ~np.r_[known[1:], False]) + 1
    around: list[float | None] = []
    height: list[float | None] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        part = slice(start, end)
        around += [*x[part].tolist(), *x[part][::-1].tolist(), None]
        height += [*lower[part].tolist(), *upper[part][::-1].tolist(), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": around,
        "y": height,
        "fill": "toself",
        "fillcolor": color(model, _BAND),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "meta": {"model": model.place},
    }


def sticks(model: Model, x: FloatArray, lower: FloatArray, upper: FloatArray) -> Spec:
    """Return a vertical line from lower to upper at each x where both are known."""
    known = np.isfinite(lower) & np.isfinite(upper)
    gap = np.full(int(known.sum()), np.nan)
    across = np.column_stack((x[known], x[known], gap)).ravel()
    up = np.column_stack((lower[known], upper[known], gap)).ravel()
    return {
        "type": "scatter",
        "mode": "lines",
        "x": plain(across),
        "y": plain(up),
        "line": {"color": color(model, 0.6), "width": 1.6},
        "hoverinfo": "skip",
        "meta": {"model": model.place},
    }


def guide(x: Sequence[float], y: Sequence[float]) -> Spec:
    """Return the line on which all would lie that is well."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "line": {"color": "--quiet", "width": 1, "dash": "5px,4px"},
        "hoverinfo": "skip",
    }


def axis(title: str, **more: Any) -> Spec:
    """Return an axis with its title."""
    return {
        "title": {"text": title, "standoff": 8},
        "gridcolor": "--grid",
        "linecolor": "--quiet",
        "showline": True,
        "ticks": "outside",
        "tickcolor": "--quiet",
        "ticklen": 4,
        "zeroline": False,
        "exponentformat": "power",
        "automargin": True,
        **more,
    }


def figure(data: list[Spec], layout: Spec, *, height: float = 0.0, pixels: float = 0.0) -> Spec:
    """Return a figure: traces, layout, and the height of its inside.

    The latter is a share of its width, and so many pixels.
    """
    common = {
        "margin": MARGIN,
        "paper_bgcolor": "--paper",
        "plot_bgcolor": "--paper",
        "font": {"color": "--ink"},
        "hoverlabel": {
            "bgcolor": "--panel",
            "bordercolor": "--quiet",
            "font": {"color": "--ink"},
            "align": "left",
        },
        "showlegend": False,
        # What the reader zoomed into stays when colours change.
        "uirevision": "same",
    }
    return {"data": data, "layout": {**common, **layout}, "height": height, "pixels": pixels}
