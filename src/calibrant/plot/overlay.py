"""Several calls on one Axes: what they draw is drawn together, as if by one call.

An invisible artist remembers, on the Axes itself, what was drawn there and by which artists. The
next call takes those off and draws the old and the new with limits, colours and a key for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase

__all__ = ["Drawn", "drawn_before", "drawn_together"]


class Drawn(Artist):
    """What was drawn on an Axes, and the artists that show it; itself it shows nothing."""

    def __init__(self, kind: str, items: Sequence[Any], artists: Sequence[Artist]) -> None:
        super().__init__()
        self.kind, self.items, self.artists = kind, list(items), list(artists)
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Draw nothing."""


def drawn_before(ax: Axes, kind: str) -> list[Any]:
    """Return the items of this kind that were drawn on an Axes."""
    return [item for earlier in _earlier(ax, kind) for item in earlier.items]


@contextmanager
def drawn_together(ax: Axes, kind: str, items: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield items of this kind drawn on an Axes before, and these; remember what then is drawn."""
    together = [*drawn_before(ax, kind), *items]
    _take_off(ax, kind)
    before = set(ax.get_children())
    yield together
    after = [artist for artist in ax.get_children() if artist not in before]
    ax.add_artist(Drawn(kind, together, after))


def _earlier(ax: Axes, kind: str) -> list[Drawn]:
    return [one for one in ax.get_children() if isinstance(one, Drawn) and one.kind == kind]


def _take_off(ax: Axes, kind: str) -> None:
    for earlier in _earlier(ax, kind):
        still_there = set(ax.get_children())
        for artist in [*earlier.artists, earlier]:
            if artist in still_there:
                artist.remove()
