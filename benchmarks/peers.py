"""What other packages can do of our tasks, each prepared as its package likes it best.

A skill takes outcomes and predictions, converts them before any clock runs, and returns the call
to time. A float that the call returns is compared with ours; anything else is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import Call

Prepare: TypeAlias = Callable[[NDArray[Any], NDArray[np.float64]], Call]
# Not a package, but what a reader of the paper would write.
PAPER = "the paper's sampling"
_BINS = 15


@dataclass(frozen=True)
class Skill:
    """One thing that a peer can do, what to know about it, and why its value may differ."""

    prepare: Prepare
    remark: str = ""
    why: str = ""


@dataclass(frozen=True)
class Peer:
    """A package, the module to import it by, and its skills by task."""

    name: str
    module: str
    skills: Mapping[str, Skill] = field(default_factory=dict)

    def version(self) -> str | None:
        """Return which version is installed, if any is."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None


def _class_by_class(prepare: Prepare) -> Prepare:
    """Average a binary error over classes, each against the rest, as its user would."""

    def prepared(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
        def call() -> float | None:
            columns = (prepare((y == k).astype(float), p[:, k])() for k in range(p.shape[1]))
            errors = [error for error in columns if isinstance(error, float)]
            return float(np.mean(errors)) if errors else None

        return call

    return prepared


def _sklearn_curve(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from sklearn.calibration import calibration_curve

    return lambda: calibration_curve(y, p, n_bins=_BINS)


def _torchmetrics_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    prediction, target = torch.from_numpy(p), torch.from_numpy(y.astype(np.int64))
    return lambda: float(binary_calibration_error(prediction, target, n_bins=_BINS))


def _netcal_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from netcal.metrics import ECE

    return lambda: float(ECE(_BINS).measure(p, y))


def _uncertainty_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from calibration import get_ece

    labels = y.astype(np.int64)
    return lambda: float(get_ece(p, labels, num_bins=_BINS, mode="marginal"))


def _uncertainty_interval(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from calibration import get_calibration_error_uncertainties

    labels = y.astype(np.int64)
    return lambda: get_calibration_error_uncertainties(p, labels, p=1)


def _probcal_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from probcal.metrics import ece

    return lambda: float(ece(y, p, n_bins=_BINS, strategy="width"))


def _probcal_smooth_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from probcal.metrics import smooth_ece

    return lambda: float(smooth_ece(y, p))


def _probcal_ecce(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from probcal.metrics import ecce

    return lambda: ecce(y, p)


def _probcal_interval(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from probcal.metrics import evaluate

    return lambda: evaluate(y, p, n_boot=100, metrics=("ece",))


def _probcal_evaluate(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from probcal.metrics import evaluate

    return lambda: evaluate(y, p, n_boot=200)


def _relplot_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from relplot.metrics import binnedECE

    return lambda: float(binnedECE(p, y, nbins=_BINS))


def _relplot_smooth_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from relplot.metrics import smECE

    return lambda: float(smECE(p, y))


def _relplot_diagram(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from relplot import prepare_rel_diagram

    return lambda: prepare_rel_diagram(p, y)


def _mapie_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from mapie.metrics.calibration import expected_calibration_error

    # Asked for k bins it takes k - 1.
    return lambda: float(expected_calibration_error(y, p, num_bins=_BINS + 1))


def _mapie_classes(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from mapie.metrics.calibration import expected_calibration_error

    options = {"num_bins": _BINS + 1, "classwise": True, "class_labels": y}
    return lambda: float(expected_calibration_error(y, p, **options))


def _mapie_test(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from mapie.metrics.calibration import kuiper_p_value

    labels = y.astype(np.int64)
    return lambda: float(kuiper_p_value(labels, p))


def _mcgrad_ece(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from mcgrad.metrics import expected_calibration_error

    return lambda: float(expected_calibration_error(y, p, num_bins=_BINS))


def _mcgrad_test(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from mcgrad.metrics import ecce_pvalue

    return lambda: float(ecce_pvalue(y, p))


def _model_diagnostics_diagram(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    from matplotlib.figure import Figure
    from model_diagnostics.calibration import plot_reliability_diagram

    return lambda: plot_reliability_diagram(y, p, n_bootstrap=100, ax=Figure().subplots())


_CURVE = Skill(_sklearn_curve, "a curve, from which no error follows")
_FLOAT32 = "beyond 2²⁴ rows its counts, in float32, stop"
_LOGIT = "smooths on the scale of logits"

PEERS = (
    Peer("scikit-learn", "sklearn.calibration", {"ece": _CURVE}),
    Peer(
        "torchmetrics",
        "torchmetrics.functional.classification",
        {"ece": Skill(_torchmetrics_ece, why=_FLOAT32)},
    ),
    Peer("netcal", "netcal.metrics", {"ece": Skill(_netcal_ece)}),
    Peer(
        "uncertainty-calibration",
        "calibration",
        {
            "ece": Skill(_uncertainty_ece),
            "classes": Skill(_uncertainty_ece),
            "interval": Skill(_uncertainty_interval, "100 resamples, 90 % by default"),
        },
    ),
    Peer(
        "probcal",
        "probcal.metrics",
        {
            "ece": Skill(_probcal_ece),
            "smooth_ece": Skill(_probcal_smooth_ece, why=_LOGIT),
            "test": Skill(_probcal_ecce, "the statistic alone, no P-value"),
            "classes": Skill(_class_by_class(_probcal_ece), "called once per class"),
            "interval": Skill(_probcal_interval, "100 resamples"),
            "assess": Skill(_probcal_evaluate, "200 resamples"),
        },
    ),
    Peer(
        "relplot",
        "relplot",
        {
            "ece": Skill(_relplot_ece, "checks nothing that it is given"),
            "smooth_ece": Skill(_relplot_smooth_ece, why="rounds scores to a grid"),
            "classes": Skill(_class_by_class(_relplot_ece), "called once per class"),
            "assess": Skill(_relplot_diagram, "the numbers of a diagram, 200 + 100 resamples"),
        },
    ),
    Peer(
        "mapie",
        "mapie.metrics.calibration",
        {
            "ece": Skill(_mapie_ece),
            "test": Skill(_mapie_test),
            "classes": Skill(_mapie_classes),
        },
    ),
    Peer("mcgrad", "mcgrad.metrics", {"ece": Skill(_mcgrad_ece), "test": Skill(_mcgrad_test)}),
    Peer(
        "model-diagnostics",
        "model_diagnostics.calibration",
        {"assess": Skill(_model_diagnostics_diagram, "a diagram with 100 resamples")},
    ),
)


def is_peer(name: str) -> bool:
    """Tell whether this is another way of doing the same, rather than a limit to compare with."""
    return name == PAPER or any(peer.name == name for peer in PEERS)
