"""Cells: which score is counted where in a sketch.

On the probability scale there are N cells of width 1/N: cell k holds k/N <= p < (k+1)/N, and the
last one also 1. Membership is decided against the correctly rounded k/N, as for bins, so that
every engine which counts rows into cells agrees to the last row, and any number of bins that
divides N is made of whole cells. The default, 50 400 = 2^5 3^2 5^2 7, is divided by every number
up to 10, by 12, 15, 20, 25, 30, 50, 100 and by many others, and suits the FFT.

On the logit scale uniform cells of p would lose the tails. There, N cells of equal width cover
logits from -20 to 20 (p from 2e-9 to 1 - 2e-9), and four more hold what lies outside: p = 0, the
rest below, the rest above, and p = 1.

A row's offset is its distance from its cell's centre in units of the cell's width, from -1/2 to
1/2; in the four outer cells it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Protocol

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.binning import UniformBins
from calibrant.compiled.passes import N_OUTER, NEAR_EDGE
from calibrant.logits import logit, sigmoid

Scale = Literal["probability", "logit"]

DEFAULT_CELLS = 50_400
# A hundred megabytes: a few forged bytes must not be able to ask for more.
MOST_CELLS = 1 << 21
LOGIT_REACH = 20.0
# The outer cells of the logit scale, counted from the first after the inner ones.
AT_ZERO, BELOW, ABOVE, AT_ONE = range(N_OUTER)


class Cells(Protocol):
    """A way to divide the scores."""

    scale: ClassVar[Scale]

    @property
    def n_cells(self) -> int:
        """How many inner cells there are."""

    @property
    def size(self) -> int:
        """How many cells there are, the outer ones included."""

    @property
    def width(self) -> float:
        """The width of an inner cell."""

    @property
    def steepest(self) -> float:
        """The most that p changes over a cell."""

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write down the cell of each score, a whole number, and its offset from the centre."""

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p, dp/dd and d2p/dd2 at the centre of each inner cell, d being the offset."""


@dataclass(frozen=True)
class ProbabilityCells:
    """Cells of equal width over [0, 1]."""

    n_cells: int
    scale: ClassVar[Scale] = "probability"

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.n_cells

    @property
    def width(self) -> float:
        """The width of a cell."""
        return 1 / self.n_cells

    @property
    def steepest(self) -> float:
        """The most that p changes over a cell."""
        return self.width

    @cached_property
    def _bins(self) -> UniformBins:
        return UniformBins.of(self.n_cells)

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write down the cell of each score and its offset from the cell's centre."""
        np.multiply(p, self.n_cells, out=offset)
        np.floor(offset, out=cell)
        offset -= cell
        offset -= 0.5
        if offset.max() > NEAR_EDGE or offset.min() < -NEAR_EDGE:
            near = np.flatnonzero(np.abs(offset) > NEAR_EDGE)
            cell[near] = self._bins.index(p[near])
            offset[near] = p[near] * self.n_cells - cell[near] - 0.5

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the centres, the width and no curvature."""
        centre = (np.arange(self.n_cells) + 0.5) / self.n_cells
        return centre, np.full(self.n_cells, 1 / self.n_cells), np.zeros(self.n_cells)


@dataclass(frozen=True)
class LogitCells:
    """Cells of equal width over the logits from -20 to 20, and four for what lies outside."""

    n_cells: int
    scale: ClassVar[Scale] = "logit"

    @property
    def size(self) -> int:
        """How many cells there are, the outer ones included."""
        return self.n_cells + N_OUTER

    @property
    def width(self) -> float:
        """The width of an inner cell, in logits."""
        return 2 * LOGIT_REACH / self.n_cells

    @property
    def steepest(self) -> float:
        """The most that p changes over a cell: a quarter as much as its logit."""
        return self.width / 4

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write down the cell of each score and its offset from the cell's centre."""
        u = logit(p)
        (outside,) = np.nonzero(~(np.abs(u) < LOGIT_REACH))
        above = u[outside] > 0
        u[outside] = 0.0
        u += LOGIT_REACH
        u /= self.width
        np.floor(u, out=cell)
        np.minimum(cell, self.n_cells - 1.0, out=cell)
        np.subtract(u, cell, out=offset)
        offset -= 0.5
        if len(outside):
            x = p[outside]
            outer = np.where(
                above, np.where(x == 1, AT_ONE, ABOVE), np.where(x == 0, AT_ZERO, BELOW)
            )
            cell[outside], offset[outside] = self.n_cells + outer, 0.0

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sigmoid and its derivatives at the centres."""
        u = (np.arange(self.n_cells, dtype=np.float64) + 0.5) * self.width - LOGIT_REACH
        p, q = sigmoid(u), sigmoid(-u)
        return p, p * q * self.width, p * q * (q - p) * self.width**2


def make_cells(n_cells: int, scale: Scale) -> Cells:
    """Return the cells of a sketch."""
    return ProbabilityCells(n_cells) if scale == "probability" else LogitCells(n_cells)
