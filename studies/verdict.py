"""The verdict of calibrant.assess: whether it names the fault, and whether it answers right."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit

from calibrant import Sketch, Verdict
from calibrant.assessment.assess import Assessor, Settings
from calibrant.data.classes import one_problem
from studies.frame import FloatArray, Part, Report, Row, Study, Tables, grid, page

NAME = "verdict"

Curve = Callable[[FloatArray], FloatArray]
Rng = np.random.Generator

SIZES, REPETITIONS, RESAMPLES = (300, 3000, 30_000), 200, 200
# More where 5% are to be told from 8%.
REPETITIONS_CALIBRATED = 400
# So many rows are drawn into a sketch.
MANY_ROWS = 1_000_000
OPPOSITE = {
    "too high": "too low",
    "too low": "too high",
    "over-confident": "under-confident",
    "under-confident": "over-confident",
}


@dataclass(frozen=True)
class Population:
    """Scores, the probability of an event at each, and the names that fit what is wrong.

    `kind` is "binary", "confidence" (a predicted class out of four) or "soft"; with `half` one half
    of the rows is calibrated, whatever their score.
    """

    scores: tuple[float, float]
    curve: Curve
    names: tuple[str, ...]
    kind: str = "binary"
    half: bool = False

    def draw(self, n: int, rng: Rng) -> tuple[Any, Any]:
        """Return outcomes and predictions."""
        p = rng.beta(*self.scores, n)
        if self.kind == "confidence":
            p = 0.25 + 0.75 * p
        q = self.curve(p)
        if self.half:
            q = np.where(rng.random(n) < 0.5, q, p)
        if self.kind == "soft":
            return rng.beta(20 * q + 1e-9, 20 * (1 - q) + 1e-9), p
        right = rng.random(n) < q
        if self.kind == "binary":
            return right * 1, p
        # The class of column 0 has the score, the other three have equal parts of the rest.
        table = np.column_stack((p, *[(1 - p) / 3] * 3))
        return np.where(right, 0, 1), table


EVEN, SKEWED, RARE, U_SHAPED = (0.8, 0.9), (1.3, 3.5), (0.8, 25.0), (0.3, 0.3)


def _on_logits(intercept: float, slope: float, p: FloatArray) -> FloatArray:
    return np.asarray(expit(intercept + slope * logit(p)))


def _wave(size: float, cycles: float, p: FloatArray) -> FloatArray:
    return np.clip(p + size * np.sin(2 * np.pi * cycles * p), 0, 1)


def _shift(size: float, p: FloatArray) -> FloatArray:
    return np.clip(p + size, 0, 1)


def _same(p: FloatArray) -> FloatArray:
    return p


def _bad_bin(p: FloatArray) -> FloatArray:
    return np.where((p > 0.6) & (p < 0.7), p - 0.3, p)


def _logits(intercept: float, slope: float) -> Curve:
    return partial(_on_logits, intercept, slope)


HIGH, LOW, OVER, UNDER, MIXED = "too high", "too low", "over-confident", "under-confident", "mixed"
FAULTS = {
    "logit shift -0.4": Population(EVEN, _logits(-0.4, 1), (HIGH,)),
    "logit shift +0.4": Population(EVEN, _logits(0.4, 1), (LOW,)),
    "logit shift -0.4, skewed": Population(SKEWED, _logits(-0.4, 1), (HIGH,)),
    "logit shift +0.4, skewed": Population(SKEWED, _logits(0.4, 1), (LOW,)),
    "power 1.2": Population((1, 4), lambda p: p**1.2, (HIGH,)),
    "p - 0.05": Population(EVEN, partial(_shift, -0.05), (HIGH,)),
    "p + 0.05": Population(EVEN, partial(_shift, 0.05), (LOW,)),
    "slope 0.6": Population(EVEN, _logits(0, 0.6), (OVER,)),
    "slope 0.8": Population(EVEN, _logits(0, 0.8), (OVER,)),
    "slope 1.2": Population(EVEN, _logits(0, 1.2), (UNDER,)),
    "slope 0.6, skewed": Population(SKEWED, _logits(0, 0.6), (OVER, LOW)),
    "slope 0.8, skewed": Population(SKEWED, _logits(0, 0.8), (OVER, LOW)),
    "slope 1.2, skewed": Population(SKEWED, _logits(0, 1.2), (UNDER, HIGH)),
    "half of slope 0.4": Population(EVEN, _logits(0, 0.4), (OVER,), half=True),
    "half shifted by -0.8": Population(EVEN, _logits(-0.8, 1), (HIGH,), half=True),
    "0.08 sin(2 pi p)": Population(EVEN, partial(_wave, 0.08, 1), (OVER,)),
    "0.1 sin(4 pi p)": Population(EVEN, partial(_wave, 0.1, 2), (MIXED,)),
    "0.1 sin(6 pi p)": Population(EVEN, partial(_wave, 0.1, 3), (MIXED,)),
    "one bad bin": Population(EVEN, _bad_bin, (MIXED,)),
    "rare, doubled": Population(RARE, lambda p: np.minimum(2 * p, 1), (LOW,)),
    "rare, halved": Population(RARE, lambda p: p / 2, (HIGH,)),
    "confidence, slope 0.6": Population(EVEN, _logits(-0.3, 0.8), (OVER,), "confidence"),
    "confidence, shift +0.4": Population(EVEN, _logits(0.4, 1), (UNDER,), "confidence"),
    "soft, logit shift -0.4": Population(EVEN, _logits(-0.4, 1), (HIGH,), "soft"),
}
CALIBRATED = {
    "even": Population(EVEN, _same, ()),
    "skewed": Population(SKEWED, _same, ()),
    "U-shaped": Population(U_SHAPED, _same, ()),
    "rare": Population(RARE, _same, ()),
    "confidence": Population(EVEN, _same, (), "confidence"),
    "soft": Population(EVEN, _same, (), "soft"),
}


@dataclass(frozen=True)
class Named:
    """How often faults are detected and named in samples of one population.

    `right` counts headings with a name that fits, first or second; `opposite` those with its
    opposite.
    """

    population: str
    n: int
    repetitions: int
    detected: int
    right: int
    opposite: int
    most_common: str


def count_names(population: str, n: int, *, repetitions: int) -> Iterator[Named]:
    """Assess samples of a population and count what they are called."""
    drawn = FAULTS.get(population) or CALIBRATED[population]
    if repetitions == REPETITIONS and not drawn.names:
        repetitions = REPETITIONS_CALIBRATED
    rng = _generator(population, n)
    directions: Counter[str] = Counter()
    detected = right = opposite = 0
    for _ in range(repetitions):
        verdict = _verdict(drawn.draw(n, rng), drawn.kind, tolerance=1e-6, rng=rng)
        heading = verdict.heading.replace("wrong in places", "mixed")
        detected += verdict.detected
        directions[verdict.direction] += verdict.detected
        right += any(name in heading for name in drawn.names)
        opposite += any(OPPOSITE[name] in heading for name in drawn.names if name in OPPOSITE)
    ((most_common, _),) = directions.most_common(1)
    yield Named(population, n, repetitions, detected, right, opposite, most_common)


@dataclass(frozen=True)
class Answered:
    """How often the three answers to a tolerance of 0.01 are given, and are right."""

    error: float
    n: int
    repetitions: int
    within: int
    beyond: int
    right: int


def count_answers(error: float, n: int, *, repetitions: int) -> Iterator[Answered]:
    """Assess samples of predictions too high by a constant error, and count the answers."""
    rng, answers = _generator(str(error), n), Counter[str]()
    for _ in range(repetitions):
        p = 0.1 + 0.8 * rng.random(n)
        rows = (rng.random(n) < p - error, p)
        given = (Sketch().update(*rows),) if n >= MANY_ROWS else rows
        answers[_verdict(given, "binary", tolerance=0.01, rng=rng).answer] += 1
    within, beyond = answers["within tolerance"], answers["beyond tolerance"]
    right = within if error <= 0.01 else beyond
    yield Answered(error, n, repetitions, within, beyond, right)


def _verdict(rows: tuple[Any, ...], kind: str, *, tolerance: float, rng: Rng) -> Verdict:
    """Return the verdict of an assessment, without its curves, bands and further intervals.

    Each sample has resamples of its own: with those of one seed for all, a test by 200 resamples
    rejects a population 2 to 8% of the time instead of 5%.
    """
    settings = Settings(
        level=0.95,
        tolerance=tolerance,
        n_resamples=RESAMPLES,
        seed=None,
        n_bins=15,
        problem="confidence" if kind == "confidence" else "binary",
        version="",
    )
    y_true, y_prob = rows if len(rows) == 2 else (*rows, None)
    problem = one_problem(y_true, y_prob, None, None, None, None)
    return Assessor(problem, settings, rng, None).verdict()


def _generator(name: str, n: int) -> Rng:
    return np.random.default_rng([zlib.crc32(name.encode()), n])


def parts(quick: bool) -> Sequence[Part]:
    """Return the tables to measure."""
    repetitions, sizes = (10, (300, 3000)) if quick else (REPETITIONS, SIZES)
    names = list(FAULTS)[:: 6 if quick else 1] + list(CALIBRATED)[:: 3 if quick else 1]
    named = [(name, n) for n in sizes for name in names]
    of_answers = (200, 20_000) if quick else (200, 20_000, 10_000_000)
    answered = [(error, n) for n in of_answers for error in (0.0, 0.005, 0.03)]
    return [
        Part("named", Named, named, partial(count_names, repetitions=repetitions)),
        Part("answered", Answered, answered, partial(count_answers, repetitions=repetitions)),
    ]


_INTRODUCTION = """
# What the verdict says

How often `calibrant.assess` names what is wrong, in samples from populations whose fault is known.
Made by `python -m studies verdict`, {repetitions} samples of each. Each cell has the percentage of
samples in which miscalibration was detected and, of those, the percentage whose heading has the
right name, first or second; where both a level and a spread are wrong, either is right.
"""
_CALIBRATED = """
## Calibrated predictions

The percentage of samples in which miscalibration was detected, and so anything was named: 5% are
expected, with a standard error of 1.1 in {repetitions} samples.
"""
_ANSWERS = """
## The three answers

Predictions too high by a constant error, and a tolerance of 0.01: the percentage of samples with
the answers within tolerance and beyond tolerance, and with a wrong one of the two; in the others
the verdict cannot tell. An error of 0.005 is within the tolerance, one of 0.03 beyond it. Answers
rest on a 95% interval, so that at most 2.5% are expected to be wrong.
"""


def report(tables: Tables) -> Report:
    """Return the page."""
    return Report(
        page(
            _INTRODUCTION.format(repetitions=tables["named"][0].repetitions),
            _grid(tables["named"], FAULTS, _named),
            _opposites(tables["named"]),
            _CALIBRATED.format(repetitions=tables["named"][-1].repetitions),
            _grid(tables["named"], CALIBRATED, lambda row: f"{_percent(row.detected, row):.1f}"),
            _ANSWERS,
            grid(
                ["error", "n", "samples", "within", "beyond", "wrong"],
                [_answers(row) for row in tables["answered"]],
            ),
        )
    )


def _grid(rows: Sequence[Row], names: dict[str, Population], cell: Callable[[Row], str]) -> str:
    known = {(row.population, row.n): cell(row) for row in rows if row.population in names}
    sizes = sorted({n for _, n in known})
    kept = dict.fromkeys(name for name, _ in known)
    lines = [[name, *(known.get((name, n), "") for n in sizes)] for name in kept]
    return grid(["population", *(f"n = {n}" for n in sizes)], lines)


def _named(row: Row) -> str:
    right = f"{100 * row.right / row.detected:.0f}" if row.detected else "–"
    return f"{_percent(row.detected, row):.0f} · {right}"


def _opposites(rows: Sequence[Row]) -> str:
    worst = max(rows, key=lambda row: row.opposite)
    if not worst.opposite:
        return "No sample has the opposite of the right name in its heading."
    share = f"{_percent(worst.opposite, worst):.1f}%"
    return f"The opposite of the right name is most frequent for {worst.population}, {share}."


def _answers(row: Row) -> list[str]:
    counts = (row.within, row.beyond, row.within + row.beyond - row.right)
    percentages = (f"{_percent(count, row):.1f}" for count in counts)
    return [f"{row.error:g}", str(row.n), str(row.repetitions), *percentages]


def _percent(count: int, row: Row) -> float:
    return 100 * count / int(row.repetitions)


STUDY = Study(NAME, parts=parts, report=report)
