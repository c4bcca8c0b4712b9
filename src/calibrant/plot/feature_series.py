"""The marks of a picture along a feature: points with their intervals, and the axis they are on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from calibrant.arrays import FloatArray
from calibrant.plot.feature_axis import COUNTS, FeatureAxis
from calibrant.plot.style import DASHES, LINE_WIDTH, QUIET

__all__ = ["Series", "draw_level", "draw_series", "set_up_values"]

# What is left free above and below, as a share of what is shown.
_ROOM = 0.05
_MARK = 5.0


@dataclass(frozen=True, eq=False)
class Series:
    """Values along a feature.

    Attributes
    ----------
    along
        Where they lie along the feature.
    value
        The values.
    reach
        From where to where their intervals reach; None where they have none.
    name, color, marker
        What they are called, and how they look.
    n_joined
        How many of them, from the first, a thin line joins.
    """

    along: FloatArray
    value: FloatArray
    reach: tuple[FloatArray, FloatArray] | None
    name: str
    color: Any
    marker: str
    n_joined: int


def set_up_values(
    ax: Axes, axis: FeatureAxis, series: Sequence[Series], words: str, *, level: bool
) -> None:
    """Give the axis of values its limits and its words; a level at 0 is to be seen."""
    parts = [part for one in series for part in (one.value, *(one.reach or ()))]
    shown = np.concatenate([*parts, [0.0] * level])
    low, high = float(shown.min()), float(shown.max())
    room = _ROOM * (high - low or 1.0)
    low, high = low - room, high + room
    if axis.is_sideways:
        ax.set_xlim(low, high)
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        ax.set_xlabel(words)
        return
    ax.set_ylim(low - (high - low) * COUNTS / (1 - COUNTS), high)
    ax.set_yticks([tick for tick in ax.get_yticks() if low <= tick <= high])
    ax.spines["left"].set_bounds(low, high)
    ax.set_ylabel(words, y=(1 + COUNTS) / 2)


def draw_level(ax: Axes, axis: FeatureAxis) -> None:
    """Draw the level at which predictions are right on average."""
    line = ax.axvline if axis.is_sideways else ax.axhline
    line(0, color=QUIET, lw=0.8, ls=DASHES, zorder=2)


def draw_series(ax: Axes, axis: FeatureAxis, series: Series, shift: float) -> Line2D:
    """Draw points and their intervals, moved along the feature by so many points of print."""
    by = axis.points(np.array(shift / 72), np.array(0.0))
    # Down is forward among names.
    x, y = float(by[0]), -float(by[1]) if axis.is_sideways else float(by[1])
    place = ax.transData + ScaledTranslation(x, y, ax.figure.dpi_scale_trans)
    if series.reach is not None:
        ends = [np.column_stack(axis.points(series.along, end)) for end in series.reach]
        ax.add_collection(
            LineCollection(
                list(np.stack(ends, axis=1)),
                colors=[series.color],
                linewidths=LINE_WIDTH,
                transform=place,
                zorder=3,
            ),
            autolim=False,
        )
    style: dict[str, Any] = {"color": series.color, "transform": place}
    joined = slice(0, series.n_joined)
    ax.plot(*axis.points(series.along[joined], series.value[joined]), lw=0.8, zorder=2.5, **style)
    style |= {"marker": series.marker, "ms": _MARK, "mfc": "white", "mew": LINE_WIDTH}
    (points,) = ax.plot(*axis.points(series.along, series.value), ls="none", zorder=4, **style)
    return points
