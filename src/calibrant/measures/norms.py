"""Images: the linear functions of residuals that calibration errors are norms of.

A measure that has a confidence interval is a norm N(h) of an image h, a linear function of the
residuals w (y - p) summed over narrow cells of scores: its :class:`LinearImage` names the cells,
the function and the norm, and :mod:`calibrant.inference` adds the noise of the sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._base import FloatArray
from calibrant.data.problem import CellOf, Index
from calibrant.numerics.smoothing import fast_length

# A coordinate, or a difference of two, that is this many standard deviations from 0 has a known
# sign: noise alone gets so far once in twenty times. See docs/methods/intervals.md for 1.5 and 2.5.
_SIGNIFICANT = 2.0
# The extremes of cumulative sums are places where noise was large, by about this many standard
# deviations; see docs/methods/intervals.md for 0 and 1.
_NOISE_IN_EXTREMES = 0.5
# Numbers that fit into the cache together.
_CHUNK = 1 << 16
# Noise smoothed at a scale is the same from cells half as wide as from narrower ones, but for 1% in
# the width of the kernel; where it costs little, cells are a fifth as wide, which leaves 0.3%.
_CELLS_PER_SCALE, _FINE_CELLS_PER_SCALE = 2, 5
_MIN_CELLS, _MAX_FINE_CELLS, _MAX_CELLS = 32, 512, 1 << 14


@dataclass(frozen=True, eq=False)
class LinearImage:
    """A measure as a norm of a linear function of the residual totals of cells."""

    norm: ImageNorm
    cell_of: CellOf  # cell_of, n_cells: the cell of each score, and the number of cells
    n_cells: int
    # Takes residual totals and weights of cells, shape (..., cells), to images, shape (...,
    # coordinates); linear in the totals.
    of_totals: Callable[[FloatArray, FloatArray], FloatArray]
    # Takes weights of cells to the image of a perfectly calibrated population; None where it is 0.
    offset_of: Callable[[FloatArray], FloatArray] | None = None
    # Takes the cells that hold rows to the same image as a function of these alone, where they may
    # be few; None where all cells are needed.
    of_filled: Callable[[Index], LinearImage] | None = None
    # Where the measure is the scale s at which N_s equals s: takes another scale to the image
    # there, over the same cells. None where the measure is the norm itself.
    at_scale: Callable[[float], LinearImage] | None = None
    power: int = 1  # the measure is this power of the norm: 2 for a mean of squares


def smoothed(r: FloatArray, scale: float) -> FloatArray:
    """Return totals smoothed by the reflected Gaussian, its scale in units of the interval."""
    from scipy.fft import dct, idct

    size = r.shape[-1]
    damping = np.exp((np.pi * scale * np.arange(size)) ** 2 * -0.5)
    rows, found, step = r.reshape(-1, size), np.empty(r.shape), max(1, _CHUNK // size)
    into = found.reshape(-1, size)
    for start in range(0, len(rows), step):
        chunk = slice(start, start + step)
        a = dct(rows[chunk], axis=-1, norm="ortho")
        a *= damping
        into[chunk] = idct(a, axis=-1, norm="ortho", overwrite_x=True)
    return found


def cells_for_smoothing(n_scales: float) -> int:
    """Return the number of cells for noise smoothed over an interval of `n_scales` scales."""
    fine = min(_FINE_CELLS_PER_SCALE * n_scales, _MAX_FINE_CELLS)
    return fast_length(int(min(max(_CELLS_PER_SCALE * n_scales, fine, _MIN_CELLS), _MAX_CELLS)))


class ImageNorm(ABC):
    """A norm N of images, over the last axis, and what intervals need to know of it."""

    # Whether noise of equal standard deviations adds as much to one image as to another of the same
    # norm, so that a test of the norm has no nuisance parameters.
    is_isotropic = False

    @abstractmethod
    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return an image of minimal norm among those within `slack` of h at each coordinate."""
        return np.asarray(np.sign(h) * np.maximum(np.abs(h) - slack, 0.0))

    def most_added(self, h: FloatArray, slack: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the most that each noise image adds to the norm of an image within slack of h.

        That is a bound on N(g + e) - N(g) for every such g, attained by the image of minimal norm.
        """
        least = self.least(h, slack)
        return shifted_norms(self, noise, least) - self.of(least)

    def linear_bounds(self, images: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return linear functions of images that are never above the norm, in families.

        Noise adds less to them than to the norm. sd are its standard deviations.
        """
        return ()

    def shape(self, h: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return an image that noise adds about as much to as to the population's, and the rest.

        The rest is what else may be in the image: 0 where nothing is left out.
        """
        return self.least(h, _NOISE_IN_EXTREMES * sd), np.zeros_like(h)

    @abstractmethod
    def paths(self, h: FloatArray, sd: FloatArray) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Return pairs (base, rise): images base + x rise whose norm noise raises least."""

    def along(
        self, noise: FloatArray, base: FloatArray, rise: FloatArray
    ) -> Callable[[float, float], FloatArray]:
        """Return what takes x and f to the norms of f * noise + base + x * rise."""
        return lambda x, factor: shifted_norms(self, noise, base + x * rise, factor)

    @abstractmethod
    def slope(self, h: FloatArray) -> FloatArray:
        """Return a subgradient: s with N(h) = <s, h> and <s, g> <= N(g) for every g."""


class L1Norm(ImageNorm):
    """Sum of absolute values: binned, smoothed and logit-smoothed errors.

    abs(g + e) - abs(g) is abs(e) where g and e have the same sign, else abs(e) - 2 min(abs(g),
    abs(e)): for every e it decreases as abs(g) grows from 0 with its sign unchanged. Within slack
    of h no image has smaller coordinates than `least`, nor other signs where that is not 0.
    """

    def of(self, images: FloatArray) -> FloatArray:
        return np.asarray(np.abs(images).sum(axis=-1))

    def linear_bounds(self, images: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return <s, h> for s all of one sign, and for signs that change at quarters of the noise.

        The first is the norm of a shift; of the others one is nearly that of predictions too
        extreme or too cautious.
        """
        below, noise = np.cumsum(images, axis=-1), np.cumsum(sd)
        changes = np.searchsorted(noise, noise[-1] * np.array([0.25, 0.5, 0.75]))
        return below[..., -1:], 2 * below[..., changes] - below[..., -1:]

    def shape(self, h: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the significant coordinates of h; and sd elsewhere, signed as the nearest of them.

        Noise adds sum_k sd_k f(abs(h_k) / sd_k) on average, f(u) = E abs(u + Z) - u. As f is
        convex this is minimal, for a given norm, where abs(h) is proportional to sd; and since
        noise is positively correlated between neighbours, the norm varies most where signs agree.
        """
        known = np.where(np.abs(h) > _SIGNIFICANT * sd, h, 0.0)
        (places,) = np.nonzero(known)
        if not len(places):
            return known, sd
        between = (places[1:] + places[:-1]) / 2
        nearest = places[np.searchsorted(between, np.arange(len(h)))]
        return known, np.where(known == 0, sd * np.sign(h[nearest]), 0.0)

    def paths(self, h: FloatArray, sd: FloatArray) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Return the shape of h with a growing rest; multiples of h where there is no rest."""
        known, rest = self.shape(h, sd)
        return ((known, rest),) if rest.any() else ((np.zeros_like(h), h),)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return the signs of h."""
        return np.sign(h)


class L2Norm(ImageNorm):
    """Root of the sum of squares."""

    is_isotropic = True

    def of(self, images: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(np.einsum("...i,...i->...", images, images)))

    def shape(self, h: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return h: noise adds much the same to all images of one norm."""
        return h, np.zeros_like(h)

    def paths(self, h: FloatArray, sd: FloatArray) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Return multiples of sd and of h: noise adds as much, but spreads along its own axes."""
        return tuple((np.zeros_like(h), rise) for rise in (sd, h) if rise.any())

    def along(
        self, noise: FloatArray, base: FloatArray, rise: FloatArray
    ) -> Callable[[float, float], FloatArray]:
        """Return norms along a line, each by the cosine theorem: noise is looked at once."""
        squares = np.square(self.of(noise))
        on_base, on_rise = noise @ base, noise @ rise

        def norms(x: float, factor: float) -> FloatArray:
            size = float(self.of(base + x * rise))
            found = factor * (factor * squares + 2 * (on_base + x * on_rise)) + size * size
            return np.asarray(np.sqrt(np.maximum(found, 0.0)))

        return norms

    def slope(self, h: FloatArray) -> FloatArray:
        """Return h scaled to norm 1."""
        size = self.of(h)
        return h / size if size > 0 else np.zeros_like(h)


class MaxNorm(ImageNorm):
    """Maximum absolute value of cumulative sums that start at 0.

    Noise adds max_k max(abs(g_k + e_k)) - M to an image of norm M. Where M grows, and every g_k by
    as much at most, this decreases: the most is added where M is the least possible, and every g_k
    the largest, or the smallest, that M and the slack allow.
    """

    def of(self, images: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(images.max(axis=-1), -images.min(axis=-1)))

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return h with its maxima cut to one height: any may be the population's maximum."""
        most = max(float((np.abs(h) - slack).max()), 0.0)
        return np.clip(h, -most, most)

    def most_added(self, h: FloatArray, slack: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the most that each noise image adds to the norm of an image within slack of h."""
        most = max(float((np.abs(h) - slack).max()), 0.0)
        highest = (noise + np.minimum(h + slack, most)).max(axis=-1)
        lowest = (noise + np.maximum(h - slack, -most)).min(axis=-1)
        return np.asarray(np.maximum(highest, -lowest) - most)

    def paths(self, h: FloatArray, sd: FloatArray) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Return sums that rise until the most variable place that may be the maximum."""
        time, sums = np.append(0.0, sd * sd), np.append(0.0, h)
        end = float(_times_of_maximum(np.abs(sums), time).max())
        return ((np.zeros_like(h), _one_peak(time, 0.0, end)),)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return the sign of h where it is farthest from 0, and 0 elsewhere."""
        return np.where(np.arange(len(h)) == np.argmax(np.abs(h)), np.sign(h), 0.0)


class RangeNorm(ImageNorm):
    """Maximum less minimum of cumulative sums that start at 0: twice the argument of `MaxNorm`."""

    def of(self, images: FloatArray) -> FloatArray:
        high, low = images.max(axis=-1), images.min(axis=-1)
        return np.asarray(np.maximum(high, 0.0) - np.minimum(low, 0.0))

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return h with its maxima cut to one height and its minima to another."""
        low, high = min(float((h + slack).min()), 0.0), max(float((h - slack).max()), 0.0)
        return np.clip(h, low, high)

    def most_added(self, h: FloatArray, slack: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the most that each noise image adds to the norm of an image within slack of h."""
        low, high = min(float((h + slack).min()), 0.0), max(float((h - slack).max()), 0.0)
        highest = (noise + np.minimum(h + slack, high)).max(axis=-1)
        lowest = (noise + np.maximum(h - slack, low)).min(axis=-1)
        return np.asarray(np.maximum(highest, 0.0) - high + low - np.minimum(lowest, 0.0))

    def paths(self, h: FloatArray, sd: FloatArray) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Return sums that rise over the longest time that may lie between the extremes."""
        time, sums = np.append(0.0, sd * sd), np.append(0.0, h)
        highest, lowest = _times_of_maximum(sums, time), _times_of_maximum(-sums, time)
        spans = ((lowest.min(), highest.max()), (highest.min(), lowest.max()))
        start, end = max(spans, key=lambda ends: ends[1] - ends[0])
        return ((np.zeros_like(h), _one_peak(time, float(start), float(end))),)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return 1 at the maximum if it is above 0, -1 at the minimum if below, 0 elsewhere."""
        place = np.arange(len(h))
        highest, lowest = place == np.argmax(h), place == np.argmin(h)
        return np.where(highest & (h > 0), 1.0, 0.0) - np.where(lowest & (h < 0), 1.0, 0.0)


def shifted_norms(
    norm: ImageNorm,
    images: FloatArray,
    shift: FloatArray | float = 0.0,
    factor: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the norms of factor * images + shift, a few images at a time."""
    norms, step = np.empty(len(images)), max(1, _CHUNK // images.shape[1])
    is_scaled = np.any(factor != 1)
    for start in range(0, len(images), step):
        chunk = slice(start, start + step)
        moved = images[chunk] * factor if is_scaled else images[chunk].copy()
        moved += shift
        norms[chunk] = norm.of(moved)
    return norms


def _times_of_maximum(sums: FloatArray, time: FloatArray) -> FloatArray:
    """Return the times at which the population's cumulative sums may be highest.

    The variance of cumulative sums serves as time: the variance of the difference of two sums is
    the time between them.
    """
    top = int(np.argmax(sums))
    near = sums >= sums[top] - _SIGNIFICANT * np.sqrt(np.abs(time - time[top]))
    return np.asarray(time[near])


def _one_peak(time: FloatArray, start: float, end: float) -> FloatArray:
    """Return cumulative sums, without that at time 0, with one minimum and one maximum.

    They fall until `start`, rise steadily until `end` and fall again, on either side no further
    than half way: where they stayed level noise would make a higher maximum.
    """
    rise = end - start
    before, after = np.maximum(start - time, 0.0), np.maximum(time - end, 0.0)
    sums = np.clip(time, start, end) - start
    sums += np.minimum(before, rise / 2) - np.minimum(after, rise / 2)
    return np.asarray(sums[1:] - sums[0])
