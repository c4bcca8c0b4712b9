"""The smooth error as a value: the residual measure, ready to be smoothed at any scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from calibrant import checks, cosine
from calibrant.absolute import even_mean, rough_even_mean
from calibrant.arrays import FloatArray
from calibrant.compiled import passes
from calibrant.errors import CalibrantError, SketchError, shown
from calibrant.fixed_point import NEAR, fixed_point
from calibrant.lines import TAILS, Line, line_of_rows
from calibrant.logits import logit
from calibrant.problem import Problem

# An increasing function of the score; infinite values are allowed at 0 and 1.
Increasing = Callable[[FloatArray], FloatArray]

# Calibrated predictions have smECE near 0.3 n^(-1/3): the first search goes a little below.
_NOISE_SCALE = 0.25
_REFINEMENT, _MAX_REFINEMENTS = 4.0, 100
# So many rows that it pays to see in a part of them which scale to resolve.
_MANY = 1 << 19


@dataclass(frozen=True)
class Residuals:
    """The residual measure (1/W) sum w (y - p) delta on an interval.

    Attributes
    ----------
    spectrum
        Takes a scale in units of the interval and returns cosine coefficients for it.
    places
        Gives the distinct places that hold rows, in order, and the measure of each; None where
        they are not known.
    n
        The number of rows.
    finest
        The least scale that `spectrum` resolves.
    length
        The length of the interval.
    beyond
        The error of rows at infinity, which no noise can move: abs(sum w r) / W at either end.
    part
        Gives the measure of some of very many rows.
    """

    spectrum: Callable[[float], FloatArray]
    places: Callable[[], tuple[FloatArray, FloatArray]] | None
    n: int
    finest: float
    length: float = 1.0
    beyond: float = 0.0
    part: Callable[[], Residuals] | None = None

    def error(self, bandwidth: float) -> float:
        """Return smECE at a given scale."""
        if bandwidth >= self.finest:
            return self._norm(self.spectrum(bandwidth / self.length), bandwidth)[0]
        if self.places is not None and _are_apart(self.places()[0], bandwidth):
            return self._unsmoothed()
        raise CalibrantError(
            f"bandwidth must be at least {self.finest:.2g} for scores this close together; "
            f"got {bandwidth!r}"
        )

    def fixed_point(self) -> float:
        """Return the scale at which smECE equals itself.

        Below the finest scale that can be resolved the answer is exact if scores are far apart,
        and otherwise smECE at that scale, which is less than the scale itself.
        """
        if self.finest > 1:
            raise CalibrantError(self._too_wide())
        lowest = max(_usual_noise(self.n), self.finest)
        found = self._above_what_a_part_shows(lowest)
        if found is None:
            found = self._above(lowest)
        for _ in range(_MAX_REFINEMENTS):
            if found is not None:
                return found
            # smECE is at most what it would be if nothing were smoothed into anything else, and
            # is exactly that if nothing is at that very scale.
            most = self._unsmoothed()
            if self.places is not None and _are_apart(self.places()[0], most):
                return most
            if lowest == self.finest:
                if self.places is not None and self.length > 1:
                    raise CalibrantError(self._too_wide())
                return self.error(self.finest)
            lowest = max(min(lowest, most) / _REFINEMENT, self.finest)
            found = self._above(lowest)
        return self.error(self.finest) if found is None else found

    def _above(self, lowest: float) -> float | None:
        """Return the fixed point unless it lies below a scale."""
        a = self.spectrum(lowest / self.length)
        # smECE is at least the mean residual a_0, and usually not far below the root mean square of
        # what is left when that, and noise, are smoothed away.
        seen = abs(float(a[0])) + self.beyond + _usual_noise(self.n)
        guess = self.beyond + 0.8 * cosine.root_mean_square(a, seen / self.length)
        if not passes.is_loaded():
            # Rough looks, as fast as compiled ones, say where to look, and decide nothing.
            rough = partial(self._norm, a, mean=rough_even_mean)
            guess = fixed_point(rough, lowest, guess, NEAR) or lowest
        return fixed_point(partial(self._norm, a), lowest, guess)

    def _above_what_a_part_shows(self, lowest: float) -> float | None:
        """Return the fixed point if it is where a part of the rows has it, far above `lowest`."""
        if self.part is None:
            return None
        part = self.part()
        # Fewer rows are noisier: without their noise, smECE is not much less.
        seen = part.fixed_point() - 2 * _usual_noise(part.n)
        return self._above(seen) if seen > lowest else None

    def _norm(
        self, a: FloatArray, bandwidth: float, mean: cosine.AbsMean = even_mean
    ) -> tuple[float, float]:
        """Return smECE at a scale and its derivative."""
        integral, slope = cosine.abs_integral(a, bandwidth / self.length, mean)
        return self.beyond + float(integral), float(slope) / self.length

    def _unsmoothed(self) -> float:
        """Return the most that smECE can be."""
        if self.places is None:
            return 1.0
        return self.beyond + float(np.abs(self.places()[1]).sum())

    def _too_wide(self) -> str:
        return (
            f"scale must not spread scores so far: over a range of {self.length:.4g} nothing finer "
            f"than {self.finest:.2g} can be resolved, and smECE is"
        )


def residuals(problem: Problem) -> Residuals:
    """Return the residuals on [0, 1], reflected at both ends."""
    return Residuals(
        spectrum=lambda scale: problem.spectrum(scale, "residual")[0] / problem.weight,
        places=(
            (lambda: (problem.atoms.score, problem.atoms.residual / problem.weight))
            if problem.is_exact
            else None
        ),
        n=problem.n,
        finest=problem.finest_scale,
        part=(
            (lambda: residuals(problem.part())) if problem.is_exact and problem.n >= _MANY else None
        ),
    )


def residuals_on_line(problem: Problem, transform: Increasing, tails: float) -> Residuals:
    """Return the residuals at u = transform(p) on the line, with room for noise of scale `tails`.

    Rows whose u is infinite (p = 0 and p = 1 on the logit scale) stay where they are.
    """
    if not problem.is_exact:
        line, places = _known_line(problem, transform, tails), None
    else:
        atoms = problem.atoms
        u, r = _increasing_values(transform, atoms.score), atoms.residual / problem.weight
        line = line_of_rows(u, {"residual": atoms.residual}, tails)
        inside = np.isfinite(u)

        def places() -> tuple[FloatArray, FloatArray]:
            return u[inside], r[inside]

    return Residuals(
        spectrum=lambda scale: line.spectrum(scale, "residual")[0] / problem.weight,
        places=places,
        n=problem.n,
        finest=line.finest,
        length=line.length,
        beyond=sum(abs(end) for end in line.ends("residual")) / problem.weight,
    )


def _known_line(problem: Problem, transform: Increasing, tails: float) -> Line:
    if transform is not logit:
        raise SketchError(
            "a sketch knows scores on one scale: 'probability' or 'logit', not a function of them"
        )
    return problem.logit_line(tails)


def _usual_noise(n: int) -> float:
    """Return a little less than smECE usually is for so many calibrated predictions."""
    return min(0.25, _NOISE_SCALE * math.pow(n, -1 / 3))


def _are_apart(place: FloatArray, bandwidth: float) -> bool:
    """Tell whether no two places are smoothed into each other."""
    return len(place) < 2 or bool(np.diff(place).min() >= 2 * TAILS * bandwidth)


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
        finest = self._residuals(problem).finest
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
