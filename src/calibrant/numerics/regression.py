"""Regression: isotonic, logistic and local.

Isotonic regression in squared and in absolute error.

The L2 fit is scipy's. No library has the L1 fit in O(n log n): it is done here with one heap, in a
function that numba compiles where it is installed and the sequence is long; the result is the same
to the last bit.

Logistic regression by maximum weighted likelihood.

The model is logit P(y = 1) = offset + intercept + x @ slopes. It is fitted by Newton's method with
step halving to columns of mean 0 and variance 1, where coefficients hardly depend on each other;
each iteration takes one pass over the rows.

Local regression of residuals on scores, as a matrix: loess as R has it, and kernel means.

A smoother is linear in the outcomes: the curve at points t is L y, for a matrix L that depends on
the scores alone. Loess fits at each t a polynomial of degree 2 to the nearest part of the rows by
least squares, with weights w (1 - u^3)^3, u being the distance from t over that of the farthest of
them (Cleveland, 1979). It reproduces the scores themselves, L p = p, so that the curve of outcomes
less the diagonal is the curve of residuals, L y - p = L (y - p).

Up to `DIRECT` distinct scores the fit is made at each of them. Beyond, rows are added up in cells,
half of them of equal weight and half of equal width, the fit is made at the mean scores of the
cells, in windows as wide as those of the rows, and interpolated linearly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray

# Below this many values, loading the compiled code takes longer than it saves.
_MIN_COMPILED = 1 << 19
_MAX_ITERATIONS = 100
# Newton's method doubles the number of correct digits: after a step whose mean square, weighted by
# the information, is as small as this the fit is exact up to rounding.
_SMALL_SQUARE = 1e-16
# Relative error of a log-likelihood that rounding may cause.
_LIKELIHOOD_ROUNDING = 1e-10
SPAN = 0.75
# More distinct scores than these are added up in so many cells.
DIRECT, _CELLS = 1000, 800
# The curve is fitted in so many parts, whose matrices fit into the processor's cache.
_PARTS = 8
# Of the largest eigenvalue of the moments of a local fit, what smaller ones are taken for rounding.
_SINGULAR = 1e-12
# Rounding of sums of weights, and bisections that leave nothing of an interval.
_ROUNDING, _BISECTIONS = 1e-12, 60


def isotonic_fit(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the non-decreasing f with the minimum sum of weight * (value - f)^2."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(value, weights=weight).x)


def isotonic_fit_l1(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the non-decreasing f with the minimum sum of weight * abs(value - f).

    Every f[i] is one of the values, bit for bit; the minimiser need not be unique.
    """
    if len(value) == 0:
        return value
    starts = np.flatnonzero(np.concatenate(([True], value[1:] != value[:-1])))
    runs = np.diff(np.append(starts, len(value)))
    best = _best_ends(value[starts], np.add.reduceat(weight, starts))
    # The last f has minimal cost; each one before it is as near to its own best as order allows.
    rising = np.minimum.accumulate(best[::-1])[::-1]
    return np.repeat(rising, runs)


def _best_ends(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return, for every prefix, the best last value of a rising sequence near that prefix."""
    downwards = np.argsort(-value, kind="stable")
    rank = np.empty_like(downwards)
    rank[downwards] = np.arange(len(value))
    mass, top = np.empty(len(value)), np.empty_like(rank)
    if len(value) >= _MIN_COMPILED and find_spec("numba"):
        from calibrant.numerics.compiled import compiled

        compiled(_trim)(rank, weight, mass, top)
    else:
        # Python reads single numbers from memoryviews much faster than from arrays.
        _trim(rank.data, weight.data, mass.data, top.data)
    return np.asarray(value[downwards][top])


def _trim(rank: Any, weight: Any, mass: Any, top: Any) -> None:
    """Write into `top` the rank of every prefix's best last value, rank 0 being the greatest.

    As a function of the last value g, the minimum cost of a prefix is convex and piecewise linear,
    and level beyond its minimum, since a lower end is as good. It is kept as its breakpoints,
    the greatest on top of a heap, with the change of slope at each in `mass`. A further value v
    adds weight * abs(v - g): a change of slope of 2 * weight at v, after which trimming `weight`
    off the top makes the far end level again.
    """
    heap = [rank[0]]
    mass[rank[0]] = weight[0]
    top[0] = rank[0]
    for i in range(1, len(rank)):
        new = rank[i]
        mass[new] = 2 * weight[i]
        heappush(heap, new)
        rest = mass[heap[0]] - weight[i]
        while rest <= 0:
            heappop(heap)
            rest += mass[heap[0]]
        mass[heap[0]] = rest
        top[i] = heap[0]


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression, with the covariance of (intercept, *slopes).

    The inverse of their information is the A^-1 of the covariance A^-1 B A^-1.
    """

    intercept: float
    slopes: FloatArray
    covariance: FloatArray
    inverse_information: FloatArray
    log_likelihood: float


def fit_logistic(
    x: FloatArray,
    true: FloatArray,
    weight: FloatArray,
    *,
    weight_squared: FloatArray | None = None,
    offset: FloatArray | float = 0.0,
    ridge: float | FloatArray = 0.0,
) -> LogisticFit:
    """Fit logit P(y = 1) = offset + intercept + x @ slopes to pooled rows.

    `true`, `weight` and `weight_squared` are the sums of w y, w and w^2 (w by default) over the
    rows pooled at each x, of which no column is constant. The penalty is ridge / 2, one for all or
    one per column, times the weight times the squared slopes of the standardised columns: it
    selects one of the equally good fits of collinear columns.

    The covariance is A^-1 B A^-1 with A = sum w m (1 - m) z z', B = sum w^2 m (1 - m) z z',
    z = (1, x) and m the fitted probabilities; the log-likelihood is less the penalty. Where the
    likelihood has no maximum, or none that can be found, as where outcomes are separated by x,
    numpy.linalg.LinAlgError is raised.
    """
    u, centre, scale = standardize(x, weight)
    design = np.vstack((np.ones(len(u)), u.T)).T  # each column in one piece
    penalty = np.append(0.0, np.broadcast_to(ridge * weight.sum(), u.shape[1]))
    likelihood = _Likelihood(design, true, weight, offset, penalty)
    coefficients = likelihood.maximum()
    fitted = likelihood.probability(coefficients)
    squares = weight if weight_squared is None else weight_squared
    # Back to the units of x, whose slopes are those of u over the scale.
    back = np.diag(np.append(1.0, 1 / scale))
    back[0, 1:] = -centre / scale
    spread = back @ np.linalg.inv(likelihood.information(fitted))
    noise = _moments(design, squares * fitted * (1 - fitted))
    intercept, *slopes = (back @ coefficients).tolist()
    return LogisticFit(
        intercept=intercept,
        slopes=np.array(slopes),
        covariance=spread @ noise @ spread.T,
        inverse_information=spread @ back.T,
        log_likelihood=likelihood.log(coefficients),
    )


def standardize(x: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (x - centre) / scale, of weighted mean 0 and variance 1, with centre and scale."""
    centre = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - centre) ** 2, axis=0, weights=weight))
    return (x - centre) / scale, centre, scale


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The penalised likelihood of pooled rows as a function of the coefficients of a design."""

    design: FloatArray
    true: FloatArray
    weight: FloatArray
    offset: FloatArray | float
    penalty: FloatArray

    def log(self, coefficients: FloatArray) -> float:
        """Return the log-likelihood less the penalty."""
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is not finite
            logit = self.offset + self.design @ coefficients
            # log(1 + e^logit), much faster than by logaddexp.
            loss = np.maximum(logit, 0) + np.log1p(np.exp(-np.abs(logit)))
            penalty = self.penalty @ coefficients**2 / 2
            return float(self.true @ logit - self.weight @ loss - penalty)

    def probability(self, coefficients: FloatArray) -> FloatArray:
        """Return the fitted probabilities."""
        from scipy.special import expit

        return np.asarray(expit(self.offset + self.design @ coefficients))

    def information(self, fitted: FloatArray) -> FloatArray:
        """Return the negative second derivative."""
        return _moments(self.design, self.weight * fitted * (1 - fitted)) + np.diag(self.penalty)

    def maximum(self) -> FloatArray:
        """Return the coefficients of the maximum, by Newton's method with step halving."""
        coefficients = np.zeros(self.design.shape[1])
        reached = self.log(coefficients)
        for _ in range(_MAX_ITERATIONS):
            fitted = self.probability(coefficients)
            excess = self.true - self.weight * fitted
            gradient = excess @ self.design - self.penalty * coefficients
            information = self.information(fitted)
            step = np.linalg.solve(information, gradient)
            if not np.isfinite(step).all():
                break
            if step @ gradient <= _SMALL_SQUARE * np.trace(information):
                return coefficients + step
            # The function is concave: some fraction of the step raises it, up to rounding.
            lowest = reached - _LIKELIHOOD_ROUNDING * abs(reached)
            while not (reached := self.log(coefficients + step)) >= lowest:
                step = step / 2
                if not step.any():
                    raise np.linalg.LinAlgError("the likelihood is not finite")
            coefficients = coefficients + step
        raise np.linalg.LinAlgError("the likelihood has no maximum within reach")


def _moments(design: FloatArray, weight: FloatArray) -> FloatArray:
    return np.asarray((design.T * weight) @ design)


class Smoother(Protocol):
    """A smoother of values at sorted scores that depends on the scores alone."""

    def reach(self, x: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
        """Return the bandwidth at each point."""

    def matrix(
        self, x: FloatArray, weight: FloatArray, at: FloatArray, reach: FloatArray
    ) -> FloatArray:
        """Return the weight of each value at each point, shape (points, scores)."""


@dataclass(frozen=True)
class Loess:
    """Local regression of degree 2; windows hold floor(span n) of n rows, or as much weight."""

    n_rows: int
    span: float = SPAN

    def reach(self, x: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
        """Return the smallest distance from each point within which lies so much of the weight."""
        running = np.concatenate(([0.0], np.cumsum(weight)))
        held = max(math.floor(self.span * self.n_rows + 1e-5), 1) / self.n_rows
        target = held * running[-1] * (1 - _ROUNDING)
        low, high = np.zeros(len(at)), np.maximum(at - x[0], x[-1] - at)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            first, last = _window(x, at, middle)
            enough = running[last] - running[first] >= target
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        first, last = _window(x, at, high)
        # Exactly the distance of the farthest score, and none where it is the point itself.
        return np.maximum(at - x[first], x[last - 1] - at)

    def matrix(
        self, x: FloatArray, weight: FloatArray, at: FloatArray, reach: FloatArray
    ) -> FloatArray:
        """Return the first row of (X' K X)^-1 X' K at each point, X = (1, u, u^2), K weights."""
        wide = reach[:, None]
        # A window of a single score has no width: its mean is the fit.
        u = (x - at[:, None]) / np.where(wide > 0, wide, 1.0)
        cubes = np.abs(u)
        cubes *= cubes * cubes
        kernel = np.maximum(1 - cubes, 0.0)
        kernel *= kernel * kernel
        kernel = weight * np.where(wide > 0, kernel, u == 0)
        part, sums = kernel, [kernel.sum(axis=1)]
        for _ in range(4):
            part = part * u
            sums.append(part.sum(axis=1))
        moments = np.array([[sums[i + j] for j in range(3)] for i in range(3)])
        a, b, c = _first_row_of_inverse(np.moveaxis(moments, 2, 0)).T[:, :, None]
        return np.asarray(kernel * (a + u * (b + u * c)))


@dataclass(frozen=True)
class GaussianMeans:
    """Weighted means with the Gaussian kernel, reflected at 0 and 1."""

    bandwidth: float

    def reach(self, x: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
        """Return the bandwidth at each point, everywhere the same."""
        return np.full(len(at), self.bandwidth)

    def matrix(
        self, x: FloatArray, weight: FloatArray, at: FloatArray, reach: FloatArray
    ) -> FloatArray:
        """Return the kernel weights of the scores at each point, which sum to 1."""
        kernel = np.zeros((len(at), len(x)))
        for mirrored in (x, -x, 2 - x):
            kernel += np.exp(-0.5 * ((at[:, None] - mirrored) / reach[:, None]) ** 2)
        kernel *= weight
        return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def smoothed_at_scores(
    smoother: Smoother, x: FloatArray, weight: FloatArray, value: FloatArray
) -> FloatArray:
    """Return mean values at sorted scores smoothed, at each of the scores."""
    if len(x) <= DIRECT:
        columns = (np.array_split(one, _PARTS) for one in (x, smoother.reach(x, weight, x)))
        parts = zip(*columns, strict=True)
        return np.concatenate([smoother.matrix(x, weight, *part) @ value for part in parts])
    cells = ScoreCells.of(x, weight, _CELLS)
    knots = np.unique(np.concatenate((x[:1], cells.score, x[-1:])))
    matrix = smoother.matrix(cells.score, cells.weight, knots, smoother.reach(x, weight, knots))
    return np.interp(x, knots, matrix @ cells.means(weight, value))


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Cells of sorted scores, none of them without any."""

    edges: FloatArray  # the edges between neighbouring cells; a cell holds its left edge
    starts: npt.NDArray[np.intp]  # the first score of each cell
    score: FloatArray  # its mean score
    weight: FloatArray  # and its weight

    @classmethod
    def of(cls, x: FloatArray, weight: FloatArray, n_cells: int) -> ScoreCells:
        """Return at most so many cells, half of equal weight and half of equal width."""
        fraction = np.arange(1, n_cells // 2) / (n_cells // 2)
        running = np.cumsum(weight)
        by_weight = x[np.searchsorted(running, fraction * running[-1])]
        edges = np.union1d(by_weight, x[0] + fraction * (x[-1] - x[0]))
        starts = np.flatnonzero(np.diff(np.searchsorted(edges, x, side="right"), prepend=-1))
        held = np.add.reduceat(weight, starts)
        return cls(x[starts[1:]], starts, np.add.reduceat(weight * x, starts) / held, held)

    def means(self, weight: FloatArray, value: FloatArray) -> FloatArray:
        """Return the mean of values at the scores in each cell."""
        return np.asarray(np.add.reduceat(weight * value, self.starts) / self.weight)

    def index(self, p: FloatArray) -> npt.NDArray[np.intp]:
        """Return the cell that holds each score."""
        return np.searchsorted(self.edges, p, side="right")


def _window(
    x: FloatArray, at: FloatArray, reach: FloatArray
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.searchsorted(x, at - reach), np.searchsorted(x, at + reach, side="right")


def _first_row_of_inverse(moments: FloatArray) -> FloatArray:
    """Return the first row of the pseudoinverse of each matrix, its columns scaled alike."""
    scale = np.sqrt(np.einsum("nii->ni", moments))
    scale = np.where(scale > 0, scale, 1.0)
    unit = moments / (scale[:, :, None] * scale[:, None, :])
    inverse = np.linalg.pinv(unit, rcond=_SINGULAR, hermitian=True)
    return np.asarray(inverse[:, 0] / (scale * scale[:, :1]))
