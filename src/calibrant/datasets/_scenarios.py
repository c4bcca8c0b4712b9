"""Scenarios: a score distribution and a calibration function, hence an exactly known truth.

Every population value below is a norm of one signed measure, nu(dp) = (P(y = 1 | p) - p) F(dp),
with F the score distribution. Its running integral N(x) = nu([0, x)) is piecewise monotone, with
turns only where P(y = 1 | p) - p changes sign, so its range, its largest modulus and its total
variation need N at finitely many points. For the named scenarios the values agree with closed
forms and independent quadrature to 1e-12. A calibration function with a kink or a jump loses no
accuracy if it lies at a thousandth, and some elsewhere: up to 1e-8 for a kink, 1e-5 for a jump.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from calibrant.checks import as_bins
from calibrant.datasets._calibrations import (
    Calibration,
    Identity,
    LogitScaling,
    Shift,
    Shrinkage,
    Wave,
)
from calibrant.datasets._dataset import FloatArray
from calibrant.datasets._scores import BetaScores, LogitNormalScores, RoundedScores, Scores
from calibrant.errors import CalibrantError

__all__ = ["SCENARIOS", "Scenario"]

# A fixed point so many times smaller than its upper bound is 0.
_MAX_HALVINGS = 100


@dataclass(frozen=True)
class Scenario:
    """A population of predictions and outcomes whose calibration error is known exactly.

    Attributes
    ----------
    name : str
        A short name.
    scores : Scores
        The distribution of the predictions p: something with `sample` and `quadrature`.
    calibration : callable
        The function p -> P(y = 1 | p), applied element by element to an array.

    Examples
    --------
    >>> from calibrant.datasets import SCENARIOS
    >>> SCENARIOS["overconfident"].formula
    'p ~ Beta(2, 2), P(y = 1 | p) = sigmoid(0.6 logit p)'
    >>> round(SCENARIOS["overconfident"].smooth_ece(), 4)
    0.0616
    """

    name: str
    scores: Scores
    calibration: Calibration

    @property
    def formula(self) -> str:
        """The two laws, in one line."""
        return f"p ~ {self.scores}, P(y = 1 | p) = {self.calibration}"

    def outcome_probability(self, p: FloatArray) -> FloatArray:
        """Return P(y = 1 | p), refusing a calibration function that leaves [0, 1]."""
        chance = self.calibration(p)
        outside = np.flatnonzero(~((chance >= 0) & (chance <= 1)))
        if outside.size:
            first = outside[0]
            raise CalibrantError(
                "must give values in [0, 1]",
                argument="calibration",
                value=chance[first],
                found="{y:g} at p = {p:g} in scenario {name!r}",
                y=chance[first],
                p=p[first],
                name=self.name,
            )
        return chance

    def quadrature(self, breaks: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return points p and the probability mass that each stands for.

        With y_true = ``outcome_probability(points)``, y_prob = points and sample_weight = masses,
        a measure that takes soft labels and weights gives its own population value. Pass the edges
        of its bins, if it has any, as `breaks`.
        """
        return self.scores.quadrature(np.array([]) if breaks is None else breaks)

    def base_rate(self) -> float:
        """Return P(y = 1)."""
        points, masses = self.quadrature()
        return float(masses @ self.outcome_probability(points))

    def true_ece(self) -> float:
        """Return E |P(y = 1 | p) - p|, the l1 calibration error that binned ECE estimates."""
        return float(np.abs(np.diff(self._running_integral(self._turns()))).sum())

    def binned_ece(self, n_bins: int = 15) -> float:
        """Return what ECE with `n_bins` uniform bins, closed on the left, tends to as n grows.

        It is at most `true_ece`, since errors of opposite sign cancel within a bin.
        """
        n_bins = as_bins(n_bins)
        edges = np.append(np.arange(n_bins) / n_bins, np.inf)
        return float(np.abs(np.diff(self._running_integral(edges))).sum())

    def ecce_mad(self) -> float:
        """Return max |N(x)|, the limit of ECCE-MAD."""
        return float(np.abs(self._running_integral(self._turns())).max())

    def ecce_r(self) -> float:
        """Return max N(x) - min N(x), the limit of ECCE-R."""
        return float(np.ptp(self._running_integral(self._turns())))

    def smooth_ece(self, bandwidth: float | None = None) -> float:
        """Return the population smECE at a bandwidth, or by default its fixed point.

        Time grows as 1 / bandwidth; a fixed point above 0.003 takes about a second.
        """
        points, masses = self.quadrature()
        signed = masses * self._residual(points)
        if bandwidth is None:
            return _fixed_point(lambda scale: _smoothed_l1(points, signed, scale), self.true_ece())
        if not 0 < bandwidth < math.inf:
            raise CalibrantError("must be a positive number", argument="bandwidth", value=bandwidth)
        return _smoothed_l1(points, signed, bandwidth)

    def _residual(self, p: FloatArray) -> FloatArray:
        return self.outcome_probability(p) - p

    def _running_integral(self, at: FloatArray) -> FloatArray:
        """Return N(x) = nu([0, x)) at each x; an x above 1 takes in the scores at 1 too."""
        points, masses = self.quadrature(at)
        sums = np.concatenate(([0.0], np.cumsum(masses * self._residual(points))))
        return sums[np.searchsorted(points, at)]

    def _turns(self) -> FloatArray:
        """Return where N starts, turns and ends."""
        points, _ = self.quadrature()
        return np.concatenate(([0.0], _sign_changes(self._residual, points), [np.inf]))


def _sign_changes(function: Callable[[FloatArray], FloatArray], grid: FloatArray) -> FloatArray:
    """Return where the function changes sign, if it does so at most once between grid points."""
    values = function(grid)
    # Where the function is nothing but rounding noise its sign means nothing, and matters to none.
    clear = np.abs(values) > 1e-13 * np.abs(values).max()
    grid, values = grid[clear], values[clear]
    change = np.flatnonzero(np.sign(values[:-1]) != np.sign(values[1:]))
    low: FloatArray = grid[change]
    high: FloatArray = grid[change + 1]
    sign = np.sign(values[change])
    # Fifty halvings take any bracket inside [0, 1] down to rounding.
    for _ in range(50):
        middle = (low + high) / 2
        before = np.sign(function(middle)) == sign
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return high


def _smoothed_l1(points: FloatArray, signed: FloatArray, scale: float) -> float:
    """Return the L1 norm of the point masses `signed`, smoothed by the reflected Gaussian.

    The reflected Gaussian is the heat kernel with insulated ends: it damps the k-th cosine by
    exp(-(pi k scale)^2 / 2). That leaves a short series, with an explicit antiderivative.
    """
    # Beyond 2.75 / scale the damping is below the rounding of the first term.
    k = np.arange(1, math.ceil(2.75 / scale) + 1)
    # One cosine at a time: all of them at once would fill the memory at small scales.
    cosines = np.array([signed @ np.cos(np.pi * j * points) for j in k])
    damped = 2 * cosines * np.exp(-((np.pi * k * scale) ** 2) / 2)
    mean = float(signed.sum())

    def density(t: FloatArray) -> FloatArray:
        series: FloatArray = np.cos(np.pi * np.outer(t, k)) @ damped
        return mean + series

    # The smoothed density hardly turns faster than the kernel does: eight steps a scale see it.
    grid = np.linspace(0, 1, math.ceil(8 / scale) + 1)
    ends = np.concatenate(([0.0], _sign_changes(density, grid), [1.0]))
    antiderivative = mean * ends + np.sin(np.pi * np.outer(ends, k)) @ (damped / (np.pi * k))
    return float(np.abs(np.diff(antiderivative)).sum())


def _fixed_point(norm_at: Callable[[float], float], upper: float) -> float:
    """Return the s with norm_at(s) = s, for a non-increasing norm that never exceeds `upper`."""
    # A residual of one sign is not lessened by smoothing: then the fixed point is the bound itself.
    if upper == 0 or norm_at(upper) >= upper:
        return upper
    from scipy.optimize import brentq

    lower = upper / 2
    for _ in range(_MAX_HALVINGS):
        if norm_at(lower) >= lower:
            break
        lower /= 2
    return float(brentq(lambda scale: norm_at(scale) - scale, lower, upper, xtol=1e-14))


_BELL = BetaScores(2, 2)
_OVERCONFIDENT = LogitScaling(0.6)

#: The named scenarios; see `simulate` for the table.
SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            Scenario("perfect", _BELL, Identity()),
            Scenario("slightly_overconfident", _BELL, LogitScaling(0.9)),
            Scenario("overconfident", _BELL, _OVERCONFIDENT),
            Scenario("underconfident", _BELL, LogitScaling(1.5)),
            Scenario("sinusoidal", _BELL, Wave(0.1, 2)),
            Scenario("shifted", _BELL, Shift(-0.03)),
            Scenario("tenths", RoundedScores(_BELL, 10), _OVERCONFIDENT),
            Scenario("rare", BetaScores(1, 99), Shrinkage(0.5, 0.01)),
            Scenario("softmax", LogitNormalScores(2, 2), _OVERCONFIDENT),
            Scenario("skewed", BetaScores(1, 1), Wave(0.1, 4)),
        )
    }
)
