"""Coverage and width of the intervals of `calibrant.estimate`.

Populations with a known error, diffuse and sparse, at sizes from 50 to 200 000, and four kinds of
interval:

==========  ===================================================================================
uniform     `calibrant.estimate` as it is
percentile  the naive bootstrap: percentiles of the errors of resamples; in some cells only
relplot     as relplot makes them: value ± the longer arm of the percentile interval (smECE only)
debiased    of Sun, Chaudhari, Barnett and Dobriban (2024), for the l2 error
==========  ===================================================================================

Repetitions come in blocks, which go round all cells of the study: 1000 samples of each cell take
an hour of one processor. `gather` makes a page of what has been measured so far, in any number
of files.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

import calibrant as cb
from calibrant.datasets import SCENARIOS, Scenario, simulate
from studies.frame import (
    COLOURS,
    GREY,
    MARKERS,
    OUT,
    REMARKABLE,
    AnyArray,
    FloatArray,
    Part,
    Report,
    Row,
    Study,
    StudyRun,
    Tables,
    figure,
    grid,
    legend_below,
    page,
    picture,
    read_csv,
    write_report,
)
from studies.sparse import SPARSE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "coverage"

# The naive bootstrap.

# More rows than these are resampled by cells of scores, 256 to each of the 15 bins of `ece`.
_CELLS = 15 * 256


def percentile_interval(
    measure: Callable[..., float],
    y: AnyArray,
    p: FloatArray,
    *,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
    **options: Any,
) -> tuple[float, float, float, float]:
    """Return low and high of the percentile bootstrap, the bias-corrected value and the value.

    The ends are percentiles of the values of resamples, which are drawn as counts of rows. The
    bias is that of the median of these values.
    """
    value, n = measure(y, p, **options), len(p)
    y, p, weight = _resampling_units(y, p)
    values = [
        measure(y, p, sample_weight=rng.multinomial(n, weight / n), **options)
        for _ in range(n_resamples)
    ]
    tails = ((1 - level) / 2, 0.5, (1 + level) / 2)
    low, middle, high = np.quantile(values, tails, method="weibull").tolist()
    return low, high, min(max(2 * value - middle, 0.0), 1.0), value


def _resampling_units(y: AnyArray, p: FloatArray) -> tuple[AnyArray, FloatArray, FloatArray]:
    """Return rows of weight 1, or of many rows the first of each cell and outcome, with counts."""
    if len(p) <= _CELLS:
        return y, p, np.ones(len(p))
    cell = 2 * np.floor(p * _CELLS) + y
    _, first, count = np.unique(cell, return_index=True, return_counts=True)
    return y[first], p[first], count.astype(np.float64)


def percentile_curve(
    y: AnyArray,
    p: FloatArray,
    *,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
    **options: Any,
) -> cb.Curve:
    """Return the local calibration error with the percentile band of Posocco and Bonnefoy (2021).

    Section 4.4: the median of the curves of resamples, between percentiles of them. Where no event
    was observed no resample has one either, and the band has no width: calibrant has no such band.
    """
    curve = cb.local_calibration_error(y, p, band=None, **options)
    found = []
    for _ in range(n_resamples):
        rows = rng.integers(len(p), size=len(p))
        how = {**options, "bandwidth": curve.bandwidth}
        drawn = cb.local_calibration_error(y[rows], p[rows], band=None, **how)
        again = np.interp(curve.x, drawn.x, drawn.y)
        # A resample without rows there leaves the error of the sample unchanged.
        found.append(np.where(np.isnan(again), curve.y, again))
    lower, middle, upper = np.quantile(found, ((1 - level) / 2, 0.5, (1 + level) / 2), axis=0)
    return replace(curve, y=middle, low=lower, high=upper, band="percentile", level=level)


# The interval of Sun, Chaudhari, Barnett and Dobriban (2024).


def debiased_l2_interval(
    y: AnyArray, p: FloatArray, *, level: float, n_bins: int = 15
) -> tuple[float, float, float, float]:
    """Return low and high of the interval for the l2 error, its estimate, and the plain value.

    The debiased estimator T of the squared error (their T_{m,n}) is normal with standard deviation
    sigma / sqrt(n) where the error is not 0; the lower end allows for the square being at least 0.
    At calibration T has the variance 2 sum_b v_b^2 / n^2, v_b the mean of p (1 - p) in bin b: where
    a test at that variance does not reject, 0 is in the interval.
    """
    b = np.minimum(np.floor(p * n_bins), n_bins - 1).astype(int)
    sums = [np.bincount(b, x, n_bins) for x in (np.ones_like(p), y - p, (y - p) ** 2, p * (1 - p))]
    m, u, square, v = np.array(sums)[:, sums[0] > 0]
    u, square, v, n = u / m, square / m, v / m, len(p)
    of_bin = (m * u**2 - square) / np.maximum(m - 1, 1)
    middle = max(float(m @ of_bin) / n, 0.0)
    variance = float(m @ (4 * u**2 * square - 3 * u**4)) / n - float(m @ u**2 / n) ** 2
    sd = math.sqrt(max(variance, 0.0) / n)
    alpha = 1 - level
    two_sided, one_sided = float(-ndtri(alpha / 2)) * sd, float(-ndtri(alpha)) * sd
    low = min(middle - one_sided, max(middle / 2, middle - two_sided))
    if middle < float(-ndtri(alpha)) * math.sqrt(2 * float(v @ v)) / n:
        low = 0.0
    squares = (low, middle + two_sided, middle, float(m @ u**2) / n)
    low, high, centre, value = (math.sqrt(max(x, 0.0)) for x in squares)
    return low, high, centre, value


# The experiments.

MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "smooth_ece": ("smooth_ece", {}),
    "ece": ("ece", {}),
    "ece l2": ("ece", {"norm": "l2"}),
    "ecce_mad": ("ecce_mad", {}),
    "ecce_r": ("ecce_r", {}),
    "logit_smoothed_ece": ("logit_smoothed_ece", {}),
    "ece, 100 bins": ("ece", {"n_bins": 100}),
    "ece, 300 bins": ("ece", {"n_bins": 300}),
    "smooth_ece, 0.002": ("smooth_ece", {"bandwidth": 0.002}),
    "logit_smoothed_ece, 0.01": ("logit_smoothed_ece", {"sigma": 0.01}),
}
POPULATIONS: dict[str, Scenario] = {
    **{name: one for name, one in SCENARIOS.items() if name != "skewed"},
    **SPARSE,
}
Method = Literal["uniform", "percentile", "relplot", "debiased"]
# Of 50 repetitions each; naive intervals, which are slow, have fewer.
BLOCKS, NAIVE_BLOCKS = 20, 4
LEVEL = 0.95
# What floating-point sums of a population may lack.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Block:
    """The results of a block of repetitions: counts, seconds in all, two medians, sd of values."""

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
    centre: float
    sd: float


def cells() -> Iterator[tuple[str, int, str, Method]]:
    """List what is measured, without the number of the block."""
    sizes = {"smooth_ece": (50, 200, 1000, 4000, 20_000, 100_000)}
    sizes["ece"] = sizes["smooth_ece"]
    for scenario in POPULATIONS:
        for measure in MEASURES:
            usual = ("smooth_ece", "ece", "ecce_r") if scenario in SPARSE else list(MEASURES)[:6]
            some: tuple[int, ...] = sizes.get(measure, (200, 4000, 100_000))
            if scenario in SPARSE:
                some = (2000, 20_000, 200_000) if measure in usual else (20_000,)
            elif measure not in usual:
                some = ()
            yield from ((scenario, n, measure, "uniform") for n in some)
            if measure == "ece l2":
                yield from ((scenario, n, measure, "debiased") for n in some)
    for scenario in ("perfect", "overconfident", "top"):
        for n in (200, 1000, 20_000):
            yield scenario, n, "smooth_ece", "percentile"
            yield scenario, n, "smooth_ece", "relplot"
            yield scenario, n, "ece", "percentile"


def parts(quick: bool) -> list[Part]:
    """List the blocks to measure."""
    if quick:
        some = [
            ("perfect", 200, "smooth_ece", "uniform", 0),
            ("perfect", 200, "smooth_ece", "percentile", 0),
            ("perfect", 200, "smooth_ece", "relplot", 0),
            ("perfect", 200, "ece", "uniform", 0),
            ("perfect", 200, "ece", "percentile", 0),
            ("perfect", 200, "ece l2", "uniform", 0),
            ("perfect", 200, "ece l2", "debiased", 0),
            ("overconfident", 200, "smooth_ece", "uniform", 0),
            ("overconfident", 200, "smooth_ece", "percentile", 0),
            ("top", 20_000, "ece", "uniform", 0),
        ]
        return [Part("blocks", Block, some, partial(measured, repetitions=60, n_resamples=50))]
    blocks = [
        (*cell, block)
        for block in range(BLOCKS)
        for cell in cells()
        if block < NAIVE_BLOCKS or cell[3] in ("uniform", "debiased")
    ]
    return [Part("blocks", Block, blocks, partial(measured, repetitions=50, n_resamples=199))]


@lru_cache
def truth(scenario: str, measure: str) -> float:
    """Return the population value: the measure of quadrature points weighted by their mass."""
    name, options = MEASURES[measure]
    population = POPULATIONS[scenario]
    # The edges of all bins, of 15, 100 and 300.
    points, mass = population.quadrature(np.arange(301) / 300)
    outcomes = population.outcome_probability(points)
    mass = np.where(mass < ROUNDING**4, 0.0, mass)
    return float(getattr(cb, name)(outcomes, points, sample_weight=mass, **options))


def measured(
    scenario: str,
    n: int,
    measure: str,
    method: Method,
    block: int,
    *,
    repetitions: int,
    n_resamples: int,
) -> Iterator[Block]:
    """Measure one block."""
    exact = truth(scenario, measure)
    start = time.perf_counter()
    kind = "percentile" if method == "relplot" else method
    low, high, centre, value = estimates(
        scenario, n, measure, kind, block, repetitions, n_resamples
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
        centre=float(np.median(centre)),
        sd=float(np.std(value, ddof=1)),
    )


# The interval of relplot is made of the one before it.
@lru_cache(1)
def estimates(
    scenario: str,
    n: int,
    measure: str,
    method: Method,
    block: int,
    repetitions: int,
    n_resamples: int,
) -> FloatArray:
    """Return low, high, bias-corrected value and value of each sample of a block."""
    name, options = MEASURES[measure]
    how: dict[str, Any] = {"level": LEVEL, "n_resamples": n_resamples, **options}
    found = []
    for repetition in range(repetitions):
        # All measures have the same samples; those of other scenarios and sizes are independent.
        rng = np.random.default_rng([list(POPULATIONS).index(scenario), n, block, repetition])
        y, p = simulate(POPULATIONS[scenario], n, rng=rng)
        if method == "uniform":
            one = cb.estimate(name, y, p, rng=repetition, **how)
            found.append((one.low, one.high, one.bias_corrected, one.value))
        elif method == "debiased":
            found.append(debiased_l2_interval(y, p, level=LEVEL))
        else:
            drawn = np.random.default_rng(repetition)
            found.append(percentile_interval(getattr(cb, name), y, p, rng=drawn, **how))
    return np.array(found).T


def gather(
    files: Iterable[str | os.PathLike[str]], *, out: str | os.PathLike[str] = OUT
) -> StudyRun:
    """Write the page of blocks in any number of files, without measuring any.

    The files have the columns of ``blocks.csv``, or of ``pooled.csv``, which holds one line per
    cell of the study. A block that is in several files counts once.
    """
    blocks = {
        (one.scenario, one.n, one.measure, one.method, one.block): one
        for file in files
        for one in read_csv(Path(file), Block)
    }
    return write_report(STUDY, {"blocks": list(blocks.values())}, Path(out))


# The page.

# Coverage that passes for the level.
_NEARLY = 0.93
_LABELS = {
    "uniform": "`estimate`",
    "debiased": "Sun et al.",
    "percentile": "percentile bootstrap",
    "relplot": "value ± longer arm",
}
_DRAWN = ("smooth_ece", "ece")

Cell = tuple[str, str, int, str]


def report(tables: Tables) -> Report:
    """Set the kinds of interval side by side."""
    pooled = _pooled(tables["blocks"])
    cells: dict[Cell, Row] = {(r.measure, r.scenario, r.n, r.method): r for r in pooled}
    drawn = [measure for measure in _DRAWN if any(key[0] == measure for key in cells)]
    return Report(
        text=_text(cells, drawn),
        tables={"pooled": pooled},
        figures={measure: partial(draw_coverage, cells, measure) for measure in drawn},
    )


def _pooled(blocks: Sequence[Row]) -> list[Row]:
    """Make one row of all blocks of a cell: sums of counts, means of medians and of variances."""
    cells: dict[tuple[object, ...], list[Row]] = {}
    for block in blocks:
        cells.setdefault((block.scenario, block.n, block.measure, block.method), []).append(block)
    pooled = []
    for _, own in sorted(cells.items(), key=lambda item: _order(item[1][0])):
        repetitions = np.array([block.repetitions for block in own])
        counts = ("repetitions", "covered", "low_right", "high_right")
        sums = {name: sum(getattr(block, name) for block in own) for name in counts}

        def mean(name: str, power: int = 1, own: list[Row] = own, w: Any = repetitions) -> float:
            values = [getattr(block, name) ** power for block in own]
            return float(np.average(values, weights=w) ** (1 / power))

        pooled.append(
            replace(
                own[0],
                block=0,
                seconds=round(sum(block.seconds for block in own), 3),
                width=mean("width"),
                centre=mean("centre"),
                sd=mean("sd", 2),
                **sums,
            )
        )
    return pooled


def _order(row: Row) -> tuple[int, ...]:
    places = ((list(MEASURES), row.measure), (list(POPULATIONS), row.scenario))
    return *(names.index(name) for names, name in places), row.n, list(_LABELS).index(row.method)


def _text(cells: Mapping[Cell, Row], drawn: Sequence[str]) -> str:
    measures = _in_order(key[0] for key in cells)
    return page(
        _INTRODUCTION,
        _summary(cells),
        _scenarios(cells),
        "Population values, the errors of quadrature points weighted by their mass:",
        _truths(cells, measures),
        *(
            picture(NAME, name, f"{name}: coverage against n; grey: 95% ± 2 Monte-Carlo errors")
            for name in drawn
        ),
        *(block for measure in measures for block in _measure(cells, measure)),
        "## Coverage below the level",
        _missed(cells),
    )


_INTRODUCTION = """
# Coverage of intervals

How often a 95% interval of `calibrant.estimate` holds the population value, in samples from
populations whose calibration error is known: diffuse errors, and sparse ones, of populations that
are calibrated nearly everywhere and badly wrong in one place. Made by `python -m studies coverage`.

Beside it stand, in some cells, two naive intervals: the percentile bootstrap, from percentiles of
the errors of resampled rows, and for smECE the construction of the relplot package, the sample's
value ± the longer arm of that interval; and for the l2 error that of Sun, Chaudhari, Barnett and
Dobriban (2024), from the debiased estimator of its square and two normal limits.
Near perfect calibration the error of a sample is larger than that of its population, and so is that
of every bootstrap sample: naive intervals do not come down to the truth.

Samples are the same for all; intervals are made with 199 resamples.
"""

_WIDTHS = """
Median width, in units of 3.92 standard deviations of the error from sample to sample: what an
interval would have if the error were normal and unbiased. In parentheses the median bias-corrected
value less the population's, in the same units.
"""


def _summary(cells: Mapping[Cell, Row]) -> str:
    """Return the lowest coverage and the median width, of diffuse and of sparse errors."""
    lines = []
    for kind, wanted in (("Diffuse", False), ("Sparse", True)):
        own = [
            row
            for (_, scenario, _, method), row in cells.items()
            if method == "uniform" and (scenario in SPARSE) == wanted
        ]
        if own:
            worst = min(own, key=lambda row: row.covered / row.repetitions)
            lines.append(
                f"- {kind} errors, {len(own)} cells: `estimate` covers "
                f"{100 * worst.covered / worst.repetitions:.1f}% in the worst ({worst.measure}, "
                f"{worst.scenario}, n = {worst.n}), {_mean_coverage(own):.1f}% on average; its "
                f"median width in the middle cell is {np.median([_width(r) for r in own]):.2f} "
                "times 3.92 standard deviations of the error."
            )
    return "\n".join(lines)


def _mean_coverage(rows: Sequence[Row]) -> float:
    return 100 * float(np.mean([row.covered / row.repetitions for row in rows]))


def _width(row: Row) -> float:
    """Return the width in units of 3.92 standard deviations of the error."""
    return float(row.width / (2 * -ndtri((1 - LEVEL) / 2) * row.sd)) if row.sd > 0 else math.nan


def _scenarios(cells: Mapping[Cell, Row]) -> str:
    """Return the formula of every scenario."""
    named = [(name, POPULATIONS[name]) for name in _in_order(key[1] for key in cells)]
    return grid(
        ["scenario", "scores p", "P(y = 1 \\| p)"],
        [[name, f"{one.scores}", f"{one.calibration}"] for name, one in named],
    )


def _truths(cells: Mapping[Cell, Row], measures: Sequence[str]) -> str:
    """Return the population values of every scenario."""
    truths = {(key[1], key[0]): f"{row.truth:.4f}" for key, row in cells.items()}
    return grid(
        ["scenario", *measures],
        [
            [name, *(truths.get((name, measure), "") for measure in measures)]
            for name in _in_order(key[1] for key in cells)
        ],
    )


def _measure(cells: Mapping[Cell, Row], measure: str) -> list[str]:
    methods = [m for m in _LABELS if any((k[0], k[3]) == (measure, m) for k in cells)]
    sizes = sorted({key[2] for key in cells if key[0] == measure})
    kinds = ", ".join(_LABELS[method] for method in methods)
    counts = "; ".join(_repetitions(cells, measure, method) for method in methods)
    places = {
        (scenario, n): [cells.get((measure, scenario, n, m)) for m in methods]
        for scenario in _in_order(key[1] for key in cells if key[0] == measure)
        for n in sizes
    }
    scenarios = _in_order(scenario for scenario, _ in places)
    heading = ["scenario", *(f"n = {n}" for n in sizes)]
    return [
        f"## {measure}",
        f"Coverage in per cent: {kinds} ({counts}).",
        grid(heading, [[s, *(_coverages(places[s, n]) for n in sizes)] for s in scenarios]),
        _WIDTHS,
        grid(heading, [[s, *(_widths(places[s, n]) for n in sizes)] for s in scenarios]),
    ]


def _repetitions(cells: Mapping[Cell, Row], measure: str, method: str) -> str:
    own = [r.repetitions for k, r in cells.items() if (k[0], k[3]) == (measure, method)]
    span = f"{min(own)}" if min(own) == max(own) else f"{min(own)} to {max(own)}"
    return f"{span} samples"


def _coverages(rows: Sequence[Row | None]) -> str:
    return _listed(rows, lambda row: f"{100 * row.covered / row.repetitions:.1f}")


def _listed(rows: Sequence[Row | None], text: Callable[[Row], str]) -> str:
    """Return texts of all methods, a dash for one that was not tried, nothing where it ends."""
    texts = [text(row) if row else "–" for row in rows]
    while texts and texts[-1] == "–":
        texts.pop()
    return " · ".join(texts)


def _widths(rows: Sequence[Row | None]) -> str:
    def text(row: Row) -> str:
        bias = (row.centre - row.truth) / (2 * -ndtri((1 - LEVEL) / 2) * row.sd) if row.sd else 0.0
        return f"{_width(row):.2f}" + (f" ({bias:+.2f})" if row.method == "uniform" else "")

    return _listed(rows, text)


def _missed(cells: Mapping[Cell, Row]) -> str:
    """List where the new intervals hold the truth less often than Monte-Carlo error explains."""
    ours = [row for row in cells.values() if row.method == "uniform"]
    low = [
        f"- {row.measure}, {row.scenario}, n = {row.n}: {100 * row.covered / row.repetitions:.1f}% "
        f"of {row.repetitions} ({_deviation(row):+.1f})"
        for row in ours
        if _deviation(row) < -REMARKABLE or row.covered < _NEARLY * row.repetitions
    ]
    if low:
        return "\n".join(["In parentheses the deviation in Monte-Carlo errors.", "", *low])
    lowest = min(row.covered / row.repetitions for row in ours)
    return (
        f"No coverage of `estimate` is below {_NEARLY:.0%}, nor below 95% by more than "
        f"{REMARKABLE:g} Monte-Carlo errors; the lowest is {100 * lowest:.1f}%."
    )


def _deviation(row: Row) -> float:
    """Return how far coverage is from its level, in standard deviations under that level."""
    coverage: float = row.covered / row.repetitions
    return float((coverage - LEVEL) / np.sqrt(LEVEL * (1 - LEVEL) / row.repetitions))


def draw_coverage(cells: Mapping[Cell, Row], measure: str) -> Figure:
    """Draw coverage against n, one panel per scenario."""
    scenarios = _in_order(key[1] for key in cells if key[0] == measure)
    n_columns = min(3, len(scenarios))
    n_rows = -(-len(scenarios) // n_columns)
    size = (3.4 * n_columns, 2.3 * n_rows + 0.5)
    drawn = figure(n_rows, n_columns, *size, sharex=True, sharey=True)
    shown = [m for m in _LABELS if any((k[0], k[3]) == (measure, m) for k in cells)]
    for axes, scenario in zip(drawn.axes, scenarios, strict=False):
        for method, colour, marker in zip(shown, COLOURS, MARKERS, strict=False):
            keys = sorted(
                key for key in cells if key[:2] == (measure, scenario) and key[3] == method
            )
            own = [cells[key] for key in keys]
            axes.plot(
                [row.n for row in own],
                [row.covered / row.repetitions for row in own],
                color=colour,
                marker=marker,
                markersize=4,
                label=_LABELS[method].replace("`", ""),
            )
        repetitions = max(row.repetitions for key, row in cells.items() if key[0] == measure)
        noise = 2 * np.sqrt(LEVEL * (1 - LEVEL) / repetitions)
        axes.axhspan(LEVEL - noise, LEVEL + noise, color=GREY, alpha=0.3, linewidth=0)
        axes.set_xscale("log")
        axes.set_ylim(-0.03, 1.03)
        axes.set_title(scenario.replace("_", " "), fontsize=10)
    for axes in drawn.axes[len(scenarios) :]:
        axes.set_visible(False)
    for axes in drawn.axes[-n_columns:]:
        axes.set_xlabel("n")
    drawn.supylabel("coverage", fontsize=10)
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


STUDY = Study(NAME, parts=parts, report=report)
