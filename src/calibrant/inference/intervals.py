"""Confidence intervals for calibration errors, valid at perfect calibration too.

Every error here is a norm N of an image h that is linear in the residuals summed over narrow cells
of scores: h = h0 + e, the population's image and noise that can be simulated. The target is
theta = N(h0), observed is T = N(h0 + e). Noise adds to a norm: N(e) where h0 = 0, nothing
where h0 is far from 0. A bootstrap around h, which lies further from 0 than h0 does, ignores this.

The notes of :func:`calibrant.estimate` say what the ends of an interval are;
docs/methods/intervals.md has the proofs, what is only simulated, and the reason of each constant.

smECE is the scale s at which N_s = s, and N_s decreases with s: smECE >= s if and only if N_s >= s.
So low is the smallest s that the bound at scale s does not exclude, and no fixed point is ever
searched for in simulated data.

Cost: one pass over the rows, then n_resamples times the number of cells, whatever n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.problem import Problem
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.inference.cell_noise import Cells, Clusters
from calibrant.measures.norms import LinearImage, MaxNorm, shifted_norms
from calibrant.measures.registry import Measure
from calibrant.numerics.probability import monotone_root, weibull_quantile

# The part of a tail that is spent on the rectangle around the image.
_PART = 0.2
# With fewer events the noise estimated from one sample differs too much from that of the next.
_FEW_EVENTS = 15.0
# An error beyond all of few resamples under perfect calibration rejects it. Of m resamples, k = m a
# for a tail a, an error that is no larger than the quantile of 1 - a exceeds the maximum with
# probability a exp(-k) / k at most, whatever the distribution; here 3% of a.
_DRAWS_PER_TAIL = 2.5
# Norms of one outcome or another may be equal, but for rounding.
_TIE = 1e-9
# Ends are found to this fraction of the standard deviation of the mean residual, or of smECE.
_PRECISION = 1e-6
# Scales at which the lower end of smECE is tried.
_MOST_SCALES = 3
# Numbers in all resamples together. Where cells are so many that there would be more, an error is
# the sum of so many nearly independent parts that fewer resamples, but at least 300, show its
# quantiles as well. High levels need more of them, as far as 64 MB hold them.
_NUMBERS, _MOST_NUMBERS, _FEWEST_DRAWS = 1 << 19, 1 << 23, 300


@dataclass(frozen=True)
class Interval:
    """An interval for the population value of an error."""

    low: float
    high: float
    centre: float  # the error without the effect of noise, median-unbiased, inside the interval


@dataclass(frozen=True, eq=False)
class View:
    """A measure of a sample, as a norm of an image of its cells' residual totals."""

    value: float  # the norm, from the measure computed exactly: cells serve for the noise alone
    cells: Cells  # the sample
    image: LinearImage  # the linear function of their residual totals, and its norm

    @classmethod
    def of(
        cls, measure: Measure, problem: Problem, value: float, clusters: Clusters | None = None
    ) -> View:
        """Return a measure, whose value is known, of a problem."""
        image = measure.image(problem, value)
        norm = value ** (1 / image.power)
        cells = Cells.gather(problem, image.cell_of, image.n_cells, clusters)
        if image.of_filled is None:
            return cls(norm, cells, image)
        (filled,) = np.nonzero(cells.weight)
        return cls(norm, cells.some(filled), image.of_filled(filled))

    def at_scale(self, scale: float) -> View:
        """Return the norm at another scale, for a measure that is a scale."""
        assert self.image.at_scale is not None
        return replace(self, image=self.image.at_scale(scale))

    def of_noise(self, totals: FloatArray) -> FloatArray:
        """Return the image of noise added to residual totals."""
        return self.image.of_totals(totals, self.cells.weight)

    @cached_property
    def offset(self) -> FloatArray | float:
        """The image of the population if it is perfectly calibrated."""
        offset_of = self.image.offset_of
        return 0.0 if offset_of is None else offset_of(self.cells.weight)

    @cached_property
    def observed(self) -> FloatArray:
        """The image of the sample."""
        return self.of_noise(self.cells.residual) + self.offset

    @cached_property
    def observed_norm(self) -> float:
        """The norm of the observed image."""
        return float(self.image.norm.of(self.observed))

    @property
    def size(self) -> int:
        """The number of numbers in a resample, or in its image."""
        return max(len(self.cells.weight), len(self.observed))


@dataclass(frozen=True, eq=False)
class Question:
    """The interval asked for: confidence level, number of resamples, clusters."""

    level: float
    n_resamples: int
    rng: Generator
    clusters: Clusters | None = None

    def interval(self, measure: Measure, problem: Problem, value: float) -> Interval:
        """Return the interval for a measure whose value is known."""
        view = View.of(measure, problem, value, self.clusters)
        found = _interval(view, self.level, self._draws(view), self.rng)
        power = view.image.power
        return Interval(found.low**power, found.high**power, found.centre**power)

    def _draws(self, view: View) -> int:
        """Return how many draws to make: no fewer than the quantiles of the level need."""
        usual, most = (numbers // view.size for numbers in (_NUMBERS, _MOST_NUMBERS))
        needed = min(validation.min_resamples(1 - _PART * (1 - self.level)), most)
        return max(min(self.n_resamples, max(usual, _FEWEST_DRAWS)), needed)


def check_has_interval(name: str, measure: Measure) -> None:
    """Refuse a measure that is not a norm of residuals summed over scores known beforehand."""
    if measure.no_interval:
        raise CalibrantError(f"estimate has no interval for {name} {measure.no_interval}")


@dataclass(frozen=True, eq=False)
class Noise:
    """Simulated noise of the sample."""

    # Totals, images: simulated noise of the residual totals, one row per resample, and its images.
    totals: FloatArray
    images: FloatArray
    calibrated: bool  # whether perfect calibration is not rejected
    sd: float  # standard deviation of the mean residual

    @classmethod
    def around(cls, view: View, tail: float, n: int, rng: Generator) -> Noise:
        """Test for perfect calibration, and draw the noise around what the test leaves.

        It has the shape it has under perfect calibration as long as that is not refuted.
        """
        cells = view.cells
        sd = math.sqrt(cells.variance) / cells.total
        few = math.ceil(_DRAWS_PER_TAIL / tail)
        if few < n and not cells.has_one_distribution and _is_far_from_calibrated(view, few, rng):
            totals = cells.noise(n, rng)
            return cls(totals, view.of_noise(totals), False, sd)
        totals = cells.calibrated_noise(n, rng)
        images = view.of_noise(totals)
        null = shifted_norms(view.image.norm, images, view.offset)
        calibrated = view.value <= weibull_quantile(null, 1 - tail) + _TIE * sd
        if cells.has_one_distribution:
            return cls(totals, images, calibrated, sd)
        expected = float(cells.calibrated_variance.sum())
        if calibrated and cells.is_normal and expected > 0:
            # The same distribution but for its scale: no need to draw again.
            scale = math.sqrt(cells.variance / expected)
            return cls(totals * scale, images * scale, calibrated, sd)
        totals = cells.noise(n, rng, calibrated=calibrated)
        return cls(totals, view.of_noise(totals), calibrated, sd)

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation at each coordinate of the image."""
        return np.asarray(self.images.std(axis=0))


def _is_far_from_calibrated(view: View, n: int, rng: Generator) -> bool:
    """Return whether few resamples suffice to reject perfect calibration."""
    images = view.of_noise(view.cells.calibrated_noise(n, rng))
    return view.value > float(shifted_norms(view.image.norm, images, view.offset).max())


def _interval(view: View, level: float, n_resamples: int, rng: Generator) -> Interval:
    """Return the interval for a norm, or for the scale at which a norm equals the scale."""
    tail, is_scale = (1 - level) / 2, view.image.at_scale is not None
    noise = Noise.around(view, tail, n_resamples, rng)
    low, high = 0.0, _highest(view, noise, tail)
    if is_scale:
        # At scales near the observed one the high end allows for as much noise as there.
        high = _highest_scale(view, high - view.value)
    if not noise.calibrated and is_scale:
        low = _lowest_scale(view, noise, tail)
    elif not noise.calibrated:
        low = view.value - _added(view, noise.images, tail)
    high = min(high, 1.0)  # no residual is larger than 1
    low = min(max(low, 0.0), high)
    return Interval(low, high, min(max(_centre(view, noise), low), high) + 0.0)  # never -0.0


def _added(view: View, images: FloatArray, tail: float) -> float:
    """Return the most that noise adds to the norm, but for a probability `tail`."""
    norm, sd = view.image.norm, images.std(axis=0)
    if norm.is_isotropic:
        paths = norm.paths(view.observed, sd)
        ends = (_inverted(view, images, *path, 1 - tail, view.value) for path in paths)
        return view.value - min(ends)
    ways = [(norm, view.observed, images)]
    observed, drawn = (norm.linear_bounds(of, sd) for of in (view.observed, images))
    ways += [(MaxNorm(), *family) for family in zip(observed, drawn, strict=True)]
    spreads = [sd, *(noise.std(axis=0) for *_, noise in ways[1:])]
    kappa = _kappa([noise for *_, noise in ways], spreads, 1 - _PART * tail)
    # The norm has half of what is left of the tail, all linear bounds together the other half.
    rest = (1 - _PART) * tail
    tails = [rest / 2, *(rest / 2 / len(drawn) for _ in drawn)] if drawn else [rest]
    return min(
        view.observed_norm
        - float(kind.of(h))
        + weibull_quantile(kind.most_added(h, kappa * sd, noise), 1 - own)
        for (kind, h, noise), sd, own in zip(ways, spreads, tails, strict=True)
    )


def _kappa(noises: list[FloatArray], spreads: list[FloatArray], level: float) -> float:
    """Return the quantile of the largest coordinate of all images, in standard deviations."""
    largest = np.zeros(len(noises[0]))
    for noise, sd in zip(noises, spreads, strict=True):
        # Coordinates that do not move have no noise either.
        scale = 1 / np.where(sd > 0, sd, 1.0)
        np.maximum(largest, shifted_norms(MaxNorm(), noise, factor=scale), out=largest)
    return weibull_quantile(largest, level)


def _lowest_scale(view: View, noise: Noise, tail: float) -> float:
    """Return the smallest s that N_s of the sample, less what noise adds to it, does not exceed.

    That excess decreases with s: at the observed scale it is negative, and a secant leads on.
    """
    upper, short = view.value, _added(view, noise.images, tail)
    s = upper - short
    for _ in range(_MOST_SCALES):
        if s * view.image.n_cells < 1:
            return s
        finer = view.at_scale(s)
        # Cells show how N_s changes with s; at the observed scale it is known exactly.
        norm = view.value + finer.observed_norm - view.observed_norm
        excess = norm - _added(finer, finer.of_noise(noise.totals), tail) - s
        if excess >= 0:
            return s + (upper - s) * excess / (excess + short) if excess > 0 else s
        upper, short = s, -excess
        s += 2 * excess
    return s


def _highest_scale(view: View, allowance: float) -> float:
    """Return the s at which the sample's N_s and the allowance make s."""
    value = view.value
    if value == 0:
        return allowance
    finest = min(value, 1 / view.image.n_cells)
    low, high = sorted((value, max(value + allowance, finest)))

    def above(s: float) -> float:
        # Cells show how N_s changes with s; at the observed scale it is known exactly.
        norm = value + view.at_scale(s).observed_norm - view.observed_norm
        return s - norm - allowance

    return monotone_root(above, low, high, _PRECISION * high)


def _highest(view: View, noise: Noise, tail: float) -> float:
    """Return the largest error that a norm this small does not refute."""
    norm, growth = view.image.norm, view.cells.growth
    paths = [path for path in norm.paths(view.observed, noise.spread) if path[1].any()]
    if not paths or noise.sd == 0:
        # Predictions of 0 and 1, all of them right: as for a count of which none was seen.
        return view.value + float(ndtri(tail)) ** 2 * growth
    if view.cells.events < _FEW_EVENTS:
        return max(_by_duality(view, noise, base + rise, tail) for base, rise in paths)
    ends = []
    for base, rise in paths:
        start = np.where(base == 0, view.offset, base)
        # A norm below the median norm of noise refutes no more than that median does: without
        # this, one calibrated sample in forty had the interval [0, 0].
        value = max(view.value, weibull_quantile(shifted_norms(norm, noise.images, start), 0.5))
        variance = noise.sd * noise.sd
        per_sd = growth / variance if variance > 0 else 0.0
        ends.append(_inverted(view, noise.images, start, rise, tail, value, per_sd))
    return max(ends)


def _by_duality(view: View, noise: Noise, image: FloatArray, tail: float) -> float:
    """Return T + d with d = -Q_a <s, e>, whose variance grows with d."""
    short = -weibull_quantile(noise.images @ view.image.norm.slope(image), tail)
    growth = (short / noise.sd) ** 2 * view.cells.growth / 2
    return view.value + growth + math.hypot(growth, short)


def _centre(view: View, noise: Noise) -> float:
    """Return the norm of the image g_x for which T is the median of N(g_x + e); 0 if there is none.

    g_x is a multiple of the image's shape, or where that is too small all of it and more of the
    rest.
    """
    norm, images, value = view.image.norm, noise.images, view.value
    base, rise = norm.shape(view.observed, noise.spread)
    if not rise.any() or weibull_quantile(shifted_norms(norm, images, base), 0.5) >= value:
        base, rise = np.zeros_like(base), base
    return min(_inverted(view, images, base, rise, 0.5, value), value) if rise.any() else 0.0


def _inverted(
    view: View,
    images: FloatArray,
    base: FloatArray,
    rise: FloatArray,
    level: float,
    value: float,
    growth: float = 0.0,
) -> float:
    """Return the norm of the image base + x rise for which Q_level N(base + x rise + e) = value.

    The variance of e grows with the norm, as far as that exceeds the value.
    """
    norm = view.image.norm
    size = float(norm.of(rise))
    if size == 0:
        # Squares that underflow have no norm.
        return float(norm.of(base))
    unit = rise / size
    sd = math.sqrt(view.cells.variance) / view.cells.total
    norms = norm.along(images, base, unit)

    def above(x: float) -> float:
        excess = float(norm.of(base + x * unit)) - value if growth else 0.0
        return weibull_quantile(norms(x, math.sqrt(1 + growth * max(excess, 0.0))), level) - value

    beyond = value + 2 * sd
    # No error is more than 1, nor is the norm of the offset: a norm of 2 is beyond all.
    while beyond < 2 and above(beyond) < 0:
        beyond *= 1.5
    return float(
        norm.of(base + monotone_root(above, 0.0, beyond, _PRECISION * (sd or value)) * unit)
    )
