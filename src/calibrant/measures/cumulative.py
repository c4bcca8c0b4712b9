"""Cumulative differences of outcomes and predictions, one increment per distinct score.

With C_k = (1/W) sum over rows of score at most s_k of w (y - p), and C_0 = 0:

=========  =======================  ====================================================
ECCE-MAD   max_k abs(C_k)           the maximum absolute deviation from 0
ECCE-R     max_k C_k - min_k C_k    the largest total deviation over any interval of scores: the
                                    cutoff calibration error
sigma_n    sqrt(sum w^2 p(1-p))/W   standard deviation of C_n under perfect calibration
=========  =======================  ====================================================

Tied scores make one increment: row order does not matter. No bins, no bandwidth, O(n log n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, TabularResult
from calibrant.data import validation
from calibrant.data.binning import Bins, UniformBins
from calibrant.data.classes import one_problem, reduce_classes, rows_or_sketch
from calibrant.data.problem import Pooled, Problem, joined
from calibrant.data.rows import Sample
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.measures.norms import LinearImage, MaxNorm, RangeNorm
from calibrant.measures.registry import Measure, MeasureInfo

# From so many rows on, sorting those near the extremes alone is four times as fast as sorting all
# (measured at 10^7); the cells in which the others are pooled.
_MANY, _CELLS = 1 << 17, 1 << 16
# What rounding may add to the sums of a sketch.
_ROUNDING = 1e-9
# Cells for the noise of cumulative sums, which exceed those at cell ends by 0.03 sigma on average.
_MAX_NOISE_CELLS = 512


class Statistic(Enum):
    """The maximum excursion of cumulative sums: in absolute value, or from lowest to highest."""

    MAX = "max"
    RANGE = "range"

    def of(self, high: FloatArray, low: FloatArray) -> FloatArray:
        """Return the statistic of the highest and lowest values, which include the start at 0."""
        # Adding 0.0 turns -0.0 into 0.0.
        return (np.maximum(high, -low) if self is Statistic.MAX else high - low) + 0.0


@dataclass(frozen=True, eq=False)
class CumulativeDifferences:
    """Differences summed over increasing scores, cumulative sums divided by the total weight."""

    score: FloatArray  # the distinct scores, one per increment
    weight: FloatArray
    increment: FloatArray  # the sum of differences at each score
    sigma: float  # standard deviation of the last sum under the null hypothesis; nan where unknown

    @property
    def total(self) -> float:
        """The total weight that cumulative sums are divided by."""
        return float(self.weight.sum())

    @property
    def fraction(self) -> FloatArray:
        """The cumulative fraction of the weight, from 0 to 1."""
        passed = np.concatenate(([0.0], np.cumsum(self.weight)))
        return np.asarray(passed / passed[-1])

    @property
    def deviation(self) -> FloatArray:
        """The cumulative sums, from the start at 0."""
        return np.concatenate(([0.0], np.cumsum(self.increment))) / self.total

    def excursion(self, statistic: Statistic) -> float:
        """Return the maximum excursion."""
        position = np.cumsum(self.increment)
        high, low = position.max().clip(min=0), position.min().clip(max=0)
        return float(statistic.of(high, low) / self.total)


@dataclass(frozen=True, eq=False, repr=False)
class CumulativeCurve(TabularResult):
    """Cumulative deviation of outcomes over increasing scores; flat under perfect calibration.

    The slope between two points is the mean deviation over the scores between them.

    Attributes
    ----------
    fraction
        Cumulative fraction of the weight, from 0 to 1.
    score
        The score reached; the first, at fraction 0, is the lowest.
    deviation
        The sum of w (y - p) so far, over the total weight, from 0.
    sigma
        Standard deviation of the last deviation under perfect calibration; nan for soft labels.
    """

    fraction: FloatArray
    score: FloatArray
    deviation: FloatArray
    sigma: float

    def thinned(self, n_points: int = 2048) -> CumulativeCurve:
        """Return the curve with about `n_points` points at most, its extremes among them.

        Of each run of points the first, the lowest and the highest are kept, and the last point of
        all, so that a drawing looks the same and has the same range.
        """
        n = len(self.deviation)
        if n <= n_points:
            return self
        run = -(-3 * n // n_points)
        filled = np.pad(self.deviation, (0, -n % run), mode="edge").reshape(-1, run)
        first = np.arange(len(filled)) * run
        lowest, highest = first + filled.argmin(axis=1), first + filled.argmax(axis=1)
        kept = np.unique(np.minimum(np.concatenate((first, lowest, highest, [n - 1])), n - 1))
        return CumulativeCurve(
            self.fraction[kept], self.score[kept], self.deviation[kept], self.sigma
        )

    def _printed(self) -> list[str]:
        ends = f"{self.deviation.min():+.4g} to {self.deviation.max():+.4g}"
        size = f"{len(self.score) - 1} scores"
        return [f"CumulativeCurve({size}, deviation from {ends}, sigma = {self.sigma:.4g})"]


def cumulative_differences(
    problem: Problem, *, only_extremes: bool = False
) -> CumulativeDifferences:
    """Return the cumulative sums of w (y - p).

    `only_extremes` gives fewer increments for many rows: extremes and sigma are the same.
    """
    is_plain = problem.is_exact and not problem.is_weighted and not problem.is_soft
    few = only_extremes and is_plain and problem.n >= _MANY
    pooled = _pooled_between_extremes(problem.rows) if few else problem.pooled
    noise = pooled.weight_squared * pooled.score * (1 - pooled.score)
    sigma = np.nan if problem.is_soft else float(np.sqrt(noise.sum()) / pooled.weight.sum())
    return CumulativeDifferences(pooled.score, pooled.weight, pooled.residual, sigma)


def as_curve(differences: CumulativeDifferences) -> CumulativeCurve:
    """Return cumulative differences as a curve."""
    score = np.concatenate((differences.score[:1], differences.score))
    return CumulativeCurve(differences.fraction, score, differences.deviation, differences.sigma)


def moves_in_cells(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Return how much cumulative sums rise and how much they fall within each cell of a sketch.

    They rise by sum w y (1 - p) / W, and fall by sum w (1 - y) p / W.
    """
    n_cells = round(1 / problem.cell_width)
    residual = problem.cell_sums(UniformBins.of(n_cells).index, n_cells)[3] / problem.weight
    return residual[1], -residual[0]


def bounds_in_cells(rise: FloatArray, fall: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds of cumulative sums within cells where they rise and fall by so much in total.

    From a at the start to b at the end of a cell they stay above max(a - fall, b - rise) and below
    min(a + rise, b + fall), in whatever order its rows are.
    """
    end = np.cumsum(rise - fall)
    start = np.append(0.0, end[:-1])
    return np.maximum(start - fall, end - rise), np.minimum(start + rise, end + fall)


def excursion_error(problem: Problem) -> float:
    """Bound how much larger the excursion over the rows of a sketch may be than over its cells.

    Within a cell cumulative sums exceed the values at its ends by at most the smaller of what they
    rise and what they fall.
    """
    if problem.is_exact:
        return 0.0
    return float(np.minimum(*moves_in_cells(problem)).max()) + _ROUNDING


def _pooled_between_extremes(rows: Sample) -> Pooled:
    """Return 0/1 outcomes of weight 1 pooled by score near the extremes, by cell elsewhere.

    Sums over narrow cells of scores give the cumulative sums at the ends of cells. Only where they
    may be beyond all ends within a cell are rows sorted.
    """
    bins = UniformBins.of(_CELLS)
    count, _, pred, residual, _ = rows.cell_sums(bins.index, _CELLS)
    end = np.cumsum(residual.sum(axis=0))
    low, high = bounds_in_cells(residual[1], -residual[0])
    is_open = (high > max(float(end.max()), 0.0)) | (low < min(float(end.min()), 0.0))
    (closed,) = np.nonzero((count.sum(axis=0) > 0) & ~is_open)
    n, p = count[:, closed].sum(axis=0), pred[:, closed].sum(axis=0)
    true = count[1, closed]
    cells = Pooled(np.minimum(p / n, 1.0), n, n, n, true, true - p)
    near = np.concatenate([is_open[bins.index(score)] for score, _, _ in rows.blocks()])
    if not near.any():
        return cells
    single = rows.take(np.flatnonzero(near)).pooled
    order = np.argsort(np.concatenate((closed, bins.index(single.score))), kind="stable")
    return joined((cells, single)).some(order)


def known_sigma(differences: CumulativeDifferences, purpose: str) -> float:
    """Return sigma, refusing where there is no noise to compare with."""
    if np.isnan(differences.sigma):
        rule = "must be 0 or 1 for {purpose}, as the noise of soft labels is unknown"
        raise CalibrantError(rule, argument="y_true", found="soft labels", purpose=purpose)
    if differences.sigma == 0:
        raise CalibrantError(
            "must hold a prediction strictly between 0 and 1 for {purpose}: without any there is "
            "no noise",
            argument="y_prob",
            purpose=purpose,
        )
    return differences.sigma


@dataclass(frozen=True)
class CumulativeError(Measure):
    """The maximum excursion of cumulative differences, as it is or in units of its noise."""

    statistic: Statistic
    normalize: bool = False

    def __call__(self, problem: Problem) -> float:
        differences = cumulative_differences(problem, only_extremes=True)
        excursion = differences.excursion(self.statistic)
        if self.normalize:
            return excursion / known_sigma(differences, "normalize=True")
        return excursion

    def sketch_error(self, problem: Problem, value: float) -> float:
        # Within a cell either extreme may be exceeded, and the range has both.
        error = excursion_error(problem) * (1 if self.statistic is Statistic.MAX else 2)
        if not self.normalize:
            return error
        sigma = cumulative_differences(problem).sigma
        # p (1 - p) changes by less than p does, and scores are known to a cell's width.
        squares = float(problem.pooled.weight_squared.sum())
        variance_error = squares * problem.cell_width / problem.weight**2
        min_sigma = np.sqrt(max(sigma**2 - variance_error, 0.0))
        return float((value * sigma + error) / min_sigma - value) if min_sigma else float("inf")

    @property
    def no_interval(self) -> str:
        return "with normalize=True, which changes units with n" if self.normalize else ""

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the cumulative sums over cells of about equal numbers of rows."""
        p = problem.scores
        n_cells = min(_MAX_NOISE_CELLS, len(p))
        starts = np.unique(p[np.arange(n_cells) * len(p) // n_cells])
        norm = MaxNorm() if self.statistic is Statistic.MAX else RangeNorm()

        def of_totals(r: FloatArray, w: FloatArray) -> FloatArray:
            return np.asarray(np.cumsum(r, axis=-1) / w.sum(axis=-1, keepdims=True))

        return LinearImage(norm, Bins.starting_at(starts).index, len(starts), of_totals)


def read_cumulative_error(statistic: Statistic, *, normalize: bool = False) -> CumulativeError:
    """Parse the options of a call."""
    return CumulativeError(statistic, validation.as_flag(normalize, "normalize"))


@rows_or_sketch
def ecce_mad(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the largest cumulative deviation of outcomes from predictions; 0 is perfect.

    ECCE-MAD = max_k abs(C_k), C_k = (1/W) sum of w_i (y_i - p_i) over rows with p_i <= s_k, for
    the distinct scores s_1 < s_2 < ...

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    normalize : bool
        Divide by sigma_n = sqrt(sum w_i^2 p_i (1 - p_i)) / W, the standard deviation of the last
        C_k under perfect calibration. Then about 1.25 is expected of calibrated predictions
        whatever their number. Soft labels have no sigma_n and raise.
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
        The error, between 0 and 1; in units of sigma_n with `normalize`.

    See Also
    --------
    ecce_r : The range of C instead of its maximum absolute value.
    cumulative_curve : C itself.
    cumulative_test : A test of calibration by this error.

    Notes
    -----
    Equal scores make one increment, so the order of rows never matters. The error tends to 0 like
    1 / sqrt(n) for calibrated predictions, without the bias of binned errors. One sort, O(n log n).
    Rows with p = y = 0 or 1 add nothing.

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions" (2022), eq. 6.

    Examples
    --------
    >>> ecce_mad([0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75])
    0.125
    >>> ecce_mad([0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75], normalize=True)
    0.5393
    """
    error = read_cumulative_error(Statistic.MAX, normalize=normalize)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error)


@rows_or_sketch
def ecce_r(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the largest total deviation over any interval of scores; 0 is perfect.

    ECCE-R = max_k C_k - min_k C_k, C_k = (1/W) sum of w_i (y_i - p_i) over rows with p_i <= s_k,
    for the distinct scores s_1 < s_2 < ... and C_0 = 0. It equals the maximum over intervals I of
    scores of abs(sum over p_i in I of w_i (y_i - p_i)) / W: the cutoff calibration error.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    normalize : bool
        Divide by sigma_n = sqrt(sum w_i^2 p_i (1 - p_i)) / W, the standard deviation of the last
        C_k under perfect calibration. Then about 1.60 is expected of calibrated predictions
        whatever their number. Soft labels have no sigma_n and raise.
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
        The error, between ECCE-MAD and twice that; in units of sigma_n with `normalize`.

    See Also
    --------
    ecce_mad : The maximum absolute value of C instead of its range.
    cumulative_curve : C itself.
    cumulative_test : A test of calibration by this error.
    certificate : An upper bound for the population's, which needs independence alone.
    threshold_regret : What recalibration would save at one threshold.

    Notes
    -----
    No monotone recalibration saves more than ECCE-R per decision at any threshold t, where a false
    alarm costs t and a miss 1 - t: it moves the cut-off, and y - t is at most y - p for the rows
    between the two cut-offs if these are below t (or the reverse above it).

    Equal scores make one increment, so the order of rows never matters. Predicting 1 - p of the
    opposite outcome gives the same error. One sort, O(n log n).

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions" (2022), eq. 7.
    Rossellini et al., "Can a calibration metric be both testable and actionable?" (2025): the
    cutoff calibration error.

    Examples
    --------
    >>> ecce_r([0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75])
    0.21875
    """
    error = read_cumulative_error(Statistic.RANGE, normalize=normalize)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error)


@rows_or_sketch
def cumulative_curve(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> CumulativeCurve:
    """Return the cumulative deviation of outcomes from predictions; a flat curve is perfect.

    C_k = (1/W) sum of w_i (y_i - p_i) over rows with p_i <= s_k, against the fraction of the weight
    in those rows. Between two points of the curve, the slope is the mean of y - p over the scores
    between them: positive where predictions are too low.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    CumulativeCurve
        One point per distinct score, after the start at 0.

    See Also
    --------
    subpopulation_curve : The same for a group within a population.
    plot.cumulative : A picture of it.

    Notes
    -----
    The curve of calibrated predictions is like Brownian motion with standard deviation sigma at its
    end. Its maximum absolute value is :func:`calibrant.ecce_mad`, its range
    :func:`calibrant.ecce_r`. One sort, O(n log n).

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions" (2022), eq. 5.

    Examples
    --------
    >>> curve = cumulative_curve([0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75])
    >>> curve.fraction.tolist(), curve.deviation.tolist()
    ([0.0, 0.25, 0.5, 1.0], [0.0, -0.125, -0.03125, 0.09375])
    """
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return as_curve(cumulative_differences(problem))


MEASURES = (
    MeasureInfo(
        ecce_r,
        label="ECCE-R",
        title="Cutoff calibration error (ECCE-R)",
        meaning="Maximum total deviation of outcomes over one interval of scores: what "
        "recalibration could save at most at any threshold.",
        definition="max C − min C, with C the sum of w (y − p) / W over rows in order of p.",
        make=partial(read_cumulative_error, Statistic.RANGE),
        sketch="probability",
        in_assess=True,
        order=3,
    ),
    MeasureInfo(
        ecce_mad,
        label="ECCE-MAD",
        title="Largest cumulative deviation (ECCE-MAD)",
        meaning="Maximum total deviation of outcomes, counted from the lowest score.",
        definition="max |C|, with C the sum of w (y − p) / W over rows in order of p.",
        make=partial(read_cumulative_error, Statistic.MAX),
        sketch="probability",
        in_assess=True,
        order=4,
    ),
)
