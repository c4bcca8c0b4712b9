"""Rows from outside: checked, and made a sample of.

Long plain columns are not looked at twice: compiled passes look at rows while they add them up, and
whatever else asks for the rows has them checked first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from calibrant import checks
from calibrant.arrays import AnyArray, as_array
from calibrant.labels import read_outcomes
from calibrant.numerics import passes
from calibrant.sample import Sample


def read_sample(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
) -> Sample:
    """Check one-dimensional input and make a sample of it; zero-weight rows are left out."""
    y, p = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
    for array, name in ((y, "y_true"), (p, "y_prob")):
        checks.check_not_empty(array, name)
    y, p = one_column(y, "y_true"), one_column(p, "y_prob")
    checks.check_same_length(y, "y_true", p, "y_prob")
    if sample_weight is pos_label is labels is None and LateSample.is_worth_while(p, y):
        return LateSample(p, y)
    p, y = _checked(p, y, pos_label, labels)
    return Sample(y, p).weighted(read_weights(sample_weight, len(p)))


def _checked(
    p: AnyArray, y: AnyArray, pos_label: Any, labels: Sequence[Any] | None
) -> tuple[AnyArray, AnyArray]:
    p = checks.as_numbers(p, "y_prob")
    checks.check_probabilities(p)
    y = read_outcomes(y, pos_label, labels)
    checks.check_not_swapped(y, p)
    return p, y


class LateSample(Sample):
    """Columns of numbers, checked when they are first looked at.

    They must not change until the call that they were given to returns.
    """

    _unchecked: tuple[AnyArray, AnyArray]

    def __init__(self, p: AnyArray, y: AnyArray) -> None:
        self.__dict__.update(_unchecked=(p, y))

    def __repr__(self) -> str:
        return f"LateSample(n={self.n})"

    def __reduce__(self) -> tuple[type[Sample], tuple[Any, ...]]:
        """Leave for another process as checked rows."""
        return Sample, (self.y, self.p, self.w, self.lowest)

    @staticmethod
    def is_worth_while(p: AnyArray, y: AnyArray) -> bool:
        """Tell whether compiled passes can look at these columns."""
        return passes.is_worth_while(p, y) and not checks.may_be_swapped(y, p)

    @cached_property
    def _rows(self) -> tuple[AnyArray, AnyArray]:
        return _checked(*self._unchecked, None, None)

    @property
    def p(self) -> AnyArray:
        """Predictions in [0, 1]."""
        return self._rows[0]

    @property
    def y(self) -> AnyArray:
        """Outcomes in [0, 1]."""
        return self._rows[1]

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self._unchecked[0])

    def part(self) -> Sample:
        """Return the checked sample of some of many rows."""
        p, y = (self._some(column) for column in self._unchecked)
        if checks.are_unit(p) and checks.are_unit(y):
            return Sample(y, p)
        return super().part()

    def _to_pass_over(self) -> tuple[AnyArray, AnyArray]:
        return self._unchecked


def read_weights(sample_weight: Any, n: int) -> AnyArray | None:
    """Return checked weights, or None where every row counts once."""
    if sample_weight is None:
        return None
    w = one_column(as_array(sample_weight, "sample_weight"), "sample_weight")
    w = checks.as_numbers(w, "sample_weight")
    checks.check_weights(w, n)
    return w


def one_column(array: AnyArray, name: str) -> AnyArray:
    """Return shape (n,) or (n, 1) as (n,)."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    checks.check_one_axis(array, name)
    return array
