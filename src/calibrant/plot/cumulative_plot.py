"""The cumulative plot: where along the scores outcomes depart from predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator

from calibrant._base import FloatArray
from calibrant.curves.reliability_view import ABOUT_ROWS
from calibrant.data.classes import one_problem
from calibrant.inference.cumulative_tests import cumulative_test
from calibrant.inference.estimate import estimate
from calibrant.measures.cumulative import CumulativeCurve, cumulative_curve
from calibrant.plot.style import (
    DASHES,
    LINE_WIDTH,
    QUIET,
    SMALL,
    SMALLEST,
    Model,
    axes_or_new,
    colors_of,
    open_frame,
    read_models,
    record,
    records,
)
from calibrant.plot.text import Key, Note, headed, read_note, write_inside

__all__ = ["CumulativeDiagram", "cumulative", "draw_cumulative", "gather_cumulative"]

_WIDTH, _HEIGHT = 5.4, 3.8
# Round scores are offered by the handful, then by more, with the minimum distance between them as a
# fraction of the axis: what is less round has to fill a wide gap.
_FEW_SCORES = 12
_DISTANCES = {5: 0.085, 10: 0.085, 20: 0.15, 50: 0.2, 100: 0.2, 200: 0.2, 500: 0.2}
# How far the triangle at the origin points to the right, and how far those of all models do.
_TRIANGLE, _TRIANGLES = 0.03, 0.15
# What is left free above and below, and the most that a note without a free corner is given, as
# fractions of the height.
_FREE, _MOST_LACKING = 0.08, 0.6


@dataclass(frozen=True, eq=False)
class CumulativeDiagram:
    """The cumulative plot of one model."""

    curve: CumulativeCurve
    note: Note | None = None
    name: str = ""
    color: Any = None


def cumulative(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Axes | None = None,
    note: bool | Note = True,
    color: Any = None,
    **options: Any,
) -> Axes:
    """Draw the cumulative deviation of outcomes from predictions; level is perfect.

    Between two points of the curve, its slope is the mean of outcome less prediction over the
    scores between them: it rises where predictions are too low. The triangle at the origin is two
    standard deviations high either way, for the end of a calibrated model's curve. Scores are
    written along the top, each where the curve reaches it; circles mark the highest and the lowest
    point, whose distance is ECCE-R. A further call on the same Axes adds its models to those that
    are there; scores along the top remain those of the first.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.cumulative_curve`, or its result, or that of
        :func:`calibrant.subpopulation_curve`. For several models give a mapping from names: of
        predictions, in place of `y_prob`, or of sketches or results, in place of both.
    ax
        The Axes to draw on; without one a new figure is made that pyplot does not know of.
    note
        What is written beside the curve. True: the result of :func:`calibrant.cumulative_test`, or
        for soft labels ECCE-R with its interval, where data are given. Or a result, or words.
    color
        The colour of the curve, or a list of colours for several models.
    **options
        `sample_weight`, `multiclass`, `labels` and `pos_label`, and those of
        :func:`calibrant.cumulative_test`: `statistic`, `method`, `n_resamples`, `rng`.

    Returns
    -------
    Axes
        The Axes drawn on.

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
    if isinstance(model.y_true, CumulativeCurve):
        model.refuse_options("a CumulativeCurve")
        return CumulativeDiagram(model.y_true, text, model.name, model.color)
    model.check_options("cumulative", cumulative_test)
    problem = one_problem(model.y_true, model.y_prob, *model.about_rows)
    curve = cumulative_curve(problem)
    if note is True:
        # Noise is known for outcomes that are 0 or 1 and not predicted with certainty.
        if curve.sigma > 0:
            options = {k: v for k, v in model.options.items() if k not in ABOUT_ROWS}
            text = cumulative_test(problem, **options)
        else:
            text = estimate("ecce_r", problem)
    return CumulativeDiagram(curve, text, model.name, model.color)


def draw_cumulative(ax: Axes, diagrams: list[CumulativeDiagram]) -> list[Line2D]:
    """Draw cumulative curves on an Axes in addition to what is there; return their lines."""
    before = records(ax, "cumulative")
    n_before = sum(one.n_models for one in before)
    colors = colors_of(ax, diagrams, n_before)
    alone = len(diagrams) == 1 and not before
    _set_up(ax, [diagram.curve for diagram in diagrams], is_added=bool(before))
    lines = []
    for i, (diagram, color) in enumerate(zip(diagrams, colors, strict=True)):
        lines.append(_draw_curve(ax, diagram.curve, color))
        width = min(_TRIANGLE, _TRIANGLES / len(diagrams))
        _draw_sigma(
            ax, diagram.curve.sigma, QUIET if alone else color, (n_before + i) * width, width
        )
    if not before:
        _name_sigma(ax, diagrams[0].curve)
    if alone:
        _draw_extremes(ax, diagrams[0].curve, colors[0])
        _draw_scores(ax, diagrams[0].curve)
    _write(ax, diagrams, lines, alone=alone)
    record(ax, "cumulative", None, len(diagrams))
    return lines


def _set_up(ax: Axes, curves: list[CumulativeCurve], *, is_added: bool) -> None:
    """Set up both axes, so that curves and triangles are seen whole."""
    ends = [np.array([-2, 2]) * curve.sigma for curve in curves if curve.sigma > 0]
    heights = np.concatenate([*(curve.deviation for curve in curves), *ends])
    low, high = float(heights.min()), float(heights.max())
    free = _FREE * (high - low) or _FREE
    low, high = low - free, high + free
    if is_added:
        bottom, top = ax.get_ylim()
        ax.set_ylim(min(low, bottom), max(high, top))
        return
    open_frame(ax)
    ax.set_xlim(0, 1)
    ax.set_ylim(low, high)
    ax.set_xlabel("fraction of predictions, in order of score")
    ax.set_ylabel("cumulative deviation\n(rising: predictions too low)")
    ax.axhline(0, color=QUIET, lw=0.8, ls=DASHES, zorder=1)


def _draw_curve(ax: Axes, curve: CumulativeCurve, color: Any) -> Line2D:
    shown = curve.thinned()
    style: dict[str, Any] = {"lw": LINE_WIDTH, "solid_joinstyle": "round", "zorder": 3}
    (line,) = ax.plot(shown.fraction, shown.deviation, color=color, clip_on=False, **style)
    return line


def _draw_sigma(ax: Axes, sigma: float, color: Any, left: float, width: float) -> None:
    """Draw a triangle, 2 sigma up and 2 sigma down, at the origin or beside those of others."""
    if sigma > 0:
        corners = [(left, -2 * sigma), (left, 2 * sigma), (left + width, 0)]
        ax.add_patch(Polygon(corners, fc=color, ec="none", alpha=0.45, zorder=2))


def _name_sigma(ax: Axes, curve: CumulativeCurve) -> None:
    """Say what the triangle is, on the side that the curve leaves free."""
    if not curve.sigma > 0:
        return
    early = curve.deviation[curve.fraction <= 5 * _TRIANGLE]
    side = -1 if abs(early.max()) >= abs(early.min()) else 1
    ax.annotate(
        "$\\pm 2\\sigma$",
        (0, side * 2 * curve.sigma),
        xytext=(5, 4 * side),
        textcoords="offset points",
        va="center",
        fontsize=SMALLEST,
        color=QUIET,
    )


def _draw_extremes(ax: Axes, curve: CumulativeCurve, color: Any) -> None:
    """Mark the highest and the lowest point, whose distance is ECCE-R."""
    ends = [int(curve.deviation.argmax()), int(curve.deviation.argmin())]
    x, y = curve.fraction[ends], curve.deviation[ends]
    ax.plot(
        x, y, ls="none", marker="o", ms=5, mfc="white", mec=color, mew=1.2, zorder=4, clip_on=False
    )


def _draw_scores(ax: Axes, curve: CumulativeCurve) -> None:
    """Write round scores along the top, each where the curve reaches it."""
    top = ax.secondary_xaxis("top")
    places, scores = _score_ticks(curve)
    top.set_xticks(places, [f"{score:.4g}" for score in scores])
    top.tick_params(color=QUIET, labelsize=SMALL)
    top.spines["top"].set_color(QUIET)
    top.set_xlabel("score")


def _score_ticks(curve: CumulativeCurve) -> tuple[list[float], list[float]]:
    """Return where scores are reached, and those scores: the rounder go first."""
    taken: dict[float, float] = {}
    for scores, distance in _offered(curve.score):
        # Amid the rows that have this very score.
        first, last = (np.searchsorted(curve.score, scores, side=s) - 1 for s in ("left", "right"))
        places = (curve.fraction[np.maximum(first, 0)] + curve.fraction[last]) / 2
        for place, score in zip(places.tolist(), scores.tolist(), strict=True):
            if all(abs(place - other) >= distance for other in taken):
                taken[place] = score
    return list(taken), list(taken.values())


def _offered(score: FloatArray) -> Iterator[tuple[FloatArray, float]]:
    """Yield scores to be written, and their minimum distance: all of a few, or round ones."""
    if len(score) <= _FEW_SCORES:
        yield score[1:], _DISTANCES[5]
        return
    low, high = float(score[0]), float(score[-1])
    for n_ticks, distance in _DISTANCES.items():
        ticks = np.asarray(MaxNLocator(n_ticks, steps=[1, 2, 5, 10]).tick_values(low, high))
        yield ticks[(ticks >= low) & (ticks <= high)], distance


def _write(
    ax: Axes, diagrams: list[CumulativeDiagram], lines: list[Line2D], *, alone: bool
) -> None:
    """Write names and what was measured in a free corner; where none is free, limits make space."""
    text: list[str] | Key = headed("", diagrams[0].note)
    if len(diagrams) > 1:
        text = Key.of([(diagram.name, diagram.note) for diagram in diagrams])
    elif diagrams[0].name or not alone:
        text = Key(["\n".join(headed(diagrams[0].name, diagrams[0].note))])
    lacking = min(write_inside(ax, text, lines), _MOST_LACKING)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + (high - low) * lacking / (1 - lacking))
