"""Cumulative differences simulated under a null hypothesis.

A null hypothesis is a distribution of the increments. Resamples are drawn in batches that fit in
cache, cut into blocks where a single one is too long, and only the highest and lowest cumulative
sum of each is kept: beyond the hypothesis itself, memory is a few megabytes for any number of rows
and of resamples.

The rank P-values (1 + number of simulated statistics at least as large) / (1 + their number) are
valid at every sample size where resamples have exactly the distribution of the null hypothesis:
calibrated outcomes, and outcomes permuted among rows of equal score, given weights that do not
depend on the outcomes. Residuals permuted among unequal scores are not quite exchangeable, and
their P-values are approximate.

Statistics other than excursions are simulated on residual totals of at most 1024 cells of scores,
:class:`NullCells`, at a cost that does not grow with the number of rows. Where outcomes depend on
each other within clusters, or are soft, their noise is known from the residuals alone: then the
residuals of each cluster, or row, are kept or change sign together. That has the distribution of
the null hypothesis where residuals are as likely as their negatives, and nearly so where clusters
are many. Their variance is never less than that of independent calibrated outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calibrant._base import AnyArray, FloatArray
from calibrant.data.binning import Bins
from calibrant.data.problem import CellOf, Index, Problem
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.inference.cell_noise import Cells, Clusters
from calibrant.measures.subpopulation import GroupCells

# Numbers drawn at a time: a few arrays of this size stay in cache.
_DRAWS = 1 << 16
# Fewer tied rows than these are drawn one by one, which is faster than a binomial count.
_FEW_TIED = 6
# Integers that cumulative sums may reach without overflow.
_MAX_INTEGER = 2.0**60
# Simulated and observed statistics that are equal in exact arithmetic may differ by rounding;
# within this many sigma they count as equal.
TIE = 1e-9
# Seconds it takes to draw and add a uniform number, a binomial or hypergeometric count, and the
# place of a row that is permuted; and the maximum for all of them.
_UNIFORM, _COUNT, _PLACE = 1e-8, 7e-8, 5e-8
_MAX_SECONDS = 5.0
# Up to so many rows are drawn one by one, and more that are weighted, since a few heavy ones give
# the total of a cell longer tails.
_MOST_ROWS, _MOST_WEIGHTED_ROWS = 1 << 13, 1 << 15
# Scores are pooled in at most about this many cells; in fewer where the totals of cells are drawn.
# docs/papers/power.md is the same, but for 1%, with 512 cells throughout.
_MOST_CELLS, _MOST_DRAWN_CELLS = 1024, 512


@dataclass(frozen=True, eq=False)
class Null:
    """A null hypothesis about the increments of cumulative differences.

    An increment is the sum of the numbers drawn for it less its expectation, times a unit: sums of
    integers are faster than others.
    """

    # Takes a slice of the numbers of whole increments, a number of resamples and a generator to
    # draws of shape (resamples, numbers).
    draw: Callable[[slice, int, Generator], AnyArray]
    size: int  # the number of numbers in a resample
    starts: Index  # the first number of each increment
    expected: FloatArray  # the expected sum of the numbers of each increment
    seconds: float  # about how many seconds a resample takes
    unit: float = 1.0  # the unit of all numbers


def simulate(null: Null, n_resamples: int, rng: Generator) -> tuple[FloatArray, FloatArray]:
    """Return the highest and lowest cumulative sum of each resample, the start at 0 included."""
    maximum = int(_MAX_SECONDS / max(null.seconds, 1e-12))
    if n_resamples > maximum:
        raise CalibrantError(
            "must be at most {maximum} for so many rows",
            argument="n_resamples",
            value=n_resamples,
            hint="an asymptotic P-value needs none",
            maximum=maximum,
        )
    high, low = np.zeros(n_resamples), np.zeros(n_resamples)
    batch = min(max(1, _DRAWS // max(1, null.size)), n_resamples)
    blocks = list(_blocks(null, batch))
    for start in range(0, n_resamples, batch):
        some = slice(start, min(start + batch, n_resamples))
        n_together = some.stop - some.start
        if n_together != batch:
            blocks = list(_blocks(null, n_together))
        position = np.zeros(n_together)
        for numbers, ends, expected in blocks:
            drawn = null.draw(numbers, n_together, rng)
            sums = np.cumsum(drawn, axis=1, dtype=np.int32 if drawn.dtype.kind == "b" else None)
            end = sums[:, -1]
            sums = (sums if ends is None else sums[:, ends]) - expected
            np.maximum(high[some], position + sums.max(axis=1), out=high[some])
            np.minimum(low[some], position + sums.min(axis=1), out=low[some])
            position += end - expected[-1]
    return high * null.unit, low * null.unit


def _blocks(null: Null, n_resamples: int) -> Iterator[tuple[slice, Index | None, FloatArray]]:
    """Yield consecutive increments: numbers, the last of each (None: one each), expected sums."""
    starts, width = null.starts, max(1, _DRAWS // n_resamples)
    cuts = np.searchsorted(starts, np.arange(0, null.size, width))
    bounds = np.append(starts, null.size)
    for first, last in pairwise(np.unique(np.append(cuts, len(starts))).tolist()):
        numbers = slice(int(bounds[first]), int(bounds[last]))
        is_single = numbers.stop - numbers.start == last - first
        ends = None if is_single else bounds[first + 1 : last + 1] - bounds[first] - 1
        yield numbers, ends, np.cumsum(null.expected[first:last])


def calibrated_outcomes(problem: Problem) -> Null:
    """Return perfect calibration: y ~ Bernoulli(p) independently, given the scores and weights.

    Rows of equal score and weight are drawn together as one binomial count where they are many, so
    that the cost depends on the number of distinct rows.
    """
    weight, unit = None, 1.0
    if not problem.is_weighted:
        p, rows = problem.pooled.score, problem.pooled.rows.astype(np.intp)
        starts = np.arange(len(p))
    else:
        p, _, w = problem.rows.columns()
        order = np.lexsort((w, p))
        p, w = p[order], w[order]
        new_score = np.diff(p, prepend=-1.0) > 0
        distinct = np.flatnonzero(new_score | (np.diff(w, prepend=0.0) != 0))
        starts = np.flatnonzero(new_score[distinct])
        rows = np.diff(distinct, append=len(p))
        p = p[distinct]
        weight, unit = _in_units(p, w[distinct], rows)
    # A few equal rows are drawn one by one.
    times = np.where(rows < _FEW_TIED, rows, 1)
    starts = (np.cumsum(times) - times)[starts]
    p, rows = np.repeat(p, times), np.repeat(rows // times, times)
    expected = rows * p
    if weight is not None:
        weight = np.repeat(weight, times)
        expected = expected * weight

    def draw(which: slice, n_resamples: int, rng: Generator) -> AnyArray:
        # A single row, by far the most common, costs one uniform number.
        outcomes: AnyArray = rng.random((n_resamples, len(p[which]))) < p[which]
        (many,) = np.nonzero(rows[which] > 1)
        if len(many):
            # One after another: the set-up of a binomial distribution serves all its draws.
            tied = (rows[which][many, None], p[which][many, None])
            outcomes = outcomes.astype(np.int64)
            outcomes[:, many] = rng.binomial(*tied, (len(many), n_resamples)).T
        return outcomes if weight is None else outcomes * weight[which]

    n_single = np.count_nonzero(rows == 1)
    seconds = _UNIFORM * n_single + _COUNT * (len(p) - n_single)
    return Null(draw, len(p), starts, np.add.reduceat(expected, starts), seconds, unit)


def _in_units(p: FloatArray, w: FloatArray, rows: Index) -> tuple[AnyArray, float]:
    """Return weights as integers, and their unit; as they are where integers would be too coarse.

    Predictions of 0 and 1 have no noise, whatever their weight.
    """
    w = np.where((p > 0) & (p < 1), w, 0.0)
    unit = float(w @ rows) / _MAX_INTEGER
    sigma = math.sqrt(float((w * w * rows) @ (p * (1 - p))))
    if not unit * len(w) < 0.1 * TIE * sigma:
        return w, 1.0
    return np.rint(w / unit).astype(np.int64), unit


def permuted_within(cells: GroupCells) -> Null:
    """Return that a group is like its population: residuals permuted within each cell.

    Cells where every permutation gives the same increment are left out.
    """
    varies, rows = cells.variance > 0, cells.rows.astype(np.intp)
    n = int(varies.sum())
    if cells.has_shared_scores and np.all(cells.w == 1):
        # Outcomes of rows that count once each, in cells of one score, are drawn as counts.
        sums = (rows, cells.sums(cells.y), cells.sums(cells.member))
        of_cell, ones, group = (one[varies].astype(np.intp) for one in sums)

        def draw_counts(which: slice, n_resamples: int, rng: Generator) -> AnyArray:
            zeros, size = (of_cell - ones)[which], (n_resamples, len(ones[which]))
            return rng.hypergeometric(ones[which], zeros, group[which], size)

        return Null(draw_counts, n, np.arange(n), ones * (group / of_cell), _COUNT * n)
    kept = np.repeat(varies, rows)
    residual, contrast = cells.residual[kept], cells.contrast[kept]
    starts = np.cumsum(rows[varies]) - rows[varies]

    def draw_residuals(which: slice, n_resamples: int, rng: Generator) -> AnyArray:
        some = residual[which]
        cell = np.searchsorted(starts, np.arange(which.start, which.stop), side="right")
        # Sorting cell + uniform permutes the rows within every cell at once.
        order = np.argsort(rng.random((n_resamples, len(some))) + (cell - cell[0]), axis=1)
        return some[order] * contrast[which]

    # Contrasts sum to 0.
    return Null(draw_residuals, len(residual), starts, np.zeros(n), _PLACE * len(residual))


@dataclass(frozen=True, eq=False)
class NullCells:
    """Residual totals of cells of scores, observed and under perfect calibration."""

    cells: Cells  # the rows summed over cells, each of which holds some, in order of scores
    # Takes a number of resamples and a generator to residual totals of shape (resamples, cells).
    draw: Callable[[int, Generator], FloatArray]

    @classmethod
    def of(cls, problem: Problem, clusters: Clusters | None, rng: Generator) -> NullCells:
        """Return the cells of a problem."""
        most_rows = _MOST_WEIGHTED_ROWS if problem.is_weighted else _MOST_ROWS
        is_few = problem.is_exact and problem.n <= most_rows
        starts = _cell_starts(problem, _MOST_CELLS if is_few else _MOST_DRAWN_CELLS)
        cell_of = Bins.starting_at(starts).index
        gathered = Cells.gather(problem, cell_of, len(starts))
        (filled,) = np.nonzero(gathered.weight)
        cells = gathered.some(filled)
        if clusters is None and problem.is_soft and problem.is_exact:
            clusters = Clusters.single_rows(problem.n, rng)
        if clusters is not None:
            totals = clusters.totals(problem, cell_of, len(starts))[0][:, filled]
            # Where few events were seen, residuals say too little of the noise.
            expected, seen = float(cells.calibrated_variance.sum()), float(np.square(totals).sum())
            if 0 < seen < expected:
                totals *= math.sqrt(expected / seen)
            return cls(cells, _sign_flips(totals))
        if is_few and not problem.is_soft:
            return cls(cells, _outcomes_in_cells(problem, cell_of))
        return cls(cells, cells.calibrated_noise)

    def batches(self, n_resamples: int, rng: Generator) -> Iterator[FloatArray]:
        """Yield the observed totals, shape (1, cells), then resamples in batches."""
        yield self.cells.residual[None, :]
        batch = max(1, _DRAWS // len(self.cells.residual))
        for start in range(0, n_resamples, batch):
            yield self.draw(min(batch, n_resamples - start), rng)


def _cell_starts(problem: Problem, n_cells: int) -> FloatArray:
    """Return the lowest score of each cell; 0, 1 and scores of many rows have their own."""
    scores = problem.scores
    starts = np.unique(scores)
    if len(starts) > n_cells:
        starts = scores[np.arange(n_cells) * len(scores) // n_cells]
    many = starts[1:][starts[1:] == starts[:-1]]
    starts = np.concatenate((starts, np.nextafter([0.0, *many], 2.0), [1.0]))
    return np.unique(starts[starts <= 1])


def _outcomes_in_cells(problem: Problem, cell_of: CellOf) -> Callable[[int, Generator], FloatArray]:
    """Return draws of residual totals whose rows have the distribution of calibrated outcomes."""
    null = calibrated_outcomes(problem)
    _, first = np.unique(cell_of(problem.pooled.score), return_index=True)
    starts, expected = null.starts[first], np.add.reduceat(null.expected, first)

    def draw(n_resamples: int, rng: Generator) -> FloatArray:
        drawn = null.draw(slice(0, null.size), n_resamples, rng)
        if len(starts) < null.size:
            counts = np.int64 if drawn.dtype.kind == "b" else drawn.dtype
            drawn = np.add.reduceat(drawn, starts, axis=1, dtype=counts)
        return np.asarray((drawn - expected) * null.unit)

    return draw


def _sign_flips(totals: FloatArray) -> Callable[[int, Generator], FloatArray]:
    """Return draws of the sum of totals, each with a random sign."""

    def draw(n_resamples: int, rng: Generator) -> FloatArray:
        return np.asarray(rng.choice([-1.0, 1.0], (n_resamples, len(totals))) @ totals)

    return draw
