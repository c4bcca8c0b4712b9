"""What the page on Chidambaram et al. (2024) shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from calibrant.papers import _logit_smoothing_figures as figures
from calibrant.papers._frame import Report, Row, Tables
from calibrant.papers._page import Comparison, compared, grid, page, picture, reasons, side_by_side

# The paper's words in digits: even numbers of bins give "≈ 1/2", odd ones "≈ 0", and smoothing
# "effectively constant near zero" outside of large scales.
_EVEN, _ODD, _NEAR_ZERO = "0.50", "0.00", "0.00"
_MANY_BINS = 10
_ALPHA_ECE = "0.499875"  # 1/2 - epsilon of section 3.1, with 1/2 + epsilon = rho(0.0005)
_UNMOVED, _MOVED = "0.000", "0.333"  # proposition 3.5: 0, and 1/3 - 2 delta or more
_WIDE = (
    "Not a printed number: the paper's estimate, done again here as released. Its kernel for "
    "uniform noise reaches σ to either side, twice as far as the noise it samples, so that "
    "outcomes are averaged over a window too wide."
)
_NOT_QUITE_ZERO = (
    "Near zero is not zero: at σ = 0.1 noise moves predictions of 1/2 by σ √(2/π) / 4 = 0.020 on "
    "average, and at σ = 0.01 the two points begin to part."
)
_STILL_NOISE = (
    "At this n the estimate is still above its limit, as every sample is: noise in the smoothed "
    "residuals does not cancel in abs(). It falls with n."
)


def report(tables: Tables) -> Report:
    """Set published numbers beside ours, and draw the figures again."""
    comparisons = [
        *_parity(tables["two_points"], tables["shrinking"]),
        *_sampling(tables["sampling"]),
        *_jumps(tables["jumps"]),
        *_limits(tables["shrinking"], tables["convergence"]),
    ]
    return Report(
        text=_text(tables, comparisons),
        tables={"comparisons": comparisons},
        figures={
            "figure_2": partial(figures.parity, tables["two_points"], tables["shrinking"]),
            "figure_3": partial(figures.networks, tables["networks"]),
            "figures_4_5": partial(figures.differences, tables["networks"]),
            "proposition_3_5": partial(figures.jumps, tables["jumps"]),
            "theorem_5_4": partial(figures.convergence, tables["shrinking"], tables["convergence"]),
        },
    )


def _parity(samples: Sequence[Row], shrinking: Sequence[Row]) -> Iterator[Comparison]:
    """Compare with what is said of figure 2, of one sample of 1000."""
    ece = next(row.ece for row in shrinking if row.population == "2-point")
    yield compared("Figure 2", "ECE of the predictor", "error", _ALPHA_ECE, ece, 0.0)
    binned = [row for row in samples if row.measure == "ECE"]
    for words, parity, number in (("even", 0, _EVEN), ("odd", 1, _ODD)):
        own = [row for row in binned if row.bins % 2 == parity]
        yield _worst(f"ECE, {words} numbers of bins", number, own)
    own = [r for r in samples if r.measure == "LS-ECE, gaussian" and r.bins >= _MANY_BINS]
    yield _worst(f"LS-ECE, σ ≤ 1/{_MANY_BINS}", _NEAR_ZERO, own, _NOT_QUITE_ZERO)


def _worst(where: str, number: str, rows: Sequence[Row], note: str = "") -> Comparison:
    row = max(rows, key=lambda row: abs(row.mean - float(number)))
    return compared("Figure 2", where, "error", number, row.mean, row.deviation, note)


def _sampling(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare the integral with its estimate by sampled points, which has known noise."""
    for row in rows:
        kernel = "" if row.window == 1 else ", window as released"
        where, column = f"{row.network}, σ = {row.sigma:g}", f"{row.noise}{kernel}"
        number = f"{row.estimate:.5f}"
        note = "" if row.window == 1 else _WIDE
        yield compared("Sampling", where, column, number, row.exact, row.error, note)


def _jumps(rows: Sequence[Row]) -> Iterator[Comparison]:
    found = {row.cells: row.value for row in rows if row.measure == "ECE"}
    yield compared("Proposition 3.5", "ECE of x₁", "error", _UNMOVED, found[0], 0.0)
    where = f"ECE within 1/{max(found)} of x₁"
    yield compared("Proposition 3.5", where, "error", _MOVED, found[max(found)], 0.0)


def _limits(shrinking: Sequence[Row], samples: Sequence[Row]) -> Iterator[Comparison]:
    """Compare smoothed errors with the ECE of the population, their limit."""
    for population in dict.fromkeys(row.population for row in samples):
        last = min((r for r in shrinking if r.population == population), key=lambda row: row.sigma)
        limit = f"{last.ece:.4f}"
        column = f"population, σ = {last.sigma:g}"
        yield compared("Theorem 5.4", population, column, limit, last.value, 0.0)
        row = _largest(samples, population, "n^(-1/3)")
        column = f"n = {row.n}, σ = {row.sigma:.2g}"
        yield compared(
            "Theorem 5.4", population, column, limit, row.mean, row.deviation, _STILL_NOISE
        )


def _largest(samples: Sequence[Row], population: str, rule: str) -> Row:
    own = [row for row in samples if (row.population, row.rule) == (population, rule)]
    return max(own, key=lambda row: row.n)


def _text(tables: Tables, comparisons: list[Comparison]) -> str:
    shown = {
        table: side_by_side(one for one in comparisons if one.table == table)
        for table in dict.fromkeys(one.table for one in comparisons)
    }
    points = tables["sampling"][0].points
    return page(
        _INTRODUCTION,
        "## Two points: figure 2",
        _TWO_POINTS.format(sets=tables["two_points"][0].data_sets),
        shown["Figure 2"],
        picture("logit-smoothing", "figure_2", "Figure 2: samples (bands: one standard deviation)"),
        "## Networks: figures 3 to 5",
        _NETWORKS,
        _networks(tables["networks"]),
        picture("logit-smoothing", "figure_3", "As figure 3, with the bundled networks"),
        picture("logit-smoothing", "figures_4_5", "Figures 4 and 5: Gaussian and uniform noise"),
        "## Sampling and integrating: figure 1",
        _SAMPLING.format(points=points),
        shown["Sampling"],
        "## Where the ECE jumps: proposition 3.5",
        _JUMPS,
        shown["Proposition 3.5"],
        _all_jumps(tables["jumps"]),
        picture("logit-smoothing", "proposition_3_5", "Proposition 3.5: ever smaller moves"),
        "## As sigma falls: theorems 5.3 and 5.4",
        _THEOREMS,
        shown["Theorem 5.4"],
        _convergence(tables["convergence"]),
        picture("logit-smoothing", "theorem_5_4", "Theorem 5.4 (bars: one standard deviation)"),
        "## Deviations",
        reasons(comparisons),
    )


_INTRODUCTION = """
# Logit smoothing (Chidambaram et al. 2024)

Chidambaram, Lee, McSwiggen and Rezchikov, "How Flawed Is ECE? An Analysis via Logit Smoothing"
(2024): figures 2 to 5, proposition 3.5 and theorems 5.3 and 5.4. Made by
`calibrant papers logit-smoothing`, in a few minutes.

In every place: published · here (the difference in units of Monte-Carlo error, or of rounding in
print where nothing is left to chance; bold beyond 3). The paper prints its numbers as words ("≈ 0",
"≈ 1/2", "near zero") or inside pictures.
"""

_TWO_POINTS = """
Half the outcomes are 0 and predicted to be 1/2 - 0.000125, half are 1 and predicted to be
1/2 + 0.000125, in samples of 1000. With an even number of bins an edge parts them and the ECE is
1/2; with an odd number it is how far the sample is from half and half. Ours are means over {sets}
samples, of all bins or scales the one that is furthest from the paper's word; the Monte-Carlo error
is that of one sample. Towards σ = 1 the smoothed error grows, because noise makes predictions that
are right at 1/2 wrong; at σ = √0.001 it makes them exactly calibrated. Smoothing postpones the
jump, it does not take it away: once σ is below the distance of the two logits, 0.001, the smoothed
error is 1/2 as well (right). With uniform noise it rises sooner: windows a hundredth wide already
end at different places.
"""

_NETWORKS = """
The paper evaluates networks on CIFAR and ImageNet; bundled with calibrant are two networks'
confidences on the 50 000 images of ImageNet's validation set. Its finding holds for them: the
binned ECE hardly depends on the number of bins, and from ten bins and σ = 0.1 on all errors agree
to within 0.001, but for uniform noise of small scale: few rows then share a window, and the noise
of their outcomes adds up to 0.0045.
"""

_SAMPLING = """
The paper estimates the smoothed error by {points} points drawn from the noisy logits. Here the
estimate is done again, and set beside the integral that `cb.logit_smoothed_ece` computes: estimate
· integral (difference in standard errors of the estimate). The released program takes 1e-6 off
every prediction to keep logits finite, and so does this estimate; the integral takes predictions of
exactly 1 as they are.
"""

_JUMPS = """
x₁ is uniform, and the chance of outcome 1 is x₁: predicting x₁ is calibrated. Predictions within δ
of it that tell the outcomes apart (equations A.6 and A.7) have an ECE of 1/3 or more, however small
δ is. The smoothed errors tend to those of x₁ itself. LS-ECE of x₁ is not 0: noise makes calibrated
predictions overconfident, while the smECE of calibrated predictions is 0.
"""

_THEOREMS = """
The ECE of the population takes the place of the published number. Samples have uniform noise; their
Monte-Carlo error is the standard deviation of one sample. Noise must fall more slowly than 1/n:
with σ = 1/n windows hold hardly more than a row, and the estimate does not tend to the ECE. The
mean of abs(LS-ECE of the sample - LS-ECE of the population) times √(nσ) stays bounded (theorem
5.3).
"""


def _networks(rows: Sequence[Row]) -> str:
    heading = ["", "bins, or 1 / σ", "ECE", "LS-ECE, Gaussian", "LS-ECE, uniform", "smECE"]
    return grid(
        heading,
        [
            [
                row.network,
                f"{row.bins}",
                *(f"{x:.4f}" for x in (row.ece, row.gaussian, row.uniform, row.smece)),
            ]
            for row in rows
            if row.bins in (1, 10, 50, 100)
        ],
    )


def _all_jumps(rows: Sequence[Row]) -> str:
    cells = list(dict.fromkeys(row.cells for row in rows))
    places = {(row.measure, row.cells): f"{row.value:.4f}" for row in rows}
    return grid(
        ["", *(f"δ = 1/{n}" if n else "x₁ itself" for n in cells)],
        [
            [measure, *(places[measure, n] for n in cells)]
            for measure in dict.fromkeys(row.measure for row in rows)
        ],
    )


def _convergence(rows: Sequence[Row]) -> str:
    sizes = list(dict.fromkeys(row.n for row in rows))
    sizes = sizes[:: max(1, len(sizes) // 4)]
    lines = []
    for population, rule in dict.fromkeys((row.population, row.rule) for row in rows):
        own = {r.n: r for r in rows if (r.population, r.rule) == (population, rule)}
        means = [f"{own[n].mean:.4f} ± {own[n].deviation:.4f}" for n in sizes]
        lines.append([f"{population}, σ = {rule}", *means])
        scaled = [f"{own[n].error * math.sqrt(n * own[n].sigma):.3f}" for n in sizes]
        lines.append(["error times √(nσ)", *scaled])
    return grid(["", *(f"n = {n}" for n in sizes)], lines)
