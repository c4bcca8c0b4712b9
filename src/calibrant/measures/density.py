"""How far scores are spread: their standard deviation and interquartile range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import UniformBins
from calibrant.data.classes import ClassTable, read_classes, reduce_classes
from calibrant.data.problem import Problem
from calibrant.errors import CalibrantError
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.numerics import smoothing
from calibrant.numerics.abs_integral import abs_integral
from calibrant.numerics.smoothing import (
    FEW_SCALES,
    GAUSSIAN,
    KERNELS,
    MAX_SCALES,
    Axis,
    Kernel,
    LineSpectrum,
    Span,
    finest_packed,
    packed_spectrum,
)

__all__ = ["density_ece"]

_QUARTERS = np.array([0.25, 0.75])
# From so many rows on they are not sorted: those of a few cells are enough.
_MANY = 1 << 15
_CELLS = 1 << 10


def spreads(problem: Problem) -> tuple[float, float]:
    """Return the standard deviation of the scores and their interquartile range, both weighted.

    Quantiles are linear between the middles of rows (Hazen's).
    """
    if problem.is_exact and not problem.is_weighted and problem.n >= _MANY:
        low, high = _quartiles_of_many(problem)
        return _deviation_of_many(problem), high - low
    pooled = problem.pooled
    mean = np.average(pooled.score, weights=pooled.weight)
    deviation = float(np.sqrt(np.average((pooled.score - mean) ** 2, weights=pooled.weight)))
    low, high = _weighted_quantiles(problem, _QUARTERS).tolist()
    return deviation, high - low


def _weighted_quantiles(problem: Problem, q: FloatArray) -> FloatArray:
    """Return the scores at which the weight reaches shares q, linear between rows' middles."""
    pooled = problem.pooled
    end = np.cumsum(pooled.weight)
    half_row = pooled.weight / pooled.rows / 2
    # From the middle of its first row to the middle of its last, the score stays.
    middles = np.stack((end - pooled.weight + half_row, end - half_row), axis=1)
    return np.interp(q * problem.weight, middles.reshape(-1), np.repeat(pooled.score, 2))


def _deviation_of_many(problem: Problem) -> float:
    mean = sum(float(p.sum()) for p, _, _ in problem.rows.blocks()) / problem.n
    squares = (np.square(p - mean) for p, _, _ in problem.rows.blocks())
    return math.sqrt(sum(float(square.sum()) for square in squares) / problem.n)


def _quartiles_of_many(problem: Problem) -> tuple[float, float]:
    """Return the quartiles: rows are counted in cells, and those of cells that hold one sorted."""
    place = _QUARTERS * problem.n - 0.5
    rank = np.floor(place).astype(np.intp)
    ends = np.cumsum(problem.totals(UniformBins.of(_CELLS), "rows")[0])
    # A quartile lies between the rows of two ranks, of which the second may be in another cell.
    cells = np.searchsorted(ends, np.stack((rank, rank + 1), axis=1), side="right")
    found = []
    for (first, last), lower, at in zip(cells.tolist(), rank.tolist(), place, strict=True):
        before = int(ends[first - 1]) if first else 0
        below, above = _between(problem, first, last)[lower - before : lower - before + 2]
        found.append(float(below + (at - lower) * (above - below)))
    return found[0], found[1]


def _between(problem: Problem, first: int, last: int) -> FloatArray:
    """Return the scores in these cells, in order; 1 is in the last cell."""
    low, high = first / _CELLS, (last + 1) / _CELLS if last + 1 < _CELLS else math.inf
    blocks = (p for p, _, _ in problem.rows.blocks())
    return np.sort(np.concatenate([p[(p >= low) & (p < high)] for p in blocks]))


# Kernel estimates of the density of scores and of the outcome given the score.
#
# With one kernel K_h for both, mirrored at the ends of the domain:
#
#     f(t) = (1/W) sum_i w_i K_h(t, p_i),    g(t) = (1/W) sum_i w_i y_i K_h(t, p_i)
#
# so that P(y = 1 | t) = g / f by Bayes' rule. The error is the integral of abs(g - t f).

Bandwidth = float | Literal["silverman"]

# A bandwidth for scores that do not vary at all.
_FALLBACK = 0.01
# Enough to draw the estimates, however wide the kernel.
_LEAST_POINTS = 512
# Of the height that one row of mean weight would have: below it nothing is known of the outcome.
_NIL = 1e-3


@dataclass(frozen=True, eq=False)
class Densities:
    """Densities of scores, and of scores weighted by their outcomes, on a grid.

    Attributes
    ----------
    t
        The grid, uniform over `axis`.
    weight, true
        f and g of the module's docstring.
    nil
        Where there are too few scores to speak of: less than a thousandth of one row.
    bandwidth
        The scale of the kernel.
    axis
        The interval that holds the scores: all of the domain, or what the kernel reaches of it.
    domain
        The bounds of the scores.
    """

    t: FloatArray
    weight: FloatArray
    true: FloatArray
    nil: npt.NDArray[np.bool_]
    bandwidth: float
    axis: Axis
    domain: tuple[float, float]

    @property
    def error(self) -> float:
        """The integral of abs(g - t f)."""
        residual = self.true - self.t * self.weight
        return abs_integral(residual) * self.axis.length


@dataclass(frozen=True)
class DensityError(Measure):
    """The integral of f(t) abs(P(y = 1 | t) - t), by kernel estimates."""

    bandwidth: Bandwidth = "silverman"
    kernel: Kernel = GAUSSIAN
    bounds: tuple[float, float] | None = None

    def densities(self, problem: Problem) -> Densities:
        """Return the estimates themselves."""
        low, high = self.bounds or (_lowest(problem), 1.0)
        if isinstance(self.bandwidth, str):
            width = max(silverman(problem), _finest(problem, self.kernel, high - low))
        else:
            width = self.bandwidth
        return densities(problem, width, self.kernel, low, high)

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        return self.densities(problem).error

    def error_bound(self, problem: Problem) -> float:
        """Bound the distance from the error of the rows themselves."""
        if problem.is_exact:
            return 0.0
        width = self.densities(problem).bandwidth
        shape = self.kernel.third / GAUSSIAN.third
        lacking = problem.spectrum_error(width, "weight") + problem.spectrum_error(width, "true")
        bound = float(shape * lacking)
        if not isinstance(self.bandwidth, str):
            return bound
        # Quartiles and deviation are each known to within a cell, which moves the bandwidth. Where
        # quartiles share a cell, nothing is known of their distance; where the rule asks for less
        # than cells resolve, the bandwidth is not the rows' own.
        moved = 0.9 * 2 * problem.cell_width * problem.n ** (-1 / 5)
        is_finer = silverman(problem) - moved <= _finest(problem, self.kernel, 1.0)
        # Within a cell, too, nothing is known of which weight comes first.
        if is_finer or problem.is_weighted or _spreads(problem)[1] <= 2 * problem.cell_width:
            return 1.0
        # A kernel whose bandwidth h grows by d changes by at most `widening` d / h in L1.
        return bound + 2 * self.kernel.widening * float(moved / (width - moved))


def read_density_error(
    *,
    bandwidth: Bandwidth = "silverman",
    kernel: Literal["gaussian", "triweight"] = "gaussian",
    bounds: tuple[float, float] | None = None,
) -> DensityError:
    """Turn the words of a call into an error."""
    validation.check_choice(kernel, "kernel", KERNELS)
    pair = None if bounds is None else _checked_bounds(bounds)
    return DensityError(read_bandwidth(bandwidth), KERNELS[kernel], pair)


def densities(
    problem: Problem, bandwidth: float, kernel: Kernel, low: float, high: float
) -> Densities:
    """Smooth a problem's scores and outcomes on [low, high]."""
    interval = _interval(problem, bandwidth, kernel, Span(low, high))
    axis, a = interval.axis, interval.coefficients
    scale = bandwidth / axis.length
    n_points = max(smoothing.grid_points(scale, a.shape[-1] - 1), _LEAST_POINTS)
    b = smoothing.filtered(a, scale, kernel.multiplier) / (problem.weight * axis.length)
    weight, true = smoothing.series_values(b, n_points)
    t = axis.positions(np.arange(n_points + 1) / n_points)
    nil = weight < _NIL * kernel.peak / (bandwidth * problem.n)
    return Densities(t, weight, true, nil, bandwidth, axis, (low, high))


def _interval(problem: Problem, bandwidth: float, kernel: Kernel, domain: Span) -> LineSpectrum:
    """Return the weights and outcomes of rows, ready to be smoothed by a kernel."""
    fine = bandwidth / kernel.roughness
    if not problem.is_exact:
        _check_resolved(bandwidth, _finest(problem, kernel, domain.length))
        return LineSpectrum(domain, problem.spectrum(fine, "weight", "true"))
    if domain.length > min(FEW_SCALES * bandwidth, MAX_SCALES * fine):
        u, walls = problem.rows.pooled.score, (domain.low, domain.high)
        _check_inside(u, *walls)
        least = finest_packed(u, fine, kernel.radius * kernel.roughness, walls)
        _check_resolved(bandwidth, least * kernel.roughness)
        values = [problem.rows.pooled.weight, problem.rows.pooled.true]
        return packed_spectrum(u, values, fine, kernel.radius * bandwidth, walls)
    if domain == Span(0.0, 1.0):
        return LineSpectrum(domain, problem.spectrum(fine, "weight", "true"))
    p, y, w = problem.rows.columns()
    _check_inside(p, domain.low, domain.high)
    place = np.clip(domain.fractions(p), 0.0, 1.0)
    return LineSpectrum(domain, smoothing.spectrum(place, [w, w * y], fine / domain.length))


def _check_resolved(bandwidth: float, least: float) -> None:
    if bandwidth < least:
        raise CalibrantError(
            "must be at least {minimum:.2g}", argument="bandwidth", value=bandwidth, minimum=least
        )


def _finest(problem: Problem, kernel: Kernel, length: float) -> float:
    """Return the least bandwidth that can be resolved, wherever scores are."""
    if problem.is_exact:
        return kernel.roughness * length / MAX_SCALES
    # A sketch has as many modes as cells, and a Gaussian of unit scale needs 2.8 of them.
    return max(problem.finest_scale, 3 * kernel.roughness * problem.cell_width)


def _lowest(problem: Problem) -> float:
    """Return the lower end of the domain; rounding can put the top of C classes below 1/C."""
    if not problem.is_exact or problem.rows.lowest == 0:
        return 0.0
    return min(problem.rows.lowest, float(problem.scores[0]))


def read_bandwidth(bandwidth: Bandwidth) -> Bandwidth:
    """Return a bandwidth that is a rule or a positive number."""
    if not isinstance(bandwidth, str):
        return validation.as_bandwidth(bandwidth)
    if bandwidth != "silverman":
        raise CalibrantError(
            "must be 'silverman' or a positive number", argument="bandwidth", value=bandwidth
        )
    return bandwidth


def silverman(problem: Problem) -> float:
    """Return 0.9 min(standard deviation, interquartile range / 1.34) n^(-1/5).

    n counts rows; the spread is weighted. Where the interquartile range is 0 the standard
    deviation stands alone, and 0.01 stands for both where scores do not vary at all.
    """
    deviation, spread = _spreads(problem)
    size = min(deviation, spread) if spread > 0 else deviation
    return _FALLBACK if size <= 1e-12 else 0.9 * size * problem.n ** (-1 / 5)


def _spreads(problem: Problem) -> tuple[float, float]:
    """Return the standard deviation of the scores, and their interquartile range over 1.34."""
    deviation, between_quartiles = spreads(problem)
    if problem.n > 1:
        deviation *= math.sqrt(problem.n / (problem.n - 1))
    return deviation, between_quartiles / 1.34


def _checked_bounds(bounds: Any) -> tuple[float, float]:
    low, high = validation.as_pair(bounds)
    if math.isnan(low) or math.isnan(high):
        raise CalibrantError("must be two numbers", argument="bounds", value=bounds)
    if not 0 <= low < high <= 1:
        raise CalibrantError("must increase within [0, 1]", argument="bounds", value=(low, high))
    return low, high


def _check_inside(p: FloatArray, low: float, high: float) -> None:
    if p.min() < low or p.max() > high:
        wrong = float(p.min() if p.min() < low else p.max())
        raise CalibrantError(
            "must enclose every score",
            argument="bounds",
            value=(low, high),
            found="{value} and a score of {outside:g}",
            outside=wrong,
        )


# Canonical calibration: the whole vector of class probabilities against the class that came.
#
# ECE^mul = E abs(P(y | s) - s_y) for the predicted vector s and the class y. P(. | s) is
# estimated at every row by leave-one-out regression on the other rows:
#
#     P(c | s_i) = sum_{j != i} w_j k_ij y_jc / sum_{j != i} w_j k_ij,
#     k_ij = exp(-KL(s_j, s_i) / b),   KL(s, t) = sum_c s_c log(s_c / t_c).
#
# k_ij is the Dirichlet kernel of row j, the density with parameters s_j / b + 1, taken at s_i and
# divided by its greatest value, which it has at s_j: every row counts 1 where it lies, and fades as
# the density does. (The densities themselves, as in Popordanoska et al., count rows near a vertex of
# the simplex for much more than others; on simulated networks that estimates less well.)
#
# A probability of 0 enters log t_c as the smallest positive number, about 5e-324: a softmax gives 0
# by underflow. Nothing else is changed; rows are neither clipped nor normalised.
#
# Limits: O(n^2 C) time; memory stays under 100 MB for 20 000 rows of 10 classes, which take some
# twenty seconds on two cores. Sampling noise biases the estimate upwards where predictions are
# calibrated, the more so the more classes share the rows; smoothing makes it coarse where
# miscalibration changes quickly.

# Bandwidths tried where none is given: each is half of the one before, so that its kernels are
# the squares of the others.
_WIDEST, _N_BANDWIDTHS = 1.0, 11
# How many kernel values are held at a time.
_CHUNK = 1 << 22
_SMALLEST = np.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class CanonicalError:
    """The canonical calibration error by leave-one-out Dirichlet kernel regression.

    Attributes
    ----------
    bandwidth
        The bandwidth b of the kernels, or None for the one of 1, 1/2, ..., 1/1024 whose
        regression has the least leave-one-out squared error (Brier score).

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), ECE^mul.
    Aitchison and Lauder, "Kernel density estimation for compositional data" (1985).
    Popordanoska, Sayer and Blaschko, "A consistent and differentiable Lp canonical calibration
    error estimator" (2022).
    """

    bandwidth: float | None = None

    def __call__(self, table: ClassTable) -> float:
        """Return the error of a table; soft labels y count sum_c y_c abs(P(c | s) - s_c)."""
        if len(table.prob) < 2:
            raise CalibrantError(
                "canonical calibration needs at least two rows, as each is judged by the others",
                value=len(table.prob),
            )
        widest = _WIDEST if self.bandwidth is None else self.bandwidth
        squared, absolute = _losses(table, widest, _N_BANDWIDTHS if self.bandwidth is None else 1)
        return float(absolute[np.argmin(squared)])


def _losses(table: ClassTable, widest: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean squared and absolute errors at bandwidths widest, widest / 2, ..."""
    from scipy.special import entr

    prob, outcome, w = (np.concatenate(parts) for parts in zip(*table.blocks(), strict=True))
    log_prob = np.log(np.maximum(prob, _SMALLEST)) / widest
    entropy = entr(prob).sum(axis=1) / widest
    # The last column adds up the weights.
    targets = w[:, None] * np.column_stack((outcome, np.ones(len(w))))
    squared, absolute = np.zeros((2, count))
    step = max(1, _CHUNK // len(prob))
    for start in range(0, len(prob), step):
        rows = slice(start, start + step)
        kernel = _kernels(log_prob[rows] @ prob.T, entropy, start)
        for k in range(count):
            if k > 0:
                np.square(kernel, out=kernel)
            sums = kernel @ targets
            estimate = sums[:, :-1] / sums[:, -1:]
            squared[k] += w[rows] @ ((estimate - outcome[rows]) ** 2).sum(axis=1)
            gap = np.abs(estimate - prob[rows])
            absolute[k] += w[rows] @ (outcome[rows] * gap).sum(axis=1)
    return squared / w.sum(), absolute / w.sum()


def _kernels(cross: FloatArray, entropy: FloatArray, start: int) -> FloatArray:
    """Return kernels exp(cross + entropy), those of each row scaled to a largest value of 1.

    The scale cancels in the estimate; without it a row far from all others would have none. A
    row's own kernel is left out: 0. Everything happens in the place of `cross`.
    """
    cross += entropy
    own = np.arange(len(cross))
    cross[own, start + own] = -np.inf
    cross -= cross.max(axis=1, keepdims=True)
    return np.asarray(np.exp(cross, out=cross))


# Density-based calibration error: kernels instead of bins.


def density_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    bandwidth: Bandwidth = "silverman",
    kernel: Literal["gaussian", "triweight"] = "gaussian",
    bounds: tuple[float, float] | None = None,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the density-based expected calibration error, ECE_d; 0 is perfect.

    ECE_d = integral of f(s) abs(P(y = 1 | s) - s) ds, with f and P(y = 1 | s) from two kernel
    density estimates of one bandwidth, mirrored at the bounds.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`; soft labels are taken as they are.
    bandwidth
        "silverman", 0.9 min(sd, IQR / 1.34) n^(-1/5) on all scores, or a number up to 1e6.
    kernel
        "gaussian", or "triweight", which the authors' code uses: zero beyond one bandwidth.
    bounds
        The domain of the scores, where they are mirrored: (1/C, 1) for the confidence of C
        classes and (0, 1) otherwise, unless given.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        As in :func:`calibrant.ece`, and "canonical": the full multiclass error
        mean abs(P(y_i | s_i) - s_i[y_i]) by a Dirichlet kernel on the simplex, leave-one-out; its
        bandwidth, unless a number, is the one that predicts left-out rows best. O(n^2 C).

    Returns
    -------
    float
        The error.

    Notes
    -----
    With the Gaussian kernel it is the visual area of the smooth reliability diagram (Błasiok and
    Nakkiran 2023, Appendix A) at this bandwidth. O(n log n) for Silverman's rule, which needs
    quartiles, and O(n + 1/bandwidth) for a number, or O(n log n) for a small one. Where the IQR is
    0, Silverman's rule takes the standard deviation alone; scores that do not vary at all get a
    bandwidth of 0.01, and it gives none below 8e-6, or 1e-3 for the triweight. A number may be
    smaller as long as there are no more than 7000 distinct scores, or 300 for the triweight.

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
        return _canonical(y_true, y_prob, bandwidth, sample_weight, labels)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error)


def _canonical(
    y_true: Any, y_prob: Any, bandwidth: Bandwidth, sample_weight: Any, labels: Any
) -> float:
    # Silverman's rule knows nothing of a simplex; there, leave-one-out prediction chooses.
    error = CanonicalError(None if isinstance(bandwidth, str) else bandwidth)
    return error(read_classes(y_true, y_prob, sample_weight, labels))


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
