"""Recalibration: scikit-learn estimators that map probabilities to calibrated ones.

They are fitted to probabilities and outcomes, in scikit-learn's order, and predict probabilities:
``PlattCalibrator().fit(y_prob, y_true).predict(y_prob)``. `recalibrate` chooses among them by
their scores on held-out rows, and `load` reads saved ones.
"""

from calibrant.errors import required

with required("calibrant.recalibration", "sklearn", "sklearn"):
    from calibrant.recalibration.calibrator import Calibrator
    from calibrant.recalibration.classifier import CalibrantClassifierCV
    from calibrant.recalibration.gain import CalibrationGain, calibration_gain
    from calibrant.recalibration.kernel_methods import (
        DensityCalibrator,
        NoisyCalibrator,
        ResidualCalibrator,
        SmoothCalibrator,
    )
    from calibrant.recalibration.maps import (
        AdjustedMap,
        LogisticMap,
        NoisyMap,
        PiecewiseLinearMap,
        ProbabilityMap,
        QuadraticMap,
        StepMap,
    )
    from calibrant.recalibration.methods import (
        METHODS,
        HistogramCalibrator,
        IdentityCalibrator,
        IsotonicCalibrator,
        ScalingBinningCalibrator,
    )
    from calibrant.recalibration.multiclass import (
        MatrixCalibrator,
        SoftmaxMap,
        TemperatureCalibrator,
        TemperatureMap,
        VectorCalibrator,
    )
    from calibrant.recalibration.parametric import (
        BetaCalibrator,
        PlattCalibrator,
        QuadraticCalibrator,
        ShiftCalibrator,
    )
    from calibrant.recalibration.prior_shift import PriorShift
    from calibrant.recalibration.search import Candidate
    from calibrant.recalibration.selection import Recalibration, cross_fitted, recalibrate
    from calibrant.recalibration.storage import load

__all__ = [
    "METHODS",
    "AdjustedMap",
    "BetaCalibrator",
    "CalibrantClassifierCV",
    "CalibrationGain",
    "Calibrator",
    "Candidate",
    "DensityCalibrator",
    "HistogramCalibrator",
    "IdentityCalibrator",
    "IsotonicCalibrator",
    "LogisticMap",
    "MatrixCalibrator",
    "NoisyCalibrator",
    "NoisyMap",
    "PiecewiseLinearMap",
    "PlattCalibrator",
    "PriorShift",
    "ProbabilityMap",
    "QuadraticCalibrator",
    "QuadraticMap",
    "Recalibration",
    "ResidualCalibrator",
    "ScalingBinningCalibrator",
    "ShiftCalibrator",
    "SmoothCalibrator",
    "SoftmaxMap",
    "StepMap",
    "TemperatureCalibrator",
    "TemperatureMap",
    "VectorCalibrator",
    "calibration_gain",
    "cross_fitted",
    "load",
    "recalibrate",
]
