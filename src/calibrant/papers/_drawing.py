"""Figures that touch no global state, in one style."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by readers who confuse colours too (Okabe and Ito), and by their markers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v", "P")
GREY = "#555555"
LIGHT = "#D9D9D9"


def figure(n_rows: int, n_columns: int, width: float, height: float, **options: Any) -> Figure:
    """Return an empty figure with axes in rows and columns; `options` as of `subplots`."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    for axes in drawn.subplots(n_rows, n_columns, squeeze=False, **options).flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=LIGHT, linewidth=0.6)
        axes.set_axisbelow(True)
    return drawn


def from_zero(axes: Axes) -> None:
    """Let the vertical axis start at 0 and end above what is drawn."""
    axes.set_ylim(0, 1.08 * axes.dataLim.ymax)


def legend_below(drawn: Figure, axes: Axes, n_columns: int) -> None:
    """Put the legend of one of the axes below all of them."""
    handles, labels = axes.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=n_columns, frameon=False)
