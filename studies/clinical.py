"""Coverage of the intervals of `clinical_summary`, and of prediction intervals for new centres.

Six populations, two of them calibrated, and samples of 200, 1000 and 10 000 rows: how often the
interval of each measure holds its population value. And centres whose O:E, intercept and slope
vary: how often the prediction interval of `heterogeneity` holds those of one more centre.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from scipy.special import expit

import calibrant as cb
from calibrant.data.classes import one_problem
from calibrant.data.problem import Problem
from calibrant.datasets import SCENARIOS, simulate
from calibrant.datasets.scenarios import LogitNormalScores
from calibrant.inference.fitted_curve import FittedCurve
from calibrant.inference.slope_tests import LogisticRecalibration, relative_logits
from studies.frame import Part, Report, Row, Study, Tables, grid, page

NAME = "clinical"

MEASURES = {
    "o_e": "O:E",
    "intercept": "intercept",
    "slope": "slope",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "eci": "ECI",
    "brier": "Brier",
    "scaled_brier": "scaled Brier",
    "c_statistic": "C",
}
POPULATIONS = {
    **{name: SCENARIOS[name] for name in ("perfect", "overconfident", "underconfident")},
    **{name: SCENARIOS[name] for name in ("shifted", "sinusoidal")},
    "low_risk": replace(SCENARIOS["perfect"], name="low_risk", scores=LogitNormalScores(-1.5, 1.5)),
}
SIZES = (200, 1000, 10_000)
_EXACT, _CURVE = ("o_e", "intercept", "slope"), ("ici", "e50", "e90")
CENTRES = (8, 20, 50)
LEVEL = 0.95
# Rows in a centre, and how much centres differ: standard deviations of intercept and slope.
_ROWS, _SPREAD = (100, 400), (0.3, 0.15)
_KINDS: tuple[Literal["integrated", "t"], ...] = ("integrated", "t")
# What floating-point sums of a population may lack.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Block:
    """A block of repetitions: how often either end of an interval was right, and its width."""

    population: str
    n: int
    block: int
    measure: str
    truth: float
    repetitions: int
    covered: int
    low_right: int
    high_right: int
    width: float


@dataclass(frozen=True)
class CentreBlock:
    """A block of repetitions: how often prediction intervals of one kind held a new centre."""

    n_centres: int
    block: int
    prediction: str
    measure: str
    repetitions: int
    covered: int
    width: float


def parts(quick: bool) -> list[Part]:
    """List the blocks to measure."""
    n_blocks, sizes, repetitions = (1, SIZES[:1], 40) if quick else (10, SIZES, 100)
    cells = [(name, n, b) for b in range(n_blocks) for n in sizes for name in POPULATIONS]
    # Of a set of centres there are as many fits as centres: half as many sets.
    half = -(-n_blocks // 2)
    centres = [(k, b) for b in range(half) for k in (CENTRES[:1] if quick else CENTRES)]
    return [
        Part("summaries", Block, cells, partial(measured, repetitions=repetitions)),
        Part("centres", CentreBlock, centres, partial(predicted, repetitions=repetitions)),
    ]


@lru_cache
def truth(name: str) -> dict[str, float]:
    """Return the population values, by quadrature."""
    population = POPULATIONS[name]
    p, mass = population.quadrature()
    q = population.outcome_probability(p)
    problem = one_problem(q, p, mass, None, None, None)
    curve, fit = FittedCurve.of(problem, "loess"), _recalibration(problem)
    base, brier = mass @ q, mass @ (q * (1 - q) + (q - p) ** 2)
    lower = np.cumsum(mass * (1 - q)) - mass * (1 - q) / 2
    found: dict[str, Any] = {
        "o_e": base / (mass @ p),
        "intercept": fit.intercept,
        "slope": fit.slope,
        "ici": curve.mean(np.abs(curve.deviation)),
        "eci": curve.mean(curve.deviation**2) / (mass @ (base - p) ** 2),
        "brier": brier,
        "scaled_brier": 1 - brier / (base * (1 - base)),
        "c_statistic": (mass * q) @ lower / (base * (1 - base)),
    }
    found |= {"e50": curve.quantile(0.5), "e90": curve.quantile(0.9), "emax": curve.quantile(1.0)}
    return {measure: float(found[measure]) for measure in MEASURES}


def _recalibration(problem: Problem) -> LogisticRecalibration:
    pooled = problem.rows.pooled.inner
    return LogisticRecalibration.of(pooled, relative_logits(pooled))


def measured(name: str, n: int, block: int, *, repetitions: int) -> Iterator[Block]:
    """Measure one block of samples of one population."""
    exact = np.array([*truth(name).values()])
    ends = np.empty((repetitions, len(MEASURES), 2))
    for repetition in range(repetitions):
        rng = np.random.default_rng([[*POPULATIONS].index(name), n, block, repetition])
        y, p = simulate(POPULATIONS[name], n, rng=rng)
        found = cb.clinical_summary(y, p, level=LEVEL, n_resamples=300, rng=repetition)
        ends[repetition] = [(getattr(found, one).low, getattr(found, one).high) for one in MEASURES]
    low, high = ends[..., 0] <= exact + _ROUNDING, ends[..., 1] >= exact - _ROUNDING
    for i, measure in enumerate(MEASURES):
        yield Block(
            *(name, n, block, measure, exact[i], repetitions),
            covered=int(np.sum(low[:, i] & high[:, i])),
            low_right=int(low[:, i].sum()),
            high_right=int(high[:, i].sum()),
            width=float(np.median(ends[:, i, 1] - ends[:, i, 0])),
        )


def predicted(n_centres: int, block: int, *, repetitions: int) -> Iterator[CentreBlock]:
    """Measure one block of sets of centres; logit q = a + b logit p, a and b vary."""
    inside, widths = np.zeros((2, repetitions, len(_KINDS), 3))
    for repetition in range(repetitions):
        rng = np.random.default_rng([n_centres, block, repetition])
        sizes = rng.integers(*_ROWS, n_centres)
        centre = np.repeat(np.arange(n_centres), sizes)
        a, b = rng.normal((0.1, 0.9), _SPREAD, (n_centres + 1, 2)).T
        x = rng.normal(-1.0, 1.5, len(centre))
        y = rng.random(len(centre)) < expit(a[centre] + b[centre] * x)
        new_centre = _new_centre(a[-1], b[-1])
        for j, kind in enumerate(_KINDS):
            found = cb.heterogeneity(y, expit(x), centre, prediction=kind, level=LEVEL)
            for i, (measure, new) in enumerate(new_centre.items()):
                one = getattr(found, measure)
                inside[repetition, j, i] = one.prediction_low <= new <= one.prediction_high
                widths[repetition, j, i] = one.prediction_high - one.prediction_low
    for j, kind in enumerate(_KINDS):
        for i, measure in enumerate(_EXACT):
            covered, width = int(inside[:, j, i].sum()), float(np.median(widths[:, j, i]))
            yield CentreBlock(n_centres, block, kind, measure, repetitions, covered, width)


def _new_centre(a: float, b: float) -> dict[str, float]:
    """Return O:E, intercept and slope of the population of a centre."""
    p, mass = LogitNormalScores(-1.0, 1.5).quadrature(np.array([]))
    q = expit(a + b * np.log(p / (1 - p)))
    fit = _recalibration(one_problem(q, p, mass, None, None, None))
    return {"o_e": float(mass @ q / (mass @ p)), "intercept": fit.intercept, "slope": b}


# The page.


def report(tables: Tables) -> Report:
    """Set coverage in one table per size, and that of new centres in another."""
    pooled = _pooled(tables["summaries"], ("population", "n", "measure"))
    centres = _pooled(tables["centres"], ("n_centres", "prediction", "measure"))
    return Report(text=_text(pooled, centres), tables={"pooled": pooled, "pooled_centres": centres})


def _pooled(blocks: Sequence[Row], by: Sequence[str]) -> list[Row]:
    """Make one row of all blocks of a cell: sums of counts, means of medians."""
    cells: dict[tuple[object, ...], list[Row]] = {}
    for block in blocks:
        cells.setdefault(tuple(getattr(block, name) for name in by), []).append(block)
    counts = ("repetitions", "covered", "low_right", "high_right")
    pooled = []
    for own in cells.values():
        names = [name for name in counts if hasattr(own[0], name)]
        sums = {name: sum(getattr(one, name) for one in own) for name in names}
        width = float(np.mean([one.width for one in own]))
        pooled.append(replace(own[0], block=0, width=width, **sums))
    return pooled


def _fewest(rows: Iterable[Row]) -> int:
    return min(int(row.repetitions) for row in rows)


def _error(repetitions: int) -> str:
    """Return the standard error of a coverage of the nominal level, in percent."""
    return f"{100 * np.sqrt(LEVEL * (1 - LEVEL) / repetitions):.1f}"


def _coverage(row: Row) -> str:
    return f"{100 * row.covered / row.repetitions:.1f}"


def _text(pooled: Sequence[Row], centres: Sequence[Row]) -> str:
    cells: Mapping[tuple[str, int, str], Row] = {
        (row.population, row.n, row.measure): row for row in pooled
    }
    populations = "\n".join(f"- **{name}**: {one.formula}" for name, one in POPULATIONS.items())
    sections = []
    for n in dict.fromkeys(row.n for row in pooled):
        rows = [
            [name, *(_coverage(cells[name, n, one]) for one in MEASURES)]
            for name in POPULATIONS
            if (name, n, "o_e") in cells
        ]
        sections.append(f"### n = {n}\n\n{grid(['', *MEASURES.values()], rows)}")
    repetitions = {one: _fewest(row for row in pooled if row.measure == one) for one in MEASURES}
    usual = max(repetitions.values())
    fewer = {MEASURES[one]: n for one, n in repetitions.items() if n < usual}
    less = f" ({', '.join(f'{name}: {n}' for name, n in fewer.items())})" if fewer else ""
    found = {(row.n_centres, row.prediction, row.measure): row for row in centres}
    of_centres = [
        [str(k), *(_coverage(found[k, kind, one]) for kind in _KINDS for one in _EXACT)]
        for k in dict.fromkeys(row.n_centres for row in centres)
    ]
    least = min(row.covered / row.repetitions for row in pooled if row.measure in _EXACT)
    most = max(row.covered / row.repetitions for row in pooled if row.measure in _EXACT)
    curve = min(row.covered / row.repetitions for row in pooled if row.measure in _CURVE)
    return page(
        "# Intervals of the clinical table",
        f"How often the {LEVEL:.0%} intervals of `clinical_summary` hold the population value, in "
        f"percent of {usual} samples{less}: a coverage of 95% is measured with a standard error of "
        f"{_error(usual)}{f' ({_error(min(fewer.values()))})' if fewer else ''}. "
        "O:E, intercept and slope: "
        f"{100 * least:.1f} to {100 * most:.1f}%. ICI, E50 and E90: {100 * curve:.1f}% or more, at "
        "perfect calibration too, where a percentile bootstrap interval of ICI never holds 0.",
        "Populations:",
        populations,
        *sections,
        "## New centres",
        "How often the prediction interval of `heterogeneity` holds the value of one more centre. "
        f"Centres have {_ROWS[0]} to {_ROWS[1]} rows; intercepts vary with standard deviation "
        f"{_SPREAD[0]}, slopes with {_SPREAD[1]}.",
        'The usual interval, `prediction="t"`, takes the standard deviation of the centres for '
        "known; the default allows for its uncertainty.",
        grid(
            ["centres", *(f"{MEASURES[one]}, {kind}" for kind in _KINDS for one in _EXACT)],
            of_centres,
        ),
    )


STUDY = Study(NAME, parts=parts, report=report)
