"""The columns of a table that hold outcomes, probabilities, weights and groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw

from calibrant.errors import CalibrantError

Role = Literal["prob", "label", "weight"]

# The number of names that a message lists.
_MOST_NAMES = 12


@dataclass(frozen=True)
class Columns:
    """The names of the columns to read.

    Attributes
    ----------
    label
        Outcomes, or the class of each row.
    probs
        One column of probabilities, or one per class.
    classes
        The class of each column of `probs`; empty where outcomes are 0 or 1.
    weight, by, along
        Weights, groups and a feature, if any.
    """

    label: str
    probs: tuple[str, ...]
    classes: tuple[Any, ...] = ()
    weight: str | None = None
    by: str | None = None
    is_multiclass: bool = False
    along: str | None = None

    @classmethod
    def read(cls, label: Any, prob: Any, weight: Any, by: Any) -> Self:
        """Return the columns that the arguments name."""
        for name, role in ((label, "label"), (weight, "weight"), (by, "by")):
            if not isinstance(name, str) and (name is not None or role == "label"):
                raise CalibrantError("must be the name of a column", argument=role, value=name)
        if isinstance(prob, str):
            return cls(label, (prob,), (), weight, by)
        if by is not None:
            raise CalibrantError(
                "must be left out where {prob} names one column per class: each class is a group",
                argument="by",
            )
        is_mapping = isinstance(prob, Mapping)
        probs = tuple(prob.values() if is_mapping else prob if isinstance(prob, Sequence) else ())
        if len(probs) < 2 or not all(isinstance(name, str) for name in probs):
            raise CalibrantError(
                "must be the name of a column, or name at least two, one per class",
                argument="prob",
                value=prob,
            )
        if len(set(probs)) < len(probs):
            raise CalibrantError("must name each column once", argument="prob", value=list(probs))
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
        others = [name for name in (self.by, self.along) if name is not None]
        return list(dict.fromkeys([*(name for _, name in self.named()), *others]))

    @property
    def groups(self) -> str | None:
        """The column that names groups and has no other role, if there is one."""
        others = {self.along, *(name for _, name in self.named())}
        return None if self.by in others else self.by

    def check_known(self, schema: Mapping[str, Any]) -> None:
        """Refuse a table that lacks a column."""
        for name in self.names:
            if name not in schema:
                raise CalibrantError(f"there is no column {name!r}; {inventory(schema)}")

    def bound(self, schema: Mapping[str, Any]) -> Columns:
        """Return the columns with their classes, once a table is seen to have them all."""
        self.check_known(schema)
        for role, name in self.named():
            if role != "label" or not self.is_multiclass:
                _check_numbers(schema[name], role, name)
        return replace(self, classes=self._classes(schema[self.label]))

    def _classes(self, dtype: Any) -> tuple[Any, ...]:
        """Return the class of each column: as given, numbers, or the names of the columns."""
        if not self.is_multiclass:
            return ()
        is_number = dtype.is_numeric()
        if not is_number and dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
            raise CalibrantError(
                "must hold the names or numbers of classes",
                argument="label",
                value=str(dtype),
                found="{dtype}",
                dtype=dtype,
                **in_words("label", self.label),
            )
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
    known = list(map(repr, names))
    listed = ", ".join(known[:_MOST_NAMES]) + (", ..." if len(known) > _MOST_NAMES else "")
    if len(known) == 1 and any(mark in known[0] for mark in (",", ";", "|", "\\t")):
        return f"the only column is {listed}: do all rows have the same number of fields?"
    return f"the columns are {listed}"


def _check_numbers(dtype: Any, role: Role, name: str) -> None:
    # Columns of objects may hold numbers: they are checked row by row.
    if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object)):
        several = ", or give one column of probabilities per class" * (role == "label")
        raise CalibrantError(
            "must hold numbers",
            argument=role,
            value=str(dtype),
            found="{dtype}",
            hint="convert it first" + several,
            dtype=dtype,
            **in_words(role, name),
        )
