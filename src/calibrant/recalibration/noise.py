"""A map that is random: noise, and then the outcome to expect where it led."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.checks import as_positive
from calibrant.errors import CalibrantError
from calibrant.randomness import Generator
from calibrant.recalibration.maps import PiecewiseLinearMap, ProbabilityMap


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMap(ProbabilityMap):
    """Noise of a given scale, reflected into [0, 1], and then a piecewise-linear map.

    Attributes
    ----------
    scale
        The standard deviation of the noise before it is reflected.
    x, y
        Knots and values of the map that follows.
    """

    scale: float
    x: FloatArray
    y: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "x", self.outcome.x)
        object.__setattr__(self, "y", self.outcome.y)
        super().__post_init__()

    @cached_property
    def outcome(self) -> PiecewiseLinearMap:
        """The outcome to expect where the noise led."""
        return PiecewiseLinearMap(self.x, self.y)

    def draw(self, p: FloatArray, rng: Generator) -> FloatArray:
        """Return the map of probabilities, with noise drawn from a generator."""
        return self.outcome(reflected(p + self.scale * rng.standard_normal(p.shape)))

    def __call__(self, p: FloatArray) -> FloatArray:
        """Refuse: there is no map without a generator."""
        raise CalibrantError("a noisy map needs a generator: use draw")

    def __repr__(self) -> str:
        return f"NoisyMap(scale={self.scale:.4g}, then {self.outcome!r})"


def reflected(t: FloatArray) -> FloatArray:
    """Fold the line into [0, 1] at every whole number."""
    return np.asarray(1 - np.abs(1 - np.mod(t, 2)))
