"""Reliability diagrams: the outcome to expect at each score, above where the scores lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrant.curves.reliability_view import Window, near_scores
from calibrant.report.models import Model
from calibrant.report.numbers import figures, percent
from calibrant.report.traces import (
    Spec,
    axis,
    band,
    color,
    dash,
    figure,
    guide,
    hover_texts,
    line,
    plain,
    sticks,
)
from calibrant.results.curves import Curve

__all__ = ["drawn", "point_words", "reliability_figure"]

# What is left free at either end of the axes, as a fraction of the window.
_EDGE = 0.02
_MAIN, _MARGIN = [0.25, 1.0], [0.0, 0.17]
_LARGEST_DOT, _LEAST_DOT = 15.0, 6.0
# The width of a disc that would hold all rows, the least and the largest there is, in pixels.
_DISC_OF_ALL, _LEAST_DISC, _LARGEST_DISC = 32.0, 5.0, 18.5
# How opaque bars are: one that holds next to no rows, and the one that holds most.
_FAINT, _STRONG = 0.05, 0.3
# How wide the level stretches of an isotonic curve are, in pixels.
_LEVEL_WIDTH = 4.5
# plotly's first: circle, square, diamond, cross, x.
_SYMBOLS = 5


def reliability_figure(models: Sequence[Model], method: str) -> Spec:
    """Return the diagram of all models that have a curve of this method."""
    models = [model for model in models if method in model.curves]
    window = Window.around((model.curves[method], model.scores) for model in models)
    edge = _EDGE * window.span
    across = {"range": [window.low - edge, window.high + edge], "anchor": "y2"}
    margin = "density" if method == "smooth" else "rows"
    data = [guide((0, 1), (0, 1))]
    for model in models:
        data += _marks(model, drawn(model, method))
    if method == "binned" and len(models) == 1:
        data.append(_bars(models[0]))
    data += [_margin(model, method, alone=len(models) == 1) for model in models]
    words = models[0]
    layout = {
        "xaxis": axis(words.score, **across),
        "yaxis": axis(
            "accuracy" if words.is_confidence else "observed frequency",
            range=across["range"],
            domain=_MAIN,
        ),
        "yaxis2": axis(margin, domain=_MARGIN, rangemode="tozero", nticks=3, showgrid=False),
        "hovermode": "x" if len(models) == 1 else "closest",
    }
    # The main part is square.
    return figure(data, layout, height=1 / (_MAIN[1] - _MAIN[0]))


def drawn(model: Model, method: str) -> Curve:
    """Return a curve as it is drawn: nowhere that one row a bandwidth away would be closer."""
    curve = model.curves[method]
    if not curve.bandwidth > 0:
        return curve
    least = np.exp(-0.5) / (model.assessment.n * curve.bandwidth * np.sqrt(2 * np.pi))
    near = (curve.density >= least) & near_scores(curve, model.scores)
    y, lower, upper = (np.where(near, v, np.nan) for v in (curve.y, curve.low, curve.high))
    return replace(curve, y=y, low=lower, high=upper)


def point_words(model: Model, curve: Curve) -> list[list[str]]:
    """Return what is said of each point: score, outcome, interval and rows."""
    level = percent(curve.level)
    said = []
    places = zip(curve.x, curve.y, curve.low, curve.high, model.bins_of(curve), strict=True)
    for x, y, lower, upper, k in places:
        words = [f"{model.score} {figures(x).text}", f"{model.outcome} {figures(y).text}"]
        if np.isfinite(lower) and np.isfinite(upper):
            words.append(f"{level} interval {figures(lower).text} to {figures(upper).text}")
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
        found.append(_level_stretches(model, curve))
    if not binned and len(model.assessment.masses):
        found.append(_point_masses(model))
    return found


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


def _level_stretches(model: Model, curve: Curve) -> Spec:
    """Return the parts of a curve that are level, heavier: what outcomes do not tell apart."""
    level = np.diff(curve.y) == 0
    ends = np.flatnonzero(np.diff(level, prepend=False, append=False)).reshape(-1, 2)
    gap = np.full((len(ends), 1), np.nan)
    x, y = (np.hstack((values[ends], gap)).ravel() for values in (curve.x, curve.y))
    heavy = {"color": color(model), "width": _LEVEL_WIDTH}
    return line(model, x, y, (), line=heavy, hoverinfo="skip", meta={"model": model.place})


def _point_masses(model: Model) -> Spec:
    """Return a mark at each single score that many rows have, its area going with their share.

    Circles mark all scores there are; discs mark those that stand out among others.
    """
    masses = model.assessment.masses
    columns = (masses.score.tolist(), masses.outcome.tolist(), masses.share.tolist())
    said = [
        [
            f"{model.score} {figures(score).text}",
            f"{model.outcome} {figures(outcome).text}",
            f"{100 * share:.1f}% of rows",
        ]
        for score, outcome, share in zip(*columns, strict=True)
    ]
    fill, edge = ("--paper", color(model)) if masses.is_all else (color(model), "--paper")
    size = np.clip(_DISC_OF_ALL * np.sqrt(masses.share), _LEAST_DISC, _LARGEST_DISC)
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
    """Return a dot a bin, the larger the denser the scores are."""
    size = _LARGEST_DOT * np.sqrt(curve.density / curve.density.max())
    dots = {
        "color": color(model),
        "size": np.round(np.maximum(size, _LEAST_DOT), 2).tolist(),
        "symbol": model.place % _SYMBOLS,
        "line": {"color": "--paper", "width": 1},
    }
    thin = {"color": color(model, 0.5), "width": 1, "dash": dash(model)}
    return line(model, curve.x, curve.y, text, mode="lines+markers", marker=dots, line=thin)


def _margin(model: Model, method: str, *, alone: bool) -> Spec:
    """Return where the scores lie: their density, or how many rows each bin holds."""
    if method == "smooth":
        curve = model.curves[method]
        x, y = plain(curve.x), plain(curve.density)
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
