"""How often the tests of calibration reject: size, power, and rows that depend on each other.

Size: on calibrated populations a test at 5% should reject 5% of samples. Power: on populations that
are miscalibrated in different ways, as many as possible. Clusters: on calibrated samples of 50
clusters with intraclass correlation 0.2, 5% again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from scipy.special import expit, logit

import calibrant as cb
from calibrant.data.classes import one_problem
from calibrant.inference.joint_test import PARTS, Statistics, minimum_rank
from calibrant.inference.null_simulation import NullCells
from studies.frame import AnyArray, FloatArray, Part, Report, Study, Tables, grid, page

NAME = "power"
ALPHA = 0.05
N_RESAMPLES = 999
# So many samples of outcomes share their scores and the resamples to which they are compared.
N_SHARED = 20
N_CLUSTERS, CLUSTERED_ROWS, CORRELATION, N_CLUSTER_RESAMPLES = 50, 1000, 0.2, 199
Generator = np.random.Generator
Scores = Callable[[Generator, int], FloatArray]
Compare = Callable[[AnyArray, FloatArray, FloatArray | None], dict[str, float]]


@dataclass(frozen=True)
class Rejections:
    """How often a test rejects samples of a population."""

    population: str
    n: int
    test: str
    repetitions: int
    rejected: int


@dataclass(frozen=True)
class Population:
    """Scores, the probability of an event given the score, and weights if there are any."""

    scores: Scores
    truth: Callable[[FloatArray], FloatArray] = lambda p: p
    weights: Scores | None = None


def uniform(rng: Generator, n: int) -> FloatArray:
    """Draw scores uniform on (0, 1)."""
    return rng.random(n)


def stated(rng: Generator, n: int) -> FloatArray:
    """Draw multiples of 0.05, of which 0.95 and 1 make 60%."""
    return np.where(rng.random(n) < 0.6, rng.choice([0.95, 1.0], n), rng.integers(0, 19, n) / 20)


def tenths(rng: Generator, n: int) -> FloatArray:
    """Draw multiples of 0.1, from 0 to 1."""
    return rng.integers(0, 11, n) / 10


def _beta(a: float, b: float) -> Scores:
    return lambda rng, n: rng.beta(a, b, n)


def _clipped(change: Callable[[FloatArray], AnyArray]) -> Callable[[FloatArray], FloatArray]:
    return lambda p: np.clip(p + change(p), 0.0, 1.0)


CALIBRATED = {
    "uniform": Population(uniform),
    "Beta(1/2, 1/2)": Population(_beta(0.5, 0.5)),
    "Beta(1, 3)": Population(_beta(1, 3)),
    "tenths, 0 and 1 among them": Population(tenths),
    "stated confidences": Population(stated),
    "rare events, Beta(1, 99)": Population(_beta(1, 99)),
    "rare events, Beta(1, 999)": Population(_beta(1, 999)),
    "near 1/2, within 0.005": Population(lambda rng, n: rng.uniform(0.495, 0.505, n)),
    "confident, 1 - Beta(0.3, 3) / 2": Population(lambda rng, n: 1 - rng.beta(0.3, 3, n) / 2),
    "one score, 0.3": Population(lambda rng, n: np.full(n, 0.3)),
    "uniform, exponential weights": Population(
        uniform, weights=lambda rng, n: rng.exponential(1, n)
    ),
    "tenths, weights 1 to 20": Population(
        tenths, weights=lambda rng, n: rng.choice([1.0, 2.0, 5.0, 20.0], n)
    ),
}
SIZES = {
    "uniform": (30, 100, 1000, 10_000),
    "Beta(1/2, 1/2)": (1000,),
    "Beta(1, 3)": (100_000,),
    "tenths, 0 and 1 among them": (100, 1000, 100_000),
    "stated confidences": (1000,),
    "rare events, Beta(1, 99)": (300, 1000),
    "rare events, Beta(1, 999)": (20_000,),
    "near 1/2, within 0.005": (1000,),
    "confident, 1 - Beta(0.3, 3) / 2": (5000,),
    "one score, 0.3": (1000,),
    "uniform, exponential weights": (1000, 20_000),
    "tenths, weights 1 to 20": (500,),
}
ALTERNATIVES = {
    "over-confident: sigmoid(0.8 logit p)": Population(uniform, lambda p: expit(0.8 * logit(p))),
    "under-confident: sigmoid(1.25 logit p)": Population(uniform, lambda p: expit(1.25 * logit(p))),
    "shifted: p - 0.03": Population(uniform, _clipped(lambda p: -0.03 + 0 * p)),
    "p + 0.1 sin(6 pi p)": Population(uniform, _clipped(lambda p: 0.1 * np.sin(6 * np.pi * p))),
    "p + 0.1 sin(40 pi p)": Population(uniform, _clipped(lambda p: 0.1 * np.sin(40 * np.pi * p))),
    "bump: p + 0.4 within 0.015 of 1/2": Population(
        uniform, _clipped(lambda p: 0.4 * (np.abs(p - 0.5) < 0.015))
    ),
    "bump: p + 0.4 within 0.01 of 1/2": Population(
        uniform, _clipped(lambda p: 0.4 * (np.abs(p - 0.5) < 0.01))
    ),
    "top 2%: 0.5 above 0.98": Population(uniform, lambda p: np.where(p > 0.98, 0.5, p)),
    "stated confidences, 0.97 at 1": Population(stated, lambda p: np.where(p == 1, 0.97, p)),
    "stated confidences, 0.85 at 1": Population(stated, lambda p: np.where(p == 1, 0.85, p)),
}


# What the columns of other tests are called.
OTHERS = {
    "cumulative_test": "cumulative",
    "calibration_slope_test": "slope",
    "spiegelhalter_test": "Spiegelhalter",
}


def others(y: AnyArray, p: FloatArray, w: FloatArray | None) -> dict[str, float]:
    """Return the P-values of the other tests, those that the data allow."""
    found = {"cumulative_test": cb.cumulative_test(y, p, sample_weight=w).p_value}
    for test in (cb.calibration_slope_test, cb.spiegelhalter_test):
        try:
            found[test.__name__] = test(y, p, sample_weight=w).p_value
        except cb.CalibrantError:  # one score only, or half of them
            found[test.__name__] = 1.0
    return found


def measure(
    populations: Mapping[str, Population], compare: Compare, repetitions: int, name: str, n: int
) -> Iterator[Rejections]:
    """Yield how often the joint test, its parts and others reject samples of a population."""
    rng, population = np.random.default_rng([crc32(name.encode()), n]), populations[name]
    counts: dict[str, int] = {}
    for _ in range(repetitions // N_SHARED):
        p = population.scores(rng, n)
        w = None if population.weights is None else population.weights(rng, n)
        outcomes = rng.random((N_SHARED, n)) < population.truth(p)
        for y, joint in zip(outcomes, joint_p_values(outcomes, p, w, rng), strict=True):
            _count(counts, {**joint, **compare(y, p, w)})
    for test, rejected in counts.items():
        yield Rejections(name, n, test, repetitions, rejected)


def joint_p_values(
    outcomes: AnyArray, p: FloatArray, w: FloatArray | None, rng: Generator
) -> Iterator[dict[str, float]]:
    """Yield the P-values of `calibration_test` for samples of outcomes of the same scores."""
    problems = [one_problem(y, p, w, None, None, None) for y in outcomes]
    null = NullCells.of(problems[0], None, rng)
    statistics = Statistics(null.cells, len(p))
    _, *drawn = null.batches(N_RESAMPLES, rng)
    simulated = np.concatenate([statistics(totals) for totals in drawn])
    for problem in problems:
        totals = NullCells.of(problem, None, rng).cells.residual
        parts, joint = minimum_rank(np.concatenate((statistics(totals[None, :]), simulated)))
        yield {"joint": joint, **dict(zip(PARTS, parts.tolist(), strict=True))}


def _count(counts: dict[str, int], p_values: Mapping[str, float]) -> None:
    for test, p_value in p_values.items():
        counts[test] = counts.get(test, 0) + (p_value <= ALPHA)


# Clusters.


def independent_scores(rng: Generator, cluster: AnyArray) -> FloatArray:
    """Draw scores uniform on (0, 1)."""
    return rng.random(len(cluster))


def similar_scores(rng: Generator, cluster: AnyArray) -> FloatArray:
    """Draw scores near the centre of their cluster."""
    centre = rng.beta(2, 2, N_CLUSTERS)[cluster]
    return np.clip(centre + rng.normal(0, 0.05, len(cluster)), 0.01, 0.99)


def rare_scores(rng: Generator, cluster: AnyArray) -> FloatArray:
    """Draw scores from Beta(1, 19)."""
    return rng.beta(1, 19, len(cluster))


# Scores, and whether clusters have 20 rows each or random numbers of them.
CLUSTERED: dict[str, tuple[Callable[[Generator, AnyArray], FloatArray], bool]] = {
    "scores independent of clusters": (independent_scores, False),
    "scores similar within clusters": (similar_scores, False),
    "clusters of unequal size": (independent_scores, True),
    "rare events": (rare_scores, False),
}


def correlated_outcomes(rng: Generator, p: FloatArray, cluster: AnyArray) -> AnyArray:
    """Draw calibrated outcomes: of equal scores in one cluster they have correlation 0.2.

    y = 1 where u < p; u is that of the cluster with probability sqrt(0.2), else the row's own.
    """
    is_shared = rng.random(len(p)) < np.sqrt(CORRELATION)
    return np.where(is_shared, rng.random(N_CLUSTERS)[cluster], rng.random(len(p))) < p


def clustered_tests(rng: Generator, y: AnyArray, p: FloatArray, given: Any) -> dict[str, float]:
    """Return the P-values of the tests that take clusters, or ignore them where there are none."""
    drawn: dict[str, Any] = {"n_resamples": N_CLUSTER_RESAMPLES, "rng": rng}
    bias = cb.bias_along(y, p, np.zeros(len(p)), clusters=given, level=1 - ALPHA)
    return {
        "calibration_test": cb.calibration_test(y, p, clusters=given, **drawn).p_value,
        "cumulative_test": cb.cumulative_test(y, p, clusters=given, **drawn).p_value,
        "calibration_slope_test": cb.calibration_slope_test(y, p, clusters=given).p_value,
        "spiegelhalter_test": cb.spiegelhalter_test(y, p, clusters=given).p_value,
        "bias_along excludes 0": 0.0 if bias.is_biased[0] else 1.0,
    }


def measure_clusters(repetitions: int, name: str, n: int) -> Iterator[Rejections]:
    """Yield how often tests reject calibrated samples, with `clusters` and without."""
    rng, (scores, is_uneven) = np.random.default_rng(crc32(name.encode())), CLUSTERED[name]
    counts: dict[str, int] = {}
    for _ in range(repetitions):
        cluster = np.repeat(np.arange(N_CLUSTERS), n // N_CLUSTERS)
        if is_uneven:
            cluster = rng.choice(N_CLUSTERS, n, p=rng.dirichlet(np.full(N_CLUSTERS, 2.0)))
        p = scores(rng, cluster)
        y = correlated_outcomes(rng, p, cluster)
        for given, suffix in ((cluster, ""), (None, " without clusters")):
            found = clustered_tests(rng, y, p, given)
            _count(counts, {f"{test}{suffix}": p_value for test, p_value in found.items()})
    for test, rejected in counts.items():
        yield Rejections(name, n, test, repetitions, rejected)


# The page.


def parts(quick: bool) -> Sequence[Part]:
    """Return the tables to measure."""
    many, some, few = (20, 20, 20) if quick else (4000, 2000, 1000)
    sizes = [(name, n) for name, all_n in SIZES.items() for n in all_n if not quick or n <= 1000]
    return [
        Part("size", Rejections, sizes, partial(measure, CALIBRATED, lambda *_: {}, many)),
        Part(
            "power",
            Rejections,
            [(name, 1000) for name in ALTERNATIVES],
            partial(measure, ALTERNATIVES, others, few),
        ),
        Part(
            "clusters",
            Rejections,
            [(name, CLUSTERED_ROWS) for name in CLUSTERED],
            partial(measure_clusters, some),
        ),
    ]


_HEAD = """
# Size and power of the tests

How often [`calibration_test`][calibrant.calibration_test], its parts and other tests reject at 5%,
in per cent of samples. The joint test is simulated with {n_resamples} resamples; {n_shared} samples
of outcomes at a time share their scores and resamples. Seeds are fixed: `python -m studies power`.
"""

_POWER = """
{repetitions} samples of 1000 rows. Scores are uniform unless they are stated confidences: multiples
of 0.05, of which 0.95 and 1 make 60%. The slope test leaves out predictions of 1.
"""

_CLUSTERS = """
Calibrated samples of 1000 rows in 50 clusters; outcomes of equal scores in one cluster have
correlation 0.2. In parentheses the same test without `clusters`, which takes the rows for
independent. {repetitions} samples, with {n_resamples} resamples where tests are simulated.
"""


def report(tables: Tables) -> Report:
    """Return the page."""
    power, size = (tables[name][0].repetitions for name in ("power", "size"))
    error = 100 * np.sqrt(ALPHA * (1 - ALPHA) / size)
    return Report(
        page(
            _HEAD.format(n_resamples=N_RESAMPLES, n_shared=N_SHARED),
            "## Power",
            _POWER.format(repetitions=power),
            _table(tables["power"]),
            "## Size",
            f"{size} samples of calibrated populations; Monte-Carlo error {error:.1f} at 5%.",
            _table(tables["size"]),
            "## Clusters",
            _CLUSTERS.format(
                repetitions=tables["clusters"][0].repetitions, n_resamples=N_CLUSTER_RESAMPLES
            ),
            _cluster_table(tables["clusters"]),
        )
    )


def _table(rows: Iterable[Rejections]) -> str:
    """Return the percentages of one table, one row per population and size."""
    rows = list(rows)
    tests = list(dict.fromkeys(row.test for row in rows))
    heading = ["population", "n", *(OTHERS.get(test, test) for test in tests)]
    found = {(row.population, row.n, row.test): _percent(row) for row in rows}
    cells = dict.fromkeys((row.population, row.n) for row in rows)
    lines = []
    for name, n in cells:
        joint, *rest = (found[name, n, test] for test in tests)
        lines.append([name, str(n), f"**{joint}**", *rest])
    return grid(heading, lines)


def _cluster_table(rows: Iterable[Rejections]) -> str:
    found = {(row.population, row.test): _percent(row) for row in rows}
    populations = list(dict.fromkeys(name for name, _ in found))
    tests = list(dict.fromkeys(test for _, test in found if not test.endswith(" without clusters")))
    lines = [
        [test, *(f"{found[p, test]} ({found[p, f'{test} without clusters']})" for p in populations)]
        for test in tests
    ]
    return grid(["test", *populations], lines)


def _percent(row: Rejections) -> str:
    return f"{100 * row.rejected / row.repetitions:.1f}"


STUDY = Study(NAME, parts=parts, report=report)
