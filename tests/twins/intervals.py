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
    """Return the least of three bounds on what noise adds to the sum of absolute values."""
    sd = [np.std(column) for column in images.T]
    signs = [[1] * len(h), *(one_change(sd, part) for part in (0.25, 0.5, 0.75))]
    bounded = np.array([[signed(s, image) for s in signs] for image in images])
    sums = [signed(s, h) for s in signs]
    k, _ = kappa(np.hstack([images, bounded]), tail / 5)
    left = tail * 4 / 5
    g = [math.copysign(max(abs(x) - k * s, 0), x) for x, s in zip(h, sd, strict=True)]
    added = [sum(abs(x + e) - abs(x) for x, e in zip(g, image, strict=True)) for image in images]
    ends = [quantile(added, 1 - left / 2)]
    for family in (slice(0, 1), slice(1, 4)):
        short = sum(abs(x) for x in h) - max(abs(x) for x in sums[family])
        more = most_added_to_maximum(sums[family], bounded[:, family], k)
        ends.append(short + quantile(more, 1 - left / 4))
    return min(ends)


def signed(signs, h):
    """Return the sum with these signs."""
    return math.fsum(s * x for s, x in zip(signs, h, strict=True))


def one_change(sd, part):
    """Return + up to the coordinate at which the sum of sd reaches a part of the whole, then -."""
    signs, reached = [], 0.0
    for s in sd:
        signs.append(1 if reached < part * sum(sd) else -1)
        reached += s
    return signs


def added_to_maximum(h, images, tail):
    """Return the same for the maximum absolute value, of every image that the rectangle allows."""
    outside = tail / 5
    k, _ = kappa(images, outside)
    return quantile(most_added_to_maximum(h, images, k), 1 - tail + outside)


def most_added_to_maximum(h, images, k):
    """Return what each image of noise adds at most, where all are within k sd of h."""
    slack = [k * np.std(column) for column in images.T]
    least = max(max(abs(x) - r, 0) for x, r in zip(h, slack, strict=True))
    added = []
    for image in images:
        ends = []
        for x, r, e in zip(h, slack, image, strict=True):
            # The coordinate itself may be anywhere up to the least maximum.
            highest, lowest = min(x + r, least), max(x - r, -least)
            ends += [highest + e, -lowest - e]
        added.append(max(ends) - least)
    return added
