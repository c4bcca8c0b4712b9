"""What the page on Arrieta-Ibarra et al. (2022) shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from calibrant.datasets import cantor_staircase, load_imagenet
from calibrant.papers import _ecce_figures as figures
from calibrant.papers import _ecce_published as printed
from calibrant.papers._ecce_figures import SCORES
from calibrant.papers._frame import Report, Row, Tables
from calibrant.papers._page import Comparison, compared, grid, page, picture, reasons, side_by_side

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Network = Literal["resnet34", "densenet161"]

_NAMES = {"max": "ECCE-MAD", "range": "ECCE-R"}
_NUMBERED = {2**13: "figure_35", 2**15: "figure_1", 2**17: "figure_36"}
_RELIABILITY_BINS = 128
_FIGURES = {
    "figure_8": (("ECE1", "ECE2"), ("ECE¹", "ECE²")),
    "figure_9": (("ECCE-MAD", "ECCE-R"), ("ECCE-MAD", "ECCE-R")),
    "figure_10": (
        ("ECCE-MAD / sigma", "ECCE-R / sigma"),
        ("ECCE-MAD / σ", "ECCE-R / σ"),
    ),
}


def report(tables: Tables) -> Report:
    """Set published numbers beside ours, and draw the figures again."""
    comparisons = [
        *_figure_7(tables["cumulative"]),
        *_p_values(tables["p_values"]),
        *_limits(tables["null"]),
        *_floors(tables["sizes"], tables["floors"]),
    ]
    return Report(
        text=_text(tables, comparisons),
        tables={"comparisons": comparisons},
        figures=_figures(tables),
    )


def _figure_7(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare what is printed below figure 7; nothing is left to chance."""
    for row in rows:
        if row.data != "sqrt":
            continue
        numbers = (row.value, row.normalized, row.p_value)
        columns = ("value", "over σ", "P-value")
        lines = zip(columns, printed.FIGURE_7[row.statistic], numbers, strict=True)
        for column, number, ours in lines:
            if number != "0":
                yield compared("Figure 7", _NAMES[row.statistic], column, number, ours, 0.0)


def _p_values(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare P-values with those printed, where any digit of them is."""
    for row in rows:
        if row.printed != "0":
            statistic = f"{_NAMES[row.statistic]} / σ = {row.normalized}"
            yield compared("P-values", row.figure, statistic, row.printed, row.p_value, 0.0)


def _limits(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare means of calibrated data with the limits that the paper names."""
    for row in rows:
        if row.measure in printed.LIMITS:
            noise = row.deviation / math.sqrt(row.data_sets)
            limit = printed.LIMITS[row.measure]
            scores = f"{SCORES[row.transform]} scores"
            yield compared("Limits", scores, row.measure, limit, row.mean, noise)


def _floors(sizes: Sequence[Row], floors: Sequence[Row]) -> Iterator[Comparison]:
    """Compare ECE² at the largest n with the integrals of theorems 1 and 8."""
    found = {(row.n, row.transform, row.outcomes): row for row in sizes if row.measure == "ECE2"}
    for floor in floors:
        row = found[floor.n, floor.transform, floor.outcomes]
        noise = row.deviation / math.sqrt(row.data_sets)
        scores = f"{SCORES[floor.transform]} scores"
        limit = f"{floor.ece2:.6f}"
        yield compared("Noise floor", scores, floor.outcomes, limit, row.mean, noise)


def _figures(tables: Tables) -> dict[str, Callable[[], Figure]]:
    levels = {"ECE2": 1 / 96} | {name: float(limit) for name, limit in printed.LIMITS.items()}
    drawn: dict[str, Callable[[], Figure]] = {"figure_7": _draw_figure_7}
    for n in dict.fromkeys(row.n for row in tables["bins"]):
        own = [row for row in tables["bins"] if row.n == n]
        drawn[_NUMBERED[n]] = partial(figures.binned, own)
    for name, (measures, labels) in _FIGURES.items():
        drawn[name] = partial(figures.growing, tables["sizes"], measures, labels, levels)
    for network in _networks(tables):
        own = [row for row in tables["imagenet_bins"] if row.data == network]
        drawn[network] = partial(_draw_network, network, own)
    return drawn


def _draw_figure_7() -> Figure:
    data = cantor_staircase(2**15, "sqrt")
    return figures.walk(data.y_true, data.y_prob, data.true_prob)


def _draw_network(network: Network, rows: Sequence[Row]) -> Figure:
    y, p = load_imagenet(network)
    return figures.network(y, p, rows, _RELIABILITY_BINS)


def _networks(tables: Tables) -> list[Network]:
    return list(dict.fromkeys(row.data for row in tables["imagenet"]))


def _text(tables: Tables, comparisons: list[Comparison]) -> str:
    shown = {
        table: side_by_side(one for one in comparisons if one.table == table)
        for table in dict.fromkeys(one.table for one in comparisons)
    }
    sizes = [_NUMBERED[n] for n in dict.fromkeys(row.n for row in tables["bins"])]
    null = tables["null"][0]
    return page(
        _INTRODUCTION,
        "## One data set: figure 7",
        "The published data set of square-rooted scores, n = 32 768, to the digit. The P-value of "
        "ECCE-R, printed as zero to double precision, is "
        f"{_statistic(tables['cumulative'], 'sqrt', 'range').p_value:.2g}.",
        shown["Figure 7"],
        picture("ecce", "figure_7", "Figure 7: cumulative differences, observed and expected"),
        "## P-values",
        "P-values of the printed statistics, from the laws of Brownian motion.",
        _all_p_values(tables["p_values"], comparisons),
        "## Errors that depend on bins: figures 1, 35, 36",
        _BINS,
        *(
            picture("ecce", name, f"{name.replace('_', ' ').capitalize()}: n = {n}")
            for n, name in _NUMBERED.items()
            if name in sizes
        ),
        "## A noise floor against decay: figures 8 to 10",
        _FLOOR,
        shown["Noise floor"],
        picture("ecce", "figure_8", _captions(8)),
        picture("ecce", "figure_9", _captions(9)),
        picture("ecce", "figure_10", _captions(10)),
        f"The limits, by {null.data_sets} calibrated data sets of n = {null.n} instead of nine:",
        shown["Limits"],
        "Means over the nine published data sets, equispaced scores:",
        _means(tables["sizes"]),
        "## Deviations",
        reasons(comparisons),
        "## ImageNet: figures 11 to 34",
        _IMAGENET,
        _imagenet(tables["imagenet"]),
        *(
            picture(
                "ecce",
                network,
                f"{network}: as figures 31, 33 (20 bootstrap curves in grey) and 34",
            )
            for network in _networks(tables)
        ),
    )


_INTRODUCTION = """
# Cumulative errors (Arrieta-Ibarra et al. 2022)

Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu, "Metrics of Calibration for Probabilistic
Predictions" (2022): figures 1, 7 to 10, 35 and 36, and its figures on ImageNet with other networks.
Made by `calibrant papers ecce`, in a few minutes.

In every place: published · here (the difference in units of Monte-Carlo error, or of rounding in
print where nothing is left to chance; bold beyond 3). The synthetic data are the published ones,
bit by bit: scores, staircase, seed.
"""

_BINS = """
The figures have no printed numbers to compare with. The errors are equations 3 and 4, weighted by
the width of bins, for 4 to 4096 bins: which number of bins is right, they do not say.

Our curve of square-rooted scores in equispaced bins lies lower than the printed one where there
are many bins. The program released with the paper moves on by at most one bin an observation, so
that where scores are sparser than bins it counts low scores in bins they do not lie in: with
n = 8192 and 4096 bins it gives an ECE¹ of 0.3216, the equation gives 0.2373. The other curves are
the same.
"""

_FLOOR = """
With 16 draws a bin, the binned errors of calibrated data do not fall as n grows; the cumulative
ones fall as 1/√n. For data on the staircase the cumulative errors stay, and grow in units of σ.
Theorems 1 and 8 give the limit of ECE², ∫ (r(s) - s)² + r(s)(1 - r(s))/16 ds, with r(s) the chance
of outcome 1 at score s. It is 1/96 for calibrated data, whatever the scores. In this table the
limit takes the place of the published number; ours are means over nine data sets at the largest n.
The staircase itself changes with n: it has seven octal digits, all of them in use at n = 2^21.
"""

_IMAGENET = """
The paper tests ResNet-18 on the 1.3 million images of the training set; bundled with calibrant are
two networks on the 50 000 images of the validation set. The numbers stand beside each other, but
there is no reason why they should be equal. With 50 images a class, few classes can be told from
calibrated ones.
"""


def _captions(number: int) -> str:
    what = {
        8: "binned errors, 16 draws a bin (dashed: 1/96)",
        9: "cumulative errors",
        10: "cumulative errors over σ (dashed: their limits)",
    }
    return f"Figure {number}: means over nine data sets ± their standard error, {what[number]}"


def _statistic(rows: Sequence[Row], data: str, statistic: str) -> Row:
    return next(row for row in rows if (row.data, row.statistic) == (data, statistic))


def _all_p_values(rows: Sequence[Row], comparisons: Sequence[Comparison]) -> str:
    """Return every printed P-value beside ours, those printed as zero too."""
    deviations = {
        (one.row, one.column): one.deviation for one in comparisons if one.table == "P-values"
    }
    lines = []
    for row in rows:
        statistic = f"{_NAMES[row.statistic]} / σ = {row.normalized}"
        deviation = deviations.get((row.figure, statistic))
        ours = f"{row.p_value:.1e}" if row.p_value else "below 1e-308"
        lines.append(
            [
                f"{row.figure}, {statistic}",
                row.printed if row.printed != "0" else "zero",
                ours,
                "" if deviation is None else f"{deviation:+.1f}",
            ]
        )
    return grid(["statistic", "published", "here", "deviation"], lines)


def _means(rows: Sequence[Row]) -> str:
    sizes = list(dict.fromkeys(row.n for row in rows))[::3]
    places = {
        (row.measure, row.outcomes, row.n): row.mean for row in rows if row.transform == "identity"
    }
    lines = dict.fromkeys((measure, outcomes) for measure, outcomes, _ in places)
    return grid(
        ["", *(f"n = 2^{round(math.log2(n))}" for n in sizes)],
        [
            [f"{measure}, {outcomes}", *(f"{places[measure, outcomes, n]:.4g}" for n in sizes)]
            for measure, outcomes in sorted(lines)
        ],
    )


def _imagenet(rows: Sequence[Row]) -> str:
    lines = []
    for subset, (n, mad, mad_sigma, span, span_sigma) in printed.RESNET_18.items():
        lines.append([f"{subset}, ResNet-18 (published)", n, mad, mad_sigma, span, span_sigma, ""])
        for network in dict.fromkeys(row.data for row in rows):
            mad, span = (row for row in rows if (row.data, row.subset) == (network, subset))
            numbers = [f"{v:.4g}" for r in (mad, span) for v in (r.value, r.normalized)]
            p = "below 1e-300" if span.p_value < 1e-300 else f"{span.p_value:.2g}"
            lines.append([f"{subset}, {network}", f"{span.n}", *numbers, p])
    return grid(["", "n", "ECCE-MAD", "over σ", "ECCE-R", "over σ", "P of ECCE-R"], lines)
