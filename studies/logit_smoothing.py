"""Chidambaram et al., "How Flawed Is ECE? An Analysis via Logit Smoothing" (2024): figures 2 to 5.

And its statements as measurements: the ECE jumps where proposition 3.5 says, the logit-smoothed
ECE does not, and as sigma falls it tends to the ECE (theorem 5.4). The paper estimates by sampling
points, which is done here too, beside the exact integral.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import expit, logit

import calibrant as cb
from calibrant.datasets import SCENARIOS, load_imagenet, simulate
from studies.frame import (
    COLOURS,
    GREY,
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "logit-smoothing"

# The distributions, and the estimate by sampled points.

Noise = Literal["gaussian", "uniform"]
Network = Literal["resnet34", "densenet161"]
NETWORKS: tuple[Network, ...] = ("resnet34", "densenet161")

# The predictor of section 6.1 has the logits -ALPHA / 2 and ALPHA / 2.
ALPHA = 1e-3
TWO_POINT_SIZE = 1000
# What the released program takes off a prediction before its logit, so that it is never infinite.
_TOLERANCE = 1e-6
# How many distances between points and rows are held at a time.
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Atoms:
    """A distribution on finitely many points: outcomes, which may be probabilities, and weights."""

    y: AnyArray
    p: FloatArray
    weight: FloatArray

    @property
    def true_ece(self) -> float:
        """The ECE without bins; predictions must differ from each other."""
        return float(self.weight @ np.abs(self.y - self.p) / self.weight.sum())


def two_points(n_true: float, n_false: float) -> Atoms:
    """Return the distribution of definition 3.1, or a sample of it, under its predictor."""
    p = expit(np.array([-ALPHA / 2, ALPHA / 2]))
    return Atoms(np.array([0, 1]), p, np.array([n_false, n_true], dtype=np.float64))


def first_coordinate() -> Atoms:
    """Return predictions x1 of proposition 3.5: calibrated, and uniform on (0, 1)."""
    uniform = replace(SCENARIOS["skewed"], calibration=SCENARIOS["perfect"].calibration)
    p, weight = uniform.quadrature()
    return Atoms(p, p, weight)


def separated(n_cells: int) -> Atoms:
    """Return predictions that separate the outcomes and differ from x1 by less than 1 / n_cells.

    Equations A.6 and A.7: in every cell of x1, outcome 0 at its upper end, 1 at its lower end.
    """
    delta = 1 / n_cells
    cell = np.arange(n_cells)
    # The mean of x1 over a cell is its probability of outcome 1.
    n_true = (cell + 0.5) * delta
    p = np.append((cell + 1 - delta / 4) * delta, (cell + delta / 4) * delta)
    return Atoms(np.repeat([0, 1], n_cells), p, np.append(1 - n_true, n_true))


def sampled(
    y: AnyArray, p: FloatArray, noise: Noise, sigma: float, window: float, n_points: int
) -> FloatArray:
    """Return abs(E[y | t] - rho(t)) at points t drawn as in the paper's figure 1.

    `window` is the scale of the kernel in E[y | t]: it should be `sigma`.
    """
    rng = np.random.default_rng(n_points)
    h = logit(np.asarray(p) - _TOLERANCE)
    drawn = rng.standard_normal(n_points) if noise == "gaussian" else rng.random(n_points) - 0.5
    t = h[rng.integers(len(h), size=n_points)] + sigma * drawn
    regressed = _gaussian if noise == "gaussian" else _uniform
    return np.abs(regressed(h, np.asarray(y, dtype=np.float64), t, window) - expit(t))


def _gaussian(h: FloatArray, y: FloatArray, t: FloatArray, window: float) -> FloatArray:
    means = []
    for some in np.array_split(t, max(1, len(t) * len(h) // _AT_ONCE)):
        kernel = np.exp(-0.5 * ((some[:, None] - h) / window) ** 2)
        means.append(kernel @ y / kernel.sum(axis=1))
    return np.concatenate(means)


def _uniform(h: FloatArray, y: FloatArray, t: FloatArray, window: float) -> FloatArray:
    order = np.argsort(h)
    running = np.append(0.0, np.cumsum(y[order]))
    # Every point has the row it was drawn from in its window, whatever rounding says.
    reach = window / 2 * (1 + 1e-9)
    low = np.searchsorted(h[order], t - reach, side="left")
    high = np.searchsorted(h[order], t + reach, side="right")
    return np.asarray((running[high] - running[low]) / (high - low))


# The experiments.

BINS = (1, *range(10, 101, 10))
NOISES: tuple[Noise, ...] = ("gaussian", "uniform")
# How the scale of noise falls with n: theorem 5.4 wants n sigma to grow.
RULES = {"n^(-1/3)": -1 / 3, "1/n": -1.0}
POPULATIONS = ("overconfident", "sinusoidal", "perfect")
# Below this scale the error of a population is its ECE to five digits.
_SMALL = 0.01


@dataclass(frozen=True)
class TwoPoints:
    """Mean and standard deviation of a measure over samples of the 2-point distribution."""

    bins: int
    data_sets: int
    measure: str
    mean: float
    deviation: float


@dataclass(frozen=True)
class Shrinking:
    """The logit-smoothed ECE of a population at a scale, and its ECE."""

    population: str
    sigma: float
    value: float
    ece: float


@dataclass(frozen=True)
class Confidence:
    """A network's errors with m bins and with noise of scale 1 / m."""

    network: str
    bins: int
    ece: float
    gaussian: float
    uniform: float
    smece: float


@dataclass(frozen=True)
class Sampling:
    """The estimate by sampled points, its standard error, and the integral that it estimates.

    `window` is the width of the kernel in units of that of the noise.
    """

    network: str
    noise: str
    sigma: float
    window: float
    points: int
    estimate: float
    error: float
    exact: float


@dataclass(frozen=True)
class Jump:
    """An error of predictions that separate the outcomes within each cell; 0 cells: they do not."""

    cells: int
    measure: str
    value: float


@dataclass(frozen=True)
class Convergence:
    """The logit-smoothed ECE over samples of n, and that of the population."""

    population: str
    rule: str
    n: int
    data_sets: int
    sigma: float
    mean: float
    deviation: float
    error: float
    smoothed: float
    ece: float


def parts(quick: bool) -> list[Part]:
    """List the tables to measure."""
    bins = (1, 2, 3, 10, 11, 99, 100) if quick else range(1, 101)
    networks, steps = (NETWORKS[:1], 7) if quick else (NETWORKS, 25)
    measured_bins = (1, 10, 100) if quick else BINS
    sigmas = (1.0, 0.1) if quick else (1.0, 0.1, 0.01)
    points, data_sets = (300, 20) if quick else (10_000, 100)
    sizes = [2**e for e in (range(8, 15, 3) if quick else range(8, 18))]
    kernels = [("gaussian", 1.0), ("uniform", 1.0), ("uniform", 2.0)]
    return [
        Part("two_points", TwoPoints, [(m, 20) for m in bins], two_point_samples),
        Part(
            "shrinking",
            Shrinking,
            [
                (name, float(f"{sigma:.3g}"))
                for name in ("2-point", *POPULATIONS)
                for sigma in np.geomspace(4, 1e-5 if name == "2-point" else _SMALL, steps)
            ],
            shrinking,
        ),
        Part(
            "networks",
            Confidence,
            [(name, m) for name in networks for m in measured_bins],
            confidence,
        ),
        Part(
            "sampling",
            Sampling,
            [
                (name, noise, sigma, window, points)
                for name in networks
                for sigma in sigmas
                for noise, window in kernels
            ],
            sampling,
        ),
        Part("jumps", Jump, [(0,), *((2**e,) for e in range(2, 13, 2))], jump),
        Part(
            "convergence",
            Convergence,
            [
                (name, rule, n, data_sets)
                for name in POPULATIONS[:2]
                for rule in RULES
                for n in sizes
            ],
            convergence,
        ),
    ]


def _smoothed(atoms: Atoms, sigma: float, noise: Noise) -> float:
    return cb.logit_smoothed_ece(
        atoms.y, atoms.p, sigma=sigma, noise=noise, sample_weight=atoms.weight
    )


def two_point_samples(bins: int, data_sets: int) -> Iterator[TwoPoints]:
    """Measure samples of 1000 with m bins and with noise of scale 1 / m (figure 2)."""
    rng = np.random.default_rng(data_sets)
    found: dict[str, list[float]] = {}
    for n_true in rng.binomial(TWO_POINT_SIZE, 0.5, data_sets):
        atoms = two_points(n_true, TWO_POINT_SIZE - n_true)
        ece = cb.ece(atoms.y, atoms.p, n_bins=bins, sample_weight=atoms.weight)
        found.setdefault("ECE", []).append(ece)
        for noise in NOISES:
            smoothed = _smoothed(atoms, 1 / bins, noise)
            found.setdefault(f"LS-ECE, {noise}", []).append(smoothed)
    for measure, values in found.items():
        mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
        yield TwoPoints(bins, data_sets, measure, mean, deviation)


def shrinking(population: str, sigma: float) -> Iterator[Shrinking]:
    """Measure a population at one scale of Gaussian noise."""
    if population == "2-point":
        atoms = two_points(0.5, 0.5)
        ece = atoms.true_ece
    else:
        atoms, ece = _population(population), SCENARIOS[population].true_ece()
    yield Shrinking(population, sigma, _smoothed(atoms, sigma, "gaussian"), ece)


def _population(name: str) -> Atoms:
    truth = SCENARIOS[name]
    p, weight = truth.quadrature()
    return Atoms(truth.outcome_probability(p), p, weight)


def confidence(network: Network, bins: int) -> Iterator[Confidence]:
    """Measure a network's confidence in every way (figures 3 to 5)."""
    y, p = load_imagenet(network)
    gaussian, uniform = (
        cb.logit_smoothed_ece(y, p, sigma=1 / bins, noise=noise) for noise in NOISES
    )
    ece, smece = cb.ece(y, p, n_bins=bins), cb.smooth_ece(y, p)
    yield Confidence(network, bins, ece, gaussian, uniform, smece)


def sampling(
    network: Network, noise: Noise, sigma: float, window: float, points: int
) -> Iterator[Sampling]:
    """Estimate by sampled points, as the paper does."""
    y, p = load_imagenet(network)
    found = sampled(y, p, noise, sigma, window * sigma, points)
    error = float(found.std(ddof=1)) / math.sqrt(points)
    exact = cb.logit_smoothed_ece(y, p, sigma=sigma, noise=noise)
    yield Sampling(network, noise, sigma, window, points, float(found.mean()), error, exact)


def jump(cells: int) -> Iterator[Jump]:
    """Measure predictions near x1 that separate the outcomes (proposition 3.5)."""
    atoms = separated(cells) if cells else first_coordinate()
    y, p, w = atoms.y, atoms.p, atoms.weight
    yield Jump(cells, "ECE", atoms.true_ece)
    yield Jump(cells, "ECE, 15 bins", cb.ece(y, p, n_bins=15, sample_weight=w))
    yield Jump(cells, "smECE", cb.smooth_ece(y, p, sample_weight=w))
    for sigma in (1.0, 0.3, 0.1):
        yield Jump(cells, f"LS-ECE, σ = {sigma:g}", _smoothed(atoms, sigma, "gaussian"))


def convergence(population: str, rule: str, n: int, data_sets: int) -> Iterator[Convergence]:
    """Measure samples with noise that falls as they grow (theorems 5.3 and 5.4)."""
    sigma = n ** RULES[rule]
    ece = SCENARIOS[population].true_ece()
    smoothed = _smoothed(_population(population), sigma, "uniform") if sigma > _SMALL else ece
    rng = np.random.default_rng([n, POPULATIONS.index(population)])
    found: FloatArray = np.array(
        [
            cb.logit_smoothed_ece(*simulate(population, n, rng=rng), sigma=sigma, noise="uniform")
            for _ in range(data_sets)
        ]
    )
    mean, deviation = float(found.mean()), float(found.std(ddof=1))
    error = float(np.abs(found - smoothed).mean())
    yield Convergence(population, rule, n, data_sets, sigma, mean, deviation, error, smoothed, ece)


# The page.

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
            "figure_2": partial(draw_parity, tables["two_points"], tables["shrinking"]),
            "figure_3": partial(draw_networks, tables["networks"]),
            "figures_4_5": partial(draw_differences, tables["networks"]),
            "proposition_3_5": partial(draw_jumps, tables["jumps"]),
            "theorem_5_4": partial(draw_convergence, tables["shrinking"], tables["convergence"]),
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
    shown = by_table(comparisons)
    points = tables["sampling"][0].points
    return page(
        _INTRODUCTION,
        "## Two points: figure 2",
        _TWO_POINTS.format(sets=tables["two_points"][0].data_sets),
        shown["Figure 2"],
        picture(NAME, "figure_2", "Figure 2: samples (bands: one standard deviation)"),
        "## Networks: figures 3 to 5",
        _NETWORKS,
        _networks(tables["networks"]),
        picture(NAME, "figure_3", "As figure 3, with the bundled networks"),
        picture(NAME, "figures_4_5", "Figures 4 and 5: Gaussian and uniform noise"),
        "## Sampling and integrating: figure 1",
        _SAMPLING.format(points=points),
        shown["Sampling"],
        "## Where the ECE jumps: proposition 3.5",
        _JUMPS,
        shown["Proposition 3.5"],
        _all_jumps(tables["jumps"]),
        picture(NAME, "proposition_3_5", "Proposition 3.5: ever smaller moves"),
        "## As sigma falls: theorems 5.3 and 5.4",
        _THEOREMS,
        shown["Theorem 5.4"],
        _convergence(tables["convergence"]),
        picture(NAME, "theorem_5_4", "Theorem 5.4 (bars: one standard deviation)"),
        "## Deviations",
        reasons(comparisons),
    )


_INTRODUCTION = """
# Logit smoothing (Chidambaram et al. 2024)

Chidambaram, Lee, McSwiggen and Rezchikov, "How Flawed Is ECE? An Analysis via Logit Smoothing"
(2024): figures 2 to 5, proposition 3.5 and theorems 5.3 and 5.4. Made by
`python -m studies logit-smoothing`, in a few minutes.

In every place: published · here (the difference in units of Monte-Carlo error, or of rounding in
print where both are exact; bold beyond 3). The paper prints its numbers as words ("≈ 0",
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
to within 0.001, but for uniform noise of small scale: then windows hold few rows, and the noise
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
x₁ is uniform, and the probability of outcome 1 is x₁: predicting x₁ is calibrated. Predictions
within δ of it that separate the outcomes (equations A.6 and A.7) have an ECE of 1/3 or more,
however small δ is. The smoothed errors tend to those of x₁ itself. LS-ECE of x₁ is not 0: noise
makes calibrated predictions overconfident, while the smECE of calibrated predictions is 0.
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


# The figures.


def draw_parity(samples: Sequence[Row], shrinking: Sequence[Row]) -> Figure:
    """Draw errors against bins (figure 2), and what becomes of the smoothed one further on."""
    drawn = figure(1, 2, 10.5, 4.4, sharey=True)
    bins, scales = drawn.axes
    for measure, colour in zip(dict.fromkeys(r.measure for r in samples), COLOURS, strict=False):
        own = [row for row in samples if row.measure == measure]
        m, mean = (np.array([getattr(row, x) for row in own]) for x in ("bins", "mean"))
        spread = np.array([row.deviation for row in own])
        bins.plot(m, mean, color=colour, linewidth=1, marker=".", markersize=3, label=measure)
        bins.fill_between(m, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
    own = [row for row in shrinking if row.population == "2-point"]
    scales.plot([1 / r.sigma for r in own], [r.value for r in own], color=COLOURS[1], marker=".")
    scales.axhline(own[0].ece, color=GREY, linestyle="--", linewidth=1)
    scales.axvline(100, color=GREY, linestyle=":", linewidth=1)
    scales.set_xscale("log")
    bins.set_xlabel("number of bins, or 1 / σ")
    bins.set_ylabel("error")
    scales.set_xlabel("1 / σ (dotted: where figure 2 ends; dashed: the ECE)")
    legend_below(drawn, bins, 3)
    return drawn


def draw_networks(rows: Sequence[Row]) -> Figure:
    """Draw every network's binned and smoothed errors (as figure 3)."""
    drawn = figure(1, 2, 10.5, 4.4, sharey=True)
    for axes, noise in zip(drawn.axes, ("gaussian", "uniform"), strict=True):
        for network, colour in zip(dict.fromkeys(r.network for r in rows), COLOURS, strict=False):
            own = [row for row in rows if row.network == network]
            m = [row.bins for row in own]
            smoothed = [getattr(row, noise) for row in own]
            axes.plot(m, [row.ece for row in own], color=colour, label=f"{network}, ECE")
            axes.plot(m, smoothed, color=colour, linestyle="--", label=f"{network}, LS-ECE")
            axes.plot(m, [r.smece for r in own], color=colour, ls=":", label=f"{network}, smECE")
        axes.set_title(f"{noise} noise")
        axes.set_xlabel("number of bins, or 1 / σ")
    from_zero(drawn.axes[0])
    drawn.axes[0].set_ylabel("error")
    legend_below(drawn, drawn.axes[0], 2)
    return drawn


def draw_differences(rows: Sequence[Row]) -> Figure:
    """Draw how far the errors are apart, averaged over networks (figures 4 and 5)."""
    drawn = figure(1, 2, 10.5, 4.2, sharey=True)
    m = list(dict.fromkeys(row.bins for row in rows))
    for axes, noise in zip(drawn.axes, ("gaussian", "uniform"), strict=True):
        labels = {noise: "abs(ECE - LS-ECE)", "smece": "abs(ECE - smECE)"}
        for (other, label), colour, marker in zip(labels.items(), COLOURS, MARKERS, strict=False):
            gaps = [
                [abs(row.ece - getattr(row, other)) for row in rows if row.bins == bins]
                for bins in m
            ]
            mean, spread = np.mean(gaps, axis=1), np.std(gaps, axis=1)
            axes.plot(m, mean, color=colour, marker=marker, markersize=4, label=label)
            axes.fill_between(m, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
        axes.set_title(f"{noise} noise")
        axes.set_xlabel("number of bins, or 1 / σ")
    from_zero(drawn.axes[0])
    drawn.axes[0].set_ylabel("mean over networks")
    legend_below(drawn, drawn.axes[0], 2)
    return drawn


def draw_jumps(rows: Sequence[Row]) -> Figure:
    """Draw errors against the size of the perturbation (proposition 3.5)."""
    drawn = figure(1, 1, 7.5, 4.8)
    axes = drawn.axes[0]
    measures = dict.fromkeys(row.measure for row in rows)
    for measure, colour, marker in zip(measures, COLOURS, MARKERS, strict=False):
        own = {row.cells: row.value for row in rows if row.measure == measure}
        unmoved = own.pop(0)
        delta = 1 / np.array(list(own))
        axes.plot(delta, list(own.values()), color=colour, marker=marker, ms=4, label=measure)
        axes.axhline(unmoved, color=colour, linestyle=":", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.invert_xaxis()
    axes.set_xlabel("δ: predictions differ from x₁ by less (dotted: the error of x₁)")
    axes.set_ylabel("error")
    legend_below(drawn, axes, 3)
    return drawn


def draw_convergence(shrinking: Sequence[Row], rows: Sequence[Row]) -> Figure:
    """Draw populations against the scale, and samples against n (theorem 5.4)."""
    drawn = figure(1, 2, 10.5, 4.8, sharey=True)
    scales, sizes = drawn.axes
    populations = list(dict.fromkeys(r.population for r in shrinking if r.population != "2-point"))
    for population, colour in zip(populations, COLOURS, strict=False):
        own = [row for row in shrinking if row.population == population]
        scales.plot([r.sigma for r in own], [r.value for r in own], color=colour, label=population)
        scales.axhline(own[0].ece, color=colour, linestyle=":", linewidth=1)
        for rule, marker in zip(dict.fromkeys(r.rule for r in rows), MARKERS, strict=False):
            drawn_rows = [r for r in rows if (r.population, r.rule) == (population, rule)]
            if drawn_rows:
                n, mean, spread = (
                    np.array([getattr(r, x) for r in drawn_rows])
                    for x in ("n", "mean", "deviation")
                )
                sizes.errorbar(
                    n, mean, spread, color=colour, marker=marker, ms=4, label=f"σ = {rule}"
                )
                sizes.axhline(drawn_rows[0].ece, color=colour, linestyle=":", linewidth=1)
    scales.set_xscale("log")
    scales.invert_xaxis()
    sizes.set_xscale("log", base=2)
    scales.set_title("populations")
    sizes.set_title("samples")
    scales.set_xlabel("σ (dotted: the ECE)")
    sizes.set_xlabel("n (circles: σ = n^(-1/3), squares: σ = 1/n)")
    scales.set_ylabel("LS-ECE")
    scales.set_ylim(0, 1.08 * max(axes.dataLim.ymax for axes in drawn.axes))
    legend_below(drawn, scales, 3)
    return drawn


STUDY = Study(NAME, parts=parts, report=report)
