"""Arrieta-Ibarra et al., "Metrics of Calibration" (2022): figures 1, 7 to 10, 35 and 36, ImageNet.

The synthetic data are the published ones to the last bit: scores, staircase and seed, also for the
nine data sets that figures 8 to 10 average over. The networks on ImageNet are others than in the
paper, so these numbers are shown beside the published ones and not compared.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import calibrant as cb
from calibrant.datasets import load_imagenet
from studies.frame import (
    COLOURS,
    GREY,
    LIGHT,
    MARKERS,
    AnyArray,
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
    from_zero,
    grid,
    legend_below,
    page,
    picture,
    reasons,
)
from studies.staircase import SEED, Transform, cantor_staircase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "ecce"

# The printed numbers.

# Statistic: its value, the same over sigma, and its P-value.
FIGURE_7 = {"max": ("0.01243", "5.512", "7.1e-08"), "range": ("0.02291", "10.16", "0")}

# Figure, statistic, value over sigma, P-value: "0" is "zero to double precision".
P_VALUES = (
    ("Figure 7", "max", "5.512", "7.1e-08"),
    ("Figure 7", "range", "10.16", "0"),
    ("Figure 14", "max", "6.607", "7.8e-11"),
    ("Figure 14", "range", "6.780", "4.8e-11"),
    ("Figure 18", "max", "5.446", "1.0e-07"),
    ("Figure 18", "range", "8.267", "0"),
    ("Figure 22", "max", "4.274", "3.8e-05"),
    ("Figure 22", "range", "5.186", "8.6e-07"),
    ("Figure 26", "max", "10.14", "0"),
    ("Figure 26", "range", "10.23", "0"),
    ("Figure 30", "max", "8.004", "0"),
    ("Figure 30", "range", "8.008", "0"),
    ("Figure 34", "max", "111.7", "0"),
    ("Figure 34", "range", "111.7", "0"),
)

# ImageNet: each class shown, and its index.
CLASSES = {
    "night snake": 60,
    "sidewinder": 68,
    "Eskimo dog": 248,
    "wild boar": 342,
    "sunglasses": 837,
}

# ResNet-18 on the training set: n, then ECCE-MAD and ECCE-R, each with its value over sigma.
RESNET_18 = {
    "all": ("1 281 167", "0.03306", "111.7", "0.03306", "111.7"),
    "night snake": ("1300", "0.08059", "6.607", "0.08270", "6.780"),
    "sidewinder": ("1300", "0.07081", "5.446", "0.1075", "8.267"),
    "Eskimo dog": ("1300", "0.05534", "4.274", "0.06715", "5.186"),
    "wild boar": ("1300", "0.1161", "10.14", "0.1172", "10.23"),
    "sunglasses": ("1300", "0.09972", "8.004", "0.09977", "8.008"),
}

# What figure 10 hovers around, section 3.1.
LIMITS = {"ECCE-MAD / sigma": "1.2533", "ECCE-R / sigma": "1.5958"}


# The experiments.

Network = Literal["resnet34", "densenet161"]
Statistic = Literal["max", "range"]
Strategy = Literal["uniform", "quantile"]

TRANSFORMS: tuple[Transform, ...] = ("identity", "square", "sqrt")
DATA_SETS = 9
DRAWS_PER_BIN = 16
SUBSETS = ("all", *CLASSES)
NETWORKS: tuple[Network, ...] = ("resnet34", "densenet161")
STATISTICS: tuple[Statistic, ...] = ("max", "range")
STRATEGIES: dict[str, Strategy] = {"equispaced": "uniform", "equal count": "quantile"}


@dataclass(frozen=True)
class Binned:
    """Width-weighted errors of one data set with m bins."""

    data: str
    n: int
    bins: str
    m: int
    ece1: float
    ece2: float


@dataclass(frozen=True)
class Cumulative:
    """A cumulative statistic of one data set and its P-value."""

    data: str
    subset: str
    n: int
    statistic: str
    value: float
    normalized: float
    p_value: float


@dataclass(frozen=True)
class Average:
    """Mean and standard deviation over data sets."""

    n: int
    transform: str
    outcomes: str
    data_sets: int
    measure: str
    mean: float
    deviation: float


@dataclass(frozen=True)
class Floor:
    """The limit of the mean-square error with 16 draws per bin, theorems 1 and 8."""

    n: int
    transform: str
    outcomes: str
    ece2: float


@dataclass(frozen=True)
class PValue:
    """The P-value of a printed statistic."""

    figure: str
    statistic: str
    normalized: str
    printed: str
    p_value: float


def parts(quick: bool) -> list[Part]:
    """List the tables to measure."""
    sizes = (2**13,) if quick else (2**13, 2**15, 2**17)
    growing = [2**e for e in (range(12, 16, 2) if quick else range(12, 22))]
    null_n, null_sets = (2**12, 100) if quick else (2**15, 1000)
    networks = NETWORKS[:1] if quick else NETWORKS
    both = ("calibrated", "staircase")
    return [
        Part("bins", Binned, [(t, n) for n in sizes for t in TRANSFORMS], bins),
        Part("cumulative", Cumulative, [(t, "all") for t in TRANSFORMS], cumulative),
        Part("p_values", PValue, [line[:3] for line in P_VALUES], p_value),
        Part("floors", Floor, [(growing[-1], t, o) for o in both for t in TRANSFORMS], floor),
        Part(
            "sizes",
            Average,
            [(n, t, o, DATA_SETS) for n in growing for o in both for t in TRANSFORMS],
            published_data_sets,
        ),
        Part(
            "null",
            Average,
            [(null_n, t, "calibrated", null_sets) for t in TRANSFORMS],
            fresh_data_sets,
        ),
        Part("imagenet_bins", Binned, [(network, 50_000) for network in networks], imagenet_bins),
        Part(
            "imagenet",
            Cumulative,
            [(network, s) for network in networks for s in SUBSETS],
            imagenet,
        ),
    ]


def bins(transform: Transform, n: int) -> Iterator[Binned]:
    """Measure the published data with 4 to 4096 bins of both kinds (figures 1, 35, 36)."""
    yield from _binned(transform, *cantor_staircase(n, transform))


def imagenet_bins(network: Network, _n: int) -> Iterator[Binned]:
    """Measure a network with 4 to 4096 bins of both kinds (figure 31)."""
    yield from _binned(network, *load_imagenet(network))


def _binned(data: str, y: AnyArray, p: FloatArray) -> Iterator[Binned]:
    for kind, strategy in STRATEGIES.items():
        for m in 2 ** np.arange(2, 13):
            yield Binned(data, len(p), kind, int(m), *_width_weighted(y, p, int(m), strategy))


def _width_weighted(y: AnyArray, p: FloatArray, m: int, strategy: Strategy) -> tuple[float, float]:
    """Return ECE^1 and ECE^2, equations 3 and 4; the second is not rooted."""
    ece1, root = (
        cb.ece(y, p, n_bins=m, strategy=strategy, weighting="width", norm=norm)
        for norm in ("l1", "l2")
    )
    return ece1, root**2


def cumulative(transform: Transform, subset: str) -> Iterator[Cumulative]:
    """Test the published data (figure 7)."""
    yield from _tested(transform, subset, *cantor_staircase(2**15, transform))


def imagenet(network: Network, subset: str) -> Iterator[Cumulative]:
    """Test a network on all images or on those of a published class (figures 14 to 34)."""
    images = load_imagenet(network)
    own = (images.true_label == CLASSES[subset]) if subset in CLASSES else slice(None)
    yield from _tested(network, subset, images.y_true[own], images.y_prob[own])


def _tested(data: str, subset: str, y: AnyArray, p: FloatArray) -> Iterator[Cumulative]:
    for statistic in STATISTICS:
        found = cb.cumulative_test(y, p, statistic=statistic)
        numbers = (found.statistic, found.normalized, found.p_value)
        yield Cumulative(data, subset, len(p), statistic, *numbers)


def p_value(figure: str, statistic: str, normalized: str) -> Iterator[PValue]:
    """Find the P-value of a printed statistic."""
    distribution = cb.inference.brownian_max if statistic == "max" else cb.inference.brownian_range
    printed = {line[:3]: line[3] for line in P_VALUES}[figure, statistic, normalized]
    yield PValue(figure, statistic, normalized, printed, float(distribution.sf(float(normalized))))


def floor(n: int, transform: Transform, outcomes: str) -> Iterator[Floor]:
    """Integrate (r(s) - s)^2 + r(s) (1 - r(s)) / 16 over the scores s."""
    data = cantor_staircase(n, transform)
    p = data.y_prob
    r = p if outcomes == "calibrated" else data.true_prob
    widths = np.diff(np.append(p, 1.0))
    limit = float(widths @ ((r - p) ** 2 + r * (1 - r) / DRAWS_PER_BIN))
    yield Floor(n, transform, outcomes, limit)


def published_data_sets(
    n: int, transform: Transform, outcomes: str, n_sets: int
) -> Iterator[Average]:
    """Average over the published data sets (figures 8 to 10)."""
    yield from _averages(n, transform, outcomes, n_sets, _as_published(SEED))


def fresh_data_sets(n: int, transform: Transform, outcomes: str, n_sets: int) -> Iterator[Average]:
    """Average over many more data sets, to see the limits that figure 10 hovers around."""
    rng = np.random.default_rng([n, TRANSFORMS.index(transform)])
    yield from _averages(n, transform, outcomes, n_sets, rng)


def _averages(
    n: int, transform: Transform, outcomes: str, n_sets: int, rng: np.random.Generator
) -> Iterator[Average]:
    data = cantor_staircase(n, transform)
    p = data.y_prob
    probability = p if outcomes == "calibrated" else data.true_prob
    drawn = [_measures(rng.random(n) <= probability, p) for _ in range(n_sets)]
    for measure in drawn[0]:
        values = np.array([found[measure] for found in drawn])
        mean, deviation = float(values.mean()), float(values.std(ddof=1))
        yield Average(n, transform, outcomes, n_sets, measure, mean, deviation)


def _measures(y: AnyArray, p: FloatArray) -> dict[str, float]:
    ece1, ece2 = _width_weighted(y, p, len(p) // DRAWS_PER_BIN, "quantile")
    mad, span = (cb.cumulative_test(y, p, statistic=statistic) for statistic in STATISTICS)
    return {
        "ECE1": ece1,
        "ECE2": ece2,
        "ECCE-MAD": mad.statistic,
        "ECCE-R": span.statistic,
        "ECCE-MAD / sigma": mad.normalized,
        "ECCE-R / sigma": span.normalized,
    }


def _as_published(seed: int) -> np.random.Generator:
    """Return a generator that gives what Python's own gives under this seed, only faster."""
    *key, position = random.Random(seed).getstate()[1]
    bits = np.random.MT19937()
    bits.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(key, dtype=np.uint32), "pos": position},
    }
    return np.random.Generator(bits)


# The page.

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
    """Compare what is printed below figure 7; both numbers are exact."""
    for row in rows:
        if row.data != "sqrt":
            continue
        numbers = (row.value, row.normalized, row.p_value)
        columns = ("value", "over σ", "P-value")
        lines = zip(columns, FIGURE_7[row.statistic], numbers, strict=True)
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
        if row.measure in LIMITS:
            noise = row.deviation / math.sqrt(row.data_sets)
            limit = LIMITS[row.measure]
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
    levels = {"ECE2": 1 / 96} | {name: float(limit) for name, limit in LIMITS.items()}
    drawn: dict[str, Callable[[], Figure]] = {"figure_7": draw_figure_7}
    for n in dict.fromkeys(row.n for row in tables["bins"]):
        own = [row for row in tables["bins"] if row.n == n]
        drawn[_NUMBERED[n]] = partial(draw_binned, own)
    for name, (measures, labels) in _FIGURES.items():
        drawn[name] = partial(draw_growing, tables["sizes"], measures, labels, levels)
    for network in _networks(tables):
        own = [row for row in tables["imagenet_bins"] if row.data == network]
        drawn[network] = partial(draw_network, network, own)
    return drawn


def _networks(tables: Tables) -> list[Network]:
    return list(dict.fromkeys(row.data for row in tables["imagenet"]))


def _text(tables: Tables, comparisons: list[Comparison]) -> str:
    shown = by_table(comparisons)
    sizes = [_NUMBERED[n] for n in dict.fromkeys(row.n for row in tables["bins"])]
    null = tables["null"][0]
    return page(
        _INTRODUCTION,
        "## One data set: figure 7",
        "The published data set of square-rooted scores, n = 32 768, to the digit. The P-value of "
        "ECCE-R, printed as zero to double precision, is "
        f"{_statistic(tables['cumulative'], 'sqrt', 'range').p_value:.2g}.",
        shown["Figure 7"],
        picture(NAME, "figure_7", "Figure 7: cumulative differences, observed and expected"),
        "## P-values",
        "P-values of the printed statistics, from the distributions of Brownian motion.",
        _all_p_values(tables["p_values"], comparisons),
        "## Errors that depend on bins: figures 1, 35, 36",
        _BINS,
        *(
            picture(NAME, name, f"{name.replace('_', ' ').capitalize()}: n = {n}")
            for n, name in _NUMBERED.items()
            if name in sizes
        ),
        "## A noise floor against decay: figures 8 to 10",
        _FLOOR,
        shown["Noise floor"],
        picture(NAME, "figure_8", _captions(8)),
        picture(NAME, "figure_9", _captions(9)),
        picture(NAME, "figure_10", _captions(10)),
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
                NAME,
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
Made by `python -m studies ecce`, in a few minutes.

In every place: published · here (the difference in units of Monte-Carlo error, or of rounding in
print where both are exact; bold beyond 3). The synthetic data are the published ones, bit by bit:
scores, staircase, seed.
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
With 16 draws per bin, the binned errors of calibrated data do not fall as n grows; the cumulative
ones fall as 1/√n. For data on the staircase the cumulative errors stay, and grow in units of σ.
Theorems 1 and 8 give the limit of ECE², ∫ (r(s) - s)² + r(s)(1 - r(s))/16 ds, with r(s) the
probability of outcome 1 at score s. It is 1/96 for calibrated data, whatever the scores. In this
table the limit takes the place of the published number; ours are means over nine data sets at the
largest n.
The staircase itself changes with n: it has seven octal digits, all of them in use at n = 2^21.
"""

_IMAGENET = """
The paper tests ResNet-18 on the 1.3 million images of the training set; bundled with calibrant are
two networks on the 50 000 images of the validation set. The numbers stand beside each other, but
there is no reason why they should be equal. With 50 images per class, few classes deviate
significantly from calibration.
"""


def _captions(number: int) -> str:
    what = {
        8: "binned errors, 16 draws per bin (dashed: 1/96)",
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
    for subset, (n, mad, mad_sigma, span, span_sigma) in RESNET_18.items():
        lines.append([f"{subset}, ResNet-18 (published)", n, mad, mad_sigma, span, span_sigma, ""])
        for network in dict.fromkeys(row.data for row in rows):
            mad, span = (row for row in rows if (row.data, row.subset) == (network, subset))
            numbers = [f"{v:.4g}" for r in (mad, span) for v in (r.value, r.normalized)]
            p = "below 1e-300" if span.p_value < 1e-300 else f"{span.p_value:.2g}"
            lines.append([f"{subset}, {network}", f"{span.n}", *numbers, p])
    return grid(["", "n", "ECCE-MAD", "over σ", "ECCE-R", "over σ", "P of ECCE-R"], lines)


# The figures.

SCORES = {"identity": "equispaced", "square": "squared", "sqrt": "square rooted"}
_BOOTSTRAPPED_CURVES = 20
_MINOR_TICKS = 100


def draw_binned(rows: Sequence[Row]) -> Figure:
    """Draw both errors against the number of bins, for both kinds of bins (figures 1, 35, 36)."""
    drawn = figure(2, 2, 9, 6.4, sharex=True, sharey="row")
    places = [(error, kind) for error in ("ece1", "ece2") for kind in ("equispaced", "equal count")]
    for axes, (error, kind) in zip(drawn.axes, places, strict=True):
        for transform, colour, marker in zip(SCORES, COLOURS, MARKERS, strict=False):
            own = [row for row in rows if (row.data, row.bins) == (transform, kind)]
            values = [getattr(row, error) for row in own]
            axes.plot(
                [row.m for row in own],
                values,
                marker=marker,
                color=colour,
                markersize=4,
                label=f"{SCORES[transform]} scores",
            )
        axes.set_xscale("log", base=2)
    for axes in drawn.axes[::2]:
        axes.set_ylim(bottom=0)
    for axes, title in zip(drawn.axes[:2], ("equispaced bins", "bins of equal count"), strict=True):
        axes.set_title(title)
    for axes in drawn.axes[2:]:
        axes.set_xlabel("number of bins m")
    drawn.axes[0].set_ylabel("ECE¹")
    drawn.axes[2].set_ylabel("ECE²")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def draw_figure_7() -> Figure:
    """Draw the observed cumulative differences above the expected ones (figure 7)."""
    data = cantor_staircase(2**15, "sqrt")
    drawn = figure(2, 1, 7.5, 7.2)
    sigma = cb.cumulative_curve(*data).sigma
    outcomes: dict[str, AnyArray] = {"observed": data.y_true, "expected": data.true_prob}
    for axes, (name, y) in zip(drawn.axes, outcomes.items(), strict=True):
        _cumulative(axes, y, data.y_prob, sigma, n_labels=10)
        axes.set_title(name, loc="left", fontweight="bold")
    return drawn


def draw_growing(
    rows: Sequence[Row],
    measures: tuple[str, str],
    labels: tuple[str, str],
    levels: dict[str, float],
) -> Figure:
    """Draw means over data sets against n, calibrated above the staircase (figures 8 to 10)."""
    drawn = figure(2, 2, 9, 6.4, sharex=True)
    places = [
        (outcomes, measure) for outcomes in ("calibrated", "staircase") for measure in measures
    ]
    for axes, (outcomes, measure) in zip(drawn.axes, places, strict=True):
        for transform, colour, marker in zip(SCORES, COLOURS, MARKERS, strict=False):
            own = [
                r
                for r in rows
                if (r.outcomes, r.measure, r.transform) == (outcomes, measure, transform)
            ]
            n, mean = [row.n for row in own], np.array([row.mean for row in own])
            noise = np.array([row.deviation / row.data_sets**0.5 for row in own])
            axes.fill_between(n, mean - noise, mean + noise, color=colour, alpha=0.2, linewidth=0)
            label = f"{SCORES[transform]} scores"
            axes.plot(n, mean, marker=marker, color=colour, markersize=4, label=label)
        if outcomes == "calibrated" and measure in levels:
            axes.axhline(levels[measure], color=GREY, linestyle="--", linewidth=1)
        axes.set_xscale("log", base=2)
        from_zero(axes)
        axes.set_title(f"{labels[measures.index(measure)]}, {outcomes}", loc="left")
    for axes in drawn.axes[2:]:
        axes.set_xlabel("sample size n")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def draw_network(network: Network, rows: Sequence[Row]) -> Figure:
    """Draw errors against bins, reliability and cumulative differences (figures 31, 33, 34)."""
    (y, p), n_bins = load_imagenet(network), _RELIABILITY_BINS
    drawn = figure(1, 3, 13, 4.4)
    against_bins, reliability, cumulated = drawn.axes
    for kind, colour, marker in zip(("equispaced", "equal count"), COLOURS, MARKERS, strict=False):
        own = [row for row in rows if row.bins == kind]
        against_bins.plot(
            [row.m for row in own],
            [row.ece1 for row in own],
            marker=marker,
            color=colour,
            markersize=4,
            label=f"{kind} bins",
        )
    against_bins.set_xscale("log", base=2)
    from_zero(against_bins)
    against_bins.set(xlabel="number of bins m", title="ECE¹")
    against_bins.legend(frameon=False)
    rng = np.random.default_rng(0)
    for _ in range(_BOOTSTRAPPED_CURVES):
        again = rng.integers(0, len(p), len(p))
        _mean_outcomes(reliability, y[again], p[again], n_bins, color=LIGHT, linewidth=0.8)
    reliability.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    _mean_outcomes(reliability, y, p, n_bins, color=COLOURS[0], linewidth=1.2)
    reliability.set(
        xlabel="mean confidence", ylabel="accuracy", title=f"{n_bins} bins of equal count"
    )
    _cumulative(cumulated, y, p, cb.cumulative_curve(y, p).sigma, n_labels=5)
    return drawn


def _mean_outcomes(axes: Axes, y: AnyArray, p: FloatArray, n_bins: int, **style: Any) -> None:
    table = cb.bin_table(y, p, n_bins=n_bins, strategy="quantile")
    axes.plot(table.mean_pred, table.mean_true, **style)


def _cumulative(axes: Axes, y: AnyArray, p: FloatArray, sigma: float, n_labels: int) -> None:
    """Draw cumulative differences, with a triangle four sigma high at the origin."""
    curve = cb.cumulative_curve(y, p)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.plot(curve.fraction, curve.deviation, color=COLOURS[0], linewidth=1)
    axes.fill([0, 0, 0.025], [-2 * sigma, 2 * sigma, 0], color="black", linewidth=0)
    at = np.arange(n_labels) / n_labels
    score = np.interp(at, curve.fraction, curve.score)
    axes.set_xticks(at, [f"{value:.2f}" for value in score])
    levels = np.arange(1, _MINOR_TICKS) / _MINOR_TICKS
    # How scores are spread: as many ticks at every score would be drawn one by one.
    ticks = np.interp(levels, curve.score, curve.fraction)
    below = axes.get_xaxis_transform()
    axes.plot(ticks, np.zeros_like(ticks), "|", color="black", markersize=5, transform=below)
    axes.set_xlim(0, 1)
    axes.set(xlabel="score", ylabel="cumulative difference")
    upper = axes.secondary_xaxis("top")
    upper.set_xlabel("fraction of rows k/n")


STUDY = Study(NAME, parts=parts, report=report)
