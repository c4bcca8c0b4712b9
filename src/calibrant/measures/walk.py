"""The cumulative walk: deviations summed over increasing scores, one step a distinct score.

With C_k = (1/W) sum over rows of score at most s_k of w (y - p), and C_0 = 0:

=========  =======================  ====================================================
ECCE-MAD   max_k abs(C_k)           the largest deviation of the walk from 0
ECCE-R     max_k C_k - min_k C_k    the largest total deviation over any interval of scores
sigma_n    sqrt(sum w^2 p(1-p))/W   standard deviation of C_n under perfect calibration
=========  =======================  ====================================================

Tied scores make one step, so the order of rows never matters, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray
from calibrant.errors import CalibrantError
from calibrant.problem import Atoms, Problem
from calibrant.sample import BLOCK_ROWS, Sample

_Keys = npt.NDArray[np.uint64]
_ONE = np.uint64(1)
_BITS_OF_ONE = np.float64(1).view(np.uint64)


class Statistic(Enum):
    """How far a walk strays, from its highest and lowest points (which include its start, 0)."""

    MAX = "max"
    RANGE = "range"

    def of(self, high: FloatArray, low: FloatArray) -> FloatArray:
        """Return the statistic of each walk."""
        return np.maximum(high, -low) if self is Statistic.MAX else high - low


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
    atoms = problem.atoms
    sigma = np.nan if problem.is_soft else _sigma(atoms)
    return Walk(atoms.score, atoms.weight, atoms.residual, sigma)


def calibration_reach(problem: Problem, statistic: Statistic) -> float:
    """Return how far the calibration walk strays, without keeping it where that can be spared."""
    if isinstance(problem, Sample) and not problem.is_weighted and not problem.is_soft:
        return _reach_of_rows(problem, statistic)
    atoms = problem.atoms
    return _reach(atoms.residual, float(atoms.weight.sum()), statistic)


def known_sigma(walk: Walk, purpose: str) -> float:
    """Return a walk's sigma, refusing walks without noise to compare with."""
    if np.isnan(walk.sigma):
        raise CalibrantError(
            f"{purpose} needs 0/1 outcomes, whose noise is known; y_true has soft labels"
        )
    if walk.sigma == 0:
        raise CalibrantError(
            f"{purpose} needs a prediction strictly between 0 and 1; every y_prob is 0 or 1, "
            "which leaves nothing to chance"
        )
    return walk.sigma


def noise_weight(atoms: Atoms) -> FloatArray:
    """Return the sum of w^2 at each score, refusing weights whose squares are no doubles."""
    squared = atoms.weight_squared
    if not 0 < squared.sum() < np.inf:
        raise CalibrantError(
            "sample_weight must have squares that are neither 0 nor infinite in double precision, "
            f"for noise depends on them; the total weight is {atoms.weight.sum():g}: rescale them"
        )
    return squared


def _sigma(atoms: Atoms) -> float:
    noise = noise_weight(atoms) * atoms.score * (1 - atoms.score)
    return float(np.sqrt(noise.sum()) / atoms.weight.sum())


def _reach(step: FloatArray, total: float, statistic: Statistic) -> float:
    position = np.cumsum(step)
    high, low = position.max().clip(min=0), position.min().clip(max=0)
    return float(statistic.of(high, low) / total)


def _reach_of_rows(sample: Sample, statistic: Statistic) -> float:
    """Walk over sorted rows a block at a time.

    The same sums as over atoms, bit for bit; only one array as long as the sample is made, which
    halves the time.
    """
    position = high = low = 0.0
    for keys in _tied_blocks(_sorted_keys(sample)):
        step = _steps(keys)
        step[0] += position
        walked = np.cumsum(step, out=step)
        position, high, low = walked[-1], max(high, walked.max()), min(low, walked.min())
    return float(statistic.of(np.array(high), np.array(low)) / sample.n)


def _sorted_keys(sample: Sample) -> _Keys:
    """Return each row as one integer, its score's bits above its outcome, in order.

    Doubles in [0, 1] sort like the integers of the same bits, whose two highest are clear.
    """
    keys = np.empty(sample.n, dtype=np.uint64)
    start = 0
    for p, y, _ in sample.blocks():
        block = keys[start : start + len(p)]
        block.view(np.float64)[:] = p
        np.left_shift(block, _ONE, out=block)  # drops the sign of -0.0
        block |= y.astype(np.uint64)
        start += len(p)
    keys.sort()
    return keys


def _tied_blocks(keys: _Keys) -> Iterator[_Keys]:
    """Yield sorted keys in blocks that never part equal scores."""
    start = 0
    while start < len(keys):
        last = keys[min(start + BLOCK_ROWS, len(keys)) - 1]
        stop = int(np.searchsorted(keys, last | _ONE, side="right"))
        yield keys[start:stop]
        start = stop


def _steps(keys: _Keys) -> FloatArray:
    """Return the sum of y - p at each distinct score of a block."""
    bits = keys >> _ONE
    score = bits.view(np.float64)
    # The bits of 1.0 times 0 or 1 are a double of that value, sooner made than by conversion.
    outcome = ((keys & _ONE) * _BITS_OF_ONE).view(np.float64)
    new = bits[1:] != bits[:-1]
    if new.all():
        return np.subtract(outcome, score, out=outcome)
    starts = np.concatenate(([0], np.flatnonzero(new) + 1))
    rows = np.diff(starts, append=len(keys))
    return np.asarray(np.add.reduceat(outcome, starts) - rows * score[starts])
