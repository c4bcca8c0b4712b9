"""Calibration functions: the chance of outcome 1 where a simulated forecaster says p.

Small frozen values, called on an array of predictions. ``str`` gives the formula.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.datasets._dataset import FloatArray

__all__ = ["Calibration", "Identity", "LogitScaling", "Shift", "Shrinkage", "Wave"]


class Calibration(Protocol):
    """A function p -> P(y = 1 | p) on [0, 1], applied element by element."""

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        ...


@dataclass(frozen=True)
class Identity:
    """p itself: perfect calibration."""

    def __str__(self) -> str:
        return "p"

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        return p


@dataclass(frozen=True)
class LogitScaling:
    """sigmoid(slope * logit p): overconfident for slope < 1, underconfident for slope > 1."""

    slope: float

    def __str__(self) -> str:
        return f"sigmoid({self.slope:g} logit p)"

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        # The same function written without logarithms, so that 0 and 1 need no special care.
        odds, against = p**self.slope, (1 - p) ** self.slope
        return odds / (odds + against)


@dataclass(frozen=True)
class Shift:
    """p + by, kept within [0, 1]."""

    by: float

    def __str__(self) -> str:
        return f"clip(p {'-' if self.by < 0 else '+'} {abs(self.by):g}, 0, 1)"

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        return np.clip(p + self.by, 0, 1)


@dataclass(frozen=True)
class Shrinkage:
    """(1 - share) p + share * centre: outcomes closer to `centre` than the forecaster says."""

    share: float
    centre: float

    def __str__(self) -> str:
        return f"{1 - self.share:g} p + {self.share * self.centre:g}"

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        return p + self.share * (self.centre - p)


@dataclass(frozen=True)
class Wave:
    """p + height * sin(2 pi cycles p): errors of both signs that cancel in wide bins."""

    height: float
    cycles: int

    def __str__(self) -> str:
        return f"p + {self.height:g} sin({2 * self.cycles} pi p)"

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        return p + self.height * np.sin(2 * np.pi * self.cycles * p)
