"""Murphy curves and decision curves: what predictions are worth, and what miscalibration costs."""

from __future__ import annotations

from collections.abc import Mapping
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
# A line in the legend, and what it explains.
Entry = tuple[str, Artist]
# Thresholds, and values there as predicted and recalibrated.
Pair = tuple[FloatArray, FloatArray, FloatArray]


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
    curves = [_gather_murphy(model, with_band=len(models) == 1).thinned() for model in models]
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    pairs = [(one.threshold, one.loss, one.recalibrated_loss) for one in curves]
    colors = _colors(ax, "murphy", models)
    legend = _draw_pairs(ax, "murphy", models, colors, pairs, "mean loss per decision", "regret")
    for model, curve, color in zip(models, curves, colors, strict=True):
        if curve.band is not None and len(curve.band.threshold):
            patch = _draw_band(ax, curve.band, color)
            label = intervals_label(curve.band.level, simultaneous=False, kind="band")
            legend += [] if model.name else [(f"recalibrated, {label}", patch)]
    ax.set_ylim(bottom=0)
    if regret is not None:
        legend.append((_regret_label(regret), _mark(ax, regret.threshold, pairs[0])))
    _write(ax, "murphy", models, legend)
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
    first, is_added = curves[0], bool(records(ax, "decision"))
    pairs = [(one.threshold, one.net_benefit, one.recalibrated) for one in curves]
    name = "standardized net benefit" if first.standardized else "net benefit"
    colors = _colors(ax, "decision", models)
    legend = _draw_pairs(ax, "decision", models, colors, pairs, name, "lost to miscalibration")
    left, right = ax.get_xlim()
    right = max(right if is_added else left, threshold or 0.0, *map(decisions.last_shown, curves))
    ax.set_xlim(left, right)
    if not is_added:
        top = max(float(one.recalibrated.max()) for one in curves) or 1.0
        ax.set_ylim(-_BELOW_0 * top, 1.05 * top)
        (everyone,) = ax.plot(first.threshold, first.treat_all, color=MUTED, lw=1, ls=":", zorder=2)
        none = ax.axhline(0, color=MUTED, lw=1, zorder=2)
        legend += [("treat all", everyone), ("treat none", none)]
    if threshold is not None:
        legend.append((f"threshold {threshold:g}", _mark(ax, threshold, pairs[0])))
    _write(ax, "decision", models, legend)
    return ax


def _regret_label(regret: ThresholdRegret) -> str:
    """Return a regret with its interval in a few words."""
    value, low, high = with_interval(regret.value, regret.low, regret.high)
    return f"regret at {regret.threshold:g}: {value} ({low}–{high}, {percent(regret.level)})"


def _gather_murphy(model: Model, *, with_band: bool) -> MurphyCurve:
    given = model.result(MurphyCurve)
    if given is not None:
        return given
    model.check_options("murphy", decisions.murphy_curve)
    options = {"band": "confidence" if with_band else None} | dict(model.options)
    return decisions.murphy_curve(model.y_true, model.y_prob, **options)


def _gather_decision(model: Model) -> DecisionCurve:
    given = model.result(DecisionCurve)
    if given is not None:
        return given
    model.check_options("decision_curve", decisions.decision_curve)
    options = dict(model.options)
    standardize = bool(options.pop("standardize", False))
    curve = decisions.murphy_curve(model.y_true, model.y_prob, **options).thinned()
    return DecisionCurve.of(curve, standardize=standardize)


def _colors(ax: Axes, kind: str, models: list[Model]) -> list[Any]:
    """Return the colours of models, after those drawn before."""
    n_before = sum(one.n_models for one in records(ax, kind))
    return resolve_colors(ax, [model.color for model in models], n_before)


def _draw_pairs(
    ax: Axes,
    kind: str,
    models: list[Model],
    colors: list[Any],
    pairs: list[Pair],
    name: str,
    difference: str,
) -> list[Entry]:
    """Draw values as predicted and recalibrated, and the area between; return the legend.

    `name` is that of the second axis, and `difference` that of the area.
    """
    if not records(ax, kind):
        despine(ax)
        ax.set_xlim(0, 1)
        ax.set_xlabel("threshold probability")
        ax.set_ylabel(name)
    legend: list[Entry] = []
    for model, color, (threshold, given, recalibrated) in zip(models, colors, pairs, strict=True):
        (line,) = ax.plot(threshold, given, color=color, lw=LINE_WIDTH, zorder=4)
        (dashed,) = ax.plot(threshold, recalibrated, color=color, lw=1, ls=DASHES, zorder=4)
        ax.fill_between(threshold, given, recalibrated, color=color, alpha=_SHADE, lw=0, zorder=3)
        if model.name:
            legend.append((model.name, line))
        else:
            area = Patch(facecolor=color, alpha=_SHADE, linewidth=0)
            legend += [("as predicted", line), ("recalibrated", dashed), (difference, area)]
    return legend


def _draw_band(ax: Axes, band: RegretBand, color: Any) -> Artist:
    """Draw where the recalibrated loss may be: the loss less each end of the regret's interval."""
    ends = (np.maximum(band.loss - band.high, 0.0), band.loss - band.low)
    ax.fill_between(band.threshold, *ends, color=color, alpha=_BAND_SHADE, lw=0, zorder=1)
    return Patch(facecolor=color, alpha=_BAND_SHADE, linewidth=0)


def _mark(ax: Axes, place: float, pair: Pair) -> Line2D:
    """Draw a line from 0 to the values as predicted at one threshold."""
    height = float(np.interp(place, *pair[:2]))
    return ax.plot([place, place], [0, height], color=MUTED, lw=1, ls="-.", zorder=5)[0]


def _write(ax: Axes, kind: str, models: list[Model], legend: list[Entry]) -> None:
    """Write the legend in a free corner; where none is free, limits make space."""
    labels, handles = zip(*legend, strict=True)
    title = ("dashed: recalibrated",) if any(model.name for model in models) else ()
    text = LegendText(list(labels), title)
    write_or_widen(ax, text, handles, corners=("upper right", "upper left"))
    ax.add_artist(Record(kind, None, len(models)))
