"""SQL expressions: names quoted, numbers exact, and many pieces found by few comparisons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant._base import FloatArray, Result
from calibrant.data import validation
from calibrant.data.validation import Generator, as_array, as_positive
from calibrant.errors import CalibrantError
from calibrant.recalibration import storage
from calibrant.recalibration.inputs import read_column


def identifier(name: object) -> str:
    """Return a column's name as a quoted identifier, whatever characters it has."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise CalibrantError("must be the name of a column", argument="column", value=name)
    return '"' + name.replace('"', '""') + '"'


def number(value: float) -> str:
    """Return a double as a literal that is read back bit for bit.

    An exponent makes it a double rather than a decimal number; a negative one is bracketed.
    """
    digits = repr(float(value))
    literal = digits if "e" in digits else digits + "e0"
    return f"({literal})" if value < 0 else literal


def within_unit(column: str, expression: str) -> str:
    """Return an expression that is NULL where the column is NULL, nan or not in [0, 1]."""
    return f"CASE WHEN {column} >= 0 AND {column} <= 1 THEN {expression} END"


def by_cuts(column: str, cuts: Sequence[float], pieces: Sequence[str]) -> str:
    """Return piece k where cuts[k-1] <= column < cuts[k], by halving: log2 comparisons a row."""
    if len(pieces) == 1:
        return pieces[0]
    middle = len(pieces) // 2
    below = by_cuts(column, cuts[: middle - 1], pieces[:middle])
    above = by_cuts(column, cuts[middle:], pieces[middle:])
    return f"CASE WHEN {column} < {number(cuts[middle - 1])} THEN {below} ELSE {above} END"


# Maps from probabilities to probabilities, as values.
#
# ====================  ==========================================================================
# map                   the function
# ====================  ==========================================================================
# PiecewiseLinearMap    straight between knots, level beyond the first and the last
# StepMap               level between cuts
# LogisticMap           sigmoid(a log p - b log(1 - p) + c)
# NoisyMap              noise of a given scale, then a piecewise-linear map
# TemperatureMap        all classes of a row to the power 1/T, normalised
# ====================  ==========================================================================
#
# A map that is called trusts its input; `predict` checks it. The last two are in the modules of the
# calibrators that make them.


class ProbabilityMap(Result):
    """What all maps share: they are called, compared, checked and written down alike."""

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities in [0, 1]; they are not checked."""
        raise NotImplementedError

    def draw(self, p: FloatArray, rng: Generator) -> FloatArray:
        """Return the map of probabilities, with what is random in it, if anything, drawn."""
        return self(p)

    def predict(self, y_prob: Any) -> FloatArray:
        """Return the map of one column of probabilities, shape (n,) or (n, 1)."""
        return self(read_column(y_prob))

    def to_sql(self, column: str) -> str:
        """Return the map as an SQL expression of a column.

        Parameters
        ----------
        column
            The name of the column; it is quoted.

        Returns
        -------
        str
            A CASE expression in standard SQL: NULL where the column is NULL, nan or outside [0, 1].
        """
        name = identifier(column)
        return within_unit(name, self._expression(name))

    def content(self) -> dict[str, Any]:
        """Return what is kept of the map in a file."""
        return {"map": type(self).__name__, **self.to_dict()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a file, as calibrators are, whole or not at all."""
        storage.write(path, self.content())

    def _expression(self, column: str) -> str:
        """Return the SQL of the map for a quoted column that lies in [0, 1]."""
        raise CalibrantError(f"{type(self).__name__} cannot be written as SQL of one column")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # arrays have none


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinearMap(ProbabilityMap):
    """A function that is straight between knots and level beyond the first and the last.

    Attributes
    ----------
    x
        The knots, increasing within [0, 1].
    y
        The value at each knot, in [0, 1].

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
        _store(self, "x", _increasing(self.x, "x"))
        _store(self, "y", _unit_values(self.y, "y", len(self.x)))
        super().__post_init__()

    @cached_property
    def _slopes(self) -> FloatArray:
        """The slope after each knot, 0 after the last.

        A slope is lowered by a few units in the last place where rounding would carry the line
        beyond the next knot's value: then no value ever leaves the range of the two knots around
        it, in SQL as in numpy.
        """
        dx, dy = np.diff(self.x), np.diff(self.y)
        # Between knots that are next to each other a slope can be beyond all numbers.
        slope = np.divide(dy, dx, out=np.zeros_like(dy), where=np.abs(dy) < dx * 1e300)
        for less in (1 - 2.0**-50, 0.0):
            end = self.y[:-1] + dx * slope
            beyond = np.where(dy > 0, end > self.y[1:], end < self.y[1:])
            slope = np.where(beyond, slope * less, slope)
        return np.append(slope, 0.0)

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        piece = np.maximum(np.searchsorted(self.x, p, side="right") - 1, 0)
        inside = np.maximum(p, self.x[0]) - self.x[piece]
        return np.asarray(self.y[piece] + inside * self._slopes[piece])

    def _expression(self, column: str) -> str:
        pieces = [number(self.y[0])]
        for x, y, slope in zip(
            self.x.tolist(), self.y.tolist(), self._slopes.tolist(), strict=True
        ):
            level = number(y)
            rise = f" + ({column} - {number(x)}) * {number(slope)}"
            pieces.append(level if slope == 0 else level + rise)
        # Nothing lies below a first knot at 0.
        first = 1 if self.x[0] == 0 else 0
        return by_cuts(column, self.x[first:].tolist(), pieces[first:])

    def __repr__(self) -> str:
        return f"PiecewiseLinearMap({len(self.x)} knots from {self.x[0]:.4g} to {self.x[-1]:.4g})"


@dataclass(frozen=True, eq=False, repr=False)
class StepMap(ProbabilityMap):
    """A function that is level between cuts: value k where cuts[k-1] <= p < cuts[k].

    Attributes
    ----------
    cuts
        Where the value changes, increasing within [0, 1].
    values
        The values, in [0, 1], one more than there are cuts.

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
        _store(self, "cuts", _increasing(self.cuts, "cuts", least=0))
        _store(self, "values", _unit_values(self.values, "values", len(self.cuts) + 1))
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        return np.asarray(self.values[np.searchsorted(self.cuts, p, side="right")])

    def _expression(self, column: str) -> str:
        return by_cuts(column, self.cuts.tolist(), [number(v) for v in self.values])

    def __repr__(self) -> str:
        return f"StepMap({len(self.values)} values)"


@dataclass(frozen=True, eq=False)
class LogisticMap(ProbabilityMap):
    """sigmoid(a log p - b log(1 - p) + c), with its limits at 0 and 1; it never falls.

    Attributes
    ----------
    a, b
        How much log p and -log(1 - p) count, at least 0.
    c
        What is added.

    Examples
    --------
    >>> colder = LogisticMap(2.0, 2.0, 0.0)
    >>> colder.predict([0.0, 0.25, 1.0])
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
            _store(self, name, value)
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        from scipy.special import expit

        with np.errstate(divide="ignore"):
            # A term that does not count does not count where its logarithm is infinite either.
            low = self.a * np.log(p) if self.a > 0 else np.zeros_like(p)
            high = -self.b * np.log1p(-p) if self.b > 0 else np.zeros_like(p)
        return np.asarray(expit(low + high + self.c))

    def _expression(self, column: str) -> str:
        terms = [f"{number(self.a)} * LN({column})"] * (self.a > 0)
        terms += [f"{number(-self.b)} * LN(1 - {column})"] * (self.b > 0)
        inner = f"1 / (1 + EXP(-({' + '.join([*terms, number(self.c)])})))"
        # Databases refuse the logarithm of 0: both ends are given as they are.
        low, high = (number(float(v)) for v in self(np.array([0.0, 1.0])))
        return f"CASE WHEN {column} = 0 THEN {low} WHEN {column} = 1 THEN {high} ELSE {inner} END"


def _store(target: object, name: str, value: object) -> None:
    # The way in for what a frozen dataclass finds out about itself.
    object.__setattr__(target, name, value)


def _increasing(values: Any, name: str, least: int = 1) -> FloatArray:
    array = _unit_values(values, name)
    if len(array) < least or not np.all(np.diff(array) > 0):
        raise CalibrantError(
            "must increase, with at least {minimum} values", argument=name, minimum=least
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


# A map that is random: noise, and then the outcome to expect where it led.


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMap(ProbabilityMap):
    """Noise of a given scale, reflected into [0, 1], and then a piecewise-linear map.

    Attributes
    ----------
    scale
        The standard deviation of the noise before it is reflected.
    x, y
        Knots and values of the map that follows.
    """

    scale: float
    x: FloatArray
    y: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "x", self.outcome.x)
        object.__setattr__(self, "y", self.outcome.y)
        super().__post_init__()

    @cached_property
    def outcome(self) -> PiecewiseLinearMap:
        """The outcome to expect where the noise led."""
        return PiecewiseLinearMap(self.x, self.y)

    def draw(self, p: FloatArray, rng: Generator) -> FloatArray:
        """Return the map of probabilities, with noise drawn from a generator."""
        return self.outcome(reflected(p + self.scale * rng.standard_normal(p.shape)))

    def __call__(self, p: FloatArray) -> FloatArray:
        """Refuse: there is no map without a generator."""
        raise CalibrantError("a noisy map needs a generator: use draw")

    def __repr__(self) -> str:
        return f"NoisyMap(scale={self.scale:.4g}, then {self.outcome!r})"


def reflected(t: FloatArray) -> FloatArray:
    """Fold the line into [0, 1] at every whole number."""
    return np.asarray(1 - np.abs(1 - np.mod(t, 2)))
