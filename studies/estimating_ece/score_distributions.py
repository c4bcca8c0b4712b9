"""Score distributions: models trained on few points of a mixture, and their true errors.

Mixtures follow Posocco and Bonnefoy (2021), section 5.1: every class has four Gaussian modes, all
modes are equally likely, their means have uniform elements, and their covariances are A'A with the
elements of A uniform on (-0.3, 0.3), so that P(Y | X) is known.

The true calibration error of a model, E abs(P(y = 1 | s) - s), is estimated on a large pool of
points whose outcomes are replaced by their probabilities P(Y | X). Over bins k with mean residuals
g_k, noise makes sum abs(g_k) too large on average; with g_k from one half of the pool and h_k from
the other, sum sign(g_k) h_k is too small, however many bins there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import calibrant as cb
from studies.estimating_ece.estimators import Samples, equal_mass
from studies.frame import FloatArray, Index

MODES_PER_CLASS = 4
FACTOR_REACH = 0.3


@dataclass(frozen=True, eq=False)
class Mixture:
    """Equally likely Gaussian modes; mode k belongs to class k mod C.

    Attributes
    ----------
    n_classes
        The number C of classes.
    means
        One per mode, shape (modes, features).
    factors
        The matrices A of which A'A are the covariances, shape (modes, features, features).
    """

    n_classes: int
    means: FloatArray
    factors: FloatArray

    @classmethod
    def random(
        cls, n_classes: int, n_features: int, lowest: float, rng: np.random.Generator
    ) -> Mixture:
        """Draw means with elements uniform on (lowest, 1), and factors."""
        n_modes = MODES_PER_CLASS * n_classes
        means = rng.uniform(lowest, 1.0, (n_modes, n_features))
        factors = rng.uniform(-FACTOR_REACH, FACTOR_REACH, (n_modes, n_features, n_features))
        return cls(n_classes, means, factors)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, Index]:
        """Return n points and their classes."""
        mode = rng.integers(len(self.means), size=n)
        noise = rng.standard_normal((n, self.means.shape[1]))
        points = np.empty_like(noise)
        for k, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            points[mode == k] = mean + noise[mode == k] @ factor
        return points, mode % self.n_classes

    def posterior(self, points: FloatArray) -> FloatArray:
        """Return P(Y = c | X) of every point, shape (n, classes)."""
        log_density = np.stack(
            [
                -0.5 * np.square((points - mean) @ np.linalg.inv(factor)).sum(axis=1)
                - np.linalg.slogdet(factor)[1]
                for mean, factor in zip(self.means, self.factors, strict=True)
            ]
        )
        density = np.exp(log_density - log_density.max(axis=0))
        classes = density.reshape(MODES_PER_CLASS, self.n_classes, -1).sum(axis=0)
        return np.asarray((classes / classes.sum(axis=0)).T)


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
    probability
        P(outcome = 1), given the point that was scored.
    outcome
        The outcomes drawn, 0 or 1.
    lowest
        The smallest possible score.
    """

    p: FloatArray
    probability: FloatArray
    outcome: FloatArray
    lowest: float

    def samples(self, drawn: Index) -> Samples:
        """Return evaluation sets, one per row of `drawn`."""
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
                PoolProblem(p, probability, (self.outcome == c).astype(np.float64), 0.0)
                for c, (p, probability) in enumerate(columns)
            ]
        top = self.scores.argmax(axis=1)
        rows = np.arange(len(top))
        p, probability = self.scores[rows, top], self.posterior[rows, top]
        right = (self.outcome == top).astype(np.float64)
        return [PoolProblem(p, probability, right, 1 / n_classes)]


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
        The Monte-Carlo standard deviation of their middle.
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
    rows = Samples.of(problem.probability[None], problem.p[None])
    cuts = np.unique(equal_mass(rows, _MOST_BINS).cuts)[:-1]
    in_first = np.arange(rows.n) % 2 == 0
    first, second = (
        np.add.reduceat(rows.residual[0] * half, cuts) / rows.n for half in (in_first, ~in_first)
    )
    noise = float(np.sqrt(np.mean(rows.residual**2) / rows.n))
    return replace(best_truth(first, second), noise=noise)


def best_truth(first: FloatArray, second: FloatArray) -> Truth:
    """Return the error from sums of residuals over bins, taken from two halves of the data.

    At the number of bins with the largest lower end: more bins have too much noise, fewer average
    over errors of both signs.
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
        raise cb.MissingDependencyError(
            "the study estimating-ece needs scikit-learn: pip install 'calibrant[sklearn]'"
        ) from problem
    return {
        "logistic": lambda: LogisticRegression(random_state=1),
        "bayes": GaussianNB,
        # What scikit-learn advises in place of SVC's own probabilities, which it withdraws.
        "svc": lambda: CalibratedClassifierCV(SVC(random_state=1), ensemble=False),
        "forest": lambda: RandomForestClassifier(random_state=1),
    }


# The truth as the paper takes it, two million outcomes in 2000 bins, and its bias.

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
        The number of points.
    published
        The paper's truth: hard outcomes, 2000 bins.
    soft
        The same with probabilities for outcomes.
    low, high
        Bounds of the error of the points when noise is allowed for.
    pool
        The truth in the study, from its pool.
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
class _PointSketches:
    """Sketches of one problem: of outcomes, and of probabilities in two halves."""

    hard: cb.Sketch = field(default_factory=lambda: cb.Sketch(_N_CELLS))
    first: cb.Sketch = field(default_factory=lambda: cb.Sketch(_N_CELLS))
    second: cb.Sketch = field(default_factory=lambda: cb.Sketch(_N_CELLS))

    def update(self, problem: PoolProblem) -> None:
        self.hard.update(problem.outcome, problem.p)
        self.first.update(problem.probability[::2], problem.p[::2])
        self.second.update(problem.probability[1::2], problem.p[1::2])

    def truths(self) -> tuple[float, float, float, float]:
        """Return the published and the soft truth, and the ends of ours."""
        soft = self.first + self.second
        ours = best_truth(*(_residuals(half) / soft.n for half in (self.first, self.second)))
        hard, smooth = (cb.ece(sketch, n_bins=N_BINS) for sketch in (self.hard, soft))
        return hard, smooth, ours.low, ours.high


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
    sketches = {
        "confidence": [_PointSketches()],
        "classwise": [_PointSketches() for _ in range(n_classes)],
    }
    pool: dict[str, float] = {}
    for _ in range(n // _CHUNK):
        chunk = scored.pool(_CHUNK)
        for setting in SETTINGS:
            problems = chunk.problems(setting)
            for sketch, problem in zip(sketches[setting], problems, strict=True):
                sketch.update(problem)
            if setting not in pool:
                pool[setting] = float(np.mean([truth_of(problem).value for problem in problems]))
    for setting in SETTINGS:
        found = np.mean([sketch.truths() for sketch in sketches[setting]], axis=0)
        yield Bias(*cell, setting, n, *(*found.tolist(), pool[setting]))
