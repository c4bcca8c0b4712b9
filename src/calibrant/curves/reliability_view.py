"""What a reliability diagram shows, whatever draws it: one rule for the window of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray
from calibrant.problem import Problem
from calibrant.results.curves import Curve

__all__ = ["Mask", "Window", "near_scores", "score_range"]

Mask = npt.NDArray[np.bool_]

# Where the density of scores is below this fraction of its maximum, outcomes do not widen a window.
_THIN = 0.01
# Scores and outcomes that take up more of [0, 1] than this, or need a window wider than that, are
# shown on all of it.
_WIDE, _WIDE_WINDOW = 0.5, 0.6
_MINIMUM_SPAN = 0.02
# A window ends at round numbers: multiples of one of these times a power of ten, at most about so
# many of them apart.
_ROUND, _INTERVALS = (1.0, 2.0, 2.5, 5.0, 10.0), 5
_SLACK = 1e-9


@dataclass(frozen=True)
class Window:
    """The scores that are shown, the same on both axes."""

    low: float
    high: float

    @classmethod
    def around(cls, shown: Iterable[tuple[Curve, FloatArray | None]]) -> Window:
        """Return the window on curves, each with its scores, or None where they are not known.

        It is [0, 1], unless all scores, and outcomes where scores are dense, keep to half of it.
        """
        extents = np.concatenate([_extent(curve, scores) for curve, scores in shown])
        low, high = float(extents.min()), float(extents.max())
        if high - low > _WIDE:
            return cls(0.0, 1.0)
        middle, reach = (low + high) / 2, max(high - low, _MINIMUM_SPAN) / 2
        window = cls(*_rounded_out(max(middle - reach, 0.0), min(middle + reach, 1.0)))
        return window if window.span <= _WIDE_WINDOW + _SLACK else cls(0.0, 1.0)

    def holds(self, x: FloatArray) -> Mask:
        """Tell which scores are shown."""
        slack = _SLACK * self.span
        return np.asarray((x >= self.low - slack) & (x <= self.high + slack))

    @property
    def span(self) -> float:
        """How much of the scores is shown."""
        return self.high - self.low


def score_range(problem: Problem) -> FloatArray:
    """Return the lowest and the highest score; of a sketch those of its outermost cells."""
    scores = problem.scores if problem.is_exact else problem.pooled.score
    return scores[[0, -1]]


def near_scores(curve: Curve, scores: FloatArray | None) -> Mask:
    """Tell where a curve is within a bandwidth of its lowest and highest score, if it has one."""
    if scores is None or not curve.bandwidth > 0:
        return np.ones(len(curve.x), dtype=bool)
    low, high = np.nanmin(scores) - curve.bandwidth, np.nanmax(scores) + curve.bandwidth
    return np.asarray((curve.x >= low) & (curve.x <= high))


def _extent(curve: Curve, scores: FloatArray | None) -> FloatArray:
    """Return the lowest and highest score or outcome that a diagram of a curve has to show."""
    dense = curve.density > _THIN * curve.density.max()
    if scores is None:
        scores = curve.x[dense & np.isfinite(curve.y)]
    # Beyond the scores, where a kernel's curve goes on for a while, its band is as wide as can be.
    first = np.searchsorted(curve.x, np.nanmin(scores), side="right") - 1
    last = np.searchsorted(curve.x, np.nanmax(scores), side="left")
    dense[: max(first, 0)] = dense[last + 1 :] = False
    heights: tuple[FloatArray, ...] = (curve.y, curve.low, curve.high)
    if curve.method == "isotonic":
        # At its ends, beyond which there are no rows, its band is as wide as can be.
        heights = (curve.y,)
    elif curve.method == "local":
        heights = ()
    values = np.concatenate((scores, *(height[dense] for height in heights)))
    return np.array([np.nanmin(values), np.nanmax(values)])


def _rounded_out(low: float, high: float) -> tuple[float, float]:
    """Return round numbers at or beyond two scores, within [0, 1]."""
    least = (high - low) / _INTERVALS
    power = 10.0 ** math.floor(math.log10(least))
    step = power * next(number for number in _ROUND if number * power >= least * (1 - _SLACK))
    first, last = math.floor(low / step + _SLACK), math.ceil(high / step - _SLACK)
    return max(round(first * step, 12), 0.0), min(round(last * step, 12), 1.0)
