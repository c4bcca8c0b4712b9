"""The metrics: what each one measures of the sketch that is their state."""

from __future__ import annotations

from typing import Any, Literal

from calibrant import checks
from calibrant.errors import CalibrantError
from calibrant.integrations.torch.sketch_metric import SketchMetric


class SmoothCalibrationError(SketchMetric):
    """The smooth calibration error, smECE, of all batches; 0 is perfect.

    Parameters
    ----------
    task, num_classes, from_logits, ignore_index, validate_args, n_cells, **kwargs
        As in :class:`SketchMetric`.
    bandwidth
        As in :func:`calibrant.smooth_ece`, whose value for all rows is given to within 1e-6 where
        it is at least 0.01.

    Examples
    --------
    >>> import torch
    >>> metric = SmoothCalibrationError()
    >>> metric.update(torch.tensor([0.25, 0.5]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([0.75, 1.0]), torch.tensor([1, 1]))
    >>> round(float(metric.compute()), 6)
    0.171062
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        bandwidth: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(task, measure="smooth_ece", options={"bandwidth": bandwidth}, **kwargs)


class BinnedCalibrationError(SketchMetric):
    """The expected calibration error, ECE, of all batches in uniform bins; 0 is perfect.

    Parameters
    ----------
    task, num_classes, from_logits, ignore_index, validate_args, n_cells, **kwargs
        As in :class:`SketchMetric`.
    n_bins
        The number of bins, which must divide `n_cells`.
    norm
        "l1" mean, "l2" root mean square or "max" over bins.

    Notes
    -----
    Exactly :func:`calibrant.ece` of all rows: p = 1 belongs to the last bin, scores on an edge to
    the bin above it, and float16 predictions are counted as the numbers that they are.

    Examples
    --------
    >>> import torch
    >>> metric = BinnedCalibrationError(n_bins=10)
    >>> metric(torch.tensor([0.75, 1.0]), torch.tensor([1, 0]))
    tensor(0.6250, dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        n_bins: int = 15,
        norm: Literal["l1", "l2", "max"] = "l1",
        **kwargs: Any,
    ) -> None:
        options = {"n_bins": checks.as_bins(n_bins), "norm": norm}
        super().__init__(task, measure="ece", options=options, **kwargs)
        if self._cells.n_cells % n_bins:
            raise CalibrantError(
                "must divide {n_cells}, {n_sketched}",
                argument="n_bins",
                value=n_bins,
                n_sketched=self._cells.n_cells,
            )


class CumulativeCalibrationError(SketchMetric):
    """The cumulative calibration error, ECCE, of all batches; 0 is perfect.

    Parameters
    ----------
    task, num_classes, from_logits, ignore_index, validate_args, n_cells, **kwargs
        As in :class:`SketchMetric`.
    statistic
        "max": :func:`calibrant.ecce_mad`. "range": :func:`calibrant.ecce_r`.
    normalize
        Divide by sigma_n, the noise of calibrated predictions.

    Examples
    --------
    >>> import torch
    >>> metric = CumulativeCalibrationError(statistic="range")
    >>> metric(torch.tensor([0.5, 0.625, 0.75, 0.75]), torch.tensor([0, 1, 1, 1]))
    tensor(0.2188, dtype=torch.float64)
    """

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        statistic: Literal["max", "range"] = "max",
        normalize: bool = False,
        **kwargs: Any,
    ) -> None:
        checks.check_choice(statistic, "statistic", ("max", "range"))
        measure = "ecce_mad" if statistic == "max" else "ecce_r"
        super().__init__(task, measure=measure, options={"normalize": normalize}, **kwargs)


class LogitSmoothedCalibrationError(SketchMetric):
    """The logit-smoothed calibration error, LS-ECE, of all batches; 0 is perfect.

    Parameters
    ----------
    task, num_classes, from_logits, ignore_index, validate_args, n_cells, **kwargs
        As in :class:`SketchMetric`; the sketch is on the logit scale.
    sigma
        The scale of the Gaussian noise on the logits, as in :func:`calibrant.logit_smoothed_ece`.

    Examples
    --------
    >>> import torch
    >>> metric = LogitSmoothedCalibrationError()
    >>> metric(torch.tensor([0.25, 0.25, 0.75, 0.75]), torch.tensor([0, 1, 0, 1]))
    tensor(0.2498, dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        sigma: float = 1 / 15,
        **kwargs: Any,
    ) -> None:
        super().__init__(task, measure="logit_smoothed_ece", options={"sigma": sigma}, **kwargs)
