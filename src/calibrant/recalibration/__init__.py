"""Recalibration: scikit-learn estimators that map probabilities to calibrated ones.

They are fitted to probabilities and outcomes, in scikit-learn's order, and predict probabilities:
``PlattCalibrator().fit(y_prob, y_true).predict(y_prob)``. `recalibrate` chooses among them by
their scores on held-out rows, and `load` reads saved ones.
"""

from calibrant.errors import MissingDependencyError

try:
    from calibrant.recalibration.calibrator import Calibrator
    from calibrant.recalibration.gain import CalibrationGain, calibration_gain
    from calibrant.recalibration.maps import (
        LogisticMap,
        NoisyMap,
        PiecewiseLinearMap,
        ProbabilityMap,
        StepMap,
        TemperatureMap,
    )
    from calibrant.recalibration.methods import (
        METHODS,
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
    )
    from calibrant.recalibration.selection import (
        Candidate,
        Recalibration,
        cross_fitted,
        recalibrate,
    )
    from calibrant.recalibration.storage import load
except ModuleNotFoundError as problem:
    if (problem.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingDependencyError(
        "calibrant.recalibration needs scikit-learn", hint="pip install 'calibrant[sklearn]'"
    ) from problem

__all__ = [
    "METHODS",
    "BetaCalibrator",
    "CalibrationGain",
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
    "calibration_gain",
    "cross_fitted",
    "load",
    "recalibrate",
]
