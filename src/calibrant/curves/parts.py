"""Parts of a feature: a value each, or a stretch of numbers, or a name; the missing apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibrant.arrays import AnyArray, FloatArray
from calibrant.binning import nearest_cuts
from calibrant.curves.features import Feature, factors
from calibrant.labels import sorted_names
from calibrant.problem import Index

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
