"""Windows: the weight of each narrow cell of scores at each point of a curve.

Every curve is a ratio of two sums over windows, sum k w y / sum k w. What a band needs beyond that
are sums of squares, which its noise has for variance, and how far windows overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import numpy as np
from scipy.sparse import csr_array

from calibrant._base import FloatArray
from calibrant.curves.curve import Curve
from calibrant.data import validation
from calibrant.data.binning import Bins, UniformBins
from calibrant.data.problem import CellOf, Index, Problem
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError
from calibrant.inference.intervals import Cells, Clusters
from calibrant.measures.binned import BinCells
from calibrant.numerics import smoothing
from calibrant.numerics.probability import (
    max_proportion,
    min_proportion,
    pointwise_tail,
    proportion_lower,
    proportion_upper,
    rice_tail,
    sidak_tail,
    student_tail,
)
from calibrant.numerics.smoothing import Axis, Kernel

# Where a Gaussian has nothing left.
_REACH = 8.6


class Windows(Protocol):
    """Sums over the cells in each window; (..., cells) becomes (..., windows)."""

    def sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k v in each window."""

    def square_sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k^2 v in each window."""


@dataclass(frozen=True, eq=False)
class Spans:
    """Windows that hold the cells from `start` up to `end`, whole."""

    start: Index
    end: Index

    def sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of v in each span."""
        # Span by span: differences of running sums would lose light rows among heavy ones.
        padded = np.concatenate((of_cells, np.zeros((*of_cells.shape[:-1], 1))), axis=-1)
        ends = np.stack((self.start, self.end), axis=1).reshape(-1)
        return np.asarray(np.add.reduceat(padded, ends, axis=-1)[..., ::2])

    square_sums = sums


@dataclass(frozen=True, eq=False)
class KernelWindows:
    """A kernel around each of some points.

    Attributes
    ----------
    shares
        The weight of each cell in each window: a sparse matrix, one row per window.
    """

    shares: csr_array

    @classmethod
    def around(
        cls, t: FloatArray, score: FloatArray, scale: float, kernel: Kernel
    ) -> KernelWindows:
        """Return a kernel's windows around points t of [0, 1], mirrored at both ends.

        Cells divide [0, 1] evenly and lie at their mean `score`. In cosines the mirrored kernel is

            K(t, s) = (k(t - s) + k(t + s)) / 2,    k(d) = 1 + 2 sum_j m_j cos(pi j d),

        m_j being its multipliers: an even function of period 2, tabled over half a period.
        """
        n_cells = len(score)
        width = min(int(2 * _REACH * scale * n_cells) + 2, n_cells)
        first = np.clip(((t - _REACH * scale) * n_cells).astype(np.intp), 0, n_cells - width)
        cell = first[:, None] + np.arange(width)
        table = _kernel_table(scale, kernel)
        s, at = score[cell], t[:, None]
        shares = (_looked_up(table, np.abs(at - s)) + _looked_up(table, 1 - np.abs(1 - at - s))) / 2
        ends = width * np.arange(len(t) + 1)
        matrix = (shares.reshape(-1), cell.reshape(-1), ends)
        return cls(csr_array(matrix, shape=(len(t), n_cells)))

    def sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k v in each window."""
        return np.asarray((self.shares @ of_cells.T).T)

    def square_sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k^2 v in each window."""
        return np.asarray((self._squares @ of_cells.T).T)

    def arcs(self, variance: FloatArray) -> FloatArray:
        """Return the angle between the noise of each window and that of the next.

        Noise in the same rows has angle 0, in different rows a right angle.
        """
        own = self.square_sums(variance)
        shared = self.shares[:-1].multiply(self.shares[1:]) @ variance
        # Each by itself: the product of two may be beyond all numbers.
        root = np.sqrt(own)
        scale = root[:-1] * root[1:]
        cosines = np.divide(shared, scale, out=np.ones_like(scale), where=scale > 0)
        return np.asarray(np.arccos(np.minimum(cosines, 1.0)))

    @cached_property
    def _squares(self) -> csr_array:
        return self.shares.power(2)


def _kernel_table(scale: float, kernel: Kernel) -> FloatArray:
    modes = smoothing.n_modes(scale / kernel.roughness)
    multipliers = smoothing.filtered(np.ones(modes + 1), scale, kernel.multiplier)
    # What is left of waves where a compact kernel ends is no weight.
    return np.maximum(
        smoothing.series_values(multipliers, smoothing.grid_points(scale, modes)), 0.0
    )


def _looked_up(table: FloatArray, distance: FloatArray) -> FloatArray:
    """Return a table over [0, 1] at distances, linear between its points."""
    place = distance * (len(table) - 1)
    left = np.minimum(place.astype(np.intp), len(table) - 2)
    at_left = table[left]
    return np.asarray(at_left + (table[left + 1] - at_left) * (place - left))


# Effective sample sizes of the windows of a curve.
#
# A weighted proportion m = sum k w y / sum k w whose noise has variance V has the effective sample
# size n = m(1 - m) / V: a plain proportion of so many rows has the same variance. For 0/1 outcomes of
# independent rows that is (sum k w)^2 / sum (k w)^2. Soft labels, whose noise is known from residuals
# alone, often have a larger one than there are rows; clusters have a smaller one (Korn and Graubard,
# 1998).


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """The weight and the outcomes of each bundle of clusters in each cell, (bundles, cells)."""

    weight: FloatArray
    true: FloatArray
    n_clusters: int

    @classmethod
    def gather(
        cls, problem: Problem, cell_of: CellOf, n_cells: int, clusters: Clusters
    ) -> ClusterSums:
        """Gather them in one pass."""
        n_bundles, start = int(clusters.bundle.max()) + 1, 0
        sums = np.zeros((2, n_bundles * n_cells))
        for p, y, given in problem.rows.blocks():
            rows = slice(start, start + len(p))
            start = rows.stop
            w = clusters.sign[rows] if given is None else given * clusters.sign[rows]
            place = clusters.bundle[rows] * n_cells + cell_of(p)
            np.add.at(sums[0], place, w)
            np.add.at(sums[1], place, w * y)
        weight, true = sums.reshape(2, n_bundles, n_cells)
        return cls(weight, true, clusters.n)

    def design_effect(self, moved: FloatArray, variance: FloatArray) -> FloatArray:
        """Return how much more the noise of windows varies than independent rows' would.

        `moved` holds the residuals of each bundle in each window, (bundles, windows), and
        `variance` the sum of the rows' squared ones. It counts as 1 at least.
        """
        together = np.square(moved).sum(axis=0) * (self.n_clusters / (self.n_clusters - 1))
        effect = np.divide(together, variance, out=np.ones_like(variance), where=variance > 0)
        return np.asarray(np.maximum(effect, 1.0))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Cells seen through windows.

    Attributes
    ----------
    cells, windows
        The rows, and what they count where.
    clusters
        Their clusters, where rows are not independent.
    """

    cells: Cells
    windows: Windows
    clusters: ClusterSums | None = None

    @cached_property
    def weight(self) -> FloatArray:
        """Sum of k w."""
        return self.windows.sums(self.cells.weight)

    @cached_property
    def mean_true(self) -> FloatArray:
        """The proportion of events."""
        cells = self.cells
        pred: FloatArray = cells.sides[2].sum(axis=0)
        return self._mean(cells.residual + pred)

    @cached_property
    def mean_pred(self) -> FloatArray:
        """The proportion of events to expect under perfect calibration."""
        return self._mean(np.asarray(self.cells.sides[2].sum(axis=0)))

    def rows(self, share: FloatArray) -> FloatArray:
        """Return the effective sample size of an observed proportion of events."""
        rows = self.weight**2 / self._squares
        if not self.cells.is_soft and self.clusters is None:
            return rows
        # Half an event and half a non-event more: known not to be 0 or 1.
        near = (share * rows + 0.5) / (rows + 1)
        seen = self._seen_variance(near)
        if self.cells.is_soft:
            rows = near * (1 - near) * self.weight**2 / (seen + self._unseen)
        if self.clusters is None:
            return rows
        moved = self.windows.sums(self.clusters.true)
        moved -= near * self.windows.sums(self.clusters.weight)
        return rows / self.clusters.design_effect(moved, seen)

    def calibrated_rows(self, share: FloatArray) -> FloatArray:
        """Return the effective sample size of the proportion expected under perfect calibration.

        Infinitely many where predictions are certain.
        """
        variance = self.windows.square_sums(self.cells.calibrated_variance)
        if self.cells.is_soft:
            variance = variance + self._unseen
        if self.clusters is not None:
            seen = self.windows.square_sums(self.cells.residual_squared)
            residual = self.clusters.true - self.cells.score * self.clusters.weight
            variance = variance * self.clusters.design_effect(self.windows.sums(residual), seen)
        certain = np.full_like(variance, np.inf)
        total = share * (1 - share) * self.weight**2
        return np.divide(total, variance, out=certain, where=variance > 0)

    @cached_property
    def _squares(self) -> FloatArray:
        """Sum of (k w)^2."""
        return self.windows.square_sums(self.cells.weight_squared)

    @cached_property
    def _unseen(self) -> FloatArray:
        """The most that one row more could add to the variance of soft labels: it lies in [0, 1].

        Without it one soft row, which shows no variance, would be certainty.
        """
        return (self._squares / self.weight) ** 2 / 4

    def _mean(self, of_cells: FloatArray) -> FloatArray:
        return np.clip(self.windows.sums(of_cells) / self.weight, 0.0, 1.0)

    def _seen_variance(self, share: FloatArray) -> FloatArray:
        """Return the sum of (k w)^2 (y - share)^2, from cells narrow enough to have one score."""
        cells, score = self.cells, self.cells.score
        per_weight = np.divide(
            cells.weight_squared, cells.weight, out=np.zeros_like(score), where=cells.weight > 0
        )
        moved = per_weight * cells.residual
        squared = cells.residual_squared + score * (2 * moved + score * cells.weight_squared)
        mixed = moved + score * cells.weight_squared
        total = self.windows.square_sums(squared)
        total += share * (share * self._squares - 2 * self.windows.square_sums(mixed))
        return np.maximum(total, 0.0)


# Bands around the share of events in windows: confidence and consistency.
#
# A confidence band says where the population's curve may lie: at each point the limits of a share
# seen in as many rows as its window is worth. A consistency band says where the curve of a sample
# with these scores would lie if they were calibrated: the shares that such limits would not refuse,
# given the share of events that the window's own predictions expect.

Kind = Literal["confidence", "consistency"]
Limits = tuple[FloatArray, FloatArray]

# More cells than these, for each of a thousand bundles of clusters, would fill the memory.
_MAX_CLUSTER_BINS = 1 << 13
# Points of all curves that are drawn for a band: a tenth of a gigabyte, several times over.
_MOST_DRAWN = 1 << 24


@dataclass(frozen=True, eq=False)
class Band:
    """The band that is asked for.

    Attributes
    ----------
    kind
        "confidence" or "consistency".
    level
        How often it should hold.
    simultaneous
        Whether it should hold for the whole curve, or at each point by itself.
    n_resamples, rng
        How often, and by what, outcomes are drawn where there is no formula.
    clusters
        Which rows belong together, if any do.
    """

    kind: Kind
    level: float
    simultaneous: bool
    n_resamples: int
    rng: Generator
    clusters: Clusters | None = None

    def cluster_sums(self, problem: Problem, cell_of: CellOf, n_cells: int) -> ClusterSums | None:
        """Return the sums of clusters in cells, if there are clusters."""
        if self.clusters is None:
            return None
        return ClusterSums.gather(problem, cell_of, n_cells, self.clusters)

    def tail(self, of_all: Callable[[float], float]) -> float:
        """Return how far out limits lie: for one point, or as `of_all` says for a level."""
        return of_all(self.level) if self.simultaneous else pointwise_tail(self.level)

    def limits(self, evidence: Evidence, share: FloatArray, tail: float) -> Limits:
        """Return the limits of each window's share of events."""
        tails = self.widened(np.full_like(share, tail))
        if self.kind == "confidence":
            rows = evidence.rows(share)
            return proportion_lower(share, rows, tails), proportion_upper(share, rows, tails)
        expected = evidence.mean_pred
        rows = evidence.calibrated_rows(expected)
        return min_proportion(expected, rows, tails), max_proportion(expected, rows, tails)

    def check_draws(self, n_points: int) -> None:
        """Refuse more curves of so many points than there is memory and time for."""
        most = _MOST_DRAWN // n_points
        if self.n_resamples > most:
            raise CalibrantError(
                "must be at most {maximum} for the band of a curve of so many scores",
                argument="n_resamples",
                value=self.n_resamples,
                maximum=most,
            )

    def widened(self, tail: FloatArray) -> FloatArray:
        """Return tails that allow for how few clusters there are."""
        return tail if self.clusters is None else student_tail(tail, self.clusters.n)


def read_band(
    kind: Kind | None,
    problem: Problem,
    level: float,
    simultaneous: bool,
    rng: int | Generator,
    clusters: Any,
    sample_weight: Any,
    n_resamples: int = 1000,
) -> Band | None:
    """Parse a band, or None where none is asked for."""
    level, simultaneous = (
        validation.as_level(level),
        validation.as_flag(simultaneous, "simultaneous"),
    )
    n_resamples = validation.as_resamples(n_resamples)
    generator = read_generator(rng)
    known = Clusters.read(clusters, sample_weight, problem, generator)
    if kind is None:
        return None
    return Band(kind, level, simultaneous, n_resamples, generator, known)


def bin_limits(problem: Problem, bins: Bins, share: FloatArray, band: Band) -> Limits:
    """Return the limits of the share of events in each bin that holds rows."""
    binned = BinCells.of(problem, bins)
    if band.clusters is not None and binned.n_cells > _MAX_CLUSTER_BINS:
        raise CalibrantError(
            "must leave at most {maximum} bins with rows in them where {clusters} is given",
            argument="n_bins",
            value=binned.n_bins,
            hint="use fewer bins",
            maximum=_MAX_CLUSTER_BINS,
        )
    cells = Cells.gather(problem, binned.cell_of, binned.n_cells)
    filled = cells.weight.reshape(-1, binned.per_bin).any(axis=1)
    start = binned.per_bin * np.flatnonzero(filled)
    clusters = band.cluster_sums(problem, binned.cell_of, binned.n_cells)
    evidence = Evidence(cells, Spans(start, start + binned.per_bin), clusters)
    return band.limits(evidence, share, band.tail(partial(sidak_tail, n=len(start))))


# Bands around kernel estimates: from cells a fraction of the bandwidth wide, whatever n.

# Rows gathered in cells a fifth of the bandwidth wide are as good as smoothed by 0.2% more.
_CELLS_PER_SCALE, _FEWEST_CELLS = 5, 64
# More cells than these, for each of a thousand bundles of clusters, would fill the memory.
_MAX_CLUSTER_CELLS = 5000


@dataclass(frozen=True)
class Grid:
    """Even cells over the interval that holds the scores."""

    axis: Axis
    n_cells: int

    @classmethod
    def under(cls, curve: Curve, axis: Axis) -> Grid:
        """Return cells narrow enough for a curve's bandwidth."""
        wanted = _CELLS_PER_SCALE * axis.length / curve.bandwidth
        return cls(axis, max(round(wanted), _FEWEST_CELLS))

    def unit(self, p: FloatArray) -> FloatArray:
        """Return scores as fractions of the interval."""
        return np.clip(self.axis.fractions(p), 0.0, 1.0)

    def cell_of(self, p: FloatArray) -> Index:
        """Return the cell of each score."""
        return self._bins.index(self.unit(p))

    @cached_property
    def _bins(self) -> UniformBins:
        return UniformBins.of(self.n_cells)

    def windows(self, curve: Curve, cells: Cells, kernel: Kernel) -> KernelWindows:
        """Return the kernel around each point of a curve where that is known."""
        t, scale = curve.x[~np.isnan(curve.y)], curve.bandwidth / self.axis.length
        return KernelWindows.around(self.unit(t), self.unit(cells.score), scale, kernel)


def kernel_limits(problem: Problem, curve: Curve, axis: Axis, kernel: Kernel, band: Band) -> Limits:
    """Return the limits of the share of events around each point; nan where that is not known."""
    grid = Grid.under(curve, axis)
    if band.clusters is not None and grid.n_cells > _MAX_CLUSTER_CELLS:
        least = _CELLS_PER_SCALE * axis.length / _MAX_CLUSTER_CELLS
        raise CalibrantError(
            "must be at least {minimum:.2g} where {clusters} is given",
            argument="bandwidth",
            value=curve.bandwidth,
            found="{given:.2g}",
            minimum=least,
            given=curve.bandwidth,
        )
    cells = Cells.gather(problem, grid.cell_of, grid.n_cells)
    windows = grid.windows(curve, cells, kernel)
    clusters = band.cluster_sums(problem, grid.cell_of, grid.n_cells)
    tail = band.tail(lambda level: rice_tail(level, windows.arcs(cells.weight_squared)))
    known = ~np.isnan(curve.y)
    lower, upper = np.full_like(curve.x, np.nan), np.full_like(curve.x, np.nan)
    evidence = Evidence(cells, windows, clusters)
    lower[known], upper[known] = band.limits(evidence, curve.y[known], tail)
    return lower, upper
