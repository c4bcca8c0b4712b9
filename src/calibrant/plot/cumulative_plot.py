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

from calibrant.arrays import FloatArray
from calibrant.curves.cumulative import cumulative_curve
from calibrant.inference.cumulative import cumulative_test
from calibrant.inference.estimate import estimate
from calibrant.plot.canvas import axes_or_new
from calibrant.plot.corners import Path, anywhere
from calibrant.plot.models import Model, read_models
from calibrant.plot.overlay import drawn_together
from calibrant.plot.style import (
    DASHES,
    LINE_WIDTH,
    QUIET,
    SMALL,
    SMALLEST,
    colors_of,
    open_frame,
)
from calibrant.plot.wording import Key, Note, headed, read_note
from calibrant.results.curves import CumulativeCurve

__all__ = ["Walked", "cumulative", "draw_walks", "gather_walk"]

_WIDTH, _HEIGHT = 5.4, 3.8
# Round scores are offered by the handful, then by more, with the room that each must have around
# it as a share of the axis: what is less round has to fill a wide gap.
_FEW_SCORES = 12
_ROOMS = {5: 0.085, 10: 0.085, 20: 0.15, 50: 0.2, 100: 0.2, 200: 0.2, 500: 0.2}
# How far the triangle at the origin points to the right, and how far those of all models do.
_TRIANGLE, _TRIANGLES = 0.03, 0.15
# What is left free above and below, as a share of the height.
_ROOM = 0.08


@dataclass(frozen=True, eq=False)
class Walked:
    """The results in one model's cumulative plot."""

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
    point, whose distance is ECCE-R.

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
    'share of predictions, in order of score'
    """
    walks = [gather_walk(model, note) for model in read_models(y_true, y_prob, options, color)]
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    draw_walks(ax, walks)
    return ax


def gather_walk(model: Model, note: bool | Note) -> Walked:
    """Return the results of a model, asking for those that were not given."""
    note = read_note(note)
    words = None if isinstance(note, bool) else note
    if isinstance(model.y_true, CumulativeCurve):
        model.refuse_options("a CumulativeCurve")
        return Walked(model.y_true, words, model.name, model.color)
    model.check_options("cumulative", cumulative_test)
    curve = cumulative_curve(model.y_true, model.y_prob, **model.about_rows())
    if note is True:
        # Noise is known for outcomes that are 0 or 1 and not foretold with certainty.
        if curve.sigma > 0:
            words = cumulative_test(model.y_true, model.y_prob, **model.options)
        else:
            words = estimate("ecce_r", model.y_true, model.y_prob, **model.about_rows())
    return Walked(curve, words, model.name, model.color)


def draw_walks(ax: Axes, walks: list[Walked]) -> list[Line2D]:
    """Draw cumulative curves on an Axes with those already there; return their lines."""
    with drawn_together(ax, "cumulative", walks) as together:
        colors = colors_of(ax, together)
        alone = len(together) == 1
        _frame(ax, [walk.curve for walk in together])
        lines = [
            _draw_curve(ax, walk.curve, own) for walk, own in zip(together, colors, strict=True)
        ]
        for walk, own, span in zip(together, colors, _spans(together), strict=True):
            _draw_sigma(ax, walk.curve.sigma, QUIET if alone else own, span)
        _name_sigma(ax, together[0].curve)
        if alone:
            _draw_extremes(ax, together[0].curve, colors[0])
            _draw_scores(ax, together[0].curve)
        _write(ax, together, lines)
    return lines[-len(walks) :]


def _frame(ax: Axes, curves: list[CumulativeCurve]) -> None:
    """Set up both axes, so that curves and triangles are seen whole."""
    open_frame(ax)
    heights = np.concatenate([v for c in curves for v in (c.deviation, 2 * _known(c.sigma))])
    low, high = float(heights.min()), float(heights.max())
    room = _ROOM * (high - low) or _ROOM
    ax.set_xlim(0, 1)
    ax.set_ylim(low - room, high + room)
    ax.set_xlabel("share of predictions, in order of score")
    ax.set_ylabel("cumulative deviation\n(rising: predictions too low)")
    ax.axhline(0, color=QUIET, lw=0.8, ls=DASHES, zorder=1)


def _known(sigma: float) -> FloatArray:
    """Return sigma down and up, or nothing where it is not known."""
    return np.array([-sigma, sigma]) if sigma > 0 else np.zeros(0)


def _draw_curve(ax: Axes, curve: CumulativeCurve, color: Any) -> Line2D:
    shown = curve.thinned()
    style: dict[str, Any] = {"lw": LINE_WIDTH, "solid_joinstyle": "round", "zorder": 3}
    (line,) = ax.plot(shown.fraction, shown.deviation, color=color, clip_on=False, **style)
    return line


def _spans(walks: list[Walked]) -> list[tuple[float, float]]:
    """Return where each triangle begins and ends: the first at the origin, the others beside it."""
    width = min(_TRIANGLE, _TRIANGLES / len(walks))
    return [(place * width, (place + 1) * width) for place in range(len(walks))]


def _draw_sigma(ax: Axes, sigma: float, color: Any, span: tuple[float, float]) -> None:
    """Draw a triangle, 2 sigma up and 2 sigma down."""
    if sigma > 0:
        left, right = span
        corners = [(left, -2 * sigma), (left, 2 * sigma), (right, 0)]
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
    for scores, room in _offered(curve.score):
        # Amid the rows that have this very score.
        first, last = (np.searchsorted(curve.score, scores, side=s) - 1 for s in ("left", "right"))
        places = (curve.fraction[np.maximum(first, 0)] + curve.fraction[last]) / 2
        for place, score in zip(places.tolist(), scores.tolist(), strict=True):
            if all(abs(place - other) >= room for other in taken):
                taken[place] = score
    return list(taken), list(taken.values())


def _offered(score: FloatArray) -> Iterator[tuple[FloatArray, float]]:
    """Yield scores to be written, and the room each must have: all of a few, or round ones."""
    if len(score) <= _FEW_SCORES:
        yield score[1:], _ROOMS[5]
        return
    low, high = float(score[0]), float(score[-1])
    for n_ticks, room in _ROOMS.items():
        ticks = np.asarray(MaxNLocator(n_ticks, steps=[1, 2, 5, 10]).tick_values(low, high))
        yield ticks[(ticks >= low) & (ticks <= high)], room


def _write(ax: Axes, walks: list[Walked], lines: list[Line2D]) -> None:
    """Write names and what was measured where there is room."""
    level = np.zeros(2)
    paths: list[Path] = [(np.array([0.0, 1.0]), level)]
    for walk, line, (left, _) in zip(walks, lines, _spans(walks), strict=True):
        paths.append((np.asarray(line.get_xdata()), np.asarray(line.get_ydata())))
        if walk.curve.sigma > 0:
            paths.append((level + left, 2 * _known(walk.curve.sigma)))
    if len(walks) > 1:
        key = Key.of([(walk.name, walk.note) for walk in walks])
        anywhere(ax, key.lines, paths).write_key(ax, lines, key)
    else:
        words = headed(walks[0].name, walks[0].note)
        anywhere(ax, words, paths).write(ax, words)
