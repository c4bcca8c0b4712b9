"""Calibration in scikit-learn's own terms: displays of estimators, and scorers.

The displays are those of :mod:`calibrant.plot` under scikit-learn's conventions: made by
`from_estimator` or `from_predictions`, kept with their results, drawn by `plot`. The scorers go
where scikit-learn takes a `scoring`: ``cross_val_score(model, X, y, scoring=neg_smooth_ece)``.
"""

from calibrant.errors import MissingDependencyError

try:
    from calibrant.integrations.sklearn.cumulative_display import CumulativeDisplay
    from calibrant.integrations.sklearn.reliability_display import ReliabilityDisplay
    from calibrant.integrations.sklearn.scorers import (
        CalibrationScorer,
        neg_ace,
        neg_ecce_mad,
        neg_ecce_r,
        neg_ece,
        neg_logit_smoothed_ece,
        neg_mce,
        neg_smooth_ece,
        neg_weak_calibration_error,
    )
except ModuleNotFoundError as problem:
    if (problem.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingDependencyError(
        "calibrant.integrations.sklearn needs scikit-learn",
        hint="pip install 'calibrant[sklearn]'",
    ) from problem

__all__ = [
    "CalibrationScorer",
    "CumulativeDisplay",
    "ReliabilityDisplay",
    "neg_ace",
    "neg_ecce_mad",
    "neg_ecce_r",
    "neg_ece",
    "neg_logit_smoothed_ece",
    "neg_mce",
    "neg_smooth_ece",
    "neg_weak_calibration_error",
]
