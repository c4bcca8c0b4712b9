"""Small real data sets bundled with the package, and simulators with a known truth.

Each gives a `Dataset`, which unpacks as ``y_true, y_prob``.
"""

from calibrant.datasets.bundled import (
    ConfidenceDataset,
    Dataset,
    load_flares,
    load_imagenet,
    load_rain,
)
from calibrant.datasets.scenarios import SCENARIOS, Scenario, Simulation, simulate

__all__ = [
    "SCENARIOS",
    "ConfidenceDataset",
    "Dataset",
    "Scenario",
    "Simulation",
    "load_flares",
    "load_imagenet",
    "load_rain",
    "simulate",
]
