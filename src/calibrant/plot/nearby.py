"""A few letters beside a mark, on the side where nothing else is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties

from calibrant.arrays import FloatArray
from calibrant.plot.corners import Path
from calibrant.plot.frame import Frame
from calibrant.plot.style import SMALLEST

__all__ = ["Box", "Stroke", "box_beside", "size_in_points"]

# Figures and signs are about this wide and high, in units of their size.
_LETTER, _LINE = 0.75, 1.0
# How far from a mark words may be, in points, and the sides of it (right, up), in the order in
# which they are tried.
_GAPS = (2.5, 6.0, 10.0)
_SIDES = tuple((right, up) for up in (0, 1, -1, 9, -9) for right in (1, -1))
# What is left free between words and lines, in points: layout still moves lines by about as much.
_CLEAR = 1.5


@dataclass(frozen=True, eq=False)
class Stroke:
    """A path as it is drawn, so many points wide."""

    path: Path
    width: float

    def touches(self, ax: Axes, low: FloatArray, high: FloatArray) -> bool:
        """Tell whether any of it lies within a box, given by its corners in points."""
        points = _points(ax, *self.path)
        start, along = points[:-1], np.diff(points, axis=0)
        # What is level or upright lies all on one side of a line, or all on the other.
        along = np.where(along == 0, 1e-12, along)
        reach = self.width / 2
        ends = np.stack([low - reach - start, high + reach - start]) / along
        enters, leaves = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
        # Comparisons with nan, where a path is broken, are false.
        return bool(((enters < leaves) & (enters < 1) & (leaves > 0)).any())


@dataclass(frozen=True, eq=False)
class Box:
    """Where words lie: their corners in points, and how far their middle is from the mark's."""

    low: FloatArray
    high: FloatArray
    offset: tuple[float, float]

    def meets(self, other: Box) -> bool:
        """Tell whether some of it lies in another one."""
        return bool(((self.low < other.high) & (other.low < self.high)).all())


def box_beside(
    ax: Axes,
    at: tuple[float, float],
    radius: float,
    words: str,
    strokes: Sequence[Stroke],
    others: Sequence[Box],
    frame: Frame,
) -> Box | None:
    """Return where words beside a mark of this radius are to lie, in points; None: nowhere.

    That is within the frame, and neither on a stroke nor where other words are.
    """
    size = FontProperties(size=SMALLEST).get_size_in_points()
    half = np.array([_LETTER * size * len(words), _LINE * size]) / 2
    (center,) = _points(ax, *map(np.atleast_1d, at))
    window = frame.window
    low, high = _points(ax, *np.array([(window.low, window.high), (frame.low, frame.high)]))
    for gap, side in product(_GAPS, map(np.array, _SIDES)):
        offset = side / np.linalg.norm(side) * (radius + gap) + np.sign(side) * half
        first, last = center + offset - half, center + offset + half
        if (first < low).any() or (last > high).any():
            continue
        box = Box(first - _CLEAR, last + _CLEAR, (float(offset[0]), float(offset[1])))
        if any(stroke.touches(ax, box.low, box.high) for stroke in strokes):
            continue
        if not any(box.meets(other) for other in others):
            return box
    return None


def size_in_points(ax: Axes) -> FloatArray:
    """Return the width and the height of an Axes in points of print."""
    box = ax.get_position()
    inches = np.array([box.width, box.height]) * ax.figure.figure.get_size_inches()
    return np.asarray(72 * inches)


def _points(ax: Axes, x: FloatArray, y: FloatArray) -> FloatArray:
    """Return places in the data's units in points of print, from the corner of the Axes."""
    places = ax.transAxes.inverted().transform(ax.transData.transform(np.column_stack((x, y))))
    return np.asarray(places * size_in_points(ax))
