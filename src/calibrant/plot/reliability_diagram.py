"""Reliability diagrams: predictions against outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from calibrant import checks
from calibrant.curves.reliability_view import Window
from calibrant.plot import marks
from calibrant.plot.canvas import axes_or_new
from calibrant.plot.corners import Above, Beside, Corner, Path, above_diagonal
from calibrant.plot.diagram import Diagram, gather, window_of
from calibrant.plot.frame import Frame, Margin, check_limits, check_margin
from calibrant.plot.margin import draw_margin
from calibrant.plot.models import read_models
from calibrant.plot.overlay import drawn_before, drawn_together
from calibrant.plot.side import check_side, draw_side
from calibrant.plot.style import MARKERS, colors_of
from calibrant.plot.wording import Key, Note, about_band, headed
from calibrant.results.curves import Curve
from calibrant.results.tables import BinTable

__all__ = ["View", "draw_diagrams", "reliability"]

_WIDTH, _HEIGHT = 4.2, 4.7
# What a strip on the right adds to the width, and the counts of bins to the height.
_STRIP, _COUNTS = 0.9, 0.2
# The names of more models than a few are written beside the diagram, which takes a wider figure.
_FEW_MODELS, _WIDER = 3, 7.2
_LINES = 15


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

    A smooth curve is as wide as its scores are dense, and is drawn within a bandwidth of some row;
    an isotonic one is heavier where it is level. Where there are few distinct scores, circles mark
    the mean outcome at each; among many, discs mark it at single scores that hold at least a
    twentieth of the rows, 30 and ten times as many as the scores next to them, with their share
    where there is room. Areas go with shares, up to a third. Bars of a binned curve carry their
    number of rows, and are the darker the more there are; where some are too narrow for it, the
    range of all is written instead. Its points carry their intervals. Below
    lie the outcomes themselves: 1 above a line and 0 beneath it, the more the higher, each at least
    a tick. Several calls on one Axes draw their models together.

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
        What is written beside the curve. True: what the band says and, where data are given,
        smECE or ECE with its interval, or the score decomposition of an isotonic curve. False:
        nothing. Or a result, or words.
    margin
        Whether to draw where outcomes lie, below; the density of scores for several models.
        "both": and along the right, for one model, how many rows the curve would give each
        recalibrated score, with a line at the base rate. The farther from it they spread, the
        better scores tell outcomes apart.
    deviation
        Draw outcomes less predictions: the diagonal laid flat, which shows small deviations.
    limits
        The scores to show, such as (0.9, 1). Unless given, all of [0, 1], or the part that scores
        and outcomes keep to where that is less than half of it.
    color
        The colour of the curve, or a list of colours for several models.
    table
        Beside a curve, a table that says where its outcomes lie; where it has but a few bins,
        circles mark their means.
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
    diagrams = [gather(model, table, note) for model in models]
    view = View(limits=limits, margin=margin, deviation=deviation)
    view.check(diagrams)
    width = _WIDTH if len(diagrams) <= _FEW_MODELS else _WIDER
    height = _HEIGHT + _COUNTS * (len(diagrams) == 1 and diagrams[0].bins is not None)
    ax = axes_or_new(ax, width + _STRIP * (margin == "both"), height)
    draw_diagrams(ax, diagrams, view)
    return ax


@dataclass(frozen=True)
class View:
    """How diagrams are looked at: see :func:`reliability`.

    Terse, bands go without words; inside, words stay within the Axes whatever else is there.
    """

    limits: tuple[float, float] | None = None
    margin: Margin = True
    deviation: bool = False
    is_terse: bool = False
    inside: bool = False

    def check(self, diagrams: list[Diagram]) -> None:
        """Refuse limits that hold no scores, and a margin that these diagrams cannot have."""
        check_margin(self.margin)
        checks.as_flag(self.deviation, "deviation")
        if self.limits is not None:
            check_limits(self.limits)
        if self.margin == "both":
            check_side(diagrams, deviation=self._of_deviations(diagrams))

    def _of_deviations(self, diagrams: list[Diagram]) -> bool:
        return self.deviation or any(d.curve.method == "local" for d in diagrams)

    def set_up(self, ax: Axes, diagrams: list[Diagram]) -> tuple[Frame, marks.Counts | None]:
        """Set up an Axes; return the frame of diagrams, and the counts of the bins of one alone."""
        window = window_of(diagrams) if self.limits is None else Window(*self.limits)
        deviation = self._of_deviations(diagrams)
        heights = [v for d in diagrams for v in d.heights(window, deviation=deviation)]
        frame = Frame.around(window, heights, margin=self.margin, deviation=deviation)
        frame = replace(frame, is_confidence=all(d.is_confidence for d in diagrams))
        frame.set_up(ax)
        if len(diagrams) > 1 or diagrams[0].bins is None:
            return frame, None
        counts = marks.Counts.of(ax, diagrams[0].bins, frame)
        frame = replace(frame, margin=frame.margin + counts.height)
        frame.set_up(ax)
        return frame, counts


def draw_diagrams(ax: Axes, diagrams: list[Diagram], view: View = View()) -> list[Artist]:  # noqa: B008
    """Draw diagrams on an Axes with those already there; return the artists of their curves."""
    view.check([*drawn_before(ax, "reliability"), *diagrams])
    with drawn_together(ax, "reliability", diagrams) as together:
        frame, counts = view.set_up(ax, together)
        colors = colors_of(ax, together)
        curves = [d.shown(frame.window, deviation=frame.deviation) for d in together]
        level = marks.draw_level(ax, frame)
        alone = len(together) == 1
        if counts is not None:
            marks.draw_bars(ax, together[0].bins, colors[0], frame)
            counts.write(ax, frame)
        lines = []
        for curve, own in zip(curves, colors, strict=True):
            marks.draw_band(ax, curve, own, frame)
            lines.append(marks.draw_curve(ax, curve, own, frame, alone=alone))
        base_rate = draw_side(ax, together[0], frame) if view.margin == "both" else []
        masses = _draw_masses(ax, together, curves, colors, [level, *base_rate], frame)
        if len(together) > _FEW_MODELS:
            for i, (curve, own) in enumerate(zip(curves, colors, strict=True)):
                marks.draw_markers(ax, curve, own, i)
        if view.margin:
            draw_margin(ax, together, colors, frame)
        if alone:
            _write_note(ax, together[0], curves[0], [*masses, *base_rate], frame, view)
        else:
            _write_key(ax, together, curves, colors, masses, frame, view)
    return lines[-len(diagrams) :]


def _draw_masses(
    ax: Axes,
    diagrams: list[Diagram],
    curves: list[Curve],
    colors: list[Any],
    guides: list[Path],
    frame: Frame,
) -> list[Path]:
    """Mark single scores, the shares of one model's written beside; return where marks are."""
    drawn: list[Path] = []
    for diagram, curve, color in zip(diagrams, curves, colors, strict=True):
        found = diagram.marked(deviation=frame.deviation)
        if found is None or not len(found):
            continue
        masses = found.where(frame.holds(found.score, found.outcome))
        marks.draw_masses(ax, masses, color)
        if len(diagrams) == 1 and not masses.is_all:
            marks.write_shares(ax, masses, curve, guides, frame)
        drawn += zip(masses.score[:, None], masses.outcome[:, None], strict=True)
    return drawn


def _write_note(
    ax: Axes, diagram: Diagram, curve: Curve, others: list[Path], frame: Frame, view: View
) -> None:
    """Write what was measured where there is room."""
    lines = headed(diagram.name, diagram.note)
    if diagram.note != "" and not view.is_terse:
        lines += about_band(diagram.curve)
    paths = _paths(curve) + others
    if diagram.bins is not None:
        paths += [(curve.x, share * curve.y) for share in (0.0, 0.5)]
    place = above_diagonal(ax, lines, paths, frame.margin, frame.side, inside=view.inside)
    place.write(ax, lines)


def _write_key(
    ax: Axes,
    diagrams: list[Diagram],
    curves: list[Curve],
    colors: list[Any],
    masses: list[Path],
    frame: Frame,
    view: View,
) -> None:
    """Write names and what was measured, beside the diagram if they are many."""
    bands = {words for d in diagrams if d.note != "" for words in about_band(d.curve)}
    shared = bands if len(bands) == 1 else ()
    key = Key.of([(diagram.name, diagram.note) for diagram in diagrams], [*shared])
    few = len(diagrams) <= _FEW_MODELS
    signs = [None if few else MARKERS[i % len(MARKERS)] for i in range(len(diagrams))]
    handles = [
        Line2D([], [], color=color, lw=3, marker=sign, mfc="white", mec=color)
        for color, sign in zip(colors, signs, strict=True)
    ]
    paths = [path for curve in curves for path in _paths(curve)] + masses
    place: Corner | Above | Beside = Beside()
    if few:
        place = above_diagonal(ax, key.lines, paths, frame.margin, frame.side, inside=view.inside)
    place.write_key(ax, handles, key)


def _paths(curve: Curve) -> list[Path]:
    """Return the curve, and its band as lines so close that no letter fits between them."""
    height = curve.high - curve.low
    within = [(curve.x, curve.low + share * height) for share in np.linspace(0, 1, _LINES)]
    return [(curve.x, curve.y), *within]
