"""Calibrators that smooth: outcomes averaged over the scores around each score."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from sklearn.isotonic import isotonic_regression

from calibrant import checks
from calibrant.arrays import FloatArray
from calibrant.measures.density_error import Bandwidth, Densities, read_density_error
from calibrant.measures.smooth_error import curve_bandwidth
from calibrant.problem import Problem
from calibrant.randomness import Generator, read_generator
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.maps import PiecewiseLinearMap
from calibrant.recalibration.noise import NoisyMap

# A kernel's bandwidth apart, curves still bend; a sixteenth apart they are nearly straight.
_KNOTS_PER_BANDWIDTH = 16
_LEAST_STEPS = 64


class SmoothCalibrator(Calibrator):
    """Mend probabilities by the smooth reliability curve, at smECE's own bandwidth.

    The map is the kernel regression of outcomes on scores, mu(t) = sum_i w_i K(t, p_i) y_i /
    sum_i w_i K(t, p_i), K being the Gaussian of scale s reflected at 0 and 1, and s the smooth
    error of the rows it is fitted to: see :func:`calibrant.reliability_curve`.

    Parameters
    ----------
    bandwidth
        The scale s; None for smECE, but at least 0.001.
    monotone
        Whether to take the non-decreasing curve that is nearest in the mean square over the
        scores. Otherwise the map may change the order of predictions.

    Notes
    -----
    Never 0 or 1 unless all outcomes nearby are. Averaging over neighbours pulls steep curves
    towards the mean, so that mending twice moves predictions a little again.
    Beyond the scores seen, and where next to none were, the curve is level or straight. Kept as
    knots at most a sixteenth of the bandwidth apart. One row teaches its outcome. Can be fitted
    to a sketch.

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

    def __init__(self, bandwidth: float | None = None, monotone: bool = False) -> None:
        self.bandwidth = bandwidth
        self.monotone = monotone

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        width = curve_bandwidth(problem) if self.bandwidth is None else self.bandwidth
        error = read_density_error(bandwidth=width, bounds=(0.0, 1.0))
        return _curve_map(error.densities(problem), checks.as_flag(self.monotone, "monotone"))


class DensityCalibrator(Calibrator):
    """Mend probabilities by Bayes' rule from two density estimates.

    The map is P(y = 1 | t) = f(t | y = 1) P(y = 1) / f(t), both densities mirrored at 0 and 1 and
    of one bandwidth, by Silverman's rule unless told otherwise: the reliability curve behind
    :func:`calibrant.density_ece`. With a Gaussian kernel it differs from
    :class:`~calibrant.recalibration.SmoothCalibrator` in the bandwidth alone.

    Parameters
    ----------
    bandwidth, kernel
        As in :func:`calibrant.density_ece`.
    monotone
        As in :class:`~calibrant.recalibration.SmoothCalibrator`.

    Notes
    -----
    As for :class:`~calibrant.recalibration.SmoothCalibrator`, except that the bandwidth shrinks as
    rows grow in number, whether predictions are calibrated or not.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), eq. 2 and section 6,
    where it is proposed as a calibration map that still wants to be made monotone.

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
    ) -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.monotone = monotone

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        error = read_density_error(bandwidth=self.bandwidth, kernel=self.kernel, bounds=(0.0, 1.0))
        return _curve_map(error.densities(problem), checks.as_flag(self.monotone, "monotone"))


class NoisyCalibrator(Calibrator):
    """Mend probabilities by noise and what it reveals: calibrated, and never far on average.

    A prediction p becomes t = p + s N(0, 1), reflected into [0, 1], and then E[y | t], the
    outcome to expect where t fell; s is smECE. On the distribution of the rows it is fitted to,
    and with fresh noise for every row,

    - the result is perfectly calibrated: E[y | t] is, whatever t is;
    - the mean distance from p is at most smECE_s + s, which is 2 smECE.

    Parameters
    ----------
    bandwidth
        The scale s; None for smECE, but at least 0.001.
    rng
        A seed or a generator for the noise. With a seed every call of `predict` draws the same
        noise: whoever predicts row by row should give a generator.

    Notes
    -----
    The second bound: abs(E[y | t] - p) <= abs(E[y - p | t]) + abs(E[p | t] - p). The mean of the
    first term is smECE_s; that of the second is at most the root of E (p - E[p | t])^2, which is
    at most that of E (p - t)^2, which is at most s.

    On other rows both hold as far as those resemble the rows fitted to. Noise costs
    discrimination, and the order of predictions changes. For several classes the promises are
    made for each class, before probabilities are divided by their sum. Can be fitted to a sketch;
    has no SQL.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), Theorem 17 and the last property in section 3.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("shifted", 20_000)
    >>> mended = NoisyCalibrator().fit(y_prob, y_true).predict(y_prob)
    >>> float(abs(mended - y_prob).mean()) < 2 * 0.031
    True
    """

    def __init__(self, bandwidth: float | None = None, rng: int | Generator = 0) -> None:
        self.bandwidth = bandwidth
        self.rng = rng

    def _fit_problem(self, problem: Problem) -> NoisyMap:
        width = curve_bandwidth(problem) if self.bandwidth is None else self.bandwidth
        read_generator(self.rng)
        error = read_density_error(bandwidth=width, bounds=(0.0, 1.0))
        estimate = error.densities(problem)
        t, outcome, _ = _known(estimate, 1)
        return NoisyMap(estimate.bandwidth, t, outcome)

    def predict(self, y_prob: Any) -> FloatArray:
        """Return the mended probabilities: as in other calibrators, but with noise drawn."""
        generator = read_generator(self.rng)
        return self._mend(y_prob, lambda learnt, p: learnt.draw(p, generator))


def _curve_map(estimate: Densities, monotone: bool) -> PiecewiseLinearMap:
    """Return the outcome to expect at each score, at knots that are close enough."""
    n_steps = len(estimate.t) - 1
    # The number of steps has more factors of two than any stride.
    per_bandwidth = n_steps * estimate.bandwidth / estimate.axis.length
    stride = 1 << int(math.log2(max(per_bandwidth / _KNOTS_PER_BANDWIDTH, 1)))
    t, outcome, density = _known(estimate, min(stride, n_steps // _LEAST_STEPS))
    if monotone:
        outcome = isotonic_regression(outcome, sample_weight=density)
    return PiecewiseLinearMap(t, outcome)


def _known(estimate: Densities, stride: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return places, the outcomes to expect there and the density, where there are any scores."""
    known = ~estimate.nil[::stride]
    t, weight, true = (v[::stride][known] for v in (estimate.t, estimate.weight, estimate.true))
    return t, np.clip(true / weight, 0.0, 1.0), weight
