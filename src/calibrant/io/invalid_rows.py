"""Faults: the rows that a source cannot count, how many, and the error raised for them.

Every checked column has two rules, in order: a row must have a value, and the value must be in
range. A row is counted under the first rule that it breaks.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from calibrant._base import AnyArray
from calibrant.data import validation
from calibrant.data.labels import listed
from calibrant.errors import CalibrantError
from calibrant.io.columns import Columns, Role, in_words

Kind = Literal["missing", "outside"]
OnInvalid = Literal["raise", "drop"]
Mask = npt.NDArray[np.bool_]

_LARGEST = float(np.finfo(np.float64).max)
# A softmax in float32 can end a few units in the last place above 1.
_ROUNDING_EXCESS = 1e-5


class Rule(NamedTuple):
    """What a column must satisfy."""

    role: Role
    column: str
    kind: Kind
    classes: tuple[Any, ...] = ()

    @property
    def _top(self) -> float:
        return _LARGEST if self.classes else 1.0

    def is_outside(self, value: Any) -> Any:
        """Tell whether a value, in an array or a column of an engine, is out of range."""
        if self.role == "weight":
            return (value < 0) | ((value > 0) & validation.outside_weights(value))
        return (value < 0) | (value > self._top)

    def all_sound(self, values: AnyArray) -> bool:
        """Tell, in two reductions, whether no value of a column is missing or out of range."""
        if len(values) == 0:
            return True
        if self.role == "weight":
            return validation.are_weights(values)
        return bool(values.min() >= 0 and values.max() <= self._top)

    @property
    def fault(self) -> str:
        """What is the matter with rows that break the rule, in a few words."""
        if self.kind == "missing":
            return f"null or nan in {self.column!r}"
        if self.classes:
            return f"an unknown class in {self.column!r}"
        limits = "out of range" if self.role == "weight" else "outside [0, 1]"
        return f"{self.column!r} {limits}"


class Example(NamedTuple):
    """A row that breaks a rule: its value, and its place where that is known.

    `largest` is the largest value of all rows that break it, where that is known.
    """

    value: Any
    position: int | None = None
    within: str | None = None
    largest: float = np.inf


def rules_of(columns: Columns) -> list[Rule]:
    """List the rules of a table, in the order in which they are looked at."""
    return [
        Rule(role, name, kind, columns.classes if role == "label" else ())
        for role, name in columns.named()
        for kind in ("missing", "outside")
    ]


def broken_in_engine(rule: Rule, name: str) -> nw.Expr:
    """Return the expression that is true where column `name` breaks a rule, never null.

    Engines disagree on whether nan is more than 1, and on whether null is; here it matters in
    neither case, as such rows break the rule before.
    """
    value = nw.col(name)
    if rule.classes:
        known = value.is_in(list(rule.classes))
        return value.is_null() if rule.kind == "missing" else ~value.is_null() & ~known
    if rule.kind == "missing":
        return value.is_null() | value.is_nan()
    outside: nw.Expr = rule.is_outside(value)
    return ~value.is_null() & outside


def most_telling(values: AnyArray, broken: Mask) -> int:
    """Return the row to show: the first below 0, which says most, or else the first."""
    below = broken & (values < 0)
    return int(np.argmax(below if below.any() else broken))


def broken_in_memory(rule: Rule, values: AnyArray) -> Mask:
    """Return which values break a rule; a missing value is nan."""
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if rule.kind == "missing":
        return missing
    return np.asarray(~missing & rule.is_outside(values.astype(np.float64)))


@dataclass
class Faults:
    """What is wrong in a source, as far as it has been read."""

    rules: Sequence[Rule]
    counts: Counter[int] = field(default_factory=Counter)
    examples: dict[int, Example] = field(default_factory=dict)

    def add(self, code: int, count: int, example: Example | None = None) -> None:
        """Note that `count` more rows break rule `code`."""
        if count:
            self.counts[code] += count
            if example is not None:
                first = self.examples.get(code, example)
                largest = max(first.largest, example.largest)
                self.examples[code] = first._replace(largest=largest)

    def merge(self, other: Faults, within: str) -> None:
        """Note what was found wrong in a file."""
        for code, count in other.counts.items():
            example = other.examples.get(code)
            self.add(code, count, example and example._replace(within=within))

    @property
    def total(self) -> int:
        """How many rows cannot be counted."""
        return self.counts.total()

    def refuse(self, n_kept: int, on_invalid: OnInvalid | None) -> None:
        """Raise if any row breaks a rule and may not be left out.

        A column most of which is out of range is not what it was taken for: the rest of it is not
        worth measuring. Nobody is told to leave rows out where `on_invalid` is None.
        """
        for code, count in self.counts.items():
            if self.rules[code].kind == "outside" and 2 * count > self.total + n_kept:
                raise self._error(code, "; most rows are like that, too many to leave out")
        if self.total and on_invalid != "drop":
            way_out = ", or leave such rows out with {on_invalid}='drop'" if on_invalid else ""
            raise self._error(min(self.counts), way_out)

    def warn(self, n_kept: int, stacklevel: int) -> None:
        """Tell how many rows were left out, if any."""
        if self.total:
            parts = [
                f"{self.counts[code]} with {self.rules[code].fault}" for code in sorted(self.counts)
            ]
            warnings.warn(
                f"{_rows(self.total)} of {self.total + n_kept} left out: {', '.join(parts)}",
                UserWarning,
                stacklevel=stacklevel + 1,
            )

    def _error(self, code: int, remark: str) -> CalibrantError:
        rule, example = self.rules[code], self.examples.get(code, Example(None))
        others = "; other rows are invalid, too" if self.total > self.counts[code] else ""
        return CalibrantError(
            _must(rule, example.value),
            argument=rule.role,
            value=example.value,
            found="null or nan" if rule.kind == "missing" else None,
            position=example.position,
            within=example.within,
            count=self.counts[code],
            hint=_hint(rule, example) + remark + others,
            known=listed(rule.classes),
            **in_words(rule.role, rule.column),
        )


def _must(rule: Rule, value: Any) -> str:
    if rule.kind == "missing":
        return "must have a value in every row"
    if rule.classes:
        return "must hold one of the classes {known}"
    if rule.role == "weight":
        is_weight = 0 <= value < np.inf
        return validation.WEIGHT_RULE if is_weight else "must be finite and not negative"
    return "must lie in [0, 1]"


def _hint(rule: Rule, example: Example) -> str:
    """Say what may have happened."""
    value = example.value
    if rule.kind == "missing":
        return "fill them"
    if rule.classes:
        return "each class needs its own column of probabilities"
    if rule.role == "weight":
        is_weight = 0 <= value < np.inf
        return "rescale the weights" if is_weight else "correct them"
    if rule.role == "label":
        return "outcomes are 0 or 1, or soft in between"
    if value >= -_ROUNDING_EXCESS and example.largest <= 1 + _ROUNDING_EXCESS:
        return "rounding errors? clip them to [0, 1]"
    if value < 0:
        return "logits or scores? convert them to probabilities first"
    if example.largest <= 100:
        return "percentages? divide by 100"
    return "only probabilities can be calibrated"


def _rows(count: int) -> str:
    return f"{count} row{'s' if count > 1 else ''}"
