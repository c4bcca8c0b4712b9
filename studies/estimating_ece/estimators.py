"""The estimators that are compared, on many samples of one size at once.

A study of estimators measures millions of short samples, and calling a measure on each would spend
its time on the calls. Here samples of one size are the rows of arrays, sorted by score, so that
bins are the intervals between cuts and sums over bins are differences of cumulative sums. The
results are those of the functions of calibrant on every row.

`ESTIMATORS` holds the paper's fifteen, the paper's again as the authors' released code has them,
and others of calibrant. The authors' differ from the paper's text, or from what it must mean:

- convex weights are exchanged, and for confidence the bins lie on [1/C, 1];
- bins of equal mass hold floor(n / B) rows, and the last one all that is left;
- Silverman's constant is (3/4)^(-1/5) = 1.06, and class-wise errors use the bandwidth of the first
  class for all. (Their kernel, a triweight whose standard deviation is the bandwidth, makes next to
  no difference to a Gaussian.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import erf, logit

import calibrant as cb
from calibrant.numerics import smoothing
from studies.frame import FloatArray, Index


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of one size, one per row, in increasing order of score.

    Attributes
    ----------
    p, y
        Scores and their outcomes, shape (samples, n).
    lowest
        The smallest possible score: 1/C for the top class of C, else 0.
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
        """The sum of residuals before each position, and then of all."""
        return _running(self.residual)

    @cached_property
    def running_true(self) -> FloatArray:
        """The sum of outcomes before each position, and then of all."""
        return _running(self.y)

    @cached_property
    def start(self) -> Index:
        """For each position the first of its score."""
        positions = np.arange(self.n + 1)
        return np.maximum.accumulate(np.where(self._is_new, positions, 0), axis=1)

    @cached_property
    def end(self) -> Index:
        """For each position the next one where a score starts."""
        positions = np.where(self._is_new, np.arange(self.n + 1), self.n)
        return np.minimum.accumulate(positions[:, ::-1], axis=1)[:, ::-1]

    @cached_property
    def _is_new(self) -> npt.NDArray[np.bool_]:
        outer = np.ones((len(self.p), 1), dtype=bool)
        return np.concatenate((outer, self.p[:, 1:] > self.p[:, :-1], outer), axis=1)


def _running(values: FloatArray) -> FloatArray:
    return np.concatenate((np.zeros((len(values), 1)), np.cumsum(values, axis=1)), axis=1)


@dataclass(frozen=True, eq=False)
class SampleBins:
    """Bins of every sample: their edges, and the positions where they start.

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
    """Return bins of equal width over [lowest, 1], closed on the left."""
    edges = np.arange(n_bins + 1) / n_bins
    p = (samples.p - lowest) / (1 - lowest)
    index = np.searchsorted(edges[1:-1], p, side="right")
    inner = np.cumsum(_counts(index, n_bins), axis=1)[:, :-1]
    edges = np.tile(lowest + (1 - lowest) * edges, (len(p), 1))
    return SampleBins(edges, _with_ends(inner, samples.n))


def equal_mass(samples: Samples, n_bins: int) -> SampleBins:
    """Return bins of nearly equal mass, like ``strategy="quantile"`` of `calibrant.ece`."""
    every = np.arange(len(samples.p))
    return _cut_midway(samples, _equal_cuts(samples, every, np.arange(1, n_bins)[None], n_bins))


def _equal_cuts(samples: Samples, rows: Index, i: Index, n_bins: int) -> Index:
    """Return where bins `i` of equal mass start, in some of the samples."""
    n, rows = samples.n, rows[:, None]
    before, after = samples.start[rows, i * n // n_bins], samples.end[rows, -(-i * n // n_bins)]
    # In whole numbers, so that nearness does not depend on rounding; the lower of two equally near.
    return np.where(2 * i * n > n_bins * (before + after), after, before)


def equal_counts(samples: Samples, n_bins: int, lowest: float = 0.0) -> SampleBins:
    """Return bins of floor(n / B) rows, the last with all the rest: the authors' rule."""
    inner = np.arange(1, n_bins) * (samples.n // n_bins)
    # Equal scores on both sides of a cut all fall into the upper bin.
    return _cut_midway(samples, samples.start[:, inner], lowest)


def hard_error(samples: Samples, bins: SampleBins) -> FloatArray:
    """Return the ECE of every sample, each row counting in its bin."""
    sums = np.diff(np.take_along_axis(samples.running_residual, bins.cuts, 1), axis=1)
    return np.asarray(np.abs(sums).sum(axis=1) / samples.n)


def sweep_error(samples: Samples) -> FloatArray:
    """Return the ECE of every sample with the most bins of equal mass whose means do not fall."""
    n_bins, error = _most_monotone(samples), np.empty(len(samples.p))
    for count in np.unique(n_bins):
        rows = np.flatnonzero(n_bins == count)
        cuts = _equal_cuts(samples, rows, np.arange(count + 1)[None], count)
        sums = np.diff(samples.running_residual[rows[:, None], cuts], axis=1)
        error[rows] = np.abs(sums).sum(axis=1) / samples.n
    return error


def _most_monotone(samples: Samples) -> Index:
    """Return the largest number of bins, up to n, over which mean outcomes do not fall.

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
    """Return which bins between edges have a mean outcome below an earlier one."""
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
    """Return the ECE of every sample, each row split between the two bins that enclose it.

    With `exchanged` weights the nearer centre gets the smaller one, as the paper prints them.
    """
    lower, weight = _convex_weights(samples, bins)
    if exchanged:
        # Beyond the outer centres rows are not split.
        weight = np.where((weight > 0) & (weight < 1), 1 - weight, weight)
    n_bins = bins.centres.shape[1]
    upper = _sums(lower, n_bins, weight * samples.residual)
    sums = _sums(lower, n_bins, samples.residual) - upper
    sums[:, 1:] += upper[:, :-1]
    return np.asarray(np.abs(sums).sum(axis=1) / samples.n)


def _convex_weights(samples: Samples, bins: SampleBins) -> tuple[Index, FloatArray]:
    """Return for every row the lower of its two bins and the weight of the upper one."""
    p, centres = samples.p, bins.centres
    cuts = _counts(bins.cuts[:, 1:-1], samples.n + 1)
    index = np.cumsum(cuts[:, :-1], axis=1)
    lower = np.maximum(index - (p < np.take_along_axis(centres, index, 1)), 0)
    left = np.take_along_axis(centres, lower, 1)
    right = np.take_along_axis(centres, np.minimum(lower + 1, centres.shape[1] - 1), 1)
    # Beyond the outer centres, and where there is but one bin, rows are not split.
    width = np.where(right > left, right - left, np.inf)
    return lower, np.clip((p - left) / width, 0.0, 1.0)


def _cut_midway(samples: Samples, inner: Index, lowest: float = 0.0) -> SampleBins:
    """Return bins cut at the positions `inner`, edges midway between scores; equal cuts merge."""
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


# Smoothed errors: ECE_d, smECE and LS-ECE, in the cosine space of calibrant's smoothing.
# Samples are smoothed together with others of similar bandwidth.

# The smallest bandwidth: the paper's own grid has steps of 0.0003.
FINEST_BANDWIDTH = 5e-4
# Errors of integrals stay below 2e-5, far below the sampling error of estimates.
_POINTS_PER_SCALE = 16
_MARGIN = 1e-9
# Moments of rows about the centres of cells: by the bound of `smoothing` errors stay below 1e-4,
# and they are near 1e-6.
_CELLS_PER_SCALE, _N_MOMENTS = 8, 3
_NEWTON_STEPS = 12
_CLOSE = 1e-6


def silverman(samples: Samples, constant: float = 0.9) -> FloatArray:
    """Return Silverman's bandwidth of every sample: constant min(sd, IQR / 1.34) n^(-1/5)."""
    p = samples.p
    deviation = p.std(axis=1, ddof=1)
    low, high = np.quantile(p, [0.25, 0.75], axis=1, method="hazen")
    spread = (high - low) / 1.34
    size = np.where(spread > 0, np.minimum(deviation, spread), deviation)
    width = np.where(size > 1e-12, constant * size * samples.n**-0.2, 0.01)
    return np.maximum(width, FINEST_BANDWIDTH)


def density_error(samples: Samples, bandwidth: float | FloatArray) -> FloatArray:
    """Return ECE_d of every sample, by the Gaussian kernel."""
    low = np.minimum(samples.lowest, samples.p[:, :1])
    length = 1 - low
    x = (samples.p - low) / length
    scales = np.broadcast_to(bandwidth, len(x)) / length[:, 0]
    error = np.empty(len(x))
    for rows in _alike(scales):
        a = _spectra(x[rows], [np.ones_like(x[rows]), samples.y[rows]], float(scales[rows].min()))
        weight, true = _smoothed(a, scales[rows])
        t = low[rows] + length[rows] * np.linspace(0, 1, weight.shape[-1])
        error[rows] = _mean_size(true - t * weight)[0] / samples.n
    return error


def smooth_error(samples: Samples) -> FloatArray:
    """Return smECE of every sample: the scale at which smECE_s equals s."""
    noise = 0.25 * samples.n ** (-1 / 3)
    lowest = noise / 2
    a = _spectra(samples.p, [samples.residual], lowest)[0] / samples.n
    s = np.clip(np.abs(a[:, 0]) + noise, lowest, 1.0)
    open_rows = np.arange(len(s))
    for _ in range(_NEWTON_STEPS):
        scale = s[open_rows]
        value, steepness = _mean_size(_smoothed(a[open_rows], scale))
        # By the heat equation the error falls by 2 s abs(h') at each zero of h.
        step = (value - scale) / (1 + 2 * scale * steepness)
        s[open_rows] = np.clip(scale + step, lowest, 1.0)
        open_rows = open_rows[np.abs(step) > _CLOSE * scale]
        if not len(open_rows):
            break
    # The few that are finer, or do not settle, are left to the measure itself.
    for row in np.union1d(open_rows, np.flatnonzero(s <= lowest)):
        s[row] = cb.smooth_ece(samples.y[row], samples.p[row])
    return np.asarray(s)


def logit_smoothed_error(samples: Samples, sigma: float) -> FloatArray:
    """Return LS-ECE of every sample under uniform noise, as `calibrant.logit_smoothed_ece`."""
    with np.errstate(divide="ignore"):
        u = logit(samples.p)
    w = np.isfinite(u).astype(np.float64)
    # Rows at infinity stay there; those whose outcome is the other one contribute 1.
    at_infinity = ((1 - w) * np.abs(samples.residual)).sum(axis=1)
    u = np.where(w > 0, u, 0.0)
    ends = np.concatenate((u - sigma / 2, u + sigma / 2), axis=1)
    order = np.argsort(ends, axis=1, kind="stable")
    ends = np.take_along_axis(ends, order, 1)
    weight, true = (
        np.cumsum(np.take_along_axis(np.concatenate((v, -v), axis=1), order, 1), axis=1)[:, :-1]
        for v in (w, w * samples.y)
    )
    low, high = ends[:, :-1], ends[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = logit(np.clip(true / weight, 0.0, 1.0))
    zero = np.clip(np.nan_to_num(zero), low, high)

    def antiderivative(v: FloatArray) -> FloatArray:
        return np.asarray(true * v - weight * np.logaddexp(0.0, v))

    middle = antiderivative(zero)
    area = np.abs(middle - antiderivative(low)) + np.abs(antiderivative(high) - middle)
    return np.asarray((area.sum(axis=1) / sigma + at_infinity) / samples.n)


def _spectra(x: FloatArray, values: list[FloatArray], scale: float) -> FloatArray:
    """Return the cosine coefficients of every sample, shape (values, samples, modes + 1)."""
    n_samples = len(x)
    n_cells = _good_size(_CELLS_PER_SCALE / scale)
    # All samples side by side on one line, clipped a little inside their ends to stay separate.
    side_by_side = np.clip(x, _MARGIN, 1 - _MARGIN) + np.arange(n_samples)[:, None]
    block = (side_by_side / n_samples).ravel(), [value.ravel() for value in values]
    moments = smoothing.cell_moments([block], len(values), n_samples * n_cells, _N_MOMENTS)
    moments = moments.reshape(len(values), _N_MOMENTS, n_samples, n_cells)
    return smoothing.coefficients(np.moveaxis(moments, 2, 1), smoothing.n_modes(scale))


def _smoothed(a: FloatArray, scales: FloatArray) -> FloatArray:
    """Return cosine series on a grid of [0, 1], each sample smoothed at its scale."""
    finest = float(scales.min())
    a = a[..., : smoothing.n_modes(finest) + 1]
    n_points = _good_size(max(_POINTS_PER_SCALE / finest, a.shape[-1]))
    return smoothing.series_values(smoothing.damped(a, scales), n_points)


def _mean_size(f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of abs(f) over [0, 1], and the sum of abs(f') over the zeros of f.

    By trapezoids, corrected in the cells where f changes its sign.
    """
    size, n_cells = np.abs(f), f.shape[-1] - 1
    left, right = size[..., :-1], size[..., 1:]
    rise = np.where((f[..., :-1] < 0) != (f[..., 1:] < 0), left + right, 0.0)
    lacking = rise / 6 - np.divide(left * right, rise, out=np.zeros_like(rise), where=rise > 0)
    mean = (0.5 * (left + right) + lacking).sum(axis=-1) / n_cells
    return mean, rise.sum(axis=-1) * n_cells


def _good_size(at_least: float) -> int:
    """Return a power of two."""
    return 1 << int(np.ceil(np.log2(max(at_least, 64))))


def _alike(scales: FloatArray) -> Iterator[Index]:
    """Yield samples whose scales are within a factor of two."""
    octave = np.floor(np.log2(scales))
    for one in np.unique(octave):
        yield np.flatnonzero(octave == one)


# The table of estimators.

Count = int | Literal["sqrt"]
# Takes samples, and those of the first class for what the authors' code takes from it.
Measure = Callable[[Samples, Samples], FloatArray]

COUNTS: tuple[Count, ...] = (10, 30, "sqrt")
BANDWIDTHS: tuple[float | str, ...] = ("silverman", 0.1, 0.033)
KDEPY_CONSTANT = (3 / 4) ** -0.2


@dataclass(frozen=True)
class Estimator:
    """An estimator of the calibration error.

    Attributes
    ----------
    family, parameter
        Parts of its name; they choose colour and line in figures.
    measure
        Returns its values on many samples at once.
    """

    family: str
    parameter: str
    measure: Measure

    @property
    def name(self) -> str:
        """The name in tables, and in the table of `calibrant.recommend` if it has one."""
        return f"{self.family} {self.parameter}".rstrip()


def _n_bins(count: Count, samples: Samples) -> int:
    return int(np.sqrt(samples.n)) if count == "sqrt" else count


def _legacy(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return hard_error(samples, uniform(samples, _n_bins(count, samples)))


def _adaptive(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return hard_error(samples, equal_mass(samples, _n_bins(count, samples)))


def _convex(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return convex_error(samples, uniform(samples, _n_bins(count, samples)))


def _adaptive_convex(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return convex_error(samples, equal_mass(samples, _n_bins(count, samples)))


def _density(bandwidth: float | str, samples: Samples, first: Samples) -> FloatArray:
    width = silverman(samples) if isinstance(bandwidth, str) else bandwidth
    return density_error(samples, width)


def _debiased(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return debiased_error(samples, equal_mass(samples, _n_bins(count, samples)))


def _coded_adaptive(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return hard_error(samples, equal_counts(samples, _n_bins(count, samples)))


def _coded_convex(count: Count, samples: Samples, first: Samples) -> FloatArray:
    bins = uniform(samples, _n_bins(count, samples), samples.lowest)
    return convex_error(samples, bins, exchanged=True)


def _coded_adaptive_convex(count: Count, samples: Samples, first: Samples) -> FloatArray:
    bins = equal_counts(samples, _n_bins(count, samples), samples.lowest)
    return convex_error(samples, bins, exchanged=True)


def _coded_density(samples: Samples, first: Samples) -> FloatArray:
    return density_error(samples, silverman(first, KDEPY_CONSTANT))


def _binned(
    family: str,
    measure: Callable[[Count, Samples, Samples], FloatArray],
    counts: tuple[Count, ...] = COUNTS,
) -> list[Estimator]:
    return [Estimator(family, str(count), partial(measure, count)) for count in counts]


PUBLISHED: tuple[Estimator, ...] = (
    *_binned("legacy", _legacy),
    *_binned("adaptive", _adaptive),
    *_binned("convex", _convex),
    *_binned("adaptive-convex", _adaptive_convex),
    *(Estimator("density", str(h), partial(_density, h)) for h in BANDWIDTHS),
)
CODED: tuple[Estimator, ...] = (
    *_binned("adaptive, code", _coded_adaptive),
    *_binned("convex, code", _coded_convex),
    *_binned("adaptive-convex, code", _coded_adaptive_convex),
    Estimator("density, code", "silverman", _coded_density),
)
OTHERS: tuple[Estimator, ...] = (
    *_binned("legacy", _legacy, counts=(15,)),
    *_binned("adaptive", _adaptive, counts=(15,)),
    Estimator("adaptive", "sweep", lambda samples, _: sweep_error(samples)),
    *_binned("debiased", _debiased, counts=(5, 10)),
    Estimator("smooth", "", lambda samples, _: smooth_error(samples)),
    Estimator("logit-smoothed", "", lambda samples, _: logit_smoothed_error(samples, 1.0)),
)
ESTIMATORS: dict[str, Estimator] = {one.name: one for one in (*PUBLISHED, *CODED, *OTHERS)}
