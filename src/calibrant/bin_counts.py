"""Rules that choose the number of bins from the data.

Each rule takes a problem and a layout and returns a count: :func:`square_root` ("sqrt"),
:func:`largest_monotone` ("sweep") and :func:`leave_one_out` ("cv"). They look at the rows as a
set: order never matters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray
from calibrant.binning import Bins, Layout
from calibrant.problem import Index, Pooled, Problem

# The best count for squared loss grows like n^(1/3); ten times that leaves room on both sides.
_CV_REACH = 10
# How many counts of the sweep are looked at in one go.
_SWEEP_BATCH = 1024
# What rounding may put between means or losses that are equal.
_SLACK = 1e-12
# Below every mean outcome, so that an empty bin never hides a fall or makes one.
_EMPTY = -1.0


def square_root(problem: Problem, layout: Layout) -> int:
    """Return floor(sqrt(n)), n counting rows, not weight (Posocco and Bonnefoy 2021)."""
    return int(np.sqrt(problem.n))


def largest_monotone(problem: Problem, layout: Layout) -> int:
    """Return the largest count, up to n, at which the means of y over bins never decrease.

    After Roelofs et al. (2022), whose loop counts up and stops at the first failure; bins can be
    monotone again beyond it. Empty bins are passed over. A pair of bins seen out of order usually
    stays so as the count falls, so each count is first tried on the bins near the last such pair.
    """
    pooled = problem.rows.pooled
    counts = np.arange(problem.n, 1, -1)
    places = np.array([0.0, 0.0])
    while len(counts):
        batch = counts[:_SWEEP_BATCH, None]
        near = (places * batch).astype(np.intp)[:, :, None] + np.arange(-1, 2)
        near = np.sort(np.clip(near.reshape(len(batch), -1), 0, batch - 1), axis=1)
        survives = ~_decreases(_means(pooled, layout, near, batch)).any(axis=1)
        if not survives.any():
            counts = counts[_SWEEP_BATCH:]
            continue
        counts = counts[np.argmax(survives) :]
        means = _means(pooled, layout, np.arange(counts[0]), counts[0])
        if not _decreases(means).any():
            return int(counts[0])
        places = (_worst_pair(means) + 0.5) / counts[0]
        counts = counts[1:]
    return 1


def leave_one_out(problem: Problem, layout: Layout) -> int:
    """Return the count whose bin means predict left-out rows with the least squared loss.

    Counts from 1 to 10 n^(1/3) compete; the smallest of equals wins. A row alone in its bin is
    predicted by the mean of all other rows.
    """
    reach = min(problem.n, int(np.ceil(_CV_REACH * problem.n ** (1 / 3))))
    by_rows = problem.is_weighted or problem.is_soft
    loss = _loss_by_rows(problem) if by_rows else partial(_loss_by_counts, problem)
    losses = [loss(layout.bins(problem, n_bins)) for n_bins in range(1, reach + 1)]
    return 1 + int(np.argmax(np.array(losses) <= min(losses) + _SLACK * losses[0]))


def _means(pooled: Pooled, layout: Layout, i: Index, n_bins: npt.ArrayLike) -> FloatArray:
    """Return the mean outcome of bin i of n_bins, -1 where it is empty."""
    start, stop = layout.cut(pooled, i, n_bins), layout.cut(pooled, i + 1, n_bins)
    weight, true = pooled.running_weight, pooled.running_true
    mass = weight[stop] - weight[start]
    filled = stop > start
    return np.where(filled, (true[stop] - true[start]) / np.where(filled, mass, 1.0), _EMPTY)


def _decreases(means: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell which bins lie below one before them."""
    return np.asarray((means < np.maximum.accumulate(means, axis=-1) - _SLACK) & (means != _EMPTY))


def _worst_pair(means: FloatArray) -> Index:
    """Return the two bins most out of order, the earlier (higher) one first."""
    peak = np.maximum.accumulate(means)
    drop = np.where(means != _EMPTY, peak - means, 0.0)
    later = int(np.argmax(drop))
    return np.array([np.argmax(means == peak[later]), later], dtype=np.intp)


def _loss_by_counts(problem: Problem, bins: Bins) -> float:
    """Leave-one-out loss of 0/1 outcomes of weight 1, from counts alone.

    In a bin of n rows, each residual against the mean of the others is n / (n - 1) times the
    residual against the mean of all.
    """
    pooled = problem.rows.pooled
    cuts = np.append(bins.starts(pooled.score), len(pooled.score))
    # Rows count once each here, so their number is their weight.
    rows, ones = np.diff(pooled.running_weight[cuts]), np.diff(pooled.running_true[cuts])
    shared = rows > 1
    n, t = rows[shared], ones[shared]
    loss = np.sum((n / (n - 1)) ** 2 * (t - t * t / n))
    alone = ones[rows == 1]
    others = (ones.sum() - alone) / max(problem.n - 1, 1)
    return float(loss + np.sum((alone - others) ** 2))


def _loss_by_rows(problem: Problem) -> Callable[[Bins], float]:
    """Return what gives the leave-one-out loss of weighted or soft rows, which it sorts once."""
    p, y, w = problem.rows.columns()
    order = np.argsort(p, kind="stable")
    p, y, w = p[order], y[order], w[order]
    true, all_weight, all_true = w * y, w.sum(), (w * y).sum()

    def loss(bins: Bins) -> float:
        first = np.unique(bins.starts(p))
        first = first[first < len(p)]
        rows = np.diff(first, append=len(p))
        # A row alone in its bin is judged against everybody else's mean.
        of_bin = np.where(rows == 1, all_weight, np.add.reduceat(w, first))
        true_of_bin = np.where(rows == 1, all_true, np.add.reduceat(true, first))
        rest = np.repeat(of_bin, rows) - w
        others = (np.repeat(true_of_bin, rows) - true) / np.where(rest > 0, rest, 1.0)
        return float(w @ (y - others) ** 2)

    return loss
