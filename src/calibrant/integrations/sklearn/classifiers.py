"""What calibrant needs to know of a fitted classifier: its probabilities and what they speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant.arrays import AnyArray
from calibrant.errors import CalibrantError

__all__ = ["probabilities"]


def probabilities(estimator: Any, X: Any) -> tuple[AnyArray, list[Any]]:
    """Return the class probabilities of a fitted classifier, and the classes they are of."""
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        raise CalibrantError(
            "{name} has no predict_proba, and calibration needs probabilities",
            hint="CalibratedClassifierCV makes them",
            name=name,
        )
    check_is_fitted(estimator)
    classes = getattr(estimator, "classes_", None)
    if not isinstance(classes, np.ndarray):
        raise CalibrantError(f"{name} must have the one array of its classes in classes_")
    return estimator.predict_proba(X), classes.tolist()
