"""Figure 2 as numbers: medians over score distributions of how far each estimator is off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.arrays import FloatArray
from calibrant.papers._frame import Row

_N_RESAMPLES = 200


@dataclass(frozen=True)
class CurvePoint:
    """One point of one curve.

    Attributes
    ----------
    means, setting, n, estimator
        Of which mixtures, what is estimated, from how many rows, and how.
    distributions
        How many score distributions the medians are over.
    relative
        Median of the 95th percentiles of abs(estimate - truth) / truth: the paper's measure.
    relative_noise
        Its standard deviation by chance: mixtures resampled.
    absolute
        Median of the 95th percentiles of abs(estimate - truth): what the authors' code plots.
    absolute_noise
        Its standard deviation by chance.
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
    # Score distributions of one mixture are no independent witnesses of it.
    mixtures = [(r.n_classes, r.n_features, r.mixture) for r in rows[0]]
    _, mixture = np.unique(mixtures, axis=0, return_inverse=True)
    relative_noise, absolute_noise = _noise(np.stack((high, high * truth)), np.ravel(mixture))
    columns = (
        *(_median(high), relative_noise, _median(high * truth), absolute_noise),
        *(_median(mean), _median(bias)),
    )
    for numbers in zip(*columns, strict=True):
        yield tuple(float(f"{value:.5g}") for value in numbers)


def _noise(values: FloatArray, mixture: npt.NDArray[np.intp]) -> FloatArray:
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
