"""The marks of a reliability diagram: each draws one part of a view, and computes nothing.

A `Frame` is the square on the diagonal, or a strip of deviations, with a margin below for the
distribution of outcomes and one on the right for that of recalibrated scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox, TransformedBbox
from scipy.special import expit

from calibrant._base import FloatArray
from calibrant.curves.reliability import Curve
from calibrant.curves.reliability_view import (
    Mask,
    PointMasses,
    Recalibrated,
    ReliabilityView,
    Scale,
    Window,
    bar_opacity,
    level_runs,
)
from calibrant.errors import CalibrantError
from calibrant.formatting import short_count
from calibrant.measures.bin_table import BinTable
from calibrant.numerics.probability import logit
from calibrant.plot.common import (
    DASHES,
    LINE_WIDTH,
    MUTED,
    SMALLEST,
    despine,
    size_in_points,
    text_width,
    ticks_within,
)

# The width of a line where scores are sparsest and densest, in points; less among others, and no
# more than this fraction of its band, which it would hide.
_THIN, _THICK, _LESS_THICK = 1.0, 5.0, 3.5
_FRACTION_OF_BAND, _MINIMUM_THICK = 0.4, 1.4
# The density of scores along a line is that within so many points of print.
_AROUND = 5.0
# The width of the level runs of an isotonic curve.
_LEVEL_WIDTH = 3.2
# More points than this are not visible.
_SHOWN_POINTS = 2000
# The height of a digit, in units of its size; the space around a number, in points.
_DIGIT, _APART = 0.73, 2.0
# The area of a mark grows with its fraction of the rows, but neither vanishes nor hides the curve:
# that of all rows, the minimum and the maximum, in square points.
_AREA_OF_ALL, _MINIMUM_AREA, _MAXIMUM_AREA = 450.0, 8.0, 150.0
# The margin below: the height of its line, how far marks reach from it, and the minimum length of a
# mark, so that a single row is seen among many; as fractions of the height of the Axes.
_LEVEL, _REACH, _TICK = 0.075, 0.07, 0.006
# The number of narrow bins that a window has at most.
_BINS = 200
# The margin on the right: the number of bars, their base, how far they reach, and the minimum
# length of one, as fractions of the margin.
_BARS, _BASE, _BAR, _SHORT = 50, 0.1, 0.85, 0.03
# Ticks of an axis of logits.
_LOGIT_TICKS = (1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 0.999999)
# In a window of more logits than this those between 0.1 and 0.9 would be too close together.
_FAR_APART = 7.0
_GREY, _DOTS = "0.45", (0, (1, 2))


@dataclass(frozen=True)
class Frame:
    """The part of the plane that is shown, and the margins beside it.

    `low` and `high` limit the second axis; `margin` and `side` are the fractions of the Axes below
    and on the right that are left for distributions, and `strip` is what the former shows.
    """

    window: Window
    low: float
    high: float
    margin: float
    side: float
    deviation: bool
    strip: Literal["outcomes", "density", ""] = ""
    scale: Scale = "probability"

    @property
    def region(self) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of the diagram itself, as fractions of the Axes."""
        return 0.0, self.margin, 1 - self.side, 1 - self.margin

    @property
    def marked(self) -> Window:
        """Which scores are marked: on an axis of logits those beyond it as well, at its edge."""
        return Window(0.0, 1.0) if self.scale == "logit" else self.window

    def joined(self, other: Frame, *, widened: bool = True) -> Frame:
        """Return a frame with the margins of both and, if widened, all that both show."""
        for name in ("deviation", "scale"):
            if getattr(self, name) != getattr(other, name):
                raise CalibrantError(
                    f"{name} must be {getattr(other, name)!r} on this Axes, as in the diagram that "
                    f"is there; got {getattr(self, name)!r}"
                )
        window, low, high = self.window, self.low, self.high
        if widened:
            window = Window(min(window.low, other.window.low), max(window.high, other.window.high))
            low, high = min(low, other.low), max(high, other.high)
        margin, side = max(self.margin, other.margin), max(self.side, other.side)
        strip = other.strip or self.strip
        return Frame(window, low, high, margin, side, self.deviation, strip, self.scale)

    def holds(self, x: FloatArray, y: FloatArray) -> Mask:
        """Tell which points are shown."""
        slack = 1e-9 * (self.high - self.low)
        return self.window.holds(x) & (y >= self.low - slack) & (y <= self.high + slack)

    def clip(self, ax: Axes, artist: Artist) -> None:
        """Clip an artist to the diagram, margins excluded."""
        box = Bbox([[self.window.low, self.low], [self.window.high, self.high]])
        artist.set_clip_box(TransformedBbox(box, ax.transData))

    def set_up(self, ax: Axes) -> None:
        """Set the limits and ticks of an Axes."""
        despine(ax)
        if self.scale == "logit":
            self._set_up_logits(ax)
            return
        below = (self.high - self.low) * self.margin / (1 - self.margin)
        beside = self.window.span * self.side / (1 - self.side)
        ax.set_xlim(self.window.low, self.window.high + beside)
        ax.set_ylim(self.low - below, self.high)
        locator = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
        ax.set_xticks(ticks_within(locator, self.window.low, self.window.high))
        ax.set_yticks(ticks_within(locator, self.low, self.high))
        ax.spines["left"].set_bounds(self.low, self.high)
        ax.spines["bottom"].set_bounds(self.window.low, self.window.high)
        if not self.deviation:
            ax.set_aspect("equal", adjustable="box")

    def _set_up_logits(self, ax: Axes) -> None:
        """Set both axes to logits, with ticks at probabilities."""
        low, high = logit(np.array([self.low, self.high])).tolist()
        below = expit(low - (high - low) * self.margin / (1 - self.margin))
        shown = [p for p in _LOGIT_TICKS if self.low * 0.999 <= p <= self.high * 1.001]
        is_wide = high - low > _FAR_APART
        ticks = [p for p in shown if not (is_wide and p in (0.3, 0.7))]
        ax.set_xscale("logit", nonpositive="clip")
        ax.set_yscale("logit", nonpositive="clip")
        ax.set_xlim(self.low, self.high)
        ax.set_ylim(below, self.high)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda p, _: f"{p:g}"))
        ax.spines["left"].set_bounds(self.low, self.high)
        ax.spines["bottom"].set_bounds(self.low, self.high)
        ax.set_aspect("equal", adjustable="box")


def draw_reference(ax: Axes, frame: Frame) -> None:
    """Draw perfect calibration: the diagonal, or no deviation."""
    ends = np.array([frame.window.low, frame.window.high])
    level = np.zeros(2) if frame.deviation else ends
    ax.plot(ends, level, color=MUTED, lw=0.8, ls=DASHES, zorder=2)


def draw_curve(ax: Axes, curve: Curve, color: Any, frame: Frame, *, alone: bool) -> Artist:
    """Draw a curve: as wide as scores are dense, or as points with their intervals if binned."""
    line: Artist
    if curve.method == "binned":
        return _points(ax, curve, color, frame, joined=not alone)
    if curve.method == "isotonic":
        line = _staircase(ax, curve, color, frame)
    else:
        thick = _THICK if alone else _LESS_THICK
        # The density is that along probabilities; loess is drawn as it is elsewhere.
        is_even = frame.scale == "logit" or curve.method == "loess"
        line = _ribbon(ax, curve, color, thick, is_even=is_even)
    _clip(ax, line, curve, frame)
    return line


def _clip(ax: Axes, line: Artist, curve: Curve, frame: Frame) -> None:
    """Show a line along the frame in its whole width, but clip what lies beyond."""
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


def _ribbon(ax: Axes, curve: Curve, color: Any, thick: float, *, is_even: bool) -> LineCollection:
    """Draw a curve as wide as scores are dense along it, but no wider than shows its band.

    An even one has the same width everywhere.
    """
    dense = np.isfinite(curve.high - curve.low) & (curve.density >= np.median(curve.density))
    if dense.any():
        low, high = ax.get_ylim()
        height = float(np.median((curve.high - curve.low)[dense])) / (high - low)
        points = height * float(size_in_points(ax)[1])
        thick = float(np.clip(_FRACTION_OF_BAND * points, _MINIMUM_THICK, thick))
    known = np.isfinite(curve.y)
    joined = known[:-1] & known[1:]
    ends = np.column_stack((curve.x, curve.y))
    segments = list(np.stack((ends[:-1], ends[1:]), axis=1)[joined])
    rows = _rows_along(ax, curve)[joined]
    thin = min(_THIN, thick / 2)
    if is_even:
        rows, thick = np.ones_like(rows), min(thick, LINE_WIDTH)
    widths = thin + (thick - thin) * rows / (rows.max(initial=0.0) or 1.0)
    # Round ends in one opaque colour melt into each other, which makes a line of varying width.
    style: dict[str, Any] = {"colors": [color], "capstyle": "round", "zorder": 3}
    ribbon = LineCollection(segments, linewidths=widths, **style)
    ax.add_collection(ribbon, autolim=False)
    return ribbon


def _rows_along(ax: Axes, curve: Curve) -> FloatArray:
    """Return the rows per length of each segment of a line and a few points around it.

    Where it is steep, few scores lie along much of it.
    """
    place = ax.transData.transform(np.column_stack((curve.x, np.nan_to_num(curve.y))))
    length = np.hypot(*np.diff(place, axis=0).T) * 72 / ax.figure.dpi
    mass = np.diff(curve.x) * (curve.density[:-1] + curve.density[1:]) / 2
    along, passed = (np.append(0.0, np.cumsum(v)) for v in (length, mass))
    middle = (along[:-1] + along[1:]) / 2
    ends = np.clip([middle - _AROUND, middle + _AROUND], 0.0, along[-1])
    held = np.diff(np.interp(ends, along, passed), axis=0)[0]
    return np.asarray(held / np.maximum(ends[1] - ends[0], _AROUND))


def _points(ax: Axes, curve: Curve, color: Any, frame: Frame, *, joined: bool) -> Artist:
    stick: dict[str, Any] = {"color": color, "lw": LINE_WIDTH, "zorder": 3}
    if curve.band == "consistency":
        stick = {"color": MUTED, "alpha": 0.35, "lw": 6, "zorder": 1.5}
    sticks = ax.vlines(curve.x, curve.low, curve.high, **stick)
    if frame.holds(np.tile(curve.x, 2), np.append(curve.low, curve.high)).all():
        sticks.set_clip_on(False)
    else:
        frame.clip(ax, sticks)
    style = {"marker": "o", "ms": 5, "mfc": "white", "mec": color, "mew": LINE_WIDTH}
    style |= {"ls": "-" if joined else "none", "lw": 0.8, "color": color}
    (line,) = ax.plot(curve.x, curve.y, zorder=4, **style)
    _clip(ax, line, curve, frame)
    return line


def draw_band(ax: Axes, curve: Curve, color: Any, frame: Frame, *, alone: bool) -> None:
    """Draw the band of a curve in its colour, a consistency band in grey; not that of bins.

    Among others it is lighter.
    """
    if curve.method == "binned" or np.isnan(curve.low).all():
        return
    if len(curve.x) == 1:
        # An area around a single score has no width.
        ax.vlines(curve.x, curve.low, curve.high, color=color, lw=LINE_WIDTH, zorder=2.5)
        return
    step = max(1, len(curve.x) // _SHOWN_POINTS)
    x, low, high = (np.append(v[:-1:step], v[-1]) for v in (curve.x, curve.low, curve.high))
    around = MUTED if curve.band == "consistency" else color
    style: dict[str, Any] = {"alpha": 0.2 if alone else 0.12, "lw": 0, "zorder": 1.5}
    frame.clip(ax, ax.fill_between(x, low, high, color=around, **style))


def draw_masses(ax: Axes, masses: PointMasses, color: Any, frame: Frame) -> None:
    """Mark the mean outcome at point masses, larger where there are more rows.

    Circles mark all distinct scores; discs mark those that hold many rows among others that do not.
    """
    if frame.scale == "logit":
        # 0 and 1, infinitely far out, are marked at the edge.
        ends = frame.low, frame.high
        score, outcome = np.clip(masses.score, *ends), np.clip(masses.outcome, *ends)
        masses = replace(masses, score=score, outcome=outcome)
    masses = masses.where(frame.holds(masses.score, masses.outcome))
    style: dict[str, Any] = {"fc": color, "ec": ax.get_facecolor(), "lw": 0.8}
    if masses.is_all:
        style = {"fc": "white", "ec": color, "lw": 1.2}
    area = np.clip(_AREA_OF_ALL * masses.share, _MINIMUM_AREA, _MAXIMUM_AREA)
    ax.scatter(masses.score, masses.outcome, s=area, zorder=4, clip_on=False, **style)


def draw_bars(ax: Axes, table: BinTable, color: Any, frame: Frame) -> None:
    """Draw a bar to each bin's mean outcome, or deviation, darker where there are more rows."""
    left, right, shown = _bars(table, frame.window)
    base = 0.0 if frame.deviation else frame.low
    height = table.gap[shown] if frame.deviation else table.mean_true[shown] - base
    fill = [to_rgba(color, opacity) for opacity in bar_opacity(table)[shown]]
    style: dict[str, Any] = {"color": fill, "ec": ax.get_facecolor(), "lw": 1, "align": "edge"}
    ax.bar(left, height, right - left, bottom=base, zorder=1, **style)


def _bars(table: BinTable, window: Window) -> tuple[FloatArray, FloatArray, Mask]:
    """Return where the bars of bins begin and end, and which bins have one."""
    edges = np.clip(table.edges, window.low, window.high)
    shown = (table.n > 0) & (np.diff(edges) > 0)
    return edges[:-1][shown], edges[1:][shown], shown


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of rows below the bars of bins, or their range where some bars are too narrow.

    They are upright where that way all have space; `height` is a fraction of that of the Axes.
    """

    x: FloatArray
    labels: list[str]
    upright: bool
    height: float

    @classmethod
    def of(cls, ax: Axes, table: BinTable, frame: Frame) -> Counts:
        """Return the counts of a table's bins as an Axes has space for them."""
        window = frame.window
        left, right, shown = _bars(table, window)
        x, labels = (left + right) / 2, [short_count(int(n)) for n in table.n[shown]]
        length = max(text_width(one, SMALLEST) for one in labels)
        width, height = size_in_points(ax)
        width *= (1 - frame.side) * (right - left).min() / window.span
        digit = _DIGIT * FontProperties(size=SMALLEST).get_size_in_points()
        if digit + _APART > width:
            fewest, most = (short_count(int(end(table.n[shown]))) for end in (np.min, np.max))
            rows = fewest if fewest == most else f"{fewest} to {most}"
            x, labels = np.array([(window.low + window.high) / 2]), [f"{rows} rows per bin"]
        upright = len(x) > 1 and length + _APART > width
        return cls(x, labels, upright, ((length if upright else digit) + _APART) / height)

    def write(self, ax: Axes, frame: Frame) -> None:
        """Write them."""
        style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": SMALLEST, "color": MUTED}
        style |= {"textcoords": "offset points", "rotation": 90 * self.upright}
        for x, label in zip(self.x, self.labels, strict=True):
            ax.annotate(label, (x, frame.low), xytext=(0, -_APART), **style)


def draw_strip(
    ax: Axes,
    views: Sequence[ReliabilityView],
    colors: Sequence[Any],
    frame: Frame,
    *,
    is_added: bool,
) -> None:
    """Draw the distribution of outcomes below, or the densities of several models' scores."""
    if frame.strip == "density":
        # Lines over one baseline.
        lines = [view.density() for view in views]
        maximum = max(density.max() for _, density in lines)
        for (x, density), color in zip(lines, colors, strict=True):
            height = _LEVEL - _REACH + 2 * _REACH * density / maximum
            ax.plot(x, height, color=color, lw=1, transform=ax.get_xaxis_transform())
    if frame.strip != "outcomes":
        return
    ax.plot((0, 1 - frame.side), (_LEVEL, _LEVEL), color=MUTED, lw=0.5, transform=ax.transAxes)
    window = frame.window
    if frame.scale == "probability":
        # The bin of a score at an end of the window may lie beyond it.
        beyond = window.span / _BINS
        window = Window(window.low - beyond, window.high + beyond)
    # The strip of one model is grey; those of others are outlines in their own colours.
    for view, color in zip(views, colors, strict=True):
        style: dict[str, Any] = {"color": color if is_added else _GREY, "fill": not is_added}
        if view.rows is not None:
            _draw_outcomes(ax, view.rows, window, **style)
        elif view.is_smooth:
            _draw_density(ax, view, frame.window, **style)


def _draw_outcomes(ax: Axes, table: BinTable, window: Window, color: Any, *, fill: bool) -> None:
    """Draw histograms of outcomes 1 above a line and of outcomes 0 below."""
    ones = np.nan_to_num(table.weight * table.mean_true)
    zeros = np.maximum(table.weight - ones, 0.0)
    maximum = max(ones.max(), zeros.max())
    edges = np.clip(table.edges, window.low, window.high)
    is_shown = np.diff(edges) > 0
    for weight, sign in ((ones[is_shown], 1), (zeros[is_shown], -1)):
        length = np.where(weight > 0, _TICK + (_REACH - _TICK) * weight / maximum, 0.0)
        style: dict[str, Any] = {"color": color, "fill": fill, "lw": 0.9, "clip_on": False}
        style |= {"baseline": _LEVEL, "transform": ax.get_xaxis_transform()}
        ax.stairs(_LEVEL + sign * length, np.unique(edges), **style)


def _draw_density(
    ax: Axes, view: ReliabilityView, window: Window, color: Any, *, fill: bool
) -> None:
    """Draw the density of scores, split by outcome, from a smooth curve alone."""
    ones, zeros = view.density_by_outcome()
    maximum, is_shown = max(ones.max(), zeros.max()), window.holds(view.curve.x)
    transform = ax.get_xaxis_transform()
    for edge in (_LEVEL + _REACH * ones / maximum, _LEVEL - _REACH * zeros / maximum):
        x, y = view.curve.x[is_shown], edge[is_shown]
        if fill:
            ax.fill_between(x, _LEVEL, y, color=color, lw=0, transform=transform)
        else:
            ax.plot(x, y, color=color, lw=0.9, transform=transform)


def label_strip(ax: Axes, frame: Frame) -> None:
    """Name what the strip shows, by minor ticks so that the layout leaves space for the names."""
    names = {
        "": {},
        "density": {_LEVEL: "density"},
        "outcomes": {_LEVEL - _REACH / 2: "outcome 0", _LEVEL + _REACH / 2: "outcome 1"},
    }[frame.strip]
    to_data = (ax.transAxes - ax.transData).transform
    places = [float(to_data((0, at))[1]) for at in names]
    ax.set_yticks(places, list(names.values()), minor=True)
    ax.tick_params(axis="y", which="minor", length=0, labelsize=SMALLEST, labelcolor=MUTED)


def draw_recalibrated(ax: Axes, recalibrated: Recalibrated, frame: Frame) -> None:
    """Draw a histogram of recalibrated scores along the second axis, and the base rate."""
    edges = np.linspace(frame.low, frame.high, _BARS + 1)
    scores = np.clip(recalibrated.score, 0.0, 1.0)
    weight, _ = np.histogram(scores, edges, weights=recalibrated.fraction)
    length = _SHORT + (_BAR - _SHORT) * weight / (weight.max() or 1.0)
    base = 1 - frame.side * (1 - _BASE)
    style: dict[str, Any] = {"orientation": "horizontal", "fill": True, "color": _GREY, "lw": 0}
    style |= {"baseline": base, "transform": ax.get_yaxis_transform()}
    ax.stairs(base + frame.side * np.where(weight > 0, length, 0.0), edges, **style)
    ax.plot((base, base), (frame.margin, 1), color=MUTED, lw=0.5, transform=ax.transAxes)
    small: dict[str, Any] = {"fontsize": SMALLEST, "color": MUTED}
    below = frame.margin - _BASE * frame.side
    ax.text(base, below, "recalibrated", transform=ax.transAxes, va="top", **small)
    rate = recalibrated.base_rate
    if frame.low <= rate <= frame.high:
        ax.axhline(rate, color=MUTED, lw=0.9, ls=_DOTS, zorder=2)
        at: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
        ax.annotate("base\nrate", (1, rate), xytext=(3, 0), va="center", **at, **small)
