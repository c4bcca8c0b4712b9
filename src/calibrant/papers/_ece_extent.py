"""What the study rests on: how many score distributions, of what truth, at what cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from calibrant.papers._frame import Row


@dataclass(frozen=True)
class Extent:
    """The score distributions that were measured.

    Attributes
    ----------
    means, setting
        Of which mixtures, and what is estimated.
    distributions, mixtures
        How many there are, of how many mixtures.
    seconds
        What they took of a processor, both settings together.
    truth_low, truth, truth_high
        5th percentile, median and 95th percentile of their calibration errors.
    uncertainty
        Median of how far each may be off, in units of itself.
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
