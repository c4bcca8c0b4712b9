"""Dependent rows: the noise of clusters that are resampled as a whole.

With R_gc the residual total of cluster g in cell c and W_g its weight, resampling clusters changes
the total r_c by the sum of z_g (R_gc - (W_g / W) r_c), z_g independent with variance 1: a
multiplier bootstrap. Where clusters are many they are added up in bundles, each cluster with a
random sign, which leaves the covariance of the noise unchanged on average, and nearly so in fact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.errors import CalibrantError
from calibrant.problem import CellOf, Index, Problem
from calibrant.randomness import Generator
from calibrant.reading import read_labels

# Bundling changes covariances by about sqrt(2 / 1024), 4%.
_MOST_BUNDLES = 1024


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which cluster each row belongs to.

    Attributes
    ----------
    bundle, sign
        The bundle of each row, and the sign with which it counts there.
    n
        The number of clusters.
    """

    bundle: Index
    sign: FloatArray
    n: int

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
        code = read_codes(labels, sample_weight, problem.n)
        return cls._of_codes(code, int(code.max()) + 1, rng)

    @classmethod
    def single_rows(cls, n: int, rng: Generator) -> Clusters:
        """Return n rows, each a cluster of its own."""
        return cls._of_codes(np.arange(n), n, rng)

    @classmethod
    def _of_codes(cls, code: Index, n: int, rng: Generator) -> Clusters:
        if n <= _MOST_BUNDLES:
            return cls(code, np.ones(len(code)), n)
        bundle = rng.permutation(n) % _MOST_BUNDLES
        return cls(bundle[code], rng.choice([-1.0, 1.0], n)[code], n)

    def moves(self, problem: Problem, cell_of: CellOf, residual: FloatArray) -> FloatArray:
        """Return the deviations of the residual totals of bundles, shape (bundles, cells)."""
        n_cells, n_bundles = len(residual), int(self.bundle.max()) + 1
        moved, weight = np.zeros(n_bundles * n_cells), np.zeros(n_bundles)
        start = 0
        for p, y, given in problem.rows.blocks():
            rows = slice(start, start + len(p))
            start = rows.stop
            w = self.sign[rows] if given is None else given * self.sign[rows]
            bundle = self.bundle[rows]
            np.add.at(moved, bundle * n_cells + cell_of(p), w * (y - p))
            weight += np.bincount(bundle, w, minlength=n_bundles)
        moves = moved.reshape(n_bundles, n_cells) - np.outer(weight / problem.weight, residual)
        return np.asarray(moves * np.sqrt(self.n / (self.n - 1)))


def read_codes(labels: Any, sample_weight: Any, n_rows: int) -> Index:
    """Return the number of the cluster of each row that carries weight."""
    names, code = read_labels(labels, "clusters", sample_weight, n_rows, allow_missing=False)
    if len(names) == 1:
        raise CalibrantError(
            "must hold at least two clusters", argument="clusters", value=1, found="one"
        )
    return code


def cluster_noise(moves: FloatArray, n_clusters: int, n: int, rng: Generator) -> FloatArray:
    """Draw noise of the residual totals, shape (n, cells).

    It is t-distributed, not normal, since variances are estimated from so many clusters only.
    """
    noise, drawn = np.zeros((n, moves.shape[1])), rng.standard_normal((n, len(moves)))
    # Most of very many cells hold no rows.
    (moved,) = np.nonzero(moves.any(axis=0))
    drawn *= np.sqrt((n_clusters - 1) / rng.chisquare(n_clusters - 1, (n, 1)))
    noise[:, moved] = drawn @ moves[:, moved]
    return noise
