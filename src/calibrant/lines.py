"""Sums over rows on the whole line, such as at their logits, ready to be smoothed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from calibrant.arrays import FloatArray
from calibrant.numerics import smoothing
from calibrant.numerics.smoothing import FEW_SCALES, GAUSSIAN_RADIUS, LineSpectrum, Span

Quantity = Literal["rows", "weight", "pred", "true", "residual"]
Blocks = Iterator[tuple[FloatArray, Sequence[FloatArray]]]


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

    interval: Callable[..., LineSpectrum]
    ends: Callable[[Quantity], tuple[float, float]]
    finest: Callable[[float], float]
    error: Callable[[float, Quantity], float]


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
    whole = Span(low - GAUSSIAN_RADIUS * tails, high + GAUSSIAN_RADIUS * tails)

    def interval(scale: float, *quantities: Quantity) -> LineSpectrum:
        if whole.length > FEW_SCALES * scale:
            return smoothing.packed_spectrum(*in_order(*quantities), scale, GAUSSIAN_RADIUS * tails)
        fine = scale / whole.length
        n_cells, n_moments = smoothing.resolution(n_rows, fine)
        placed = ((whole.fractions(u), values) for u, values in blocks(*quantities))
        moments = smoothing.cell_moments(placed, len(quantities), n_cells, n_moments)
        return LineSpectrum(whole, smoothing.coefficients(moments, smoothing.n_modes(fine)))

    def finest(scale: float) -> float:
        is_short = whole.length <= FEW_SCALES * scale
        return scale if is_short else smoothing.finest_packed(in_order()[0], scale, GAUSSIAN_RADIUS)

    return Line(interval, ends, finest, lambda scale, quantity: 0.0)
