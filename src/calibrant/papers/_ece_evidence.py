"""What the study of estimators says about data of a given size and shape, in a small table.

Score distributions are grouped by what is estimated, by the number of classes, and by the sharpness
of their scores, a third of them in each group. Both kinds of mixtures count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.papers._ece_estimators import ESTIMATORS
from calibrant.papers._frame import Row

_N_GROUPS = 3


@dataclass(frozen=True)
class Evidence:
    """How far an estimator was off on similar score distributions, in units of the truth.

    Attributes
    ----------
    setting, n_classes, sharpness_from, sharpness_to, n
        The group of score distributions, and the size of evaluation sets.
    distributions
        How many there are.
    estimator
        Its name in the study.
    high
        Median over them of the 95th percentile of abs(estimate - truth) / truth.
    expected
        Median of its mean.
    bias
        Median of the mean of (estimate - truth) / truth.
    """

    setting: str
    n_classes: int
    sharpness_from: float
    sharpness_to: float
    n: int
    distributions: int
    estimator: str
    high: float
    expected: float
    bias: float


def sharpness(p: FloatArray) -> float:
    """Return how sharp scores are: the mean of (2 p - 1)^2."""
    return float(np.mean((2 * p - 1) ** 2))


def evidence(errors: Iterable[Row]) -> list[Evidence]:
    """Group the errors of those estimators that a user can call."""
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in errors:
        if ESTIMATORS[row.estimator].call:
            groups[row.setting, row.n_classes].append(row)
    return [
        line for (setting, _), rows in sorted(groups.items()) for line in _thirds(setting, rows)
    ]


def _thirds(setting: str, rows: Sequence[Row]) -> Iterable[Evidence]:
    sharp = np.array([row.sharpness for row in rows])
    inner = np.quantile(sharp, np.arange(1, _N_GROUPS) / _N_GROUPS)
    third = np.searchsorted(inner, sharp)
    # The outer groups take whatever comes.
    ends = [0.0, *(float(f"{end:.3g}") for end in inner), 1.0]
    places: dict[tuple[int, int, str], list[Row]] = defaultdict(list)
    for row, group in zip(rows, third.tolist(), strict=True):
        places[group, row.n, row.estimator].append(row)
    for (group, n, estimator), own in sorted(places.items(), key=lambda item: item[0][:2]):
        numbers = np.array([(row.high, row.mean, row.bias) for row in own])
        # Nan, if on some score distribution an estimator was never defined: not to be recommended.
        medians = np.median(numbers, axis=0)
        yield Evidence(
            *(setting, own[0].n_classes, ends[group], ends[group + 1], n, len(own), estimator),
            *(float(f"{value:.3g}") for value in medians),
        )
