"""Logistic regression of outcomes on logarithms of scores, as the parametric calibrators need it.

Scores of exactly 0 and 1 have infinite logarithms. No finite parameters move them, so that they
say nothing about which parameters are best: they are left out of the fit and keep their limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from sklearn.isotonic import IsotonicRegression, isotonic_regression
from sklearn.linear_model import LogisticRegression

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import Bins
from calibrant.data.classes import ClassTable
from calibrant.data.problem import Pooled, Problem
from calibrant.data.validation import Generator, as_positive, read_generator
from calibrant.measures.binned import BinCount, Strategy, read_binning
from calibrant.measures.density import Bandwidth, Densities, read_density_error
from calibrant.measures.smooth import curve_bandwidth
from calibrant.numerics.probability import logit
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.maps import (
    LogisticMap,
    NoisyMap,
    PiecewiseLinearMap,
    ProbabilityMap,
    StepMap,
)

# Logarithms that vary by less than this are taken to be one: a slope would be a billion.
_LEAST_SPREAD = 1e-9


def fit_logistic(problem: Problem, *, one_slope: bool) -> LogisticMap:
    """Return the likeliest LogisticMap with a, b >= 0 (and a = b), under Platt's targets.

    The likelihood is concave: if the best of all has a negative coefficient, the best of those
    allowed has one that is 0, and is found among the fits without one or both.
    """
    pooled = problem.pooled
    inside = (pooled.score > 0) & (pooled.score < 1)
    if not inside.any():
        return LogisticMap(1.0, 1.0, 0.0)
    score, weight = pooled.score[inside], pooled.weight[inside]
    target = _targets(pooled, inside)
    share = weight / weight.sum()
    if np.ptp(logit(score)) < _LEAST_SPREAD:
        # One score cannot tell a slope: only what is added moves.
        return LogisticMap(1.0, 1.0, float(logit(share @ target) - logit(share @ score)))
    log_p, log_q = np.log(score), -np.log1p(-score)
    terms = np.stack([log_p + log_q] if one_slope else [log_p, log_q])
    fit = _best_allowed(terms, target, share)
    return LogisticMap(fit.slopes[0], fit.slopes[-1], fit.added)


def _targets(pooled: Pooled, inside: npt.NDArray[np.bool_]) -> FloatArray:
    """Return mean outcomes drawn a little towards each other, so that a finite fit exists.

    An outcome of 1 counts as (N1 + 1) / (N1 + 2), one of 0 as 1 / (N0 + 2), where N1 and N0 are
    the numbers of rows of either outcome (Platt 1999, section 2.2). Weights decide in what share.
    """
    weight, true = pooled.weight[inside], pooled.true[inside]
    share = min(max(float(true.sum() / weight.sum()), 0.0), 1.0)
    rows = float(pooled.rows[inside].sum())
    n_one, n_zero = rows * share, rows * (1 - share)
    high, low = (n_one + 1) / (n_one + 2), 1 / (n_zero + 2)
    return low + (high - low) * np.clip(true / weight, 0.0, 1.0)


class _Fit(NamedTuple):
    slopes: FloatArray
    added: float
    likelihood: float


def _best_allowed(terms: FloatArray, target: FloatArray, share: FloatArray) -> _Fit:
    """Return the likeliest fit with slopes of at least 0."""
    varying = np.flatnonzero(np.ptp(terms, axis=1) >= _LEAST_SPREAD).tolist()
    for size in range(len(varying), 0, -1):
        fits = [_fit(terms, list(kept), target, share) for kept in combinations(varying, size)]
        allowed = [fit for fit in fits if fit.slopes.min() >= 0]
        if allowed:
            return max(allowed, key=lambda fit: fit.likelihood)
    level = float(logit(np.dot(share, target)))
    return _Fit(np.zeros(len(terms)), level, np.nan)


def _fit(terms: FloatArray, kept: list[int], target: FloatArray, share: FloatArray) -> _Fit:
    """Return the likeliest fit whose other slopes are 0."""
    centre = terms[kept] @ share
    # In standard units the search takes few steps.
    size = np.sqrt((terms[kept] - centre[:, None]) ** 2 @ share)
    x = ((terms[kept] - centre[:, None]) / size[:, None]).T
    # The penalty is far below noise, and makes the solution unique where two scores must tell
    # three parameters.
    model = LogisticRegression(C=1e8, solver="newton-cholesky", tol=1e-9)
    # A row whose target is t is a share t of outcome 1 and the rest of outcome 0.
    outcome = np.repeat([1, 0], len(share))
    model.fit(
        np.concatenate((x, x)), outcome, np.concatenate((share * target, share * (1 - target)))
    )
    slopes = np.zeros(len(terms))
    slopes[kept] = model.coef_[0] / size
    added = float(model.intercept_[0] - slopes[kept] @ centre)
    z = slopes @ terms + added
    return _Fit(slopes, added, -float(share @ (np.logaddexp(0.0, z) - target * z)))


# Platt's, beta and isotonic calibrators, and the one that changes nothing.


class PlattCalibrator(Calibrator):
    """Mend probabilities by logistic regression on their logits: sigmoid(a logit(p) + c).

    Notes
    -----
    Fitted by maximum likelihood with a >= 0, so that no order is reversed, and with Platt's
    targets in place of 0 and 1, so that a fit exists for whatever outcomes: an outcome of 1 counts
    as (N1 + 1) / (N1 + 2), one of 0 as 1 / (N0 + 2). Probabilities of exactly 0 and 1 are left
    out of the fit and stay what they are: nothing is clipped. Where all scores are equal a = 1.
    Never falls. From a sketch, rows are taken at the mean score of their cell.

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
        return fit_logistic(problem, one_slope=True)


class BetaCalibrator(Calibrator):
    """Mend probabilities by the beta family: sigmoid(a log(p) - b log(1 - p) + c), a, b >= 0.

    Two slopes bend the two ends apart: a is about small probabilities, b about large ones.

    Notes
    -----
    As for :class:`~calibrant.recalibration.PlattCalibrator`, which is the case a = b.

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
        return fit_logistic(problem, one_slope=False)


class IsotonicCalibrator(Calibrator):
    """Mend probabilities by isotonic regression, the non-decreasing fit nearest to outcomes.

    Notes
    -----
    scikit-learn's ``IsotonicRegression``: straight between the scores that it saw, level beyond
    them. It often ends at 0 and 1, where a surprise has an infinite log score.
    Never falls. Refuses sketches, which do not know the order of scores within a cell.

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


class IdentityCalibrator(Calibrator):
    """Leave probabilities as they are.

    Examples
    --------
    >>> IdentityCalibrator().fit([0.1, 0.9], [0, 1]).predict([0.3]).tolist()
    [0.3]
    """

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        return _identity()

    def _fit_classes(self, table: ClassTable) -> tuple[PiecewiseLinearMap, ...]:
        # One map for all columns: there is nothing to divide by a sum.
        return (_identity(),)


def _identity() -> PiecewiseLinearMap:
    ends = np.array([0.0, 1.0])
    return PiecewiseLinearMap(ends, ends)


# Temperature: every probability of a row to the same power.

# Where the likeliest temperature is looked for. Outcomes that are all foreseen ask for 0, those
# that have nothing to do with predictions for infinity or less than nothing.
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0


@dataclass(frozen=True, eq=False)
class TemperatureMap(ProbabilityMap):
    """Every probability of a row to the power 1 / T, divided by their sum.

    Attributes
    ----------
    temperature
        T: above 1 it makes predictions less confident, below 1 more.

    Examples
    --------
    >>> import numpy as np
    >>> TemperatureMap(0.5)(np.array([[0.2, 0.4, 0.4]])).round(3).tolist()
    [[0.111, 0.444, 0.444]]
    """

    temperature: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", as_positive(self.temperature, "temperature"))
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of rows of class probabilities."""
        # The largest of a row first becomes 1, so that no power vanishes with all the others.
        power = (p / p.max(axis=1, keepdims=True)) ** (1 / self.temperature)
        return np.asarray(power / power.sum(axis=1, keepdims=True))


class TemperatureCalibrator(Calibrator):
    """Mend probabilities by one temperature T for all classes: P_c^(1/T), normalised.

    With two classes this is sigmoid(logit(p) / T). What softmax gives from logits divided by T, it
    gives from probabilities.

    Notes
    -----
    The likeliest T between 0.01 and 100, or 1 where the outcomes do not tell. Probabilities of
    exactly 0 and 1 stay what they are, and a row whose outcome had probability 0 says nothing
    about T. The order of classes within a row stays; with two classes it never falls. From a
    sketch, rows are taken at the mean score of their cell. More than two classes are mended
    together, not each against the rest.

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
        slope = 1 / likeliest_temperature([(both, np.maximum(outcome, 0.0))])
        return LogisticMap(slope, slope, 0.0)

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        blocks = [(prob, outcome * w[:, None]) for prob, outcome, w in table.blocks()]
        return (TemperatureMap(likeliest_temperature(blocks)),)


def likeliest_temperature(blocks: list[tuple[FloatArray, FloatArray]]) -> float:
    """Return the likeliest T from blocks of (probabilities, weight of each outcome)."""
    logs = [_informative(*block) for block in blocks]

    def slope(log_heat: float) -> float:
        """Return the derivative of the log score with respect to 1 / T, which grows with 1 / T."""
        return sum(_slope(log_p, weight, np.exp(-log_heat)) for log_p, weight in logs)

    low, high = np.log(LEAST_TEMPERATURE), np.log(MOST_TEMPERATURE)
    if slope(0.0) == 0:
        return 1.0
    if slope(low) <= 0:
        return LEAST_TEMPERATURE
    if slope(high) >= 0:
        return MOST_TEMPERATURE
    return float(np.exp(brentq(slope, low, high, xtol=1e-10)))


def _informative(p: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log probabilities of the rows whose outcome was not given probability 0."""
    told = ~np.any((p == 0) & (weight > 0), axis=1)
    with np.errstate(divide="ignore"):
        return np.log(p[told]), weight[told]


def _slope(log_p: FloatArray, weight: FloatArray, beta: float) -> float:
    """Return the sum over rows of W (E log p - log p[outcome]), E under the mended row."""
    known = np.where(np.isfinite(log_p), log_p, 0.0)
    share = np.exp(beta * (log_p - log_p.max(axis=1, keepdims=True)))
    expected = (share * known).sum(axis=1) / share.sum(axis=1)
    return float(np.sum(weight * (expected[:, None] - known)))


# Calibrators that give every prediction of a bin the same value.


class HistogramCalibrator(Calibrator):
    """Mend probabilities by the mean outcome of their bin.

    Parameters
    ----------
    n_bins, strategy
        As in :func:`calibrant.ece`; bins of equal weight unless told otherwise.

    Notes
    -----
    A bin without rows has the value of its middle. May change the order of predictions, makes
    many of them equal, and is 0 or 1 where all outcomes of a bin are. Can be fitted to a sketch
    with strategy="uniform".

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
        return _steps(bins, weight, true)


class ScalingBinningCalibrator(Calibrator):
    """Mend probabilities by Platt's map, averaged over bins of equal weight.

    The map is smooth where few rows must suffice, and takes few values, so that how well it is
    calibrated can be measured without doubt about bins.

    Parameters
    ----------
    n_bins
        The number of bins, as in :func:`calibrant.ece`.

    Notes
    -----
    All rows serve to fit, to lay the bins and to average; the authors prove their bound for three
    separate parts. Never falls. Refuses sketches, which cannot lay bins of equal weight.

    References
    ----------
    Kumar, Liang and Ma, "Verified uncertainty calibration" (2019), section 4.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> mended = ScalingBinningCalibrator(n_bins=5).fit(y_prob, y_true)
    >>> mended.map_.values.round(2)
    array([0.28, 0.42, 0.5 , 0.59, 0.72])
    """

    def __init__(self, n_bins: BinCount = 15) -> None:
        self.n_bins = n_bins

    def _fit_problem(self, problem: Problem) -> StepMap:
        bins = read_binning(self.n_bins, "quantile", "left").bins(problem)
        pooled, index = problem.rows.pooled, bins.index(problem.rows.pooled.score)
        mended = fit_logistic(problem, one_slope=True)(pooled.score)
        weight, total = np.zeros((2, bins.n_bins))
        np.add.at(weight, index, pooled.weight)
        np.add.at(total, index, pooled.weight * mended)
        return _steps(bins, weight, total)


def _steps(bins: Bins, weight: FloatArray, total: FloatArray) -> StepMap:
    """Return the mean of each bin as a map, the middle of the bin where it is empty."""
    mean = np.divide(total, weight, out=bins.centres.copy(), where=weight > 0)
    # Rounding of sums may have gone beyond what is a probability.
    return StepMap(bins.edges[1:-1], np.clip(mean, 0.0, 1.0))


# Calibrators that smooth: outcomes averaged over the scores around each score.

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
        return _curve_map(error.densities(problem), validation.as_flag(self.monotone, "monotone"))


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
        return _curve_map(error.densities(problem), validation.as_flag(self.monotone, "monotone"))


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
