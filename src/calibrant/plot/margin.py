"""The strip below a reliability diagram: where outcomes of either kind lie.

Outcomes 1 point up from a line and outcomes 0 down. Its height is in shares of the Axes, so that it
stays where it is whatever the scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from calibrant.arrays import FloatArray
from calibrant.plot.diagram import Diagram
from calibrant.plot.frame import Frame
from calibrant.plot.style import QUIET, SMALLEST
from calibrant.results.curves import Curve
from calibrant.results.tables import BinTable

__all__ = ["draw_margin"]

# The level of the strip's line, and how far marks reach, as shares of the height of the Axes.
_LEVEL, _REACH = 0.075, 0.07
# The least length of a mark, so that a single row is seen among many.
_TICK = 0.006
_COLOR, _WIDTH = "0.45", 0.9


def draw_margin(ax: Axes, diagrams: list[Diagram], colors: list[Any], frame: Frame) -> None:
    """Draw what is known of where outcomes lie, or where the scores of several models do."""
    if len(diagrams) > 1:
        _draw_densities(ax, diagrams, colors)
    elif diagrams[0].rows is not None:
        _draw_outcomes(ax, diagrams[0].rows, frame)
    elif diagrams[0].is_smooth:
        _draw_density(ax, diagrams[0].curve, frame)


def _draw_outcomes(ax: Axes, table: BinTable, frame: Frame) -> None:
    """Draw outcomes from a table of narrow bins: the more of them, the longer the mark."""
    ones = np.nan_to_num(table.weight * table.mean_true)
    zeros = np.maximum(table.weight - ones, 0.0)
    most = max(ones.max(), zeros.max())
    edges = np.clip(table.edges, frame.window.low, frame.window.high)
    is_shown = np.diff(edges) > 0
    for amount, sign in ((ones[is_shown], 1), (zeros[is_shown], -1)):
        length = np.where(amount > 0, _TICK + (_REACH - _TICK) * amount / most, 0.0)
        ax.stairs(
            _LEVEL + sign * length,
            np.unique(edges),
            baseline=_LEVEL,
            fill=True,
            color=_COLOR,
            lw=_WIDTH,
            transform=ax.get_xaxis_transform(),
        )
    _finish(ax, frame)


def _draw_density(ax: Axes, curve: Curve, frame: Frame) -> None:
    """Draw the density of scores, split by outcome, from a smooth curve alone."""
    share = np.nan_to_num(curve.y + curve.x if curve.method == "local" else curve.y)
    ones, zeros = curve.density * share, curve.density * (1 - share)
    most = max(ones.max(), zeros.max())
    is_shown = frame.window.holds(curve.x)
    for edge in (_LEVEL + _REACH * ones / most, _LEVEL - _REACH * zeros / most):
        _fill(ax, curve.x[is_shown], edge[is_shown])
    _finish(ax, frame)


def _draw_densities(ax: Axes, diagrams: list[Diagram], colors: list[Any]) -> None:
    """Draw the densities of several models' scores as lines over one floor."""
    shapes = [_density(diagram) for diagram in diagrams]
    most = max(density.max() for _, density in shapes)
    floor = _LEVEL - _REACH
    for (x, density), color in zip(shapes, colors, strict=True):
        height = floor + 2 * _REACH * density / most
        ax.plot(x, height, color=color, lw=1, transform=ax.get_xaxis_transform())
    _label(ax, {_LEVEL: "density"})


def _density(diagram: Diagram) -> tuple[FloatArray, FloatArray]:
    """Return the density of scores as a line: smooth, or in steps."""
    if diagram.is_smooth or diagram.rows is None:
        return diagram.curve.x, diagram.curve.density
    edges, weight = diagram.rows.edges, diagram.rows.weight
    return np.repeat(edges, 2)[1:-1], np.repeat(weight / weight.sum() / np.diff(edges), 2)


def _fill(ax: Axes, x: FloatArray, edge: FloatArray) -> None:
    ax.fill_between(x, _LEVEL, edge, color=_COLOR, lw=0, transform=ax.get_xaxis_transform())


def _finish(ax: Axes, frame: Frame) -> None:
    ax.plot((0, 1 - frame.side), (_LEVEL, _LEVEL), color=QUIET, lw=0.5, transform=ax.transAxes)
    _label(ax, {_LEVEL - _REACH / 2: "outcome 0", _LEVEL + _REACH / 2: "outcome 1"})


def _label(ax: Axes, words: dict[float, str]) -> None:
    """Write words beside the strip, as labels of minor ticks so that they go where labels go."""
    low, high = ax.get_ylim()
    places = [low + (high - low) * height for height in words]
    ax.set_yticks(places, list(words.values()), minor=True)
    ax.tick_params(axis="y", which="minor", length=0, labelsize=SMALLEST, labelcolor=QUIET)
