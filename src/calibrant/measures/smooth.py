"""Roots of monotone functions, and the scale at which a falling norm equals the scale itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import UniformBins
from calibrant.data.classes import reduce_classes
from calibrant.data.problem import Index, Line, Problem
from calibrant.errors import CalibrantError, SketchError
from calibrant.measures.registry import (
    L1Norm,
    LinearImage,
    Measure,
    MeasureInfo,
    cells_for_smoothing,
    smoothed,
)
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

__all__ = ["smooth_ece"]

_MAX_STEPS = 100


# Newton steps, in units of the scale, after which the norm is not evaluated again. Where zeros of
# what the norm is of come or go, its slope has a root's bend: the error is the step to 3/2.
_SHORT, ROUGH = 3e-7, 3e-3


class _Point(NamedTuple):
    scale: float
    gap: float
    slope: float


Norm = Callable[[float], tuple[float, float]]


def fixed_point(norm: Norm, lowest: float, start: float, short: float = _SHORT) -> float | None:
    """Return the s in [lowest, 1] with norm(s) = s, or None where it lies below.

    `norm` gives values in [0, 1] and their derivative, which is nowhere positive, so that
    norm(s) - s falls at least as fast as -s. Goes by the cubic through the last two points, between
    the scales known to lie on either side, and stops at a Newton step that is `short`.
    """
    low, high = 0.0, 1.0
    s = min(max(start, lowest), 1.0)
    last: _Point | None = None
    for _ in range(_MAX_STEPS):
        value, derivative = norm(s)
        point = _Point(s, value - s, derivative - 1)
        if point.gap < 0 and s <= lowest:
            return None
        low, high = (s, high) if point.gap > 0 else (low, s)
        newton, target = _newton(point), _inverse_cubic(point, last)
        step = abs(newton - s)
        if step <= short * s:
            return target if abs(target - newton) <= step else newton
        if not low < target < high:
            target = newton if low < newton < high else math.sqrt(low * high)
        last, s = point, min(max(target, lowest), 1.0)
    return s


def _newton(point: _Point) -> float:
    return point.scale - point.gap / point.slope


def _inverse_cubic(point: _Point, last: _Point | None) -> float:
    """Return where the gap closes, by Hermite's cubic for the scale given the gap, or by Newton."""
    if last is None or last.gap == point.gap:
        return _newton(point)
    rise = last.gap - point.gap
    t = -point.gap / rise
    secant = (last.scale - point.scale) / rise
    start, end = 1 / point.slope - secant, 1 / last.slope - secant
    return point.scale + t * rise * (secant + (1 - t) * (start * (1 - t) - end * t))


# The smooth error as a value: the residual measure, ready to be smoothed at any scale.

# An increasing function of the score; infinite values are allowed at 0 and 1.
Increasing = Callable[[FloatArray], FloatArray]

# Calibrated predictions have smECE near 0.3 n^(-1/3): the first search goes a little below.
_NOISE_SCALE = 0.25
# So many rows that it pays to see in a part of them which scale to resolve.
_MANY = 1 << 19
# Below these scales rows are sorted and gaps between them are left out.
_COARSE = 1 / FEW_SCALES
# A curve at a smaller bandwidth is the same to the eye.
_MIN_CURVE_BANDWIDTH = 1e-3
# Scales so near to each other that one set of coefficients serves both.
_NEARBY = 1.5
# What rounding may leave of errors that cancel, in units of their sum.
_ROUNDING = 1e-17
_TINY = float(np.finfo(np.float64).tiny)
# Where rows are few, their noise is smoothed by a matrix product over the cells near them.
_FEW_PER_CELL = 16
# So many scales away nothing is left, not even of the smallest of numbers.
_NOWHERE = 40.0


@dataclass(frozen=True, eq=False)
class ResidualSpectrum:
    """Residuals ready to be smoothed at some scales.

    Attributes
    ----------
    a, length
        Cosine coefficients of the measure over an interval, and its length.
    constant
        The error of rows apart from it, which these scales do not change.
    """

    a: FloatArray
    length: float = 1.0
    constant: float = 0.0

    def norm(self, scale: float, *, rough: bool = False) -> tuple[float, float]:
        """Return smECE at a scale and its derivative."""
        integral, slope = smoothing.l1_norm(self.a, scale / self.length, rough=rough)
        return self.constant + integral, slope / self.length

    def guess(self, noise: float) -> float:
        """Return about where smECE equals its scale, given what noise usually makes it.

        smECE is at least the mean residual a_0, and usually not far below the root mean square of
        what is left when that, and noise, are smoothed away.
        """
        seen = abs(float(self.a[0])) + self.constant + noise
        return self.constant + 0.8 * smoothing.l2_norm(self.a, seen / self.length)

    def fixed_point(self, lowest: float, guess: float) -> float | None:
        """Return the scale at which smECE equals itself unless it lies below `lowest`."""
        # Rough norms, in half the time, say where to begin, and decide nothing.
        guess = fixed_point(partial(self.norm, rough=True), lowest, guess, ROUGH) or lowest
        return fixed_point(self.norm, lowest, guess)


@dataclass(frozen=True)
class Residuals:
    """The residual measure (1/W) sum w (y - p) delta on an interval or on the line.

    Attributes
    ----------
    above
        Makes the measure ready for all scales from one on up to 1; None where that is too long.
    between
        Makes the measure ready for scales between two that are near to each other.
    finest
        Takes a scale and returns the least from there on that can be resolved.
    most
        Gives the most that smECE can be: what it would be if nothing were smoothed.
    n
        The number of rows.
    part
        Gives the measure of some of very many rows.
    on_line
        Whether scales are those of a function of the scores, of which none need be fine enough.
    """

    above: Callable[[float], ResidualSpectrum | None]
    between: Callable[[float, float], ResidualSpectrum]
    finest: Callable[[float], float]
    most: Callable[[], float]
    n: int
    part: Callable[[], Residuals] | None = None
    on_line: bool = False

    def error(self, bandwidth: float) -> float:
        """Return smECE at a given scale."""
        least = self.finest(bandwidth)
        if bandwidth < least:
            raise CalibrantError(
                "must be at least {minimum:.2g} for scores this close together",
                argument="bandwidth",
                value=bandwidth,
                minimum=least,
            )
        return self._at(bandwidth)

    def fixed_point(self) -> float:
        """Return the scale at which smECE equals itself.

        Where that is too fine to be resolved it is smECE at the finest scale that is, which is less
        than the scale itself.
        """
        lowest = self.finest(_usual_noise(self.n))
        found = self._near_that_of_a_subsample(lowest)
        if found is not None:
            return found
        spectrum = self.above(lowest)
        if spectrum is None:
            return self._below(1.0)
        found = spectrum.fixed_point(lowest, spectrum.guess(_usual_noise(self.n)))
        return self._below(lowest) if found is None else found

    def _near_that_of_a_subsample(self, lowest: float) -> float | None:
        """Return the fixed point if it is where a part of the rows has it, far above `lowest`."""
        if self.part is None:
            return None
        part = self.part()
        # Fewer rows are noisier: without their noise, smECE is not much less.
        seen = part.fixed_point() - 2 * _usual_noise(part.n)
        spectrum = self.above(seen) if seen > lowest else None
        if spectrum is None:
            return None
        return spectrum.fixed_point(seen, spectrum.guess(_usual_noise(self.n)))

    def _below(self, scale: float) -> float:
        """Return the fixed point if it lies below a scale.

        As smECE falls when the scale grows, the fixed point lies between any scale and the smECE
        there.
        """
        most = self.most()
        if most == 0:
            return 0.0
        low, high = max(_ROUNDING * most, _TINY), min(most, scale)
        s, limit = self.finest(high), math.nextafter(high, math.inf)
        while s < limit:
            value = self._at(s)
            low, high = max(low, min(s, value)), min(high, max(s, value))
            if high <= _NEARBY * low:
                return self.between(low, high).fixed_point(low, s) or low
            s, limit = self.finest(math.sqrt(low * high)), high
        if self.on_line:
            raise CalibrantError(
                "must not spread scores so far: nothing finer than {finest:.2g} can be resolved, "
                "and smECE is",
                argument="scale",
                finest=s,
            )
        return self._at(s)

    def _at(self, scale: float) -> float:
        return self.between(scale, scale).norm(scale)[0]


def residuals(problem: Problem) -> Residuals:
    """Return the residuals on [0, 1], reflected at both ends."""

    def whole(fine: float, coarse: float = 1.0) -> ResidualSpectrum:
        return ResidualSpectrum(problem.spectrum(fine, "residual")[0] / problem.weight)

    if not problem.is_exact:
        finest = partial(max, problem.finest_scale)
        return Residuals(whole, whole, finest, lambda: 1.0, problem.n)

    def points() -> Points:
        pooled = problem.rows.pooled
        return Points(pooled.score, pooled.residual / problem.weight, (0.0, 1.0))

    def between(fine: float, coarse: float) -> ResidualSpectrum:
        return whole(fine) if fine >= _COARSE else points().between(fine, coarse)

    return Residuals(
        above=lambda fine: whole(fine) if fine >= _COARSE else None,
        between=between,
        finest=lambda scale: scale if scale >= _COARSE else points().finest(scale),
        most=lambda: points().most,
        n=problem.n,
        part=(lambda: residuals(problem.part())) if problem.n >= _MANY else None,
    )


def residuals_on_line(problem: Problem, transform: Increasing, tails: float) -> Residuals:
    """Return the residuals at u = transform(p) on the line, for scales up to `tails`.

    Rows whose u is infinite (p = 0 and p = 1 on the logit scale) stay where they are.
    """
    if problem.is_exact:
        pooled = problem.rows.pooled
        u, r = _increasing_values(transform, pooled.score), pooled.residual / problem.weight
        inside = np.isfinite(u)
        beyond = abs(float(r[u == -np.inf].sum())) + abs(float(r[u == np.inf].sum()))
        points = Points(u[inside], r[inside], NO_BOUNDS, beyond)
        return Residuals(
            above=points.above,
            between=points.between,
            finest=points.finest,
            most=lambda: points.most,
            n=problem.n,
            on_line=True,
        )
    line = _known_line(problem, transform, tails)
    ends = sum(abs(end) for end in line.ends("residual")) / problem.weight

    def between(fine: float, coarse: float = 1.0) -> ResidualSpectrum:
        interval = line.interval(fine, "residual")
        a = interval.coefficients[0] / problem.weight
        return ResidualSpectrum(a, interval.axis.length, ends)

    return Residuals(between, between, line.finest, lambda: 1.0, problem.n)


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct points that hold rows, in increasing order.

    Attributes
    ----------
    u, r
        The points, and the measure of each.
    bounds
        Where smoothing is reflected.
    beyond
        The error of rows at infinity, which no noise can move.
    """

    u: FloatArray
    r: FloatArray
    bounds: Bounds
    beyond: float = 0.0

    @property
    def most(self) -> float:
        """The error if nothing is smoothed."""
        return self.beyond + float(np.abs(self.r).sum())

    def above(self, fine: float) -> ResidualSpectrum | None:
        """Make the measure ready for scales from one on up to 1."""
        return self.between(fine, 1.0) if self._is_short(fine) else None

    def between(self, fine: float, coarse: float) -> ResidualSpectrum:
        """Make the measure ready for scales between two."""
        mixed = self._mixed(coarse)
        constant = self.beyond + float(np.abs(self.r[~mixed]).sum())
        if not mixed.any():
            return ResidualSpectrum(np.zeros(1), fine, constant)
        u, r = self.u[mixed], self.r[mixed]
        interval = packed_spectrum(u, [r], fine, GAUSSIAN_RADIUS * coarse, self.bounds)
        return ResidualSpectrum(interval.coefficients[0], interval.axis.length, constant)

    def finest(self, scale: float) -> float:
        """Return the least scale from this one on that can be resolved."""
        if self._is_short(scale):
            return scale
        if finest_packed(self.u[self._mixed(scale)], scale, GAUSSIAN_RADIUS, self.bounds) == scale:
            return scale
        return finest_packed(self.u, scale, GAUSSIAN_RADIUS, self.bounds)

    def _is_short(self, scale: float) -> bool:
        """Tell whether all points lie within a few scales."""
        return not len(self.u) or bool(self.u[-1] - self.u[0] <= FEW_SCALES * scale)

    def _mixed(self, scale: float) -> npt.NDArray[np.bool_]:
        """Tell which rows are smoothed into rows of the other sign: others' errors never change."""
        if not len(self.u):
            return np.zeros(0, dtype=bool)
        begins = run_starts(self.u, GAUSSIAN_RADIUS * scale)
        has_both = (np.minimum.reduceat(self.r, begins) < 0) & (
            np.maximum.reduceat(self.r, begins) > 0
        )
        return np.repeat(has_both, np.diff(begins, append=len(self.u)))


def _known_line(problem: Problem, transform: Increasing, tails: float) -> Line:
    if transform is not logit:
        raise SketchError(
            "a sketch knows scores on one scale: 'probability' or 'logit', not a function of them"
        )
    return problem.logit_line(tails)


def _usual_noise(n: int) -> float:
    """Return a little less than smECE usually is for so many calibrated predictions."""
    return min(0.25, _NOISE_SCALE * math.pow(n, -1 / 3))


def _increasing_values(transform: Increasing, score: FloatArray) -> FloatArray:
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


@dataclass(frozen=True)
class SmoothError(Measure):
    """The L1 norm of the smoothed residuals, at a given scale or at its own."""

    bandwidth: float | None = None
    transform: Increasing | None = None

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        measure = self._residuals(problem)
        return measure.fixed_point() if self.bandwidth is None else measure.error(self.bandwidth)

    def error_bound(self, problem: Problem) -> float:
        """Bound the distance from the error of the rows themselves.

        The norms at one scale differ by at most the L1 norm of what is lacking. So do the fixed
        points: where one norm equals its scale, the other is off it by no more than that, and
        norm minus scale falls at least as fast as the scale grows.
        """
        if problem.is_exact:
            return 0.0
        scale = self(problem) if self.bandwidth is None else self.bandwidth
        finest = self._residuals(problem).finest(0.0)
        if self.transform is None:
            error = problem.spectrum_error(max(scale, finest), "residual")
        else:
            error = _known_line(problem, self.transform, 1.0).error(max(scale, finest), "residual")
        # Below the finest scale all that is known is that smECE is there.
        return max(error, finest) if scale <= finest else error

    @property
    def no_interval(self) -> str:
        """Why there is no confidence interval."""
        other = self.transform is not None
        return "on scales other than 'probability': use logit_smoothed_ece" if other else ""

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the smoothed residuals, at the scale given or at that found, `value`."""
        scale = self.bandwidth
        if scale is None:
            # Where nothing is left over, nothing depends on the scale.
            scale = max(value, problem.finest_scale) if value > 0 else 1.0
        cells = SmoothCells(cells_for_smoothing(1 / scale), is_fixed=self.bandwidth is not None)
        return cells.image(scale)

    def _residuals(self, problem: Problem) -> Residuals:
        if self.transform is None:
            return residuals(problem)
        # The fixed point is at most 1, as the error is.
        return residuals_on_line(problem, self.transform, self.bandwidth or 1.0)


@dataclass(frozen=True, eq=False)
class SmoothCells:
    """Even cells of [0, 1], fine enough for the noise of smECE at scales near one.

    Attributes
    ----------
    size
        The number of all cells.
    is_fixed
        Whether the scale is given, and not the one that equals the norm.
    filled
        The cells that hold rows, where they alone are looked at.
    """

    size: int
    is_fixed: bool
    filled: Index | None = None

    def image(self, scale: float) -> LinearImage:
        """Return the residuals smoothed at a scale."""
        smooth = self._near(scale) or self._everywhere(scale)
        return LinearImage(
            norm=L1Norm(),
            cell_of=UniformBins.of(self.size).index,
            n_cells=self.size,
            of_totals=lambda r, w: np.asarray(smooth(r) / w.sum(axis=-1, keepdims=True)),
            of_filled=lambda filled: replace(self, filled=filled).image(scale),
            at_scale=None if self.is_fixed else self.image,
        )

    def _everywhere(self, scale: float) -> Callable[[FloatArray], FloatArray]:
        """Return what smooths totals over all cells."""

        def smooth(r: FloatArray) -> FloatArray:
            if self.filled is None:
                return smoothed(r, scale)
            whole = np.zeros((*r.shape[:-1], self.size))
            whole[..., self.filled] = r
            return smoothed(whole, scale)

        return smooth

    def _near(self, scale: float) -> Callable[[FloatArray], FloatArray] | None:
        """Return what smooths totals over the cells near rows, if those are few."""
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
        away = np.minimum(np.abs(t - images[:, :, None]) / scale, _NOWHERE)
        kernel = np.exp(-0.5 * away * away).sum(axis=0)
        kernel /= kernel.sum(axis=1, keepdims=True)
        return lambda r: r @ kernel


def read_smooth_error(
    *,
    bandwidth: float | None = None,
    scale: Literal["probability", "logit"] | Increasing = "probability",
) -> SmoothError:
    """Turn the words of a call into an error."""
    width = None if bandwidth is None else validation.as_bandwidth(bandwidth)
    return SmoothError(width, _transform(scale))


def _transform(scale: Any) -> Increasing | None:
    if callable(scale):
        increasing: Increasing = scale
        return increasing
    known: dict[str, Increasing | None] = {"probability": None, "logit": logit}
    if not isinstance(scale, str) or scale not in known:
        raise CalibrantError(
            "must be 'probability', 'logit' or an increasing function",
            argument="scale",
            value=scale,
        )
    return known[scale]


def curve_bandwidth(problem: Problem, smooth_ece: float | None = None) -> float:
    """Return smECE as the bandwidth of a curve: at least what can be resolved, and seen.

    It is solved for unless given.
    """
    error = SmoothError()(problem) if smooth_ece is None else smooth_ece
    return max(error, _MIN_CURVE_BANDWIDTH, problem.finest_scale)


# SmoothECE: the calibration error after smoothing at the scale of the error itself.
#
#     h_s(t)  = (1/W) sum_i w_i K_s(t, p_i) (y_i - p_i)
#     smECE_s = integral of abs(h_s) over [0, 1],   which does not grow with s
#     smECE   = the one s with smECE_s = s
#
# K_s(., p) is the density of p + s Z reflected into [0, 1], which keeps all of its mass also for
# p = 0 and p = 1. (Read as a sum over a set of preimages, eq. 2 of the paper gives those two points
# half of it; its Lemma 25 needs all.)


def smooth_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    bandwidth: float | None = None,
    scale: Literal["probability", "logit"] | Callable[[FloatArray], FloatArray] = "probability",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the smooth calibration error, smECE; 0 is perfect.

    smECE_s = integral of abs((1/W) sum_i w_i K_s(t, p_i) (y_i - p_i)) dt with K_s the Gaussian of
    scale s reflected at 0 and 1; smECE is the one s with smECE_s = s. It has no bins, moves
    continuously with the predictions, and bounds the distance to the nearest calibrated
    predictor: dCE / 2 <= smECE <= 2 sqrt(dCE). (Not SMECE, the ECE with soft labels, which is
    :func:`calibrant.soft_label_ece`.)

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`; soft labels are taken as they are.
    bandwidth
        A scale s, up to 1e6, at which to give smECE_s; None finds the fixed point.
    scale
        "probability"; "logit", or any strictly increasing function f of the scores, smooths in
        u = f(p) on the whole line, with a plain Gaussian. Where f is infinite, at 0 and 1, rows
        cannot be smoothed and count abs(sum w (y - p)) / W at either end.
    sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.

    Returns
    -------
    float
        The error, within 1e-9 of the exact value for this sample.

    Notes
    -----
    Between abs(mean(y - p)) and mean(abs(y - p)). One pass over the rows, then work that depends
    on the bandwidth only, and from 1/4096 down on the number of distinct scores at most. Up to 7000
    distinct scores any bandwidth is resolved. With more a fixed point below 8e-6 may be out of
    reach, and is then given as smECE at the finest scale that is not; on other scales, where the
    limit is 8e-6 times the range of f(p), it is refused.

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
        meaning="How far outcomes are from predictions, smoothed at a scale of its own; no bins to "
        "choose.",
        definition="∫ |Σ w (y − p) K(t, p)| dt / W, with K the Gaussian reflected at 0 and 1, of "
        "the one scale that equals the result.",
        make=read_smooth_error,
        sketch="probability",
        in_assess=True,
        order=1,
    ),
)
