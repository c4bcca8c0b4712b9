"""The data of Błasiok and Nakkiran (2023): bundled sets, and predictions that move a little."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from calibrant.arrays import AnyArray, FloatArray
from calibrant.datasets import Dataset, load_flares, load_imagenet, load_rain

BUNDLED: dict[str, Callable[[], Dataset]] = {
    "resnet34": partial(load_imagenet, "resnet34"),
    "flares DAFFS": partial(load_flares, "DAFFS"),
    "rain": load_rain,
    "flares NOAA": partial(load_flares, "NOAA"),
    "densenet161": partial(load_imagenet, "densenet161"),
}
SKEWED_SIZE = 1000
# Not printed; at this size the first distribution has the printed ECE.
MOVED_SIZE = 500
MOVED_BINS = 20


def moved_sample(number: int, n: int, rng: np.random.Generator) -> tuple[AnyArray, FloatArray]:
    """Draw from distribution 1, 2 or 3 of figure 3; a cell is two bins."""
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.uint8)
    return y, moved(y, p, cell=2 / MOVED_BINS, share=(number - 1) / 2)


def moved(y: AnyArray, p: FloatArray, cell: float, share: float) -> FloatArray:
    """Move outcomes 1 towards the upper half of their cell of scores, outcomes 0 to the lower.

    No prediction moves by more than `share` times half a cell; with a share of 1 all arrive.
    """
    half = cell / 2
    is_upper = np.floor(p / half) % 2 == 1
    way = np.where(np.asarray(y) == 1, 1.0 * ~is_upper, -1.0 * is_upper)
    return np.asarray(np.clip(p + share * half * way, 0.0, 1.0))
