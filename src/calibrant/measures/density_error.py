"""Kernel estimates of the density of scores and of the outcome given the score.

With one kernel K_h for both, mirrored at the ends of the domain:

    f(t) = (1/W) sum_i w_i K_h(t, p_i),    g(t) = (1/W) sum_i w_i y_i K_h(t, p_i)

so that P(y = 1 | t) = g / f by Bayes' rule. The error is the integral of abs(g - t f).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant import checks
from calibrant.arrays import FloatArray
from calibrant.errors import CalibrantError
from calibrant.measures.registry import Measure
from calibrant.measures.spreads import spreads
from calibrant.numerics import smoothing
from calibrant.numerics.abs_integral import abs_integral
from calibrant.numerics.smoothing import (
    FEW_SCALES,
    GAUSSIAN,
    KERNELS,
    MAX_SCALES,
    Axis,
    Kernel,
    LineSpectrum,
    Span,
    finest_packed,
    packed_spectrum,
)
from calibrant.problem import Problem

Bandwidth = float | Literal["silverman"]

# A bandwidth for scores that do not vary at all.
_FALLBACK = 0.01
# Enough to draw the estimates, however wide the kernel.
_LEAST_POINTS = 512
# Of the height that one row of mean weight would have: below it nothing is known of the outcome.
_NIL = 1e-3


@dataclass(frozen=True, eq=False)
class Densities:
    """Densities of scores, and of scores weighted by their outcomes, on a grid.

    Attributes
    ----------
    t
        The grid, uniform over `axis`.
    weight, true
        f and g of the module's docstring.
    nil
        Where there are too few scores to speak of: less than a thousandth of one row.
    bandwidth
        The scale of the kernel.
    axis
        The interval that holds the scores: all of the domain, or what the kernel reaches of it.
    domain
        The bounds of the scores.
    """

    t: FloatArray
    weight: FloatArray
    true: FloatArray
    nil: npt.NDArray[np.bool_]
    bandwidth: float
    axis: Axis
    domain: tuple[float, float]

    @property
    def error(self) -> float:
        """The integral of abs(g - t f)."""
        residual = self.true - self.t * self.weight
        return abs_integral(residual) * self.axis.length


@dataclass(frozen=True)
class DensityError(Measure):
    """The integral of f(t) abs(P(y = 1 | t) - t), by kernel estimates."""

    bandwidth: Bandwidth = "silverman"
    kernel: Kernel = GAUSSIAN
    bounds: tuple[float, float] | None = None

    def densities(self, problem: Problem) -> Densities:
        """Return the estimates themselves."""
        low, high = self.bounds or (_lowest(problem), 1.0)
        if isinstance(self.bandwidth, str):
            width = max(silverman(problem), _finest(problem, self.kernel, high - low))
        else:
            width = self.bandwidth
        return densities(problem, width, self.kernel, low, high)

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        return self.densities(problem).error

    def error_bound(self, problem: Problem) -> float:
        """Bound the distance from the error of the rows themselves."""
        if problem.is_exact:
            return 0.0
        width = self.densities(problem).bandwidth
        shape = self.kernel.third / GAUSSIAN.third
        lacking = problem.spectrum_error(width, "weight") + problem.spectrum_error(width, "true")
        bound = float(shape * lacking)
        if not isinstance(self.bandwidth, str):
            return bound
        # Quartiles and deviation are each known to within a cell, which moves the bandwidth. Where
        # quartiles share a cell, nothing is known of their distance; where the rule asks for less
        # than cells resolve, the bandwidth is not the rows' own.
        moved = 0.9 * 2 * problem.cell_width * problem.n ** (-1 / 5)
        is_finer = silverman(problem) - moved <= _finest(problem, self.kernel, 1.0)
        # Within a cell, too, nothing is known of which weight comes first.
        if is_finer or problem.is_weighted or _spreads(problem)[1] <= 2 * problem.cell_width:
            return 1.0
        # A kernel whose bandwidth h grows by d changes by at most `widening` d / h in L1.
        return bound + 2 * self.kernel.widening * float(moved / (width - moved))


def read_density_error(
    *,
    bandwidth: Bandwidth = "silverman",
    kernel: Literal["gaussian", "triweight"] = "gaussian",
    bounds: tuple[float, float] | None = None,
) -> DensityError:
    """Turn the words of a call into an error."""
    checks.check_choice(kernel, "kernel", KERNELS)
    pair = None if bounds is None else _checked_bounds(bounds)
    return DensityError(read_bandwidth(bandwidth), KERNELS[kernel], pair)


def densities(
    problem: Problem, bandwidth: float, kernel: Kernel, low: float, high: float
) -> Densities:
    """Smooth a problem's scores and outcomes on [low, high]."""
    interval = _interval(problem, bandwidth, kernel, Span(low, high))
    axis, a = interval.axis, interval.coefficients
    scale = bandwidth / axis.length
    n_points = max(smoothing.grid_points(scale, a.shape[-1] - 1), _LEAST_POINTS)
    b = smoothing.filtered(a, scale, kernel.multiplier) / (problem.weight * axis.length)
    weight, true = smoothing.series_values(b, n_points)
    t = axis.positions(np.arange(n_points + 1) / n_points)
    nil = weight < _NIL * kernel.peak / (bandwidth * problem.n)
    return Densities(t, weight, true, nil, bandwidth, axis, (low, high))


def _interval(problem: Problem, bandwidth: float, kernel: Kernel, domain: Span) -> LineSpectrum:
    """Return the weights and outcomes of rows, ready to be smoothed by a kernel."""
    fine = bandwidth / kernel.roughness
    if not problem.is_exact:
        _check_resolved(bandwidth, _finest(problem, kernel, domain.length))
        return LineSpectrum(domain, problem.spectrum(fine, "weight", "true"))
    if domain.length > min(FEW_SCALES * bandwidth, MAX_SCALES * fine):
        u, walls = problem.rows.pooled.score, (domain.low, domain.high)
        _check_inside(u, *walls)
        least = finest_packed(u, fine, kernel.radius * kernel.roughness, walls)
        _check_resolved(bandwidth, least * kernel.roughness)
        values = [problem.rows.pooled.weight, problem.rows.pooled.true]
        return packed_spectrum(u, values, fine, kernel.radius * bandwidth, walls)
    if domain == Span(0.0, 1.0):
        return LineSpectrum(domain, problem.spectrum(fine, "weight", "true"))
    p, y, w = problem.rows.columns()
    _check_inside(p, domain.low, domain.high)
    place = np.clip(domain.fractions(p), 0.0, 1.0)
    return LineSpectrum(domain, smoothing.spectrum(place, [w, w * y], fine / domain.length))


def _check_resolved(bandwidth: float, least: float) -> None:
    if bandwidth < least:
        raise CalibrantError(
            "must be at least {minimum:.2g}", argument="bandwidth", value=bandwidth, minimum=least
        )


def _finest(problem: Problem, kernel: Kernel, length: float) -> float:
    """Return the least bandwidth that can be resolved, wherever scores are."""
    if problem.is_exact:
        return kernel.roughness * length / MAX_SCALES
    # A sketch has as many modes as cells, and a Gaussian of unit scale needs 2.8 of them.
    return max(problem.finest_scale, 3 * kernel.roughness * problem.cell_width)


def _lowest(problem: Problem) -> float:
    """Return the lower end of the domain; rounding can put the top of C classes below 1/C."""
    if not problem.is_exact or problem.rows.lowest == 0:
        return 0.0
    return min(problem.rows.lowest, float(problem.scores[0]))


def read_bandwidth(bandwidth: Bandwidth) -> Bandwidth:
    """Return a bandwidth that is a rule or a positive number."""
    if not isinstance(bandwidth, str):
        return checks.as_bandwidth(bandwidth)
    if bandwidth != "silverman":
        raise CalibrantError(
            "must be 'silverman' or a positive number", argument="bandwidth", value=bandwidth
        )
    return bandwidth


def silverman(problem: Problem) -> float:
    """Return 0.9 min(standard deviation, interquartile range / 1.34) n^(-1/5).

    n counts rows; the spread is weighted. Where the interquartile range is 0 the standard
    deviation stands alone, and 0.01 stands for both where scores do not vary at all.
    """
    deviation, spread = _spreads(problem)
    size = min(deviation, spread) if spread > 0 else deviation
    return _FALLBACK if size <= 1e-12 else 0.9 * size * problem.n ** (-1 / 5)


def _spreads(problem: Problem) -> tuple[float, float]:
    """Return the standard deviation of the scores, and their interquartile range over 1.34."""
    deviation, between_quartiles = spreads(problem)
    if problem.n > 1:
        deviation *= math.sqrt(problem.n / (problem.n - 1))
    return deviation, between_quartiles / 1.34


def _checked_bounds(bounds: Any) -> tuple[float, float]:
    low, high = checks.as_pair(bounds)
    if math.isnan(low) or math.isnan(high):
        raise CalibrantError("must be two numbers", argument="bounds", value=bounds)
    if not 0 <= low < high <= 1:
        raise CalibrantError("must increase within [0, 1]", argument="bounds", value=(low, high))
    return low, high


def _check_inside(p: FloatArray, low: float, high: float) -> None:
    if p.min() < low or p.max() > high:
        wrong = float(p.min() if p.min() < low else p.max())
        raise CalibrantError(
            "must enclose every score",
            argument="bounds",
            value=(low, high),
            found="{value} and a score of {outside:g}",
            outside=wrong,
        )
