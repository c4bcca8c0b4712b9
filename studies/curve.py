"""How near the smooth reliability curve comes to the truth, and how often its band holds it.

Twenty-four populations, three sizes, and two curves: the default of `calibrant.reliability_curve`,
residuals smoothed at a cross-validated bandwidth, and that of Błasiok and Nakkiran, outcomes
smoothed at the bandwidth smECE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta, norm

import calibrant as cb
from calibrant.curves.residual_smoothing import ScoreAxis
from calibrant.data.rows import Sample
from calibrant.measures.density import DensityError
from studies.frame import (
    COLOURS,
    GREY,
    MARKERS,
    AnyArray,
    FloatArray,
    Part,
    Report,
    Row,
    Study,
    Tables,
    figure,
    grid,
    legend_below,
    page,
    picture,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "curve"
SIZES = (300, 3000, 30_000)
LEVEL = 0.95
# Scores that represent a population, all equally probable.
_POINTS = 5000
SAMPLES = 100
# What floating-point sums of a population may lack.
ROUNDING = 1e-9
Rule = Literal["cv", "smece"]
RULES: tuple[Rule, ...] = ("cv", "smece")
Function = Callable[[FloatArray], FloatArray]


# The populations.


@dataclass(frozen=True)
class Scores:
    """A distribution of scores: a function of a scipy distribution."""

    distribution: Any
    transform: Function
    name: str

    def points(self) -> FloatArray:
        """Return equally probable scores."""
        middles = (np.arange(_POINTS) + 0.5) / _POINTS
        return self.transform(self.distribution.ppf(middles))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` scores."""
        return self.transform(self.distribution.rvs(n, random_state=rng))


@dataclass(frozen=True)
class Truth:
    """The probability of an event given the score."""

    probability: Function
    name: str


def _beta(a: float, b: float) -> Scores:
    return Scores(beta(a, b), lambda p: p, f"Beta({a:g}, {b:g})")


def _logit_normal(mean: float, sd: float) -> Scores:
    return Scores(norm(mean, sd), expit, f"sigmoid(N({mean:g}, {sd:g}²))")


def _logit(slope: float, shift: float = 0.0) -> Truth:
    added = f" {'+' if shift > 0 else '−'} {abs(shift):g}" if shift else ""
    factor = "" if slope == 1 else f"{slope:g} "
    return Truth(lambda p: expit(slope * logit(p) + shift), f"sigmoid({factor}logit p{added})")


def _wave(height: float, cycles: int) -> Truth:
    def wave(p: FloatArray) -> FloatArray:
        return np.clip(p + height * np.sin(2 * np.pi * cycles * p), 0.0, 1.0)

    return Truth(wave, f"p + {height:g} sin({2 * cycles}π p)")


def _bump(height: float, centre: float) -> Truth:
    def bump(p: FloatArray) -> FloatArray:
        return p + height * np.exp(-0.5 * ((p - centre) / 0.05) ** 2)

    sign = "−" if height < 0 else "+"
    return Truth(bump, f"p {sign} {abs(height):g} exp(−((p − {centre:g}) / 0.05)² / 2)")


_BELL, _FLAT, _SKEWED, _RARE = _beta(2, 2), _beta(1, 1), _beta(1, 4), _beta(1, 60)
_TENTHS = Scores(beta(2, 2), lambda p: np.rint(10 * p) / 10, "Beta(2, 2) rounded to tenths")
_CALIBRATED = Truth(lambda p: p, "p")
_STEP = Truth(lambda p: p - 0.15 * ((p > 0.6) & (p < 0.8)), "p − 0.15 on (0.6, 0.8), else p")
_JUMP = Truth(
    lambda p: np.where(p < 0.5, 0.6 * p, 0.3 + 0.7 * p), "0.6 p below 0.5, 0.3 + 0.7 p above"
)

POPULATIONS: dict[str, tuple[Scores, Truth]] = {
    "calibrated": (_BELL, _CALIBRATED),
    "calibrated, U-shaped": (_beta(0.4, 0.5), _CALIBRATED),
    "calibrated, rare": (_RARE, _CALIBRATED),
    "calibrated, confident": (_logit_normal(2, 3), _CALIBRATED),
    "shift up": (_BELL, _logit(1, 0.4)),
    "shift down": (_SKEWED, _logit(1, -0.4)),
    "power": (_SKEWED, Truth(lambda p: p**1.2, "p^1.2")),
    "slope 0.6": (_BELL, _logit(0.6)),
    "slope 0.8": (_FLAT, _logit(0.8)),
    "slope 1.2": (_beta(0.8, 0.9), _logit(1.2)),
    "slope 1.5": (_BELL, _logit(1.5)),
    "slope and shift": (_beta(1.3, 3.5), _logit(0.7, -0.3)),
    "one wave": (_FLAT, _wave(0.1, 1)),
    "two waves": (_BELL, _wave(0.1, 2)),
    "three waves": (_FLAT, _wave(0.08, 3)),
    "bump": (_FLAT, _bump(-0.2, 0.65)),
    "bump, U-shaped": (_beta(0.5, 0.5), _bump(0.2, 0.3)),
    "step": (_FLAT, _STEP),
    "jump": (_beta(1.2, 1.8), _JUMP),
    "slope 0.6, U-shaped": (_beta(0.3, 0.3), _logit(0.6)),
    "slope 0.6, confident": (_logit_normal(2, 2.5), _logit(0.6)),
    "mixture, confident": (
        _logit_normal(0, 6),
        Truth(lambda p: 0.04 + 0.92 * p, "0.04 + 0.92 p"),
    ),
    "slope 0.7, tenths": (_TENTHS, _logit(0.7)),
    "shrunk, rare": (_RARE, Truth(lambda p: 0.005 + 0.5 * p, "0.005 + 0.5 p")),
}


# The experiments.


@dataclass(frozen=True)
class Cell:
    """The samples of one population and size, and either bandwidth.

    Mean integrated squared error, median bandwidth, and how often the band holds the population's
    curve and the truth: at the score of a random row, and everywhere.
    """

    population: str
    n: int
    rule: str
    samples: int
    error: float
    bandwidth: float
    pointwise: float
    pointwise_truth: float
    whole: float
    whole_truth: float


def parts(quick: bool) -> list[Part]:
    """List the populations and sizes to measure."""
    sizes, samples = (SIZES[:1], 4) if quick else (SIZES, SAMPLES)
    cells = [(name, n, rule) for n in sizes for name in POPULATIONS for rule in RULES]
    return [Part("cells", Cell, cells, partial(measured, samples=samples))]


def measured(population: str, n: int, rule: Rule, *, samples: int) -> Iterator[Cell]:
    """Measure one population, size and bandwidth."""
    scores, truth = POPULATIONS[population]
    p, place = scores.points(), list(POPULATIONS).index(population)
    q = truth.probability(p)
    found = []
    for sample in range(samples):
        rng = np.random.default_rng([place, n, sample])
        score = scores.sample(n, rng)
        outcome = rng.random(n) < truth.probability(score)
        found.append(_of_sample(outcome, score, p, q, rule))
    mean, width = np.mean(found, axis=0), float(np.median(found, axis=0)[1])
    yield Cell(population, n, rule, samples, mean[0], width, *mean[2:])


def _of_sample(
    y: AnyArray, score: FloatArray, p: FloatArray, q: FloatArray, rule: Rule
) -> list[float]:
    """Return error, bandwidth and coverages of one sample, given points of the population."""
    curve = cb.reliability_curve(y, score, level=LEVEL, bandwidth=rule)
    whole = cb.reliability_curve(y, score, level=LEVEL, bandwidth=rule, simultaneous=True)
    targets = [population_curve(curve, score, p, q), np.interp(curve.x, p, q)]
    return [
        float(np.nanmean((_at(p, curve.x, curve.y) - q) ** 2)),
        curve.bandwidth,
        *(float(np.nanmean(_at(p, curve.x, _held(curve, target)))) for target in targets),
        *(float(np.nanmin(_held(whole, target))) for target in targets),
    ]


def population_curve(
    curve: cb.Curve, score: FloatArray, p: FloatArray, q: FloatArray
) -> FloatArray:
    """Return the curve of a population's points, smoothed as that of a sample with these scores."""
    error = DensityError(curve.bandwidth, bounds=(0.0, 1.0))
    if curve.of_residuals:
        axis = ScoreAxis.of(Sample(score, score))
        error = replace(error, smooths="residual", axis=axis)
    smooth = error.densities(Sample(q, p))
    outcome = np.divide(
        smooth.true, smooth.weight, out=np.full_like(smooth.t, np.nan), where=~smooth.nil
    )
    return np.asarray(np.interp(curve.x, smooth.t, np.clip(outcome, 0.0, 1.0)))


def _held(curve: cb.Curve, target: FloatArray) -> FloatArray:
    """Return 1 where the band holds the target, 0 where not, nan where either is unknown."""
    inside = (curve.low <= target + ROUNDING) & (target - ROUNDING <= curve.high)
    return np.where(np.isnan(curve.y + target), np.nan, inside)


def _at(p: FloatArray, x: FloatArray, values: FloatArray) -> FloatArray:
    """Return values at the points of the population; nan beyond those known."""
    return np.asarray(np.interp(p, x, values, left=np.nan, right=np.nan))


# The page.


def report(tables: Tables) -> Report:
    """Set the two bandwidths side by side."""
    cells = {(row.population, row.n, row.rule): row for row in tables["cells"]}
    sizes = sorted({n for _, n, _ in cells})
    return Report(
        text=page(
            _INTRODUCTION,
            _populations(),
            "## Distance from the truth",
            _summary(cells, sizes),
            picture(NAME, "errors", "error at the cross-validated bandwidth over that at smECE"),
            _errors(cells, sizes),
            "## Coverage of the band",
            _COVERAGE,
            _coverages(cells, sizes),
        ),
        figures={"errors": partial(draw_errors, cells, sizes)},
    )


_INTRODUCTION = """
# The smooth reliability curve

How near the default curve of `calibrant.reliability_curve`, residuals smoothed at a cross-validated
bandwidth, comes to the truth, and how often its 95% band holds it. Beside it the curve of Błasiok
and Nakkiran (2023), outcomes smoothed at the bandwidth smECE (`bandwidth="smece"`). Made by
`python -m studies curve`; samples are the same for both.
"""

_COVERAGE = """
In per cent, how often 95% bands hold the truth, and the curve of the population at the same
bandwidth, from which the truth differs where the deviation bends within a bandwidth. Bands at smECE
are made for the latter, those of cross-validated curves, at a third of their bandwidth, for the
truth. Each pair is "cross-validated · smECE". Pointwise: at the score of a random row. Whole: at
every score, simultaneous bands.
"""

Cells = Mapping[tuple[str, int, str], Row]


def _populations() -> str:
    rows = [[name, scores.name, truth.name] for name, (scores, truth) in POPULATIONS.items()]
    return grid(["population", "scores p", "P(y = 1 \\| p)"], rows)


def _ratio(cells: Cells, name: str, n: int) -> float:
    return float(cells[name, n, "cv"].error / cells[name, n, "smece"].error)


def _summary(cells: Cells, sizes: Sequence[int]) -> str:
    """Count where the cross-validated curve is nearer."""
    ratios = np.array([[_ratio(cells, name, n) for n in sizes] for name in POPULATIONS])
    wins = ", ".join(
        f"{int(own.sum())} at n = {n}" for n, own in zip(sizes, (ratios < 1).T, strict=True)
    )
    means = np.exp(np.log(ratios).mean(axis=0))
    typical = ", ".join(f"{mean:.2f}" for mean in means)
    overall = int(np.sum(np.log(ratios).mean(axis=1) < 0))
    samples = max(row.samples for row in cells.values())
    return (
        "The mean integrated squared error, weighted by the density of scores, of the "
        f"cross-validated curve is the smaller one in {wins} of {len(POPULATIONS)} populations "
        f"({samples} samples each), and in {overall} over all sizes. The geometric mean of the "
        f"ratio of the two is {typical}."
    )


def _errors(cells: Cells, sizes: Sequence[int]) -> str:
    heading = ["10⁴ × error (median bandwidth)", *(f"n = {n}" for n in sizes)]
    return grid(heading, [[name, *(_pair(cells, name, n) for n in sizes)] for name in POPULATIONS])


def _pair(cells: Cells, name: str, n: int) -> str:
    rows = [cells[name, n, rule] for rule in RULES]
    texts = [f"{1e4 * row.error:.3g} ({row.bandwidth:.2g})" for row in rows]
    if rows[0].error < rows[1].error:
        texts[0] = f"**{texts[0]}**"
    return " · ".join(texts)


def _coverages(cells: Cells, sizes: Sequence[int]) -> str:
    """Return the mean and the minimum over populations of every coverage."""
    kinds = {
        "pointwise": "pointwise, population's curve",
        "pointwise_truth": "pointwise, truth",
        "whole": "whole, population's curve",
        "whole_truth": "whole, truth",
    }

    def found(kind: str, n: int, function: Callable[..., float]) -> str:
        own = [[getattr(cells[name, n, rule], kind) for name in POPULATIONS] for rule in RULES]
        return " · ".join(f"{100 * function(values):.1f}" for values in own)

    rows = [
        [f"{label}: {title}", *(found(kind, n, function) for n in sizes)]
        for kind, label in kinds.items()
        for title, function in (("mean", np.mean), ("minimum", np.min))
    ]
    return grid(["", *(f"n = {n}" for n in sizes)], rows)


def draw_errors(cells: Cells, sizes: Sequence[int]) -> Figure:
    """Draw the ratio of the two errors for every population and size."""
    drawn = figure(1, 1, 7.2, 6.4)
    (axes,) = drawn.axes
    places = np.arange(len(POPULATIONS))[::-1]
    for n, color, marker in zip(sizes, COLOURS, MARKERS, strict=False):
        ratios = [_ratio(cells, name, n) for name in POPULATIONS]
        axes.plot(ratios, places, marker, color=color, label=f"n = {n}", ls="none")
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(places, list(POPULATIONS))
    axes.set_xlabel("integrated squared error: cross-validated / smECE")
    legend_below(drawn, axes, len(sizes))
    return drawn


STUDY = Study(NAME, parts=parts, report=report)
