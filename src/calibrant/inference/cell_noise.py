"""Rows summed over cells of scores, and the noise of their residual totals.

Rows may depend on each other within clusters, which are then resampled as a whole. With R_gc the
residual total of cluster g in cell c and W_g its weight, resampling clusters changes the total r_c
by the sum of z_g (R_gc - (W_g / W) r_c), z_g independent with variance 1: a multiplier bootstrap.
Where clusters are many they are added up in bundles, each cluster with a random sign, which leaves
the covariance of the noise unchanged on average, and nearly so in fact.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray
from calibrant.data.labels import read_labels
from calibrant.data.problem import CellOf, Index, Problem
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError

# Binomial counts of at least this variance are drawn as normal: no measure looks at single cells,
# and sums over several are closer to normal still.
_NORMAL_VARIANCE = 9.0
# Bundling changes covariances by about sqrt(2 / 1024), 4%.
_MOST_BUNDLES = 1024
# The variance between fewer clusters is unknown, or hardly known; of unequal ones those count that
# equal ones would be with the same sum of squared sizes.
MIN_CLUSTERS, _FEW_CLUSTERS, _FEW_EFFECTIVE = 3, 10, 5


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which cluster each row belongs to."""

    bundle: Index  # bundle, sign: the bundle of each row, and the sign with which it counts there
    sign: FloatArray
    n: int  # the number of clusters

    @classmethod
    def read(
        cls, labels: Any, sample_weight: Any, problem: Problem, rng: Generator
    ) -> Clusters | None:
        """Read one label per row, or None; rows of weight 0 are left out as they are elsewhere."""
        if labels is None:
            return None
        if not problem.is_exact:
            raise CalibrantError(
                "clusters needs rows: a sketch does not know which rows belong together"
            )
        return cls.of_codes(read_codes(labels, sample_weight, problem.n), rng)

    @classmethod
    def of_codes(cls, code: Index, rng: Generator) -> Clusters:
        """Return the clusters of rows known by numbers, some of which may not occur."""
        names, code = np.unique(code, return_inverse=True)
        n = len(names)
        if n <= _MOST_BUNDLES:
            return cls(code, np.ones(len(code)), n)
        bundle = rng.permutation(n) % _MOST_BUNDLES
        return cls(bundle[code], rng.choice([-1.0, 1.0], n)[code], n)

    @classmethod
    def single_rows(cls, n: int, rng: Generator) -> Clusters:
        """Return n rows, each a cluster of its own."""
        return cls.of_codes(np.arange(n), rng)

    @cached_property
    def n_bundles(self) -> int:
        """The number of bundles of clusters, or of clusters where they are few."""
        return int(self.bundle.max()) + 1

    def blocks(
        self, problem: Problem
    ) -> Iterator[tuple[Index, FloatArray, FloatArray, FloatArray]]:
        """Yield bundle, p, y and signed weight of the rows, block by block."""
        start = 0
        for p, y, w in problem.rows.blocks():
            rows = slice(start, start + len(p))
            start, sign = rows.stop, self.sign[rows]
            yield self.bundle[rows], p, y, sign if w is None else w * sign

    def totals(
        self, problem: Problem, cell_of: CellOf, n_cells: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the residual totals of bundles, shape (bundles, cells), and their weights."""
        totals, weight = np.zeros(self.n_bundles * n_cells), np.zeros(self.n_bundles)
        for bundle, p, y, w in self.blocks(problem):
            np.add.at(totals, bundle * n_cells + cell_of(p), w * (y - p))
            weight += np.bincount(bundle, w, minlength=self.n_bundles)
        return totals.reshape(self.n_bundles, n_cells), weight

    def moves(self, problem: Problem, cell_of: CellOf, residual: FloatArray) -> FloatArray:
        """Return the deviations of the residual totals of bundles, shape (bundles, cells)."""
        totals, weight = self.totals(problem, cell_of, len(residual))
        moves = totals - np.outer(weight / problem.weight, residual)
        return np.asarray(moves * np.sqrt(self.n / (self.n - 1)))


def read_codes(labels: Any, sample_weight: Any, n_rows: int, stacklevel: int = 4) -> Index:
    """Return the number of the cluster of each row that carries weight.

    Fewer than ten clusters are warned of, at this level of the stack, and so are more of them of
    which a few hold most rows.
    """
    names, code = read_labels(labels, "clusters", sample_weight, n_rows, allow_missing=False)
    check_clusters(len(names))
    rows = np.bincount(code)
    # So many clusters of equal size have the same sum of squared sizes.
    effective = len(code) ** 2 / float(np.square(rows, dtype=float).sum())
    few = ""
    if len(names) < _FEW_CLUSTERS:
        few = f"there are only {len(names)} clusters"
    elif effective < _FEW_EFFECTIVE:
        largest = f"{rows.max() / len(code):.0%} of the rows are in one"
        few = f"{len(names)} clusters are as good as {int(effective)}, since {largest}"
    if few:
        warnings.warn(
            f"{few}: the variance between so few is hardly known, and intervals and P-values are "
            "inexact",
            UserWarning,
            stacklevel=stacklevel,
        )
    return code


def check_clusters(n: int) -> None:
    """Refuse so few clusters that the variance between them is unknown."""
    if n < MIN_CLUSTERS:
        raise CalibrantError(
            "must hold at least {minimum} clusters",
            argument="clusters",
            value=n,
            minimum=MIN_CLUSTERS,
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows summed over cells: all that the noise of a measure depends on."""

    # Sums of w, w^2, w p, w r and (w r)^2 over the rows with y <= p and those with y > p of each
    # cell, shape (5, 2, cells).
    sides: FloatArray
    total: float  # the total weight W
    is_soft: bool  # whether outcomes are soft: then their noise is known only from the residuals
    # The deviations of the residual totals of (bundles of) clusters, shape (bundles, cells); None
    # where rows are independent.
    moves: FloatArray | None = None
    n_clusters: int = 0  # the number of clusters, 0 where rows are independent

    @classmethod
    def gather(
        cls, problem: Problem, cell_of: CellOf, n_cells: int, clusters: Clusters | None = None
    ) -> Cells:
        """Sum a problem's rows in one pass; `cell_of` says which cell holds a score."""
        cells = cls(problem.cell_sums(cell_of, n_cells), problem.weight, problem.is_soft)
        if clusters is None:
            return cells
        moves = clusters.moves(problem, cell_of, cells.residual)
        return replace(cells, moves=moves, n_clusters=clusters.n)

    def some(self, which: Index) -> Cells:
        """Return some of the cells; the others must hold no rows."""
        moves = None if self.moves is None else self.moves[:, which]
        return replace(self, sides=self.sides[:, :, which], moves=moves)

    @cached_property
    def weight(self) -> FloatArray:
        """Sum of w."""
        return np.asarray(self.sides[0].sum(axis=0))

    @cached_property
    def weight_squared(self) -> FloatArray:
        """Sum of w^2."""
        return np.asarray(self.sides[1].sum(axis=0))

    @cached_property
    def score(self) -> FloatArray:
        """Mean score."""
        pred: FloatArray = self.sides[2].sum(axis=0)
        mean = np.divide(pred, self.weight, out=np.zeros_like(pred), where=self.weight > 0)
        return np.clip(mean, 0.0, 1.0)

    @cached_property
    def residual(self) -> FloatArray:
        """Sum of w (y - p)."""
        return np.asarray(self.sides[3].sum(axis=0))

    @cached_property
    def residual_squared(self) -> FloatArray:
        """Sum of w^2 (y - p)^2: the variance of the residual total."""
        return np.asarray(self.sides[4].sum(axis=0))

    @cached_property
    def rows(self) -> FloatArray:
        """The effective number of rows: (sum w)^2 / sum w^2, a whole number."""
        empty, squares = np.zeros_like(self.weight), self.weight_squared
        ratio = np.divide(self.weight**2, squares, out=empty, where=squares > 0)
        return np.where(self.weight > 0, np.maximum(np.rint(ratio), 1.0), 0.0)

    @cached_property
    def calibrated_variance(self) -> FloatArray:
        """The variance of residual totals under perfect calibration, of independent rows."""
        if self.is_soft:
            return self.residual_squared
        return self.weight_squared * self.score * (1 - self.score)

    @cached_property
    def variance(self) -> float:
        """The variance of the sum of all residuals.

        Where few outcomes of one kind were seen their residuals may say too little: it is never
        less than under perfect calibration.
        """
        if self.moves is None:
            seen = float(self.residual_squared.sum())
        else:
            seen = float(np.square(self.moves.sum(axis=1)).sum())
        return max(float(self.calibrated_variance.sum()), seen)

    @property
    def has_one_distribution(self) -> bool:
        """Whether noise is drawn alike whether or not calibration is perfect."""
        return self.is_soft or self.moves is not None

    @cached_property
    def is_normal(self) -> bool:
        """Whether calibrated noise is drawn as normal in every cell."""
        return self.has_one_distribution or not self._is_counted.any()

    @cached_property
    def growth(self) -> float:
        """How fast the variance of the mean residual grows with its mean.

        Changing the probability of outcome 1 by x changes its variance by at most x abs(1 - 2p):
        negligible, unless outcomes are rare; then x more is as much more variance, as for a Poisson
        count. All probabilities are taken to change by as much, certain ones included.
        """
        if self.is_soft:
            return 0.0
        steepness = float(self.weight_squared @ np.abs(1 - 2 * self.score))
        return steepness / self.total**2

    @cached_property
    def events(self) -> float:
        """The effective number of events: few where one of the outcomes is rare.

        A Poisson count of them has the relative variance of the mean residual, and its growth.
        """
        steepness = self.growth * self.total
        variance = float(self.calibrated_variance.sum())
        return variance / steepness**2 if steepness > 0 else math.inf

    def calibrated_noise(self, n: int, rng: Generator) -> FloatArray:
        """Draw residual totals under perfect calibration, shape (n, cells)."""
        if self.has_one_distribution:
            return self.noise(n, rng)
        noise = _normal(np.where(self._is_counted, 0.0, self.calibrated_variance), n, rng)
        (counted,) = np.nonzero(self._is_counted)
        k, p = self.rows[counted], self.score[counted]
        # One cell at a time: the set-up of a binomial distribution serves all its draws.
        draws = rng.binomial(k.astype(np.int64)[:, None], p[:, None], (len(k), n)).T - k * p
        draws *= np.sqrt(self.weight_squared[counted] / k)
        noise[:, counted] = draws
        return noise

    def noise(self, n: int, rng: Generator, *, calibrated: bool = False) -> FloatArray:
        """Draw noise of the residual totals, shape (n, cells).

        Its variance has the shape of that of the residuals, or that under perfect calibration.
        """
        # Moves so small that their squares underflow are ignored.
        drawn = 0.0 if self.moves is None else float(np.square(self.moves).sum())
        if self.moves is not None and drawn > 0:
            draws = _cluster_noise(self.moves, self.n_clusters, n, rng)
            expected = float(self.calibrated_variance.sum())
            draws *= math.sqrt(max(expected / drawn, 1.0))
            return draws
        certain = not self.calibrated_variance.any()
        variance = self.calibrated_variance if calibrated and not certain else self.residual_squared
        if variance.any():
            variance = variance * (self.variance / variance.sum())
        return _normal(variance, n, rng)

    @cached_property
    def _is_counted(self) -> npt.NDArray[np.bool_]:
        """Where calibrated noise is drawn as a binomial count."""
        variance = self.rows * self.score * (1 - self.score)
        return np.asarray((variance > 0) & (variance < _NORMAL_VARIANCE))


def _normal(variance: FloatArray, n: int, rng: Generator) -> FloatArray:
    """Draw independent normal totals, shape (n, cells)."""
    (moved,) = np.nonzero(variance)
    draws = rng.standard_normal((n, len(moved)))
    draws *= np.sqrt(variance[moved])
    if len(moved) == len(variance):
        return draws
    noise = np.zeros((n, len(variance)))
    noise[:, moved] = draws
    return noise


def _cluster_noise(moves: FloatArray, n_clusters: int, n: int, rng: Generator) -> FloatArray:
    """Draw noise of the residual totals, shape (n, cells).

    It is t-distributed, not normal, since variances are estimated from so many clusters only.
    """
    noise, drawn = np.zeros((n, moves.shape[1])), rng.standard_normal((n, len(moves)))
    # Most of very many cells hold no rows.
    (moved,) = np.nonzero(moves.any(axis=0))
    drawn *= np.sqrt((n_clusters - 1) / rng.chisquare(n_clusters - 1, (n, 1)))
    noise[:, moved] = drawn @ moves[:, moved]
    return noise
