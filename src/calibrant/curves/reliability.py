"""What makes each kind of reliability curve, with its band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from calibrant._base import FloatArray
from calibrant.curves.bands import Band, Limits, bin_limits, kernel_limits, read_band
from calibrant.curves.curve import Curve
from calibrant.curves.isotonic_band import monotone_limits
from calibrant.data import validation
from calibrant.data.binning import Binning
from calibrant.data.classes import one_problem
from calibrant.data.problem import Problem
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.measures.binned import BinCount, Strategy, read_binning
from calibrant.measures.density import Bandwidth, Densities, DensityError, read_bandwidth
from calibrant.measures.smooth import curve_bandwidth
from calibrant.numerics.monotone import isotonic_fit
from calibrant.numerics.smoothing import KERNELS

__all__ = ["local_calibration_error", "reliability_curve"]

# What a page or a screen can show of a smooth curve.
_SHOWN_POINTS = 512
# What rounding may put between an interval's ends and those of the domain.
_ROUNDING = 1e-12


class Maker(Protocol):
    """Makes the curve of a problem, with a band if one is asked for."""

    def __call__(self, problem: Problem, band: Band | None = None) -> Curve:
        """Return the curve."""


@dataclass(frozen=True)
class SmoothCurve:
    """The kernel regression of outcomes on scores, at a given scale or at smECE."""

    bandwidth: float | None = None

    def __call__(self, problem: Problem, band: Band | None = None) -> Curve:
        """Return the curve of one problem."""
        width = self.bandwidth or curve_bandwidth(problem)
        curve = DensityCurve(DensityError(width, bounds=(0.0, 1.0)))(problem, band)
        return replace(curve, method="smooth")


@dataclass(frozen=True)
class DensityCurve:
    """The outcome given the score by Bayes' rule from two density estimates."""

    estimate: DensityError

    def __call__(self, problem: Problem, band: Band | None = None) -> Curve:
        """Return the curve of one problem."""
        estimate, kernel = self.estimate.densities(problem), self.estimate.kernel
        curve = _shown(estimate)
        if band is None:
            return curve
        limits = kernel_limits(problem, curve, estimate.axis, kernel, band)
        return _banded(curve, limits, band)


@dataclass(frozen=True)
class BinnedCurve:
    """Mean outcome against mean prediction over the filled bins."""

    binning: Binning

    def __call__(self, problem: Problem, band: Band | None = None) -> Curve:
        """Return the curve of one problem."""
        bins = self.binning.bins(problem)
        weight, pred, true = problem.totals(bins, "weight", "pred", "true")
        filled = weight > 0
        share = weight[filled] / problem.weight
        x, y = pred[filled] / weight[filled], true[filled] / weight[filled]
        width = np.diff(bins.edges)[filled]
        curve = _curve(x, y, share / width, float(np.dot(share, np.abs(y - x))), "binned")
        return curve if band is None else _banded(curve, bin_limits(problem, bins, y, band), band)


def isotonic_curve(problem: Problem, band: Band | None = None) -> Curve:
    """Return the isotonic regression of outcomes on scores, at each distinct score."""
    pooled = problem.rows.pooled
    share = pooled.weight / problem.weight
    y = isotonic_fit(pooled.true / pooled.weight, pooled.weight)
    area = float(np.dot(share, np.abs(y - pooled.score)))
    curve = _curve(pooled.score, y, share, area, "isotonic")
    return curve if band is None else _banded(curve, monotone_limits(problem, y, band), band)


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


def _shown(estimate: Densities) -> Curve:
    """Thin the estimate's grid to what can be shown, and leave out what is not known.

    Points are where scores are, however close together those may be; and at the domain's ends.
    """
    end = len(estimate.t) - 1
    (known,) = np.nonzero(~estimate.nil)
    first, last = (int(known[0]), int(known[-1])) if len(known) else (0, end)
    step = max(1, (last - first) // _SHOWN_POINTS)
    kept = np.unique(np.concatenate(([0], np.arange(first, last, step), [last, end])))
    t, weight, true, nil = (
        v[kept] for v in (estimate.t, estimate.weight, estimate.true, estimate.nil)
    )
    # Beyond the interval that holds the scores there are none.
    low, high = estimate.domain
    beyond = (int(t[0] - low > _ROUNDING), int(high - t[-1] > _ROUNDING))
    if any(beyond):
        t, nil = (np.pad(v, beyond, constant_values=c) for v, c in ((t, (low, high)), (nil, True)))
        weight, true = np.pad(weight, beyond), np.pad(true, beyond)
    y = np.divide(true, weight, out=np.full_like(t, np.nan), where=~nil)
    density = np.maximum(weight, 0.0)
    return _curve(t, np.clip(y, 0.0, 1.0), density, estimate.error, "density", estimate.bandwidth)


def _curve(
    x: FloatArray,
    y: FloatArray,
    density: FloatArray,
    area: float,
    method: str,
    bandwidth: float = float("nan"),
) -> Curve:
    unknown = np.full_like(x, np.nan)
    return Curve(x, y, density, unknown, unknown, bandwidth, area, method)


# Reliability curves as data: the outcome to expect at each score.
#
# ============  =================================================================================
# method        the curve
# ============  =================================================================================
# "smooth"      Nadaraya-Watson with the reflected Gaussian at smECE's own bandwidth
# "density"     two kernel density estimates and Bayes' rule, at Silverman's bandwidth
# "binned"      mean outcome against mean prediction, bin by bin
# "isotonic"    the non-decreasing function nearest to the outcomes (CORP)
# ============  =================================================================================


def reliability_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    method: Literal["smooth", "density", "binned", "isotonic"] = "smooth",
    band: Literal["confidence", "consistency"] | None = "confidence",
    level: float = 0.95,
    simultaneous: bool = False,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    clusters: Any = None,
    bandwidth: float | None = None,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Curve:
    """Return the outcome to expect at each score, with a band and the density of scores.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`, or a :class:`calibrant.Sketch`; soft labels are taken as they
        are.
    method
        "smooth": Nadaraya-Watson with the reflected Gaussian at smECE's own bandwidth.
        "density": two kernel density estimates and Bayes' rule, at Silverman's bandwidth.
        "binned": mean outcome against mean prediction, bin by bin. "isotonic": the non-decreasing
        function nearest to the outcomes (CORP).
    band
        "confidence": where the population's curve may lie, at the same bandwidth or bins.
        "consistency": where the curve would lie if predictions were calibrated, around the
        smoothed predictions rather than the diagonal. None: no band.
    level
        How often the band should hold.
    simultaneous
        Whether it should hold for the whole curve. If not, it holds at each point by itself, and
        the curve leaves it somewhere far more often.
    n_resamples, rng
        The number of resamples, at least 39, and a seed or a generator for them. Only the
        consistency band of "isotonic" is drawn, and clusters beyond a thousand bundled at random;
        all else is a formula. A level needs 2 / (1 - level) - 1 resamples for its quantiles.
    clusters
        One cluster label per row, as in :func:`calibrant.estimate`: rows of one cluster may depend
        on each other.
    bandwidth
        For "smooth" and "density": a number, instead of smECE or Silverman's rule.
    n_bins, strategy
        For "binned": as in :func:`calibrant.ece`.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`. A band holds if weights do not depend on the outcome given the
        score.
    multiclass
        "confidence" or a class label; a curve is about one binary problem.

    Returns
    -------
    Curve
        x, y, density, low and high; y, low and high are nan where there are next to no
        scores.

    Notes
    -----
    `area`, the integral of abs(y - x) times the density, is what the eye sees. For "smooth" it is
    within sqrt(2/pi) times the bandwidth of smECE (Lemma 10); for "density" it is
    :func:`calibrant.density_ece`, for "binned" the ECE.

    At each point a curve is a share of events, m = sum k w y / sum k w, k being 1 for the rows of a
    bin and the kernel elsewhere. It is worth n = (sum k w)^2 / sum (k w)^2 rows, and its limits are
    those of Clopper and Pearson for m n events in n rows,

        low = B(a; m n, n - m n + 1),   high = B(1 - a; m n + 1, n - m n),

    B being the beta quantile. They keep apart where only one outcome was seen. a is (1 - level)/2
    at single points, Šidák's for all bins together, and Rice's formula for a whole smooth curve.
    The consistency band holds the m whose limits hold sum k w p / sum k w, with n rows enough to
    have the variance sum (k w)^2 p(1 - p).

    The band of "isotonic" holds for every chance that does not fall as scores grow: its limits are
    those of the shares in spans of rows above, or below, a score. At single scores it is wider
    than it need be.

    Proved, for 0/1 outcomes of independent rows of equal weight: confidence bands of uniform bins,
    and of isotonic curves where chances do not fall, hold at least as often as `level` says.
    Measured at level 0.95 in ten populations, n = 200, 1000 and 10 000, 300 samples each: whole
    smooth curves were held 94 to 98% of the time, single points of them 94 to 99%.

    Soft labels have noise that only their residuals tell; a sketch takes them for the chances of
    drawn ones, which makes bands wider. Clusters should be some tens. Cost: one pass over the rows
    (one sort for "isotonic"), then the same work for any n.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), section 1.1, Appendix A and Lemma 10: smooth.
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), eq. 2: density.
    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams" (2021): isotonic.
    Dimitriadis, Dümbgen, Henzi, Puke and Ziegel, "Honest calibration assessment for binary outcome
    predictions" (2023): its confidence band.
    Bröcker and Smith, "Increasing the reliability of reliability diagrams" (2007): consistency.
    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data" (1998): rows that weighted and clustered data are worth.

    Examples
    --------
    >>> curve = reliability_curve([0, 1, 0, 1, 1], [0.1, 0.3, 0.3, 0.8, 0.9], method="isotonic")
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.1, 0.3, 0.8, 0.9], [0.0, 0.5, 1.0, 1.0])

    No event in five rows leaves a chance of up to 1 - 0.025^(1/5):

    >>> curve = reliability_curve([0] * 5, [0.1, 0.1, 0.2, 0.2, 0.3], method="binned", n_bins=1)
    >>> float(curve.low[0]), round(float(curve.high[0]), 4)
    (0.0, 0.5218)
    """
    validation.check_choice(method, "method", ("smooth", "density", "binned", "isotonic"))
    if band is not None:
        validation.check_choice(band, "band", ("confidence", "consistency"))
    if bandwidth is not None:
        bandwidth = validation.as_bandwidth(bandwidth)
        if method in ("binned", "isotonic"):
            raise CalibrantError(
                "is ignored by {method}={name!r}",
                argument="bandwidth",
                hint="leave it out",
                name=method,
            )
    makers: dict[str, Maker] = {
        "smooth": SmoothCurve(bandwidth),
        "density": DensityCurve(DensityError("silverman" if bandwidth is None else bandwidth)),
        "binned": BinnedCurve(read_binning(n_bins, strategy, "left")),
        "isotonic": isotonic_curve,
    }
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    asked = read_band(band, problem, level, simultaneous, rng, clusters, sample_weight, n_resamples)
    return makers[method](problem, asked)


def local_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    band: Literal["confidence", "consistency"] | None = "confidence",
    level: float = 0.95,
    simultaneous: bool = False,
    rng: int | Generator = 0,
    clusters: Any = None,
    bandwidth: Bandwidth = "silverman",
    kernel: Literal["gaussian", "triweight"] = "gaussian",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Curve:
    """Return P(y = 1 | s) - s at each score s: positive where predictions are too low.

    Parameters
    ----------
    y_true, y_prob, bandwidth, kernel, sample_weight, labels, pos_label
        As in :func:`calibrant.density_ece`.
    band, level, simultaneous, rng, clusters
        As in :func:`calibrant.reliability_curve`.
    multiclass
        "confidence" or a class label; a curve is about one binary problem.

    Returns
    -------
    Curve
        x and the local calibration error y, with its band; nan where the density is nil.

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
    if band is not None:
        validation.check_choice(band, "band", ("confidence", "consistency"))
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    asked = read_band(band, problem, level, simultaneous, rng, clusters, sample_weight)
    curve = DensityCurve(DensityError(bandwidth, KERNELS[kernel]))(problem, asked)
    y, lower, upper = (v - curve.x for v in (curve.y, curve.low, curve.high))
    return replace(curve, y=y, low=lower, high=upper, method="local")
