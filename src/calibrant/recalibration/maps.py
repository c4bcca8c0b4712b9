"""Maps from probabilities to probabilities, as values that are compared, stored and written as SQL.

====================  ==========================================================================
map                   function
====================  ==========================================================================
PiecewiseLinearMap    linear between knots, constant beyond the first and the last
StepMap               constant between cuts
LogisticMap           sigmoid(a log p - b log(1 - p) + c)
TemperatureMap        all classes of a row to the power 1/T, normalised
NoisyMap              Gaussian noise of a given scale, then a piecewise linear map
====================  ==========================================================================

A map that is called does not check its input; `predict` does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import AnyArray, FloatArray, Result
from calibrant.data import validation
from calibrant.data.validation import Generator, as_array, as_positive
from calibrant.errors import CalibrantError
from calibrant.recalibration import storage


class ProbabilityMap(Result):
    """Base class of maps from probabilities to probabilities."""

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities in [0, 1], which are not checked."""
        raise NotImplementedError

    def draw(self, p: FloatArray, rng: Generator) -> FloatArray:
        """Return the map of probabilities; a random map takes its noise from the generator."""
        return self(p)

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return the map of one column of probabilities, shape (n,) or (n, 1)."""
        p = as_array(y_prob, "y_prob")
        validation.check_not_empty(p, "y_prob")
        return self(as_probabilities(validation.one_column(p, "y_prob")))

    def to_sql(self, column: str) -> str:
        """Return the map as an SQL expression of a column.

        Parameters
        ----------
        column : str
            Name of the column; it is quoted.

        Returns
        -------
        str
            A CASE expression in standard SQL: NULL where the column is NULL, nan or outside [0, 1].
        """
        name = _quoted(column)
        return f"CASE WHEN {name} >= 0 AND {name} <= 1 THEN {self._expression(name)} END"

    def content(self) -> dict[str, Any]:
        """Return the class and the fields as plain values."""
        return {"map": type(self).__name__, **self.to_dict()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a JSON file, for :func:`calibrant.recalibration.load`."""
        storage.write(path, self.content())

    def _expression(self, column: str) -> str:
        """Return the SQL of the map for a quoted column with values in [0, 1]."""
        raise CalibrantError(f"{type(self).__name__} cannot be written as SQL of one column")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # arrays have none


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinearMap(ProbabilityMap):
    """A function that is linear between knots and constant beyond the first and the last.

    Attributes
    ----------
    x : ndarray
        Knots, increasing within [0, 1].
    y : ndarray
        Value at each knot, in [0, 1].

    Examples
    --------
    >>> halved = PiecewiseLinearMap([0.0, 1.0], [0.0, 0.5])
    >>> halved.predict([0.25, 1.0]).tolist()
    [0.125, 0.5]
    >>> print(halved.to_sql("score"))
    CASE WHEN "score" >= 0 AND "score" <= 1 THEN CASE WHEN "score" < 1.0e0 THEN 0.0e0 +
    ("score" - 0.0e0) * 0.5e0 ELSE 0.5e0 END END
    """

    x: FloatArray
    y: FloatArray

    def __post_init__(self) -> None:
        _set(self, "x", _increasing(self.x, "x"))
        _set(self, "y", _unit_values(self.y, "y", len(self.x)))
        super().__post_init__()

    @cached_property
    def _slopes(self) -> FloatArray:
        """The slope after each knot, 0 after the last.

        A slope is lowered by a few units in the last place where rounding would carry the line
        beyond the value of the next knot, so that no value leaves the range of the two knots around
        it, in SQL as in numpy.
        """
        dx, dy = np.diff(self.x), np.diff(self.y)
        # Between neighbouring doubles a slope can overflow.
        slope = np.divide(dy, dx, out=np.zeros_like(dy), where=np.abs(dy) < dx * 1e300)
        for factor in (1 - 2.0**-50, 0.0):
            end = self.y[:-1] + dx * slope
            overshoots = np.where(dy > 0, end > self.y[1:], end < self.y[1:])
            slope = np.where(overshoots, slope * factor, slope)
        return np.append(slope, 0.0)

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        piece = np.maximum(np.searchsorted(self.x, p, side="right") - 1, 0)
        inside = np.maximum(p, self.x[0]) - self.x[piece]
        return np.asarray(self.y[piece] + inside * self._slopes[piece])

    def _expression(self, column: str) -> str:
        pieces = [_literal(self.y[0])]
        for x, y, slope in zip(self.x, self.y, self._slopes, strict=True):
            rise = f" + ({column} - {_literal(x)}) * {_literal(slope)}" if slope else ""
            pieces.append(_literal(y) + rise)
        # Nothing lies below a first knot at 0.
        first = 1 if self.x[0] == 0 else 0
        return _case_by_cuts(column, self.x[first:], pieces[first:])

    def _printed(self) -> list[str]:
        return [f"PiecewiseLinearMap({len(self.x)} knots from {self.x[0]:.4g} to {self.x[-1]:.4g})"]


@dataclass(frozen=True, eq=False, repr=False)
class StepMap(ProbabilityMap):
    """A step function: value k where cuts[k-1] <= p < cuts[k].

    Attributes
    ----------
    cuts : ndarray
        Where the value changes, increasing within [0, 1].
    values : ndarray
        Values in [0, 1], one more than there are cuts.

    Examples
    --------
    >>> steps = StepMap([0.5], [0.1, 0.8])
    >>> steps.predict([0.2, 0.5]).tolist()
    [0.1, 0.8]
    >>> print(steps.to_sql("score"))
    CASE WHEN "score" >= 0 AND "score" <= 1 THEN CASE WHEN "score" < 0.5e0 THEN 0.1e0
    ELSE 0.8e0 END END
    """

    cuts: FloatArray
    values: FloatArray

    def __post_init__(self) -> None:
        _set(self, "cuts", _increasing(self.cuts, "cuts", minimum=0))
        _set(self, "values", _unit_values(self.values, "values", len(self.cuts) + 1))
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        return np.asarray(self.values[np.searchsorted(self.cuts, p, side="right")])

    def _expression(self, column: str) -> str:
        return _case_by_cuts(column, self.cuts, [_literal(value) for value in self.values])

    def _printed(self) -> list[str]:
        return [f"StepMap({len(self.values)} values)"]


@dataclass(frozen=True, eq=False, repr=False)
class LogisticMap(ProbabilityMap):
    """The non-decreasing function sigmoid(a log p - b log(1 - p) + c), with its limits at 0 and 1.

    Attributes
    ----------
    a, b : float
        Coefficients of log p and -log(1 - p), at least 0.
    c : float
        Intercept.

    Examples
    --------
    >>> LogisticMap(2.0, 2.0, 0.0).predict([0.0, 0.25, 1.0])
    array([0. , 0.1, 1. ])
    """

    a: float
    b: float
    c: float

    def __post_init__(self) -> None:
        for name in ("a", "b", "c"):
            given = getattr(self, name)
            value = validation.as_float(given)
            if not np.isfinite(value) or (value < 0 and name != "c"):
                raise CalibrantError(
                    "must be a finite number" + " of at least 0" * (name != "c"),
                    argument=name,
                    value=given,
                )
            _set(self, name, value)
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        from scipy.special import expit

        with np.errstate(divide="ignore"):
            # A coefficient of 0 removes its term where the logarithm is infinite, too.
            low = self.a * np.log(p) if self.a > 0 else np.zeros_like(p)
            high = -self.b * np.log1p(-p) if self.b > 0 else np.zeros_like(p)
        return np.asarray(expit(low + high + self.c))

    def _expression(self, column: str) -> str:
        terms = [f"{_literal(self.a)} * LN({column})"] * (self.a > 0)
        terms += [f"{_literal(-self.b)} * LN(1 - {column})"] * (self.b > 0)
        inner = f"1 / (1 + EXP(-({' + '.join([*terms, _literal(self.c)])})))"
        # Databases refuse the logarithm of 0, so that both limits are constants.
        low, high = map(_literal, self(np.array([0.0, 1.0])))
        return f"CASE WHEN {column} = 0 THEN {low} WHEN {column} = 1 THEN {high} ELSE {inner} END"


@dataclass(frozen=True, eq=False, repr=False)
class TemperatureMap(ProbabilityMap):
    """Every probability of a row to the power 1 / T, divided by their sum.

    Attributes
    ----------
    temperature : float
        T: above 1 it makes predictions less confident, below 1 more.

    Examples
    --------
    >>> import numpy as np
    >>> TemperatureMap(0.5)(np.array([[0.2, 0.4, 0.4]])).round(3).tolist()
    [[0.111, 0.444, 0.444]]
    """

    temperature: float

    def __post_init__(self) -> None:
        _set(self, "temperature", as_positive(self.temperature, "temperature"))
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of rows of class probabilities."""
        # Relative to the largest of the row, so that not all powers underflow.
        power = (p / p.max(axis=1, keepdims=True)) ** (1 / self.temperature)
        return np.asarray(power / power.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMap(ProbabilityMap):
    """Gaussian noise, reflected into [0, 1], and then a piecewise linear map.

    Attributes
    ----------
    scale : float
        Standard deviation of the noise before it is reflected.
    x, y : ndarray
        Knots and values of the map that follows.
    """

    scale: float
    x: FloatArray
    y: FloatArray

    def __post_init__(self) -> None:
        _set(self, "scale", as_positive(self.scale, "scale"))
        _set(self, "x", self.outcome.x)
        _set(self, "y", self.outcome.y)
        super().__post_init__()

    @cached_property
    def outcome(self) -> PiecewiseLinearMap:
        """The expected outcome given the score with its noise."""
        return PiecewiseLinearMap(self.x, self.y)

    def draw(self, p: FloatArray, rng: Generator) -> FloatArray:
        """Return the map of probabilities, with noise drawn from a generator."""
        noisy = p + self.scale * rng.standard_normal(p.shape)
        # Reflected at every whole number.
        return self.outcome(1 - np.abs(1 - np.mod(noisy, 2)))

    def __call__(self, p: FloatArray) -> FloatArray:
        """Refuse: the map is random."""
        raise CalibrantError("a noisy map needs a generator: use draw")

    def _printed(self) -> list[str]:
        return [f"NoisyMap(scale={self.scale:.4g}, then {self.outcome!r})"]


def as_probabilities(p: AnyArray) -> FloatArray:
    """Return an array as float64, or refuse what is no probability."""
    p = validation.as_numbers(p, "y_prob")
    validation.check_probabilities(p)
    return np.asarray(p, dtype=np.float64)


def _set(target: object, name: str, value: object) -> None:
    """Set a field of a frozen dataclass while it is made."""
    object.__setattr__(target, name, value)


def _increasing(values: Any, name: str, minimum: int = 1) -> FloatArray:
    array = _unit_values(values, name)
    if len(array) < minimum or not np.all(np.diff(array) > 0):
        raise CalibrantError(
            "must increase, with at least {minimum} values", argument=name, minimum=minimum
        )
    return array


def _unit_values(values: Any, name: str, size: int | None = None) -> FloatArray:
    array = np.array(validation.as_numbers(as_array(values, name), name), dtype=np.float64)
    if array.ndim != 1:
        raise CalibrantError(
            "must be one row of numbers", argument=name, value=array.shape, found="shape {value}"
        )
    if size is not None and len(array) != size:
        raise CalibrantError("must have {size} values", argument=name, value=len(array), size=size)
    if not np.all((array >= 0) & (array <= 1)):
        raise CalibrantError("must lie in [0, 1]", argument=name)
    return array


def _quoted(column: object) -> str:
    """Return the name of a column as an SQL identifier."""
    if not isinstance(column, str) or not column or "\0" in column:
        raise CalibrantError("must be the name of a column", argument="column", value=column)
    return '"' + column.replace('"', '""') + '"'


def _literal(value: float) -> str:
    """Return a double as an SQL literal of type double that is read back bit for bit."""
    digits = repr(float(value))
    literal = digits if "e" in digits else digits + "e0"
    return f"({literal})" if value < 0 else literal


def _case_by_cuts(column: str, cuts: FloatArray, pieces: Sequence[str]) -> str:
    """Return piece k where cuts[k-1] <= column < cuts[k], by bisection."""
    if len(pieces) == 1:
        return pieces[0]
    middle = len(pieces) // 2
    below = _case_by_cuts(column, cuts[: middle - 1], pieces[:middle])
    above = _case_by_cuts(column, cuts[middle:], pieces[middle:])
    return f"CASE WHEN {column} < {_literal(cuts[middle - 1])} THEN {below} ELSE {above} END"
