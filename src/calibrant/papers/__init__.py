"""The experiments of the papers behind calibrant, each run by one call.

``run(name)`` measures what a paper measured and writes, under `out`,

- ``NAME.md``, a page that sets published and reproduced numbers side by side,
- ``NAME/*.csv``, the tables, and ``NAME/*.png``, the figures.

What has been measured is kept, so that a run that was interrupted goes on where it stopped. Seeds
are fixed. To add a paper see `calibrant.papers._frame`.

``recommend(y_true, y_prob)`` says which estimator of the calibration error was nearest to the truth
on data of that size and shape.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant.checks import check_choice
from calibrant.papers._frame import Paper, PaperRun, Progress
from calibrant.papers._running import run_paper

if TYPE_CHECKING:  # what type checkers and editors see
    from calibrant.papers.recommendation import Recommendation, recommend

__all__ = ["PaperRun", "Recommendation", "names", "recommend", "run"]

# Each is a module here, with _ for -, that has a PAPER.
_NAMES = ("smece", "ecce", "coverage", "smooth-ece", "logit-smoothing", "estimating-ece")


def names() -> tuple[str, ...]:
    """Return the names that :func:`run` takes.

    Examples
    --------
    >>> "smece" in names()
    True
    """
    return _NAMES


def run(
    name: str,
    *,
    out: str | os.PathLike[str] = "papers",
    quick: bool = False,
    progress: Progress | None = None,
) -> PaperRun:
    """Run a paper's experiments, or what is left of them, and write page, tables and figures.

    Parameters
    ----------
    name
        One of :func:`names`.
    out
        The folder to write into; made if it is not there.
    quick
        Measure far less, in seconds, and write into the folder ``quick`` of `out`.
    progress
        Called with the name of a table, how many of its cells are measured, and how many there
        are. By default a bar on a terminal, and nothing elsewhere.

    Returns
    -------
    PaperRun
        The tables, and the paths of everything written.
    """
    check_choice(name, "name", _NAMES)
    paper: Paper = import_module(f"calibrant.papers.{name.replace('-', '_')}").PAPER
    return run_paper(paper, out, quick, progress)


def __getattr__(name: str) -> Any:
    # Not loaded before it is asked for: it needs scipy.
    if name not in ("Recommendation", "recommend"):
        raise AttributeError(f"module 'calibrant.papers' has no attribute {name!r}")
    return getattr(import_module("calibrant.papers.recommendation"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
