"""Bands around isotonic curves.

Confidence. If the chance of an event does not fall as scores grow, no row of a span has less of it
than any score up to the span. So many events or fewer are then no likelier than if all of its rows
had that score's chance, and the upper limit that they set holds for that score as well; likewise
the lower limit for every score from the span on. Taken over spans of many lengths with the tail
shared out among them, such limits make a band that holds for every non-decreasing chance at every
n (Dimitriadis, Dümbgen, Henzi, Puke and Ziegel, 2023). There all spans are looked at; spans of 1,
2, 4, ... cells that start at every quarter of their length say as much and, being fewer, leave each
other more of the tail. At a single score only spans that start or end there count.

Consistency. Outcomes are drawn as predicted, and the curves made of them counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from calibrant._base import FloatArray
from calibrant.curves.bands import Band, Evidence, Limits, Spans
from calibrant.data.binning import Bins
from calibrant.data.problem import CellOf, Index, Pooled, Problem
from calibrant.inference.intervals import Cells, Clusters
from calibrant.numerics.probability import (
    pointwise_tail,
    proportion_lower,
    proportion_upper,
    weibull_quantile,
)

_MOST_CELLS = 512
# Spans of one length start this many times within it.
_OVERLAP = 4


@dataclass(frozen=True, eq=False)
class Family:
    """Spans of cells, and the share of the tail that each gets."""

    spans: Spans
    share: FloatArray

    @classmethod
    def everywhere(cls, n_cells: int) -> Family:
        """Return spans of every length and place; every length has the same share of the tail."""
        lengths, starts = _lengths(n_cells), []
        for length in lengths:
            start = np.arange(0, n_cells - length, max(1, length // _OVERLAP))
            starts.append(np.append(start, n_cells - length))
        counts = [len(start) for start in starts]
        start = np.concatenate(starts)
        share = 1 / (len(lengths) * np.repeat(counts, counts))
        return cls(Spans(start, start + np.repeat(lengths, counts)), share)

    @classmethod
    def from_each(cls, n_cells: int) -> Family:
        """Return spans of every length from each cell on, cut off at the last cell."""
        lengths = _lengths(n_cells)
        start = np.tile(np.arange(n_cells), len(lengths))
        end = np.minimum(start + np.repeat(lengths, n_cells), n_cells)
        return cls(Spans(start, end), np.full(len(start), 1 / len(lengths)))

    def mirrored(self, n_cells: int) -> Family:
        """Return spans up to each cell for those from each cell on."""
        return Family(Spans(n_cells - self.spans.end, n_cells - self.spans.start), self.share)


def monotone_limits(problem: Problem, share: FloatArray, band: Band) -> Limits:
    """Return the limits of the chance of an event at each distinct score."""
    first = _first_scores(problem.rows.pooled)
    if band.kind == "consistency":
        return _consistency(problem, first, band)
    lower, upper = _confidence(problem, first, band)
    # A curve outside the limits refutes that chances never fall; the band then holds it too.
    return np.minimum(lower, share), np.maximum(upper, share)


def _first_scores(pooled: Pooled) -> Index:
    """Return the first score of each cell: few rows per cell at both ends, more in between.

    So fine is the fit itself, which elsewhere pools more rows than a cell holds.
    """
    if len(pooled.score) <= _MOST_CELLS:
        return np.arange(len(pooled.score))
    passed = np.cumsum(pooled.rows)
    wanted = passed[-1] * np.sin(np.pi / 2 * np.arange(1, _MOST_CELLS) / _MOST_CELLS) ** 2
    # A cell starts after the score that brings the rows to what is wanted.
    cuts = np.searchsorted(passed, wanted) + 1
    return np.unique(np.concatenate(([0], cuts[cuts < len(passed)]))).astype(np.intp)


def _gathered(
    problem: Problem, first: Index, clusters: Clusters | None = None
) -> tuple[Cells, CellOf]:
    cell_of = Bins.starting_at(problem.rows.pooled.score[first]).index
    return Cells.gather(problem, cell_of, len(first), clusters), cell_of


def _confidence(problem: Problem, first: Index, band: Band) -> Limits:
    cells, cell_of = _gathered(problem, first)
    n_cells = len(first)
    clusters = band.cluster_sums(problem, cell_of, n_cells)

    def bounds(family: Family, limit: Callable[..., FloatArray]) -> FloatArray:
        evidence = Evidence(cells, family.spans, clusters)
        tail = band.widened(pointwise_tail(band.level) * family.share)
        return limit(evidence.mean_true, evidence.rows(evidence.mean_true), tail)

    upper, lower = np.ones(n_cells), np.zeros(n_cells)
    if band.simultaneous:
        above = below = Family.everywhere(n_cells)
    else:
        above = Family.from_each(n_cells)
        below = above.mirrored(n_cells)
    np.minimum.at(upper, above.spans.start, bounds(above, proportion_upper))
    np.maximum.at(lower, below.spans.end - 1, bounds(below, proportion_lower))
    if band.simultaneous:
        upper, lower = np.minimum.accumulate(upper[::-1])[::-1], np.maximum.accumulate(lower)
    return _at_scores(lower, upper, first, len(problem.rows.pooled.score))


def _at_scores(lower: FloatArray, upper: FloatArray, first: Index, n_scores: int) -> Limits:
    """Return limits at scores: spans bound only those that lie before or after all of them."""
    size = np.diff(np.append(first, n_scores))
    at_lower = np.repeat(np.append(0.0, lower[:-1]), size)
    at_upper = np.repeat(np.append(upper[1:], 1.0), size)
    last = first + size - 1
    at_lower[last], at_upper[first] = lower, upper
    return at_lower, at_upper


def _lengths(n_cells: int) -> Index:
    return np.asarray(2 ** np.arange(n_cells.bit_length()), dtype=np.intp)


def _consistency(problem: Problem, first: Index, band: Band) -> Limits:
    """Return where curves of outcomes drawn as predicted lie, around the predictions."""
    band.check_draws(len(first))
    cells, _ = _gathered(problem, first, band.clusters)
    centre = cells.score
    drawn = centre + cells.calibrated_noise(band.n_resamples, band.rng) / cells.weight
    curves = np.array([isotonic_regression(one, weights=cells.weight).x for one in drawn])
    tail = pointwise_tail(band.level)
    low, high = np.quantile(curves, [tail, 1 - tail], axis=0, method="weibull")
    below, above = np.maximum(centre - low, 0.0), np.maximum(high - centre, 0.0)
    if band.simultaneous:
        below, above = _stretched(curves - centre, below, above, band.level)
    p = problem.rows.pooled.score
    lower, upper = np.interp(p, centre, centre - below), np.interp(p, centre, centre + above)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def _stretched(moved: FloatArray, below: FloatArray, above: FloatArray, level: float) -> Limits:
    """Stretch distances from the centre until so many of the curves lie wholly inside."""
    # Where hardly a curve leaves the centre on one side, there is nothing to stretch.
    spread = moved.std(axis=0)
    below, above = np.maximum(below, spread), np.maximum(above, spread)
    scale = np.where(moved < 0, below, above)
    outside = np.divide(np.abs(moved), scale, out=np.zeros_like(moved), where=scale > 0)
    factor = max(weibull_quantile(outside.max(axis=1), level), 1.0)
    return factor * below, factor * above
