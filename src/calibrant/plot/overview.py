"""An assessment at a glance: the verdict, and the pictures and numbers that it rests on."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties

from calibrant import checks
from calibrant.assessment.assess import assess
from calibrant.assessment.result import Assessment
from calibrant.errors import CalibrantError
from calibrant.inference.estimate_result import Estimate
from calibrant.plot.canvas import axes_or_new
from calibrant.plot.cumulative_plot import Walked, draw_walks
from calibrant.plot.diagram import Diagram
from calibrant.plot.reliability_diagram import View, draw_diagrams
from calibrant.plot.style import LINE_WIDTH, SMALL, open_frame, palette
from calibrant.plot.wording import measure_name

__all__ = ["assessment", "draw_estimates"]

_WIDTH, _HEIGHT = 9.4, 6.2
# Where the parts lie: left, bottom, width and height as shares of the whole.
_RELIABILITY = (0.0, 0.0, 0.42, 0.8)
_CUMULATIVE = (0.54, 0.42, 0.46, 0.36)
_ESTIMATES = (0.54, 0.0, 0.46, 0.24)
# How wide letters are on average, in units of their size, and how high a line of the heading is.
_LETTER, _HEADING = 0.55, 0.06


def assessment(y_true: Any, y_prob: Any = None, *, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw an assessment: verdict, reliability diagram, cumulative plot, errors with intervals.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.assess`, or its result.
    ax
        The Axes to draw on, which becomes the frame of three smaller ones, its `child_axes`;
        without one a new figure is made that pyplot does not know of.
    **options
        As in :func:`calibrant.assess`.

    Returns
    -------
    Axes
        The Axes drawn on.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> ax = assessment(*load_flares())
    >>> len(ax.child_axes)
    3
    """
    if isinstance(y_true, Assessment):
        if y_prob is not None or options:
            raise CalibrantError("an Assessment is drawn as it is: leave out all else")
        found = y_true
    else:
        checks.check_options(options, checks.keywords(assess), "assessment")
        found = assess(y_true, y_prob, **options)
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    ax.set_axis_off()
    _write_verdict(ax, str(found.verdict).replace("<=", "\N{LESS-THAN OR EQUAL TO}"))
    diagram = Diagram(
        found.curve("smooth"),
        outcomes=found.bins,
        note=found["smooth_ece"],
        is_confidence=found.is_confidence,
        masses=found.masses,
        scores=found.cumulative.score[[0, -1]],
    )
    draw_diagrams(ax.inset_axes(_RELIABILITY), [diagram], View(inside=True))
    note = found["ecce_r"] if found.test is None else found.test
    draw_walks(ax.inset_axes(_CUMULATIVE), [Walked(found.cumulative, note)])
    draw_estimates(ax.inset_axes(_ESTIMATES), found.estimates)
    return ax


def draw_estimates(ax: Axes, estimates: tuple[Estimate, ...]) -> None:
    """Draw estimates one below the other: values, corrected values and intervals."""
    open_frame(ax)
    color = palette(ax)[0]
    rows = np.arange(len(estimates))[::-1]
    low, high = ([getattr(one, end) for one in estimates] for end in ("low", "high"))
    ax.hlines(rows, low, high, color=color, lw=LINE_WIDTH)
    values = [one.value for one in estimates]
    style: dict[str, Any] = {"ls": "none", "clip_on": False}
    ax.plot(values, rows, "o", color=color, ms=5, mfc="white", mew=LINE_WIDTH, **style)
    ax.plot([one.bias_corrected for one in estimates], rows, "|", color=color, ms=8, **style)
    ax.set_yticks(rows, [measure_name(one) for one in estimates])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.6, len(estimates) - 0.4)
    ax.set_xlim(left=0)
    ax.set_xlabel(
        f"calibration error, {100 * estimates[0].level:g}% interval; | corrected for noise"
    )


def _write_verdict(ax: Axes, text: str) -> None:
    """Write the verdict across the top, its first sentence large."""
    first, _, rest = text.partition(". ")
    points = 72 * ax.figure.figure.get_figwidth() * ax.get_position().width
    style: dict[str, Any] = {"transform": ax.transAxes, "va": "top"}
    heading = _filled(f"{first.removesuffix('.')}.", points, "large")
    ax.text(-0.05, 1.0, heading, fontsize="large", weight="bold", **style)
    below = 1.0 - _HEADING * (1 + heading.count("\n"))
    ax.text(-0.05, below, _filled(rest, points, SMALL), fontsize=SMALL, linespacing=1.4, **style)


def _filled(text: str, points: float, size: str) -> str:
    """Return text in lines of letters of some size that are no longer than so many points."""
    letter = _LETTER * FontProperties(size=size).get_size_in_points()
    return textwrap.fill(text, int(points / letter))
