"""A trial of methods on held-out rows: which of them lower a proper score beyond noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import xlog1py, xlogy

from calibrant.arrays import AnyArray, FloatArray
from calibrant.class_table import ClassTable
from calibrant.errors import CalibrantError
from calibrant.problem import Index
from calibrant.randomness import Generator
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.chance import joint_tails
from calibrant.recalibration.folds import Table, columns, held_out, n_rows, with_predictions
from calibrant.results.result import Result

Score = Literal["brier", "log"]


@dataclass(frozen=True)
class Candidate(Result):
    """How a method did on held-out rows.

    Attributes
    ----------
    method
        Its name.
    score
        Its mean score; less is better.
    improvement
        How much less that is than the score of the probabilities as given.
    standard_error
        Of the improvement.
    p_value
        One-sided, allowing for the number of methods tried; never 0.
    """

    method: str
    score: float
    improvement: float
    standard_error: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows divided into parts, and the score that is to decide.

    Attributes
    ----------
    table
        The rows with their probabilities as given.
    weight
        The weight of each row, or None.
    part
        The part that each row belongs to.
    score
        The proper score.
    """

    table: Table
    weight: AnyArray | None
    part: Index
    score: Score

    @cached_property
    def share(self) -> FloatArray:
        """The weight of each row as a share of all."""
        w = np.ones(n_rows(self.table)) if self.weight is None else self.weight
        return np.asarray(w / w.sum(dtype=np.float64), dtype=np.float64)

    @cached_property
    def before(self) -> FloatArray:
        """The score of every row as given; refused where it is infinite."""
        before = self._losses(self.table)
        infinite = np.isinf(before)
        if infinite.any():
            raise CalibrantError(
                "must not be 0 for an outcome that happened, which makes the log score infinite",
                argument="y_prob",
                value=0.0,
                position=int(np.argmax(infinite)),
                count=int(infinite.sum()),
                hint="use {score}='brier'",
            )
        return before

    def mended(self, calibrator: Calibrator) -> FloatArray:
        """Return every row as mended by the rows of the other parts."""
        return held_out(calibrator, self.table, self.weight, self.part)

    def candidates(self, mended: Mapping[str, FloatArray], rng: Generator) -> list[Candidate]:
        """Return how every method did."""
        after = np.stack([self._losses(with_predictions(self.table, q)) for q in mended.values()])
        score = after @ self.share
        # What has an infinite score is out, whatever noise there is.
        gain = np.where(np.isinf(score)[:, None], 0.0, self.before - after)
        mean = gain @ self.share
        n = int(np.count_nonzero(self.share))
        scatter = self.share * (gain - mean[:, None]) * np.sqrt(n / max(n - 1, 1))
        covariance = scatter @ scatter.T
        error = np.sqrt(
            [
                max(v, self._noise(q))
                for v, q in zip(covariance.diagonal(), mended.values(), strict=True)
            ]
        )
        p_value = joint_tails(mean, error, covariance, n, rng)
        improvement = np.where(np.isinf(score), -np.inf, mean)
        rows = zip(mended, *(v.tolist() for v in (score, improvement, error, p_value)), strict=True)
        return [Candidate(*row) for row in rows]

    def _losses(self, table: Table) -> FloatArray:
        """Return the score of every row, and 0 for those of weight 0."""
        return np.where(self.share > 0, losses(table, self.score), 0.0)

    def _noise(self, mended: FloatArray) -> float:
        """Return the variance of the improvement where neither probability is the better one."""
        if self.table.is_soft:
            return 0.0
        with np.errstate(over="ignore"):
            noise = outcome_noise(columns(self.table)[0], mended, self.score)
            return float(np.square(self.share) @ np.where(self.share > 0, noise, 0.0))


def losses(table: Table, score: Score) -> FloatArray:
    """Return the score of every row."""
    rows = []
    for p, y, _ in table.blocks():
        loss = np.square(p - y)
        if score == "log":
            # Of one column the other outcome counts too; of several each has its own.
            other = 0.0 if isinstance(table, ClassTable) else xlog1py(1 - y, -p)
            loss = np.asarray(-(xlogy(y, p) + other))
        rows.append(loss.reshape(len(p), -1).sum(axis=1))
    return np.concatenate(rows)


def outcome_noise(p: AnyArray, q: FloatArray, score: Score) -> FloatArray:
    """Return, row by row, the variance of S(p, y) - S(q, y) for y drawn from (p + q) / 2.

    Midway between them neither is better on average, exactly so for the Brier score. With g_c the
    difference for outcome c, up to what all outcomes share: sum m_c (g_c - sum m_k g_k)^2.
    """
    p = np.asarray(p, dtype=np.float64)
    if score == "brier":
        change = 2 * (q - p)
        if p.ndim == 1:
            change = np.stack((np.zeros_like(p), change), axis=1)
    if p.ndim == 1:
        p, q = (np.stack((1 - v, v), axis=1) for v in (p, q))
    middle = (p + q) / 2
    if score == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(middle > 0, np.log(q) - np.log(p), 0.0)
    with np.errstate(invalid="ignore"):
        # Around their mean: for predictions next to 0 or 1 a difference of sums would vanish.
        mean = (middle * change).sum(axis=1, keepdims=True)
        variance = (middle * (change - mean) ** 2).sum(axis=1)
    return np.where(np.isinf(change).any(axis=1), np.inf, variance)
