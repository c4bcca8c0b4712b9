"""What the numbers on a page mean, one line each, and how they are defined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibrant.assessment.assess import Assessment
from calibrant.assessment.groups import GroupTable
from calibrant.assessment.verdict import Interval, Verdict
from calibrant.formatting import (
    UNKNOWN,
    Number,
    count,
    counted,
    decimals,
    fixed,
    p_value,
    percent,
    proportion,
    significant,
)
from calibrant.inference.compare import Comparison
from calibrant.inference.estimate import Estimate
from calibrant.measures.point_masses import PointMasses
from calibrant.measures.registry import measures
from calibrant.reporting.figures import (
    Spec,
    cumulative_figure,
    drawn,
    group_figure,
    reliability_figure,
)
from calibrant.reporting.models import Model, evenly

__all__ = [
    "Diagram",
    "GroupSection",
    "Meaning",
    "MethodSection",
    "Ranged",
    "Trial",
    "Trials",
    "bin_rows",
    "diagrams",
    "difference_section",
    "group_section",
    "headline",
    "measure_meaning",
    "measure_rows",
    "method_section",
    "other_meanings",
    "ranged",
    "setting_rows",
]


@dataclass(frozen=True)
class Meaning:
    """A number in words.

    Attributes
    ----------
    label
        What it is called.
    meaning
        What it tells, in one line.
    definition
        The formula, in one line.
    """

    label: str
    meaning: str
    definition: str


_OTHERS = {
    "bias": Meaning(
        "Mean deviation",
        "Mean outcome less mean prediction; negative where predictions are too high.",
        "Σ w (y − p) / W, with a normal interval.",
    ),
    "slope": Meaning(
        "Slope",
        "How fast outcomes rise with predictions; below 1 where predictions are too extreme.",
        "1 + the slope of y − p on p by weighted least squares, with a normal interval.",
    ),
    "p_value": Meaning(
        "P-value of calibration",
        "Chance of an ECCE-R this large if predictions were perfectly calibrated.",
        "The chance that ECCE-R would be at least as large with outcomes drawn from the "
        "predictions.",
    ),
    "prevalence": Meaning("Prevalence", "Mean outcome.", "Σ w y / W."),
    "mean_prediction": Meaning("Mean prediction", "Mean score.", "Σ w p / W."),
}

# What differs where all predictions are confidences in a predicted class, or some are.
_OF_CONFIDENCES = {
    "bias": Meaning(
        "Mean deviation",
        "Accuracy less mean confidence; negative where predictions are over-confident.",
        "Σ w (y − p) / W, with a normal interval.",
    ),
    "prevalence": Meaning(
        "Accuracy", "How often the predicted class is right.", "Σ w y / W, with y = 1 if right."
    ),
    "mean_prediction": Meaning(
        "Mean confidence", "Mean probability of the predicted class.", "Σ w p / W."
    ),
}
_OF_BOTH = {
    "prevalence": Meaning("Accuracy or prevalence", "Mean outcome.", "Σ w y / W."),
    "mean_prediction": Meaning("Mean confidence or prediction", "Mean score.", "Σ w p / W."),
}

_HEADLINES = {
    "over-confident": "Over-confident",
    "under-confident": "Under-confident",
    "too high": "Predictions are too high",
    "too low": "Predictions are too low",
    "mixed": "Miscalibrated, leaning neither way",
    "none detected": "No miscalibration detected",
}


def measure_meaning(name: str) -> Meaning:
    """Return a measure in words."""
    info = measures()[name]
    return Meaning(info.title, info.meaning, info.definition)


def other_meanings(assessments: Iterable[Assessment]) -> dict[str, Meaning]:
    """Return the numbers of assessments that are no calibration errors, in words."""
    kinds = [one.is_confidence for one in assessments]
    special = _OF_CONFIDENCES if all(kinds) else _OF_BOTH if any(kinds) else {}
    return _OTHERS | special | {"brier_score": measure_meaning("brier_score")}


def headline(verdict: Verdict) -> str:
    """Return a verdict in a few words."""
    if verdict.detected and verdict.direction == "none detected":
        # A certain prediction was wrong, and nothing is known beyond that.
        return "Not calibrated"
    return _HEADLINES[verdict.direction]


# The sections of a page: diagrams with their captions, and tables of numbers.

# Points of each curve in its table; the numbers to download have all of them.
_POINTS_IN_TABLE = 20
# The decimals of errors in one table, to be compared along it and down.
_DIGITS = 4
# More groups than this are not distinguished in a diagram; their table has all.
_MOST_GROUPS = 60
_ADJUSTMENTS = {"holm": "Holm", "benjamini_hochberg": "Benjamini and Hochberg"}
_SCORES = {"brier": "Brier", "log": "log"}

_CAPTIONS = {
    "smooth": "The outcome to expect at each score, by kernel regression at the scale of the "
    "smooth calibration error. Calibrated predictions follow the dashed diagonal: above it they "
    "are too low, below it too high.",
    "binned": "{} against {}, bin by bin; the larger the mark, the denser "
    "the scores. Calibrated predictions lie on the dashed diagonal, but for noise.",
    "isotonic": "The non-decreasing curve nearest to the outcomes; nothing to choose. Level runs, "
    "drawn heavier, are scores that the outcomes do not distinguish.",
    "cumulative": "Outcomes less predictions, summed over rows in order of score. The slope is "
    "the mean deviation there: rising where predictions are too low, falling where they are too "
    "high, level under perfect calibration. For calibrated predictions the end lies within the "
    "triangle's height, two standard deviations either way, in about 95% of samples.",
}
_BANDS = {
    "confidence": "where the population's curve may lie",
    "consistency": "where the curve would lie if predictions were calibrated",
}


@dataclass(frozen=True)
class PointTable:
    """Some points of one model's curve."""

    model: Model
    columns: tuple[str, ...]
    rows: tuple[tuple[Number, ...], ...]


@dataclass(frozen=True)
class Diagram:
    """One diagram.

    Attributes
    ----------
    key, label
        Its key on the page, and its name.
    caption
        How it is read.
    figure
        What plotly draws.
    tables
        Points in words, model by model.
    """

    key: str
    label: str
    caption: str
    figure: Spec
    tables: tuple[PointTable, ...]


def diagrams(models: Sequence[Model]) -> Iterator[Diagram]:
    """Yield the diagrams that can be drawn of these models."""
    for method in ("smooth", "binned", "isotonic"):
        having = [model for model in models if method in model.views]
        if having:
            yield Diagram(
                method,
                method.capitalize(),
                _caption(having, method),
                reliability_figure(having, method),
                tuple(_curve_points(model, method) for model in having),
            )
    tables = tuple(_cumulative_points(model) for model in models)
    yield Diagram(
        "cumulative", "Cumulative", _CAPTIONS["cumulative"], cumulative_figure(models), tables
    )


def _caption(models: Sequence[Model], method: str) -> str:
    """Return how a diagram is read, its bands included where it has some."""
    words = _CAPTIONS[method]
    if method == "binned":
        words = words.format(*_means(models))
    if method == "binned" and len(models) == 1:
        words += " The more rows a bin holds, the stronger its bar."
    if method != "binned":
        words += _about_masses([model.assessment.masses for model in models])
    banded = [curve for model in models if (curve := model.views[method].curve).band]
    if not banded:
        return words
    curve = banded[0]
    mark = "Upright lines" if method == "binned" else "Shaded"
    extent = "the curve as a whole" if curve.simultaneous else "each score by itself"
    return (
        f"{words} {mark}: {_BANDS[str(curve.band)]}, at a level of "
        f"{percent(curve.level)} for {extent}."
    )


def _means(models: Sequence[Model]) -> tuple[str, str]:
    """Return what the means of a bin's outcomes and predictions are called."""
    if all(model.is_confidence for model in models):
        return "Accuracy", "mean confidence"
    return "Mean outcome", "mean prediction"


def _about_masses(found: Sequence[PointMasses]) -> str:
    """Say what marks at single scores are, where there are any."""
    words = ""
    if any(len(masses) and not masses.is_all for masses in found):
        words += " Discs are single scores that many rows have, the larger the more."
    if any(masses.is_all for masses in found):
        words += " Circles are mean outcomes at the few scores there are, the larger the more rows."
    return words


def _curve_points(model: Model, method: str) -> PointTable:
    curve = drawn(model, method)
    known = np.flatnonzero(np.isfinite(curve.y))
    kept = known[evenly(len(known), _POINTS_IN_TABLE)]
    n = model.assessment.bins.n[model.bins_of(curve)[kept]]
    rows = tuple(
        (*(significant(v) for v in values), count(rows))
        for *values, rows in zip(
            *(getattr(curve, name)[kept].tolist() for name in ("x", "y", "low", "high")),
            n.tolist(),
            strict=True,
        )
    )
    names = (model.score, model.outcome, "interval from", "to", "rows in its bin")
    return PointTable(model, names, rows)


def _cumulative_points(model: Model) -> PointTable:
    curve = model.assessment.cumulative
    kept = evenly(len(curve.score), _POINTS_IN_TABLE)
    arrays = (curve.fraction, curve.score, curve.deviation)
    rows = tuple(
        tuple(significant(v) for v in values)
        for values in zip(*(array[kept].tolist() for array in arrays), strict=True)
    )
    names = ("fraction of rows", f"{model.score} reached", "cumulative deviation")
    return PointTable(model, names, rows)


@dataclass(frozen=True)
class Ranged:
    """A number with its interval, and corrected for bias, where these are known."""

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
    """Return an estimate or an interval, unless told otherwise with the digits of its width."""
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
            weight=significant(float(bins.weight[k]), 6),
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
        return Ranged(UNKNOWN if test is None else p_value(test.p_value, is_bound=test.is_least))
    value = getattr(assessment, name)
    return ranged(value) if isinstance(value, Interval) else Ranged(fixed(value, _DIGITS))


def _by_bin(model: Model, side: str) -> list[float]:
    """Return one side of the binned curve's band for every bin, empty ones included."""
    bins, curve = model.assessment.bins, model.views["binned"].curve
    values = np.full(len(bins.n), np.nan)
    values[bins.n > 0] = getattr(curve, side)
    return values.tolist()


@dataclass(frozen=True)
class GroupLine:
    """One group in the table."""

    label: str
    found: bool
    n: Number
    prevalence: Number
    mean_prediction: Number
    smooth_ece: Ranged
    ece: Number
    deviation: Number
    p_value: Number
    p_adjusted: Number
    remark: str


@dataclass(frozen=True)
class GroupSection:
    """The section on groups."""

    summary: str
    caption: str
    level: str
    mean_names: tuple[str, str]
    lines: tuple[GroupLine, ...]
    figure: Spec


def group_section(
    table: GroupTable, mean_names: tuple[str, str] = ("prevalence", "mean prediction")
) -> GroupSection:
    """Return the section on groups, whose means are called as those of all rows are."""
    lines = tuple(_group_lines(table))
    shown = sorted(range(len(lines)), key=lambda k: -table.rows[k].smooth_ece.value)[:_MOST_GROUPS]
    caption = (
        f"Smooth calibration error of each group, with its {percent(table.level)} interval. "
        "Filled: miscalibration detected; open: not."
    )
    if len(lines) > _MOST_GROUPS:
        caption += f" The {_MOST_GROUPS} groups with the largest errors are shown."
    kept = sorted(shown)
    figure = group_figure(
        [lines[k].label for k in kept],
        [table.rows[k].smooth_ece for k in kept],
        [lines[k].found for k in kept],
        [_group_words(lines[k], mean_names[0]) for k in kept],
    )
    return GroupSection(_summary(table), caption, percent(table.level), mean_names, lines, figure)


def _summary(table: GroupTable) -> str:
    n, found = len(table), len(table.miscalibrated)
    return (
        f"Miscalibration detected in {found or 'none'} of {counted(n, 'group')}, "
        f"P-values adjusted for their number after {_ADJUSTMENTS.get(table.adjust, table.adjust)}."
    )


def _group_lines(table: GroupTable) -> Iterator[GroupLine]:
    for row in table:
        test = row.test
        remarks = ["few rows or events"] * row.small + [row.note] * bool(row.note)
        yield GroupLine(
            label="(none)" if row.group is None else str(row.group),
            found=row.p_adjusted <= 1 - table.level,
            n=count(row.n),
            prevalence=proportion(row.prevalence),
            mean_prediction=proportion(row.mean_prediction),
            smooth_ece=ranged(row.smooth_ece, _DIGITS),
            ece=fixed(row.ece, _DIGITS),
            deviation=fixed(row.deviation, _DIGITS),
            p_value=UNKNOWN if test is None else p_value(row.p_value, is_bound=test.is_least),
            p_adjusted=UNKNOWN if test is None else p_value(row.p_adjusted, is_bound=test.is_least),
            remark="; ".join(remarks),
        )


def _group_words(line: GroupLine, observed: str) -> list[str]:
    """Return what is said of a group's dot."""
    error = line.smooth_ece
    return [
        line.label,
        f"smECE {error.value}, interval {error.low} to {error.high}",
        f"{line.n} rows, {observed} {line.prevalence}",
        f"adjusted P {line.p_adjusted}",
    ]


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
    """What the choice of a method rests on, such as a :class:`calibrant.Recalibration`."""

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
    """The section on methods of recalibration."""

    score: str
    before: Number
    parts: int
    any_helps: bool
    lines: tuple[MethodLine, ...]


def method_section(trials: Trials) -> MethodSection:
    """Return the section on methods of recalibration."""
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
    """The section on differences between models."""

    measure: str
    level: str
    lines: tuple[DifferenceLine, ...]


def difference_section(comparison: Comparison) -> DifferenceSection:
    """Return the section on differences between models."""
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
