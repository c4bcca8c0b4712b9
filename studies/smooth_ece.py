"""Błasiok and Nakkiran, "Smooth ECE" (2023): figures 2 and 3, theorems 6 and 9.

The paper prints few numbers, and those of figure 2 only inside the picture. Where it prints none,
its statements are measured: smECE lies between half the distance to calibration and twice its root,
and m rows give smECE at a scale s to within a constant times 1 / sqrt(m s).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import calibrant as cb
from calibrant.datasets import SCENARIOS, Dataset, load_flares, load_imagenet, load_rain, simulate
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
    grid,
    legend_below,
    page,
    picture,
    reasons,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "smooth-ece"

# The printed numbers, or those of the authors' program.

# Data: rows, and the rate of outcome 1 where it is printed (section 4).
DATA = {
    "resnet34": {"n": "50000"},
    "flares DAFFS": {"n": "731", "rate": "0.257"},
    "rain": {"n": "346"},
}

# The smECE by relplot 1.0.3, the package released with the paper.
RELPLOT = {
    "resnet34": "0.077613",
    "flares DAFFS": "0.067399",
    "rain": "0.144287",
    "flares NOAA": "0.040485",
    "densenet161": "0.059902",
}
# The grid on which relplot smooths, and how far it halves the bandwidth.
RELPLOT_CELLS = 1000
RELPLOT_STEP = 2.0**-10

# Distribution: the ECE of 20 bins (appendix E).
FIGURE_3 = {1: "0.06", 3: "0.31"}

# The constant of footnote 2, and the power of m in theorem 9.
CONSTANT = "0.79"
POWER = "-0.50"


# The data: bundled sets, and predictions that move a little.

BUNDLED: dict[str, Callable[[], Dataset]] = {
    "resnet34": partial(load_imagenet, "resnet34"),
    "flares DAFFS": partial(load_flares, "DAFFS"),
    "rain": load_rain,
    "flares NOAA": partial(load_flares, "NOAA"),
    "densenet161": partial(load_imagenet, "densenet161"),
}
SKEWED_SIZE = 1000
# Not printed; at this size the first distribution has the printed ECE.
MOVED_SIZE = 500
MOVED_BINS = 20


def moved_sample(number: int, n: int, rng: np.random.Generator) -> tuple[AnyArray, FloatArray]:
    """Draw from distribution 1, 2 or 3 of figure 3; a cell is two bins."""
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.uint8)
    return y, moved(y, p, cell=2 / MOVED_BINS, fraction=(number - 1) / 2)


def moved(y: AnyArray, p: FloatArray, cell: float, fraction: float) -> FloatArray:
    """Move outcomes 1 towards the upper half of their cell of scores, outcomes 0 to the lower.

    No prediction moves by more than `fraction` times half a cell; with a fraction of 1 all arrive.
    """
    half = cell / 2
    is_upper = np.floor(p / half) % 2 == 1
    way = np.where(np.asarray(y) == 1, 1.0 * ~is_upper, -1.0 * is_upper)
    return np.asarray(np.clip(p + fraction * half * way, 0.0, 1.0))


# The experiments.

# Scales at which samples are compared with their population, and those that theorem 9 starts at.
SCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
STARTS = (0.01, 0.05, 0.2)
FIXED_POINT = "smECE"
POPULATIONS = ("perfect", "skewed")


@dataclass(frozen=True)
class Diagram:
    """The numbers shown by the two diagrams of one data set.

    `half_ends` is the smECE when scores near 0 and 1 count as they do in relplot.
    """

    data: str
    n: int
    rate: float
    smece: float
    visible: float
    half_ends: float
    n_bins: int
    binned: float


@dataclass(frozen=True)
class Average:
    """Mean and standard deviation of a measure over data sets."""

    data: str
    n: int
    data_sets: int
    measure: str
    mean: float
    deviation: float


@dataclass(frozen=True)
class Distance:
    """The smECE of a distribution and what is known of its distance to calibration."""

    family: str
    parameter: float
    smece: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Size:
    """How far samples of m rows are from their population: mean, deviation, quantile of 2/3.

    At all scales from `start` on, or in the fixed point.
    """

    population: str
    m: int
    data_sets: int
    start: str
    mean: float
    deviation: float
    quantile: float


@dataclass(frozen=True)
class Constant:
    """The visible area of a calibrated prediction of 1/2, in units of the bandwidth."""

    bandwidth: float
    constant: float


def parts(quick: bool) -> list[Part]:
    """List the tables to measure."""
    moved_sets, skewed_sets, random_sets = (40, 20, 40) if quick else (1000, 500, 300)
    sizes = [2**e for e in (range(8, 13, 2) if quick else range(8, 17))]
    repeated = 40 if quick else 200
    small = [float(e) for e in np.geomspace(1e-5, 0.2, 6 if quick else 18)]
    distances = [
        *((name, 0.0) for name in BUNDLED),
        *((family, e) for family in ("two points", "shift", "split cells") for e in small),
        *(("random", float(seed)) for seed in range(random_sets)),
    ]
    return [
        Part("diagrams", Diagram, [(name,) for name in BUNDLED], diagram),
        Part(
            "moved",
            Average,
            [(str(number), MOVED_SIZE, moved_sets) for number in (1, 2, 3)],
            moved_data_sets,
        ),
        Part("skewed", Average, [("skewed", SKEWED_SIZE, skewed_sets)], skewed_data_sets),
        Part("constants", Constant, [(s,) for s in (0.01, 0.05, 0.1)], constant),
        Part("consistency", Distance, distances, distance),
        Part("sizes", Size, [(name, m, repeated) for name in POPULATIONS for m in sizes], size),
    ]


def diagram(name: str) -> Iterator[Diagram]:
    """Measure a bundled data set (figure 2)."""
    y, p = BUNDLED[name]()
    curve = cb.reliability_curve(y, p, bandwidth="smece", band=None)
    table = cb.bin_table(y, p, n_bins="cv")
    # On relplot's grid an end node keeps half of the mass that falls to it.
    at_ends = np.clip(1 - RELPLOT_CELLS * np.minimum(p, 1 - p), 0, 1)
    yield Diagram(
        name,
        len(p),
        float(np.mean(y)),
        cb.smooth_ece(y, p),
        curve.area,
        cb.smooth_ece(y, p, sample_weight=1 - at_ends / 2),
        len(table.edges) - 1,
        cb.ece(y, p, n_bins="cv"),
    )


def moved_data_sets(number: str, n: int, data_sets: int) -> Iterator[Average]:
    """Average over data sets, the same ones for all three distributions before they move."""
    rng = np.random.default_rng(n)
    found = []
    for _ in range(data_sets):
        y, p = moved_sample(int(number), n, rng)
        found.append((cb.ece(y, p, n_bins=MOVED_BINS), cb.smooth_ece(y, p)))
    yield from _averages(number, n, np.array(found), (f"ECE, {MOVED_BINS} bins", "smECE"))


def skewed_data_sets(name: str, n: int, data_sets: int) -> Iterator[Average]:
    """Average over samples of the synthetic set (figure 2d)."""
    rng = np.random.default_rng(n)
    samples = [simulate(name, n, rng=rng) for _ in range(data_sets)]
    found = [(cb.ece(y, p, n_bins="cv"), cb.smooth_ece(y, p)) for y, p in samples]
    yield from _averages(name, n, np.array(found), ("ECE, bins by cv", "smECE"))


def _averages(data: str, n: int, found: FloatArray, measures: tuple[str, ...]) -> Iterator[Average]:
    means, deviations = found.mean(axis=0), found.std(axis=0, ddof=1)
    for measure, mean, deviation in zip(measures, means, deviations, strict=True):
        yield Average(data, n, len(found), measure, float(mean), float(deviation))


def constant(bandwidth: float) -> Iterator[Constant]:
    """Measure what the diagram shows of a calibrated prediction of 1/2 (footnote 2)."""
    curve = cb.reliability_curve([0.5], [0.5], method="density", bandwidth=bandwidth, band=None)
    yield Constant(bandwidth, curve.area / bandwidth)


def distance(family: str, parameter: float) -> Iterator[Distance]:
    """Measure a distribution and bound its distance to calibration (theorem 6)."""
    y, p, w = _distribution(family, parameter)
    bounds = cb.distance_bounds(y, p, sample_weight=w)
    smece = cb.smooth_ece(y, p, sample_weight=w)
    yield Distance(family, parameter, smece, bounds.low, bounds.high)


def _distribution(family: str, parameter: float) -> tuple[AnyArray, FloatArray, FloatArray | None]:
    """Return outcomes, which may be probabilities, predictions and weights."""
    if family in BUNDLED:
        return *BUNDLED[family](), None
    if family == "two points":
        return np.array([0, 1]), np.array([0.5 - parameter, 0.5 + parameter]), None
    if family == "shift":
        return np.array([0.5 + parameter]), np.array([0.5]), None
    if family == "split cells":
        middle = (np.arange(2000) + 0.5) / 2000
        y, p = np.repeat([0, 1], 2000), np.tile(middle, 2)
        return y, moved(y, p, cell=2 * parameter, fraction=1.0), np.append(1 - middle, middle)
    rng = np.random.default_rng(int(parameter))
    n = int(rng.integers(1, 12))
    p = rng.random(n)
    # From far off to nearly calibrated.
    y = p + (rng.random(n) - p) * 10 ** rng.uniform(-3, 0)
    return y, p, rng.dirichlet(np.ones(n)) + 1e-9


def size(population: str, m: int, data_sets: int) -> Iterator[Size]:
    """Measure how far samples are from their population (theorem 9)."""
    truth = SCENARIOS[population]
    exact = np.array([truth.smooth_ece(scale) for scale in SCALES] + [truth.smooth_ece()])
    rng = np.random.default_rng([m, POPULATIONS.index(population)])
    errors = np.abs(
        [_at_scales(*simulate(population, m, rng=rng)) - exact for _ in range(data_sets)]
    )
    worst = {str(s): errors[:, SCALES.index(s) : -1].max(axis=1) for s in STARTS}
    for start, found in {**worst, FIXED_POINT: errors[:, -1]}.items():
        numbers = (found.mean(), found.std(ddof=1), np.quantile(found, 2 / 3))
        yield Size(population, m, data_sets, start, *(float(x) for x in numbers))


def _at_scales(y: AnyArray, p: FloatArray) -> FloatArray:
    found = [cb.smooth_ece(y, p, bandwidth=scale) for scale in SCALES]
    return np.array([*found, cb.smooth_ece(y, p)])


# The page.

_POPULATIONS = {
    "perfect": "calibrated: Beta(2, 2)",
    "skewed": "the synthetic set",
}
# With fewer rows than this within a bandwidth the asymptotic rate does not hold.
_MANY = 10
_RAIN = "The public file has 347 rows, and none of them lacks a value."
_ENDS = (
    "Not a printed number, but what relplot gives. It smooths on a grid whose end nodes keep half "
    "their mass, by equation 2 read as a sum over a set: scores at 0 and 1, or within a thousandth "
    "of them, count too little. Counted that way our value is {:.4f}."
)


def report(tables: Tables) -> Report:
    """Set published numbers beside ours, and draw the figures again."""
    comparisons = [
        *_data(tables["diagrams"]),
        *_program(tables["diagrams"]),
        *_moves(tables["moved"]),
        *_constants(tables["constants"]),
        *_powers(tables["sizes"]),
    ]
    return Report(
        text=_text(tables, comparisons),
        tables={"comparisons": comparisons},
        figures={
            "figure_2": draw_diagrams,
            "figure_3": draw_moves,
            "consistency": partial(draw_consistency, tables["consistency"]),
            "theorem_9": partial(draw_sample_sizes, tables["sizes"], _POPULATIONS),
        },
    )


def _data(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare the numbers of section 4 on the data."""
    for row in rows:
        for column, number in DATA.get(row.data, {}).items():
            note = _RAIN if row.data == "rain" else ""
            yield compared("Data", row.data, column, number, getattr(row, column), 0.0, note)


def _program(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare with the released program, which halves its bandwidth ten times."""
    noise = RELPLOT_STEP / math.sqrt(12)
    for row in rows:
        number, note = RELPLOT[row.data], _ENDS.format(row.half_ends)
        yield compared("relplot", row.data, "smECE", number, row.smece, noise, note)
        ends = "ends counted as relplot does"
        yield compared("relplot", row.data, ends, number, row.half_ends, noise)


def _moves(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare the ECE of figure 3, each printed for one data set."""
    for row in rows:
        number = FIGURE_3.get(int(row.data))
        if number is not None and row.measure.startswith("ECE"):
            where = f"distribution {row.data}"
            yield compared("Figure 3", where, row.measure, number, row.mean, row.deviation)


def _constants(rows: Sequence[Row]) -> Iterator[Comparison]:
    for row in rows:
        where = f"bandwidth {row.bandwidth:g}"
        yield compared("Footnote 2", where, "C", CONSTANT, row.constant, 0.0)


def _powers(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare the power of m by which errors of calibrated samples fall."""
    for start in dict.fromkeys(row.start for row in rows):
        if start[0].isdigit():
            own = [r for r in rows if (r.population, r.start) == ("perfect", start)]
            slope, noise = _slope([r for r in own if r.m * float(start) >= _MANY])
            where = f"from s₀ = {start} on"
            yield compared("Theorem 9", where, "power of m", POWER, slope, noise)


def _slope(rows: Sequence[Row]) -> tuple[float, float]:
    """Fit log(mean error) to log(m); return the slope and its standard error."""
    x = np.log([row.m for row in rows])
    y = np.log([row.mean for row in rows])
    noise = np.array([row.deviation / row.mean / math.sqrt(row.data_sets) for row in rows])
    weight = noise**-2.0
    centred = x - np.average(x, weights=weight)
    information = float(weight @ centred**2)
    return float(weight @ (centred * y)) / information, information**-0.5


def _text(tables: Tables, comparisons: list[Comparison]) -> str:
    shown = by_table(comparisons)
    return page(
        _INTRODUCTION,
        "## Diagrams: figure 2",
        shown["Data"],
        _diagrams(tables["diagrams"]),
        _DIAGRAMS,
        _skewed(tables["skewed"]),
        picture(NAME, "figure_2", "Figure 2: bins by cross-validation, and smooth"),
        "The smECE by relplot 1.0.3, the authors' program, beside ours. It halves the bandwidth "
        "ten times, so that its last digits mean little: the unit is that step, 2^-10 / √12.",
        shown["relplot"],
        "## Small moves: figure 3",
        _MOVES.format(n=MOVED_SIZE, sets=tables["moved"][0].data_sets),
        shown["Figure 3"],
        _all_moves(tables["moved"]),
        picture(NAME, "figure_3", "Figure 3: samples, smooth and binned diagrams"),
        "## A consistent measure: theorem 6",
        _consistent(tables["consistency"]),
        picture(NAME, "consistency", "smECE between dCE / 2 and 2 √dCE"),
        "## How many rows it takes: theorem 9",
        _SIZES,
        shown["Theorem 9"],
        picture(NAME, "theorem_9", "Theorem 9: the bound falls as 1 / √(m s₀)"),
        "## What the diagram shows of a calibrated prediction",
        "The area between diagram and diagonal is within √(2/π) bandwidths of smECE (Lemma 10). A "
        "calibrated prediction of 1/2, whose smECE is 0, attains it: C = √(2/π) = 0.798, which "
        "footnote 2 cuts to 0.79.",
        shown["Footnote 2"],
        "## Deviations",
        reasons(comparisons),
        _CORRECTIONS,
    )


_INTRODUCTION = """
# Smooth ECE (Błasiok and Nakkiran 2023)

Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing" (2023):
figures 2 and 3, and theorems 6 and 9 as measurements. Made by `python -m studies smooth-ece`, in a
few minutes.

In every place: published · here (the difference in units of Monte-Carlo error, or of rounding in
print where both are exact; bold beyond 3). The paper prints few numbers in its text;
those inside its pictures are compared with by way of the authors' program.
"""

_DIAGRAMS = """
Bins here are as many as predict left-out rows best. The area is what the eye sees of the smooth
diagram, within √(2/π) times the bandwidth of smECE. The paper calls its network ResNet32; bundled
from the same source is ResNet-34. NOAA and DenseNet-161 are not in the paper.
"""

_MOVES = """
Predictions are uniform and outcomes calibrated. Then within cells of 0.1, which are two of twenty
bins, outcomes 1 in the lower half move up and outcomes 0 in the upper half move down: by 0.025 in
distribution 2, by 0.05 in distribution 3, where all have parted. The paper does not print how
far each of its samples moves, nor how many there are; n = {n} gives distribution 1 the printed ECE.
Means over {sets} data sets; the printed numbers are those of one, and the Monte-Carlo error is the
standard deviation of one.
"""

_SIZES = """
With m rows, the errors at all scales from s₀ on are below a constant times 1 / √(m s₀), in two of
three samples. Calibrated predictions attain the power of m: the mean of the largest error over
scales falls as m^(-1/2). Where the population is not calibrated, and m s₀ large, errors at single
points cancel and samples do better. The fixed point of a population with smECE above s₀ is known
as well; that of calibrated samples, whose bandwidth falls with m, as m^(-1/3).
"""

_CORRECTIONS = """
## Corrections

- Equation 2 sums over a set of preimages, which has half as many members at 0 and 1; the kernel
  integrates to 1 there only if each is counted twice, as Lemma 25 supposes.
- Theorem 20 prints dCE ≤ wCE. For predictions of 0.45 and 0.55 with outcomes 0 and 1 the weak
  calibration error wCE is 0.0225, the distance 0.045: dCE ≤ 2 wCE.
- Theorem 16 takes the larger of abs(h(u) - h(v)) and 2 and means the smaller. Algorithm 1 lacks
  the division by n.
"""


def _diagrams(rows: Sequence[Row]) -> str:
    heading = ["", "n", "bins", "binned ECE", "smECE", "area"]
    return grid(
        heading,
        [
            [
                row.data,
                f"{row.n}",
                f"{row.n_bins}",
                *(f"{x:.4f}" for x in (row.binned, row.smece, row.visible)),
            ]
            for row in rows
        ],
    )


def _skewed(rows: Sequence[Row]) -> str:
    truth = SCENARIOS["skewed"]
    ece, smece = (f"{row.mean:.4f} ± {row.deviation:.4f}" for row in rows)
    return (
        f"Over {rows[0].data_sets} samples of the synthetic set, {truth.formula}, n = {rows[0].n}: "
        f"smECE {smece} where the population has {truth.smooth_ece():.4f}, ECE {ece} where it has "
        f"{truth.true_ece():.4f}."
    )


def _all_moves(rows: Sequence[Row]) -> str:
    measures = list(dict.fromkeys(row.measure for row in rows))
    places = {(row.data, row.measure): f"{row.mean:.4f} ± {row.deviation:.4f}" for row in rows}
    return grid(
        ["mean ± standard deviation", *measures],
        [
            [f"distribution {number}", *(places[number, measure] for measure in measures)]
            for number in dict.fromkeys(row.data for row in rows)
        ],
    )


def _consistent(rows: Sequence[Row]) -> str:
    low = min(row.smece / row.upper for row in rows if row.upper > 0)
    high = max(row.smece / math.sqrt(row.lower) for row in rows if row.lower > 0)
    return (
        "The distance to calibration dCE is known between bounds; smECE must be at least half of "
        f"it and at most twice its root. Over {len(rows)} distributions, smECE is at least "
        f"{low:.2f} times the upper bound of dCE, and at most {high:.2f} times the root of the "
        "lower one. Two points on either side of 1/2, outcomes 0 and 1, follow the root; a shift "
        "of all predictions follows the line. Of random distributions with 1 to 11 scores, and of "
        f"the {len(BUNDLED)} bundled data sets, most are nearer the line. The root is the price of "
        "a measure that moves continuously."
    )


# The figures.

_SEED = 0
_TITLES = {
    "resnet34": "2a, ResNet-34",
    "flares DAFFS": "2b, solar flares",
    "rain": "2c, rain in Finland",
}


def draw_diagrams() -> Figure:
    """Draw each data set twice, binned and smooth (figure 2)."""
    sets = {title: tuple(BUNDLED[name]()) for name, title in _TITLES.items()}
    sets["2d, synthetic"] = tuple(simulate("skewed", SKEWED_SIZE, rng=_SEED))
    drawn = figure(len(sets), 2, 8.5, 3.9 * len(sets))
    pairs = zip(drawn.axes[::2], drawn.axes[1::2], sets.items(), strict=True)
    for left, right, (title, (y, p)) in pairs:
        _binned(left, y, p, n_bins="cv")
        _smooth(right, y, p)
        left.set_title(title, loc="left")
    t = np.linspace(0, 1, 1001)
    for axes in drawn.axes[-2:]:
        probability = SCENARIOS["skewed"].outcome_probability(t)
        axes.plot(t, probability, color=COLOURS[2], linewidth=1.2, linestyle="--", zorder=5)
    return drawn


def draw_moves() -> Figure:
    """Draw three samples, each moved a little, and both diagrams of each (figure 3)."""
    drawn = figure(3, 3, 13, 11, height_ratios=(0.5, 1, 1))
    for i in range(3):
        scores, smooth, binned = drawn.axes[i::3]
        y, p = moved_sample(i + 1, MOVED_SIZE, np.random.default_rng(_SEED))
        jitter = np.random.default_rng(_SEED + 1).uniform(-0.2, 0.2, len(p))
        for outcome in (0, 1):
            own = y == outcome
            scores.plot(
                p[own], outcome + jitter[own], ".", color=COLOURS[1 - outcome], markersize=2.5
            )
        scores.set_yticks([0, 1])
        scores.set_title(f"distribution {i + 1}")
        _smooth(smooth, y, p)
        _binned(binned, y, p, n_bins=MOVED_BINS)
    drawn.axes[0].set_ylabel("outcome")
    return drawn


def _smooth(axes: Axes, y: AnyArray, p: FloatArray) -> None:
    cb.plot.reliability(y, p, ax=axes, note=False, margin=False, limits=(0, 1))
    axes.set_title(f"smECE {cb.smooth_ece(y, p):.4f}", loc="right", fontsize="medium")


def _binned(axes: Axes, y: AnyArray, p: FloatArray, n_bins: int | Literal["cv"]) -> None:
    table = cb.bin_table(y, p, n_bins=n_bins)
    cb.plot.reliability(table, ax=axes, note=False, margin=False, limits=(0, 1))
    words = f"ECE {cb.ece(y, p, n_bins=n_bins):.4f}, {len(table.edges) - 1} bins"
    axes.set_title(words, loc="right", fontsize="medium")


def draw_consistency(rows: Sequence[Row]) -> Figure:
    """Draw smECE against the distance to calibration, between the bounds of theorem 6."""
    drawn = figure(1, 1, 7.5, 5.6)
    axes = drawn.axes[0]
    d = np.geomspace(1e-6, 1, 200)
    axes.fill_between(d, d / 2, 2 * np.sqrt(d), color=LIGHT, alpha=0.5, linewidth=0)
    axes.plot(d, 2 * np.sqrt(d), color=GREY, linewidth=1, label="2 √dCE")
    axes.plot(d, d / 2, color=GREY, linewidth=1, linestyle="--", label="dCE / 2")
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault("bundled data" if row.family in BUNDLED else row.family, []).append(row)
    for (family, own), colour, marker in zip(families.items(), COLOURS, MARKERS, strict=False):
        low, high = np.array([(row.lower, row.upper) for row in own]).T
        smece = [row.smece for row in own]
        size, order = (2.5, 2) if family == "random" else (4.5, 3)
        axes.hlines(smece, low, high, color=colour, linewidth=0.8)
        middle = np.sqrt(low * high)
        axes.plot(middle, smece, marker, color=colour, ms=size, zorder=order, label=family)
    axes.set(xscale="log", yscale="log", xlim=(1e-6, 1), ylim=(1e-6, 1))
    axes.set_xlabel("distance to calibration dCE (bars: between its bounds)")
    axes.set_ylabel("smECE")
    legend_below(drawn, axes, 4)
    return drawn


def draw_sample_sizes(rows: Sequence[Row], titles: dict[str, str]) -> Figure:
    """Draw errors of samples against their size, plain and in units of the bound (theorem 9)."""
    drawn = figure(2, 2, 9.5, 7.4, sharex=True, sharey="row")
    starts = list(dict.fromkeys(row.start for row in rows))
    for column, population in enumerate(titles):
        plain, scaled = drawn.axes[column], drawn.axes[2 + column]
        for start, colour, marker in zip(starts, COLOURS, MARKERS, strict=False):
            own = [row for row in rows if (row.population, row.start) == (population, start)]
            m, found = (np.array([getattr(row, x) for row in own]) for x in ("m", "quantile"))
            is_fixed = not _is_number(start)
            label = "in the fixed point" if is_fixed else f"from s₀ = {start} on"
            style: dict[str, Any] = {
                "color": colour,
                "marker": marker,
                "markersize": 4,
                "label": label,
            }
            plain.plot(m, found, **style)
            if not is_fixed:
                scaled.plot(m, found * np.sqrt(m * float(start)), **style)
        plain.plot(m, 4 / np.sqrt(m), color=GREY, linestyle=":", label="slope -1/2")
        plain.set_title(titles[population])
        plain.set_xscale("log", base=2)
        plain.set_yscale("log")
        scaled.set_xlabel("rows m")
    drawn.axes[2].set_ylim(bottom=0)
    drawn.axes[0].set_ylabel("largest error in 2 of 3 samples")
    drawn.axes[2].set_ylabel("times √(m s₀)")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def _is_number(text: str) -> bool:
    return text[0].isdigit()


STUDY = Study(NAME, parts=parts, report=report)
