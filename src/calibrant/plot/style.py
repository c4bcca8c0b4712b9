"""Colours, widths and sizes, in one place.

The colours are Paul Tol's high-contrast and medium-contrast schemes: told apart by colour-blind
readers, and in grey by their lightness. Letters have the colour of the reader's own settings, and
sizes relative to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

__all__ = [
    "DASHES",
    "LINE_WIDTH",
    "MARKERS",
    "QUIET",
    "SMALL",
    "SMALLEST",
    "colors_of",
    "open_frame",
    "palette",
]

_DARK = ("#004488", "#bb5566", "#ddaa33", "#6699cc", "#000000", "#997700", "#ee99aa", "#994455")
_LIGHT = ("#6699cc", "#ee99aa", "#eecc66", "#ffffff", "#ddaa33", "#bb5566", "#997700", "#4477aa")
# What is there to be looked at second: on white and on black.
QUIET = "0.42"
SMALL, SMALLEST = "small", "x-small"
LINE_WIDTH = 1.6
DASHES = (0, (5, 4))
# For more models than lightness tells apart in grey; as many as there are colours but one, so that
# the two together repeat late.
MARKERS = "osD^vPX"


class Colored(Protocol):
    """Anything drawn in a colour of its own, or else in the next one in turn."""

    @property
    def color(self) -> Any:
        """The colour, or None."""


def palette(ax: Axes) -> tuple[str, ...]:
    """Return the colours that are seen on the ground of an Axes."""
    red, green, blue = to_rgb(ax.get_facecolor())
    return _LIGHT if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4 else _DARK


def colors_of(ax: Axes, items: Sequence[Colored]) -> list[Any]:
    """Return the colour of each item, its own or the next one in turn."""
    turn = palette(ax)
    return [
        turn[i % len(turn)] if item.color is None else item.color for i, item in enumerate(items)
    ]


def open_frame(ax: Axes) -> None:
    """Leave only the two sides of the frame that carry numbers."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)
    ax.tick_params(color=QUIET, labelsize=SMALL)
