"""How far scores are spread: their standard deviation and interquartile range."""

from __future__ import annotations

import math

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.binning import UniformBins
from calibrant.problem import Problem

_QUARTERS = np.array([0.25, 0.75])
# From so many rows on they are not sorted: those of a few cells are enough.
_MANY = 1 << 15
_CELLS = 1 << 10


def spreads(problem: Problem) -> tuple[float, float]:
    """Return the standard deviation of the scores and their interquartile range, both weighted.

    Quantiles are linear between the middles of rows (Hazen's).
    """
    if problem.is_exact and not problem.is_weighted and problem.n >= _MANY:
        low, high = _quartiles_of_many(problem)
        return _deviation_of_many(problem), high - low
    pooled = problem.pooled
    mean = np.average(pooled.score, weights=pooled.weight)
    deviation = float(np.sqrt(np.average((pooled.score - mean) ** 2, weights=pooled.weight)))
    low, high = _weighted_quantiles(problem, _QUARTERS).tolist()
    return deviation, high - low


def _weighted_quantiles(problem: Problem, q: FloatArray) -> FloatArray:
    """Return the scores at which the weight reaches shares q, linear between rows' middles."""
    pooled = problem.pooled
    end = np.cumsum(pooled.weight)
    half_row = pooled.weight / pooled.rows / 2
    # From the middle of its first row to the middle of its last, the score stays.
    middles = np.stack((end - pooled.weight + half_row, end - half_row), axis=1)
    return np.interp(q * problem.weight, middles.reshape(-1), np.repeat(pooled.score, 2))


def _deviation_of_many(problem: Problem) -> float:
    mean = sum(float(p.sum()) for p, _, _ in problem.rows.blocks()) / problem.n
    squares = (np.square(p - mean) for p, _, _ in problem.rows.blocks())
    return math.sqrt(sum(float(square.sum()) for square in squares) / problem.n)


def _quartiles_of_many(problem: Problem) -> tuple[float, float]:
    """Return the quartiles: rows are counted in cells, and those of cells that hold one sorted."""
    place = _QUARTERS * problem.n - 0.5
    rank = np.floor(place).astype(np.intp)
    ends = np.cumsum(problem.totals(UniformBins.of(_CELLS), "rows")[0])
    # A quartile lies between the rows of two ranks, of which the second may be in another cell.
    cells = np.searchsorted(ends, np.stack((rank, rank + 1), axis=1), side="right")
    found = []
    for (first, last), lower, at in zip(cells.tolist(), rank.tolist(), place, strict=True):
        before = int(ends[first - 1]) if first else 0
        below, above = _between(problem, first, last)[lower - before : lower - before + 2]
        found.append(float(below + (at - lower) * (above - below)))
    return found[0], found[1]


def _between(problem: Problem, first: int, last: int) -> FloatArray:
    """Return the scores in these cells, in order; 1 is in the last cell."""
    low, high = first / _CELLS, (last + 1) / _CELLS if last + 1 < _CELLS else math.inf
    blocks = (p for p, _, _ in problem.rows.blocks())
    return np.sort(np.concatenate([p[(p >= low) & (p < high)] for p in blocks]))
