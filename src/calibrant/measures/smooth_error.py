"""The smooth error as a value: the residual measure, ready to be smoothed at any scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant import cosine
from calibrant.arrays import FloatArray
from calibrant.errors import CalibrantError
from calibrant.fixed_point import fixed_point
from calibrant.problem import Problem

# An increasing function of the score; infinite values are allowed at 0 and 1.
Increasing = Callable[[FloatArray], FloatArray]

# Calibrated predictions have smECE near 0.3 n^(-1/3): the first search goes a little below.
_NOISE_SCALE = 0.25
_REFINEMENT = 4.0
# On the line nothing is reflected: the Gaussian's tails need room beyond the outermost scores.
_TAILS = 9.0


@dataclass(frozen=True)
class Residuals:
    """The residual measure (1/W) sum w (y - p) delta on an interval.

    Attributes
    ----------
    spectrum
        Takes a scale in units of the interval and returns cosine coefficients for it.
    places
        Gives the distinct places that hold rows, in order, and the measure of each.
    n
        The number of rows.
    length
        The length of the interval.
    beyond
        The error of rows at infinity, which no noise can move: abs(sum w r) / W at either end.
    """

    spectrum: Callable[[float], FloatArray]
    places: Callable[[], tuple[FloatArray, FloatArray]]
    n: int
    length: float = 1.0
    beyond: float = 0.0

    def error(self, bandwidth: float) -> float:
        """Return smECE at a given scale."""
        scale = bandwidth / self.length
        if scale >= cosine.FINEST_SCALE:
            return self._norm(self.spectrum(scale), bandwidth)[0]
        if self._are_apart(bandwidth):
            return self._unsmoothed()
        raise CalibrantError(
            f"bandwidth must be at least {cosine.FINEST_SCALE * self.length:.2g} for scores this "
            f"close together; got {bandwidth!r}"
        )

    def fixed_point(self) -> float:
        """Return the scale at which smECE equals itself.

        Below the finest scale that can be resolved the answer is exact if scores are far apart,
        and otherwise smECE at that scale, which is less than the scale itself.
        """
        finest = cosine.FINEST_SCALE * self.length
        if finest > 1:
            raise CalibrantError(_too_wide(self.length))
        noise = min(0.25, _NOISE_SCALE * self.n ** (-1 / 3))
        lowest = max(noise, finest)
        while True:
            a = self.spectrum(lowest / self.length)
            norm = partial(self._norm, a)
            # smECE is rarely much larger than the mean residual a_0 and what noise there is.
            found = fixed_point(norm, lowest, guess=abs(float(a[0])) + self.beyond + noise)
            if found is not None:
                return found
            # smECE is at most what it would be if nothing were smoothed into anything else, and
            # is exactly that if nothing is at that very scale.
            most = self._unsmoothed()
            if self._are_apart(most):
                return most
            if lowest == finest:
                if self.length > 1:
                    raise CalibrantError(_too_wide(self.length))
                return norm(finest)[0]
            lowest = max(min(lowest, most) / _REFINEMENT, finest)

    def _norm(self, a: FloatArray, bandwidth: float) -> tuple[float, float]:
        """Return smECE at a scale and its derivative."""
        integral, slope = cosine.abs_integral(a, bandwidth / self.length)
        return self.beyond + float(integral), float(slope) / self.length

    def _unsmoothed(self) -> float:
        _, measure = self.places()
        return self.beyond + float(np.abs(measure).sum())

    def _are_apart(self, bandwidth: float) -> bool:
        """Tell whether no two places are smoothed into each other."""
        place, _ = self.places()
        return len(place) < 2 or bool(np.diff(place).min() >= 2 * _TAILS * bandwidth)


def residuals(problem: Problem) -> Residuals:
    """Return the residuals on [0, 1], reflected at both ends."""
    return Residuals(
        spectrum=lambda scale: problem.spectrum(scale, "residual")[0] / problem.weight,
        places=lambda: (problem.atoms.score, problem.atoms.residual / problem.weight),
        n=problem.n,
    )


def transformed_residuals(problem: Problem, transform: Increasing, tails: float) -> Residuals:
    """Return the residuals at u = transform(p) on the line, with room for noise of scale `tails`.

    Rows whose u is infinite (p = 0 and p = 1 on the logit scale) stay where they are.
    """
    atoms = problem.atoms
    u, r = _increasing_values(transform, atoms.score), atoms.residual / problem.weight
    beyond = float(sum(abs(r[u == end].sum()) for end in (-np.inf, np.inf)))
    u, r = u[np.isfinite(u)], r[np.isfinite(u)]
    low, high = (u[0] - _TAILS * tails, u[-1] + _TAILS * tails) if len(u) else (0.0, 1.0)
    x = (u - low) / (high - low)
    return Residuals(
        spectrum=lambda scale: cosine.spectrum(x, [r], scale)[0],
        places=lambda: (u, r),
        n=problem.n,
        length=float(high - low),
        beyond=beyond,
    )


def _too_wide(length: float) -> str:
    return (
        f"scale must not spread scores so far: over a range of {length:.4g} nothing finer than "
        f"{cosine.FINEST_SCALE * length:.2g} can be resolved, and smECE is"
    )


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
        if self.transform is None:
            measure = residuals(problem)
        else:
            # The fixed point is at most 1, as the error is.
            measure = transformed_residuals(problem, self.transform, self.bandwidth or 1.0)
        return measure.fixed_point() if self.bandwidth is None else measure.error(self.bandwidth)
