"""Numbers with their intervals one below the other: measures, models or groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from calibrant.formatting import shortened
from calibrant.inference.estimate import Estimate
from calibrant.plot.common import LINE_WIDTH, axes_or_new, despine, palette

# Inches of a figure: its width, the height of a row, and that of the axis.
_WIDTH, _ROW, _AXIS = 6.4, 0.32, 0.9


def new_intervals(
    ax: Axes | None,
    names: Sequence[str],
    estimates: Sequence[Estimate],
    label: str,
    filled: Sequence[bool] | None = None,
) -> Axes:
    """Draw estimates on an Axes, or on a new one that is high enough for them."""
    ax = axes_or_new(ax, _WIDTH, _ROW * len(estimates) + _AXIS)
    draw_intervals(ax, [shortened(name) for name in names], estimates, label, filled)
    return ax


def draw_intervals(
    ax: Axes,
    names: Sequence[str],
    estimates: Sequence[Estimate],
    label: str,
    filled: Sequence[bool] | None = None,
) -> None:
    """Draw estimates one below the other: bias-corrected, with intervals, and raw values."""
    despine(ax)
    color = palette(ax)[0]
    rows = np.arange(len(estimates))[::-1]
    low, high = ([getattr(one, end) for one in estimates] for end in ("low", "high"))
    ax.hlines(rows, low, high, color=color, lw=LINE_WIDTH)
    style: dict[str, Any] = {"ls": "none", "clip_on": False, "color": color}
    is_filled = np.zeros(len(rows), dtype=bool) if filled is None else np.asarray(filled)
    values = np.array([one.bias_corrected for one in estimates])
    for chosen, face in ((~is_filled, "white"), (is_filled, color)):
        if chosen.any():
            ax.plot(values[chosen], rows[chosen], "o", ms=5, mfc=face, mew=LINE_WIDTH, **style)
    ax.plot([one.value for one in estimates], rows, "|", ms=8, **style)
    ax.set_yticks(rows, names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.6, len(estimates) - 0.4)
    if min(low) >= 0:
        ax.set_xlim(left=0)
    ax.set_xlabel(label)
