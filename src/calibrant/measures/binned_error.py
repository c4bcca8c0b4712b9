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
from calibrant.errors import CalibrantError
from calibrant.measures.image_norms import L1Norm, L2Norm
from calibrant.measures.linear_image import LinearImage, total
from calibrant.measures.registry import Measure
from calibrant.norms import Norm
from calibrant.problem import CellOf, Problem

BinCount = int | Literal["sqrt", "sweep", "cv"]
Strategy = Literal["uniform", "quantile"] | Sequence[float] | FloatArray
CountRule = Callable[[Problem, Layout], int]

_COUNT_RULES: dict[str, CountRule] = {
    "sqrt": bin_counts.square_root,
    "sweep": bin_counts.largest_monotone,
    "cv": bin_counts.leave_one_out,
}
_CHOSEN_BY_OUTCOMES = (bin_counts.largest_monotone, bin_counts.leave_one_out)
# Cells within a bin for the noise of its sum, and from how many bins on there is one in each.
_CELLS_PER_BIN, _FEW_BINS = 16, 512
# More bins would take more resamples than fit into memory.
_MOST_BINS = 1 << 14


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
        raise CalibrantError(
            "is ignored where {strategy} is a sequence of edges", argument="n_bins", value=n_bins
        )
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
            "must be a whole number, 'sqrt', 'sweep' or 'cv'", argument="n_bins", value=n_bins
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
            "needs {norm} 'l1' or 'l2', {weighting} 'mass' and {assignment} 'hard'",
            argument="debias",
            value=(norm, weighting, assignment),
        )
    return BinnedError(
        binning=read_binning(n_bins, strategy, closed),
        norm=Norm(norm),
        convex=assignment == "convex",
        by_width=weighting == "width",
        debias=debias,
    )


@dataclass(frozen=True)
class BinnedError(Measure):
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

    @property
    def no_interval(self) -> str:
        """Why there is no confidence interval."""
        reasons = (
            (self.norm is Norm.MAX, "norm='max', the error of its noisiest bin: give 'l1' or 'l2'"),
            (self.debias, "debias=True: its bias_corrected field serves instead"),
            (self.convex, "assignment='convex': give assignment='hard'"),
            (self.by_width, "weighting='width': give weighting='mass'"),
            (
                isinstance(self.binning, Laid) and self.binning.count in _CHOSEN_BY_OUTCOMES,
                "a number of bins chosen by the outcomes: give n_bins as a number or 'sqrt'",
            ),
        )
        return next((f"with {reason}" for holds, reason in reasons if holds), "")

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the residual mean of each bin times its weight, or the root of its weight."""
        cells = BinCells.of(problem, self.binning.bins(problem))
        if cells.n_bins > _MOST_BINS:
            raise CalibrantError(
                "must leave at most {maximum} bins with rows in them for an interval",
                argument="n_bins",
                value=cells.n_bins,
                hint="use fewer bins",
                maximum=_MOST_BINS,
            )

        def l1(r: FloatArray, w: FloatArray) -> FloatArray:
            return cells.over_bins(r) / total(w)

        def l2(r: FloatArray, w: FloatArray) -> FloatArray:
            # sqrt(W_k / W) r_k / W_k for each bin k, 0 where there is none.
            mass = cells.over_bins(w)
            return cells.over_bins(r) / np.sqrt(total(w) * np.where(mass > 0, mass, 1.0))

        norm, of_totals = (L2Norm(), l2) if self.norm is Norm.L2 else (L1Norm(), l1)
        return LinearImage(norm, cells.cell_of, cells.n_cells, of_totals)

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


@dataclass(frozen=True, eq=False)
class BinCells:
    """Cells within bins.

    Within a bin only the variance p(1 - p) varies: slowly, and in narrow bins hardly at all. Very
    many bins therefore have one cell each, and only those that hold rows.

    Attributes
    ----------
    cell_of
        The cell of each score.
    n_bins, per_bin
        The number of bins, and of cells in each.
    """

    cell_of: CellOf
    n_bins: int
    per_bin: int

    @classmethod
    def of(cls, problem: Problem, bins: Bins) -> BinCells:
        """Return cells for the noise of sums over bins."""
        if bins.n_bins > _FEW_BINS:
            filled = problem.totals(bins, "rows")[0] > 0
            place = np.maximum(np.cumsum(filled) - 1, 0)
            return cls(lambda p: place[bins.index(p)], int(filled.sum()), 1)
        return cls(bins.divided(_CELLS_PER_BIN).index, bins.n_bins, _CELLS_PER_BIN)

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.n_bins * self.per_bin

    def over_bins(self, of_cells: FloatArray) -> FloatArray:
        """Return the sums over bins of numbers of cells, the last axis."""
        if self.per_bin == 1:
            return of_cells
        return np.asarray(of_cells.reshape(*of_cells.shape[:-1], -1, self.per_bin).sum(axis=-1))


def _rows_for_debiasing(problem: Problem, bins: Bins) -> FloatArray:
    """Return rows, sum of y and sum of y - p of each filled bin, where debiasing is defined."""
    if problem.is_weighted or problem.is_soft:
        what = "weighted rows" if problem.is_weighted else "soft labels"
        raise CalibrantError(
            "needs outcomes of 0 and 1 without weights", argument="debias", value=what, found=what
        )
    totals = problem.totals(bins, "rows", "true", "residual")
    totals = totals[:, totals[0] > 0]
    lonely = np.flatnonzero(totals[0] == 1)
    if len(lonely):
        raise CalibrantError(
            "needs at least two rows in every filled bin",
            argument="debias",
            value=1,
            found="one row in {n_lonely} of {n_filled} bins",
            hint="use fewer bins",
            n_lonely=len(lonely),
            n_filled=totals.shape[1],
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
        raise CalibrantError(
            "must be 'uniform', 'quantile' or edges", argument="strategy", value=None
        )
    edges = checks.as_numbers(as_array(strategy, "strategy"), "strategy")
    rises = edges.ndim == 1 and len(edges) >= 2 and bool(np.all(np.diff(edges) > 0))
    if not (rises and edges[0] == 0 and edges[-1] == 1):
        raise CalibrantError(
            "must be 'uniform', 'quantile' or edges strictly increasing from 0 to 1",
            argument="strategy",
            value=edges.tolist(),
        )
    return tuple(edges.astype(np.float64).tolist())
