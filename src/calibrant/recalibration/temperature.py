"""Temperature: every probability of a row to the same power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from calibrant.arrays import FloatArray
from calibrant.checks import as_positive
from calibrant.class_table import ClassTable
from calibrant.problem import Problem
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.maps import LogisticMap, ProbabilityMap

# Where the likeliest temperature is looked for. Outcomes that are all foreseen ask for 0, those
# that have nothing to do with predictions for infinity or less than nothing.
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0


@dataclass(frozen=True, eq=False)
class TemperatureMap(ProbabilityMap):
    """Every probability of a row to the power 1 / T, divided by their sum.

    Attributes
    ----------
    temperature
        T: above 1 it makes predictions less confident, below 1 more.

    Examples
    --------
    >>> import numpy as np
    >>> TemperatureMap(0.5)(np.array([[0.2, 0.4, 0.4]])).round(3).tolist()
    [[0.111, 0.444, 0.444]]
    """

    temperature: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", as_positive(self.temperature, "temperature"))
        super().__post_init__()

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return the map of rows of class probabilities."""
        # The largest of a row first becomes 1, so that no power vanishes with all the others.
        power = (p / p.max(axis=1, keepdims=True)) ** (1 / self.temperature)
        return np.asarray(power / power.sum(axis=1, keepdims=True))


class TemperatureCalibrator(Calibrator):
    """Mend probabilities by one temperature T for all classes: P_c^(1/T), normalised.

    With two classes this is sigmoid(logit(p) / T). What softmax gives from logits divided by T, it
    gives from probabilities.

    Notes
    -----
    The likeliest T between 0.01 and 100, or 1 where the outcomes do not tell. Probabilities of
    exactly 0 and 1 stay what they are, and a row whose outcome had probability 0 says nothing
    about T. The order of classes within a row stays; with two classes it never falls. From a
    sketch, rows are taken at the mean score of their cell. More than two classes are mended
    together, not each against the rest.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks" (2017).

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> TemperatureCalibrator().fit(y_prob, y_true).predict([0.1, 0.5, 0.9]).round(2)
    array([0.21, 0.5 , 0.79])
    """

    def _fit_problem(self, problem: Problem) -> LogisticMap:
        pooled = problem.pooled
        both = np.stack((1 - pooled.score, pooled.score), axis=1)
        outcome = np.stack((pooled.weight - pooled.true, pooled.true), axis=1)
        slope = 1 / likeliest_temperature([(both, np.maximum(outcome, 0.0))])
        return LogisticMap(slope, slope, 0.0)

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        blocks = [(prob, outcome * w[:, None]) for prob, outcome, w in table.blocks()]
        return (TemperatureMap(likeliest_temperature(blocks)),)


def likeliest_temperature(blocks: list[tuple[FloatArray, FloatArray]]) -> float:
    """Return the likeliest T from blocks of (probabilities, weight of each outcome)."""
    logs = [_informative(*block) for block in blocks]

    def slope(log_heat: float) -> float:
        """Return the derivative of the log score with respect to 1 / T, which grows with 1 / T."""
        return sum(_slope(log_p, weight, np.exp(-log_heat)) for log_p, weight in logs)

    low, high = np.log(LEAST_TEMPERATURE), np.log(MOST_TEMPERATURE)
    if slope(0.0) == 0:
        return 1.0
    if slope(low) <= 0:
        return LEAST_TEMPERATURE
    if slope(high) >= 0:
        return MOST_TEMPERATURE
    return float(np.exp(brentq(slope, low, high, xtol=1e-10)))


def _informative(p: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log probabilities of the rows whose outcome was not given probability 0."""
    told = ~np.any((p == 0) & (weight > 0), axis=1)
    with np.errstate(divide="ignore"):
        return np.log(p[told]), weight[told]


def _slope(log_p: FloatArray, weight: FloatArray, beta: float) -> float:
    """Return the sum over rows of W (E log p - log p[outcome]), E under the mended row."""
    known = np.where(np.isfinite(log_p), log_p, 0.0)
    share = np.exp(beta * (log_p - log_p.max(axis=1, keepdims=True)))
    expected = (share * known).sum(axis=1) / share.sum(axis=1)
    return float(np.sum(weight * (expected[:, None] - known)))
