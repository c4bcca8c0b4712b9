"""The smooth error as a value: the residual measure, ready to be smoothed at any scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant import checks, cosine
from calibrant.absolute import even_mean, rough_even_mean
from calibrant.arrays import FloatArray
from calibrant.compiled import passes
from calibrant.errors import CalibrantError, SketchError, shown
from calibrant.fixed_point import NEAR, fixed_point
from calibrant.lines import (
    FEW_SCALES,
    NO_WALLS,
    TAILS,
    Line,
    Walls,
    clusters,
    finest_packed,
    packed_interval,
)
from calibrant.logits import logit
from calibrant.problem import Problem

# An increasing function of the score; infinite values are allowed at 0 and 1.
Increasing = Callable[[FloatArray], FloatArray]

# Calibrated predictions have smECE near 0.3 n^(-1/3): the first search goes a little below.
_NOISE_SCALE = 0.25
# So many rows that it pays to see in a part of them which scale to resolve.
_MANY = 1 << 19
# Below these scales rows are sorted and gaps between them are left out.
_COARSE = 1 / FEW_SCALES
# A curve at a smaller bandwidth is the same to the eye.
_LEAST_OF_CURVES = 1e-3
# Scales so near to each other that one set of coefficients serves both.
_NEARBY = 1.5
# What rounding may leave of errors that cancel, in units of their sum.
_ROUNDING = 1e-17
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Smoothable:
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

    def norm(self, scale: float, mean: cosine.AbsMean = even_mean) -> tuple[float, float]:
        """Return smECE at a scale and its derivative."""
        integral, slope = cosine.abs_integral(self.a, scale / self.length, mean)
        return self.constant + float(integral), float(slope) / self.length

    def guess(self, noise: float) -> float:
        """Return about where smECE equals its scale, given what noise usually makes it.

        smECE is at least the mean residual a_0, and usually not far below the root mean square of
        what is left when that, and noise, are smoothed away.
        """
        seen = abs(float(self.a[0])) + self.constant + noise
        return self.constant + 0.8 * cosine.root_mean_square(self.a, seen / self.length)

    def fixed_point(self, lowest: float, guess: float) -> float | None:
        """Return the scale at which smECE equals itself unless it lies below `lowest`."""
        if not passes.is_loaded():
            # Rough looks, as fast as compiled ones, say where to look, and decide nothing.
            rough = partial(self.norm, mean=rough_even_mean)
            guess = fixed_point(rough, lowest, guess, NEAR) or lowest
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

    above: Callable[[float], Smoothable | None]
    between: Callable[[float, float], Smoothable]
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
                f"bandwidth must be at least {least:.2g} for scores this close together; "
                f"got {bandwidth!r}"
            )
        return self._at(bandwidth)

    def fixed_point(self) -> float:
        """Return the scale at which smECE equals itself.

        Where that is too fine to be resolved it is smECE at the finest scale that is, which is less
        than the scale itself.
        """
        lowest = self.finest(_usual_noise(self.n))
        found = self._above_what_a_part_shows(lowest)
        if found is not None:
            return found
        smoothable = self.above(lowest)
        if smoothable is None:
            return self._below(1.0)
        found = smoothable.fixed_point(lowest, smoothable.guess(_usual_noise(self.n)))
        return self._below(lowest) if found is None else found

    def _above_what_a_part_shows(self, lowest: float) -> float | None:
        """Return the fixed point if it is where a part of the rows has it, far above `lowest`."""
        if self.part is None:
            return None
        part = self.part()
        # Fewer rows are noisier: without their noise, smECE is not much less.
        seen = part.fixed_point() - 2 * _usual_noise(part.n)
        smoothable = self.above(seen) if seen > lowest else None
        if smoothable is None:
            return None
        return smoothable.fixed_point(seen, smoothable.guess(_usual_noise(self.n)))

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
                f"scale must not spread scores so far: nothing finer than {s:.2g} can be resolved, "
                "and smECE is"
            )
        return self._at(s)

    def _at(self, scale: float) -> float:
        return self.between(scale, scale).norm(scale)[0]


def residuals(problem: Problem) -> Residuals:
    """Return the residuals on [0, 1], reflected at both ends."""

    def whole(fine: float, coarse: float = 1.0) -> Smoothable:
        return Smoothable(problem.spectrum(fine, "residual")[0] / problem.weight)

    if not problem.is_exact:
        finest = partial(max, problem.finest_scale)
        return Residuals(whole, whole, finest, lambda: 1.0, problem.n)

    def places() -> Places:
        return Places(problem.atoms.score, problem.atoms.residual / problem.weight, (0.0, 1.0))

    def between(fine: float, coarse: float) -> Smoothable:
        return whole(fine) if fine >= _COARSE else places().between(fine, coarse)

    return Residuals(
        above=lambda fine: whole(fine) if fine >= _COARSE else None,
        between=between,
        finest=lambda scale: scale if scale >= _COARSE else places().finest(scale),
        most=lambda: places().most,
        n=problem.n,
        part=(lambda: residuals(problem.part())) if problem.n >= _MANY else None,
    )


def residuals_on_line(problem: Problem, transform: Increasing, tails: float) -> Residuals:
    """Return the residuals at u = transform(p) on the line, for scales up to `tails`.

    Rows whose u is infinite (p = 0 and p = 1 on the logit scale) stay where they are.
    """
    if problem.is_exact:
        atoms = problem.atoms
        u, r = _increasing_values(transform, atoms.score), atoms.residual / problem.weight
        inside = np.isfinite(u)
        beyond = abs(float(r[u == -np.inf].sum())) + abs(float(r[u == np.inf].sum()))
        places = Places(u[inside], r[inside], NO_WALLS, beyond)
        return Residuals(
            above=places.above,
            between=places.between,
            finest=places.finest,
            most=lambda: places.most,
            n=problem.n,
            on_line=True,
        )
    line = _known_line(problem, transform, tails)
    ends = sum(abs(end) for end in line.ends("residual")) / problem.weight

    def between(fine: float, coarse: float = 1.0) -> Smoothable:
        interval = line.interval(fine, "residual")
        return Smoothable(interval.coefficients[0] / problem.weight, interval.axis.length, ends)

    return Residuals(between, between, line.finest, lambda: 1.0, problem.n)


@dataclass(frozen=True, eq=False)
class Places:
    """Distinct places that hold rows, in increasing order.

    Attributes
    ----------
    u, r
        The places, and the measure of each.
    walls
        Where smoothing is reflected.
    beyond
        The error of rows at infinity, which no noise can move.
    """

    u: FloatArray
    r: FloatArray
    walls: Walls
    beyond: float = 0.0

    @property
    def most(self) -> float:
        """The error if nothing is smoothed."""
        return self.beyond + float(np.abs(self.r).sum())

    def above(self, fine: float) -> Smoothable | None:
        """Make the measure ready for scales from one on up to 1."""
        return self.between(fine, 1.0) if self._is_short(fine) else None

    def between(self, fine: float, coarse: float) -> Smoothable:
        """Make the measure ready for scales between two."""
        mixed = self._mixed(coarse)
        constant = self.beyond + float(np.abs(self.r[~mixed]).sum())
        if not mixed.any():
            return Smoothable(np.zeros(1), fine, constant)
        u, r = self.u[mixed], self.r[mixed]
        interval = packed_interval(u, [r], fine, TAILS * coarse, self.walls)
        return Smoothable(interval.coefficients[0], interval.axis.length, constant)

    def finest(self, scale: float) -> float:
        """Return the least scale from this one on that can be resolved."""
        if self._is_short(scale):
            return scale
        if finest_packed(self.u[self._mixed(scale)], scale, TAILS, self.walls) == scale:
            return scale
        return finest_packed(self.u, scale, TAILS, self.walls)

    def _is_short(self, scale: float) -> bool:
        """Tell whether all places lie within a few scales."""
        return not len(self.u) or bool(self.u[-1] - self.u[0] <= FEW_SCALES * scale)

    def _mixed(self, scale: float) -> npt.NDArray[np.bool_]:
        """Tell which rows are smoothed into rows of the other sign: others' errors never change."""
        if not len(self.u):
            return np.zeros(0, dtype=bool)
        begins = clusters(self.u, TAILS * scale)
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
            "scale must be 'probability', 'logit' or a function that takes an array of scores and "
            "returns increasing numbers of the same shape"
        )
    return u


@dataclass(frozen=True)
class SmoothError:
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

    def _residuals(self, problem: Problem) -> Residuals:
        if self.transform is None:
            return residuals(problem)
        # The fixed point is at most 1, as the error is.
        return residuals_on_line(problem, self.transform, self.bandwidth or 1.0)


def read_smooth_error(
    *,
    bandwidth: float | None = None,
    scale: Literal["probability", "logit"] | Increasing = "probability",
) -> SmoothError:
    """Turn the words of a call into an error."""
    width = None if bandwidth is None else checks.as_bandwidth(bandwidth)
    return SmoothError(width, _transform(scale))


def _transform(scale: Any) -> Increasing | None:
    if callable(scale):
        increasing: Increasing = scale
        return increasing
    known: dict[str, Increasing | None] = {"probability": None, "logit": logit}
    if not isinstance(scale, str) or scale not in known:
        raise CalibrantError(
            f"scale must be 'probability', 'logit' or an increasing function; got {shown(scale)}"
        )
    return known[scale]


def curve_bandwidth(problem: Problem, smooth_ece: float | None = None) -> float:
    """Return smECE as the bandwidth of a curve: at least what can be resolved, and seen.

    It is solved for unless given.
    """
    error = SmoothError()(problem) if smooth_ece is None else smooth_ece
    return max(error, _LEAST_OF_CURVES, problem.finest_scale)
