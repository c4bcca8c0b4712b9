"""Thresholds: ``--fail-if "NAME[.low|.high|.value] OP NUMBER"``, with OP one of > >= < <=.

NAME is a calibration error, `bias` or `slope`, which have intervals, or a plain number such as
`brier_score` or `p_value`. Without a part the value is meant. With groups the condition is about
each group, and those for which it holds are named.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.cli import exit_codes
from calibrant.cli.messages import say
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.assessment.group_result import GroupRow
    from calibrant.assessment.result import Assessment

# What can be asked beside the measures of an assessment: names without intervals.
_PLAIN = ("brier_score", "prevalence", "mean_prediction", "n", "p_value")
_PARTS = ("value", "low", "high")
_SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_CONDITION = re.compile(r"(?P<name>\w+)(?:\.(?P<part>\w+))?\s*(?P<sign>[<>]=?)\s*(?P<limit>\S+)")
_EXAMPLE = "write for example 'smooth_ece.high > 0.05'"

Numbers = Mapping[str, float]
# Names with intervals, and those without.
Names = tuple[tuple[str, ...], tuple[str, ...]]

GROUPS: Names = (
    ("smooth_ece",),
    ("ece", "ecce_r", "prevalence", "mean_prediction", "n", "p_value", "p_adjusted"),
)


def whole() -> Names:
    """Return what can be asked of an assessment."""
    from calibrant.measures.registry import assessed

    return (*(info.name for info in assessed()), "bias", "slope"), _PLAIN


@dataclass(frozen=True)
class Threshold:
    """A condition under which a command is to fail."""

    quantity: str
    sign: str
    limit: float

    @classmethod
    def read(cls, text: str, names: Names) -> Threshold:
        """Read a condition, or say what is wrong with it."""
        match = _CONDITION.fullmatch(text.strip())
        if match is None:
            raise CalibrantError(f"--fail-if cannot be read: {text!r:.60}; {_EXAMPLE}")
        name, part, sign, limit = match.group("name", "part", "sign", "limit")
        with_interval, plain = names
        if name not in with_interval + plain:
            known = ", ".join(with_interval + plain)
            raise CalibrantError(f"--fail-if knows no {name!r:.40}; it knows {known}")
        parts = _PARTS if name in with_interval else _PARTS[:1]
        if part is not None and part not in parts:
            only = ", ".join(parts)
            raise CalibrantError(f"{name} in --fail-if has no {part!r:.40}, only {only}")
        try:
            number = float(limit)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise CalibrantError(f"--fail-if must compare with a number; got {limit!r:.40}")
        return cls(f"{name}.{part or 'value'}", sign, number)

    def holds(self, numbers: Numbers, who: str = "") -> bool:
        """Tell whether the condition holds, and say so if it does."""
        value, name = numbers.get(self.quantity, math.nan), self.quantity.removesuffix(".value")
        if math.isnan(value):
            raise CalibrantError(f"{who}{name} is not known here, so --fail-if cannot be decided")
        held = bool(_SIGNS[self.sign](value, self.limit))
        if held:
            say(f"{who}{name} is {value:.6g}, which is {self.sign} {self.limit:g}")
        return held


def read_thresholds(texts: Sequence[str] | None, *, in_groups: bool) -> list[Threshold]:
    """Read all conditions, before any work is done."""
    return [Threshold.read(text, GROUPS if in_groups else whole()) for text in texts or ()]


def exit_code(thresholds: Sequence[Threshold], numbers: Mapping[str, Numbers]) -> int:
    """Return the exit code: 1 where any condition holds, for anyone of those named."""
    held = [
        one.holds(known, f"{who}: " if who else "")
        for who, known in numbers.items()
        for one in thresholds
    ]
    return exit_codes.EXCEEDED if any(held) else exit_codes.DONE


def numbers_of(assessment: Assessment) -> Numbers:
    """Return the numbers of an assessment by the names that conditions use."""
    found: dict[str, float] = {}
    intervals: dict[str, Any] = {one.measure: one for one in assessment.estimates}
    intervals |= {"bias": assessment.bias, "slope": assessment.slope}
    for name, one in intervals.items():
        found |= {f"{name}.{part}": getattr(one, part) for part in _PARTS}
    for name in _PLAIN[:-1]:
        found[f"{name}.value"] = getattr(assessment, name)
    if assessment.test is not None:
        found["p_value.value"] = assessment.test.p_value
    return found


def group_numbers(row: GroupRow) -> Numbers:
    """Return the numbers of a group by the names that conditions use."""
    found = {f"smooth_ece.{part}": getattr(row.smooth_ece, part) for part in _PARTS}
    for name in GROUPS[1]:
        found[f"{name}.value"] = getattr(row, name)
    return found
