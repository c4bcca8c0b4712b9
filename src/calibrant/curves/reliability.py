"""Reliability curves as data: the outcome to expect at each score, with a band."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from calibrant._base import FloatArray, TabularResult
from calibrant.curves.bands import (
    Band,
    Kind,
    Limits,
    bin_limits,
    isotonic_limits,
    kernel_limits,
    loess_limits,
    read_band,
)
from calibrant.curves.residual_smoothing import ScoreAxis, cross_validated_bandwidth
from calibrant.data import validation
from calibrant.data.binning import Bins
from calibrant.data.classes import RowOptions, one_problem, rows_or_sketch
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.inference.cell_noise import Clusters
from calibrant.inference.fitted_curve import FittedCurve
from calibrant.measures.bin_table import BinTable, table_of
from calibrant.measures.binned import BinCount, Strategy, read_binning
from calibrant.measures.density import (
    Bandwidth,
    Densities,
    DensityError,
    read_bandwidth,
    silverman,
)
from calibrant.measures.smooth import curve_bandwidth
from calibrant.numerics.regression import isotonic_fit
from calibrant.numerics.smoothing import KERNELS

CurveMethod = Literal["smooth", "density", "binned", "isotonic", "loess"]
CurveBandwidth = float | Literal["cv", "smece", "silverman"] | None

# The number of points of a smooth curve that a page or a screen can show.
_SHOWN_POINTS = 512
# The minimum bandwidth of a density to look at, as a fraction of the range of scores.
_SMOOTHNESS = 0.02
# How far beyond the scores smoothed residuals are shown: a fraction of their range, and a minimum.
_BEYOND, _MIN_BEYOND = 0.02, 0.005
# Rounding error between the ends of an interval and those of its domain.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Curve(TabularResult):
    """The outcome to expect at each score.

    Attributes
    ----------
    x
        Scores, increasing.
    y
        The expected outcome there (for "local" minus the score); nan where there are next to no
        scores.
    density
        The density of scores at x; for "isotonic" the fraction of the weight at x.
    low, high
        The band; nan where y is, and where none was asked for.
    bandwidth
        The scale of smoothing; nan for methods without one. A cross-validated one is that for
        evenly spread scores: smaller where they are dense, larger where they are sparse.
    area
        The integral of abs(y - x) times the density that is smoothed alike; for "binned",
        "isotonic" and "loess" the weighted mean of abs(y - x) over the rows.
    method
        "smooth", "density", "binned", "isotonic", "loess" or "local".
    band
        "confidence", where the probability of an event may lie; "consistency", where the curve
        would lie if predictions were calibrated; or None.
    level
        Confidence level of the band; nan without one.
    simultaneous
        Whether the band holds for the whole curve, or at each point by itself.
    of_residuals
        Whether residuals were smoothed, and the diagonal added back.
    """

    x: FloatArray
    y: FloatArray
    density: FloatArray
    low: FloatArray
    high: FloatArray
    bandwidth: float
    area: float
    method: str
    band: str | None = None
    level: float = float("nan")
    simultaneous: bool = False
    of_residuals: bool = False

    def thinned(self, n_points: int = 2048) -> Curve:
        """Return an isotonic curve with at most about `n_points` points, the ends of steps kept.

        The weight at scores that are left out goes to the next one that is kept.
        """
        n = len(self.x)
        if n <= n_points:
            return self
        jumps = np.flatnonzero(np.diff(self.y))
        spread = np.arange(0, n, -(-2 * n // n_points))
        kept = np.unique(np.concatenate((spread, jumps, jumps + 1, [n - 1])))
        weight = np.diff(np.cumsum(self.density)[kept], prepend=0.0)
        names = ("x", "y", "low", "high")
        return replace(self, density=weight, **{name: getattr(self, name)[kept] for name in names})

    def _printed(self) -> list[str]:
        scale = "" if np.isnan(self.bandwidth) else f", bandwidth={self.bandwidth:.4g}"
        band = "" if self.band is None else f", {self.level:.4g} {self.band} band"
        size = f"{len(self.x)} points{scale}, area={self.area:.4g}"
        return [f"Curve(method={self.method!r}, {size}{band})"]


class CurveOptions(RowOptions, total=False):
    """Options of :func:`reliability_curve`."""

    method: CurveMethod
    band: Kind | None
    level: float
    simultaneous: bool
    n_resamples: int
    rng: int | Generator
    clusters: ArrayLike | None
    bandwidth: CurveBandwidth
    n_bins: BinCount
    strategy: Strategy


@rows_or_sketch
def reliability_curve(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    method: CurveMethod = "smooth",
    band: Kind | None = "confidence",
    level: float = 0.95,
    simultaneous: bool = False,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    clusters: ArrayLike | None = None,
    bandwidth: CurveBandwidth = None,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Curve:
    """Return the outcome to expect at each score, with a band and the density of scores.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    method : {"smooth", "density", "binned", "isotonic", "loess"}
        "smooth": the diagonal plus residuals smoothed with the reflected Gaussian. "density":
        smoothed outcomes, two kernel density estimates and Bayes' rule.
        "binned": mean outcome against mean prediction, bin by bin. "isotonic": isotonic regression
        of the outcomes (CORP), which needs rows. "loess": local regression as in R (span 0.75,
        degree 2, tricube weights), the curve of clinical validations, which needs rows.
    band : {"confidence", "consistency"} or None
        "confidence": where the probability of an event may lie given the score, for "cv"; for other
        bandwidths, and in bins, where the population's curve may lie. "consistency": where the
        curve would lie if predictions were calibrated, around the diagonal where residuals are
        smoothed, else around the smoothed predictions. None: no band.
    level : float
        Confidence level.
    simultaneous : bool
        Whether the band holds for the whole curve. If not, it holds at each point by itself, and
        the curve leaves it somewhere far more often.
    n_resamples : int
        Number of resamples, at least 39.

        Only the consistency band of "isotonic" is simulated, and needs 2 / (1 - level) - 1 of them;
        all others have a formula.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    bandwidth : {"cv", "smece", "silverman"} or float, optional
        Of "smooth": "cv" (default), cross-validated; a number, residuals smoothed at that scale;
        "smece", the curve of Błasiok and Nakkiran, outcomes smoothed at the scale smECE. Of
        "density": "silverman" (default), or a number, outcomes smoothed at that scale.
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or its rule: "sqrt" is floor(sqrt(n)), "sweep" the largest number for which
        mean outcomes do not decrease, "cv" that of the smallest leave-one-out squared error.

        For "binned".
    strategy : {"uniform", "quantile"} or array_like
        Bins of equal width or nearly equal weight, or edges from 0 to 1, which fix `n_bins`.

        For "binned".
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    Curve
        x, y, density, low and high; y, low and high are nan where there are next to no
        scores.

    See Also
    --------
    calibrant.plot.reliability : The diagram.
    cumulative_curve : A curve without bins or bandwidth.
    bin_table : Counts and means of bins.

    Notes
    -----
    With K_s the Gaussian of scale s reflected at 0 and 1, the smooth curve is

        mu_s(t) = t + sum w K_s(t, p) (y - p) / sum w K_s(t, p),

    within [0, 1]. For calibrated predictions it is unbiased at every s, while smoothed outcomes are
    pulled off the diagonal. It ends where rows end. For "cv" the kernel acts on G(t) and G(p),
    G(p) = 0.1 p + 0.9 F(p) with F(p) the fraction of rows with smaller scores: its scale is small
    where scores are dense and large where they are sparse. s is sqrt(s_0 s_1), s_0 having the
    minimum leave-one-out squared error of the residuals, s_1 being the largest scale within one
    standard error of it (at least 0.001 and 5 / (4 n Brier score), at most 1; clusters are left out
    by tenths): the better the predictions, the straighter the curve.

    `area`, the integral of abs(y - x) times the density, is what the eye sees. For a number s and
    "smooth" it is ``smooth_ece(bandwidth=s)``, and for "cv" the same along G. Of smoothed outcomes
    it is :func:`calibrant.density_ece` at that bandwidth, and for "smece" within sqrt(2/pi) times
    the bandwidth of smECE (Lemma 10). Of "binned" it is the ECE, of "loess" the ICI.

    At each point a curve is a proportion of events, m = sum k w y / sum k w, k being 1 for the rows
    of a bin and the kernel elsewhere. Its effective sample size is n = (sum k w)^2 / sum (k w)^2,
    and its limits are those of Clopper and Pearson for m n events in n rows,

        low = B(a; m n, n - m n + 1),   high = B(1 - a; m n + 1, n - m n),

    B being the beta quantile. They never meet, even where only one outcome was observed. a is
    (1 - level)/2 at single points, Šidák's for all bins together, and Rice's formula for a whole
    smooth curve. The consistency band holds the m whose limits hold sum k w p / sum k w, with n
    such that the variance is sum (k w)^2 p(1 - p). Where residuals are smoothed, t - sum k w p /
    sum k w is added to limits, and n is larger the more probabilities in the window differ.

    Of a smooth curve the band holds mu_s of the population. This is the truth for calibrated
    predictions and for deviations that do not vary within a bandwidth; where the true deviation
    bends, mu_s is flatter. See the study of curves for how often the truth itself is held.

    The band of "isotonic" holds for every probability that does not decrease as scores grow: its
    limits are those of the proportions in spans of rows above, or below, a score. At single scores
    it is conservative.

    Proved, for 0/1 outcomes of independent rows of equal weight: confidence bands of uniform bins,
    and of isotonic curves of non-decreasing probabilities, hold with probability at least `level`.
    Measured at level 0.95 in 24 populations, n = 300, 3000 and 30 000, 40 samples each: the smooth
    curve of the population was held 95% of the time, at the score of a random row and as a whole,
    the truth at the score of a random row 80, 84 and 89% of the time.

    The band of "loess" is y plus and minus standard errors: those of the residuals, or those under
    perfect calibration where they are larger.

    The noise of soft labels is known from their residuals alone; a sketch takes them for the
    probabilities of 0/1 outcomes, which makes bands wider. Cost: one pass over the rows (one sort
    for "isotonic"), then the same work for any n.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), section 1.1, Appendix A and Lemma 10: smece.
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees" (1984), section
    3.4.3: one standard error.
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), eq. 2: density.
    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams" (2021): isotonic.
    Dimitriadis, Dümbgen, Henzi, Puke and Ziegel, "Honest calibration assessment for binary outcome
    predictions" (2023): its confidence band.
    Bröcker and Smith, "Increasing the reliability of reliability diagrams" (2007): consistency.
    Austin and Steyerberg, "Graphical assessment of internal and external calibration of logistic
    regression models by using loess smoothers" (2014): loess.
    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data" (1998): effective sample sizes.

    Examples
    --------
    >>> curve = reliability_curve([0, 1, 0, 1, 1], [0.1, 0.3, 0.3, 0.8, 0.9], method="isotonic")
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.1, 0.3, 0.8, 0.9], [0.0, 0.5, 1.0, 1.0])

    No event in five rows leaves a probability of up to 1 - 0.025^(1/5):

    >>> curve = reliability_curve([0] * 5, [0.1, 0.1, 0.2, 0.2, 0.3], method="binned", n_bins=1)
    >>> float(curve.low[0]), round(float(curve.high[0]), 4)
    (0.0, 0.5218)
    """
    validation.check_choice(method, "method", get_args(CurveMethod))
    width = _read_bandwidth(bandwidth, method)
    binning = read_binning(n_bins, strategy, "left")
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    asked, known = read_band(
        band, problem, level, simultaneous, rng, clusters, sample_weight, n_resamples
    )
    if method == "smooth":
        return smooth_curve(problem, asked, width, known)
    if method == "density":
        return density_curve(problem, asked, DensityError(width))
    if method == "binned":
        bins = binning.bins(problem)
        return binned_curve(problem, asked, bins, table_of(problem, bins))
    if method == "loess":
        return loess_curve(problem, asked)
    return isotonic_curve(problem, asked)


@rows_or_sketch
def local_calibration_error(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    band: Kind | None = "confidence",
    level: float = 0.95,
    simultaneous: bool = False,
    rng: int | Generator = 0,
    clusters: ArrayLike | None = None,
    bandwidth: Bandwidth = "silverman",
    kernel: Literal["gaussian", "triweight"] = "gaussian",
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Curve:
    """Return P(y = 1 | s) - s at each score s: positive where predictions are too low.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    band : {"confidence", "consistency"} or None
        "confidence": where the population's curve may lie, at the same bandwidth. "consistency":
        where the curve would lie if predictions were calibrated. None: no band.
    level : float
        Confidence level.
    simultaneous : bool
        Whether the band holds for the whole curve, or at each point by itself.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    bandwidth : {"silverman"} or float
        The standard deviation of the kernel.
    kernel : {"gaussian", "triweight"}
        The kernel of both density estimates.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    Curve
        x and the local calibration error y, with its band; nan where the density is nil.

    See Also
    --------
    density_ece : Its mean absolute value over the density of scores.
    reliability_curve : P(y = 1 | s) itself, by several methods.

    Notes
    -----
    The paper takes the median of the curves of bootstrap resamples, between percentiles of them.
    Where no event was observed no resample has one either, and such a band has no width: it is
    not offered.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), Definition 6 and
    section 4.4.

    Examples
    --------
    >>> curve = local_calibration_error([0, 1], [0.5, 0.5], bandwidth=0.1)
    >>> round(float(curve.y[len(curve.x) // 2]), 6)
    0.0
    """
    validation.check_choice(kernel, "kernel", KERNELS)
    bandwidth = read_bandwidth(bandwidth)
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    asked, _ = read_band(band, problem, level, simultaneous, rng, clusters, sample_weight)
    curve = density_curve(problem, asked, DensityError(bandwidth, KERNELS[kernel]))
    y, lower, upper = (v - curve.x for v in (curve.y, curve.low, curve.high))
    return replace(curve, y=y, low=lower, high=upper, method="local")


def _read_bandwidth(bandwidth: Any, method: str) -> Any:
    """Return the bandwidth of a curve: a number, or the name of the rule that chooses it."""
    rules = {"smooth": ("cv", "smece"), "density": ("silverman",)}.get(method)
    if rules is None:
        if bandwidth is None:
            return None
        raise CalibrantError(
            "is ignored by {method}={name!r}",
            argument="bandwidth",
            hint="leave it out",
            name=method,
        )
    if bandwidth is None or (isinstance(bandwidth, str) and bandwidth in rules):
        return bandwidth or rules[0]
    if isinstance(bandwidth, str):
        raise CalibrantError(
            "must be {rules} or a positive number for {method}={name!r}",
            argument="bandwidth",
            value=bandwidth,
            rules=" or ".join(map(repr, rules)),
            name=method,
        )
    return validation.as_bandwidth(bandwidth)


def smooth_curve(
    problem: Problem,
    band: Band | None,
    bandwidth: float | Literal["cv", "smece"] = "cv",
    clusters: Clusters | None = None,
) -> Curve:
    """Return the diagonal and smoothed residuals, or at "smece" smoothed outcomes."""
    error = DensityError(bounds=(0.0, 1.0), smooths="residual")
    if bandwidth == "smece":
        error = DensityError(curve_bandwidth(problem), bounds=(0.0, 1.0))
    elif bandwidth == "cv":
        axis = ScoreAxis.of(problem)
        width = cross_validated_bandwidth(problem, axis, clusters)
        error = replace(error, bandwidth=width, axis=axis)
    else:
        error = replace(error, bandwidth=bandwidth)
    curve = density_curve(problem, band, error, is_finer=bandwidth == "cv")
    return replace(curve, method="smooth")


def density_curve(
    problem: Problem, band: Band | None, error: DensityError, *, is_finer: bool = False
) -> Curve:
    """Return the outcome given the score, from kernel estimates of weights and outcomes.

    A confidence band may be of a finer bandwidth.
    """
    of_residuals = error.smooths == "residual"
    densities = error.densities(problem)
    curve = _shown(_near(problem, densities) if of_residuals else densities)
    curve = replace(curve, area=densities.error, of_residuals=of_residuals)
    if of_residuals:
        curve = replace(curve, density=_density(problem, curve.x))
    limits = partial(kernel_limits, problem, curve, densities.axis, error.kernel, is_finer)
    return _banded(curve, band, limits)


def _density(problem: Problem, x: FloatArray) -> FloatArray:
    """Return the density of scores, smoothed for the eye.

    Smoothed as widely as residuals may be it would be flat, at Silverman's bandwidth alone a
    confident model would have nothing but spikes.
    """
    low, high = score_range(problem).tolist()
    width = max(silverman(problem), _SMOOTHNESS * (high - low), problem.finest_scale)
    found = DensityError(width, bounds=(0.0, 1.0)).densities(problem)
    return np.interp(x, found.t, np.maximum(found.weight, 0.0))


def score_range(problem: Problem) -> FloatArray:
    """Return the lowest and the highest score; of a sketch those of its outermost cells."""
    scores = problem.scores if problem.is_exact else problem.pooled.score
    return scores[[0, -1]]


def binned_curve(problem: Problem, band: Band | None, bins: Bins, table: BinTable) -> Curve:
    """Return mean outcome against mean prediction over the filled bins of a table."""
    curve = curve_of_table(table)
    return _banded(curve, band, partial(bin_limits, problem, bins, curve.y))


def curve_of_table(table: BinTable) -> Curve:
    """Return the curve through the filled bins of a table, without a band."""
    filled = table.n > 0
    x, y = table.mean_pred[filled], table.mean_true[filled]
    fraction = table.weight[filled] / table.weight.sum()
    density = fraction / np.diff(table.edges)[filled]
    return _curve(x, y, density, float(np.dot(fraction, np.abs(y - x))), "binned")


def isotonic_curve(problem: Problem, band: Band | None) -> Curve:
    """Return the isotonic regression of outcomes on scores, at each distinct score."""
    pooled = problem.rows.pooled
    fraction = pooled.weight / problem.weight
    y = isotonic_fit(pooled.true / pooled.weight, pooled.weight)
    area = float(np.dot(fraction, np.abs(y - pooled.score)))
    curve = _curve(pooled.score, y, fraction, area, "isotonic")
    return _banded(curve, band, partial(isotonic_limits, problem, y))


def loess_curve(problem: Problem, band: Band | None) -> Curve:
    """Return the local regression of outcomes on scores, at the scores themselves."""
    fitted = FittedCurve.of(problem, "loess")
    densities = DensityError().densities(problem)
    shown = np.unique(np.linspace(0, len(fitted.score) - 1, _SHOWN_POINTS).astype(np.intp))
    x, deviation = fitted.score[shown], fitted.deviation[shown]
    density = np.interp(x, densities.t, densities.weight)
    area = fitted.mean(np.abs(fitted.deviation))
    curve = _curve(x, np.clip(x + deviation, 0.0, 1.0), density, area, "loess")
    return _banded(curve, band, partial(loess_limits, problem, fitted, shown))


def _banded(curve: Curve, band: Band | None, limits: Callable[[Band], Limits]) -> Curve:
    """Return a curve with the band that was asked for, if any."""
    if band is None:
        return curve
    low, high = limits(band)
    limited = replace(curve, low=low, high=high, band=band.kind)
    return replace(limited, level=band.level, simultaneous=band.simultaneous)


def _near(problem: Problem, densities: Densities) -> Densities:
    """Return densities within the range of scores and a little beyond, however wide the kernel.

    There are points enough to show.
    """
    low, high = score_range(problem).tolist()
    beyond = min(densities.bandwidth, max(_BEYOND * (high - low), _MIN_BEYOND))
    ends = np.array([max(low - beyond, 0.0), min(high + beyond, 1.0)])
    axis, inside = densities.axis, (densities.t >= ends[0]) & (densities.t <= ends[1])
    if np.count_nonzero(inside) >= _SHOWN_POINTS:
        return replace(densities, nil=densities.nil | ~inside)
    grid = np.arange(len(densities.t)) / (len(densities.t) - 1)
    first, last = axis.fractions(ends).tolist()
    u = np.linspace(first, last, _SHOWN_POINTS + 1)
    t = axis.positions(u)
    # Points that rounding makes equal are one.
    u, t = (v[np.append(True, np.diff(t) > 0)] for v in (u, t))
    residual = densities.true - densities.t * densities.weight
    weight, residual = (CubicSpline(grid, v)(u) for v in (densities.weight, residual))
    nil = np.interp(u, grid, densities.nil) > 0
    return replace(densities, t=t, weight=weight, true=t * weight + residual, nil=nil)


def _shown(densities: Densities) -> Curve:
    """Thin the grid of densities to what can be shown, and leave out what is unknown.

    Points are where scores are, however close together those may be; and at the domain's ends.
    """
    end = len(densities.t) - 1
    (known,) = np.nonzero(~densities.nil)
    first, last = (int(known[0]), int(known[-1])) if len(known) else (0, end)
    step = max(1, (last - first) // _SHOWN_POINTS)
    kept = np.unique(np.concatenate(([0], np.arange(first, last, step), [last, end])))
    t, weight, true, nil = (
        v[kept] for v in (densities.t, densities.weight, densities.true, densities.nil)
    )
    # Beyond the interval that holds the scores there are none.
    low, high = densities.domain
    beyond = (int(t[0] - low > _ROUNDING), int(high - t[-1] > _ROUNDING))
    if any(beyond):
        t, nil = (np.pad(v, beyond, constant_values=c) for v, c in ((t, (low, high)), (nil, True)))
        weight, true = np.pad(weight, beyond), np.pad(true, beyond)
    y = np.divide(true, weight, out=np.full_like(t, np.nan), where=~nil)
    density = np.maximum(weight, 0.0)
    return _curve(t, np.clip(y, 0.0, 1.0), density, math.nan, "density", densities.bandwidth)


def _curve(
    x: FloatArray,
    y: FloatArray,
    density: FloatArray,
    area: float,
    method: str,
    bandwidth: float = float("nan"),
) -> Curve:
    """Return a curve without a band."""
    unknown = np.full_like(x, np.nan)
    return Curve(x, y, density, unknown, unknown, bandwidth, area, method)
