"""Cumulative differences of a group and the population that it is part of.

Around each distinct score of the group lies a cell: the rows of the whole population that are
nearer to it than to any other score of the group. An increment is the sum of w (r - m) over the
group's rows at that score, r = y - p being residuals and m their mean over the cell. Residuals
rather than outcomes: where scores in a cell differ, so do the outcomes to be expected. Permuted at
random within a cell, residuals give its increment mean 0 and variance

    v ((1 - f)^2 sum_{group} w^2 + f^2 sum_{others} w^2),    v = sum (r - rbar)^2 / (rows - 1),

with f the group's fraction of the cell's weight. At a shared score that is the null hypothesis
itself, where residuals differ as outcomes do; among unequal scores it is an approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.classes import of_rows, one_problem
from calibrant.data.problem import Index, Problem
from calibrant.data.rows import Sample, check_same_index
from calibrant.data.validation import as_array, one_column
from calibrant.errors import CalibrantError
from calibrant.measures.cumulative import (
    CumulativeCurve,
    CumulativeDifferences,
    as_curve,
    cumulative_differences,
)

Mask = npt.NDArray[np.bool_]
Against = Literal["population", "calibration"]


@dataclass(frozen=True, eq=False)
class GroupCells:
    """The population's rows around the scores of a group, ordered cell by cell."""

    score: FloatArray  # the group's distinct scores, one per cell
    starts: Index  # the first row of each cell
    member: Mask  # whether each row belongs to the group
    p: FloatArray
    y: FloatArray
    w: FloatArray
    is_soft: bool  # then the variance is unknown

    @classmethod
    def around(cls, problem: Problem, member: Mask) -> GroupCells:
        """Gather the rows around the scores of a group, refusing where all are its own."""
        p, y, w = problem.rows.columns()
        score = np.unique(p[member])
        # The group is compared between its lowest and highest scores only.
        near = (p >= score[0]) & (p <= score[-1])
        p, y, w, member = p[near], y[near], w[near], member[near]
        if member.all():
            raise CalibrantError(
                "cannot be compared with its population: all rows between its lowest and its "
                "highest score are its own",
                argument="group",
            )
        low, high = score[:-1], score[1:]
        middle = low + (high - low) / 2
        # Between neighbouring doubles the midpoint rounds to one of them: never to the upper. A
        # score at a boundary belongs to the lower cell.
        cell = np.searchsorted(np.where(middle < high, middle, low), p, side="left")
        order = np.lexsort((w, y, p, member, cell))
        starts = np.searchsorted(cell[order], np.arange(len(score)))
        p, y, w, member = p[order], y[order], w[order], member[order]
        return cls(score, starts, member, p, y, w, problem.is_soft)

    def sums(self, values: FloatArray | Mask) -> FloatArray:
        """Return the sum over each cell."""
        return np.asarray(np.add.reduceat(values, self.starts, dtype=np.float64))

    @property
    def group_weight(self) -> FloatArray:
        """The group's weight in each cell."""
        return self.sums(self.w * self.member)

    @property
    def rows(self) -> FloatArray:
        """The number of rows in each cell."""
        return np.diff(self.starts, append=len(self.y)).astype(np.float64)

    @property
    def has_shared_scores(self) -> bool:
        """Whether all rows of every cell have the group's own score."""
        return bool(np.all(self.p == self._per_row(self.score)))

    @property
    def is_informative(self) -> bool:
        """Whether some cell has both rows of others and outcomes of both kinds."""
        rows, ones = self.rows, self.sums(self.y)
        return bool(np.any((self.sums(self.member) < rows) & (ones > 0) & (ones < rows)))

    @property
    def residual(self) -> FloatArray:
        """The residual y - p of each row, less that of the first row of its cell.

        Increments do not depend on that constant. The difference is exactly 0 where all rows of a
        cell are equal, so that rounding is never taken for noise.
        """
        first_p, first_y = (self._per_row(column[self.starts]) for column in (self.p, self.y))
        return (self.y - first_y) - (self.p - first_p)

    @property
    def contrast(self) -> FloatArray:
        """The factor of each residual in its increment: these sum to 0 over every cell."""
        fraction = self._per_row(self.group_weight / self.sums(self.w))
        return self.w * np.where(self.member, 1 - fraction, -fraction)

    @property
    def variance(self) -> FloatArray:
        """The variance of each increment when the residuals of its cell are permuted."""
        residual, rows = self.residual, self.rows
        centred = residual - self._per_row(self.sums(residual) / rows)
        spread = self.sums(centred**2) / np.maximum(rows - 1, 1)
        return spread * self.sums(self.contrast**2)

    def differences(self) -> CumulativeDifferences:
        """Return the cumulative differences of the group's residuals and its cells' means."""
        weight = self.group_weight
        increment = self.sums(self.contrast * self.residual)
        variance = np.nan if self.is_soft else float(self.variance.sum())
        sigma = math.sqrt(variance) / float(weight.sum())
        return CumulativeDifferences(self.score, weight, increment, sigma)

    def _per_row(self, values: FloatArray) -> FloatArray:
        """Repeat the value of each cell for its rows."""
        return np.repeat(values, self.rows.astype(np.intp))


def group_alone(problem: Problem, member: Mask) -> Sample:
    """Return the problem of the group's rows by themselves."""
    p, y, w = problem.rows.columns()
    return Sample(y[member], p[member], w[member] if problem.is_weighted else None)


def read_group(group: Any, sample_weight: Any, problem: Problem) -> Mask:
    """Read which rows belong to a group, leaving out those that carry no weight."""
    member, w = as_array(group, "group"), None
    if sample_weight is not None:
        w = one_column(as_array(sample_weight, "sample_weight"), "sample_weight")
    n = problem.n if w is None else len(w)
    if member.shape not in ((n,), (n, 1)):
        rule = "must be true or false for each row, shape ({n},)"
        raise CalibrantError(rule, argument="group", value=member.shape, n=n)
    member = one_column(member, "group")
    if member.dtype.kind != "b":
        seen = member.tolist()
        wrong = np.array([value not in (0, 1) for value in seen])
        hint = "compare the column with a value first, as in {group}=(column == value)"
        validation.refuse(member, wrong, "group", "must be true or false for each row", hint)
        member = np.array([value == 1 for value in seen])
    if w is not None:
        member = member[w != 0]
    if not member.any():
        raise CalibrantError("must select a row with positive weight", argument="group")
    return member


@of_rows
def subpopulation_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    group: ArrayLike,
    against: Against = "population",
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> CumulativeCurve:
    """Return the cumulative deviation of a group's outcomes; a flat curve is no deviation.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    group : array_like of bool
        True for the rows of the group; the others are the rest of the population.
    against : {"population", "calibration"}
        "population": from the mean deviation of the whole population at the same scores.
        "calibration": from the predictions, the curve of the group's rows by themselves.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    CumulativeCurve
        One point per distinct score of the group, after the start at 0. Its slope is the mean
        deviation of the group.

    See Also
    --------
    subpopulation_test : A test of whether the deviation is significant.
    cumulative_curve : The curve of the whole population.

    Notes
    -----
    See :func:`calibrant.subpopulation_test` for what "the same scores" are and for sigma. Against
    the population, there must be rows of others between the lowest and highest score of the group.

    References
    ----------
    Tygert, "Cumulative deviation of a subpopulation from the full population" (2021).

    Examples
    --------
    >>> y, p = [0, 1, 1, 0], [0.25, 0.25, 0.75, 0.75]
    >>> subpopulation_curve(y, p, group=[True, False, True, False]).deviation.tolist()
    [0.0, -0.25, 0.0]
    """
    validation.check_choice(against, "against", get_args(Against))
    check_same_index({"y_true": y_true, "group": group})
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    member = read_group(group, sample_weight, problem)
    if against == "calibration":
        return as_curve(cumulative_differences(group_alone(problem, member)))
    return as_curve(GroupCells.around(problem, member).differences())
