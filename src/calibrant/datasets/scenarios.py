"""Simulated forecasts with a known truth: a score distribution and a calibration function.

Population values are norms of one signed measure, nu(dp) = (P(y = 1 | p) - p) F(dp), with F the
score distribution. N(x) = nu([0, x)) is monotone between sign changes of P(y = 1 | p) - p, so its
range, maximum modulus and total variation need N at finitely many points.

Integrals are sums over a quadrature rule: panels end at every thousandth, at the break points asked
for and, for the logit-normal, at even steps of the logit; each has eight Gauss-Legendre points. An
integrand that is smooth on each panel is integrated to a few units of 1e-15. For the named
scenarios the values agree with closed forms and independent quadrature to 1e-12, and smECE, which
is that of the points weighted by their masses, to 1e-11; a calibration function with a kink or a
jump inside a panel loses accuracy, up to 1e-8 and 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from calibrant._base import FloatArray
from calibrant.data.rows import Sample
from calibrant.data.validation import as_bins, as_count, check_choice, read_generator
from calibrant.datasets.bundled import Dataset
from calibrant.errors import CalibrantError
from calibrant.measures.registry import measures

# Eight gigabytes of probabilities.
_MAX_ROWS = 1_000_000_000
_THOUSANDTHS = np.arange(1001) / 1000
_NODES_PER_PANEL = 8
# A normal distribution has less than 1e-22 of its mass beyond this many standard deviations.
_NORMAL_REACH = 10


# Score distributions.


class Scores(Protocol):
    """A distribution of predictions on [0, 1]."""

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` predictions."""

    def quadrature(self, breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return ascending points and their masses, with panels ending at `breaks`."""


@dataclass(frozen=True)
class BetaScores(Scores):
    """p ~ Beta(a, b), with whole a and b: a polynomial density, so exact quadrature."""

    a: int
    b: int

    def __post_init__(self) -> None:
        as_count(self.a, "a")
        as_count(self.b, "b")

    def __str__(self) -> str:
        return f"Beta({self.a}, {self.b})"

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.beta(self.a, self.b, n)

    def quadrature(self, breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        points, widths = _gauss_legendre(_panel_ends(breaks))
        scale = self.a * math.comb(self.a + self.b - 1, self.a)
        density = scale * points ** (self.a - 1) * (1 - points) ** (self.b - 1)
        return points, density * widths


@dataclass(frozen=True)
class LogitNormalScores(Scores):
    """logit p ~ N(mean, sd^2): for a large mean much of the mass lies very close to 1."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 < self.sd < math.inf):
            raise CalibrantError(
                "must be finite, and {sd} positive",
                argument="mean",
                value=self.mean,
                found="{value} and {deviation}",
                deviation=self.sd,
            )

    def __str__(self) -> str:
        return f"sigmoid(N({self.mean:g}, {self.sd:g}^2))"

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        from scipy.special import expit

        return np.asarray(expit(rng.normal(self.mean, self.sd, n)))

    def quadrature(self, breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        from scipy.special import expit

        inner = _panel_ends(breaks)[1:-1]
        reach = _NORMAL_REACH * self.sd
        steps = np.linspace(self.mean - reach, self.mean + reach, 4 * _NORMAL_REACH + 1)
        logits = np.log(inner) - np.log1p(-inner)
        ends = np.union1d(steps, logits[np.abs(logits - self.mean) < reach])
        u, widths = _gauss_legendre(ends)
        density = np.exp(-0.5 * ((u - self.mean) / self.sd) ** 2) / (self.sd * math.sqrt(math.tau))
        return np.asarray(expit(u)), density * widths


@dataclass(frozen=True)
class RoundedScores(Scores):
    """Continuous scores rounded to a multiple of 1 / levels: ties, and scores on bin edges."""

    exact: Scores
    levels: int

    def __post_init__(self) -> None:
        as_count(self.levels, "levels")

    def __str__(self) -> str:
        return f"{self.exact} rounded to 1/{self.levels}"

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return np.rint(self.exact.sample(n, rng) * self.levels) / self.levels

    def quadrature(self, _breaks: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return the levels and their probabilities; a discrete distribution needs no breaks."""
        halfway = (np.arange(self.levels) + 0.5) / self.levels
        points, masses = self.exact.quadrature(halfway)
        # Summed level by level: differences of running sums could be negative in a thin tail.
        level = np.searchsorted(halfway, points)
        sums = np.bincount(level, weights=masses, minlength=self.levels + 1).astype(np.float64)
        return np.arange(self.levels + 1) / self.levels, sums


def _panel_ends(breaks: FloatArray) -> FloatArray:
    return np.union1d(_THOUSANDTHS, breaks[(breaks > 0) & (breaks < 1)])


def _gauss_legendre(ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return points and Lebesgue weights of the composite Gauss-Legendre rule over the panels."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES_PER_PANEL)
    half = np.diff(ends)[:, None] / 2
    middle = (ends[:-1] + ends[1:])[:, None] / 2
    return (middle + half * nodes).ravel(), (half * weights).ravel()


# Calibration functions.


@dataclass(frozen=True)
class Calibration:
    """A function p -> P(y = 1 | p), applied element by element; ``str`` is its formula."""

    formula: str
    function: Callable[..., FloatArray]
    parameters: tuple[float, ...] = ()

    def __str__(self) -> str:
        return self.formula.format(*self.parameters)

    def __call__(self, p: FloatArray, /) -> FloatArray:
        """Return P(y = 1 | p)."""
        return self.function(p, *self.parameters)


def _scaled_logit(p: FloatArray, slope: float) -> FloatArray:
    # Without logarithms 0 and 1 are no special cases.
    odds, against = p**slope, (1 - p) ** slope
    return odds / (odds + against)


def _lowered(p: FloatArray, by: float) -> FloatArray:
    return np.clip(p - by, 0, 1)


def _line(p: FloatArray, slope: float, intercept: float) -> FloatArray:
    return slope * p + intercept


def _wave(p: FloatArray, height: float, halves: float) -> FloatArray:
    return p + height * np.sin(halves * np.pi * p)


def _logit_scaling(slope: float) -> Calibration:
    """Return what is overconfident for slope < 1, underconfident for slope > 1."""
    return Calibration("sigmoid({:g} logit p)", _scaled_logit, (slope,))


def _sinusoid(height: float, cycles: int) -> Calibration:
    """Return errors of both signs that cancel in wide bins."""
    return Calibration("p + {:g} sin({} pi p)", _wave, (height, 2 * cycles))


# Scenarios.


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
    calibration: Callable[[FloatArray], FloatArray]

    @property
    def formula(self) -> str:
        """The score distribution and the calibration function, in one line."""
        return f"p ~ {self.scores}, P(y = 1 | p) = {self.calibration}"

    def outcome_probability(self, p: FloatArray) -> FloatArray:
        """Return P(y = 1 | p), refusing a calibration function that leaves [0, 1]."""
        probability = self.calibration(p)
        outside = np.flatnonzero(~((probability >= 0) & (probability <= 1)))
        if outside.size:
            first = outside[0]
            raise CalibrantError(
                "must give values in [0, 1]",
                argument="calibration",
                value=probability[first],
                found="{y:g} at p = {p:g} in scenario {name!r}",
                y=probability[first],
                p=p[first],
                name=self.name,
            )
        return probability

    def quadrature(self, breaks: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return points p and their probability masses.

        With y_true = ``outcome_probability(points)``, y_prob = points and sample_weight = masses,
        a measure of soft labels and weights gives its population value; `breaks` are edges of bins.
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
        """Return the limit of ECE with `n_bins` uniform bins, closed on the left, as n grows.

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
        """Return the population smECE at a bandwidth, or by default its fixed point."""
        points, masses = self.quadrature()
        error = measures()["smooth_ece"].read({"bandwidth": bandwidth})
        return error(Sample(self.outcome_probability(points), points).weighted(masses))

    def _residual(self, p: FloatArray) -> FloatArray:
        return self.outcome_probability(p) - p

    def _running_integral(self, at: FloatArray) -> FloatArray:
        """Return N(x) = nu([0, x)) at each x; above 1 it includes the scores at 1."""
        points, masses = self.quadrature(at)
        sums = np.concatenate(([0.0], np.cumsum(masses * self._residual(points))))
        return sums[np.searchsorted(points, at)]

    def _turns(self) -> FloatArray:
        """Return the ends of the intervals on which N is monotone."""
        points, _ = self.quadrature()
        return np.concatenate(([0.0], _sign_changes(self._residual, points), [np.inf]))


def _sign_changes(function: Callable[[FloatArray], FloatArray], grid: FloatArray) -> FloatArray:
    """Return where the function changes sign, if it does so at most once between grid points."""
    values = function(grid)
    # The sign of rounding errors is ignored.
    clear = np.abs(values) > 1e-13 * np.abs(values).max()
    grid, values = grid[clear], values[clear]
    change = np.flatnonzero(np.sign(values[:-1]) != np.sign(values[1:]))
    low, high, sign = grid[change], grid[change + 1], np.sign(values[change])
    # Fifty bisections of a bracket inside [0, 1] leave rounding errors.
    for _ in range(50):
        middle = (low + high) / 2
        before = np.sign(function(middle)) == sign
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return high


_BELL = BetaScores(2, 2)
_OVERCONFIDENT = _logit_scaling(0.6)

_ALL = (
    Scenario("perfect", _BELL, Calibration("p", np.positive)),
    Scenario("slightly_overconfident", _BELL, _logit_scaling(0.9)),
    Scenario("overconfident", _BELL, _OVERCONFIDENT),
    Scenario("underconfident", _BELL, _logit_scaling(1.5)),
    Scenario("sinusoidal", _BELL, _sinusoid(0.1, 2)),
    Scenario("shifted", _BELL, Calibration("clip(p - {:g}, 0, 1)", _lowered, (0.03,))),
    Scenario("tenths", RoundedScores(_BELL, 10), _OVERCONFIDENT),
    Scenario("rare", BetaScores(1, 99), Calibration("{:g} p + {:g}", _line, (0.5, 0.005))),
    Scenario("softmax", LogitNormalScores(2, 2), _OVERCONFIDENT),
    Scenario("skewed", BetaScores(1, 1), _sinusoid(0.1, 4)),
)
#: The named scenarios; see `simulate` for the table.
SCENARIOS: Mapping[str, Scenario] = MappingProxyType({one.name: one for one in _ALL})


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Dataset):
    """A simulated sample and its population.

    Attributes
    ----------
    truth : Scenario
        The score distribution, the calibration function, and the population values of the
        calibration errors: ``truth.true_ece()``, ``truth.binned_ece(15)``,
        ``truth.ecce_mad()``, ``truth.ecce_r()``, ``truth.smooth_ece()``.
    """

    truth: Scenario


def simulate(scenario: str | Scenario, n: int, *, rng: int | np.random.Generator = 0) -> Simulation:
    """Draw a sample whose population calibration error is known.

    Predictions are independent draws from the scenario's score distribution, outcomes independent
    Bernoulli draws with the probabilities of its calibration function. The named scenarios:

    ====================== ============================= =========================== ======== ======
    name                   scores p                      P(y = 1 | p)                true ECE smECE
    ====================== ============================= =========================== ======== ======
    perfect                Beta(2, 2)                    p                           0        0
    slightly_overconfident Beta(2, 2)                    sigmoid(0.9 logit p)        0.0145   0.0144
    overconfident          Beta(2, 2)                    sigmoid(0.6 logit p)        0.0638   0.0616
    underconfident         Beta(2, 2)                    sigmoid(1.5 logit p)        0.0594   0.0571
    sinusoidal             Beta(2, 2)                    p + 0.1 sin(4 pi p)         0.0645   0.0530
    shifted                Beta(2, 2)                    clip(p - 0.03, 0, 1)        0.0300   0.0300
    tenths                 Beta(2, 2) rounded to 1/10    sigmoid(0.6 logit p)        0.0619   0.0608
    rare                   Beta(1, 99)                   0.5 p + 0.005               0.0037   0.0034
    softmax                sigmoid(N(2, 2^2))            sigmoid(0.6 logit p)        0.0770   0.0759
    skewed                 Beta(1, 1), that is uniform   p + 0.1 sin(8 pi p)         0.0637   0.0408
    ====================== ============================= =========================== ======== ======

    In "rare" the base rate is exactly 1%. "skewed" is the synthetic example of Błasiok and
    Nakkiran (2023, Figure 2d), there with n = 1000.

    Parameters
    ----------
    scenario : str or Scenario
        A name from the table (the keys of `SCENARIOS`), or a scenario of your own.
    n : int
        The number of rows.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.

    Returns
    -------
    Simulation
        The sample, and the population as `truth`.

    See Also
    --------
    Scenario : A score distribution, a calibration function and population values.
    load_rain, load_flares, load_imagenet : Real forecasts.

    Examples
    --------
    >>> sample = simulate("overconfident", 1000)
    >>> sample
    Simulation(name='overconfident', n=1000)
    >>> round(sample.truth.true_ece(), 4)
    0.0638

    Scenarios are values: change a part to make another, here calibrated scores with ties.

    >>> from dataclasses import replace
    >>> tied = replace(SCENARIOS["tenths"], calibration=SCENARIOS["perfect"].calibration)
    >>> simulate(tied, 1000).truth.true_ece()
    0.0
    """
    if not isinstance(scenario, Scenario):
        check_choice(scenario, "scenario", SCENARIOS)
        scenario = SCENARIOS[scenario]
    n = as_count(n, "n", maximum=_MAX_ROWS)
    generator = read_generator(rng)
    y_prob = scenario.scores.sample(n, generator)
    y_true = generator.random(n) < scenario.outcome_probability(y_prob)
    return Simulation(
        y_true=y_true.astype(np.uint8),
        y_prob=y_prob,
        name=scenario.name,
        source=f"simulated: {scenario.formula}",
        truth=scenario,
    )
