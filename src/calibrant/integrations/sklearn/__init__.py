"""Calibration in scikit-learn's own terms: displays of estimators, and scorers.

The displays are those of :mod:`calibrant.plot` under scikit-learn's conventions: made by
`from_estimator` or `from_predictions`, kept with their results, drawn by `plot`. The scorers go
where scikit-learn takes a `scoring`: ``cross_val_score(model, X, y, scoring=neg_smooth_ece)``.
Every calibration error NAME of calibrant's has one, `neg_NAME`.
"""

from calibrant.errors import MissingDependencyError

try:
    from calibrant.integrations.sklearn.cumulative_display import CumulativeDisplay
    from calibrant.integrations.sklearn.reliability_display import ReliabilityDisplay
    from calibrant.integrations.sklearn.scorers import CalibrationScorer, scorers
except ModuleNotFoundError as problem:
    if (problem.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingDependencyError(
        "calibrant.integrations.sklearn needs scikit-learn",
        hint="pip install 'calibrant[sklearn]'",
    ) from problem

_SCORERS = scorers()

__all__ = ["CalibrationScorer", "CumulativeDisplay", "ReliabilityDisplay"]
__all__ += list(_SCORERS)


def __getattr__(name: str) -> CalibrationScorer:
    if name not in _SCORERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _SCORERS[name]


def __dir__() -> list[str]:
    return sorted(__all__)
