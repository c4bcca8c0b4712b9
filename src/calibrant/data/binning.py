"""Bins over [0, 1]: where they lie and which bin holds a score.

One rule decides which bin or cell holds a score, here and in every engine that has its own
translation of it (compiled passes, SQL, torch): the score is compared with the edges in double
precision, and bin k holds ``edges[k] <= p < edges[k+1]``, the last bin also 1. Truncating
``p * n_bins`` would be wrong: 0.29 * 100 is 28.999999999999996, and forecasts rounded to hundredths
lie exactly on edges. Uniform edges are the correctly rounded k/B.

A *layout* (:class:`Uniform`, :class:`EqualMass`) makes *bins* of a problem, given their number; a
*binning* also knows their number, a rule for it (:func:`square_root`, :func:`largest_monotone`,
:func:`leave_one_out`), or :class:`Fixed` edges. The order of rows never matters.

An *assignment* gives the weight with which a row belongs to each bin: bins assign each row to one
of them; :class:`Convex` splits a row between the two bins whose centres enclose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray
from calibrant.data.problem import Index, Pooled, Problem

Side = Literal["left", "right"]

_EPS = float(np.finfo(np.float64).eps)
_FEW_BINS = 1000
# Points of the grid from which the bins of many scores are found, a power of two, and the maximum
# number of edges between two points for which this is faster than a binary search.
_GRID, _MOST_EDGES = 1 << 14, 4
# The best count for squared loss grows like n^(1/3): counts up to ten times that are tried.
_CV_REACH = 10
# The number of counts of the sweep that are tried at a time.
_SWEEP_BATCH = 1024
# Equal means or losses differ by less than this, by rounding.
_SLACK = 1e-12
# Below every mean outcome, so that an empty bin never hides a fall or makes one.
_EMPTY = -1.0


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins between increasing edges from 0 to 1, with the widths that width-weighting uses.

    With ``closed="left"`` bin k holds ``edges[k] <= p < edges[k+1]`` and the last bin also 1; with
    ``closed="right"`` it holds ``edges[k] < p <= edges[k+1]`` and the first bin also 0.
    """

    edges: FloatArray
    widths: FloatArray
    closed: Side = "left"

    @property
    def n_bins(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    @property
    def centres(self) -> FloatArray:
        """The midpoints of the bins."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    @classmethod
    def starting_at(cls, starts: FloatArray) -> Bins:
        """Return bins that begin at increasing scores; the first also holds all scores below."""
        edges = np.concatenate(([0.0], starts[1:], [1.0]))
        return cls(edges, np.diff(edges))

    def divided(self, n_parts: int) -> Bins:
        """Return bins each of which is one of `n_parts` of equal width of these."""
        parts = np.arange(n_parts) / n_parts
        inside = self.edges[:-1, None] + np.diff(self.edges)[:, None] * parts
        edges = np.append(inside.reshape(-1), self.edges[-1])
        return Bins(edges, np.diff(edges), self.closed)

    @property
    def is_uniform(self) -> bool:
        """Whether bin k of B holds exactly the scores k/B <= p < (k+1)/B, the last one also 1."""
        return False

    def index(self, p: FloatArray) -> Index:
        """Return the bin of each score."""
        if self.closed == "right":
            return np.searchsorted(self.edges[1:-1], p, side="left")
        if len(p) < _GRID or self._most_edges > _MOST_EDGES:
            return np.searchsorted(self.edges[1:-1], p, side="right")
        # The product is exact, so that the grid point is at or below the score.
        k = self._bin_of_grid.take((p * _GRID).astype(np.intp))
        following = np.append(self.edges[1:-1], np.inf)
        for _ in range(self._most_edges):
            k += p >= following.take(k)
        return k

    @cached_property
    def _bin_of_grid(self) -> Index:
        """The bin that holds each point of the grid."""
        return np.searchsorted(self.edges[1:-1], np.arange(_GRID + 1) / _GRID, side="right")

    @cached_property
    def _most_edges(self) -> int:
        """The largest number of edges between two neighbouring points of the grid."""
        return int(np.diff(self._bin_of_grid).max())

    def weights(self, p: FloatArray) -> Iterator[tuple[Index, FloatArray | None]]:
        """Yield the one bin that holds each row."""
        yield self.index(p), None

    def starts(self, scores: FloatArray) -> Index:
        """Return where each bin starts among increasing `scores` (first 0, then the cuts)."""
        cuts = np.searchsorted(scores, self.edges[1:-1], side=self.closed)
        return np.concatenate(([0], cuts)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class UniformBins(Bins):
    """Bins of equal width, found by one multiplication and one comparison per row."""

    @staticmethod
    def of(n_bins: int, closed: Side = "left") -> UniformBins:
        """Return `n_bins` bins with edges k / n_bins."""
        # A few bins are kept for the next call: making them takes longer than filling them.
        return (_kept_uniform if n_bins <= _FEW_BINS else _uniform)(n_bins, closed)

    def divided(self, n_parts: int) -> UniformBins:
        return UniformBins.of(self.n_bins * n_parts, self.closed)

    @property
    def is_uniform(self) -> bool:
        return self.closed == "left"

    @cached_property
    def _guard(self) -> FloatArray:
        # The lower edge of each bin (closed left), which a row must have reached to stay in it, or
        # the upper one (closed right), beyond which a row moves on.
        if self.closed == "left":
            return np.concatenate((self.edges[:-1], [np.inf]))
        return self.edges[1:]

    def index(self, p: FloatArray) -> Index:
        # k/B and p*B are each rounded once, so p*B may be on the wrong side of a whole number by a
        # few units in the last place. Scaling the product by more than that makes the error
        # one-sided, and one comparison with the exact edge corrects it.
        if self.closed == "left" and self.n_bins & (self.n_bins - 1) == 0:
            # Products with a power of two are exact.
            return np.minimum((p * self.n_bins).astype(np.intp), self.n_bins - 1)
        if self.closed == "left":
            k = (p * (self.n_bins * (1 + 4 * _EPS))).astype(np.intp)
            k -= p < self._guard.take(k)
        else:
            k = (p * (self.n_bins * (1 - 4 * _EPS))).astype(np.intp)
            k += p > self._guard.take(k)
        return k


def _uniform(n_bins: int, closed: Side) -> UniformBins:
    edges, widths = np.arange(n_bins + 1) / n_bins, np.full(n_bins, 1 / n_bins)
    edges.flags.writeable = widths.flags.writeable = False
    return UniformBins(edges, widths, closed)


_kept_uniform = lru_cache(maxsize=16)(_uniform)


@dataclass(frozen=True, eq=False)
class Convex(Bins):
    """Split each row between the two bins whose centres enclose it.

    A row at c_j <= p <= c_{j+1} gives 1 - t to bin j and t to bin j+1 with
    t = (p - c_j) / (c_{j+1} - c_j); beyond the outer centres the outer bin gets all of it
    (Posocco and Bonnefoy 2021, Definition 5, where the two weights are printed exchanged).
    """

    def weights(self, p: FloatArray) -> Iterator[tuple[Index, FloatArray | None]]:
        """Yield the lower bin with its weight, then the upper bin with the rest."""
        centres = self.centres
        if len(centres) == 1:
            yield np.zeros(p.shape, dtype=np.intp), None
            return
        lower = np.clip(np.searchsorted(centres, p, side="right") - 1, 0, len(centres) - 2)
        left = centres[lower]
        of_upper = np.clip((p - left) / (centres[lower + 1] - left), 0.0, 1.0)
        yield lower, 1 - of_upper
        yield lower + 1, of_upper


@dataclass(frozen=True)
class Fixed:
    """Bins between the caller's own edges."""

    edges: tuple[float, ...]
    closed: Side = "left"

    def bins(self, problem: Problem) -> Bins:
        """Return bins with the given edges."""
        edges = np.array(self.edges)
        return Bins(edges, np.diff(edges), self.closed)


@dataclass(frozen=True)
class Uniform:
    """Bins of equal width 1/B."""

    closed: Side = "left"

    def bins(self, problem: Problem, n_bins: int) -> UniformBins:
        """Return `n_bins` bins with edges k / n_bins."""
        return UniformBins.of(n_bins, self.closed)

    def cut(self, pooled: Pooled, i: npt.ArrayLike, n_bins: npt.ArrayLike) -> Index:
        """Return how many distinct scores lie below cut `i` of `n_bins`."""
        i, n_bins = np.asarray(i), np.asarray(n_bins)
        inner = np.searchsorted(pooled.score, i / n_bins, side=self.closed)
        # The outer edges belong to the outer bins whichever side is closed.
        return np.where(i == 0, 0, np.where(i == n_bins, len(pooled.score), inner))


@dataclass(frozen=True)
class EqualMass:
    """Bins of nearly equal weight, cut between distinct scores.

    Cut i lies midway between the neighbouring distinct scores at which the cumulative weight is
    nearest to i W / B (the lower one when two are equally near); equal cuts merge, so ties can
    leave fewer bins. No score sits on a cut, so the closed side is irrelevant.
    """

    def bins(self, problem: Problem, n_bins: int) -> Bins:
        """Return at most `n_bins` bins."""
        pooled = problem.rows.pooled
        cuts = np.unique(self.cut(pooled, np.arange(1, n_bins), n_bins))
        cuts = cuts[(cuts > 0) & (cuts < len(pooled.score))]
        below, above = pooled.score[cuts - 1], pooled.score[cuts]
        middle = (below + above) / 2
        # Between two neighbouring doubles there is no middle: cut at the upper one.
        edges = np.concatenate(([0.0], np.where(middle > below, middle, above), [1.0]))
        # Width runs from a bin's first score to the next bin's (Arrieta-Ibarra et al. 2022).
        firsts = np.concatenate((pooled.score[:1], above, [1.0]))
        return Bins(edges, np.diff(firsts), "left")

    def cut(self, pooled: Pooled, i: npt.ArrayLike, n_bins: npt.ArrayLike) -> Index:
        """Return how many distinct scores lie below cut `i` of `n_bins`."""
        return nearest_cuts(pooled.running_weight, i, n_bins)


# A rule for where bins lie, given their number; and one for their number.
Layout = Uniform | EqualMass
CountRule = Callable[[Problem, Layout], int]


@dataclass(frozen=True)
class BinsByCount:
    """Bins of a layout, in a number that is given or chosen by a rule."""

    layout: Layout
    count: int | CountRule

    def bins(self, problem: Problem) -> Bins:
        """Return the bins of a problem."""
        count = self.count if isinstance(self.count, int) else self.count(problem, self.layout)
        return self.layout.bins(problem, count)


# A complete rule for bins over a problem.
Binning = Fixed | BinsByCount


def nearest_cuts(running: FloatArray, i: npt.ArrayLike, n_bins: npt.ArrayLike) -> Index:
    """Return how many values lie below cut `i` of `n_bins` of nearly equal weight.

    `running` is the weight below each of some increasing values, and at last all of it.
    """
    # Twice the midpoints, which are exact for whole weights.
    midpoints = running[:-1] + running[1:]
    # Lowered by more than rounding, so that of two equally near cuts the lower one is taken.
    targets = 2 * np.asarray(i) * (running[-1] * (1 - 1e-12)) / np.asarray(n_bins)
    return np.asarray(np.searchsorted(midpoints, targets, side="left"))


def square_root(problem: Problem, layout: Layout) -> int:
    """Return floor(sqrt(n)), n counting rows, not weight (Posocco and Bonnefoy 2021)."""
    return int(np.sqrt(problem.n))


def largest_monotone(problem: Problem, layout: Layout) -> int:
    """Return the largest count, up to n, at which the means of y over bins never decrease.

    After Roelofs et al. (2022), whose loop counts up and stops at the first failure; bins can be
    monotone again beyond it. Empty bins are ignored. A pair of bins out of order usually stays so
    as the count falls, so each count is first tried on the bins near the last such pair.
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
    """Return the count whose bin means predict left-out rows with the smallest squared loss.

    Counts from 1 to 10 n^(1/3) are tried; the smallest of equals is taken. A row alone in its bin
    is predicted by the mean of all other rows.
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
    # Rows have weight 1 here.
    rows, ones = np.diff(pooled.running_weight[cuts]), np.diff(pooled.running_true[cuts])
    shared = rows > 1
    n, t = rows[shared], ones[shared]
    loss = np.sum((n / (n - 1)) ** 2 * (t - t * t / n))
    alone = ones[rows == 1]
    others = (ones.sum() - alone) / max(problem.n - 1, 1)
    return float(loss + np.sum((alone - others) ** 2))


def _loss_by_rows(problem: Problem) -> Callable[[Bins], float]:
    """Return the leave-one-out loss of weighted or soft rows as a function of bins."""
    p, y, w = problem.rows.columns()
    order = np.argsort(p, kind="stable")
    p, y, w = p[order], y[order], w[order]
    true, all_weight, all_true = w * y, w.sum(), (w * y).sum()

    def loss(bins: Bins) -> float:
        first = np.unique(bins.starts(p))
        first = first[first < len(p)]
        rows = np.diff(first, append=len(p))
        # A row alone in its bin is compared with the mean of all others.
        of_bin = np.where(rows == 1, all_weight, np.add.reduceat(w, first))
        true_of_bin = np.where(rows == 1, all_true, np.add.reduceat(true, first))
        rest = np.repeat(of_bin, rows) - w
        others = (np.repeat(true_of_bin, rows) - true) / np.where(rest > 0, rest, 1.0)
        return float(w @ (y - others) ** 2)

    return loss
