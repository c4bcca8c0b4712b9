"""The errors of estimators, reduced to the tables that the page is made of.

- `curves`: figure 2 as numbers, medians over score distributions;
- `evidence`: the table behind `calibrant.recommend`;
- `extents`: the number of score distributions, their true errors and the cost.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.measures.recommendation import ESTIMATORS as RECOMMENDED
from calibrant.measures.recommendation import Evidence
from studies.estimating_ece.estimators import CODED, OTHERS, PUBLISHED
from studies.frame import FloatArray, Index, Row

_N_RESAMPLES = 200


@dataclass(frozen=True)
class CurvePoint:
    """One point of one curve.

    Attributes
    ----------
    means, setting, n, estimator
        Kind of mixture, quantity, number of rows and estimator.
    distributions
        The number of score distributions that the medians are over.
    relative
        Median of the 95th percentiles of abs(estimate - truth) / truth: the paper's measure.
    relative_noise
        Its standard deviation when mixtures are resampled.
    absolute
        Median of the 95th percentiles of abs(estimate - truth): what the authors' code plots.
    absolute_noise
        Its standard deviation when mixtures are resampled.
    expected
        Median of the means of abs(estimate - truth) / truth.
    bias
        Median of the means of (estimate - truth) / truth.
    """

    means: str
    setting: str
    n: int
    estimator: str
    distributions: int
    relative: float
    relative_noise: float
    absolute: float
    absolute_noise: float
    expected: float
    bias: float


def curves(errors: Iterable[Row]) -> list[CurvePoint]:
    """Take medians over score distributions, for each estimator and size."""
    groups: dict[tuple[str, str, int], dict[str, list[Row]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in errors:
        groups[row.means, row.setting, row.n][row.estimator].append(row)
    return [
        CurvePoint(*where, name, len(rows), *numbers)
        for where, own in groups.items()
        for (name, rows), numbers in zip(own.items(), _medians(list(own.values())), strict=True)
    ]


def _medians(rows: Sequence[Sequence[Row]]) -> Iterator[tuple[float, ...]]:
    """Yield the numbers of each estimator, whose score distributions come in one order."""
    table = np.array([[(r.truth, r.high, r.mean, r.bias) for r in own] for own in rows])
    truth, high, mean, bias = np.moveaxis(table, 2, 0)
    # Score distributions of one mixture are not independent.
    mixtures = [(r.n_classes, r.n_features, r.mixture) for r in rows[0]]
    _, mixture = np.unique(mixtures, axis=0, return_inverse=True)
    relative_noise, absolute_noise = _noise(np.stack((high, high * truth)), np.ravel(mixture))
    columns = (
        *(_median(high), relative_noise, _median(high * truth), absolute_noise),
        *(_median(mean), _median(bias)),
    )
    for numbers in zip(*columns, strict=True):
        yield tuple(float(f"{value:.5g}") for value in numbers)


def _noise(values: FloatArray, mixture: Index) -> FloatArray:
    """Return the standard deviation of medians along the last axis when mixtures are resampled."""
    rng = np.random.default_rng(0)
    order = np.argsort(mixture, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(mixture))[:-1])
    medians = []
    for _ in range(_N_RESAMPLES):
        chosen = rng.integers(len(members), size=len(members))
        drawn = np.concatenate([members[one] for one in chosen])
        medians.append(_median(values[..., drawn]))
    return np.asarray(np.std(medians, axis=0))


def _median(values: FloatArray) -> FloatArray:
    """Return medians along the last axis; an estimator that is not always defined has none."""
    return np.asarray(np.median(values, axis=-1))


# The paper's fifteen: as they are meant, as the authors' code has them, and all there are.
RIGHT = tuple(one.name for one in PUBLISHED)
AS_CODED = (
    *(name for name in RIGHT if name.startswith(("legacy", "density 0"))),
    *(one.name for one in CODED),
)
ALL = (*RIGHT, *(one.name for one in OTHERS))


@dataclass(frozen=True, eq=False)
class ErrorCurves:
    """The curves of one kind of mixtures."""

    means: str
    rows: Sequence[Row]

    @cached_property
    def points(self) -> dict[tuple[str, str, int], Row]:
        """The points by setting, estimator and size."""
        return {(r.setting, r.estimator, r.n): r for r in self.rows if r.means == self.means}

    @cached_property
    def sizes(self) -> list[int]:
        """The sizes of evaluation sets."""
        return sorted({n for _, _, n in self.points})

    def value(self, setting: str, estimator: str, n: int, measure: str) -> float:
        """Return one number of a curve."""
        return float(getattr(self.points[setting, estimator, n], measure))

    def best(self, setting: str, names: Iterable[str], n: int, measure: str) -> str:
        """Return the estimator with the smallest error."""
        return min(names, key=lambda name: self.value(setting, name, n, measure))

    def ratio(
        self, setting: str, over: str, under: str, measure: str, sizes: Sequence[int] = ()
    ) -> float:
        """Return the ratio of two errors: the geometric mean over sizes."""
        logs = [
            math.log(self.value(setting, over, n, measure) / self.value(setting, under, n, measure))
            for n in sizes or self.sizes
        ]
        return math.exp(sum(logs) / len(logs))

    def times_the_best(
        self, setting: str, name: str, names: Sequence[str], n: int, measure: str
    ) -> float:
        """Return the error of an estimator relative to the smallest."""
        smallest = self.value(setting, self.best(setting, names, n, measure), n, measure)
        return self.value(setting, name, n, measure) / smallest

    def span(
        self, setting: str, names: Iterable[str], n: int, measure: str
    ) -> tuple[float, float, float]:
        """Return the smallest, the middle and the largest error of several estimators."""
        values = sorted(self.value(setting, name, n, measure) for name in names)
        return values[0], values[len(values) // 2], values[-1]


_N_GROUPS = 3


def evidence(errors: Iterable[Row]) -> list[Evidence]:
    """Group the errors of those estimators that a user can call."""
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in errors:
        if row.estimator in RECOMMENDED:
            groups[row.setting, row.n_classes].append(row)
    return [
        line for (setting, _), rows in sorted(groups.items()) for line in _thirds(setting, rows)
    ]


def _thirds(setting: str, rows: Sequence[Row]) -> Iterable[Evidence]:
    sharp = np.array([row.sharpness for row in rows])
    inner = np.quantile(sharp, np.arange(1, _N_GROUPS) / _N_GROUPS)
    third = np.searchsorted(inner, sharp)
    # The outer groups have no outer limits.
    ends = [0.0, *(float(f"{end:.3g}") for end in inner), 1.0]
    places: dict[tuple[int, int, str], list[Row]] = defaultdict(list)
    for row, group in zip(rows, third.tolist(), strict=True):
        places[group, row.n, row.estimator].append(row)
    for (group, n, estimator), own in sorted(places.items(), key=lambda item: item[0][:2]):
        numbers = np.array([(row.high, row.mean, row.bias) for row in own])
        # Nan if an estimator was undefined on some score distribution: it is never recommended.
        medians = np.median(numbers, axis=0)
        yield Evidence(
            *(setting, own[0].n_classes, ends[group], ends[group + 1], n, len(own), estimator),
            *(float(f"{value:.3g}") for value in medians),
        )


@dataclass(frozen=True)
class Extent:
    """The score distributions that were measured.

    Attributes
    ----------
    means, setting
        The mixtures, and what is estimated.
    distributions, mixtures
        The number of score distributions, and of the mixtures they come from.
    seconds
        Their processor time, both settings together.
    truth_low, truth, truth_high
        5th percentile, median and 95th percentile of their calibration errors.
    uncertainty
        Median of the relative uncertainty of each.
    """

    means: str
    setting: str
    distributions: int
    mixtures: int
    seconds: float
    truth_low: float
    truth: float
    truth_high: float
    uncertainty: float


def extents(errors: Iterable[Row]) -> list[Extent]:
    """Count score distributions."""
    found: dict[tuple[str, str], dict[tuple[object, ...], Row]] = defaultdict(dict)
    for row in errors:
        mixture = (row.n_classes, row.n_features, row.mixture)
        found[row.means, row.setting][*mixture, row.training, row.model] = row
    return [
        Extent(
            *where,
            len(rows),
            len({key[:3] for key in rows}),
            round(sum(row.seconds for row in rows.values()), 1),
            *_rounded(np.quantile([row.truth for row in rows.values()], [0.05, 0.5, 0.95])),
            *_rounded([np.median([row.uncertainty / row.truth for row in rows.values()])]),
        )
        for where, rows in found.items()
    ]


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
