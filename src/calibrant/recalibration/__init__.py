"""Calibrators: scikit-learn estimators that learn to mend probabilities.

They are fitted to probabilities and outcomes, in scikit-learn's order, and predict probabilities:
``PlattCalibrator().fit(y_prob, y_true).predict(y_prob)``. `recalibrate` chooses among them by
what helps on rows that were held out, and `load` reads what they have saved.
"""

from calibrant.errors import MissingDependencyError

try:
    from calibrant.recalibration.binned import HistogramCalibrator, ScalingBinningCalibrator
    from calibrant.recalibration.calibrator import Calibrator
    from calibrant.recalibration.choice import METHODS, recalibrate
    from calibrant.recalibration.folds import cross_fitted
    from calibrant.recalibration.kernel import (
        DensityCalibrator,
        NoisyCalibrator,
        SmoothCalibrator,
    )
    from calibrant.recalibration.load import load
    from calibrant.recalibration.maps import (
        LogisticMap,
        PiecewiseLinearMap,
        ProbabilityMap,
        StepMap,
    )
    from calibrant.recalibration.noise import NoisyMap
    from calibrant.recalibration.parametric import (
        BetaCalibrator,
        IdentityCalibrator,
        IsotonicCalibrator,
        PlattCalibrator,
    )
    from calibrant.recalibration.result import Recalibration
    from calibrant.recalibration.temperature import TemperatureCalibrator, TemperatureMap
    from calibrant.recalibration.trial import Candidate
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
