"""Measures as norms of a linear image of the residual totals of cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.fft import dct, idct, next_fast_len

from calibrant.arrays import FloatArray
from calibrant.binning import Bins
from calibrant.errors import CalibrantError
from calibrant.inference.intervals.cells import Cells
from calibrant.inference.intervals.clusters import Clusters
from calibrant.inference.intervals.places import BinCells
from calibrant.inference.intervals.shapes import RootShape, Shape, SumShape
from calibrant.lines import TAILS
from calibrant.logits import logit, sigmoid
from calibrant.problem import Index, Problem, logit_range

# Noise smoothed at a scale is the same from cells half as wide as from narrower ones, but for 1% in
# the width of the kernel; where it costs little, cells are a fifth as wide, which leaves 0.3%.
_CELLS_PER_SCALE, _MANY_CELLS_PER_SCALE = 2, 5
_FEWEST_CELLS, _MANY_CELLS, _MOST_CELLS = 32, 512, 1 << 14
# More bins would take more draws than fit into memory.
_MOST_BINS = 1 << 14
# Between its steps a walk strays 0.03 sigma further, on average.
_MOST_STEPS = 512
# Where rows are few, smoothing is a matrix product over the cells near them.
_FEW_PER_CELL = 16
# So many scales away nothing is left, not even of the smallest of numbers.
_NOWHERE = 40.0
# Where a Gaussian has little left.
_TAILS = 5.0

# Takes residual totals and weights of cells, (..., cells), to images (..., coordinates): linear in
# the totals.
Image = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class View:
    """A measure of a sample, as a norm of an image of its cells' residual totals.

    Attributes
    ----------
    value
        The measure, computed exactly: cells serve for the noise alone.
    cells
        The sample.
    shape
        The norm.
    image
        Takes totals and weights of cells to images.
    offset_of
        Takes weights of cells to the image of a perfectly calibrated population: 0, but for
        LS-ECE.
    """

    value: float
    cells: Cells
    shape: Shape
    image: Image
    offset_of: Callable[[FloatArray], FloatArray] | None = None

    def of_noise(self, totals: FloatArray) -> FloatArray:
        """Return the image of noise added to residual totals."""
        return self.image(totals, self.cells.weight)

    @cached_property
    def offset(self) -> FloatArray | float:
        """The image of the population if it is perfectly calibrated."""
        return 0.0 if self.offset_of is None else self.offset_of(self.cells.weight)

    @cached_property
    def observed(self) -> FloatArray:
        """The image of the sample."""
        return self.of_noise(self.cells.residual) + self.offset

    @cached_property
    def norm(self) -> float:
        """The norm of the observed image."""
        return float(self.shape.of(self.observed))

    @property
    def size(self) -> int:
        """How many numbers there are in a draw, or in its image."""
        return max(len(self.cells.weight), len(self.observed))


def binned_view(
    problem: Problem, bins: Bins, value: float, clusters: Clusters | None, *, squared: bool
) -> View:
    """Return binned ECE, l1 or (squared and rooted) l2."""
    binned = BinCells.of(problem, bins)
    if binned.n_bins > _MOST_BINS:
        raise CalibrantError(
            f"n_bins must leave at most {_MOST_BINS} bins with rows in them for an interval; got "
            f"{binned.n_bins}: give fewer bins"
        )
    cells = Cells.gather(problem, binned.cell_of, binned.n_cells, clusters)
    over_bins = partial(_over_bins, per_bin=binned.per_bin)
    if squared:
        return View(value, cells, RootShape(), partial(_l2, over_bins))
    return View(value, cells, SumShape(), lambda r, w: over_bins(r) / _total(w))


def _l2(over_bins: Callable[[FloatArray], FloatArray], r: FloatArray, w: FloatArray) -> FloatArray:
    """Return sqrt(W_k / W) r_k / W_k for each bin k, 0 where there is none."""
    mass = over_bins(w)
    return over_bins(r) / np.sqrt(_total(w) * np.where(mass > 0, mass, 1.0))


def _over_bins(of_cells: FloatArray, per_bin: int) -> FloatArray:
    if per_bin == 1:
        return of_cells
    return np.asarray(of_cells.reshape(*of_cells.shape[:-1], -1, per_bin).sum(axis=-1))


def _total(w: FloatArray) -> FloatArray:
    return np.asarray(w.sum(axis=-1, keepdims=True))


def walk_view(problem: Problem, shape: Shape, value: float, clusters: Clusters | None) -> View:
    """Return a cumulative error: scores in cells of about equal numbers of rows."""
    p = problem.scores
    n_steps = min(_MOST_STEPS, len(p))
    starts = np.unique(p[np.arange(n_steps) * len(p) // n_steps])
    cells = Cells.gather(problem, Bins.starting_at(starts).index, len(starts), clusters)
    return View(value, cells, shape, lambda r, w: np.cumsum(r, axis=-1) / _total(w))


@dataclass(frozen=True, eq=False)
class SmoothCells:
    """Even cells of [0, 1], fine enough for smECE at scales near one.

    Attributes
    ----------
    cells
        Those that hold rows.
    place, size
        Which of all cells they are, and how many these are.
    """

    cells: Cells
    place: Index
    size: int

    @classmethod
    def of(cls, problem: Problem, scale: float, clusters: Clusters | None) -> SmoothCells:
        """Gather the rows of a problem."""
        size = _fft_size(1 / scale)

        def cell_of(p: FloatArray) -> Index:
            return np.minimum((p * size).astype(np.intp), size - 1)

        cells = Cells.gather(problem, cell_of, size, clusters)
        (place,) = np.nonzero(cells.weight)
        return cls(cells.some(place), place, size)

    def view(self, scale: float, value: float) -> View:
        """Return smECE at a given scale."""
        smoothed = self._near(scale) or self._everywhere(scale)
        return View(value, self.cells, SumShape(), lambda r, w: smoothed(r) / _total(w))

    def _everywhere(self, scale: float) -> Callable[[FloatArray], FloatArray]:
        """Return what smooths totals over all cells."""

        def smoothed(r: FloatArray) -> FloatArray:
            whole = np.zeros((*r.shape[:-1], self.size))
            whole[..., self.place] = r
            return _smoothed(whole, scale)

        return smoothed

    def _near(self, scale: float) -> Callable[[FloatArray], FloatArray] | None:
        """Return what smooths totals over the cells near rows, if those are few."""
        if TAILS * scale > 1:
            return None
        reach = math.ceil(TAILS * scale * self.size)
        enters = np.bincount(np.maximum(self.place - reach, 0), minlength=self.size + 1)
        leaves = np.bincount(np.minimum(self.place + reach + 1, self.size), minlength=self.size + 1)
        (near,) = np.nonzero(np.cumsum(enters - leaves)[:-1])
        if len(self.place) * len(near) > _FEW_PER_CELL * self.size:
            return None
        u, t = (self.place + 0.5) / self.size, (near + 0.5) / self.size
        images = np.stack((u, -u, 2 - u))
        away = np.minimum(np.abs(t - images[:, :, None]) / scale, _NOWHERE)
        kernel = np.exp(-0.5 * away * away).sum(axis=0)
        kernel /= kernel.sum(axis=1, keepdims=True)
        return lambda r: r @ kernel


def logit_view(problem: Problem, sigma: float, value: float, clusters: Clusters | None) -> View:
    """Return LS-ECE with Gaussian noise, whose integrand is linear in y - p but for an offset.

    y - rho(u) = (y - p) + (p - rho(u)), smoothed. Rows at p = 0 and p = 1 stay where they are:
    two more coordinates.
    """
    low, high = logit_range(problem) or (0.0, 0.0)
    low, high = low - _TAILS * sigma, high + _TAILS * sigma
    length = high - low
    size = _fft_size(length / sigma)

    def cell_of(p: FloatArray) -> Index:
        place = np.clip((logit(p) - low) / length * size, 0, size - 1)
        return np.where(p <= 0, size, np.where(p >= 1, size + 1, place)).astype(np.intp)

    def smoothed(r: FloatArray) -> FloatArray:
        inside = _smoothed(r[..., :size], sigma / length)
        return np.concatenate((inside, r[..., size:]), axis=-1)

    centres = low + length * (np.arange(size) + 0.5) / size
    rho = np.concatenate((sigmoid(centres), [0.0, 1.0]))

    def offset(w: FloatArray) -> FloatArray:
        # As if rows lay at the centres of their cells: next to their own scores, the distance
        # from the centre would look like an error.
        return np.asarray((smoothed(w * rho) - rho * smoothed(w)) / _total(w))

    cells = Cells.gather(problem, cell_of, size + 2, clusters)
    return View(value, cells, SumShape(), lambda r, w: smoothed(r) / _total(w), offset)


def _smoothed(r: FloatArray, scale: float) -> FloatArray:
    """Return totals smoothed by the reflected Gaussian, its scale in units of the interval."""
    a = dct(r, axis=-1, norm="ortho")
    a *= np.exp((np.pi * scale * np.arange(r.shape[-1])) ** 2 * -0.5)
    return np.asarray(idct(a, axis=-1, norm="ortho", overwrite_x=True))


def _fft_size(scales: float) -> int:
    """Return how many cells there are for an interval of so many scales."""
    many = min(_MANY_CELLS_PER_SCALE * scales, _MANY_CELLS)
    wanted = min(max(_CELLS_PER_SCALE * scales, many, _FEWEST_CELLS), _MOST_CELLS)
    return int(next_fast_len(int(wanted), real=True))
