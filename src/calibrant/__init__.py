"""Are predicted probabilities calibrated: by how much not, where, and with what uncertainty.

Public names are loaded when first used, so ``import calibrant`` costs next to nothing.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from calibrant._version import __version__

if TYPE_CHECKING:  # what type checkers and editors see; a test keeps it equal to _NAMES
    from calibrant.assessment.assess import Assessment as Assessment, assess as assess
    from calibrant.assessment.groups import GroupTable as GroupTable, by_group as by_group
    from calibrant.assessment.verdict import Verdict as Verdict
    from calibrant.curves.bias import BiasTable as BiasTable, bias_along as bias_along
    from calibrant.curves.decisions import (
        DecisionCurve as DecisionCurve,
        MurphyCurve as MurphyCurve,
        RegretBand as RegretBand,
        decision_curve as decision_curve,
        murphy_curve as murphy_curve,
    )
    from calibrant.curves.reliability import (
        Curve as Curve,
        local_calibration_error as local_calibration_error,
        reliability_curve as reliability_curve,
    )
    from calibrant.curves.reliability_view import PointMasses as PointMasses
    from calibrant.data.sketch import Sketch as Sketch
    from calibrant.errors import (
        CalibrantError as CalibrantError,
        MissingDependencyError as MissingDependencyError,
        SketchError as SketchError,
    )
    from calibrant.inference.clinical import (
        ClinicalEstimate as ClinicalEstimate,
        ClinicalSummary as ClinicalSummary,
        clinical_summary as clinical_summary,
    )
    from calibrant.inference.compare import Comparison as Comparison, compare as compare
    from calibrant.inference.cumulative_tests import (
        TestResult as TestResult,
        certificate as certificate,
        cumulative_test as cumulative_test,
        subpopulation_test as subpopulation_test,
    )
    from calibrant.inference.estimate import Estimate as Estimate, estimate as estimate
    from calibrant.inference.heterogeneity import (
        Heterogeneity as Heterogeneity,
        RandomEffects as RandomEffects,
        heterogeneity as heterogeneity,
    )
    from calibrant.inference.hosmer_lemeshow import (
        HosmerLemeshowResult as HosmerLemeshowResult,
        hosmer_lemeshow_test as hosmer_lemeshow_test,
    )
    from calibrant.inference.sample_size import (
        NoiseFloor as NoiseFloor,
        SampleSize as SampleSize,
        noise_floor as noise_floor,
        sample_size as sample_size,
    )
    from calibrant.inference.joint_test import (
        CalibrationTest as CalibrationTest,
        TestPart as TestPart,
        calibration_test as calibration_test,
    )
    from calibrant.inference.regret import (
        ThresholdRegret as ThresholdRegret,
        threshold_regret as threshold_regret,
    )
    from calibrant.inference.slope_tests import (
        SlopeTestResult as SlopeTestResult,
        calibration_slope_test as calibration_slope_test,
        spiegelhalter_test as spiegelhalter_test,
    )
    from calibrant.io.sketching import sketch as sketch
    from calibrant.measures.bin_table import BinTable as BinTable, bin_table as bin_table
    from calibrant.measures.binned import (
        ace as ace,
        ece as ece,
        mce as mce,
        soft_label_ece as soft_label_ece,
    )
    from calibrant.measures.cumulative import (
        CumulativeCurve as CumulativeCurve,
        cumulative_curve as cumulative_curve,
        ecce_mad as ecce_mad,
        ecce_r as ecce_r,
    )
    from calibrant.measures.density import density_ece as density_ece
    from calibrant.measures.distance import (
        DistanceBounds as DistanceBounds,
        LipschitzWitness as LipschitzWitness,
        distance_bounds as distance_bounds,
        interval_error as interval_error,
        laplace_kernel_error as laplace_kernel_error,
        weak_calibration_error as weak_calibration_error,
        weak_calibration_witness as weak_calibration_witness,
    )
    from calibrant.measures.kernel import skce as skce
    from calibrant.measures.logit import logit_smoothed_ece as logit_smoothed_ece
    from calibrant.measures.recommendation import (
        Recommendation as Recommendation,
        recommend as recommend,
    )
    from calibrant.measures.registry import error_bound as error_bound
    from calibrant.measures.scores import (
        ScoreDecomposition as ScoreDecomposition,
        brier_score as brier_score,
        log_score as log_score,
        score_decomposition as score_decomposition,
    )
    from calibrant.measures.smooth import smooth_ece as smooth_ece
    from calibrant.measures.subpopulation import subpopulation_curve as subpopulation_curve
    from calibrant.measures.two_bin import averaged_two_bin_error as averaged_two_bin_error
    from calibrant.reporting.html_page import report as report

# The module that defines each public name.
_NAMES = {
    "assessment.assess": "Assessment assess",
    "assessment.groups": "GroupTable by_group",
    "assessment.verdict": "Verdict",
    "curves.bias": "BiasTable bias_along",
    "curves.decisions": "DecisionCurve MurphyCurve RegretBand decision_curve murphy_curve",
    "curves.reliability": "Curve local_calibration_error reliability_curve",
    "curves.reliability_view": "PointMasses",
    "data.sketch": "Sketch",
    "errors": "CalibrantError MissingDependencyError SketchError",
    "inference.clinical": "ClinicalEstimate ClinicalSummary clinical_summary",
    "inference.compare": "Comparison compare",
    "inference.cumulative_tests": "TestResult certificate cumulative_test subpopulation_test",
    "inference.estimate": "Estimate estimate",
    "inference.heterogeneity": "Heterogeneity RandomEffects heterogeneity",
    "inference.hosmer_lemeshow": "HosmerLemeshowResult hosmer_lemeshow_test",
    "inference.joint_test": "CalibrationTest TestPart calibration_test",
    "inference.regret": "ThresholdRegret threshold_regret",
    "inference.sample_size": "NoiseFloor SampleSize noise_floor sample_size",
    "inference.slope_tests": "SlopeTestResult calibration_slope_test spiegelhalter_test",
    "io.sketching": "sketch",
    "measures.bin_table": "BinTable bin_table",
    "measures.binned": "ace ece mce soft_label_ece",
    "measures.cumulative": "CumulativeCurve cumulative_curve ecce_mad ecce_r",
    "measures.density": "density_ece",
    "measures.distance": (
        "DistanceBounds LipschitzWitness distance_bounds interval_error laplace_kernel_error "
        "weak_calibration_error weak_calibration_witness"
    ),
    "measures.kernel": "skce",
    "measures.logit": "logit_smoothed_ece",
    "measures.recommendation": "Recommendation recommend",
    "measures.registry": "error_bound",
    "measures.scores": "ScoreDecomposition brier_score log_score score_decomposition",
    "measures.smooth": "smooth_ece",
    "measures.subpopulation": "subpopulation_curve",
    "measures.two_bin": "averaged_two_bin_error",
    "reporting.html_page": "report",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
_SUBMODULES = ("datasets", "inference", "plot")
# These need more than calibrant does by itself, so that `from calibrant import *` leaves them out.
_WITH_EXTRAS = ("recalibration", "reporting")
_FROM_EXTRAS = {"calibration_gain": "recalibration"}

__all__ = ["__version__", *_MODULES, *_SUBMODULES]  # noqa: PLE0604  # all of them are text


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES or name in _WITH_EXTRAS:
        return import_module(f"calibrant.{name}")
    if name in _FROM_EXTRAS:
        return getattr(import_module(f"calibrant.{_FROM_EXTRAS[name]}"), name)
    if name in _MODULES:
        value = getattr(import_module(f"calibrant.{_MODULES[name]}"), name)
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
