"""Calibrators that smooth outcomes or residuals by a kernel.

==========================  ====================================================================
calibrator                  map
==========================  ====================================================================
ResidualCalibrator          p and the smoothed residuals, at a cross-validated bandwidth
SmoothCalibrator            kernel regression at the bandwidth of smECE
DensityCalibrator           kernel regression at the bandwidth of a density estimate
NoisyCalibrator             noise, then the expected outcome
==========================  ====================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.isotonic import isotonic_regression

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.problem import Pooled, Problem
from calibrant.data.validation import Generator, read_generator
from calibrant.measures.density import Bandwidth, Densities, read_density_error
from calibrant.measures.smooth import curve_bandwidth
from calibrant.numerics import smoothing
from calibrant.numerics.smoothing import GAUSSIAN
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.maps import NoisyMap, PiecewiseLinearMap

# Knots per bandwidth, between which a curve is nearly linear, and the minimum over [0, 1].
_KNOTS_PER_BANDWIDTH, _MIN_KNOTS = 16, 64
# Bandwidths to choose from, and the minimum number of steps of their grid.
_BANDWIDTHS = (0.5, 0.3, 0.2, 0.12, 0.08, 0.05, 0.03, 0.02, 0.012)
_MIN_GRID = 1024


class SmoothCalibrator(Calibrator):
    """Kernel regression of outcomes on scores, at the bandwidth of smECE.

    The map is mu(t) = sum_i w_i K(t, p_i) y_i / sum_i w_i K(t, p_i), K being the Gaussian kernel of
    scale s reflected at 0 and 1, and s the smooth error of the rows it is fitted to: the smooth
    :func:`calibrant.reliability_curve`.

    Parameters
    ----------
    bandwidth : float, optional
        The scale s; by default smECE, but at least 0.001.
    monotone : bool
        Whether to take the non-decreasing curve nearest in mean square over the scores. Otherwise
        the map may change the order of predictions.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    With n rows, values stay between t / (n + 1) and 1 - (1 - t) / (n + 1). Averaging over
    neighbours flattens steep curves, so that recalibrating a second time changes predictions a
    little again. Constant or linear beyond the scores of the rows and in gaps between them. Stored
    as knots at most a sixteenth of the bandwidth apart. Can be fitted to a sketch.

    See Also
    --------
    DensityCalibrator : Another rule for the bandwidth.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), section 1.1.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> SmoothCalibrator(monotone=True).fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.23, 0.5 , 0.76])
    """

    def __init__(
        self,
        bandwidth: float | None = None,
        monotone: bool = False,
        mix: bool = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.monotone = monotone
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        estimate = _smooth_densities(problem, self.bandwidth)
        return _curve_map(estimate, self.monotone, problem.n)


class DensityCalibrator(Calibrator):
    """Bayes' rule with two kernel density estimates.

    The map is P(y = 1 | t) = f(t | y = 1) P(y = 1) / f(t), both densities reflected at 0 and 1 and
    of one bandwidth: the reliability curve of :func:`calibrant.density_ece`. With a Gaussian kernel
    it differs from :class:`~calibrant.recalibration.SmoothCalibrator` in the bandwidth alone.

    Parameters
    ----------
    bandwidth : "silverman" or float
        Silverman's rule, or the scale of the kernel.
    kernel : {"gaussian", "triweight"}
        Shape of the kernel.
    monotone : bool
        Whether to take the non-decreasing curve nearest in mean square over the scores. Otherwise
        the map may change the order of predictions.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    As the number of rows grows the bandwidth shrinks, whether predictions are calibrated or not;
    otherwise :class:`~calibrant.recalibration.SmoothCalibrator` applies.

    See Also
    --------
    SmoothCalibrator : At the bandwidth of smECE.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), eq. 2, and section 6 on
    its use as a calibration map, without monotonicity.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> DensityCalibrator(monotone=True).fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.2 , 0.5 , 0.79])
    """

    def __init__(
        self,
        bandwidth: Bandwidth = "silverman",
        kernel: Literal["gaussian", "triweight"] = "gaussian",
        monotone: bool = False,
        mix: bool = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.monotone = monotone
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        error = read_density_error(bandwidth=self.bandwidth, kernel=self.kernel, bounds=(0.0, 1.0))
        estimate = error.densities(problem)
        return _curve_map(estimate, self.monotone, problem.n)


class ResidualCalibrator(Calibrator):
    """The probability and the mean residual around it, at a cross-validated bandwidth.

    The map is t + sum_i w_i K(t, p_i) (y_i - p_i) / (sum_i w_i K(t, p_i) + c K(t, t)), K being the
    Gaussian kernel reflected at 0 and 1. Calibrated probabilities are left unchanged on average at
    every bandwidth, so that it can be large.

    Parameters
    ----------
    bandwidth : float, optional
        Scale of the kernel; by default the one out of nine from 0.012 to 0.5 with the smallest
        leave-one-out squared error.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    c is the mean weight of a row: one row is added at every score whose outcome is that score. With
    n rows, values stay between t / (n + 1) and 1 - (1 - t) / (n + 1), so that no finite log score
    becomes infinite. The map may change the order of predictions. Stored as 1025 knots or
    more. Can be fitted to a sketch, where the bandwidth is at least what its cells resolve.

    See Also
    --------
    SmoothCalibrator : Kernel regression of the outcomes themselves.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> ResidualCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.2 , 0.5 , 0.79])
    """

    def __init__(self, bandwidth: float | None = None, mix: bool = False) -> None:
        self.bandwidth = bandwidth
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        added = problem.weight / problem.n
        if self.bandwidth is None:
            scales = [s for s in _BANDWIDTHS if s >= problem.finest_scale] or [_BANDWIDTHS[0]]
        else:
            scales = [validation.as_bandwidth(self.bandwidth)]
        a = problem.spectrum(scales[-1], "weight", "residual")
        smoothed = [_SmoothedResidual.of(a, scale, added) for scale in scales]
        errors = [one.left_out_error(problem.pooled) for one in smoothed] if scales[1:] else [0.0]
        best = smoothed[int(np.argmin(errors))]
        t, value = best.t, best.t + best.residual / (best.weight + added * best.kernel(best.t))
        return PiecewiseLinearMap(t, _within(t, value, problem.n))


@dataclass(frozen=True, eq=False)
class _SmoothedResidual:
    """Sums of w and of w (y - p), smoothed by a reflected Gaussian, on a grid over [0, 1]."""

    scale: float
    added: float
    t: FloatArray
    weight: FloatArray
    residual: FloatArray

    @classmethod
    def of(cls, a: FloatArray, scale: float, added: float) -> _SmoothedResidual:
        """Return the sums from their cosine coefficients."""
        n_points = max(smoothing.grid_points(scale, a.shape[-1] - 1), _MIN_GRID)
        weight, residual = smoothing.series_values(smoothing.damped(a, scale), n_points)
        t = np.arange(n_points + 1) / n_points
        return cls(scale, added, t, np.maximum(weight, 0.0), residual)

    def kernel(self, t: FloatArray) -> FloatArray:
        """Return K(t, t)."""
        ends = np.exp(-2 * (t / self.scale) ** 2) + np.exp(-2 * ((1 - t) / self.scale) ** 2)
        return np.asarray(GAUSSIAN.peak / self.scale * (1 + ends))

    def left_out_error(self, pooled: Pooled) -> float:
        """Return the squared error of every residual as predicted from the other rows.

        A score has rows of mean weight, of which as many as it says have outcome 1.
        """
        weight, residual = (
            np.interp(pooled.score, self.t, v) for v in (self.weight, self.residual)
        )
        peak, one = self.kernel(pooled.score), pooled.weight / pooled.rows
        total = 0.0
        for outcome, count in ((1.0, pooled.true), (0.0, pooled.weight - pooled.true)):
            own = outcome - pooled.score
            others = np.maximum(weight - one * peak, 0.0) + self.added * peak
            left_out = np.divide(
                residual - one * peak * own, others, out=np.zeros_like(own), where=others > 0
            )
            total += float(count @ (own - left_out) ** 2)
        return total


class NoisyCalibrator(Calibrator):
    """Noise, then the expected outcome: calibrated, at a bounded distance from the predictions.

    A prediction p becomes t = p + s N(0, 1), reflected into [0, 1], and then E[y | t]; s is smECE.
    On the distribution of the rows it is fitted to, and with new noise for every row,

    - the result is perfectly calibrated, as E[y | t] is for any t;
    - the mean distance from p is at most smECE_s + s, which is 2 smECE.

    Parameters
    ----------
    bandwidth : float, optional
        The scale s; by default smECE, but at least 0.001.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.

        A seed gives every call of `predict` the same noise: to predict row by row, give a
        generator.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    The second bound: abs(E[y | t] - p) <= abs(E[y - p | t]) + abs(E[p | t] - p). The mean of the
    first term is smECE_s; that of the second is at most the root of E (p - E[p | t])^2, which is
    at most that of E (p - t)^2, which is at most s.

    On other rows both hold as far as their distribution is the same. Noise costs discrimination and
    changes the order of predictions. For several classes the bounds hold for each class before
    probabilities are divided by their sum. Can be fitted to a sketch; cannot be written as SQL.

    See Also
    --------
    SmoothCalibrator : The same regression without noise.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), Theorem 17 and the last property in section 3.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("shifted", 20_000)
    >>> recalibrated = NoisyCalibrator().fit(y_prob, y_true).predict(y_prob)
    >>> float(abs(recalibrated - y_prob).mean()) < 2 * 0.031
    True
    """

    def __init__(
        self, bandwidth: float | None = None, rng: int | Generator = 0, mix: bool = False
    ) -> None:
        self.bandwidth = bandwidth
        self.rng = rng
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> NoisyMap:
        read_generator(self.rng)
        estimate = _smooth_densities(problem, self.bandwidth)
        t, outcome, _ = _regression(estimate, 1)
        return NoisyMap(estimate.bandwidth, t, outcome)

    def _noise(self) -> Generator:
        return read_generator(self.rng)


def _smooth_densities(problem: Problem, bandwidth: float | None) -> Densities:
    """Return the densities of scores and events under a Gaussian kernel, by default of smECE."""
    width = curve_bandwidth(problem) if bandwidth is None else bandwidth
    return read_density_error(bandwidth=width, bounds=(0.0, 1.0)).densities(problem)


def _curve_map(estimate: Densities, monotone: bool, n: int) -> PiecewiseLinearMap:
    """Return the regression curve at knots that are close enough for straight lines."""
    n_steps = len(estimate.t) - 1
    steps_per_bandwidth = n_steps * estimate.bandwidth / estimate.axis.length
    # A power of two, which divides the number of steps.
    stride = 1 << int(math.log2(max(steps_per_bandwidth / _KNOTS_PER_BANDWIDTH, 1)))
    t, outcome, density = _regression(estimate, min(stride, n_steps // _MIN_KNOTS))
    if validation.as_flag(monotone, "monotone"):
        outcome = isotonic_regression(outcome, sample_weight=density)
    return PiecewiseLinearMap(t, _within(t, outcome, n))


def _within(t: FloatArray, value: FloatArray, n: int) -> FloatArray:
    """Return values no nearer to 0 and 1 than the score t is, divided by n + 1.

    So that no outcome that was given a positive probability has an infinite log score.
    """
    return np.clip(value, t / (n + 1), 1 - (1 - t) / (n + 1))


def _regression(estimate: Densities, stride: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return scores, the expected outcomes there and the density, where it is positive."""
    positive = ~estimate.nil[::stride]
    t, weight, true = (v[::stride][positive] for v in (estimate.t, estimate.weight, estimate.true))
    return t, np.clip(true / weight, 0.0, 1.0), weight
