"""Fitted reliability curves f, how far they are from the diagonal, and their noise.

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
from calibrant.data import validation
from calibrant.data.problem import Problem
from calibrant.inference.cell_noise import Cells
from calibrant.inference.intervals import Question
from calibrant.measures.density import silverman
from calibrant.measures.norms import L1Norm, L2Norm, LinearImage
from calibrant.measures.registry import Measure
from calibrant.numerics.probability import weibull_quantile
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
    """A reliability curve less the diagonal, f(p) - p."""

    score: FloatArray  # the distinct scores
    weight: FloatArray  # the weight at each,
    rows: FloatArray  # the number of rows
    deviation: FloatArray  # and f(p) - p
    smoother: Smoother  # what f was fitted by

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
        """Return the distance of the curve."""
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


@dataclass(frozen=True, eq=False)
class CurveNoise:
    """The noise of a fitted curve."""

    curve: FittedCurve
    # Its standard deviation under perfect calibration, at the mean scores of cells; and that of its
    # residuals, but no less: where rows are few, residuals may say too little.
    calibrated_sd: FloatArray
    sd: FloatArray
    # Of simulated noise, the maximum over the curve in units of its own standard deviation.
    farthest: FloatArray

    @classmethod
    def of(cls, curve: FittedCurve, problem: Problem, question: Question) -> CurveNoise:
        """Simulate the noise of the curve of a problem."""
        fitted = curve.cells
        cells = Cells.gather(problem, fitted.index, len(fitted.weight), question.clusters)
        needed = max(question.n_resamples, validation.min_resamples(question.level))
        noise = cells.noise(needed, question.rng) / fitted.weight @ curve.matrix.T
        sd = noise.std(axis=0)
        expected = curve.matrix**2 @ (cells.calibrated_variance / fitted.weight**2)
        calibrated = np.sqrt(expected)
        farthest = (np.abs(noise) / np.where(sd > 0, sd, 1.0)).max(axis=1)
        return cls(curve, calibrated, np.maximum(sd, calibrated), farthest)

    @property
    def sd_at_scores(self) -> FloatArray:
        """The standard deviation at every score."""
        return np.interp(self.curve.score, self.curve.cells.score, self.sd)

    def critical(self, level: float) -> float:
        """Return the number of standard deviations that the whole curve keeps within."""
        return weibull_quantile(self.farthest, level)
