"""The verdict of an assessment: what is wrong, by how much, how certain that is, and what to do.

Detected is not the same as large. Whether there is any miscalibration is decided by one test;
whether it matters, by where the interval of the smooth calibration error lies: below a tolerance,
above it, or across. What is wrong, level, spread or shape, is named only where the test rejects,
so that calibrated predictions are called anything no more often than the test errs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from calibrant._base import FloatArray, Result
from calibrant.curves.reliability import Curve
from calibrant.curves.reliability_view import PointMasses
from calibrant.data import validation
from calibrant.formatting import decimals, percent
from calibrant.inference.estimate import Estimate
from calibrant.inference.level_spread_shape import Fault, Faults
from calibrant.measures.cumulative import CumulativeDifferences

Answer = Literal["within tolerance", "beyond tolerance", "cannot tell"]
Kind = Literal["binary", "confidence", "soft"]

# A second fault is in the heading if it explains at least this fraction of what the first does.
_ALSO = 0.25
# Scores are rounded to multiples of the first of these that has so many of them, each with at least
# this fraction of the rows of the largest, and half of all rows together.
_ROUND_SCORES, _MIN_ROUND_SCORES, _THIN = (0.05, 0.01, 0.005, 0.001), 5, 0.01
# Else they are given at these quantiles.
_QUANTILES = np.linspace(0.05, 0.95, 19)
# A tolerance above this fraction of the rarer outcome's frequency allows large relative errors.
_COARSE = 0.25
# No probability next to 0 or 1 is given more digits than one of this size, divided by 5.
_SMALLEST = 3e-5
_MAX_ROWS = 1e9
# The mean of outcomes that are all alike differs from 0 or 1 by less.
_ROUNDING = 1e-12

# The texts.
# Of each direction: what predictions are, alone or first, and after another fault.
_WORDS = {
    "too high": ("too high", "too high on average"),
    "too low": ("too low", "too low on average"),
    "over-confident": ("over-confident", "over-confident"),
    "under-confident": ("under-confident", "under-confident"),
    "mixed": ("wrong in places", "wrong in places"),
}
_LEVELS = ("too high", "too low")
_WITHIN = "Calibrated to within {tolerance}"
_NONE = "No miscalibration detected"
_REFUTED = "Predictions of 0 or 1 were contradicted by the outcome"
_HARD = "Predictions are all 0 or 1"
_REVERSED = "Outcomes fall as predictions rise"
_STATED: dict[Kind, str] = {
    "binary": "Where it says {stated}, it happens {observed} of the time.",
    "confidence": "Where it is {stated} confident, it is right {observed} of the time.",
    "soft": "Where it says {stated}, labels average {observed}.",
}
_MEANS: dict[Kind, str] = {
    "binary": "On average {predicted} was predicted and {observed} observed.",
    "confidence": "On average it is {predicted} confident and right {observed} of the time.",
    "soft": "Predictions average {predicted} and labels {observed}.",
}
_PLACE = "Most of the error is between the scores {low:.3g} and {high:.3g} ({rows} of the rows)."
_SIZE = (
    "Predictions are off by {points} percentage points on average (smooth calibration error "
    "{value}, {level} interval {low} to {high}){answer}."
)
_AT_MOST = (
    "Predictions are off by at most {points} percentage points on average (smooth calibration "
    "error {value}, {level} interval {low} to {high}){answer}."
)
_ANSWERS: dict[Answer, str] = {
    "within tolerance": ", within the tolerance of {tolerance}",
    "beyond tolerance": ", more than the tolerance of {tolerance}",
    "cannot tell": "; too uncertain to tell whether that is within the tolerance of {tolerance}",
}
_SIGNIFICANT = "The miscalibration is statistically significant ({reason})."
_SMALL = "The miscalibration is small but statistically significant ({reason})."
_INSIGNIFICANT = "The data are compatible with perfect calibration ({reason})."
_OTHERWISE = "All other predictions are compatible with perfect calibration ({reason})."
_REACHES_ZERO = (
    "The interval includes 0 all the same: it allows for errors of any shape, and the test has "
    "more power."
)
_EXCLUDES = "the interval of the cumulative error excludes 0"
_INCLUDES = "the interval of the cumulative error includes 0"
_POWER = "A shift of all predictions by {shift} would be detected with 80% probability."
_GIVE_PROBABILITIES = "Give probabilities, such as those of predict_proba."
_CHECK_ORDER = "Check whether predictions or outcomes are the wrong way round."
_NOTHING = "Nothing needs to be done."
_RARE = "The tolerance is large for so rare an outcome ({rare} of rows): set a smaller one."
_RECALIBRATE = "Recalibrate: that would lower the Brier score from {before} to about {after}."
_MORE_ROWS = "About {rows} are needed to tell whether the error is within the tolerance."
_ALIKE = "Check the outcomes: they are all alike, so that recalibration would predict certainty."
_SEPARATED = (
    "Check the outcomes: the predictions separate them perfectly, so that recalibration would "
    "predict certainty."
)
_FEW_ROWS = "Recalibration would not lower the Brier score with so few rows: collect more."


def read_tolerance(tolerance: object) -> float:
    """Return the largest acceptable error."""
    hint = "0.01 is one percentage point"
    return validation.as_positive(tolerance, "tolerance", maximum=1.0, hint=hint)


def answer_of(error: Estimate, tolerance: float) -> Answer:
    """Return whether the interval of an error is within a tolerance, beyond it, or across."""
    if error.high <= tolerance:
        return "within tolerance"
    return "beyond tolerance" if error.low > tolerance else "cannot tell"


@dataclass(frozen=True, repr=False)
class Interval(Result):
    """A number with its confidence interval."""

    value: float
    low: float
    high: float
    level: float

    def _printed(self) -> list[str]:
        text = self._field_texts()
        interval = f"{percent(self.level)} interval {text['low']} to {text['high']}"
        return [f"{text['value']} ({interval})"]


@dataclass(frozen=True, repr=False)
class ScoreRange(Result):
    """A range of scores and the mean deviation over it.

    Attributes
    ----------
    low, high
        The lowest and the highest score in it.
    fraction
        Its fraction of the weight.
    gap
        The mean of y - p over it.
    """

    low: float
    high: float
    fraction: float
    gap: float

    @classmethod
    def of(cls, differences: CumulativeDifferences) -> ScoreRange:
        """Return the scores between the lowest and the highest cumulative difference.

        Over these outcomes deviate most in total: by ECCE-R.
        """
        deviation, fraction = differences.deviation, differences.fraction
        first, last = sorted((int(deviation.argmin()), int(deviation.argmax())))
        if first == last:
            score = float(differences.score[0])
            return cls(score, score, 0.0, 0.0)
        covered = float(fraction[last] - fraction[first])
        return cls(
            low=float(differences.score[first]),
            high=float(differences.score[last - 1]),
            fraction=covered,
            gap=float(deviation[last] - deviation[first]) / covered,
        )


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """The findings of an assessment in plain words.

    Attributes
    ----------
    answer
        Whether the smooth calibration error is "within tolerance", "beyond tolerance", or one
        "cannot tell": by its interval.
    tolerance
        The tolerance.
    detected
        Whether miscalibration was detected: by the joint test; for predictions of 0 and 1 alone,
        which have no test, by the interval of ecce_r; or because a prediction of 0 came true or
        one of 1 did not.
    fault
        What is wrong most: "level", "spread" or "shape"; None where nothing was detected.
    direction
        "too high" or "too low" of level, "over-confident" or "under-confident" of spread, "mixed"
        of shape, or "none detected". Of the confidence in a predicted class the level is over- or
        under-confidence.
    p_value
        The P-value of the test; nan where there is none.
    score_range
        The range of scores over which outcomes deviate most in total.
    smallest_detectable
        The shift that the test detects with power 0.8; nan where there is no test.
    n_needed
        The number of such rows with which the interval would lie on one side of the tolerance;
        None where it does already, or more than 10^9 are needed.
    brier_gain
        By how much recalibration would lower the Brier score; 0 where it would not, nan where
        outcomes are all alike or separated by the scores.
    heading
        The verdict in a few words.
    text
        The verdict in a few sentences, the heading first.
    """

    answer: Answer
    tolerance: float
    detected: bool
    fault: str | None
    direction: str
    p_value: float
    score_range: ScoreRange
    smallest_detectable: float
    n_needed: int | None
    brier_gain: float
    heading: str
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def details(self) -> str:
        """The text without the heading."""
        return self.text.removeprefix(f"{self.heading}. ")

    def _printed(self) -> list[str]:
        return [f"Verdict({self.text!r})"]


@dataclass(frozen=True, eq=False)
class Findings:
    """All that a verdict is made from.

    `is_significant` is whether the test, or without one an interval, shows miscalibration.
    """

    smooth: Estimate
    is_significant: bool
    p_value: float
    faults: Faults
    score: FloatArray  # the distinct scores, and their weights
    weight: FloatArray
    curve: Curve
    masses: PointMasses
    score_range: ScoreRange
    smallest_detectable: float
    means: tuple[float, float]
    brier_score: float
    tolerance: float
    n: int
    n_clusters: int | None
    kind: Kind
    is_refuted: bool
    is_hard: bool

    def verdict(self) -> Verdict:
        """Return the verdict."""
        fault = self.named[0].name if self.named else "shape" if self.is_significant else None
        sentences = [f"{self.heading}.", *self._what(), self._size(), *self._certainty()]
        return Verdict(
            answer=self.answer,
            tolerance=self.tolerance,
            detected=self.is_refuted or self.is_significant,
            fault=fault,
            direction=self.directions[0] if self.is_significant else "none detected",
            p_value=self.p_value,
            score_range=self.score_range,
            smallest_detectable=self.smallest_detectable,
            n_needed=self.n_needed,
            brier_gain=self.brier_gain,
            heading=self.heading,
            text=" ".join([*sentences, *self._next_step()]),
        )

    @property
    def answer(self) -> Answer:
        """The answer of the interval to the question of the tolerance."""
        return answer_of(self.smooth, self.tolerance)

    @cached_property
    def named(self) -> list[Fault]:
        """The faults, the largest first; none where the test does not reject."""
        if not self.is_significant:
            return []
        return self.faults.significant(1 - self.smooth.level)

    @cached_property
    def directions(self) -> list[str]:
        """The directions of the faults, the largest first."""
        return [self._direction(fault) for fault in self.named] or ["mixed"]

    def _direction(self, fault: Fault) -> str:
        if fault.name == "level":
            names = ("over-confident", "under-confident") if self.is_confidence else _LEVELS
            return names[fault.value > 0]
        if fault.name == "spread":
            level = self.faults.level
            is_over = fault.value < 1
            # A spread that goes with the level of confidence is more of the same.
            if not self.is_confidence or (level in self.named and (level.value < 0) == is_over):
                return "over-confident" if is_over else "under-confident"
        return "mixed"

    @property
    def is_confidence(self) -> bool:
        """Whether predictions are the confidence in a predicted class."""
        return self.kind == "confidence"

    @property
    def heading(self) -> str:
        """The verdict in a few words."""
        if self.is_hard:
            return _HARD
        if self.answer == "within tolerance":
            return _WITHIN.format(tolerance=_points(self.tolerance))
        if not self.is_significant:
            return _REFUTED if self.is_refuted else _NONE
        if self._is_reversed:
            return _REVERSED
        first, *others = self.directions[: max(len(self._headed), 1)]
        heading = f"Predictions are {_WORDS[first][0]}"
        if others and others[0] != first:
            heading += f", and {_WORDS[others[0]][1]}"
        return heading

    @property
    def _headed(self) -> list[Fault]:
        """The faults in the heading: the largest, and the next if it is not much smaller."""
        return [one for one in self.named[:2] if one.deviance >= _ALSO * self.named[0].deviance]

    @property
    def n_needed(self) -> int | None:
        """The number of rows with which the interval would lie on one side of the tolerance.

        Its width is taken to decrease with the root of n, around 0 where nothing was detected.
        """
        if self.answer != "cannot tell":
            return None
        s = self.smooth
        reach, distance = s.high, self.tolerance
        if self.is_significant:
            reach, distance = (s.high - s.low) / 2, abs(s.bias_corrected - self.tolerance)
        needed = self.n * (reach / distance) ** 2 if distance > 0 else math.inf
        return math.ceil(needed) if needed <= _MAX_ROWS else None

    @property
    def brier_gain(self) -> float:
        """By how much recalibration would lower the Brier score."""
        if not self.is_significant:
            return 0.0
        return max(self.faults.brier_gain, 0.0)

    # The sentences.

    def _what(self) -> list[str]:
        if not self.is_significant:
            return []
        parts = [_STATED[self.kind].format(**_percents(*self._worst(), "stated"))]
        fault = self.named[0].name if self.named else "shape"
        where = self.score_range
        if fault == "level":
            parts.append(_MEANS[self.kind].format(**_percents(*self.means, "predicted")))
        elif fault == "shape" and 0 < where.fraction <= 0.5 and where.low < where.high:
            rows = f"{100 * where.fraction:.2g}%"
            parts.append(_PLACE.format(low=where.low, high=where.high, rows=rows))
        return parts

    def _worst(self) -> tuple[float, float]:
        """Return the round score at which most is lost, and the outcome to expect there.

        Where predictions are called too high or too low, they are so at this score.
        """
        score, outcome, weight = self._places()
        gap = outcome - score
        loss = weight * np.abs(gap)
        for fault in self._headed:
            if fault.name == "level":
                loss = np.where(gap * np.sign(fault.value) > 0, loss, 0.0)
        worst = int(loss.argmax())
        if self._is_alike:
            # So is the outcome to expect, which smoothing does not know.
            return float(score[worst]), float(round(self.means[1]))
        return float(score[worst]), float(outcome[worst])

    @property
    def _is_alike(self) -> bool:
        """Whether outcomes are all alike."""
        _, observed = self.means
        return min(observed, 1 - observed) < _ROUNDING

    def _places(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the scores to name, the outcome to expect and the weight there."""
        if self.masses.is_all:
            return self.masses.score, self.masses.outcome, self.masses.share
        known = np.isfinite(self.curve.y)
        x, y = self.curve.x[known], self.curve.y[known]
        for step in _ROUND_SCORES:
            multiples = np.rint(self.score / step)
            inside = (multiples > 0) & (multiples * step < 1)
            score, place = np.unique(multiples[inside], return_inverse=True)
            weight = np.bincount(place, self.weight[inside])
            enough = weight >= _THIN * weight.max(initial=0.0)
            is_most = 2 * weight.sum() >= self.weight.sum()
            if is_most and np.count_nonzero(enough) >= _MIN_ROUND_SCORES:
                score = score[enough] * step
                return score, np.interp(score, x, y), weight[enough]
        passed = np.cumsum(self.weight)
        score = self.score[np.searchsorted(passed, _QUANTILES * passed[-1])]
        return score, np.interp(score, x, y), np.ones_like(score)

    def _size(self) -> str:
        s = self.smooth
        digits = decimals(s.low, s.high, 3)
        value, low, high = (
            f"{one:.{digits}f}" if one else "0" for one in (s.bias_corrected, s.low, s.high)
        )
        text, shown = (_SIZE, s.bias_corrected) if self.is_significant else (_AT_MOST, s.high)
        return text.format(
            points=f"{100 * shown:.{digits - 2}f}",
            value=value,
            level=percent(s.level),
            low=low,
            high=high,
            answer=_ANSWERS[self.answer].format(tolerance=_points(self.tolerance)),
        )

    def _certainty(self) -> list[str]:
        if math.isnan(self.p_value):
            reason = _EXCLUDES if self.is_significant else _INCLUDES
        else:
            reason = "P < 0.001" if self.p_value < 0.001 else f"P = {self.p_value:.2g}"
        if self.is_significant:
            text = _SMALL if self.answer == "within tolerance" else _SIGNIFICANT
            parts = [text.format(reason=reason)]
            return [*parts, _REACHES_ZERO] if self.smooth.low == 0 else parts
        if self.is_hard:
            return []
        text = _OTHERWISE if self.is_refuted else _INSIGNIFICANT
        parts = [text.format(reason=reason)]
        if self.smallest_detectable < 1:
            parts.append(_POWER.format(shift=_points(self.smallest_detectable)))
        return parts

    def _next_step(self) -> list[str]:
        if self.is_hard:
            return [_GIVE_PROBABILITIES]
        if self._is_reversed:
            return [_CHECK_ORDER]
        if self.answer == "within tolerance":
            _, observed = self.means
            rarer = min(observed, 1 - observed)
            is_coarse = self.tolerance > _COARSE * rarer
            return [_RARE.format(rare=f"{100 * rarer:.2g}%") if is_coarse else _NOTHING]
        if math.isnan(self.brier_gain):
            return [_ALIKE if self._is_alike else _SEPARATED]
        if self.brier_gain > 0:
            digits = decimals(0.0, self.brier_gain, 3)
            before, after = self.brier_score, self.brier_score - self.brier_gain
            texts = {"before": f"{before:.{digits}f}", "after": f"{after:.{digits}f}"}
            return [_RECALIBRATE.format(**texts)]
        if self.n_needed is not None:
            rows = f"{_round_up(self.n_needed)} rows"
            if self.n_clusters is not None:
                clusters = math.ceil(self.n_clusters * self.n_needed / self.n)
                rows += f" in {_round_up(clusters)} clusters"
            return [_MORE_ROWS.format(rows=rows)]
        return [_FEW_ROWS] if self.is_significant else []

    @property
    def _is_reversed(self) -> bool:
        spread = self.faults.spread
        return self.is_significant and spread.value + 2 * spread.error < 0


def _points(size: float) -> str:
    """Return a difference of probabilities in percentage points."""
    text = f"{100 * size:.2g}"
    return f"{text} percentage point{'s' * (text != '1')}"


def _percents(predicted: float, observed: float, name: str) -> dict[str, str]:
    """Return two probabilities in percent, with digits enough to see their difference."""
    gap = max(abs(predicted - observed), 1e-6)
    return {name: _percent(predicted, gap), "observed": _percent(observed, gap)}


def _percent(probability: float, gap: float) -> str:
    """Return a probability in percent; next to 0 or 1 it is not rounded to that."""
    rest = min(probability, 1 - probability)
    if rest > 0:
        gap = min(gap, max(5 * rest, _SMALLEST))
    digits = max(math.ceil(-math.log10(gap / 0.03)), 0)
    shown = round(100 * probability, digits)
    if rest > 0 and shown in (0, 100):
        bound = 10.0**-digits
        return f"less than {bound:.{digits}f}%" if shown == 0 else f"over {100 - bound:.{digits}f}%"
    return f"{shown:.{digits}f}%"


def _round_up(n: int) -> str:
    """Return a number rounded up to two significant digits."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return f"{-(-n // unit) * unit:,}"
