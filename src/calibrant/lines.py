"""Rows spread over the whole line, such as their logits, ready to be smoothed.

Nothing is reflected on the line: the rows lie in an interval wide enough for what smoothing does
to stay inside it, and cosines over that interval do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from calibrant import cosine
from calibrant.arrays import FloatArray

Quantity = Literal["rows", "weight", "pred", "true", "residual"]

# Where a Gaussian has nothing left.
TAILS = 9.0


class LineSpectrum(Protocol):
    """Cosine coefficients of each quantity's measure over the interval of a line."""

    def __call__(self, scale: float, *quantities: Quantity) -> FloatArray:
        """Return one row a quantity, for smoothing at `scale` in units of the interval."""


@dataclass(frozen=True)
class Line:
    """Sums over rows on the line.

    Attributes
    ----------
    low, high
        The interval.
    spectrum
        Cosine coefficients over it.
    ends
        Takes a quantity and returns its sums over rows at minus infinity and at infinity, which
        nothing moves.
    finest
        The least scale, in units of the line, that `spectrum` resolves.
    error
        Takes a scale in units of the line and a quantity, and bounds the L1 norm of what the
        smoothed quantity lacks, over the total weight: 0 for rows.
    """

    low: float
    high: float
    spectrum: LineSpectrum
    ends: Callable[[Quantity], tuple[float, float]]
    finest: float
    error: Callable[[float, Quantity], float]

    @property
    def length(self) -> float:
        """The length of the interval."""
        return self.high - self.low


Blocks = Iterator[tuple[FloatArray, Sequence[FloatArray]]]


def line_of_rows(u: FloatArray, values: Mapping[Quantity, FloatArray], tails: float) -> Line:
    """Return the line of rows at places u, some of them infinite."""
    inside = np.isfinite(u)
    finite = u[inside]
    span = (float(finite.min()), float(finite.max())) if len(finite) else None

    def rows(*quantities: Quantity) -> Blocks:
        yield finite, [values[quantity][inside] for quantity in quantities]

    def ends(quantity: Quantity) -> tuple[float, float]:
        value = values[quantity]
        return float(value[u == -np.inf].sum()), float(value[u == np.inf].sum())

    return line_of_blocks(rows, len(u), ends, span, tails)


def line_of_blocks(
    rows: Callable[..., Blocks],
    n_rows: int,
    ends: Callable[[Quantity], tuple[float, float]],
    span: tuple[float, float] | None,
    tails: float,
) -> Line:
    """Return the line of rows that come in blocks: those at finite places, within a span if any.

    `rows` takes quantities and yields (places, the quantities of every row) of one block after
    another.
    """
    low, high = span or (0.0, 1.0)
    low, high = low - TAILS * tails, high + TAILS * tails

    def spectrum(scale: float, *quantities: Quantity) -> FloatArray:
        n_cells, order = cosine.resolution(n_rows, scale)
        blocks = (((u - low) / (high - low), values) for u, values in rows(*quantities))
        moments = cosine.gather(blocks, len(quantities), n_cells, order)
        return cosine.coefficients(moments, cosine.n_modes(scale))

    finest = cosine.FINEST_SCALE * (high - low)
    return Line(low, high, spectrum, ends, finest, lambda scale, quantity: 0.0)
