"""Bands around the share of events in windows: confidence and consistency.

A confidence band says where the population's curve may lie: at each point the limits of a share
seen in as many rows as its window is worth. A consistency band says where the curve of a sample
with these scores would lie if they were calibrated: the shares that such limits would not refuse,
given the share of events that the window's own predictions expect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from calibrant import checks
from calibrant.arrays import FloatArray
from calibrant.binning import Bins
from calibrant.curves.evidence import ClusterSums, Evidence
from calibrant.curves.windows import Spans
from calibrant.errors import CalibrantError
from calibrant.inference.noise import Cells, Clusters
from calibrant.measures.binned_error import BinCells
from calibrant.numerics.probability import (
    max_proportion,
    min_proportion,
    pointwise_tail,
    proportion_lower,
    proportion_upper,
    sidak_tail,
    student_tail,
)
from calibrant.problem import CellOf, Problem
from calibrant.randomness import Generator, read_generator

Kind = Literal["confidence", "consistency"]
Limits = tuple[FloatArray, FloatArray]

# More cells than these, for each of a thousand bundles of clusters, would fill the memory.
_MOST_CLUSTER_CELLS = 1 << 13
# Points of all curves that are drawn for a band: a tenth of a gigabyte, several times over.
_MOST_DRAWN = 1 << 24


@dataclass(frozen=True, eq=False)
class Band:
    """The band that is asked for.

    Attributes
    ----------
    kind
        "confidence" or "consistency".
    level
        How often it should hold.
    simultaneous
        Whether it should hold for the whole curve, or at each point by itself.
    n_resamples, rng
        How often, and by what, outcomes are drawn where there is no formula.
    clusters
        Which rows belong together, if any do.
    """

    kind: Kind
    level: float
    simultaneous: bool
    n_resamples: int
    rng: Generator
    clusters: Clusters | None = None

    def cluster_sums(self, problem: Problem, cell_of: CellOf, n_cells: int) -> ClusterSums | None:
        """Return the sums of clusters in cells, if there are clusters."""
        if self.clusters is None:
            return None
        return ClusterSums.gather(problem, cell_of, n_cells, self.clusters)

    def tail(self, of_all: Callable[[float], float]) -> float:
        """Return how far out limits lie: for one point, or as `of_all` says for a level."""
        return of_all(self.level) if self.simultaneous else pointwise_tail(self.level)

    def limits(self, evidence: Evidence, share: FloatArray, tail: float) -> Limits:
        """Return the limits of each window's share of events."""
        tails = self.widened(np.full_like(share, tail))
        if self.kind == "confidence":
            rows = evidence.rows(share)
            return proportion_lower(share, rows, tails), proportion_upper(share, rows, tails)
        expected = evidence.mean_pred
        rows = evidence.calibrated_rows(expected)
        return min_proportion(expected, rows, tails), max_proportion(expected, rows, tails)

    def check_draws(self, n_points: int) -> None:
        """Refuse more curves of so many points than there is memory and time for."""
        most = _MOST_DRAWN // n_points
        if self.n_resamples > most:
            raise CalibrantError(
                "must be at most {maximum} for the band of a curve of so many scores",
                argument="n_resamples",
                value=self.n_resamples,
                maximum=most,
            )

    def widened(self, tail: FloatArray) -> FloatArray:
        """Return tails that allow for how few clusters there are."""
        return tail if self.clusters is None else student_tail(tail, self.clusters.n)


def read_band(
    kind: Kind | None,
    problem: Problem,
    level: float,
    simultaneous: bool,
    rng: int | Generator,
    clusters: Any,
    sample_weight: Any,
    n_resamples: int = 1000,
) -> Band | None:
    """Parse a band, or None where none is asked for."""
    level, simultaneous = checks.as_level(level), checks.as_flag(simultaneous, "simultaneous")
    n_resamples = checks.as_resamples(n_resamples)
    generator = read_generator(rng)
    known = Clusters.read(clusters, sample_weight, problem, generator)
    if kind is None:
        return None
    return Band(kind, level, simultaneous, n_resamples, generator, known)


def bin_limits(problem: Problem, bins: Bins, share: FloatArray, band: Band) -> Limits:
    """Return the limits of the share of events in each bin that holds rows."""
    binned = BinCells.of(problem, bins)
    if band.clusters is not None and binned.n_cells > _MOST_CLUSTER_CELLS:
        raise CalibrantError(
            "must leave at most {maximum} bins with rows in them where {clusters} is given",
            argument="n_bins",
            value=binned.n_bins,
            hint="use fewer bins",
            maximum=_MOST_CLUSTER_CELLS,
        )
    cells = Cells.gather(problem, binned.cell_of, binned.n_cells)
    filled = cells.weight.reshape(-1, binned.per_bin).any(axis=1)
    start = binned.per_bin * np.flatnonzero(filled)
    clusters = band.cluster_sums(problem, binned.cell_of, binned.n_cells)
    evidence = Evidence(cells, Spans(start, start + binned.per_bin), clusters)
    return band.limits(evidence, share, band.tail(partial(sidak_tail, n=len(start))))
