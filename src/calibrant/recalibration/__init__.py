"""Calibrators: scikit-learn estimators that learn to mend probabilities.

They are fitted to probabilities and outcomes, in scikit-learn's order, and predict probabilities:
``PlattCalibrator().fit(y_prob, y_true).predict(y_prob)``. `recalibrate` chooses among them by
what helps on rows that were held out, and `load` reads what they have saved.
"""

from calibrant.errors import MissingDependencyError

try:
    from calibrant.recalibration.calibrator import Calibrator
    from calibrant.recalibration.load import load
    from calibrant.recalibration.maps import (
        LogisticMap,
        NoisyMap,
        PiecewiseLinearMap,
        ProbabilityMap,
        StepMap,
    )
    from calibrant.recalibration.methods import (
        BetaCalibrator,
        DensityCalibrator,
        HistogramCalibrator,
        IdentityCalibrator,
        IsotonicCalibrator,
        NoisyCalibrator,
        PlattCalibrator,
        ScalingBinningCalibrator,
        SmoothCalibrator,
        TemperatureCalibrator,
        TemperatureMap,
    )
    from calibrant.recalibration.selection import (
        METHODS,
        Candidate,
        Recalibration,
        cross_fitted,
        recalibrate,
    )
except ModuleNotFoundError as problem:
    if (problem.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingDependencyError(
        "calibrant.recalibration needs scikit-learn", hint="pip install 'calibrant[sklearn]'"
    ) from problem

__all__ = [
    "METHODS",
    "BetaCalibrator",
    "Calibrator",
    "Candidate",
    "DensityCalibrator",
    "HistogramCalibrator",
    "IdentityCalibrator",
    "IsotonicCalibrator",
    "LogisticMap",
    "NoisyCalibrator",
    "NoisyMap",
    "PiecewiseLinearMap",
    "PlattCalibrator",
    "ProbabilityMap",
    "Recalibration",
    "ScalingBinningCalibrator",
    "SmoothCalibrator",
    "StepMap",
    "TemperatureCalibrator",
    "TemperatureMap",
    "cross_fitted",
    "load",
    "recalibrate",
]
