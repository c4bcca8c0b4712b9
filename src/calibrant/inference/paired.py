"""Differences between two models on the same rows: of calibration errors, and of mean scores.

Calibration errors. As in :mod:`calibrant.inference.intervals`, an error is a norm N of an image
h = h0 + e, the population's image and noise. Noise is simulated by multipliers, z_i of variance 1
for each row (or cluster) i, the same for all models, times the contribution of the row to their
images. Observed is D = N(h_a) - N(h_b), the target is delta = N(h_a0) - N(h_b0), and

    D - delta = x_a(h_a0) - x_b(h_b0),   x(g) = N(g + e) - N(g): what noise adds to an error.

What noise adds depends on the population: most where that is calibrated, nothing on average where
its image is far from 0. A bootstrap around h_a and h_b as observed ignores this, and rejects equal
errors in 10 to 16% of samples at a nominal 5%. Here the lower end of the interval for delta is that
of a least favourable population, in three steps.

1. Noise is taken to have raised a's error by AGAINST of its standard deviations, or lowered b's by
   as much, whichever is less favourable: with s the linear function that attains the norm of a's
   image, images are moved back by AGAINST cov(e, <s, e_a>) / sd <s, e_a>, b's along with a's, as
   they have rows in common; and likewise for b. This matters where the two models err in opposite
   directions. Tails of less than 2.3% have a normal quantile beyond AGAINST, which is used instead.
2. a is calibrated wherever it does not clearly err: g has the minimum norm among images within
   KAPPA standard deviations of a's. Noise adds most to it.
3. b's image is as observed, after moving; on average it lies further from 0 than the population's,
   which makes noise add less to it.

With u_a, u_b the images after moving, and g that of u_a, low = D - Q_{1-tail}[x_a(g) - x_b(u_b)].
Where both images are far from 0 this is the interval of the paired, linear part of the noise alone.
The P-value is the smallest tail for which low is above 0.

Finally a is not worse than b unless perfect calibration of a is rejected at the same tail: errors
are at least 0, so delta > 0 implies that a's is not 0. Whatever else is approximate, of two
perfectly calibrated models neither is called worse with probability above `tail`.

smECE changes by no more than its norm at a fixed scale does: N_s decreases with s, so that
abs(T - theta) <= abs(N_s(h) - N_s(h0)) at the larger s of T and theta. That is T where noise raised
the error, as it is assumed to have done to a's. Where it lowered b's it is theta, here the norm of
b's image after moving: at the scale observed, which is finer, noise would seem to add more to b's
error than it did, and equal errors in opposite directions were told apart in 8% of samples.

Means over pairs. The squared kernel error is a mean over pairs of rows (or clusters), and so is a
difference of two: its standard error is that of the jackknife, leaving out one row after the other.
Under perfect calibration of both models the mean is that of a degenerate U-statistic, for which the
jackknife errs on the safe side; and a model is not worse than another unless the joint test rejects
perfect calibration of it.

Mean scores. A mean score is a mean of losses, one per row, and so is a difference of two: its
interval is that of a mean, from the t-distribution. Where all but a few rows have the same outcome
the observed losses say too little of the other: if none was observed, losses may not vary at all.
The variance is then at least that of outcomes drawn from the predictions; for a difference, from
the mean of both models' predictions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from calibrant._base import FloatArray
from calibrant.data.classes import ClassTable, check_is_one, read_table, reduce_table
from calibrant.data.problem import Index
from calibrant.data.validation import Generator
from calibrant.inference.estimate import Estimate
from calibrant.inference.intervals import View
from calibrant.measures.norms import shifted_norms
from calibrant.measures.registry import RowLosses
from calibrant.numerics.probability import SMALLEST, monotone_root, rank_p_value, weibull_quantile

KAPPA = 1.25
# A larger one is safer for models that err in opposite directions, less powerful for all others.
# Measured, of a nominal 5%: see tests/null/test_compare_size.py.
_AGAINST = 2.0
# Numbers in all resamples of one model, and the minimum number of resamples whatever their size.
_MAX_NUMBERS, _MIN_RESAMPLES = 1 << 23, 300
# Errors that are equal in exact arithmetic may differ by rounding.
_ROUNDING = 1e-9
# With fewer rows of any but the most common outcome, their observed losses are not enough.
_FEW_EVENTS = 15


@dataclass(frozen=True)
class Difference:
    """The interval for a difference, and its one-sided P-values.

    `p_greater` and `p_less` are the probabilities of a difference at least as large, and at least
    as small, if the population's is 0.
    """

    low: float
    high: float
    p_greater: float
    p_less: float

    def gated(self, p_a: float, p_b: float, level: float) -> Difference:
        """Return the difference if a model is worse only where its calibration is rejected.

        `p_a` and `p_b` are the P-values of perfect calibration of the two models.
        """
        return Difference(
            low=self.low if p_a <= 1 - level else min(self.low, 0.0),
            high=self.high if p_b <= 1 - level else max(self.high, 0.0),
            # Two-sided P-values are twice these.
            p_greater=max(self.p_greater, p_a / 2),
            p_less=max(self.p_less, p_b / 2),
        )

    @property
    def p_value(self) -> float:
        """The two-sided P-value."""
        return min(1.0, 2 * min(self.p_greater, self.p_less))


@dataclass(frozen=True, eq=False)
class NoisyError:
    """The error of one model with noise simulated together with that of other models."""

    view: View  # the error as a norm
    # Noise of the residual totals, one row per resample; the same resamples for all models.
    totals: FloatArray
    calibrated: FloatArray  # simulated errors of perfectly calibrated predictions

    @property
    def value(self) -> float:
        """The error: the norm, or a power of it."""
        return self.view.value**self.view.image.power

    @cached_property
    def p_calibrated(self) -> float:
        """The P-value of perfect calibration."""
        return rank_p_value(self.calibrated, self.view.value, _ROUNDING * self.view.value)

    @cached_property
    def images(self) -> FloatArray:
        """The images of the noise."""
        return self.view.of_noise(self.totals)

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation at each coordinate of the image."""
        return np.asarray(self.images.std(axis=0))

    @cached_property
    def linear_noise(self) -> FloatArray:
        """The linear part of what noise adds to the error, with variance 1 (or 0)."""
        linear = self.images @ self.view.image.norm.slope(self.view.observed)
        sd = float(linear.std())
        return np.asarray(linear / sd if sd > 0 else linear)

    def moved_back(self, noise: FloatArray) -> FloatArray:
        """Return the image without its regression on the linear noise of some model."""
        return self.view.observed - (noise @ self.images) / len(self.images)

    def at_scale_of(self, image: FloatArray) -> NoisyError:
        """Return the error at the scale that is the norm of an image, if that is the larger one."""
        scale = float(self.view.image.norm.of(image))
        if self.view.image.at_scale is None or scale <= self.view.value:
            return self
        return replace(self, view=self.view.at_scale(scale))

    def added_by_noise(self, image: FloatArray) -> FloatArray:
        """Return what noise adds to the error of a population with this image."""
        norm, power = self.view.image.norm, self.view.image.power
        return shifted_norms(norm, self.images, image) ** power - norm.of(image) ** power


def joint_noise(
    views: Sequence[View], n_resamples: int, rng: Generator, *, clustered: bool, needed: int = 0
) -> list[NoisyError]:
    """Simulate the noise of several models on the same rows, at least `needed` times.

    The cells of each view know how the same clusters (or single rows) move them.
    """
    affordable = _MAX_NUMBERS // max(view.size for view in views)
    n_resamples = min(n_resamples, max(affordable, _MIN_RESAMPLES, needed))
    seed = int(rng.integers(1 << 62))
    models = []
    for view in views:
        # The same seed makes the same multipliers, and so the noise of the same rows.
        totals = view.cells.noise(n_resamples, np.random.default_rng(seed))
        cells = view.cells if clustered else replace(view.cells, moves=None, n_clusters=0)
        calibrated = view.of_noise(cells.calibrated_noise(n_resamples, rng))
        norms = shifted_norms(view.image.norm, calibrated, view.offset)
        models.append(NoisyError(view, totals, norms))
    return models


def difference(a: NoisyError, b: NoisyError, level: float) -> Difference:
    """Return the interval and the P-values of a's error minus b's."""
    tail = (1 - level) / 2
    low, high = _lower_end(a, b, tail), -_lower_end(b, a, tail)
    return Difference(max(low, -1.0), min(high, 1.0), _p_greater(a, b), _p_greater(b, a))


def _lower_end(a: NoisyError, b: NoisyError, tail: float) -> float:
    """Return the lower end of the interval for a's error minus b's."""
    noise = max(weibull_quantile(one, 1 - tail) for one in _least_favourable(a, b, tail))
    low = a.value - b.value - noise
    return low if a.p_calibrated <= tail else min(low, 0.0)


def _p_greater(a: NoisyError, b: NoisyError) -> float:
    """Return the P-value of the hypothesis that a's error is at most b's."""
    observed, usual = a.value - b.value, float(ndtr(-_AGAINST))
    rounding = _ROUNDING * abs(observed)

    def excess(tail: float) -> float:
        noise = _least_favourable(a, b, tail)
        return tail - max(rank_p_value(one, observed, rounding) for one in noise)

    p = usual - excess(usual)
    if p < usual:
        p = monotone_root(excess, p, usual, 0.05 / len(a.totals))
    return max(p, a.p_calibrated)


def _least_favourable(a: NoisyError, b: NoisyError, tail: float) -> Iterator[FloatArray]:
    """Yield what noise adds to a's error minus b's: where it raised a's, where it lowered b's."""
    against = max(_AGAINST, float(-ndtri(tail)))
    for noise in (against * a.linear_noise, -against * b.linear_noise):
        best = a.view.image.norm.least(a.moved_back(noise), KAPPA * a.spread)
        wide = b.at_scale_of(b.moved_back(noise))
        yield a.added_by_noise(best) - wide.added_by_noise(wide.moved_back(noise))


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses of a model's rows."""

    observed: FloatArray  # the loss of each row
    by_outcome: FloatArray  # what it would be for each outcome, one column per outcome
    probability: FloatArray  # the model's probability of each outcome
    w: FloatArray  # the weights
    is_rare: bool  # whether nearly all rows have the same outcome

    def minus(self, other: Losses) -> Losses:
        """Return the differences of losses, with the mean of both models' probabilities."""
        with np.errstate(invalid="ignore"):
            by_outcome = self.by_outcome - other.by_outcome
        probability = (self.probability + other.probability) / 2
        observed = self.observed - other.observed
        return Losses(observed, by_outcome, probability, self.w, self.is_rare)

    def predicted_variance(self) -> float:
        """Return the variance of the total loss for outcomes drawn from the probabilities.

        Infinite losses, of outcomes that some model excludes, are left out.
        """
        finite = np.isfinite(self.by_outcome)
        loss = np.where(finite, self.by_outcome, 0.0)
        expected = np.sum(self.probability * loss, axis=1, keepdims=True)
        squared = (loss - expected) ** 2 * finite
        return float(np.dot(self.w**2, np.sum(self.probability * squared, axis=1)))


@dataclass(frozen=True)
class MeanLoss:
    """A mean loss, or a difference of two, with its standard error and degrees of freedom."""

    mean: float
    standard_error: float
    dof: float

    @classmethod
    def of(cls, losses: Losses, cluster: Index | None) -> MeanLoss:
        """Return the mean of losses of independent rows, or of independent clusters of rows.

        A row draws the mean towards itself, which hides a fraction of its variance as large as its
        fraction of the weight. There are as many degrees of freedom as for equal weights with the
        same sum of squares.
        """
        w, total = losses.w, float(losses.w.sum())
        mean = float(np.dot(w, losses.observed)) / total
        deviation, fraction = w * (losses.observed - mean), w / total
        if cluster is not None:
            deviation = np.bincount(cluster, deviation).astype(np.float64)
            fraction = np.bincount(cluster, fraction).astype(np.float64)
        shown = np.maximum(1 - fraction, np.finfo(float).eps)
        variance = float(np.square(deviation) @ (1 / shown))
        if losses.is_rare:
            variance = max(variance, losses.predicted_variance())
        dof = max(1 / float(fraction @ fraction) - 1, 1.0)
        return cls(mean, math.sqrt(variance) / total, dof)

    @classmethod
    def of_pairs(cls, row_sums: FloatArray, w: FloatArray, cluster: Index) -> MeanLoss:
        """Return a mean over pairs of rows of different clusters, by the jackknife.

        `row_sums` are the sums over the partners of each row, or differences of two such sums.
        """
        sums = np.bincount(cluster, row_sums).astype(np.float64)
        weight = np.bincount(cluster, w).astype(np.float64)
        total, n = float(weight.sum()), len(sums)
        pairs = total * total - float(weight @ weight)
        # Each pair is counted from both of its rows.
        without = (sums.sum() - 2 * sums) / (pairs - 2 * weight * (total - weight))
        spread = float(np.square(without - without.mean()).sum())
        return cls(float(sums.sum()) / pairs, math.sqrt((n - 1) / n * spread), n - 1)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the t-interval for the population's mean."""
        reach = float(stdtrit(self.dof, (1 + level) / 2)) * self.standard_error
        return self.mean - reach, self.mean + reach

    def estimate(self, measure: str, level: float, n: int) -> Estimate:
        """Return the mean as an estimate of a score."""
        low, high = self.interval(level)
        return Estimate(
            value=self.mean,
            bias_corrected=self.mean,
            low=max(low, 0.0),
            high=high,
            level=level,
            n=n,
            error_bound=0.0,
            measure=measure,
            method="t",
        )

    def difference(self, level: float) -> Difference:
        """Return the interval and the P-values of a difference."""
        if self.standard_error == 0:
            # Equal in every row, or certain to differ.
            p_values = (1.0 if sign * self.mean <= 0 else SMALLEST for sign in (1, -1))
        else:
            t = self.mean / self.standard_error
            p_values = (max(float(stdtr(self.dof, sign * t)), SMALLEST) for sign in (-1, 1))
        return Difference(*self.interval(level), *p_values)


def read_losses(
    row_losses: RowLosses,
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Losses:
    """Read the rows of one model and return their losses."""
    check_is_one(multiclass, labels)
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    if isinstance(table, ClassTable) and multiclass is None:
        columns = [np.concatenate(part) for part in zip(*table.blocks(), strict=True)]
        probability, outcome, w = columns
        is_soft = table.is_soft
    else:
        problem = next(reduce_table(table, multiclass).problems())
        p, y, w = problem.rows.columns()
        probability, outcome = np.stack((1 - p, p), axis=1), np.stack((1 - y, y), axis=1)
        is_soft = problem.is_soft
    observed, by_outcome = row_losses(probability, outcome)
    # Soft outcomes have no distribution but the observed one.
    few = not is_soft and len(w) - outcome.sum(axis=0).max() < _FEW_EVENTS
    return Losses(observed, by_outcome, probability, w, bool(few))
