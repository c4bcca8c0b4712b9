"""The diagrams of a page: what each is called, how it is read, its figure, its points in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.report.cumulative_figure import cumulative_figure
from calibrant.report.models import Model, spread
from calibrant.report.numbers import Number, count, figures, percent
from calibrant.report.reliability_figures import drawn, reliability_figure
from calibrant.report.traces import Spec
from calibrant.results.masses import PointMasses

__all__ = ["PointTable", "View", "views"]

# Points of each curve in its table; the numbers to download have all of them.
_TOLD_POINTS = 20

_CAPTIONS = {
    "smooth": "The outcome to expect at each score, by kernel regression at the scale of the "
    "smooth calibration error. Calibrated predictions follow the dashed diagonal: above it they "
    "are too low, below it too high.",
    "binned": "{} against {}, bin by bin; the larger the mark, the denser "
    "the scores. Calibrated predictions lie on the dashed diagonal, but for noise.",
    "isotonic": "The non-decreasing curve nearest to the outcomes; nothing to choose. Level runs, "
    "drawn heavier, are scores that the outcomes do not tell apart.",
    "cumulative": "Outcomes less predictions, summed over rows in order of score. The slope is "
    "the mean deviation there: rising where predictions are too low, falling where they are too "
    "high, level where all is well. For calibrated predictions the end lies within the triangle's "
    "height, two standard deviations either way, in about 95% of samples.",
}
_BANDS = {
    "confidence": "where the population's curve may lie",
    "consistency": "where the curve would lie if predictions were calibrated",
}


@dataclass(frozen=True)
class PointTable:
    """Some points of one model's curve."""

    model: Model
    columns: tuple[str, ...]
    rows: tuple[tuple[Number, ...], ...]


@dataclass(frozen=True)
class View:
    """One diagram.

    Attributes
    ----------
    key, label
        What it is called, and what it is called in print.
    caption
        How it is read.
    figure
        What plotly draws.
    tables
        Points in words, model by model.
    """

    key: str
    label: str
    caption: str
    figure: Spec
    tables: tuple[PointTable, ...]


def views(models: Sequence[Model]) -> Iterator[View]:
    """Yield the diagrams that can be drawn of these models."""
    for method in ("smooth", "binned", "isotonic"):
        having = [model for model in models if method in model.curves]
        if having:
            yield View(
                method,
                method.capitalize(),
                _caption(having, method),
                reliability_figure(having, method),
                tuple(_curve_points(model, method) for model in having),
            )
    tables = tuple(_walk_points(model) for model in models)
    yield View(
        "cumulative", "Cumulative", _CAPTIONS["cumulative"], cumulative_figure(models), tables
    )


def _caption(models: Sequence[Model], method: str) -> str:
    """Return how a diagram is read, its bands included where it has some."""
    words = _CAPTIONS[method]
    if method == "binned":
        words = words.format(*_means(models))
    if method == "binned" and len(models) == 1:
        words += " The more rows a bin holds, the stronger its bar."
    if method != "binned":
        words += _about_masses([model.assessment.masses for model in models])
    banded = [curve for model in models if (curve := model.curves[method]).band]
    if not banded:
        return words
    curve = banded[0]
    mark = "Upright lines" if method == "binned" else "Shaded"
    extent = "the curve as a whole" if curve.simultaneous else "each score by itself"
    return (
        f"{words} {mark}: {_BANDS[str(curve.band)]}, at a level of "
        f"{percent(curve.level)} for {extent}."
    )


def _means(models: Sequence[Model]) -> tuple[str, str]:
    """Return what the means of a bin's outcomes and predictions are called."""
    if all(model.is_confidence for model in models):
        return "Accuracy", "mean confidence"
    return "Mean outcome", "mean prediction"


def _about_masses(found: Sequence[PointMasses]) -> str:
    """Say what marks at single scores are, where there are any."""
    words = ""
    if any(len(masses) and not masses.is_all for masses in found):
        words += " Discs are single scores that many rows have, the larger the more."
    if any(masses.is_all for masses in found):
        words += " Circles are mean outcomes at the few scores there are, the larger the more rows."
    return words


def _curve_points(model: Model, method: str) -> PointTable:
    curve = drawn(model, method)
    known = np.flatnonzero(np.isfinite(curve.y))
    told = known[spread(len(known), _TOLD_POINTS)]
    n = model.assessment.bins.n[model.bins_of(curve)[told]]
    rows = tuple(
        (*(figures(v) for v in values), count(rows))
        for *values, rows in zip(
            *(getattr(curve, name)[told].tolist() for name in ("x", "y", "low", "high")),
            n.tolist(),
            strict=True,
        )
    )
    names = (model.score, model.outcome, "interval from", "to", "rows in its bin")
    return PointTable(model, names, rows)


def _walk_points(model: Model) -> PointTable:
    walk = model.assessment.cumulative
    told = spread(len(walk.score), _TOLD_POINTS)
    arrays = (walk.fraction, walk.score, walk.deviation)
    rows = tuple(
        tuple(figures(v) for v in values)
        for values in zip(*(array[told].tolist() for array in arrays), strict=True)
    )
    names = ("share of rows", f"{model.score} reached", "cumulative deviation")
    return PointTable(model, names, rows)
