"""ECE against the number of bins, beside errors that have no bins to choose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import Locator, LogLocator, MaxNLocator

from calibrant import checks
from calibrant.arrays import FloatArray, IntArray
from calibrant.errors import CalibrantError
from calibrant.inference.estimate import estimate
from calibrant.inference.estimate_result import Estimate
from calibrant.measures.registry import measures
from calibrant.multiclass import one_problem
from calibrant.plot.canvas import axes_or_new
from calibrant.plot.models import ABOUT_ROWS, Model, read_models
from calibrant.plot.style import QUIET, SMALL, open_frame, palette
from calibrant.problem import Problem
from calibrant.results.result import Result
from calibrant.sketches.state import Sketch

__all__ = ["BinsSweep", "bins_sweep"]

_WIDTH, _HEIGHT = 5.4, 3.6
_MOST_BINS = 100
# Up to so many numbers of bins each have their own tick.
_FEW_COUNTS = 10
# LS-ECE is smooth in sigma: so many points of it are enough.
_SMOOTH_POINTS = 34
# More bins than this are shown on a logarithmic axis.
_MANY_BINS = 200
# What the names at the ends of lines take of the width, and of the height, each.
_ROOM, _LINE = 0.34, 0.06
_SMOOTHED = "LS-ECE, $\\sigma$ = 1/bins"


@dataclass(frozen=True, eq=False, repr=False)
class BinsSweep(Result):
    """Calibration errors at many numbers of bins.

    Attributes
    ----------
    n_bins
        The numbers of bins, increasing.
    uniform, quantile
        ECE over so many bins of equal width and of equal mass; nan where it is not known.
    logit_smoothed
        LS-ECE with sigma = 1 / n_bins, its counterpart; nan where it is not known or, being
        smooth, not asked for.
    smooth
        smECE with its interval, which knows of no bins.
    name
        The name of the model; empty where there is but one.
    """

    n_bins: IntArray
    uniform: FloatArray
    quantile: FloatArray
    logit_smoothed: FloatArray
    smooth: Estimate
    name: str = ""

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        n_bins: Iterable[int] | None = None,
        name: str = "",
        **options: Any,
    ) -> BinsSweep:
        """Measure errors at many numbers of bins; arguments are those of :func:`bins_sweep`."""
        return _measured(Model(name, y_true, y_prob, options), n_bins)

    def __repr__(self) -> str:
        span = f"{self.n_bins[0]} to {self.n_bins[-1]} bins"
        return f"BinsSweep({span}, ECE {self.uniform.min():.4g} to {self.uniform.max():.4g})"


def bins_sweep(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Axes | None = None,
    n_bins: Iterable[int] | None = None,
    **options: Any,
) -> Axes:
    """Draw ECE against the number of bins, with LS-ECE and smECE beside it.

    Where ECE depends on the number of bins, that number is what it measures. Errors without bins
    stand beside it: LS-ECE at sigma = 1 / bins, and smECE with its interval.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`; or a :class:`calibrant.Sketch`, which knows ECE and smECE
        alone; or a result, made by `BinsSweep.of`. For several models give a mapping from
        names: of predictions, in place of `y_prob`, or of sketches or results, in place of both.
    ax
        The Axes to draw on; without one a new figure is made that pyplot does not know of.
    n_bins
        The numbers of bins: 1 to 100 unless given, or those of them that divide a sketch's cells.
        Powers of two up to many more make a logarithmic axis.
    **options
        `sample_weight`, `multiclass`, `labels` and `pos_label`, and those of
        :func:`calibrant.estimate` for smECE, such as `level` and `rng`.

    Returns
    -------
    Axes
        The Axes drawn on.

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration" (2022), Figure 1. Chidambaram et al., "How
    Flawed Is ECE?" (2024), Figures 2 and 3.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> ax = bins_sweep(*load_flares(), n_bins=range(5, 51, 5))
    >>> ax.get_xlabel()
    'number of bins'
    """
    sweeps = [_gather(model, n_bins) for model in read_models(y_true, y_prob, options)]
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    if len(sweeps) == 1:
        _draw_one(ax, sweeps[0])
    else:
        _draw_several(ax, sweeps)
    return ax


def _gather(model: Model, n_bins: Iterable[int] | None) -> BinsSweep:
    """Return the errors of a model, measuring them unless they were given."""
    if not isinstance(model.y_true, BinsSweep):
        return _measured(model, n_bins)
    model.refuse_options("a BinsSweep")
    return replace(model.y_true, name=model.name or model.y_true.name)


def _measured(model: Model, n_bins: Iterable[int] | None) -> BinsSweep:
    model.check_options("bins_sweep", estimate, "bandwidth", "scale", "n_bins")
    counts = _read_counts(n_bins, model.y_true)
    # Read once: what many measures ask of it is then at hand.
    about = dict.fromkeys(ABOUT_ROWS) | model.about_rows()
    problem = one_problem(model.y_true, model.y_prob, **about)
    quantile, logit_smoothed = np.full((2, len(counts)), np.nan)
    # A sketch knows bins that divide its cells, and probabilities or logits but not both.
    if not isinstance(model.y_true, Sketch):
        quantile = _errors(problem, "ece", "n_bins", counts, strategy="quantile")
        some = slice(None, None, -(-len(counts) // _SMOOTH_POINTS))
        logit_smoothed[some] = _errors(problem, "logit_smoothed_ece", "sigma", 1 / counts[some])
    return BinsSweep(
        n_bins=counts,
        uniform=_errors(problem, "ece", "n_bins", counts),
        quantile=quantile,
        logit_smoothed=logit_smoothed,
        smooth=estimate("smooth_ece", model.y_true, model.y_prob, **model.options),
        name=model.name,
    )


def _errors(problem: Problem, measure: str, option: str, values: Any, **others: Any) -> FloatArray:
    """Return a measure at each value of one of its options."""
    read = measures()[measure].read
    asked = [read({option: value, **others}) for value in values.tolist()]
    return np.array([error(problem) for error in asked])


def _read_counts(n_bins: Any, y_true: Any) -> IntArray:
    if n_bins is not None:
        given = [*n_bins] if np.iterable(n_bins) else []
        if not given:
            raise CalibrantError("must hold numbers of bins", argument="n_bins", value=n_bins)
        return np.unique([checks.as_bins(k) for k in given])
    counts = np.arange(1, _MOST_BINS + 1)
    return counts[y_true.n_cells % counts == 0] if isinstance(y_true, Sketch) else counts


def _draw_one(ax: Axes, sweep: BinsSweep) -> None:
    colors, ink = palette(ax), rcParams["text.color"]
    parts = {
        "ECE, equal widths": (sweep.uniform, "-", colors[0]),
        "ECE, equal counts": (sweep.quantile, "--", colors[1]),
        _SMOOTHED: (sweep.logit_smoothed, "-.", colors[5]),
    }
    ends = {}
    for words, (values, style, color) in parts.items():
        known = np.isfinite(values)
        if known.any():
            ax.plot(sweep.n_bins[known], values[known], color=color, ls=style, lw=1.3)
            ends[words] = (float(values[known][-1]), color)
    smooth = sweep.smooth
    first, last = float(sweep.n_bins[0]), float(sweep.n_bins[-1])
    ax.fill_between((first, last), smooth.low, smooth.high, color=ink, alpha=0.12, lw=0)
    ax.plot((first, last), (smooth.value, smooth.value), color=ink, lw=2)
    ends[f"smECE, {100 * smooth.level:g}% interval"] = (smooth.value, ink)
    _frame(ax, sweep.n_bins)
    _name_ends(ax, last, ends)


def _draw_several(ax: Axes, sweeps: list[BinsSweep]) -> None:
    ends = {}
    for i, sweep in enumerate(sweeps):
        color = palette(ax)[i % len(palette(ax))]
        ax.plot(sweep.n_bins, sweep.uniform, color=color, lw=1.3)
        known = np.isfinite(sweep.logit_smoothed)
        ax.plot(sweep.n_bins[known], sweep.logit_smoothed[known], color=color, lw=1.3, ls="--")
        ax.plot(sweep.n_bins[[0, -1]], [sweep.smooth.value] * 2, color=color, lw=1.3, ls=":")
        ends[sweep.name] = (float(sweep.uniform[-1]), color)
    counts = np.unique(np.concatenate([sweep.n_bins for sweep in sweeps]))
    _frame(ax, counts)
    _name_ends(ax, float(counts[-1]), ends)
    handles = [Line2D([], [], color=QUIET, lw=1.3, ls=style) for style in ("-", "--", ":")]
    # Where the names of the lines are, next to their ends.
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (1 - _ROOM, 0)}
    ax.legend(
        handles,
        ["ECE", _SMOOTHED, "smECE"],
        frameon=False,
        fontsize=SMALL,
        borderaxespad=0,
        **place,
    )


def _frame(ax: Axes, counts: IntArray) -> None:
    """Set up both axes, leaving room for names to the right of the lines."""
    open_frame(ax)
    # Amid the numbers, not amid them and the names to their right.
    ax.set_xlabel("number of bins", x=(1 - _ROOM) / 2)
    ax.set_ylabel("calibration error")
    ax.set_ylim(bottom=0)
    first, last = float(counts[0]), float(counts[-1])
    if last > _MANY_BINS:
        ax.set_xscale("log")
        ax.set_xlim(first, last * (last / first) ** (_ROOM / (1 - _ROOM)))
        shown = counts if len(counts) <= _FEW_COUNTS else _within(LogLocator(), first, last)
        ax.set_xticks(shown, [str(int(k)) for k in shown])
        ax.set_xticks([], minor=True)
    else:
        reach = max(last - first, 1.0)
        ax.set_xlim(first - 0.02 * reach, last + _ROOM / (1 - _ROOM) * reach)
        ax.set_xticks(_within(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]), first, last))
    ax.spines["bottom"].set_bounds(first, last)


def _within(locator: Locator, first: float, last: float) -> FloatArray:
    ticks = np.asarray(locator.tick_values(first, last))
    return ticks[(ticks >= first) & (ticks <= last)]


def _name_ends(ax: Axes, last: float, ends: dict[str, tuple[float, Any]]) -> None:
    """Write names at the ends of lines, apart from each other, in the order of their heights."""
    low, high = ax.get_ylim()
    ordered = sorted(ends.items(), key=lambda item: item[1][0])
    heights = _spread([value for _, (value, _) in ordered], _LINE * (high - low))
    for (words, (_, color)), height in zip(ordered, heights, strict=True):
        ax.annotate(
            words,
            (last, height),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=color,
        )


def _spread(heights: list[float], gap: float) -> list[float]:
    """Return increasing heights moved apart by as little as that takes, and off the floor."""
    moved = np.array(heights)
    for _ in range(100):
        lacking = gap - np.diff(moved)
        if (lacking <= 1e-9 * gap).all():
            break
        push = np.maximum(lacking, 0.0) / 2
        moved[:-1] -= push
        moved[1:] += push
    return [float(height + max(gap - moved[0], 0.0)) for height in moved]
