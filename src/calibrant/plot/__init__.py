"""Results drawn with matplotlib: data or results in, an Axes out.

Every function takes `ax=`, the Axes to draw on, and returns it. Without one a new figure is made
that pyplot does not know of: nothing global changes, notebooks show the Axes that is returned, and
``ax.figure.savefig("diagram.pdf")`` saves it. To have ``plt.show()`` show it, hand over an Axes of
pyplot's: ``ax=plt.gca()``.

matplotlib is loaded when the first of these names is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; a test holds it equal to _HOMES
    from calibrant.plot.along import bias_along
    from calibrant.plot.cumulative_plot import cumulative
    from calibrant.plot.multiples import small_multiples
    from calibrant.plot.overview import assessment
    from calibrant.plot.reliability_diagram import reliability
    from calibrant.plot.sweep import BinsSweep, bins_sweep

_HOMES = {
    "BinsSweep": "sweep",
    "assessment": "overview",
    "bias_along": "along",
    "bins_sweep": "sweep",
    "cumulative": "cumulative_plot",
    "reliability": "reliability_diagram",
    "small_multiples": "multiples",
}

__all__ = [
    "BinsSweep",
    "assessment",
    "bias_along",
    "bins_sweep",
    "cumulative",
    "reliability",
    "small_multiples",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant.plot' has no attribute {name!r}")
    value = getattr(import_module(f"calibrant.plot.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
