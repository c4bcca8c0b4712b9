"""Notes on the data: what a reader should know before trusting any number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calibrant.problem import Pooled, Problem
from calibrant.results.formatting import counted

# Below these, intervals are wide and asymptotic distributions are far off.
_FEW_ROWS = 100
_FEW_EVENTS = 15
_FEW_SCORES = 20


class Certain(NamedTuple):
    """How many predictions are 0 or 1, and how many of them are contradicted by the outcome."""

    n: int
    contradicted: int

    @classmethod
    def of(cls, problem: Problem) -> Certain:
        """Count them; a sketch does not know: its outer cells hold nearly certain ones, too."""
        n = contradicted = 0
        if problem.is_exact:
            for p, y, _ in problem.rows.blocks():
                (ends,) = np.nonzero((p == 0) | (p == 1))
                n += len(ends)
                contradicted += int(np.count_nonzero(y[ends] != p[ends]))
        return cls(n, contradicted)


def data_notes(problem: Problem, certain: Certain) -> Iterator[str]:
    """Yield what is unusual about the rows, or about them pooled in a sketch."""
    pooled = problem.pooled
    if problem.n < _FEW_ROWS:
        yield f"There {'is' if problem.n == 1 else 'are'} only {counted(problem.n, 'row')}."
    yield from _rarities(pooled)
    if len(pooled.score) < _FEW_SCORES:
        yield f"Scores take {counted(len(pooled.score), 'distinct value')}."
    if certain.n:
        yield (
            f"{counted(certain.n, 'prediction')} of exactly 0 or 1, and "
            f"{certain.contradicted or 'none'} of them contradicted by the outcome."
        )
    if not problem.is_exact:
        yield "Made from a sketch: rows of nearly equal score were pooled."
    if problem.is_soft:
        yield "Labels are soft: their noise is known from residuals alone, and there is no test."
    if problem.is_weighted:
        worth = effective_rows(problem)
        yield f"Rows are weighted: they weigh as much as {worth:.0f} of equal weight."


def effective_rows(problem: Problem) -> float:
    """Return how many rows of equal weight these are worth: W^2 / sum w^2."""
    return problem.weight**2 / float(problem.pooled.weight_squared.sum())


def _rarities(pooled: Pooled) -> Iterator[str]:
    n = float(pooled.rows.sum())
    ones = n * float(pooled.true.sum() / pooled.weight.sum())
    for outcome, rows in ((1, ones), (0, n - ones)):
        if rows <= 0:
            yield f"Every outcome is {1 - outcome}."
        elif rows < _FEW_EVENTS and n >= _FEW_ROWS:
            yield f"Outcome {outcome} is rare: about {counted(round(rows), 'row')} have it."
