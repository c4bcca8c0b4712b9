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
    from calibrant.plot.bias_plot import bias_along as bias_along
    from calibrant.plot.cumulative_plot import cumulative as cumulative
    from calibrant.plot.decisions_plot import decision_curve as decision_curve
    from calibrant.plot.decisions_plot import murphy as murphy
    from calibrant.plot.interval_plot import forest as forest
    from calibrant.plot.panels import assessment as assessment
    from calibrant.plot.panels import small_multiples as small_multiples
    from calibrant.plot.reliability_plot import reliability as reliability
    from calibrant.plot.sweep_plot import BinsSweep as BinsSweep
    from calibrant.plot.sweep_plot import bins_sweep as bins_sweep

_HOMES = {
    "BinsSweep": "sweep_plot",
    "assessment": "panels",
    "bias_along": "bias_plot",
    "bins_sweep": "sweep_plot",
    "cumulative": "cumulative_plot",
    "decision_curve": "decisions_plot",
    "forest": "interval_plot",
    "murphy": "decisions_plot",
    "reliability": "reliability_plot",
    "small_multiples": "panels",
}

__all__ = [*_HOMES]  # noqa: PLE0604  # all of them are text


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant.plot' has no attribute {name!r}")
    value = getattr(import_module(f"calibrant.plot.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
