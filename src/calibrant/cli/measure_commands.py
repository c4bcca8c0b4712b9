"""``calibrant assess`` and ``compare``, and the conditions of ``--fail-if``.

A condition is ``NAME[.PART] OP NUMBER`` with OP one of > >= < <=. NAME is a calibration error,
`bias`, `slope` or `regret`, which have the parts low, high, bias_corrected (what tables print
first) and value (that of the sample), or a number such as `brier_score` or `p_value`. The part is
the value by default, which for errors is the raw one. With groups the condition applies to each
of them, and those for which it holds are named.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from calibrant.cli import messages, options
from calibrant.cli.messages import say, write_json
from calibrant.cli.options import Request, option, reads
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from calibrant.assessment.assess import Assessment
    from calibrant.assessment.groups import GroupRow
    from calibrant.cli.tables import Data
    from calibrant.inference.compare import Comparison

Measure = Annotated[
    str,
    option("--measure", "The calibration error or proper score to compare.", "NAME", default=True),
]

# Numbers of an assessment without intervals.
_PLAIN = ("brier_score", "prevalence", "mean_prediction", "n", "p_value")
_PARTS = ("value", "low", "high", "bias_corrected")
_SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_CONDITION = re.compile(r"(?P<name>\w+)(?:\.(?P<part>\w+))?\s*(?P<sign>[<>]=?)\s*(?P<limit>\S+)")
# The answers of a verdict to the tolerance, by the end of the interval that decides.
_ANSWERS = {"beyond tolerance": "low", "not within tolerance": "high"}
_EXAMPLE = (
    "write 'beyond tolerance', 'not within tolerance', or a comparison such as "
    "'smooth_ece.high > 0.05' (smooth_ece alone is its raw value)"
)

Numbers = Mapping[str, float]
# Names with intervals, and names without.
Names = tuple[tuple[str, ...], tuple[str, ...]]

GROUPS: Names = (
    ("smooth_ece",),
    ("ece", "ecce_r", "prevalence", "mean_prediction", "n", "p_value", "p_adjusted"),
)


def whole() -> Names:
    """Return the names for an assessment of all rows."""
    from calibrant.measures.registry import assessed

    return (*(info.name for info in assessed()), "bias", "slope", "regret"), _PLAIN


@dataclass(frozen=True)
class Threshold:
    """A condition under which a command is to fail."""

    quantity: str
    sign: str
    limit: float
    answer: str = ""  # the answer of a verdict that the condition stands for

    @classmethod
    def read(cls, text: str, names: Names) -> Threshold:
        """Parse a condition."""
        match = _CONDITION.fullmatch(text.strip())
        if match is None:
            raise CalibrantError(f"--fail-if cannot be parsed: {text!r:.60}; {_EXAMPLE}")
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
        """Return whether the condition holds, and report it if it does."""
        value, name = numbers.get(self.quantity, math.nan), self.quantity.removesuffix(".value")
        if math.isnan(value):
            raise CalibrantError(f"{who}{name} is not known here, so --fail-if cannot be decided")
        held = bool(_SIGNS[self.sign](value, self.limit))
        if held:
            answer = f"{self.answer}: " if self.answer else ""
            if numbers.get(f"{name}.bias_corrected", value) != value:
                name = f"the raw value of {name}"
            say(f"{who}{answer}{name} is {value:.6g}, which is {self.sign} {self.limit:g}")
        return held


def read_thresholds(
    texts: Sequence[str] | None, tolerance: float, *, in_groups: bool
) -> list[Threshold]:
    """Parse all conditions, before any work is done."""
    names = GROUPS if in_groups else whole()
    answers = {
        answer: Threshold(f"smooth_ece.{end}", ">", tolerance, answer)
        for answer, end in _ANSWERS.items()
    }
    given = texts or ()
    return [answers.get(" ".join(text.split())) or Threshold.read(text, names) for text in given]


def exit_code(thresholds: Sequence[Threshold], numbers: Mapping[str, Numbers]) -> int:
    """Return the exit code: 1 where any condition holds for any group."""
    held = [
        one.holds(known, f"{who}: " if who else "")
        for who, known in numbers.items()
        for one in thresholds
    ]
    return messages.EXCEEDED if any(held) else messages.DONE


def numbers_of(assessment: Assessment) -> Numbers:
    """Return the numbers of an assessment by the names that conditions use."""
    found: dict[str, float] = {}
    intervals: dict[str, Any] = {one.measure: one for one in assessment.estimates}
    intervals |= {"bias": assessment.bias, "slope": assessment.slope}
    if assessment.regret is not None:
        intervals["regret"] = assessment.regret
    for name, one in intervals.items():
        # Other numbers than errors have no bias to correct.
        found |= {f"{name}.{part}": getattr(one, part, one.value) for part in _PARTS}
    for name in _PLAIN[:-1]:
        found[f"{name}.value"] = getattr(assessment, name)
    if assessment.test is not None:
        found["p_value.value"] = assessment.test.p_combined
    return found


def group_numbers(row: GroupRow) -> Numbers:
    """Return the numbers of a group by the names that conditions use."""
    found = {f"smooth_ece.{part}": getattr(row.smooth_ece, part) for part in _PARTS}
    for name in GROUPS[1]:
        found[f"{name}.value"] = getattr(row, name)
    return found


@reads(options.Files)
def assess(
    request: Request,
    level: options.Level = 0.95,
    tolerance: options.Tolerance = 0.01,
    bins: options.Bins = 15,
    threshold: options.Threshold = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    fail_if: options.FailIf = None,
    json: options.Json = False,
) -> int:
    r"""Assess calibration: errors with intervals, tests, a verdict.

    Columns that are not named are inferred where there is just one candidate, and reported on
    standard error. Each --prob is a model, assessed in turn; --classes names the columns of one
    model for several classes. Up to 4 million rows are held in memory; more are read into a
    sketch, in one pass.

    --fail-if takes "beyond tolerance" or "not within tolerance", which compare the smooth
    calibration error with --tolerance, or NAME[.low|.high|.value|.bias_corrected] OP NUMBER,
    with OP one of > >= < <= and NAME one of {assessed}, bias, slope, regret (with --threshold),
    brier_score, prevalence, mean_prediction, n and p_value. NAME alone is the raw value, not the
    estimate in the printed table, which is NAME.bias_corrected. With --by one group that meets
    the condition is enough, and NAME is one of smooth_ece, ece, ecce_r, prevalence,
    mean_prediction, n, p_value and p_adjusted.

    \b
    calibrant assess forecasts.csv --label rain --prob p
    calibrant assess 'logs/*.parquet' --label clicked --prob p --by country
    zcat big.csv.gz | calibrant assess - --tolerance 0.02 --fail-if 'beyond tolerance'
    calibrant assess forecasts.csv --threshold 0.25 --fail-if 'regret.high > 0.002'
    calibrant assess images.csv --label class --classes 'p_*' --json
    """
    from calibrant.assessment.assess import assess as assessed
    from calibrant.assessment.groups import by_group
    from calibrant.cli.screen import assessment_parts, group_parts, model_heading, show
    from calibrant.cli.tables import read
    from calibrant.progress import shown, steps

    thresholds = read_thresholds(fail_if, tolerance, in_groups=bool(request.by))
    if request.by and threshold is not None:
        raise CalibrantError("--threshold is for all rows together: leave it out, or --by")
    if threshold is None and any(one.quantity.startswith("regret.") for one in thresholds):
        raise CalibrantError("regret in --fail-if needs a threshold: add --threshold T")
    asked = {"level": level, "n_bins": bins, "n_resamples": resamples, "rng": seed}
    models = read(request, needs_rows=request.clusters is not None)
    found: dict[str, Any] = {}
    numbers: dict[str, Numbers] = {}
    parts: list[RenderableType] = []
    with shown("measuring"):
        for name, data in steps(models.items()):
            who = name if len(models) > 1 else ""
            parts += [*[""] * bool(parts), *model_heading(who)]
            if request.by:
                groups = data.call(by_group, groups=data.groups, tolerance=tolerance, **asked)
                groups = replace(groups, by=tuple(request.by))
                found[name] = groups.to_dict()
                parts += [] if json else group_parts(groups)
                numbers |= {_in_group(who, row): group_numbers(row) for row in groups}
            else:
                all_rows = data.call(assessed, tolerance=tolerance, threshold=threshold, **asked)
                found[name] = all_rows.to_dict()
                parts += [] if json else assessment_parts(all_rows)
                numbers[who] = numbers_of(all_rows)
    if json:
        write_json(found if len(found) > 1 else next(iter(found.values())))
    else:
        show(*parts)
    return exit_code(thresholds, numbers)


def _in_group(model: str, row: GroupRow) -> str:
    """Return what messages call a group, of one of several models."""
    from calibrant.formatting import group_name

    name = repr(row.group) if isinstance(row.group, str) else group_name(row.group)
    return f"{model}, group {name}" if model else f"group {name}"


@reads(options.Tables, without=["by", "on_invalid"])
def compare(
    request: Request,
    measure: Measure = "smooth_ece",
    level: options.Level = 0.95,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    r"""Compare models on the same rows.

    Given one file, each --prob is a model. Given several, each file is a model, with the same
    outcomes in the same rows. Invalid rows are refused, because all models must be measured on the
    same rows.

    NAME of --measure is one of {comparable}.

    \b
    calibrant compare flares.csv --label flare --prob DAFFS --prob NOAA
    calibrant compare before.csv after.csv --label y --prob p --measure brier_score
    """
    from calibrant.cli.screen import show
    from calibrant.inference.compare import compare as compared
    from calibrant.progress import shown

    data = side_by_side(_models(replace(request, on_invalid=None, all=True)))
    asked = {"measure": measure, "level": level, "n_resamples": resamples, "rng": seed}
    with shown("comparing"):
        found = data.call(compared, **asked)
    if json:
        write_json(found.to_dict())
    else:
        show(*_parts(found))


def _models(request: Request) -> dict[str, Data]:
    """Return the models by name: the columns of one file, or several files."""
    from calibrant.cli.inputs import named_files
    from calibrant.cli.tables import read

    files = named_files(request.files)
    if len(files) == 1:
        return read(request, needs_rows=True)
    if len(request.probs) > 1:
        raise CalibrantError("each of several files is a model: give one --prob, or --classes")
    names = [Path(file).stem for file in files]
    if len(set(names)) < len(names):
        names = files
    models = {}
    for name, file in zip(names, files, strict=True):
        one = replace(request, files=(file,), all=False)
        (models[name],) = read(one, needs_rows=True).values()
    return models


def together(models: dict[str, Data]) -> Data:
    """Return one model, or several by name: sketches, or predictions of the same outcomes."""
    (first, *others) = models.values()
    if not others:
        return first
    if all(len(data.pair) == 1 for data in models.values()):
        return replace(first, pair=({name: data.pair[0] for name, data in models.items()},))
    return side_by_side(models)


def side_by_side(models: dict[str, Data]) -> Data:
    """Return the common outcomes of models, and the predictions of each."""
    for name, data in models.items():
        if len(data.pair) == 1:
            raise CalibrantError(
                f"models are compared row by row, and {name!r:.80} is a sketch: give the rows"
            )
    (name, first), *others = models.items()
    if not others:
        raise CalibrantError(f"there must be two models to compare; got {name!r:.80} alone")
    predictions = {name: first.pair[1]}
    for other, data in others:
        predictions[other] = _in_the_order_of((name, first), (other, data))
        n, m = len(first.pair[0]), len(data.pair[0])
        if n != m:
            raise CalibrantError(
                f"models must be compared on the same rows; {name} has {n} and {other} has {m}"
            )
        _check_same("outcomes", {name: first.pair[0], other: data.pair[0]})
        for key, what in (("sample_weight", "weights"), ("clusters", "clusters")):
            _check_same(what, {name: first.options.get(key), other: data.options.get(key)})
    return replace(first, pair=(first.pair[0], predictions))


def _check_same(what: str, columns: dict[str, Any]) -> None:
    """Refuse two models of which a column of their rows differs."""
    import numpy as np

    (name, a), (other, b) = ((name, np.asarray(column)) for name, column in columns.items())
    different = a != b
    if different.any():
        row = int(different.argmax())
        one, two = (column[row : row + 1].tolist()[0] for column in (a, b))
        raise CalibrantError(
            f"models must be compared on the same {what}; in row {row + 1} {name} has {one!r} and "
            f"{other} has {two!r}"
        )


def _in_the_order_of(first: tuple[str, Data], second: tuple[str, Data]) -> Any:
    """Return the predictions of the second model, with its classes in the order of the first."""
    (one, a), (other, b) = first, second
    from calibrant.data.labels import listed

    classes, others = (data.options.get("labels", ()) for data in (a, b))
    if classes == others:
        return b.pair[1]
    if set(classes) != set(others):
        raise CalibrantError(
            f"models must have the same classes; in {one!r:.80} they are {listed(classes)} and in "
            f"{other!r:.80} {listed(others)}"
        )
    return b.pair[1][:, [others.index(name) for name in classes]]


def _parts(found: Comparison) -> list[RenderableType]:
    """Return a comparison as parts to show: a ranking, and the differences of all pairs."""
    from calibrant.cli.screen import fitted, tables_of
    from calibrant.formatting import TextTable, percent

    ranking, pairs = tables_of(found)
    columns = dict(ranking.columns)
    ranking = TextTable({"model": columns.pop("model"), **columns})  # names come first
    spare = ["raw value", "p", f"{percent(found.level)} interval"]
    head, *_, note = map(str, found._printed())
    ranks, differences = fitted(ranking, spare=["raw value", "rank"]), fitted(pairs, spare=spare)
    return [*ranks, "", *differences, "", f"{head}; {note}"]
