"""Binned calibration errors: ECE and its relatives.

With bins k of weight W_k, mean prediction and mean outcome, and gap_k = mean outcome - mean
prediction:

====================  ================================================================
ECE (l1, mass)        sum_k (W_k / W) abs(gap_k) = sum_k abs(sum_{i in k} w_i (y_i - p_i)) / W
RMS error (l2, mass)  sqrt(sum_k (W_k / W) gap_k^2)
MCE (max)             max_k abs(gap_k)
width-weighted        the same with the width of bin k instead of W_k / W
====================  ================================================================

All take soft labels y in [0, 1] as they are: with hard labels the l1 error is the usual ECE, with
soft ones it is SMECE (Leznik 2026), exactly 0 when every y_i = p_i. Binned errors are biased
upwards, by more the more bins there are; near calibration `debias` removes about 70% of the bias of
l2 errors and 40% of that of l1 errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.data import binning, validation
from calibrant.data.binning import Binning, Bins, BinsByCount, Convex, EqualMass, Fixed, Side
from calibrant.data.classes import (
    Norm,
    of_rows,
    read_table,
    reduce_classes,
    reduce_table,
    rows_or_sketch,
)
from calibrant.data.problem import CellOf, Problem
from calibrant.data.sketch import Sketch
from calibrant.data.validation import as_array
from calibrant.errors import CalibrantError
from calibrant.measures.norms import L1Norm, L2Norm, LinearImage
from calibrant.measures.registry import Measure, MeasureInfo

AssignmentName = Literal["hard", "convex"]
NormName = Literal["l1", "l2", "max"]
WeightingName = Literal["mass", "width"]
BinCount = int | Literal["sqrt", "sweep", "cv"]
Strategy = Literal["uniform", "quantile"] | Sequence[float] | FloatArray

_COUNT_RULES: dict[str, binning.CountRule] = {
    "sqrt": binning.square_root,
    "sweep": binning.largest_monotone,
    "cv": binning.leave_one_out,
}
_CHOSEN_BY_OUTCOMES = (binning.largest_monotone, binning.leave_one_out)
# Cells within a bin for the noise of its sum, and from how many bins on there is one in each.
_CELLS_PER_BIN, _FEW_BINS = 16, 512
# More bins would take more resamples than fit into memory.
_MAX_BINS = 1 << 14


def read_binning(n_bins: BinCount, strategy: Strategy, closed: Side) -> Binning:
    """Parse the options of bins."""
    validation.check_choice(closed, "closed", ("left", "right"))
    if isinstance(n_bins, str) and n_bins not in _COUNT_RULES:
        raise CalibrantError(
            "must be a whole number, 'sqrt', 'sweep' or 'cv'", argument="n_bins", value=n_bins
        )
    count = _COUNT_RULES[n_bins] if isinstance(n_bins, str) else validation.as_bins(n_bins)
    if not isinstance(strategy, str):
        if isinstance(n_bins, str):
            rule = "is ignored where {strategy} is a sequence of edges"
            raise CalibrantError(rule, argument="n_bins", value=n_bins)
        return Fixed(_checked_edges(strategy), closed)
    validation.check_choice(strategy, "strategy", ("uniform", "quantile"))
    layout = binning.Uniform(closed) if strategy == "uniform" else EqualMass()
    return BinsByCount(layout, count)


def read_binned_error(
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    assignment: AssignmentName = "hard",
    norm: NormName = "l1",
    weighting: WeightingName = "mass",
    closed: Side = "left",
    debias: bool = False,
) -> BinnedError:
    """Parse the options of a binned error."""
    validation.check_choice(assignment, "assignment", get_args(AssignmentName))
    validation.check_choice(norm, "norm", get_args(NormName))
    validation.check_choice(weighting, "weighting", get_args(WeightingName))
    debias = validation.as_flag(debias, "debias")
    if debias and (norm == "max" or weighting == "width" or assignment == "convex"):
        rule = "needs {norm} 'l1' or 'l2', {weighting} 'mass' and {assignment} 'hard'"
        raise CalibrantError(rule, argument="debias", value=(norm, weighting, assignment))
    convex, by_width = assignment == "convex", weighting == "width"
    bins = read_binning(n_bins, strategy, closed)
    return BinnedError(bins, Norm(norm), convex, by_width, debias)


@dataclass(frozen=True)
class BinnedError(Measure):
    """A norm of the gaps between mean outcome and mean prediction over bins."""

    binning: Binning
    norm: Norm = Norm.L1
    convex: bool = False
    by_width: bool = False
    debias: bool = False

    def __call__(self, problem: Problem) -> float:
        bins = self.binning.bins(problem)
        if self.debias:
            return self._debiased(problem, bins)
        assignment = Convex(bins.edges, bins.widths) if self.convex else bins
        if self.norm is Norm.L1 and not self.by_width:
            (residual,) = problem.totals(assignment, "residual")
            return float(np.abs(residual).sum() / problem.weight)
        weight, residual = problem.totals(assignment, "weight", "residual")
        filled = weight > 0
        gaps = residual[filled] / weight[filled]
        weights = bins.widths if self.by_width else weight / problem.weight
        return self.norm.of(gaps, weights[filled])

    def sketch_error(self, problem: Problem, value: float) -> float:
        """Bound the distance from the error of the rows themselves: rounding alone."""
        # The root of a difference that is floored at 0 magnifies what rounding leaves of it.
        is_root = self.debias and self.norm is Norm.L2
        return problem.sum_error**0.5 if is_root else problem.sum_error

    @property
    def no_interval(self) -> str:
        reasons = (
            (self.norm is Norm.MAX, "norm='max', the error of its noisiest bin: give 'l1' or 'l2'"),
            (self.debias, "debias=True: its bias_corrected field serves instead"),
            (self.convex, "assignment='convex': give assignment='hard'"),
            (self.by_width, "weighting='width': give weighting='mass'"),
            (
                isinstance(self.binning, BinsByCount) and self.binning.count in _CHOSEN_BY_OUTCOMES,
                "a number of bins chosen by the outcomes: give n_bins as a number or 'sqrt'",
            ),
        )
        return next((f"with {reason}" for holds, reason in reasons if holds), "")

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the residual mean of each bin times its weight, or the root of its weight."""
        cells = BinCells.of(problem, self.binning.bins(problem))
        if cells.n_bins > _MAX_BINS:
            raise CalibrantError(
                "must leave at most {maximum} bins with rows in them for an interval",
                argument="n_bins",
                value=cells.n_bins,
                hint="use fewer bins",
                maximum=_MAX_BINS,
            )

        def l1(r: FloatArray, w: FloatArray) -> FloatArray:
            return np.asarray(cells.over_bins(r) / w.sum(axis=-1, keepdims=True))

        def l2(r: FloatArray, w: FloatArray) -> FloatArray:
            # sqrt(W_k / W) r_k / W_k for each bin k, 0 where there is none.
            mass, whole = cells.over_bins(w), w.sum(axis=-1, keepdims=True)
            return np.asarray(cells.over_bins(r) / np.sqrt(whole * np.where(mass > 0, mass, 1.0)))

        norm, of_totals = (L2Norm(), l2) if self.norm is Norm.L2 else (L1Norm(), l1)
        return LinearImage(norm, cells.cell_of, cells.n_cells, of_totals)

    def _debiased(self, problem: Problem, bins: Bins) -> float:
        """Take the expected effect of sampling noise out of each bin, then out of the sum."""
        if problem.is_weighted or problem.is_soft:
            what = "weighted rows" if problem.is_weighted else "soft labels"
            rule = "needs outcomes of 0 and 1 without weights"
            raise CalibrantError(rule, argument="debias", value=what, found=what)
        totals = problem.totals(bins, "rows", "true", "residual")
        rows, true, residual = totals[:, totals[0] > 0]
        n_single = np.count_nonzero(rows == 1)
        if n_single:
            raise CalibrantError(
                "needs at least two rows in every filled bin",
                argument="debias",
                value=1,
                found="one row in {n_single} of {n_filled} bins",
                hint="use fewer bins",
                n_single=n_single,
                n_filled=len(rows),
            )
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
        """Return the sums over the cells of each bin, along the last axis."""
        if self.per_bin == 1:
            return of_cells
        return np.asarray(of_cells.reshape(*of_cells.shape[:-1], -1, self.per_bin).sum(axis=-1))


def _folded_normal_mean(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E abs(X) for normal X."""
    from scipy.special import erf

    spread = np.sqrt(2 * variance)
    z = np.divide(np.abs(mean), spread, out=np.full_like(mean, np.inf), where=spread > 0)
    return np.asarray(spread / np.sqrt(np.pi) * np.exp(-z * z) + np.abs(mean) * erf(z))


def _checked_edges(strategy: Any) -> tuple[float, ...]:
    if strategy is None:
        rule = "must be 'uniform', 'quantile' or edges"
        raise CalibrantError(rule, argument="strategy", value=None)
    edges = validation.as_numbers(as_array(strategy, "strategy"), "strategy")
    rises = edges.ndim == 1 and len(edges) >= 2 and bool(np.all(np.diff(edges) > 0))
    if not (rises and edges[0] == 0 and edges[-1] == 1):
        rule = "must be 'uniform', 'quantile' or edges strictly increasing from 0 to 1"
        raise CalibrantError(rule, argument="strategy", value=edges.tolist())
    return tuple(edges.astype(np.float64).tolist())


@rows_or_sketch
def ece(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    assignment: AssignmentName = "hard",
    norm: NormName = "l1",
    weighting: WeightingName = "mass",
    closed: Side = "left",
    debias: bool = False,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the expected calibration error over bins; 0 is perfect.

    ECE = sum_k abs(sum_{i in k} w_i (y_i - p_i)) / W over the bins k, with W the total weight.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or its rule: "sqrt" is floor(sqrt(n)), "sweep" the largest number for which
        mean outcomes do not decrease, "cv" that of the smallest leave-one-out squared error.
    strategy : {"uniform", "quantile"} or array_like
        Bins of equal width or nearly equal weight, or edges from 0 to 1, which fix `n_bins`.
    assignment : {"hard", "convex"}
        "hard": each row counts in its bin. "convex": it is divided between the two nearest centres.
    norm : {"l1", "l2", "max"}
        Mean, root mean square or maximum over the bins.
    weighting : {"mass", "width"}
        Weight of a bin: that of its rows, or its width.
    closed : {"left", "right"}
        Which edge belongs to a bin; 0 and 1 always belong to the outer bins.
    debias : bool
        Subtract the expected effect of sampling noise: from squared gaps (l2, Kumar et al. 2019)
        or from absolute ones (l1, folded normal). The result never falls below 0.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error; 0 where every bin's mean outcome equals its mean prediction.

    See Also
    --------
    ace, mce, soft_label_ece : Special cases under names of their own.
    smooth_ece : A calibration error without bins.
    bin_table : The bins themselves.

    Notes
    -----
    Empty bins contribute 0. One pass over the rows for uniform bins and given edges, one sort for
    quantile bins. p = 0 and p = 1 fall into the outer bins.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), eq. 1.
    Leznik, "Soft Mean Expected Calibration Error" (2026), eq. 5: soft labels.
    Arrieta-Ibarra et al., "Metrics of Calibration" (2022), eqs. 3-4: weighting by width.

    Examples
    --------
    >>> ece([1, 0], [0.95, 1.0], n_bins=10)
    0.475
    """
    error = read_binned_error(n_bins, strategy, assignment, norm, weighting, closed, debias)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error, error.norm)


@rows_or_sketch
def mce(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    assignment: AssignmentName = "hard",
    closed: Side = "left",
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the maximum calibration error over bins, ``ece(norm="max")``; 0 is perfect.

    MCE = max_k abs(mean outcome - mean prediction) over the bins that hold any row. It is the
    error of the noisiest bin more often than of the worst one: read it beside
    :func:`calibrant.bin_table`.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or its rule: "sqrt" is floor(sqrt(n)), "sweep" the largest number for which
        mean outcomes do not decrease, "cv" that of the smallest leave-one-out squared error.
    strategy : {"uniform", "quantile"} or array_like
        Bins of equal width or nearly equal weight, or edges from 0 to 1, which fix `n_bins`.
    assignment : {"hard", "convex"}
        "hard": each row counts in its bin. "convex": it is divided between the two nearest centres.
    closed : {"left", "right"}
        Which edge belongs to a bin; 0 and 1 always belong to the outer bins.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The largest gap of any bin (and of any class, where there are several).

    See Also
    --------
    ece : Mean over the bins.
    bin_table : The bins themselves.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015); Posocco and Bonnefoy (2021), section 3.

    Examples
    --------
    >>> mce([0, 0, 1, 1], [0.125, 0.25, 0.75, 0.875], n_bins=2)
    0.1875
    """
    error = read_binned_error(n_bins, strategy, assignment, "max", closed=closed)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error, error.norm)


@of_rows
def ace(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: BinCount = 15,
    assignment: AssignmentName = "hard",
    norm: NormName = "l1",
    weighting: WeightingName = "mass",
    debias: bool = False,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the adaptive calibration error, ``ece(strategy="quantile")``; 0 is perfect.

    Bins hold nearly equal weight. For more than two columns it is class-wise unless `multiclass`
    says otherwise: with bins of exactly equal counts this is the ACE of Nixon et al. (2019).

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or its rule: "sqrt" is floor(sqrt(n)), "sweep" the largest number for which
        mean outcomes do not decrease, "cv" that of the smallest leave-one-out squared error.
    assignment : {"hard", "convex"}
        "hard": each row counts in its bin. "convex": it is divided between the two nearest centres.
    norm : {"l1", "l2", "max"}
        Mean, root mean square or maximum over the bins.
    weighting : {"mass", "width"}
        Weight of a bin: that of its rows, or its width.
    debias : bool
        Subtract the expected effect of sampling noise; needs norm "l1" or "l2".
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error over bins of equal mass.

    See Also
    --------
    ece : Bins of equal width, or of other kinds.

    Notes
    -----
    Tied scores are in one bin: there can be fewer than asked for. The order of rows never matters.

    References
    ----------
    Nixon et al., "Measuring Calibration in Deep Learning" (2019), eq. 3; Posocco and
    Bonnefoy (2021), ECE_a.

    Examples
    --------
    >>> ace([0, 1, 0, 1], [0.125, 0.25, 0.375, 0.5], n_bins=2)
    0.1875
    """
    error = read_binned_error(n_bins, "quantile", assignment, norm, weighting, debias=debias)
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    reduction = reduce_table(table, "classwise" if multiclass is None else multiclass)
    return reduction.measure(error, error.norm)


@rows_or_sketch
def soft_label_ece(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: BinCount = 10,
    strategy: Strategy = "uniform",
    assignment: AssignmentName = "hard",
    norm: NormName = "l1",
    weighting: WeightingName = "mass",
    closed: Side = "left",
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the soft mean expected calibration error (SMECE); 0 is perfect.

    SMECE = sum_k (W_k / W) abs(mean prediction - mean soft label): :func:`ece` under the name by
    which people with probabilistic labels look for it, with 10 bins by default.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or its rule: "sqrt" is floor(sqrt(n)), "sweep" the largest number for which
        mean outcomes do not decrease, "cv" that of the smallest leave-one-out squared error.
    strategy : {"uniform", "quantile"} or array_like
        Bins of equal width or nearly equal weight, or edges from 0 to 1, which fix `n_bins`.
    assignment : {"hard", "convex"}
        "hard": each row counts in its bin. "convex": it is divided between the two nearest centres.
    norm : {"l1", "l2", "max"}
        Mean, root mean square or maximum over the bins.
    weighting : {"mass", "width"}
        Weight of a bin: that of its rows, or its width.
    closed : {"left", "right"}
        Which edge belongs to a bin; 0 and 1 always belong to the outer bins.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The error; exactly 0 when every label equals its prediction.

    See Also
    --------
    ece : The same error with 15 bins by default.
    smooth_ece : smECE, the smooth calibration error, which is no special case of this.

    Notes
    -----
    Rows with p = 1 belong to the last bin. The paper's half-open bins drop them.

    References
    ----------
    Leznik, "Soft Mean Expected Calibration Error" (2026), Definition 1.

    Examples
    --------
    >>> soft_label_ece([0.25, 0.5, 1.0], [0.25, 0.5, 1.0])
    0.0
    >>> soft_label_ece([0.25, 0.75], [0.5, 0.5])
    0.0
    """
    error = read_binned_error(n_bins, strategy, assignment, norm, weighting, closed)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error, error.norm)


MEASURES = (
    MeasureInfo(
        ece,
        label="ECE",
        title="Binned calibration error (ECE)",
        meaning="Mean distance between outcomes and predictions over bins of equal width.",
        definition="Σ over bins of |Σ w (y − p)| / W.",
        make=read_binned_error,
        sketch="probability",
        in_assess=True,
        order=2,
    ),
    MeasureInfo(
        ace,
        label="ACE",
        title="Adaptive calibration error (ACE)",
        meaning="Mean distance between outcomes and predictions over bins of equal weight.",
        definition="Σ over bins of |Σ w (y − p)| / W, the bins between quantiles of the scores.",
        special_case_of="ece",
    ),
    MeasureInfo(
        mce,
        label="MCE",
        title="Maximum calibration error (MCE)",
        meaning="Distance between outcomes and predictions in the worst bin; noisy in small bins.",
        definition="max over bins of |Σ w (y − p) / Σ w|.",
        special_case_of="ece",
        sketch="probability",
    ),
    MeasureInfo(
        soft_label_ece,
        label="SMECE",
        title="Soft mean calibration error (SMECE)",
        meaning="The binned error for labels that are probabilities; 0 where these are predicted.",
        definition="Σ over bins of |Σ w (y − p)| / W, with y in [0, 1].",
        special_case_of="ece",
        sketch="probability",
    ),
)
