"""Curves as data: outcomes to expect at each score, and cumulative differences."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.results.result import Result


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Result):
    """The outcome to expect at each score.

    Attributes
    ----------
    x
        Scores, increasing.
    y
        The outcome to expect there (for "local" less the score); nan where there are next to no
        scores.
    density
        The density of scores at x (for "isotonic" the share of weight at x).
    low, high
        The band; nan where y is, and where none was asked for.
    bandwidth
        The scale of smoothing; nan for methods without one.
    area
        The integral of abs(y - x) times the density; for "binned" and "isotonic" the sum of
        abs(y - x) times the share of weight.
    method
        "smooth", "density", "binned", "isotonic" or "local".
    band
        "confidence", where the population's curve may lie; "consistency", where the curve would
        lie if predictions were calibrated; or None.
    level
        How often the band should hold; nan without one.
    simultaneous
        Whether the band should hold for the whole curve, or at each point by itself.
    """

    x: FloatArray
    y: FloatArray
    density: FloatArray
    low: FloatArray
    high: FloatArray
    bandwidth: float
    area: float
    method: str
    band: str | None = None
    level: float = float("nan")
    simultaneous: bool = False

    def thinned(self, n_points: int = 2048) -> Curve:
        """Return an isotonic curve with about so many points at most, both ends of its steps kept.

        The shares of weight at scores that are left out go to the next one that is kept.
        """
        n = len(self.x)
        if n <= n_points:
            return self
        jumps = np.flatnonzero(np.diff(self.y))
        spread = np.arange(0, n, -(-2 * n // n_points))
        kept = np.unique(np.concatenate((spread, jumps, jumps + 1, [n - 1])))
        share = np.diff(np.cumsum(self.density)[kept], prepend=0.0)
        names = ("x", "y", "low", "high")
        return replace(self, density=share, **{name: getattr(self, name)[kept] for name in names})

    def __repr__(self) -> str:
        scale = "" if np.isnan(self.bandwidth) else f", bandwidth={self.bandwidth:.4g}"
        band = "" if self.band is None else f", {self.level:.4g} {self.band} band"
        size = f"{len(self.x)} points{scale}, area={self.area:.4g}"
        return f"Curve(method={self.method!r}, {size}{band})"


@dataclass(frozen=True, eq=False, repr=False)
class CumulativeCurve(Result):
    """Cumulative deviation of outcomes over increasing scores; level where all is well.

    The slope between two points is the mean deviation over the scores between them.

    Attributes
    ----------
    fraction
        Share of the weight passed, from 0 to 1.
    score
        The score reached; the first, at fraction 0, is the lowest.
    deviation
        The sum of w (y - p) so far, over the total weight, from 0.
    sigma
        Standard deviation of the last deviation where all is well; nan for soft labels.
    """

    fraction: FloatArray
    score: FloatArray
    deviation: FloatArray
    sigma: float

    def thinned(self, n_points: int = 2048) -> CumulativeCurve:
        """Return the curve with about so many points at most, its turns among them.

        Of each run of points the first, the lowest and the highest stay, and the last of all, so
        that what is drawn looks the same and its range is the same number.
        """
        n = len(self.deviation)
        if n <= n_points:
            return self
        run = -(-3 * n // n_points)
        filled = np.pad(self.deviation, (0, -n % run), mode="edge").reshape(-1, run)
        first = np.arange(len(filled)) * run
        turns = (first, first + filled.argmin(axis=1), first + filled.argmax(axis=1), [n - 1])
        kept = np.unique(np.minimum(np.concatenate(turns), n - 1))
        return CumulativeCurve(
            self.fraction[kept], self.score[kept], self.deviation[kept], self.sigma
        )

    def __repr__(self) -> str:
        return (
            f"CumulativeCurve({len(self.score) - 1} scores, deviation from "
            f"{self.deviation.min():+.4g} to {self.deviation.max():+.4g}, "
            f"sigma = {self.sigma:.4g})"
        )
