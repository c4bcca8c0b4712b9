"""Sums over the rows of any cells of scores, from rows in memory or from a sketch.

Five sums describe the rows of a cell: of w, w^2, w p, w r and (w r)^2, r = y - p being the
residual. Rows on either side of their prediction, y <= p and y > p, are summed apart: for 0/1
outcomes these are the two outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.numerics.probability import logit
from calibrant.problem import CellOf, Problem
from calibrant.sketches.answers import OnLogits, OnProbabilities
from calibrant.sketches.cells import N_OUTER
from calibrant.sketches.state import Sketch

N_SUMS = 5
# As many scores say well enough where the others lie.
_SCORES_LOOKED_AT = 1 << 16


def side_sums(problem: Problem, cell_of: CellOf, n_cells: int) -> FloatArray:
    """Return the five sums, shape (5, 2, n_cells); `cell_of` says where scores belong."""
    if isinstance(problem, OnProbabilities | OnLogits):
        return _sketch_sums(problem.sketch, cell_of, n_cells)
    if problem.is_weighted or problem.is_soft:
        return _row_sums(problem, cell_of, n_cells)
    return _outcome_sums(problem, cell_of, n_cells)


def scores(problem: Problem) -> FloatArray:
    """Return scores that show where rows lie, in order: all of them, or tens of thousands."""
    if isinstance(problem, OnProbabilities | OnLogits):
        place, _ = _pooled(problem.sketch)
        rank = np.arange(min(problem.n, _SCORES_LOOKED_AT)) / min(problem.n, _SCORES_LOOKED_AT)
        order = np.argsort(place, kind="stable")
        passed = np.cumsum(problem.sketch.table.rows[order])
        return place[order][np.searchsorted(passed, np.floor(rank * problem.n), side="right")]
    step = -(-problem.n // _SCORES_LOOKED_AT)
    kept, seen = [], 0
    for p, _, _ in problem.blocks():
        kept.append(p[-seen % step :: step])
        seen += len(p)
    return np.sort(np.concatenate(kept))


def logit_range(problem: Problem) -> tuple[float, float] | None:
    """Return the least and greatest finite logit, or None where there is none."""
    found = [_inner_range(p) for p in _place_blocks(problem)]
    lows, highs = [low for low, _ in found], [high for _, high in found]
    low, high = min(lows), max(highs)
    if low > high:
        return None
    first, last = logit(np.array([low, high])).tolist()
    return first, last


def _inner_range(p: FloatArray) -> tuple[float, float]:
    inside = (p > 0) & (p < 1)
    low = np.min(p, where=inside, initial=1.0)
    return float(low), float(np.max(p, where=inside, initial=0.0))


def _place_blocks(problem: Problem) -> Iterator[FloatArray]:
    if isinstance(problem, OnProbabilities | OnLogits):
        place, _ = _pooled(problem.sketch)
        yield place[problem.sketch.table.rows > 0]
        return
    for p, _, _ in problem.blocks():
        yield p


def _outcome_sums(problem: Problem, cell_of: CellOf, n_cells: int) -> FloatArray:
    """Return the sums of 0/1 outcomes that count once each, for which two suffice."""
    count, pred = np.zeros(2 * n_cells), np.zeros(2 * n_cells)
    for p, y, _ in problem.blocks():
        place = cell_of(p) + n_cells * (y != 0)
        count += np.bincount(place, minlength=2 * n_cells)
        pred += np.bincount(place, p, minlength=2 * n_cells)
    residual = np.repeat([0.0, 1.0], n_cells) * count - pred
    # Cells are narrow: residuals of one outcome are nearly equal there.
    squared = np.divide(residual**2, count, out=np.zeros(2 * n_cells), where=count > 0)
    return np.stack((count, count, pred, residual, squared)).reshape(N_SUMS, 2, n_cells)


def _row_sums(problem: Problem, cell_of: CellOf, n_cells: int) -> FloatArray:
    sums = np.zeros((N_SUMS, 2 * n_cells))
    for p, y, given in problem.blocks():
        w = np.ones(len(p)) if given is None else given
        place, part = cell_of(p) + n_cells * (y > p), w * (y - p)
        for total, value in zip(sums, (w, w * w, w * p, part, part * part), strict=True):
            total += np.bincount(place, value, minlength=2 * n_cells)
    return sums.reshape(N_SUMS, 2, n_cells)


def _sketch_sums(sketch: Sketch, cell_of: CellOf, n_cells: int) -> FloatArray:
    """Return the sums of a sketch's cells, each at its centre.

    A sketch knows soft rows only as weight on either outcome: as if outcomes had been drawn, which
    has more noise than they have.
    """
    place, pred = _pooled(sketch)
    weight, squares = sketch.table.weight, sketch.table.squares
    total: FloatArray = weight.sum(axis=0)
    share = np.divide(squares, total, out=np.zeros_like(total), where=total > 0)
    cell, sums = cell_of(place), np.zeros((N_SUMS, 2, n_cells))
    for side in (0, 1):
        w, squared = weight[side], weight[side] * share
        residual = side * w - pred[side]
        mean = np.divide(residual, w, out=np.zeros_like(w), where=w > 0)
        values = (w, squared, pred[side], residual, squared * mean**2)
        for sum_, value in zip(sums[:, side], values, strict=True):
            sum_ += np.bincount(cell, value, minlength=n_cells)
    return sums


def _pooled(sketch: Sketch) -> tuple[FloatArray, FloatArray]:
    """Return the centre of each cell, and the sums of w p by outcome."""
    n_inner, moments = sketch.n_cells, sketch.table.moments
    p0, p1, p2 = sketch.cells.expansion()
    mass, first, second = moments[:, :, :n_inner]
    inner = p0 * mass + p1 * first + p2 / 2 * second
    if sketch.cells.size == n_inner:
        return p0, inner
    # Beyond the reach of logit cells predictions are as good as 0 and 1.
    ends = np.repeat([0.0, 1.0], N_OUTER // 2)
    outer = ends * moments[0, :, n_inner:]
    return np.concatenate((p0, ends)), np.concatenate((inner, outer), axis=1)
