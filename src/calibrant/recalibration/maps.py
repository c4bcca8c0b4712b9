"""Maps from probabilities to probabilities, as values that are compared, stored and written as SQL.

====================  ==========================================================================
map                   function
====================  ==========================================================================
PiecewiseLinearMap    linear between knots, constant beyond the first and the last
StepMap               constant between cuts
LogisticMap           sigmoid(a log p - b log(1 - p) + c)
QuadraticMap          sigmoid(a + b x + c x^2) of x = logit(p), constant beyond its turning point
AdjustedMap           another map, mixed with the identity and with the uniform distribution
NoisyMap              Gaussian noise of a given scale, then a piecewise linear map
====================  ==========================================================================

A map that is called does not check its input; `predict` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import AnyArray, FloatArray, Result
from calibrant.data import validation
from calibrant.data.validation import Generator, as_array, as_positive
from calibrant.errors import CalibrantError
from calibrant.numerics.probability import logit
from calibrant.recalibration import storage


class ProbabilityMap(Result):
    """Base class of maps from probabilities to probabilities."""

    @property
    def is_joint(self) -> bool:
        """Whether it takes rows of the probabilities of all classes instead of single ones."""
        return False

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities in [0, 1], which are not checked."""
        raise NotImplementedError

    def draw(self, p: FloatArray, rng: Generator | None) -> FloatArray:
        """Return the map of probabilities; a random map takes its noise from the generator."""
        return self(p)

    def of_second(self, p: FloatArray, rng: Generator | None = None) -> FloatArray:
        """Return the map of probabilities of the second of two classes."""
        if self.is_joint:
            return self.draw(np.stack((1 - p, p), axis=1), rng)[:, 1]
        return self.draw(p, rng)

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return the map of one column of probabilities of two classes, shape (n,) or (n, 1)."""
        p = as_array(y_prob, "y_prob")
        validation.check_not_empty(p, "y_prob")
        return self.of_second(as_probabilities(validation.one_column(p, "y_prob")))

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
        name = quoted(column)
        return where_valid([name], [self._expression(name)])[0]

    def content(self) -> dict[str, Any]:
        """Return the class and the fields as plain values."""
        return {"map": type(self).__name__, **self.to_dict()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a JSON file, for :func:`calibrant.recalibration.load`."""
        storage.write(path, self.content())

    def _expression(self, column: str) -> str:
        """Return the SQL of the map for an expression with values in [0, 1]."""
        if self.is_joint:
            return self._class_expressions([f"(1 - {column})", column])[1]
        raise CalibrantError(f"{type(self).__name__} cannot be written as SQL of one column")

    def _class_expressions(self, columns: Sequence[str]) -> list[str]:
        """Return the SQL of every class, recalibrated against the rest unless the map is joint."""
        return [self._expression(column) for column in columns]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.content() == other.content()

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
        set_field(self, "x", _increasing(self.x, "x"))
        set_field(self, "y", _unit_values(self.y, "y", len(self.x)))
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
        pieces = [literal(self.y[0])]
        for x, y, slope in zip(self.x, self.y, self._slopes, strict=True):
            rise = f" + ({column} - {literal(x)}) * {literal(slope)}" if slope else ""
            pieces.append(literal(y) + rise)
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
        set_field(self, "cuts", _increasing(self.cuts, "cuts", minimum=0))
        set_field(self, "values", _unit_values(self.values, "values", len(self.cuts) + 1))
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        return np.asarray(self.values[np.searchsorted(self.cuts, p, side="right")])

    def _expression(self, column: str) -> str:
        return _case_by_cuts(column, self.cuts, [literal(value) for value in self.values])

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
        _set_coefficients(self, minimum={"a": 0.0, "b": 0.0})
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        from scipy.special import expit

        with np.errstate(divide="ignore"):
            # A coefficient of 0 removes its term where the logarithm is infinite, too.
            low = self.a * np.log(p) if self.a > 0 else np.zeros_like(p)
            high = -self.b * np.log1p(-p) if self.b > 0 else np.zeros_like(p)
        return within(p, expit(low + high + self.c))

    def _expression(self, column: str) -> str:
        terms = [f"{literal(self.a)} * LN({column})"] * (self.a > 0)
        terms += [f"{literal(-self.b)} * LN(1 - {column})"] * (self.b > 0)
        inner = f"1 / (1 + EXP(-({' + '.join([*terms, literal(self.c)])})))"
        # Databases refuse the logarithm of 0, so that both limits are constants.
        low, high = map(literal, self(np.array([0.0, 1.0])))
        return f"CASE WHEN {column} = 0 THEN {low} WHEN {column} = 1 THEN {high} ELSE {inner} END"


@dataclass(frozen=True, eq=False, repr=False)
class QuadraticMap(ProbabilityMap):
    """The non-decreasing part of sigmoid(a + b x + c x^2), x = logit(p), held constant beyond it.

    Attributes
    ----------
    a, b, c : float
        Intercept, slope, which is at least 0, and coefficient of the square.

    Examples
    --------
    >>> QuadraticMap(0.0, 1.0, 0.5).predict([0.0, 0.25, 0.5, 1.0]).round(3).tolist()
    [0.378, 0.378, 0.5, 1.0]
    """

    a: float
    b: float
    c: float

    def __post_init__(self) -> None:
        _set_coefficients(self, minimum={"b": 0.0})
        super().__post_init__()

    @property
    def turn(self) -> float:
        """The logit at which the function would turn round; infinite where it never does."""
        return -self.b / (2 * self.c) if self.c else np.inf

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        from scipy.special import expit

        x = logit(p)
        x = np.maximum(x, self.turn) if self.c > 0 else np.minimum(x, self.turn)
        # A coefficient of 0 removes its term where the logit is infinite, too.
        square = self.c * x * x if self.c else 0.0
        linear = self.b * x if self.b else 0.0
        with np.errstate(invalid="ignore"):
            z = self.a + np.where(np.isinf(x), x, linear + square)
        return within(p, expit(z if self.b or self.c else np.full_like(p, self.a)))

    def _expression(self, column: str) -> str:
        x = f"LN({column} / (1 - {column}))"
        a, b, c = map(literal, (self.a, self.b, self.c))
        inner = f"1 / (1 + EXP(-({a} + {x} * ({b} + {c} * {x}))))"
        low, high = self(np.array([0.0, 1.0]))
        pieces = [f"WHEN {column} = 0 THEN {literal(low)} WHEN {column} = 1 THEN {literal(high)}"]
        if self.c:
            side, end = ("<=", low) if self.c > 0 else (">=", high)
            pieces.append(f"WHEN {x} {side} {literal(self.turn)} THEN {literal(end)}")
        return f"CASE {' '.join(pieces)} ELSE {inner} END"


@dataclass(frozen=True, eq=False, repr=False)
class AdjustedMap(ProbabilityMap):
    """Another map g, mixed with the identity and with the uniform distribution.

    q = p + strength (g(p) - p), but `low` at p = 0 and `high` at p = 1 where they are given, and
    then (1 - mix) q + mix / n_classes.

    Attributes
    ----------
    inner : ProbabilityMap
        The map g.
    strength : float
        Weight of g: 1 is g itself, 0 the identity.
    low, high : float or None
        Values at exactly 0 and 1.
    mix : float
        Weight of the uniform distribution.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> halved = AdjustedMap(PiecewiseLinearMap([0.0, 1.0], [0.0, 0.5]), strength=0.5, high=0.6)
    >>> halved.predict([0.0, 0.4, 1.0]).round(3).tolist()
    [0.0, 0.3, 0.6]
    """

    inner: ProbabilityMap
    strength: float = 1.0
    low: float | None = None
    high: float | None = None
    mix: float = 0.0
    n_classes: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.inner, ProbabilityMap):
            raise CalibrantError("must be a map", argument="inner", value=self.inner)
        for name in ("strength", "low", "high", "mix"):
            given = getattr(self, name)
            if given is not None or name in ("strength", "mix"):
                set_field(self, name, float(_unit_values([given], name)[0]))
        set_field(self, "n_classes", validation.as_count(self.n_classes, "n_classes", minimum=2))
        super().__post_init__()

    @property
    def is_joint(self) -> bool:
        """Whether it takes rows of the probabilities of all classes instead of single ones."""
        return self.inner.is_joint

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of probabilities."""
        return self.draw(p, None)

    def draw(self, p: FloatArray, rng: Generator | None) -> FloatArray:
        """Return the map of probabilities, with noise drawn from a generator."""
        q = self.inner.draw(p, rng)
        # Exactly g where nothing is mixed.
        q = q if self.strength == 1 else p + self.strength * (q - p)
        for end, value in ((0.0, self.low), (1.0, self.high)):
            q = q if value is None else np.where(p == end, value, q)
        return np.asarray(q * (1 - self.mix) + self.mix / self.n_classes if self.mix else q)

    def simplified(self) -> ProbabilityMap:
        """Return the inner map where nothing is changed."""
        is_plain = self.strength == 1 and self.low is None and self.high is None and not self.mix
        return self.inner if is_plain else self

    def content(self) -> dict[str, Any]:
        """Return the class and the fields as plain values."""
        return super().content() | {"inner": self.inner.content()}

    def _expression(self, column: str) -> str:
        return self._adjusted_sql(column, self.inner._expression(column))

    def _class_expressions(self, columns: Sequence[str]) -> list[str]:
        inner = self.inner._class_expressions(columns)
        return [self._adjusted_sql(*both) for both in zip(columns, inner, strict=True)]

    def _adjusted_sql(self, column: str, mapped: str) -> str:
        if self.strength < 1:
            mapped = f"({column} + {literal(self.strength)} * (({mapped}) - {column}))"
        ends = [
            f"WHEN {column} = {end} THEN {literal(value)}"
            for end, value in ((0, self.low), (1, self.high))
            if value is not None
        ]
        mapped = f"CASE {' '.join(ends)} ELSE {mapped} END" if ends else mapped
        return mixed_sql(mapped, self.mix, self.n_classes)

    def _printed(self) -> list[str]:
        changes = {"strength": self.strength, "low": self.low, "high": self.high, "mix": self.mix}
        unchanged = {"strength": 1.0, "low": None, "high": None, "mix": 0.0}
        shown = [f"{k}={v:.4g}" for k, v in changes.items() if v is not None and v != unchanged[k]]
        return [f"AdjustedMap({', '.join([repr(self.inner), *shown])})"]


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
        set_field(self, "scale", as_positive(self.scale, "scale"))
        set_field(self, "x", self.outcome.x)
        set_field(self, "y", self.outcome.y)
        super().__post_init__()

    @cached_property
    def outcome(self) -> PiecewiseLinearMap:
        """The expected outcome given the score with its noise."""
        return PiecewiseLinearMap(self.x, self.y)

    def draw(self, p: FloatArray, rng: Generator | None) -> FloatArray:
        """Return the map of probabilities, with noise drawn from a generator."""
        if rng is None:
            return self(p)
        noisy = p + self.scale * rng.standard_normal(p.shape)
        # Reflected at every whole number.
        return self.outcome(1 - np.abs(1 - np.mod(noisy, 2)))

    def __call__(self, p: FloatArray) -> FloatArray:
        """Refuse: the map is random."""
        raise CalibrantError("a noisy map needs a generator: use draw")

    def _printed(self) -> list[str]:
        return [f"NoisyMap(scale={self.scale:.4g}, then {self.outcome!r})"]


def mixed(p: FloatArray, weight: float) -> FloatArray:
    """Return (1 - weight) p + weight / C: one column counts as the second of two classes."""
    n_classes = p.shape[1] if p.ndim == 2 else 2
    return np.asarray((1 - weight) * p + weight / n_classes) if weight else p


def within(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return q, but not rounded to 0 or 1 where p is neither.

    There a log score that was finite would become infinite.
    """
    bounded = np.clip(q, np.finfo(float).tiny, 1 - 2.0**-53)
    return np.where((p > 0) & (p < 1), bounded, q)


def as_probabilities(p: AnyArray) -> FloatArray:
    """Return an array as float64, or refuse what is no probability."""
    p = validation.as_numbers(p, "y_prob")
    validation.check_probabilities(p)
    return np.asarray(p, dtype=np.float64)


def set_field(target: object, name: str, value: object) -> None:
    """Set a field of a frozen dataclass while it is made."""
    object.__setattr__(target, name, value)


def _set_coefficients(target: Any, minimum: Mapping[str, float]) -> None:
    """Check the fields a, b and c, finite numbers of which some have a minimum."""
    for name in ("a", "b", "c"):
        given = getattr(target, name)
        value = validation.as_float(given)
        if not np.isfinite(value) or value < minimum.get(name, -np.inf):
            least = f" of at least {minimum[name]:g}" if name in minimum else ""
            raise CalibrantError("must be a finite number" + least, argument=name, value=given)
        set_field(target, name, value)


def as_fraction(value: object, name: str) -> float:
    """Return a number of at least 0 and below 1."""
    number = validation.as_float(value)
    if not 0 <= number < 1:
        raise CalibrantError("must be at least 0 and below 1", argument=name, value=value)
    return number


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


def quoted(column: object) -> str:
    """Return the name of a column as an SQL identifier."""
    if not isinstance(column, str) or not column or "\0" in column:
        raise CalibrantError("must be the name of a column", argument="column", value=column)
    return '"' + column.replace('"', '""') + '"'


def literal(value: float) -> str:
    """Return a double as an SQL literal of type double that is read back bit for bit."""
    digits = repr(float(value))
    literal = digits if "e" in digits else digits + "e0"
    return f"({literal})" if value < 0 else literal


def where_valid(columns: Sequence[str], expressions: Sequence[str]) -> list[str]:
    """Return expressions that are NULL unless all columns lie in [0, 1]."""
    valid = " AND ".join(f"{name} >= 0 AND {name} <= 1" for name in columns)
    return [f"CASE WHEN {valid} THEN {one} END" for one in expressions]


def normalised(expressions: Sequence[str]) -> list[str]:
    """Return expressions divided by their sum."""
    total = " + ".join(expressions)
    return [f"{one} / ({total})" for one in expressions]


def mixed_sql(expression: str, weight: float, n_classes: int) -> str:
    """Return (1 - weight) expression + weight / n_classes."""
    if not weight:
        return expression
    return f"({literal(1 - weight)} * ({expression}) + {literal(weight / n_classes)})"


def _case_by_cuts(column: str, cuts: FloatArray, pieces: Sequence[str]) -> str:
    """Return piece k where cuts[k-1] <= column < cuts[k], by bisection."""
    if len(pieces) == 1:
        return pieces[0]
    middle = len(pieces) // 2
    below = _case_by_cuts(column, cuts[: middle - 1], pieces[:middle])
    above = _case_by_cuts(column, cuts[middle:], pieces[middle:])
    return f"CASE WHEN {column} < {literal(cuts[middle - 1])} THEN {below} ELSE {above} END"
