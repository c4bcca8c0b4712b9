"""Binned errors of many samples of one size at once.

A study of estimators measures millions of short samples, and calling a measure on each would spend
its time on the calls. Here samples of one size are the rows of arrays, sorted by score, so that
bins are the stretches between cuts and sums over bins are differences of running sums. What comes
out is what `calibrant.ece` says of every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import erf

from calibrant.arrays import FloatArray
from calibrant.binning import UniformBins
from calibrant.problem import Index


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of one size, one a row, in increasing order of score.

    Attributes
    ----------
    p, y
        Scores and their outcomes, shape (samples, n).
    lowest
        The least score that could be: 1/C for the top class of C, else 0.
    """

    p: FloatArray
    y: FloatArray
    lowest: float = 0.0

    @classmethod
    def of(cls, y: FloatArray, p: FloatArray, lowest: float = 0.0) -> Samples:
        """Sort every sample by its scores."""
        order = np.argsort(p, axis=1)
        return cls(np.take_along_axis(p, order, 1), np.take_along_axis(y, order, 1), lowest)

    @property
    def n(self) -> int:
        """The size of each sample."""
        return int(self.p.shape[1])

    @cached_property
    def residual(self) -> FloatArray:
        """The residuals y - p."""
        return self.y - self.p

    @cached_property
    def running_residual(self) -> FloatArray:
        """The sum of residuals before each place, and at last all of it."""
        return _running(self.residual)

    @cached_property
    def running_true(self) -> FloatArray:
        """The sum of outcomes before each place, and at last all of it."""
        return _running(self.y)

    @cached_property
    def start(self) -> Index:
        """For each place the first one of its score."""
        places = np.arange(self.n + 1)
        return np.maximum.accumulate(np.where(self._is_new, places, 0), axis=1)

    @cached_property
    def end(self) -> Index:
        """For each place the nearest from there on where a score starts."""
        places = np.where(self._is_new, np.arange(self.n + 1), self.n)
        return np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]

    @cached_property
    def _is_new(self) -> npt.NDArray[np.bool_]:
        outer = np.ones((len(self.p), 1), dtype=bool)
        return np.concatenate((outer, self.p[:, 1:] > self.p[:, :-1], outer), axis=1)


def _running(values: FloatArray) -> FloatArray:
    return np.concatenate((np.zeros((len(values), 1)), np.cumsum(values, axis=1)), axis=1)


@dataclass(frozen=True, eq=False)
class SampleBins:
    """Bins of every sample: their edges, and the places where they start.

    Both have one column more than the largest number of bins. A sample with fewer has its bins in
    the first columns, infinite edges after them, and cuts where nothing is left.
    """

    edges: FloatArray
    cuts: Index

    @cached_property
    def centres(self) -> FloatArray:
        """The midpoints of the bins, infinite where there is none."""
        return (self.edges[:, :-1] + self.edges[:, 1:]) / 2


def uniform(samples: Samples, n_bins: int, lowest: float = 0.0) -> SampleBins:
    """Lay bins of equal width over [lowest, 1], closed on the left."""
    bins = UniformBins.of(n_bins)
    p = np.clip((samples.p - lowest) / (1 - lowest), 0.0, 1.0) if lowest else samples.p
    inner = np.cumsum(_counts(bins.index(p), n_bins), axis=1)[:, :-1]
    edges = np.tile(lowest + (1 - lowest) * bins.edges, (len(p), 1))
    return SampleBins(edges, _with_ends(inner, samples.n))


def equal_mass(samples: Samples, n_bins: int) -> SampleBins:
    """Lay bins of nearly equal mass, as `calibrant.binning.EqualMass` does."""
    every = np.arange(len(samples.p))
    return _cut_midway(samples, _equal_cuts(samples, every, np.arange(1, n_bins)[None], n_bins))


def _equal_cuts(samples: Samples, rows: Index, i: Index, n_bins: int) -> Index:
    """Return where bins `i` of equal mass start, in some of the samples."""
    n, rows = samples.n, rows[:, None]
    before, after = samples.start[rows, i * n // n_bins], samples.end[rows, -(-i * n // n_bins)]
    # In whole numbers, so that nearness never hangs on rounding; the lower of two equally near.
    return np.where(2 * i * n > n_bins * (before + after), after, before)


def equal_counts(samples: Samples, n_bins: int, lowest: float = 0.0) -> SampleBins:
    """Lay bins of floor(n / B) rows, the last of all that is left: the authors' rule."""
    inner = np.arange(1, n_bins) * (samples.n // n_bins)
    # Equal scores on both sides of a cut all fall into the upper bin.
    return _cut_midway(samples, samples.start[:, inner], lowest)


def hard_error(samples: Samples, bins: SampleBins) -> FloatArray:
    """Return the ECE of every sample, each row counting in its bin."""
    sums = np.diff(np.take_along_axis(samples.running_residual, bins.cuts, 1), axis=1)
    return np.asarray(np.abs(sums).sum(axis=1) / samples.n)


def sweep_error(samples: Samples) -> FloatArray:
    """Return the ECE of every sample with the most bins of equal mass whose means never fall."""
    n_bins, error = _most_monotone(samples), np.empty(len(samples.p))
    for count in np.unique(n_bins):
        rows = np.flatnonzero(n_bins == count)
        cuts = _equal_cuts(samples, rows, np.arange(count + 1)[None], count)
        sums = np.diff(samples.running_residual[rows[:, None], cuts], axis=1)
        error[rows] = np.abs(sums).sum(axis=1) / samples.n
    return error


def _most_monotone(samples: Samples) -> Index:
    """Return the largest number of bins, up to n, over which mean outcomes never fall.

    Most numbers fail where a larger one did, so that bins near there are looked at first.
    """
    n_samples, n = samples.p.shape
    found, left = np.ones(n_samples, dtype=np.intp), np.arange(n_samples)
    # The two scores between which outcomes fell: where they start, meet and end.
    start, meet, end = np.zeros((3, n_samples), dtype=np.intp)
    for n_bins in range(n, 1, -1):
        low, middle, high = (n_bins * place[left] // n for place in (start, meet, end))
        low, high = np.minimum(low, middle - 2), np.maximum(high + 1, middle + 2)
        near = np.stack((low, middle - 1, middle, middle + 1, high), axis=1)
        falls = _falls(samples, left, np.clip(near, 0, n_bins), n_bins)
        tried = left[~falls.any(axis=1)]
        if not len(tried):
            continue
        falls = _falls(samples, tried, np.arange(n_bins + 1)[None], n_bins)
        failed = falls.any(axis=1)
        rows, fallen = tried[failed], falls[failed].argmax(axis=1)
        meet[rows] = cut = _equal_cuts(samples, rows, fallen[:, None], n_bins)[:, 0]
        start[rows], end[rows] = samples.start[rows, cut - 1], samples.end[rows, cut + 1]
        found[tried[~failed]] = n_bins
        left = np.setdiff1d(left, tried[~failed])
    return found


def _falls(samples: Samples, rows: Index, edges: Index, n_bins: int) -> npt.NDArray[np.bool_]:
    """Tell which bins between edges have a mean outcome below one before them."""
    cuts = _equal_cuts(samples, rows, edges, n_bins)
    count = np.diff(cuts, axis=1)
    true = np.diff(samples.running_true[rows[:, None], cuts], axis=1)
    # No mean is as low as that of an empty bin here, which hides no fall and is none.
    mean = np.where(count > 0, true / np.maximum(count, 1), -1.0)
    return (mean < np.maximum.accumulate(mean, axis=1) - 1e-12) & (count > 0)


def debiased_error(samples: Samples, bins: SampleBins) -> FloatArray:
    """Return the ECE less the expected effect of noise, nan where a bin holds one row."""
    rows = np.diff(bins.cuts, axis=1)
    true = np.diff(np.take_along_axis(samples.running_true, bins.cuts, 1), axis=1)
    sums = np.diff(np.take_along_axis(samples.running_residual, bins.cuts, 1), axis=1)
    several = np.maximum(rows, 2)
    mean, gap = true / several, np.abs(sums) / several
    spread = np.sqrt(2 * mean * (1 - mean) / (several - 1))
    z = np.divide(gap, spread, out=np.full_like(gap, np.inf), where=spread > 0)
    expected = spread / np.sqrt(np.pi) * np.exp(-z * z) + gap * erf(z)
    error = np.maximum((rows * (2 * gap - expected)).sum(axis=1) / samples.n, 0.0)
    return np.where((rows == 1).any(axis=1), np.nan, error)


def convex_error(samples: Samples, bins: SampleBins, exchanged: bool = False) -> FloatArray:
    """Return the ECE of every sample, each row shared between the two bins that enclose it.

    With `exchanged` shares the nearer centre gets the smaller one, as the paper prints them.
    """
    lower, share = _shares(samples, bins)
    if exchanged:
        # Beyond the outer centres there is nothing to exchange.
        share = np.where((share > 0) & (share < 1), 1 - share, share)
    n_bins = bins.centres.shape[1]
    upper = _sums(lower, n_bins, share * samples.residual)
    sums = _sums(lower, n_bins, samples.residual) - upper
    sums[:, 1:] += upper[:, :-1]
    return np.asarray(np.abs(sums).sum(axis=1) / samples.n)


def _shares(samples: Samples, bins: SampleBins) -> tuple[Index, FloatArray]:
    """Return for every row the lower of its two bins and the share of the upper one."""
    p, centres = samples.p, bins.centres
    cuts = _counts(bins.cuts[:, 1:-1], samples.n + 1)
    index = np.cumsum(cuts[:, :-1], axis=1)
    lower = np.maximum(index - (p < np.take_along_axis(centres, index, 1)), 0)
    left = np.take_along_axis(centres, lower, 1)
    right = np.take_along_axis(centres, np.minimum(lower + 1, centres.shape[1] - 1), 1)
    # Beyond the outer centres, and where there is but one bin, rows are not shared.
    width = np.where(right > left, right - left, np.inf)
    return lower, np.clip((p - left) / width, 0.0, 1.0)


def _cut_midway(samples: Samples, inner: Index, lowest: float = 0.0) -> SampleBins:
    """Lay bins cut at the places `inner`, their edges midway between scores; equal cuts merge."""
    n = samples.n
    cuts = _with_ends(inner, n)
    is_kept = (np.diff(cuts, axis=1, prepend=-1) > 0) & (cuts < n)
    is_kept[:, -1] = True
    below = np.take_along_axis(samples.p, np.maximum(cuts - 1, 0), 1)
    above = np.take_along_axis(samples.p, np.minimum(cuts, n - 1), 1)
    middle = (below + above) / 2
    edges = np.where(middle > below, middle, above)
    edges[:, 0], edges[:, -1] = lowest, 1.0
    edges = np.where(is_kept, edges, np.inf)
    order = np.argsort(~is_kept, axis=1, kind="stable")
    kept = np.where(is_kept, cuts, n)
    return SampleBins(np.take_along_axis(edges, order, 1), np.take_along_axis(kept, order, 1))


def _with_ends(inner: Index, n: int) -> Index:
    ends = np.zeros((len(inner), 1), dtype=np.intp)
    return np.concatenate((ends, inner, ends + n), axis=1)


def _counts(index: Index, n_places: int) -> Index:
    """Return for every row how often each index occurs."""
    return np.bincount(_places(index, n_places), None, len(index) * n_places).reshape(-1, n_places)


def _sums(index: Index, n_places: int, values: FloatArray) -> FloatArray:
    """Return for every row the sum of the values of each index."""
    sums = np.bincount(_places(index, n_places), values.ravel(), len(index) * n_places)
    return np.asarray(sums.reshape(-1, n_places), dtype=np.float64)


def _places(index: Index, n_places: int) -> Index:
    return (index + np.arange(len(index))[:, None] * n_places).ravel()
