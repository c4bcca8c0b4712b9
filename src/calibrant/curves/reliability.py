"""Reliability curves as data: the outcome to expect at each score.

============  =================================================================================
method        the curve
============  =================================================================================
"smooth"      Nadaraya-Watson with the reflected Gaussian at smECE's own bandwidth
"density"     two kernel density estimates and Bayes' rule, at Silverman's bandwidth
"binned"      mean outcome against mean prediction, bin by bin
"isotonic"    the non-decreasing function nearest to the outcomes (CORP)
============  =================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibrant import checks
from calibrant.arrays import FloatArray
from calibrant.binning import Binning
from calibrant.errors import CalibrantError
from calibrant.isotonic import isotonic_fit
from calibrant.kernels import KERNELS
from calibrant.measures.binned_error import BinCount, Strategy, read_binning
from calibrant.measures.density_error import (
    Bandwidth,
    Densities,
    DensityError,
    check_bandwidth,
)
from calibrant.measures.smooth_error import SmoothError
from calibrant.multiclass import one_problem
from calibrant.problem import Problem
from calibrant.results import Curve

__all__ = ["local_calibration_error", "reliability_curve"]

# What a page or a screen can show of a smooth curve.
_SHOWN_POINTS = 512
# A curve on the diagonal is on it at every scale; this one is still finer than it can be drawn.
_LEAST_BANDWIDTH = 1e-3


def reliability_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    method: Literal["smooth", "density", "binned", "isotonic"] = "smooth",
    bandwidth: float | None = None,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Curve:
    """Return the outcome to expect at each score, with the density of scores.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`; soft labels are taken as they are.
    method
        "smooth": Nadaraya-Watson with the reflected Gaussian at smECE's own bandwidth.
        "density": two kernel density estimates and Bayes' rule, at Silverman's bandwidth.
        "binned": mean outcome against mean prediction, bin by bin. "isotonic": the non-decreasing
        function nearest to the outcomes (CORP).
    bandwidth
        For "smooth" and "density": a number, instead of smECE or Silverman's rule.
    n_bins, strategy
        For "binned": as in :func:`calibrant.ece`.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        "confidence" or a class label; a curve is about one binary problem.

    Returns
    -------
    Curve
        x, y and density; y is nan where there are next to no scores.

    Notes
    -----
    `area`, the integral of abs(y - x) times the density, is what the eye sees. For "smooth" it is
    within sqrt(2/pi) times the bandwidth of smECE (Lemma 10); for "density" it is
    :func:`calibrant.density_ece`, for "binned" the ECE.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), section 1.1, Appendix A and Lemma 10: smooth.
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), eq. 2: density.
    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams" (2021): isotonic.

    Examples
    --------
    >>> curve = reliability_curve([0, 1, 0, 1, 1], [0.1, 0.3, 0.3, 0.8, 0.9], method="isotonic")
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.1, 0.3, 0.8, 0.9], [0.0, 0.5, 1.0, 1.0])
    """
    checks.check_choice(method, "method", ("smooth", "density", "binned", "isotonic"))
    if bandwidth is not None:
        checks.check_positive(bandwidth, "bandwidth")
        if method in ("binned", "isotonic"):
            raise CalibrantError(f"bandwidth has no say in method={method!r}: leave it out")
    makers: dict[str, Callable[[Problem], Curve]] = {
        "smooth": SmoothCurve(bandwidth),
        "density": DensityCurve(DensityError("silverman" if bandwidth is None else bandwidth)),
        "binned": BinnedCurve(read_binning(n_bins, strategy, "left")),
        "isotonic": isotonic_curve,
    }
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return makers[method](problem)


def local_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
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
    multiclass
        "confidence" or a class label; a curve is about one binary problem.

    Returns
    -------
    Curve
        x and the local calibration error y; nan where the density is nil.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), Definition 6.

    Examples
    --------
    >>> curve = local_calibration_error([0, 1], [0.5, 0.5], bandwidth=0.1)
    >>> round(float(curve.y[256]), 6)
    0.0
    """
    checks.check_choice(kernel, "kernel", KERNELS)
    check_bandwidth(bandwidth)
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    curve = DensityCurve(DensityError(bandwidth, KERNELS[kernel]))(problem)
    return replace(curve, y=curve.y - curve.x, method="local")


@dataclass(frozen=True)
class SmoothCurve:
    """The kernel regression of outcomes on scores, at a given scale or at smECE."""

    bandwidth: float | None = None

    def __call__(self, problem: Problem) -> Curve:
        """Return the curve of one problem."""
        width = self.bandwidth or max(SmoothError()(problem), _LEAST_BANDWIDTH)
        return _shown(DensityError(width, bounds=(0.0, 1.0)).densities(problem), "smooth")


@dataclass(frozen=True)
class DensityCurve:
    """The outcome given the score by Bayes' rule from two density estimates."""

    estimate: DensityError

    def __call__(self, problem: Problem) -> Curve:
        """Return the curve of one problem."""
        return _shown(self.estimate.densities(problem), "density")


@dataclass(frozen=True)
class BinnedCurve:
    """Mean outcome against mean prediction over the filled bins."""

    binning: Binning

    def __call__(self, problem: Problem) -> Curve:
        """Return the curve of one problem."""
        bins = self.binning.bins(problem)
        weight, pred, true = problem.totals(bins, "weight", "pred", "true")
        filled = weight > 0
        share = weight[filled] / problem.weight
        x, y = pred[filled] / weight[filled], true[filled] / weight[filled]
        width = np.diff(bins.edges)[filled]
        return _curve(x, y, share / width, float(np.dot(share, np.abs(y - x))), "binned")


def isotonic_curve(problem: Problem) -> Curve:
    """Return the isotonic regression of outcomes on scores, at each distinct score."""
    atoms = problem.atoms
    share, y = atoms.weight / problem.weight, isotonic_fit(atoms)
    area = float(np.dot(share, np.abs(y - atoms.score)))
    return _curve(atoms.score, y, share, area, "isotonic")


def _shown(estimate: Densities, method: str) -> Curve:
    """Thin the estimate's grid to what can be shown, and leave out what is not known."""
    step = max(1, (len(estimate.t) - 1) // _SHOWN_POINTS)
    t, weight, true = (v[::step] for v in (estimate.t, estimate.weight, estimate.true))
    y = np.divide(true, weight, out=np.full_like(t, np.nan), where=~estimate.nil[::step])
    return _curve(
        t, np.clip(y, 0.0, 1.0), np.maximum(weight, 0.0), estimate.error, method, estimate.bandwidth
    )


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
