"""The cumulative diagram: where along the scores outcomes depart from predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.report.models import Model
from calibrant.report.numbers import figures
from calibrant.report.traces import MARGIN, Spec, axis, color, figure, guide, hover_texts, line
from calibrant.results.curves import CumulativeCurve

__all__ = ["cumulative_figure", "walk_words"]

# How far the triangle at the origin points to the right, and how far those of all models do.
_TRIANGLE, _TRIANGLES = 0.03, 0.15
_SCORE_TICKS = np.linspace(0, 1, 6)
_EDGE = 0.01
_HEIGHT, _PIXELS = 0.5, 110


def cumulative_figure(models: Sequence[Model]) -> Spec:
    """Return the cumulative curves of all models."""
    data = [guide((0, 1), (0, 0))]
    width = min(_TRIANGLE, _TRIANGLES / len(models))
    for model in models:
        walk = model.assessment.cumulative
        if walk.sigma > 0:
            data.append(_triangle(model, walk, width))
        text = hover_texts(model, walk_words(model))
        data.append(line(model, walk.fraction, walk.deviation, text))
    layout = {
        "xaxis": axis(
            "share of rows, in order of score", range=[-_EDGE, 1 + _EDGE], tickformat=".0%"
        ),
        "yaxis": axis("cumulative deviation"),
        "hovermode": "x" if len(models) == 1 else "closest",
    }
    if len(models) == 1:
        data.append(_extremes(models[0]))
        layout["xaxis2"] = _score_axis(models[0])
        layout["margin"] = {**MARGIN, "t": 50}
    return figure(data, layout, height=_HEIGHT, pixels=_PIXELS)


def walk_words(model: Model) -> list[list[str]]:
    """Return what is said of each point: score reached, rows passed, deviation so far."""
    walk = model.assessment.cumulative
    places = zip(walk.score, walk.fraction, walk.deviation, strict=True)
    return [
        [
            f"up to {model.score} {figures(score).text}",
            f"{100 * share:.1f}% of rows",
            f"deviation {figures(deviation).text}",
        ]
        for score, share, deviation in places
    ]


def _triangle(model: Model, walk: CumulativeCurve, width: float) -> Spec:
    """Return the triangle at the origin, 2 sigma up and 2 sigma down; others are beside it."""
    reach, left = 2 * walk.sigma, model.place * width
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
    walk = model.assessment.cumulative
    ends = [int(walk.deviation.argmax()), int(walk.deviation.argmin())]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": walk.fraction[ends].tolist(),
        "y": walk.deviation[ends].tolist(),
        "xaxis": "x2",
        "marker": {"color": "--paper", "size": 8, "line": {"color": color(model), "width": 1.6}},
        "hoverinfo": "skip",
        "cliponaxis": False,
        "meta": {"model": model.place},
    }


def _score_axis(model: Model) -> Spec:
    """Return an axis along the top with the scores that are reached."""
    walk = model.assessment.cumulative
    reached = np.minimum(np.searchsorted(walk.fraction, _SCORE_TICKS), len(walk.score) - 1)
    return axis(
        f"{model.score} reached",
        overlaying="x",
        matches="x",
        side="top",
        showgrid=False,
        tickvals=_SCORE_TICKS.tolist(),
        ticktext=[f"{score:.2g}" for score in walk.score[reached]],
    )
