"""Rows on an interval or on the whole line, such as their logits, ready to be smoothed.

Nothing is reflected on the line: the rows lie in an interval wide enough for what smoothing does
to stay inside it, and cosines over that interval do the rest.

At scales so small that most of the interval is empty, its gaps are shortened: rows more than
2 TAILS scales apart are not smoothed into each other, however much farther apart they are, so that
a gap of that width does as well as a wider one. The cost is then bounded by the number of distinct
places, however small the scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from calibrant import cosine
from calibrant.arrays import FloatArray, IntArray

Quantity = Literal["rows", "weight", "pred", "true", "residual"]
Blocks = Iterator[tuple[FloatArray, Sequence[FloatArray]]]
Walls = tuple[float, float]

# Where a Gaussian has nothing left.
TAILS = 9.0
# Up to so many scales an interval is taken whole, which needs no sorted rows.
FEW_SCALES = 1 << 12
# Intervals of more scales would take several seconds and half a gigabyte.
MOST_SCALES = 1 / cosine.FINEST_SCALE
NO_WALLS = (-math.inf, math.inf)


class Axis(Protocol):
    """An interval that holds the rows of a line."""

    @property
    def length(self) -> float:
        """The length of the interval."""

    def fractions(self, u: FloatArray) -> FloatArray:
        """Return where places on the line lie in the interval, from 0 to 1."""

    def positions(self, fraction: FloatArray) -> FloatArray:
        """Return where fractions of the interval lie on the line."""


@dataclass(frozen=True)
class Span:
    """All of the line from one place to another."""

    low: float
    high: float

    @property
    def length(self) -> float:
        """The length of the interval."""
        return self.high - self.low

    def fractions(self, u: FloatArray) -> FloatArray:
        """Return where places on the line lie in the interval, from 0 to 1."""
        return (u - self.low) / self.length

    def positions(self, fraction: FloatArray) -> FloatArray:
        """Return where fractions of the interval lie on the line."""
        return self.low + self.length * fraction


@dataclass(frozen=True, eq=False)
class Packed:
    """An interval around rows, its gaps shortened to what smoothing reaches across.

    Attributes
    ----------
    first, start
        The first place of each cluster of rows, on the line and within the interval.
    length
        The length of the interval.
    reach
        How far rows are smoothed.
    """

    first: FloatArray
    start: FloatArray
    length: float
    reach: float

    @classmethod
    def around(cls, u: FloatArray, reach: float, walls: Walls = NO_WALLS) -> Packed:
        """Pack rows at increasing places u; walls reflect, where they are within reach."""
        begins = clusters(u, reach)
        first, last = u[begins], u[np.append(begins[1:], len(u)) - 1]
        start = np.cumsum(np.append(min(u[0] - walls[0], reach), last - first + 2 * reach))
        length = float(start[-1]) - 2 * reach + min(walls[1] - float(u[-1]), reach)
        return cls(first, start[:-1], length, reach)

    def fractions(self, u: FloatArray) -> FloatArray:
        """Return where places within reach of rows lie in the interval, from 0 to 1."""
        cluster = np.searchsorted(self.first[1:] - self.reach, u, side="right")
        return np.minimum((self.start[cluster] + (u - self.first[cluster])) / self.length, 1.0)

    def positions(self, fraction: FloatArray) -> FloatArray:
        """Return where fractions of the interval lie on the line."""
        inside = fraction * self.length
        cluster = np.searchsorted(self.start[1:] - self.reach, inside, side="right")
        return np.asarray(self.first[cluster] + (inside - self.start[cluster]))


@dataclass(frozen=True, eq=False)
class Interval:
    """Rows on an interval, ready to be smoothed.

    Attributes
    ----------
    axis
        The interval.
    coefficients
        Cosine coefficients over it, one row per quantity.
    """

    axis: Axis
    coefficients: FloatArray


@dataclass(frozen=True)
class Line:
    """Sums over rows on the line.

    Attributes
    ----------
    interval
        Takes a scale and quantities, and returns an interval for smoothing them at this scale.
    ends
        Takes a quantity and returns its sums over rows at minus infinity and at infinity, which
        nothing moves.
    finest
        Takes a scale and returns the least scale from there on that `interval` resolves.
    error
        Takes a scale and a quantity, and bounds the L1 norm of what the smoothed quantity lacks,
        over the total weight: 0 for rows.
    """

    interval: Callable[..., Interval]
    ends: Callable[[Quantity], tuple[float, float]]
    finest: Callable[[float], float]
    error: Callable[[float, Quantity], float]


def clusters(u: FloatArray, reach: float) -> IntArray:
    """Return where clusters of increasing places begin, more than twice the reach apart."""
    with np.errstate(over="ignore"):
        return np.append(0, np.flatnonzero(np.diff(u) > 2 * reach) + 1)


def packed_interval(
    u: FloatArray,
    values: Sequence[FloatArray],
    scale: float,
    reach: float,
    walls: Walls = NO_WALLS,
) -> Interval:
    """Return an interval of rows at increasing places u, for scales from `scale` on.

    `reach` is how far the coarsest of these scales smooths.
    """
    packed = Packed.around(u, reach, walls)
    return Interval(packed, cosine.spectrum(packed.fractions(u), values, scale / packed.length))


def finest_packed(u: FloatArray, scale: float, reach: float, walls: Walls = NO_WALLS) -> float:
    """Return the least scale from `scale` on for which increasing places u can be packed.

    `reach` is how far a scale smooths, in units of the scale. At scale s gaps g add up to
    sum min(g, 2 reach s), the least over k of the sum of the k narrowest and 2 reach s for each of
    the others.
    """
    if len(u) < 2 or Packed.around(u, reach * scale, walls).length <= MOST_SCALES * scale:
        return scale
    gaps = np.sort(np.diff(u))
    others = np.arange(len(gaps) - 1, -1, -1)
    left = MOST_SCALES - 2 * reach * (others + 1)
    found = np.cumsum(gaps)[left > 0] / left[left > 0]
    return max(float(found.min()), scale)


def line_of_rows(
    blocks: Callable[..., Blocks],
    in_order: Callable[..., tuple[FloatArray, Sequence[FloatArray]]],
    ends: Callable[[Quantity], tuple[float, float]],
    span: tuple[float, float] | None,
    n_rows: int,
    tails: float,
) -> Line:
    """Return the line of rows, those at finite places within a span if any, for one scale: `tails`.

    `blocks` takes quantities and yields (places, the quantities of every row) of one block of rows
    after another; `in_order` returns the same of all rows by increasing place.
    """
    low, high = span or (0.0, 0.0)
    whole = Span(low - TAILS * tails, high + TAILS * tails)

    def interval(scale: float, *quantities: Quantity) -> Interval:
        if whole.length > FEW_SCALES * scale:
            return packed_interval(*in_order(*quantities), scale, TAILS * tails)
        fine = scale / whole.length
        n_cells, order = cosine.resolution(n_rows, fine)
        placed = ((whole.fractions(u), values) for u, values in blocks(*quantities))
        moments = cosine.gather(placed, len(quantities), n_cells, order)
        return Interval(whole, cosine.coefficients(moments, cosine.n_modes(fine)))

    def finest(scale: float) -> float:
        is_short = whole.length <= FEW_SCALES * scale
        return scale if is_short else finest_packed(in_order()[0], scale, TAILS)

    return Line(interval, ends, finest, lambda scale, quantity: 0.0)
