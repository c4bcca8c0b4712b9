"""What makes each kind of reliability curve, with its band."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.binning import Binning
from calibrant.curves.bands import Band, Limits, bin_limits
from calibrant.curves.kernel_bands import kernel_limits
from calibrant.curves.monotone_bands import monotone_limits
from calibrant.measures.density_error import Densities, DensityError
from calibrant.measures.smooth_error import curve_bandwidth
from calibrant.numerics.monotone import isotonic_fit
from calibrant.problem import Problem
from calibrant.results.curves import Curve

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
