"""Differences between the errors of two models on the same rows.

As in :mod:`calibrant.inference.intervals`, an error is a norm N of an image h = h0 + e, the
population's image and noise. Rows make the noise of both models together: it is drawn by
multipliers, z_i of variance 1 for each row (or cluster) i, the same for all models, times what the
row adds to their images. Seen is D = N(h_a) - N(h_b), wanted delta = N(h_a0) - N(h_b0), and

    D - delta = x_a(h_a0) - x_b(h_b0),   x(g) = N(g + e) - N(g): what noise adds to an error.

What it adds depends on the population: most where that is calibrated, nothing on average where its
image stands clear of the noise. Drawing rows again, around h_a and h_b as they were seen, gets this
wrong, and says of equally good models that they differ in 10 to 16% of samples, not 5%. Here the
lower end of the interval for delta asks how large D may be by chance in a population that speaks
against a being worse than b. Three things do.

Luck may have made a look worse, or b better. Noise is taken to have raised a's error by AGAINST of
its standard deviations, or lowered b's by as much, whichever speaks more against: with s the linear
function that attains the norm of a's image, images are moved back by

    AGAINST cov(e, <s, e_a>) / sd <s, e_a>,

b's along with a's, through the rows they share; and likewise for b. This matters where the two err
in opposite ways, so that what makes one look worse makes the other look better, and where what was
clear of noise no longer is. For tails of less than 2.3%, whose normal quantile is beyond AGAINST,
that takes its place.

a may be calibrated wherever it does not clearly err: g has the least norm among images within
KAPPA standard deviations of a's (the same KAPPA as for a single error). Noise adds most to it.

b is what it seems, after moving; on average its image lies further from 0 than the population's,
which makes noise add less to it.

With u_a, u_b the images after moving, and g that of u_a, low = D - Q_{1-tail}[x_a(g) - x_b(u_b)].
Where both images stand clear of the noise, this is the interval of the paired, linear part of the
noise alone. The P-value is the least tail for which low is above 0.

At last, a is not worse than b unless a is refuted as perfectly calibrated, at the same tail: errors
are at least 0, so delta > 0 says that a's is not 0. Whatever else is approximate, of two perfectly
calibrated models neither is called worse more often than with probability `tail`.

smECE moves by no more than its norm at a fixed scale does: N_s falls with s, so that
abs(T - theta) <= abs(N_s(h) - N_s(h0)) at the larger of the two scales.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._base import FloatArray
from calibrant.data.classes import ClassTable, check_is_one, read_table, reduce_table
from calibrant.data.problem import Index, Problem
from calibrant.data.validation import Generator
from calibrant.inference.estimate import Estimate
from calibrant.inference.intervals import KAPPA, View
from calibrant.measures.registry import RowLosses, shifted_norms
from calibrant.numerics.probability import monotone_root, rank_p_value, weibull_quantile

# Larger is safer for models that err in opposite ways, and less powerful for all others. Measured,
# of a nominal 5%: see tests/null/test_compare_size.py.
_AGAINST = 2.0
# Numbers in all draws of one model, and how many draws are made however many cells there are.
_NUMBERS, _FEWEST_DRAWS = 1 << 23, 300
# Errors that are equal in exact arithmetic may differ by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Difference:
    """What may be said of the difference between two errors.

    Attributes
    ----------
    low, high
        The interval for the population's difference.
    p_more, p_less
        Chance of a difference at least as large, or at least as small, if the population's is 0.
    """

    low: float
    high: float
    p_more: float
    p_less: float

    @property
    def p_value(self) -> float:
        """The two-sided P-value."""
        return min(1.0, 2 * min(self.p_more, self.p_less))


@dataclass(frozen=True, eq=False)
class NoisyError:
    """The error of one model, and its noise, drawn together with that of others.

    Attributes
    ----------
    view
        The error as a norm.
    images
        Images of the noise, one row a draw; the rows of all models belong together.
    calibrated
        Simulated errors of perfectly calibrated predictions.
    """

    view: View
    images: FloatArray
    calibrated: FloatArray

    @cached_property
    def p_calibrated(self) -> float:
        """The P-value of perfect calibration."""
        return rank_p_value(self.calibrated, self.view.value, _ROUNDING * self.view.value)

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation at each coordinate of the image."""
        return np.asarray(self.images.std(axis=0))

    @cached_property
    def luck(self) -> FloatArray:
        """The linear part of what noise adds to the error, with variance 1 (or 0)."""
        linear = self.images @ self.view.image.norm.slope(self.view.observed)
        sd = float(linear.std())
        return np.asarray(linear / sd if sd > 0 else linear)

    def without(self, luck: FloatArray) -> FloatArray:
        """Return the image as it was before luck, of some model, made it what it is."""
        return self.view.observed - (luck @ self.images) / len(self.images)

    def added_to(self, image: FloatArray) -> FloatArray:
        """Return what noise adds to the error of a population with this image."""
        norm = self.view.image.norm
        return shifted_norms(norm, self.images, image) - norm.of(image)


def drawn_together(
    views: Sequence[View], n_draws: int, rng: Generator, *, clustered: bool, needed: int = 0
) -> list[NoisyError]:
    """Draw the noise of several models on the same rows, however many cells `needed` times.

    The cells of each view know how the same clusters (or single rows) move them.
    """
    affordable = _NUMBERS // max(view.size for view in views)
    n_draws = min(n_draws, max(affordable, _FEWEST_DRAWS, needed))
    seed = int(rng.integers(1 << 62))
    models = []
    for view in views:
        # The same seed makes the same multipliers, and so the noise of the same rows.
        images = view.of_noise(view.cells.noise(n_draws, np.random.default_rng(seed)))
        alone = view.cells if clustered else replace(view.cells, moves=None, n_clusters=0)
        calibrated = view.of_noise(alone.calibrated_noise(n_draws, rng))
        norms = shifted_norms(view.image.norm, calibrated, view.offset)
        models.append(NoisyError(view, images, norms))
    return models


def difference(a: NoisyError, b: NoisyError, level: float) -> Difference:
    """Return what may be said of a's error minus b's."""
    tail = (1 - level) / 2
    low, high = _least(a, b, tail), -_least(b, a, tail)
    return Difference(max(low, -1.0), min(high, 1.0), _p_more(a, b), _p_more(b, a))


def _least(a: NoisyError, b: NoisyError, tail: float) -> float:
    """Return the least that a's error minus b's may be."""
    most = max(weibull_quantile(drawn, 1 - tail) for drawn in _by_chance(a, b, tail))
    low = a.view.value - b.view.value - most
    return low if a.p_calibrated <= tail else min(low, 0.0)


def _p_more(a: NoisyError, b: NoisyError) -> float:
    """Return the P-value of a's error being no more than b's."""
    seen, usual = a.view.value - b.view.value, float(ndtr(-_AGAINST))
    rounding = _ROUNDING * abs(seen)

    def spare(tail: float) -> float:
        p_values = (rank_p_value(drawn, seen, rounding) for drawn in _by_chance(a, b, tail))
        return tail - max(p_values)

    p = usual - spare(usual)
    if p < usual:
        p = monotone_root(spare, p, usual, 0.05 / len(a.images))
    return max(p, a.p_calibrated)


def _by_chance(a: NoisyError, b: NoisyError, tail: float) -> Iterator[FloatArray]:
    """Yield by how much chance may have raised a's error minus b's, drawn many times.

    Once in the population where a was unlucky, once in that where b was lucky.
    """
    against = max(_AGAINST, float(-ndtri(tail)))
    for luck in (against * a.luck, -against * b.luck):
        best = a.view.image.norm.least(a.without(luck), KAPPA * a.spread)
        yield a.added_to(best) - b.added_to(b.without(luck))


# Differences between the proper scores of models on the same rows.
#
# A mean score is a mean of losses, one a row, and so is a difference of two: its interval is that of
# a mean, from the t-distribution. Where all but a few rows have the same outcome, the losses seen say
# too little of the other: with none of them seen, losses may not vary at all. The variance is then at
# least what outcomes drawn from the predictions would make it; for a difference, from the mean of
# both models' predictions.

# A chance that is smaller than any double is still not 0.
_SMALLEST = sys.float_info.min
# With fewer rows of any but the most common outcome, what was seen of them is not enough.
_FEW_EVENTS = 15


@dataclass(frozen=True, eq=False)
class Losses:
    """What rows cost a model.

    Attributes
    ----------
    seen
        The loss of each row.
    if_outcome
        What it would be for each outcome, one column an outcome.
    chance
        The model's own probability of each outcome.
    w
        The weights.
    is_rare
        Whether nearly all rows have the same outcome.
    """

    seen: FloatArray
    if_outcome: FloatArray
    chance: FloatArray
    w: FloatArray
    is_rare: bool

    def minus(self, other: Losses) -> Losses:
        """Return how much more rows cost this model than another."""
        with np.errstate(invalid="ignore"):
            if_outcome = self.if_outcome - other.if_outcome
        chance = (self.chance + other.chance) / 2
        return Losses(self.seen - other.seen, if_outcome, chance, self.w, self.is_rare)

    def mean(self) -> float:
        """Return the weighted mean loss."""
        return float(np.dot(self.w, self.seen) / self.w.sum())

    def least_variance(self) -> float:
        """Return the variance of the total loss if outcomes are drawn from the chances.

        Losses without limit, of outcomes that some model excludes, are left out.
        """
        loss = np.where(np.isfinite(self.if_outcome), self.if_outcome, 0.0)
        expected = np.sum(self.chance * loss, axis=1, keepdims=True)
        away = (loss - expected) ** 2 * np.isfinite(self.if_outcome)
        return float(np.dot(self.w**2, np.sum(self.chance * away, axis=1)))


@dataclass(frozen=True)
class MeanLoss:
    """A mean loss, or a difference of two, and what is known of its population.

    Attributes
    ----------
    mean, error
        The mean and its standard error.
    freedom
        Degrees of freedom: one less than there are rows or clusters.
    """

    mean: float
    error: float
    freedom: int

    @classmethod
    def of(cls, losses: Losses, cluster: Index | None) -> MeanLoss:
        """Return the mean of losses whose rows are independent, or clusters of them are."""
        mean, total = losses.mean(), float(losses.w.sum())
        away = losses.w * (losses.seen - mean)
        if cluster is not None:
            away = np.bincount(cluster, away).astype(np.float64)
        n = len(away)
        variance = float(np.dot(away, away)) * n / (n - 1)
        if losses.is_rare:
            variance = max(variance, losses.least_variance())
        return cls(mean, math.sqrt(variance) / total, n - 1)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval for the population's mean."""
        from scipy.special import stdtrit

        reach = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error
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
        """Return what may be said of a difference."""
        from scipy.special import stdtr

        low, high = self.interval(level)
        if self.error == 0:
            # Equal in every row, or certain to differ.
            p_more, p_less = (1.0 if sign * self.mean <= 0 else _SMALLEST for sign in (1, -1))
        else:
            t = self.mean / self.error
            p_more, p_less = (max(float(stdtr(self.freedom, s * t)), _SMALLEST) for s in (-1, 1))
        return Difference(low, high, p_more, p_less)


def read_losses(
    row_losses: RowLosses,
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Losses:
    """Read the input of one model and return what its rows cost."""
    check_is_one(multiclass)
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    if isinstance(table, ClassTable) and multiclass is None:
        parts = [np.concatenate(part) for part in zip(*table.blocks(), strict=True)]
        chance, outcome, w = parts
        is_soft = table.is_soft
    else:
        problem: Problem = next(reduce_table(table, multiclass, labels).problems())
        p, y, w = problem.rows.columns()
        chance, outcome = np.stack((1 - p, p), axis=1), np.stack((1 - y, y), axis=1)
        is_soft = problem.is_soft
    seen, if_outcome = row_losses(chance, outcome)
    # Soft outcomes are not drawn: what was seen is all there is.
    few = not is_soft and len(w) - outcome.sum(axis=0).max() < _FEW_EVENTS
    return Losses(seen, if_outcome, chance, w, bool(few))
