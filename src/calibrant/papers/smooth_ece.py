"""Błasiok and Nakkiran, "Smooth ECE" (2023): figures 2 and 3, theorems 6 and 9.

The paper prints few numbers, and those of figure 2 only inside the picture. Where it prints none,
its statements are measured: smECE lies between half the distance to calibration and twice its root,
and m rows give smECE at a scale s to within a constant times 1 / sqrt(m s).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant.arrays import AnyArray, FloatArray
from calibrant.datasets import SCENARIOS, simulate
from calibrant.papers._frame import Paper, Part
from calibrant.papers._smooth_ece_data import (
    BUNDLED,
    MOVED_BINS,
    MOVED_SIZE,
    SKEWED_SIZE,
    moved,
    moved_sample,
)
from calibrant.papers._smooth_ece_published import RELPLOT_CELLS
from calibrant.papers._smooth_ece_report import report

# Scales at which samples are compared with their population, and those that theorem 9 starts at.
SCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
STARTS = (0.01, 0.05, 0.2)
FIXED_POINT = "smECE"
POPULATIONS = ("perfect", "skewed")


@dataclass(frozen=True)
class Diagram:
    """What the two diagrams of one data set say.

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
    curve = cb.reliability_curve(y, p, band=None)
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
    curve = cb.reliability_curve([0.5], [0.5], bandwidth=bandwidth, band=None)
    yield Constant(bandwidth, curve.area / bandwidth)


def distance(family: str, parameter: float) -> Iterator[Distance]:
    """Measure a distribution and bound its distance to calibration (theorem 6)."""
    y, p, w = _distribution(family, parameter)
    bounds = cb.distance_bounds(y, p, sample_weight=w)
    smece = cb.smooth_ece(y, p, sample_weight=w)
    yield Distance(family, parameter, smece, bounds.lower, bounds.upper)


def _distribution(family: str, parameter: float) -> tuple[AnyArray, FloatArray, FloatArray | None]:
    """Return outcomes, which may be chances, predictions and weights."""
    if family in BUNDLED:
        return *BUNDLED[family](), None
    if family == "two points":
        return np.array([0, 1]), np.array([0.5 - parameter, 0.5 + parameter]), None
    if family == "shift":
        return np.array([0.5 + parameter]), np.array([0.5]), None
    if family == "split cells":
        middle = (np.arange(2000) + 0.5) / 2000
        y, p = np.repeat([0, 1], 2000), np.tile(middle, 2)
        return y, moved(y, p, cell=2 * parameter, share=1.0), np.append(1 - middle, middle)
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


PAPER = Paper("smooth-ece", parts=parts, report=report)
