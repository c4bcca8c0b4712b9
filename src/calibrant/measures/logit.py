"""Logit-smoothed ECE: the calibration error of predictions with noise added to their logits.

    LS-ECE = (1/W) integral over u of abs(sum_i w_i k_s(u - h_i) (y_i - rho(u))) du

with h_i the logit of p_i, rho its inverse and k_s the density of the noise. The paper estimates it
by sampling; here it is computed: for Gaussian noise on a grid by two convolutions, for uniform
noise exactly, between the points where rows enter and leave the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import UniformBins
from calibrant.data.classes import RowOptions, reduce_classes
from calibrant.data.labels import read_outcomes
from calibrant.data.problem import Blocks, Index, Line, Problem, Quantity, line_of_rows, logit_range
from calibrant.data.rows import Sample
from calibrant.data.sketch import Sketch
from calibrant.data.validation import as_array, read_weights
from calibrant.errors import CalibrantError
from calibrant.measures.norms import L1Norm, LinearImage, cells_for_smoothing, smoothed
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.numerics import smoothing
from calibrant.numerics.abs_integral import abs_integral
from calibrant.numerics.probability import logit

NoiseName = Literal["gaussian", "uniform"]


class LogitOptions(RowOptions, total=False):
    """Options of :func:`logit_smoothed_ece`."""

    sigma: float
    noise: NoiseName


@dataclass(frozen=True)
class LogitSmoothedError(Measure):
    """The calibration error after noise of scale sigma on the logits."""

    sigma: float
    noise: NoiseName = "gaussian"

    def __call__(self, problem: Problem) -> float:
        if self.noise == "gaussian":
            return gaussian_noise(problem.logit_line(self.sigma), problem.weight, self.sigma)
        p, y, w = problem.rows.columns()
        return self.of_logits(logit(p), y, w / problem.weight)

    def of_logits(self, u: FloatArray, y: FloatArray, w: FloatArray) -> float:
        """Return the error at logits u, which may be infinite, for weights that sum to 1."""
        line = _line(u, {"weight": w, "true": w * y}, self.sigma)
        if self.noise == "gaussian":
            return gaussian_noise(line, 1.0, self.sigma)
        inside = np.isfinite(u)
        rows = (u[inside], y[inside], w[inside])
        return _at_infinity(line) + (uniform_noise(*rows, self.sigma) if inside.any() else 0.0)

    def sketch_error(self, problem: Problem, value: float) -> float:
        line = problem.logit_line(self.sigma)
        return line.error(self.sigma, "true") + line.error(self.sigma, "weight")

    @property
    def no_interval(self) -> str:
        return "with uniform noise: give noise='gaussian'" if self.noise == "uniform" else ""

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the integrand, which for Gaussian noise is linear in y - p but for an offset.

        y - rho(u) = (y - p) + (p - rho(u)), smoothed. Rows at p = 0 and p = 1 stay where they are,
        in two more cells, which are coordinates of the image.
        """
        from scipy.special import expit

        low, high = logit_range(problem) or (0.0, 0.0)
        # Little is left of the Gaussian 5 scales away.
        low, high = low - 5 * self.sigma, high + 5 * self.sigma
        length = high - low
        size = cells_for_smoothing(length / self.sigma)
        bins = UniformBins.of(size)

        def cell_of(p: FloatArray) -> Index:
            inside = bins.index(np.clip((logit(p) - low) / length, 0.0, 1.0))
            return np.where(p <= 0, size, np.where(p >= 1, size + 1, inside))

        def smooth(r: FloatArray) -> FloatArray:
            inside = smoothed(r[..., :size], self.sigma / length)
            return np.concatenate((inside, r[..., size:]), axis=-1)

        centres = low + length * (np.arange(size) + 0.5) / size
        rho = np.concatenate((expit(centres), [0.0, 1.0]))

        def offset(w: FloatArray) -> FloatArray:
            # With scores at the centres of cells: the distance from the centre is no error.
            return np.asarray((smooth(w * rho) - rho * smooth(w)) / w.sum(axis=-1, keepdims=True))

        def of_totals(r: FloatArray, w: FloatArray) -> FloatArray:
            return np.asarray(smooth(r) / w.sum(axis=-1, keepdims=True))

        return LinearImage(L1Norm(), cell_of, size + 2, of_totals, offset)


def gaussian_noise(line: Line, weight: float, sigma: float) -> float:
    """Return the integral for noise N(0, sigma^2) on rows of this total weight."""
    from scipy.special import expit

    why = " for logits this close together"
    validation.check_minimum(sigma, "sigma", line.finest(sigma), why)
    interval = line.interval(sigma, "true", "weight")
    # The sigmoid is smooth at scale 1, whatever the noise.
    step = min(sigma, 1.0)
    length = interval.axis.length
    if length > smoothing.MAX_SCALES * step:
        coarsest = max(
            sigma - (length - smoothing.MAX_SCALES) / (2 * smoothing.GAUSSIAN_RADIUS), 1.0
        )
        rule = "must be at most {maximum:.3g} for logits this far apart"
        raise CalibrantError(rule, argument="sigma", value=sigma, maximum=coarsest)
    a = interval.coefficients
    n_points = smoothing.integration_points(step / length, a.shape[-1] - 1)
    true, mass = smoothing.series_values(smoothing.damped(a, sigma / length), n_points)
    rho = expit(interval.axis.positions(np.arange(n_points + 1) / n_points))
    return (_at_infinity(line) + abs_integral(true - rho * mass)) / weight


def _line(u: FloatArray, values: Mapping[Quantity, FloatArray], sigma: float) -> Line:
    """Return the sums over rows at logits u, which may be infinite."""
    inside = np.isfinite(u)
    finite = u[inside]

    def blocks(*quantities: Quantity) -> Blocks:
        yield finite, [values[quantity][inside] for quantity in quantities]

    def in_order(*quantities: Quantity) -> tuple[FloatArray, list[FloatArray]]:
        order = np.argsort(finite, kind="stable")
        return finite[order], [values[quantity][inside][order] for quantity in quantities]

    def ends(quantity: Quantity) -> tuple[float, float]:
        value = values[quantity]
        return float(value[u == -np.inf].sum()), float(value[u == np.inf].sum())

    span = (float(finite.min()), float(finite.max())) if len(finite) else None
    return line_of_rows(blocks, in_order, ends, span, len(u), sigma)


def _at_infinity(line: Line) -> float:
    """Return the error of rows at p = 0 and p = 1: those of the other outcome."""
    true_below, true_above = line.ends("true")
    return true_below + line.ends("weight")[1] - true_above


def uniform_noise(u: FloatArray, y: FloatArray, w: FloatArray, sigma: float) -> float:
    """Return the integral for noise uniform on [-sigma/2, sigma/2], exactly.

    Between two points where rows enter or leave the window, its weight B and its sum of outcomes
    A are constant, and A u - B log(1 + e^u) is the antiderivative on either side of its one zero.
    """
    minimum = 1e-7 * max(1.0, float(np.abs(u).max()))
    why = f" for logits from {u.min():.4g} to {u.max():.4g}"
    validation.check_minimum(sigma, "sigma", minimum, why)
    ends = np.concatenate((u - sigma / 2, u + sigma / 2))
    order = np.argsort(ends, kind="stable")
    ends = ends[order]
    weight, true = (np.cumsum(np.concatenate((v, -v))[order])[:-1] for v in (w, w * y))
    low, high = ends[:-1], ends[1:]
    # Where the window is empty, rounding must not put the zero anywhere else.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        zero = np.clip(np.nan_to_num(logit(np.clip(true / weight, 0.0, 1.0))), low, high)

    def antiderivative(v: FloatArray) -> FloatArray:
        return np.asarray(true * v - weight * np.logaddexp(0.0, v))

    middle = antiderivative(zero)
    area = np.abs(middle - antiderivative(low)) + np.abs(antiderivative(high) - middle)
    return float(area.sum() / sigma)


@overload
def logit_smoothed_ece(y_true: Sketch, **options: Unpack[LogitOptions]) -> float: ...
@overload
def logit_smoothed_ece(
    y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[LogitOptions]
) -> float: ...
@overload
def logit_smoothed_ece(
    y_true: ArrayLike, *, logits: ArrayLike, **options: Unpack[LogitOptions]
) -> float: ...
def logit_smoothed_ece(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    sigma: float = 1 / 15,
    noise: NoiseName = "gaussian",
    logits: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the logit-smoothed calibration error, LS-ECE; 0 is perfect.

    The calibration error E abs(E[y | q] - q) of q, the prediction with noise of scale sigma added
    to its logit: continuous in the predictions, and for small sigma near the error itself.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    sigma : float
        Scale of the noise on the logits, up to 1e6; 1/15 is the counterpart of 15 bins.
    noise : {"gaussian", "uniform"}
        N(0, sigma^2), or uniform on [-sigma/2, sigma/2].
    logits : array_like of shape (n,), optional
        Logits instead of `y_prob`; they may be infinite.
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
        The error, deterministic: within 1e-9 of the integral for Gaussian noise and exact up to
        rounding for uniform noise.

    See Also
    --------
    smooth_ece : Smoothing on the probability scale, with a scale of its own.

    Notes
    -----
    p = 0 and p = 1 have infinite logits that noise cannot move: they contribute sum w y / W and
    sum w (1 - y) / W. O(n + range of logits / sigma) for Gaussian noise, O(n log n) where that is
    less and for uniform noise. Gaussian noise may have any small sigma on up to 7000 distinct
    logits; on more the minimum is 8e-6 times their range. The maximum is about 7000.

    References
    ----------
    Chidambaram, Lee, McSwiggen and Rezchikov, "How Flawed Is ECE?" (2024), eq. 4.1. Their
    released uniform kernel has half-width sigma, twice that of its own sampler.

    Examples
    --------
    >>> round(logit_smoothed_ece([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75]), 6)
    0.249792
    >>> logit_smoothed_ece([1, 0], [1.0, 1.0])
    0.5
    """
    error = read_logit_smoothed_error(sigma=sigma, noise=noise)
    if logits is None:
        reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
        return reduction.measure(error)
    if y_prob is not None:
        raise CalibrantError("must be left out where {y_prob} is given", argument="logits")
    if multiclass is not None or labels is not None:
        raise CalibrantError(
            "must be those of one binary problem",
            argument="logits",
            hint="{multiclass} and {labels} need {y_prob}",
        )
    u = validation.as_numbers(as_array(logits, "logits"), "logits")
    y = as_array(y_true, "y_true")
    validation.check_not_empty(y, "y_true")
    validation.check_logits(u)
    validation.check_same_length(y, "y_true", u, "logits")
    y, weight = read_outcomes(y, pos_label), read_weights(sample_weight, len(u))
    sample = Sample(y, u).weighted(weight)
    u, y, w = sample.columns()
    return error.of_logits(u, y, w / sample.weight)


def read_logit_smoothed_error(
    *, sigma: float = 1 / 15, noise: NoiseName = "gaussian"
) -> LogitSmoothedError:
    """Parse the options of a call."""
    validation.check_choice(noise, "noise", get_args(NoiseName))
    return LogitSmoothedError(validation.as_bandwidth(sigma, "sigma"), noise)


MEASURES = (
    MeasureInfo(
        logit_smoothed_ece,
        label="LS-ECE",
        title="Logit-smoothed error (LS-ECE)",
        meaning="Mean distance after smoothing on the logit scale, which resolves scores near 0 "
        "and 1.",
        definition="∫ |Σ w k(u − logit p) (y − ρ(u))| du / W, with ρ the inverse logit and k the "
        "Gaussian of scale 1/15.",
        make=read_logit_smoothed_error,
        sketch="logit",
        in_assess=True,
        order=5,
    ),
)
