"""What a table of groups says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.inference.estimate_result import Estimate
from calibrant.results.p_values import TestResult
from calibrant.results.result import Result, frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GroupRow", "GroupTable"]


@dataclass(frozen=True)
class GroupRow(Result):
    """The calibration of one group.

    Attributes
    ----------
    group
        Its label; None for rows without one.
    n
        How many of its rows carry weight.
    prevalence, mean_prediction
        Weighted means of outcomes and predictions.
    smooth_ece
        The smooth calibration error with its interval.
    ece
        The binned calibration error.
    deviation
        The cumulative difference of outcomes and predictions farthest from 0: positive where
        outcomes are more frequent than predicted, over all scores up to there.
    test
        The cumulative test of perfect calibration, by the range; None where there is
        none (see `note`).
    p_adjusted
        Its P-value adjusted for the number of groups tested; nan where there is no test.
    small
        Whether there are too few rows or events to say much: see :func:`calibrant.by_group`.
    note
        What else is to be known, in a few words; mostly nothing.
    """

    group: Any
    n: int
    prevalence: float
    mean_prediction: float
    smooth_ece: Estimate
    ece: float
    deviation: float
    test: TestResult | None
    p_adjusted: float
    small: bool
    note: str

    @property
    def p_value(self) -> float:
        """The P-value of the test, nan where there is none."""
        return float("nan") if self.test is None else self.test.p_value

    @property
    def ecce_r(self) -> float:
        """The range of cumulative differences, which is tested; nan where there is no test."""
        return float("nan") if self.test is None else self.test.statistic

    def to_dict(self) -> dict[str, Any]:
        """Return one plain value a column, nan as None."""
        error = self.smooth_ece
        values = {
            "group": self.group,
            "n": self.n,
            "prevalence": self.prevalence,
            "mean_prediction": self.mean_prediction,
            "smooth_ece": error.value,
            "low": error.low,
            "high": error.high,
            "ece": self.ece,
            "deviation": self.deviation,
            "ecce_r": self.ecce_r,
            "p_value": self.p_value,
            "p_adjusted": self.p_adjusted,
            "small": self.small,
            "note": self.note,
        }
        return {name: None if value != value else value for name, value in values.items()}


@dataclass(frozen=True, repr=False)
class GroupTable(Result):
    """The calibration of each group, one row a group.

    Attributes
    ----------
    rows
        The groups in the order of their labels, rows without a label last; those of a dictionary
        of sketches in its order.
    level
        Of the intervals; a group counts as miscalibrated where its adjusted P-value is at most
        1 - level.
    method
        How P-values were adjusted: "holm" or "benjamini_hochberg".
    """

    rows: tuple[GroupRow, ...]
    level: float
    method: str

    def __iter__(self) -> Iterator[GroupRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, group: Any) -> GroupRow:
        """Return the row of a group by its label."""
        for row in self.rows:
            if row.group == group:
                return row
        known = ", ".join(repr(row.group) for row in self.rows[:8])
        more = ", ..." if len(self.rows) > 8 else ""
        raise CalibrantError(f"there is no group {group!r} here; there are: {known}{more}")

    @property
    def miscalibrated(self) -> tuple[Any, ...]:
        """The labels of the groups whose adjusted P-value is at most 1 - level."""
        return tuple(row.group for row in self.rows if row.p_adjusted <= 1 - self.level)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a group."""
        rows = [row.to_dict() for row in self.rows]
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
        if None in columns["group"]:
            # Or pandas would make 1 and None 1.0 and nan.
            columns["group"] = np.array(columns["group"], dtype=object)
        return frame(columns)

    def __repr__(self) -> str:
        names = [str(row.group) for row in self.rows]
        width = max(len("group"), *map(len, names))
        heading = f"{'n':>9} {'prevalence':>10} {'mean_pred':>9} {'smooth_ece':>10}"
        level = f"{100 * self.level:g}% interval"
        heading += f" {level:>15} {'ece':>7} {'deviation':>9} {'p':>8} {'p_adj':>8}"
        lines = [f"{'group':{width}} {heading}"]
        lines += [
            f"{name:{width}} {_numbers(row)}{_remarks(row, self.level)}"
            for name, row in zip(names, self.rows, strict=True)
        ]
        found = f"* p_adj <= {1 - self.level:.2g} ({self.method})"
        return "\n".join([*lines, f"{found}; small: too few rows or events to say much"])


def _numbers(row: GroupRow) -> str:
    error = row.smooth_ece
    means = f"{row.n:9} {row.prevalence:10.4f} {row.mean_prediction:9.4f} {error.value:10.4f}"
    errors = f"{error.low:7.4f} {error.high:7.4f} {row.ece:7.4f} {row.deviation:+9.4f}"
    chances = (
        "       -        -" if row.test is None else f"{row.p_value:8.2g} {row.p_adjusted:8.2g}"
    )
    return f"{means} {errors} {chances}"


def _remarks(row: GroupRow, level: float) -> str:
    found = " *" if row.p_adjusted <= 1 - level else ""
    remarks = "; ".join(["small"] * row.small + [row.note] * bool(row.note))
    return found + (f" {remarks}" if remarks else "")
