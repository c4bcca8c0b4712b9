"""The verdict of an assessment, in words.

Everything depends on one test, made once. Only where it detects miscalibration does the verdict say
where and in which direction, so that calibrated predictions are flagged in any way no more often
than the test errs: in 5% of cases, at a level of 95%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant._base import FloatArray, Result
from calibrant.data.problem import Pooled, Problem
from calibrant.formatting import percent, plain_p_value
from calibrant.inference.cumulative_tests import TestResult
from calibrant.inference.estimate import Estimate
from calibrant.measures.cumulative import CumulativeDifferences
from calibrant.numerics.probability import brownian_range

# The power of `smallest_detectable` and `n_needed`, and its normal quantile.
_POWER, _POWER_QUANTILE = 0.8, 0.8416212335729143
# With fewer expected events cumulative sums are far from Brownian motion, and events are counted;
# with more of them the count requires no more than Brownian motion does.
_FEW_EVENTS = 100
# With fewer than 100 expected events, this many are rarer than any level requires.
_MAX_EVENTS = 1000
_MAX_ROWS = 1e12


@dataclass(frozen=True, repr=False)
class Interval(Result):
    """A number with its confidence interval."""

    value: float
    low: float
    high: float
    level: float

    def excludes(self, other: float) -> bool:
        """Return whether a number lies outside; an unknown interval excludes nothing."""
        return other < self.low or other > self.high

    def _printed(self) -> list[str]:
        text = self._field_texts()
        interval = f"{percent(self.level)} interval {text['low']} to {text['high']}"
        return [f"{text['value']} ({interval})"]


@dataclass(frozen=True, repr=False)
class Stretch(Result):
    """An interval of scores and the mean deviation over it.

    Attributes
    ----------
    low, high
        The lowest and the highest score in it.
    share
        Its fraction of the weight.
    gap
        The mean of y - p over it.
    """

    low: float
    high: float
    share: float
    gap: float


@dataclass(frozen=True, eq=False)
class Summary:
    """Means of outcomes and predictions, their difference, and the slope of outcomes on scores.

    All from rows pooled by score, which rows and sketches both have. The slope is 1 + that of
    residuals on scores by least squares; nan where there is one score only.
    """

    prevalence: float
    mean_prediction: float
    bias: Interval
    slope: Interval

    @classmethod
    def of(cls, problem: Problem, level: float) -> Summary:
        """Summarise the rows of a problem."""
        from scipy.special import ndtri

        z, pooled = float(ndtri((1 + level) / 2)), problem.pooled
        if problem.is_soft:
            z *= _soft_noise_ratio(problem)
        total = float(pooled.weight.sum())
        mean = float(pooled.weight @ pooled.score) / total
        bias = float(pooled.residual.sum()) / total
        bias_error = residual_noise(pooled, np.ones_like(pooled.score)) / total
        away = pooled.score - mean
        spread = float(pooled.weight @ (away * away))
        with np.errstate(invalid="ignore", divide="ignore"):
            tilt = np.divide(pooled.residual @ away, spread)
            tilt_error = np.divide(residual_noise(pooled, away), spread)
        return cls(
            prevalence=float(pooled.true.sum()) / total,
            mean_prediction=mean,
            bias=_around(bias, z * bias_error, level),
            slope=_around(1 + float(tilt), z * float(tilt_error), level),
        )


def residual_noise(pooled: Pooled, factor: FloatArray) -> float:
    """Return the standard deviation of the sum of f w (y - p), f being a factor at each score.

    It is the root of the sum of (f w (y - p))^2, as if outcomes were 0 or 1: exact for rows of
    weight 1; otherwise both outcomes at a score are given its mean weight. As residuals say little
    where one outcome is rare, it is never less than under perfect calibration.
    """
    p, true = pooled.score, pooled.true
    mean_weight = pooled.weight_squared / pooled.weight
    seen = mean_weight * (true * (1 - p) ** 2 + (pooled.weight - true) * p * p)
    calibrated = pooled.weight_squared * p * (1 - p)
    squares = factor * factor
    return float(np.sqrt(max(seen @ squares, calibrated @ squares)))


def _soft_noise_ratio(problem: Problem) -> float:
    """Return the noise of soft outcomes over that of 0/1 outcomes, assumed equal at all scores."""
    pooled = problem.pooled
    mean_weight = float(pooled.weight_squared.sum()) / problem.weight
    binary = residual_noise(pooled, np.ones_like(pooled.score))
    if binary == 0:
        return 1.0
    return min(math.sqrt(problem.squared_error() * mean_weight) / binary, 1.0)


def main_stretch(differences: CumulativeDifferences) -> Stretch:
    """Return the scores between the lowest and the highest cumulative difference.

    Over these outcomes deviate most in total: by ECCE-R.
    """
    deviation, fraction = differences.deviation, differences.fraction
    lowest, highest = int(deviation.argmin()), int(deviation.argmax())
    first, last = sorted((lowest, highest))
    if first == last:
        score = float(differences.score[0])
        return Stretch(score, score, 0.0, 0.0)
    share = float(fraction[last] - fraction[first])
    return Stretch(
        low=float(differences.score[first]),
        high=float(differences.score[last - 1]),
        share=share,
        gap=float(deviation[last] - deviation[first]) / share,
    )


def _around(value: float, reach: float, level: float) -> Interval:
    return Interval(value, value - reach, value + reach, level)


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """The findings of an assessment in plain words.

    Attributes
    ----------
    detected
        Whether miscalibration was detected: by the cumulative test; by the interval of ecce_r for
        soft labels and for predictions of 0 and 1 alone, which have no test; or because a
        prediction of 0 came true or one of 1 did not.
    direction
        "over-confident", "under-confident", "too high", "too low", "mixed", or "none detected".
        Binary predictions are over-confident where outcomes rise more slowly than predictions;
        confidences are where they are too high on average.
    stretch
        The interval of scores over which outcomes deviate most in total.
    smallest_detectable
        The constant error that the test detects with power 0.8 in samples such as this; nan where
        there is no test.
    n_needed
        The number of such rows with which a deviation as large as the bias-corrected one is
        detected with power 0.8; None where that is 0 or more than 10^12, or there is no test.
    text
        All of it in a few sentences.
    """

    detected: bool
    direction: str
    stretch: Stretch
    smallest_detectable: float
    n_needed: int | None
    text: str

    def __str__(self) -> str:
        return self.text

    def _printed(self) -> list[str]:
        return [f"Verdict({self.text!r})"]


@dataclass(frozen=True)
class Findings:
    """All that a verdict is made from; `rows` is the effective number of rows, W^2 / sum w^2."""

    smooth: Estimate
    deviation: Estimate
    test: TestResult | None
    summary: Summary
    stretch: Stretch
    level: float
    n: int
    rows: float
    is_confidence: bool
    is_refuted: bool

    def verdict(self) -> Verdict:
        """Return the verdict."""
        direction = self._direction if self._is_significant else "none detected"
        parts = [self._detection_text(), self._size_text()]
        if self._is_significant:
            parts += [self._place_text(), self._direction_text(direction)]
        else:
            parts += self._power_text()
        return Verdict(
            detected=self.is_refuted or self._is_significant,
            direction=direction,
            stretch=self.stretch,
            smallest_detectable=self.smallest_detectable,
            n_needed=self.n_needed,
            text=" ".join(parts),
        )

    @property
    def smallest_detectable(self) -> float:
        """The constant error that is detected with power 0.8."""
        if self.test is None:
            return math.nan
        return max(self._drift * self.test.sigma, self._detectable_by_count(self.test.sigma))

    @property
    def n_needed(self) -> int | None:
        """The number of rows with which the observed deviation is detected with power 0.8."""
        size = self.deviation.bias_corrected
        if self.test is None or size <= 0:
            return None
        ratio = self._drift * self.test.sigma / size
        needed = self.n * ratio * ratio
        return math.ceil(needed) if needed < _MAX_ROWS else None

    @cached_property
    def _drift(self) -> float:
        """The drift, in sigma, that is detected with power 0.8.

        Brownian motion that drifts m sigma has a range of about m + 1/m.
        """
        expected = float(brownian_range.ppf(self.level)) + _POWER_QUANTILE
        return (expected + math.sqrt(max(expected * expected - 4, 0.0))) / 2

    def _detectable_by_count(self, sigma: float) -> float:
        """Return the constant error that makes enough of few events; 0 where they are many.

        As if all rows had one score p with p(1 - p) their mean variance: the critical number of
        events in n rows, of a one-sided test at half the size, is reached with power 0.8. It is 1
        where no number is critical.
        """
        from scipy.special import betainc, betaincinv

        n, variance = self.rows, self.rows * sigma * sigma
        if n * variance >= _FEW_EVENTS:
            return 0.0
        p = 2 * variance / (1 + math.sqrt(max(1 - 4 * variance, 0.0)))
        # The probability of k events or more in n rows is betainc(k, n - k + 1, p).
        for k in range(1, min(math.floor(n), _MAX_EVENTS) + 1):
            if betainc(k, n - k + 1, p) <= (1 - self.level) / 2:
                return float(betaincinv(k, n - k + 1, _POWER)) - p
        return 1.0

    @property
    def _is_significant(self) -> bool:
        """Whether the deviation is statistically significant."""
        if self.test is None:
            return self.deviation.low > 0
        return self.test.p_value <= 1 - self.level

    @property
    def _direction(self) -> str:
        bias, slope = self.summary.bias, self.summary.slope
        if self.is_confidence and bias.excludes(0):
            return "over-confident" if bias.value < 0 else "under-confident"
        if not self.is_confidence and self._outcomes_differ and slope.excludes(1):
            return "over-confident" if slope.value < 1 else "under-confident"
        if bias.excludes(0):
            return "too high" if bias.value < 0 else "too low"
        return "mixed"

    @property
    def _outcomes_differ(self) -> bool:
        """Whether outcomes could rise or fall with predictions at all."""
        return 0 < self.summary.prevalence < 1

    def _detection_text(self) -> str:
        found = "Miscalibration detected" if self._is_significant else "No miscalibration detected"
        if self.test is None:
            reason = f"the interval of ecce_r begins {'above' if self._is_significant else 'at'} 0"
        else:
            sign, number = plain_p_value(self.test.p_value, is_bound=self.test.is_least)
            reason = f"P {sign} {number}"
        if self.is_refuted and not self._is_significant:
            found = "Not calibrated, since a prediction of 0 came true or one of 1 did not"
            reason = f"beyond that no miscalibration is detected: {reason}"
        return f"{found} ({reason})."

    def _size_text(self) -> str:
        s = self.smooth
        noise = ", most of it noise" if s.value > s.high else ""
        return (
            f"The smooth calibration error is {s.value:.3g}{noise}, "
            f"{100 * s.level:g}% interval {s.low:.3g} to {s.high:.3g}."
        )

    def _place_text(self) -> str:
        s = self.stretch
        if s.low == s.high:
            span = f"At the score {s.low:.3g}"
        else:
            span = f"Between the scores {s.low:.3g} and {s.high:.3g}"
        side = "above" if s.gap > 0 else "below"
        return (
            f"{span}, {_percent(s.share)} of the weight, outcomes are on average {abs(s.gap):.2g} "
            f"{side} what was predicted."
        )

    def _direction_text(self, direction: str) -> str:
        bias = self.summary.bias
        if direction in ("over-confident", "under-confident"):
            return f"Predictions are {direction}: {self._confidence_text()}."
        if direction in ("too high", "too low"):
            low, high = sorted((abs(bias.low), abs(bias.high)))
            size = f"{abs(bias.value):.2g} on average ({low:.2g} to {high:.2g})"
            return f"Predictions are {direction} by {size}."
        return "Overall they lean neither way: see the curve."

    def _confidence_text(self) -> str:
        bias, slope = self.summary.bias, self.summary.slope
        if self.is_confidence:
            more = "exceeds" if bias.value < 0 else "falls short of"
            return f"confidence {more} accuracy by {abs(bias.value):.2g} on average"
        if slope.high < 0:
            return (
                "outcomes fall as predictions rise; is one of them the wrong way round? "
                f"(slope {slope.value:.2g}, {slope.low:.2g} to {slope.high:.2g})"
            )
        return (
            f"outcomes rise {slope.value:.2g} times as fast as predictions "
            f"({slope.low:.2g} to {slope.high:.2g})"
        )

    def _power_text(self) -> list[str]:
        if self.test is None:
            return []
        if self.smallest_detectable >= 1:
            return ["There are too few rows to detect anything."]
        error = f"an error of {self.smallest_detectable:.2g} everywhere"
        parts = [f"With {self.n} rows such as these, {error} would be found in 4 of 5 samples."]
        if self.n_needed is not None and self.n_needed > self.n:
            parts.append(
                f"If the deviation is as large as it looks, about {_round_up(self.n_needed)} rows "
                "would show it."
            )
        return parts


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f}%" if fraction >= 0.01 else f"{100 * fraction:.2g}%"


def _round_up(n: int) -> str:
    """Return a number of rows rounded up to two significant digits."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return str(-(-n // unit) * unit)
