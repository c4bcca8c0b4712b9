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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.classes import ClassTable
from calibrant.data.problem import Problem
from calibrant.data.validation import as_array, as_positive
from calibrant.errors import CalibrantError
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

# The range of fitted temperatures. Outcomes that are independent of the predictions call for
# infinity, outcomes that are all predicted for 0; then the search ends when a step gains no more
# than this in the mean log score.
_MIN_TEMPERATURE, _MAX_TEMPERATURE = 0.01, 100.0
_LEAST_GAIN = 1e-20
# A search ends with a step as small as this, which leaves an error that is smaller still.
_SMALL_STEP = 1e-8
_MAX_ITERATIONS = 1000
# Among so many probabilities a search begins with one of four rows, which it leaves once steps are
# as small as sampling errors, and ends with somewhat larger steps.
_MANY, _NEAR, _SMALL_STEP_OF_MANY = 1 << 18, 0.03, 1e-5
# Steps that a search remembers, and the least curvature that it counts on.
_N_STEPS, _LEAST_CURVATURE = 10, 1e-12
# Single precision is for penalties as large as this: it is the least curvature, by which errors of
# the derivative are divided.
_MIN_SINGLE_PENALTY = 1e-3
# Numbers that fit into the cache, and rows for which a product of matrices is worth while.
_BLOCK, _MIN_BLOCK_ROWS = 1 << 16, 512
# For the logarithm of 0; finite, so that 0 times it is 0.
_LOG_ZERO = -1e30
# No positive number has a smaller logarithm.
_LEAST_LOG = -1e3

# The smallest normal number of single precision: vector and matrix scaling take smaller
# probabilities, 0 included, to be as large.
SMALLEST = 2.0**-126

# Shape (C, rows) each, since sums over classes are then sums of long rows.
Block = tuple[FloatArray, FloatArray]
Blocks = list[Block]


@dataclass(frozen=True, eq=False, repr=False)
class TemperatureMap(ProbabilityMap):
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
    is_joint = True

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
class SoftmaxMap(ProbabilityMap):
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
    is_joint = True

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
    n_coefficients = 1

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        both = _two_classes(problem)
        slope = 1 / _fit_temperature(_relative_logarithms(both, _size(both)))
        return LogisticMap(slope, slope, 0.0)

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        logs = _relative_logarithms(_all_classes(table), table.prob.size)
        return (TemperatureMap(_fit_temperature(logs)),)


def _two_classes(problem: Problem) -> Blocks:
    """Return the probabilities of both classes and the weight of each outcome, pooled by score."""
    pooled = problem.pooled
    p = np.stack((1 - pooled.score, pooled.score))
    outcome = np.maximum(np.stack((pooled.weight - pooled.true, pooled.true)), 0.0)
    starts = range(0, p.shape[1], _BLOCK // 2)
    return [(p[:, i : i + _BLOCK // 2], outcome[:, i : i + _BLOCK // 2]) for i in starts]


def _all_classes(table: ClassTable) -> Iterator[Block]:
    """Yield the probabilities of all classes and the weight of each outcome."""
    for prob, outcome, w in table.blocks(max(_BLOCK, _MIN_BLOCK_ROWS * table.n_classes)):
        yield prob.T, outcome.T * w


def _size(blocks: Blocks) -> int:
    return sum(outcome.size for _, outcome in blocks)


def _relative_logarithms(blocks: Iterable[Block], size: int, penalty: float = math.inf) -> Blocks:
    """Return logarithms of probabilities less the largest of their row, with the same outcomes.

    In single precision where there are many and the penalty of a fit to them is large enough.
    """
    is_single = size >= _MANY and penalty >= _MIN_SINGLE_PENALTY
    kind: type[np.floating[Any]] = np.float32 if is_single else np.float64
    found: Blocks = []
    for p, outcome in blocks:
        with np.errstate(divide="ignore"):
            below: Any = np.ascontiguousarray(np.log(p), dtype=kind)
        below -= below.max(axis=0)
        np.maximum(below, _LOG_ZERO, out=below)
        found.append((below, np.ascontiguousarray(outcome, dtype=kind)))
    return found


def _thinned(blocks: Blocks) -> Blocks:
    """Return one of four rows."""
    some = np.s_[:, ::4]
    return [(np.ascontiguousarray(x[some]), np.ascontiguousarray(w[some])) for x, w in blocks]


def _fit_temperature(logs: Blocks) -> float:
    """Return the T of maximum likelihood, from relative logarithms."""
    start = _log_slope(_thinned(logs), 0.0, _NEAR) if _size(logs) >= _MANY else 0.0
    return math.exp(-_log_slope(logs, start, _SMALL_STEP_OF_MANY))


def _log_slope(logs: Blocks, start: float, small: float) -> float:
    """Return the logarithm u of b = 1 / T at which the likelihood is greatest, by Newton's method.

    Its derivative with respect to b is the sum of log p of the outcome less the mean of log p under
    the recalibrated row, and falls with b. A step beyond what is known is replaced by a bisection.
    Where the outcome is always the most probable class there is no maximum, and b grows until no
    more is gained.
    """
    rows, observed = [], 0.0
    for below, outcome in logs:
        weight, along = outcome.sum(axis=0), (outcome * below).sum(axis=0)
        possible = along >= _LEAST_LOG * weight
        observed += float(along @ possible)
        rows.append((below, weight * possible))
    total_weight = sum(float(weight.sum()) for _, weight in rows)
    low, high = -math.inf, math.inf
    u = start
    for _ in range(_MAX_ITERATIONS):
        excess, variance = -observed, 0.0
        for below, weight in rows:
            power = np.exp(math.exp(u) * below)
            total = power.sum(axis=0)
            power *= below
            mean = power.sum(axis=0) / total
            power *= below
            excess += float(weight @ mean)
            variance += float(weight @ (power.sum(axis=0) / total - mean * mean))
        if excess * excess <= _LEAST_GAIN * variance * total_weight:
            break
        low, high = (u, high) if excess < 0 else (low, u)
        slope = math.exp(u) * variance
        step = excess / slope if slope > 0 else math.copysign(math.inf, excess)
        following = min(max(u - step, -math.log(_MAX_TEMPERATURE)), -math.log(_MIN_TEMPERATURE))
        if low < following < high or following == u:
            u, step = following, following - u
        else:
            u, step = (low + high) / 2, (high - low) / 2
        if abs(step) <= small:
            break
    return u


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
        both = _two_classes(problem)
        return self._fit_blocks(both, _size(both), problem.n)

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        blocks = ((np.maximum(p, SMALLEST), outcome) for p, outcome in _all_classes(table))
        return (self._fit_blocks(blocks, table.prob.size, len(table.prob)),)

    def _fit_blocks(self, blocks: Iterable[Block], size: int, n: int) -> SoftmaxMap:
        ridge = as_positive(self.ridge, "ridge")
        logs = _relative_logarithms(blocks, size, ridge * size / n**2)
        temperature, mix = _fit_temperature(logs), 1 / (n + 1)
        for below, _ in logs:
            # In place: from here on these are the logarithms at that temperature, mixed.
            below /= temperature
            np.exp(below, out=below)
            below *= (1 - mix) / below.sum(axis=0)
            below += mix / len(below)
            np.log(below, out=below)
        change = _fit_softmax(logs, ridge / n, full=self._is_full)
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
    classes take about 0.15 s.

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


def _fit_softmax(blocks: Blocks, ridge: float, *, full: bool) -> FloatArray:
    """Return the changes of slopes and intercepts that minimise a penalised cross-entropy.

    Parameters
    ----------
    blocks : list of pairs of ndarrays of shape (C, rows)
        Logarithms of probabilities, and the weight of every outcome.
    ridge : float
        Penalty of squared slopes v and intercepts b over C; of M over C (C - 1).
    full : bool
        Whether there is an M, so that every class depends on all x.

    Returns
    -------
    ndarray of shape (C, 2) or (C, C + 1)
        The last column is b; before it v, or diag(v) + M.
    """
    loss = _CrossEntropy.of(blocks, ridge, full)
    change = np.zeros(loss.penalty.shape)
    if _size(blocks) < _MANY:
        return _minimum(loss, change, loss.inverse_curvature(change), _SMALL_STEP)
    # Some of the rows lead to within their sampling error, and tell the curvature there.
    some = _CrossEntropy.of(_thinned(blocks), ridge, full)
    change = _minimum(some, change, some.inverse_curvature(change), _NEAR)
    return _minimum(loss, change, some.inverse_curvature(change), _SMALL_STEP_OF_MANY)


Linear = Callable[[FloatArray], FloatArray]


def _minimum(loss: _CrossEntropy, at: FloatArray, scaled: Linear, small: float) -> FloatArray:
    """Return the minimum of a loss, by L-BFGS that begins with a given inverse of the curvature.

    It looks at derivatives alone, which tell the way to the end where values no longer differ, and
    ends after a step that changes no coefficient by more than `small`.
    """
    gradient, factor = loss.gradient(at), 1.0
    steps: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_N_STEPS)
    for _ in range(_MAX_ITERATIONS):
        direction, parts = -gradient, []
        for step, change, size in reversed(steps):
            parts.append(np.vdot(step, direction) / size)
            direction = direction - parts[-1] * change
        direction = factor * scaled(direction)
        for (step, change, size), part in zip(steps, reversed(parts), strict=True):
            direction += (part - np.vdot(change, direction) / size) * step
        if np.abs(direction).max() <= small:
            return np.asarray(at + direction)
        length, slope = 1.0, float(np.vdot(gradient, direction))
        for _ in range(_N_STEPS):
            step = length * direction
            following = loss.gradient(at + step)
            end = float(np.vdot(following, direction))
            if end <= -slope / 2:
                break
            length *= slope / (slope - end)
        if not slope < end <= -slope / 2:
            break  # nothing but rounding is left
        change, size = following - gradient, float(length * (end - slope))
        steps.append((step, change, size))
        # The curvature along the last step.
        factor = size / float(np.vdot(change, scaled(change)))
        at, gradient = at + step, following
    return at


@dataclass(frozen=True, eq=False)
class _CrossEntropy:
    """The penalised cross-entropy as a function of the changes of slopes and intercepts.

    Its rows are blocks of covariates, shape (C, rows), or with a row of ones below if every class
    depends on all of them, and the weights of the rows, whose sum is 1.
    """

    rows: Blocks
    observed: FloatArray
    penalty: FloatArray
    identity: FloatArray

    @classmethod
    def of(cls, blocks: Blocks, ridge: float, full: bool) -> _CrossEntropy:
        """Return the loss of logarithms and outcomes."""
        n_classes = len(blocks[0][0])
        penalty = np.full((n_classes, n_classes + 1 if full else 2), ridge * n_classes)
        if full:
            penalty[:, :-1] *= n_classes - 1
            np.fill_diagonal(penalty, ridge * n_classes)
        total = sum(float(outcome.sum(dtype=np.float64)) for _, outcome in blocks)
        identity = np.eye(*penalty.shape) if full else np.tile([1.0, 0.0], (n_classes, 1))
        loss = cls([], np.zeros(penalty.shape), penalty, identity)
        for x, outcome in blocks:
            covariates = np.concatenate((x, np.ones_like(x[:1]))) if full else x
            loss.rows.append((covariates, outcome.sum(axis=0) / total))
            loss.observed[:] += loss.moments(outcome / total, covariates)
        return loss

    def moments(self, weight: FloatArray, x: FloatArray) -> FloatArray:
        """Return the sums of covariates weighted for every class, in the shape of the changes."""
        if len(x) > len(weight):
            return np.asarray(weight @ x.T)
        return np.stack((np.einsum("ij,ij->i", weight, x), weight.sum(axis=1)), axis=1)

    def predictions(
        self, change: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield covariates, weights, and probabilities times weights."""
        factors = (self.identity + change).astype(self.rows[0][0].dtype)
        for x, weight in self.rows:
            if len(x) > len(factors):
                z = factors @ x
            else:
                z = factors[:, :1] * x
                z += factors[:, 1:]
            z -= z.max(axis=0)
            np.exp(z, out=z)
            z *= weight / z.sum(axis=0)
            yield x, weight, z

    def gradient(self, change: FloatArray) -> FloatArray:
        """Return the derivative."""
        found = 2 * self.penalty * change - self.observed
        for x, _, q in self.predictions(change):
            found += self.moments(q, x)
        return np.asarray(found)

    def inverse_curvature(self, change: FloatArray) -> Linear:
        """Return about the inverse of the second derivative, as a function.

        Without the penalty the second derivative is the mean of (diag(q) - q q') times x x' for
        predictions q of all classes. It is approximated by D + Z G Z', with G the mean of
        diag(q) - q q', Z the means of x for every class, weighted by q (1 - q), and D diagonal:
        their variances, and twice the penalty. With A = D^-1 Z and S = Z' A its inverse is
        D^-1 - A S^-1 A' + A (S + S G S)^-1 A'.
        """
        coupling = np.zeros((len(change), len(change)))
        means, squares = np.zeros(change.shape), np.zeros(change.shape)
        for x, weight, q in self.predictions(change):
            root = q / np.sqrt(np.maximum(weight, np.finfo(weight.dtype).tiny))
            coupling -= root @ root.T
            q -= root * root
            means += self.moments(q, x)
            squares += self.moments(q, x * x)
        total = np.maximum(means[:, -1], np.finfo(self.rows[0][0].dtype).tiny)
        np.fill_diagonal(coupling, total)
        centre = means / total[:, None]
        variance = np.maximum(squares - means * centre + 2 * self.penalty, _LEAST_CURVATURE)
        along = centre / variance
        size = (centre * along).sum(axis=1)
        coupled = np.linalg.inv(np.diag(size) + size[:, None] * coupling * size)

        def apply(v: FloatArray) -> FloatArray:
            shift = (along * v).sum(axis=1)
            apart = (v - centre * (shift / size)[:, None]) / variance
            return np.asarray(apart + along * (coupled @ shift)[:, None])

        return apply
