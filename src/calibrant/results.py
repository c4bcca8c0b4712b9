"""What calibrant gives back: frozen dataclasses that print well and turn into dictionaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.arrays import FloatArray, IntArray
from calibrant.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

# P-values below this are all one to a reader; the smallest doubles stand for "smaller still".
_LEAST_P_VALUE = 1e-300


class Result:
    """What all results share: fields that do not change, arrays included."""

    def __post_init__(self) -> None:
        """Lock the arrays, so that a result stays what was measured."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                # A view, so that the array of whoever made the result is not locked with it.
                locked = value.view()
                locked.flags.writeable = False
                object.__setattr__(self, field.name, locked)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, arrays as lists and nan as None."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class BinTable(Result):
    """Predictions and outcomes bin by bin.

    Attributes
    ----------
    edges
        The edges of the bins, one more than there are bins.
    n
        Rows in each bin.
    weight
        Total weight of each bin.
    mean_pred, mean_true
        Weighted means of prediction and outcome; nan where a bin is empty.
    gap
        mean_true - mean_pred: positive where predictions are too low; nan where a bin is empty.
    """

    edges: FloatArray
    n: IntArray
    weight: FloatArray
    mean_pred: FloatArray
    mean_true: FloatArray
    gap: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a bin."""
        names = ("n", "weight", "mean_pred", "mean_true", "gap")
        columns = {"low": self.edges[:-1], "high": self.edges[1:]}
        return frame(columns | {name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        weighted = bool(np.any(self.weight != self.n))
        spans = [f"{low:.4g} - {high:.4g}" for low, high in pairwise(self.edges)]
        width = max(15, *map(len, spans))
        heading = f"{'bin':>{width}} {'n':>9} " + (f"{'weight':>9} " if weighted else "")
        lines = [heading + f"{'mean_pred':>9} {'mean_true':>9} {'gap':>8}"]
        for k, span in enumerate(spans):
            line = f"{span:>{width}} {self.n[k]:>9} "
            line += f"{self.weight[k]:>9.6g} " if weighted else ""
            means = f"{self.mean_pred[k]:9.4f} {self.mean_true[k]:9.4f} {self.gap[k]:+8.4f}"
            lines.append(line + (means if self.n[k] else "    empty"))
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Interval(Result):
    """A number and how far off it may be."""

    value: float
    low: float
    high: float
    level: float

    def excludes(self, other: float) -> bool:
        """Tell whether a number lies outside; an unknown interval excludes nothing."""
        return other < self.low or other > self.high

    def __repr__(self) -> str:
        return (
            f"{self.value:.4g} ({100 * self.level:g}% interval {self.low:.4g} to {self.high:.4g})"
        )


@dataclass(frozen=True)
class Stretch(Result):
    """A stretch of scores and the mean deviation over it.

    Attributes
    ----------
    low, high
        The least and the greatest score in it.
    share
        Its share of the weight.
    gap
        The mean of y - p over it.
    """

    low: float
    high: float
    share: float
    gap: float


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
    lower, upper
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
        lie if predictions were calibrated; "percentile", where curves of rows drawn again lie; or
        None.
    level
        How often the band should hold; nan without one.
    simultaneous
        Whether the band should hold for the whole curve, or at each point by itself.
    """

    x: FloatArray
    y: FloatArray
    density: FloatArray
    lower: FloatArray
    upper: FloatArray
    bandwidth: float
    area: float
    method: str
    band: str | None = None
    level: float = float("nan")
    simultaneous: bool = False

    @property
    def area_bound(self) -> float:
        """How far `area` can be from smECE at this bandwidth: sqrt(2/pi) s (Lemma 10)."""
        return float(np.sqrt(2 / np.pi) * self.bandwidth)

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
        names = ("x", "y", "lower", "upper")
        return replace(self, density=share, **{name: getattr(self, name)[kept] for name in names})

    def __repr__(self) -> str:
        scale = "" if np.isnan(self.bandwidth) else f", bandwidth={self.bandwidth:.4g}"
        band = "" if self.band is None else f", {self.level:.4g} {self.band} band"
        size = f"{len(self.x)} points{scale}, area={self.area:.4g}"
        return f"Curve(method={self.method!r}, {size}{band})"


@dataclass(frozen=True)
class ScoreDecomposition(Result):
    """A mean score split into what calibration costs, what discrimination gains, and the rest.

    score = miscalibration - discrimination + uncertainty, up to rounding.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzWitness(Result):
    """A function v that attains the weak calibration error, at every distinct score.

    Attributes
    ----------
    score
        The distinct scores, increasing.
    value
        v at each score: 1-Lipschitz and within [-1, 1].
    residual
        Sum of w (y - p) / W at each score.
    error
        The weak calibration error, the sum of value * residual.
    """

    score: FloatArray
    value: FloatArray
    residual: FloatArray
    error: float

    def __repr__(self) -> str:
        span = f"{len(self.score)} scores from {self.score[0]:.6g} to {self.score[-1]:.6g}"
        return f"LipschitzWitness(error={self.error:.6g}, {span})"


@dataclass(frozen=True, repr=False)
class DistanceBounds(Result):
    """Bounds on the distance to calibration of a sample."""

    lower: float
    upper: float

    def __repr__(self) -> str:
        return f"DistanceBounds({self.lower:.6g} <= distance <= {self.upper:.6g})"


def printed_p_value(value: float, *, is_least: bool = False) -> tuple[str, str]:
    """Return the sign and the number of a P-value in print, with two figures that count.

    The least that simulated samples can give is a bound, rounded up; what no reader and next to no
    double tells from 0 is less than 1e-300.

    Examples
    --------
    >>> printed_p_value(0.0312), printed_p_value(1 / 701, is_least=True), printed_p_value(2e-308)
    (('=', '0.031'), ('<=', '0.0015'), ('<', '1e-300'))
    """
    if value < _LEAST_P_VALUE:
        return "<", f"{_LEAST_P_VALUE:.0e}"
    if not is_least:
        return "=", f"{value:.2g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    # A share such as 1 / 1000 is not to be rounded up for the last bit of a double.
    return "<=", f"{math.ceil(value / unit - 1e-9) * unit:.2g}"


def frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns as a pandas table."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError("to_frame needs pandas: pip install pandas") from None
    return pd.DataFrame(dict(columns))


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and np.isnan(value) else value


@dataclass(frozen=True, repr=False)
class TestResult(Result):
    """A test of calibration: how far something strays from 0, and how surprising that is.

    Attributes
    ----------
    statistic
        How far, in units of probability.
    normalized
        The statistic in units of `sigma`.
    p_value
        Chance of a statistic at least as large under the null hypothesis; never 0.
    sigma
        The standard deviation by which the statistic is judged.
    n
        How many rows were tested.
    test
        What was tested, in a few words.
    method
        "asymptotic" or "monte_carlo": where the P-value comes from.
    n_resamples
        How many samples were simulated for it; 0 for an asymptotic one.
    """

    statistic: float
    normalized: float
    p_value: float
    sigma: float
    n: int
    test: str
    method: str
    n_resamples: int = 0

    # Its name makes pytest take it for a class of tests wherever it is imported.
    __test__ = False

    @property
    def is_least(self) -> bool:
        """Whether no simulated sample strayed as far: then the P-value is a bound, no more."""
        return self.n_resamples > 0 and self.p_value * (1 + self.n_resamples) < 1.5

    def __repr__(self) -> str:
        return (
            f"TestResult({self.test}: {self.statistic:.4g} = {self.normalized:.4g} sigma, "
            f"p {'<=' if self.is_least else '='} {self.p_value:.3g}, n = {self.n}, {self.method})"
        )


@dataclass(frozen=True, repr=False)
class SlopeTestResult(Result):
    """A logistic recalibration, logit P(y = 1) = intercept + slope logit(p), and its test.

    Attributes
    ----------
    intercept, slope
        The fitted coefficients, 0 and 1 for calibrated predictions; nan where the outcomes are
        separated and there is no fit.
    intercept_error, slope_error
        Their standard errors.
    statistic
        Rao's score statistic at intercept 0 and slope 1, which needs no fit.
    p_value
        Chance of a larger statistic under perfect calibration: chi-squared with 2 degrees of
        freedom, never 0.
    n
        How many rows were tested.
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    statistic: float
    p_value: float
    n: int

    def __repr__(self) -> str:
        return (
            f"SlopeTestResult(slope {self.slope:.4g} +- {self.slope_error:.2g}, "
            f"intercept {self.intercept:.4g} +- {self.intercept_error:.2g}, "
            f"p = {self.p_value:.3g}, n = {self.n})"
        )


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
