"""The marks of a reliability diagram: each draws one result on an Axes, and computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from calibrant.arrays import FloatArray
from calibrant.curves.reliability_view import Mask, Window
from calibrant.plot.corners import Path
from calibrant.plot.frame import Frame
from calibrant.plot.nearby import Box, Stroke, box_beside, size_in_points
from calibrant.plot.style import DASHES, LINE_WIDTH, MARKERS, QUIET, SMALLEST
from calibrant.plot.wording import row_range, short_count
from calibrant.results.curves import Curve
from calibrant.results.masses import PointMasses
from calibrant.results.tables import BinTable

__all__ = [
    "Counts",
    "draw_band",
    "draw_bars",
    "draw_curve",
    "draw_level",
    "draw_markers",
    "draw_masses",
    "write_shares",
]

# The width of a line where scores are thinnest and densest, in points; less among others, and no
# more than this share of its band, which it would hide.
_THIN, _THICK, _LESS_THICK = 1.0, 5.0, 3.5
_SHARE_OF_BAND, _LEAST_THICK = 0.4, 1.4
# How wide the level stretches of an isotonic curve are.
_LEVEL_WIDTH = 3.2
# More points than this do not show.
_SHOWN_POINTS = 2000
# How high a digit is, in units of its size; what is left free around a number, in points.
_DIGIT, _APART = 0.73, 2.0
# How many signs stand on a curve among many.
_SIGNS = 4
# The area of a mark goes with its share of rows, but neither vanishes nor hides the curve: that of
# all rows, the least and the largest, in square points.
_AREA_OF_ALL, _LEAST_AREA, _LARGEST_AREA = 450.0, 8.0, 150.0
# The widest of the lines that a curve is compared with.
_GUIDE_WIDTH = 0.9
# How opaque bars are: one that holds next to no rows, and the one that holds most.
_FAINT, _STRONG = 0.05, 0.3


def draw_curve(ax: Axes, curve: Curve, color: Any, frame: Frame, *, alone: bool) -> Artist:
    """Draw a curve: as wide as scores are dense, or as points with their intervals if binned."""
    line: Artist
    if curve.method == "binned":
        return _points(ax, curve, color, frame, joined=not alone)
    if curve.method == "isotonic":
        line = _staircase(ax, curve, color, frame)
    else:
        line = _ribbon(ax, curve, color, _thickness(ax, curve, _THICK if alone else _LESS_THICK))
    _clip(ax, line, curve, frame)
    return line


def _clip(ax: Axes, line: Artist, curve: Curve, frame: Frame) -> None:
    """Show a line along the frame in its whole width, but cut off what lies beyond."""
    if (frame.holds(curve.x, curve.y) | ~np.isfinite(curve.y)).all():
        line.set_clip_on(False)
    else:
        frame.clip(ax, line)


def _staircase(ax: Axes, curve: Curve, color: Any, frame: Frame) -> Artist:
    """Draw an isotonic curve, heavier where it is level: scores that outcomes do not tell apart."""
    kept = _corners(curve.y)
    (line,) = ax.plot(curve.x[kept], curve.y[kept], color=color, lw=1, zorder=3)
    level = np.diff(curve.y) == 0
    points = np.column_stack((curve.x, curve.y))
    ends = np.flatnonzero(np.diff(level, prepend=False, append=False))
    stretches = [points[[first, last]] for first, last in ends.reshape(-1, 2)]
    heavy = LineCollection(stretches, linewidths=_LEVEL_WIDTH, colors=[color], zorder=3)
    ax.add_collection(heavy, autolim=False)
    _clip(ax, heavy, curve, frame)
    return line


def _thickness(ax: Axes, curve: Curve, most: float) -> float:
    """Return how wide a line may be without hiding its band: in points, where scores are dense."""
    dense = np.isfinite(curve.high - curve.low) & (curve.density >= np.median(curve.density))
    if not dense.any():
        return most
    low, high = ax.get_ylim()
    points = 72 * ax.get_position().height * ax.figure.figure.get_size_inches()[1]
    height = float(np.median((curve.high - curve.low)[dense])) / (high - low) * points
    return float(np.clip(_SHARE_OF_BAND * height, _LEAST_THICK, most))


def _ribbon(ax: Axes, curve: Curve, color: Any, thick: float) -> LineCollection:
    known = np.isfinite(curve.y)
    joined = known[:-1] & known[1:]
    points = np.column_stack((curve.x, curve.y))
    segments = np.stack((points[:-1], points[1:]), axis=1)[joined]
    density = (curve.density[:-1] + curve.density[1:])[joined] / 2
    thin = min(_THIN, thick / 2)
    widths = thin + (thick - thin) * density / curve.density.max()
    # Round ends in one opaque colour melt into each other, which makes a line of varying width.
    ribbon = LineCollection(
        list(segments), linewidths=widths, colors=[color], capstyle="round", zorder=3
    )
    ax.add_collection(ribbon, autolim=False)
    return ribbon


def _points(ax: Axes, curve: Curve, color: Any, frame: Frame, *, joined: bool) -> Artist:
    stick: dict[str, Any] = {"color": color, "lw": LINE_WIDTH, "zorder": 3}
    if curve.band == "consistency":
        stick = {"color": QUIET, "alpha": 0.35, "lw": 6, "zorder": 1.5}
    frame.clip(ax, ax.vlines(curve.x, curve.low, curve.high, **stick))
    style = {"marker": "o", "ms": 5, "mfc": "white", "mec": color, "mew": LINE_WIDTH}
    style |= {"ls": "-" if joined else "none", "lw": 0.8, "color": color}
    (line,) = ax.plot(curve.x, curve.y, zorder=4, **style)
    _clip(ax, line, curve, frame)
    return line


def draw_band(ax: Axes, curve: Curve, color: Any, frame: Frame) -> None:
    """Draw the band of a curve, where there is one; a binned curve has intervals instead.

    Where the curve may be is in its colour; where calibrated predictions would be is in grey.
    """
    if curve.method == "binned" or np.isnan(curve.low).all():
        return
    if len(curve.x) == 1:
        # An area around a single score has no width.
        ax.vlines(curve.x, curve.low, curve.high, color=color, lw=LINE_WIDTH, zorder=2.5)
        return
    step = max(1, len(curve.x) // _SHOWN_POINTS)
    x, low, high = (np.append(v[:-1:step], v[-1]) for v in (curve.x, curve.low, curve.high))
    around = QUIET if curve.band == "consistency" else color
    frame.clip(ax, ax.fill_between(x, low, high, color=around, alpha=0.2, lw=0, zorder=1.5))


def draw_markers(ax: Axes, curve: Curve, color: Any, index: int) -> None:
    """Mark a curve here and there with a sign of its own, at places that are its own too."""
    known = np.flatnonzero(np.isfinite(curve.y))
    share = (np.arange(_SIGNS) + (index % len(MARKERS) + 0.5) / len(MARKERS)) / _SIGNS
    at = known[(share * len(known)).astype(int)]
    style = {"marker": MARKERS[index % len(MARKERS)], "ms": 6, "mfc": "white", "mec": color}
    ax.plot(curve.x[at], curve.y[at], ls="none", zorder=4, **style)


def draw_masses(ax: Axes, masses: PointMasses, color: Any) -> None:
    """Mark the mean outcome at single scores, the larger the more rows have them.

    Circles mark all there are; discs mark those that hold many rows among others that do not.
    """
    style: dict[str, Any] = {"fc": color, "ec": ax.get_facecolor(), "lw": 0.8}
    if masses.is_all:
        style = {"fc": "white", "ec": color, "lw": 1.2}
    area = _area(masses.share)
    ax.scatter(masses.score, masses.outcome, s=area, zorder=4, clip_on=False, **style)


def write_shares(
    ax: Axes, masses: PointMasses, curve: Curve, guides: Sequence[Path], frame: Frame
) -> None:
    """Write the share of rows beside each mass where nothing else is drawn, else nowhere."""
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALLEST, "zorder": 5}
    width = _LEVEL_WIDTH if curve.method == "isotonic" else _thickness(ax, curve, _THICK)
    lines = [Stroke((curve.x, curve.y), width), *(Stroke(path, _GUIDE_WIDTH) for path in guides)]
    diameter = 2 * np.sqrt(_area(masses.share) / np.pi)
    columns = (masses.score, masses.outcome, diameter)
    discs = [Stroke((np.full(2, x), np.full(2, y)), d) for x, y, d in zip(*columns, strict=True)]
    written: list[Box] = []
    for k, (x, y, wide) in enumerate(zip(*columns, strict=True)):
        words = f"{100 * masses.share[k]:.0f}%"
        drawn = [*lines, *discs[:k], *discs[k + 1 :]]
        box = box_beside(ax, (x, y), wide / 2, words, drawn, written, frame)
        if box is not None:
            ax.annotate(words, (x, y), xytext=box.offset, textcoords="offset points", **style)
            written.append(box)


def _area(share: FloatArray) -> FloatArray:
    return np.clip(_AREA_OF_ALL * share, _LEAST_AREA, _LARGEST_AREA)


def draw_bars(ax: Axes, table: BinTable, color: Any, frame: Frame) -> None:
    """Draw a bar to each bin's mean outcome, or deviation; the more rows, the darker it is."""
    left, right, shown = _bars(table, frame.window)
    height = table.gap[shown] if frame.deviation else table.mean_true[shown] - frame.foot
    # The eye tells roots apart better than amounts, a few of which may be far above all others.
    alpha = _FAINT + (_STRONG - _FAINT) * np.sqrt(table.n[shown] / table.n.max())
    fill = [to_rgba(color, opacity) for opacity in alpha]
    style: dict[str, Any] = {"color": fill, "ec": ax.get_facecolor(), "lw": 1, "align": "edge"}
    ax.bar(left, height, right - left, bottom=frame.foot, zorder=1, **style)


def _bars(table: BinTable, window: Window) -> tuple[FloatArray, FloatArray, Mask]:
    """Return where the bars of bins begin and end, and which bins have one."""
    edges = np.clip(table.edges, window.low, window.high)
    shown = (table.n > 0) & (np.diff(edges) > 0)
    return edges[:-1][shown], edges[1:][shown], shown


@dataclass(frozen=True, eq=False)
class Counts:
    """How many rows bins hold, written in a row below their bars.

    Attributes
    ----------
    x
        The middle of each bar; that of all, where some are too narrow for their own number.
    words
        The number of rows in each, or the range of all.
    upright
        Whether numbers are written upward, because that way all have space.
    height
        The height of the row, as a fraction of the Axes.
    """

    x: FloatArray
    words: list[str]
    upright: bool
    height: float

    @classmethod
    def of(cls, ax: Axes, table: BinTable, frame: Frame) -> Counts:
        """Return the counts of a table's bins as an Axes has space for them."""
        window = frame.window
        left, right, shown = _bars(table, window)
        x, words = (left + right) / 2, [short_count(int(n)) for n in table.n[shown]]
        size = FontProperties(size=SMALLEST).get_size_in_points()
        length = np.array([TextPath((0, 0), one, size).get_extents().width for one in words])
        width, height = size_in_points(ax)
        width *= (1 - frame.side) * (right - left).min() / window.span
        digit = _DIGIT * size
        if digit + _APART > width:
            x, words = np.array([(window.low + window.high) / 2]), [row_range(table.n[shown])]
        upright = len(x) > 1 and length.max() + _APART > width
        return cls(x, words, upright, ((length.max() if upright else digit) + _APART) / height)

    def write(self, ax: Axes, frame: Frame) -> None:
        """Write them."""
        for x, words in zip(self.x, self.words, strict=True):
            ax.annotate(
                words,
                (x, frame.low),
                xytext=(0, -_APART),
                textcoords="offset points",
                ha="center",
                va="top",
                rotation=90 * self.upright,
                fontsize=SMALLEST,
                color=QUIET,
            )


def draw_level(ax: Axes, frame: Frame) -> Path:
    """Draw where perfect calibration lies, and return it: the diagonal, or no deviation."""
    ends = np.array([frame.window.low, frame.window.high])
    level = np.zeros(2) if frame.deviation else ends
    ax.plot(ends, level, color=QUIET, lw=0.8, ls=DASHES, zorder=2)
    return ends, level


def _corners(y: FloatArray) -> FloatArray:
    """Tell which points of a staircase are needed to draw it."""
    changes = np.diff(y) != 0
    return np.asarray(np.append(changes, True) | np.append(True, changes))
