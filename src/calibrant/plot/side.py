"""The strip on the right of a reliability diagram: how far recalibrated scores spread.

The curve makes of each score the outcome to expect there. The more of what it makes lies far from
the base rate, the better scores tell outcomes apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from calibrant.arrays import FloatArray
from calibrant.errors import CalibrantError
from calibrant.plot.corners import Path
from calibrant.plot.diagram import Diagram
from calibrant.plot.frame import Frame
from calibrant.plot.style import QUIET, SMALLEST

__all__ = ["check_side", "draw_side"]

# How many bars there are along the whole axis.
_BARS = 50
# The foot of the bars and how far they reach, and the least length of one, as shares of the strip.
_FOOT, _REACH, _TICK = 0.1, 0.85, 0.03
_COLOR, _DOTS = "0.45", (0, (1, 2))


@dataclass(frozen=True, eq=False)
class _Spread:
    """Recalibrated scores, the share of rows at each, and the base rate."""

    value: FloatArray
    share: FloatArray
    base_rate: float


def check_side(diagrams: list[Diagram], *, deviation: bool) -> None:
    """Refuse to draw recalibrated scores where they have no place or are not known."""
    if len(diagrams) > 1:
        raise CalibrantError(
            "'both' is for one model",
            argument="margin",
            value=len(diagrams),
            hint="draw each on its own Axes",
        )
    if deviation:
        raise CalibrantError(
            "'both' shows recalibrated scores along the observed frequency, which a diagram of "
            "deviations does not have",
            argument="margin",
            hint="leave out {margin} or {deviation}",
        )
    if diagrams[0].is_binned and diagrams[0].rows is None:
        raise CalibrantError(
            "'both' needs the number of rows in each bin",
            argument="margin",
            hint="give {table} beside the curve",
        )


def draw_side(ax: Axes, diagram: Diagram, frame: Frame) -> list[Path]:
    """Draw a histogram of recalibrated scores along the second axis.

    Return the line at the base rate, which is drawn across the diagram if that shows it.
    """
    spread = _spread(diagram)
    edges = np.linspace(frame.low, frame.high, _BARS + 1)
    amount, _ = np.histogram(np.clip(spread.value, 0.0, 1.0), edges, weights=spread.share)
    length = _TICK + (_REACH - _TICK) * amount / (amount.max() or 1.0)
    foot = 1 - frame.side * (1 - _FOOT)
    ax.stairs(
        foot + frame.side * np.where(amount > 0, length, 0.0),
        edges,
        baseline=foot,
        orientation="horizontal",
        fill=True,
        color=_COLOR,
        lw=0,
        transform=ax.get_yaxis_transform(),
    )
    ax.plot((foot, foot), (frame.margin, 1), color=QUIET, lw=0.5, transform=ax.transAxes)
    ax.text(
        foot,
        frame.margin - _FOOT * frame.side,
        "recalibrated",
        transform=ax.transAxes,
        va="top",
        fontsize=SMALLEST,
        color=QUIET,
    )
    if not frame.low <= spread.base_rate <= frame.high:
        return []
    return [_mark_base_rate(ax, spread.base_rate)]


def _mark_base_rate(ax: Axes, rate: float) -> Path:
    ax.axhline(rate, color=QUIET, lw=0.9, ls=_DOTS, zorder=2)
    ax.annotate(
        "base\nrate",
        (1, rate),
        xycoords=ax.get_yaxis_transform(),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALLEST,
        color=QUIET,
    )
    return np.array(ax.get_xlim()), np.full(2, rate)


def _spread(diagram: Diagram) -> _Spread:
    """Return what the curve makes of scores: of rows where they are known, else of the density."""
    curve, rows = diagram.curve, diagram.rows
    if curve.method == "isotonic":
        value, weight = curve.y, curve.density
    elif diagram.is_binned and diagram.bins is not None:
        value, weight = diagram.bins.mean_true, diagram.bins.weight
    elif rows is not None:
        seen = diagram.seen
        value, weight = np.interp(rows.mean_pred, curve.x[seen], curve.y[seen]), rows.weight
    else:
        value, weight = curve.y, curve.density * np.gradient(curve.x)
    known = np.isfinite(value) & (weight > 0)
    value, share = value[known], weight[known] / weight[known].sum()
    if rows is None:
        return _Spread(value, share, float(value @ share))
    filled = rows.weight > 0
    base_rate = np.average(rows.mean_true[filled], weights=rows.weight[filled])
    return _Spread(value, share, float(base_rate))
