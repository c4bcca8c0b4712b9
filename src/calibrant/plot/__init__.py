"""Results drawn with matplotlib: data or results in, an Axes out.

Every function takes `ax=`, the Axes to draw on, and returns it. Without one a new figure is made
that pyplot does not know of: nothing global changes, notebooks show the Axes that is returned, and
``ax.figure.savefig("diagram.pdf")`` saves it. To have ``plt.show()`` show it, pass an Axes of
pyplot's: ``ax=plt.gca()``. A call on an Axes that holds a diagram adds to it and removes nothing.

matplotlib is loaded when the first of these names is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; a test holds it equal to _HOMES
    from calibrant.curves.bins_sweep import BinsSweep
    from calibrant.plot.bias_plot import bias_along
    from calibrant.plot.cumulative_plot import cumulative
    from calibrant.plot.decisions_plot import decision_curve, murphy
    from calibrant.plot.forest_plot import forest
    from calibrant.plot.panels import assessment, small_multiples
    from calibrant.plot.reliability_plot import reliability
    from calibrant.plot.sweep_plot import bins_sweep

_HOMES = {
    "BinsSweep": "curves.bins_sweep",
    "assessment": "plot.panels",
    "bias_along": "plot.bias_plot",
    "bins_sweep": "plot.sweep_plot",
    "cumulative": "plot.cumulative_plot",
    "decision_curve": "plot.decisions_plot",
    "murphy": "plot.decisions_plot",
    "forest": "plot.forest_plot",
    "reliability": "plot.reliability_plot",
    "small_multiples": "plot.panels",
}

__all__ = [
    "BinsSweep",
    "assessment",
    "bias_along",
    "bins_sweep",
    "cumulative",
    "decision_curve",
    "forest",
    "murphy",
    "reliability",
    "small_multiples",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant.plot' has no attribute {name!r}")
    value = getattr(import_module(f"calibrant.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
