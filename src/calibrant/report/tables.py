"""The tables of a page, as rows of numbers that know how they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.assessment.result import Assessment
from calibrant.inference.estimate_result import Estimate
from calibrant.report.meanings import Meaning, measure_meaning, other_meanings
from calibrant.report.models import Model
from calibrant.report.numbers import (
    UNKNOWN,
    Number,
    count,
    decimals,
    figures,
    fixed,
    p_value,
    percent,
)
from calibrant.results.values import Interval

__all__ = ["BinRow", "MeasureRow", "Ranged", "bin_rows", "measure_rows", "ranged", "setting_rows"]

_DIGITS = 4


@dataclass(frozen=True)
class Ranged:
    """A number with its interval, and without the effect of noise, where these are known."""

    value: Number
    low: Number = UNKNOWN
    high: Number = UNKNOWN
    corrected: Number = UNKNOWN


@dataclass(frozen=True)
class MeasureRow:
    """One measure of all models."""

    name: str
    about: Meaning
    cells: tuple[Ranged, ...]


@dataclass(frozen=True)
class BinRow:
    """One bin."""

    span: str
    n: Number
    weight: Number
    mean_pred: Number
    mean_true: Number
    low: Number
    high: Number
    gap: Number
    tilt: float


def measure_rows(models: Sequence[Model]) -> Iterator[MeasureRow]:
    """Yield a row for each measure that any model has."""
    assessments = [model.assessment for model in models]
    # In the order of the first model that has them.
    for name in dict.fromkeys(one.measure for found in assessments for one in found.estimates):
        cells = tuple(_measured(one, name) for one in assessments)
        yield MeasureRow(name, measure_meaning(name), cells)
    for name, about in other_meanings(assessments).items():
        yield MeasureRow(name, about, tuple(_other(one, name) for one in assessments))


def ranged(found: Estimate | Interval, digits: int | None = None) -> Ranged:
    """Return an estimate or an interval with so many decimals, or those its width allows."""
    if digits is None:
        digits = decimals(found.low, found.high)
    value, low, high = (fixed(one, digits) for one in (found.value, found.low, found.high))
    if isinstance(found, Interval):
        return Ranged(value, low, high)
    return Ranged(value, low, high, fixed(found.bias_corrected, digits))


def bin_rows(model: Model) -> Iterator[BinRow]:
    """Yield a row for each bin, with the interval of its mean outcome where that is known."""
    bins = model.assessment.bins
    lower, upper = (_by_bin(model, side) for side in ("low", "high"))
    widest = float(np.nanmax(np.abs(bins.gap)))
    for k in range(len(bins.n)):
        gap = float(bins.gap[k])
        yield BinRow(
            span=f"{bins.edges[k]:.3g} to {bins.edges[k + 1]:.3g}",
            n=count(int(bins.n[k])),
            weight=figures(float(bins.weight[k]), 6),
            mean_pred=fixed(float(bins.mean_pred[k]), _DIGITS),
            mean_true=fixed(float(bins.mean_true[k]), _DIGITS),
            low=fixed(lower[k], _DIGITS),
            high=fixed(upper[k], _DIGITS),
            gap=fixed(gap, _DIGITS),
            tilt=gap / widest if bins.n[k] and widest > 0 else 0.0,
        )


def setting_rows(models: Sequence[Model]) -> Iterator[tuple[str, list[str]]]:
    """Yield how all models were assessed, one setting after the other."""
    chosen = [model.assessment.settings for model in models]
    tests = [model.assessment.test for model in models]
    yield "Problem", [one.problem for one in chosen]
    yield "Level of intervals", [percent(one.level) for one in chosen]
    yield "Resamples", [str(one.n_resamples) for one in chosen]
    yield "Seed", ["a generator" if one.seed is None else str(one.seed) for one in chosen]
    yield "Bins", [f"{one.n_bins} of equal width" for one in chosen]
    yield "Test", ["none" if one is None else one.method.replace("_", " ") for one in tests]
    yield "calibrant", [one.version for one in chosen]


def _measured(assessment: Assessment, name: str) -> Ranged:
    found = [one for one in assessment.estimates if one.measure == name]
    return ranged(found[0]) if found else Ranged(UNKNOWN)


def _other(assessment: Assessment, name: str) -> Ranged:
    if name == "p_value":
        test = assessment.test
        return Ranged(UNKNOWN if test is None else p_value(test.p_value, is_least=test.is_least))
    value = getattr(assessment, name)
    return ranged(value) if isinstance(value, Interval) else Ranged(fixed(value, _DIGITS))


def _by_bin(model: Model, side: str) -> list[float]:
    """Return one side of the binned curve's band for every bin, empty ones included."""
    bins, curve = model.assessment.bins, model.curves["binned"]
    values = np.full(len(bins.n), np.nan)
    values[bins.n > 0] = getattr(curve, side)
    return values.tolist()
