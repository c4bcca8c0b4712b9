"""Methods of recalibration: how each did on rows that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from calibrant.report.numbers import Number, fixed, p_value

__all__ = ["MethodLine", "MethodSection", "Trial", "Trials", "method_section"]

_SCORES = {"brier": "Brier", "log": "log"}


class Trial(Protocol):
    """How one method did."""

    @property
    def method(self) -> str:
        """Its name."""

    @property
    def score(self) -> float:
        """Its mean score on held-out rows."""

    @property
    def improvement(self) -> float:
        """How much less that is than the score of what was given."""

    @property
    def standard_error(self) -> float:
        """The standard error of the improvement."""

    @property
    def p_value(self) -> float:
        """The P-value of the improvement, adjusted for the number of methods."""

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""


class Trials(Protocol):
    """What the choice of a method rests on; a :class:`calibrant.Recalibration` is such."""

    @property
    def method(self) -> str:
        """The method that was chosen."""

    @property
    def score(self) -> str:
        """The score that decided."""

    @property
    def score_before(self) -> float:
        """The mean score of what was given."""

    @property
    def candidates(self) -> Sequence[Trial]:
        """How every method did."""

    @property
    def cv(self) -> int:
        """How many parts were held out in turn."""


@dataclass(frozen=True)
class MethodLine:
    """One method in the table."""

    name: str
    chosen: bool
    score: Number
    gain: Number
    error: Number
    p_value: Number


@dataclass(frozen=True)
class MethodSection:
    """All that a page says of methods."""

    score: str
    before: Number
    parts: int
    any_helps: bool
    lines: tuple[MethodLine, ...]


def method_section(trials: Trials) -> MethodSection:
    """Return what a page says of methods."""
    lines = tuple(
        MethodLine(
            name=one.method,
            chosen=one.method == trials.method,
            score=fixed(one.score, 4),
            gain=fixed(one.improvement, 5),
            error=fixed(one.standard_error, 5),
            p_value=p_value(one.p_value),
        )
        for one in trials.candidates
    )
    return MethodSection(
        score=_SCORES.get(trials.score, trials.score),
        before=fixed(trials.score_before, 4),
        parts=trials.cv,
        any_helps=any(line.chosen for line in lines),
        lines=lines,
    )
