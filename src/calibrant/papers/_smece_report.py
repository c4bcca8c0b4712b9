"""What the page on Leznik (2026) shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from calibrant.papers import _smece_published as printed
from calibrant.papers._drawing import COLOURS, MARKERS, figure, legend_below
from calibrant.papers._frame import Report, Row, Tables
from calibrant.papers._page import Comparison, compared, grid, page, picture, reasons, side_by_side

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PRINTED_REPLICATIONS = 500
_PRINTED_RANKINGS = 1000
# The paper's tables leave out predictions of exactly 1.
_PRINTED_ROWS = "p < 1"
_MEASURES = ("SMECE", "ECE")
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
            "steepness": partial(_steepness, population),
            "sizes": partial(_sizes, errors),
        },
    )


def _single_samples(errors: Mapping[Any, Row]) -> Iterator[Comparison]:
    """Compare tables 2 to 4, each number of which is that of one sample of 5000."""
    for model, numbers in printed.TABLE_2.items():
        for measure, number in zip(_MEASURES, numbers, strict=True):
            row = errors[2.0, 5000, model, measure, _PRINTED_ROWS]
            yield _one_sample("Table 2", model, measure, number, row)
    for measure, ranks in zip(
        _MEASURES, zip(*printed.TABLE_2_RANKS.values(), strict=True), strict=True
    ):
        means = {m: errors[2.0, 5000, m, measure, _PRINTED_ROWS].mean for m in printed.MODELS}
        for model, rank in zip(means, ranks, strict=True):
            ours = sum(mean <= means[model] for mean in means.values())
            yield compared("Table 2", model, f"rank by {measure}", rank, ours, 0.0)
    for table, measure, lines in (
        ("Table 3", "SMECE", printed.TABLE_3),
        ("Table 4", "ECE", printed.TABLE_4),
    ):
        for model, numbers in lines.items():
            for k, number in zip(printed.STEEPNESS, numbers, strict=True):
                row = errors[k, 5000, model, measure, _PRINTED_ROWS]
                yield _one_sample(table, model, f"k = {k:g}", number, row)


def _one_sample(table: str, model: str, column: str, number: str, row: Row) -> Comparison:
    noise = row.deviation * math.sqrt(1 + 1 / row.replications)
    return compared(table, model, column, number, row.mean, noise)


def _rankings(rankings: Mapping[Any, Row]) -> Iterator[Comparison]:
    """Compare tables 5 and 6."""
    places = [
        ("Table 5", measure, f"k = {k:g}", number, (k, "all pairs", measure))
        for measure, numbers in printed.TABLE_5.items()
        for k, number in zip(printed.STEEPNESS, numbers, strict=True)
    ] + [
        ("Table 6", pair, measure, number, (2.0, pair, measure))
        for pair, numbers in printed.TABLE_6.items()
        for measure, number in zip(_MEASURES, numbers, strict=True)
    ]
    for table, line, column, number, key in places:
        row = rankings[(*key, _PRINTED_ROWS)]
        noise = row.deviation * math.sqrt(1 / _PRINTED_RANKINGS + 1 / row.replications)
        note = _NOTES.get((table, line, column), "")
        yield compared(table, line, column, number, row.accuracy, noise, note)


def _replications(errors: Mapping[Any, Row]) -> Iterator[Comparison]:
    """Compare tables 7 and 8, means and standard deviations over 500 samples."""
    for table, measure, means, deviations in (
        ("Table 7", "SMECE", printed.TABLE_7_MEANS, printed.TABLE_7_DEVIATIONS),
        ("Table 8", "ECE", printed.TABLE_8_MEANS, printed.TABLE_8_DEVIATIONS),
    ):
        for model in printed.MODELS:
            for n, mean, deviation in zip(
                printed.SIZES, means[model], deviations[model], strict=True
            ):
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
    shown = {
        table: side_by_side((one for one in comparisons if one.table == table), table)
        for table in dict.fromkeys(one.table for one in comparisons)
    }
    repeated = next(iter(errors.values())).replications
    ranked = next(iter(rankings.values())).replications
    sizes = picture(
        "smece",
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
        picture("smece", "steepness", "Population values (lines) and tables 3 and 4 (points)"),
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
        *(_population(population, measure) for measure in _MEASURES),
        "## Corrections",
        _corrections(errors, rankings, population),
    )


_INTRODUCTION = """
# Soft labels (Leznik 2026)

Leznik, "Soft Mean Expected Calibration Error (SMECE): A Calibration Metric for Probabilistic
Labels" (2026), all tables. Made by `calibrant papers smece`, in less than a minute.

In every place: published · here (the difference in units of Monte-Carlo error, which counts the
noise of both and rounding in print; bold beyond 3). Here: {repeated} samples a number, {ranked} for
rankings. Like the paper, these leave predictions of exactly 1 out of the last bin; see the
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
        [measure, *(f"k = {k:g}" for k in printed.STEEPNESS)],
        [
            [
                f"{model}, {what}",
                *(f"{population[k, model, measure, 'all']:.4f}" for k in printed.STEEPNESS),
            ]
            for model, what in printed.MODELS.items()
        ],
    )


def _corrections(
    errors: Mapping[Any, Row],
    rankings: Mapping[Any, Row],
    population: Mapping[Any, float],
) -> str:
    a, b = (float(printed.TABLE_2[model][1]) for model in "AB")
    uncertain = math.log(9) / 2 / 3
    right, dropped = (rankings[1.0, "all pairs", "SMECE", rows] for rows in ("all", _PRINTED_ROWS))
    last = rankings[50.0, "A vs B", "ECE", "all"]
    table = grid(
        ["SMECE of D", *(f"k = {k:g}" for k in printed.STEEPNESS)],
        [
            ["printed, one sample", *printed.TABLE_3["D"]],
            *(
                [
                    f"population, {name}",
                    *(f"{population[k, 'D', 'SMECE', rows]:.4f}" for k in printed.STEEPNESS),
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

- With all rows, SMECE ranks {right.accuracy:.3f} of the pairs rightly at k = 1, not
  {dropped.accuracy:.3f}: the population values of B and D are then nearly equal,
  {population[1.0, "B", "SMECE", "all"]:.4f} and {population[1.0, "D", "SMECE", "all"]:.4f}.
- The ECE of A is {a / b:.1f} times that of B in Table 2, not 29 times (section 6.2).
- The posterior at k = 2 lies between 0.1 and 0.9 for {100 * uncertain:.0f}% of the inputs, not 60%
  (section 6.1).
- Table 4's caption says that ECE ranks all models rightly at k = 50. It puts B before A there too,
  in {100 * (1 - last.accuracy):.0f}% of samples here and in its own row for that k.
"""


def _steepness(population: Mapping[Any, float]) -> Figure:
    """Draw errors against k, population and print."""
    drawn = figure(1, 2, 9, 4.2, sharey=True)
    tables = (printed.TABLE_3, printed.TABLE_4)
    for axes, measure, table in zip(drawn.axes, _MEASURES, tables, strict=True):
        for model, colour, marker in zip(printed.MODELS, COLOURS, MARKERS, strict=False):
            values = [population[k, model, measure, _PRINTED_ROWS] for k in printed.STEEPNESS]
            numbers = [float(number) for number in table[model]]
            label = f"{model}, {printed.MODELS[model]}"
            axes.plot(printed.STEEPNESS, values, color=colour, label=label)
            axes.plot(printed.STEEPNESS, numbers, marker, color=colour, markersize=5)
        corrected = [population[k, "D", measure, "all"] for k in printed.STEEPNESS]
        axes.plot(printed.STEEPNESS, corrected, "--", color=COLOURS[3], label="D, all rows")
        axes.set_xscale("log")
        axes.set_xticks(printed.STEEPNESS, [f"{k:g}" for k in printed.STEEPNESS])
        axes.minorticks_off()
        axes.set(title=measure, xlabel="k")
    drawn.axes[0].set_ylabel("error")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def _sizes(errors: Mapping[Any, Row]) -> Figure:
    """Draw means and standard deviations against n, ours and printed."""
    drawn = figure(1, 2, 9, 4.2, sharey=True)
    tables = (
        (printed.TABLE_7_MEANS, printed.TABLE_7_DEVIATIONS),
        (printed.TABLE_8_MEANS, printed.TABLE_8_DEVIATIONS),
    )
    for axes, measure, (means, deviations) in zip(drawn.axes, _MEASURES, tables, strict=True):
        for model, colour, marker in zip(printed.MODELS, COLOURS, MARKERS, strict=False):
            rows = [errors[2.0, n, model, measure, _PRINTED_ROWS] for n in printed.SIZES]
            low, high = ([r.mean + sign * r.deviation for r in rows] for sign in (-1, 1))
            axes.fill_between(printed.SIZES, low, high, color=colour, alpha=0.25, linewidth=0)
            label = f"{model}, {printed.MODELS[model]}"
            axes.plot(printed.SIZES, [r.mean for r in rows], color=colour, label=label)
            numbers, bars = ([float(v) for v in line[model]] for line in (means, deviations))
            axes.errorbar(printed.SIZES, numbers, bars, fmt=marker, color=colour, markersize=4)
        axes.set_xscale("log")
        axes.set_xticks(printed.SIZES, [f"{n}" for n in printed.SIZES])
        axes.minorticks_off()
        axes.set(title=measure, xlabel="n")
    drawn.axes[0].set_ylabel("error, mean ± sd")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn
