"""Do predicted probabilities mean what they say: by how much not, where, and how sure are we.

Public names are loaded when first used, so ``import calibrant`` costs next to nothing.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from calibrant._version import __version__

if TYPE_CHECKING:  # what type checkers and editors see; a test holds it equal to _ROOMS
    from calibrant.assessment.assess import assess
    from calibrant.assessment.group_result import GroupTable
    from calibrant.assessment.groups import by_group
    from calibrant.assessment.result import Assessment
    from calibrant.assessment.verdict import Verdict
    from calibrant.curves.along import bias_along
    from calibrant.curves.cumulative import cumulative_curve, subpopulation_curve
    from calibrant.curves.reliability import local_calibration_error, reliability_curve
    from calibrant.errors import CalibrantError, MissingDependencyError, SketchError
    from calibrant.inference.compare import compare
    from calibrant.inference.compare_result import Comparison
    from calibrant.inference.cumulative import cumulative_test, subpopulation_test
    from calibrant.inference.estimate import estimate
    from calibrant.inference.estimate_result import Estimate
    from calibrant.inference.goodness import calibration_slope_test, spiegelhalter_test
    from calibrant.measures.bin_table import bin_table
    from calibrant.measures.binned import ace, ece, mce, soft_label_ece
    from calibrant.measures.cumulative import ecce_mad, ecce_r
    from calibrant.measures.density import density_ece
    from calibrant.measures.distance import (
        distance_bounds,
        interval_error,
        laplace_kernel_error,
        weak_calibration_error,
        weak_calibration_witness,
    )
    from calibrant.measures.logit import logit_smoothed_ece
    from calibrant.measures.recommendation import Recommendation, recommend
    from calibrant.measures.registry import error_bound
    from calibrant.measures.scores import brier_score, log_score, score_decomposition
    from calibrant.measures.smooth import smooth_ece
    from calibrant.results.curves import CumulativeCurve, Curve
    from calibrant.results.masses import PointMasses
    from calibrant.results.p_values import SlopeTestResult, TestResult
    from calibrant.results.tables import BiasTable, BinTable
    from calibrant.results.values import DistanceBounds, LipschitzWitness, ScoreDecomposition
    from calibrant.sketches.state import Sketch
    from calibrant.sources.sketching import sketch

_ROOMS = {
    "assessment.assess": ("assess",),
    "assessment.group_result": ("GroupTable",),
    "assessment.groups": ("by_group",),
    "assessment.result": ("Assessment",),
    "assessment.verdict": ("Verdict",),
    "curves.along": ("bias_along",),
    "curves.cumulative": (
        "cumulative_curve",
        "subpopulation_curve",
    ),
    "curves.reliability": (
        "local_calibration_error",
        "reliability_curve",
    ),
    "errors": (
        "CalibrantError",
        "MissingDependencyError",
        "SketchError",
    ),
    "inference.compare": ("compare",),
    "inference.compare_result": ("Comparison",),
    "inference.cumulative": (
        "cumulative_test",
        "subpopulation_test",
    ),
    "inference.estimate": ("estimate",),
    "inference.estimate_result": ("Estimate",),
    "inference.goodness": (
        "calibration_slope_test",
        "spiegelhalter_test",
    ),
    "measures.bin_table": ("bin_table",),
    "measures.binned": (
        "ace",
        "ece",
        "mce",
        "soft_label_ece",
    ),
    "measures.cumulative": (
        "ecce_mad",
        "ecce_r",
    ),
    "measures.density": ("density_ece",),
    "measures.distance": (
        "distance_bounds",
        "interval_error",
        "laplace_kernel_error",
        "weak_calibration_error",
        "weak_calibration_witness",
    ),
    "measures.logit": ("logit_smoothed_ece",),
    "measures.recommendation": (
        "Recommendation",
        "recommend",
    ),
    "measures.registry": ("error_bound",),
    "measures.scores": (
        "brier_score",
        "log_score",
        "score_decomposition",
    ),
    "measures.smooth": ("smooth_ece",),
    "results.curves": (
        "CumulativeCurve",
        "Curve",
    ),
    "results.masses": ("PointMasses",),
    "results.p_values": (
        "SlopeTestResult",
        "TestResult",
    ),
    "results.tables": (
        "BiasTable",
        "BinTable",
    ),
    "results.values": (
        "DistanceBounds",
        "LipschitzWitness",
        "ScoreDecomposition",
    ),
    "sketches.state": ("Sketch",),
    "sources.sketching": ("sketch",),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}
_SUBMODULES = ("datasets", "inference", "plot")
# These need more than calibrant does by itself, so that `from calibrant import *` leaves them out.
_WITH_EXTRAS = ("recalibration", "report")

__all__ = [
    "Assessment",
    "BiasTable",
    "BinTable",
    "CalibrantError",
    "Comparison",
    "CumulativeCurve",
    "Curve",
    "DistanceBounds",
    "Estimate",
    "GroupTable",
    "LipschitzWitness",
    "MissingDependencyError",
    "PointMasses",
    "Recommendation",
    "ScoreDecomposition",
    "Sketch",
    "SketchError",
    "SlopeTestResult",
    "TestResult",
    "Verdict",
    "__version__",
    "ace",
    "assess",
    "bias_along",
    "bin_table",
    "brier_score",
    "by_group",
    "calibration_slope_test",
    "compare",
    "cumulative_curve",
    "cumulative_test",
    "datasets",
    "density_ece",
    "distance_bounds",
    "ecce_mad",
    "ecce_r",
    "ece",
    "error_bound",
    "estimate",
    "inference",
    "interval_error",
    "laplace_kernel_error",
    "local_calibration_error",
    "log_score",
    "logit_smoothed_ece",
    "mce",
    "plot",
    "recommend",
    "reliability_curve",
    "score_decomposition",
    "sketch",
    "smooth_ece",
    "soft_label_ece",
    "spiegelhalter_test",
    "subpopulation_curve",
    "subpopulation_test",
    "weak_calibration_error",
    "weak_calibration_witness",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES or name in _WITH_EXTRAS:
        return import_module(f"calibrant.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"calibrant.{_HOMES[name]}"), name)
    elif not name.startswith("_") and not find_spec(f"calibrant.{name}") and name in _measures():
        value = _measures()[name].function
    else:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_measures()})


def _measures() -> Any:
    """Return the registered measures: one may be new, and not among the names above."""
    return import_module("calibrant.measures.registry").measures()
