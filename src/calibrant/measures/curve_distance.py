"""How far a fitted reliability curve f is from the diagonal: ICI, E50, E90, Emax and ECI.

With f loess, or kernel means of residuals, f(p) - p is linear in the residuals (see
:mod:`calibrant.numerics.regression`). ICI is its mean absolute value over the rows, an L1
norm, E50 and E90 are quantiles and Emax is the maximum of its absolute value, and the numerator of
ECI is its mean square, an L2 norm squared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from calibrant._base import FloatArray
from calibrant.data.problem import Problem
from calibrant.measures.density import silverman
from calibrant.measures.registry import L1Norm, L2Norm, LinearImage, Measure
from calibrant.numerics.regression import (
    GaussianMeans,
    Loess,
    ScoreCells,
    Smoother,
    smoothed_at_scores,
)

SmootherName = Literal["loess", "kernel"]

# Cells in which noise is drawn: curves as smooth as these look the same from narrower ones.
_NOISE_CELLS = 128


@dataclass(frozen=True, eq=False)
class FittedCurve:
    """A reliability curve less the diagonal, f(p) - p.

    Attributes
    ----------
    score, weight
        The distinct scores, and the weight at each.
    rows
        The number of rows at each.
    deviation
        f(p) - p there.
    smoother
        What f was fitted by.
    """

    score: FloatArray
    weight: FloatArray
    rows: FloatArray
    deviation: FloatArray
    smoother: Smoother

    @classmethod
    def of(cls, problem: Problem, name: SmootherName) -> FittedCurve:
        """Fit a curve to the rows of a problem."""
        pooled = problem.rows.pooled
        smoother = Loess(problem.n) if name == "loess" else GaussianMeans(silverman(problem))
        score, weight = pooled.score, pooled.weight
        residual = pooled.residual / weight
        deviation = smoothed_at_scores(smoother, score, weight, residual)
        return cls(score, weight, pooled.rows, deviation, smoother)

    @cached_property
    def cells(self) -> ScoreCells:
        """Cells of scores in which noise is drawn."""
        return ScoreCells.of(self.score, self.weight, _NOISE_CELLS)

    @cached_property
    def matrix(self) -> FloatArray:
        """The smoother as a function of the mean residuals of cells, at their mean scores."""
        cells = self.cells
        reach = self.smoother.reach(self.score, self.weight, cells.score)
        return self.smoother.matrix(cells.score, cells.weight, cells.score, reach)

    def mean(self, values: FloatArray) -> float:
        """Return the mean over the rows of values at the scores."""
        return float(np.average(values, weights=self.weight))

    def quantile(self, q: float) -> float:
        """Return a quantile over the rows of the absolute deviation.

        It is interpolated between rows of equal weight as R and numpy do; otherwise it is the
        smallest deviation up to which lies a fraction q of the weight.
        """
        size = np.abs(self.deviation)
        if np.array_equal(self.weight, self.rows):
            return float(np.quantile(np.repeat(size, self.rows.astype(np.intp)), q))
        order = np.argsort(size)
        below = np.cumsum(self.weight[order])
        # Rounding must not move a sum of weights beyond the fraction that it is.
        place = np.searchsorted(below, q * below[-1] * (1 - 1e-12))
        return float(size[order][min(place, len(size) - 1)])


@dataclass(frozen=True, eq=False)
class CurveDistance(Measure):
    """The mean of abs(f(p) - p) over the rows, or its root mean square."""

    curve: FittedCurve
    norm: Literal["l1", "l2"] = "l1"

    def __call__(self, problem: Problem) -> float:
        """Return the distance of the curve of one problem."""
        deviation = self.curve.deviation
        if self.norm == "l1":
            return self.curve.mean(np.abs(deviation))
        return float(np.sqrt(self.curve.mean(deviation**2)))

    @property
    def no_interval(self) -> str:
        """There is one."""
        return ""

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the curve at the mean scores of cells, times their weight or its root."""
        cells, matrix = self.curve.cells, self.curve.matrix
        share = cells.weight / cells.weight.sum()
        columns = (matrix * (share if self.norm == "l1" else np.sqrt(share))[:, None]).T
        columns = columns / cells.weight[:, None]

        def of_totals(totals: FloatArray, weight: FloatArray) -> FloatArray:
            return np.asarray(totals @ columns)

        norm = L1Norm() if self.norm == "l1" else L2Norm()
        return LinearImage(norm, cells.index, len(cells.weight), of_totals)
