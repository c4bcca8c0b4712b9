"""The binned error as a value: where the bins lie, and the norm of the gaps over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant import bin_counts, checks
from calibrant.arrays import FloatArray, as_array
from calibrant.binning import (
    Binning,
    Bins,
    Convex,
    EqualMass,
    Fixed,
    Layout,
    Side,
    Uniform,
)
from calibrant.errors import CalibrantError, shown
from calibrant.norms import Norm
from calibrant.problem import Problem

BinCount = int | Literal["sqrt", "sweep", "cv"]
Strategy = Literal["uniform", "quantile"] | Sequence[float] | FloatArray
CountRule = Callable[[Problem, Layout], int]

_COUNT_RULES: dict[str, CountRule] = {
    "sqrt": bin_counts.square_root,
    "sweep": bin_counts.largest_monotone,
    "cv": bin_counts.leave_one_out,
}


@dataclass(frozen=True)
class Laid:
    """Bins laid out in a number that is given, or that a rule finds."""

    layout: Layout
    count: int | CountRule

    def bins(self, problem: Problem) -> Bins:
        """Lay the bins over a problem."""
        count = self.count if isinstance(self.count, int) else self.count(problem, self.layout)
        return self.layout.bins(problem, count)


def read_binning(n_bins: BinCount, strategy: Strategy, closed: Side) -> Binning:
    """Turn the words of a call into a binning."""
    checks.check_choice(closed, "closed", ("left", "right"))
    count = _read_count(n_bins)
    if not isinstance(count, int) and not isinstance(strategy, str):
        raise CalibrantError(f"strategy gives the edges themselves: n_bins={n_bins!r} has no say")
    if not isinstance(strategy, str):
        return Fixed(_checked_edges(strategy), closed)
    checks.check_choice(strategy, "strategy", ("uniform", "quantile"))
    layout: Layout = Uniform(closed) if strategy == "uniform" else EqualMass()
    return Laid(layout, count)


def _read_count(n_bins: BinCount) -> int | CountRule:
    if not isinstance(n_bins, str):
        return checks.as_bins(n_bins)
    if n_bins not in _COUNT_RULES:
        raise CalibrantError(
            f"n_bins must be a whole number, 'sqrt', 'sweep' or 'cv'; got {shown(n_bins)}"
        )
    return _COUNT_RULES[n_bins]


def read_binned_error(
    *,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    assignment: Literal["hard", "convex"] = "hard",
    norm: Literal["l1", "l2", "max"] = "l1",
    weighting: Literal["mass", "width"] = "mass",
    closed: Side = "left",
    debias: bool = False,
) -> BinnedError:
    """Turn the words of a call into an error."""
    checks.check_choice(assignment, "assignment", ("hard", "convex"))
    checks.check_choice(norm, "norm", ("l1", "l2", "max"))
    checks.check_choice(weighting, "weighting", ("mass", "width"))
    debias = checks.as_flag(debias, "debias")
    if debias and (norm == "max" or weighting == "width" or assignment == "convex"):
        raise CalibrantError(
            "debias knows norm 'l1' and 'l2' with weighting='mass' and assignment='hard'; "
            f"got norm={norm!r}, weighting={weighting!r}, assignment={assignment!r}"
        )
    return BinnedError(
        binning=read_binning(n_bins, strategy, closed),
        norm=Norm(norm),
        convex=assignment == "convex",
        by_width=weighting == "width",
        debias=debias,
    )


@dataclass(frozen=True)
class BinnedError:
    """A norm of the gaps between mean outcome and mean prediction over bins."""

    binning: Binning
    norm: Norm = Norm.L1
    convex: bool = False
    by_width: bool = False
    debias: bool = False

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        bins = self.binning.bins(problem)
        if self.debias:
            return self._debiased(problem, bins)
        assignment = Convex(bins) if self.convex else bins
        if self.norm is Norm.L1 and not self.by_width:
            (residual,) = problem.totals(assignment, "residual")
            return float(np.abs(residual).sum() / problem.weight)
        weight, residual = problem.totals(assignment, "weight", "residual")
        filled = weight > 0
        gaps = residual[filled] / weight[filled]
        weights = bins.widths if self.by_width else weight / problem.weight
        return self.norm.of(gaps, weights[filled])

    def error_bound(self, problem: Problem) -> float:
        """Bound the distance from the error of the rows themselves: rounding alone."""
        # The root of a difference that is floored at 0 magnifies what rounding leaves of it.
        is_root = self.debias and self.norm is Norm.L2
        return problem.sum_error**0.5 if is_root else problem.sum_error

    def _debiased(self, problem: Problem, bins: Bins) -> float:
        """Take the expected effect of sampling noise out of each bin, then out of the sum."""
        rows, true, residual = _rows_for_debiasing(problem, bins)
        mean, gap = true / rows, residual / rows
        variance = mean * (1 - mean) / (rows - 1)
        weights = rows / problem.weight
        if self.norm is Norm.L2:
            return float(np.sqrt(max(np.dot(weights, gap * gap - variance), 0.0)))
        excess = _folded_normal_mean(gap, variance) - np.abs(gap)
        return float(max(np.dot(weights, np.abs(gap) - excess), 0.0))


def _rows_for_debiasing(problem: Problem, bins: Bins) -> FloatArray:
    """Return rows, sum of y and sum of y - p of each filled bin, where debiasing is defined."""
    if problem.is_weighted or problem.is_soft:
        what = "weighted rows" if problem.is_weighted else "soft labels"
        raise CalibrantError(f"debias needs 0/1 outcomes that count once each; got {what}")
    totals = problem.totals(bins, "rows", "true", "residual")
    totals = totals[:, totals[0] > 0]
    lonely = np.flatnonzero(totals[0] == 1)
    if len(lonely):
        raise CalibrantError(
            f"debias needs two rows in every filled bin; {len(lonely)} of {totals.shape[1]} "
            "filled bins hold one: use fewer bins"
        )
    return totals


def _folded_normal_mean(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E abs(X) for normal X."""
    from scipy.special import erf

    spread = np.sqrt(2 * variance)
    z = np.divide(np.abs(mean), spread, out=np.full_like(mean, np.inf), where=spread > 0)
    return np.asarray(spread / np.sqrt(np.pi) * np.exp(-z * z) + np.abs(mean) * erf(z))


def _checked_edges(strategy: Any) -> tuple[float, ...]:
    if strategy is None:
        raise CalibrantError("strategy must be 'uniform', 'quantile' or edges; got None")
    edges = checks.as_numbers(as_array(strategy, "strategy"), "strategy")
    rises = edges.ndim == 1 and len(edges) >= 2 and bool(np.all(np.diff(edges) > 0))
    if not (rises and edges[0] == 0 and edges[-1] == 1):
        raise CalibrantError(
            "strategy must be 'uniform', 'quantile' or edges strictly increasing from 0 to 1; "
            f"got {edges.tolist()!r:.80}"
        )
    return tuple(edges.astype(np.float64).tolist())
