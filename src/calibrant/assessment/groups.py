"""What a table of groups says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant._base import Result, frame
from calibrant.assessment.assess import Certain, effective_rows
from calibrant.data import validation
from calibrant.data.classes import one_problem
from calibrant.data.labels import read_labels
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_problem import problem_of
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError, SketchError, shown
from calibrant.inference.cumulative_tests import ExcursionTest, TestResult
from calibrant.inference.estimate import Estimate, estimated
from calibrant.inference.intervals import Question
from calibrant.inference.null_simulation import calibrated_outcomes
from calibrant.measures.binned import BinnedError, read_binned_error
from calibrant.measures.cumulative import CumulativeDifferences, Statistic, cumulative_differences
from calibrant.measures.smooth import SmoothError
from calibrant.numerics.probability import benjamini_hochberg, holm

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GroupRow", "GroupTable", "by_group"]


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


# by_group: is each group calibrated, with multiplicity under control.

_ADJUSTMENTS = {"holm": holm, "benjamini_hochberg": benjamini_hochberg}
# More would take longer than anybody waits, and be read by nobody.
_MOST_GROUPS = 1000
# With fewer, intervals are wide and the law of Brownian motion is far off.
_FEW_ROWS = 100
_FEW_EVENTS = 15
# Resamples for the tests of small groups: fewer where there are very many increments in all.
_MOST_RESAMPLES, _FEWEST_RESAMPLES, _INCREMENTS_IN_ALL = 9999, 999, 30_000_000


def by_group(
    y_true: Any,
    y_prob: Any = None,
    groups: Any = None,
    *,
    method: Literal["holm", "benjamini_hochberg"] = "holm",
    level: float = 0.95,
    n_bins: int = 15,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> GroupTable:
    """Measure and test the calibration of each group, with P-values adjusted for their number.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`; or, instead of both, a dictionary of sketches, one a group, as
        :func:`calibrant.sketch` makes with ``by``.
    groups
        A label a row: numbers, text, dates. Rows without a label (None, nan, null) make a group of
        their own, None. At most 1000 different ones.
    method
        "holm": the chance that any calibrated group is called miscalibrated is at most 1 - level.
        "benjamini_hochberg": at most that share of the groups so called are calibrated, on average.
    level
        Of the intervals; a group counts as miscalibrated where its adjusted P-value is at most
        1 - level.
    n_bins
        For the binned error.
    n_resamples
        The number of resamples for each interval, at least 39.
    rng
        A seed or a generator; the same seed gives the same table.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`. Weights must not depend on the outcome given the score.
    multiclass
        "confidence" or a class label; the table is about one binary problem.

    Returns
    -------
    GroupTable
        One row a group, none left out: in the order of labels, or of the dictionary.

    Notes
    -----
    A group is `small` if it has fewer than 100 rows, or predicts fewer than 15 of either outcome
    (with weights, of as many rows as they are worth: W^2 / sum w^2). Its interval is wide, and says
    so; its P-value is simulated up to 9999 times (see :func:`calibrant.cumulative_test`, "range"),
    unless all that is left of it is a weighted sketch, and anew, more often, where no simulated
    excursion is as large and among so many groups a smaller P-value is needed. P-values of other
    groups are asymptotic: conservative for few distinct scores.

    There is no test of soft labels, whose noise is unknown, nor of predictions that are all 0 or 1;
    `p_adjusted` is nan then, and the other groups are adjusted for their own number. Intervals are
    those of :func:`calibrant.estimate`, not adjusted.

    A group by itself is compared with its own predictions; for a group against the others see
    :func:`calibrant.subpopulation_test`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob, site = rng.random(3000), rng.integers(0, 3, 3000)
    >>> y_true = rng.random(3000) < np.where(site == 2, y_prob**2, y_prob)
    >>> table = by_group(y_true, y_prob, site)
    >>> table.miscalibrated
    (2,)
    >>> [row.n for row in table]
    [1026, 970, 1004]
    """
    validation.check_choice(method, "method", _ADJUSTMENTS)
    level = validation.as_level(level)
    n_resamples = validation.as_resamples(n_resamples)
    binned = read_binned_error(n_bins=n_bins)
    if isinstance(y_true, Mapping | Sketch):
        parts = _read_sketches(y_true, y_prob, groups, sample_weight, multiclass, labels, pos_label)
    else:
        whole = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
        parts = _split(whole, groups, sample_weight)
    problems = list(parts)
    needed = math.ceil(len(problems) / (1 - level))
    table = Tabulator(level, binned, n_resamples, rng, needed)
    rows = [table.row(group, problem) for group, problem in problems]
    adjusted = _ADJUSTMENTS[method]([row.p_value for row in rows]).tolist()
    rows = [replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True)]
    return GroupTable(tuple(rows), level, method)


@dataclass(frozen=True, eq=False)
class Tabulator:
    """How the row of a group is made.

    `n_needed` resamples make a P-value that is small enough whatever the other groups'.
    """

    level: float
    binned: BinnedError
    n_resamples: int
    rng: int | Generator
    n_needed: int

    def row(self, group: Any, problem: Problem) -> GroupRow:
        """Return the row of one group, its P-value not yet adjusted."""
        pooled, differences = problem.pooled, cumulative_differences(problem)
        total = float(pooled.weight.sum())
        mean = float(pooled.weight @ pooled.score) / total
        small = _is_small(problem, mean)
        # A seed starts anew for each group: each row is what `estimate` gives.
        rng = read_generator(self.rng)
        question = Question(self.level, self.n_resamples, rng)
        deviation = differences.deviation
        return GroupRow(
            group=group,
            n=problem.n,
            prevalence=float(pooled.true.sum()) / total,
            mean_prediction=mean,
            smooth_ece=estimated("smooth_ece", SmoothError(), problem, question),
            ece=self.binned(problem),
            deviation=float(deviation[np.argmax(np.abs(deviation))]),
            test=self._test(problem, differences, rng, small=small),
            p_adjusted=float("nan"),
            small=small,
            note=_note(problem, differences),
        )

    def _test(
        self, problem: Problem, differences: CumulativeDifferences, rng: Generator, *, small: bool
    ) -> TestResult | None:
        """Return the cumulative test, or None where there is no noise to compare with."""
        if not differences.sigma > 0:
            return None
        null = partial(calibrated_outcomes, problem)

        def tested(n_resamples: int) -> TestResult:
            test = ExcursionTest(Statistic.RANGE, n_resamples, rng)
            return test(differences, null, problem.n, "calibration")

        # A sketch does not know which weights belong to which score.
        if not small or (problem.is_weighted and not problem.is_exact):
            return tested(0)
        affordable = max(_INCREMENTS_IN_ALL // len(differences.score), _FEWEST_RESAMPLES)
        few, more = (min(affordable, most) for most in (_MOST_RESAMPLES, self.n_needed))
        found = tested(few)
        # All anew: both P-values are valid, and P is small only where both are.
        is_least = found.p_value <= 1 / (1 + few)
        return tested(more) if is_least and more > few else found


def _is_small(problem: Problem, mean_prediction: float) -> bool:
    rows = effective_rows(problem)
    events = rows * min(mean_prediction, 1 - mean_prediction)
    return rows < _FEW_ROWS or events < _FEW_EVENTS


def _note(problem: Problem, differences: CumulativeDifferences) -> str:
    notes = []
    if Certain.of(problem).contradicted:
        notes.append("a prediction of 0 or 1 was wrong")
    if problem.is_soft:
        notes.append("soft labels: no test")
    elif differences.sigma == 0:
        notes.append("predictions of 0 and 1 alone: no test")
    return "; ".join(notes)


def _split(whole: Problem, groups: Any, sample_weight: Any) -> Iterator[tuple[Any, Problem]]:
    """Yield the rows of each group as a problem of its own."""
    if not whole.is_exact:
        raise SketchError("by_group takes a dictionary of sketches, one per group")
    if groups is None:
        raise CalibrantError("is missing", argument="groups", hint="give one label per row")
    names, code = read_labels(groups, "groups", sample_weight, whole.n)
    if len(names) > _MOST_GROUPS:
        raise CalibrantError(
            "must hold at most {maximum} labels",
            argument="groups",
            value=len(names),
            hint="join rare ones, or give a part of them at a time",
            maximum=_MOST_GROUPS,
        )
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(1, len(names)))
    for group, rows in zip(names, np.split(order, ends), strict=True):
        yield group, whole.rows.take(rows)


def _read_sketches(sketches: Any, *given: Any) -> Iterator[tuple[Any, Problem]]:
    """Yield the problem of each sketch."""
    if isinstance(sketches, Sketch):
        raise SketchError(
            "a sketch does not know which rows belong to which group",
            hint="give a dictionary of sketches, one per group, as made by sketch(..., by=...)",
        )
    names = ("y_prob", "groups", "sample_weight", "multiclass", "labels", "pos_label")
    for name, value in zip(names, given, strict=True):
        if value is not None:
            raise CalibrantError(
                "must be left out: sketches represent all rows and weights", argument=name
            )
    if not sketches:
        raise CalibrantError("by_group needs at least one group; the dictionary is empty")
    for group, sketch in sketches.items():
        if not isinstance(sketch, Sketch):
            raise CalibrantError(
                "each group must have a sketch",
                value=type(sketch),
                found="{value} for {name}",
                hint="for rows give ({y_true}, {y_prob}, {groups})",
                name=shown(group),
            )
        if sketch.n == 0:
            raise SketchError(
                "the sketch of group {name} is empty", hint="leave it out", name=shown(group)
            )
        yield group, problem_of(sketch)
