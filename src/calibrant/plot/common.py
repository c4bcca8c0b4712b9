"""What all plots share: figures, colours, the models of a call, and text that hides nothing.

The colours are Paul Tol's high-contrast and medium-contrast schemes: distinct to colour-blind
readers, and by their lightness in grey. Text has the colour of the user's settings, and sizes
relative to theirs. Notes and legends go into the first corner where nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Literal, TypeVar

import numpy as np
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import Collection, PathCollection, PolyCollection
from matplotlib.colors import is_color_like, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnchoredText
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.ticker import Locator
from matplotlib.transforms import Bbox, ScaledTranslation
from matplotlib.typing import ColorType

from calibrant._base import FloatArray
from calibrant.curves.reliability import Curve
from calibrant.curves.reliability_view import PointMasses
from calibrant.data import validation
from calibrant.data.classes import rows_by_model
from calibrant.errors import CalibrantError
from calibrant.formatting import Number, count, p_statement, percent, with_interval
from calibrant.inference.cumulative_tests import TestResult
from calibrant.inference.estimate import Estimate
from calibrant.measures.registry import measures
from calibrant.measures.scores import ScoreDecomposition
from calibrant.numerics.regression import isotonic_fit

Note = Estimate | TestResult | ScoreDecomposition | Curve | str
Colors = ColorType | list[ColorType] | None
R = TypeVar("R")
Corner = Literal["upper left", "upper right", "lower right", "lower left"]

_DARK = ("#004488", "#bb5566", "#ddaa33", "#6699cc", "#000000", "#997700", "#ee99aa", "#994455")
_LIGHT = ("#6699cc", "#ee99aa", "#eecc66", "#ffffff", "#ddaa33", "#bb5566", "#997700", "#4477aa")
# Secondary text and lines; legible on white and on black.
MUTED = "0.42"
SMALL, SMALLEST = "small", "x-small"
LINE_WIDTH = 1.6
DASHES = (0, (5, 4))
# For more models than lightness distinguishes; one fewer than colours, so that pairs repeat late.
MARKERS = "osD^vPX"
ALL_CORNERS: tuple[Corner, ...] = ("upper left", "upper right", "lower right", "lower left")
_ANCHORS: dict[Corner, Any] = dict(zip(ALL_CORNERS, ("NW", "NE", "SE", "SW"), strict=True))
# Distance of text from the frame, in units of the font size, and from all that is drawn, in points.
_PAD, _CLEARANCE = 0.3, 3.0
_SEPARATOR = "   "
# The distance of lines of text, in units of the font size, and where labels begin that are written
# to the right of an Axes, as a fraction of its width.
_LINE_SPACING, _LABEL_AT = 1.5, 1.08
# The space that text without a free corner adds at most, as a fraction of the height.
_MOST_ADDED = 0.6
# How much wider than in print text may be on a screen, whose letters are fitted to its dots.
WIDER_ON_SCREEN = 1.06
# Marks the text that these functions write.
_LABEL = "_calibrant"


class ShownAxes(Axes):
    """An Axes that a notebook shows, though pyplot does not know its figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return notebook_png(self)


class Panels(tuple[Axes, ...]):
    """The Axes of one figure, in order; a notebook shows the figure."""

    __slots__ = ()

    @property
    def figure(self) -> Figure:
        """The figure that holds them."""
        return self[0].figure.figure

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return notebook_png(self[0])


def notebook_png(ax: Axes) -> tuple[bytes, dict[str, int]]:
    """Return the figure of an Axes as a notebook shows it."""
    figure, buffer, dpi = ax.figure.figure, BytesIO(), 90
    # Twice the resolution that it is shown at.
    figure.savefig(buffer, format="png", dpi=2 * dpi)
    width, height = (round(inches * dpi) for inches in figure.get_size_inches())
    return buffer.getvalue(), {"width": width, "height": height}


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of a size in inches at a font size of 10 points, scaled to the user's."""
    scale = rcParams["font.size"] / 10
    return Figure(figsize=(scale * width, scale * height), layout="compressed")


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the Axes that was given, or else that of a new figure."""
    check_axes(ax)
    return new_figure(width, height).add_subplot(axes_class=ShownAxes) if ax is None else ax


def check_axes(ax: object) -> None:
    """Refuse what cannot be drawn on."""
    if ax is not None and not isinstance(ax, Axes):
        raise CalibrantError("must be a matplotlib Axes", argument="ax", value=ax)


def size_in_points(ax: Axes) -> FloatArray:
    """Return the width and the height of an Axes in points, before its figure is laid out."""
    return 72 / ax.figure.dpi * np.array(ax.get_window_extent().size)


def despine(ax: Axes) -> None:
    """Keep only the two sides of the frame that carry numbers."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(color=MUTED, labelsize=SMALL)


def ticks_within(locator: Locator, low: float, high: float) -> FloatArray:
    """Return the ticks of a locator between two values, rounding aside."""
    ticks, slack = np.asarray(locator.tick_values(low, high)), 1e-9 * (high - low)
    return ticks[(ticks >= low - slack) & (ticks <= high + slack)]


def palette(ax: Axes) -> tuple[str, ...]:
    """Return the colours that are visible on the background of an Axes."""
    red, green, blue = to_rgb(ax.get_facecolor())
    return _LIGHT if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4 else _DARK


def resolve_colors(ax: Axes, colors: Sequence[Any], n_before: int = 0) -> list[Any]:
    """Return colours, None replaced by the next of the palette after those drawn before."""
    own, given = palette(ax), enumerate(colors, n_before)
    return [own[i % len(own)] if color is None else color for i, color in given]


class Record(Artist):
    """What one call drew on an Axes, for the calls that follow; it shows nothing itself."""

    def __init__(self, kind: str, content: Any, n_models: int) -> None:
        super().__init__()
        self.kind, self.content, self.n_models = kind, content, n_models
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Draw nothing."""


def records(ax: Axes, kind: str) -> list[Record]:
    """Return what earlier calls of this kind drew on an Axes."""
    return [one for one in ax.artists if isinstance(one, Record) and one.kind == kind]


@dataclass(frozen=True, eq=False)
class Model:
    """One model of a call: a result, a sketch, or outcomes and predictions with their options."""

    name: str
    y_true: Any
    y_prob: Any
    options: Mapping[str, Any]
    color: Any = None

    def check_options(self, plot: str, function: Callable[..., Any]) -> None:
        """Refuse options that the function behind a plot does not take."""
        validation.check_options(self.options, validation.keywords(function), plot)

    def result(self, kind: type[R]) -> R | None:
        """Return the result of a kind that was given, if any; it is drawn as it is."""
        if not isinstance(self.y_true, kind):
            return None
        given = ", ".join([*["y_prob"] * (self.y_prob is not None), *self.options])
        if given:
            article = "an" if kind.__name__.startswith("A") else "a"
            raise CalibrantError(f"{article} {kind.__name__} is drawn as it is: leave out {given}")
        return self.y_true


def read_models(
    y_true: Any, y_prob: Any, options: Mapping[str, Any], color: Any = None
) -> list[Model]:
    """Return one model, or those of a mapping from names to results, sketches or predictions."""
    rows = rows_by_model(y_true, y_prob)
    colors = color if isinstance(color, list) else [color] * len(rows)
    for own in colors:
        if own is not None and not is_color_like(own):
            rule = "must be a colour that matplotlib knows"
            raise CalibrantError(rule, argument="color", value=own)
    if len(colors) != len(rows):
        raise CalibrantError(
            "must be one colour, or a list with one per model",
            argument="color",
            value=len(colors),
            found="{value} for {n_models} models",
            n_models=len(rows),
        )
    pairs = zip(rows.items(), colors, strict=True)
    return [Model(name, y, p, options, own) for (name, (y, p)), own in pairs]


def read_note(note: Any) -> bool | Note:
    """Return whether to write a note, or the note itself: a result, or text."""
    if isinstance(note, np.bool_):
        return bool(note)
    if not isinstance(note, bool | Note):
        raise CalibrantError("must be True, False, a result or text", argument="note", value=note)
    return note


def measure_label(estimate: Estimate) -> str:
    """Return what the measure of an estimate is called in print."""
    return measures()[estimate.measure].label


def note_lines(note: Note | None) -> list[str]:
    """Return a result as lines, the most important first."""
    if note is None:
        return []
    if isinstance(note, Estimate):
        value, low, high = _numbers(note)
        interval = f"{percent(note.level)} interval {low} to {high}"
        return [f"{measure_label(note)} {value}", interval, f"n = {count(note.n)}"]
    if isinstance(note, TestResult):
        name = "ECCE-MAD" if note.test.endswith("max") else "ECCE-R"
        statistic = f"{name} {note.statistic:.3g} = {note.normalized:.3g} $\\sigma$"
        p_value = p_statement(note.p_value, is_bound=note.is_least)
        return [statistic, f"{p_value}{_SEPARATOR}n = {count(note.n)}"]
    if isinstance(note, ScoreDecomposition):
        parts = ("miscalibration", "discrimination", "uncertainty")
        return [f"{part} {getattr(note, part):.3g}" for part in parts]
    if isinstance(note, Curve):
        name = {"density": "density ECE", "binned": "ECE", "loess": "ICI"}.get(note.method, "area")
        return [f"{name} {note.area:.3g}"]
    return note.splitlines()


def compact(note: Note) -> str:
    """Return a result in a few short lines, for a small panel."""
    if not isinstance(note, Estimate):
        return "\n".join(note_lines(note)[:2])
    value, low, high = _numbers(note)
    return f"{measure_label(note)} {value}\n{low} to {high}\nn = {count(note.n)}"


def _numbers(estimate: Estimate) -> tuple[Number, Number, Number]:
    return with_interval(estimate.bias_corrected, estimate.low, estimate.high)


def intervals_label(level: float, *, simultaneous: bool, kind: str = "intervals") -> str:
    """Return what intervals or a band are: their level, and whether they hold all together."""
    return f"{percent(level)} {'simultaneous' if simultaneous else 'pointwise'} {kind}"


def band_lines(curve: Curve) -> list[str]:
    """Return what the band of a curve is, in one line; nothing where there is none."""
    if curve.band is None:
        return []
    kind = "intervals" if curve.method == "binned" else "band"
    if curve.band == "consistency":
        kind = f"consistency {kind}"
    label = intervals_label(curve.level, simultaneous=curve.simultaneous, kind=kind)
    return [f"grey: {label}" if curve.band == "consistency" else label]


def masses_lines(masses: PointMasses | None) -> list[str]:
    """Return the fraction of rows at each disc in one line; circles, at all scores, need none."""
    if masses is None or masses.is_all:
        return []
    percents = 100 * masses.share
    if len(masses) > 3:
        low, high = f"{percents.min():.0f}", f"{percents.max():.0f}"
        return [f"discs: {low if low == high else f'{low} to {high}'}% of rows each"]
    pairs = zip(percents, masses.score, strict=True)
    return ["discs: " + ", ".join(f"{rows:.0f}% at {score:.3g}" for rows, score in pairs)]


@dataclass(frozen=True)
class LegendText:
    """The names of models, each with its result, under a title for what they have in common."""

    labels: list[str]
    title: tuple[str, ...] = ()

    @classmethod
    def of(cls, models: Sequence[tuple[str, Note | None]], title: Sequence[str] = ()) -> LegendText:
        """Return the legend of models; a measure that all estimates share goes into the title."""
        estimates = [note for _, note in models if isinstance(note, Estimate)]
        kinds = {(measure_label(one), percent(one.level)) for one in estimates}
        is_shared = len(estimates) == len(models) and len(kinds) == 1
        labels = []
        for name, note in models:
            brief = ""
            if isinstance(note, Estimate):
                value, low, high = _numbers(note)
                brief = f"{'' if is_shared else measure_label(note)} {value} ({low}–{high})".strip()
            elif note:
                brief = note_lines(note)[0]
            labels.append(": ".join(filter(None, (name, brief))))
        shared = [f"{measure} ({level} interval)" for measure, level in kinds if is_shared]
        return cls(labels, (*shared, *title))


def text_width(text: str, size: str = SMALL) -> float:
    """Return the width of one line of text in points."""
    points = FontProperties(size=size).get_size_in_points()
    return float(TextPath((0, 0), text, points).get_extents().width) if text.strip() else 0.0


def write_inside(
    ax: Axes,
    text: Sequence[str] | LegendText,
    handles: Sequence[Artist] = (),
    *,
    corners: Sequence[Corner] = ALL_CORNERS,
    region: tuple[float, float, float, float] = (0, 0, 1, 1),
    or_above: bool = False,
) -> float:
    """Write lines, or a legend, into the first corner where they overlap nothing; return 0.

    Where there is no such corner they go above the Axes if that is allowed, or else into the first
    one, below text that is there; return the fraction of the height of the Axes that they take.
    Corners are those of a region, given by its left, bottom, width and height as fractions of the
    Axes.
    """
    box = _box(ax, text, handles)
    if box is None:
        return 0.0
    ax.apply_aspect()
    inside = Bbox.from_bounds(*region)
    size, area = box.get_window_extent(), inside.transformed(ax.transAxes)
    drawn = [artist for artist in _drawn(ax) if artist is not box]
    for corner in corners:
        place = size.anchored(_ANCHORS[corner], area).padded(_CLEARANCE * ax.figure.dpi / 72)
        if not any(_overlaps(artist, place) for artist in drawn):
            _move(box, corner, inside, ax.transAxes)
            return 0.0
    if or_above:
        box.remove()
        write_above(ax, text, handles)
    else:
        texts = [one.get_window_extent() for one in _written(ax) if one is not box]
        for text_box in sorted(texts, key=lambda one: -one.y1):
            if text_box.overlaps(size.anchored(_ANCHORS[corners[0]], area)):
                area = Bbox([area.min, [area.x1, text_box.y0]])
        inside = area.transformed(ax.transAxes.inverted())
        _move(box, corners[0], inside, ax.transAxes)
        # On a nearly opaque ground it is legible on what lies beneath.
        ground = box.get_frame() if isinstance(box, Legend) else box.patch
        ground.set(visible=True, facecolor=ax.get_facecolor(), edgecolor="none", alpha=0.75)
    above = region[1] + region[3] - inside.y1
    return float(above + place.height / ax.get_window_extent().height)


def write_or_widen(
    ax: Axes,
    text: Sequence[str] | LegendText,
    handles: Sequence[Artist] = (),
    *,
    corners: Sequence[Corner] = ALL_CORNERS,
) -> None:
    """Write lines, or a legend, into a free corner; where none is free, limits make space above."""
    added = min(write_inside(ax, text, handles, corners=corners), _MOST_ADDED)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + (high - low) * added / (1 - added))


def write_above(ax: Axes, text: Sequence[str] | LegendText, handles: Sequence[Artist] = ()) -> None:
    """Write lines, or a legend, above an Axes, as many side by side as there is space for."""
    if isinstance(text, LegendText):
        text = replace(text, title=tuple(_side_by_side(ax, text.title)))
    else:
        text = _side_by_side(ax, text)
    box = _box(ax, text, handles)
    if box is not None:
        _lift(ax, box)


def write_at_ends(
    ax: Axes, text: LegendText, ends: Sequence[tuple[float, float]], colors: Sequence[Any]
) -> None:
    """Write each label to the right of an Axes, as near as can be to the end of its line."""
    ax.apply_aspect()
    size = FontProperties(size=SMALL).get_size_in_points()
    height = float(size_in_points(ax)[1])
    apart = _LINE_SPACING * size / height
    to_axes = (ax.transData - ax.transAxes).transform
    place = spread_out(np.clip(to_axes(ends)[:, 1], 0.0, 1.0), apart)
    place -= max(place.max() - 1.0, 0.0)
    style: dict[str, Any] = {"textcoords": ax.transAxes, "va": "center", "fontsize": SMALL}
    style["annotation_clip"] = False
    for label, end, at, color in zip(text.labels, ends, place, colors, strict=True):
        leader: dict[str, Any] = {"arrowstyle": "-", "color": color, "lw": 1.2}
        leader |= {"relpos": (0, 0.5), "shrinkA": 0, "shrinkB": 1}
        ax.annotate(label, end, xytext=(_LABEL_AT, at), arrowprops=leader, **style)
    low, high = float(place.min()), float(place.max())
    lines: dict[str, Any] = {
        "x": _LABEL_AT,
        "fontsize": SMALL,
        "color": MUTED,
        "transform": ax.transAxes,
    }
    is_below = low > 1 - high
    y, va = (low - apart, "top") if is_below else (high + apart, "bottom")
    ax.text(y=y, s="\n".join(text.title), va=va, linespacing=1.4, **lines)


def spread_out(place: FloatArray, apart: float) -> FloatArray:
    """Return the places, at least so far apart, with the minimum sum of squares of moves."""
    order = np.argsort(place, kind="stable")
    steps = apart * np.arange(len(place))
    moved = np.empty_like(place)
    moved[order] = isotonic_fit(place[order] - steps, np.ones(len(place))) + steps
    return moved


def lift_overlapped(ax: Axes) -> None:
    """Move text of earlier calls above an Axes, where something drawn since overlaps it."""
    for box in _written(ax):
        place = box.get_window_extent()
        if any(_overlaps(artist, place) for artist in _drawn(ax) if artist is not box):
            _lift(ax, box)


def _lift(ax: Axes, box: AnchoredText | Legend) -> None:
    """Move text above an Axes, on top of what is written there."""
    tops = [one.get_window_extent().y1 for one in _written(ax) if one is not box]
    inches = max(max(tops, default=0.0) - ax.get_window_extent().y1, 0.0) / ax.figure.dpi
    up = ScaledTranslation(0, inches, ax.figure.dpi_scale_trans)
    _move(box, "lower left", Bbox.from_bounds(0, 1, 0, 0), ax.transAxes + up)


def _box(
    ax: Axes, text: Sequence[str] | LegendText, handles: Sequence[Artist]
) -> AnchoredText | Legend | None:
    """Return lines as anchored text, or a legend; None where there is no text."""
    if isinstance(text, LegendText):
        return _legend(ax, text, handles)
    if not text:
        return None
    style = {"size": SMALL, "linespacing": 1.4}
    box = AnchoredText("\n".join(text), "upper left", prop=style, frameon=False, pad=_PAD)
    box.borderpad = _PAD
    box.set_label(_LABEL)
    ax.add_artist(box)
    # Or else the layout would take it to end at the frame of the Axes.
    box.set_clip_on(False)
    return box


def _legend(ax: Axes, text: LegendText, handles: Sequence[Artist]) -> Legend:
    earlier = ax.get_legend()
    legend = ax.legend(
        handles,
        text.labels,
        loc="upper left",
        title="\n".join(text.title) or None,
        title_fontsize=SMALL,
        alignment="left",
        borderaxespad=_PAD,
        labelspacing=0.3,
        handlelength=1.4,
        frameon=False,
        fontsize=SMALL,
    )
    legend.set_label(_LABEL)
    if earlier is not None:
        # An Axes has one legend: the earlier one stays as an artist, wherever it lies.
        ax.add_artist(earlier).set_clip_on(False)
    return legend


def _move(box: AnchoredText | Legend, corner: Corner, anchor: Bbox, transform: Any) -> None:
    box.set_bbox_to_anchor(anchor, transform)
    if isinstance(box, Legend):
        box.set_loc(corner)
    else:
        box.loc = AnchoredText.codes[corner]


def _written(ax: Axes) -> list[AnchoredText | Legend]:
    """Return the text that these functions have written on an Axes."""
    texts = [one for one in _drawn(ax) if isinstance(one, AnchoredText | Legend)]
    return [one for one in texts if one.get_label() == _LABEL]


def _drawn(ax: Axes) -> list[Artist]:
    legend = ax.get_legend()
    artists = [*ax.lines, *ax.patches, *ax.collections, *ax.texts, *ax.artists]
    return artists if legend is None else [*artists, legend]


def _overlaps(artist: Artist, place: Bbox) -> bool:
    """Tell whether some part of an artist lies within a box, in pixels."""
    if isinstance(artist, PathCollection):
        points = artist.get_offset_transform().transform(artist.get_offsets())
        return bool(place.count_contains(points))
    if isinstance(artist, Collection):
        path = Path.make_compound_path(*artist.get_paths())
        filled = isinstance(artist, PolyCollection)
    elif isinstance(artist, Line2D | Patch):
        path, filled = artist.get_path(), isinstance(artist, Patch)
    else:
        return bool(artist.get_window_extent().overlaps(place))
    path = artist.get_transform().transform_path(path)
    return bool(path.intersects_bbox(place, filled))


def _side_by_side(ax: Axes, lines: Sequence[str]) -> list[str]:
    """Return lines joined to fewer ones that are no wider than an Axes."""
    joined: list[str] = []
    padding = 2 * _PAD * FontProperties(size=SMALL).get_size_in_points()
    width = (size_in_points(ax)[0] - padding) / WIDER_ON_SCREEN
    for line in lines:
        if joined and text_width(pair := f"{joined[-1]}{_SEPARATOR}{line}") <= width:
            joined[-1] = pair
        else:
            joined.append(line)
    return joined
