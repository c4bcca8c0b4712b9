"""The cumulative plot: where along the scores outcomes deviate from predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from calibrant.data.classes import ROW_OPTIONS, one_problem
from calibrant.data.sketch import Sketch
from calibrant.inference.cumulative_tests import CumulativeTestOptions, cumulative_test
from calibrant.inference.estimate import estimate
from calibrant.measures.cumulative import CumulativeCurve, cumulative_curve
from calibrant.plot.common import (
    DASHES,
    LINE_WIDTH,
    MUTED,
    SMALL,
    SMALLEST,
    Colors,
    LegendText,
    Model,
    Note,
    Record,
    axes_or_new,
    despine,
    note_lines,
    read_models,
    read_note,
    records,
    resolve_colors,
    write_or_widen,
)

_WIDTH, _HEIGHT = 5.4, 3.8
# Up to this many distinct scores are all written along the top; of more, round ones: a few first,
# then less round ones in wide gaps. Minimum distances are fractions of the axis.
_FEW_SCORES = 12
_DISTANCES = {5: 0.085, 10: 0.085, 20: 0.15, 50: 0.2, 100: 0.2, 200: 0.2, 500: 0.2}
# How far the triangle at the origin points to the right, and how far those of all models do.
_TRIANGLE, _TRIANGLES = 0.03, 0.15
# The space above and below the curve, as a fraction of the height.
_FREE = 0.08


@dataclass(frozen=True, eq=False)
class CumulativeDiagram:
    """The cumulative plot of one model."""

    curve: CumulativeCurve
    note: Note | None = None
    name: str = ""
    color: Any = None


def cumulative(
    y_true: ArrayLike | Sketch | CumulativeCurve | Mapping[str, Sketch | CumulativeCurve],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
    note: bool | Note = True,
    color: Colors = None,
    **options: Unpack[CumulativeTestOptions],
) -> Axes:
    """Draw the cumulative deviation of outcomes from predictions; level is perfect.

    Between two points of the curve, its slope is the mean of outcome minus prediction over the
    scores between them: it rises where predictions are too low. The triangle at the origin is two
    standard deviations high either way, for the end of the curve under perfect calibration. Scores
    are written along the top, each where the curve reaches it; circles mark the highest and the
    lowest point, whose distance is ECCE-R.

    Parameters
    ----------
    y_true : array_like, Sketch, result or mapping of them
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes. Or in place of both
        arrays a sketch or a result, or for several models a mapping from names to these.

        Results are those of :func:`calibrant.cumulative_curve` and
        :func:`calibrant.subpopulation_curve`.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    note : bool, result or str
        Text beside the curve. True: where data are given, the result of
        :func:`calibrant.cumulative_test`, or for soft labels ECCE-R with its interval. False:
        none. Or a result, or text.
    color : color or list of colors, optional
        Colour of the model, or a list with one per model; by default the next of the palette.
    **options
        Explained in :func:`calibrant.cumulative_test`: `statistic`, `method`, `n_resamples`,
        `rng`, `sample_weight`, `multiclass`, `labels` and `pos_label`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn on.

    See Also
    --------
    calibrant.cumulative_curve : The numbers of the plot.
    calibrant.cumulative_test : The test of perfect calibration.

    Notes
    -----
    A further call on the same Axes adds its models; scores along the top remain those of the first.

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration" (2022), section 2.5.2 and Figure 7.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> ax = cumulative(*load_flares())
    >>> ax.get_xlabel()
    'fraction of predictions, in order of score'
    """
    models = read_models(y_true, y_prob, options, color)
    diagrams = [gather_cumulative(model, note) for model in models]
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    draw_cumulative(ax, diagrams)
    return ax


def gather_cumulative(model: Model, note: bool | Note) -> CumulativeDiagram:
    """Return the diagram of a model, from rows or from the result that was given."""
    note = read_note(note)
    text = None if isinstance(note, bool) else note
    given = model.result(CumulativeCurve)
    if given is not None:
        return CumulativeDiagram(given, text, model.name, model.color)
    model.check_options("cumulative", cumulative_test)
    problem = one_problem(model.y_true, model.y_prob, *map(model.options.get, ROW_OPTIONS))
    curve = cumulative_curve(problem)
    if note is True:
        # The variance is known for outcomes that are 0 or 1 and not predicted with certainty.
        if curve.sigma > 0:
            options = {k: v for k, v in model.options.items() if k not in ROW_OPTIONS}
            text = cumulative_test(problem, **options)
        else:
            text = estimate("ecce_r", problem)
    return CumulativeDiagram(curve, text, model.name, model.color)


def draw_cumulative(ax: Axes, diagrams: list[CumulativeDiagram]) -> list[Line2D]:
    """Draw cumulative curves on an Axes in addition to what is there; return their lines."""
    before = records(ax, "cumulative")
    n_before = sum(one.n_models for one in before)
    colors = resolve_colors(ax, [diagram.color for diagram in diagrams], n_before)
    alone = len(diagrams) == 1 and not before
    _set_up(ax, [diagram.curve for diagram in diagrams], is_added=bool(before))
    lines, width = [], min(_TRIANGLE, _TRIANGLES / len(diagrams))
    style: dict[str, Any] = {"lw": LINE_WIDTH, "solid_joinstyle": "round", "zorder": 3}
    for i, (diagram, color) in enumerate(zip(diagrams, colors, strict=True), n_before):
        shown, sigma, left = diagram.curve.thinned(), diagram.curve.sigma, i * width
        lines += ax.plot(shown.fraction, shown.deviation, color=color, clip_on=False, **style)
        if sigma > 0:
            # A triangle, 2 sigma up and 2 sigma down, at the origin or beside those of others.
            corners = [(left, -2 * sigma), (left, 2 * sigma), (left + width, 0)]
            fill = MUTED if alone else color
            ax.add_patch(Polygon(corners, fc=fill, ec="none", alpha=0.45, zorder=2))
    if not before and diagrams[0].curve.sigma > 0:
        _label_sigma(ax, diagrams[0].curve)
    if alone:
        _draw_extremes(ax, diagrams[0].curve, colors[0])
        _draw_scores(ax, diagrams[0].curve)
    _write(ax, diagrams, lines, alone=alone)
    ax.add_artist(Record("cumulative", None, len(diagrams)))
    return lines


def _set_up(ax: Axes, curves: list[CumulativeCurve], *, is_added: bool) -> None:
    """Set up both axes, so that curves and triangles are visible as a whole."""
    ends = [np.array([-2, 2]) * curve.sigma for curve in curves if curve.sigma > 0]
    heights = np.concatenate([*(curve.deviation for curve in curves), *ends])
    low, high = float(heights.min()), float(heights.max())
    free = _FREE * (high - low) or _FREE
    low, high = low - free, high + free
    if is_added:
        bottom, top = ax.get_ylim()
        ax.set_ylim(min(low, bottom), max(high, top))
        return
    despine(ax)
    ax.set_xlim(0, 1)
    ax.set_ylim(low, high)
    ax.set_xlabel("fraction of predictions, in order of score")
    ax.set_ylabel("cumulative deviation\n(rising: predictions too low)")
    ax.axhline(0, color=MUTED, lw=0.8, ls=DASHES, zorder=1)


def _label_sigma(ax: Axes, curve: CumulativeCurve) -> None:
    """Label the triangle on the side that the curve leaves free."""
    early = curve.deviation[curve.fraction <= 5 * _TRIANGLE]
    side = -1 if abs(early.max()) >= abs(early.min()) else 1
    style: dict[str, Any] = {"va": "center", "fontsize": SMALLEST, "color": MUTED}
    place, offset = (0, side * 2 * curve.sigma), (5, 4 * side)
    ax.annotate("$\\pm 2\\sigma$", place, xytext=offset, textcoords="offset points", **style)


def _draw_extremes(ax: Axes, curve: CumulativeCurve, color: Any) -> None:
    """Mark the highest and the lowest point, whose distance is ECCE-R."""
    ends = [curve.deviation.argmax(), curve.deviation.argmin()]
    style: dict[str, Any] = {"ms": 5, "mfc": "white", "mec": color, "mew": 1.2, "zorder": 4}
    ax.plot(curve.fraction[ends], curve.deviation[ends], "o", clip_on=False, **style)


def _draw_scores(ax: Axes, curve: CumulativeCurve) -> None:
    """Write scores along the top, each where the curve reaches it: all of a few, or round ones."""
    low, high = float(curve.score[0]), float(curve.score[-1])
    candidates = [
        (np.asarray(MaxNLocator(n_ticks, steps=[1, 2, 5, 10]).tick_values(low, high)), distance)
        for n_ticks, distance in _DISTANCES.items()
    ]
    if len(curve.score) <= _FEW_SCORES:
        candidates = [(curve.score[1:], _DISTANCES[5])]
    ticks: dict[float, float] = {}
    for scores, distance in candidates:
        scores = scores[(scores >= low) & (scores <= high)]
        # Amid the rows that have this very score.
        first, last = (np.searchsorted(curve.score, scores, side=s) - 1 for s in ("left", "right"))
        places = (curve.fraction[np.maximum(first, 0)] + curve.fraction[last]) / 2
        for place, score in zip(places.tolist(), scores.tolist(), strict=True):
            if all(abs(place - other) >= distance for other in ticks):
                ticks[place] = score
    top = ax.secondary_xaxis("top")
    top.set_xticks(list(ticks), [f"{score:.4g}" for score in ticks.values()])
    top.tick_params(color=MUTED, labelsize=SMALL)
    top.spines["top"].set_color(MUTED)
    top.set_xlabel("score")


def _write(
    ax: Axes, diagrams: list[CumulativeDiagram], lines: list[Line2D], *, alone: bool
) -> None:
    """Write names and results in a free corner; where none is free, limits make space."""
    first = diagrams[0]
    text: list[str] | LegendText = note_lines(first.note)
    if len(diagrams) > 1:
        text = LegendText.of([(diagram.name, diagram.note) for diagram in diagrams])
    elif first.name or not alone:
        text = LegendText(["\n".join([*filter(None, [first.name]), *note_lines(first.note)])])
    write_or_widen(ax, text, lines)
