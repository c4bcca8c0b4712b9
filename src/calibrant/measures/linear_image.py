"""The norms that errors are made of, and what intervals need to know of each.

Of a norm N of images h, taken over the last axis: its value, an image of least norm in a box, the
directions in which noise hides a given norm best, and its slope.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._base import FloatArray
from calibrant.data.problem import CellOf, Index
from calibrant.numerics.smoothing import fast_length

__all__ = ["LinearImage", "cells_for_smoothing", "smoothed", "total"]

# A coordinate, or a difference of two, that is so many standard deviations from 0 has a known sign:
# one in twenty of noise alone would have it.
_CLEAR = 2.0
# Numbers in cache at a time.
_TOGETHER = 1 << 15


class ImageNorm(ABC):
    """A norm of images."""

    @abstractmethod
    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""

    @abstractmethod
    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return images along which a given norm looks smallest under noise of this sd."""

    @abstractmethod
    def slope(self, h: FloatArray) -> FloatArray:
        """Return the s with N(h) = <s, h> and <s, g> <= N(g) for every g: the derivative of N."""

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return an image of least norm among those within `slack` of h at each coordinate."""
        return np.asarray(np.sign(h) * np.maximum(np.abs(h) - slack, 0.0))


class L1Norm(ImageNorm):
    """Sum of absolute values: binned, smoothed and logit-smoothed errors."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""
        return np.asarray(np.abs(images).sum(axis=-1))

    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return sd, with the sign of the nearest coordinate of h whose sign is clear.

        What noise adds on average is sum_k sd_k f(abs(h_k) / sd_k), f(u) = E abs(u + Z) - u. As
        f is convex this is least, for a given norm, where abs(h) is proportional to sd; and since
        noise is positively correlated between neighbours, the norm spreads most where signs agree.
        """
        (clear,) = np.nonzero(np.abs(h) > _CLEAR * sd)
        if not len(clear):
            return (sd,)
        between = (clear[1:] + clear[:-1]) / 2
        nearest = clear[np.searchsorted(between, np.arange(len(h)))]
        return (sd * np.sign(h[nearest]),)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return the signs of h."""
        return np.sign(h)


class L2Norm(ImageNorm):
    """Root of the sum of squares."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""
        return np.asarray(np.sqrt(np.einsum("...i,...i->...", images, images)))

    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return sd and h: noise adds much the same everywhere, and spreads along its own axes."""
        return (sd, h)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return h made of norm 1."""
        size = self.of(h)
        return h / size if size > 0 else np.zeros_like(h)


class MaxNorm(ImageNorm):
    """Maximum absolute value of cumulative sums that start at 0."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""
        return np.asarray(np.maximum(images.max(axis=-1), -images.min(axis=-1)))

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return h with its maxima cut to one height: any may be the population's maximum."""
        most = max(float((np.abs(h) - slack).max()), 0.0)
        return np.clip(h, -most, most)

    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return sums that rise until the most variable place that may be the maximum."""
        time, sums = _from_start(sd * sd), _from_start(h)
        return (_peak(time, 0.0, float(_rivals(np.abs(sums), time).max())),)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return the sign of h where it is farthest from 0, and 0 elsewhere."""
        return np.where(np.arange(len(h)) == np.argmax(np.abs(h)), np.sign(h), 0.0)


class RangeNorm(ImageNorm):
    """Maximum less minimum of cumulative sums that start at 0."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""
        high, low = images.max(axis=-1), images.min(axis=-1)
        return np.asarray(np.maximum(high, 0.0) - np.minimum(low, 0.0))

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return h with its maxima cut to one height and its minima to another."""
        low, high = min(float((h + slack).min()), 0.0), max(float((h - slack).max()), 0.0)
        return np.clip(h, low, high)

    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return sums that rise over the longest time that may lie between the extremes."""
        time, sums = _from_start(sd * sd), _from_start(h)
        tops, bottoms = _rivals(sums, time), _rivals(-sums, time)
        spans = ((bottoms.min(), tops.max()), (tops.min(), bottoms.max()))
        start, end = max(spans, key=lambda ends: ends[1] - ends[0])
        return (_peak(time, float(start), float(end)),)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return 1 at the maximum if it is above 0, -1 at the minimum if below, 0 elsewhere."""
        place = np.arange(len(h))
        highest, lowest = place == np.argmax(h), place == np.argmin(h)
        return np.where(highest & (h > 0), 1.0, 0.0) - np.where(lowest & (h < 0), 1.0, 0.0)


def shifted_norms(
    norm: ImageNorm, images: FloatArray, shift: FloatArray | float = 0.0, stretch: float = 1.0
) -> FloatArray:
    """Return the norms of stretch * images + shift, a few images at a time."""
    norms, together = np.empty(len(images)), max(1, _TOGETHER // images.shape[1])
    for start in range(0, len(images), together):
        some = slice(start, start + together)
        moved = images[some] * stretch
        moved += shift
        norms[some] = norm.of(moved)
    return norms


def _from_start(sums: FloatArray) -> FloatArray:
    return np.concatenate(([0.0], sums))


def _rivals(sums: FloatArray, time: FloatArray) -> FloatArray:
    """Return the times at which the population's cumulative sums may be highest.

    The variance of cumulative sums serves as time: two of them differ by noise of variance their
    distance in time.
    """
    top = int(np.argmax(sums))
    near = sums >= sums[top] - _CLEAR * np.sqrt(np.abs(time - time[top]))
    return np.asarray(time[near])


def _peak(time: FloatArray, start: float, end: float) -> FloatArray:
    """Return cumulative sums, without that at time 0, with one minimum and one maximum.

    They fall until `start`, rise steadily until `end` and fall again, on either side no further
    than half way: where they stayed level noise would make a higher maximum.
    """
    rise = end - start
    before, after = np.maximum(start - time, 0.0), np.maximum(time - end, 0.0)
    sums = np.clip(time, start, end) - start
    sums += np.minimum(before, rise / 2) - np.minimum(after, rise / 2)
    return np.asarray(sums[1:] - sums[0])


# Measures as norms of a linear function of residual sums: what intervals are made of.
#
# A calibration error that has an interval is N(h), with N a norm and h, its image, linear in the
# residuals w (y - p) summed over narrow cells of scores. A measure says which cells, which linear
# function and which norm; how noisy the sums are is the business of :mod:`calibrant.inference`.

# Noise smoothed at a scale is the same from cells half as wide as from narrower ones, but for 1% in
# the width of the kernel; where it costs little, cells are a fifth as wide, which leaves 0.3%.
_CELLS_PER_SCALE, _MANY_CELLS_PER_SCALE = 2, 5
_FEWEST_CELLS, _MANY_CELLS, _MOST_CELLS = 32, 512, 1 << 14


@dataclass(frozen=True, eq=False)
class LinearImage:
    """A measure as a norm of a linear function of the residual totals of cells.

    Attributes
    ----------
    norm
        The norm.
    cell_of, n_cells
        The cell of each score, and the number of cells.
    of_totals
        Takes residual totals and weights of cells, shape (..., cells), to images, shape
        (..., coordinates); linear in the totals.
    offset_of
        Takes weights of cells to the image of a perfectly calibrated population; None where it
        is 0.
    of_filled
        Takes the cells that hold rows to the same image as a function of these alone, where they
        may be few; None where all cells are wanted.
    at_scale
        Where the measure is the scale s at which N_s equals s: takes another scale to the image
        there, over the same cells. None where the measure is the norm itself.
    """

    norm: ImageNorm
    cell_of: CellOf
    n_cells: int
    of_totals: Callable[[FloatArray, FloatArray], FloatArray]
    offset_of: Callable[[FloatArray], FloatArray] | None = None
    of_filled: Callable[[Index], LinearImage] | None = None
    at_scale: Callable[[float], LinearImage] | None = None


def total(w: FloatArray) -> FloatArray:
    """Return the total weight of the cells of each sample, as a column."""
    return np.asarray(w.sum(axis=-1, keepdims=True))


def smoothed(r: FloatArray, scale: float) -> FloatArray:
    """Return totals smoothed by the reflected Gaussian, its scale in units of the interval."""
    from scipy.fft import dct, idct

    a = dct(r, axis=-1, norm="ortho")
    a *= np.exp((np.pi * scale * np.arange(r.shape[-1])) ** 2 * -0.5)
    return np.asarray(idct(a, axis=-1, norm="ortho", overwrite_x=True))


def cells_for_smoothing(n_scales: float) -> int:
    """Return how many cells there are for an interval of so many scales."""
    many = min(_MANY_CELLS_PER_SCALE * n_scales, _MANY_CELLS)
    wanted = min(max(_CELLS_PER_SCALE * n_scales, many, _FEWEST_CELLS), _MOST_CELLS)
    return fast_length(int(wanted))
