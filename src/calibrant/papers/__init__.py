"""The experiments of the papers behind calibrant, each run by one call.

``run(name)`` measures what a paper measured and writes, under `out`,

- ``NAME.md``, a page that sets published and reproduced numbers side by side,
- ``NAME/*.csv``, the tables, and ``NAME/*.png``, the figures.

What has been measured is kept, so that a run that was interrupted goes on where it stopped. Seeds
are fixed. To add a paper see `calibrant.papers._frame`.
"""

from __future__ import annotations

import os
from importlib import import_module

from calibrant.checks import check_choice
from calibrant.papers._frame import Paper, PaperRun, Progress
from calibrant.papers._running import run_paper

__all__ = ["PaperRun", "names", "run"]

# Each is a module here, with _ for -, that has a PAPER.
_NAMES = ("smece", "ecce", "coverage", "smooth-ece", "logit-smoothing")


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
