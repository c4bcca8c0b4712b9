"""Notes on the data: what a reader should know before trusting any number."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.problem import Atoms, Problem

# Below these, intervals are wide and asymptotic laws are far off.
_FEW_ROWS = 100
_FEW_EVENTS = 15
_FEW_SCORES = 20


def data_notes(problem: Problem) -> Iterator[str]:
    """Yield what is unusual about the rows, one sentence each."""
    steps = problem.steps
    if problem.n < _FEW_ROWS:
        yield f"There {'is' if problem.n == 1 else 'are'} only {_count(problem.n, 'row')}."
    yield from _rarities(steps)
    if len(steps.score) < _FEW_SCORES:
        yield f"Scores take {_count(len(steps.score), 'distinct value')}."
    if problem.is_exact:
        yield from _certainties(steps)
    else:
        yield "Made from a sketch: rows of nearly equal score were pooled."
    if problem.is_soft:
        yield "Labels are soft: their noise is known from residuals alone, and there is no test."
    if problem.is_weighted:
        rows = effective_rows(problem)
        yield f"Rows are weighted: they weigh as much as {rows:.0f} of equal weight."


def effective_rows(problem: Problem) -> float:
    """Return how many rows of equal weight these are worth: W^2 / sum w^2."""
    return problem.weight**2 / float(problem.steps.weight_squared.sum())


def is_refuted(problem: Problem) -> bool:
    """Tell whether a prediction of 0 came true, or one of 1 did not."""
    if not problem.is_exact:
        return False
    certain, _ = _certain(problem.steps)
    return certain > 0


def _rarities(steps: Atoms) -> Iterator[str]:
    n = float(steps.rows.sum())
    ones = n * float(steps.true.sum() / steps.weight.sum())
    for outcome, rows in ((1, ones), (0, n - ones)):
        if rows <= 0:
            yield f"Every outcome is {1 - outcome}."
        elif rows < _FEW_EVENTS and n >= _FEW_ROWS:
            yield f"Outcome {outcome} is rare: about {_count(round(rows), 'row')} have it."


def _certainties(steps: Atoms) -> Iterator[str]:
    contradicted, certain = _certain(steps)
    if certain:
        yield (
            f"{_count(certain, 'prediction')} of exactly 0 or 1, and "
            f"{contradicted or 'none'} of them contradicted by the outcome."
        )


def _certain(steps: Atoms) -> tuple[int, int]:
    """Return how many predictions of 0 or 1 were contradicted, and how many there are."""
    ends = (steps.score == 0) | (steps.score == 1)
    wrong = abs(steps.residual[ends]) / steps.weight[ends]
    rows = steps.rows[ends]
    return round(float(rows @ wrong)), round(float(rows.sum()))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")
