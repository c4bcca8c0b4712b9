"""Walks simulated under a null hypothesis, and the P-values that they give.

A null hypothesis here says how the steps of a walk come about by chance. Walks are drawn in
batches that fit in cache, cut into blocks where a single one is too long; only the highest and
lowest point of each is kept. Beside what describes the null hypothesis itself, memory is a few
megabytes for any number of rows and of walks.

The rank P-value (1 + how many simulated statistics reach the observed one) / (1 + their number) is
never 0: the observed walk counts as one of the draws. It is valid at every sample size where walks
are drawn just as the null hypothesis has it: calibrated outcomes, and outcomes dealt out among rows
of equal score, given weights that do not depend on the outcomes. Residuals dealt out among unequal
scores are not quite exchangeable, and what they give is approximate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.measures.group_walk import GroupCells
from calibrant.problem import Index, Problem

# Numbers drawn at a time: a few arrays of this size stay in cache.
_DRAWS = 1 << 16
# Simulated and observed statistics that are equal in exact arithmetic may differ by rounding;
# within this many sigma they count as equal.
_ROUNDING = 1e-9

Generator = np.random.Generator


class Null(Protocol):
    """A null hypothesis about the steps of a walk."""

    @property
    def size(self) -> int:
        """How many numbers one walk draws."""

    def steps(self, n_walks: int, rng: Generator) -> Iterator[FloatArray]:
        """Yield the steps of simulated walks, shape (n_walks, some of the steps), in order."""


def simulate(null: Null, n_walks: int, rng: Generator) -> tuple[FloatArray, FloatArray]:
    """Return the highest and lowest point of each simulated walk, its start at 0 included."""
    high, low = np.zeros(n_walks), np.zeros(n_walks)
    batch = max(1, _DRAWS // max(1, null.size))
    for start in range(0, n_walks, batch):
        walks = slice(start, min(start + batch, n_walks))
        position = np.zeros((walks.stop - walks.start, 1))
        for steps in null.steps(len(position), rng):
            steps[:, :1] += position
            walked = np.cumsum(steps, axis=1, out=steps)
            position = walked[:, -1:].copy()
            np.maximum(high[walks], walked.max(axis=1), out=high[walks])
            np.minimum(low[walks], walked.min(axis=1), out=low[walks])
    return high, low


def rank_p_value(simulated: FloatArray, observed: float, sigma: float) -> float:
    """Return the share of walks, the observed one included, that stray as far as the observed."""
    reaching = np.count_nonzero(simulated >= observed - _ROUNDING * sigma)
    return float((1 + reaching) / (1 + len(simulated)))


@dataclass(frozen=True, eq=False)
class CalibratedOutcomes:
    """Perfect calibration: y ~ Bernoulli(p) independently, given the scores and weights.

    Rows of equal score and weight are drawn together as one binomial count, so that the cost
    depends on the number of distinct rows.

    Attributes
    ----------
    p, w, rows
        Score, weight and number of each kind of row, in order of score.
    starts
        The first kind of each distinct score.
    """

    p: FloatArray
    w: FloatArray
    rows: Index
    starts: Index

    @classmethod
    def of(cls, problem: Problem) -> CalibratedOutcomes:
        """Return the hypothesis that a problem is perfectly calibrated."""
        if not problem.is_weighted:
            steps = problem.steps
            kinds = np.arange(len(steps.score))
            return cls(steps.score, np.ones(len(kinds)), steps.rows.astype(np.intp), kinds)
        p, _, w = problem.columns()
        order = np.lexsort((w, p))
        p, w = p[order], w[order]
        new_score = np.diff(p, prepend=-1.0) > 0
        kinds = np.flatnonzero(new_score | (np.diff(w, prepend=0.0) != 0))
        starts = np.flatnonzero(new_score[kinds])
        return cls(p[kinds], w[kinds], np.diff(kinds, append=len(p)), starts)

    @property
    def size(self) -> int:
        """How many numbers one walk draws."""
        return len(self.p)

    def steps(self, n_walks: int, rng: Generator) -> Iterator[FloatArray]:
        """Yield w (outcomes - expected outcomes), summed over each distinct score."""
        for kinds, starts in _blocks(self.starts, self.size, n_walks):
            p, w, rows = self.p[kinds], self.w[kinds], self.rows[kinds]
            outcomes = _binomial(rows, p, n_walks, rng)
            outcomes -= rows * p
            outcomes *= w
            yield _sum_within(outcomes, starts)


@dataclass(frozen=True, eq=False)
class DealtCounts:
    """A group like its population: each cell's outcomes dealt out again among rows all alike.

    Attributes
    ----------
    rows, ones, group
        Rows of each cell, how many have outcome 1, and how many belong to the group.
    """

    rows: Index
    ones: Index
    group: Index

    @classmethod
    def of(cls, cells: GroupCells) -> DealtCounts:
        """Return the hypothesis for rows that count once each, in cells of one score."""
        # A cell where every deal gives the same step moves no walk.
        open_cells = cells.variance > 0
        counts = (cells.rows, cells.sums(cells.y), cells.sums(cells.member))
        return cls(*(count[open_cells].astype(np.intp) for count in counts))

    @property
    def size(self) -> int:
        """How many numbers one walk draws."""
        return len(self.rows)

    def steps(self, n_walks: int, rng: Generator) -> Iterator[FloatArray]:
        """Yield the group's outcomes minus their expected number, cell by cell."""
        for cells, _ in _blocks(np.arange(self.size), self.size, n_walks):
            rows, ones, group = self.rows[cells], self.ones[cells], self.group[cells]
            drawn = rng.hypergeometric(ones, rows - ones, group, (n_walks, len(rows)))
            yield drawn - ones * (group / rows)


@dataclass(frozen=True, eq=False)
class DealtResiduals:
    """A group like its population: each cell's residuals dealt out again among its rows.

    Attributes
    ----------
    residual, contrast
        Residual of each row, and what a residual in its place counts in the step.
    starts
        The first row of each cell.
    """

    residual: FloatArray
    contrast: FloatArray
    starts: Index

    @classmethod
    def of(cls, cells: GroupCells) -> DealtResiduals:
        """Return the hypothesis for rows of any weights and scores."""
        rows = cells.rows.astype(np.intp)
        open_cells = cells.variance > 0
        kept = np.repeat(open_cells, rows)
        starts = np.concatenate(([0], np.cumsum(rows[open_cells])[:-1]))
        return cls(cells.residual[kept], cells.contrast[kept], starts)

    @property
    def size(self) -> int:
        """How many numbers one walk draws."""
        return len(self.residual)

    def steps(self, n_walks: int, rng: Generator) -> Iterator[FloatArray]:
        """Yield the contrast of shuffled residuals, summed over each cell."""
        for rows, starts in _blocks(self.starts, self.size, n_walks):
            residual = self.residual[rows]
            cell = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(residual)))
            # Sorting cell + uniform shuffles the rows within every cell at once.
            order = np.argsort(rng.random((n_walks, len(residual))) + cell, axis=1)
            yield _sum_within(residual[order] * self.contrast[rows], starts)


def dealt_out(cells: GroupCells) -> Null:
    """Return the hypothesis that a group is like its population."""
    counts_suffice = cells.has_shared_scores and np.all(cells.w == 1)
    return DealtCounts.of(cells) if counts_suffice else DealtResiduals.of(cells)


def _binomial(rows: Index, p: FloatArray, n_walks: int, rng: Generator) -> FloatArray:
    """Draw binomial counts; a single row, by far the most common, costs one uniform number."""
    single = rows == 1
    if single.all():
        return (rng.random((n_walks, len(p))) < p).astype(np.float64)
    outcomes = np.empty((n_walks, len(p)))
    outcomes[:, single] = rng.random((n_walks, np.count_nonzero(single))) < p[single]
    many = ~single
    outcomes[:, many] = rng.binomial(rows[many], p[many], (n_walks, np.count_nonzero(many)))
    return outcomes


def _blocks(starts: Index, size: int, n_walks: int) -> Iterator[tuple[slice, Index]]:
    """Cut columns into blocks of whole steps; yield each with its own starts."""
    width = max(1, _DRAWS // n_walks)
    cuts = np.searchsorted(starts, np.arange(0, size, width))
    ends = np.append(starts, size)
    for first, last in pairwise(np.unique(np.append(cuts, len(starts)))):
        yield slice(ends[first], ends[last]), starts[first:last] - starts[first]


def _sum_within(values: FloatArray, starts: Index) -> FloatArray:
    if len(starts) == values.shape[1]:
        return values
    return np.asarray(np.add.reduceat(values, starts, axis=1))
