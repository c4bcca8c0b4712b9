"""Class probabilities with their outcomes, and the binary problems that they stand for.

Classes are visited one by one. Where uniform bins are all that a measure looks at, and compiled
code is at hand, all classes are added up in one pass over the rows, in the order of memory;
otherwise columns are copied a few at a time. Nothing as large as the input is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from calibrant.arrays import AnyArray, FloatArray
from calibrant.binning import UniformBins
from calibrant.norms import Norm
from calibrant.numerics import passes
from calibrant.problem import Index, Problem
from calibrant.sample import BLOCK_ROWS, Sample

# Columns are copied out in tiles of this shape, small enough to be turned within the cache.
_TILE_COLUMNS, _TILE_ROWS = 32, 1024
_WHOLE = np.ones(1)
# How many numbers of bins to keep the sums of classes for.
_MOST_KEPT = 2


@dataclass(frozen=True, eq=False)
class Reduction:
    """The binary problems that one call stands for, and the share of each in the answer."""

    shares: FloatArray
    problems: Callable[[], Iterator[Problem]]

    @classmethod
    def of(cls, problem: Problem) -> Reduction:
        """Return the reduction that is one problem itself."""
        return cls(_WHOLE, lambda: iter([problem]))

    def measure(self, measure: Callable[[Problem], float], norm: Norm = Norm.L1) -> float:
        """Return the measure of every problem, combined by the norm."""
        values = [float(measure(problem)) for problem in self.problems()]
        return values[0] if len(values) == 1 else norm.of(np.array(values), self.shares)


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Checked class probabilities with their outcomes.

    Attributes
    ----------
    prob
        Probabilities, shape (n, C), any float dtype.
    outcome
        The true column of each row, shape (n,), or soft outcomes, shape (n, C).
    w
        Positive weights, or None when every row counts once.
    """

    prob: AnyArray
    outcome: AnyArray
    w: AnyArray | None = None

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
        """Return the problem of every class, with equal shares."""
        return Reduction(np.full(self.n_classes, 1 / self.n_classes), self._each_class)

    def confidence(self) -> Sample:
        """Return the problem "is the predicted class right?"."""
        predicted = self.prob.argmax(axis=1)
        top = _pick(self.prob, predicted)
        return Sample(self._correct(predicted), top, self.w, lowest=1 / self.n_classes)

    def top_label(self) -> Reduction:
        """Return the confidence problem within each predicted class, shared by weight."""
        predicted = self.prob.argmax(axis=1)
        whole = self.confidence()
        order = np.argsort(predicted, kind="stable")
        cuts = np.flatnonzero(np.diff(predicted[order])) + 1
        samples = [whole.rows(rows) for rows in np.split(order, cuts)]
        shares = np.array([sample.weight for sample in samples]) / whole.weight
        return Reduction(shares, lambda: iter(samples))

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield rows as float64 (probabilities, outcomes, weights), labels as rows of 0 and 1."""
        step = max(1, BLOCK_ROWS // self.n_classes)
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

    def _each_class(self) -> Iterator[Sample]:
        # What is found for one class serves the next ones.
        tile, sums = lru_cache(1)(self._tile), _SumsOfClasses(self)
        for column in range(self.n_classes):
            yield ClassSample(self, column, tile, sums)

    def _tile(self, start: int) -> AnyArray:
        """Return a few columns, each in one piece."""
        wide = self.prob[:, start : start + _TILE_COLUMNS]
        columns = np.empty(wide.shape[::-1], dtype=wide.dtype)
        for row in range(0, len(wide), _TILE_ROWS):
            rows = slice(row, row + _TILE_ROWS)
            columns[:, rows] = wide[rows].T
        return columns

    def bin_sums(self, n_bins: int) -> FloatArray:
        """Return the rows of every class and bin and their sums of p, y and y - p, in one pass.

        Shape (classes, 4, bins); of rows that count once each and have one class.
        """
        rows, pred, true = passes.column_bin_sums(self.prob, self.outcome, n_bins)
        return np.stack((rows, pred, true, true - pred), axis=1)

    def outcomes_of(self, column: int) -> AnyArray:
        """Return the outcomes of the problem "is it this class?"."""
        return self.outcome[:, column] if self.is_soft else self.outcome == column

    def _correct(self, predicted: Index) -> AnyArray:
        return _pick(self.outcome, predicted) if self.is_soft else self.outcome == predicted


class _SumsOfClasses:
    """Sums over uniform bins of all classes of a table, kept for the next class."""

    def __init__(self, table: ClassTable) -> None:
        self._table = table
        self._known: dict[int, FloatArray] = {}

    def of(self, column: int, n_bins: int) -> FloatArray | None:
        """Return those of one class, or None where a pass over the table is not worth while."""
        if n_bins not in self._known and self._are_worth_while(n_bins):
            self._known[n_bins] = self._table.bin_sums(n_bins)
        sums = self._known.get(n_bins)
        return None if sums is None else sums[column]

    def _are_worth_while(self, n_bins: int) -> bool:
        table = self._table
        # Where each class has a number of bins of its own, so would it have a pass.
        return (
            len(self._known) < _MOST_KEPT
            and table.w is None
            and not table.is_soft
            and passes.is_table_worth_while(table.prob, 4 * table.n_classes * n_bins)
        )


class ClassSample(Sample):
    """The problem "is it this class?", whose column is copied once its rows are looked at."""

    _table: ClassTable
    _column: int
    _tile: Callable[[int], AnyArray]
    _sums: _SumsOfClasses

    def __init__(
        self,
        table: ClassTable,
        column: int,
        tile: Callable[[int], AnyArray],
        sums: _SumsOfClasses,
    ) -> None:
        self.__dict__.update(w=table.w, _table=table, _column=column, _tile=tile, _sums=sums)

    def __reduce__(self) -> tuple[type[Sample], tuple[Any, ...]]:
        """Leave for another process as the rows alone."""
        return Sample, (self.y, self.p, self.w, self.lowest)

    @cached_property
    def p(self) -> AnyArray:
        """The column of the class."""
        start = self._column - self._column % _TILE_COLUMNS
        column: AnyArray = self._tile(start)[self._column - start]
        return column

    @cached_property
    def y(self) -> AnyArray:
        """Whether it is the class."""
        return self._table.outcomes_of(self._column)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self._table.prob)

    def _uniform_sums(self, bins: UniformBins) -> FloatArray | None:
        sums = self._sums.of(self._column, bins.n_bins)
        return super()._uniform_sums(bins) if sums is None else sums


def _pick(table: AnyArray, column: Index) -> AnyArray:
    return np.take_along_axis(table, column[:, None], axis=1)[:, 0]
