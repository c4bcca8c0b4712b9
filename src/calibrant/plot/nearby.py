"""A few letters beside a mark, on the side where nothing else is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties

from calibrant.plot.corners import Path, places_along
from calibrant.plot.frame import Frame
from calibrant.plot.style import SMALLEST

__all__ = ["offset_beside"]

# Letters are about this wide and high, in units of their size.
_LETTER, _LINE = 0.62, 1.0
# The sides of a mark (right, up), in the order in which they are tried.
_SIDES = tuple((right, up) for up in (0, 1, -1, 3, -3) for right in (1, -1))
_GAP = 2.5


def offset_beside(
    ax: Axes,
    at: tuple[float, float],
    radius: float,
    words: str,
    paths: Sequence[Path],
    frame: Frame,
) -> tuple[float, float] | None:
    """Return how far from a mark of this radius its words lie, in points; None: nowhere.

    They are to lie within the frame, and on none of the paths.
    """
    size = FontProperties(size=SMALLEST).get_size_in_points()
    half = np.array([_LETTER * size * len(words), _LINE * size]) / 2
    box = ax.get_position()
    points = 72 * np.array([box.width, box.height]) * ax.figure.figure.get_size_inches()
    center = places_along(ax, *map(np.atleast_1d, at))[0] * points
    low = np.array([0, frame.margin]) * points - center
    high = np.array([1 - frame.side, 1]) * points - center
    taken = np.concatenate([places_along(ax, *path) for path in paths]) * points - center
    for side in map(np.array, _SIDES):
        middle = side / np.linalg.norm(side) * (radius + _GAP) + np.sign(side) * half
        is_within = bool(((middle - half >= low) & (middle + half <= high)).all())
        if is_within and not (np.abs(taken - middle) < half).all(axis=1).any():
            return float(middle[0]), float(middle[1])
    return None
