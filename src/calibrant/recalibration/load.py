"""Reading what calibrators and maps have written."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.recalibration import storage
from calibrant.recalibration.calibrator import Calibrator
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

__all__ = ["load"]

_MAPS: dict[str, type[ProbabilityMap]] = {
    kind.__name__: kind
    for kind in (PiecewiseLinearMap, StepMap, LogisticMap, NoisyMap, TemperatureMap)
}
_CALIBRATORS: dict[str, type[Calibrator]] = {
    kind.__name__: kind
    for kind in (
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
}


def load(path: str | os.PathLike[str]) -> Calibrator | ProbabilityMap:
    """Read a fitted calibrator, or a map, from a file that its `save` has written.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Calibrator or ProbabilityMap
        What was saved: it predicts the same to the last bit.

    Raises
    ------
    CalibrantError
        Where the file is missing, damaged, foreign or newer than this calibrant. Nothing in a file
        is run, so that a file from anywhere can be tried.

    Examples
    --------
    >>> import tempfile, os
    >>> fitted = IsotonicCalibrator().fit([0.1, 0.4, 0.6], [0, 1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fitted.save(os.path.join(folder, "isotonic.json"))
    ...     again = load(os.path.join(folder, "isotonic.json"))
    >>> again.predict([0.25]) == fitted.predict([0.25])
    array([ True])
    """
    content = storage.read(path)
    try:
        return _calibrator(content) if "calibrator" in content else _map(content)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as problem:
        raise CalibrantError(
            f"this calibrator makes no sense: {problem}", source=str(path)
        ) from None


def _calibrator(content: dict[str, Any]) -> Calibrator:
    made = _CALIBRATORS[content["calibrator"]](**content["params"])
    n_classes, maps = content["n_classes"], tuple(_map(one) for one in content["maps"])
    if type(n_classes) is not int or n_classes < 2:
        raise ValueError(f"it has {n_classes!r} classes")
    made.n_classes_, made.maps_ = n_classes, maps
    # One that was forged so as not to work is found out here rather than by whoever uses it.
    made.predict(np.full(1, 0.5) if n_classes == 2 else np.full((1, n_classes), 1 / n_classes))
    return made


def _map(content: dict[str, Any]) -> ProbabilityMap:
    fields = dict(content)
    return _MAPS[fields.pop("map")](**fields)
