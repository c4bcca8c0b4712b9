"""Chidambaram et al., "How Flawed Is ECE? An Analysis via Logit Smoothing" (2024): figures 2 to 5.

And its statements as measurements: the ECE jumps where proposition 3.5 says, the logit-smoothed
ECE does not, and as sigma falls it tends to the ECE (theorem 5.4). The paper estimates by sampling
points, which is done here too, beside the exact integral.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant.arrays import FloatArray
from calibrant.datasets import SCENARIOS, load_imagenet, simulate
from calibrant.papers._frame import Paper, Part
from calibrant.papers._logit_smoothing_data import (
    NETWORKS,
    TWO_POINT_SIZE,
    Atoms,
    Network,
    Noise,
    first_coordinate,
    sampled,
    separated,
    two_points,
)
from calibrant.papers._logit_smoothing_report import report

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
    """An error of predictions that tell outcomes apart in so many cells; 0 cells: they do not."""

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
    """Measure predictions near x1 that tell outcomes apart (proposition 3.5)."""
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


PAPER = Paper("logit-smoothing", parts=parts, report=report)
