"""The axis of a feature: numbers and dates at their means, names evenly, the missing apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date
from matplotlib.ticker import MaxNLocator

from calibrant.arrays import AnyArray, FloatArray, IntArray
from calibrant.errors import CalibrantError
from calibrant.plot.style import QUIET, SMALL, SMALLEST
from calibrant.plot.wording import short_count
from calibrant.results.tables import BiasTable, shortened

__all__ = ["COUNTS", "FeatureAxis"]

# The share of the height that is left for numbers of rows below numbers and dates.
COUNTS = 0.1
# What is left free at either end, and before what is missing, as a share of all numbers.
_ROOM, _APART = 0.04, 0.12
# The same between names, which are 1 apart.
_ROOM_OF_NAMES, _APART_OF_NAMES = 0.6, 0.4
# Fewer rows than this are told to the last.
_PLAIN = 10_000
# About how much of the width a small letter takes.
_LETTER = 0.015


@dataclass(frozen=True, eq=False)
class FeatureAxis:
    """Where the rows of tables lie along a feature.

    Attributes
    ----------
    kind
        "names", one below the other, where long ones are legible; "numbers" or "dates", from left
        to right.
    names
        The names in order, if it is of names.
    low, high
        The ends of what is known.
    has_missing
        Whether there are rows without a value.
    is_whole
        Whether all known values are whole numbers.
    """

    kind: str
    names: tuple[str, ...]
    low: float
    high: float
    has_missing: bool
    is_whole: bool = False

    @classmethod
    def of(cls, tables: Sequence[BiasTable]) -> FeatureAxis:
        """Return the axis of some tables, which must be of one kind."""
        kinds = sorted({table.kind for table in tables})
        if len(kinds) > 1:
            raise CalibrantError(
                f"models drawn together must have features of one kind; got {' and '.join(kinds)}"
            )
        names = tuple(dict.fromkeys(name for table in tables for name in _known_labels(table)))
        places = np.arange(len(names)) if kinds == ["names"] else _known_places(tables)
        low, high = (places.min(), places.max()) if len(places) else (0.0, 0.0)
        has_missing = any(table.has_missing for table in tables)
        is_whole = kinds == ["numbers"] and all(_are_whole(table) for table in tables)
        return cls(kinds[0], names, float(low), float(high), has_missing, is_whole)

    @property
    def is_sideways(self) -> bool:
        """Whether the feature goes from top to bottom rather than from left to right."""
        return self.kind == "names"

    @property
    def missing(self) -> float:
        """Where rows without a value lie."""
        if self.is_sideways:
            return len(self.names) + _APART_OF_NAMES * bool(self.names)
        return self.high + _APART * self._span

    @property
    def _span(self) -> float:
        return self.high - self.low or 1.0

    def places(self, table: BiasTable) -> FloatArray:
        """Return where the rows of a table lie."""
        if self.is_sideways:
            known = np.array([self.names.index(name) for name in _known_labels(table)], dtype=float)
        else:
            known = _known_places([table])
        return np.append(known, [self.missing] * table.has_missing)

    def n_joined(self, table: BiasTable) -> int:
        """Return how many rows of a table, from the first, are joined: numbers, not names."""
        return 0 if self.is_sideways else len(_known_labels(table))

    def points(self, along: FloatArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return places along the feature, and values there, as x and y."""
        return (value, along) if self.is_sideways else (along, value)

    def set_up(self, ax: Axes, name: str) -> None:
        """Give the axis its limits, ticks and words."""
        room = _ROOM_OF_NAMES if self.is_sideways else _ROOM * self._span
        last = self.missing if self.has_missing else self.high
        ends = (self.low - room, last + room)
        if self.is_sideways:
            ax.set_ylim(ends[::-1])
            ax.set_yticks(range(len(self.names)), [shortened(one) for one in self.names])
            ax.tick_params(axis="y", length=0)
            ax.spines["left"].set_visible(False)
            ax.set_ylabel(name)
        else:
            ax.set_xlim(ends)
            self._mark_numbers(ax)
            ax.spines["bottom"].set_bounds(ends[0], self.high + room)
            ax.set_xlabel(name or {"dates": "date"}.get(self.kind, "feature"))
        if self.has_missing:
            axis = ax.yaxis if self.is_sideways else ax.xaxis
            axis.set_ticks([self.missing], ["missing"], minor=True)
            axis.set_tick_params(which="minor", length=0, labelsize=SMALL, labelcolor=QUIET)

    def _mark_numbers(self, ax: Axes) -> None:
        """Set ticks where numbers are known, so that none stands where the missing are."""
        room = _ROOM * self._span
        if self.low == self.high:
            label = num2date(self.low).strftime("%Y-%m-%d") if self.kind == "dates" else None  # type: ignore[no-untyped-call]
            ax.set_xticks([self.low], None if label is None else [label])
            return
        if self.kind == "dates":
            ax.xaxis_date()
            locator: Any = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
            ends = num2date([self.low, self.high])  # type: ignore[no-untyped-call]
            ticks = np.asarray(locator.tick_values(*ends))
            ax.xaxis.get_offset_text().set_fontsize(SMALL)
        else:
            locator = MaxNLocator(8, steps=[1, 2, 2.5, 5, 10], integer=self.is_whole)
            ticks = np.asarray(locator.tick_values(self.low, self.high))
        inside = (ticks >= self.low - room) & (ticks <= self.high + room * (not self.has_missing))
        ax.set_xticks(ticks[inside])

    def write_counts(self, ax: Axes, places: FloatArray, n: IntArray) -> None:
        """Write the number of rows at each place, where there is room for it."""
        style: dict[str, Any] = {"fontsize": SMALLEST, "color": QUIET, "va": "center"}
        words = [str(one) if one < _PLAIN else short_count(int(one)) for one in n]
        if self.is_sideways:
            for place, word in zip(places, words, strict=True):
                ax.text(1.02, place, word, transform=ax.get_yaxis_transform(), **style)
            ax.text(1.02, 1.0, "rows", transform=ax.transAxes, **style)
            return
        (low, high), end = ax.get_xlim(), -np.inf
        for place, word in zip(places, words, strict=True):
            half = _LETTER * (len(word) + 1) * (high - low) / 2
            if place - half >= end:
                end = place + half
                across = ax.get_xaxis_transform()
                ax.text(place, COUNTS / 2, word, transform=across, ha="center", **style)
        # As the label of a tick, so that it goes where labels go.
        bottom, top = ax.get_ylim()
        ax.set_yticks([bottom + (top - bottom) * COUNTS / 2], ["rows"], minor=True)
        ax.tick_params(axis="y", which="minor", length=0, labelsize=SMALLEST, labelcolor=QUIET)


def _known_labels(table: BiasTable) -> tuple[str, ...]:
    return table.label[:-1] if table.has_missing else table.label


def _known_places(tables: Sequence[BiasTable]) -> FloatArray:
    return np.concatenate(
        [_as_numbers(table.mean[: len(_known_labels(table))]) for table in tables]
    )


def _as_numbers(values: AnyArray) -> FloatArray:
    if values.dtype.kind == "M":
        values = date2num(values)  # type: ignore[no-untyped-call]
    return np.asarray(values, dtype=np.float64)


def _are_whole(table: BiasTable) -> bool:
    known = slice(0, len(_known_labels(table)))
    return bool(np.all(table.minimum[known] % 1 == 0) and np.all(table.maximum[known] % 1 == 0))
