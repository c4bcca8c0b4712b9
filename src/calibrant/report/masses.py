"""Single scores that hold a large share of the rows, as the cumulative walk tells them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.results.curves import CumulativeCurve

__all__ = ["Mass", "point_masses"]

# The least share of the weight, and the fewest rows that would be so much of it.
_LARGE, _MANY_ROWS = 0.05, 10


@dataclass(frozen=True)
class Mass:
    """A score, the mean outcome there, and the share of rows that have it, by weight."""

    score: float
    outcome: float
    share: float


def point_masses(walk: CumulativeCurve, n: int) -> tuple[Mass, ...]:
    """Return the scores at which a walk over n rows passes a large share of them in one step.

    In a walk of more than 2048 scores some steps are joined, which adds a thousandth or so to a
    share.
    """
    share, rise = np.diff(walk.fraction), np.diff(walk.deviation)
    large = np.flatnonzero((share >= _LARGE) & (share * n >= _MANY_ROWS))
    score = walk.score[large + 1]
    outcome = np.clip(score + rise[large] / share[large], 0.0, 1.0)
    return tuple(map(Mass, score.tolist(), outcome.tolist(), share[large].tolist()))
