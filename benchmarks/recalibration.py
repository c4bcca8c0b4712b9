"""Measure what every calibrator does to the bundled networks and forecasts, on held-out rows.

    python benchmarks/recalibration.py  # the tables of docs/recalibration.md, a minute or two

Every row is recalibrated by a map fitted to the other four of five folds, drawn with the seed 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from calibrant import brier_score, log_score, smooth_ece
from calibrant.datasets import Dataset, load_flares, load_imagenet, load_rain
from calibrant.recalibration import METHODS, IdentityCalibrator, cross_fitted

DATASETS: dict[str, Callable[[], Dataset]] = {
    "rain": load_rain,
    "flares DAFFS": lambda: load_flares("DAFFS"),
    "flares NOAA": lambda: load_flares("NOAA"),
    "flares SIDC": lambda: load_flares("SIDC"),
    "ResNet-34": lambda: load_imagenet("resnet34"),
    "DenseNet-161": lambda: load_imagenet("densenet161"),
}
MEASURES = {"smooth_ece": smooth_ece, "log_score": log_score, "brier_score": brier_score}
CALIBRATORS = {"as given": IdentityCalibrator, **METHODS}


def measured(data: Dataset) -> dict[str, dict[str, float]]:
    """Return every measure of every method on one set of data."""
    held_out = {
        name: cross_fitted(make(), data.y_prob, data.y_true) for name, make in CALIBRATORS.items()
    }
    return {
        measure: {name: function(data.y_true, q) for name, q in held_out.items()}
        for measure, function in MEASURES.items()
    }


def table(columns: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the lines of a table with one row per method, the minimum of each column in bold."""
    yield f"| | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    best = {name: min(values.values()) for name, values in columns.items()}
    for method in CALIBRATORS:
        cells = []
        for name, values in columns.items():
            cell = "∞" if np.isinf(values[method]) else f"{values[method]:.4f}"
            cells.append(f"**{cell}**" if values[method] == best[name] else cell)
        yield f"| {method} | {' | '.join(cells)} |"


def main() -> None:
    """Print the tables."""
    results = {name: measured(load()) for name, load in DATASETS.items()}
    for measure in MEASURES:
        print(f"\n{measure}\n")
        print("\n".join(table({name: result[measure] for name, result in results.items()})))


if __name__ == "__main__":
    main()
