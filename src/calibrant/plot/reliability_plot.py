"""Reliability diagrams: predictions against outcomes, with strips for how both are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from calibrant.curves.curve import Curve
from calibrant.curves.reliability import reliability_curve
from calibrant.curves.reliability_view import (
    Recalibrated,
    ReliabilityView,
    Window,
    view_of_curve,
    view_of_rows,
    view_of_table,
)
from calibrant.data import validation
from calibrant.errors import CalibrantError
from calibrant.measures.bin_table import BinTable
from calibrant.plot import marks
from calibrant.plot.marks import Frame
from calibrant.plot.style import (
    MARKERS,
    QUIET,
    SMALLEST,
    Model,
    axes_or_new,
    colors_of,
    read_models,
    record,
    records,
)
from calibrant.plot.text import (
    Corner,
    Key,
    Note,
    about_band,
    about_masses,
    give_way,
    headed,
    read_note,
    write_beside,
    write_inside,
)

__all__ = ["Diagram", "Layout", "Margin", "draw_diagrams", "gather", "reliability"]

# What is shown beside the diagram: nothing, outcomes below, or recalibrated scores as well.
Margin = bool | Literal["both"]

_WIDTH, _HEIGHT = 4.2, 4.7
# What a strip on the right adds to the width, and the counts of bins to the height.
_STRIP, _COUNTS = 0.9, 0.2
# The names of more models than a few are written beside the diagram, which takes a wider figure.
_FEW_MODELS, _WIDER = 3, 7.2
# The fraction of the Axes that a strip beside the diagram takes.
_BESIDE = 0.17
# The strip below: the height of its line, how far marks reach from it, and the minimum length of a
# mark, so that a single row is seen among many; as fractions of the height of the Axes.
_LEVEL, _REACH, _TICK = 0.075, 0.07, 0.006
# The strip on the right: the number of bars, their foot, how far they reach, and the minimum length
# of one, as fractions of the strip.
_BARS, _FOOT, _BAR, _SHORT = 50, 0.1, 0.85, 0.03
_GREY, _DOTS = "0.45", (0, (1, 2))
# The corners above and below the diagonal.
_CORNERS: tuple[Corner, Corner] = ("upper left", "lower right")


def reliability(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Axes | None = None,
    note: bool | Note = True,
    margin: Margin = True,
    deviation: bool = False,
    limits: tuple[float, float] | None = None,
    color: Any = None,
    table: BinTable | None = None,
    **options: Any,
) -> Axes:
    """Draw a reliability diagram: how often what was predicted came true.

    A smooth curve is as wide as its scores are dense, and is drawn where it is known: where rows
    count for at least as much, weighted by the kernel, as one row a bandwidth away does. An
    isotonic curve is heavier along its level runs. Where there are few distinct scores, circles
    mark the mean outcome at each; among many, discs mark it at single scores that hold at least a
    twentieth of the rows, 30 and ten times as many as the scores next to them. Areas are
    proportional to fractions of the rows, up to a third. Bars of a binned curve carry their number
    of rows, and are the darker the more there are; where some are too narrow for it, the range of
    all is written instead. Its points carry their intervals. Below lie the outcomes themselves: 1
    above a line and 0 beneath it, the more the higher, each at least a tick.

    A further call on the same Axes adds its models to those that are there, in the next colours,
    with outcomes below as outlines, and widens the limits to show both. For one legend and one
    distribution of scores for all models, give them in one call.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.reliability_curve`, or its result, or that of
        :func:`calibrant.bin_table`. For several models give a mapping from names: of predictions,
        in place of `y_prob`, or of sketches or results, in place of both.
    ax
        The Axes to draw on; without one a new figure is made that pyplot does not know of. With
        ``ax=plt.gca()`` it is pyplot's, and ``plt.show()`` shows it.
    note
        What is written beside the curve. True: what the band and the discs are and, where data are
        given, smECE or ECE with its interval, or the score decomposition of an isotonic curve.
        False: nothing. Or a result, or text.
    margin
        Whether to draw where outcomes lie, below; the density of scores for several models.
        "both": and along the right, for one model, how many rows the curve would give each
        recalibrated score, with a line at the base rate. The farther from it they spread, the
        better scores discriminate.
    deviation
        Draw outcomes less predictions: the diagonal laid flat, which shows small deviations.
    limits
        The scores to show, such as (0.9, 1). Unless given, all of [0, 1], or the part that scores
        and outcomes keep to where that is less than half of it.
    color
        The colour of the curve, or a list of colours for several models.
    table
        Beside a curve, the table of its outcomes; where it has only a few bins, circles mark their
        means.
    **options
        As in :func:`calibrant.reliability_curve`: `method`, `bandwidth`, `n_bins`, `strategy`,
        `band`, `level` and the rest; but the band holds for the whole curve unless
        ``simultaneous=False``.

    Returns
    -------
    Axes
        The Axes drawn on.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), Figures 1 and 2. Posocco and Bonnefoy, "Estimating
    Expected Calibration Errors" (2021), Figure 1. Dimitriadis, Gneiting and Jordan, "Stable
    reliability diagrams" (2021): isotonic curves, and the spread of recalibrated scores.

    Examples
    --------
    >>> from calibrant.datasets import load_rain
    >>> ax = reliability(*load_rain())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted probability', 'observed frequency')
    """
    models = read_models(y_true, y_prob, options, color)
    layout = Layout(limits=limits, margin=margin, deviation=deviation)
    layout.check()
    diagrams = [gather(model, table, note) for model in models]
    width = _WIDTH if len(diagrams) <= _FEW_MODELS else _WIDER
    height = _HEIGHT + _COUNTS * (len(diagrams) == 1 and diagrams[0].view.bins is not None)
    ax = axes_or_new(ax, width + _STRIP * (margin == "both"), height)
    draw_diagrams(ax, diagrams, layout)
    return ax


@dataclass(frozen=True, eq=False)
class Diagram:
    """The reliability diagram of one model.

    Attributes
    ----------
    view
        What it shows.
    note
        What is written about the model; with no text at all, its band goes without, too.
    name
        The name of the model; empty where there is only one.
    color
        Its colour; None for the next one in turn.
    """

    view: ReliabilityView
    note: Note | None = None
    name: str = ""
    color: Any = None


def gather(model: Model, table: BinTable | None, note: bool | Note) -> Diagram:
    """Return the diagram of a model, from rows or from the result that was given."""
    note = read_note(note)
    if table is not None and not isinstance(table, BinTable):
        raise CalibrantError("must be a BinTable", argument="table", value=table)
    text = {True: None, False: ""}[note] if isinstance(note, bool) else note
    if isinstance(model.y_true, BinTable):
        model.refuse_options("a BinTable")
        return Diagram(view_of_table(model.y_true), text, model.name, model.color)
    if isinstance(model.y_true, Curve):
        model.refuse_options("a Curve")
        return Diagram(view_of_curve(model.y_true, table), text, model.name, model.color)
    if table is not None:
        raise CalibrantError("table goes with a Curve: rows have their own, so leave it out")
    model.check_options("reliability", reliability_curve)
    view = view_of_rows(model.y_true, model.y_prob, model.options, measured=note is True)
    if note is True:
        text = view.curve if view.measured is None else view.measured
    return Diagram(view, text, model.name, model.color)


@dataclass(frozen=True)
class Layout:
    """How diagrams are laid out: see :func:`reliability`.

    A terse one leaves out what bands and discs are; inside, notes stay within the Axes in any case.
    """

    limits: tuple[float, float] | None = None
    margin: Margin = True
    deviation: bool = False
    is_terse: bool = False
    inside: bool = False

    def check(self) -> None:
        """Refuse options of the wrong kind, and limits that hold no scores."""
        is_both = isinstance(self.margin, str) and self.margin == "both"
        if not is_both and not isinstance(self.margin, bool | np.bool_):
            raise CalibrantError(
                "must be True, False or 'both'", argument="margin", value=self.margin
            )
        validation.as_flag(self.deviation, "deviation")
        if self.limits is not None:
            low, high = validation.as_pair(self.limits)
            if not 0 <= low < high <= 1:
                raise CalibrantError(
                    "must be two scores 0 <= low < high <= 1", argument="limits", value=self.limits
                )

    def frame(self, views: Sequence[ReliabilityView]) -> Frame:
        """Return the square on the diagonal, or for deviations as much below 0 as above."""
        window = Window.around(views) if self.limits is None else Window(*self.limits)
        low, high = window.low, window.high
        deviation = self.deviation or any(view.curve.method == "local" for view in views)
        if deviation:
            high = 1.1 * max(_largest_deviation(view, window) for view in views) or 0.1
            low = -high
        below, side = _BESIDE * bool(self.margin), _BESIDE * (self.margin == "both")
        strip = _strip(views) if self.margin else ""
        return Frame(window, low, high, below, side, bool(deviation), strip)


def _largest_deviation(view: ReliabilityView, window: Window) -> float:
    curve, masses = view.drawn(window, deviation=True), view.marks(window, deviation=True)
    heights = [curve.y, curve.low, curve.high, np.zeros(1)]
    if masses is not None:
        heights.append(masses.outcome)
    return float(np.nanmax(np.abs(np.concatenate(heights))))


def _strip(views: Sequence[ReliabilityView]) -> Literal["outcomes", "density", ""]:
    """Return what the strip below shows: what is known of outcomes, or of several models."""
    if len(views) > 1:
        return "density"
    return "outcomes" if views[0].rows is not None or views[0].is_smooth else ""


def draw_diagrams(ax: Axes, diagrams: list[Diagram], layout: Layout = Layout()) -> list[Artist]:  # noqa: B008
    """Draw diagrams on an Axes in addition to what is there; return the artists of their curves."""
    layout.check()
    views, before = [diagram.view for diagram in diagrams], records(ax, "reliability")
    frame, n_before = layout.frame(views), sum(one.n_models for one in before)
    if layout.margin == "both":
        _check_side(views, frame, n_before)
    if before:
        frame = frame.joined(before[-1].content, widened=layout.limits is None)
    alone = len(diagrams) == 1 and not before
    colors = colors_of(ax, diagrams, n_before)
    frame = _set_up(ax, views, frame, colors, is_added=bool(before))
    lines = []
    for i, (view, color) in enumerate(zip(views, colors, strict=True)):
        curve = view.drawn(frame.window, deviation=frame.deviation)
        marks.draw_band(ax, curve, color, frame)
        lines.append(marks.draw_curve(ax, curve, color, frame, alone=alone))
        masses = view.marks(frame.window, deviation=frame.deviation)
        if masses is not None:
            marks.draw_masses(ax, masses, color, frame)
        if len(diagrams) > _FEW_MODELS:
            marks.draw_markers(ax, curve, color, n_before + i)
    if layout.margin == "both":
        _draw_side(ax, views[0].recalibrated(), frame)
    if layout.margin:
        _draw_strip(ax, views, colors, frame, is_added=bool(before))
    _label_strip(ax, frame)
    give_way(ax)
    _write(ax, diagrams, colors, frame, layout, is_added=bool(before))
    record(ax, "reliability", frame, len(diagrams))
    return lines


def _set_up(
    ax: Axes, views: list[ReliabilityView], frame: Frame, colors: list[Any], *, is_added: bool
) -> Frame:
    """Set up an Axes, with bars and their counts below them where there is one binned curve."""
    bins = views[0].bins if len(views) == 1 and not is_added else None
    counts = None if bins is None else marks.Counts.of(ax, bins, frame)
    if counts is not None:
        frame = replace(frame, margin=frame.margin + counts.height)
    frame.set_up(ax)
    if not is_added:
        is_confidence = all(view.is_confidence for view in views)
        view = replace(views[0], is_confidence=is_confidence)
        frame.name_axes(ax, view.axis_names(deviation=frame.deviation))
    marks.draw_level(ax, frame)
    if bins is not None and counts is not None:
        marks.draw_bars(ax, bins, colors[0], frame)
        counts.write(ax, frame)
    return frame


def _draw_strip(
    ax: Axes, views: list[ReliabilityView], colors: list[Any], frame: Frame, *, is_added: bool
) -> None:
    """Draw where outcomes lie, or where the scores of several models do."""
    if frame.strip == "density":
        _draw_densities(ax, views, colors)
    if frame.strip != "outcomes":
        return
    ax.plot((0, 1 - frame.side), (_LEVEL, _LEVEL), color=QUIET, lw=0.5, transform=ax.transAxes)
    # The strip of one model is grey; those of others are outlines in their own colours.
    for view, color in zip(views, colors, strict=True):
        style: dict[str, Any] = {"color": color if is_added else _GREY, "fill": not is_added}
        if view.rows is not None:
            _draw_outcomes(ax, view.rows, frame.window, **style)
        elif view.is_smooth:
            _draw_density(ax, view, frame.window, **style)


def _draw_outcomes(ax: Axes, table: BinTable, window: Window, color: Any, *, fill: bool) -> None:
    """Draw outcomes 1 above a line and outcomes 0 below: the more of them, the longer the mark."""
    ones = np.nan_to_num(table.weight * table.mean_true)
    zeros = np.maximum(table.weight - ones, 0.0)
    most = max(ones.max(), zeros.max())
    edges = np.clip(table.edges, window.low, window.high)
    is_shown = np.diff(edges) > 0
    for amount, sign in ((ones[is_shown], 1), (zeros[is_shown], -1)):
        length = np.where(amount > 0, _TICK + (_REACH - _TICK) * amount / most, 0.0)
        ax.stairs(
            _LEVEL + sign * length,
            np.unique(edges),
            baseline=_LEVEL,
            fill=fill,
            color=color,
            lw=0.9,
            transform=ax.get_xaxis_transform(),
        )


def _draw_density(
    ax: Axes, view: ReliabilityView, window: Window, color: Any, *, fill: bool
) -> None:
    """Draw the density of scores, split by outcome, from a smooth curve alone."""
    ones, zeros = view.density_by_outcome()
    most, is_shown = max(ones.max(), zeros.max()), window.holds(view.curve.x)
    across = ax.get_xaxis_transform()
    for edge in (_LEVEL + _REACH * ones / most, _LEVEL - _REACH * zeros / most):
        x, y = view.curve.x[is_shown], edge[is_shown]
        if fill:
            ax.fill_between(x, _LEVEL, y, color=color, lw=0, transform=across)
        else:
            ax.plot(x, y, color=color, lw=0.9, transform=across)


def _draw_densities(ax: Axes, views: list[ReliabilityView], colors: list[Any]) -> None:
    """Draw the densities of several models' scores as lines over one baseline."""
    lines = [view.density() for view in views]
    most = max(density.max() for _, density in lines)
    for (x, density), color in zip(lines, colors, strict=True):
        height = _LEVEL - _REACH + 2 * _REACH * density / most
        ax.plot(x, height, color=color, lw=1, transform=ax.get_xaxis_transform())


def _label_strip(ax: Axes, frame: Frame) -> None:
    """Name what the strip shows, by the labels of minor ticks so that they go where labels go."""
    names = {
        "": {},
        "density": {_LEVEL: "density"},
        "outcomes": {_LEVEL - _REACH / 2: "outcome 0", _LEVEL + _REACH / 2: "outcome 1"},
    }[frame.strip]
    low, high = ax.get_ylim()
    ax.set_yticks([low + (high - low) * at for at in names], list(names.values()), minor=True)
    ax.tick_params(axis="y", which="minor", length=0, labelsize=SMALLEST, labelcolor=QUIET)


def _check_side(views: list[ReliabilityView], frame: Frame, n_before: int) -> None:
    """Refuse to draw recalibrated scores where they have no place or are not known."""
    n_models = n_before + len(views)
    if n_models > 1:
        raise CalibrantError(
            "margin='both' describes one model",
            value=n_models,
            hint="draw each on its own Axes",
        )
    if frame.deviation:
        raise CalibrantError(
            "margin='both' shows recalibrated scores along the observed frequency, which a diagram "
            "of deviations does not have: leave one of them out"
        )
    if views[0].is_binned and views[0].rows is None:
        raise CalibrantError(
            "margin='both' needs the number of rows in each bin: give table= beside the curve"
        )


def _draw_side(ax: Axes, recalibrated: Recalibrated, frame: Frame) -> None:
    """Draw a histogram of recalibrated scores along the second axis, and the base rate.

    The farther they spread from it, the better scores discriminate.
    """
    edges = np.linspace(frame.low, frame.high, _BARS + 1)
    scores = np.clip(recalibrated.score, 0.0, 1.0)
    amount, _ = np.histogram(scores, edges, weights=recalibrated.fraction)
    length = _SHORT + (_BAR - _SHORT) * amount / (amount.max() or 1.0)
    foot = 1 - frame.side * (1 - _FOOT)
    ax.stairs(
        foot + frame.side * np.where(amount > 0, length, 0.0),
        edges,
        baseline=foot,
        orientation="horizontal",
        fill=True,
        color=_GREY,
        lw=0,
        transform=ax.get_yaxis_transform(),
    )
    ax.plot((foot, foot), (frame.margin, 1), color=QUIET, lw=0.5, transform=ax.transAxes)
    small: dict[str, Any] = {"fontsize": SMALLEST, "color": QUIET}
    below = frame.margin - _FOOT * frame.side
    ax.text(foot, below, "recalibrated", transform=ax.transAxes, va="top", **small)
    rate = recalibrated.base_rate
    if frame.low <= rate <= frame.high:
        ax.axhline(rate, color=QUIET, lw=0.9, ls=_DOTS, zorder=2)
        at: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
        ax.annotate("base\nrate", (1, rate), xytext=(3, 0), va="center", **at, **small)


def _write(
    ax: Axes,
    diagrams: list[Diagram],
    colors: list[Any],
    frame: Frame,
    layout: Layout,
    *,
    is_added: bool,
) -> None:
    """Write names and what was measured where there is space; many names beside the diagram."""
    place: dict[str, Any] = {"corners": _CORNERS, "region": frame.region}
    place["or_above"] = not layout.inside
    first, many = diagrams[0], len(diagrams) > _FEW_MODELS
    if len(diagrams) == 1 and not is_added and not first.name:
        about = [] if first.note == "" else _about(first.view, frame, layout)
        write_inside(ax, [*headed("", first.note), *about], **place)
        return
    bands = {line for one in diagrams if one.note != "" for line in about_band(one.view.curve)}
    shared = [] if is_added or len(bands) > 1 else [*bands]
    key = Key.of([(diagram.name, diagram.note) for diagram in diagrams], shared)
    signs = [MARKERS[i % len(MARKERS)] if many else None for i in range(len(diagrams))]
    handles = [
        Line2D([], [], color=color, lw=3, marker=sign, mfc="white", mec=color)
        for color, sign in zip(colors, signs, strict=True)
    ]
    if many and not is_added:
        write_beside(ax, key, handles)
    else:
        write_inside(ax, key, handles, **place)


def _about(view: ReliabilityView, frame: Frame, layout: Layout) -> list[str]:
    """Return what the marks of a diagram are."""
    if layout.is_terse:
        return []
    return [*about_band(view.curve), *about_masses(view.marks(frame.window))]
