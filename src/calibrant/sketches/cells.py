"""Cells: which score is counted where in a sketch.

Cell k holds the scores e_k <= p < e_{k+1}: the rule of :mod:`calibrant.binning`. The edges
e_0 < ... < e_N are doubles in a table, the same on every machine, and a score belongs where
comparing it with them puts it: arithmetic only guesses. So every engine that counts rows into cells
agrees to the last row.

On the probability scale e_k is k/N, correctly rounded, and the last cell also holds 1. Any number
of bins that divides N is made of whole cells. The default, 50 400 = 2^5 3^2 5^2 7, is divided by
every number up to 10, by 12, 15, 20, 25, 30, 50, 100 and by many others, and suits the FFT.

On the logit scale uniform cells of p would lose the tails. There, N cells of equal width cover
logits from -20 to 20 (p from 2e-9 to 1 - 2e-9): e_k is the probability at the logit -20 + 40 k/N,
correctly rounded. Four more cells hold what lies outside: p = 0, the rest below, the rest above,
and p = 1.

A row's offset is its distance from its cell's centre in units of the cell's width, from -1/2 to
1/2; in the four outer cells it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Literal

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.binning import UniformBins
from calibrant.numerics.probability import logit

Scale = Literal["probability", "logit"]

DEFAULT_CELLS = 50_400
# A hundred megabytes: a few forged bytes must not be able to ask for more.
MOST_CELLS = 1 << 21
LOGIT_REACH = 20
# p * N is rounded once: offsets this near to a half are compared with the edges.
NEAR_EDGE = 0.5 - 1e-8
# The outer cells of the logit scale, counted from the first after the inner ones.
N_OUTER = 4
AT_ZERO, BELOW, ABOVE, AT_ONE = range(N_OUTER)


@dataclass(frozen=True)
class Cells:
    """A way to divide the scores into `n_cells` inner cells and perhaps some outer ones."""

    n_cells: int
    scale: ClassVar[Scale]

    @property
    def edges(self) -> FloatArray:
        """The n_cells + 1 edges of the inner cells."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of cells, the outer ones included."""
        raise NotImplementedError

    @property
    def width(self) -> float:
        """The width of an inner cell on this scale."""
        raise NotImplementedError

    @property
    def steepest(self) -> float:
        """The maximum change of p over a cell."""
        raise NotImplementedError

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write the cell of each score, a whole number, and its offset from the centre."""
        raise NotImplementedError

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p, dp/dd and d2p/dd2 at the centre of each inner cell, d being the offset."""
        raise NotImplementedError


class ProbabilityCells(Cells):
    """Cells of equal width over [0, 1]."""

    scale: ClassVar[Scale] = "probability"

    @cached_property
    def _bins(self) -> UniformBins:
        return UniformBins.of(self.n_cells)

    @property
    def edges(self) -> FloatArray:
        """The correctly rounded k / n_cells."""
        return self._bins.edges

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.n_cells

    @property
    def width(self) -> float:
        """The width of a cell."""
        return 1 / self.n_cells

    @property
    def steepest(self) -> float:
        """The maximum change of p over a cell."""
        return self.width

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write the cell of each score and its offset from the cell's centre."""
        np.multiply(p, self.n_cells, out=offset)
        np.floor(offset, out=cell)
        offset -= cell
        offset -= 0.5
        # The product is rounded once: only next to an edge may it be on the wrong side.
        if offset.max() > NEAR_EDGE or offset.min() < -NEAR_EDGE:
            (near,) = np.nonzero(np.abs(offset) > NEAR_EDGE)
            found = self._bins.index(p[near])
            cell[near], offset[near] = found, p[near] * self.n_cells - found - 0.5

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the centres, the width and no curvature."""
        centre = (np.arange(self.n_cells) + 0.5) / self.n_cells
        return centre, np.full(self.n_cells, 1 / self.n_cells), np.zeros(self.n_cells)


class LogitCells(Cells):
    """Cells of equal width over the logits from -20 to 20, and four for what lies outside."""

    scale: ClassVar[Scale] = "logit"

    @cached_property
    def edges(self) -> FloatArray:
        """The correctly rounded probabilities at the logits -20 + 40 k / n_cells."""
        return logit_edges(self.n_cells)

    @property
    def size(self) -> int:
        """The number of cells, the outer ones included."""
        return self.n_cells + N_OUTER

    @property
    def width(self) -> float:
        """The width of an inner cell, in logits."""
        return 2 * LOGIT_REACH / self.n_cells

    @property
    def steepest(self) -> float:
        """The maximum change of p over a cell: a quarter of that of its logit."""
        return self.width / 4

    def locate(self, p: FloatArray, cell: FloatArray, offset: FloatArray) -> None:
        """Write the cell of each score and its offset from the cell's centre."""
        edges, n = self.edges, self.n_cells
        (outside,) = np.nonzero((p < edges[0]) | (p >= edges[-1]))
        place = logit(p)
        place[outside] = 0.0
        place += LOGIT_REACH
        place /= self.width
        k = np.clip(place, 0, n - 1).astype(np.intp)
        k -= p < edges.take(k)
        k += p >= edges.take(k + 1)
        cell[:] = k
        np.subtract(place, cell, out=offset)
        offset -= 0.5
        if len(outside):
            x = p[outside]
            outer = np.where(
                x < 0.5, np.where(x == 0, AT_ZERO, BELOW), np.where(x == 1, AT_ONE, ABOVE)
            )
            cell[outside], offset[outside] = n + outer, 0.0

    def expansion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sigmoid and its derivatives at the centres."""
        from scipy.special import expit

        u = (np.arange(self.n_cells, dtype=np.float64) + 0.5) * self.width - LOGIT_REACH
        p, q = expit(u), expit(-u)
        return p, p * q * self.width, p * q * (q - p) * self.width**2


# The edges of a few numbers of cells are kept: they take a microsecond each.
@lru_cache(maxsize=4)
def logit_edges(n_cells: int) -> FloatArray:
    """Return the correctly rounded probabilities at the logits -20 + 40 k / n_cells.

    The exp of a mathematical library differs in the last bit between processors, so the odds are
    whole numbers of 2^-240: starting at exp(-20), each is the one before times exp(40 / n_cells),
    and Python divides whole numbers with one, correct, rounding.
    """
    one = 1 << 240
    ratio = _exp(2 * LOGIT_REACH, n_cells, one)
    odds, edges = one * one // _exp(LOGIT_REACH, 1, one), np.empty(n_cells + 1)
    for k in range(n_cells + 1):
        edges[k] = odds / (one + odds)
        odds = odds * ratio // one
    edges.flags.writeable = False
    return edges


def _exp(numerator: int, denominator: int, one: int) -> int:
    """Return exp(numerator / denominator) in units of 1 / one, by its power series."""
    total = term = one
    n = 1
    while term:
        term = term * numerator // (denominator * n)
        total += term
        n += 1
    return total


def make_cells(n_cells: int, scale: Scale) -> Cells:
    """Return the cells of a sketch."""
    return ProbabilityCells(n_cells) if scale == "probability" else LogitCells(n_cells)
