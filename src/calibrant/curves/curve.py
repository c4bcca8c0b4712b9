"""Curves as data: outcomes to expect at each score, and cumulative differences."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant._base import FloatArray, Result


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
