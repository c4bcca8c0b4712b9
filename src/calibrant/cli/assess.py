"""``calibrant assess``: the whole picture of a file, in a terminal or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant.cli import options
from calibrant.cli.request import Request, Wanted

if TYPE_CHECKING:
    from calibrant.cli.tables import Data
    from calibrant.cli.thresholds import Numbers


def assess(
    files: options.Files,
    label: options.Label = None,
    prob: options.Prob = None,
    weight: options.Weight = None,
    by: options.By = None,
    multiclass: options.Multiclass = None,
    pos_label: options.PosLabel = None,
    on_invalid: options.OnInvalid = "raise",
    form: options.Form = None,
    level: options.Level = 0.95,
    bins: options.Bins = 15,
    resamples: options.Resamples = None,
    seed: options.Seed = 0,
    fail_if: options.FailIf = None,
    json: options.Json = False,
) -> int:
    r"""Measure how calibrated a file is, and say what it means.

    Prints a verdict, calibration errors with intervals, and a reliability diagram.

    Columns that are not named are guessed where just one can be meant, and named on standard
    error. Up to 4 million rows are held in memory; more are kept as a sketch, in one pass.

    A condition of --fail-if is NAME[.low|.high|.value] OP NUMBER, with OP one of > >= < <= and NAME
    one of {assessed}, bias, slope, brier_score, prevalence, mean_prediction, n and p_value. With
    --by it is about every group, and NAME is one of smooth_ece, ece, ecce_r, prevalence,
    mean_prediction, n, p_value and p_adjusted.

    \b
    calibrant assess forecasts.csv --label rain --prob p
    calibrant assess 'logs/*.parquet' --label clicked --prob p --by country
    zcat big.csv.gz | calibrant assess - --fail-if 'smooth_ece.high > 0.05'
    calibrant assess images.csv --label class --prob 'p_*' --json
    """
    from calibrant.cli.tables import read
    from calibrant.cli.thresholds import exit_code, read_thresholds

    thresholds = read_thresholds(fail_if, in_groups=by is not None)
    wanted = Wanted(label, tuple(prob or ()), weight, by)
    data = read(Request(tuple(files), wanted, pos_label, multiclass, on_invalid, form))
    asked = options.given(level=level, n_bins=bins, n_resamples=resamples, rng=seed)
    show = show_whole if by is None else show_groups
    return exit_code(thresholds, show(data, asked, json=json))


def show_whole(data: Data, asked: Mapping[str, Any], *, json: bool) -> dict[str, Numbers]:
    """Assess everything, show it, and return the numbers that thresholds speak of."""
    from calibrant.assessment.assess import assess
    from calibrant.cli.messages import write_json
    from calibrant.cli.terminal import assessment_parts, show, waiting
    from calibrant.cli.thresholds import numbers_of

    with waiting("measuring"):
        found = data.ask(assess, **asked)
    if json:
        write_json(found.to_dict())
    else:
        show(*assessment_parts(found))
    return {"": numbers_of(found)}


def show_groups(data: Data, asked: Mapping[str, Any], *, json: bool) -> dict[str, Numbers]:
    """Assess each group, show them, and return the numbers that thresholds speak of."""
    from calibrant.assessment.groups import by_group
    from calibrant.cli.messages import write_json
    from calibrant.cli.terminal import group_parts, show, waiting
    from calibrant.cli.thresholds import group_numbers

    with waiting("measuring"):
        found = data.ask(by_group, groups=data.groups, **asked)
    if json:
        write_json(found.to_dict())
    else:
        show(*group_parts(found))
    return {_who(row.group): group_numbers(row) for row in found}


def _who(group: object) -> str:
    from calibrant.cli.outcomes import group_name

    return f"group {group_name(group) if group is None else repr(group)}"
