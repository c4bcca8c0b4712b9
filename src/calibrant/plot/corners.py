"""Words put into the corner of an Axes where there is most room for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties

from calibrant.arrays import FloatArray
from calibrant.plot.style import SMALL
from calibrant.plot.wording import Key

__all__ = ["Above", "Beside", "Corner", "Path", "above_diagonal", "anywhere", "places_along"]

Path = tuple[FloatArray, FloatArray]

# What matplotlib calls the corners (right, top), in the order in which they are tried.
_NAMES: dict[tuple[int, int], Literal["upper left", "upper right", "lower right", "lower left"]] = {
    (0, 1): "upper left",
    (1, 1): "upper right",
    (1, 0): "lower right",
    (0, 0): "lower left",
}
# Between words and the sides of the Axes, as a share of it.
_INSET = 0.025
# Letters are about this wide and lines this high, in units of the size of the letters.
_LETTER, _LINE = 0.52, 1.45
# Every path is looked at in so many places.
_PLACES = 400


@dataclass(frozen=True)
class Corner:
    """A corner of an Axes above a floor and left of a wall, shares of its height and width."""

    right: int
    top: int
    floor: float = 0.0
    wall: float = 0.0

    def write(self, ax: Axes, lines: Sequence[str]) -> None:
        """Write lines into the corner."""
        ax.text(
            1 - self.wall - _INSET if self.right else _INSET,
            1 - _INSET if self.top else self.floor + _INSET,
            "\n".join(lines),
            transform=ax.transAxes,
            ha="right" if self.right else "left",
            va="top" if self.top else "bottom",
            fontsize=SMALL,
            linespacing=1.4,
            zorder=5,
        )

    def write_key(self, ax: Axes, handles: Sequence[Any], key: Key) -> None:
        """Write a key into the corner."""
        _write_key(
            ax,
            handles,
            key,
            loc=_NAMES[self.right, self.top],
            bbox_to_anchor=(0, self.floor, 1 - self.wall, 1 - self.floor),
        )

    def crowd(self, places: FloatArray, width: float, height: float) -> int:
        """Return how many places lie where words of this size would be."""
        across = 1 - self.wall - places[:, 0] if self.right else places[:, 0]
        down = 1 - places[:, 1] if self.top else places[:, 1] - self.floor
        return int(((across < width + 2 * _INSET) & (down < height + 2 * _INSET)).sum())


@dataclass(frozen=True)
class Above:
    """The place on top of an Axes, for where no corner inside is free."""

    def write(self, ax: Axes, lines: Sequence[str]) -> None:
        """Write lines above the Axes, as many side by side as there is room for."""
        ax.annotate(
            "\n".join(_side_by_side(lines, _letters(ax))),
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=SMALL,
            linespacing=1.4,
        )

    def write_key(self, ax: Axes, handles: Sequence[Any], key: Key) -> None:
        """Write a key above the Axes."""
        heading = tuple(_side_by_side(key.heading, _letters(ax)))
        shown = replace(key, heading=heading)
        _write_key(ax, handles, shown, loc="lower left", bbox_to_anchor=(0, 1), borderpad=0)


def _letters(ax: Axes) -> int:
    """Return about how many letters go across an Axes."""
    return int(1 / _size(ax, ["m"])[0])


def _side_by_side(lines: Sequence[str], letters: int) -> list[str]:
    """Return lines joined to fewer ones of about so many letters at most."""
    joined: list[str] = []
    for line in lines:
        if joined and len(joined[-1]) + len(line) + 3 <= letters:
            joined[-1] += f"   {line}"
        else:
            joined.append(line)
    return joined


@dataclass(frozen=True)
class Beside:
    """The place to the right of an Axes."""

    def write_key(self, ax: Axes, handles: Sequence[Any], key: Key) -> None:
        """Write a key beside the Axes."""
        _write_key(ax, handles, key, loc="upper left", bbox_to_anchor=(1, 1))


def _write_key(ax: Axes, handles: Sequence[Any], key: Key, **place: Any) -> None:
    ax.legend(
        handles,
        key.names,
        title="\n".join(key.heading) or None,
        title_fontsize=SMALL,
        alignment="left",
        borderaxespad=0.3,
        labelspacing=0.3,
        handlelength=1.4,
        frameon=False,
        fontsize=SMALL,
        **place,
    )


def above_diagonal(
    ax: Axes,
    lines: Sequence[str],
    paths: Sequence[Path],
    floor: float = 0.0,
    wall: float = 0.0,
    *,
    inside: bool,
) -> Corner | Above:
    """Return the corner above the diagonal, or below it where fewer paths come by there.

    Where paths come by in both, the place is above all, unless words are to stay inside.
    """
    corners = [Corner(0, 1, floor, wall), Corner(1, 0, floor, wall)]
    corner, crowd = _freest(ax, lines, paths, corners)
    return corner if inside or not crowd else Above()


def anywhere(ax: Axes, lines: Sequence[str], paths: Sequence[Path]) -> Corner:
    """Return the freest of all corners; where none is free, limits move to make room."""
    corners = [Corner(*place) for place in _NAMES]
    corner, crowd = _freest(ax, lines, paths, corners)
    if crowd:
        low, high = ax.get_ylim()
        share = _size(ax, lines)[1] + 2 * _INSET
        more = (high - low) * share / (1 - share)
        ax.set_ylim(low - more * (1 - corner.top), high + more * corner.top)
    return corner


def _freest(
    ax: Axes, lines: Sequence[str], paths: Sequence[Path], corners: Sequence[Corner]
) -> tuple[Corner, int]:
    size = _size(ax, lines)
    places = np.concatenate([places_along(ax, *path) for path in paths])
    crowds = [corner.crowd(places, *size) for corner in corners]
    least = min(crowds)
    return corners[crowds.index(least)], least


def _size(ax: Axes, lines: Sequence[str]) -> tuple[float, float]:
    """Return about how much of the Axes some lines take, across and down."""
    points = FontProperties(size=SMALL).get_size_in_points()
    box, inches = ax.get_position(), ax.figure.figure.get_size_inches()
    letters = max((len(line) for line in lines), default=0)
    width = _LETTER * points * letters / (72 * box.width * inches[0])
    return width, _LINE * points * len(lines) / (72 * box.height * inches[1])


def places_along(ax: Axes, x: FloatArray, y: FloatArray) -> FloatArray:
    """Return places along a path in the data's units, in shares of the Axes."""
    steps = np.linspace(0, len(x) - 1, _PLACES)
    along = [np.interp(steps, np.arange(len(x)), values) for values in (x, y)]
    places = ax.transAxes.inverted().transform(ax.transData.transform(np.column_stack(along)))
    return np.asarray(places[np.isfinite(places).all(axis=1)])
