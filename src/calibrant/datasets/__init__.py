"""Small real data sets bundled with the package, and simulators with a known truth.

Each gives a `Dataset`, which unpacks as ``y_true, y_prob``.
"""

from calibrant.datasets._bundled import load_flares, load_imagenet, load_rain
from calibrant.datasets._dataset import ConfidenceDataset, Dataset
from calibrant.datasets._scenarios import SCENARIOS, Scenario
from calibrant.datasets._simulated import Simulation, simulate

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
