"""The calibrators, and METHODS, which names them.

==========================  ====================================================================
calibrator                  map
==========================  ====================================================================
TemperatureCalibrator       P_c^(1/T), normalised over the classes
PlattCalibrator             sigmoid(a logit(p) + c)
BetaCalibrator              sigmoid(a log p - b log(1 - p) + c)
IsotonicCalibrator          the non-decreasing least-squares fit
ScalingBinningCalibrator    Platt's map averaged over bins of equal weight
HistogramCalibrator         mean outcome of the bin
SmoothCalibrator            kernel regression at the bandwidth of smECE
DensityCalibrator           kernel regression at the bandwidth of a density estimate
NoisyCalibrator             noise, then the expected outcome
IdentityCalibrator          p
==========================  ====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import IsotonicRegression, isotonic_regression

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import Bins
from calibrant.data.classes import ClassTable
from calibrant.data.problem import Problem
from calibrant.data.validation import Generator, read_generator
from calibrant.measures.binned import BinCount, Strategy, read_binning
from calibrant.measures.density import Bandwidth, Densities, read_density_error
from calibrant.measures.smooth import curve_bandwidth
from calibrant.numerics.logistic import fit_logistic
from calibrant.numerics.probability import logit, monotone_root
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.maps import (
    LogisticMap,
    NoisyMap,
    PiecewiseLinearMap,
    ProbabilityMap,
    StepMap,
    TemperatureMap,
)

# The range of fitted temperatures. Outcomes that are all predicted call for 0, outcomes that are
# independent of the predictions for infinity.
_MIN_TEMPERATURE, _MAX_TEMPERATURE = 0.01, 100.0
# Logarithms of scores that vary by less than this are taken to be constant: a slope would be of
# the order of a billion.
_MIN_RANGE = 1e-9
# Far below sampling noise; it makes the fit unique where two scores determine three coefficients.
_RIDGE = 1e-8
# Knots per bandwidth, between which a curve is nearly linear, and the minimum over [0, 1].
_KNOTS_PER_BANDWIDTH, _MIN_KNOTS = 16, 64


class TemperatureCalibrator(Calibrator):
    """Temperature scaling: P_c^(1/T), normalised, with one temperature T for all classes.

    With two classes this is sigmoid(logit(p) / T). It does to probabilities what softmax does to
    logits divided by T.

    Notes
    -----
    T maximises the likelihood between 0.01 and 100; it is 1 where the likelihood does not depend on
    it. Probabilities of exactly 0 and 1 stay as they are, and a row whose outcome had probability 0
    is ignored. The order of classes within a row stays; with two classes the map is increasing. In
    a sketch, rows are taken at the mean score of their cell. More than two classes are recalibrated
    together, not each against the rest.

    See Also
    --------
    PlattCalibrator : Adds an intercept.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks" (2017).

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> TemperatureCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.21, 0.5 , 0.79])
    """

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        pooled = problem.pooled
        both = np.stack((1 - pooled.score, pooled.score), axis=1)
        outcome = np.stack((pooled.weight - pooled.true, pooled.true), axis=1)
        slope = 1 / _fit_temperature([(both, np.maximum(outcome, 0.0))])
        return LogisticMap(slope, slope, 0.0)

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        blocks = [(prob, outcome * w[:, None]) for prob, outcome, w in table.blocks()]
        return (TemperatureMap(_fit_temperature(blocks)),)


def _fit_temperature(blocks: list[tuple[FloatArray, FloatArray]]) -> float:
    """Return the T of maximum likelihood from blocks of (probabilities, weight per outcome)."""
    logs = []
    for p, weight in blocks:
        possible = ~np.any((p == 0) & (weight > 0), axis=1)
        with np.errstate(divide="ignore"):
            logs.append((np.log(p[possible]), weight[possible]))

    def derivative(log_beta: float) -> float:
        """Return the derivative of the log score with respect to beta = 1 / T; it increases."""
        total = 0.0
        for log_p, weight in logs:
            finite = np.where(np.isfinite(log_p), log_p, 0.0)
            power = np.exp(math.exp(log_beta) * (log_p - log_p.max(axis=1, keepdims=True)))
            # The mean of log p under the recalibrated row, less log p of the outcome.
            expected = (power * finite).sum(axis=1) / power.sum(axis=1)
            total += float(np.sum(weight * (expected[:, None] - finite)))
        return total

    if derivative(0.0) == 0:
        return 1.0
    ends = -math.log(_MAX_TEMPERATURE), -math.log(_MIN_TEMPERATURE)
    return math.exp(-monotone_root(derivative, *ends, 1e-10))


class PlattCalibrator(Calibrator):
    """Platt scaling: logistic regression on logits, sigmoid(a logit(p) + c) with a >= 0.

    Notes
    -----
    Fitted by maximum likelihood with Platt's targets in place of 0 and 1, so that a fit exists for
    any outcomes: an outcome of 1 counts as (N1 + 1) / (N1 + 2), one of 0 as 1 / (N0 + 2), with N1
    and N0 the numbers of rows of either outcome. Probabilities of exactly 0 and 1 are left out of
    the fit and stay as they are: nothing is clipped. Where all scores are equal, a = 1. The map is
    non-decreasing. In a sketch, rows are taken at the mean score of their cell.

    See Also
    --------
    BetaCalibrator : Separate slopes for small and for large probabilities.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines" (1999).

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> PlattCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.21, 0.5 , 0.79])
    """

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        return _fit_logistic_map(problem, one_slope=True)


class BetaCalibrator(Calibrator):
    """Beta calibration: sigmoid(a log(p) - b log(1 - p) + c) with a, b >= 0.

    The slope a describes small probabilities, b large ones.

    Notes
    -----
    Fitted like :class:`~calibrant.recalibration.PlattCalibrator`, which is the case a = b.

    See Also
    --------
    PlattCalibrator : One slope.

    References
    ----------
    Kull, Silva Filho and Flach, "Beyond sigmoids: how to obtain well-calibrated probabilities
    from binary classifiers with beta calibration" (2017).

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> BetaCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.2 , 0.5 , 0.78])
    """

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        return _fit_logistic_map(problem, one_slope=False)


def _fit_logistic_map(problem: Problem, *, one_slope: bool) -> LogisticMap:
    """Return the LogisticMap of maximum likelihood with a, b >= 0, or a = b, under Platt's targets.

    Scores of 0 and 1 have infinite logarithms: no finite coefficients move them, so that they do
    not bear on the fit.
    """
    pooled = problem.pooled
    inside = (pooled.score > 0) & (pooled.score < 1)
    if not inside.any():
        return LogisticMap(1.0, 1.0, 0.0)
    score, weight, true = (v[inside] for v in (pooled.score, pooled.weight, pooled.true))
    # Platt's targets (1999, section 2.2) in place of 0 and 1; the rows are divided into N1 and N0
    # in proportion to the weights of the two outcomes.
    rows = float(pooled.rows[inside].sum())
    n_one = rows * min(max(float(true.sum() / weight.sum()), 0.0), 1.0)
    high, low = (n_one + 1) / (n_one + 2), 1 / (rows - n_one + 2)
    target = low + (high - low) * np.clip(true / weight, 0.0, 1.0)
    if np.ptp(logit(score)) < _MIN_RANGE:
        # One score does not determine a slope: only the intercept is fitted.
        target_logit, score_logit = logit(np.stack((target, score)) @ weight / weight.sum())
        return LogisticMap(1.0, 1.0, float(target_logit - score_logit))
    log_p, log_q = np.log(score), -np.log1p(-score)
    x = np.column_stack([log_p + log_q] if one_slope else [log_p, log_q])
    intercept, slopes = _fit_nonnegative(x, target, weight)
    return LogisticMap(slopes[0], slopes[-1], intercept)


def _fit_nonnegative(
    x: FloatArray, target: FloatArray, weight: FloatArray
) -> tuple[float, FloatArray]:
    """Return intercept and slopes of the logistic regression of maximum likelihood, slopes >= 0.

    The likelihood is concave: if its maximum has a negative slope, the constrained maximum has one
    that is 0, and is found among the fits without one column or several.
    """
    varying = np.flatnonzero(np.ptp(x, axis=0) >= _MIN_RANGE).tolist()
    for size in range(len(varying), 0, -1):
        fits = [
            (fit_logistic(x[:, kept], target * weight, weight, ridge=_RIDGE), kept)
            for kept in map(list, combinations(varying, size))
        ]
        allowed = [(fit, kept) for fit, kept in fits if fit.slopes.min() >= 0]
        if allowed:
            best, kept = max(allowed, key=lambda one: one[0].log_likelihood)
            slopes = np.zeros(x.shape[1])
            slopes[kept] = best.slopes
            return best.intercept, slopes
    return float(logit(np.dot(weight, target) / weight.sum())), np.zeros(x.shape[1])


class IsotonicCalibrator(Calibrator):
    """Isotonic regression: the non-decreasing least-squares fit to the outcomes.

    Notes
    -----
    scikit-learn's ``IsotonicRegression``: linear between the scores of the rows, constant beyond
    them. It often ends at 0 and 1, where an outcome to the contrary has an infinite log score.
    Refuses sketches, which do not know the order of scores within a cell.

    See Also
    --------
    SmoothCalibrator : A non-decreasing smooth curve with ``monotone=True``.

    References
    ----------
    Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability
    estimates" (2002).

    Examples
    --------
    >>> IsotonicCalibrator().fit([0.1, 0.4, 0.6], [0, 1, 0]).predict([0.1, 0.25, 0.9]).tolist()
    [0.0, 0.25, 0.5]
    """

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        pooled = problem.rows.pooled
        model = IsotonicRegression(y_min=0.0, y_max=1.0)
        model.fit(pooled.score, pooled.true / pooled.weight, pooled.weight)
        return PiecewiseLinearMap(model.X_thresholds_, model.y_thresholds_)


class HistogramCalibrator(Calibrator):
    """Histogram binning: the mean outcome of the bin.

    Parameters
    ----------
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or the rule that chooses it. "sqrt": floor(sqrt(n)). "sweep": the largest
        number for which the mean outcomes of the bins do not decrease. "cv": the number with the
        smallest leave-one-out squared error.
    strategy : {"uniform", "quantile"} or array_like
        Bins of equal width or of nearly equal weight, or edges increasing from 0 to 1, for which
        `n_bins` is ignored.

    Notes
    -----
    An empty bin has the value of its centre. The map may change the order of predictions, makes
    many of them equal, and is 0 or 1 where all outcomes of a bin are. Can be fitted to a sketch
    with strategy="uniform".

    See Also
    --------
    ScalingBinningCalibrator : Bins of a fitted logistic map instead of the outcomes.

    References
    ----------
    Zadrozny and Elkan, "Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers" (2001).

    Examples
    --------
    >>> histogram = HistogramCalibrator(n_bins=2, strategy="uniform")
    >>> histogram.fit([0.1, 0.2, 0.7, 0.9], [0, 1, 1, 1]).predict([0.4, 0.6]).tolist()
    [0.5, 1.0]
    """

    def __init__(self, n_bins: BinCount = 15, strategy: Strategy = "quantile") -> None:
        self.n_bins = n_bins
        self.strategy = strategy

    def _fit_problem(self, problem: Problem) -> StepMap:
        bins = read_binning(self.n_bins, self.strategy, "left").bins(problem)
        weight, true = problem.totals(bins, "weight", "true")
        return _step_map(bins, weight, true)


class ScalingBinningCalibrator(Calibrator):
    """Scaling-binning: Platt's map averaged over bins of equal weight.

    It is fitted to few rows as well as Platt's map, and takes few values, so that its calibration
    error can be measured without a choice of bins.

    Parameters
    ----------
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or the rule that chooses it. "sqrt": floor(sqrt(n)). "sweep": the largest
        number for which the mean outcomes of the bins do not decrease. "cv": the number with the
        smallest leave-one-out squared error.

    Notes
    -----
    All rows are used for the fit, the edges of the bins and the averages; the authors prove their
    bound for three separate samples. The map is non-decreasing. Refuses sketches, which do not
    determine bins of equal weight.

    See Also
    --------
    PlattCalibrator : The map that is averaged.

    References
    ----------
    Kumar, Liang and Ma, "Verified uncertainty calibration" (2019), section 4.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> ScalingBinningCalibrator(n_bins=5).fit(y_prob, y_true).map_.values.round(2)
    array([0.28, 0.42, 0.5 , 0.59, 0.72])
    """

    def __init__(self, n_bins: BinCount = 15) -> None:
        self.n_bins = n_bins

    def _fit_problem(self, problem: Problem) -> StepMap:
        bins = read_binning(self.n_bins, "quantile", "left").bins(problem)
        pooled, index = problem.rows.pooled, bins.index(problem.rows.pooled.score)
        fitted = _fit_logistic_map(problem, one_slope=True)(pooled.score)
        weight, total = np.zeros((2, bins.n_bins))
        np.add.at(weight, index, pooled.weight)
        np.add.at(total, index, pooled.weight * fitted)
        return _step_map(bins, weight, total)


def _step_map(bins: Bins, weight: FloatArray, total: FloatArray) -> StepMap:
    """Return the mean of each bin, its centre where it is empty."""
    mean = np.divide(total, weight, out=bins.centres.copy(), where=weight > 0)
    # Rounding may carry a mean beyond [0, 1].
    return StepMap(bins.edges[1:-1], np.clip(mean, 0.0, 1.0))


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

    Notes
    -----
    0 or 1 only where all outcomes nearby are. Averaging over neighbours flattens steep curves, so
    that recalibrating a second time changes predictions a little again. Constant or linear beyond
    the scores of the rows and in gaps between them. Stored as knots at most a sixteenth of the
    bandwidth apart. Can be fitted to a sketch.

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

    def __init__(self, bandwidth: float | None = None, monotone: bool = False) -> None:
        self.bandwidth = bandwidth
        self.monotone = monotone

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        return _curve_map(_smooth_densities(problem, self.bandwidth), self.monotone)


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
    ) -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.monotone = monotone

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        error = read_density_error(bandwidth=self.bandwidth, kernel=self.kernel, bounds=(0.0, 1.0))
        return _curve_map(error.densities(problem), self.monotone)


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

    def __init__(self, bandwidth: float | None = None, rng: int | Generator = 0) -> None:
        self.bandwidth = bandwidth
        self.rng = rng

    def _fit_problem(self, problem: Problem) -> NoisyMap:
        read_generator(self.rng)
        estimate = _smooth_densities(problem, self.bandwidth)
        t, outcome, _ = _regression(estimate, 1)
        return NoisyMap(estimate.bandwidth, t, outcome)

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return the recalibrated probabilities, with noise.

        Parameters
        ----------
        y_prob : array_like
            Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).

            With as many classes as the calibrator was fitted to.

        Returns
        -------
        ndarray
            Probabilities of the positive class, shape (n,), for one column; else of all classes.
        """
        generator = read_generator(self.rng)
        return self._apply(y_prob, lambda fitted, p: fitted.draw(p, generator))


def _smooth_densities(problem: Problem, bandwidth: float | None) -> Densities:
    """Return the densities of scores and events under a Gaussian kernel, by default of smECE."""
    width = curve_bandwidth(problem) if bandwidth is None else bandwidth
    return read_density_error(bandwidth=width, bounds=(0.0, 1.0)).densities(problem)


def _curve_map(estimate: Densities, monotone: bool) -> PiecewiseLinearMap:
    """Return the regression curve at knots that are close enough for straight lines."""
    n_steps = len(estimate.t) - 1
    steps_per_bandwidth = n_steps * estimate.bandwidth / estimate.axis.length
    # A power of two, which divides the number of steps.
    stride = 1 << int(math.log2(max(steps_per_bandwidth / _KNOTS_PER_BANDWIDTH, 1)))
    t, outcome, density = _regression(estimate, min(stride, n_steps // _MIN_KNOTS))
    if validation.as_flag(monotone, "monotone"):
        outcome = isotonic_regression(outcome, sample_weight=density)
    return PiecewiseLinearMap(t, outcome)


def _regression(estimate: Densities, stride: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return scores, the expected outcomes there and the density, where it is positive."""
    positive = ~estimate.nil[::stride]
    t, weight, true = (v[::stride][positive] for v in (estimate.t, estimate.weight, estimate.true))
    return t, np.clip(true / weight, 0.0, 1.0), weight


class IdentityCalibrator(Calibrator):
    """The identity: leave probabilities unchanged.

    Examples
    --------
    >>> IdentityCalibrator().fit([0.1, 0.9], [0, 1]).predict([0.3]).tolist()
    [0.3]
    """

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        return _IDENTITY

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        # One map for all columns, so that nothing is divided by a sum.
        return (_IDENTITY,)


_IDENTITY = PiecewiseLinearMap(np.array([0.0, 1.0]), np.array([0.0, 1.0]))

# Each makes a new calibrator; the simplest first.
METHODS: Mapping[str, Callable[[], Calibrator]] = MappingProxyType(
    {
        "temperature": TemperatureCalibrator,
        "platt": PlattCalibrator,
        "beta": BetaCalibrator,
        "isotonic": IsotonicCalibrator,
        "scaling_binning": ScalingBinningCalibrator,
        "histogram": HistogramCalibrator,
        "smooth": SmoothCalibrator,
        "smooth_monotone": partial(SmoothCalibrator, monotone=True),
        "density": DensityCalibrator,
        "density_monotone": partial(DensityCalibrator, monotone=True),
        "noisy": NoisyCalibrator,
    }
)
