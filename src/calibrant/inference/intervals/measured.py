"""From a measure to its interval: which measures have one, and how they are looked at."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant import checks
from calibrant.bin_counts import largest_monotone, leave_one_out
from calibrant.errors import CalibrantError
from calibrant.inference.intervals.clusters import Clusters
from calibrant.inference.intervals.shapes import MaxShape, RangeShape
from calibrant.inference.intervals.uniform import Interval, fixed_point_interval, norm_interval
from calibrant.inference.intervals.views import (
    SmoothCells,
    View,
    binned_view,
    logit_view,
    walk_view,
)
from calibrant.measures.binned_error import BinnedError, Laid
from calibrant.measures.cumulative import CumulativeError
from calibrant.measures.cumulative_differences import Statistic
from calibrant.measures.logit import LogitSmoothedError
from calibrant.measures.named import Measure
from calibrant.measures.smooth_error import SmoothError
from calibrant.norms import Norm
from calibrant.problem import Problem
from calibrant.randomness import Generator

# Numbers in all draws together. Where cells are this many that there would be more, an error is
# the sum of so many nearly independent parts that fewer draws show its quantiles as well.
_NUMBERS = 1 << 19
# But high levels need many draws, of which these numbers, 64 MB, are what there is room for.
_MOST_NUMBERS = 1 << 23
_FEWEST_DRAWS = 300
_CHOSEN_BY_OUTCOMES = (largest_monotone, leave_one_out)


@dataclass(frozen=True, eq=False)
class Question:
    """The interval asked for: confidence level, number of resamples, clusters."""

    level: float
    n_resamples: int
    rng: Generator
    clusters: Clusters | None = None

    def interval(self, measure: Measure, problem: Problem, value: float) -> Interval:
        """Return the interval for a measure whose value is known."""
        if isinstance(measure, SmoothError) and measure.bandwidth is None:
            scale = _scale(measure, problem, value)
            cells = SmoothCells.of(problem, scale, self.clusters)
            n_draws = self._draws(cells.view(scale, value))
            return fixed_point_interval(cells, scale, value, self.level, n_draws, self.rng)
        view = view_of(measure, problem, value, self.clusters)
        return norm_interval(view, self.level, self._draws(view), self.rng)

    def _draws(self, view: View) -> int:
        """Return how many draws to make: no fewer than the quantiles of the level need."""
        usual, most = (numbers // view.size for numbers in (_NUMBERS, _MOST_NUMBERS))
        needed = min(checks.min_resamples(self.level), most)
        return max(min(self.n_resamples, max(usual, _FEWEST_DRAWS)), needed)


def view_of(
    measure: Measure, problem: Problem, value: float, clusters: Clusters | None = None
) -> View:
    """Return a measure of a sample as a norm: smECE as that at the scale found."""
    if isinstance(measure, SmoothError):
        scale = _scale(measure, problem, value)
        return SmoothCells.of(problem, scale, clusters).view(scale, value)
    if isinstance(measure, BinnedError):
        bins, squared = measure.binning.bins(problem), measure.norm is Norm.L2
        return binned_view(problem, bins, value, clusters, squared=squared)
    if isinstance(measure, LogitSmoothedError):
        return logit_view(problem, measure.sigma, value, clusters)
    is_max = isinstance(measure, CumulativeError) and measure.statistic is Statistic.MAX
    return walk_view(problem, MaxShape() if is_max else RangeShape(), value, clusters)


def _scale(measure: SmoothError, problem: Problem, value: float) -> float:
    if measure.bandwidth is not None:
        return measure.bandwidth
    # Where nothing is left over, nothing depends on the scale.
    return max(value, problem.finest_scale) if value > 0 else 1.0


def check_has_interval(name: str, measure: Measure) -> None:
    """Refuse a measure that is not a norm of residuals summed over scores known beforehand."""
    reason = _reason_against(measure)
    if reason:
        raise CalibrantError(f"estimate has no interval for {name} {reason}")


def _reason_against(measure: Measure) -> str:
    if isinstance(measure, BinnedError):
        return _reason_against_bins(measure)
    if isinstance(measure, SmoothError):
        other = measure.transform is not None
        return "on scales other than 'probability': use logit_smoothed_ece" if other else ""
    if isinstance(measure, CumulativeError):
        return "with normalize=True, which changes units with n" if measure.normalize else ""
    if isinstance(measure, LogitSmoothedError):
        return "with uniform noise: give noise='gaussian'" if measure.noise == "uniform" else ""
    return ": give smooth_ece, ece, ecce_mad, ecce_r or logit_smoothed_ece"


def _reason_against_bins(measure: BinnedError) -> str:
    if measure.norm is Norm.MAX:
        return "with norm='max', the error of its noisiest bin: give norm='l1' or 'l2'"
    if measure.debias:
        return "with debias=True: its bias_corrected field serves instead"
    if measure.convex:
        return "with assignment='convex': give assignment='hard'"
    if measure.by_width:
        return "with weighting='width': give weighting='mass'"
    if isinstance(measure.binning, Laid) and measure.binning.count in _CHOSEN_BY_OUTCOMES:
        return "with a number of bins chosen by the outcomes: give n_bins as a number or 'sqrt'"
    return ""
