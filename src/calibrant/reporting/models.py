"""The models on a page, each reduced to what a page can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibrant._base import FloatArray, IntArray
from calibrant.assessment.assess import Assessment
from calibrant.curves.curve import Curve
from calibrant.curves.reliability_view import ReliabilityView
from calibrant.data.binning import Bins
from calibrant.errors import CalibrantError, shown
from calibrant.formatting import counted
from calibrant.measures.cumulative import CumulativeCurve

__all__ = ["Model", "evenly", "read_models"]

# The number of points of all curves of one kind: divided among models, so that pages stay small.
_POINTS = 6000
_MOST_POINTS, _LEAST_POINTS = 1000, 100
# Significant digits of the points: more than can be seen.
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class Model:
    """An assessment with its name and its place among the others.

    Attributes
    ----------
    name
        The name; empty where there is only one.
    place
        0 for the first.
    assessment
        The assessment, its curves with no more points than can be seen.
    """

    name: str
    place: int
    assessment: Assessment

    @property
    def outcome(self) -> str:
        """What the outcomes of this model are called."""
        return "accuracy" if self.is_confidence else "observed"

    @property
    def score(self) -> str:
        """What the predictions of this model are called."""
        return "confidence" if self.is_confidence else "score"

    @property
    def is_confidence(self) -> bool:
        """Whether predictions are the confidence in a predicted class."""
        return self.assessment.is_confidence

    @cached_property
    def views(self) -> dict[str, ReliabilityView]:
        """What reliability diagrams show, by the method of the curve."""
        methods = [curve.method for curve in self.assessment.curves]
        return {method: self.assessment.reliability_view(method) for method in methods}

    def bins_of(self, curve: Curve) -> IntArray:
        """Return the bin of the table that each point of a curve lies in."""
        bins = self.assessment.bins
        if curve.method == "binned":
            # Its points are the bins that hold rows. The mean of scores on an edge may be rounded
            # to beyond it.
            return np.flatnonzero(bins.n)
        return Bins(bins.edges, np.diff(bins.edges)).index(curve.x)

    def in_bin(self, k: int) -> str:
        """Return how many rows a bin holds, in words."""
        bins = self.assessment.bins
        rows = counted(int(bins.n[k]), "row")
        return f"{rows} in {bins.edges[k]:.3g} to {bins.edges[k + 1]:.3g}"


def read_models(assessments: Mapping[str, Assessment] | Assessment) -> list[Model]:
    """Return the models to show: one, or several by name."""
    if isinstance(assessments, Assessment):
        assessments = {"": assessments}
    if not assessments:
        raise CalibrantError("there must be at least one assessment to show; got an empty mapping")
    for name, one in assessments.items():
        if not isinstance(one, Assessment):
            raise CalibrantError(
                "must hold results of assess",
                argument="assessments",
                value=type(one),
                found="{value} at {name}",
                name=shown(name),
            )
    n_points = min(max(_POINTS // len(assessments), _LEAST_POINTS), _MOST_POINTS)
    return [
        Model(str(name), place, _shown(one, n_points))
        for place, (name, one) in enumerate(assessments.items())
    ]


def _shown(assessment: Assessment, n_points: int) -> Assessment:
    """Return an assessment with no more of its curves than can be seen."""
    return replace(
        assessment,
        curves=tuple(_shown_curve(curve, n_points) for curve in assessment.curves),
        cumulative=_shown_cumulative(assessment.cumulative, n_points),
    )


def _shown_curve(curve: Curve, n_points: int) -> Curve:
    if curve.method == "binned":
        return curve
    turns = _turns(curve.y, curve.low, curve.high)
    kept = turns[evenly(len(turns), n_points)]
    return replace(
        curve,
        x=_rounded(curve.x[kept]),
        y=_rounded(curve.y[kept]),
        density=_rounded(curve.density[kept]),
        low=_rounded(curve.low[kept]),
        high=_rounded(curve.high[kept]),
    )


def _shown_cumulative(curve: CumulativeCurve, n_points: int) -> CumulativeCurve:
    thin = curve.thinned(n_points)
    return replace(
        thin,
        fraction=_rounded(thin.fraction),
        score=_rounded(thin.score),
        deviation=_rounded(thin.deviation),
    )


def _turns(*heights: FloatArray) -> IntArray:
    """Return the points that lines through all heights need: not those amid level runs."""
    level = np.ones(len(heights[0]) - 1, dtype=bool)
    for height in heights:
        level &= (np.diff(height) == 0) | np.isnan(height[1:]) & np.isnan(height[:-1])
    inside = np.zeros(len(heights[0]), dtype=bool)
    inside[1:-1] = level[1:] & level[:-1]
    return np.flatnonzero(~inside)


def evenly(n: int, most: int) -> IntArray:
    """Return at most this many of n indices, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def _rounded(values: FloatArray) -> FloatArray:
    return np.array([float(f"{value:.{_DIGITS}g}") for value in values.tolist()])
