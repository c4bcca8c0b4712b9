"""Text in a picture: results in a few lines, and a place for them where nothing else is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PathCollection, PolyCollection
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnchoredText
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox, ScaledTranslation

from calibrant._base import IntArray
from calibrant.curves.curve import Curve
from calibrant.errors import CalibrantError
from calibrant.formatting import Number, count, decimals, fixed, p_statement, percent, short_count
from calibrant.inference.cumulative_tests import TestResult
from calibrant.inference.estimate import Estimate
from calibrant.measures.point_masses import PointMasses
from calibrant.measures.registry import measures
from calibrant.measures.scores import ScoreDecomposition
from calibrant.plot.style import SMALL, size_in_points

__all__ = [
    "ALL_CORNERS",
    "Corner",
    "Key",
    "Note",
    "about_band",
    "about_masses",
    "compact",
    "give_way",
    "headed",
    "lines_of",
    "measure_name",
    "read_note",
    "row_range",
    "text_width",
    "write_above",
    "write_beside",
    "write_inside",
]

Note = Estimate | TestResult | ScoreDecomposition | Curve | str

_AREAS = {"density": "density ECE", "binned": "ECE"}
# More point masses than this are described by their range.
_FEW_MASSES = 3

# The corners of an Axes, as legends and as boxes name them.
Corner = Literal["upper left", "upper right", "lower right", "lower left"]
_ANCHORS: dict[Corner, Literal["NW", "NE", "SE", "SW"]] = {
    "upper left": "NW",
    "upper right": "NE",
    "lower right": "SE",
    "lower left": "SW",
}
ALL_CORNERS = tuple(_ANCHORS)
# Distance of text from the frame, in units of the font size, and from all that is drawn, in points.
_PAD, _CLEAR = 0.3, 3.0
_BETWEEN = "   "
# By which text of earlier calls is recognised.
_LABEL = "_calibrant"


def read_note(note: Any) -> bool | Note:
    """Return whether to write a note, or the note itself: a result, or text."""
    if isinstance(note, np.bool_):
        return bool(note)
    if not isinstance(note, bool | Note):
        raise CalibrantError("must be True, False, a result or text", argument="note", value=note)
    return note


def measure_name(estimate: Estimate) -> str:
    """Return what the measure of an estimate is called in print."""
    return measures()[estimate.measure].label


def lines_of(note: Note) -> list[str]:
    """Return a result as lines, the most important first."""
    if isinstance(note, Estimate):
        value, low, high = _digits(note)
        interval = f"{percent(note.level)} interval {low} to {high}"
        return [f"{measure_name(note)} {value}", interval, f"n = {count(note.n)}"]
    if isinstance(note, TestResult):
        name = "ECCE-MAD" if note.test.endswith("max") else "ECCE-R"
        size = f"{name} {note.statistic:.3g} = {note.normalized:.3g} $\\sigma$"
        chance = p_statement(note.p_value, is_bound=note.is_least)
        return [size, f"{chance}{_BETWEEN}n = {count(note.n)}"]
    if isinstance(note, ScoreDecomposition):
        return [
            f"miscalibration {note.miscalibration:.3g}",
            f"discrimination {note.discrimination:.3g}",
            f"uncertainty {note.uncertainty:.3g}",
        ]
    if isinstance(note, Curve):
        return [f"{_AREAS.get(note.method, 'area')} {note.area:.3g}"]
    return note.splitlines()


def headed(name: str, note: Note | None) -> list[str]:
    """Return a name, if there is one, and then the lines of a note, if there is one."""
    return ([name] if name else []) + ([] if note is None else lines_of(note))


def compact(note: Note) -> str:
    """Return a result in a few short lines, for a small panel."""
    if not isinstance(note, Estimate):
        return "\n".join(lines_of(note)[:2])
    value, low, high = _digits(note)
    return f"{measure_name(note)} {value}\n{low} to {high}\nn = {count(note.n)}"


def about_band(curve: Curve) -> list[str]:
    """Return what the band of a curve is, in one line; nothing where there is none."""
    if curve.band is None:
        return []
    level, whole = percent(curve.level), curve.simultaneous
    if curve.method == "binned":
        scope = "all bins at once" if whole else "bin by bin"
    else:
        scope = "whole curve" if whole else "pointwise"
    if curve.band == "consistency":
        return [f"grey: {level} if calibrated, {scope}"]
    return [f"{level} {'intervals' if curve.method == 'binned' else 'band'}, {scope}"]


def about_masses(masses: PointMasses | None) -> list[str]:
    """Return the fraction of rows at each disc in one line; circles, at all scores, need none."""
    if masses is None or masses.is_all:
        return []
    if len(masses) > _FEW_MASSES:
        low, high = (f"{100 * share:.0f}" for share in (masses.share.min(), masses.share.max()))
        return [f"discs: {low if low == high else f'{low} to {high}'}% of rows each"]
    pairs = zip(masses.share, masses.score, strict=True)
    return ["discs: " + ", ".join(f"{100 * share:.0f}% at {at:.3g}" for share, at in pairs)]


def row_range(n: IntArray) -> str:
    """Return how many rows bins hold, from the fewest to the most."""
    low, high = (short_count(int(rows)) for rows in (n.min(), n.max()))
    return f"{low} rows per bin" if low == high else f"{low} to {high} rows per bin"


@dataclass(frozen=True)
class Key:
    """The names of models, each with what was measured, under what they have in common."""

    names: list[str]
    heading: tuple[str, ...] = ()

    @classmethod
    def of(cls, models: Sequence[tuple[str, Note | None]], about: Sequence[str] = ()) -> Key:
        """Return a key to models; the measure that all estimates share goes into the heading."""
        estimates = [note for _, note in models if isinstance(note, Estimate)]
        kinds = {(measure_name(one), percent(one.level)) for one in estimates}
        is_shared = len(estimates) == len(models) and len(kinds) == 1
        said = [_brief(note, bare=is_shared) for _, note in models]
        pairs = zip(models, said, strict=True)
        names = [": ".join(filter(None, (name, words))) for (name, _), words in pairs]
        kind = [f"{measure} ({level} interval)" for measure, level in kinds if is_shared]
        return cls(names, (*kind, *about))


def _brief(note: Note | None, *, bare: bool = False) -> str:
    """Return a result in one line; an estimate with its measure unless bare."""
    if isinstance(note, Estimate):
        value, low, high = _digits(note)
        return f"{'' if bare else measure_name(note) + ' '}{value} ({low}–{high})"
    return lines_of(note)[0] if note else ""


def _digits(estimate: Estimate) -> list[Number]:
    digits = decimals(estimate.low, estimate.high)
    return [fixed(x, digits) for x in (estimate.value, estimate.low, estimate.high)]


def text_width(text: str, size: str = SMALL) -> float:
    """Return the width of one line of text in points."""
    points = FontProperties(size=size).get_size_in_points()
    return float(TextPath((0, 0), text, points).get_extents().width) if text.strip() else 0.0


def write_inside(
    ax: Axes,
    text: Sequence[str] | Key,
    handles: Sequence[Artist] = (),
    *,
    corners: Sequence[Corner] = ALL_CORNERS,
    region: tuple[float, float, float, float] = (0, 0, 1, 1),
    or_above: bool = False,
) -> float:
    """Write lines, or a key, into the first corner where they lie on nothing that is drawn.

    Where there is no such corner they go above the Axes if that is allowed, or else into the first
    one. The region that corners belong to is given by its left, bottom, width and height, as
    fractions of the Axes.

    Returns
    -------
    float
        0 if there was a free corner; else the fraction of the height of the Axes that the text
        takes.
    """
    box = _box(ax, text, handles)
    if box is None:
        return 0.0
    ax.apply_aspect()
    inside = Bbox.from_bounds(*region)
    size, area = box.get_window_extent(), inside.transformed(ax.transAxes)
    drawn = [artist for artist in _drawn(ax) if artist is not box]
    for corner in corners:
        place = size.anchored(_ANCHORS[corner], area).padded(_CLEAR * ax.figure.dpi / 72)
        if not any(_touches(artist, place) for artist in drawn):
            _move(box, corner, inside, ax.transAxes)
            return 0.0
    if or_above:
        box.remove()
        write_above(ax, text, handles)
    else:
        _move(box, corners[0], inside, ax.transAxes)
        _cover(box, ax.get_facecolor())
    return float(place.height / ax.get_window_extent().height)


def write_above(ax: Axes, text: Sequence[str] | Key, handles: Sequence[Artist] = ()) -> None:
    """Write lines, or a key, above an Axes, as many side by side as there is space for."""
    width = size_in_points(ax)[0]
    if isinstance(text, Key):
        text = Key(text.names, tuple(_side_by_side(text.heading, width)))
    else:
        text = _side_by_side(text, width)
    box = _box(ax, text, handles)
    if box is not None:
        _lift(ax, box)


def give_way(ax: Axes) -> None:
    """Move what earlier calls wrote above an Axes, where something drawn since lies on it."""
    for box in _written(ax):
        place = box.get_window_extent()
        if any(_touches(artist, place) for artist in _drawn(ax) if artist is not box):
            _lift(ax, box)


def _lift(ax: Axes, box: AnchoredText | Legend) -> None:
    """Move text above an Axes, on top of what is written there."""
    tops = [one.get_window_extent().y1 for one in _written(ax) if one is not box]
    inches = max(max(tops, default=0.0) - ax.get_window_extent().y1, 0.0) / ax.figure.dpi
    up = ScaledTranslation(0, inches, ax.figure.dpi_scale_trans)
    _move(box, "lower left", Bbox.from_bounds(0, 1, 0, 0), ax.transAxes + up)


def write_beside(ax: Axes, key: Key, handles: Sequence[Artist]) -> None:
    """Write a key to the right of an Axes."""
    box = _box(ax, key, handles)
    if box is not None:
        _move(box, "upper left", Bbox.from_bounds(1, 1, 0, 0), ax.transAxes)


def _box(
    ax: Axes, text: Sequence[str] | Key, handles: Sequence[Artist]
) -> AnchoredText | Legend | None:
    """Return lines as anchored text, or a key as a legend; None where there is nothing to say."""
    if isinstance(text, Key):
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


def _legend(ax: Axes, key: Key, handles: Sequence[Artist]) -> Legend:
    earlier = ax.get_legend()
    legend = ax.legend(
        handles,
        key.names,
        loc="upper left",
        title="\n".join(key.heading) or None,
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
        # An Axes knows one legend: the earlier one stays as an artist, wherever it lies.
        ax.add_artist(earlier).set_clip_on(False)
    return legend


def _move(box: AnchoredText | Legend, corner: Corner, anchor: Bbox, transform: Any) -> None:
    box.set_bbox_to_anchor(anchor, transform)
    if isinstance(box, Legend):
        box.set_loc(corner)
    else:
        box.loc = AnchoredText.codes[corner]


def _cover(box: AnchoredText | Legend, color: Any) -> None:
    """Lay text on a nearly opaque ground, so that it is legible on what lies beneath."""
    frame = box.get_frame() if isinstance(box, Legend) else box.patch
    frame.set(visible=True, facecolor=color, edgecolor="none", alpha=0.75)


def _written(ax: Axes) -> list[AnchoredText | Legend]:
    """Return what calls have written on an Axes, not what others have."""
    texts = [one for one in _drawn(ax) if isinstance(one, AnchoredText | Legend)]
    return [one for one in texts if one.get_label() == _LABEL]


def _drawn(ax: Axes) -> list[Artist]:
    legend = ax.get_legend()
    artists = [*ax.lines, *ax.patches, *ax.collections, *ax.texts, *ax.artists]
    return artists if legend is None else [*artists, legend]


def _touches(artist: Artist, place: Bbox) -> bool:
    """Tell whether something of an artist lies within a box, in pixels."""
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


def _side_by_side(lines: Sequence[str], width: float) -> list[str]:
    """Return lines joined to fewer ones that are no wider than this, in points."""
    joined: list[str] = []
    for line in lines:
        if joined and text_width(pair := f"{joined[-1]}{_BETWEEN}{line}") <= width:
            joined[-1] = pair
        else:
            joined.append(line)
    return joined
