"""Colours, widths and sizes; figures and Axes made without pyplot.

The colours are Paul Tol's high-contrast and medium-contrast schemes: distinct to colour-blind
readers, and in grey by their lightness. Letters have the colour of the reader's own settings, and
sizes relative to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Protocol

import numpy as np
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import is_color_like, to_rgb
from matplotlib.figure import Figure

from calibrant._base import FloatArray
from calibrant.curves.reliability_view import ABOUT_ROWS
from calibrant.data import validation
from calibrant.errors import CalibrantError

__all__ = [
    "DASHES",
    "LINE_WIDTH",
    "MARKERS",
    "QUIET",
    "SMALL",
    "SMALLEST",
    "Model",
    "Panels",
    "Record",
    "ShownAxes",
    "axes_or_new",
    "check_axes",
    "colors_of",
    "new_axes",
    "new_figure",
    "open_frame",
    "palette",
    "picture",
    "read_models",
    "record",
    "records",
    "size_in_points",
]

_DARK = ("#004488", "#bb5566", "#ddaa33", "#6699cc", "#000000", "#997700", "#ee99aa", "#994455")
_LIGHT = ("#6699cc", "#ee99aa", "#eecc66", "#ffffff", "#ddaa33", "#bb5566", "#997700", "#4477aa")
# Of what is secondary; legible on white and on black.
QUIET = "0.42"
SMALL, SMALLEST = "small", "x-small"
LINE_WIDTH = 1.6
DASHES = (0, (5, 4))
# For more models than lightness distinguishes in grey; one fewer than there are colours, so that
# the two together repeat late.
MARKERS = "osD^vPX"
# Pictures in a notebook have twice the resolution that they are shown at, to be sharp on fine
# screens.
_SHOWN_DPI, _FINER = 90, 2


class ShownAxes(Axes):
    """An Axes that a notebook shows, though pyplot does not know its figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return picture(self)


class Panels(tuple[Axes, ...]):
    """The Axes of one figure, in order; a notebook shows the figure."""

    __slots__ = ()

    @property
    def figure(self) -> Figure:
        """The figure that holds them."""
        return self[0].figure.figure

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return picture(self[0])


def picture(ax: Axes) -> tuple[bytes, dict[str, int]]:
    """Return the figure of an Axes as a notebook shows it."""
    figure, buffer = ax.figure.figure, BytesIO()
    figure.savefig(buffer, format="png", dpi=_FINER * _SHOWN_DPI)
    width, height = (round(inches * _SHOWN_DPI) for inches in figure.get_size_inches())
    return buffer.getvalue(), {"width": width, "height": height}


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of a size in inches, whose layout leaves space for all labels.

    The size is for letters of 10 points; with larger ones in the reader's settings it is larger in
    proportion.
    """
    scale = rcParams["font.size"] / 10
    return Figure(figsize=(scale * width, scale * height), layout="compressed")


def new_axes(width: float, height: float) -> Axes:
    """Return the one Axes of a new figure."""
    return new_figure(width, height).add_subplot(axes_class=ShownAxes)


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the Axes that was given, or else a new one."""
    check_axes(ax)
    return new_axes(width, height) if ax is None else ax


def check_axes(ax: object) -> None:
    """Refuse what cannot be drawn on."""
    if ax is not None and not isinstance(ax, Axes):
        raise CalibrantError("must be a matplotlib Axes", argument="ax", value=ax)


def size_in_points(ax: Axes) -> FloatArray:
    """Return the width and the height of an Axes in points, before its figure is laid out."""
    return 72 / ax.figure.dpi * np.array(ax.get_window_extent().size)


class Record(Artist):
    """What one call drew on an Axes, for the calls that follow; it shows nothing itself."""

    def __init__(self, kind: str, content: Any, n_models: int) -> None:
        super().__init__()
        self.kind, self.content, self.n_models = kind, content, n_models
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Draw nothing."""


def record(ax: Axes, kind: str, content: Any, n_models: int) -> None:
    """Keep on an Axes what a call drew there."""
    ax.add_artist(Record(kind, content, n_models))


def records(ax: Axes, kind: str) -> list[Record]:
    """Return what earlier calls of this kind drew on an Axes."""
    return [one for one in ax.artists if isinstance(one, Record) and one.kind == kind]


class Colored(Protocol):
    """Anything drawn in a colour of its own, or else in the next one in turn."""

    @property
    def color(self) -> Any:
        """The colour, or None."""


def palette(ax: Axes) -> tuple[str, ...]:
    """Return the colours that are seen on the background of an Axes."""
    red, green, blue = to_rgb(ax.get_facecolor())
    return _LIGHT if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4 else _DARK


def colors_of(ax: Axes, items: Sequence[Colored], n_before: int = 0) -> list[Any]:
    """Return the colour of each item: its own, or the next one after those drawn before."""
    turn = palette(ax)
    return [
        turn[i % len(turn)] if item.color is None else item.color
        for i, item in enumerate(items, n_before)
    ]


def open_frame(ax: Axes) -> None:
    """Keep only the two sides of the frame that carry numbers."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)
    ax.tick_params(color=QUIET, labelsize=SMALL)


# The models that a call draws: one, or several by name.


@dataclass(frozen=True, eq=False)
class Model:
    """A result, a sketch, or outcomes and predictions, with the options that describe them."""

    name: str
    y_true: Any
    y_prob: Any
    options: Mapping[str, Any]
    color: Any = None

    @property
    def about_rows(self) -> list[Any]:
        """The options that describe the rows, in the order in which they are read."""
        return [self.options.get(name) for name in ABOUT_ROWS]

    def check_options(self, of: str, made_by: Callable[..., Any], *others: str) -> None:
        """Refuse options of a plot that the function that makes its result does not take."""
        known = (*ABOUT_ROWS, *validation.keywords(made_by), *others)
        validation.check_options(self.options, tuple(dict.fromkeys(known)), of)

    def refuse_options(self, what: str) -> None:
        """Refuse options that a result, which is drawn as it is, would ignore."""
        if self.y_prob is not None or self.options:
            given = ", ".join([*(["y_prob"] if self.y_prob is not None else []), *self.options])
            raise CalibrantError(f"{what} is drawn as it is: leave out {given}")


def read_models(
    y_true: Any, y_prob: Any, options: Mapping[str, Any], color: Any = None
) -> list[Model]:
    """Return one model, or those of a mapping from names to results, sketches or predictions."""
    if isinstance(y_true, Mapping):
        rows = {str(name): (one, y_prob) for name, one in y_true.items()}
    elif isinstance(y_prob, Mapping):
        rows = {str(name): (y_true, one) for name, one in y_prob.items()}
    else:
        rows = {"": (y_true, y_prob)}
    if not rows:
        raise CalibrantError("there must be at least one model to draw; got an empty mapping")
    colors = color if isinstance(color, list) else [color] * len(rows)
    for own in colors:
        if own is not None and not is_color_like(own):
            raise CalibrantError(
                "must be a colour that matplotlib knows", argument="color", value=own
            )
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
