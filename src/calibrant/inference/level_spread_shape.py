"""What is wrong with predictions: their level, their spread, or their shape.

Recalibration by logit q = a + b logit p explains part of the outcomes that the predictions p do
not. With l(a, b) the log-likelihood, maximised over what is not fixed, the deviances

    level   2 [l(a, 1) - l(0, 1)]      all logits too high, a < 0, or too low
    spread  2 [l(a, b) - l(a, 1)]      predictions too extreme, b < 1, or not extreme enough

are chi-squared with one degree of freedom where there is no such fault. What is left, the residuals
y - q, is tested for any smooth shape: with time u the running sum of the information w q(1 - q),
from 0 to 1, the components z_j of the residuals along cos(pi j u), made orthogonal to level, spread
and each other, are independent standard normal if logit q is linear in logit p. The shape has the
deviance

    shape   sum_{j <= k} (z_j^2 - 1),   k maximising it over sqrt(2 k)

and the P-value of this maximum: the adaptive Neyman test. Rows of p = 0 or 1 have no logit and are
left out. Weights that are not counts, soft labels and clusters change the variance of all
components by about one factor, the design effect, which divides the deviances (Rao and Scott).

References
----------
Cox, "Two further applications of a model for binary regression" (1958): level and spread.
Fan, "Test of significance based on wavelet thresholding and Neyman's truncation" (1996).
Rao and Scott, "On chi-squared tests for multiway contingency tables" (1984).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import chdtrc, expit

from calibrant._base import FloatArray
from calibrant.data.problem import Index, Problem
from calibrant.inference.cell_noise import Cells, Clusters
from calibrant.numerics.probability import logit, rank_p_value
from calibrant.numerics.regression import fit_logistic

# Sums of outcomes are known to this fraction of the weight.
_ROUNDING = 1e-12
# Components of shape, at most one per so many rows; those of 32 half-waves are no wider than a
# thirtieth of the rows.
_COMPONENTS, _ROWS_PER_COMPONENT = 32, 10
# More distinct scores than this are gathered in cells, whose edges are chosen from so many scores.
# In 1024 cells the fitted slope changes by less than a hundredth of its standard error, even where
# most scores are near 0 and 1.
_MAX_DISTINCT, _CELLS, _MAX_EDGES = 4096, 1024, 1 << 14
# Components whose variance is mostly explained by level, spread and lower ones are rounding.
_SMALLEST_VARIANCE = 1e-9
_NULL_RESAMPLES = 19_999


@dataclass(frozen=True)
class Fault:
    """One kind of miscalibration."""

    name: str  # "level", "spread" or "shape"
    deviance: float  # how much of the log-likelihood it explains, times 2, less what noise explains
    p_value: float
    # The intercept a of level, the slope b of spread, each with its standard error; the number k of
    # components of shape.
    value: float
    error: float = math.nan


@dataclass(frozen=True)
class Faults:
    """All kinds of miscalibration of a problem."""

    bias: float  # the mean of y - p
    bias_error: float  # its standard error
    # Each kind; a P-value of 1 where it is not known.
    level: Fault = Fault("level", 0.0, 1.0, math.nan)
    spread: Fault = Fault("spread", 0.0, 1.0, math.nan)
    shape: Fault = Fault("shape", 0.0, 1.0, 0)
    # How much recalibration by what is significant of them would lower the Brier score, on rows
    # other than those it was fitted to; nan where outcomes are all alike, or separated by scores.
    brier_gain: float = 0.0

    def significant(self, tail: float) -> list[Fault]:
        """Return the kinds whose own test rejects at this level, in order of their deviance."""
        found = [one for one in (self.level, self.spread, self.shape) if one.p_value <= tail]
        return sorted(found, key=lambda one: -one.deviance)


def find_faults(problem: Problem, tail: float, clusters: Clusters | None = None) -> Faults:
    """Split miscalibration into level, spread and shape, each significant where P <= tail."""
    cells = _score_cells(problem, clusters)
    found = Faults(
        float(cells.residual.sum()) / cells.total, math.sqrt(cells.variance) / cells.total
    )
    cells = cells.some(np.flatnonzero((cells.weight > 0) & (cells.score > 0) & (cells.score < 1)))
    p, w, true = cells.score, cells.weight, cells.residual + cells.sides[2].sum(axis=0)
    if not len(p):
        return found
    x = logit(p)
    design = np.stack((np.ones_like(x), x), axis=1)[:, : min(len(x), 2)]
    try:
        level = fit_logistic(design[:, :0], true, w, offset=x)
        both = fit_logistic(design[:, 1:], true, w, offset=x)
    except np.linalg.LinAlgError:
        # There is no fit where outcomes are all alike, or separated: the level has its score test.
        sign = math.copysign(math.inf, found.bias)
        deviance = (found.bias / found.bias_error) ** 2 if found.bias_error else 0.0
        level_alone = _chi_squared("level", deviance, sign, math.inf)
        return replace(found, level=level_alone, brier_gain=math.nan)
    slope = float(both.slopes.sum())
    fitted = expit(both.intercept + (1 + slope) * x)
    effect = _design_effect(cells, design, fitted)
    if not effect > 0:
        return found  # soft labels without noise
    at_start = float(true @ np.log(p) + (w - true) @ np.log1p(-p))
    log_likelihoods = np.array([at_start, level.log_likelihood, both.log_likelihood])
    deviances = 2 * np.diff(log_likelihoods) / effect
    errors = (math.sqrt(max(fit.covariance[-1, -1] * effect, 0.0)) for fit in (level, both))
    shape = _Shape.of(cells, design, fitted, true, effect)
    is_shape = shape.fault.p_value <= tail
    found = replace(
        found,
        level=_chi_squared("level", deviances[0], level.intercept, next(errors)),
        shape=shape.fault,
        brier_gain=shape.brier_gain(cells, true, effect, with_shape=is_shape),
    )
    if design.shape[1] == 1:
        return found
    # A finite slope needs of each outcome a score below one of the other. Of an infinite one
    # rounding leaves a number, and a deviance that is right.
    ones, zeros = p[true > _ROUNDING * w], p[true < (1 - _ROUNDING) * w]
    is_finite = ones[0] < zeros[-1] and zeros[0] < ones[-1]
    error = next(errors) if is_finite else math.nan
    return replace(found, spread=_chi_squared("spread", deviances[1], 1 + slope, error))


def _score_cells(problem: Problem, clusters: Clusters | None) -> Cells:
    """Return the rows by score, or in cells of scores; those of p = 0 and p = 1 have their own.

    A cell in place of its rows changes a fit by their information times the squared width of the
    cell in logits; over all cells that is least where the cube root of each is equal.
    """
    scores = np.unique(problem.scores)
    scores = scores[(scores > 0) & (scores < 1)]
    if len(scores) > _MAX_DISTINCT:
        scores = scores[:: -(-len(scores) // _MAX_EDGES)]
        information = (scores * (1 - scores))[1:]
        width = np.cumsum(np.cbrt(information * np.diff(logit(scores)) ** 2))
        steps = np.linspace(0, width[-1], _CELLS + 1)[1:-1]
        scores = scores[1 + np.unique(np.searchsorted(width, steps))]
    edges = np.concatenate(([math.ulp(0.0)], scores, [1.0]))

    def cell_of(p: FloatArray) -> Index:
        return np.searchsorted(edges, p, side="right")

    return Cells.gather(problem, cell_of, len(edges) + 1, clusters)


def _design_effect(cells: Cells, design: FloatArray, fitted: FloatArray) -> float:
    """Return the variance of components over that of as many independent 0/1 outcomes."""
    information = cells.weight * fitted * (1 - fitted)
    if not information.any():
        return 0.0
    # Centred, the columns are orthogonal, however much of the weight is at one score.
    columns = design.copy()
    columns[:, 1:] -= information @ columns[:, 1:] / information.sum()
    if cells.moves is not None:
        noise = np.square(cells.moves @ columns).sum(axis=0)
    else:
        variance = cells.weight_squared * fitted * (1 - fitted)
        noise = (cells.residual_squared if cells.is_soft else variance) @ columns**2
    size = information @ columns**2
    known = size > 0
    return float((noise[known] / size[known]).mean())


def _chi_squared(name: str, deviance: float, value: float, error: float) -> Fault:
    deviance = max(float(deviance), 0.0)
    return Fault(name, deviance - 1, float(chdtrc(1, deviance)), value, error)


@dataclass(frozen=True, eq=False)
class _Shape:
    """The components of residuals of a logistic fit."""

    fault: Fault
    fitted: FloatArray  # the fitted probabilities q
    # Level, spread and the directions of shape, orthonormal in the information; (cells, all).
    basis: FloatArray
    z: FloatArray  # the components of shape

    @classmethod
    def of(
        cls, cells: Cells, design: FloatArray, fitted: FloatArray, true: FloatArray, effect: float
    ) -> _Shape:
        """Return the components, as many as rows and cells allow."""
        information = cells.weight * fitted * (1 - fitted)
        total, n_linear = float(information.sum()), design.shape[1]
        most = min(len(fitted) - n_linear, float(cells.rows.sum()) / _ROWS_PER_COMPONENT)
        n = max(min(_COMPONENTS, int(most)), 0)
        u = (np.cumsum(information) - information / 2) / total
        waves = np.cos(np.pi * np.arange(1, n + 1) * u[:, None])
        root = np.sqrt(information)[:, None]
        basis, sizes = np.linalg.qr(np.column_stack((design, waves)) * root)
        kept = np.square(np.diag(sizes)) > _SMALLEST_VARIANCE * total
        # Cells without information, of fitted probabilities of 0 or 1 are left out.
        basis = np.divide(basis, root, out=np.zeros_like(basis), where=root > 0)[:, kept]
        z = basis[:, n_linear:].T @ (true - cells.weight * fitted) / math.sqrt(effect)
        return cls(_adaptive_neyman(z), fitted, basis, z)

    def brier_gain(
        self, cells: Cells, true: FloatArray, effect: float, *, with_shape: bool
    ) -> float:
        """Return how much the recalibrated Brier score is lower, less what it owes to fitting."""
        p, w, variance = cells.score, cells.weight, self.fitted * (1 - self.fitted)
        n_linear = self.basis.shape[1] - len(self.z)
        k = int(self.fault.value) if with_shape else 0
        basis = self.basis[:, : n_linear + k]
        step = basis[:, n_linear:] @ self.z[:k] * math.sqrt(effect)
        better = np.clip(self.fitted + variance * step, 0.0, 1.0)
        observed = float(w @ (p * p - better * better) - 2 * true @ (p - better))
        optimism = 2 * effect * float(w * variance**2 @ np.square(basis).sum(axis=1))
        return (observed - optimism) / cells.total


def _adaptive_neyman(z: FloatArray) -> Fault:
    """Return the shape that standard normal components show, and its P-value."""
    if not len(z):
        return Fault("shape", 0.0, 1.0, 0)
    sums = np.cumsum(z * z - 1)
    scaled = sums / np.sqrt(2 * np.arange(1, len(z) + 1))
    k = int(scaled.argmax())
    p_value = rank_p_value(_neyman_null(len(z)), float(scaled[k]), 0.0)
    return Fault("shape", float(sums[k]), p_value, k + 1)


@lru_cache
def _neyman_null(n: int) -> FloatArray:
    """Return simulated maxima of standardised sums of squares of n standard normal components."""
    z = np.random.default_rng(0).standard_normal((_NULL_RESAMPLES, n))
    sums = np.cumsum(z * z - 1, axis=1)
    return np.asarray((sums / np.sqrt(2 * np.arange(1, n + 1))).max(axis=1))
