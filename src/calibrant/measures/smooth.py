"""SmoothECE: the calibration error after smoothing at the scale of the error itself.

    h_s(t)  = (1/W) sum_i w_i K_s(t, p_i) (y_i - p_i)
    smECE_s = integral of abs(h_s) over [0, 1],   which does not grow with s
    smECE   = the one s with smECE_s = s

K_s(., p) is the density of p + s Z reflected into [0, 1], which keeps all of its mass also for
p = 0 and p = 1. (Read as a sum over a set of preimages, eq. 2 of the paper gives those two points
half of it; its Lemma 25 needs all.)

The residuals are expanded into cosines once, in O(n); each smECE_s then takes time that depends on
s only. Below s = 1/4096 the gaps between scores are left out, which takes a sort.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import UniformBins
from calibrant.data.classes import reduce_classes, rows_or_sketch
from calibrant.data.problem import Index, Line, Problem
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError, SketchError
from calibrant.measures.norms import L1Norm, LinearImage, cells_for_smoothing, smoothed
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.numerics import smoothing
from calibrant.numerics.probability import logit
from calibrant.numerics.smoothing import (
    FEW_SCALES,
    GAUSSIAN_RADIUS,
    NO_BOUNDS,
    Bounds,
    finest_packed,
    packed_spectrum,
    run_starts,
)

# An increasing function of the score; infinite values are allowed at 0 and 1.
Increasing = Callable[[FloatArray], FloatArray]

# Calibrated predictions have smECE near 0.3 n^(-1/3): the first search goes a little below.
_NOISE_SCALE = 0.25
# From this many rows on, a subsample shows which scales to resolve.
_MANY = 1 << 19
# Below this scale rows are sorted and gaps between them are left out.
_COARSE = 1 / FEW_SCALES
# A curve at a smaller bandwidth looks the same.
MIN_CURVE_BANDWIDTH = 1e-3
# Scales within this factor are served by one set of coefficients.
_NEARBY = 1.5
# Rounding error of residuals that cancel, in units of their sum.
_ROUNDING = 1e-17
# Newton steps, in units of the scale, after which the norm is not evaluated again. Where a zero of
# h_s appears or vanishes, the slope changes like a square root: the error is the step to 3/2.
_TOLERANCE, _ROUGH_TOLERANCE = 3e-7, 3e-3
# Where few cells hold rows, their noise is smoothed by a matrix product over the cells near them.
_FEW_PER_CELL = 16


@dataclass(frozen=True)
class SmoothError(Measure):
    """The L1 norm of the smoothed residuals, at a given scale or at its own."""

    bandwidth: float | None = None
    transform: Increasing | None = None

    def __call__(self, problem: Problem) -> float:
        residuals = self._residuals(problem)
        return (
            residuals.fixed_point() if self.bandwidth is None else residuals.error(self.bandwidth)
        )

    def sketch_error(self, problem: Problem, value: float) -> float:
        scale = value if self.bandwidth is None else self.bandwidth
        finest = self._residuals(problem).finest(0.0)
        if self.transform is None:
            error = problem.spectrum_error(max(scale, finest), "residual")
        else:
            error = _logit_line(problem, self.transform, 1.0).error(max(scale, finest), "residual")
        # Below the finest scale all that is known is that smECE lies there.
        return max(error, finest) if scale <= finest else error

    @property
    def no_interval(self) -> str:
        other = self.transform is not None
        return "on scales other than 'probability': use logit_smoothed_ece" if other else ""

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the smoothed residuals, at the scale given or at that found, `value`."""
        scale = self.bandwidth
        if scale is None:
            # Residuals that are all 0 are the same at every scale.
            scale = max(value, problem.finest_scale) if value > 0 else 1.0
        cells = _SmoothCells(cells_for_smoothing(1 / scale), is_fixed=self.bandwidth is not None)
        return cells.image(scale)

    def _residuals(self, problem: Problem) -> Residuals:
        if self.transform is not None:
            # The fixed point is at most 1, as the error is.
            return _residuals_on_line(problem, self.transform, self.bandwidth or 1.0)
        if problem.is_exact:
            return _SampleResiduals(problem.n, problem)
        finest = partial(max, problem.finest_scale)
        return _SketchResiduals(problem.n, partial(_reflected_spectrum, problem), finest)


def curve_bandwidth(problem: Problem) -> float:
    """Return smECE as the bandwidth of a curve that can be resolved."""
    return max(SmoothError()(problem), MIN_CURVE_BANDWIDTH, problem.finest_scale)


@dataclass(frozen=True, eq=False)
class ResidualSpectrum:
    """Residuals ready to be smoothed at some scales."""

    a: FloatArray  # the cosine coefficients of the residual measure over an interval
    length: float = 1.0  # of that interval
    constant: float = 0.0  # the error of other rows, which does not depend on the scale

    def norm(self, scale: float, *, rough: bool = False) -> tuple[float, float]:
        """Return smECE at a scale and its derivative."""
        integral, slope = smoothing.l1_norm(self.a, scale / self.length, rough=rough)
        return self.constant + integral, slope / self.length

    def guess(self, noise: float) -> float:
        """Return about where smECE equals its scale, given what noise usually makes it.

        smECE is at least the mean residual a_0, and usually not far below the root mean square of
        residuals smoothed at the scale of that mean and the noise.
        """
        scale = abs(float(self.a[0])) + self.constant + noise
        return self.constant + 0.8 * smoothing.l2_norm(self.a, scale / self.length)

    def fixed_point(self, lowest: float, guess: float) -> float | None:
        """Return the scale that equals its smECE, or None where it lies below `lowest`."""
        # A search with rough norms, in half the time, gives the starting point.
        rough = fixed_point(partial(self.norm, rough=True), lowest, guess, _ROUGH_TOLERANCE)
        return fixed_point(self.norm, lowest, rough or lowest)


class _Point(NamedTuple):
    scale: float
    gap: float
    slope: float

    def newton(self) -> float:
        return self.scale - self.gap / self.slope


def fixed_point(
    norm: Callable[[float], tuple[float, float]],
    lowest: float,
    start: float,
    tolerance: float = _TOLERANCE,
) -> float | None:
    """Return the s in [lowest, 1] with norm(s) = s, or None where it lies below.

    `norm` returns values in [0, 1] and their derivative, which is nowhere positive: norm(s) - s
    falls at least as fast as -s. Each step goes to the root of the cubic through the last two
    points, within the bracket so far; the search ends at a Newton step within `tolerance`.
    """
    low, high = 0.0, 1.0
    s = min(max(start, lowest), 1.0)
    last: _Point | None = None
    for _ in range(100):
        value, derivative = norm(s)
        point = _Point(s, value - s, derivative - 1)
        if point.gap < 0 and s <= lowest:
            return None
        low, high = (s, high) if point.gap > 0 else (low, s)
        newton, target = point.newton(), _inverse_cubic(point, last)
        step = abs(newton - s)
        if step <= tolerance * s:
            return target if abs(target - newton) <= step else newton
        if not low < target < high:
            target = newton if low < newton < high else math.sqrt(low * high)
        last, s = point, min(max(target, lowest), 1.0)
    return s


def _inverse_cubic(point: _Point, last: _Point | None) -> float:
    """Return where the gap is 0 by Hermite interpolation of the scale as a function of the gap."""
    if last is None or last.gap == point.gap:
        return point.newton()
    rise = last.gap - point.gap
    t = -point.gap / rise
    secant = (last.scale - point.scale) / rise
    start, end = 1 / point.slope - secant, 1 / last.slope - secant
    return point.scale + t * rise * (secant + (1 - t) * (start * (1 - t) - end * t))


@dataclass(frozen=True, eq=False)
class Residuals(ABC):
    """The residual measure (1/W) sum w (y - p) delta of n rows, on an interval or on the line."""

    n: int

    @property
    @abstractmethod
    def unsmoothed(self) -> float:
        """The error without smoothing, or a bound: the maximum of smECE over scales."""

    @abstractmethod
    def above(self, fine: float) -> ResidualSpectrum | None:
        """Return the spectrum for all scales from `fine` to 1; None where it would be too long."""

    @abstractmethod
    def between(self, fine: float, coarse: float) -> ResidualSpectrum:
        """Return the spectrum for scales between two that are near each other."""

    @abstractmethod
    def finest(self, scale: float) -> float:
        """Return the smallest scale from `scale` on that can be resolved."""

    def subsample(self) -> Residuals | None:
        """Return the residuals of some of very many rows; None where there are fewer."""
        return None

    def error(self, bandwidth: float) -> float:
        """Return smECE at a given scale."""
        why = " for scores this close together"
        validation.check_minimum(bandwidth, "bandwidth", self.finest(bandwidth), why)
        return self._at(bandwidth)

    def fixed_point(self) -> float:
        """Return the scale at which smECE equals the scale."""
        noise = _usual_noise(self.n)
        lowest = self.finest(noise)
        part = self.subsample()
        if part is not None:
            # Fewer rows are noisier: without their noise, smECE is not much less.
            seen = part.fixed_point() - 2 * _usual_noise(part.n)
            spectrum = self.above(seen) if seen > lowest else None
            found = None if spectrum is None else spectrum.fixed_point(seen, spectrum.guess(noise))
            if found is not None:
                return found
        spectrum = self.above(lowest)
        if spectrum is None:
            return self._below(1.0)
        found = spectrum.fixed_point(lowest, spectrum.guess(noise))
        return self._below(lowest) if found is None else found

    def _below(self, scale: float) -> float:
        """Return the fixed point if it lies below a scale.

        As smECE falls when the scale grows, the fixed point lies between any scale and the smECE
        there.
        """
        if self.unsmoothed == 0:
            return 0.0
        low = max(_ROUNDING * self.unsmoothed, sys.float_info.min)
        high = min(self.unsmoothed, scale)
        s, limit = self.finest(high), math.nextafter(high, math.inf)
        while s < limit:
            value = self._at(s)
            low, high = max(low, min(s, value)), min(high, max(s, value))
            if high <= _NEARBY * low:
                return self.between(low, high).fixed_point(low, s) or low
            s, limit = self.finest(math.sqrt(low * high)), high
        return self._unresolved(s)

    def _unresolved(self, finest: float) -> float:
        """Return smECE at the finest scale: less than that scale, as the fixed point is."""
        return self._at(finest)

    def _at(self, scale: float) -> float:
        return self.between(scale, scale).norm(scale)[0]


@dataclass(frozen=True, eq=False)
class _SampleResiduals(Residuals):
    """Residuals of rows on [0, 1], reflected at both ends."""

    problem: Problem

    @cached_property
    def points(self) -> _Points:
        """The distinct scores, for scales so fine that gaps between them are left out."""
        pooled = self.problem.rows.pooled
        return _Points(self.n, pooled.score, pooled.residual / self.problem.weight, (0.0, 1.0))

    @property
    def unsmoothed(self) -> float:
        return self.points.unsmoothed

    def above(self, fine: float) -> ResidualSpectrum | None:
        return _reflected_spectrum(self.problem, fine) if fine >= _COARSE else None

    def between(self, fine: float, coarse: float) -> ResidualSpectrum:
        return self.above(fine) or self.points.between(fine, coarse)

    def finest(self, scale: float) -> float:
        return scale if scale >= _COARSE else self.points.finest(scale)

    def subsample(self) -> Residuals | None:
        if self.n < _MANY:
            return None
        part = self.problem.part()
        return _SampleResiduals(part.n, part)


@dataclass(frozen=True, eq=False)
class _SketchResiduals(Residuals):
    """Residuals of a sketch, which has one spectrum for all scales that it resolves."""

    spectrum: Callable[[float], ResidualSpectrum]
    finest_scale: Callable[[float], float]
    unsmoothed = 1.0

    def above(self, fine: float) -> ResidualSpectrum:
        return self.spectrum(fine)

    def between(self, fine: float, coarse: float) -> ResidualSpectrum:
        return self.spectrum(fine)

    def finest(self, scale: float) -> float:
        return self.finest_scale(scale)


@dataclass(frozen=True, eq=False)
class _Points(Residuals):
    """Residuals at distinct points of the line."""

    u: FloatArray  # u, r: the points, increasing, and the residual at each
    r: FloatArray
    bounds: Bounds = NO_BOUNDS  # where smoothing is reflected
    at_infinity: float = 0.0  # the error of rows at infinity, which smoothing does not move

    @property
    def unsmoothed(self) -> float:
        return self.at_infinity + float(np.abs(self.r).sum())

    def above(self, fine: float) -> ResidualSpectrum | None:
        return self.between(fine, 1.0) if self._is_short(fine) else None

    def between(self, fine: float, coarse: float) -> ResidualSpectrum:
        mixed = self._mixed(coarse)
        constant = self.at_infinity + float(np.abs(self.r[~mixed]).sum())
        if not mixed.any():
            return ResidualSpectrum(np.zeros(1), fine, constant)
        u, r = self.u[mixed], self.r[mixed]
        interval = packed_spectrum(u, [r], fine, GAUSSIAN_RADIUS * coarse, self.bounds)
        return ResidualSpectrum(interval.coefficients[0], interval.axis.length, constant)

    def finest(self, scale: float) -> float:
        if self._is_short(scale):
            return scale
        if finest_packed(self.u[self._mixed(scale)], scale, GAUSSIAN_RADIUS, self.bounds) == scale:
            return scale
        return finest_packed(self.u, scale, GAUSSIAN_RADIUS, self.bounds)

    def _unresolved(self, finest: float) -> float:
        raise CalibrantError(
            "must not spread scores so far: nothing finer than {finest:.2g} can be resolved, and "
            "smECE is",
            argument="scale",
            finest=finest,
        )

    def _is_short(self, scale: float) -> bool:
        """Tell whether all points lie within a few scales."""
        return not len(self.u) or bool(self.u[-1] - self.u[0] <= FEW_SCALES * scale)

    def _mixed(self, scale: float) -> npt.NDArray[np.bool_]:
        """Tell which points are smoothed into points of the other sign: only their error varies."""
        if not len(self.u):
            return np.zeros(0, dtype=bool)
        begins = run_starts(self.u, GAUSSIAN_RADIUS * scale)
        low, high = (f.reduceat(self.r, begins) for f in (np.minimum, np.maximum))
        return np.repeat((low < 0) & (high > 0), np.diff(begins, append=len(self.u)))


def _reflected_spectrum(problem: Problem, fine: float) -> ResidualSpectrum:
    """Return the spectrum on [0, 1] for scales from `fine` on."""
    return ResidualSpectrum(problem.spectrum(fine, "residual")[0] / problem.weight)


def _residuals_on_line(problem: Problem, transform: Increasing, tails: float) -> Residuals:
    """Return the residuals at u = transform(p) on the line, for scales up to `tails`.

    Rows whose u is infinite (p = 0 and p = 1 on the logit scale) are not smoothed.
    """
    if problem.is_exact:
        pooled = problem.rows.pooled
        u, r = _transformed(transform, pooled.score), pooled.residual / problem.weight
        inside = np.isfinite(u)
        at_infinity = abs(float(r[u == -np.inf].sum())) + abs(float(r[u == np.inf].sum()))
        return _Points(problem.n, u[inside], r[inside], at_infinity=at_infinity)
    line = _logit_line(problem, transform, tails)
    at_infinity = sum(abs(end) for end in line.ends("residual")) / problem.weight

    def spectrum(fine: float) -> ResidualSpectrum:
        interval = line.interval(fine, "residual")
        a = interval.coefficients[0] / problem.weight
        return ResidualSpectrum(a, interval.axis.length, at_infinity)

    return _SketchResiduals(problem.n, spectrum, line.finest)


def _logit_line(problem: Problem, transform: Increasing, tails: float) -> Line:
    """Return the sums of a sketch on the logit scale, the only one besides probabilities."""
    if transform is not logit:
        raise SketchError(
            "a sketch knows scores on one scale: 'probability' or 'logit', not a function of them"
        )
    return problem.logit_line(tails)


def _usual_noise(n: int) -> float:
    """Return a little less than smECE usually is for n calibrated predictions."""
    return min(0.25, _NOISE_SCALE * math.pow(n, -1 / 3))


def _transformed(transform: Increasing, score: FloatArray) -> FloatArray:
    """Return the values of an increasing function, refusing others."""
    try:
        u = np.asarray(transform(score), dtype=np.float64)
    except (TypeError, ValueError):
        u = np.empty(0)
    # Scores a few units in the last place apart may have the same value after rounding.
    if u.shape != score.shape or np.isnan(u).any() or not np.all(u[1:] >= u[:-1]):
        raise CalibrantError(
            "must be 'probability', 'logit' or a function that takes an array of scores and "
            "returns increasing numbers of the same shape",
            argument="scale",
        )
    return u


@dataclass(frozen=True, eq=False)
class _SmoothCells:
    """Cells of equal width on [0, 1], fine enough for the noise of smECE."""

    size: int  # the number of all cells
    is_fixed: bool  # whether the scale is given, and not the one that equals the norm
    # The cells that hold rows, where totals are those of these cells alone.
    filled: Index | None = None

    def image(self, scale: float) -> LinearImage:
        """Return the residuals smoothed at a scale."""
        kernel = self._kernel(scale)

        def smooth(r: FloatArray) -> FloatArray:
            if kernel is not None:
                return np.asarray(r @ kernel)
            if self.filled is None:
                return smoothed(r, scale)
            whole = np.zeros((*r.shape[:-1], self.size))
            whole[..., self.filled] = r
            return smoothed(whole, scale)

        return LinearImage(
            norm=L1Norm(),
            cell_of=UniformBins.of(self.size).index,
            n_cells=self.size,
            of_totals=lambda r, w: np.asarray(smooth(r) / w.sum(axis=-1, keepdims=True)),
            of_filled=lambda filled: replace(self, filled=filled).image(scale),
            at_scale=None if self.is_fixed else self.image,
        )

    def _kernel(self, scale: float) -> FloatArray | None:
        """Return a matrix that smooths totals over the cells near rows, if these are few."""
        if self.filled is None or GAUSSIAN_RADIUS * scale > 1:
            return None
        reach = math.ceil(GAUSSIAN_RADIUS * scale * self.size)
        enters = np.bincount(np.maximum(self.filled - reach, 0), minlength=self.size + 1)
        leaves = np.bincount(
            np.minimum(self.filled + reach + 1, self.size), minlength=self.size + 1
        )
        (near,) = np.nonzero(np.cumsum(enters - leaves)[:-1])
        if len(self.filled) * len(near) > _FEW_PER_CELL * self.size:
            return None
        u, t = (self.filled + 0.5) / self.size, (near + 0.5) / self.size
        images = np.stack((u, -u, 2 - u))
        # 40 scales away the Gaussian is 0 in double precision.
        away = np.minimum(np.abs(t - images[:, :, None]) / scale, 40.0)
        kernel = np.exp(-0.5 * away * away).sum(axis=0)
        return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def read_smooth_error(
    *,
    bandwidth: float | None = None,
    scale: Literal["probability", "logit"] | Increasing = "probability",
) -> SmoothError:
    """Parse the options of a call."""
    width = None if bandwidth is None else validation.as_bandwidth(bandwidth)
    if callable(scale):
        return SmoothError(width, scale)
    known: dict[str, Increasing | None] = {"probability": None, "logit": logit}
    if str(scale) not in known:
        raise CalibrantError(
            "must be 'probability', 'logit' or an increasing function",
            argument="scale",
            value=scale,
        )
    return SmoothError(width, known[str(scale)])


@rows_or_sketch
def smooth_ece(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    bandwidth: float | None = None,
    scale: Literal["probability", "logit"] | Increasing = "probability",
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the smooth calibration error, smECE; 0 is perfect.

    smECE_s = integral of abs((1/W) sum_i w_i K_s(t, p_i) (y_i - p_i)) dt with K_s the Gaussian of
    scale s reflected at 0 and 1; smECE is the one s with smECE_s = s. It has no bins, is
    continuous in the predictions, and bounds the distance to the nearest calibrated predictor:
    dCE / 2 <= smECE <= 2 sqrt(dCE). (Not SMECE, the ECE with soft labels, which is
    :func:`calibrant.soft_label_ece`.)

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    bandwidth : float, optional
        Scale s, up to 1e6, for smECE_s; by default the fixed point.
    scale : {"probability", "logit"} or callable
        "logit", or any strictly increasing function f of the scores, smooths in u = f(p) on the
        whole line, with a plain Gaussian. Rows where f is infinite, at 0 and 1, are not smoothed:
        either end contributes abs(sum w (y - p)) / W.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error, within 1e-9 of the exact value for this sample.

    See Also
    --------
    estimate : With a confidence interval.
    reliability_curve : Outcomes smoothed at this scale.
    distance_bounds : Bounds on the lower distance to calibration.

    Notes
    -----
    Between abs(mean(y - p)) and mean(abs(y - p)). One pass over the rows, then work that depends
    on the bandwidth only, and from 1/4096 down on the number of distinct scores at most. Up to 7000
    distinct scores any bandwidth is resolved. With more, a fixed point below 8e-6 may not be; the
    result is then smECE at the finest scale that is. On other scales, where the limit is 8e-6 times
    the range of f(p), this raises.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), eqs. 2-5, Definition 2 and Appendix B.

    Examples
    --------
    >>> smooth_ece([0.5, 0.75], [0.5, 0.75])
    0.0
    >>> round(smooth_ece([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0]), 6)
    0.171062
    """
    error = read_smooth_error(bandwidth=bandwidth, scale=scale)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error)


MEASURES = (
    MeasureInfo(
        smooth_ece,
        label="smECE",
        title="Smooth calibration error (smECE)",
        meaning="Mean distance between outcomes and predictions after smoothing; no bins or "
        "bandwidth to choose.",
        definition="∫ |Σ w (y − p) K(t, p)| dt / W, with K the Gaussian reflected at 0 and 1, of "
        "the one scale that equals the result.",
        make=read_smooth_error,
        sketch="probability",
        in_assess=True,
        order=1,
    ),
)
