"""What the numbers on a page mean, one line each, and how they are defined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calibrant.assessment.result import Assessment
from calibrant.assessment.verdict import Verdict

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


_MEASURES = {
    "smooth_ece": Meaning(
        "Smooth calibration error (smECE)",
        "How far outcomes are from predictions, smoothed at a scale of its own; no bins to choose.",
        "∫ |Σ w (y − p) K(t, p)| dt / W, with K the Gaussian reflected at 0 and 1, of the one "
        "scale that equals the result.",
    ),
    "ece": Meaning(
        "Binned calibration error (ECE)",
        "Mean distance between outcomes and predictions over bins of equal width.",
        "Σ over bins of |Σ w (y − p)| / W.",
    ),
    "ecce_r": Meaning(
        "Largest total deviation (ECCE-R)",
        "The most that outcomes deviate in total over any one stretch of scores.",
        "max C − min C, with C the sum of w (y − p) / W over rows in order of p.",
    ),
    "ecce_mad": Meaning(
        "Largest cumulative deviation (ECCE-MAD)",
        "The most that outcomes deviate in total, counted from the lowest score.",
        "max |C|, with C the sum of w (y − p) / W over rows in order of p.",
    ),
    "logit_smoothed_ece": Meaning(
        "Logit-smoothed error (LS-ECE)",
        "Mean distance after smoothing on the logit scale, which sees scores near 0 and 1 apart.",
        "∫ |Σ w k(u − logit p) (y − ρ(u))| du / W, with ρ the inverse logit and k the Gaussian "
        "of scale 1/15.",
    ),
}

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
    "brier_score": Meaning(
        "Brier score",
        "Mean squared error; rewards sharp predictions as well as calibrated ones.",
        "Σ w (y − p)² / W.",
    ),
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
    return _MEASURES.get(name, Meaning(name, "", ""))


def other_meanings(assessments: Iterable[Assessment]) -> dict[str, Meaning]:
    """Return the numbers of assessments that are no calibration errors, in words."""
    kinds = [one.is_confidence for one in assessments]
    if all(kinds):
        return _OTHERS | _OF_CONFIDENCES
    return _OTHERS | _OF_BOTH if any(kinds) else _OTHERS


def headline(verdict: Verdict) -> str:
    """Return a verdict in a few words."""
    if verdict.detected and verdict.direction == "none detected":
        # A certain prediction was wrong, and nothing is known beyond that.
        return "Not calibrated"
    return _HEADLINES[verdict.direction]
