"""Gaussian mixtures with several modes a class, whose P(Y | X) is known.

After Posocco and Bonnefoy (2021), section 5.1: every class has four modes, all modes are equally
likely, their means have uniform elements, and their covariances are A'A with the elements of A
uniform on (-0.3, 0.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.problem import Index

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
        One a mode, shape (modes, features).
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
