"""Bands around reliability curves: confidence and consistency.

A confidence band says where the population's curve may lie: at each point the Clopper-Pearson
limits of a proportion in a sample of the effective size of its window. A consistency band says
where the curve of a sample with these scores would lie if they were calibrated: the proportions
whose limits hold the expectation from the predictions in the window.

Windows. Every curve is a ratio of two sums over windows of narrow cells of scores, m = sum k w y /
sum k w, with k = 1 in a bin and the kernel elsewhere. A band needs the variance V of its noise, a
sum of squares, and how far windows overlap. The effective sample size is n = m(1 - m) / V: a plain
proportion of n rows has the same variance. For 0/1 outcomes of independent rows that is
(sum k w)^2 / sum (k w)^2. Soft labels, whose noise is known from residuals alone, often have a
larger one than there are rows; clusters have a smaller one (Korn and Graubard, 1998).

Smoothed residuals. Such a curve is t + m - sum k w p / sum k w: the limits of m, moved by what is
known. Its windows may be wide, and hold outcomes whose probabilities q differ: V = sum (k w)^2
q (1 - q) / (sum k w)^2, with q the curve itself at each cell. As no q is known to be 0, two events
and two other rows are added to each (Agresti and Coull, 1998): with n' = (sum k w)^2 / sum (k w)^2
and v the mean of q (1 - q) weighted by (k w)^2,

    n = n' (n'^2 m (1 - m) + 2 n' + 4) / (n'^2 v + 2 n' + 4).

Undersmoothing. At a cross-validated bandwidth the curve is about as far from the truth by smoothing
as by noise, and a band at that bandwidth, made for what the smoothed population would show, misses
the truth much more often than it says. The confidence band of such a curve is of a third of the
bandwidth, where the bias of smoothing is a tenth, and is widened to hold the curve.

Isotonic curves. If the probability of an event does not decrease as scores grow, the upper limit
from the rows of any span of scores holds for every score up to the span, and the lower limit for
every score from the span on. Over spans of many lengths, the tail divided among them, such limits
make a band that holds for every non-decreasing probability at every n (Dimitriadis, Dümbgen, Henzi,
Puke and Ziegel, 2023). They take all spans; spans of 1, 2, 4, ... cells that start at every quarter
of their length lose little and, being fewer, leave each other more of the tail. At a single score
only spans that start or end there count. The consistency band is that of the isotonic regressions
of outcomes drawn from the predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import Bins, UniformBins
from calibrant.data.problem import CellOf, Index, Pooled, Problem
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError
from calibrant.inference.cell_noise import Cells, Clusters
from calibrant.inference.fitted_curve import CurveNoise, FittedCurve
from calibrant.inference.intervals import Question
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
    weibull_quantile,
)
from calibrant.numerics.regression import isotonic_fit
from calibrant.numerics.smoothing import Axis, Kernel

if TYPE_CHECKING:
    from calibrant.curves.reliability import Curve

Kind = Literal["confidence", "consistency"]
Limits = tuple[FloatArray, FloatArray]

# Scales after which nothing is left of a Gaussian.
_REACH = 8.6
# The bandwidth that predicts best smooths bends away by about as much as noise adds. A band at this
# fraction of it has a tenth of that bias, and is 1.6 times as wide: see docs/papers/curve.md.
_FINER = 1 / 3
# Rows gathered in cells a fifth of the bandwidth wide are as good as smoothed by 0.2% more.
_CELLS_PER_SCALE, _MIN_CELLS = 5, 64
# More cells than these, for each of a thousand bundles of clusters, would fill the memory.
_MAX_CLUSTER_BINS, _MAX_CLUSTER_CELLS = 1 << 13, 5000
# Cells of an isotonic band; spans of one length start this many times within it.
_MAX_ISOTONIC_CELLS, _OVERLAP = 512, 4
# Events, and rows without one, that are added where probabilities within a window differ.
_ADDED = 2.0
# Points of all curves that are drawn for a band: a tenth of a gigabyte, several times over.
_MAX_DRAWN = 1 << 24


@dataclass(frozen=True, eq=False)
class Band:
    """The options of a band."""

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

    def limits(
        self,
        windows: WindowSums,
        proportion: FloatArray,
        simultaneous_tail: Callable[[float], float],
    ) -> Limits:
        """Return the limits of the proportion of events in each window."""
        tail = simultaneous_tail if self.simultaneous else pointwise_tail
        tails = self.widened(np.full_like(proportion, tail(self.level)))
        if self.kind == "confidence":
            rows = windows.effective_rows(proportion)
            return (
                proportion_lower(proportion, rows, tails),
                proportion_upper(proportion, rows, tails),
            )
        expected = windows.mean_pred
        rows = windows.calibrated_rows(expected)
        return min_proportion(expected, rows, tails), max_proportion(expected, rows, tails)

    def widened(self, tail: FloatArray) -> FloatArray:
        """Return tails that allow for the number of clusters."""
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
) -> tuple[Band | None, Clusters | None]:
    """Parse the options of a band, None where none is asked for, and the clusters of rows."""
    if kind is not None:
        validation.check_choice(kind, "band", get_args(Kind))
    level = validation.as_level(level)
    simultaneous = validation.as_flag(simultaneous, "simultaneous")
    n_resamples = validation.as_resamples(n_resamples)
    generator = read_generator(rng)
    known = Clusters.read(clusters, sample_weight, problem, generator)
    if kind is None:
        return None, known
    return Band(kind, level, simultaneous, n_resamples, generator, known), known


def bin_limits(problem: Problem, bins: Bins, proportion: FloatArray, band: Band) -> Limits:
    """Return the limits of the proportion of events in each bin that holds rows."""
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
    windows = WindowSums(cells, Spans(start, start + binned.per_bin), clusters)
    return band.limits(windows, proportion, partial(sidak_tail, n=len(start)))


def kernel_limits(
    problem: Problem, curve: Curve, axis: Axis, kernel: Kernel, is_finer: bool, band: Band
) -> Limits:
    """Return the limits of the proportion of events around each point; nan where it is unknown.

    Where residuals are smoothed, the difference between a point and the mean prediction around it
    is added. Cells are a fraction of the bandwidth wide, whatever n. A confidence band may be of a
    finer bandwidth than the curve, see `_FINER`.
    """
    is_finer &= band.kind == "confidence"
    width = _band_width(problem, curve.bandwidth, axis.length, is_finer, band)
    n_cells = max(round(_CELLS_PER_SCALE * axis.length / width), _MIN_CELLS)
    bins = UniformBins.of(n_cells)

    def fraction(p: FloatArray) -> FloatArray:
        return np.clip(axis.fractions(p), 0.0, 1.0)

    def cell_of(p: FloatArray) -> Index:
        return bins.index(fraction(p))

    cells = Cells.gather(problem, cell_of, n_cells)
    known, scale = ~np.isnan(curve.y), width / axis.length
    around = partial(KernelWindows.around, score=fraction(cells.score), scale=scale, kernel=kernel)
    limits = np.full((2, len(curve.x)), np.nan)
    # Where a finer window holds no rows, nothing is known.
    limits[:, known] = np.array([[0.0], [1.0]])
    known[known] = around(fraction(curve.x[known])).square_sums(cells.weight_squared) > 0
    t, y, of_residuals = curve.x[known], curve.y[known], curve.of_residuals
    place = fraction(t)
    kernels = around(place)
    fitted = np.interp(fraction(cells.score), place, y) if of_residuals else None
    windows = WindowSums(cells, kernels, band.cluster_sums(problem, cell_of, n_cells), fitted)
    limits[:, known] = band.limits(
        windows,
        windows.mean_true if of_residuals else y,
        lambda level: rice_tail(level, kernels.arcs(windows.variance)),
    )
    if of_residuals:
        moved = t - windows.mean_pred
        if not is_finer:
            # That of the curve itself where it is not cut off: cells differ a little from rows.
            moved = np.where((y > 0) & (y < 1), y - windows.mean_true, moved)
        limits[:, known] = np.clip(limits[:, known] + moved, 0.0, 1.0)
        if band.kind == "confidence":
            # Rows gathered in cells are not smoothed quite as the curve is.
            limits[0], limits[1] = np.fmin(limits[0], curve.y), np.fmax(limits[1], curve.y)
    return limits[0], limits[1]


def _band_width(problem: Problem, width: float, length: float, is_finer: bool, band: Band) -> float:
    """Return the bandwidth of the band of a curve."""
    smallest = problem.finest_scale
    if band.clusters is not None:
        smallest = max(smallest, _CELLS_PER_SCALE * length / _MAX_CLUSTER_CELLS)
        if width < smallest:
            raise CalibrantError(
                "must be at least {minimum:.2g} where {clusters} is given",
                argument="bandwidth",
                value=width,
                found="{given:.2g}",
                minimum=smallest,
                given=width,
            )
    return min(width, max(_FINER * width, smallest)) if is_finer else width


def loess_limits(problem: Problem, fitted: FittedCurve, shown: Index, band: Band) -> Limits:
    """Return the limits of a local regression at some of its scores, by standard errors."""
    question = Question(band.level, band.n_resamples, band.rng, band.clusters)
    noise = CurveNoise.of(fitted, problem, question)
    (tail,) = band.widened(np.array([pointwise_tail(band.level)]))
    reach = noise.critical(band.level) if band.simultaneous else -float(ndtri(tail))
    middle, sd = fitted.score[shown], noise.calibrated_sd
    if band.kind == "confidence":
        middle, sd = middle + fitted.deviation[shown], noise.sd
    sd = np.interp(fitted.score[shown], fitted.cells.score, sd)
    return np.clip(middle - reach * sd, 0.0, 1.0), np.clip(middle + reach * sd, 0.0, 1.0)


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
    """A kernel around each of some points: a sparse matrix (windows, cells) of weights k."""

    weights: csr_array

    @classmethod
    def around(
        cls, t: FloatArray, score: FloatArray, scale: float, kernel: Kernel
    ) -> KernelWindows:
        """Return a kernel's windows around points t of [0, 1], reflected at both ends.

        Cells divide [0, 1] evenly and lie at their mean `score`. In cosines the reflected kernel is

            K(t, s) = (k(t - s) + k(t + s)) / 2,    k(d) = 1 + 2 sum_j m_j cos(pi j d),

        m_j being its multipliers: an even function of period 2, tabulated over half a period.
        """
        n_cells = len(score)
        width = min(int(2 * _REACH * scale * n_cells) + 2, n_cells)
        first = np.clip(((t - _REACH * scale) * n_cells).astype(np.intp), 0, n_cells - width)
        cell = first[:, None] + np.arange(width)
        s, at = score[cell], t[:, None]
        table = _kernel_table(scale, kernel)
        places = np.linspace(0.0, 1.0, len(table))
        near, reflected = (
            np.interp(distance, places, table)
            for distance in (np.abs(at - s), 1 - np.abs(1 - at - s))
        )
        weights = (near + reflected) / 2
        ends = width * np.arange(len(t) + 1)
        matrix = (weights.reshape(-1), cell.reshape(-1), ends)
        return cls(csr_array(matrix, shape=(len(t), n_cells)))

    def sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k v in each window."""
        return np.asarray((self.weights @ of_cells.T).T)

    def square_sums(self, of_cells: FloatArray) -> FloatArray:
        """Return the sum of k^2 v in each window."""
        return np.asarray((self._squares @ of_cells.T).T)

    def arcs(self, variance: FloatArray) -> FloatArray:
        """Return the angle between the noise of each window and that of the next.

        Noise in the same rows has angle 0, in different rows a right angle.
        """
        # Roots one by one: the product of two variances may overflow.
        root = np.sqrt(self.square_sums(variance))
        scale = root[:-1] * root[1:]
        covariance = self.weights[:-1].multiply(self.weights[1:]) @ variance
        cosines = np.divide(covariance, scale, out=np.ones_like(scale), where=scale > 0)
        return np.asarray(np.arccos(np.minimum(cosines, 1.0)))

    @cached_property
    def _squares(self) -> csr_array:
        return self.weights.power(2)


def _kernel_table(scale: float, kernel: Kernel) -> FloatArray:
    """Return the periodic kernel at even distances from 0 to 1."""
    modes = smoothing.n_modes(scale / kernel.roughness)
    multipliers = smoothing.filtered(np.ones(modes + 1), scale, kernel.multiplier)
    values = smoothing.series_values(multipliers, smoothing.grid_points(scale, modes))
    # Where a compact kernel ends, its series oscillates around 0.
    return np.maximum(values, 0.0)


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
        sums = np.zeros((2, clusters.n_bundles * n_cells))
        for bundle, p, y, w in clusters.blocks(problem):
            place = bundle * n_cells + cell_of(p)
            np.add.at(sums[0], place, w)
            np.add.at(sums[1], place, w * y)
        weight, true = sums.reshape(2, -1, n_cells)
        return cls(weight, true, clusters.n)

    def design_effect(self, residual: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the variance of clustered noise over that of independent rows, at least 1.

        `residual` holds the sum of each bundle in each window, (bundles, windows), `variance` the
        sum of the rows' squared residuals.
        """
        clustered = np.square(residual).sum(axis=0) * (self.n_clusters / (self.n_clusters - 1))
        effect = np.divide(clustered, variance, out=np.ones_like(variance), where=variance > 0)
        return np.asarray(np.maximum(effect, 1.0))


@dataclass(frozen=True, eq=False)
class WindowSums:
    """Cells of rows, and of clusters if there are any, summed over windows.

    `fitted` is the probability of an event in each cell, where it varies within windows.
    """

    cells: Cells
    windows: Windows
    clusters: ClusterSums | None = None
    fitted: FloatArray | None = None

    @cached_property
    def weight(self) -> FloatArray:
        """Sum of k w."""
        return self.windows.sums(self.cells.weight)

    @cached_property
    def weight_squared(self) -> FloatArray:
        """Sum of (k w)^2."""
        return self.windows.square_sums(self.cells.weight_squared)

    @cached_property
    def mean_true(self) -> FloatArray:
        """The proportion of events."""
        return self._mean(self.cells.residual + self.cells.sides[2].sum(axis=0))

    @cached_property
    def mean_pred(self) -> FloatArray:
        """The proportion of events to expect under perfect calibration."""
        return self._mean(self.cells.sides[2].sum(axis=0))

    def _mean(self, of_cells: FloatArray) -> FloatArray:
        return np.clip(self.windows.sums(of_cells) / self.weight, 0.0, 1.0)

    def effective_rows(self, proportion: FloatArray) -> FloatArray:
        """Return the effective sample size of an observed proportion of events."""
        rows = self.weight**2 / self.weight_squared
        if not self.cells.is_soft and self.clusters is None:
            return rows * self._evenness(proportion, rows)
        # Half an event and half a non-event more keep it from 0 and 1.
        near = (proportion * rows + 0.5) / (rows + 1)
        observed = self._observed_variance(near)
        if self.cells.is_soft:
            rows = near * (1 - near) * self.weight**2 / (observed + self._unobserved_variance)
        else:
            rows = rows * self._evenness(proportion, rows)
        if self.clusters is None:
            return rows
        if self.fitted is None:
            residual = self.windows.sums(self.clusters.true)
            residual -= near * self.windows.sums(self.clusters.weight)
        else:
            residual = self.windows.sums(self.clusters.true - self.fitted * self.clusters.weight)
        return rows / self.clusters.design_effect(residual, observed)

    def _evenness(self, proportion: FloatArray, rows: FloatArray) -> FloatArray | float:
        """Return the variance of events alike in each window over that of those fitted."""
        if self.fitted is None:
            return 1.0
        mixed = self.fitted * (1 - self.fitted) * self.cells.weight_squared
        within = self.windows.square_sums(mixed) / self.weight_squared
        alike, added = proportion * (1 - proportion), _ADDED * (rows + _ADDED)
        return np.asarray((rows**2 * alike + added) / (rows**2 * within + added))

    @cached_property
    def variance(self) -> FloatArray:
        """The variance of the noise in each cell, but for a factor."""
        if self.fitted is None:
            return self.cells.weight_squared
        rows = self.cells.total**2 / self.cells.weight_squared.sum()
        near = (self.fitted * rows + _ADDED) / (rows + 2 * _ADDED)
        return np.asarray(self.cells.weight_squared * near * (1 - near))

    def calibrated_rows(self, proportion: FloatArray) -> FloatArray:
        """Return the effective sample size of the proportion expected under perfect calibration.

        It is infinite where all predictions are 0 or 1.
        """
        variance = self.windows.square_sums(self.cells.calibrated_variance)
        if self.cells.is_soft:
            variance = variance + self._unobserved_variance
        if self.clusters is not None:
            observed = self.windows.square_sums(self.cells.residual_squared)
            residual = self.clusters.true - self.cells.score * self.clusters.weight
            effect = self.clusters.design_effect(self.windows.sums(residual), observed)
            variance = variance * effect
        total = proportion * (1 - proportion) * self.weight**2
        infinite = np.full_like(variance, np.inf)
        return np.divide(total, variance, out=infinite, where=variance > 0)

    @cached_property
    def _unobserved_variance(self) -> FloatArray:
        """The most that one more soft label could add to the variance, as it lies in [0, 1].

        Without it a single soft label, which shows no variance, would have no uncertainty.
        """
        return (self.weight_squared / self.weight) ** 2 / 4

    def _observed_variance(self, proportion: FloatArray) -> FloatArray:
        """Return sum (k w)^2 (y - q)^2, from cells narrow enough to have one score.

        q is the probability fitted to each cell, or the proportion of the window.
        """
        cells, score = self.cells, self.cells.score
        mean_weight = np.divide(
            cells.weight_squared, cells.weight, out=np.zeros_like(score), where=cells.weight > 0
        )
        residual = mean_weight * cells.residual
        if self.fitted is not None:
            gap = score - self.fitted
            squared = cells.residual_squared + gap * (2 * residual + gap * cells.weight_squared)
            return np.maximum(self.windows.square_sums(squared), 0.0)
        squared = cells.residual_squared + score * (2 * residual + score * cells.weight_squared)
        mixed = residual + score * cells.weight_squared
        total = self.windows.square_sums(squared)
        total += proportion * (
            proportion * self.weight_squared - 2 * self.windows.square_sums(mixed)
        )
        return np.maximum(total, 0.0)


def isotonic_limits(problem: Problem, proportion: FloatArray, band: Band) -> Limits:
    """Return the limits of the probability of an event at each distinct score."""
    pooled = problem.rows.pooled
    first = _first_scores(pooled)
    cell_of = Bins.starting_at(pooled.score[first]).index
    if band.kind == "consistency":
        return _isotonic_consistency(problem, cell_of, len(first), band)
    lower, upper = _isotonic_confidence(problem, cell_of, len(first), band)
    # Spans bound only the scores that lie before or after all of their cells.
    size = np.diff(np.append(first, len(pooled.score)))
    at_lower = np.repeat(np.append(0.0, lower[:-1]), size)
    at_upper = np.repeat(np.append(upper[1:], 1.0), size)
    at_lower[first + size - 1], at_upper[first] = lower, upper
    # A curve outside the limits refutes a non-decreasing probability; the band then holds it too.
    return np.minimum(at_lower, proportion), np.maximum(at_upper, proportion)


def _first_scores(pooled: Pooled) -> Index:
    """Return the first score of each cell: few rows per cell at both ends, more in between.

    The fit itself is as fine, and elsewhere pools more rows than a cell holds.
    """
    if len(pooled.score) <= _MAX_ISOTONIC_CELLS:
        return np.arange(len(pooled.score))
    passed = np.cumsum(pooled.rows)
    fractions = np.arange(1, _MAX_ISOTONIC_CELLS) / _MAX_ISOTONIC_CELLS
    # A cell starts after the score that completes the rows of those before.
    cuts = np.searchsorted(passed, passed[-1] * np.sin(np.pi / 2 * fractions) ** 2) + 1
    return np.unique(np.concatenate(([0], cuts[cuts < len(passed)]))).astype(np.intp)


def _isotonic_confidence(problem: Problem, cell_of: CellOf, n_cells: int, band: Band) -> Limits:
    """Return the limits of the probability before and after each cell."""
    cells = Cells.gather(problem, cell_of, n_cells)
    clusters = band.cluster_sums(problem, cell_of, n_cells)

    def bounds(spans: Spans, divided: FloatArray, limit: Callable[..., FloatArray]) -> FloatArray:
        windows = WindowSums(cells, spans, clusters)
        tail = band.widened(pointwise_tail(band.level) * divided)
        return limit(windows.mean_true, windows.effective_rows(windows.mean_true), tail)

    upper, lower = np.ones(n_cells), np.zeros(n_cells)
    if band.simultaneous:
        above, divided = _spans_everywhere(n_cells)
        below = above
    else:
        above, divided = _spans_from_each(n_cells)
        below = Spans(n_cells - above.end, n_cells - above.start)
    np.minimum.at(upper, above.start, bounds(above, divided, proportion_upper))
    np.maximum.at(lower, below.end - 1, bounds(below, divided, proportion_lower))
    if band.simultaneous:
        upper, lower = np.minimum.accumulate(upper[::-1])[::-1], np.maximum.accumulate(lower)
    return lower, upper


def _lengths(n_cells: int) -> Index:
    return np.asarray(2 ** np.arange(n_cells.bit_length()), dtype=np.intp)


def _spans_everywhere(n_cells: int) -> tuple[Spans, FloatArray]:
    """Return spans of every length and place, and the tail divided evenly among lengths."""
    lengths = _lengths(n_cells)
    starts = [
        np.append(np.arange(0, n_cells - length, max(1, length // _OVERLAP)), n_cells - length)
        for length in lengths
    ]
    counts = [len(start) for start in starts]
    start = np.concatenate(starts)
    divided = 1 / (len(lengths) * np.repeat(counts, counts))
    return Spans(start, start + np.repeat(lengths, counts)), divided


def _spans_from_each(n_cells: int) -> tuple[Spans, FloatArray]:
    """Return spans of every length from each cell on, and the tail divided among lengths."""
    lengths = _lengths(n_cells)
    start = np.tile(np.arange(n_cells), len(lengths))
    end = np.minimum(start + np.repeat(lengths, n_cells), n_cells)
    return Spans(start, end), np.full(len(start), 1 / len(lengths))


def _isotonic_consistency(problem: Problem, cell_of: CellOf, n_cells: int, band: Band) -> Limits:
    """Return where curves of outcomes drawn from the predictions lie, around the predictions."""
    maximum = _MAX_DRAWN // n_cells
    if band.n_resamples > maximum:
        raise CalibrantError(
            "must be at most {maximum} for the band of a curve of so many scores",
            argument="n_resamples",
            value=band.n_resamples,
            maximum=maximum,
        )
    cells = Cells.gather(problem, cell_of, n_cells, band.clusters)
    centre = cells.score
    drawn = centre + cells.calibrated_noise(band.n_resamples, band.rng) / cells.weight
    curves = np.array([isotonic_fit(one, cells.weight) for one in drawn])
    tail = pointwise_tail(band.level)
    low, high = np.quantile(curves, [tail, 1 - tail], axis=0, method="weibull")
    below, above = np.maximum(centre - low, 0.0), np.maximum(high - centre, 0.0)
    if band.simultaneous:
        below, above = _simultaneous(curves - centre, below, above, band.level)
    p = problem.rows.pooled.score
    lower, upper = np.interp(p, centre, centre - below), np.interp(p, centre, centre + above)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def _simultaneous(moved: FloatArray, below: FloatArray, above: FloatArray, level: float) -> Limits:
    """Scale distances from the centre until a fraction `level` of the curves lies inside."""
    # Where hardly a curve leaves the centre on one side, there is nothing to scale.
    spread = moved.std(axis=0)
    below, above = np.maximum(below, spread), np.maximum(above, spread)
    scale = np.where(moved < 0, below, above)
    outside = np.divide(np.abs(moved), scale, out=np.zeros_like(moved), where=scale > 0)
    factor = max(weibull_quantile(outside.max(axis=1), level), 1.0)
    return factor * below, factor * above
