"""Arrieta-Ibarra et al., "Metrics of Calibration" (2022): figures 1, 7 to 10, 35 and 36, ImageNet.

The synthetic data are the published ones to the last bit: scores, staircase and seed, also for the
nine data sets that figures 8 to 10 average over. The networks on ImageNet are others than in the
paper, so these numbers are shown beside the published ones and not compared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant.arrays import AnyArray, FloatArray
from calibrant.datasets import cantor_staircase, load_imagenet
from calibrant.papers._ecce_published import CLASSES, P_VALUES
from calibrant.papers._ecce_report import report
from calibrant.papers._frame import Paper, Part

Transform = Literal["identity", "square", "sqrt"]
Network = Literal["resnet34", "densenet161"]
Statistic = Literal["max", "range"]
Strategy = Literal["uniform", "quantile"]

TRANSFORMS: tuple[Transform, ...] = ("identity", "square", "sqrt")
SEED = 987654321
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
    """The limit of the mean-square error with 16 draws a bin, theorems 1 and 8."""

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
    law = cb.inference.brownian_max if statistic == "max" else cb.inference.brownian_range
    printed = {line[:3]: line[3] for line in P_VALUES}[figure, statistic, normalized]
    yield PValue(figure, statistic, normalized, printed, float(law.sf(float(normalized))))


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
    chance = p if outcomes == "calibrated" else data.true_prob
    drawn = [_measures(rng.random(n) <= chance, p) for _ in range(n_sets)]
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


PAPER = Paper("ecce", parts=parts, report=report)
