"""The norms that measures are made of, each with the images that noise treats worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from calibrant.arrays import FloatArray

# Beyond so many standard deviations what an image shows counts as known.
_CLEAR = 2.0
# Numbers looked at together, few enough to stay in cache.
_TOGETHER = 1 << 15


class ImageNorm(Protocol):
    """A norm of images, taken over the last axis."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return an image of least norm among those within `slack` of h at each coordinate."""

    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return images along which a given norm looks smallest under noise of this sd."""

    def slope(self, h: FloatArray) -> FloatArray:
        """Return the s with N(h) = <s, h> and <s, g> <= N(g) for every g: the derivative of N."""


class L1Norm:
    """Sum of absolute values: binned, smoothed and logit-smoothed errors."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""
        return np.asarray(np.abs(images).sum(axis=-1))

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return h moved towards 0."""
        return _towards_zero(h, slack)

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


class L2Norm:
    """Root of the sum of squares."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each image."""
        return np.asarray(np.sqrt(np.einsum("...i,...i->...", images, images)))

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return h moved towards 0."""
        return _towards_zero(h, slack)

    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return sd and h: noise adds much the same everywhere, and spreads along its own axes."""
        return (sd, h)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return h made of norm 1."""
        size = self.of(h)
        return h / size if size > 0 else np.zeros_like(h)


class MaxNorm:
    """Largest absolute value of a walk that starts at 0."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the norm of each walk."""
        return np.asarray(np.maximum(images.max(axis=-1), -images.min(axis=-1)))

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return h with its tops cut to one height: any of them may be the population's top."""
        most = max(float((np.abs(h) - slack).max()), 0.0)
        return np.clip(h, -most, most)

    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return the walk that rises to the most variable place that may be the top."""
        time, walk = _from_start(sd * sd), _from_start(h)
        return (_peak(time, 0.0, float(_rivals(np.abs(walk), time).max())),)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return the sign of h where it is farthest from 0."""
        return _at(np.argmax(np.abs(h)), np.sign(h))


class RangeNorm:
    """Highest minus lowest point of a walk that starts at 0."""

    def of(self, images: FloatArray) -> FloatArray:
        """Return the range of each walk."""
        high, low = images.max(axis=-1), images.min(axis=-1)
        return np.asarray(np.maximum(high, 0.0) - np.minimum(low, 0.0))

    def least(self, h: FloatArray, slack: FloatArray) -> FloatArray:
        """Return h with its tops cut to one height and its bottoms to another."""
        low, high = min(float((h + slack).min()), 0.0), max(float((h - slack).max()), 0.0)
        return np.clip(h, low, high)

    def directions(self, h: FloatArray, sd: FloatArray) -> Sequence[FloatArray]:
        """Return the walk that rises over the longest interval that may span the range."""
        time, walk = _from_start(sd * sd), _from_start(h)
        tops, bottoms = _rivals(walk, time), _rivals(-walk, time)
        stretches = ((bottoms.min(), tops.max()), (tops.min(), bottoms.max()))
        start, end = max(stretches, key=lambda ends: ends[1] - ends[0])
        return (_peak(time, float(start), float(end)),)

    def slope(self, h: FloatArray) -> FloatArray:
        """Return 1 at the highest point above 0 and -1 at the lowest point below."""
        return _at(np.argmax(h), np.maximum(np.sign(h), 0)) + _at(
            np.argmin(h), np.minimum(np.sign(h), 0)
        )


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


def _at(place: np.intp, values: FloatArray) -> FloatArray:
    """Return the value at one place, and 0 elsewhere."""
    alone = np.zeros_like(values)
    alone[place] = values[place]
    return alone


def _towards_zero(h: FloatArray, by: FloatArray) -> FloatArray:
    return np.asarray(np.sign(h) * np.maximum(np.abs(h) - by, 0.0))


def _from_start(walk: FloatArray) -> FloatArray:
    return np.concatenate(([0.0], walk))


def _rivals(walk: FloatArray, time: FloatArray) -> FloatArray:
    """Return the times at which the population's walk may be highest.

    The variance of a walk serves as its time: two places differ by noise of variance their
    distance in time.
    """
    top = int(np.argmax(walk))
    near = walk >= walk[top] - _CLEAR * np.sqrt(np.abs(time - time[top]))
    return np.asarray(time[near])


def _peak(time: FloatArray, start: float, end: float) -> FloatArray:
    """Return a walk, without its place at time 0, from one lowest to one highest point.

    It falls until `start`, rises steadily until `end` and falls again, on either side no further
    than half way: where it stayed level noise would find a higher point.
    """
    rise = end - start
    before, after = np.maximum(start - time, 0.0), np.maximum(time - end, 0.0)
    walk = np.clip(time, start, end) - start
    walk += np.minimum(before, rise / 2) - np.minimum(after, rise / 2)
    return np.asarray(walk[1:] - walk[0])
