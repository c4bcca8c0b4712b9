"""Murphy curves and decision curves: what predictions are worth, and what miscalibration costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.curves import decisions
from calibrant.curves.decisions import (
    DecisionCurve,
    DecisionOptions,
    MurphyCurve,
    MurphyOptions,
    RegretBand,
)
from calibrant.data.sketch import Sketch
from calibrant.formatting import percent, with_interval
from calibrant.inference.regret import ThresholdRegret
from calibrant.plot.common import (
    DASHES,
    LINE_WIDTH,
    MUTED,
    Colors,
    LegendText,
    Model,
    Record,
    axes_or_new,
    despine,
    intervals_label,
    read_models,
    records,
    resolve_colors,
    write_or_widen,
)

_WIDTH, _HEIGHT = 5.4, 3.8
# Net benefits fall without end towards a threshold of 1: shown is this fraction below 0.
_BELOW_0 = 0.12
_SHADE, _BAND_SHADE = 0.35, 0.15


@dataclass(frozen=True, eq=False)
class _Named:
    """A curve with the name and the colour of its model."""

    curve: Any
    name: str
    color: Any


def murphy(
    y_true: ArrayLike | Sketch | MurphyCurve | Mapping[str, Sketch | MurphyCurve],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
    regret: ThresholdRegret | None = None,
    color: Colors = None,
    **options: Unpack[MurphyOptions],
) -> Axes:
    """Draw the loss of decisions at every threshold, and what recalibration would save of it.

    The line is the mean loss of acting where the prediction is at least the threshold, where a
    false alarm costs the threshold and a miss 1 minus the threshold. The dashed line is the loss
    after isotonic recalibration; the area between the two is the regret. The pale band is where the
    population's recalibrated loss may be, threshold by threshold.

    Parameters
    ----------
    y_true : array_like, Sketch, result or mapping of them
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes. Or in place of both
        arrays a sketch or a result, or for several models a mapping from names to these.

        Results are those of :func:`calibrant.murphy_curve`.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    regret : ThresholdRegret, optional
        Result of :func:`calibrant.threshold_regret`: its threshold is marked, and it is written
        into the legend.
    color : color or list of colors, optional
        Colour of the model, or a list with one per model; by default the next of the palette.
    **options
        Explained in :func:`calibrant.murphy_curve`: `thresholds`, `band` ("confidence" by default
        for one model), `level`, `n_resamples`, `rng`, `sample_weight`, `multiclass`, `labels` and
        `pos_label`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn on.

    See Also
    --------
    calibrant.murphy_curve : The numbers of the plot.
    decision_curve : The same losses as net benefits.

    Notes
    -----
    Twice the area below a line is the Brier score. A further call on the same Axes adds its models.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> ax = murphy(*load_flares())
    >>> ax.get_ylabel()
    'mean loss per decision'
    """
    models = read_models(y_true, y_prob, options, color)
    curves = [_gather_murphy(model, with_band=len(models) == 1) for model in models]
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    return draw_murphy(ax, curves, [model.name for model in models], color=color, regret=regret)


def draw_murphy(
    ax: Axes,
    curves: list[MurphyCurve],
    names: list[str],
    *,
    color: Colors,
    regret: ThresholdRegret | None,
) -> Axes:
    """Draw Murphy curves on an Axes in addition to what is there."""
    shown = _named(ax, "murphy", [curve.thinned() for curve in curves], names, color)
    if not records(ax, "murphy"):
        despine(ax)
        ax.set_xlim(0, 1)
        ax.set_xlabel("threshold probability")
        ax.set_ylabel("mean loss per decision")
    handles: list[Artist] = []
    labels: list[str] = []
    for one in shown:
        curve = one.curve
        drawn = _draw_pair(ax, curve.threshold, curve.loss, curve.recalibrated_loss, one.color)
        handles += drawn if not one.name else drawn[:1]
        labels += ["as predicted", "recalibrated", "regret"] if not one.name else [one.name]
        if curve.band is not None and len(curve.band.threshold):
            band = _draw_band(ax, curve.band, one.color)
            if not one.name:
                level = intervals_label(curve.band.level, simultaneous=False, kind="band")
                handles.append(band)
                labels.append(f"recalibrated, {level}")
    ax.set_ylim(bottom=0)
    if regret is not None:
        handles.append(_mark(ax, regret.threshold, shown[0].curve.threshold, shown[0].curve.loss))
        labels.append(regret_label(regret))
    _write(ax, labels, handles, several=any(names))
    ax.add_artist(Record("murphy", None, len(shown)))
    return ax


def decision_curve(
    y_true: ArrayLike | Sketch | DecisionCurve | Mapping[str, Sketch | DecisionCurve],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
    threshold: float | None = None,
    color: Colors = None,
    **options: Unpack[DecisionOptions],
) -> Axes:
    """Draw the net benefit of decisions at every threshold, beside treating all rows and none.

    The dashed line is the net benefit after isotonic recalibration; the area between it and the
    line of the model is lost to miscalibration.

    Parameters
    ----------
    y_true : array_like, Sketch, result or mapping of them
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes. Or in place of both
        arrays a sketch or a result, or for several models a mapping from names to these.

        Results are those of :func:`calibrant.decision_curve`.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    threshold : float, optional
        A threshold to mark.
    color : color or list of colors, optional
        Colour of the model, or a list with one per model; by default the next of the palette.
    **options
        Explained in :func:`calibrant.decision_curve`: `thresholds`, `standardize`,
        `sample_weight`, `multiclass`, `labels` and `pos_label`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn on.

    See Also
    --------
    calibrant.decision_curve : The numbers of the plot.
    murphy : The same as losses.

    Notes
    -----
    A further call on the same Axes adds its models. What isotonic recalibration gives on the sample
    it was fitted to is optimistic: see :func:`calibrant.threshold_regret` for an interval.

    References
    ----------
    Vickers and Elkin, "Decision curve analysis" (2006).

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> ax = decision_curve(*load_flares())
    >>> ax.get_ylabel()
    'net benefit'
    """
    models = read_models(y_true, y_prob, options, color)
    curves = [_gather_decision(model) for model in models]
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    return draw_decision(ax, curves, [one.name for one in models], color=color, mark=threshold)


def draw_decision(
    ax: Axes,
    curves: list[DecisionCurve],
    names: list[str],
    *,
    color: Colors,
    mark: float | None,
) -> Axes:
    """Draw decision curves on an Axes in addition to what is there."""
    shown = _named(ax, "decision", curves, names, color)
    handles: list[Artist] = []
    labels: list[str] = []
    for one in shown:
        curve = one.curve
        drawn = _draw_pair(ax, curve.threshold, curve.net_benefit, curve.recalibrated, one.color)
        handles += drawn if not one.name else drawn[:1]
        usual = ["as predicted", "recalibrated", "lost to miscalibration"]
        labels += usual if not one.name else [one.name]
    first = shown[0].curve
    if not records(ax, "decision"):
        despine(ax)
        ax.set_xlim(0, 1)
        ax.set_xlabel("threshold probability")
        ax.set_ylabel("standardized net benefit" if first.standardized else "net benefit")
        top = max(float(one.curve.recalibrated.max()) for one in shown)
        ax.set_ylim(-_BELOW_0 * (top or 1.0), 1.05 * (top or 1.0))
        handles += ax.plot(first.threshold, first.treat_all, color=MUTED, lw=1, ls=":", zorder=2)
        handles.append(ax.axhline(0, color=MUTED, lw=1, zorder=2))
        labels += ["treat all", "treat none"]
    if mark is not None:
        handles.append(_mark(ax, mark, first.threshold, first.net_benefit))
        labels.append(f"threshold {mark:g}")
    _write(ax, labels, handles, several=any(names))
    ax.add_artist(Record("decision", None, len(shown)))
    return ax


def regret_label(regret: ThresholdRegret) -> str:
    """Return a regret with its interval in a few words."""
    value, low, high = with_interval(regret.value, regret.low, regret.high)
    return f"regret at {regret.threshold:g}: {value} ({low}–{high}, {percent(regret.level)})"


def _gather_murphy(model: Model, *, with_band: bool) -> MurphyCurve:
    if isinstance(model.y_true, MurphyCurve):
        model.refuse_options("a MurphyCurve")
        return model.y_true
    model.check_options("murphy", decisions.murphy_curve)
    options = {"band": "confidence" if with_band else None} | dict(model.options)
    return decisions.murphy_curve(model.y_true, model.y_prob, **options)


def _gather_decision(model: Model) -> DecisionCurve:
    if isinstance(model.y_true, DecisionCurve):
        model.refuse_options("a DecisionCurve")
        return model.y_true
    model.check_options("decision_curve", decisions.decision_curve)
    options = dict(model.options)
    standardize = bool(options.pop("standardize", False))
    curve = decisions.murphy_curve(model.y_true, model.y_prob, **options).thinned()
    return DecisionCurve.of(curve, standardize=standardize)


def _named(ax: Axes, kind: str, curves: list[Any], names: list[str], color: Colors) -> list[_Named]:
    """Return curves with names and colours, after those drawn before."""
    given = color if isinstance(color, list) else [color] * len(curves)
    n_before = sum(one.n_models for one in records(ax, kind))
    colors = resolve_colors(ax, given, n_before)
    return [_Named(*one) for one in zip(curves, names, colors, strict=True)]


def _draw_pair(ax: Axes, threshold: Any, given: Any, recalibrated: Any, color: Any) -> list[Artist]:
    """Draw values as predicted and recalibrated, and the area between them."""
    lines = ax.plot(threshold, given, color=color, lw=LINE_WIDTH, zorder=4)
    lines += ax.plot(threshold, recalibrated, color=color, lw=1, ls=DASHES, zorder=4)
    ax.fill_between(threshold, given, recalibrated, color=color, alpha=_SHADE, lw=0, zorder=3)
    return [*lines, Patch(facecolor=color, alpha=_SHADE, linewidth=0)]


def _draw_band(ax: Axes, band: RegretBand, color: Any) -> Artist:
    """Draw where the recalibrated loss may be: the loss less each end of the regret's interval."""
    ends = (np.maximum(band.loss - band.high, 0.0), band.loss - band.low)
    ax.fill_between(band.threshold, *ends, color=color, alpha=_BAND_SHADE, lw=0, zorder=1)
    return Patch(facecolor=color, alpha=_BAND_SHADE, linewidth=0)


def _mark(ax: Axes, place: float, threshold: FloatArray, values: FloatArray) -> Line2D:
    """Draw a line from 0 to the curve at one threshold."""
    height = float(np.interp(place, threshold, values))
    return ax.plot([place, place], [0, height], color=MUTED, lw=1, ls="-.", zorder=5)[0]


def _write(ax: Axes, labels: list[str], handles: list[Artist], *, several: bool) -> None:
    """Write the legend in a free corner; where none is free, limits make space."""
    title = ("dashed: recalibrated",) if several else ()
    text = LegendText(labels, title)
    write_or_widen(ax, text, handles, corners=("upper right", "upper left"))
