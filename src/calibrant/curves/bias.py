"""Tables as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from calibrant._base import AnyArray, FloatArray, IntArray, Result, frame
from calibrant.curves.features import Feature, factors, read_feature
from calibrant.data import validation
from calibrant.data.binning import nearest_cuts
from calibrant.data.classes import one_problem
from calibrant.data.labels import sorted_names
from calibrant.data.problem import Index
from calibrant.data.rows import Sample
from calibrant.data.validation import as_array, read_weights
from calibrant.errors import CalibrantError, SketchError
from calibrant.formatting import percent, shortened
from calibrant.inference.intervals import read_codes
from calibrant.numerics.probability import (
    pointwise_tail,
    proportion_lower,
    proportion_upper,
    sidak_tail,
    student_tail,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bias_along"]


@dataclass(frozen=True, eq=False, repr=False)
class BiasTable(Result):
    """Predictions and outcomes along a feature, one row a value, a bin or a name.

    Attributes
    ----------
    feature
        The name of the feature's column; empty where it has none.
    kind
        What the feature holds: "names", "numbers" or "dates".
    label
        What each row is about, in words.
    minimum, maximum, mean
        The minimum, maximum and mean value of the feature in each row: numbers, or datetime64;
        nan, or NaT, for names and for what is missing.
    n
        Rows of data in each.
    weight
        Total weight of each.
    mean_pred, mean_true
        Weighted means of prediction and outcome.
    gap
        mean_true - mean_pred: positive where predictions are too low.
    low, high
        The ends of the interval of the gap.
    level
        How often intervals should hold.
    simultaneous
        Whether all should hold at once, or each by itself.
    has_missing
        Whether the last row is of data without a value.
    n_pooled
        How many names share the row of others; 0 where all have their own.
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
        """Where the interval leaves out 0."""
        return np.asarray((self.low > 0) | (self.high < 0))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a value, a bin or a name."""
        measured = ("n", "weight", "mean_pred", "mean_true", "gap", "low", "high")
        values = () if self.kind == "names" else ("minimum", "maximum", "mean")
        names = ("label", *values, *measured)
        return frame({name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        weighted = bool(np.any(self.weight != self.n))
        first, *names = map(shortened, (self.feature or "feature", *self.label))
        width = max(map(len, (first, *names)))
        heading = f"{first:{width}} {'n':>9} " + (f"{'weight':>9} " if weighted else "")
        interval = f"{percent(self.level)} interval"
        lines = [heading + f"{'mean_pred':>9} {'mean_true':>9} {'gap':>8} {interval:>16}"]
        for k, name in enumerate(names):
            line = f"{name:{width}} {self.n[k]:>9} "
            line += f"{self.weight[k]:>9.6g} " if weighted else ""
            gap = round(float(self.gap[k]), 4) + 0.0  # which takes the sign off a zero
            line += f"{self.mean_pred[k]:9.4f} {self.mean_true[k]:9.4f} {gap:+8.4f} "
            line += f"{self.low[k]:+8.4f}{self.high[k]:+8.4f}"
            lines.append(line + (" *" if self.is_biased[k] else ""))
        scope = "all at once" if self.simultaneous else "each by itself"
        found = "* 0 lies outside; " if self.is_biased.any() else ""
        return "\n".join([*lines, f"{found}intervals hold {scope}"])


# Limits of the mean outcome in each part of the rows, given the predictions.
#
# Where predictions explain part of the outcomes, the mean outcome of n rows has a larger effective
# sample size: that of a proportion of events with the variance of the mean of y - p. Its limits are
# those of Clopper and Pearson at that size. What predictions explain is shrunk by a few rows that
# they do not explain: few rows with good predictions are no proof of them.


@dataclass(frozen=True, eq=False)
class PartSums:
    """Rows added up in parts.

    Attributes
    ----------
    code
        The part of each row.
    share, residual
        The fraction of the weight of its part that each row has, and its outcome less its
        prediction.
    weight, pred, true
        The weight of each part, its mean prediction and its mean outcome.
    """

    code: Index
    share: FloatArray
    residual: FloatArray
    weight: FloatArray
    pred: FloatArray
    true: FloatArray

    @classmethod
    def gather(cls, code: Index, p: FloatArray, y: FloatArray, w: FloatArray) -> PartSums:
        """Add up rows."""
        weight = np.bincount(code, w).astype(np.float64)
        share = w / weight[code]
        pred, true = (np.bincount(code, share * v).astype(np.float64) for v in (p, y))
        pred, true = np.minimum(pred, 1.0), np.minimum(true, 1.0)  # but for rounding
        return cls(code, share, y - p, weight, pred, true)

    def limits(self, tail: float, clusters: Index | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the limits of the mean probability of events in each part, at this tail."""
        squares = np.bincount(self.code, self.share**2)
        n, more = 1 / squares, float(ndtri(tail)) ** 2
        near = (self.true * n + more / 2) / (n + more)
        moved = self.share * (self.residual - (near - self.pred)[self.code])
        seen = n * np.bincount(self.code, moved**2)
        # Of the rows added half are events, at the mean prediction.
        variance = near * (1 - near)
        unexplained = (n * seen + more * (0.5 - variance)) / (n + more)
        rows, tails = n * variance / unexplained, np.full(len(n), tail)
        if clusters is not None:
            number, effect = _design(self.code, clusters, moved)
            # One cluster tells nothing of others.
            rows = np.where(number > 1, rows / effect, 0.0)
            tails = student_tail(tails, np.maximum(number, 2))
        return proportion_lower(self.true, rows, tails), proportion_upper(self.true, rows, tails)


def _design(code: Index, clusters: Index, moved: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the number of clusters in each part, and how much more they vary than rows do."""
    n_parts = int(code.max()) + 1
    pairs, place = np.unique(clusters * n_parts + code, return_inverse=True)
    part, total = pairs % n_parts, np.bincount(place, moved)
    number = np.bincount(part).astype(np.int64)
    together = np.bincount(part, total**2) * number / np.maximum(number - 1, 1)
    apart = np.bincount(code, moved**2)
    effect = np.divide(together, apart, out=np.ones(n_parts), where=apart > 0)
    return number, np.maximum(effect, 1.0)


# Parts of a feature: a value each, or a stretch of numbers, or a name; the missing apart.

Unit = Literal["D", "m", "s", "us"]

# Numbers have parts of their own where they have so many rows each, on average.
_SEVERAL_ROWS = 5
# Significant digits of numbers in words: as few as tell parts from each other.
_FEWEST_DIGITS, _MOST_DIGITS = 3, 17
# Other numbers are written with powers of ten.
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e15
# What dates are told to, likewise.
_UNITS: tuple[Unit, ...] = ("D", "m", "s", "us")


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a feature, and which of them each row belongs to.

    Attributes
    ----------
    code
        The part of each row.
    label
        What each part is called.
    low, high, mean
        The least, the greatest and the mean value of each part; nan, or NaT, where it has none.
    has_missing
        Whether the last part is of rows without a value.
    n_pooled
        How many names the part of others stands for.
    """

    code: Index
    label: tuple[str, ...]
    low: AnyArray
    high: AnyArray
    mean: AnyArray
    has_missing: bool = False
    n_pooled: int = 0

    @property
    def n(self) -> int:
        """How many parts there are."""
        return len(self.label)


def parts_of(feature: Feature, weight: FloatArray, n_bins: int, n_values: int) -> Parts:
    """Part a feature: numbers and dates in bins of nearly equal weight, names one by one."""
    known = ~feature.missing
    values, w = feature.values, weight
    if not known.all():
        values, w = values[known], w[known]
    if not len(values):
        parts = _unvalued(np.zeros(0, dtype=np.intp), ())
    elif feature.kind == "names":
        parts = _named(values.tolist(), w, feature.order, n_values)
    elif feature.kind == "numbers":
        parts = _in_words(_binned(values, w, n_bins, n_values))
    else:
        parts = _in_words(_dated(values, w, n_bins, n_values))
    return parts if len(values) == len(known) else _with_missing(parts, known)


def _unvalued(code: Index, label: tuple[str, ...], n_pooled: int = 0) -> Parts:
    unknown = np.full(len(label), np.nan)
    return Parts(code, label, unknown, unknown, unknown, n_pooled=n_pooled)


def _with_missing(parts: Parts, known: AnyArray) -> Parts:
    """Return the parts and one more, of rows without a value."""
    code = np.full(len(known), parts.n, dtype=np.intp)
    code[known] = parts.code
    low, high, mean = (
        np.append(v, np.array([None]).astype(v.dtype)) for v in (parts.low, parts.high, parts.mean)
    )
    return Parts(code, (*parts.label, "missing"), low, high, mean, True, parts.n_pooled)


def _binned(values: FloatArray, w: FloatArray, n_bins: int, n_values: int) -> Parts:
    """Return each number by itself where there are few, or else bins; no words yet."""
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
    """Return bins of dates, which are numbers of microseconds since the first."""
    first = values.min()
    parts = _binned((values - first).astype(np.float64), w, n_bins, n_values)
    low, high, mean = (
        first + np.rint(v).astype("timedelta64[us]") for v in (parts.low, parts.high, parts.mean)
    )
    return replace(parts, low=low, high=high, mean=mean)


def _named(values: list[Any], w: FloatArray, order: tuple[Any, ...], n_values: int) -> Parts:
    """Return a part a name, the rarest pooled where there are more than may be."""
    found, code = factors(values)
    names = _in_order(found, order)
    rank = {name: i for i, name in enumerate(names)}
    code = np.array([rank[name] for name in found])[code]
    if len(names) <= n_values:
        return _unvalued(code, tuple(map(str, names)))
    heaviest = np.argsort(-np.bincount(code, w), kind="stable")[: n_values - 1]
    kept = np.sort(heaviest)
    place = np.full(len(names), len(kept))
    place[kept] = np.arange(len(kept))
    n_pooled = len(names) - len(kept)
    label = (*(str(names[i]) for i in kept), f"others ({n_pooled})")
    return _unvalued(place[code], label, n_pooled)


def _in_order(names: list[Any], order: tuple[Any, ...]) -> list[Any]:
    if order:
        present = set(names)
        return [name for name in order if name in present]
    return sorted_names(names, "feature")


def _in_words(parts: Parts) -> Parts:
    """Return parts of numbers or dates with what they are called: a value, or from where to."""
    low, high = parts.low, parts.high
    if low.dtype.kind == "M":
        rising = [(_dates(low, unit), _dates(high, unit)) for unit in _UNITS]
    else:
        exactly = range(_FEWEST_DIGITS, _MOST_DIGITS + 1)
        rising = [(_numbers(low, digits), _numbers(high, digits)) for digits in exactly]
    for starts, ends in rising:
        if _tell_apart(starts, ends, low < high):
            break
    words = [a if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True)]
    return replace(parts, label=tuple(words))


def _tell_apart(starts: list[str], ends: list[str], long: AnyArray) -> bool:
    """Tell whether all parts are told apart, and the ends of each that is long."""
    differ = [a != b for a, b in zip(starts, ends, strict=True)]
    return len(set(starts)) == len(set(ends)) == len(starts) and differ == long.tolist()


def _numbers(values: FloatArray, digits: int) -> list[str]:
    if np.all(values == np.rint(values)) and np.abs(values).max() < _MOST_PLAIN:
        return [f"{value:.0f}" for value in values]
    return [_number(value, digits) for value in values.tolist()]


def _number(value: float, digits: int) -> str:
    if value == 0 or _LEAST_PLAIN <= abs(value) < _MOST_PLAIN:
        return np.format_float_positional(
            value, precision=digits, unique=False, fractional=False, trim="-"
        )
    return f"{value:.{digits}g}"


def _dates(values: AnyArray, unit: Unit) -> list[str]:
    dates = values.astype("datetime64[us]")
    return [str(np.datetime_as_string(one, unit=unit)).replace("T", " ") for one in dates]


# Bias along a feature: are predictions right on average at each of its values.


def bias_along(
    y_true: Any,
    y_prob: Any = None,
    feature: Any = None,
    *,
    n_bins: int = 10,
    n_values: int = 25,
    level: float = 0.95,
    simultaneous: bool = False,
    clusters: Any = None,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> BiasTable:
    """Return by how much outcomes exceed predictions on average, along a feature.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`.
    feature
        A value a row: numbers or dates, or names, which text, truth values and categories are.
        Names are sorted, unless their column has an order, as ordered categories do; times are
        taken as they are written, whatever their zone. Rows without a value (None, nan, null) make
        a last row of the table, "missing".
    n_bins
        Numbers and dates are cut into at most so many bins of nearly equal weight, equal ones
        never apart.
    n_values
        But up to so many distinct numbers or dates have a row each, where they have five rows of
        data each on average: months, or counts. Up to so many names always have; of more, the
        rarest share one row, "others", so that there are no more rows than this, but for
        "missing".
    level
        How often intervals should hold.
    simultaneous
        Whether all should hold at once, or each by itself.
    clusters
        One cluster label per row, as in :func:`calibrant.estimate`: rows of one cluster may depend
        on each other.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`. Weights must not depend on the outcome given the prediction.
    multiclass
        "confidence" or a class label; the table is about one binary problem.

    Returns
    -------
    BiasTable
        One row a value, a bin or a name; its `gap` is positive where predictions are too low.

    Notes
    -----
    A gap of 0 at every value is less than calibration: errors at low and at high scores may
    cancel. See :func:`calibrant.by_group` for a test that sees them.

    With m the mean outcome of n rows and r = y - p, limits are those of Clopper and Pearson for
    the chance of m n' events in n' rows, less the mean prediction, where

        n' = n m'(1 - m') / v.

    n' exceeds n where predictions explain part of the outcomes: their variance is m'(1 - m'), that
    of r is v. Both are taken with z^2 rows more, half of them events, that predictions do not
    explain; z is the normal quantile of the interval. So n' is n where all predictions are equal
    and none weighs more than others, and intervals stay honest where only one outcome was seen.
    Weights count as
    n = (sum w)^2 / sum w^2 rows, and n' is divided by the design effect of clusters, of which each
    row of the table should have some tens; where there is but one, nothing is known.

    Measured at level 0.95 with ten kinds of predictions, 3 to 500 rows, weighted and not, 4000
    samples each: for the chances of the rows at hand they held 94.9% of the time or more. For the
    gap of a population, of which predictions are drawn too, it was 91% or more from 30 rows on.

    References
    ----------
    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data" (1998): rows that data are worth.

    Examples
    --------
    >>> y_true, y_prob = [0, 0, 1, 1, 1, 1], [0.2, 0.4, 0.3, 0.6, 0.9, 0.9]
    >>> bias_along(y_true, y_prob, ["sea", "sea", "sea", "land", "land", None])
    feature         n mean_pred mean_true      gap     95% interval
    land            2    0.7500    1.0000  +0.2500  -0.6017 +0.2500
    sea             3    0.3000    0.3333  +0.0333  -0.2919 +0.6076
    missing         1    0.9000    1.0000  +0.1000  -0.8750 +0.1000
    intervals hold each by itself
    """
    n_bins, n_values = validation.as_bins(n_bins), validation.as_count(n_values, "n_values")
    level, simultaneous = (
        validation.as_level(level),
        validation.as_flag(simultaneous, "simultaneous"),
    )
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    if not problem.is_exact:
        raise SketchError("bias_along needs rows: a sketch does not know their features")
    sample = problem.rows
    known = _aligned(feature, sample, sample_weight)
    p, y, w = sample.columns()
    parts = parts_of(known, w, n_bins, n_values)
    sums = PartSums.gather(parts.code, p, y, w)
    tail = sidak_tail(level, parts.n) if simultaneous else pointwise_tail(level)
    code = None if clusters is None else read_codes(clusters, sample_weight, sample.n)
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
        # Of several classes the greatest probability is at least 1/C.
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
