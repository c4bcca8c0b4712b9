"""Rows from outside: checked, and made a sample of.

Long plain columns are not read twice: compiled passes check rows while they add them up, and
whatever else asks for the rows has them checked first (:attr:`Sample.rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant import checks
from calibrant.arrays import AnyArray, as_array
from calibrant.compiled import passes
from calibrant.errors import CalibrantError
from calibrant.labels import read_outcomes
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
    is_plain = sample_weight is pos_label is labels is None and passes.is_worth_while(p, y)
    if is_plain and not checks.may_be_swapped(y, p):
        return Sample(y, p, is_validated=False)
    p = checks.as_numbers(p, "y_prob")
    checks.check_probabilities(p)
    y = read_outcomes(y, pos_label, labels)
    checks.check_not_swapped(y, p)
    return Sample(y, p).weighted(read_weights(sample_weight, len(p)))


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
    if array.ndim != 1:
        raise CalibrantError(f"{name} must have shape (n,); got {array.shape}")
    return array
