"""Cumulative differences simulated under a null hypothesis, and the P-values that they give.

A null hypothesis here says how increments are distributed. Resamples are drawn in batches that fit
in cache, cut into blocks where a single one is too long; only the highest and lowest value of each
is kept. Beside what describes the null hypothesis itself, memory is a few megabytes for any number
of rows and of resamples.

The rank P-value (1 + number of simulated statistics at least as large) / (1 + their number) is
never 0: the observed one counts as one of them. It is valid at every sample size where resamples
are drawn just as the null hypothesis has it: calibrated outcomes, and outcomes permuted among rows
of equal score, given weights that do not depend on the outcomes. Residuals permuted among unequal
scores are not quite exchangeable, and what they give is approximate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from calibrant._base import AnyArray, FloatArray
from calibrant.data.problem import Index, Problem
from calibrant.errors import CalibrantError
from calibrant.measures.subpopulation import GroupCells

# Numbers drawn at a time: a few arrays of this size stay in cache.
_DRAWS = 1 << 16
# Fewer tied rows than these are drawn one by one, which is faster than a binomial count.
_FEW_TIED = 6
# Whole numbers that cumulative sums may reach without overflow.
_MOST_WHOLE = 2.0**60
# Simulated and observed statistics that are equal in exact arithmetic may differ by rounding;
# within this many sigma they count as equal.
TIE = 1e-9
# About how long it takes to draw a number, in seconds: a uniform one, one that counts tied rows or
# rows of a group, and the place of a row that is permuted; and how long all may take.
_UNIFORM, _COUNT, _PLACE = 5e-9, 7e-8, 5e-8
_MOST_SECONDS = 5.0

Generator = np.random.Generator


class Null(Protocol):
    """A null hypothesis about the increments of cumulative differences.

    An increment is the sum of what is drawn for it less what is expected, times a unit: whole
    numbers are added up faster than others.
    """

    @property
    def starts(self) -> Index:
        """The first number that is drawn for each increment."""

    @property
    def size(self) -> int:
        """How many numbers one resample draws."""

    @property
    def seconds(self) -> float:
        """About how many seconds one resample takes."""

    @property
    def unit(self) -> float:
        """The unit in which numbers are drawn."""

    @property
    def expected(self) -> FloatArray:
        """The expected sum of the numbers of each increment, in the same unit."""

    def draw(self, which: slice, n_resamples: int, rng: Generator) -> AnyArray:
        """Draw some of the numbers of whole increments, shape (n_resamples, numbers)."""


def simulate(null: Null, n_resamples: int, rng: Generator) -> tuple[FloatArray, FloatArray]:
    """Return the highest and lowest cumulative sum of each resample, the start at 0 included."""
    _check_time(null, n_resamples)
    high, low = np.zeros(n_resamples), np.zeros(n_resamples)
    batch = max(1, _DRAWS // max(1, null.size))
    n_together, blocks = 0, list[Block]()
    for start in range(0, n_resamples, batch):
        some = slice(start, min(start + batch, n_resamples))
        if some.stop - some.start != n_together:
            n_together = some.stop - some.start
            blocks = list(_blocks(null, n_together))
        position = np.zeros(n_together)
        for block in blocks:
            drawn = null.draw(block.numbers, n_together, rng)
            passed = _added_up(drawn)
            end = passed[:, -1]
            passed = passed if block.ends is None else passed[:, block.ends]
            sums = passed - block.expected
            np.maximum(high[some], position + sums.max(axis=1), out=high[some])
            np.minimum(low[some], position + sums.min(axis=1), out=low[some])
            position += end - block.expected[-1]
    return high * null.unit, low * null.unit


class Block(NamedTuple):
    """Some consecutive increments.

    Attributes
    ----------
    numbers
        Which numbers are drawn for them.
    ends
        The last number of each increment; None where each has one.
    expected
        The expected cumulative sums within the block.
    """

    numbers: slice
    ends: Index | None
    expected: FloatArray


def _blocks(null: Null, n_resamples: int) -> Iterator[Block]:
    """Cut a resample into blocks of whole increments."""
    starts, expected, width = null.starts, null.expected, max(1, _DRAWS // n_resamples)
    cuts = np.searchsorted(starts, np.arange(0, null.size, width))
    bounds = np.append(starts, null.size)
    for first, last in pairwise(np.unique(np.append(cuts, len(starts))).tolist()):
        numbers = slice(int(bounds[first]), int(bounds[last]))
        is_single = numbers.stop - numbers.start == last - first
        ends = None if is_single else bounds[first + 1 : last + 1] - bounds[first] - 1
        yield Block(numbers, ends, np.cumsum(expected[first:last]))


def _check_time(null: Null, n_resamples: int) -> None:
    most = int(_MOST_SECONDS / max(null.seconds, 1e-12))
    if n_resamples > most:
        raise CalibrantError(
            "must be at most {maximum} for so many rows",
            argument="n_resamples",
            value=n_resamples,
            hint="an asymptotic P-value needs none",
            maximum=most,
        )


@dataclass(frozen=True, eq=False)
class CalibratedOutcomes:
    """Perfect calibration: y ~ Bernoulli(p) independently, given the scores and weights.

    Rows of equal score and weight are drawn together as one binomial count where they are many, so
    that the cost depends on the number of distinct rows.

    Attributes
    ----------
    p, rows
        Score and number of each kind of row, in order of score.
    worth, unit
        The weight of each kind of row, in whole units where that is possible, and the unit; None
        and 1 where every row counts once.
    starts
        The first kind of each distinct score.
    """

    p: FloatArray
    rows: Index
    worth: AnyArray | None
    unit: float
    starts: Index

    @classmethod
    def of(cls, problem: Problem) -> CalibratedOutcomes:
        """Return the hypothesis that a problem is perfectly calibrated."""
        if not problem.is_weighted:
            p, rows = problem.pooled.score, problem.pooled.rows.astype(np.intp)
            worth, unit, starts = None, 1.0, np.arange(len(p))
        else:
            p, _, w = problem.rows.columns()
            order = np.lexsort((w, p))
            p, w = p[order], w[order]
            new_score = np.diff(p, prepend=-1.0) > 0
            kinds = np.flatnonzero(new_score | (np.diff(w, prepend=0.0) != 0))
            starts = np.flatnonzero(new_score[kinds])
            rows = np.diff(kinds, append=len(p))
            p, (worth, unit) = p[kinds], _in_units(p[kinds], w[kinds], rows)
        # A few rows of one kind are drawn one by one.
        times = np.where(rows < _FEW_TIED, rows, 1)
        starts = (np.cumsum(times) - times)[starts]
        worth = None if worth is None else np.repeat(worth, times)
        return cls(np.repeat(p, times), np.repeat(rows // times, times), worth, unit, starts)

    @property
    def size(self) -> int:
        """How many numbers one resample draws."""
        return len(self.p)

    @property
    def seconds(self) -> float:
        """About how many seconds one resample takes."""
        n_single = np.count_nonzero(self.rows == 1)
        return _UNIFORM * n_single + _COUNT * (self.size - n_single)

    @property
    def expected(self) -> FloatArray:
        """The expected outcomes of each distinct score, in units of weight."""
        each = self.rows * self.p if self.worth is None else self.rows * self.p * self.worth
        return np.asarray(np.add.reduceat(each, self.starts))

    def draw(self, which: slice, n_resamples: int, rng: Generator) -> AnyArray:
        """Draw outcomes, in units of weight."""
        outcomes = _binomial(self.rows[which], self.p[which], n_resamples, rng)
        return outcomes if self.worth is None else outcomes * self.worth[which]


def _in_units(p: FloatArray, w: FloatArray, rows: Index) -> tuple[AnyArray, float]:
    """Return weights in whole units, and the unit; in units of 1 where those would be too coarse.

    Predictions of 0 and 1 leave nothing to chance, whatever their weight.
    """
    w = np.where((p > 0) & (p < 1), w, 0.0)
    unit = float(w @ rows) / _MOST_WHOLE
    sigma = math.sqrt(float((w * w * rows) @ (p * (1 - p))))
    if not unit * len(w) < 0.1 * TIE * sigma:
        return w, 1.0
    return np.rint(w / unit).astype(np.int64), unit


@dataclass(frozen=True, eq=False)
class PermutedCounts:
    """A group like its population: each cell's outcomes permuted among rows all alike.

    Attributes
    ----------
    rows, ones, group
        Rows of each cell, how many have outcome 1, and how many belong to the group.
    """

    rows: Index
    ones: Index
    group: Index

    @classmethod
    def of(cls, cells: GroupCells) -> PermutedCounts:
        """Return the hypothesis for rows that count once each, in cells of one score."""
        # A cell where every permutation gives the same increment has no effect.
        open_cells = cells.variance > 0
        counts = (cells.rows, cells.sums(cells.y), cells.sums(cells.member))
        return cls(*(count[open_cells].astype(np.intp) for count in counts))

    unit = 1.0

    @property
    def size(self) -> int:
        """How many numbers one resample draws."""
        return len(self.rows)

    @property
    def seconds(self) -> float:
        """About how many seconds one resample takes."""
        return _COUNT * self.size

    @property
    def expected(self) -> FloatArray:
        """The expected number of the group's outcomes in each cell."""
        return self.ones * (self.group / self.rows)

    @property
    def starts(self) -> Index:
        """The first number that is drawn for each increment."""
        return np.arange(self.size)

    def draw(self, which: slice, n_resamples: int, rng: Generator) -> AnyArray:
        """Draw the group's outcomes, cell by cell."""
        rows, ones, group = self.rows[which], self.ones[which], self.group[which]
        return rng.hypergeometric(ones, rows - ones, group, (n_resamples, len(rows)))


@dataclass(frozen=True, eq=False)
class PermutedResiduals:
    """A group like its population: each cell's residuals permuted among its rows.

    Attributes
    ----------
    residual, contrast
        Residual of each row, and the factor of a residual in its place in the increment.
    starts
        The first row of each cell.
    """

    residual: FloatArray
    contrast: FloatArray
    starts: Index

    @classmethod
    def of(cls, cells: GroupCells) -> PermutedResiduals:
        """Return the hypothesis for rows of any weights and scores."""
        rows = cells.rows.astype(np.intp)
        open_cells = cells.variance > 0
        kept = np.repeat(open_cells, rows)
        starts = np.concatenate(([0], np.cumsum(rows[open_cells])[:-1]))
        return cls(cells.residual[kept], cells.contrast[kept], starts)

    unit = 1.0

    @property
    def size(self) -> int:
        """How many numbers one resample draws."""
        return len(self.residual)

    @property
    def seconds(self) -> float:
        """About how many seconds one resample takes."""
        return _PLACE * self.size

    @property
    def expected(self) -> FloatArray:
        """Return 0: contrasts sum to it."""
        return np.zeros(len(self.starts))

    def draw(self, which: slice, n_resamples: int, rng: Generator) -> AnyArray:
        """Draw contrasts of permuted residuals."""
        residual = self.residual[which]
        cell = np.searchsorted(self.starts, np.arange(which.start, which.stop), side="right")
        # Sorting cell + uniform permutes the rows within every cell at once.
        order = np.argsort(rng.random((n_resamples, len(residual))) + (cell - cell[0]), axis=1)
        return residual[order] * self.contrast[which]


def permuted_within(cells: GroupCells) -> Null:
    """Return the hypothesis that a group is like its population."""
    counts_suffice = cells.has_shared_scores and np.all(cells.w == 1)
    return PermutedCounts.of(cells) if counts_suffice else PermutedResiduals.of(cells)


def _binomial(rows: Index, p: FloatArray, n_resamples: int, rng: Generator) -> AnyArray:
    """Draw binomial counts; a single row, by far the most common, costs one uniform number."""
    outcomes = rng.random((n_resamples, len(p))) < p
    if rows.max() == 1:
        return outcomes
    (many,) = np.nonzero(rows > 1)
    # One kind at a time: the set-up of a binomial distribution serves all its draws.
    counts = rng.binomial(rows[many, None], p[many, None], (len(many), n_resamples))
    whole = outcomes.astype(np.int64)
    whole[:, many] = counts.T
    return whole


def _added_up(drawn: AnyArray) -> AnyArray:
    """Return the running sums of a block, of truth values as counts."""
    return np.cumsum(drawn, axis=1, dtype=np.int32 if drawn.dtype.kind == "b" else None)
