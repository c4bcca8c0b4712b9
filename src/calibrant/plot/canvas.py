"""Axes to draw on, made without pyplot."""

from __future__ import annotations

from io import BytesIO

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibrant.errors import CalibrantError

__all__ = ["Panels", "ShownAxes", "axes_or_new", "check_axes", "new_axes", "new_figure", "picture"]

# Of a picture in a notebook: twice what it is shown at, so that it is sharp on fine screens.
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
    """Return a figure that makes room for all of its words.

    So many inches are for letters of 10 points; with larger ones in the reader's settings it is
    larger, so that all keeps its proportions.
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
