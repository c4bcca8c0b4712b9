"""The truth as the paper takes it, two million outcomes in 2000 bins, and how biased it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant.arrays import FloatArray
from calibrant.papers._score_distributions import (
    SETTINGS,
    PoolProblem,
    ScoreDistribution,
    best_truth,
    truth_of,
)

N_BINS = 2000
N_POINTS = 2_000_000
_CHUNK = 200_000
_N_CELLS = 50_000


@dataclass(frozen=True)
class Bias:
    """Truths of one score distribution.

    Attributes
    ----------
    means, n_classes, n_features, mixture, training, model, setting
        The score distribution and the error.
    points
        How many points.
    published
        The paper's truth: hard outcomes, 2000 bins.
    soft
        The same with chances for outcomes.
    low, high
        What the error of the points lies between when noise is allowed for.
    pool
        The truth that the study takes, from its pool.
    """

    means: str
    n_classes: int
    n_features: int
    mixture: int
    training: int
    model: str
    setting: str
    points: int
    published: float
    soft: float
    low: float
    high: float
    pool: float


@dataclass(eq=False)
class _Tally:
    """Sketches of one problem: of outcomes, and of chances in two halves."""

    hard: cb.Sketch = field(default_factory=lambda: cb.Sketch(_N_CELLS))
    first: cb.Sketch = field(default_factory=lambda: cb.Sketch(_N_CELLS))
    second: cb.Sketch = field(default_factory=lambda: cb.Sketch(_N_CELLS))

    def update(self, problem: PoolProblem) -> None:
        self.hard.update(problem.outcome, problem.p)
        self.first.update(problem.chance[::2], problem.p[::2])
        self.second.update(problem.chance[1::2], problem.p[1::2])

    def truths(self) -> tuple[float, float, float, float]:
        """Return the published and the soft truth, and the ends of ours."""
        soft = self.first + self.second
        ours = best_truth(*(_residuals(half) / soft.n for half in (self.first, self.second)))
        hard, chance = (cb.ece(sketch, n_bins=N_BINS) for sketch in (self.hard, soft))
        return hard, chance, ours.low, ours.high


def _residuals(sketch: cb.Sketch) -> FloatArray:
    """Return the sum of residuals in each of the bins."""
    table = cb.bin_table(sketch, n_bins=N_BINS)
    return np.nan_to_num(table.gap) * table.weight


def truths(
    means: str,
    n_classes: int,
    n_features: int,
    mixture: int,
    training: int,
    model: str,
    *,
    n: int = N_POINTS,
) -> Iterator[Bias]:
    """Measure the truth of one score distribution on n points."""
    cell = (means, n_classes, n_features, mixture, training, model)
    scored = ScoreDistribution.of(*cell)
    tallies = {"confidence": [_Tally()], "classwise": [_Tally() for _ in range(n_classes)]}
    pool: dict[str, float] = {}
    for _ in range(n // _CHUNK):
        chunk = scored.pool(_CHUNK)
        for setting in SETTINGS:
            problems = chunk.problems(setting)
            for tally, problem in zip(tallies[setting], problems, strict=True):
                tally.update(problem)
            if setting not in pool:
                pool[setting] = float(np.mean([truth_of(problem).value for problem in problems]))
    for setting in SETTINGS:
        found = np.mean([tally.truths() for tally in tallies[setting]], axis=0)
        yield Bias(*cell, setting, n, *(*found.tolist(), pool[setting]))
