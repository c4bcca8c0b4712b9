"""Calibration measures as torchmetrics metrics, of constant size and exact across processes.

Their state is that of a :class:`calibrant.Sketch`: whole numbers of rows and float64 sums for each
cell of scores, 2.4 MB however many rows come in. States merge by addition, so distributed training
synchronises them exactly: every process gets what one process would have got from all rows.
"""

from calibrant.errors import MissingDependencyError

try:
    from calibrant.integrations.torch.metrics import (
        BinnedCalibrationError,
        CumulativeCalibrationError,
        LogitSmoothedCalibrationError,
        SmoothCalibrationError,
    )
    from calibrant.integrations.torch.sketch_metric import SketchMetric
except ModuleNotFoundError as problem:
    raise MissingDependencyError(
        "calibrant.integrations.torch needs {package}",
        hint="pip install 'calibrant[torch]'",
        package=problem.name,
    ) from problem

__all__ = [
    "BinnedCalibrationError",
    "CumulativeCalibrationError",
    "LogitSmoothedCalibrationError",
    "SketchMetric",
    "SmoothCalibrationError",
]
