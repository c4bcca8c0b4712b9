"""Calibrators of all classes together: temperature, vector and matrix scaling.

With x the logarithms of a row of C probabilities, all are softmax(A x + b):

====================  =============================================  =========================
calibrator            A and b                                        fitted by
====================  =============================================  =========================
TemperatureCalibrator  identity / T, 0                                maximum likelihood
VectorCalibrator      identity + diag(v), b                          cross-entropy and a ridge
MatrixCalibrator      identity + diag(v) + M, b                      cross-entropy and a ridge
====================  =============================================  =========================

The last two, structured vector and matrix scaling, are fitted to rows that temperature scaling has
been applied to, mixed with the uniform distribution: x = log((1 - m) t + m / C), m = 1 / (n + 1).
Recalibrating each class against the rest instead loses what classes have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.classes import ClassTable
from calibrant.data.problem import Problem
from calibrant.data.validation import as_array, as_positive
from calibrant.errors import CalibrantError
from calibrant.numerics.probability import monotone_root
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.maps import (
    LogisticMap,
    ProbabilityMap,
    as_fraction,
    literal,
    mixed,
    mixed_sql,
    normalised,
    set_field,
    within,
)

# The range of fitted temperatures. Outcomes that are all predicted call for 0, outcomes that are
# independent of the predictions for infinity.
_MIN_TEMPERATURE, _MAX_TEMPERATURE = 0.01, 100.0
# Largest derivative at the end of a search, in coordinates of unit curvature: coefficients are then
# right to five digits or more.
_SMALL_GRADIENT = 1e-6
_MAX_ITERATIONS = 1000

# The smallest normal number of single precision: vector and matrix scaling take smaller
# probabilities, 0 included, to be as large.
SMALLEST = 2.0**-126

Blocks = list[tuple[FloatArray, FloatArray]]


class _JointMap(ProbabilityMap):
    """A map of rows of the probabilities of all classes."""

    @property
    def is_joint(self) -> bool:
        """Whether it takes rows of the probabilities of all classes instead of single ones."""
        return True


@dataclass(frozen=True, eq=False, repr=False)
class TemperatureMap(_JointMap):
    """Every probability of a row to the power 1 / T, divided by their sum.

    Attributes
    ----------
    temperature : float
        T: above 1 it makes predictions less confident, below 1 more.

    Examples
    --------
    >>> import numpy as np
    >>> TemperatureMap(0.5)(np.array([[0.2, 0.4, 0.4]])).round(3).tolist()
    [[0.111, 0.444, 0.444]]
    """

    temperature: float

    def __post_init__(self) -> None:
        set_field(self, "temperature", as_positive(self.temperature, "temperature"))
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of rows of class probabilities."""
        # Relative to the largest of the row, so that not all powers underflow.
        power = (p / p.max(axis=1, keepdims=True)) ** (1 / self.temperature)
        return within(p, power / power.sum(axis=1, keepdims=True))

    def _class_expressions(self, columns: Sequence[str]) -> list[str]:
        powers = [f"POWER({name}, {literal(1 / self.temperature)})" for name in columns]
        return normalised(powers)


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxMap(_JointMap):
    """softmax(A x + b) with x = log((1 - mix) t + mix / C), t the row at a temperature.

    Attributes
    ----------
    temperature : float
        T: t is the row to the power 1 / T, divided by its sum.
    mix : float
        Weight of the uniform distribution, which keeps logarithms finite. Where it is positive,
        probabilities below 2^-126 count as 2^-126.
    weights : ndarray of shape (C,) or (C, C)
        A, or its diagonal.
    bias : ndarray of shape (C,)
        b.

    Examples
    --------
    >>> import numpy as np
    >>> shifted = SoftmaxMap(1.0, 0.0, np.ones(3), np.log([1.0, 1.0, 2.0]))
    >>> shifted(np.array([[0.4, 0.4, 0.2]])).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    """

    temperature: float
    mix: float
    weights: FloatArray
    bias: FloatArray

    def __post_init__(self) -> None:
        set_field(self, "temperature", as_positive(self.temperature, "temperature"))
        set_field(self, "mix", as_fraction(self.mix, "mix"))
        bias, weights = (
            np.array(validation.as_numbers(as_array(getattr(self, name), name), name), dtype=float)
            for name in ("bias", "weights")
        )
        size = len(bias) if bias.ndim == 1 else -1
        if weights.shape not in ((size,), (size, size)):
            raise CalibrantError("must have one row per class", argument="weights")
        if not (np.isfinite(bias).all() and np.isfinite(weights).all()):
            raise CalibrantError("must be finite", argument="weights")
        set_field(self, "weights", weights)
        set_field(self, "bias", bias)
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of rows of class probabilities."""
        from scipy.special import softmax

        x = self.logarithms(p)
        return np.asarray(softmax(weigh(x, self.weights) + self.bias, axis=1))

    def logarithms(self, p: FloatArray) -> FloatArray:
        """Return x, the logarithms that are weighted."""
        with np.errstate(divide="ignore"):
            floored = np.maximum(p, SMALLEST) if self.mix else p
            return np.log(mixed(TemperatureMap(self.temperature)(floored), self.mix))

    def _class_expressions(self, columns: Sequence[str]) -> list[str]:
        if self.mix:
            least = literal(SMALLEST)
            columns = [f"CASE WHEN {one} < {least} THEN {least} ELSE {one} END" for one in columns]
        tempered = TemperatureMap(self.temperature)._class_expressions(columns)
        logs = [f"LN({mixed_sql(one, self.mix, len(columns))})" for one in tempered]
        matrix = np.diag(self.weights) if self.weights.ndim == 1 else self.weights
        exponentials = []
        for row, bias in zip(matrix, self.bias, strict=True):
            terms = [f"{literal(a)} * {x}" for a, x in zip(row, logs, strict=True) if a]
            exponentials.append(f"EXP({' + '.join([*terms, literal(bias)])})")
        return normalised(exponentials)

    def _printed(self) -> list[str]:
        kind = "diagonal" if self.weights.ndim == 1 else "matrix"
        return [f"SoftmaxMap({len(self.bias)} classes, {kind}, temperature={self.temperature:.4g})"]


def weigh(x: FloatArray, weights: FloatArray) -> FloatArray:
    """Return A x for every row x, A being a matrix or its diagonal."""
    return np.asarray(x * weights if weights.ndim == 1 else x @ weights.T)


class TemperatureCalibrator(Calibrator):
    """Temperature scaling: P_c^(1/T), normalised, with one temperature T for all classes.

    With two classes this is sigmoid(logit(p) / T). It does to probabilities what softmax does to
    logits divided by T.

    Parameters
    ----------
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    T maximises the likelihood between 0.01 and 100; it is 1 where the likelihood does not depend on
    it. Probabilities of exactly 0 and 1 stay as they are, and a row whose outcome had probability 0
    is ignored. The order of classes within a row stays; with two classes the map is increasing. In
    a sketch, rows are taken at the mean score of their cell. More than two classes are recalibrated
    together, not each against the rest.

    See Also
    --------
    PlattCalibrator : Adds an intercept.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks" (2017).

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> TemperatureCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.21, 0.5 , 0.79])
    """

    is_joint = True

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        slope = 1 / fit_temperature(_two_classes(problem))
        return LogisticMap(slope, slope, 0.0)

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        return (TemperatureMap(fit_temperature(_all_classes(table))),)


def _two_classes(problem: Problem) -> Blocks:
    """Return the probabilities of both classes and the weight of each outcome, pooled by score."""
    pooled = problem.pooled
    both = np.stack((1 - pooled.score, pooled.score), axis=1)
    outcome = np.stack((pooled.weight - pooled.true, pooled.true), axis=1)
    return [(both, np.maximum(outcome, 0.0))]


def _all_classes(table: ClassTable) -> Blocks:
    """Return the probabilities of all classes and the weight of each outcome, in blocks."""
    return [(prob, outcome * w[:, None]) for prob, outcome, w in table.blocks()]


def fit_temperature(blocks: Blocks) -> float:
    """Return the T of maximum likelihood from blocks of (probabilities, weight per outcome)."""
    # One row per class: sums over a few long rows are faster than over many short ones.
    logs = []
    for p, weight in blocks:
        possible = ~np.any((p == 0) & (weight > 0), axis=1)
        with np.errstate(divide="ignore"):
            log_p = np.log(np.ascontiguousarray(p[possible].T))
        finite = np.where(np.isfinite(log_p), log_p, 0.0)
        below = log_p - log_p.max(axis=0)
        logs.append((below, finite, np.ascontiguousarray(weight[possible].T)))

    def derivative(log_beta: float) -> float:
        """Return the derivative of the log score with respect to beta = 1 / T; it increases."""
        total = 0.0
        for below, finite, weight in logs:
            power = np.exp(math.exp(log_beta) * below)
            # The mean of log p under the recalibrated row, less log p of the outcome.
            expected = (power * finite).sum(axis=0) / power.sum(axis=0)
            total += float(np.sum(weight * (expected - finite)))
        return total

    if derivative(0.0) == 0:
        return 1.0
    ends = -math.log(_MAX_TEMPERATURE), -math.log(_MIN_TEMPERATURE)
    return math.exp(-monotone_root(derivative, *ends, 1e-10))


class VectorCalibrator(Calibrator):
    """Structured vector scaling (SVS): a slope and an intercept for every class.

    softmax((1 + v) x + b) with x the logarithms of the temperature-scaled probabilities, v and b
    minimising the mean cross-entropy + ridge (C / n) (|v|^2 + |b|^2).

    Parameters
    ----------
    ridge : float
        Factor of the penalty.

    Notes
    -----
    Shrunk towards temperature scaling, the more the fewer rows there are per class. All
    recalibrated probabilities are positive: temperature-scaled ones are mixed with the uniform
    distribution, m = 1 / (n + 1), before logarithms are taken, and of more than two classes
    probabilities below 2^-126 count as 2^-126, so that outcomes of probability 0 count, too. n
    counts rows, not weights; with weights the cross-entropy is a weighted mean. Of two classes,
    rows are pooled by score, or in a sketch by cell. The order of classes within a row may change.
    Memory: four times the table.

    See Also
    --------
    MatrixCalibrator : Every class depends on the probabilities of all.

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, "Structured matrix scaling for multi-class calibration"
    (2026).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([2, 2, 2], 5000)
    >>> label = (truth.cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    >>> given = truth * [1, 1, 3]
    >>> given /= given.sum(axis=1, keepdims=True)
    >>> VectorCalibrator().fit(given, label).predict([[0.2, 0.2, 0.6]]).round(2).tolist()
    [[0.34, 0.32, 0.34]]
    """

    is_joint = True
    _is_full = False

    def __init__(self, ridge: float = 1.0) -> None:
        self.ridge = ridge

    def _fit_problem(self, problem: Problem) -> ProbabilityMap:
        return self._fit_blocks(_two_classes(problem), problem.n)

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        blocks = [(np.maximum(p, SMALLEST), outcome) for p, outcome in _all_classes(table)]
        return (self._fit_blocks(blocks, len(table.prob)),)

    def _fit_blocks(self, blocks: Blocks, n: int) -> SoftmaxMap:
        ridge = as_positive(self.ridge, "ridge")
        temperature, mix = fit_temperature(blocks), 1 / (n + 1)
        p, outcome = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        x = np.log(mixed(TemperatureMap(temperature)(p), mix))
        change = fit_softmax(x, outcome / outcome.sum(), ridge / n, full=self._is_full)
        slopes, bias = change[:, :-1], change[:, -1]
        weights = np.eye(len(bias)) + slopes if self._is_full else 1 + slopes[:, 0]
        return SoftmaxMap(temperature, mix, weights, bias)


class MatrixCalibrator(VectorCalibrator):
    """Structured matrix scaling (SMS): every class depends on the probabilities of all.

    softmax((I + diag(v) + M) x + b) with x the logarithms of the temperature-scaled probabilities,
    M without a diagonal, minimising the mean cross-entropy
    + ridge (C / n) (|v|^2 + |b|^2 + (C - 1) |M|^2).

    Parameters
    ----------
    ridge : float
        Factor of the penalty.

    Notes
    -----
    As for :class:`~calibrant.recalibration.VectorCalibrator`, which has no M. 10 000 rows of 100
    classes take about half a second.

    See Also
    --------
    VectorCalibrator : A slope and an intercept for every class.

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, "Structured matrix scaling for multi-class calibration"
    (2026).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([2, 2, 2], 5000)
    >>> label = (truth.cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    >>> confused = truth @ [[1, 0, 0], [0, 0.8, 0.2], [0, 0.4, 0.6]]
    >>> matrix = MatrixCalibrator().fit(confused, label)
    >>> matrix.predict([[0.2, 0.5, 0.3]]).round(1).tolist()
    [[0.2, 0.4, 0.3]]
    """

    _is_full = True


def fit_softmax(x: FloatArray, outcome: FloatArray, ridge: float, *, full: bool) -> FloatArray:
    """Return the changes of slopes and intercepts that minimise a penalised cross-entropy.

    Parameters
    ----------
    x : ndarray of shape (n, C)
        Logarithms of probabilities.
    outcome : ndarray of shape (n, C)
        Weight of every outcome; the sum of all is 1.
    ridge : float
        Penalty of squared slopes v and intercepts b over C; of M over C (C - 1).
    full : bool
        Whether there is an M, so that every class depends on all x.

    Returns
    -------
    ndarray of shape (C, 2) or (C, C + 1)
        The last column is b; before it v, or diag(v) + M.
    """
    from scipy.optimize import minimize

    loss = _CrossEntropy.of(x, outcome, ridge, full)
    start = np.zeros(loss.penalty.size)
    options: Any = {"gtol": _SMALL_GRADIENT, "ftol": 0.0, "maxiter": _MAX_ITERATIONS}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return loss.coefficients(found.x)


@dataclass(frozen=True, eq=False)
class _CrossEntropy:
    """The penalised cross-entropy as a function of rescaled coefficients.

    The curvature of the coefficients of class c at the start is about
    D_c + z_c z_c', with D_c the penalty and the variances of the covariates, and z_c their means,
    all weighted by p_c (1 - p_c). L-BFGS is given u with coefficients D^-1/2 (1 + a a')^-1/2 u,
    a = D^-1/2 z, of unit curvature: it then takes about twenty iterations.
    """

    x: FloatArray
    outcome: FloatArray
    weight: FloatArray
    penalty: FloatArray
    scale: FloatArray
    direction: FloatArray
    shortening: FloatArray

    @classmethod
    def of(cls, x: FloatArray, outcome: FloatArray, ridge: float, full: bool) -> _CrossEntropy:
        """Return the loss with the scales of its coefficients."""
        n_classes = x.shape[1]
        penalty = np.full((n_classes, n_classes + 1 if full else 2), ridge * n_classes)
        if full:
            penalty[:, :-1] *= n_classes - 1
            np.fill_diagonal(penalty, ridge * n_classes)
        weight, p = outcome.sum(axis=1), np.exp(x)
        spread = p * (1 - p) * weight[:, None]
        total = np.maximum(spread.sum(axis=0), np.finfo(float).tiny)[:, None]
        means, squares = (
            np.column_stack((spread.T @ v if full else (spread * v).sum(axis=0), total))
            for v in (x, x * x)
        )
        z = means / np.sqrt(total)
        scale = 1 / np.sqrt(np.maximum(squares - z * z, 0.0) + 2 * penalty)
        direction = z * scale
        length = np.maximum((direction**2).sum(axis=1, keepdims=True), np.finfo(float).tiny)
        shortening = (1 - 1 / np.sqrt(1 + length)) / length
        return cls(x, outcome, weight, penalty, scale, direction, shortening)

    @property
    def is_full(self) -> bool:
        """Whether every class depends on all covariates."""
        return bool(self.penalty.shape[1] > 2)

    def coefficients(self, u: FloatArray) -> FloatArray:
        """Return the coefficients from the rescaled ones."""
        return self.scale * self._shortened(u.reshape(self.penalty.shape))

    def __call__(self, u: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the derivative with respect to rescaled coefficients."""
        change = self.coefficients(u)
        slopes, bias = change[:, :-1], change[:, -1]
        z = self.x @ slopes.T if self.is_full else self.x * slopes[:, 0]
        z += self.x
        z += bias
        z -= z.max(axis=1, keepdims=True)
        value = -np.vdot(self.outcome, z) + np.vdot(self.penalty, change**2)
        np.exp(z, out=z)
        sums = z.sum(axis=1, keepdims=True)
        value += self.weight @ np.log(sums[:, 0])
        z *= self.weight[:, None] / sums
        z -= self.outcome
        gradient = 2 * self.penalty * change
        gradient[:, -1] += z.sum(axis=0)
        if self.is_full:
            gradient[:, :-1] += z.T @ self.x
        else:
            gradient[:, 0] += np.einsum("ij,ij->j", z, self.x)
        return float(value), self._shortened(self.scale * gradient).ravel()

    def _shortened(self, u: FloatArray) -> FloatArray:
        """Return (1 + a a')^-1/2 u for every class."""
        along = (self.direction * u).sum(axis=1, keepdims=True)
        return np.asarray(u - self.shortening * along * self.direction)
