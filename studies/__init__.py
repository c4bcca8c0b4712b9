"""The experiments of the papers behind calibrant, and studies of its intervals and tests.

    python -m studies                                          # names and titles
    python -m studies smooth-ece --quick --out build/papers    # one study, in seconds

``run(name)`` measures what a paper measured and writes, under `out`,

- ``NAME.md``, a page that sets published and reproduced numbers side by side,
- ``NAME/*.csv``, the tables, and ``NAME/*.png``, the figures.

What has been measured is kept, so that an interrupted run continues where it stopped. Seeds are
fixed. To add a study see `studies.frame`. Studies are not part of the installed package.
"""

from __future__ import annotations

import os
from importlib import import_module

from studies.frame import OUT, Progress, Study, StudyRun, run_study

__all__ = ["OUT", "TITLES", "StudyRun", "run"]

# Each is a module or package here, with _ for -, that has a STUDY.
TITLES = {
    "soft-label-ece": 'Leznik, "Soft Mean Expected Calibration Error" (2026)',
    "ecce": 'Arrieta-Ibarra et al., "Metrics of Calibration" (2022)',
    "smooth-ece": 'Błasiok and Nakkiran, "Smooth ECE" (2023)',
    "logit-smoothing": 'Chidambaram et al., "How Flawed Is ECE?" (2024)',
    "estimating-ece": 'Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021)',
    "verdict": "What the verdict of calibrant.assess says, and how often it is right",
    "clinical": "Coverage of the intervals of calibrant.clinical_summary and heterogeneity",
    "coverage": "Coverage and width of the intervals of calibrant.estimate",
    "power": "Size and power of the tests of calibration",
    "curve": "Accuracy and coverage of the smooth reliability curve",
}


def run(
    name: str,
    *,
    out: str | os.PathLike[str] = OUT,
    quick: bool = False,
    progress: Progress | None = None,
) -> StudyRun:
    """Run a study, or what is left of it, and write page, tables and figures.

    Parameters
    ----------
    name
        A key of `TITLES`.
    out
        The folder to write into; made if it is not there.
    quick
        Measure far less, in seconds, and write into the folder ``quick`` of `out`.
    progress
        Called with the name of a table, the number of its cells measured, and the number of all.
        By default a bar on a terminal, and nothing elsewhere.

    Returns
    -------
    StudyRun
        The tables, and the paths of everything written.
    """
    if name not in TITLES:
        raise ValueError(f"name must be one of {', '.join(TITLES)}; got {name!r}")
    study: Study = import_module(f"studies.{name.replace('-', '_')}").STUDY
    return run_study(study, out, quick, progress)
