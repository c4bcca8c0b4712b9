"""Reliability diagrams: observed frequency against predicted probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack, get_args

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from calibrant.assessment.assess import Assessment
from calibrant.curves.reliability import Curve, CurveOptions, curve_of_table, reliability_curve
from calibrant.curves.reliability_view import (
    ReliabilityView,
    Scale,
    Window,
    view_of_curve,
    view_of_rows,
)
from calibrant.data import validation
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.measures.bin_table import BinTable
from calibrant.plot import marks
from calibrant.plot.common import (
    Colors,
    Corner,
    LegendText,
    Model,
    Note,
    Record,
    axes_or_new,
    band_lines,
    lift_overlapped,
    masses_lines,
    note_lines,
    read_models,
    read_note,
    records,
    resolve_colors,
    write_at_ends,
    write_inside,
)
from calibrant.plot.marks import Frame

# What is shown beside the diagram: nothing, outcomes below, or recalibrated scores as well.
Margin = bool | Literal["both"]

_WIDTH, _HEIGHT = 4.2, 4.7
# What a margin on the right adds to the width, and the counts of bins to the height.
_STRIP, _COUNTS = 0.9, 0.2
# The names of more models than a few are written at the ends of lines, in a wider figure.
_FEW_MODELS, _WIDER = 3, 7.2
# The fraction of the Axes that a margin takes.
_BESIDE = 0.17
# The corners above and below the diagonal.
_CORNERS: tuple[Corner, Corner] = ("upper left", "lower right")


def reliability(
    y_true: ArrayLike | Sketch | Curve | BinTable | Mapping[str, Sketch | Curve | BinTable],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
    note: bool | Note = True,
    margin: Margin = True,
    deviation: bool = False,
    limits: tuple[float, float] | None = None,
    scale: Scale = "probability",
    color: Colors = None,
    table: BinTable | None = None,
    **options: Unpack[CurveOptions],
) -> Axes:
    """Draw a reliability diagram: observed frequency against predicted probability.

    A smooth curve is wider where scores are denser. It ends where the rows, weighted by the kernel,
    count for less than one row a bandwidth away, and leaves out intervals between such gaps that
    hold fewer than five rows; loess has one width. An isotonic curve is
    heavier where it is level. Bars of a binned curve are darker the more rows they hold, with the
    number of rows below them or, where bars are too narrow, the range of all; points have their
    intervals.

    Where there are few distinct scores, circles mark the mean outcome at each. Among many, discs
    mark scores that hold at least 30 rows, a twentieth of all rows and ten times as many as the
    scores next to them. Their areas are proportional to fractions of the rows, up to a third.

    Parameters
    ----------
    y_true : array_like, Sketch, result or mapping of them
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes. Or in place of both
        arrays a sketch or a result, or for several models a mapping from names to these.

        Results are those of :func:`calibrant.reliability_curve` and :func:`calibrant.bin_table`.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    note : bool, result or str
        Text beside the curve. True: what the band and the discs are and, where data are given,
        smECE or ECE with its interval, or the score decomposition of an isotonic curve. False:
        none. Or a result, or text.
    margin : bool or "both"
        Draw histograms of the outcomes below, 1 above a line and 0 beneath it; for several models,
        the density of their scores. "both": also, for one model, a histogram of the recalibrated
        scores on the right, with a line at the base rate; the more they spread, the better the
        scores discriminate.
    deviation : bool
        Draw observed minus predicted, which makes small deviations visible.
    limits : (float, float), optional
        Scores to show, such as (0.9, 1). By default [0, 1], or the part that holds all scores and
        outcomes where that is less than half of it.
    scale : {"probability", "logit"}
        "logit" divides both axes evenly in logits, by default from 0.001 to 0.999: what confident
        models get wrong becomes visible. Scores of 0 and 1 are marked at the edge.
    color : color or list of colors, optional
        Colour of the model, or a list with one per model; by default the next of the palette.
    table : BinTable, optional
        Beside a `Curve`: the outcomes of its rows in bins. If these are few, circles mark their
        means.
    **options
        Explained in :func:`calibrant.reliability_curve`: `method`, `band`, `level`,
        `simultaneous` (here True unless given), `n_resamples`, `rng`, `clusters`, `bandwidth`,
        `n_bins`, `strategy`, `sample_weight`, `multiclass`, `labels` and `pos_label`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn on.

    See Also
    --------
    calibrant.reliability_curve : The numbers of the diagram.
    small_multiples : One diagram per class, group or model.

    Notes
    -----
    A further call on the same Axes adds its models in the next colours, with outcomes as outlines,
    and widens the limits to show both. For one legend, give all models in one call.

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
    layout = Layout(limits=limits, margin=margin, deviation=deviation, scale=scale)
    layout.check()
    diagrams = [gather(model, table, note, scale) for model in models]
    width = _WIDTH if len(diagrams) <= _FEW_MODELS else _WIDER
    height = _HEIGHT + _COUNTS * (len(diagrams) == 1 and diagrams[0].view.bins is not None)
    ax = axes_or_new(ax, width + _STRIP * (margin == "both"), height)
    draw_diagrams(ax, diagrams, layout)
    return ax


@dataclass(frozen=True, eq=False)
class Diagram:
    """The reliability diagram of one model; an empty note leaves its band without a label, too."""

    view: ReliabilityView
    note: Note | None = None
    name: str = ""
    color: Any = None


def gather(
    model: Model, table: BinTable | None, note: bool | Note, scale: Scale = "probability"
) -> Diagram:
    """Return the diagram of a model, from rows or from the result that was given."""
    note = read_note(note)
    if table is not None and not isinstance(table, BinTable):
        raise CalibrantError("must be a BinTable", argument="table", value=table)
    text = {True: None, False: ""}[note] if isinstance(note, bool) else note
    measured = note is True
    if (bins := model.result(BinTable)) is not None:
        view = view_of_curve(curve_of_table(bins), bins)
    elif (curve := model.result(Curve)) is not None:
        view = view_of_curve(curve, table)
    elif (found := model.result(Assessment)) is not None:
        view = found.reliability_view()
        text = view.measured if measured else text
    elif table is not None:
        raise CalibrantError("table goes with a Curve: rows have their own, so leave it out")
    else:
        model.check_options("reliability", reliability_curve)
        view = view_of_rows(
            model.y_true, model.y_prob, model.options, measured=measured, scale=scale
        )
        text = view.measured or view.curve if measured else text
    return Diagram(view, text, model.name, model.color)


@dataclass(frozen=True)
class Layout:
    """How diagrams are laid out: see :func:`reliability`.

    A terse one leaves out what bands and discs are; `inside` keeps notes within the Axes.
    """

    limits: tuple[float, float] | None = None
    margin: Margin = True
    deviation: bool = False
    is_terse: bool = False
    inside: bool = False
    scale: Scale = "probability"

    def check(self) -> None:
        """Refuse options of the wrong kind, and limits that hold no scores."""
        is_both = isinstance(self.margin, str) and self.margin == "both"
        if not is_both and not isinstance(self.margin, bool | np.bool_):
            raise CalibrantError(
                "must be True, False or 'both'", argument="margin", value=self.margin
            )
        validation.as_flag(self.deviation, "deviation")
        validation.check_choice(self.scale, "scale", get_args(Scale))
        if self.scale == "logit" and (is_both or self.deviation):
            raise CalibrantError(
                "scale='logit' divides both axes in logits, which deviations and the histogram of "
                "margin='both' do not have: leave one of them out"
            )
        if self.limits is not None:
            low, high = validation.as_pair(self.limits)
            if not 0 <= low < high <= 1:
                raise CalibrantError(
                    "must be two scores 0 <= low < high <= 1", argument="limits", value=self.limits
                )
            if self.scale == "logit" and not 0 < low < high < 1:
                raise CalibrantError(
                    "must lie between 0 and 1 for {scale}='logit'",
                    argument="limits",
                    value=self.limits,
                )

    def frame(self, views: Sequence[ReliabilityView]) -> Frame:
        """Return the square on the diagonal, or for deviations as much below 0 as above."""
        is_logit = self.scale == "logit"
        if self.limits is not None:
            window = Window(*self.limits)
        else:
            window = Window.of_logits(views) if is_logit else Window.around(views)
        low, high = window.low, window.high
        deviation = self.deviation or any(view.curve.method == "local" for view in views)
        if deviation:
            heights = [np.zeros(1)]
            for view in views:
                curve = view.drawn(window, deviation=True)
                masses = view.marks(window, deviation=True)
                heights += [curve.y, curve.low, curve.high]
                heights += [] if masses is None else [masses.outcome]
            high = 1.1 * float(np.nanmax(np.abs(np.concatenate(heights)))) or 0.1
            low = -high
        below, side = _BESIDE * bool(self.margin), _BESIDE * (self.margin == "both")
        # The strip below shows what is known of outcomes, or of several models.
        strip: Literal["outcomes", "density", ""] = ""
        if self.margin and len(views) > 1:
            strip = "density"
        elif self.margin and (views[0].rows is not None or views[0].is_smooth):
            strip = "outcomes"
        # Densities are those along probabilities.
        if is_logit and (strip == "density" or views[0].rows is None):
            strip, below = "", 0.0
        return Frame(window, low, high, below, side, bool(deviation), strip, self.scale)


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
    colors = resolve_colors(ax, [diagram.color for diagram in diagrams], n_before)
    frame = _set_up(ax, views, frame, colors, is_added=bool(before))
    lines = []
    for view, color in zip(views, colors, strict=True):
        curve = view.drawn(frame.window, deviation=frame.deviation)
        marks.draw_band(ax, curve, color, frame, alone=alone)
        lines.append(marks.draw_curve(ax, curve, color, frame, alone=alone))
        masses = view.marks(frame.marked, deviation=frame.deviation)
        if masses is not None:
            marks.draw_masses(ax, masses, color, frame)
    if layout.margin == "both":
        marks.draw_recalibrated(ax, views[0].recalibrated(), frame)
    if layout.margin:
        marks.draw_strip(ax, views, colors, frame, is_added=bool(before))
    marks.label_strip(ax, frame)
    lift_overlapped(ax)
    _write(ax, diagrams, colors, frame, layout, is_added=bool(before))
    ax.add_artist(Record("reliability", frame, len(diagrams)))
    return lines


def _set_up(
    ax: Axes, views: list[ReliabilityView], frame: Frame, colors: list[Any], *, is_added: bool
) -> Frame:
    """Set up an Axes, with bars and their counts below them where there is one binned curve."""
    bins = views[0].bins if len(views) == 1 and not is_added else None
    if bins is not None:
        counts = marks.Counts.of(ax, bins, frame)
        frame = replace(frame, margin=frame.margin + counts.height)
        marks.draw_bars(ax, bins, colors[0], frame)
        counts.write(ax, frame)
    frame.set_up(ax)
    if not is_added:
        view = replace(views[0], is_confidence=all(view.is_confidence for view in views))
        predicted, observed = view.axis_names(deviation=frame.deviation)
        # Beside what the axes show, not beside the margins.
        ax.set_xlabel(predicted, x=(1 - frame.side) / 2)
        ax.set_ylabel(observed, y=(1 + frame.margin) / 2)
    marks.draw_reference(ax, frame)
    return frame


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


def _write(
    ax: Axes,
    diagrams: list[Diagram],
    colors: list[Any],
    frame: Frame,
    layout: Layout,
    *,
    is_added: bool,
) -> None:
    """Write names and results where there is space; those of many at the ends of their lines."""
    place: dict[str, Any] = {"corners": _CORNERS, "region": frame.region}
    place["or_above"] = not layout.inside
    first, many = diagrams[0], len(diagrams) > _FEW_MODELS
    if len(diagrams) == 1 and not is_added and not first.name:
        lines = note_lines(first.note)
        if first.note != "" and not layout.is_terse:
            view = first.view
            lines += [*band_lines(view.curve), *masses_lines(view.marks(frame.marked))]
        write_inside(ax, lines, **place)
        return
    bands = {line for one in diagrams if one.note != "" for line in band_lines(one.view.curve)}
    shared = [] if is_added or len(bands) > 1 else [*bands]
    text = LegendText.of([(diagram.name, diagram.note) for diagram in diagrams], shared)
    if many and not is_added:
        curves = [one.view.drawn(frame.window, deviation=frame.deviation) for one in diagrams]
        write_at_ends(ax, text, [_end(curve, frame) for curve in curves], colors)
    else:
        handles = [Line2D([], [], color=color, lw=3) for color in colors]
        write_inside(ax, text, handles, **place)


def _end(curve: Curve, frame: Frame) -> tuple[float, float]:
    """Return the last known point of a curve, or the point of the frame next to it."""
    last = np.flatnonzero(np.isfinite(curve.y))[-1]
    x = np.clip(curve.x[last], frame.window.low, frame.window.high)
    return float(x), float(np.clip(curve.y[last], frame.low, frame.high))
