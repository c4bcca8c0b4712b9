"""Point masses as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray
from calibrant.results.result import Result


@dataclass(frozen=True, eq=False)
class PointMasses(Result):
    """Single scores that many rows have, each with the mean outcome there.

    Attributes
    ----------
    score
        The scores, increasing.
    outcome
        The mean outcome of the rows that have each.
    share
        Their share of all rows, by weight.
    is_all
        Whether there are no other scores.
    """

    score: FloatArray
    outcome: FloatArray
    share: FloatArray
    is_all: bool

    def __len__(self) -> int:
        return len(self.score)

    def less_scores(self) -> PointMasses:
        """Return the same masses with outcomes less scores."""
        return replace(self, outcome=self.outcome - self.score)

    def where(self, kept: npt.NDArray[np.bool_]) -> PointMasses:
        """Return some of the masses."""
        return replace(
            self, score=self.score[kept], outcome=self.outcome[kept], share=self.share[kept]
        )
