"""The cumulative walk: deviations summed over increasing scores, one step a distinct score.

With C_k = (1/W) sum over rows of score at most s_k of w (y - p), and C_0 = 0:

=========  =======================  ====================================================
ECCE-MAD   max_k abs(C_k)           the largest deviation of the walk from 0
ECCE-R     max_k C_k - min_k C_k    the largest total deviation over any interval of scores
sigma_n    sqrt(sum w^2 p(1-p))/W   standard deviation of C_n under perfect calibration
=========  =======================  ====================================================

Tied scores make one step, so the order of rows does not matter: to the last bit, unless there are
so many that those which decide nothing are summed as they come (`decisive_walk`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.errors import CalibrantError
from calibrant.problem import Atoms, Problem


class Statistic(Enum):
    """How far a walk strays, from its highest and lowest points (which include its start, 0)."""

    MAX = "max"
    RANGE = "range"

    def of(self, high: FloatArray, low: FloatArray) -> FloatArray:
        """Return the statistic of each walk."""
        # Adding 0.0 turns -0.0 into 0.0.
        return (np.maximum(high, -low) if self is Statistic.MAX else high - low) + 0.0


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk over increasing scores.

    Attributes
    ----------
    score
        The distinct scores, one a step.
    weight
        The weight that each step speaks for.
    step
        The summed deviation of each step; the walk itself is divided by the total weight.
    sigma
        Standard deviation of the walk's end under the null hypothesis; nan where unknown.
    """

    score: FloatArray
    weight: FloatArray
    step: FloatArray
    sigma: float

    @property
    def total(self) -> float:
        """The total weight that the walk is divided by."""
        return float(self.weight.sum())

    @property
    def fraction(self) -> FloatArray:
        """The share of the weight passed, from 0 to 1."""
        passed = np.concatenate(([0.0], np.cumsum(self.weight)))
        return np.asarray(passed / passed[-1])

    @property
    def deviation(self) -> FloatArray:
        """Where the walk stands, from its start at 0."""
        return np.concatenate(([0.0], np.cumsum(self.step))) / self.total

    def reach(self, statistic: Statistic) -> float:
        """Return how far the walk strays."""
        return _reach(self.step, self.total, statistic)


def calibration_walk(problem: Problem) -> Walk:
    """Return the walk of outcomes minus predictions."""
    return _walk(problem, problem.steps)


def decisive_walk(problem: Problem) -> Walk:
    """Return a walk that strays as far and has the same noise, with fewer steps if many rows."""
    return _walk(problem, problem.decisive_steps())


def _walk(problem: Problem, steps: Atoms) -> Walk:
    sigma = np.nan if problem.is_soft else _sigma(steps)
    return Walk(steps.score, steps.weight, steps.residual, sigma)


def known_sigma(walk: Walk, purpose: str) -> float:
    """Return a walk's sigma, refusing walks without noise to compare with."""
    if np.isnan(walk.sigma):
        raise CalibrantError(
            "must be 0 or 1 for {purpose}, as the noise of soft labels is unknown",
            argument="y_true",
            found="soft labels",
            purpose=purpose,
        )
    if walk.sigma == 0:
        raise CalibrantError(
            "must hold a prediction strictly between 0 and 1 for {purpose}: without any there is "
            "no noise",
            argument="y_prob",
            purpose=purpose,
        )
    return walk.sigma


def _sigma(steps: Atoms) -> float:
    noise = steps.weight_squared * steps.score * (1 - steps.score)
    return float(np.sqrt(noise.sum()) / steps.weight.sum())


def _reach(step: FloatArray, total: float, statistic: Statistic) -> float:
    position = np.cumsum(step)
    high, low = position.max().clip(min=0), position.min().clip(max=0)
    return float(statistic.of(high, low) / total)
