"""What the numbers on a page mean, one line each, and how they are defined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calibrant.assessment.result import Assessment
from calibrant.assessment.verdict import Verdict
from calibrant.measures.registry import measures

__all__ = ["Meaning", "headline", "measure_meaning", "other_meanings"]


@dataclass(frozen=True)
class Meaning:
    """A number in words.

    Attributes
    ----------
    label
        What it is called.
    meaning
        What it tells, in one line.
    definition
        The formula, in one line.
    """

    label: str
    meaning: str
    definition: str


_OTHERS = {
    "bias": Meaning(
        "Mean deviation",
        "Mean outcome less mean prediction; negative where predictions are too high.",
        "Σ w (y − p) / W, with a normal interval.",
    ),
    "slope": Meaning(
        "Slope",
        "How fast outcomes rise with predictions; below 1 where predictions are too extreme.",
        "1 + the slope of y − p on p by weighted least squares, with a normal interval.",
    ),
    "p_value": Meaning(
        "P-value of calibration",
        "Chance of an ECCE-R this large if predictions were perfectly calibrated.",
        "The chance that ECCE-R would be at least as large with outcomes drawn from the "
        "predictions.",
    ),
    "prevalence": Meaning("Prevalence", "Mean outcome.", "Σ w y / W."),
    "mean_prediction": Meaning("Mean prediction", "Mean score.", "Σ w p / W."),
}

# What differs where all predictions are confidences in a predicted class, or some are.
_OF_CONFIDENCES = {
    "bias": Meaning(
        "Mean deviation",
        "Accuracy less mean confidence; negative where predictions are over-confident.",
        "Σ w (y − p) / W, with a normal interval.",
    ),
    "prevalence": Meaning(
        "Accuracy", "How often the predicted class is right.", "Σ w y / W, with y = 1 if right."
    ),
    "mean_prediction": Meaning(
        "Mean confidence", "Mean probability of the predicted class.", "Σ w p / W."
    ),
}
_OF_BOTH = {
    "prevalence": Meaning("Accuracy or prevalence", "Mean outcome.", "Σ w y / W."),
    "mean_prediction": Meaning("Mean confidence or prediction", "Mean score.", "Σ w p / W."),
}

_HEADLINES = {
    "over-confident": "Over-confident",
    "under-confident": "Under-confident",
    "too high": "Predictions are too high",
    "too low": "Predictions are too low",
    "mixed": "Miscalibrated, leaning neither way",
    "none detected": "No miscalibration detected",
}


def measure_meaning(name: str) -> Meaning:
    """Return a measure in words."""
    info = measures()[name]
    return Meaning(info.title, info.meaning, info.definition)


def other_meanings(assessments: Iterable[Assessment]) -> dict[str, Meaning]:
    """Return the numbers of assessments that are no calibration errors, in words."""
    kinds = [one.is_confidence for one in assessments]
    special = _OF_CONFIDENCES if all(kinds) else _OF_BOTH if any(kinds) else {}
    return _OTHERS | special | {"brier_score": measure_meaning("brier_score")}


def headline(verdict: Verdict) -> str:
    """Return a verdict in a few words."""
    if verdict.detected and verdict.direction == "none detected":
        # A certain prediction was wrong, and nothing is known beyond that.
        return "Not calibrated"
    return _HEADLINES[verdict.direction]
