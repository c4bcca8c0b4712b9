"""The diagrams of a page: plotly's traces, axes and layouts as plain dictionaries.

Colours are named, not given: "--series-1" and its like are defined in the page's style sheet, so
that one diagram is right on a light screen, on a dark one and on paper. "--series-1 / 0.2" is the
same colour, four fifths transparent.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibrant._base import FloatArray
from calibrant.curves.curve import Curve
from calibrant.curves.reliability_view import Window, level_runs
from calibrant.formatting import percent, shortened, significant
from calibrant.inference.estimate import Estimate
from calibrant.measures.cumulative import CumulativeCurve
from calibrant.measures.point_masses import PointMasses
from calibrant.reporting.models import Model

__all__ = [
    "Spec",
    "band",
    "cumulative_figure",
    "drawn",
    "group_figure",
    "plotly_text",
    "reliability_figure",
    "sticks",
]

Spec = dict[str, Any]

COLORS = 6
_DASHES = ("solid", "dash", "dashdot", "dot")
_BAND = 0.16
MARGIN = {"l": 58, "r": 14, "t": 12, "b": 50}

# What is left free at either end of the axes of reliability diagrams, as a fraction of the window.
_FREE = 0.02
_MAIN, _MARGIN = [0.25, 1.0], [0.0, 0.17]
_MAXIMUM_DOT, _MINIMUM_DOT = 15.0, 6.0
# The width of a disc that would hold all rows, the minimum and the maximum, in pixels.
_DISC_OF_ALL, _MINIMUM_DISC, _MAXIMUM_DISC = 32.0, 5.0, 18.5
# The opacity of bars: of one that holds next to no rows, and of the one that holds most.
_FAINT, _STRONG = 0.05, 0.3
# The width of the level runs of an isotonic curve, in pixels.
_LEVEL_WIDTH = 4.5
# plotly's first: circle, square, diamond, cross, x.
_SYMBOLS = 5
# How far the triangle at the origin points to the right, and how far those of all models do.
_TRIANGLE, _TRIANGLES = 0.03, 0.15
_SCORE_TICKS = np.linspace(0, 1, 6)
_END = 0.01
_CUMULATIVE_HEIGHT, _CUMULATIVE_PIXELS = 0.5, 110
# Of the diagram of groups.
_LINE_HEIGHT = 26
_LONGEST_LABEL = 22


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
    """Return the line of perfect calibration."""
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

    The latter is a fraction of its width, and a number of pixels.
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


def reliability_figure(models: Sequence[Model], method: str) -> Spec:
    """Return the diagram of all models that have a curve of this method."""
    models = [model for model in models if method in model.views]
    window = Window.around(model.views[method] for model in models)
    edge = _FREE * window.span
    across = {"range": [window.low - edge, window.high + edge], "anchor": "y2"}
    margin = "density" if method == "smooth" else "rows"
    data = [guide((0, 1), (0, 1))]
    for model in models:
        data += _marks(model, drawn(model, method))
    if method == "binned" and len(models) == 1:
        data.append(_bars(models[0]))
    data += [_margin(model, method, alone=len(models) == 1) for model in models]
    predicted, observed = models[0].views[method].axis_names()
    layout = {
        "xaxis": axis(predicted, **across),
        "yaxis": axis(observed, range=across["range"], domain=_MAIN),
        "yaxis2": axis(margin, domain=_MARGIN, rangemode="tozero", nticks=3, showgrid=False),
        "hovermode": "x" if len(models) == 1 else "closest",
    }
    # The main part is square.
    return figure(data, layout, height=1 / (_MAIN[1] - _MAIN[0]))


def drawn(model: Model, method: str) -> Curve:
    """Return a curve as it is drawn: where it is known, whatever part is shown at first."""
    return model.views[method].drawn(Window(0.0, 1.0))


def point_words(model: Model, curve: Curve) -> list[list[str]]:
    """Return what is said of each point: score, outcome, interval and rows."""
    level = percent(curve.level)
    said = []
    places = zip(curve.x, curve.y, curve.low, curve.high, model.bins_of(curve), strict=True)
    for x, y, lower, upper, k in places:
        words = [f"{model.score} {significant(x)}", f"{model.outcome} {significant(y)}"]
        if np.isfinite(lower) and np.isfinite(upper):
            words.append(f"{level} interval {significant(lower)} to {significant(upper)}")
        said.append([*words, model.in_bin(k)])
    return said


def _marks(model: Model, curve: Curve) -> list[Spec]:
    """Return the marks of a curve, its intervals beneath."""
    text = hover_texts(model, point_words(model, curve))
    binned = curve.method == "binned"
    found = [_dots(model, curve, text) if binned else line(model, curve.x, curve.y, text)]
    if curve.band is not None:
        limits = sticks if binned else band
        found.insert(0, limits(model, curve.x, curve.low, curve.high))
    if curve.method == "isotonic":
        found.append(_level_runs(model, curve))
    masses = model.views[curve.method].marks(Window(0.0, 1.0))
    return found if masses is None else [*found, _point_masses(model, masses)]


def _bars(model: Model) -> Spec:
    """Return a bar to the mean outcome of each bin, the darker the more rows it holds."""
    bins = model.assessment.bins
    opaque = _FAINT + (_STRONG - _FAINT) * np.sqrt(bins.n / bins.n.max())
    return {
        "type": "bar",
        "x": plain((bins.edges[1:] + bins.edges[:-1]) / 2),
        "y": plain(bins.mean_true),
        "width": plain(np.diff(bins.edges)),
        "marker": {
            "color": [color(model, round(alpha, 3)) for alpha in opaque.tolist()],
            "line": {"color": "--paper", "width": 1},
        },
        "hoverinfo": "skip",
        "meta": {"model": model.place},
    }


def _level_runs(model: Model, curve: Curve) -> Spec:
    """Return the level runs of a curve, heavier: scores that it does not distinguish."""
    ends = level_runs(curve)
    gap = np.full((len(ends), 1), np.nan)
    x, y = (np.hstack((values[ends], gap)).ravel() for values in (curve.x, curve.y))
    heavy = {"color": color(model), "width": _LEVEL_WIDTH}
    return line(model, x, y, (), line=heavy, hoverinfo="skip", meta={"model": model.place})


def _point_masses(model: Model, masses: PointMasses) -> Spec:
    """Return a mark at each single score that many rows have, its area proportional to them.

    Circles mark all scores there are; discs mark those that stand out among others.
    """
    columns = (masses.score.tolist(), masses.outcome.tolist(), masses.share.tolist())
    said = [
        [
            f"{model.score} {significant(score)}",
            f"{model.outcome} {significant(outcome)}",
            f"{100 * share:.1f}% of rows",
        ]
        for score, outcome, share in zip(*columns, strict=True)
    ]
    fill, edge = ("--paper", color(model)) if masses.is_all else (color(model), "--paper")
    size = np.clip(_DISC_OF_ALL * np.sqrt(masses.share), _MINIMUM_DISC, _MAXIMUM_DISC)
    marks = {
        "color": fill,
        "size": np.round(size, 2).tolist(),
        "opacity": 1,
        "symbol": model.place % _SYMBOLS,
        "line": {"color": edge, "width": 1.5 if masses.is_all else 1},
    }
    more = {"mode": "markers", "marker": marks, "cliponaxis": False}
    words, meta = hover_texts(model, said), {"model": model.place}
    return line(model, masses.score, masses.outcome, words, meta=meta, **more)


def _dots(model: Model, curve: Curve, text: list[str]) -> Spec:
    """Return one dot per bin, the larger the denser the scores are."""
    size = _MAXIMUM_DOT * np.sqrt(curve.density / curve.density.max())
    dots = {
        "color": color(model),
        "size": np.round(np.maximum(size, _MINIMUM_DOT), 2).tolist(),
        "symbol": model.place % _SYMBOLS,
        "line": {"color": "--paper", "width": 1},
    }
    thin = {"color": color(model, 0.5), "width": 1, "dash": dash(model)}
    return line(model, curve.x, curve.y, text, mode="lines+markers", marker=dots, line=thin)


def _margin(model: Model, method: str, *, alone: bool) -> Spec:
    """Return where the scores lie: their density, or how many rows each bin holds."""
    if method == "smooth":
        x, y = map(plain, model.views[method].density())
        shape: Spec = {"hoverinfo": "skip"}
    else:
        bins = model.assessment.bins
        x, y = bins.edges.tolist(), [*bins.n.tolist(), int(bins.n[-1])]
        text = hover_texts(model, ([model.in_bin(k)] for k in range(len(bins.n))))
        shape = {"text": [*text, text[-1]], "hovertemplate": "%{text}<extra></extra>"}
    step = "linear" if method == "smooth" else "hv"
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "yaxis": "y2",
        "fill": "tozeroy" if alone else "none",
        "fillcolor": color(model, 0.25),
        "line": {"color": color(model), "width": 1, "shape": step, "dash": dash(model)},
        "meta": {"model": model.place},
        **shape,
    }


def cumulative_figure(models: Sequence[Model]) -> Spec:
    """Return the cumulative curves of all models."""
    data = [guide((0, 1), (0, 0))]
    width = min(_TRIANGLE, _TRIANGLES / len(models))
    for model in models:
        curve = model.assessment.cumulative
        if curve.sigma > 0:
            data.append(_triangle(model, curve, width))
        text = hover_texts(model, cumulative_words(model))
        data.append(line(model, curve.fraction, curve.deviation, text))
    layout = {
        "xaxis": axis(
            "fraction of rows, in order of score", range=[-_END, 1 + _END], tickformat=".0%"
        ),
        "yaxis": axis("cumulative deviation"),
        "hovermode": "x" if len(models) == 1 else "closest",
    }
    if len(models) == 1:
        data.append(_extremes(models[0]))
        layout["xaxis2"] = _score_axis(models[0])
        layout["margin"] = {**MARGIN, "t": 50}
    return figure(data, layout, height=_CUMULATIVE_HEIGHT, pixels=_CUMULATIVE_PIXELS)


def cumulative_words(model: Model) -> list[list[str]]:
    """Return what is said of each point: score reached, rows passed, deviation so far."""
    curve = model.assessment.cumulative
    places = zip(curve.score, curve.fraction, curve.deviation, strict=True)
    return [
        [
            f"up to {model.score} {significant(score)}",
            f"{100 * fraction:.1f}% of rows",
            f"deviation {significant(deviation)}",
        ]
        for score, fraction, deviation in places
    ]


def _triangle(model: Model, curve: CumulativeCurve, width: float) -> Spec:
    """Return the triangle at the origin, 2 sigma up and 2 sigma down; others are beside it."""
    reach, left = 2 * curve.sigma, model.place * width
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [left, left, left + width, left],
        "y": [-reach, reach, 0, -reach],
        "fill": "toself",
        "fillcolor": color(model, 0.35),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "meta": {"model": model.place},
    }


def _extremes(model: Model) -> Spec:
    """Return marks at the highest and the lowest point, whose distance is ECCE-R."""
    curve = model.assessment.cumulative
    ends = [int(curve.deviation.argmax()), int(curve.deviation.argmin())]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": curve.fraction[ends].tolist(),
        "y": curve.deviation[ends].tolist(),
        "xaxis": "x2",
        "marker": {"color": "--paper", "size": 8, "line": {"color": color(model), "width": 1.6}},
        "hoverinfo": "skip",
        "cliponaxis": False,
        "meta": {"model": model.place},
    }


def _score_axis(model: Model) -> Spec:
    """Return an axis along the top with the scores that are reached."""
    curve = model.assessment.cumulative
    reached = np.minimum(np.searchsorted(curve.fraction, _SCORE_TICKS), len(curve.score) - 1)
    return axis(
        f"{model.score} reached",
        overlaying="x",
        matches="x",
        side="top",
        showgrid=False,
        tickvals=_SCORE_TICKS.tolist(),
        ticktext=[f"{score:.2g}" for score in curve.score[reached]],
    )


def group_figure(
    labels: Sequence[str],
    errors: Sequence[Estimate],
    found: Sequence[bool],
    said: Sequence[Sequence[str]],
) -> Spec:
    """Return dots with their intervals, one group below the other; filled where it was flagged."""
    across: list[float | None] = []
    down: list[float | None] = []
    for k, error in enumerate(errors):
        across += [error.low, error.high, None]
        down += [k, k, None]
    intervals = {
        "type": "scatter",
        "mode": "lines",
        "x": across,
        "y": down,
        "line": {"color": "--series-1 / 0.6", "width": 1.6},
        "hoverinfo": "skip",
    }
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": [error.value for error in errors],
        "y": list(range(len(errors))),
        "text": ["<br>".join(map(plotly_text, words)) for words in said],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": ["--series-1" if one else "--paper" for one in found],
            "size": 9,
            "line": {"color": "--series-1", "width": 1.6},
        },
        "cliponaxis": False,
        "meta": {"told": True},
    }
    farthest = max(max(error.value, error.high) for error in errors)
    layout = {
        "xaxis": axis("smooth calibration error", range=[0, 1.04 * max(farthest, 0.01)]),
        "yaxis": axis(
            "",
            range=[len(labels) - 0.4, -0.6],
            tickvals=list(range(len(labels))),
            ticktext=[plotly_text(shortened(label, _LONGEST_LABEL)) for label in labels],
            showgrid=False,
        ),
        "hovermode": "closest",
        "margin": {**MARGIN, "l": 20},
    }
    return figure([intervals, dots], layout, pixels=_LINE_HEIGHT * len(labels) + 20)
