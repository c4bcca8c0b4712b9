"""Containers of any library as numpy arrays, and the rules that arrays and options must satisfy.

``as_...`` functions convert what they are given; an array of numpy is never copied. ``check_...``
functions read values and raise :class:`CalibrantError` with the argument, the rule, the first
offending value with its position, the number of such values, and a hint. Valid arrays cost one
reduction; positions are looked for only once a rule is broken.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np

from calibrant._base import AnyArray
from calibrant.errors import CalibrantError, Position, shown

Generator = np.random.Generator

# Dtypes that are converted to float64 block by block without an intermediate copy.
_REAL_KINDS = "buif"
_DATAFRAME_LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "cudf")
# Floats from 0 to 1 are ordered like the integers of their bits, which of all others are larger.
_BITS_OF_ONE: dict[np.dtype[Any], Any] = {
    np.dtype(np.float64): np.float64(1).view(np.uint64),
    np.dtype(np.float32): np.float32(1).view(np.uint32),
}
# A softmax in float32 can end a few units in the last place above 1 (or, after 1 - p, below 0).
_ROUNDING_EXCESS = 1e-5
# Published tables round probabilities to two or three digits, so rows need not sum to 1 exactly.
ROW_SUM_TOLERANCE = 0.05
# Weights in this range can be squared and summed over any number of rows without overflow.
MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100
WEIGHT_RULE = f"must be 0 or from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}"
# Bins take memory whether or not they hold rows, and so do resamples.
MAX_BINS = 1_000_000
MIN_RESAMPLES, MAX_RESAMPLES = 39, 10_000_000
# Beyond this everything is smoothed into one mean.
MAX_BANDWIDTH = 1e6
PERCENTAGES = "percentages? {in_percent}"
ONE_COLUMN_PER_CLASS = "several classes need one column of probabilities per class"
# With so many distinct values strictly between 0 and 1, labels look like probabilities.
_MANY_VALUES = 3


def as_array(values: Any, name: str) -> AnyArray:
    """Return `values` as a numpy array of any dtype, without copying where numpy allows it."""
    if type(values) is np.ndarray:
        return values
    try:
        return _convert(values, name)
    except CalibrantError:
        raise
    except (TypeError, ValueError, RuntimeError, OverflowError) as problem:
        if "inhomogeneous" in str(problem):
            found = "rows of different lengths"
            raise CalibrantError(
                "must be rectangular", argument=name, value=type(values), found=found
            ) from None
        rule = "cannot be read as an array of numbers or labels: {reason}"
        raise CalibrantError(rule, argument=name, reason=str(problem)) from problem


def _convert(values: Any, name: str) -> AnyArray:
    if values is None:
        raise CalibrantError("is missing", argument=name, hint="give ({y_true}, {y_prob})")
    if np.ma.is_masked(values):
        raise missing_values(name, np.ma.getmaskarray(values))
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if comes_from(values, "torch"):
        tensor = values.detach().cpu()
        # numpy has no bfloat16; float32 holds each of its values exactly.
        return np.asarray((tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy())
    if comes_from(values, *_DATAFRAME_LIBRARIES):
        return _from_dataframe_library(values, name)
    is_sequence = isinstance(values, (list, tuple))
    if is_sequence or hasattr(values, "__array__") or hasattr(values, "__dlpack__"):
        return np.asarray(values)
    raise CalibrantError(
        "must be a list, an array, a tensor or a dataframe column",
        argument=name,
        value=type(values),
        hint=_hint_for_container(values),
    )


def _hint_for_container(values: Any) -> str | None:
    """Return what to give in place of a container that has no rows in order."""
    if isinstance(values, Mapping):
        return "give one of its values, or list(x.values()) where each is a row"
    if isinstance(values, Set):
        return "a set has no order: give a list, one value per row"
    if hasattr(values, "toarray"):  # sparse matrices of scipy
        return "make it dense with .toarray()"
    return "wrap it in list(...)" if hasattr(values, "__iter__") else None


def is_real(array: AnyArray) -> bool:
    """Tell whether the array holds plain real numbers or booleans."""
    return array.dtype.kind in _REAL_KINDS


def comes_from(values: Any, *packages: str) -> bool:
    """Tell whether an object is one of these packages."""
    root = type(values).__module__.partition(".")[0]
    return root in packages and root in sys.modules


def _from_dataframe_library(values: Any, name: str) -> AnyArray:
    import narwhals.stable.v2 as nw

    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise CalibrantError(
            "must be in memory",
            argument=name,
            value=type(values),
            found="a lazy frame",
            hint="collect it first",
        )
    if isinstance(native, nw.Series):
        missing = native.is_null()
        if missing.any():
            raise missing_values(name, missing.to_numpy())
    return np.asarray(native.to_numpy() if native is not values else values)


def missing_values(name: str, missing: AnyArray) -> CalibrantError:
    """Return the error of missing values, given which values are missing."""
    return CalibrantError(
        "must have no missing or masked values",
        argument=name,
        value=None,
        found="one",
        position=int(np.argmax(missing)),
        count=int(np.count_nonzero(missing)),
        hint="remove or fill them",
    )


def column_labels(values: Any) -> list[Any] | None:
    """Return the names of the columns of a dataframe; None where there are no columns."""
    if not comes_from(values, *_DATAFRAME_LIBRARIES):
        return None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(values, eager_only=True, pass_through=True)
    return list(frame.columns) if isinstance(frame, nw.DataFrame) else None


def check_choice(value: object, name: str, options: Collection[str]) -> None:
    """Refuse what is not one of the options."""
    if not isinstance(value, str) or value not in options:
        known = ", ".join(map(repr, options))
        raise CalibrantError("must be one of {known}", argument=name, value=value, known=known)


def check_options(given: Iterable[str], known: Collection[str], of: str) -> None:
    """Refuse an option that `of`, a function or a measure, does not have; name the nearest."""
    for option in given:
        if option not in known:
            import difflib

            near = difflib.get_close_matches(option, known, n=1, cutoff=0.5)
            raise CalibrantError(
                "{of} has no option {option}; there are: {choices}",
                hint="did you mean {near[0]!r}?" if near else None,
                of=of,
                option=shown(option),
                choices=", ".join(known) or "none",
                near=near,
            )


def keywords(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that a function takes by keyword alone."""
    found = signature(function).parameters.values()
    return [one.name for one in found if one.kind is one.KEYWORD_ONLY]


def check_not_label(
    label: Collection[str], others: Mapping[str, Iterable[str | None]], name: str
) -> None:
    """Refuse a column of outcomes, which the argument `name` names, as that of another argument.

    `others` are the columns that each other argument names.
    """
    for argument, columns in others.items():
        for column in columns:
            if column in label:
                rule = f"must not be the column of {{{name}}}"
                raise CalibrantError(rule, argument=argument, value=column)


def as_count(
    value: Any, name: str, *, minimum: int = 1, maximum: int | None = None, why: str = ""
) -> int:
    """Return a whole number between a minimum, which `why` explains, and a maximum."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < minimum:
        rule = "must be a whole number of at least {minimum}{why}"
        raise CalibrantError(rule, argument=name, value=value, minimum=minimum, why=why)
    if maximum is not None and value > maximum:
        rule = "must be at most {maximum}"
        raise CalibrantError(rule, argument=name, value=value, maximum=maximum)
    return int(value)


def as_bins(n_bins: object) -> int:
    """Return a number of bins."""
    return as_count(n_bins, "n_bins", maximum=MAX_BINS)


def as_resamples(n_resamples: object, minimum: int = MIN_RESAMPLES, why: str = "") -> int:
    """Return a number of resamples, at least 39: as many as an interval of level 0.95 needs."""
    return as_count(n_resamples, "n_resamples", minimum=minimum, maximum=MAX_RESAMPLES, why=why)


def min_resamples(level: float, n_tests: int = 1) -> int:
    """Return the number of resamples for the quantiles of a two-sided interval, at least 39.

    Of n resamples the smallest is the quantile of 1 / (n + 1), which is the smallest P-value too;
    of several tests, P-values must be smaller by their number.
    """
    # 1 - 0.9 is a little less than 0.1.
    return max(math.ceil(2 * n_tests / (1 - level) * (1 - 1e-12)) - 1, MIN_RESAMPLES)


def as_positive(
    value: object,
    name: str,
    *,
    maximum: float = sys.float_info.max,
    hint: str | None = None,
) -> float:
    """Return a positive number as a float, refusing anything else; the hint is for larger ones."""
    number = as_float(value)
    if not number > 0:
        raise CalibrantError("must be a positive number", argument=name, value=value)
    if number > maximum:
        rule = "must be at most {maximum:g}"
        raise CalibrantError(rule, argument=name, value=value, maximum=maximum, hint=hint)
    return number


def as_bandwidth(value: object, name: str = "bandwidth") -> float:
    """Return the scale of a kernel or of noise."""
    return as_positive(value, name, maximum=MAX_BANDWIDTH)


def check_minimum(value: float, name: str, minimum: float, why: str = "") -> None:
    """Refuse a scale that is too small to be resolved, for a reason given as " for ..."."""
    if value < minimum:
        rule = "must be at least {minimum:.2g}{why}"
        raise CalibrantError(rule, argument=name, value=value, minimum=minimum, why=why)


def as_level(level: object) -> float:
    """Return a confidence level, a number between 0 and 1."""
    number = as_positive(level, "level", maximum=math.inf)
    if number >= 1:
        rule = "must lie between 0 and 1"
        raise CalibrantError(rule, argument="level", value=level, hint="0.95 is 95%")
    return number


def as_pair(value: Any) -> tuple[float, float]:
    """Return two numbers as floats; nan for what is not two numbers."""
    several = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim == 1)
    if not several or len(value) != 2:
        return math.nan, math.nan
    return as_float(value[0]), as_float(value[1])


def as_flag(value: object, name: str) -> bool:
    """Return a flag, refusing what only has a truth value: the text "false" is true."""
    if not isinstance(value, bool | np.bool_):
        raise CalibrantError("must be True or False", argument=name, value=value)
    return bool(value)


def as_float(value: Any) -> float:
    """Return a real number as a float: infinite if it is too large for one, nan if it is none."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        return float(value) if is_number else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_not_empty(array: AnyArray, name: str) -> None:
    """Refuse an argument with no rows."""
    if array.ndim == 0:
        raise CalibrantError("must have one value per row", argument=name, value=array)
    if array.shape[0] == 0:
        raise CalibrantError("must have at least one row", argument=name, value=0, found="none")


def check_same_length(a: AnyArray, a_name: str, b: AnyArray, b_name: str) -> None:
    """Refuse two arguments whose numbers of rows differ."""
    if a.shape[0] != b.shape[0]:
        is_turned = b.ndim == 2 and b.shape[1] == a.shape[0]
        raise CalibrantError(
            "must have as many rows as {other}",
            argument=b_name,
            value=b.shape[0],
            found="{value} and {n_rows}",
            hint="transpose it; of several models, {as_models}" if is_turned else None,
            other=a_name,
            n_rows=a.shape[0],
        )


def as_numbers(array: AnyArray, name: str) -> AnyArray:
    """Return an array of real numbers, taking objects such as Decimal to float64."""
    if is_real(array):
        return array
    for flat, value in enumerate(array.flat):
        is_number = not isinstance(value, str | bytes) and hasattr(value or 0, "__float__")
        if array.dtype.kind != "O" or not is_number:
            hint = "convert it first"
            if name == "y_prob" and flat == 0:
                hint += "; if these are the outcomes, give them as the first argument"
            raise CalibrantError(
                "must hold numbers",
                argument=name,
                value=value,
                position=_position(array, flat),
                hint=hint,
            )
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        rule = "must hold numbers, and cannot be converted: {reason}"
        raise CalibrantError(rule, argument=name, reason=str(problem)) from problem


def check_probabilities(p: AnyArray, name: str = "y_prob") -> None:
    """Refuse values outside [0, 1], with a hint where they look like percentages or logits."""
    if are_unit(p):
        return
    check_finite(p, name)
    hint = _hint_for_range(p, float(p.min()), float(p.max()))
    refuse(p, (p < 0) | (p > 1), name, "must lie in [0, 1]", hint)


def _hint_for_range(p: AnyArray, low: float, high: float) -> str:
    """Return what numbers outside [0, 1] may be."""
    if low >= -_ROUNDING_EXCESS and high <= 1 + _ROUNDING_EXCESS:
        return "rounding errors? clip them to [0, 1]"
    if high <= 0:
        return "log-probabilities? exponentiate them first"
    if low < 0:
        inverse = "scipy.special.expit" if p.ndim == 1 else "scipy.special.softmax over columns"
        return f"logits or scores? convert them to probabilities first, for example by {inverse}"
    if high <= 100 and np.mean(p > 1) > 0.5:
        return PERCENTAGES
    return "only probabilities can be calibrated"


def check_logits(u: AnyArray, name: str = "logits") -> None:
    """Refuse logits that are not one number per row; infinite ones are certain predictions."""
    check_not_empty(u, name)
    check_one_axis(u, name)
    refuse(u, np.isnan(u), name, "must be numbers", "remove or fill such rows")


def check_one_axis(array: AnyArray, name: str) -> None:
    """Refuse an array that is not one column."""
    if array.ndim != 1:
        raise CalibrantError("must have shape (n,)", argument=name, value=array.shape)


def check_row_sums(p: AnyArray, name: str = "y_prob") -> None:
    """Refuse class probabilities whose rows do not sum to 1."""
    # Multiplying by ones is faster than adding up short rows; other types would be copied for it.
    of_doubles = p.dtype == np.float64
    sums = p @ np.ones(p.shape[1]) if of_doubles else p.sum(axis=1, dtype=np.float64)
    if max(1 - sums.min(), sums.max() - 1) > ROW_SUM_TOLERANCE:
        wrong = np.abs(sums - 1) > ROW_SUM_TOLERANCE
        hint = "normalize the rows, or give the column of one class at a time"
        if name == "y_prob" and p.shape[1] == 2:
            hint = "of two models, {as_models}; all else takes one"
        elif name == "y_prob" and sums.max() <= 1 + ROW_SUM_TOLERANCE:
            hint = "is the column of a class missing? otherwise normalize the rows"
        elif name == "y_prob":
            hint += "; of several models, {as_models}"
        found, total = "a sum of {total:.6g}", sums[np.argmax(wrong)]
        refuse(sums, wrong, name, "must have rows that sum to 1", hint, found=found, total=total)


def are_weights(w: AnyArray) -> bool:
    """Tell whether all are 0 or in the range of weights; nan is not."""
    low, high = w.min(), w.max()
    if low == 0 < high:
        low = w.min(where=w > 0, initial=high)
    # Narrow floats cannot hold these limits.
    return bool(low == 0 == high or (float(low) >= MIN_WEIGHT and float(high) <= MAX_WEIGHT))


def outside_weights(w: Any) -> Any:
    """Tell which positive weights, in an array or a column of an engine, are out of range."""
    return (w < MIN_WEIGHT) | (w > MAX_WEIGHT)


def check_outcomes(y: AnyArray) -> None:
    """Refuse numeric outcomes outside [0, 1], with a hint of what they look like."""
    if are_unit(y):
        return
    check_finite(y, "y_true")
    labels = np.unique(y)
    if len(labels) <= 2 or np.all(labels == np.round(labels)):
        raise not_binary(labels.tolist(), y)
    refuse(y, (y < 0) | (y > 1), "y_true", "must lie in [0, 1]", "soft labels are probabilities")


def not_binary(labels: Sequence[Any], y: AnyArray) -> CalibrantError:
    """Return the error of labels in `y` of which it is unknown which is positive."""
    if len(labels) > 2:
        value = [label for label in labels if label not in (0, 1)][-1]
        same = y == value
        return CalibrantError(
            "must be 0 or 1 (or soft) for one column of probabilities",
            argument="y_true",
            value=value,
            found="{n_labels} labels such as {value}",
            position=int(np.argmax(same)),
            count=int(np.count_nonzero(same)),
            hint=ONE_COLUMN_PER_CLASS,
            n_labels=len(labels),
        )
    return CalibrantError(
        "must be 0 or 1 (or soft, in [0, 1])",
        argument="y_true",
        value=labels[-1],
        found="the labels {first} and {value}" if len(labels) == 2 else "{value} in every row",
        hint="name the positive one with {pos_label}",
        first=shown(labels[0]),
        n_labels=len(labels),
    )


def check_not_swapped(y: AnyArray, p: AnyArray) -> None:
    """Refuse (y_prob, y_true) given in the wrong order.

    Soft labels are valid, and so are predictions of 0 and 1; soft labels of many values with
    predictions that are all 0 or 1, both occurring, are a mistake.
    """
    if not may_be_swapped(y, p) or not all_zero_or_one(p) or p.min() == p.max():
        return
    inside = y[(y > 0) & (y < 1)]
    if len(np.unique(inside)) >= _MANY_VALUES:
        raise CalibrantError(
            "and {y_prob} look swapped, as the first has many values between 0 and 1 and the "
            "second only 0 and 1",
            argument="y_true",
            hint="exchange them",
        )


def may_be_swapped(y: AnyArray, p: AnyArray) -> bool:
    """Tell whether the first rows look swapped: labels are floats, predictions are 0 and 1."""
    return y.dtype.kind == "f" and all(first in (0, 1) for first in p[:32].tolist())


def are_unit(array: AnyArray) -> bool:
    """Tell whether all numbers lie in [0, 1]."""
    if array.dtype.kind == "b":
        return True
    if array.flags.c_contiguous:
        array = array.reshape(-1)
    if array.dtype in _BITS_OF_ONE and array.flags.c_contiguous:
        one = _BITS_OF_ONE[array.dtype]
        bits = array.view(one.dtype)
        # numpy finds the position of the maximum faster than the maximum itself.
        if bits[bits.argmax()] <= one:
            return True
    # Other numbers, and perhaps -0.0.
    return bool(array.min() >= 0 and array.max() <= 1)


def all_zero_or_one(values: AnyArray) -> bool:
    """Tell whether all values are 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def check_finite(array: AnyArray, name: str) -> None:
    """Refuse nan and infinite numbers."""
    if array.dtype.kind != "f" or array.size == 0:
        return
    if not (np.isfinite(array.min()) and np.isfinite(array.max())):
        refuse(array, ~np.isfinite(array), name, "must be finite", "remove or fill such rows")


def refuse(
    array: AnyArray, bad: AnyArray, name: str, rule: str, hint: str | None = None, **words: Any
) -> None:
    """Refuse an array with values that are bad, if there are any; name the first.

    `words` are other arguments of :class:`CalibrantError`.
    """
    if not bad.any():
        return
    flat = int(np.argmax(bad))
    raise CalibrantError(
        rule,
        argument=name,
        value=array.flat[flat],
        position=_position(array, flat),
        count=int(np.count_nonzero(bad)),
        hint=hint,
        **words,
    )


def _position(array: AnyArray, flat: int) -> Position:
    return divmod(flat, array.shape[1]) if array.ndim == 2 else flat


def read_generator(rng: Any) -> Generator:
    """Read a seed or a generator; the same seed always gives the same draws."""
    if isinstance(rng, Generator):
        return rng
    is_whole = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    if not is_whole or rng < 0:
        raise CalibrantError(
            "must be a whole number of at least 0 or a numpy Generator", argument="rng", value=rng
        )
    return np.random.default_rng(int(rng))


def read_weights(sample_weight: Any, n: int) -> AnyArray | None:
    """Return one non-negative number in range per row, not all zero; None where all count once."""
    if sample_weight is None:
        return None
    name = "sample_weight"
    w = as_numbers(one_column(as_array(sample_weight, name), name), name)
    if w.shape[0] != n:
        rule = "must have one weight per row, shape ({n},)"
        raise CalibrantError(rule, argument=name, value=w.shape, n=n)
    check_finite(w, name)
    if w.min() < 0:
        refuse(w, w < 0, name, "must not be negative")
    if w.max() == 0:
        rule = "must not be zero everywhere"
        raise CalibrantError(rule, argument=name, value=0, found="{n} zeros", n=n)
    if not are_weights(w):
        hint = "rescale all weights, and set those that are negligible to 0"
        outside = (w > 0) & outside_weights(w.astype(np.float64))
        refuse(w, outside, name, WEIGHT_RULE, hint)
    return w


def one_column(array: AnyArray, name: str) -> AnyArray:
    """Return shape (n,) or (n, 1) as (n,)."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    check_one_axis(array, name)
    return array
