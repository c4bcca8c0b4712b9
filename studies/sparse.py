"""Populations that are calibrated nearly everywhere and badly wrong in one place.

Noise is everywhere and the error is not: the hardest populations for the lower end of an interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.datasets import Scenario
from calibrant.datasets.scenarios import BetaScores
from studies.frame import FloatArray


@dataclass(frozen=True)
class PointMass:
    """p is `at` with probability `mass`, else uniform."""

    at: float
    mass: float

    def __str__(self) -> str:
        return f"{self.at:g} with probability {self.mass:g}, else uniform"

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` predictions."""
        return np.where(rng.random(n) < self.mass, self.at, rng.random(n))

    def quadrature(self, breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return points and their masses; the point mass lies at 1."""
        points, masses = BetaScores(1, 1).quadrature(breaks)
        return np.append(points, self.at), np.append(masses * (1 - self.mass), self.mass)


@dataclass(frozen=True)
class StatedConfidence:
    """Multiples of 1/20, as people and language models state them: 60% of rows at .95 and 1."""

    def __str__(self) -> str:
        return "0.95 or 1, 30% each, else another multiple of 0.05"

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` predictions."""
        levels, probabilities = self.quadrature(np.array([]))
        return np.asarray(rng.choice(levels, n, p=probabilities))

    def quadrature(self, _breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return the levels and their probabilities."""
        return np.arange(21) / 20, np.append(np.full(19, 0.4 / 19), [0.3, 0.3])


@dataclass(frozen=True)
class Off:
    """p + by between two scores, p elsewhere."""

    start: float
    stop: float
    by: float

    def __str__(self) -> str:
        return f"p + {self.by:g} for {self.start:g} <= p < {self.stop:g}, else p"

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        return p + np.where((p >= self.start) & (p < self.stop), self.by, 0.0)


@dataclass(frozen=True)
class Rate:
    """One probability for all scores from `start` on, p elsewhere."""

    start: float
    rate: float

    def __str__(self) -> str:
        return f"{self.rate:g} for p >= {self.start:g}, else p"

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        return np.where(p >= self.start, self.rate, p)


@dataclass(frozen=True)
class Bump:
    """p + 0.3 at 0.6, falling off as a Gaussian of this width."""

    width: float

    def __str__(self) -> str:
        return f"p + 0.3 exp(-((p - 0.6) / {self.width:g})^2 / 2)"

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        return p + 0.3 * np.exp(-0.5 * ((p - 0.6) / self.width) ** 2)


_UNIFORM = BetaScores(1, 1)
SPARSE = {
    one.name: one
    for one in (
        Scenario("one_percent", _UNIFORM, Off(0.3, 0.31, 0.4)),
        Scenario("certain", PointMass(1.0, 0.02), Rate(1.0, 0.7)),
        Scenario("top", _UNIFORM, Rate(0.98, 0.5)),
        Scenario("stated", StatedConfidence(), Rate(1.0, 0.97)),
        Scenario("bump", _UNIFORM, Bump(0.02)),
        Scenario("narrow_bump", _UNIFORM, Bump(0.005)),
    )
}
