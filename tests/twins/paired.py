"""Paired differences straight from their definitions: one row, one draw and one bin at a time."""

import math
from statistics import NormalDist

import numpy as np


def bin_image(r, p, n_bins):
    """Return the residual of each bin, over the number of rows."""
    image = np.zeros(n_bins)
    for residual, score in zip(r, p, strict=True):
        image[min(int(score * n_bins), n_bins - 1)] += residual
    return image / len(r)


def walk_image(r, p):
    """Return where the cumulative walk stands after each distinct score."""
    return np.array([r[p <= score].sum() for score in np.unique(p)]) / len(r)


def smooth_image(r, p, scale, n_points):
    """Return the residuals smoothed by a reflected Gaussian, at points between 0 and 1."""
    image = np.zeros(n_points)
    for k in range(n_points):
        t = (k + 0.5) / n_points
        for turn in (-1, 0, 1):
            for place in (2 * turn + p, 2 * turn - p):
                image[k] += r @ np.exp(-(((t - place) / scale) ** 2) / 2)
    return image / (scale * math.sqrt(2 * math.pi) * len(r) * n_points)


def l1(image):
    return sum(abs(value) for value in image)


def l1_slope(image):
    return np.array([(value > 0) * 1.0 - (value < 0) for value in image])


def l1_least(image, slack):
    return np.array(
        [
            0.0 if abs(value) <= by else value - math.copysign(by, value)
            for value, by in zip(image, slack, strict=True)
        ]
    )


def walk_range(image):
    return max(0.0, *image) - min(0.0, *image)


def walk_range_slope(image):
    """Return 1 at the first highest point and -1 at the first lowest, unless that is the start."""
    values, slope = list(image), np.zeros(len(image))
    if max(values) > 0:
        slope[values.index(max(values))] += 1
    if min(values) < 0:
        slope[values.index(min(values))] -= 1
    return slope


def walk_range_least(image, slack):
    top, bottom = max(0.0, *(image - slack)), min(0.0, *(image + slack))
    return np.array([min(max(value, bottom), top) for value in image])


def multipliers(n_units, n_draws, seed):
    """Return one number a unit and draw: normal, and a t-distribution for few units."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_draws, n_units))
    return z * np.sqrt((n_units - 1) / rng.chisquare(n_units - 1, (n_draws, 1)))


def noise_images(image, r, p, units, z):
    """Return noise of the image: a row for each draw.

    What a unit adds to the image is its own residuals' image, less its share of the whole.
    """
    n, whole = len(r), image(r, p)
    moves = []
    for unit in np.unique(units):
        inside = units == unit
        alone = image(np.where(inside, r, 0.0), p)
        moves.append(alone - inside.sum() / n * whole)
    n_units = len(moves)
    return z @ np.array(moves) * math.sqrt(n_units / (n_units - 1))


def stretch(r, p, units):
    """Return how much larger noise is made where residuals are smaller than expected."""
    scores, n = np.unique(p), len(r)
    n_units = len(np.unique(units))
    seen = 0.0
    for unit in np.unique(units):
        inside = units == unit
        for score in scores:
            here = p == score
            seen += (r[inside & here].sum() - inside.sum() / n * r[here].sum()) ** 2
    seen *= n_units / (n_units - 1)
    return math.sqrt(max(1.0, (p * (1 - p)).sum() / seen))


def by_chance(a, b, norm, slope, least, tail, *, whose, kappa=1.25):
    """Return by how much chance may have raised N(a) - N(b), draw by draw, in order.

    `a` and `b` are pairs of an image and the images of its noise. a was unlucky, or b lucky.
    """
    (h_a, e_a), (h_b, e_b) = a, b
    h, e, sign = (h_a, e_a, 1) if whose == "a" else (h_b, e_b, -1)
    luck = np.array([slope(h) @ draw for draw in e])
    luck = sign * luck / luck.std() * max(2.0, NormalDist().inv_cdf(1 - tail))
    moved_a = h_a - np.mean([one * draw for one, draw in zip(luck, e_a, strict=True)], axis=0)
    moved_b = h_b - np.mean([one * draw for one, draw in zip(luck, e_b, strict=True)], axis=0)
    best = least(moved_a, kappa * e_a.std(axis=0))
    return sorted(
        norm(best + of_a) - norm(best) - norm(moved_b + of_b) + norm(moved_b)
        for of_a, of_b in zip(e_a, e_b, strict=True)
    )


def least_difference(a, b, norm, slope, least, level):
    """Return the least that N(a) - N(b) may be, with the least tail at which that is above 0."""
    found = [_least_difference(a, b, norm, slope, least, level, whose) for whose in ("a", "b")]
    return min(low for low, _ in found), max(p for _, p in found)


def _least_difference(a, b, norm, slope, least, level, whose):
    seen = norm(a[0]) - norm(b[0])
    tail = (1 - level) / 2
    drawn = by_chance(a, b, norm, slope, least, tail, whose=whose)
    # One more draw would lie below the k-th of n with probability k / (n + 1).
    place = (1 - tail) * (len(drawn) + 1) - 1
    low = math.floor(place)
    most = drawn[low] + (place - low) * (drawn[low + 1] - drawn[low])
    p = 0.0
    # Draws depend on the tail only where that is small.
    for rank in range(1, len(drawn) + 2):
        p = rank / (len(drawn) + 1)
        if rank == 1 or p < 0.05:
            drawn = by_chance(a, b, norm, slope, least, p * 0.999999, whose=whose)
        if 1 + sum(value >= seen for value in drawn) <= rank:
            break
    return seen - most, p


def holm_by_steps(p_values):
    """Return, for each, the smallest level at which Holm's procedure rejects it."""
    levels = np.unique(np.concatenate([np.asarray(p_values) * k for k in range(1, 30)]))
    adjusted = [1.0] * len(p_values)
    for level in sorted((one for one in levels if one < 1), reverse=True):
        left = list(range(len(p_values)))
        while left:
            smallest = min(left, key=lambda i: p_values[i])
            # Equality up to rounding counts.
            if p_values[smallest] * len(left) > level * (1 + 1e-12):
                break
            adjusted[smallest] = level
            left.remove(smallest)
    return adjusted
