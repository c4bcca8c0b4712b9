"""Score distributions: models trained on few points of a mixture, and how far off they are.

The true calibration error of a model, E abs(P(y = 1 | s) - s), is estimated on a large pool of
points whose outcomes are replaced by their chances P(Y | X). Over bins k with mean residuals g_k,
noise makes sum abs(g_k) too large on average; with g_k from one half of the pool and h_k from the
other, sum sign(g_k) h_k is too small, however many bins there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.errors import MissingDependencyError
from calibrant.papers._mixtures import Mixture
from calibrant.papers._samples import Samples, equal_mass
from calibrant.problem import Index

# Where the elements of means of modes start, as the text says and as the code has it.
MEANS = {"text": 0.0, "code": -1.0}
MODELS = ("logistic", "bayes", "svc", "forest")
SETTINGS = ("confidence", "classwise")
TRAINING_SIZE = 300
# The most bins for the truth, and how often their number is halved.
_MOST_BINS, _HALVINGS = 1024, 7

Cell = tuple[str, int, int, int, int, str]


@dataclass(frozen=True, eq=False)
class PoolProblem:
    """One binary problem of a pool.

    Attributes
    ----------
    p
        The scores.
    chance
        The chance of each outcome, given the point that was scored.
    outcome
        The outcomes drawn, 0 or 1.
    lowest
        The least score that could be.
    """

    p: FloatArray
    chance: FloatArray
    outcome: FloatArray
    lowest: float

    def samples(self, drawn: Index) -> Samples:
        """Return evaluation sets, one a row of `drawn`."""
        return Samples.of(self.outcome[drawn], self.p[drawn], self.lowest)


@dataclass(frozen=True, eq=False)
class Pool:
    """A model's scores of many points, shape (n, classes), with P(Y | X) and the classes drawn."""

    scores: FloatArray
    posterior: FloatArray
    outcome: Index

    def problems(self, setting: str) -> list[PoolProblem]:
        """Return the binary problems of a setting, whose errors are averaged."""
        n_classes = self.scores.shape[1]
        if setting == "classwise":
            columns = zip(self.scores.T.copy(), self.posterior.T.copy(), strict=True)
            return [
                PoolProblem(p, chance, (self.outcome == c).astype(np.float64), 0.0)
                for c, (p, chance) in enumerate(columns)
            ]
        top = self.scores.argmax(axis=1)
        p, chance = (table[np.arange(len(top)), top] for table in (self.scores, self.posterior))
        right = (self.outcome == top).astype(np.float64)
        return [PoolProblem(p, chance, right, 1 / n_classes)]


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """A mixture, a model trained on it, and a stream of further points."""

    mixture: Mixture
    model: Any
    rng: np.random.Generator

    @classmethod
    def of(
        cls,
        means: str,
        n_classes: int,
        n_features: int,
        mixture: int,
        training: int,
        model: str,
    ) -> ScoreDistribution:
        """Draw the mixture and the training set, and train."""
        seed = [list(MEANS).index(means), n_classes, n_features, mixture]
        drawn = Mixture.random(n_classes, n_features, MEANS[means], np.random.default_rng(seed))
        # All four families get the same training set, and all models of a mixture the same points.
        training_set = _training_set(drawn, np.random.default_rng([*seed, 1, training]))
        fitted = _families()[model]().fit(*training_set)
        return cls(drawn, fitted, np.random.default_rng([*seed, 2]))

    def pool(self, n: int) -> Pool:
        """Score the next n points."""
        points, outcome = self.mixture.draw(n, self.rng)
        return Pool(self.model.predict_proba(points), self.mixture.posterior(points), outcome)


@dataclass(frozen=True)
class Truth:
    """A binned calibration error between what noise makes too small and what it makes too large.

    Attributes
    ----------
    low, high
        The two ends.
    noise
        The standard deviation, by chance, of their middle.
    """

    low: float
    high: float
    noise: float = 0.0

    @property
    def value(self) -> float:
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def uncertainty(self) -> float:
        """How far from there the error may be: half the distance of the ends, and noise."""
        return float(np.hypot((self.high - self.low) / 2, self.noise))


def truth_of(problem: PoolProblem) -> Truth:
    """Return the calibration error of a pool."""
    rows = Samples.of(problem.chance[None], problem.p[None])
    cuts = np.unique(equal_mass(rows, _MOST_BINS).cuts)[:-1]
    in_first = np.arange(rows.n) % 2 == 0
    first, second = (
        np.add.reduceat(rows.residual[0] * half, cuts) / rows.n for half in (in_first, ~in_first)
    )
    noise = float(np.sqrt(np.mean(rows.residual**2) / rows.n))
    return replace(best_truth(first, second), noise=noise)


def best_truth(first: FloatArray, second: FloatArray) -> Truth:
    """Return the error from sums of residuals over bins, taken from two halves of the data.

    At the number of bins with the largest lower end: with more of them noise prevails, with fewer
    they hide what they average over.
    """
    found = []
    for _ in range(_HALVINGS):
        low = float(np.sign(first) @ second + np.sign(second) @ first)
        found.append(Truth(max(low, 0.0), float(np.abs(first + second).sum())))
        pairs = np.arange(0, len(first), 2)
        first, second = np.add.reduceat(first, pairs), np.add.reduceat(second, pairs)
    return max(found, key=lambda truth: truth.low)


def _training_set(mixture: Mixture, rng: np.random.Generator) -> tuple[FloatArray, Index]:
    """Draw training points until every class is among them."""
    while True:
        points, outcome = mixture.draw(TRAINING_SIZE, rng)
        if len(np.unique(outcome)) == mixture.n_classes:
            return points, outcome


def _families() -> dict[str, Callable[[], Any]]:
    """Return what makes a model of each family, with scikit-learn's defaults."""
    try:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import GaussianNB
        from sklearn.svm import SVC
    except ModuleNotFoundError as problem:
        raise MissingDependencyError(
            "the paper estimating-ece needs scikit-learn: pip install 'calibrant[sklearn]'"
        ) from problem
    return {
        "logistic": lambda: LogisticRegression(random_state=1),
        "bayes": GaussianNB,
        # What scikit-learn advises in place of SVC's own probabilities, which it withdraws.
        "svc": lambda: CalibratedClassifierCV(SVC(random_state=1), ensemble=False),
        "forest": lambda: RandomForestClassifier(random_state=1),
    }
