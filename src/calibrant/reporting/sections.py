"""The sections of a page: diagrams with their captions, tables of numbers, and what these mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._base import IntArray
from calibrant.assessment.assess import Assessment
from calibrant.assessment.groups import GroupRow, GroupTable
from calibrant.assessment.verdict import Interval
from calibrant.formatting import (
    UNKNOWN,
    Number,
    count,
    counted,
    decimals,
    fixed,
    group_name,
    p_value,
    percent,
    proportion,
    significant,
    with_interval,
)
from calibrant.inference.estimate import Estimate
from calibrant.inference.regret import ThresholdRegret
from calibrant.measures.registry import measures
from calibrant.reporting.figures import (
    Model,
    Spec,
    cumulative_figure,
    group_figure,
    reliability_figure,
)

# Points of each curve in its table; the numbers to download have all of them.
_POINTS_IN_TABLE = 20
# The decimals of errors in one table, to be compared along it and down.
_DIGITS = 4
# More groups than this are not distinguished in a diagram; their table has all.
_MOST_GROUPS = 60
_ADJUSTMENTS = {"holm": "Holm's method", "benjamini_hochberg": "the Benjamini-Hochberg procedure"}

_CAPTIONS = {
    "smooth": "Outcomes minus predictions, smoothed at a cross-validated bandwidth and added to "
    "the diagonal. The dashed diagonal is perfect calibration: predictions are too low where the "
    "curve is above it, too high where it is below.",
    "binned": "{} against {} in each bin; marks are larger where scores are denser. Under perfect "
    "calibration they lie on the dashed diagonal, up to sampling noise.",
    "isotonic": "Isotonic regression of outcomes on scores: the non-decreasing curve that fits "
    "best, without a tuning parameter. The outcomes do not distinguish the scores of level runs, "
    "which are drawn heavier.",
    "cumulative": "Cumulative sum of outcomes minus predictions, in order of score. Its slope is "
    "the mean deviation: it rises where predictions are too low, falls where they are too high, "
    "and is level under perfect calibration. The triangle is two standard deviations high either "
    "way: under perfect calibration the curve ends within its height in about 95% of samples.",
}


@dataclass(frozen=True)
class Meaning:
    """A number in words: its name, what it says in one line, and its formula."""

    label: str
    meaning: str
    definition: str


_OTHERS = {
    "bias": Meaning(
        "Mean bias",
        "Mean outcome minus mean prediction; negative where predictions are too high.",
        "Σ w (y − p) / W, with a normal interval.",
    ),
    "slope": Meaning(
        "Calibration slope",
        "Factor of the logits that fits outcomes best; below 1 where predictions are too extreme.",
        "b of logit q = a + b logit p by maximum likelihood, with a normal interval.",
    ),
    "p_value": Meaning(
        "P-value of calibration",
        "Probability of a joint test at least as extreme under perfect calibration.",
        "Rank of the smallest P-value of six statistics among samples simulated from the "
        "predictions; a bound by asymptotic tails where none of these is as extreme.",
    ),
    "prevalence": Meaning("Prevalence", "Mean outcome.", "Σ w y / W."),
    "mean_prediction": Meaning("Mean prediction", "Mean score.", "Σ w p / W."),
}

# What differs where all predictions are confidences in a predicted class, or some are.
_OF_CONFIDENCES = {
    "bias": Meaning(
        "Mean bias",
        "Accuracy minus mean confidence; negative where predictions are over-confident.",
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


def measure_meaning(name: str) -> Meaning:
    """Return a measure in words."""
    info = measures()[name]
    return Meaning(info.title, info.meaning, info.definition)


@dataclass(frozen=True)
class PointTable:
    """Some points of one model's curve."""

    model: Model
    columns: tuple[str, ...]
    rows: tuple[tuple[Number, ...], ...]


@dataclass(frozen=True)
class Diagram:
    """A diagram for plotly, its caption, and some of its points model by model."""

    key: str
    caption: str
    figure: Spec
    tables: tuple[PointTable, ...]

    @property
    def label(self) -> str:
        """Its name on the page."""
        return self.key.capitalize()


def diagrams(models: Sequence[Model]) -> Iterator[Diagram]:
    """Yield the diagrams that can be drawn of these models."""
    for method in ("smooth", "binned", "isotonic"):
        having = [model for model in models if method in model.views]
        if having:
            tables = tuple(_curve_points(model, method) for model in having)
            figure = reliability_figure(having, method)
            yield Diagram(method, _caption(having, method), figure, tables)
    tables = tuple(_cumulative_points(model) for model in models)
    yield Diagram("cumulative", _CAPTIONS["cumulative"], cumulative_figure(models), tables)


def _caption(models: Sequence[Model], method: str) -> str:
    """Return how a diagram is read, its bands included where it has some."""
    caption, is_binned = _CAPTIONS[method], method == "binned"
    if is_binned:
        names = ("Mean outcome", "mean prediction"), ("Accuracy", "mean confidence")
        caption = caption.format(*names[all(model.is_confidence for model in models)])
        caption += " Bars are darker where there are more rows." if len(models) == 1 else ""
    else:
        marked = [model.assessment.masses for model in models]
        if any(len(masses) and not masses.is_all for masses in marked):
            caption += " Filled marks are single scores of many rows; larger ones have "
            caption += "more rows."
        if any(masses.is_all for masses in marked):
            caption += " Marks are the mean outcome at each of the few distinct scores; larger "
            caption += "ones have more rows."
    banded = [curve for model in models if (curve := model.views[method].curve).band]
    if not banded:
        return caption
    curve = banded[0]
    mark, kind = ("Vertical lines", "intervals") if is_binned else ("Shaded", "band")
    extent = "simultaneous" if curve.simultaneous else "pointwise"
    label = f"{percent(curve.level)} {extent} {curve.band} {kind}"
    if curve.band == "consistency":
        label += ", where the curve would lie under perfect calibration"
    return f"{caption} {mark}: {label}."


def _evenly(n: int) -> IntArray:
    """Return a few of n indices, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, _POINTS_IN_TABLE)).round().astype(np.int64))


def _curve_points(model: Model, method: str) -> PointTable:
    curve = model.drawn(method)
    known = np.flatnonzero(np.isfinite(curve.y))
    kept = known[_evenly(len(known))]
    n = model.assessment.bins.n[model.bins_of(curve)[kept]]
    columns = (getattr(curve, name)[kept].tolist() for name in ("x", "y", "low", "high"))
    rows = tuple(
        (*map(significant, values), count(rows))
        for *values, rows in zip(*columns, n.tolist(), strict=True)
    )
    names = (model.score_name, model.outcome_name, "lower limit", "upper limit", "rows in bin")
    return PointTable(model, names, rows)


def _cumulative_points(model: Model) -> PointTable:
    curve = model.assessment.cumulative
    kept = _evenly(len(curve.score))
    columns = (array[kept].tolist() for array in (curve.fraction, curve.score, curve.deviation))
    rows = tuple(tuple(map(significant, values)) for values in zip(*columns, strict=True))
    return PointTable(model, ("fraction of rows", model.score_name, "cumulative deviation"), rows)


@dataclass(frozen=True)
class Ranged:
    """A number with its interval, and the raw value of an error, which noise makes larger."""

    value: Number
    low: Number = UNKNOWN
    high: Number = UNKNOWN
    raw: Number = UNKNOWN


def ranged(found: Estimate | Interval, digits: int | None = None) -> Ranged:
    """Return an estimate or an interval, by default with the digits of its width."""
    if digits is None:
        digits = decimals(found.low, found.high)
    value, low, high = (fixed(one, digits) for one in (found.value, found.low, found.high))
    if isinstance(found, Interval):
        return Ranged(value, low, high)
    return Ranged(fixed(found.bias_corrected, digits), low, high, raw=value)


@dataclass(frozen=True)
class MeasureRow:
    """One measure of all models."""

    name: str
    about: Meaning
    cells: tuple[Ranged, ...]


def measure_rows(models: Sequence[Model]) -> Iterator[MeasureRow]:
    """Yield a row for each measure that any model has, and for what is no calibration error."""
    assessments = [model.assessment for model in models]
    found = [{cell.measure: ranged(cell) for cell in one.estimates} for one in assessments]
    # In the order of the first model that has them.
    for name in dict.fromkeys(name for cells in found for name in cells):
        cells = tuple(one.get(name, Ranged(UNKNOWN)) for one in found)
        yield MeasureRow(name, measure_meaning(name), cells)
    kinds = [one.is_confidence for one in assessments]
    special = _OF_CONFIDENCES if all(kinds) else _OF_BOTH if any(kinds) else {}
    others = _OTHERS | special | {"brier_score": measure_meaning("brier_score")}
    for name, about in others.items():
        yield MeasureRow(name, about, tuple(_other(one, name) for one in assessments))


def _other(assessment: Assessment, name: str) -> Ranged:
    if name == "p_value":
        test = assessment.test
        return Ranged(UNKNOWN if test is None else p_value(test.p_combined, is_bound=test.is_least))
    value = getattr(assessment, name)
    return ranged(value) if isinstance(value, Interval) else Ranged(fixed(value, _DIGITS))


@dataclass(frozen=True)
class BinRow:
    """One bin; `relative_gap` is its gap relative to the largest."""

    span: str
    n: Number
    weight: Number
    mean_pred: Number
    mean_true: Number
    low: Number
    high: Number
    gap: Number
    relative_gap: float


def bin_rows(model: Model) -> Iterator[BinRow]:
    """Yield a row for each bin, with the interval of its mean outcome where that is known."""
    bins, curve = model.assessment.bins, model.views["binned"].curve
    low, high = np.full((2, len(bins.n)), np.nan)
    low[bins.n > 0], high[bins.n > 0] = curve.low, curve.high
    largest = float(np.nanmax(np.abs(bins.gap))) or 1.0
    columns = {"low": low, "high": high}
    columns |= {name: getattr(bins, name) for name in ("mean_pred", "mean_true", "gap")}
    for k in range(len(bins.n)):
        yield BinRow(
            span=f"{bins.edges[k]:.3g} to {bins.edges[k + 1]:.3g}",
            n=count(int(bins.n[k])),
            weight=significant(float(bins.weight[k]), 6),
            relative_gap=float(bins.gap[k]) / largest if bins.n[k] else 0.0,
            **{name: fixed(float(values[k]), _DIGITS) for name, values in columns.items()},
        )


def setting_rows(models: Sequence[Model]) -> Iterator[tuple[str, list[str]]]:
    """Yield how all models were assessed, one setting after the other."""
    settings = [model.assessment.settings for model in models]
    tests = [model.assessment.test for model in models]
    yield "Problem", [one.problem for one in settings]
    yield "Confidence level", [percent(one.level) for one in settings]
    yield "Resamples", [str(one.n_resamples) for one in settings]
    yield "Seed", ["a Generator" if one.seed is None else str(one.seed) for one in settings]
    yield "Bins", [f"{one.n_bins} of equal width" for one in settings]
    yield "Tolerance", [f"{one.tolerance:g}" for one in settings]
    yield "Test", ["none" if one is None else "joint, simulated" for one in tests]
    yield "calibrant", [one.version for one in settings]


DECISION_CAPTIONS = {
    "murphy": "Loss. Mean loss of acting where the prediction is at least the threshold: a false "
    "alarm costs the threshold, a miss 1 minus the threshold. Thin line: after isotonic "
    "recalibration; shaded: what that would save on these rows, part of which is noise. Twice the "
    "area below the curve is the Brier score.",
    "decision": "Net benefit: hits minus false alarms, which are weighted by the odds of "
    "the threshold, per row. Dotted: treat all; dashed: treat none; shaded: net "
    "benefit lost to miscalibration.",
}


def regret_text(regret: ThresholdRegret) -> str:
    """Return what recalibration would save at a threshold, in words."""
    value, low, high = with_interval(regret.value, regret.low, regret.high)
    return (
        f"Acting from a probability of {regret.threshold:g} on, recalibration would save {value} "
        f"per decision ({percent(regret.level)} interval {low} to {high}), where a false alarm "
        f"costs {regret.threshold:g} and a miss {1 - regret.threshold:g}."
    )


@dataclass(frozen=True)
class GroupLine:
    """One group in the table."""

    label: str
    detected: bool
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
    # In how many of them miscalibration may exceed the tolerance, by their tests or intervals.
    worrying: str
    caption: str
    level: str
    mean_names: tuple[str, str]
    lines: tuple[GroupLine, ...]
    figure: Spec


def group_section(
    table: GroupTable, mean_names: tuple[str, str] = ("prevalence", "mean prediction")
) -> GroupSection:
    """Return the section on groups, whose means have the same names as those of all rows."""
    lines, level = tuple(_group_line(row, table.level) for row in table), percent(table.level)
    caption = (
        f"Smooth calibration error of each group, with its {level} interval. Filled: "
        "miscalibration detected; open: not detected."
    )
    if len(lines) > _MOST_GROUPS:
        caption += f" The {_MOST_GROUPS} groups with the largest errors are shown."
    worst = sorted(range(len(lines)), key=lambda k: -table.rows[k].smooth_ece.bias_corrected)
    kept = sorted(worst[:_MOST_GROUPS])
    texts = []
    for line in (lines[k] for k in kept):
        error = line.smooth_ece
        interval = f"smECE {error.value}, interval {error.low} to {error.high}"
        rows = f"{line.n} rows, {mean_names[0]} {line.prevalence}"
        texts.append([line.label, interval, rows, f"adjusted P {line.p_adjusted}"])
    figure = group_figure(
        [lines[k].label for k in kept],
        [table.rows[k].smooth_ece for k in kept],
        [lines[k].detected for k in kept],
        texts,
    )
    detected = [line.detected for line in lines]
    answers = list(zip(detected, (row.answer for row in table), strict=True))
    beyond = answers.count((False, "beyond tolerance"))
    worrying = sum(detected) - answers.count((True, "within tolerance")) + beyond
    n_groups = counted(len(table), "group")
    summary = (
        f"Miscalibration detected in {sum(detected) or 'none'} of {n_groups}, with P-values "
        f"adjusted by {_ADJUSTMENTS.get(table.adjust, table.adjust)}."
    )
    if beyond:
        others = "another" if beyond == 1 else f"{beyond} others"
        summary += f" The intervals of {others}, not adjusted, are beyond the tolerance."
    overall = f"miscalibrated in {worrying} of {n_groups}" if worrying else ""
    return GroupSection(summary, overall, caption, level, mean_names, lines, figure)


def _group_line(row: GroupRow, level: float) -> GroupLine:
    remarks: list[str] = [row.answer] * (row.answer != "cannot tell")
    remarks += ["few rows or events"] * row.small + [row.note] * bool(row.note)
    p_values = (UNKNOWN, UNKNOWN)
    if row.test is not None:
        least = row.is_least
        p_values = p_value(row.p_value, is_bound=least), p_value(row.p_adjusted, is_bound=least)
    return GroupLine(
        label=group_name(row.group),
        detected=row.p_adjusted <= 1 - level,
        n=count(row.n),
        prevalence=proportion(row.prevalence),
        mean_prediction=proportion(row.mean_prediction),
        smooth_ece=ranged(row.smooth_ece, _DIGITS),
        ece=fixed(row.ece, _DIGITS),
        deviation=fixed(row.deviation, _DIGITS),
        p_value=p_values[0],
        p_adjusted=p_values[1],
        remark="; ".join(remarks),
    )
