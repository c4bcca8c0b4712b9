"""Reliability diagrams: predictions against outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from calibrant.plot import marks
from calibrant.plot.canvas import axes_or_new
from calibrant.plot.corners import Above, Beside, Corner, Path, above_diagonal
from calibrant.plot.diagram import Diagram, Window, gather
from calibrant.plot.frame import Frame
from calibrant.plot.margin import draw_margin
from calibrant.plot.models import read_models
from calibrant.plot.overlay import drawn_together
from calibrant.plot.style import MARKERS, colors_of
from calibrant.plot.wording import Key, Note, about_band, headed
from calibrant.results.curves import Curve
from calibrant.results.tables import BinTable

__all__ = ["View", "draw_diagrams", "reliability"]

_WIDTH, _HEIGHT = 4.2, 4.7
# The names of more models than a few are written beside the diagram, which takes a wider figure.
_FEW_MODELS, _WIDER = 3, 7.2
_LINES = 15


def reliability(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Axes | None = None,
    note: bool | Note = True,
    margin: bool = True,
    deviation: bool = False,
    limits: tuple[float, float] | None = None,
    color: Any = None,
    table: BinTable | None = None,
    **options: Any,
) -> Axes:
    """Draw a reliability diagram: how often what was predicted came true.

    A smooth curve is as wide as its scores are dense, and is drawn within a bandwidth of some row;
    where there are few distinct scores, circles mark the mean outcome at each. Bars of a binned
    curve carry their number of rows, its points their intervals. Below lie the outcomes
    themselves: 1 above a line and 0 beneath it, the more the higher, each at least a tick. Several
    calls on one Axes draw their models together.

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
    reliability diagrams" (2021): isotonic curves.

    Examples
    --------
    >>> from calibrant.datasets import load_rain
    >>> ax = reliability(*load_rain())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted probability', 'observed frequency')
    """
    models = read_models(y_true, y_prob, options, color)
    diagrams = [gather(model, table, note) for model in models]
    ax = axes_or_new(ax, _WIDTH if len(diagrams) <= _FEW_MODELS else _WIDER, _HEIGHT)
    view = View(limits=limits, margin=margin, deviation=deviation)
    draw_diagrams(ax, diagrams, view)
    return ax


@dataclass(frozen=True)
class View:
    """How diagrams are looked at: see :func:`reliability`.

    Terse, bands go without words; inside, words stay within the Axes whatever else is there.
    """

    limits: tuple[float, float] | None = None
    margin: bool = True
    deviation: bool = False
    is_terse: bool = False
    inside: bool = False

    def frame(self, diagrams: list[Diagram]) -> Frame:
        """Return the frame that shows all of some diagrams."""
        window = Window.around(diagrams) if self.limits is None else Window(*self.limits)
        deviation = self.deviation or any(d.curve.method == "local" for d in diagrams)
        curves = [diagram.shown(window, deviation=deviation) for diagram in diagrams]
        frame = Frame.around(window, curves, margin=self.margin, deviation=deviation)
        return replace(frame, is_confidence=all(d.is_confidence for d in diagrams))


def draw_diagrams(ax: Axes, diagrams: list[Diagram], view: View = View()) -> list[Artist]:  # noqa: B008
    """Draw diagrams on an Axes with those already there; return the artists of their curves."""
    with drawn_together(ax, "reliability", diagrams) as together:
        frame = view.frame(together)
        frame.set_up(ax)
        colors = colors_of(ax, together)
        curves = [d.shown(frame.window, deviation=frame.deviation) for d in together]
        marks.draw_level(ax, frame)
        alone = len(together) == 1
        if alone and together[0].bins is not None:
            marks.draw_bars(ax, together[0].bins, colors[0], frame)
        lines = []
        for diagram, curve, own in zip(together, curves, colors, strict=True):
            marks.draw_band(ax, curve, own)
            lines.append(marks.draw_curve(ax, curve, own, alone=alone))
            if diagram.outcomes is not None and not diagram.is_binned:
                marks.draw_dots(ax, diagram.outcomes, own, deviation=frame.deviation)
        if len(together) > _FEW_MODELS:
            for i, (curve, own) in enumerate(zip(curves, colors, strict=True)):
                marks.draw_markers(ax, curve, own, i)
        if view.margin:
            draw_margin(ax, together, colors)
        if alone:
            _write_note(ax, together[0], curves[0], frame, view)
        else:
            _write_key(ax, together, curves, colors, frame, view)
    return lines[-len(diagrams) :]


def _write_note(ax: Axes, diagram: Diagram, curve: Curve, frame: Frame, view: View) -> None:
    """Write what was measured where there is room."""
    lines = headed(diagram.name, diagram.note)
    if diagram.note != "" and not view.is_terse:
        lines += about_band(diagram.curve)
    paths = _paths(curve)
    if diagram.bins is not None:
        paths += [(curve.x, share * curve.y) for share in (0.0, 0.5)]
    above_diagonal(ax, lines, paths, frame.margin, inside=view.inside).write(ax, lines)


def _write_key(
    ax: Axes,
    diagrams: list[Diagram],
    curves: list[Curve],
    colors: list[Any],
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
    paths = [path for curve in curves for path in _paths(curve)]
    place: Corner | Above | Beside = Beside()
    if few:
        place = above_diagonal(ax, key.lines, paths, frame.margin, inside=view.inside)
    place.write_key(ax, handles, key)


def _paths(curve: Curve) -> list[Path]:
    """Return the curve, and its band as lines so close that no letter fits between them."""
    height = curve.upper - curve.lower
    within = [(curve.x, curve.lower + share * height) for share in np.linspace(0, 1, _LINES)]
    return [(curve.x, curve.y), *within]
