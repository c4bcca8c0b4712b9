"""Draw the pictures of the documentation from bundled data.

Usage: python tools/pictures.py [FOLDER]

They are kept in docs/pictures; run this after a change in how things are drawn, and look at them.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib import rcParams
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.special import expit

import calibrant as cb

FLARES = cb.datasets.load_flares("DAFFS")
NOAA = cb.datasets.load_flares("NOAA")
RAIN = cb.datasets.load_rain()


def _local() -> Axes:
    return cb.plot.reliability(cb.local_calibration_error(RAIN.y_true, RAIN.y_prob))


def _along() -> Axes:
    month = pl.Series("month", np.arange(FLARES.n) * 24 // FLARES.n + 1)  # of two years
    return cb.plot.bias_along(FLARES.y_true, FLARES.y_prob, month, n_values=10)


def _validation() -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.str_]]:
    """Return the outcomes, risks and hospitals of docs/clinical.md."""
    rng = np.random.default_rng(8)
    size = rng.integers(60, 300, 10)
    logit = rng.normal(-1.4, 1.5, size.sum())
    shift = np.repeat(rng.normal(0.3, 0.5, 10), size)
    outcome = rng.random(size.sum()) < expit(shift + 0.85 * logit)
    return outcome, expit(logit), np.repeat(list("ABCDEFGHIJ"), size)


def _clinical() -> Axes:
    outcome, risk, _ = _validation()
    table = cb.clinical_summary(outcome, risk)
    slope, intercept, c = (
        f"{one.value:.2f}" for one in (table.slope, table.intercept, table.c_statistic)
    )
    note = f"slope {slope}, intercept {intercept}, C {c}"
    ax = cb.plot.reliability(outcome, risk, method="loess", note=note)
    ax.set(xlabel="predicted risk", ylabel="observed proportion")
    return ax


def _murphy() -> Axes:
    regret = cb.threshold_regret(FLARES.y_true, FLARES.y_prob, 0.25)
    return cb.plot.murphy(FLARES.y_true, FLARES.y_prob, regret=regret)


PICTURES: dict[str, Callable[[], Axes]] = {
    "smooth": lambda: cb.plot.reliability(FLARES.y_true, FLARES.y_prob),
    "binned": lambda: cb.plot.reliability(FLARES.y_true, FLARES.y_prob, method="binned", n_bins=10),
    "isotonic": lambda: cb.plot.reliability(RAIN.y_true, RAIN.y_prob, method="isotonic"),
    "local": _local,
    "cumulative": lambda: cb.plot.cumulative(FLARES.y_true, FLARES.y_prob),
    "bias_along": _along,
    "sweep": lambda: cb.plot.bins_sweep(FLARES.y_true, FLARES.y_prob),
    "clinical": _clinical,
    "clinical_decision": lambda: cb.plot.decision_curve(*_validation()[:2], threshold=0.2),
    "forest": lambda: cb.plot.forest(cb.heterogeneity(*_validation())),
    "decision_curve": lambda: cb.plot.decision_curve(
        FLARES.y_true, {"DAFFS": FLARES.y_prob, "NOAA": NOAA.y_prob}
    ),
    "murphy": _murphy,
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Neither dates nor random identifiers: the same picture is the same file.
    rcParams["svg.hashsalt"] = "calibrant"
    for name, draw in PICTURES.items():
        figure = draw().figure
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
