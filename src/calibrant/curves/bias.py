"""Bias along a feature: mean outcome minus mean prediction at each of its values.

Each interval is that of the mean outcome, given the predictions. Where predictions explain part of
the outcomes, the mean outcome of n rows has a larger effective sample size: that of a proportion of
events with the variance of the mean of y - p. Its limits are those of Clopper and Pearson at that
size. Few rows with good predictions are no proof of them: what predictions explain is shrunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import ndtri

from calibrant._base import AnyArray, FloatArray, IntArray, TabularResult
from calibrant.curves.features import Feature, read_feature
from calibrant.data import validation
from calibrant.data.binning import nearest_cuts
from calibrant.data.classes import one_problem
from calibrant.data.labels import factors, sorted_names
from calibrant.data.problem import Index
from calibrant.data.rows import Sample, check_same_index
from calibrant.data.validation import as_array, read_weights
from calibrant.errors import CalibrantError, SketchError
from calibrant.formatting import TextTable, interval_cells, interval_digits, percent, shortened
from calibrant.inference.cell_noise import read_codes
from calibrant.numerics import probability

# Distinct numbers have parts of their own where they have this many rows each, on average.
_SEVERAL_ROWS = 5
# Significant digits of numbers, and units of dates, in labels: the first that keep parts distinct.
_DIGITS = range(3, 18)
_UNITS = ("D", "m", "s", "us")
# Numbers outside of these have labels with powers of ten.
_MIN_PLAIN, _MAX_PLAIN = 1e-4, 1e15


@dataclass(frozen=True, eq=False, repr=False)
class BiasTable(TabularResult):
    """Predictions and outcomes along a feature, one row per value, bin or name.

    Attributes
    ----------
    feature
        The name of the feature's column; empty where it has none.
    kind
        The kind of the feature: "names", "numbers" or "dates".
    label
        The value, bin or name of each row, as text.
    minimum, maximum, mean
        The minimum, maximum and mean value of the feature in each row: numbers, or datetime64;
        nan, or NaT, for names and missing values.
    n, weight
        Rows of data, and their total weight.
    mean_pred, mean_true
        Weighted means of prediction and outcome.
    gap
        mean_true - mean_pred: positive where predictions are too low.
    low, high
        The ends of the interval of the gap.
    level, simultaneous
        Confidence level of the intervals, and whether they hold all at once or each by itself.
    has_missing
        Whether the last row is that of missing values.
    n_pooled
        The number of names pooled in the row of others; 0 where there is none.
    is_confidence
        Whether predictions are the confidence in a predicted class, and outcomes its accuracy.
    """

    feature: str
    kind: str
    label: tuple[str, ...]
    minimum: AnyArray
    maximum: AnyArray
    mean: AnyArray
    n: IntArray
    weight: FloatArray
    mean_pred: FloatArray
    mean_true: FloatArray
    gap: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    simultaneous: bool
    has_missing: bool = False
    n_pooled: int = 0
    is_confidence: bool = False

    def __len__(self) -> int:
        return len(self.label)

    @property
    def is_biased(self) -> npt.NDArray[np.bool_]:
        """Where the interval excludes 0."""
        return np.asarray((self.low > 0) | (self.high < 0))

    def _columns(self) -> dict[str, Any]:
        measured = ("n", "weight", "mean_pred", "mean_true", "gap", "low", "high")
        values = () if self.kind == "names" else ("minimum", "maximum", "mean")
        return {name: getattr(self, name) for name in ("label", *values, *measured)}

    def _printed(self) -> list[str | TextTable]:
        names = ("n", "weight", "mean_pred", "mean_true", "gap")
        columns = {name: getattr(self, name) for name in names}
        if np.array_equal(self.weight, self.n):
            del columns["weight"]
        digits = interval_digits(self.low, self.high)
        table = {
            shortened(self.feature or "feature"): map(shortened, self.label),
            **columns,
            f"{percent(self.level)} interval": interval_cells(self.low, self.high, digits),
            "": ["*" * is_biased for is_biased in self.is_biased.tolist()],
        }
        scope = "all at once" if self.simultaneous else "each by itself"
        found = "* 0 lies outside; " if self.is_biased.any() else ""
        return [TextTable.of(table, digits), f"{found}intervals hold {scope}"]


def bias_along(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    feature: Any,
    *,
    n_bins: int = 10,
    n_values: int = 25,
    level: float = 0.95,
    simultaneous: bool = False,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> BiasTable:
    """Return mean outcome minus mean prediction along a feature, with intervals.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    feature : array_like
        One value per row: numbers, dates or names (text, bool or categories). Names are sorted,
        unless their column has an order, as ordered categories do; times are taken as they are
        written, whatever their zone. Missing values (None, nan, null) make a last row, "missing".
    n_bins : int
        Number of bins.

        Numbers and dates: at most this many bins of nearly equal weight, equal ones never apart.
    n_values : int
        Maximum number of distinct numbers or dates with a row each, where they have five rows of
        data each on average: months, or counts. Also the maximum number of rows of names, but for
        "missing": the rarest are pooled in one row, "others".
    level : float
        Confidence level.
    simultaneous : bool
        Whether intervals hold all at once, or each by itself.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    BiasTable
        One row per value, bin or name; its `gap` is positive where predictions are too low.

    See Also
    --------
    by_group : Calibration within each group, with adjusted P-values.
    calibrant.plot.bias_along : The picture.

    Notes
    -----
    A gap of 0 at every value is less than calibration: errors at low and at high scores may
    cancel. :func:`calibrant.by_group` has a test against these.

    With m the mean outcome of n rows and r = y - p, limits are those of Clopper and Pearson for
    m n' events in n' rows, minus the mean prediction, where

        n' = n m'(1 - m') / v.

    n' exceeds n where predictions explain part of the outcomes: their variance is m'(1 - m'), that
    of r is v. Both are taken with z^2 rows more, half of them events, that predictions do not
    explain; z is the normal quantile of the interval. So n' is n where all predictions and weights
    are equal, and intervals stay valid where only one outcome was observed. Weighted rows count as
    n = (sum w)^2 / sum w^2, and n' is divided by the design effect of clusters, of which each row
    of the table should have at least 20 or 30; with a single one its interval is as wide as can be.

    Measured at level 0.95 with ten kinds of predictions, 3 to 500 rows, weighted and not, 4000
    samples each: coverage was at least 94.9% for the outcome probabilities of the given rows, and
    from 30 rows on at least 91% for the gap of a population, whose predictions are sampled too.

    References
    ----------
    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data" (1998): effective sample sizes.

    Examples
    --------
    >>> y_true, y_prob = [0, 0, 1, 1, 1, 1], [0.2, 0.4, 0.3, 0.6, 0.9, 0.9]
    >>> bias_along(y_true, y_prob, ["sea", "sea", "sea", "land", "land", None])
    feature n mean_pred mean_true   gap    95% interval
    land    2     0.750     1.000 0.250 -0.602 to 0.250
    sea     3     0.300     0.333 0.033 -0.292 to 0.608
    missing 1     0.900     1.000 0.100 -0.875 to 0.100
    intervals hold each by itself
    """
    n_bins, n_values = validation.as_bins(n_bins), validation.as_count(n_values, "n_values")
    level = validation.as_level(level)
    simultaneous = validation.as_flag(simultaneous, "simultaneous")
    check_same_index({"y_true": y_true, "feature": feature})
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    if not problem.is_exact:
        raise SketchError("bias_along needs rows: a sketch does not know their features")
    sample = problem.rows
    known = _aligned(feature, sample, sample_weight)
    p, y, w = sample.columns()
    parts = parts_of(known, w, n_bins, n_values)
    sums = PartSums.gather(parts.code, p, y, w)
    tail = probability.pointwise_tail(level)
    if simultaneous:
        tail = probability.sidak_tail(level, len(parts.label))
    code = None if clusters is None else read_codes(clusters, sample_weight, sample.n, stacklevel=3)
    lower, upper = sums.limits(tail, code)
    return BiasTable(
        known.name,
        known.kind,
        *(parts.label, parts.low, parts.high, parts.mean),
        *(np.bincount(parts.code), sums.weight, sums.pred, sums.true),
        gap=sums.true - sums.pred,
        low=lower - sums.pred,
        high=upper - sums.pred,
        level=level,
        simultaneous=simultaneous,
        has_missing=parts.has_missing,
        n_pooled=parts.n_pooled,
        # The largest of C probabilities is at least 1/C.
        is_confidence=sample.lowest > 0,
    )


def _aligned(feature: Any, sample: Sample, sample_weight: Any) -> Feature:
    """Return the feature of the rows that carry weight."""
    if feature is None:
        raise CalibrantError("is missing", argument="feature", hint="give one value per row")
    known = read_feature(feature)
    n_rows = sample.n if sample_weight is None else len(as_array(sample_weight, "sample_weight"))
    if len(known) != n_rows:
        raise CalibrantError(
            "must have one value per row",
            argument="feature",
            value=len(known),
            found="{value} for {n_rows} rows",
            n_rows=n_rows,
        )
    w = read_weights(sample_weight, n_rows)
    return known if w is None else known.rows(w > 0)


@dataclass(frozen=True, eq=False)
class PartSums:
    """Part, fraction of its weight and residual of each row; weight and means of each part."""

    code: Index
    fraction: FloatArray
    residual: FloatArray
    weight: FloatArray
    pred: FloatArray
    true: FloatArray

    @classmethod
    def gather(cls, code: Index, p: FloatArray, y: FloatArray, w: FloatArray) -> PartSums:
        """Sum rows."""
        weight = np.bincount(code, w).astype(np.float64)
        fraction = w / weight[code]
        pred, true = (np.bincount(code, fraction * v).astype(np.float64) for v in (p, y))
        pred, true = np.minimum(pred, 1.0), np.minimum(true, 1.0)  # rounding may exceed 1
        return cls(code, fraction, y - p, weight, pred, true)

    def limits(self, tail: float, clusters: Index | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the limits of the mean probability of events in each part, at this tail."""
        squares = np.bincount(self.code, self.fraction**2)
        n, more = 1 / squares, float(ndtri(tail)) ** 2
        near = (self.true * n + more / 2) / (n + more)
        moved = self.fraction * (self.residual - (near - self.pred)[self.code])
        observed = n * np.bincount(self.code, moved**2)
        # Half of the added rows are events, at the mean prediction.
        variance = near * (1 - near)
        unexplained = (n * observed + more * (0.5 - variance)) / (n + more)
        rows, tails = n * variance / unexplained, np.full(len(n), tail)
        if clusters is not None:
            number, effect = _design(self.code, clusters, moved)
            # One cluster has no information on others.
            rows = np.where(number > 1, rows / effect, 0.0)
            tails = probability.student_tail(tails, np.maximum(number, 2))
        given = self.true, rows, tails
        return probability.proportion_lower(*given), probability.proportion_upper(*given)


def _design(code: Index, clusters: Index, moved: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the number of clusters in each part, and their design effect."""
    n_parts = int(code.max()) + 1
    pairs, place = np.unique(clusters * n_parts + code, return_inverse=True)
    part, total = pairs % n_parts, np.bincount(place, moved)
    number = np.bincount(part).astype(np.int64)
    clustered = np.bincount(part, total**2) * number / np.maximum(number - 1, 1)
    independent = np.bincount(code, moved**2)
    effect = np.divide(clustered, independent, out=np.ones(n_parts), where=independent > 0)
    return number, np.maximum(effect, 1.0)


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a feature: the part of each row, and of each part its label and values."""

    code: Index
    label: tuple[str, ...]
    low: AnyArray  # nan, or NaT, for names and missing values; so are high and mean
    high: AnyArray
    mean: AnyArray
    has_missing: bool = False
    n_pooled: int = 0


def parts_of(feature: Feature, weight: FloatArray, n_bins: int, n_values: int) -> Parts:
    """Divide a feature: numbers and dates into bins of nearly equal weight, names one by one."""
    known = ~feature.missing
    values, w = feature.values[known], weight[known]
    if not len(values):
        parts = _unvalued(np.zeros(0, dtype=np.intp), ())
    elif feature.kind == "names":
        parts = _named(values.tolist(), w, feature.order, n_values)
    else:
        bins = _binned if feature.kind == "numbers" else _dated
        parts = _labelled(bins(values, w, n_bins, n_values))
    return parts if len(values) == len(known) else _with_missing(parts, known)


def _unvalued(code: Index, label: tuple[str, ...], n_pooled: int = 0) -> Parts:
    low, high, mean = np.full((3, len(label)), np.nan)
    return Parts(code, label, low, high, mean, n_pooled=n_pooled)


def _with_missing(parts: Parts, known: AnyArray) -> Parts:
    """Return the parts and one more, of rows with a missing value."""
    code = np.full(len(known), len(parts.label), dtype=np.intp)
    code[known] = parts.code
    low, high, mean = (
        np.append(v, np.array([None]).astype(v.dtype)) for v in (parts.low, parts.high, parts.mean)
    )
    return Parts(code, (*parts.label, "missing"), low, high, mean, True, parts.n_pooled)


def _binned(values: FloatArray, w: FloatArray, n_bins: int, n_values: int) -> Parts:
    """Return each number by itself where there are few, or else bins; without labels."""
    distinct, place = np.unique(values, return_inverse=True)
    cuts = np.arange(1, len(distinct))
    few = n_values if len(values) >= _SEVERAL_ROWS * len(distinct) else n_bins
    if len(distinct) > max(few, n_bins):
        running = np.append(0.0, np.cumsum(np.bincount(place, w)))
        cuts = np.unique(nearest_cuts(running, np.arange(1, n_bins), n_bins))
        cuts = cuts[(cuts > 0) & (cuts < len(distinct))]
    code = np.searchsorted(cuts, place, side="right")
    low, high = distinct[np.append(0, cuts)], distinct[np.append(cuts, len(distinct)) - 1]
    mean = np.bincount(code, w * values) / np.bincount(code, w)
    return Parts(code, (), low, high, np.clip(mean, low, high))


def _dated(values: AnyArray, w: FloatArray, n_bins: int, n_values: int) -> Parts:
    """Return bins of dates, as numbers of microseconds since the first."""
    first = values.min()
    parts = _binned((values - first).astype(np.float64), w, n_bins, n_values)
    low, high, mean = (
        first + np.rint(v).astype("timedelta64[us]") for v in (parts.low, parts.high, parts.mean)
    )
    return replace(parts, low=low, high=high, mean=mean)


def _named(values: list[Any], w: FloatArray, order: tuple[Any, ...], n_values: int) -> Parts:
    """Return one part per name, the rarest pooled where there are more than `n_values`."""
    found, code = factors(values)
    present = set(found)
    names = [name for name in order if name in present] or sorted_names(found, "feature")
    rank = {name: i for i, name in enumerate(names)}
    code = np.array([rank[name] for name in found])[code]
    if len(names) <= n_values:
        return _unvalued(code, tuple(map(str, names)))
    kept = np.sort(np.argsort(-np.bincount(code, w), kind="stable")[: n_values - 1])
    place = np.full(len(names), len(kept))
    place[kept] = np.arange(len(kept))
    n_pooled = len(names) - len(kept)
    label = (*(str(names[i]) for i in kept), f"others ({n_pooled})")
    return _unvalued(place[code], label, n_pooled)


def _labelled(parts: Parts) -> Parts:
    """Return parts of numbers or dates with labels: a value, or a minimum and a maximum."""
    low, high = parts.low, parts.high
    is_date = low.dtype.kind == "M"
    write: Callable[[AnyArray, Any], list[str]] = _dates if is_date else _numbers
    for precision in _UNITS if is_date else _DIGITS:
        pairs = list(zip(write(low, precision), write(high, precision), strict=True))
        is_distinct = all(len(set(ends)) == len(pairs) for ends in zip(*pairs, strict=True))
        if is_distinct and [a != b for a, b in pairs] == (low < high).tolist():
            break
    return replace(parts, label=tuple(a if a == b else f"{a} to {b}" for a, b in pairs))


def _numbers(values: FloatArray, digits: int) -> list[str]:
    if np.all(values == np.rint(values)) and np.abs(values).max() < _MAX_PLAIN:
        return [f"{value:.0f}" for value in values]
    plain: dict[str, Any] = {"unique": False, "fractional": False, "trim": "-"}
    return [
        np.format_float_positional(value, digits, **plain)
        if value == 0 or _MIN_PLAIN <= abs(value) < _MAX_PLAIN
        else f"{value:.{digits}g}"
        for value in values.tolist()
    ]


def _dates(values: AnyArray, unit: Any) -> list[str]:
    written = np.datetime_as_string(values.astype("datetime64[us]"), unit=unit)
    return [str(one).replace("T", " ") for one in written]
