"""Invalid rows of a table: how many break which rule, and the error or warning about them.

Every checked column has two rules, in order: a row must have a value, and the value must be in
range. A row counts under the first rule that it breaks. Where all rows are valid, checking takes
one or two reductions per rule.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
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

OnInvalid = Literal["raise", "drop"]
Mask = npt.NDArray[np.bool_]

_LARGEST = float(np.finfo(np.float64).max)
# A softmax in float32 can end a few units in the last place above 1.
_ROUNDING_EXCESS = 1e-5


class Rule(NamedTuple):
    """What the values of a column must satisfy: not missing, or in range."""

    role: Role
    column: str
    kind: Literal["missing", "outside"]
    classes: tuple[Any, ...] = ()

    @property
    def _top(self) -> float:
        return _LARGEST if self.classes else 1.0

    def _is_outside(self, value: Any) -> Any:
        """Tell whether a value, in an array or a column of an engine, is out of range."""
        if self.role == "weight":
            return (value < 0) | ((value > 0) & validation.outside_weights(value))
        return (value < 0) | (value > self._top)

    def all_valid(self, values: AnyArray) -> bool:
        """Tell, by reductions alone, whether all values satisfy the rule; nan satisfies none."""
        if len(values) == 0:
            return True
        if self.kind == "missing":
            return values.dtype.kind != "f" or not np.isnan(values.min())
        if self.role == "weight":
            return validation.are_weights(values)
        return bool(values.min() >= 0 and values.max() <= self._top)

    def broken_by(self, values: AnyArray) -> Mask:
        """Return which values break the rule; a missing value is nan."""
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
        if self.kind == "missing":
            return missing
        return np.asarray(~missing & self._is_outside(values.astype(np.float64)))

    def broken_in_engine(self, name: str) -> nw.Expr:
        """Return the expression that is true where column `name` breaks the rule, never null.

        Engines disagree on whether nan or null exceeds 1; such rows break the rule before.
        """
        value = nw.col(name)
        if self.classes:
            known = value.is_in(list(self.classes))
            return value.is_null() if self.kind == "missing" else ~value.is_null() & ~known
        if self.kind == "missing":
            return value.is_null() | value.is_nan()
        outside: nw.Expr = self._is_outside(value)
        return ~value.is_null() & outside

    @property
    def description(self) -> str:
        """What is wrong with rows that break the rule."""
        if self.kind == "missing":
            return f"null or nan in {self.column!r}"
        if self.classes:
            return f"an unknown class in {self.column!r}"
        limits = "out of range" if self.role == "weight" else "outside [0, 1]"
        return f"{self.column!r} {limits}"


class Example(NamedTuple):
    """A row that breaks a rule: its value, and its place where that is known.

    `largest` is the largest value of all rows that break the rule, where that is known.
    """

    value: Any
    position: int | None = None
    within: str | None = None
    largest: float = np.inf


def rules_of(columns: Columns) -> list[Rule]:
    """List the rules of a table, in the order in which they are checked."""
    return [
        Rule(role, name, kind, columns.classes if role == "label" else ())
        for role, name in columns.named()
        for kind in ("missing", "outside")
    ]


@dataclass
class InvalidRows:
    """The invalid rows of a source, as far as it has been read."""

    rules: Sequence[Rule]
    counts: Counter[int] = field(default_factory=Counter)
    examples: dict[int, Example] = field(default_factory=dict)

    def check(
        self,
        values: Sequence[AnyArray],
        written: Callable[[str, int], Any],
        *,
        start: int = 0,
        within: str | None = None,
    ) -> Mask | None:
        """Record the rows that break a rule; return which rows are valid, None if all are.

        `values` has the column of each rule as numbers, missing ones being nan; `written` returns
        the value of a column in a row as it stands in the table.
        """
        pairs = list(zip(self.rules, values, strict=True))
        if all(rule.all_valid(column) for rule, column in pairs):
            return None
        invalid: Mask = np.zeros(len(values[0]), dtype=bool)
        for code, (rule, column) in enumerate(pairs):
            broken = rule.broken_by(column) & ~invalid
            if broken.any():
                # A negative value explains most.
                negative = broken & (column < 0)
                row = int(np.argmax(negative if negative.any() else broken))
                largest = float(column[broken].max())
                example = Example(written(rule.column, row), start + row, within, largest)
                self.add(code, int(broken.sum()), example)
            invalid |= broken
        return ~invalid

    def add(self, code: int, count: int, example: Example | None = None) -> None:
        """Record that `count` more rows break rule `code`."""
        if count:
            self.counts[code] += count
            if example is not None:
                first = self.examples.get(code, example)
                largest = max(first.largest, example.largest)
                self.examples[code] = first._replace(largest=largest)

    def merge(self, other: InvalidRows, within: str) -> None:
        """Record the invalid rows of a file."""
        for code, count in other.counts.items():
            example = other.examples.get(code)
            self.add(code, count, example and example._replace(within=within))

    @property
    def total(self) -> int:
        """The number of invalid rows."""
        return self.counts.total()

    def refuse(self, n_kept: int, on_invalid: OnInvalid | None) -> None:
        """Raise if any row is invalid and may not be left out.

        A column most of which is out of range is not what it was taken for: the rest of it is not
        worth measuring. Where `on_invalid` is None, leaving rows out is not advised.
        """
        for code, count in self.counts.items():
            if self.rules[code].kind == "outside" and 2 * count > self.total + n_kept:
                raise self._error(code, "; most rows are like that, too many to leave out")
        if self.total and on_invalid != "drop":
            advice = ", or leave such rows out with {on_invalid}='drop'" if on_invalid else ""
            raise self._error(min(self.counts), advice)

    def warn(self, n_kept: int, stacklevel: int) -> None:
        """Warn how many rows were left out, if any."""
        if self.total:
            parts = [
                f"{self.counts[code]} with {self.rules[code].description}"
                for code in sorted(self.counts)
            ]
            rows = f"{self.total} row{'s' if self.total > 1 else ''}"
            warnings.warn(
                f"{rows} of {self.total + n_kept} left out: {', '.join(parts)}",
                UserWarning,
                stacklevel=stacklevel + 1,
            )

    def _error(self, code: int, remark: str) -> CalibrantError:
        rule, example = self.rules[code], self.examples.get(code, Example(None))
        others = "; other rows are invalid, too" if self.total > self.counts[code] else ""
        requirement, hint = _explained(rule, example)
        return CalibrantError(
            requirement,
            argument=rule.role,
            value=example.value,
            found="null or nan" if rule.kind == "missing" else None,
            position=example.position,
            within=example.within,
            count=self.counts[code],
            hint=hint + remark + others,
            known=listed(rule.classes),
            **in_words(rule.role, rule.column),
        )


def _explained(rule: Rule, example: Example) -> tuple[str, str]:
    """Return what must hold, and what may have happened."""
    value = example.value
    if rule.kind == "missing":
        return "must have a value in every row", "fill them"
    if rule.classes:
        hint = "each class needs its own column of probabilities"
        return "must hold one of the classes {known}", hint
    if rule.role == "weight":
        if 0 <= value < np.inf:
            return validation.WEIGHT_RULE, "rescale the weights"
        return "must be finite and not negative", "correct them"
    if rule.role == "label":
        return "must lie in [0, 1]", "outcomes are 0 or 1, or soft in between"
    return "must lie in [0, 1]", _hint_for_range(value, example.largest)


def _hint_for_range(value: float, largest: float) -> str:
    if value >= -_ROUNDING_EXCESS and largest <= 1 + _ROUNDING_EXCESS:
        return "rounding errors? clip them to [0, 1]"
    if value < 0:
        return "logits or scores? convert them to probabilities first"
    return (
        "percentages? divide by 100" if largest <= 100 else "only probabilities can be calibrated"
    )
