"""The marks of a reliability diagram: each draws one part of a view, and computes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox, TransformedBbox

from calibrant._base import FloatArray
from calibrant.curves.curve import Curve
from calibrant.curves.reliability_view import Mask, Window, level_runs
from calibrant.errors import CalibrantError
from calibrant.formatting import short_count
from calibrant.measures.bin_table import BinTable
from calibrant.measures.point_masses import PointMasses
from calibrant.plot.style import (
    DASHES,
    LINE_WIDTH,
    MARKERS,
    QUIET,
    SMALLEST,
    open_frame,
    size_in_points,
)
from calibrant.plot.text import row_range, text_width

__all__ = [
    "Counts",
    "Frame",
    "draw_band",
    "draw_bars",
    "draw_curve",
    "draw_level",
    "draw_markers",
    "draw_masses",
]

# The width of a line where scores are thinnest and densest, in points; less among others, and no
# more than this fraction of its band, which it would hide.
_THIN, _THICK, _LESS_THICK = 1.0, 5.0, 3.5
_FRACTION_OF_BAND, _MINIMUM_THICK = 0.4, 1.4
# The width of the level runs of an isotonic curve.
_LEVEL_WIDTH = 3.2
# More points than this do not show.
_SHOWN_POINTS = 2000
# The height of a digit, in units of its size; what is left free around a number, in points.
_DIGIT, _APART = 0.73, 2.0
# The number of signs on a curve among many.
_SIGNS = 4
# The area of a mark grows with its fraction of the rows, but neither vanishes nor hides the curve:
# that of all rows, the minimum and the maximum, in square points.
_AREA_OF_ALL, _MINIMUM_AREA, _MAXIMUM_AREA = 450.0, 8.0, 150.0
# The opacity of bars: of one that holds next to no rows, and of the one that holds most.
_FAINT, _STRONG = 0.05, 0.3


@dataclass(frozen=True)
class Frame:
    """The part of the plane that is shown, and the fractions of the Axes beside it.

    Attributes
    ----------
    window
        The scores along the first axis.
    low, high
        What is shown along the second axis.
    margin
        The fraction of the height that is left below, for where outcomes lie.
    side
        The fraction of the width that is left on the right, for recalibrated scores.
    deviation
        Whether outcomes are shown less predictions.
    strip
        What the space below shows: "outcomes", the "density" of scores, or nothing.
    """

    window: Window
    low: float
    high: float
    margin: float
    side: float
    deviation: bool
    strip: Literal["outcomes", "density", ""] = ""

    @property
    def foot(self) -> float:
        """Where bars stand."""
        return 0.0 if self.deviation else self.low

    @property
    def region(self) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of the diagram itself, as fractions of the Axes."""
        return 0.0, self.margin, 1 - self.side, 1 - self.margin

    def joined(self, other: Frame, *, widened: bool = True) -> Frame:
        """Return a frame with the strips of both, and unless told otherwise all that both show."""
        if self.deviation != other.deviation:
            raise CalibrantError(
                f"deviation must be {other.deviation} on this Axes, as in the diagram that is "
                f"there; got {self.deviation}"
            )
        strips = replace(
            self,
            margin=max(self.margin, other.margin),
            side=max(self.side, other.side),
            strip=other.strip or self.strip,
        )
        if not widened:
            return strips
        ours, theirs = self.window, other.window
        return replace(
            strips,
            window=Window(min(ours.low, theirs.low), max(ours.high, theirs.high)),
            low=min(self.low, other.low),
            high=max(self.high, other.high),
        )

    def holds(self, x: FloatArray, y: FloatArray) -> Mask:
        """Tell which points are shown."""
        slack = 1e-9 * (self.high - self.low)
        return self.window.holds(x) & (y >= self.low - slack) & (y <= self.high + slack)

    def clip(self, ax: Axes, artist: Artist) -> None:
        """Cut off what of an artist lies beyond, strips beside the diagram included."""
        box = Bbox([[self.window.low, self.low], [self.window.high, self.high]])
        artist.set_clip_box(TransformedBbox(box, ax.transData))

    def set_up(self, ax: Axes) -> None:
        """Give an Axes its limits and ticks."""
        open_frame(ax)
        below = (self.high - self.low) * self.margin / (1 - self.margin)
        beside = self.window.span * self.side / (1 - self.side)
        ax.set_xlim(self.window.low, self.window.high + beside)
        ax.set_ylim(self.low - below, self.high)
        ax.set_xticks(_ticks(self.window.low, self.window.high))
        ax.set_yticks(_ticks(self.low, self.high))
        ax.spines["left"].set_bounds(self.low, self.high)
        ax.spines["bottom"].set_bounds(self.window.low, self.window.high)
        if not self.deviation:
            ax.set_aspect("equal", adjustable="box")

    def name_axes(self, ax: Axes, names: tuple[str, str]) -> None:
        """Write the names of both axes amid what they show, strips left out."""
        ax.set_xlabel(names[0], x=(1 - self.side) / 2)
        ax.set_ylabel(names[1], y=(1 + self.margin) / 2)


def _ticks(low: float, high: float) -> FloatArray:
    ticks = np.asarray(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    slack = 1e-9 * (high - low)
    return ticks[(ticks >= low - slack) & (ticks <= high + slack)]


def draw_level(ax: Axes, frame: Frame) -> None:
    """Draw where perfect calibration lies: the diagonal, or no deviation."""
    ends = np.array([frame.window.low, frame.window.high])
    level = np.zeros(2) if frame.deviation else ends
    ax.plot(ends, level, color=QUIET, lw=0.8, ls=DASHES, zorder=2)


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
    """Draw an isotonic curve, heavier along its level runs: scores that it does not distinguish."""
    changes = np.diff(curve.y) != 0
    corners = np.append(changes, True) | np.append(True, changes)
    (line,) = ax.plot(curve.x[corners], curve.y[corners], color=color, lw=1, zorder=3)
    points = np.column_stack((curve.x, curve.y))
    runs = [points[run] for run in level_runs(curve)]
    heavy = LineCollection(runs, linewidths=_LEVEL_WIDTH, colors=[color], zorder=3)
    ax.add_collection(heavy, autolim=False)
    _clip(ax, heavy, curve, frame)
    return line


def _thickness(ax: Axes, curve: Curve, most: float) -> float:
    """Return how wide a line may be without hiding its band: in points, where scores are dense."""
    dense = np.isfinite(curve.high - curve.low) & (curve.density >= np.median(curve.density))
    if not dense.any():
        return most
    low, high = ax.get_ylim()
    height = float(np.median((curve.high - curve.low)[dense])) / (high - low)
    points = height * float(size_in_points(ax)[1])
    return float(np.clip(_FRACTION_OF_BAND * points, _MINIMUM_THICK, most))


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

    A confidence band has the colour of the curve; a consistency band is grey.
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
    along = (np.arange(_SIGNS) + (index % len(MARKERS) + 0.5) / len(MARKERS)) / _SIGNS
    at = known[(along * len(known)).astype(int)]
    style = {"marker": MARKERS[index % len(MARKERS)], "ms": 6, "mfc": "white", "mec": color}
    ax.plot(curve.x[at], curve.y[at], ls="none", zorder=4, **style)


def draw_masses(ax: Axes, masses: PointMasses, color: Any, frame: Frame) -> None:
    """Mark the mean outcome at single scores, the larger the more rows have them.

    Circles mark all scores there are; discs mark those that hold many rows among others that do
    not.
    """
    masses = masses.where(frame.holds(masses.score, masses.outcome))
    style: dict[str, Any] = {"fc": color, "ec": ax.get_facecolor(), "lw": 0.8}
    if masses.is_all:
        style = {"fc": "white", "ec": color, "lw": 1.2}
    area = np.clip(_AREA_OF_ALL * masses.share, _MINIMUM_AREA, _MAXIMUM_AREA)
    ax.scatter(masses.score, masses.outcome, s=area, zorder=4, clip_on=False, **style)


def draw_bars(ax: Axes, table: BinTable, color: Any, frame: Frame) -> None:
    """Draw a bar to each bin's mean outcome, or deviation; the more rows, the darker it is."""
    left, right, shown = _bars(table, frame.window)
    height = table.gap[shown] if frame.deviation else table.mean_true[shown] - frame.foot
    # The eye distinguishes roots better than numbers, a few of which may be far above all others.
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
        length = max(text_width(one, SMALLEST) for one in words)
        width, height = size_in_points(ax)
        width *= (1 - frame.side) * (right - left).min() / window.span
        digit = _DIGIT * FontProperties(size=SMALLEST).get_size_in_points()
        if digit + _APART > width:
            x, words = np.array([(window.low + window.high) / 2]), [row_range(table.n[shown])]
        upright = len(x) > 1 and length + _APART > width
        return cls(x, words, upright, ((length if upright else digit) + _APART) / height)

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
