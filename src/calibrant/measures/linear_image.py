"""Measures as norms of a linear function of residual sums: what intervals are made of.

A calibration error that has an interval is N(h), with N a norm and h, its image, linear in the
residuals w (y - p) summed over narrow cells of scores. A measure says which cells, which linear
function and which norm; how noisy the sums are is the business of :mod:`calibrant.inference`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.measures.image_norms import ImageNorm
from calibrant.numerics.smoothing import fast_length
from calibrant.problem import CellOf, Index

__all__ = ["LinearImage", "cells_for_smoothing", "smoothed", "total"]

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
