"""Do predicted probabilities mean what they say: by how much not, where, and how sure are we.

Public names are loaded when first used, so ``import calibrant`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant._version import __version__

if TYPE_CHECKING:  # what type checkers and editors see; a test holds it equal to _ROOMS
    from calibrant.errors import CalibrantError, MissingDependencyError, SketchError
    from calibrant.measures.binned import ace, bin_table, ece, mce, soft_label_ece
    from calibrant.measures.scores import brier_score, log_score, score_decomposition
    from calibrant.results import BinTable, ScoreDecomposition

_ROOMS = {
    "errors": ("CalibrantError", "MissingDependencyError", "SketchError"),
    "measures.binned": ("ace", "bin_table", "ece", "mce", "soft_label_ece"),
    "measures.scores": ("brier_score", "log_score", "score_decomposition"),
    "results": ("BinTable", "ScoreDecomposition"),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}
_SUBMODULES = ("datasets",)

__all__ = [
    "BinTable",
    "CalibrantError",
    "MissingDependencyError",
    "ScoreDecomposition",
    "SketchError",
    "__version__",
    "ace",
    "bin_table",
    "brier_score",
    "datasets",
    "ece",
    "log_score",
    "mce",
    "score_decomposition",
    "soft_label_ece",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"calibrant.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    value = getattr(import_module(f"calibrant.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
