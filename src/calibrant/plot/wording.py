"""Results in the few words that stand in a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import IntArray
from calibrant.errors import CalibrantError
from calibrant.inference.estimate_result import Estimate
from calibrant.measures.registry import measures
from calibrant.results.curves import Curve
from calibrant.results.p_values import TestResult, printed_p_value
from calibrant.results.values import ScoreDecomposition

__all__ = [
    "Key",
    "Note",
    "about_band",
    "compact",
    "count",
    "headed",
    "lines_of",
    "measure_name",
    "read_note",
    "row_range",
    "short_count",
]

Note = Estimate | TestResult | ScoreDecomposition | Curve | str

_AREAS = {"density": "density ECE", "binned": "ECE"}
_SIGNS = {"=": "=", "<": "<", "<=": "\N{LESS-THAN OR EQUAL TO}"}


def read_note(note: Any) -> bool | Note:
    """Return whether to write a note, or the note itself: a result, or words."""
    if isinstance(note, np.bool_):
        return bool(note)
    if not isinstance(note, bool | Note):
        raise CalibrantError("must be True, False, a result or text", argument="note", value=note)
    return note


def lines_of(note: Note) -> list[str]:
    """Return a result as lines, the most important first."""
    if isinstance(note, Estimate):
        return _of_estimate(note)
    if isinstance(note, TestResult):
        name = "ECCE-MAD" if note.test.endswith("max") else "ECCE-R"
        size = f"{name} {note.statistic:.3g} = {note.normalized:.3g} $\\sigma$"
        return [size, f"{_p_value(note)}   n = {count(note.n)}"]
    if isinstance(note, ScoreDecomposition):
        return [
            f"miscalibration {note.miscalibration:.3g}",
            f"discrimination {note.discrimination:.3g}",
            f"uncertainty {note.uncertainty:.3g}",
        ]
    if isinstance(note, Curve):
        return [f"{_AREAS.get(note.method, 'area')} {note.area:.3g}"]
    return note.splitlines()


def headed(name: str, note: Note | None) -> list[str]:
    """Return a name, if there is one, and then the lines of a note, if there is one."""
    return ([name] if name else []) + ([] if note is None else lines_of(note))


@dataclass(frozen=True)
class Key:
    """The names of several models, each with what is noted about it, under what all share."""

    names: list[str]
    heading: tuple[str, ...] = ()

    @classmethod
    def of(cls, models: Sequence[tuple[str, Note | None]], about: Sequence[str] = ()) -> Key:
        """Return a key to models; what all their estimates are of goes into the heading."""
        estimates = [note for _, note in models if isinstance(note, Estimate)]
        kinds = {_kind(estimate) for estimate in estimates}
        if len(estimates) == len(models) and len(kinds) == 1:
            pairs = zip(models, estimates, strict=True)
            names = [f"{name}: {_numbers(one)}" for (name, _), one in pairs]
            return cls(names, (kinds.pop(), *about))
        names = [f"{name}: {_brief(note)}" if note else name for name, note in models]
        return cls(names, tuple(about))

    @property
    def lines(self) -> list[str]:
        """All lines, with room for samples of what is named."""
        return [*self.heading, *(f"     {name}" for name in self.names)]


def about_band(curve: Curve) -> list[str]:
    """Return what the band of a curve says, in a line; nothing where there is none."""
    if curve.band is None:
        return []
    level = f"{100 * curve.level:g}%"
    if curve.method == "binned":
        scope = "all bins at once" if curve.simultaneous else "bin by bin"
    else:
        scope = "whole curve" if curve.simultaneous else "pointwise"
    if curve.band == "consistency":
        return [f"grey: {level} if calibrated, {scope}"]
    what = "intervals" if curve.method == "binned" else "band"
    return [f"{level} {what}, {scope}"]


def _kind(estimate: Estimate) -> str:
    return f"{measure_name(estimate)} ({100 * estimate.level:g}% interval)"


def _numbers(estimate: Estimate) -> str:
    _, value, low, high = _parts(estimate)
    return f"{value} ({low}–{high})"


def _brief(note: Note) -> str:
    return f"{_kind(note)} {_numbers(note)}" if isinstance(note, Estimate) else lines_of(note)[0]


def measure_name(estimate: Estimate) -> str:
    """Return what the measure of an estimate is called in print."""
    return measures()[estimate.measure].label


def compact(note: Note) -> str:
    """Return a result in a few short lines, for a small panel."""
    if not isinstance(note, Estimate):
        return "\n".join(lines_of(note)[:2])
    name, value, low, high = _parts(note)
    return f"{name} {value}\n{low} to {high}\nn = {count(note.n)}"


def _of_estimate(estimate: Estimate) -> list[str]:
    name, value, low, high = _parts(estimate)
    return [
        f"{name} {value}",
        f"{100 * estimate.level:g}% interval {low} to {high}",
        f"n = {count(estimate.n)}",
    ]


def _parts(estimate: Estimate) -> tuple[str, str, str, str]:
    digits = _digits(estimate.high - estimate.low)
    value, low, high = (f"{x:.{digits}f}" for x in (estimate.value, estimate.low, estimate.high))
    return measure_name(estimate), value, low, high


def _digits(width: float) -> int:
    """Return how many decimals show an interval of this width to two figures."""
    if not width > 0:
        return 3
    return min(max(1 - math.floor(math.log10(width)), 2), 5)


def _p_value(test: TestResult) -> str:
    """Return the P-value of a test, as powers of ten where it is small."""
    sign, number = printed_p_value(test.p_value, is_least=test.is_least)
    mantissa, _, exponent = number.partition("e")
    if exponent:
        times = "" if mantissa == "1" else f"{mantissa} \\times "
        number = f"${times}10^{{{int(exponent)}}}$"
    return f"P {_SIGNS[sign]} {number}"


def count(n: int) -> str:
    """Return a whole number with its digits in groups of three."""
    return f"{n:,}".replace(",", "\N{THIN SPACE}") if n >= 10_000 else str(n)


def short_count(n: int) -> str:
    """Return a whole number in at most four characters: 950, 12k, 3.4M."""
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= unit:
            return f"{n / unit:.2g}{name}" if n < 100 * unit else f"{n / unit:.0f}{name}"
    return str(n)


def row_range(n: IntArray) -> str:
    """Return how many rows bins hold, from the fewest to the most."""
    low, high = (short_count(int(rows)) for rows in (n.min(), n.max()))
    return f"{low} rows per bin" if low == high else f"{low} to {high} rows per bin"
