"""From class probabilities to binary calibration problems.

===========  ==========================================================================
reduction    the binary problem(s)
===========  ==========================================================================
class c      (P[:, c], 1{y = c})
classwise    every class c, combined with equal weights
confidence   (max_c P, 1{argmax = y})
top_label    confidence among the rows predicted as c, combined by predicted weight
===========  ==========================================================================

Ties in the argmax go to the first column. Classes are visited one by one; nothing as large as the
input is copied. Where a measure needs sums over uniform bins only, and compiled code serves, all
classes are added up in one pass over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import AnyArray, FloatArray
from calibrant.data import validation
from calibrant.data.labels import (
    check_scalar,
    column_of,
    label_codes,
    labels_of_columns,
    positive_of,
    unnamed_columns,
)
from calibrant.data.problem import Assignment, Index, Problem, Quantity
from calibrant.data.rows import BLOCK_ROWS, UNIFORM_SUMS, Sample, check_same_index, read_sample
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_problem import problem_of
from calibrant.data.validation import as_array, column_labels, one_column, read_weights
from calibrant.errors import CalibrantError
from calibrant.numerics import compiled_sums

# Columns are copied in tiles of this shape, small enough to be transposed within the cache.
_TILE_COLUMNS, _TILE_ROWS = 32, 1024
# The sums of all classes are kept for so many numbers of bins: a measure that chooses another
# number for each class would need a pass for each class.
_MAX_KEPT = 2
_REDUCTIONS = ("confidence", "classwise", "top_label")


P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class RowOptions(TypedDict, total=False):
    """Options of every function of (y_true, y_prob)."""

    sample_weight: ArrayLike | None
    multiclass: Any
    labels: Sequence[Any] | None
    pos_label: Any


# In the order in which functions that read rows take them.
ROW_OPTIONS = tuple(RowOptions.__annotations__)


class FrameOptions(RowOptions, total=False):
    """Options of every function that takes columns of a dataframe by name."""

    data: Any
    align: bool


class OfRowsOrSketch(Protocol[P, R_co]):
    """A function of outcomes and predictions, or of a sketch of both, with options P."""

    __name__: str

    @overload
    def __call__(self, y_true: Sketch | Problem, *args: P.args, **options: P.kwargs) -> R_co: ...
    @overload
    def __call__(
        self, y_true: ArrayLike, y_prob: ArrayLike, *args: P.args, **options: P.kwargs
    ) -> R_co: ...


def rows_or_sketch(function: Callable[Concatenate[Any, Any, P], R_co]) -> OfRowsOrSketch[P, R_co]:
    """Return a function as it is, typed to need predictions unless it is given a sketch."""
    return cast(OfRowsOrSketch[P, R_co], function)


def of_rows(function: Callable[P, R_co]) -> Callable[P, R_co]:
    """Return a function of rows that refuses a sketch in place of outcomes and predictions."""

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R_co:
        first = args[0] if args else options.get("y_true")
        if isinstance(first, Sketch) and len(args) < 2 and "y_prob" not in options:
            _ = problem_of(first).rows  # refused
        return function(*args, **options)

    return checked


class Norm(Enum):
    """A weighted norm of gaps: mean, root mean square or maximum of their absolute values."""

    L1 = "l1"
    L2 = "l2"
    MAX = "max"

    def of(self, gaps: FloatArray, weights: FloatArray) -> float:
        """Return the norm of `gaps` under weights that sum to 1; the maximum ignores them."""
        if self is Norm.L1:
            return float(np.dot(weights, np.abs(gaps)))
        if self is Norm.L2:
            return float(np.sqrt(np.dot(weights, gaps * gaps)))
        return float(np.max(np.abs(gaps)))


@dataclass(frozen=True, eq=False)
class Reduction:
    """The binary problems that one call represents, and the weight of each in the answer."""

    weights: FloatArray
    problems: Callable[[], Iterator[Problem]]

    @classmethod
    def of(cls, problem: Problem) -> Reduction:
        """Return the reduction that is one problem itself."""
        return cls(np.ones(1), lambda: iter([problem]))

    def measure(self, measure: Callable[[Problem], float], norm: Norm = Norm.L1) -> float:
        """Return the measure of every problem, combined by the norm."""
        values = [float(measure(problem)) for problem in self.problems()]
        return values[0] if len(values) == 1 else norm.of(np.array(values), self.weights)


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Checked class probabilities with their outcomes."""

    prob: AnyArray  # probabilities, shape (n, C), any float dtype
    outcome: AnyArray  # the true column of each row, shape (n,), or soft outcomes, shape (n, C)
    w: AnyArray | None = None  # positive weights, or None when every row counts once
    labels: Sequence[Any] | None = None  # the class of each column; None for 0 to C - 1

    @property
    def n_classes(self) -> int:
        """The number of classes C."""
        return int(self.prob.shape[1])

    @property
    def is_soft(self) -> bool:
        """Whether outcomes are probabilities of every class."""
        return self.outcome.ndim == 2

    def one_class(self, column: int) -> Sample:
        """Return the problem "is it this class?"."""
        return Sample(self.outcomes_of(column), self.prob[:, column], self.w)

    def classwise(self) -> Reduction:
        """Return the problem of every class, with equal weights."""

        def problems() -> Iterator[Problem]:
            columns = _Columns(self)
            return (ClassProblem(columns, column) for column in range(self.n_classes))

        return Reduction(np.full(self.n_classes, 1 / self.n_classes), problems)

    def confidence(self) -> Sample:
        """Return the problem "is the predicted class right?"."""
        predicted = self.prob.argmax(axis=1)
        correct = _pick(self.outcome, predicted) if self.is_soft else self.outcome == predicted
        return Sample(correct, _pick(self.prob, predicted), self.w, lowest=1 / self.n_classes)

    def top_label(self) -> Reduction:
        """Return the confidence problem within each predicted class, weighted by its mass."""
        predicted = self.prob.argmax(axis=1)
        whole = self.confidence()
        order = np.argsort(predicted, kind="stable")
        cuts = np.flatnonzero(np.diff(predicted[order])) + 1
        samples = [whole.take(rows) for rows in np.split(order, cuts)]
        weights = np.array([sample.weight for sample in samples]) / whole.weight
        return Reduction(weights, lambda: iter(samples))

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield rows as float64 (probabilities, outcomes, weights), labels as rows of 0 and 1.

        There are about `size` probabilities in a block.
        """
        step = max(1, size // self.n_classes)
        for start in range(0, len(self.prob), step):
            rows = slice(start, start + step)
            prob = np.asarray(self.prob[rows], dtype=np.float64)
            if self.is_soft:
                outcome = np.asarray(self.outcome[rows], dtype=np.float64)
            else:
                outcome = np.zeros(prob.shape)
                outcome[np.arange(len(prob)), self.outcome[rows]] = 1.0
            w = np.ones(len(prob)) if self.w is None else self.w[rows].astype(np.float64)
            yield prob, outcome, w

    def outcomes_of(self, column: int) -> AnyArray:
        """Return the outcomes of the problem "is it this class?"."""
        return self.outcome[:, column] if self.is_soft else self.outcome == column


class _Columns:
    """The columns of a table, with what was worked out for one class and serves the next."""

    def __init__(self, table: ClassTable) -> None:
        self.table = table
        self._tile, self._first = table.prob[:0].T, -1
        self._sums: dict[int, FloatArray] = {}

    def sample(self, column: int) -> Sample:
        """Return the rows of one class."""
        first = column - column % _TILE_COLUMNS
        if first != self._first:
            self._tile, self._first = _transposed(self.table.prob, first), first
        outcome = self.table.outcomes_of(column)
        return Sample(outcome, self._tile[column - first], self.table.w)

    def bin_sums(self, column: int, n_bins: int) -> FloatArray | None:
        """Return sums over uniform bins of one class, None where no pass over the table serves."""
        if n_bins not in self._sums and self._may_pass(n_bins):
            rows, pred, true = compiled_sums.column_bin_sums(
                self.table.prob, self.table.outcome, n_bins
            )
            self._sums[n_bins] = np.stack((rows, pred, true, true - pred), axis=1)
        return self._sums[n_bins][column] if n_bins in self._sums else None

    def _may_pass(self, n_bins: int) -> bool:
        table = self.table
        is_plain = table.w is None and not table.is_soft and len(self._sums) < _MAX_KEPT
        return is_plain and compiled_sums.is_table_worth_while(
            table.prob, 4 * table.n_classes * n_bins
        )


class ClassProblem(Problem):
    """The problem "is it this class?"; its rows are copied once something asks for them."""

    def __init__(self, columns: _Columns, column: int) -> None:
        self._columns, self._column = columns, column

    @property
    def n(self) -> int:
        return len(self._columns.table.prob)

    @cached_property
    def weight(self) -> float:
        w = self._columns.table.w
        return float(self.n) if w is None else float(w.sum(dtype=np.float64))

    @property
    def is_weighted(self) -> bool:
        return self._columns.table.w is not None

    @property
    def is_soft(self) -> bool:
        return self._columns.table.is_soft and self.rows.is_soft

    @cached_property
    def rows(self) -> Sample:
        """The rows of the class."""
        return self._columns.sample(self._column)

    def totals(self, assignment: Assignment, *quantities: Quantity) -> FloatArray:
        if assignment.is_uniform:
            found = self._columns.bin_sums(self._column, assignment.n_bins)
            if found is not None:
                return found[[UNIFORM_SUMS[quantity] for quantity in quantities]]
        return self.rows.totals(assignment, *quantities)


def _transposed(table: AnyArray, first: int) -> AnyArray:
    """Return a few columns of a table, each contiguous."""
    wide = table[:, first : first + _TILE_COLUMNS]
    columns = np.empty(wide.shape[::-1], dtype=wide.dtype)
    for row in range(0, len(wide), _TILE_ROWS):
        rows = slice(row, row + _TILE_ROWS)
        columns[:, rows] = wide[rows].T
    return columns


def _pick(table: AnyArray, column: Index) -> AnyArray:
    return np.take_along_axis(table, column[:, None], axis=1)[:, 0]


def reduce_classes(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Reduction:
    """Read the input of a measure and return its binary problems."""
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduce_table(table, multiclass)


def reduce_table(table: Problem | ClassTable, multiclass: Any) -> Reduction:
    """Return the binary problems of a table."""
    if not isinstance(table, ClassTable):
        return Reduction.of(table)
    if multiclass is None or multiclass == "confidence":
        return Reduction.of(table.confidence())
    if multiclass == "classwise":
        return table.classwise()
    if multiclass == "top_label":
        return table.top_label()
    return Reduction.of(table.one_class(column_of(multiclass, table.labels, table.n_classes)))


def one_problem(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Problem:
    """Read input that must be one binary problem."""
    check_is_one(multiclass, labels)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return next(reduction.problems())


def hard_problem(*given: Any) -> Problem:
    """Read input as :func:`one_problem` does, refusing soft labels."""
    problem = one_problem(*given)
    if problem.is_soft:
        raise CalibrantError(
            "must be 0 or 1 for a test, as the noise of soft labels is unknown",
            argument="y_true",
            found="soft labels",
        )
    return problem


def rows_by_model(y_true: Any, y_prob: Any) -> dict[str, tuple[Any, Any]]:
    """Return what is given of each of several models by name, or of one by the name ""."""
    if isinstance(y_true, Mapping):
        found = {str(name): (one, y_prob) for name, one in y_true.items()}
    elif isinstance(y_prob, Mapping):
        found = {str(name): (y_true, one) for name, one in y_prob.items()}
    else:
        return {"": (y_true, y_prob)}
    if not found:
        argument = "y_true" if isinstance(y_true, Mapping) else "y_prob"
        raise CalibrantError("must hold at least one model", argument=argument, value={})
    return found


def check_is_one(multiclass: Any, labels: Sequence[Any] | None = None) -> None:
    """Refuse what represents several binary problems."""
    _check_unambiguous(multiclass, labels)
    if isinstance(multiclass, str) and multiclass in ("classwise", "top_label"):
        raise CalibrantError(
            "must select one binary problem here",
            argument="multiclass",
            value=multiclass,
            hint="give 'confidence' or a class label",
        )


def _check_unambiguous(multiclass: Any, labels: Sequence[Any] | None) -> None:
    """Refuse the name of a reduction that is the name of a class too."""
    if labels is None or not isinstance(multiclass, str) or multiclass not in _REDUCTIONS:
        return
    if multiclass in as_array(labels, "labels").tolist():
        raise CalibrantError(
            "must not be both a reduction and one of the classes in {labels}",
            argument="multiclass",
            value=multiclass,
            hint="rename the class",
        )


def read_table(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    multiclass: Any,
    labels: Sequence[Any] | None,
    pos_label: Any,
) -> Problem | ClassTable:
    """Read a sketch, one column (or two complementary ones) as a sample, or a class table.

    A problem, which was read before, is returned as it is.
    """
    if isinstance(y_true, Problem):
        return y_true
    if isinstance(y_true, Sketch):
        rows = {"y_prob": y_prob, "sample_weight": sample_weight}
        options = {"multiclass": multiclass, "labels": labels, "pos_label": pos_label}
        return _read_sketch(y_true, rows | options)
    check_same_index({"y_true": y_true, "y_prob": y_prob, "sample_weight": sample_weight})
    p, labels, positive = by_name(y_true, y_prob, labels)
    if multiclass is not None:
        check_scalar(multiclass, "multiclass")
        _check_unambiguous(multiclass, labels)
    if p.ndim == 2 and p.shape[1] == 2 and multiclass is None:
        chosen = positive if pos_label is None else pos_label
        return _read_two_columns(y_true, p, sample_weight, labels, chosen)
    if p.ndim == 2 and p.shape[1] > 1:
        if pos_label is not None:
            raise CalibrantError(
                "is for binary problems",
                argument="pos_label",
                value=pos_label,
                found="{value} and {n_classes} classes",
                hint="{multiclass} selects one class",
                n_classes=p.shape[1],
            )
        return read_classes(y_true, p, sample_weight, labels)
    if multiclass is not None:
        raise CalibrantError(
            "needs one column of probabilities per class",
            argument="multiclass",
            value=multiclass,
            found="{value} and {columns}",
            hint="give {y_prob} of shape (n, classes)",
            columns="one column" if p.ndim < 3 else f"{p.ndim} axes",
        )
    return read_sample(y_true, p, sample_weight=sample_weight, pos_label=pos_label, labels=labels)


def by_name(
    y_true: Any, y_prob: Any, labels: Sequence[Any] | None
) -> tuple[AnyArray, Sequence[Any] | None, Any]:
    """Return predictions, the class of each column, and which of two is positive, if it is known.

    The columns of a dataframe that are named like the classes are matched by their names, and put
    into the order of `labels` if that is given.
    """
    p = as_array(y_prob, "y_prob")
    names = None if p is y_prob else column_labels(y_prob)  # an array has no names for its columns
    if names is None or len(names) < 2:
        return p, labels, None
    found = labels_of_columns(names, as_array(y_true, "y_true"), labels)
    if labels is not None and found is not None:
        order = [found.index(name) for name in as_array(labels, "labels").tolist()]
        return (p if order == sorted(order) else p[:, order]), labels, None
    return p, found, positive_of(found) if found is not None and len(found) == 2 else None


def _read_sketch(sketch: Sketch, given: Mapping[str, Any]) -> Problem:
    """Read a sketch, which is one binary problem and takes no other arguments."""
    for name, value in given.items():
        if value is not None:
            raise CalibrantError(
                "must be left out: a sketch represents all rows and weights", argument=name
            )
    return problem_of(sketch)


def _read_two_columns(
    y_true: Any, p: AnyArray, sample_weight: Any, labels: Sequence[Any] | None, pos_label: Any
) -> Sample:
    """Read the probabilities of both outcomes, the positive one in the second column."""
    y = as_array(y_true, "y_true")
    p = _checked_matrix(p, y)
    positive = 1
    if pos_label is not None:
        if labels is None and pos_label not in (0, 1):
            raise CalibrantError(
                "must be 0 or 1, as the two columns of {y_prob} have no names",
                argument="pos_label",
                value=pos_label,
                hint="name the columns in order with {labels}",
            )
        positive = column_of(pos_label, labels, 2, "pos_label")
    elif labels is None and y.dtype.kind not in "buif" and y.ndim == 1:
        raise unnamed_columns(y, 2)
    if y.ndim == 2 and y.shape[1] == 2:
        y, pos_label, labels = y[:, positive], None, None
    return read_sample(
        y, p[:, positive], sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )


def read_classes(
    y_true: Any, y_prob: Any, sample_weight: Any, labels: Sequence[Any] | None
) -> ClassTable:
    """Read one column per class as a class table."""
    p, labels, _ = by_name(y_true, y_prob, labels)
    if p.ndim != 2 or p.shape[1] < 2:
        rule = "must have one column per class"
        raise CalibrantError(rule, argument="y_prob", value=p.shape, found="shape {value}")
    y = as_array(y_true, "y_true")
    p = _checked_matrix(p, y)
    if y.ndim == 2 and y.shape[1] > 1:
        outcome = _checked_soft(y, p.shape[1])
    else:
        outcome = label_codes(one_column(y, "y_true"), labels, p.shape[1])
    w = read_weights(sample_weight, len(p))
    if w is not None and w.min() == 0:
        kept = np.flatnonzero(w)
        p, outcome, w = p[kept], outcome[kept], w[kept]
    return ClassTable(p, outcome, w, labels)


def _checked_matrix(p: AnyArray, y: AnyArray) -> AnyArray:
    """Return probabilities of classes as numbers, checked, one row for each of the outcomes."""
    for array, name in ((y, "y_true"), (p, "y_prob")):
        validation.check_not_empty(array, name)
    validation.check_same_length(y, "y_true", p, "y_prob")
    p = validation.as_numbers(p, "y_prob")
    validation.check_probabilities(p)
    validation.check_row_sums(p)
    return p


def _checked_soft(y: AnyArray, n_classes: int) -> AnyArray:
    if y.shape[1] != n_classes:
        raise CalibrantError(
            "must have one column per column of {y_prob}",
            argument="y_true",
            value=y.shape[1],
            found="{value} and {n_classes}",
            n_classes=n_classes,
        )
    y = validation.as_numbers(y, "y_true")
    validation.check_probabilities(y, "y_true")
    validation.check_row_sums(y, "y_true")
    return y
