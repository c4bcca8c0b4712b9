"""Leznik, "Soft Mean Expected Calibration Error" (2026): tables 2 to 8.

Inputs x are uniform on (-3, 3), the soft label of x is the posterior sigmoid(k x), the hard one
1[x >= 0], and five models predict. SMECE is the binned error against soft labels, ECE that against
hard ones, both with ten uniform bins.

The paper's last bin leaves out predictions of exactly 1, which model D makes for all large x, while
they still count in n. Both ways are measured: ``rows`` is "all", or "p < 1" as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cb
from studies.frame import (
    COLOURS,
    MARKERS,
    Comparison,
    FloatArray,
    Part,
    Report,
    Row,
    Study,
    Tables,
    by_table,
    compared,
    figure,
    grid,
    legend_below,
    page,
    picture,
    reasons,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "soft-label-ece"

# The printed numbers.

MODELS = {
    "A": "posterior-matching",
    "B": "overconfident",
    "C": "underconfident",
    "D": "biased high",
    "E": "random",
}
STEEPNESS = (0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
SIZES = (500, 1000, 2000, 5000, 10_000)


def _columns(text: str) -> dict[str, tuple[str, ...]]:
    lines = [line.split() for line in text.strip().splitlines()]
    return {name.replace("_", " "): tuple(numbers) for name, *numbers in lines}


# Model: SMECE and ECE of one sample, k = 2, n = 5000.
TABLE_2 = _columns("""
A 0.0000 0.1159
B 0.0759 0.0401
C 0.1369 0.2529
D 0.0977 0.1461
E 0.2409 0.2398
""")
# Their ranks, 1 for the smallest error.
TABLE_2_RANKS = _columns("""
A 1 2
B 2 1
C 4 5
D 3 3
E 5 4
""")

# Model: the error of one sample, n = 5000, at each k.
TABLE_3 = _columns("""
A 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000
B 0.1770 0.1367 0.0764 0.0301 0.0153 0.0028
C 0.0979 0.1435 0.1368 0.0687 0.0345 0.0070
D 0.1500 0.1180 0.0978 0.0831 0.0804 0.0751
E 0.2518 0.2585 0.2498 0.2452 0.2427 0.2519
""")
TABLE_4 = _columns("""
A 0.3287 0.2143 0.1169 0.0455 0.0241 0.0041
B 0.1517 0.0777 0.0405 0.0154 0.0088 0.0013
C 0.4266 0.3579 0.2536 0.1142 0.0586 0.0111
D 0.2837 0.2050 0.1448 0.1018 0.0916 0.0765
E 0.2555 0.2560 0.2555 0.2438 0.2431 0.2524
""")

# Measure: the fraction of pairs ranked correctly at each k, 1000 samples of n = 1000.
TABLE_5 = _columns("""
SMECE 0.900 0.800 0.900 1.000 1.000 1.000
ECE   0.403 0.605 0.747 0.800 0.900 0.900
""")

# Pair: how often SMECE and ECE rank it correctly at k = 2.
TABLE_6 = _columns("""
A_vs_B 1.000 0.000
A_vs_C 1.000 1.000
A_vs_D 1.000 1.000
A_vs_E 1.000 1.000
B_vs_C 1.000 1.000
B_vs_D 1.000 1.000
B_vs_E 1.000 1.000
C_vs_D 0.000 0.000
C_vs_E 1.000 0.961
D_vs_E 1.000 1.000
""")

# Model: mean and standard deviation over 500 samples, k = 2, at each n.
TABLE_7_MEANS = _columns("""
A 0.0000 0.0000 0.0000 0.0000 0.0000
B 0.0766 0.0766 0.0766 0.0766 0.0766
C 0.1374 0.1375 0.1376 0.1375 0.1375
D 0.0967 0.0966 0.0966 0.0966 0.0967
E 0.2528 0.2505 0.2502 0.2496 0.2500
""")
TABLE_7_DEVIATIONS = _columns("""
A 0.0000 0.0000 0.0000 0.0000 0.0000
B 0.0034 0.0024 0.0017 0.0010 0.0008
C 0.0020 0.0015 0.0011 0.0007 0.0005
D 0.0031 0.0022 0.0016 0.0010 0.0007
E 0.0180 0.0134 0.0092 0.0061 0.0045
""")
TABLE_8_MEANS = _columns("""
A 0.1152 0.1152 0.1149 0.1151 0.1151
B 0.0386 0.0386 0.0384 0.0385 0.0385
C 0.2526 0.2526 0.2526 0.2526 0.2526
D 0.1444 0.1443 0.1439 0.1441 0.1442
E 0.2546 0.2512 0.2507 0.2497 0.2501
""")
TABLE_8_DEVIATIONS = _columns("""
A 0.0062 0.0044 0.0031 0.0020 0.0013
B 0.0043 0.0031 0.0022 0.0014 0.0009
C 0.0055 0.0040 0.0027 0.0018 0.0012
D 0.0072 0.0052 0.0038 0.0023 0.0017
E 0.0212 0.0157 0.0111 0.0075 0.0053
""")


# The experiments.

N_BINS = 10
REACH = 3.0
BIAS = 0.15
RANKED_SIZE = 1000
MEASURES = ("SMECE", "ECE")
# The right order is A, then B and C, then D, then E: any order of B and C is right.
PAIRS = tuple(combinations(MODELS, 2))
TIED = ("B", "C")


@dataclass(frozen=True)
class Error:
    """Mean and standard deviation of an error over samples of n."""

    k: float
    n: int
    replications: int
    model: str
    measure: str
    rows: str
    mean: float
    deviation: float


@dataclass(frozen=True)
class Ranking:
    """How often a measure ranks a pair of models correctly; for "all pairs", the mean fraction."""

    k: float
    replications: int
    pair: str
    measure: str
    rows: str
    accuracy: float
    deviation: float


@dataclass(frozen=True)
class Population:
    """The error of infinitely many rows, by quadrature."""

    k: float
    model: str
    measure: str
    rows: str
    value: float


def parts(quick: bool) -> list[Part]:
    """List the tables to measure."""
    repeated, ranked = (40, 60) if quick else (500, 1000)
    sizes = [(k, 5000) for k in STEEPNESS] + [(2.0, n) for n in SIZES if n != 5000]
    return [
        Part("population", Population, [(k,) for k in STEEPNESS], population),
        Part("errors", Error, [(k, n, repeated) for k, n in sizes], errors),
        Part("ranking", Ranking, [(k, ranked) for k in STEEPNESS], ranking),
    ]


def errors(k: float, n: int, replications: int) -> Iterator[Error]:
    """Measure every model on samples of n."""
    drawn = _replicated(k, n, replications)
    for (model, measure, rows), values in drawn.items():
        mean, deviation = float(values.mean()), float(values.std(ddof=1))
        yield Error(k, n, replications, model, measure, rows, mean, deviation)


def ranking(k: float, replications: int) -> Iterator[Ranking]:
    """Count how often each pair of models is ranked correctly."""
    drawn = _replicated(k, RANKED_SIZE, replications)
    for measure, rows in dict.fromkeys(key[1:] for key in drawn):
        errors_of = {model: drawn[model, measure, rows] for model in MODELS}
        right = {
            f"{better} vs {worse}": (errors_of[better] < errors_of[worse])
            | ((better, worse) == TIED)
            for better, worse in PAIRS
        }
        n_right = np.sum(list(right.values()), axis=0)
        counts = {pair: (found, 1) for pair, found in right.items()}
        for pair, (found, of) in {**counts, "all pairs": (n_right, len(PAIRS))}.items():
            mean, deviation = float(found.mean() / of), float(found.std(ddof=1) / of)
            yield Ranking(k, replications, pair, measure, rows, mean, deviation)


def population(k: float) -> Iterator[Population]:
    """Integrate every model's errors over x."""
    x, mass = _quadrature(k)
    found = _errors(_labels(k, x), _predictions(k, x), mass)
    # E predicts independently of x: whatever it predicts, outcomes average 1/2.
    middles = (np.arange(N_BINS) + 0.5) / N_BINS
    halves = dict.fromkeys(MEASURES, np.full(N_BINS, 0.5))
    found |= _errors(halves, {"E": middles}, np.full(N_BINS, 1 / N_BINS))
    for (model, measure, rows), value in found.items():
        yield Population(k, model, measure, rows, value)


def _replicated(k: float, n: int, replications: int) -> dict[tuple[str, str, str], FloatArray]:
    """Return every error of every sample, by model, measure and rows."""
    rng = np.random.default_rng([round(10 * k), n])
    samples = []
    for _ in range(replications):
        x = rng.uniform(-REACH, REACH, n)
        samples.append(_errors(_labels(k, x), _predictions(k, x) | {"E": rng.random(n)}))
    return {key: np.array([sample[key] for sample in samples]) for key in samples[0]}


def _labels(k: float, x: FloatArray) -> dict[str, FloatArray]:
    return {"SMECE": expit(k * x), "ECE": (x >= 0).astype(np.float64)}


def _predictions(k: float, x: FloatArray) -> dict[str, FloatArray]:
    """Return what the models that look at x predict."""
    return {
        "A": expit(k * x),
        "B": expit(3 * k * x),
        "C": expit(0.4 * k * x),
        "D": np.minimum(expit(k * x) + BIAS, 1),
    }


def _errors(
    labels: dict[str, FloatArray],
    predictions: dict[str, FloatArray],
    mass: FloatArray | None = None,
) -> dict[tuple[str, str, str], float]:
    """Measure every model against both kinds of labels, with and without predictions of 1."""
    found = {}
    for model, p in predictions.items():
        weight = np.ones_like(p) if mass is None else mass
        kept = p < 1
        fraction = 1.0 if kept.all() else float(weight[kept].sum() / weight.sum())
        for measure, y in labels.items():
            whole = cb.ece(y, p, n_bins=N_BINS, sample_weight=mass)
            found[model, measure, "all"] = whole
            if fraction < 1:
                # Rows that are dropped from their bin still count in n.
                weighted = None if mass is None else mass[kept]
                whole = cb.ece(y[kept], p[kept], n_bins=N_BINS, sample_weight=weighted) * fraction
            found[model, measure, "p < 1"] = whole
    return found


def _quadrature(k: float) -> tuple[FloatArray, FloatArray]:
    """Return points x and their masses, on panels that end where a model passes a bin's edge."""
    edges = np.arange(1, N_BINS) / N_BINS
    of_d = np.append(edges, 1.0) - BIAS
    passed = [logit(edges) / (slope * k) for slope in (1, 3, 0.4)] + [logit(of_d[of_d > 0]) / k]
    inside = np.concatenate([ends[np.abs(ends) < REACH] for ends in passed])
    ends = np.union1d(inside, np.linspace(-REACH, REACH, 201))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(ends)[:, None] / 2
    x = ends[:-1, None] + half * (1 + nodes)
    return x.ravel(), (half * weights).ravel() / (2 * REACH)


# The page.

_PRINTED_REPLICATIONS = 500
_PRINTED_RANKINGS = 1000
# The paper's tables leave out predictions of exactly 1.
_PRINTED_ROWS = "p < 1"
_NOTES = {
    ("Table 6", "C vs E", "ECE"): (
        "The paper contradicts itself here: with 0.961 for this pair, the mean over its ten pairs "
        "would be 0.796, but Table 5 prints 0.747, which is 0.47 for this pair. The means in Table "
        "8, 0.2526 for C and 0.2512 ± 0.0157 for E, say the same."
    ),
}


def report(tables: Tables) -> Report:
    """Set published numbers beside ours."""
    errors = {(r.k, r.n, r.model, r.measure, r.rows): r for r in tables["errors"]}
    rankings = {(r.k, r.pair, r.measure, r.rows): r for r in tables["ranking"]}
    population = {(r.k, r.model, r.measure, r.rows): r.value for r in tables["population"]}
    comparisons = [
        *_single_samples(errors),
        *_rankings(rankings),
        *_replications(errors),
    ]
    return Report(
        text=_text(comparisons, errors, rankings, population),
        tables={"comparisons": comparisons},
        figures={
            "steepness": partial(draw_steepness, population),
            "sizes": partial(draw_sizes, errors),
        },
    )


def _single_samples(errors: Mapping[Any, Row]) -> Iterator[Comparison]:
    """Compare tables 2 to 4, each number of which is that of one sample of 5000."""
    for model, numbers in TABLE_2.items():
        for measure, number in zip(MEASURES, numbers, strict=True):
            row = errors[2.0, 5000, model, measure, _PRINTED_ROWS]
            yield _one_sample("Table 2", model, measure, number, row)
    for measure, ranks in zip(MEASURES, zip(*TABLE_2_RANKS.values(), strict=True), strict=True):
        means = {m: errors[2.0, 5000, m, measure, _PRINTED_ROWS].mean for m in MODELS}
        for model, rank in zip(means, ranks, strict=True):
            ours = sum(mean <= means[model] for mean in means.values())
            yield compared("Table 2", model, f"rank by {measure}", rank, ours, 0.0)
    for table, measure, lines in (
        ("Table 3", "SMECE", TABLE_3),
        ("Table 4", "ECE", TABLE_4),
    ):
        for model, numbers in lines.items():
            for k, number in zip(STEEPNESS, numbers, strict=True):
                row = errors[k, 5000, model, measure, _PRINTED_ROWS]
                yield _one_sample(table, model, f"k = {k:g}", number, row)


def _one_sample(table: str, model: str, column: str, number: str, row: Row) -> Comparison:
    noise = row.deviation * math.sqrt(1 + 1 / row.replications)
    return compared(table, model, column, number, row.mean, noise)


def _rankings(rankings: Mapping[Any, Row]) -> Iterator[Comparison]:
    """Compare tables 5 and 6."""
    places = [
        ("Table 5", measure, f"k = {k:g}", number, (k, "all pairs", measure))
        for measure, numbers in TABLE_5.items()
        for k, number in zip(STEEPNESS, numbers, strict=True)
    ] + [
        ("Table 6", pair, measure, number, (2.0, pair, measure))
        for pair, numbers in TABLE_6.items()
        for measure, number in zip(MEASURES, numbers, strict=True)
    ]
    for table, line, column, number, key in places:
        row = rankings[(*key, _PRINTED_ROWS)]
        noise = row.deviation * math.sqrt(1 / _PRINTED_RANKINGS + 1 / row.replications)
        note = _NOTES.get((table, line, column), "")
        yield compared(table, line, column, number, row.accuracy, noise, note)


def _replications(errors: Mapping[Any, Row]) -> Iterator[Comparison]:
    """Compare tables 7 and 8, means and standard deviations over 500 samples."""
    for table, measure, means, deviations in (
        ("Table 7", "SMECE", TABLE_7_MEANS, TABLE_7_DEVIATIONS),
        ("Table 8", "ECE", TABLE_8_MEANS, TABLE_8_DEVIATIONS),
    ):
        for model in MODELS:
            for n, mean, deviation in zip(SIZES, means[model], deviations[model], strict=True):
                row = errors[2.0, n, model, measure, _PRINTED_ROWS]
                # The mean of m samples has the error sd / sqrt(m), their sd about 1/sqrt(2) of it.
                noise = row.deviation * math.sqrt(1 / _PRINTED_REPLICATIONS + 1 / row.replications)
                column = f"n = {n}"
                yield compared(table, model, column, mean, row.mean, noise)
                sd_noise = noise / math.sqrt(2)
                yield compared(table, f"{model}, sd", column, deviation, row.deviation, sd_noise)


def _text(
    comparisons: list[Comparison],
    errors: Mapping[Any, Row],
    rankings: Mapping[Any, Row],
    population: Mapping[Any, float],
) -> str:
    shown = by_table(comparisons)
    repeated = next(iter(errors.values())).replications
    ranked = next(iter(rankings.values())).replications
    sizes = picture(
        NAME,
        "sizes",
        "Mean and standard deviation, k = 2: here (lines), tables 7 and 8 (points)",
    )
    return page(
        _INTRODUCTION.format(repeated=repeated, ranked=ranked),
        _MODELS,
        "## One sample of 5000: tables 2 to 4",
        "The paper prints the errors of one sample. Ours are means over samples, and the "
        "Monte-Carlo error is the standard deviation of one sample; ranks are those of the means.",
        *(shown[table] for table in ("Table 2", "Table 3", "Table 4")),
        picture(NAME, "steepness", "Population values (lines) and tables 3 and 4 (points)"),
        "## Ranking: tables 5 and 6",
        "How often pairs of models are put in the right order, A before B and C before D before E, "
        "in samples of 1000; any order of B and C is right.",
        shown["Table 5"],
        shown["Table 6"],
        "## More data: tables 7 and 8",
        "Means and standard deviations over samples, k = 2: the ECE of the model that predicts the "
        "posterior itself settles on 0.1151, its SMECE is 0 in every sample.",
        shown["Table 7"],
        shown["Table 8"],
        sizes,
        "## Deviations",
        reasons(comparisons),
        "## Population values",
        "By quadrature over x, ten bins, all rows.",
        *(_population(population, measure) for measure in MEASURES),
        "## Corrections",
        _corrections(errors, rankings, population),
    )


_INTRODUCTION = """
# Soft labels (Leznik 2026)

Leznik, "Soft Mean Expected Calibration Error (SMECE): A Calibration Metric for Probabilistic
Labels" (2026), all tables. Made by `python -m studies soft-label-ece`, in less than a minute.

In every place: published · here (the difference in units of Monte-Carlo error, which counts the
noise of both and rounding in print; bold beyond 3). Here: {repeated} samples per number, {ranked}
for rankings. Like the paper, these leave predictions of exactly 1 out of the last bin; see the
corrections below.
"""

_MODELS = """
x is uniform on (-3, 3), the soft label is the posterior σ(kx), the hard one 1[x ≥ 0]. SMECE is
the binned error against soft labels, `cb.ece(soft, p, n_bins=10)`, and ECE the one against hard
labels. The models predict: A σ(kx), B σ(3kx), C σ(0.4kx), D min(σ(kx) + 0.15, 1), and E a random
number, uniform on (0, 1).
"""


def _population(population: Mapping[Any, float], measure: str) -> str:
    return grid(
        [measure, *(f"k = {k:g}" for k in STEEPNESS)],
        [
            [
                f"{model}, {what}",
                *(f"{population[k, model, measure, 'all']:.4f}" for k in STEEPNESS),
            ]
            for model, what in MODELS.items()
        ],
    )


def _corrections(
    errors: Mapping[Any, Row],
    rankings: Mapping[Any, Row],
    population: Mapping[Any, float],
) -> str:
    a, b = (float(TABLE_2[model][1]) for model in "AB")
    uncertain = math.log(9) / 2 / 3
    right, dropped = (rankings[1.0, "all pairs", "SMECE", rows] for rows in ("all", _PRINTED_ROWS))
    last = rankings[50.0, "A vs B", "ECE", "all"]
    table = grid(
        ["SMECE of D", *(f"k = {k:g}" for k in STEEPNESS)],
        [
            ["printed, one sample", *TABLE_3["D"]],
            *(
                [
                    f"population, {name}",
                    *(f"{population[k, 'D', 'SMECE', rows]:.4f}" for k in STEEPNESS),
                ]
                for name, rows in (("p < 1", _PRINTED_ROWS), ("all rows", "all"))
            ),
        ],
    )
    return f"""
- The paper's bins are half-open, so predictions of exactly 1 are in none of them, though they count
  in n. Model D predicts 1 for every x above logit(0.85) / k, and its SMECE in tables 2, 3 and 7 is
  too low for it. The ECE is not affected: these rows have the outcome 1.

{table}

- With all rows, SMECE ranks {right.accuracy:.3f} of the pairs correctly at k = 1, not
  {dropped.accuracy:.3f}: the population values of B and D are then nearly equal,
  {population[1.0, "B", "SMECE", "all"]:.4f} and {population[1.0, "D", "SMECE", "all"]:.4f}.
- The ECE of A is {a / b:.1f} times that of B in Table 2, not 29 times (section 6.2).
- The posterior at k = 2 lies between 0.1 and 0.9 for {100 * uncertain:.0f}% of the inputs, not 60%
  (section 6.1).
- Table 4's caption says that ECE ranks all models correctly at k = 50. It puts B before A there
  too, in {100 * (1 - last.accuracy):.0f}% of samples here and in its own row for that k.
"""


def draw_steepness(population: Mapping[Any, float]) -> Figure:
    """Draw errors against k, population and print."""
    drawn = figure(1, 2, 9, 4.2, sharey=True)
    tables = (TABLE_3, TABLE_4)
    for axes, measure, table in zip(drawn.axes, MEASURES, tables, strict=True):
        for model, colour, marker in zip(MODELS, COLOURS, MARKERS, strict=False):
            values = [population[k, model, measure, _PRINTED_ROWS] for k in STEEPNESS]
            numbers = [float(number) for number in table[model]]
            label = f"{model}, {MODELS[model]}"
            axes.plot(STEEPNESS, values, color=colour, label=label)
            axes.plot(STEEPNESS, numbers, marker, color=colour, markersize=5)
        corrected = [population[k, "D", measure, "all"] for k in STEEPNESS]
        axes.plot(STEEPNESS, corrected, "--", color=COLOURS[3], label="D, all rows")
        axes.set_xscale("log")
        axes.set_xticks(STEEPNESS, [f"{k:g}" for k in STEEPNESS])
        axes.minorticks_off()
        axes.set(title=measure, xlabel="k")
    drawn.axes[0].set_ylabel("error")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def draw_sizes(errors: Mapping[Any, Row]) -> Figure:
    """Draw means and standard deviations against n, ours and printed."""
    drawn = figure(1, 2, 9, 4.2, sharey=True)
    tables = (
        (TABLE_7_MEANS, TABLE_7_DEVIATIONS),
        (TABLE_8_MEANS, TABLE_8_DEVIATIONS),
    )
    for axes, measure, (means, deviations) in zip(drawn.axes, MEASURES, tables, strict=True):
        for model, colour, marker in zip(MODELS, COLOURS, MARKERS, strict=False):
            rows = [errors[2.0, n, model, measure, _PRINTED_ROWS] for n in SIZES]
            low, high = ([r.mean + sign * r.deviation for r in rows] for sign in (-1, 1))
            axes.fill_between(SIZES, low, high, color=colour, alpha=0.25, linewidth=0)
            label = f"{model}, {MODELS[model]}"
            axes.plot(SIZES, [r.mean for r in rows], color=colour, label=label)
            numbers, bars = ([float(v) for v in line[model]] for line in (means, deviations))
            axes.errorbar(SIZES, numbers, bars, fmt=marker, color=colour, markersize=4)
        axes.set_xscale("log")
        axes.set_xticks(SIZES, [f"{n}" for n in SIZES])
        axes.minorticks_off()
        axes.set(title=measure, xlabel="n")
    drawn.axes[0].set_ylabel("error, mean ± sd")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


STUDY = Study(NAME, parts=parts, report=report)
