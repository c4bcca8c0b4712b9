"""Figure 2 of Posocco and Bonnefoy (2021), drawn again, and what the paper does not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from calibrant.papers._drawing import COLOURS, GREY, figure, legend_below
from calibrant.papers._ece_estimators import ESTIMATORS
from calibrant.papers._frame import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SETTINGS = {"confidence": "confidence", "classwise": "class-wise"}
# By setting, estimator and size.
Points = Mapping[tuple[str, str, int], Row]

_FAMILIES = {
    "legacy": GREY,
    "adaptive": COLOURS[1],
    "convex": COLOURS[0],
    "adaptive-convex": COLOURS[3],
    "density": COLOURS[2],
    "debiased": COLOURS[5],
    "smooth": COLOURS[4],
    "logit-smoothed": "#000000",
}
_STYLES = {
    "10": "-",
    "30": ":",
    "sqrt": "--",
    "15": "-.",
    "5": "--",
    "sweep": ":",
    "": "-",
    "silverman": "-",
    "0.1": "--",
    "0.033": ":",
}
_MARKERS = {"10": "o", "30": "^", "sqrt": "s", "silverman": "D", "0.1": "v", "0.033": "P"}


def figure_2(points: Points, names: Sequence[str]) -> Figure:
    """Draw errors against n: as the paper defines them, and as its code plots them."""
    what = {"relative": "relative to the truth", "absolute": "absolute"}
    drawn = figure(2, 2, 11, 9.2, sharex=True)
    for row, (setting, title) in enumerate(SETTINGS.items()):
        for axes, (measure, words) in zip(drawn.axes[2 * row :], what.items(), strict=False):
            _curves(axes, points, setting, names, measure)
            axes.set_yscale("log")
            axes.set_title(f"{title}, {words}", loc="left")
    for axes in drawn.axes[::2]:
        axes.set_ylabel("median 95th percentile of error")
    _finish(drawn, 5)
    return drawn


def compared_others(points: Points, names: Sequence[str]) -> Figure:
    """Draw errors above biases, a column a setting."""
    drawn = figure(2, 2, 11, 8.6, sharex=True)
    for column, (setting, title) in enumerate(SETTINGS.items()):
        above, below = drawn.axes[column], drawn.axes[2 + column]
        _curves(above, points, setting, names, "relative")
        above.set_yscale("log")
        above.set_title(title, loc="left")
        _curves(below, points, setting, names, "bias")
        below.axhline(0, color=GREY, linewidth=1)
    drawn.axes[0].set_ylabel("median 95th percentile of relative error")
    drawn.axes[2].set_ylabel("median relative bias")
    _finish(drawn, 4)
    return drawn


def _curves(axes: Axes, points: Points, setting: str, names: Sequence[str], measure: str) -> None:
    sizes = sorted({n for _, _, n in points})
    for name in names:
        one = ESTIMATORS[name]
        axes.plot(
            sizes,
            [getattr(points[setting, name, n], measure) for n in sizes],
            color=_FAMILIES[one.family],
            linestyle=_STYLES[one.parameter],
            marker=_MARKERS.get(one.parameter, "o"),
            markersize=3.5,
            linewidth=1.4,
            label=name,
        )
    axes.set_xscale("log")


def _finish(drawn: Figure, n_columns: int) -> None:
    """Write numbers along the axes, and put the legend below."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axes in drawn.axes:
        axes.xaxis.set_major_locator(FixedLocator([30, 50, 100, 200, 300, 500]))
        axes.xaxis.set_major_formatter(plain)
        axes.xaxis.set_minor_formatter(NullFormatter())
        if axes.get_yscale() == "log":
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
            axes.yaxis.set_major_formatter(plain)
            axes.yaxis.set_minor_formatter(NullFormatter())
    for axes in drawn.axes[2:]:
        axes.set_xlabel("rows in the evaluation set")
    legend_below(drawn, drawn.axes[0], n_columns)
