"""by_group: the calibration of each group, with P-values adjusted for their number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import Result, TabularResult, plain
from calibrant.assessment.assess import Certain
from calibrant.assessment.verdict import Answer, answer_of, read_tolerance
from calibrant.data import validation
from calibrant.data.classes import ROW_OPTIONS, FrameOptions, one_problem
from calibrant.data.labels import read_labels, rows_by_code
from calibrant.data.problem import Index, Problem
from calibrant.data.rows import read_columns
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_problem import problem_of
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError, SketchError, shown
from calibrant.formatting import (
    TextTable,
    group_name,
    interval_cells,
    interval_digits,
    p_cells,
    percent,
)
from calibrant.inference.cell_noise import MIN_CLUSTERS, Clusters, read_codes
from calibrant.inference.cumulative_tests import ExcursionTest, TestResult
from calibrant.inference.estimate import Estimate, estimated
from calibrant.inference.intervals import Question
from calibrant.inference.null_simulation import calibrated_outcomes
from calibrant.measures.binned import BinnedError, read_binned_error
from calibrant.measures.cumulative import CumulativeDifferences, Statistic, cumulative_differences
from calibrant.measures.smooth import SmoothError
from calibrant.numerics.probability import benjamini_hochberg, holm
from calibrant.progress import steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Adjustment = Literal["holm", "benjamini_hochberg"]

_ADJUSTMENTS = {"holm": holm, "benjamini_hochberg": benjamini_hochberg}
# 400 groups of up to 250 rows take up to five seconds, and so do 40 of up to 2500 rows in clusters,
# whose tests are all simulated. There may be more groups where there are more rows.
_MAX_GROUPS, _MAX_CLUSTERED_GROUPS, _ROWS_IN_ALL = 400, 40, 100_000
# With fewer, intervals are wide and the distribution is far from that of Brownian motion.
_FEW_ROWS, _FEW_EVENTS = 100, 15
# Resamples for the tests of small groups: fewer where there are very many increments in all.
_MAX_RESAMPLES, _MIN_RESAMPLES, _MAX_INCREMENTS = 9999, 999, 30_000_000


@dataclass(frozen=True, repr=False)
class GroupRow(Result):
    """The calibration of one group.

    Attributes
    ----------
    group
        Its label; None for rows without one.
    n
        The number of its rows that carry weight.
    prevalence, mean_prediction
        Weighted means of outcomes and predictions.
    smooth_ece
        The smooth calibration error with its interval.
    answer
        Whether that interval is "within tolerance", "beyond tolerance", or one "cannot tell".
    ece
        The binned calibration error.
    deviation
        The cumulative difference of outcomes and predictions farthest from 0: positive where
        outcomes are more frequent than predicted, over all scores up to there.
    test
        The cumulative test of perfect calibration, by the range; None where there is none (see
        `note`).
    p_adjusted
        Its P-value adjusted for the number of groups tested; nan where there is no test.
    small
        Whether it has few rows or events: see :func:`calibrant.by_group`.
    note
        Why there is no test, or that a prediction of 0 or 1 was wrong; mostly empty.
    """

    group: Any
    n: int
    prevalence: float
    mean_prediction: float
    smooth_ece: Estimate
    answer: Answer
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
    def is_least(self) -> bool:
        """Whether the P-value is the smallest that simulation can give: an upper bound."""
        return self.test is not None and self.test.is_least

    @property
    def ecce_r(self) -> float:
        """The range of cumulative differences, which is tested; nan where there is no test."""
        return float("nan") if self.test is None else self.test.statistic

    def to_dict(self) -> dict[str, Any]:
        """Return one plain value per column, nan as None."""
        values = {"group": self.group, **self._columns()}
        return {name: plain(value) for name, value in values.items()}

    def _columns(self) -> dict[str, Any]:
        """Return the value of each column but that of the group."""
        error = self.smooth_ece
        return {
            "n": self.n,
            "prevalence": self.prevalence,
            "mean_prediction": self.mean_prediction,
            "smooth_ece": error.value,
            "bias_corrected": error.bias_corrected,
            "low": error.low,
            "high": error.high,
            "answer": self.answer,
            "ece": self.ece,
            "deviation": self.deviation,
            "ecce_r": self.ecce_r,
            "p_value": self.p_value,
            "p_adjusted": self.p_adjusted,
            "small": self.small,
            "note": self.note,
        }


@dataclass(frozen=True, repr=False)
class GroupTable(TabularResult):
    """The calibration of each group, one row per group.

    Attributes
    ----------
    rows
        The groups in the order of their labels, rows without a label last; those of a dictionary
        of sketches in its order.
    level
        Confidence level of the intervals; a group is miscalibrated where its adjusted P-value is at
        most 1 - level.
    adjust
        The adjustment of P-values: "holm" or "benjamini_hochberg".
    tolerance
        The largest acceptable smooth calibration error.
    by
        The name of each column of groups; labels are tuples where there are several.
    """

    rows: tuple[GroupRow, ...]
    level: float
    adjust: str
    tolerance: float
    by: tuple[str, ...] = ("group",)

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

    def _columns(self) -> dict[str, Any]:
        labels = [row.group if len(self.by) > 1 else (row.group,) for row in self.rows]
        groups = dict(zip(self.by, map(list, zip(*labels, strict=True)), strict=True))
        rows = [row._columns() for row in self.rows]
        return groups | {name: [row[name] for row in rows] for name in rows[0]}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the smooth calibration error of each group with its interval; return the Axes.

        Filled: miscalibration detected.
        """
        from calibrant.plot.interval_plot import draw_intervals  # layers: to be shown

        names = [group_name(row.group) for row in self]
        label = f"smooth_ece, {percent(self.level)} interval; | raw value; filled: detected"
        found = [row.p_adjusted <= 1 - self.level for row in self]
        return draw_intervals(ax, names, [row.smooth_ece for row in self], label, found)

    def _printed(self) -> list[str | TextTable]:
        found, least = self._columns(), [row.is_least for row in self.rows]
        digits = interval_digits(found["low"], found["high"])
        table = {
            **{name: [*map(_label, found[name])] for name in self.by},
            "n": found["n"],
            "prevalence": found["prevalence"],
            "mean_pred": found["mean_prediction"],
            "estimate": found["bias_corrected"],
            f"{percent(self.level)} interval": interval_cells(found["low"], found["high"], digits),
            "ece": found["ece"],
            "deviation": found["deviation"],
            "p": p_cells(found["p_value"], least),
            "p_adj": p_cells(found["p_adjusted"], least),
            "tolerance": [row.answer.removesuffix(" tolerance") for row in self.rows],
            "": [_remarks(row, self.level) for row in self.rows],
        }
        found_at = f"* p_adj <= {1 - self.level:.2g} ({self.adjust})"
        note = f"estimate: smooth_ece, bias-corrected; tolerance {self.tolerance:g}; {found_at}"
        if any(row.small for row in self.rows):
            note += "; small: too few rows or events for a conclusion"
        return [TextTable.of(table, digits), note]


def _label(label: Any) -> Any:
    """Return a label of a group as tables show it: numbers as they are."""
    return group_name(label) if label is None or isinstance(label, str) else label


def _remarks(row: GroupRow, level: float) -> str:
    found = "*" * (row.p_adjusted <= 1 - level)
    remarks = "; ".join(["small"] * row.small + [row.note] * bool(row.note))
    return f"{found} {remarks}".strip()


class GroupOptions(FrameOptions, total=False):
    """Options of :func:`by_group`."""

    adjust: Adjustment
    clusters: ArrayLike | None
    level: float
    tolerance: float
    n_bins: int
    n_resamples: int
    rng: int | Generator


@overload
def by_group(y_true: Mapping[Any, Sketch], **options: Unpack[GroupOptions]) -> GroupTable: ...
@overload
def by_group(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    groups: ArrayLike | Mapping[str, ArrayLike],
    **options: Unpack[GroupOptions],
) -> GroupTable: ...
def by_group(
    y_true: ArrayLike | Mapping[Any, Sketch],
    y_prob: ArrayLike | None = None,
    groups: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    data: Any = None,
    adjust: Adjustment = "holm",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    tolerance: float = 0.01,
    n_bins: int = 15,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    align: bool = True,
) -> GroupTable:
    """Measure and test the calibration of each group, with P-values adjusted for their number.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.

        A dictionary of sketches, one per group, such as :func:`calibrant.sketch` makes with ``by``,
        replaces all three arrays.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    groups : array_like, optional
        One label per row: numbers, text or dates. Missing labels (None, nan, null) are a group of
        their own, None. A dataframe or a dictionary of columns, or with `data` a list of names,
        makes one group per combination, a tuple. At most 400 groups, or 40 with `clusters`; of more
        than 100 000 rows, as many more groups.
    data : dataframe, optional
        Table of pandas, polars or pyarrow; other arguments may then name its columns, or list them.
    adjust : {"holm", "benjamini_hochberg"}
        "holm": the probability that any calibrated group is called miscalibrated is at most
        1 - level. "benjamini_hochberg": so is the expected proportion of calibrated groups among
        those called miscalibrated.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.

        A cluster may have rows in several groups; the groups are then tested as if it had not.
    level : float
        Confidence level.

        A group is called miscalibrated where its adjusted P-value is at most 1 - level.
    tolerance : float
        The largest acceptable smooth calibration error.

        What is detected may be small, and what is not detected may be large: `answer` says where
        the interval of each group lies.
    n_bins : int
        Number of bins.

        Those of the binned error.
    n_resamples : int
        Number of resamples, at least 39.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.
    align : bool
        Whether pandas objects with different indexes are refused; False pairs rows by position.

    Returns
    -------
    GroupTable
        One row per group, in the order of labels, or of the dictionary.

    See Also
    --------
    subpopulation_test : A group against its population, not its own predictions.
    bias_along : Mean outcome minus mean prediction along a feature.

    Notes
    -----
    A group is `small` if it has fewer than 100 rows, or predicts fewer than 15 of either outcome
    (with weights, of their effective number W^2 / sum w^2). Its P-value is simulated with up to
    9999 resamples (see :func:`calibrant.cumulative_test`, "range"), unless it is a weighted
    sketch, and again with more, where no simulated excursion is as large and so many groups need a
    smaller P-value. P-values of other groups are asymptotic: conservative for few distinct scores.

    With `clusters` every P-value is simulated as in :func:`calibrant.cumulative_test`. A group with
    fewer than three clusters has no test, and its interval is [0, 1].

    There is no test of soft labels, whose noise is unknown, nor of predictions that are all 0 or 1;
    `p_adjusted` is nan then, and the other groups are adjusted for their own number. Intervals are
    those of :func:`calibrant.estimate`, not adjusted.

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
    validation.check_choice(adjust, "adjust", _ADJUSTMENTS)
    level, tolerance = validation.as_level(level), read_tolerance(tolerance)
    n_resamples = validation.as_resamples(n_resamples)
    binned = read_binned_error(n_bins=n_bins)
    problems: list[tuple[Any, Problem, Index | None]]
    if isinstance(y_true, Mapping | Sketch):
        given = (y_prob, groups, clusters, sample_weight, multiclass, labels, pos_label)
        problems = [(*one, None) for one in _read_sketches(y_true, given)]
        n_rows = sum(problem.n for _, problem, _ in problems)
        _check_number(len(problems), _MAX_GROUPS, n_rows, "y_true")
    else:
        y_true, y_prob, groups, sample_weight, clusters = read_columns(
            *(data, align),
            y_true=y_true,
            y_prob=y_prob,
            groups=groups,
            sample_weight=sample_weight,
            clusters=clusters,
        )
        whole = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
        problems = list(_split(whole, groups, clusters, sample_weight))
    needed = math.ceil(len(problems) / (1 - level))
    assessor = _Assessor(level, tolerance, binned, n_resamples, rng, needed)
    rows = [assessor.row(*one) for one in steps(problems)]
    adjusted = _ADJUSTMENTS[adjust]([row.p_value for row in rows]).tolist()
    rows = [replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True)]
    names = groups if isinstance(groups, Mapping) else validation.column_labels(groups)
    by = tuple(map(str, names or ("group",)))
    return GroupTable(tuple(rows), level, adjust, tolerance, by)


@dataclass(frozen=True, eq=False)
class _Assessor:
    """The options of all groups.

    With `n_needed` resamples a P-value can be significant whatever those of the other groups.
    """

    level: float
    tolerance: float
    binned: BinnedError
    n_resamples: int
    rng: int | Generator
    n_needed: int

    def row(self, group: Any, problem: Problem, code: Index | None) -> GroupRow:
        """Return the row of one group, its P-value not yet adjusted.

        `code` is the number of the cluster of each row, None where rows are independent.
        """
        pooled, differences = problem.pooled, cumulative_differences(problem)
        total = float(pooled.weight.sum())
        mean = float(pooled.weight @ pooled.score) / total
        small = _is_small(problem, mean)
        # A seed starts anew for each group, so that each is what `estimate` gives.
        rng = read_generator(self.rng)
        clusters = None if code is None else Clusters.of_codes(code, rng)
        is_known = clusters is None or clusters.n >= MIN_CLUSTERS
        question = Question(self.level, self.n_resamples, rng, clusters if is_known else None)
        error = estimated("smooth_ece", SmoothError(), problem, question)
        error = error if is_known else replace(error, low=0.0, high=1.0)
        deviation = differences.deviation
        return GroupRow(
            group=group,
            n=problem.n,
            prevalence=float(pooled.true.sum()) / total,
            mean_prediction=mean,
            smooth_ece=error,
            answer=answer_of(error, self.tolerance),
            ece=self.binned(problem),
            deviation=float(deviation[np.argmax(np.abs(deviation))]),
            test=self._test(problem, differences, question, small=small) if is_known else None,
            p_adjusted=float("nan"),
            small=small,
            note=_note(problem, differences, is_known=is_known),
        )

    def _test(
        self,
        problem: Problem,
        differences: CumulativeDifferences,
        question: Question,
        *,
        small: bool,
    ) -> TestResult | None:
        """Return the cumulative test, or None where there is no noise to compare with."""
        if not differences.sigma > 0:
            return None
        null, clusters = partial(calibrated_outcomes, problem), question.clusters

        def tested(n_resamples: int) -> TestResult:
            test = ExcursionTest(Statistic.RANGE, n_resamples, question.rng)
            if clusters is not None:
                return test.of_clusters(differences, problem, clusters)
            return test(differences, null, problem.n, "calibration")

        # A sketch does not keep the weights of single rows.
        is_simulated = small and (problem.is_exact or not problem.is_weighted)
        if clusters is None and not is_simulated:
            return tested(0)
        affordable = max(_MAX_INCREMENTS // len(differences.score), _MIN_RESAMPLES)
        few, more = (min(affordable, n) for n in (_MAX_RESAMPLES, self.n_needed))
        found = tested(few)
        # Both P-values are valid, and P is small only where both are.
        return tested(more) if found.is_least and more > few else found


def _is_small(problem: Problem, mean_prediction: float) -> bool:
    rows = problem.effective_rows
    events = rows * min(mean_prediction, 1 - mean_prediction)
    return rows < _FEW_ROWS or events < _FEW_EVENTS


def _note(problem: Problem, differences: CumulativeDifferences, *, is_known: bool) -> str:
    notes = []
    if Certain.of(problem).contradicted:
        notes.append("a prediction of 0 or 1 was wrong")
    if problem.is_soft:
        notes.append("soft labels: no test")
    elif differences.sigma == 0:
        notes.append("predictions of 0 and 1 alone: no test")
    elif not is_known:
        notes.append(f"fewer than {MIN_CLUSTERS} clusters: no test")
    return "; ".join(notes)


def _split(
    whole: Problem, groups: Any, clusters: Any, sample_weight: Any
) -> Iterator[tuple[Any, Problem, Index | None]]:
    """Yield the rows of each group as a problem of its own, with the clusters of its rows."""
    if not whole.is_exact:
        raise SketchError("by_group takes a dictionary of sketches, one per group")
    if groups is None:
        raise CalibrantError("is missing", argument="groups", hint="give one label per row")
    names, code = read_labels(groups, "groups", sample_weight, whole.n)
    cluster = None if clusters is None else read_codes(clusters, sample_weight, whole.n)
    most = _MAX_GROUPS if cluster is None else _MAX_CLUSTERED_GROUPS
    _check_number(len(names), most, whole.n, "groups")
    for group, rows in zip(names, rows_by_code(code, len(names)), strict=True):
        yield group, whole.rows.take(rows), None if cluster is None else cluster[rows]


def _check_number(n_groups: int, most: int, n_rows: int, argument: str) -> None:
    """Refuse more groups than are soon assessed, or than have enough rows each."""
    maximum = max(most, most * n_rows // _ROWS_IN_ALL)
    if n_groups > maximum:
        raise CalibrantError(
            "must hold at most {maximum} groups for {n_rows} rows",
            argument=argument,
            value=n_groups,
            hint="join rare ones, or give a part of them at a time",
            maximum=maximum,
            n_rows=f"{n_rows:,}",
        )


def _read_sketches(sketches: Any, given: tuple[Any, ...]) -> Iterator[tuple[Any, Problem]]:
    """Yield the problem of each sketch; all other input must be absent."""
    if isinstance(sketches, Sketch):
        raise SketchError(
            "a sketch does not know which rows belong to which group",
            hint="give a dictionary of sketches, one per group, as made by sketch(..., by=...)",
        )
    names = ("y_prob", "groups", "clusters", *ROW_OPTIONS)
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
