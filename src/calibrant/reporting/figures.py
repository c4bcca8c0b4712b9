"""The diagrams of a page: plotly's traces, axes and layouts as plain dictionaries.

Colours are names: "--series-1" and its like are defined in the page's style sheet, so that one
diagram is right on a light screen, on a dark one and on paper. "--series-1 / 0.2" is the same
colour at an opacity of 0.2. Curves are thinned to what can be seen, so that pages stay small.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, IntArray
from calibrant.assessment.assess import Assessment
from calibrant.curves.decisions import DecisionCurve, MurphyCurve, last_shown
from calibrant.curves.reliability import Curve
from calibrant.curves.reliability_view import (
    PointMasses,
    ReliabilityView,
    Window,
    bar_opacity,
    level_runs,
)
from calibrant.data.binning import Bins
from calibrant.errors import CalibrantError, shown
from calibrant.formatting import counted, percent, shortened, significant
from calibrant.inference.estimate import Estimate
from calibrant.measures.cumulative import CumulativeCurve

Spec = dict[str, Any]
_Curve = TypeVar("_Curve", Curve, CumulativeCurve, MurphyCurve)

# The number of points of long curves is divided among the models.
_POINTS = 6000
_MAXIMUM_POINTS, _MINIMUM_POINTS = 1000, 100
# Significant digits of the points: more than can be seen.
_DIGITS = 6

_COLORS = 6
_DASHES = ("solid", "dash", "dashdot", "dot")
# plotly's first: circle, square, diamond, cross, x.
_SYMBOLS = 5
_OUTER_MARGIN = {"l": 58, "r": 14, "t": 12, "b": 50}
# The space at either end of the axes of reliability diagrams, as a fraction of the window; and the
# parts of the height that the diagram and the distribution of scores below it take.
_FREE, _MAIN, _BELOW = 0.02, [0.25, 1.0], [0.0, 0.17]
_MAXIMUM_DOT, _MINIMUM_DOT = 15.0, 6.0
# The width of a disc that would hold all rows, the minimum and the maximum, in pixels.
_DISC_OF_ALL, _MINIMUM_DISC, _MAXIMUM_DISC = 32.0, 5.0, 18.5
# The width of the level runs of an isotonic curve, in pixels.
_LEVEL_WIDTH = 4.5
# How far the triangle at the origin points to the right, and how far those of all models do.
_TRIANGLE, _TRIANGLES = 0.03, 0.15
_SCORE_TICKS = np.linspace(0, 1, 6)
_END = 0.01
_CUMULATIVE_HEIGHT, _CUMULATIVE_PIXELS = 0.5, 110
# Of the diagram of groups.
_LINE_HEIGHT, _LONGEST_LABEL = 26, 22
# Of diagrams of decisions: net benefits fall without end, and this fraction is shown below 0.
_DECISION_HEIGHT, _BELOW_0 = 0.62, 0.12


@dataclass(frozen=True, eq=False)
class Model:
    """An assessment, its name (empty where there is only one) and its index among all."""

    name: str
    index: int
    assessment: Assessment

    @property
    def is_confidence(self) -> bool:
        """Whether predictions are the confidence in a predicted class."""
        return self.assessment.is_confidence

    @property
    def outcome_name(self) -> str:
        """What outcomes are called."""
        return "accuracy" if self.is_confidence else "observed"

    @property
    def score_name(self) -> str:
        """What predictions are called."""
        return "confidence" if self.is_confidence else "score"

    @cached_property
    def views(self) -> dict[str, ReliabilityView]:
        """What reliability diagrams show, by the method of the curve."""
        methods = [curve.method for curve in self.assessment.curves]
        return {method: self.assessment.reliability_view(method) for method in methods}

    def drawn(self, method: str) -> Curve:
        """Return the curve of a method where it is known."""
        return self.views[method].drawn(Window(0.0, 1.0))

    def bins_of(self, curve: Curve) -> IntArray:
        """Return the bin of the table that each point of a curve lies in."""
        bins = self.assessment.bins
        if curve.method == "binned":
            # Its points are the bins that hold rows. The mean of scores on an edge may be rounded
            # to beyond it.
            return np.flatnonzero(bins.n)
        return Bins(bins.edges, np.diff(bins.edges)).index(curve.x)

    def in_bin(self, k: int) -> str:
        """Return the number of rows in a bin, and its edges."""
        bins = self.assessment.bins
        rows = counted(int(bins.n[k]), "row")
        return f"{rows} in bin {bins.edges[k]:.3g} to {bins.edges[k + 1]:.3g}"

    def color(self, alpha: float | None = None) -> str:
        """Return the colour of the model, of an opacity if one is given."""
        name = f"--series-{self.index % _COLORS + 1}"
        return name if alpha is None else f"{name} / {alpha}"

    @property
    def dash(self) -> str:
        """The dashes of the model's lines, which distinguish models without colour."""
        return _DASHES[self.index % len(_DASHES)]

    @property
    def symbol(self) -> int:
        """The number of the model's marker."""
        return self.index % _SYMBOLS


def read_models(assessments: Mapping[str, Assessment] | Assessment) -> list[Model]:
    """Return the models to show, their curves with no more points than can be seen."""
    if isinstance(assessments, Assessment):
        assessments = {"": assessments}
    if not assessments:
        raise CalibrantError("there must be at least one assessment to show; got an empty mapping")
    for name, one in assessments.items():
        if not isinstance(one, Assessment):
            raise CalibrantError(
                "must hold results of assess",
                argument="assessments",
                value=type(one),
                found="{value} at {name}",
                name=shown(name),
            )
    n_points = min(max(_POINTS // len(assessments), _MINIMUM_POINTS), _MAXIMUM_POINTS)
    models = []
    for index, (name, one) in enumerate(assessments.items()):
        curves = tuple(_thinned(curve, n_points) for curve in one.curves)
        cumulative = one.cumulative.thinned(n_points)
        cumulative = _rounded(cumulative, "fraction", "score", "deviation")
        murphy = one.murphy.thinned(n_points)
        murphy = _rounded(murphy, "threshold", "loss", "recalibrated_loss", "regret")
        thinned = replace(one, curves=curves, cumulative=cumulative, murphy=murphy)
        models.append(Model(str(name), index, thinned))
    return models


def _thinned(curve: Curve, n_points: int) -> Curve:
    if curve.method == "binned":
        return curve
    if curve.method == "isotonic":
        curve = curve.thinned(n_points)
    return _rounded(curve, "x", "y", "density", "low", "high")


def _rounded(curve: _Curve, *names: str) -> _Curve:
    rounded: Spec = {
        name: np.array([float(f"{value:.{_DIGITS}g}") for value in getattr(curve, name).tolist()])
        for name in names
    }
    return replace(curve, **rounded)


def plotly_text(text: str) -> str:
    """Escape text from data, which plotly reads for tags; of entities it knows these three."""
    return html.escape(text, quote=False)


def _hover(lines_of_points: Iterable[Sequence[str]], model: Model | None = None) -> Spec:
    """Return the text at each point, its lines in plotly's markup after the name of the model."""
    head = f"<b>{plotly_text(model.name)}</b><br>" if model and model.name else ""
    text = [head + "<br>".join(map(plotly_text, lines)) for lines in lines_of_points]
    return {"text": text, "hovertemplate": "%{text}<extra></extra>"}


_NO_HOVER = {"hoverinfo": "skip"}


def _trace(x: ArrayLike, y: ArrayLike, hover: Spec = _NO_HOVER, **more: Any) -> Spec:
    """Return a line, with gaps where nothing is known."""
    return {"type": "scatter", "mode": "lines", "x": _plain(x), "y": _plain(y), **hover, **more}


def _plain(values: ArrayLike) -> list[float | None]:
    """Return numbers as JSON knows them."""
    array = np.asarray(values, dtype=np.float64)
    return [value if np.isfinite(value) else None for value in array.tolist()]


def _line(model: Model, x: FloatArray, y: FloatArray, hover: Spec) -> Spec:
    """Return the curve of a model, which the arrow keys go along."""
    style = {"color": model.color(), "width": 2.2, "dash": model.dash}
    return _trace(x, y, hover, line=style, meta={"model": model.index, "curve": True})


def _area(model: Model, x: ArrayLike, y: ArrayLike, opacity: float) -> Spec:
    fill: Spec = {"fill": "toself", "fillcolor": model.color(opacity), "line": {"width": 0}}
    return _trace(x, y, meta={"model": model.index}, **fill)


def band(model: Model, x: FloatArray, low: FloatArray, high: FloatArray) -> Spec:
    """Return the area between two lines, wherever both are known."""
    known = np.isfinite(low) & np.isfinite(high)
    runs = np.flatnonzero(np.diff(known, prepend=False, append=False)).reshape(-1, 2)
    parts = [slice(start, end) for start, end in runs.tolist()]
    around = [np.concatenate((x[part], x[part][::-1], [np.nan])) for part in parts]
    height = [np.concatenate((low[part], high[part][::-1], [np.nan])) for part in parts]
    return _area(model, np.concatenate([*around, []]), np.concatenate([*height, []]), 0.16)


def sticks(model: Model, x: FloatArray, low: FloatArray, high: FloatArray) -> Spec:
    """Return a vertical line from low to high at each x where both are known."""
    known = np.isfinite(low) & np.isfinite(high)
    style = {"color": model.color(0.6), "width": 1.6}
    ends = _segments(x[known], x[known], low[known], high[known])
    return _trace(*ends, line=style, meta={"model": model.index})


def _segments(
    x0: ArrayLike, x1: ArrayLike, y0: ArrayLike, y1: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return lines from (x0, y0) to (x1, y1), with gaps between them."""
    gap = np.full(np.shape(x0), np.nan)
    return np.column_stack((x0, x1, gap)).ravel(), np.column_stack((y0, y1, gap)).ravel()


def _reference(x: Sequence[float], y: Sequence[float]) -> Spec:
    """Return the line of perfect calibration."""
    return _trace(x, y, line={"color": "--quiet", "width": 1, "dash": "5px,4px"})


def _axis(title: str, **more: Any) -> Spec:
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


def _figure(data: list[Spec], layout: Spec, *, height: float = 0.0, pixels: float = 0.0) -> Spec:
    """Return a figure whose inside is as high as a fraction of its width, plus some pixels."""
    common = {
        "margin": _OUTER_MARGIN,
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
    limits = {"range": [window.low - edge, window.high + edge]}
    alone = len(models) == 1
    data = [_reference((0, 1), (0, 1))]
    for model in models:
        data += _marks(model, model.drawn(method))
    if method == "binned" and alone:
        data.append(_bars(models[0]))
    data += [_distribution(model, method, filled=alone) for model in models]
    predicted, observed = models[0].views[method].axis_names()
    title = "density" if method == "smooth" else "rows"
    layout = {
        "xaxis": _axis(predicted, anchor="y2", **limits),
        "yaxis": _axis(observed, domain=_MAIN, **limits),
        "yaxis2": _axis(title, domain=_BELOW, rangemode="tozero", nticks=3, showgrid=False),
        "hovermode": "x" if alone else "closest",
    }
    # The main part is square.
    return _figure(data, layout, height=1 / (_MAIN[1] - _MAIN[0]))


def _marks(model: Model, curve: Curve) -> list[Spec]:
    """Return the marks of a curve, its intervals beneath."""
    is_binned, hover = curve.method == "binned", _hover(_point_texts(model, curve), model)
    marks = [_dots(model, curve, hover) if is_binned else _line(model, curve.x, curve.y, hover)]
    if curve.band is not None:
        limits = sticks if is_binned else band
        marks.insert(0, limits(model, curve.x, curve.low, curve.high))
    if curve.method == "isotonic":
        # Level runs are heavier: scores that the curve does not distinguish.
        first, last = level_runs(curve).T
        heavy = {"color": model.color(), "width": _LEVEL_WIDTH}
        runs = _segments(curve.x[first], curve.x[last], curve.y[first], curve.y[last])
        marks.append(_trace(*runs, line=heavy, meta={"model": model.index}))
    masses = model.views[curve.method].marks(Window(0.0, 1.0))
    return marks if masses is None else [*marks, _point_masses(model, masses)]


def _point_texts(model: Model, curve: Curve) -> Iterable[list[str]]:
    """Yield score, outcome, interval and number of rows at each point."""
    level = percent(curve.level)
    points = zip(curve.x, curve.y, curve.low, curve.high, model.bins_of(curve), strict=True)
    for x, y, low, high, k in points:
        lines = [f"{model.score_name} {significant(x)}", f"{model.outcome_name} {significant(y)}"]
        if np.isfinite(low) and np.isfinite(high):
            lines.append(f"{level} interval {significant(low)} to {significant(high)}")
        yield [*lines, model.in_bin(k)]


def _dots(model: Model, curve: Curve, hover: Spec) -> Spec:
    """Return one dot per bin, larger where scores are denser."""
    size = _MAXIMUM_DOT * np.sqrt(curve.density / curve.density.max())
    marker = {
        "color": model.color(),
        "size": np.round(np.maximum(size, _MINIMUM_DOT), 2).tolist(),
        "symbol": model.symbol,
        "line": {"color": "--paper", "width": 1},
    }
    thin = {"color": model.color(0.5), "width": 1, "dash": model.dash}
    style = {"mode": "lines+markers", "marker": marker, "line": thin}
    return {**_line(model, curve.x, curve.y, hover), **style}


def _bars(model: Model) -> Spec:
    """Return a bar to the mean outcome of each bin, darker where there are more rows."""
    bins = model.assessment.bins
    marker = {
        "color": [model.color(round(alpha, 3)) for alpha in bar_opacity(bins).tolist()],
        "line": {"color": "--paper", "width": 1},
    }
    middles = (bins.edges[1:] + bins.edges[:-1]) / 2
    bars = _trace(middles, bins.mean_true, meta={"model": model.index})
    return {**bars, "type": "bar", "width": _plain(np.diff(bins.edges)), "marker": marker}


def _point_masses(model: Model, masses: PointMasses) -> Spec:
    """Return a mark at each point mass, its area proportional to the number of rows.

    Circles mark all distinct scores; discs mark those that hold many rows among others that do not.
    """
    columns = (masses.score.tolist(), masses.outcome.tolist(), masses.share.tolist())
    texts = (
        [
            f"{model.score_name} {significant(score)}",
            f"{model.outcome_name} {significant(outcome)}",
            f"{100 * fraction:.1f}% of rows",
        ]
        for score, outcome, fraction in zip(*columns, strict=True)
    )
    fill, edge = ("--paper", model.color()) if masses.is_all else (model.color(), "--paper")
    size = np.clip(_DISC_OF_ALL * np.sqrt(masses.share), _MINIMUM_DISC, _MAXIMUM_DISC)
    marker = {
        "color": fill,
        "size": np.round(size, 2).tolist(),
        "opacity": 1,
        "symbol": model.symbol,
        "line": {"color": edge, "width": 1.5 if masses.is_all else 1},
    }
    style = {"mode": "markers", "marker": marker, "cliponaxis": False}
    hover, meta = _hover(texts, model), {"model": model.index}
    return _trace(masses.score, masses.outcome, hover, meta=meta) | style


def _distribution(model: Model, method: str, *, filled: bool) -> Spec:
    """Return the density of scores below a smooth curve; else how many rows each bin holds."""
    x: FloatArray
    y: ArrayLike
    if method == "smooth":
        (x, y), hover, shape = model.views["smooth"].density(), _NO_HOVER, "linear"
    else:
        bins, last = model.assessment.bins, len(model.assessment.bins.n) - 1
        x, y, shape = bins.edges, np.append(bins.n, bins.n[-1]), "hv"
        hover = _hover(([model.in_bin(min(k, last))] for k in range(last + 2)), model)
    style = {
        "yaxis": "y2",
        "fill": "tozeroy" if filled else "none",
        "fillcolor": model.color(0.25),
        "line": {"color": model.color(), "width": 1, "shape": shape, "dash": model.dash},
    }
    return _trace(x, y, hover, meta={"model": model.index}, **style)


def cumulative_figure(models: Sequence[Model]) -> Spec:
    """Return the cumulative curves of all models."""
    data = [_reference((0, 1), (0, 0))]
    width = min(_TRIANGLE, _TRIANGLES / len(models))
    for model in models:
        curve, left = model.assessment.cumulative, model.index * width
        if curve.sigma > 0:
            # A triangle at the origin, 2 sigma up and 2 sigma down; others are beside it.
            height = 2 * curve.sigma
            x, y = [left, left, left + width, left], [-height, height, 0, -height]
            data.append(_area(model, x, y, 0.35))
        points = zip(curve.score, curve.fraction, curve.deviation, strict=True)
        texts = [
            [
                f"up to {model.score_name} {significant(score)}",
                f"{100 * fraction:.1f}% of rows",
                f"deviation {significant(deviation)}",
            ]
            for score, fraction, deviation in points
        ]
        data.append(_line(model, curve.fraction, curve.deviation, _hover(texts, model)))
    title = "fraction of rows, in order of score"
    layout = {
        "xaxis": _axis(title, range=[-_END, 1 + _END], tickformat=".0%"),
        "yaxis": _axis("cumulative deviation"),
        "hovermode": "x" if len(models) == 1 else "closest",
    }
    if len(models) == 1:
        data.append(_extremes(models[0]))
        layout["xaxis2"] = _score_axis(models[0])
        layout["margin"] = {**_OUTER_MARGIN, "t": 50}
    return _figure(data, layout, height=_CUMULATIVE_HEIGHT, pixels=_CUMULATIVE_PIXELS)


def _extremes(model: Model) -> Spec:
    """Return marks at the highest and the lowest point, whose distance is ECCE-R."""
    curve = model.assessment.cumulative
    ends = [int(curve.deviation.argmax()), int(curve.deviation.argmin())]
    circle = {"color": "--paper", "size": 8, "line": {"color": model.color(), "width": 1.6}}
    style = {"mode": "markers", "xaxis": "x2", "marker": circle, "cliponaxis": False}
    return _trace(curve.fraction[ends], curve.deviation[ends], meta={"model": model.index}) | style


def _score_axis(model: Model) -> Spec:
    """Return an axis along the top with the scores that are reached."""
    curve = model.assessment.cumulative
    reached = np.minimum(np.searchsorted(curve.fraction, _SCORE_TICKS), len(curve.score) - 1)
    return _axis(
        model.score_name,
        overlaying="x",
        matches="x",
        side="top",
        showgrid=False,
        tickvals=_SCORE_TICKS.tolist(),
        ticktext=[f"{score:.2g}" for score in curve.score[reached]],
    )


def murphy_figure(models: Sequence[Model]) -> Spec:
    """Return the losses of all models at every threshold, as predicted and recalibrated."""
    data = []
    for model in models:
        curve = model.assessment.murphy
        names = ("loss", curve.loss), ("recalibrated", curve.recalibrated_loss)
        data += _before_and_after(model, curve.threshold, *names)
    layout = {
        "xaxis": _axis("threshold probability", range=[-_END, 1 + _END]),
        "yaxis": _axis("mean loss per decision", rangemode="tozero"),
        "hovermode": "x" if len(models) == 1 else "closest",
    }
    return _figure(data, layout, height=_DECISION_HEIGHT)


def decision_figure(models: Sequence[Model]) -> Spec:
    """Return the net benefits of all models at every threshold, beside treating all and none."""
    data, top, last = [_reference((0, 1), (0, 0))], 0.0, 0.0
    for model in models:
        curve = DecisionCurve.of(model.assessment.murphy)
        names = ("net benefit", curve.net_benefit), ("recalibrated", curve.recalibrated)
        if model is models[0]:
            dots = {"color": "--quiet", "width": 1.4, "dash": "dot"}
            data.append(_trace(curve.threshold, curve.treat_all, line=dots))
        data += _before_and_after(model, curve.threshold, *names)
        top = max(top, float(curve.recalibrated.max(initial=0.0)))
        last = max(last, last_shown(curve))
    top = top or 1.0
    layout = {
        "xaxis": _axis("threshold probability", range=[-_END * last, (1 + _END) * last]),
        "yaxis": _axis("net benefit", range=[-_BELOW_0 * top, 1.05 * top]),
        "hovermode": "x" if len(models) == 1 else "closest",
    }
    return _figure(data, layout, height=_DECISION_HEIGHT)


def _before_and_after(
    model: Model,
    threshold: FloatArray,
    before: tuple[str, FloatArray],
    after: tuple[str, FloatArray],
) -> list[Spec]:
    """Return two curves of thresholds, and the area between them."""
    between = np.minimum(before[1], after[1]), np.maximum(before[1], after[1])
    points = zip(threshold, before[1], after[1], strict=True)
    texts = (
        [
            f"threshold {significant(t)}",
            f"{before[0]} {significant(a)}",
            f"{after[0]} {significant(b)}",
        ]
        for t, a, b in points
    )
    thin = {"color": model.color(0.8), "width": 1}
    return [
        band(model, threshold, *between),
        _trace(threshold, after[1], line=thin, meta={"model": model.index}),
        _line(model, threshold, before[1], _hover(texts, model)),
    ]


def group_figure(
    labels: Sequence[str],
    errors: Sequence[Estimate],
    detected: Sequence[bool],
    texts: Sequence[Sequence[str]],
) -> Spec:
    """Return dots with their intervals, one group below the other; filled if miscalibrated."""
    rows = range(len(errors))
    shown = ("bias_corrected", "low", "high")
    value, low, high = ([getattr(one, key) for one in errors] for key in shown)
    segments = _segments(low, high, rows, rows)
    intervals = _trace(*segments, line={"color": "--series-1 / 0.6", "width": 1.6})
    marker = {
        "color": ["--series-1" if one else "--paper" for one in detected],
        "size": 9,
        "line": {"color": "--series-1", "width": 1.6},
    }
    style = {"mode": "markers", "marker": marker, "cliponaxis": False, "meta": {"curve": True}}
    dots = _trace(value, rows, _hover(texts)) | style
    layout = {
        "xaxis": _axis("smooth calibration error", range=[0, 1.04 * max(*value, *high, 0.01)]),
        "yaxis": _axis(
            "",
            range=[len(labels) - 0.4, -0.6],
            tickvals=list(rows),
            ticktext=[plotly_text(shortened(label, _LONGEST_LABEL)) for label in labels],
            showgrid=False,
        ),
        "hovermode": "closest",
        "margin": {**_OUTER_MARGIN, "l": 20},
    }
    return _figure([intervals, dots], layout, pixels=_LINE_HEIGHT * len(labels) + 20)
