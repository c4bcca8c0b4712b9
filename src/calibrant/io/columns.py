"""The columns of a table that are read, and the rows in which their values are invalid.

Every checked column has two rules, in order: a row must have a value, and the value must be in
range. A row counts under the first rule that it breaks. Valid columns take one or two reductions.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from calibrant._base import AnyArray
from calibrant.data import validation
from calibrant.data.labels import listed
from calibrant.errors import CalibrantError
from calibrant.formatting import counted

Role = Literal["prob", "label", "weight"]
OnInvalid = Literal["raise", "drop"]
Mask = npt.NDArray[np.bool_]

_DECIMAL = re.compile(r"-?\d*\.\d+")
# The number of names that a message lists.
_MOST_NAMES = 12
# A softmax in float32 can end a few units in the last place above 1.
_ROUNDING_EXCESS = 1e-5


@dataclass(frozen=True)
class Columns:
    """The names of the columns to read."""

    label: str  # outcomes, or the class of each row
    probs: tuple[str, ...]  # one column of probabilities, or one per class
    classes: tuple[Any, ...] = ()  # the class of each of `probs`; empty where outcomes are 0 or 1
    weight: str | None = None
    by: str | None = None  # groups
    is_multiclass: bool = False
    along: str | None = None  # a feature
    keys: tuple[str, ...] = ()  # further columns of labels, such as clusters, for rows in memory
    is_percent: bool = False  # whether probabilities are in percent

    @classmethod
    def read(cls, label: Any, prob: Any, weight: Any, by: Any) -> Self:
        """Return the columns that the arguments name."""
        for name, role in ((label, "label"), (weight, "weight"), (by, "by")):
            if not isinstance(name, str) and (name is not None or role == "label"):
                raise CalibrantError("must be the name of a column", argument=role, value=name)
        others = {"weight": (weight,), "by": (by,)}
        if isinstance(prob, str):
            validation.check_not_label([label], {"prob": (prob,), **others}, "label")
            return cls(label, (prob,), (), weight, by)
        if by is not None:
            raise CalibrantError(
                "must be left out where {prob} names one column per class: each class is a group",
                argument="by",
            )
        is_mapping = isinstance(prob, Mapping)
        probs = tuple(prob.values() if is_mapping else prob if isinstance(prob, Sequence) else ())
        if len(probs) < 2 or not all(isinstance(name, str) for name in probs):
            rule = "must be the name of a column, or name at least two, one per class"
            raise CalibrantError(rule, argument="prob", value=prob)
        if len(set(probs)) < len(probs):
            raise CalibrantError("must name each column once", argument="prob", value=list(probs))
        validation.check_not_label([label], {"prob": probs, **others}, "label")
        return cls(label, probs, tuple(prob) if is_mapping else (), weight, is_multiclass=True)

    def named(self) -> Iterator[tuple[Role, str]]:
        """Yield the columns that are checked row by row, with their roles."""
        for name in self.probs:
            yield "prob", name
        yield "label", self.label
        if self.weight is not None:
            yield "weight", self.weight

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        others = [name for name in (self.by, self.along, *self.keys) if name is not None]
        return list(dict.fromkeys([*(name for _, name in self.named()), *others]))

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns of labels, of groups or clusters."""
        return (*(() if self.by is None else (self.by,)), *self.keys)

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns of labels that have no other role."""
        others = {self.along, *(name for _, name in self.named())}
        return tuple(name for name in self.labels if name not in others)

    def check_known(self, schema: Mapping[str, Any]) -> None:
        """Refuse a table that lacks a column."""
        for name in self.names:
            if name not in schema:
                raise CalibrantError(f"there is no column {name!r}; {inventory(schema)}")

    def bound(self, schema: Mapping[str, Any]) -> Columns:
        """Return the columns with their classes, once a table is seen to have them all."""
        self.check_known(schema)
        for role, name in self.named():
            dtype = schema[name]
            # Columns of objects may hold numbers: they are checked row by row.
            if dtype.is_numeric() or dtype in (nw.Boolean, nw.Object):
                continue
            if role != "label" or not self.is_multiclass:
                several = ", or give one column of probabilities per class" * (role == "label")
                rule, hint = "must hold numbers", "convert it first" + several
                raise self._wrong_type(role, name, dtype, rule, hint)
        return replace(self, classes=self._classes(schema[self.label]))

    @staticmethod
    def _wrong_type(
        role: Role, name: str, dtype: Any, rule: str, hint: str | None = None
    ) -> CalibrantError:
        given = {"argument": role, "value": str(dtype), "found": "{dtype}", "dtype": dtype}
        return CalibrantError(rule, hint=hint, **given, **in_words(role, name))

    def _classes(self, dtype: Any) -> tuple[Any, ...]:
        """Return the class of each column: as given, numbers, or the names of the columns."""
        if not self.is_multiclass:
            return ()
        is_number = dtype.is_numeric()
        if not is_number and dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
            rule = "must hold the names or numbers of classes"
            raise self._wrong_type("label", self.label, dtype, rule)
        if not self.classes:
            return tuple(range(len(self.probs))) if is_number else self.probs
        kind = (int, float) if is_number else str
        if dtype != nw.Object and not all(isinstance(name, kind) for name in self.classes):
            raise CalibrantError(
                "must name classes by the values of label column {column!r}, which holds {values}",
                argument="prob",
                value=self.classes[0],
                column=self.label,
                values="numbers" if is_number else "text",
            )
        return self.classes


def in_words(role: str, name: str) -> dict[str, Any]:
    """Return what errors call the column that an argument names."""
    return {role: f"{role} column {name!r}"}


def quoted(name: str) -> str:
    """Return the name of a column as SQL writes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def inventory(names: Iterable[str]) -> str:
    """List the columns of a table, and ask about a single one that looks like several."""
    names = list(names)
    known = list(map(repr, names))
    listed = ", ".join(known[:_MOST_NAMES]) + (", ..." if len(known) > _MOST_NAMES else "")
    if len(known) == 1 and any(mark in known[0] for mark in (",", ";", "|", "\\t")):
        return f"the only column is {listed}: do all rows have the same number of fields?"
    if any(map(_DECIMAL.fullmatch, names)):
        return f"the columns are {listed}: is the row of their names missing?"
    return f"the columns are {listed}"


# Invalid rows.


class Rule(NamedTuple):
    """What the values of a column must satisfy: not missing, or in range."""

    role: Role
    column: str
    kind: Literal["missing", "outside"]
    classes: tuple[Any, ...] = ()

    def _is_outside(self, value: Any) -> Any:
        """Tell whether a value, in an array or a column of an engine, is out of range."""
        if self.role == "weight":
            return (value < 0) | ((value > 0) & validation.outside_weights(value))
        return (value < 0) | (value > self._maximum())

    def _maximum(self) -> float:
        # Classes are numbered.
        return float(np.finfo(np.float64).max) if self.classes else 1.0

    def all_valid(self, values: AnyArray) -> bool:
        """Tell, by reductions alone, whether all values satisfy the rule; nan satisfies none."""
        if len(values) == 0:
            return True
        if self.kind == "missing":
            return values.dtype.kind != "f" or not np.isnan(values.min())
        if self.role == "weight":
            return validation.are_weights(values)
        return bool(values.min() >= 0 and values.max() <= self._maximum())

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
        return f"{self.column!r} {'out of range' if self.role == 'weight' else 'outside [0, 1]'}"


class Example(NamedTuple):
    """A row that breaks a rule: its value, and its place where that is known."""

    value: Any
    position: int | None = None
    within: str | None = None
    largest: float = np.inf  # the largest value of all rows that break the rule, where known


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
            advice = ", or leave such rows out with {dropping}" if on_invalid else ""
            raise self._error(min(self.counts), advice)

    def warn(self, n_kept: int, stacklevel: int) -> None:
        """Warn how many rows were left out, if any."""
        if self.total:
            parts = [
                f"{self.counts[code]:,} with {self.rules[code].description}"
                for code in sorted(self.counts)
            ]
            rows = counted(self.total, "row")
            warnings.warn(
                f"{rows} of {self.total + n_kept:,} left out: {', '.join(parts)}",
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
        is_finite = 0 <= value < np.inf
        rescale = (validation.WEIGHT_RULE, "rescale the weights")
        return rescale if is_finite else ("must be finite and not negative", "correct them")
    if rule.role == "label":
        return "must lie in [0, 1]", "outcomes are 0 or 1, or soft in between"
    if value >= -_ROUNDING_EXCESS and example.largest <= 1 + _ROUNDING_EXCESS:
        return "must lie in [0, 1]", "rounding errors? clip them to [0, 1]"
    if value < 0:
        return "must lie in [0, 1]", "logits or scores? convert them to probabilities first"
    is_percentage = example.largest <= 100
    hint = validation.PERCENTAGES if is_percentage else "only probabilities can be calibrated"
    return "must lie in [0, 1]", hint
