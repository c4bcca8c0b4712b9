"""A reliability curve as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant._base import FloatArray, TabularResult


@dataclass(frozen=True, eq=False, repr=False)
class Curve(TabularResult):
    """The outcome to expect at each score.

    Attributes
    ----------
    x
        Scores, increasing.
    y
        The expected outcome there (for "local" minus the score); nan where there are next to no
        scores.
    density
        The density of scores at x; for "isotonic" the fraction of the weight at x.
    low, high
        The band; nan where y is, and where none was asked for.
    bandwidth
        The scale of smoothing; nan for methods without one. A cross-validated one is that for
        evenly spread scores: smaller where they are dense, larger where they are sparse.
    area
        The integral of abs(y - x) times the density that is smoothed alike; for "binned",
        "isotonic" and "loess" the weighted mean of abs(y - x) over the rows.
    method
        "smooth", "density", "binned", "isotonic", "loess" or "local".
    band
        "confidence", where the population's curve may lie; "consistency", where the curve would
        lie if predictions were calibrated; or None.
    level
        Confidence level of the band; nan without one.
    simultaneous
        Whether the band holds for the whole curve, or at each point by itself.
    of_residuals
        Whether residuals were smoothed, and the diagonal added back.
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
    of_residuals: bool = False

    def thinned(self, n_points: int = 2048) -> Curve:
        """Return an isotonic curve with at most about `n_points` points, the ends of steps kept.

        The weight at scores that are left out goes to the next one that is kept.
        """
        n = len(self.x)
        if n <= n_points:
            return self
        jumps = np.flatnonzero(np.diff(self.y))
        spread = np.arange(0, n, -(-2 * n // n_points))
        kept = np.unique(np.concatenate((spread, jumps, jumps + 1, [n - 1])))
        weight = np.diff(np.cumsum(self.density)[kept], prepend=0.0)
        names = ("x", "y", "low", "high")
        return replace(self, density=weight, **{name: getattr(self, name)[kept] for name in names})

    def _printed(self) -> list[str]:
        scale = "" if np.isnan(self.bandwidth) else f", bandwidth={self.bandwidth:.4g}"
        band = "" if self.band is None else f", {self.level:.4g} {self.band} band"
        size = f"{len(self.x)} points{scale}, area={self.area:.4g}"
        return [f"Curve(method={self.method!r}, {size}{band})"]
