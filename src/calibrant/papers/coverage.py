"""How often intervals hold the population value, and how wide they are.

Scenarios with a known population, sizes from 50 to 100 000, six errors and three kinds of interval:

==========  ===================================================================================
uniform     `calibrant.estimate` as it is
percentile  the naive bootstrap, ``method="percentile"``
relplot     as relplot makes them: value ± the longer arm of the percentile interval (smECE only)
==========  ===================================================================================

Repetitions come in blocks, which go round all cells of the study. The whole of it takes many
hours; `gather` makes a page of what has been measured so far, in any number of files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant.arrays import FloatArray
from calibrant.datasets import SCENARIOS, simulate
from calibrant.papers._coverage_report import report
from calibrant.papers._csv import read_csv
from calibrant.papers._frame import Paper, PaperRun, Part
from calibrant.papers._running import write_report

MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "smooth_ece": ("smooth_ece", {}),
    "ece": ("ece", {}),
    "ece l2": ("ece", {"norm": "l2"}),
    "ecce_mad": ("ecce_mad", {}),
    "ecce_r": ("ecce_r", {}),
    "logit_smoothed_ece": ("logit_smoothed_ece", {}),
}
NAMES = tuple(name for name in SCENARIOS if name != "skewed")
SIZES = (50, 200, 1000, 10_000, 100_000)
METHODS = ("uniform", "percentile", "relplot")
# Of 50 repetitions each.
BLOCKS = 40
LEVEL = 0.95
# What floating-point sums of a population may lack.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Block:
    """What a block of repetitions showed: counts, seconds in all, and three medians."""

    scenario: str
    n: int
    measure: str
    method: str
    block: int
    truth: float
    repetitions: int
    covered: int
    low_right: int
    high_right: int
    seconds: float
    width: float
    high: float
    centre: float


def parts(quick: bool) -> list[Part]:
    """List the blocks to measure."""
    if quick:
        cells = [
            ("perfect", 200, "smooth_ece", "uniform", 0),
            ("perfect", 200, "smooth_ece", "percentile", 0),
            ("perfect", 200, "smooth_ece", "relplot", 0),
            ("perfect", 200, "ece", "uniform", 0),
            ("perfect", 200, "ece", "percentile", 0),
            ("overconfident", 200, "smooth_ece", "uniform", 0),
            ("overconfident", 200, "smooth_ece", "percentile", 0),
        ]
        return [Part("blocks", Block, cells, partial(measured, repetitions=60, n_resamples=100))]
    cells = [
        (scenario, n, measure, method, block)
        for block in range(BLOCKS)
        for n in SIZES
        for scenario in NAMES
        for measure in MEASURES
        for method in METHODS
        if method != "relplot" or measure == "smooth_ece"
    ]
    return [Part("blocks", Block, cells, partial(measured, repetitions=50, n_resamples=300))]


@lru_cache
def truth(scenario: str, measure: str) -> float:
    """Return the population value: the measure of points that stand for the population."""
    name, options = MEASURES[measure]
    population = SCENARIOS[scenario]
    points, mass = population.quadrature(np.arange(16) / 15)
    chance = population.outcome_probability(points)
    return float(getattr(cb, name)(chance, points, sample_weight=mass, **options))


def measured(
    scenario: str,
    n: int,
    measure: str,
    method: Literal["uniform", "percentile", "relplot"],
    block: int,
    *,
    repetitions: int,
    n_resamples: int,
) -> Iterator[Block]:
    """Measure one block."""
    exact = truth(scenario, measure)
    start = time.perf_counter()
    asked: Literal["uniform", "percentile"] = "uniform" if method == "uniform" else "percentile"
    low, high, centre, value = estimates(
        scenario, n, measure, asked, block, repetitions, n_resamples
    )
    if method == "relplot":
        arm = np.maximum(high - value, value - low)
        low, high = value - arm, value + arm
    low_right, high_right = low <= exact + ROUNDING, high >= exact - ROUNDING
    yield Block(
        *(scenario, n, measure, method, block, exact, repetitions),
        covered=int(np.sum(low_right & high_right)),
        low_right=int(low_right.sum()),
        high_right=int(high_right.sum()),
        seconds=round(time.perf_counter() - start, 3),
        width=float(np.median(high - low)),
        high=float(np.median(high)),
        centre=float(np.median(centre)),
    )


# The interval of relplot is made of the one before it.
@lru_cache(1)
def estimates(
    scenario: str,
    n: int,
    measure: str,
    method: Literal["uniform", "percentile"],
    block: int,
    repetitions: int,
    n_resamples: int,
) -> FloatArray:
    """Return low, high, bias-corrected value and value of each sample of a block."""
    name, options = MEASURES[measure]
    found = []
    for repetition in range(repetitions):
        # All measures see the same samples; scenarios and sizes do not share theirs.
        rng = np.random.default_rng([NAMES.index(scenario), n, block, repetition])
        drawn = simulate(scenario, n, rng=rng)
        one = cb.estimate(
            *(name, drawn.y_true, drawn.y_prob),
            level=LEVEL,
            method=method,
            n_resamples=n_resamples,
            rng=repetition,
            **options,
        )
        found.append((one.low, one.high, one.bias_corrected, one.value))
    return np.array(found).T


def gather(
    files: Iterable[str | os.PathLike[str]], *, out: str | os.PathLike[str] = "papers"
) -> PaperRun:
    """Write the page of blocks in any number of files, without measuring any.

    The files have the columns of ``blocks.csv``, or of ``pooled.csv``, which holds one line a cell
    of the study. A block that is in several files counts once.
    """
    blocks = {
        (one.scenario, one.n, one.measure, one.method, one.block): one
        for file in files
        for one in read_csv(Path(file), Block)
    }
    return write_report(PAPER, {"blocks": list(blocks.values())}, Path(out))


PAPER = Paper("coverage", parts=parts, report=report)
