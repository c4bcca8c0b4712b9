"""Score distributions: how a simulated forecaster's predictions are spread over [0, 1].

Each can be drawn from, and each can be integrated against by a quadrature rule: points in
ascending order and the probability mass each one stands for. Panels end at every thousandth, at
the break points asked for and, for the logit-normal, at even steps of the logit; each carries
eight Gauss-Legendre points. An integrand that is smooth between these panel ends is integrated to
a few units of 1e-15.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.checks import as_count
from calibrant.datasets._dataset import FloatArray
from calibrant.errors import CalibrantError

__all__ = ["BetaScores", "LogitNormalScores", "RoundedScores", "Scores"]

_THOUSANDTHS = np.arange(1001) / 1000
_NODES_PER_PANEL = 8
# The normal law has less than 1e-22 of its mass further out than this many standard deviations.
_NORMAL_REACH = 10


class Scores(Protocol):
    """A distribution of predictions on [0, 1]."""

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` predictions."""
        ...

    def quadrature(self, breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return ascending points and their masses, with panels ending at `breaks`."""
        ...


@dataclass(frozen=True)
class BetaScores:
    """p ~ Beta(a, b), with whole a and b: a polynomial density, so exact quadrature."""

    a: int
    b: int

    def __post_init__(self) -> None:
        as_count(self.a, "a")
        as_count(self.b, "b")

    def __str__(self) -> str:
        return f"Beta({self.a}, {self.b})"

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` predictions."""
        return rng.beta(self.a, self.b, n)

    def quadrature(self, breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return ascending points and their masses, with panels ending at `breaks`."""
        points, widths = _gauss_legendre(_panel_ends(breaks))
        scale = self.a * math.comb(self.a + self.b - 1, self.a)
        density = scale * points ** (self.a - 1) * (1 - points) ** (self.b - 1)
        return points, density * widths


@dataclass(frozen=True)
class LogitNormalScores:
    """logit p ~ N(mean, sd^2): for a large mean much of the mass lies very close to 1."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 < self.sd < math.inf):
            raise CalibrantError(
                "must be finite, and {sd} positive",
                argument="mean",
                value=self.mean,
                found="{value} and {deviation}",
                deviation=self.sd,
            )

    def __str__(self) -> str:
        return f"sigmoid(N({self.mean:g}, {self.sd:g}^2))"

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` predictions."""
        from scipy.special import expit

        return np.asarray(expit(rng.normal(self.mean, self.sd, n)))

    def quadrature(self, breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return ascending points and their masses, with panels ending at `breaks`."""
        from scipy.special import expit

        inner = _panel_ends(breaks)[1:-1]
        reach = _NORMAL_REACH * self.sd
        steps = np.linspace(self.mean - reach, self.mean + reach, 4 * _NORMAL_REACH + 1)
        logits = np.log(inner) - np.log1p(-inner)
        ends = np.union1d(steps, logits[np.abs(logits - self.mean) < reach])
        u, widths = _gauss_legendre(ends)
        density = np.exp(-0.5 * ((u - self.mean) / self.sd) ** 2) / (self.sd * math.sqrt(math.tau))
        return np.asarray(expit(u)), density * widths


@dataclass(frozen=True)
class RoundedScores:
    """Continuous scores rounded to a multiple of 1 / levels: ties, and scores on bin edges."""

    exact: Scores
    levels: int

    def __post_init__(self) -> None:
        as_count(self.levels, "levels")

    def __str__(self) -> str:
        return f"{self.exact} rounded to 1/{self.levels}"

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` predictions."""
        return np.rint(self.exact.sample(n, rng) * self.levels) / self.levels

    def quadrature(self, _breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return the levels and their probabilities; a finite law needs no breaks."""
        halfway = (np.arange(self.levels) + 0.5) / self.levels
        points, masses = self.exact.quadrature(halfway)
        # Summed level by level: a difference of running sums could fall below 0 in a thin tail.
        level = np.searchsorted(halfway, points)
        share = np.bincount(level, weights=masses, minlength=self.levels + 1).astype(np.float64)
        return np.arange(self.levels + 1) / self.levels, share


def _panel_ends(breaks: FloatArray) -> FloatArray:
    return np.union1d(_THOUSANDTHS, breaks[(breaks > 0) & (breaks < 1)])


def _gauss_legendre(ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return points and Lebesgue weights of the composite Gauss-Legendre rule over the panels."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES_PER_PANEL)
    half = np.diff(ends)[:, None] / 2
    middle = (ends[:-1] + ends[1:])[:, None] / 2
    return (middle + half * nodes).ravel(), (half * weights).ravel()
