"""Density-based calibration error: kernels instead of bins.

With one kernel K_h for both, reflected at the ends of the domain:

    f(t) = (1/W) sum_i w_i K_h(t, p_i),    g(t) = (1/W) sum_i w_i y_i K_h(t, p_i)

so that P(y = 1 | t) = g / f by Bayes' rule, and the error is the integral of abs(g - t f).

Where residuals are smoothed instead of outcomes,

    g(t) = t f(t) + (1/W) sum_i w_i (y_i - p_i) K_h(t, p_i),

which for calibrated predictions is unbiased at every h: there g / f is t on average, while smoothed
outcomes follow smoothed predictions. The error is then smECE_h. The kernel may act along another
axis than that of the scores.

The canonical error is that of the whole vector of class probabilities: ECE^mul =
E abs(P(y | s) - s_y) for the predicted vector s and the class y, with P(. | s) estimated at every
row by leave-one-out regression on the other rows:

    P(c | s_i) = sum_{j != i} w_j k_ij y_jc / sum_{j != i} w_j k_ij,
    k_ij = exp(-KL(s_j, s_i) / b),   KL(s, t) = sum_c s_c log(s_c / t_c).

k_ij is the Dirichlet kernel of row j, the density with parameters s_j / b + 1, at s_i, divided by
its maximum, which is at s_j. (The densities themselves, as in Popordanoska et al., give much more
weight to rows near a vertex of the simplex; on simulated networks that estimates less well.) A
probability of 0 enters log t_c as the smallest positive number, about 5e-324: a softmax gives 0 by
underflow. Rows are neither clipped nor normalised. O(n^2 C) time; memory stays under 100 MB for
20 000 rows of 10 classes, which take some twenty seconds on two cores. The estimate is biased
upwards by sampling noise, more so with more classes, and smooths over quick changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import UniformBins
from calibrant.data.classes import ClassTable, read_classes, reduce_classes, rows_or_sketch
from calibrant.data.problem import Problem, Quantity
from calibrant.data.rows import row_values
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.numerics import smoothing
from calibrant.numerics.abs_integral import abs_integral
from calibrant.numerics.smoothing import GAUSSIAN, KERNELS, Axis, Kernel, LineSpectrum, Span

Bandwidth = float | Literal["silverman"]

# Silverman's bandwidth for scores that do not vary at all.
_FALLBACK = 0.01
_QUARTILES = np.array([0.25, 0.75])
# From this many rows on they are not sorted: the rows of the cells that hold a quartile are enough.
_MANY, _CELLS = 1 << 15, 1 << 10
# Enough points to draw the estimates, however wide the kernel.
_MIN_POINTS = 512
# Below this fraction of the height of one row of mean weight, the outcome is unknown.
_NEGLIGIBLE = 1e-3
# Kernel values held in memory at a time.
_CHUNK = 1 << 22
# Seconds that the canonical error may take, and those of one pair of rows: of its kernel, of each
# bandwidth and of each class.
_MAX_SECONDS, _KERNEL, _BANDWIDTH, _CLASS = 5.0, 5e-9, 3.5e-9, 6e-10
_SMALLEST = np.nextafter(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Densities:
    """Densities of scores, and of scores weighted by their outcomes, on a grid."""

    t: FloatArray  # the grid, uniform over `axis`
    weight: FloatArray  # f of the module's docstring
    true: FloatArray  # and g
    nil: npt.NDArray[np.bool_]  # where there is less than a thousandth of one row
    bandwidth: float
    axis: Axis  # the interval that holds the scores: of the domain, what the kernel reaches
    domain: tuple[float, float]  # the bounds of the scores

    @property
    def error(self) -> float:
        """The integral of abs(g - t f)."""
        residual = self.true - self.t * self.weight
        return abs_integral(residual) * self.axis.length


@dataclass(frozen=True)
class DensityError(Measure):
    """The integral of f(t) abs(P(y = 1 | t) - t), by kernel estimates.

    These are of outcomes, or of residuals with the diagonal added back.
    """

    bandwidth: Bandwidth = "silverman"
    kernel: Kernel = GAUSSIAN
    bounds: tuple[float, float] | None = None
    smooths: Literal["true", "residual"] = "true"
    axis: Axis | None = None

    def densities(self, problem: Problem) -> Densities:
        """Return the kernel estimates themselves."""
        lowest, kernel = 0.0, self.kernel
        if problem.is_exact and problem.rows.lowest > 0:
            # Rounding can put a confidence below 1/C.
            lowest = min(problem.rows.lowest, float(problem.scores[0]))
        domain = Span(*(self.bounds or (lowest, 1.0)))
        if isinstance(self.bandwidth, str):
            width = max(silverman(problem), _finest(problem, kernel, domain.length))
        else:
            width = self.bandwidth
        if self.axis is None:
            interval = _interval(problem, width, kernel, domain, self.smooths)
        else:
            interval = _along(problem, width, self.axis, self.smooths)
        axis, a = interval.axis, interval.coefficients
        scale = width / axis.length
        n_points = max(smoothing.grid_points(scale, a.shape[-1] - 1), _MIN_POINTS)
        b = smoothing.filtered(a, scale, kernel.multiplier) / (problem.weight * axis.length)
        weight, true = smoothing.series_values(b, n_points)
        t = axis.positions(np.arange(n_points + 1) / n_points)
        if self.smooths == "residual":
            true += t * weight
        nil = weight < _NEGLIGIBLE * kernel.peak / (width * problem.n)
        return Densities(t, weight, true, nil, width, axis, (domain.low, domain.high))

    def __call__(self, problem: Problem) -> float:
        return self.densities(problem).error

    def sketch_error(self, problem: Problem, value: float) -> float:
        width = self.densities(problem).bandwidth
        error = problem.spectrum_error(width, "weight") + problem.spectrum_error(width, "true")
        bound = float(self.kernel.third / GAUSSIAN.third * error)
        if not isinstance(self.bandwidth, str):
            return bound
        # Quartiles and standard deviation are each known to within a cell, and so is the bandwidth.
        # There is no bound where the quartiles may be in one cell, where the rule gives less than
        # cells resolve, or where rows have weights, whose order within a cell is unknown.
        shift = 0.9 * 2 * problem.cell_width * problem.n ** (-1 / 5)
        is_finer = silverman(problem) - shift <= _finest(problem, self.kernel, 1.0)
        is_narrow = spreads(problem)[1] / 1.34 <= 2 * problem.cell_width
        if is_finer or is_narrow or problem.is_weighted:
            return 1.0
        # A kernel whose bandwidth h grows by d changes by at most `widening` d / h in L1.
        return bound + 2 * self.kernel.widening * float(shift / (width - shift))


def _interval(
    problem: Problem, bandwidth: float, kernel: Kernel, domain: Span, smoothed: Quantity
) -> LineSpectrum:
    """Return the spectrum of weights and of what is smoothed, fine enough for a kernel."""
    fine = bandwidth / kernel.roughness
    if not problem.is_exact:
        validation.check_minimum(bandwidth, "bandwidth", _finest(problem, kernel, domain.length))
        return LineSpectrum(domain, problem.spectrum(fine, "weight", smoothed))
    if domain.length > min(smoothing.FEW_SCALES * bandwidth, smoothing.MAX_SCALES * fine):
        pooled, bounds = problem.rows.pooled, (domain.low, domain.high)
        _check_inside(pooled.score, *bounds)
        finest = smoothing.finest_packed(
            pooled.score, fine, kernel.radius * kernel.roughness, bounds
        )
        validation.check_minimum(bandwidth, "bandwidth", finest * kernel.roughness)
        values, reach = [pooled.weight, getattr(pooled, smoothed)], kernel.radius * bandwidth
        return smoothing.packed_spectrum(pooled.score, values, fine, reach, bounds)
    if domain == Span(0.0, 1.0):
        return LineSpectrum(domain, problem.spectrum(fine, "weight", smoothed))
    _check_inside(problem.scores, domain.low, domain.high)
    return _along(problem, fine, domain, smoothed)


def _along(problem: Problem, bandwidth: float, axis: Axis, smoothed: Quantity) -> LineSpectrum:
    """Return the spectrum of weights and of what is smoothed along an axis."""
    blocks: Iterable[tuple[FloatArray, list[FloatArray]]]
    if problem.is_exact:
        blocks = (
            (axis.fractions(p), row_values(("weight", smoothed), p, y, w))
            for p, y, w in problem.rows.blocks()
        )
    else:
        pooled = problem.pooled
        values = [pooled.weight, getattr(pooled, smoothed)]
        blocks = [(axis.fractions(pooled.score), values)]
    return LineSpectrum(axis, smoothing.spectrum(blocks, 2, problem.n, bandwidth / axis.length))


def _finest(problem: Problem, kernel: Kernel, length: float) -> float:
    """Return the smallest bandwidth that can be resolved, wherever scores are."""
    if problem.is_exact:
        return kernel.roughness * length / smoothing.MAX_SCALES
    # A sketch has as many modes as cells, and a Gaussian of unit scale needs 2.8 of them.
    return max(problem.finest_scale, 3 * kernel.roughness * problem.cell_width)


def silverman(problem: Problem) -> float:
    """Return 0.9 min(standard deviation, interquartile range / 1.34) n^(-1/5).

    n counts rows; both spreads are weighted. Where the interquartile range is 0 the standard
    deviation is used alone; where scores do not vary at all the bandwidth is 0.01.
    """
    sd, iqr = spreads(problem)
    if problem.n > 1:
        sd *= math.sqrt(problem.n / (problem.n - 1))
    size = min(sd, iqr / 1.34) if iqr > 0 else sd
    return _FALLBACK if size <= 1e-12 else 0.9 * size * problem.n ** (-1 / 5)


def spreads(problem: Problem) -> tuple[float, float]:
    """Return the standard deviation of the scores and their interquartile range, both weighted.

    Quantiles are Hazen's: linear between the middles of rows.
    """
    if problem.is_exact and not problem.is_weighted and problem.n >= _MANY:
        low, high = _quartiles_of_many(problem)
        mean = sum(float(p.sum()) for p, _, _ in problem.rows.blocks()) / problem.n
        squares = sum(float(np.square(p - mean).sum()) for p, _, _ in problem.rows.blocks())
        return math.sqrt(squares / problem.n), high - low
    pooled = problem.pooled
    mean = np.average(pooled.score, weights=pooled.weight)
    deviation = float(np.sqrt(np.average((pooled.score - mean) ** 2, weights=pooled.weight)))
    end = np.cumsum(pooled.weight)
    half_row = pooled.weight / pooled.rows / 2
    # Between the middles of its first and last rows, a score is constant.
    middles = np.stack((end - pooled.weight + half_row, end - half_row), axis=1).reshape(-1)
    low, high = np.interp(_QUARTILES * problem.weight, middles, np.repeat(pooled.score, 2)).tolist()
    return deviation, high - low


def _quartiles_of_many(problem: Problem) -> tuple[float, float]:
    """Return the quartiles by counting rows in cells and sorting those of the cells needed."""
    place = _QUARTILES * problem.n - 0.5
    rank = np.floor(place).astype(np.intp)
    ends = np.cumsum(problem.totals(UniformBins.of(_CELLS), "rows")[0])
    # A quartile lies between the rows of two ranks, of which the second may be in another cell.
    cells = np.searchsorted(ends, np.stack((rank, rank + 1), axis=1), side="right")
    found = []
    for (first, last), lower, at in zip(cells.tolist(), rank.tolist(), place, strict=True):
        # A score of 1 is in the last cell.
        low, high = first / _CELLS, (last + 1) / _CELLS if last + 1 < _CELLS else math.inf
        blocks = (p for p, _, _ in problem.rows.blocks())
        inside = np.sort(np.concatenate([p[(p >= low) & (p < high)] for p in blocks]))
        k = lower - (int(ends[first - 1]) if first else 0)
        below, above = inside[k : k + 2]
        found.append(float(below + (at - lower) * (above - below)))
    return found[0], found[1]


def read_density_error(
    *,
    bandwidth: Bandwidth = "silverman",
    kernel: Literal["gaussian", "triweight"] = "gaussian",
    bounds: tuple[float, float] | None = None,
) -> DensityError:
    """Parse the options of a call."""
    validation.check_choice(kernel, "kernel", KERNELS)
    if bounds is not None:
        low, high = bounds = validation.as_pair(bounds)
        if math.isnan(low) or math.isnan(high):
            raise CalibrantError("must be two numbers", argument="bounds", value=bounds)
        if not 0 <= low < high <= 1:
            raise CalibrantError("must increase within [0, 1]", argument="bounds", value=bounds)
    return DensityError(read_bandwidth(bandwidth), KERNELS[kernel], bounds)


def read_bandwidth(bandwidth: Bandwidth) -> Bandwidth:
    """Return a bandwidth that is a rule or a positive number."""
    if not isinstance(bandwidth, str):
        return validation.as_bandwidth(bandwidth)
    if bandwidth != "silverman":
        raise CalibrantError(
            "must be 'silverman' or a positive number", argument="bandwidth", value=bandwidth
        )
    return bandwidth


def _check_inside(p: FloatArray, low: float, high: float) -> None:
    if p.min() < low or p.max() > high:
        raise CalibrantError(
            "must enclose every score",
            argument="bounds",
            value=(low, high),
            found="{value} and a score of {outside:g}",
            outside=p.min() if p.min() < low else p.max(),
        )


def canonical_error(table: ClassTable, bandwidth: float | None = None) -> float:
    """Return the canonical calibration error by leave-one-out Dirichlet kernel regression.

    For soft labels y it is the mean of sum_c y_c abs(P(c | s) - s_c). Without a bandwidth it is
    that at the one of 1, 1/2, ..., 1/1024 with the smallest leave-one-out Brier score.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), ECE^mul.
    Aitchison and Lauder, "Kernel density estimation for compositional data" (1985).
    Popordanoska, Sayer and Blaschko, "A consistent and differentiable Lp canonical calibration
    error estimator" (2022).
    """
    from scipy.special import entr

    if len(table.prob) < 2:
        raise CalibrantError(
            "canonical calibration needs at least two rows: each is predicted from the others",
            value=len(table.prob),
        )
    # Each bandwidth is half of the one before, so that its kernels are the squares of the others.
    widest, count = (1.0, 11) if bandwidth is None else (bandwidth, 1)

    seconds = _KERNEL + _BANDWIDTH * count + _CLASS * table.prob.shape[1]
    maximum = int((_MAX_SECONDS / seconds) ** 0.5)
    if len(table.prob) > maximum:
        raise CalibrantError(
            "canonical calibration compares all pairs of rows, at most {maximum} here",
            value=len(table.prob),
            hint="give a random sample of the rows",
            maximum=maximum,
        )
    prob, outcome, w = (np.concatenate(parts) for parts in zip(*table.blocks(), strict=True))
    log_prob = np.log(np.maximum(prob, _SMALLEST)) / widest
    entropy = entr(prob).sum(axis=1) / widest
    # The last column adds up the weights.
    targets = w[:, None] * np.column_stack((outcome, np.ones(len(w))))
    squared, absolute = np.zeros((2, count))
    step = max(1, _CHUNK // len(prob))
    for start in range(0, len(prob), step):
        rows = slice(start, start + step)
        kernel = log_prob[rows] @ prob.T + entropy
        own = np.arange(len(kernel))
        kernel[own, start + own] = -np.inf
        # A scale cancels in the estimate; without it, kernels far from others could underflow.
        kernel -= kernel.max(axis=1, keepdims=True)
        np.exp(kernel, out=kernel)
        for k in range(count):
            if k > 0:
                np.square(kernel, out=kernel)
            sums = kernel @ targets
            estimate = sums[:, :-1] / sums[:, -1:]
            squared[k] += w[rows] @ ((estimate - outcome[rows]) ** 2).sum(axis=1)
            gap = np.abs(estimate - prob[rows])
            absolute[k] += w[rows] @ (outcome[rows] * gap).sum(axis=1)
    return float(absolute[np.argmin(squared)] / w.sum())


@rows_or_sketch
def density_ece(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    bandwidth: Bandwidth = "silverman",
    kernel: Literal["gaussian", "triweight"] = "gaussian",
    bounds: tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the density-based expected calibration error, ECE_d; 0 is perfect.

    ECE_d = integral of f(s) abs(P(y = 1 | s) - s) ds, with f and P(y = 1 | s) from two kernel
    density estimates of one bandwidth, reflected at the bounds.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    bandwidth : float or "silverman"
        Up to 1e6, or Silverman's rule 0.9 min(sd, IQR / 1.34) n^(-1/5) on all scores.
    kernel : {"gaussian", "triweight"}
        The triweight, which the authors' code uses, is zero beyond one bandwidth.
    bounds : tuple of two floats, optional
        Domain of the scores, at whose ends kernels are reflected. By default (1/C, 1) for the
        confidence of C classes and (0, 1) otherwise.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.

        Also "canonical": the error of the whole vector of class probabilities,
        mean abs(P(y_i | s_i) - s_i[y_i]), by a Dirichlet kernel on the simplex, leave-one-out. Its
        bandwidth, unless a number, is the one that predicts left-out rows best. O(n^2 C).
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error.

    See Also
    --------
    smooth_ece : Residuals smoothed at a scale of their own.
    reliability_curve : The estimate of P(y = 1 | s), with method "density".

    Notes
    -----
    With the Gaussian kernel it is the visual area of the smooth reliability diagram (Błasiok and
    Nakkiran 2023, Appendix A) at this bandwidth. O(n log n) for Silverman's rule, which needs
    quartiles, and O(n + 1/bandwidth) for a number, or O(n log n) for a small one. Where the IQR is
    0, Silverman's rule takes the standard deviation alone; scores that do not vary at all get a
    bandwidth of 0.01, and it gives none below 8e-6, or 1e-3 for the triweight. A number may be
    smaller as long as there are no more than 7000 distinct scores, or 300 for the triweight.
    "canonical" is O(n^2 C) and refused where it would take more than about 5 s, from 10^4 rows on.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), section 4.5.

    Examples
    --------
    >>> round(density_ece([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], bandwidth=0.01), 4)
    0.25
    """
    error = read_density_error(bandwidth=bandwidth, kernel=kernel, bounds=bounds)
    if isinstance(multiclass, str) and multiclass == "canonical":
        if kernel != "gaussian" or bounds is not None or pos_label is not None:
            raise CalibrantError(
                "'canonical' has its own kernel and domain",
                argument="multiclass",
                hint="leave out {kernel}, {bounds} and {pos_label}",
            )
        # Silverman's rule does not apply on the simplex: leave-one-out prediction chooses there.
        width = None if isinstance(bandwidth, str) else bandwidth
        return canonical_error(read_classes(y_true, y_prob, sample_weight, labels), width)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error)


MEASURES = (
    MeasureInfo(
        density_ece,
        label="density ECE",
        title="Density-based calibration error",
        meaning="Mean distance between outcomes and predictions by kernel density estimates.",
        definition="∫ |Σ w (y − t) K(t, p)| dt / W, with K a kernel of Silverman's bandwidth, "
        "reflected at 0 and 1.",
        make=read_density_error,
        sketch="probability",
    ),
)
