"""Reliability curves as data: the outcome to expect at each score, with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.curves.bands import (
    Band,
    Kind,
    Limits,
    bin_limits,
    isotonic_limits,
    kernel_limits,
    read_band,
)
from calibrant.curves.curve import Curve
from calibrant.data import validation
from calibrant.data.binning import Bins
from calibrant.data.classes import RowOptions, one_problem
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.measures.bin_table import BinTable, table_of
from calibrant.measures.binned import BinCount, Strategy, read_binning
from calibrant.measures.density import Bandwidth, Densities, DensityError, read_bandwidth
from calibrant.measures.smooth import curve_bandwidth
from calibrant.numerics.monotone import isotonic_fit
from calibrant.numerics.smoothing import KERNELS

# The number of points of a smooth curve that a page or a screen can show.
_SHOWN_POINTS = 512
# Rounding error between the ends of an interval and those of its domain.
_ROUNDING = 1e-12


class BandOptions(RowOptions, total=False):
    """Options of every curve with a band."""

    band: Kind | None
    level: float
    simultaneous: bool
    rng: int | Generator
    clusters: ArrayLike | None


class CurveOptions(BandOptions, total=False):
    """Options of :func:`reliability_curve`."""

    method: Literal["smooth", "density", "binned", "isotonic"]
    n_resamples: int
    bandwidth: float | None
    n_bins: BinCount
    strategy: Strategy


class LocalErrorOptions(BandOptions, total=False):
    """Options of :func:`local_calibration_error`."""

    bandwidth: Bandwidth
    kernel: Literal["gaussian", "triweight"]


@overload
def reliability_curve(y_true: Sketch | Problem, **options: Unpack[CurveOptions]) -> Curve: ...
@overload
def reliability_curve(
    y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[CurveOptions]
) -> Curve: ...
def reliability_curve(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    method: Literal["smooth", "density", "binned", "isotonic"] = "smooth",
    band: Kind | None = "confidence",
    level: float = 0.95,
    simultaneous: bool = False,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    clusters: ArrayLike | None = None,
    bandwidth: float | None = None,
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
        Outcomes: 0/1, bool, yes/no or soft labels in [0, 1]; two labels with `pos_label`; or
        classes. A sketch replaces both arrays.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    method : {"smooth", "density", "binned", "isotonic"}
        "smooth": Nadaraya-Watson with the reflected Gaussian at smECE's own bandwidth.
        "density": two kernel density estimates and Bayes' rule, at Silverman's bandwidth.
        "binned": mean outcome against mean prediction, bin by bin. "isotonic": isotonic regression
        of the outcomes (CORP), which needs rows.
    band : {"confidence", "consistency"} or None
        "confidence": where the population's curve may lie, at the same bandwidth or bins.
        "consistency": where the curve would lie if predictions were calibrated, around the
        smoothed predictions rather than the diagonal. None: no band.
    level : float
        Confidence level.
    simultaneous : bool
        Whether the band holds for the whole curve. If not, it holds at each point by itself, and
        the curve leaves it somewhere far more often.
    n_resamples : int
        Number of draws of the noise, at least 39.

        Only the consistency band of "isotonic" is simulated, and needs 2 / (1 - level) - 1 of them;
        all others have a formula.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    clusters : array_like, optional
        One cluster label per row, such as a patient or a day: rows of a cluster may depend on each
        other, clusters are independent. Use at least 20 or 30 clusters.
    bandwidth : float, optional
        For "smooth" and "density", instead of smECE or Silverman's rule.
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or the rule that chooses it. "sqrt": floor(sqrt(n)). "sweep": the largest
        number for which the mean outcomes of the bins do not decrease. "cv": the number with the
        smallest leave-one-out squared error.

        For "binned".
    strategy : {"uniform", "quantile"} or array_like
        Bins of equal width or of nearly equal weight, or edges increasing from 0 to 1, for which
        `n_bins` is ignored.

        For "binned".
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of a dataframe's columns, where they
        are those of the classes, or else 0 to C - 1.
    pos_label : label, optional
        The label whose probability `y_prob` is, where the two labels are not 0 and 1, no and yes,
        or false and true.

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
    `area`, the integral of abs(y - x) times the density, is what the eye sees. For "smooth" it is
    within sqrt(2/pi) times the bandwidth of smECE (Lemma 10); for "density" it is
    :func:`calibrant.density_ece`, for "binned" the ECE.

    At each point a curve is a proportion of events, m = sum k w y / sum k w, k being 1 for the rows
    of a bin and the kernel elsewhere. Its effective sample size is n = (sum k w)^2 / sum (k w)^2,
    and its limits are those of Clopper and Pearson for m n events in n rows,

        low = B(a; m n, n - m n + 1),   high = B(1 - a; m n + 1, n - m n),

    B being the beta quantile. They never meet, even where only one outcome was observed. a is
    (1 - level)/2 at single points, Šidák's for all bins together, and Rice's formula for a whole
    smooth curve. The consistency band holds the m whose limits hold sum k w p / sum k w, with n
    such that the variance is sum (k w)^2 p(1 - p).

    The band of "isotonic" holds for every probability that does not decrease as scores grow: its
    limits are those of the proportions in spans of rows above, or below, a score. At single scores
    it is conservative.

    Proved, for 0/1 outcomes of independent rows of equal weight: confidence bands of uniform bins,
    and of isotonic curves of non-decreasing probabilities, hold with probability at least `level`.
    Measured at level 0.95 in ten populations, n = 200, 1000 and 10 000, 300 samples each: whole
    smooth curves were held 94 to 98% of the time, single points of them 94 to 99%.

    The noise of soft labels is known from their residuals alone; a sketch takes them for the
    probabilities of 0/1 outcomes, which makes bands wider. Cost: one pass over the rows (one sort
    for "isotonic"), then the same work for any n.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), section 1.1, Appendix A and Lemma 10: smooth.
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), eq. 2: density.
    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams" (2021): isotonic.
    Dimitriadis, Dümbgen, Henzi, Puke and Ziegel, "Honest calibration assessment for binary outcome
    predictions" (2023): its confidence band.
    Bröcker and Smith, "Increasing the reliability of reliability diagrams" (2007): consistency.
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
    validation.check_choice(method, "method", ("smooth", "density", "binned", "isotonic"))
    _check_band(band)
    if bandwidth is not None:
        bandwidth = validation.as_bandwidth(bandwidth)
        if method in ("binned", "isotonic"):
            raise CalibrantError(
                "is ignored by {method}={name!r}",
                argument="bandwidth",
                hint="leave it out",
                name=method,
            )
    binning = read_binning(n_bins, strategy, "left")
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    asked = read_band(band, problem, level, simultaneous, rng, clusters, sample_weight, n_resamples)
    if method == "smooth":
        return smooth_curve(problem, asked, bandwidth)
    if method == "density":
        return density_curve(problem, asked, DensityError(bandwidth or "silverman"))
    if method == "binned":
        bins = binning.bins(problem)
        return binned_curve(problem, asked, bins, table_of(problem, bins))
    return isotonic_curve(problem, asked)


@overload
def local_calibration_error(y_true: Sketch, **options: Unpack[LocalErrorOptions]) -> Curve: ...
@overload
def local_calibration_error(
    y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[LocalErrorOptions]
) -> Curve: ...
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
        Outcomes: 0/1, bool, yes/no or soft labels in [0, 1]; two labels with `pos_label`; or
        classes. A sketch replaces both arrays.
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
        One cluster label per row, such as a patient or a day: rows of a cluster may depend on each
        other, clusters are independent. Use at least 20 or 30 clusters.
    bandwidth : {"silverman"} or float
        The standard deviation of the kernel.
    kernel : {"gaussian", "triweight"}
        The kernel of both density estimates.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of a dataframe's columns, where they
        are those of the classes, or else 0 to C - 1.
    pos_label : label, optional
        The label whose probability `y_prob` is, where the two labels are not 0 and 1, no and yes,
        or false and true.

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
    _check_band(band)
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    asked = read_band(band, problem, level, simultaneous, rng, clusters, sample_weight)
    curve = density_curve(problem, asked, DensityError(bandwidth, KERNELS[kernel]))
    y, lower, upper = (v - curve.x for v in (curve.y, curve.low, curve.high))
    return replace(curve, y=y, low=lower, high=upper, method="local")


def _check_band(band: Kind | None) -> None:
    if band is not None:
        validation.check_choice(band, "band", ("confidence", "consistency"))


def smooth_curve(problem: Problem, band: Band | None, bandwidth: float | None = None) -> Curve:
    """Return the kernel regression of outcomes on scores, at a given scale or at smECE."""
    width = bandwidth or curve_bandwidth(problem)
    curve = density_curve(problem, band, DensityError(width, bounds=(0.0, 1.0)))
    return replace(curve, method="smooth")


def density_curve(problem: Problem, band: Band | None, error: DensityError) -> Curve:
    """Return the outcome given the score by Bayes' rule from two density estimates."""
    densities = error.densities(problem)
    curve = _shown(densities)
    if band is None:
        return curve
    limits = kernel_limits(problem, curve, densities.axis, error.kernel, band)
    return _banded(curve, limits, band)


def binned_curve(problem: Problem, band: Band | None, bins: Bins, table: BinTable) -> Curve:
    """Return mean outcome against mean prediction over the filled bins of a table."""
    curve = curve_of_table(table)
    if band is None:
        return curve
    return _banded(curve, bin_limits(problem, bins, curve.y, band), band)


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
    return curve if band is None else _banded(curve, isotonic_limits(problem, y, band), band)


def _banded(curve: Curve, limits: Limits, band: Band) -> Curve:
    lower, upper = limits
    return replace(
        curve,
        low=lower,
        high=upper,
        band=band.kind,
        level=band.level,
        simultaneous=band.simultaneous,
    )


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
    return _curve(t, np.clip(y, 0.0, 1.0), density, densities.error, "density", densities.bandwidth)


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
