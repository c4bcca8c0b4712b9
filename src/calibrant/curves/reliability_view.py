"""What a reliability diagram shows, whatever draws it.

matplotlib pictures, the diagrams of a report and those of the terminal draw a `ReliabilityView`:
the curve where it is known, point masses, bins with their numbers of rows, the distribution of
scores, all within one `Window`. Nothing in it depends on how it is drawn.

Point masses are single scores with so many rows that diagrams mark them one by one. Where there are
few distinct scores, each is one. Among many, a score is one if it holds a twentieth of the weight,
at least thirty rows, and ten times as many as the scores next to it: of rounded scores, all of
which hold many rows, none need stand out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray, IntArray, TabularResult
from calibrant.curves.reliability import Curve, reliability_curve, score_range
from calibrant.data.binning import Bins, UniformBins
from calibrant.data.classes import ROW_OPTIONS, one_problem
from calibrant.data.problem import Index, Pooled, Problem
from calibrant.inference.estimate import Estimate, estimate
from calibrant.measures.bin_table import BinTable, table_of
from calibrant.measures.binned import read_binning
from calibrant.measures.scores import ScoreDecomposition, decomposition_of

Mask = npt.NDArray[np.bool_]
# How axes are divided: evenly in probabilities or in their logits.
Scale = Literal["probability", "logit"]

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
# The number of bins in a window that shows where outcomes lie: about one per point of print, and
# half as many beside loess, as is usual there.
_NARROW_BINS = 200
# Up to this many distinct scores, with at least so many rows per score on average, are all marked.
_MAX_FEW, _MIN_MEAN_ROWS = 20, 5
# Among more, a mass has at least this fraction of the weight, this many rows, and this many times
# the median number of rows of its neighbours, of which there are so many on either side.
_MIN_FRACTION, _MIN_ROWS, _MIN_RATIO, _NEIGHBOURS = 0.05, 30, 10.0, 2
# Rows are sorted only in those of so many bins that may hold a mass: in most samples none.
_BINS = 10_000
# Scores that differ by less than this fraction of themselves differ by rounding.
_ROUNDING = 2.0**-50
# A cell of a sketch holds one score if its rows have at most this standard deviation, in widths.
_MAX_SPREAD = 0.05
# An interval by itself, where a kernel estimate is known, is shown if it holds so many rows.
_MIN_RUN = 5
# The opacity of bars: of one that holds next to no rows, and of the one that holds most.
_FAINT, _STRONG = 0.05, 0.3
# The names of the axes: whether of confidences, and whether of deviations.
_AXES = {
    (False, False): ("predicted probability", "observed frequency"),
    (False, True): ("predicted probability", "observed − predicted"),
    (True, False): ("confidence", "accuracy"),
    (True, True): ("confidence", "accuracy − confidence"),
}


@dataclass(frozen=True)
class Window:
    """The scores that are shown, the same on both axes."""

    low: float
    high: float

    @classmethod
    def around(cls, views: Iterable[ReliabilityView]) -> Window:
        """Return the window that shows all of some views.

        It is [0, 1], unless all scores, and outcomes where scores are dense, keep to half of it.
        """
        extents = np.concatenate([view.extent() for view in views])
        low, high = float(extents.min()), float(extents.max())
        if high - low > _WIDE:
            return cls(0.0, 1.0)
        middle, reach = (low + high) / 2, max(high - low, _MINIMUM_SPAN) / 2
        window = cls(*_rounded_out(max(middle - reach, 0.0), min(middle + reach, 1.0)))
        return window if window.span <= _WIDE_WINDOW + _SLACK else cls(0.0, 1.0)

    @classmethod
    def of_logits(cls, views: Iterable[ReliabilityView]) -> Window:
        """Return a window that ends at a power of ten next to 0 and to 1, and holds the scores.

        Those beyond 0.001 and 0.999 are not shown: few samples have rows enough to tell.
        """
        scores = np.concatenate([view.curve.x[view.known] for view in views])
        return cls(_power_of_ten(float(scores.min())), 1 - _power_of_ten(1 - float(scores.max())))

    def holds(self, x: FloatArray) -> Mask:
        """Return which scores are shown."""
        slack = _SLACK * self.span
        return np.asarray((x >= self.low - slack) & (x <= self.high + slack))

    @property
    def span(self) -> float:
        """The width of the window."""
        return self.high - self.low


@dataclass(frozen=True, eq=False, repr=False)
class PointMasses(TabularResult):
    """Single scores that many rows have, each with its mean outcome.

    Attributes
    ----------
    score
        The scores, increasing.
    outcome
        The mean outcome at each score.
    share
        The fraction of the total weight at each score.
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
        """Return the same masses with outcome - score in place of the outcome."""
        return replace(self, outcome=self.outcome - self.score)

    def where(self, kept: Mask) -> PointMasses:
        """Return some of the masses."""
        return replace(
            self, score=self.score[kept], outcome=self.outcome[kept], share=self.share[kept]
        )


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """Recalibrated scores, the fraction of rows that has each, and the base rate."""

    score: FloatArray
    fraction: FloatArray
    base_rate: float


@dataclass(frozen=True, eq=False)
class ReliabilityView:
    """What a reliability diagram shows of one model."""

    curve: Curve  # the outcome to expect at each score
    # A table of narrow bins with the outcomes in each; None where it is not known.
    outcomes: BinTable | None = None
    bins: BinTable | None = None  # the bins of a binned curve; None for others
    # Single scores that many rows have; None where they are not known.
    masses: PointMasses | None = None
    # The lowest and the highest score; None where they are not known.
    scores: FloatArray | None = None
    n: int | None = None  # the number of rows; None where it is not known
    is_confidence: bool = False  # whether predictions are the confidence in a predicted class
    # The measure that belongs to the curve: smECE or ECE with its interval, or the score
    # decomposition of an isotonic curve; None where it was not asked for.
    measured: Estimate | ScoreDecomposition | None = None

    @property
    def rows(self) -> BinTable | None:
        """The finest table of outcomes that is known."""
        return self.bins if self.outcomes is None else self.outcomes

    @property
    def is_binned(self) -> bool:
        """Whether the curve has one point per bin."""
        return self.curve.method == "binned"

    @property
    def is_smooth(self) -> bool:
        """Whether the curve is a kernel estimate, and has a density of scores."""
        return self.curve.method in ("smooth", "density", "local", "loess")

    @property
    def known(self) -> Mask:
        """Where the curve is known.

        Smoothed residuals end where rows do. Another kernel estimate is known where the kernel
        weights of the rows add up to at least that of one row a bandwidth away, and no farther than
        a bandwidth from all scores; but not in intervals that hold fewer than five rows.
        """
        curve, h = self.curve, self.curve.bandwidth
        known = np.isfinite(curve.y)
        if not h > 0 or curve.of_residuals:
            return known
        if self.scores is not None:
            low, high = self.scores
            known &= (curve.x >= low - h) & (curve.x <= high + h)
        if self.n is not None:
            known &= curve.density >= math.exp(-0.5) / (self.n * h * math.sqrt(2 * math.pi))
            known = _held(known, self.n * curve.density * np.gradient(curve.x))
        return known

    def drawn(self, window: Window, *, deviation: bool = False) -> Curve:
        """Return the curve, or its deviation from the diagonal; nan where unknown or not shown."""
        curve = self.curve
        held = window.holds(curve.x)
        if self.is_smooth:
            # The points next to the window as well: a line goes on to its edge.
            held = held | np.append(held[1:], False) | np.append(False, held[:-1])
        shown = self.known & held
        level = curve.x if deviation and curve.method != "local" else 0.0
        y, lower, upper = (
            np.where(shown, values - level, np.nan) for values in (curve.y, curve.low, curve.high)
        )
        return replace(curve, y=y, low=lower, high=upper)

    def marks(self, window: Window, *, deviation: bool = False) -> PointMasses | None:
        """Return the single scores to be marked, or the means of a few bins; None for no marks."""
        masses = self.masses
        if masses is None and self.outcomes is not None:
            masses = _few_bins(self.outcomes)
        if masses is None or self.is_binned:
            return None
        masses = masses.where(window.holds(masses.score))
        if not len(masses):
            return None
        return masses.less_scores() if deviation else masses

    def axis_names(self, *, deviation: bool = False) -> tuple[str, str]:
        """Return the names of the axes of predictions and outcomes."""
        return _AXES[self.is_confidence, deviation]

    def density(self) -> tuple[FloatArray, FloatArray]:
        """Return the density of scores as a line: smooth, or in steps where only bins are known."""
        if self.is_smooth or self.rows is None:
            return self.curve.x, self.curve.density
        edges, weight = self.rows.edges, self.rows.weight
        return np.repeat(edges, 2)[1:-1], np.repeat(weight / weight.sum() / np.diff(edges), 2)

    def density_by_outcome(self) -> tuple[FloatArray, FloatArray]:
        """Return the density of scores of outcomes 1 and of outcomes 0, from a smooth curve."""
        curve = self.curve
        frequency = np.nan_to_num(curve.y + curve.x if curve.method == "local" else curve.y)
        return curve.density * frequency, curve.density * (1 - frequency)

    def recalibrated(self) -> Recalibrated:
        """Return the scores recalibrated by the curve: of rows where known, else of the density."""
        curve, rows = self.curve, self.rows
        if curve.method == "isotonic":
            score, weight = curve.y, curve.density
        elif self.is_binned and self.bins is not None:
            score, weight = self.bins.mean_true, self.bins.weight
        elif rows is not None:
            known = self.known
            score, weight = np.interp(rows.mean_pred, curve.x[known], curve.y[known]), rows.weight
        else:
            score, weight = curve.y, curve.density * np.gradient(curve.x)
        known = np.isfinite(score) & (weight > 0)
        score, fraction = score[known], weight[known] / weight[known].sum()
        if rows is None:
            return Recalibrated(score, fraction, float(score @ fraction))
        filled = rows.weight > 0
        base_rate = np.average(rows.mean_true[filled], weights=rows.weight[filled])
        return Recalibrated(score, fraction, float(base_rate))

    def extent(self) -> FloatArray:
        """Return the lowest and highest score or outcome that a diagram has to show."""
        curve, scores = self.curve, self.scores
        dense = curve.density > _THIN * curve.density.max()
        if scores is None:
            scores = curve.x[dense & np.isfinite(curve.y)]
            if self.rows is not None:
                scores = self.rows.mean_pred
        # Beyond the scores, where a kernel estimate goes on for a while, its band is very wide.
        first = np.searchsorted(curve.x, np.nanmin(scores), side="right") - 1
        last = np.searchsorted(curve.x, np.nanmax(scores), side="left")
        dense[: max(first, 0)] = dense[last + 1 :] = False
        heights: tuple[FloatArray, ...] = (curve.y, curve.low, curve.high)
        if curve.method == "isotonic":
            # At its ends, beyond which there are no rows, its band is very wide.
            heights = (curve.y,)
        elif curve.method == "local":
            heights = ()
        values = np.concatenate((scores, *(height[dense] for height in heights)))
        return np.array([np.nanmin(values), np.nanmax(values)])


def view_of_rows(
    y_true: Any,
    y_prob: Any,
    options: Mapping[str, Any],
    *,
    measured: bool = True,
    scale: Scale = "probability",
) -> ReliabilityView:
    """Return the view of rows or of a sketch, which are read and checked once.

    Parameters
    ----------
    y_true, y_prob, options
        The arguments of :func:`calibrant.reliability_curve`; but the band holds for the whole curve
        unless ``simultaneous`` is False.
    measured
        Whether to measure the error that belongs to the curve.
    scale
        How the axes are divided, and the narrow bins with them.
    """
    problem = one_problem(y_true, y_prob, *map(options.get, ROW_OPTIONS))
    asked = {"simultaneous": True, **options}
    found = _measured(problem, options) if measured else None
    curve = reliability_curve(problem, **asked)
    bins = masses = None
    if curve.method == "binned":
        binning = read_binning(
            options.get("n_bins", 15), options.get("strategy", "uniform"), "left"
        )
        bins = table_of(problem, binning.bins(problem))
    else:
        masses = point_masses(problem)
    view = ReliabilityView(
        curve,
        bins=bins,
        masses=masses,
        scores=score_range(problem),
        n=problem.n,
        # The largest of C probabilities is at least 1/C.
        is_confidence=problem.is_exact and problem.rows.lowest > 0,
        measured=found,
    )
    if scale == "logit":
        # A sketch knows sums over even bins alone.
        known = table_of(problem, _logit_bins()) if problem.is_exact else None
        return replace(view, curve=_within(curve, score_range(problem)), outcomes=known)
    n_narrow = _NARROW_BINS // 2 if curve.method == "loess" else _NARROW_BINS
    narrow = UniformBins.of(_narrow_bins(problem, Window.around([view]), n_narrow))
    return replace(view, outcomes=table_of(problem, narrow))


def view_of_curve(curve: Curve, table: BinTable | None = None) -> ReliabilityView:
    """Return the view of a curve, and of a table of the outcomes of its rows if there is one."""
    if table is None:
        return ReliabilityView(curve)
    n = int(table.n.sum())
    if curve.method == "binned":
        return ReliabilityView(curve, bins=table, n=n)
    return ReliabilityView(curve, outcomes=table, n=n)


def bar_opacity(table: BinTable) -> FloatArray:
    """Return the opacity of each bin's bar, higher where there are more rows."""
    # On a linear scale a few large bins would make all others invisible.
    return np.asarray(_FAINT + (_STRONG - _FAINT) * np.sqrt(table.n / table.n.max()))


def level_runs(curve: Curve) -> IntArray:
    """Return the first and last point of each level run of a curve, one row per run."""
    level = np.diff(curve.y) == 0
    return np.flatnonzero(np.diff(level, prepend=False, append=False)).reshape(-1, 2)


def _measured(problem: Problem, options: Mapping[str, Any]) -> Estimate | ScoreDecomposition | None:
    """Return the measure that belongs to a curve of this method; None for the area of others."""
    method = options.get("method", "smooth")
    about = _only(options, "level", "n_resamples", "rng", "clusters", "sample_weight")
    if method == "isotonic":
        return decomposition_of(problem)
    if method == "smooth":
        width = options.get("bandwidth")
        given = {} if width is None or isinstance(width, str) else {"bandwidth": width}
        return estimate("smooth_ece", problem, **about, **given)
    # There is no interval where outcomes choose the bins.
    if method == "binned" and options.get("n_bins") not in ("sweep", "cv"):
        return estimate("ece", problem, **about, **_only(options, "n_bins", "strategy"))
    return None


def _only(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _held(known: Mask, rows: FloatArray) -> Mask:
    """Return a mask without runs that hold very few rows, unless none holds more."""
    runs = np.flatnonzero(np.diff(known, prepend=False, append=False)).reshape(-1, 2)
    n = np.array([rows[slice(*run)].sum() for run in runs])
    kept = known.copy()
    for run in runs[n < min(_MIN_RUN, n.max(initial=0.0))]:
        kept[slice(*run)] = False
    return kept


def _within(curve: Curve, scores: FloatArray) -> Curve:
    """Return a curve that ends where scores do: in logits, what lies beyond is much of the axis."""
    held = (curve.x >= scores[0]) & (curve.x <= scores[1])
    y, low, high = (np.where(held, part, np.nan) for part in (curve.y, curve.low, curve.high))
    return replace(curve, y=y, low=low, high=high)


def _narrow_bins(problem: Problem, window: Window, n: int = _NARROW_BINS) -> int:
    """Return the number of bins of [0, 1] so narrow that a window shows them as lines."""
    maximum = round(n / window.span)
    if problem.is_exact:
        return maximum
    n_cells = round(1 / problem.cell_width)
    return max(k for k in range(1, maximum + 1) if n_cells % k == 0)


def _logit_bins() -> Bins:
    """Return narrow bins, evenly divided in logits."""
    reach = math.log(1e4)
    starts = 1 / (1 + np.exp(-np.linspace(-reach, reach, _NARROW_BINS)))
    return Bins.starting_at(np.append(0.0, starts))


def _few_bins(table: BinTable) -> PointMasses | None:
    """Return the means of a table's bins where those are few, else None."""
    filled = table.n > 0
    if not are_few(table.n[filled]):
        return None
    fraction = table.weight[filled] / table.weight.sum()
    return PointMasses(table.mean_pred[filled], table.mean_true[filled], fraction, is_all=True)


def _power_of_ten(p: float) -> float:
    """Return the power of ten at or below a probability, from 0.001 to 0.1."""
    return 10.0 ** min(-1, math.floor(math.log10(max(p, 1e-3)) + _SLACK))


def _rounded_out(low: float, high: float) -> tuple[float, float]:
    """Return round numbers at or beyond two scores, within [0, 1]."""
    minimum = (high - low) / _INTERVALS
    power = 10.0 ** math.floor(math.log10(minimum))
    step = power * next(number for number in _ROUND if number * power >= minimum * (1 - _SLACK))
    first, last = math.floor(low / step + _SLACK), math.ceil(high / step - _SLACK)
    return max(round(first * step, 12), 0.0), min(round(last * step, 12), 1.0)


def point_masses(problem: Problem) -> PointMasses:
    """Return the point masses of a problem; of a sketch, those that it can resolve."""
    points, is_single = _points_of_rows(problem) if problem.is_exact else _points_of_cells(problem)
    rows, weight, true = points.rows, points.weight, points.true
    is_all = bool(is_single.all() and rows.sum() == problem.n) and are_few(rows)
    kept = is_single & is_all
    if not is_all:
        is_large = (weight >= _MIN_FRACTION * problem.weight) & (rows >= _MIN_ROWS)
        for k in np.flatnonzero(is_single & is_large):
            around = np.r_[rows[max(k - _NEIGHBOURS, 0) : k], rows[k + 1 : k + 1 + _NEIGHBOURS]]
            kept[k] = len(around) == 0 or rows[k] >= _MIN_RATIO * np.median(around)
    weight = weight[kept]
    return PointMasses(points.score[kept], true[kept] / weight, weight / problem.weight, is_all)


def are_few(rows: npt.NDArray[np.number]) -> bool:
    """Tell whether scores with these numbers of rows are few enough to be marked one by one."""
    return len(rows) <= _MAX_FEW and bool(rows.sum() >= _MIN_MEAN_ROWS * len(rows))


def _points_of_rows(problem: Problem) -> tuple[Pooled, Mask]:
    """Return the scores in and next to bins that may hold a mass; all, where they are few."""
    bins = UniformBins.of(_BINS)
    (weight,) = problem.totals(bins, "weight")
    filled = np.flatnonzero(weight)
    # Rounding may divide each of a few scores between two bins.
    if len(filled) <= 2 * _MAX_FEW:
        chosen = filled
    else:
        pairs = weight[:-1] + weight[1:] >= _MIN_FRACTION * weight.sum()
        heavy = np.flatnonzero((np.append(pairs, False) | np.append(False, pairs))[filled])
        near = heavy[:, None] + np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1)
        chosen = filled[np.unique(np.clip(near, 0, len(filled) - 1))]
    if len(chosen) == 0:
        return Pooled(*np.empty((6, 0))), np.empty(0, dtype=bool)
    # The pooling of all rows is computed once and kept.
    is_all = len(chosen) == len(filled)
    pooled = problem.rows.pooled if is_all else _pooled_in(problem, bins, chosen)
    close = np.diff(pooled.score) <= _ROUNDING * pooled.score[1:]
    points = _joined(pooled, close)
    return points, np.ones(len(points.score), dtype=bool)


def _pooled_in(problem: Problem, bins: UniformBins, chosen: Index) -> Pooled:
    """Return the rows of some bins pooled by score."""
    is_chosen = np.zeros(bins.n_bins, dtype=bool)
    is_chosen[chosen] = True
    is_in = np.concatenate([is_chosen[bins.index(p)] for p, _, _ in problem.rows.blocks()])
    return problem.rows.take(np.flatnonzero(is_in)).pooled


def _points_of_cells(problem: Problem) -> tuple[Pooled, Mask]:
    """Return the cells of a sketch, and which of them hold a single score."""
    cells, most = problem.pooled, _MAX_SPREAD * problem.cell_width
    is_single = np.asarray(cells.spread <= most)
    close = (np.diff(cells.score) <= most) & is_single[1:] & is_single[:-1]
    return _joined(cells, close), is_single[np.append(True, ~close)]


def _joined(pooled: Pooled, close: Mask) -> Pooled:
    """Return pooled rows with each score that is close to the one before joined to it."""
    if not close.any():
        return pooled
    first = np.flatnonzero(np.append(True, ~close))
    _, *sums = pooled.columns()
    return Pooled(pooled.score[first], *np.add.reduceat(sums, first, axis=1))
