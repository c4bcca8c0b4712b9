"""From a measure to its interval."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant import checks
from calibrant.errors import CalibrantError
from calibrant.inference.intervals.clusters import Clusters
from calibrant.inference.intervals.uniform import Interval, fixed_point_interval, norm_interval
from calibrant.inference.intervals.views import View
from calibrant.measures.registry import Measure
from calibrant.problem import Problem
from calibrant.randomness import Generator

# Numbers in all draws together. Where cells are this many that there would be more, an error is
# the sum of so many nearly independent parts that fewer draws show its quantiles as well.
_NUMBERS = 1 << 19
# But high levels need many draws, of which these numbers, 64 MB, are what there is room for.
_MOST_NUMBERS = 1 << 23
_FEWEST_DRAWS = 300


@dataclass(frozen=True, eq=False)
class Question:
    """The interval asked for: confidence level, number of resamples, clusters."""

    level: float
    n_resamples: int
    rng: Generator
    clusters: Clusters | None = None

    def interval(self, measure: Measure, problem: Problem, value: float) -> Interval:
        """Return the interval for a measure whose value is known."""
        view = View.of(measure, problem, value, self.clusters)
        of_view = norm_interval if view.image.at_scale is None else fixed_point_interval
        return of_view(view, self.level, self._draws(view), self.rng)

    def _draws(self, view: View) -> int:
        """Return how many draws to make: no fewer than the quantiles of the level need."""
        usual, most = (numbers // view.size for numbers in (_NUMBERS, _MOST_NUMBERS))
        needed = min(checks.min_resamples(self.level), most)
        return max(min(self.n_resamples, max(usual, _FEWEST_DRAWS)), needed)


def check_has_interval(name: str, measure: Measure) -> None:
    """Refuse a measure that is not a norm of residuals summed over scores known beforehand."""
    if measure.no_interval:
        raise CalibrantError(f"estimate has no interval for {name} {measure.no_interval}")
