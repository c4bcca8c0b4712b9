"""Questions to the curves of the study: who is best, and how many times worse are others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from calibrant.papers._ece_estimators import CODED, OTHERS, PUBLISHED
from calibrant.papers._frame import Row

# The paper's fifteen: as they are meant, as the authors' code has them, and all there are.
RIGHT = tuple(one.name for one in PUBLISHED)
AS_CODED = (
    *(name for name in RIGHT if name.startswith(("legacy", "density 0"))),
    *(one.name for one in CODED),
)
ALL = (*RIGHT, *(one.name for one in OTHERS))


@dataclass(frozen=True, eq=False)
class Study:
    """The curves of one kind of mixtures."""

    means: str
    rows: Sequence[Row]

    @cached_property
    def points(self) -> dict[tuple[str, str, int], Row]:
        """The points by setting, estimator and size."""
        return {(r.setting, r.estimator, r.n): r for r in self.rows if r.means == self.means}

    @cached_property
    def sizes(self) -> list[int]:
        """The sizes of evaluation sets."""
        return sorted({n for _, _, n in self.points})

    def value(self, setting: str, estimator: str, n: int, measure: str) -> float:
        """Return one number of a curve."""
        return float(getattr(self.points[setting, estimator, n], measure))

    def best(self, setting: str, names: Iterable[str], n: int, measure: str) -> str:
        """Return the estimator with the least error."""
        return min(names, key=lambda name: self.value(setting, name, n, measure))

    def ratio(
        self, setting: str, over: str, under: str, measure: str, sizes: Sequence[int] = ()
    ) -> float:
        """Return how many times larger one error is than another: geometric mean over sizes."""
        logs = [
            math.log(self.value(setting, over, n, measure) / self.value(setting, under, n, measure))
            for n in sizes or self.sizes
        ]
        return math.exp(sum(logs) / len(logs))

    def times_the_best(
        self, setting: str, name: str, names: Sequence[str], n: int, measure: str
    ) -> float:
        """Return how many times the least error an estimator's is."""
        least = self.value(setting, self.best(setting, names, n, measure), n, measure)
        return self.value(setting, name, n, measure) / least

    def span(
        self, setting: str, names: Iterable[str], n: int, measure: str
    ) -> tuple[float, float, float]:
        """Return the least, the middle and the largest error of several estimators."""
        values = sorted(self.value(setting, name, n, measure) for name in names)
        return values[0], values[len(values) // 2], values[-1]
