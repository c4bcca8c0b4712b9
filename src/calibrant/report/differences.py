"""Differences between models on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.inference.compare_result import Comparison
from calibrant.report.meanings import measure_meaning
from calibrant.report.numbers import Number, p_value, percent
from calibrant.report.tables import Ranged, ranged
from calibrant.results.values import Interval

__all__ = ["DifferenceLine", "DifferenceSection", "difference_section"]


@dataclass(frozen=True)
class DifferenceLine:
    """One pair of models in the table."""

    a: str
    b: str
    difference: Ranged
    p_value: Number
    p_adjusted: Number
    better: str | None


@dataclass(frozen=True)
class DifferenceSection:
    """All that a page says of differences."""

    measure: str
    level: str
    lines: tuple[DifferenceLine, ...]


def difference_section(comparison: Comparison) -> DifferenceSection:
    """Return what a page says of differences."""
    level = comparison.level
    lines = tuple(
        DifferenceLine(
            a=str(pair.a),
            b=str(pair.b),
            difference=ranged(Interval(pair.difference, pair.low, pair.high, level)),
            p_value=p_value(pair.p_value),
            p_adjusted=p_value(pair.p_adjusted),
            better=None if pair.better is None else str(pair.better),
        )
        for pair in comparison.pairs
    )
    measure = measure_meaning(comparison.measure).label
    return DifferenceSection(measure, percent(level), lines)
