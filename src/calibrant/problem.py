"""The questions that a measure may ask of one binary calibration problem.

A problem is a weighted set of rows (p, y): a prediction in [0, 1] and an outcome in [0, 1]. It is
answered exactly by a :class:`~calibrant.sample.Sample`, rows in memory, and by a sketch to within
bounds that it gives, or not at all. Measures are written against these questions and never see
where the rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray
from calibrant.lines import Line, Quantity

Index = npt.NDArray[np.intp]
Block = tuple[FloatArray, FloatArray, FloatArray | None]
# Takes scores to the index of the cell that holds each.
CellOf = Callable[[FloatArray], Index]


class Assignment(Protocol):
    """How rows are shared out among bins."""

    @property
    def n_bins(self) -> int:
        """The number of bins."""

    def shares(self, p: FloatArray) -> Iterator[tuple[Index, FloatArray | None]]:
        """Yield (bin of each row, share of each row); a share of None means the whole row."""


@dataclass(frozen=True, eq=False)
class Atoms:
    """Rows of equal score pooled, in increasing order of score.

    Attributes
    ----------
    score
        The distinct scores.
    rows
        How many rows have each score.
    weight
        Their total weight.
    weight_squared
        Their sum of w^2, which the noise of weighted sums depends on.
    true
        Their sum of w y.
    residual
        Their sum of w (y - p), taken row by row so that it is exactly 0 where y = p.
    """

    score: FloatArray
    rows: FloatArray
    weight: FloatArray
    weight_squared: FloatArray
    true: FloatArray
    residual: FloatArray

    @cached_property
    def running_weight(self) -> FloatArray:
        """The weight below each atom, and at last all of it."""
        return np.concatenate(([0.0], np.cumsum(self.weight)))

    @cached_property
    def running_true(self) -> FloatArray:
        """The sum of w y below each atom, and at last all of it."""
        return np.concatenate(([0.0], np.cumsum(self.true)))


class Problem(Protocol):
    """One binary calibration problem."""

    @property
    def n(self) -> int:
        """The number of rows that carry weight."""

    @property
    def weight(self) -> float:
        """The total weight W."""

    @property
    def lowest(self) -> float:
        """The least score that could be: 1/C for the top class of C, else 0."""

    @property
    def is_weighted(self) -> bool:
        """Whether rows carry weights of their own."""

    @property
    def is_soft(self) -> bool:
        """Whether any outcome lies strictly between 0 and 1."""

    @property
    def is_exact(self) -> bool:
        """Whether answers are those of the rows themselves, and every error below is 0."""

    @property
    def sum_error(self) -> float:
        """How far sums may be from those over the rows, over W, by rounding."""

    @property
    def cell_width(self) -> float:
        """How far apart rows may be that are pooled into one step."""

    @property
    def atoms(self) -> Atoms:
        """The rows pooled by score."""

    @property
    def steps(self) -> Atoms:
        """The rows pooled by score, or at least by nearly equal scores."""

    @property
    def step_spread(self) -> FloatArray:
        """The standard deviation of scores that are pooled into each step."""

    def decisive_steps(self) -> Atoms:
        """Return steps whose walk strays as far as that of `steps`, in fewer if that is faster."""

    @property
    def walk_error(self) -> float:
        """How much farther than a walk of `steps` one of `atoms` may stray, over W."""

    def spectrum(self, scale: float, *quantities: Quantity) -> FloatArray:
        """Return the cosine coefficients of each quantity's measure on [0, 1].

        One row a quantity: a_k = sum of v cos(pi k p) over the rows, for every k that smoothing
        at `scale` leaves alive (see :mod:`calibrant.cosine`).
        """

    @property
    def finest_scale(self) -> float:
        """The least scale that `spectrum` resolves."""

    def spectrum_error(self, scale: float, quantity: Quantity) -> float:
        """Bound the L1 norm, over W, of what a quantity smoothed at `scale` lacks."""

    def logit_line(self, tails: float) -> Line:
        """Return the rows at their logits, with room for noise of scale `tails` around them."""

    def squared_error(self) -> float:
        """Return the sum of w (p - y)^2."""

    def blocks(self) -> Iterator[Block]:
        """Yield the rows as float64 (p, y, w) blocks; w is None where every row counts once."""

    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return all rows as (p, y, w)."""

    def part(self) -> Problem:
        """Return the problem of some of many rows, taken evenly from all of them."""

    def totals(self, assignment: Assignment, *quantities: Quantity) -> FloatArray:
        """Return one row of sums over bins for each quantity.

        "rows" counts rows, "weight" sums w, "pred" w p, "true" w y and "residual" w (y - p).
        """
