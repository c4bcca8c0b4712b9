"""The lower end of an interval, one draw and one coordinate at a time."""

import math

import numpy as np


def quantile(values, level):
    """Of m sorted values the k-th is the quantile of k / (m + 1), linear in between."""
    values = sorted(values)
    place = level * (len(values) + 1)
    below = min(max(math.floor(place), 1), len(values))
    above = min(below + 1, len(values))
    return values[below - 1] + max(place - below, 0) * (values[above - 1] - values[below - 1])


def kappa(images, outside):
    """Return how many standard deviations noise moves the coordinate that it moves most."""
    sd = [np.std(column) for column in images.T]
    return quantile(
        [max(abs(e) / s for e, s in zip(image, sd, strict=True) if s > 0) for image in images],
        1 - outside,
    ), sd


def added_to_absolute_sum(h, images, tail):
    """Return the quantile of what noise adds to the sum of absolute values in the rectangle."""
    outside = tail / 5
    k, sd = kappa(images, outside)
    g = [math.copysign(max(abs(x) - k * s, 0), x) for x, s in zip(h, sd, strict=True)]
    added = [sum(abs(x + e) - abs(x) for x, e in zip(g, image, strict=True)) for image in images]
    noise = quantile([with_one_change(image) for image in images], 1 - outside)
    simple = sum(abs(x) for x in h) - with_one_change(h) + noise
    return min(quantile(added, 1 - tail + 2 * outside), simple)


def with_one_change(h):
    """Return the largest sum with signs that change at one place at most."""
    places = range(len(h) + 1)
    return max(abs(math.fsum(h[:k]) + s * math.fsum(h[k:])) for k in places for s in (-1, 1))


def added_to_maximum(h, images, tail):
    """Return the same for the maximum absolute value, of every image that the rectangle allows."""
    outside = tail / 5
    k, sd = kappa(images, outside)
    slack = [k * s for s in sd]
    least = max(max(abs(x) - r, 0) for x, r in zip(h, slack, strict=True))
    added = []
    for image in images:
        ends = []
        for x, r, e in zip(h, slack, image, strict=True):
            # The coordinate itself may be anywhere up to the least maximum.
            highest, lowest = min(x + r, least), max(x - r, -least)
            ends += [highest + e, -lowest - e]
        added.append(max(ends) - least)
    return quantile(added, 1 - tail + outside)
