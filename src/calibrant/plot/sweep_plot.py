"""ECE against the number of bins, beside errors without bins: how far it depends on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, IntArray, TabularResult
from calibrant.data import validation
from calibrant.data.classes import ROW_OPTIONS, RowOptions, one_problem
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.formatting import percent
from calibrant.inference.estimate import Estimate, estimate
from calibrant.measures.registry import measures
from calibrant.plot.common import (
    MUTED,
    SMALL,
    Model,
    axes_or_new,
    despine,
    palette,
    read_models,
    resolve_colors,
    spread_out,
    ticks_within,
)

_WIDTH, _HEIGHT = 5.4, 3.6
# The numbers of bins by default, and about how many points of LS-ECE, which is smooth in sigma.
_MAX_BINS, _SMOOTH_POINTS = 100, 34
# Up to so many numbers of bins each have their own tick.
_FEW_COUNTS = 10
# More bins than this are shown on a logarithmic axis.
_MANY_BINS = 200
# The fraction of the width that is for names at the ends of lines, and of the height for each.
_FOR_NAMES, _LINE = 0.34, 0.06
_SMOOTHED = "LS-ECE, $\\sigma$ = 1/bins"
# The height at which the line of a name ends, and its colour.
Ends = dict[str, tuple[float, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class BinsSweep(TabularResult):
    """Calibration errors at many numbers of bins.

    Attributes
    ----------
    n_bins
        The numbers of bins, increasing.
    uniform, quantile
        ECE over bins of equal width and of equal weight; nan where unknown.
    logit_smoothed
        LS-ECE with sigma = 1 / n_bins, its counterpart; nan where unknown or, as it is smooth in
        sigma, not computed.
    smooth
        smECE with its interval, which has no bins.
    name
        The name of the model; empty where there is only one.
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
        """Measure errors at many numbers of bins; `options` are those of the estimate of smECE."""
        known = (*validation.keywords(estimate), "bandwidth", "scale", "n_bins")
        validation.check_options(options, known, "bins_sweep")
        problem = one_problem(y_true, y_prob, *map(options.get, ROW_OPTIONS))
        counts = _read_counts(n_bins, problem)
        quantile, logit_smoothed = np.full((2, len(counts)), np.nan)
        # A sketch has the bins that divide its cells, and probabilities or logits but not both.
        if problem.is_exact:
            quantile = _errors(problem, "ece", "n_bins", counts, strategy="quantile")
            some = slice(None, None, -(-len(counts) // _SMOOTH_POINTS))
            logit_smoothed[some] = _errors(problem, "logit_smoothed_ece", "sigma", 1 / counts[some])
        return cls(
            n_bins=counts,
            uniform=_errors(problem, "ece", "n_bins", counts),
            quantile=quantile,
            logit_smoothed=logit_smoothed,
            smooth=estimate("smooth_ece", problem, **options),
            name=name,
        )

    def _printed(self) -> list[str]:
        span = f"{self.n_bins[0]} to {self.n_bins[-1]} bins"
        return [f"BinsSweep({span}, ECE {self.uniform.min():.4g} to {self.uniform.max():.4g})"]


def _errors(problem: Problem, measure: str, option: str, values: Any, **others: Any) -> FloatArray:
    """Return a measure at each value of one of its options."""
    read = measures()[measure].read
    asked = [read({option: value, **others}) for value in values.tolist()]
    return np.array([error(problem) for error in asked])


def _read_counts(n_bins: Any, problem: Problem) -> IntArray:
    if n_bins is not None:
        given = [*n_bins] if np.iterable(n_bins) else []
        if not given:
            raise CalibrantError("must hold numbers of bins", argument="n_bins", value=n_bins)
        return np.unique([validation.as_bins(k) for k in given])
    counts = np.arange(1, _MAX_BINS + 1)
    return counts if problem.is_exact else counts[round(1 / problem.cell_width) % counts == 0]


class EstimateOptions(RowOptions, total=False):
    """Options of :func:`calibrant.estimate` for smECE."""

    level: float
    n_resamples: int
    rng: int | Generator
    clusters: ArrayLike | None
    bandwidth: float | None
    scale: Any


def bins_sweep(
    y_true: ArrayLike | Sketch | BinsSweep | Mapping[str, Sketch | BinsSweep],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
    n_bins: Iterable[int] | None = None,
    **options: Unpack[EstimateOptions],
) -> Axes:
    """Draw ECE against the number of bins, with LS-ECE and smECE beside it.

    It shows how far ECE depends on bins. LS-ECE, at sigma = 1 / bins, and smECE have none.

    Parameters
    ----------
    y_true : array_like, Sketch, result or mapping of them
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes. Or in place of both
        arrays a sketch or a result, or for several models a mapping from names to these.

        A sketch gives ECE and smECE alone. Results are those of `BinsSweep.of`.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    n_bins : iterable of int, optional
        Numbers of bins: 1 to 100 by default, or those of them that divide the cells of a sketch. A
        maximum above 200 makes the axis logarithmic.
    **options
        Explained in :func:`calibrant.estimate`, for smECE: `level`, `n_resamples`, `rng`,
        `clusters`, `bandwidth`, `scale`, `sample_weight`, `multiclass`, `labels` and `pos_label`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn on.

    See Also
    --------
    calibrant.ece, calibrant.logit_smoothed_ece, calibrant.smooth_ece : The errors.

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
    models = read_models(y_true, y_prob, options)
    sweeps = [_gather(model, n_bins) for model in models]
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    ends = _draw_one(ax, sweeps[0]) if len(sweeps) == 1 else _draw_several(ax, sweeps)
    counts = np.unique(np.concatenate([sweep.n_bins for sweep in sweeps]))
    _frame(ax, counts)
    _label_ends(ax, float(counts[-1]), ends)
    return ax


def _gather(model: Model, n_bins: Iterable[int] | None) -> BinsSweep:
    """Return the errors of a model, from rows or as they were given."""
    given, name = model.result(BinsSweep), model.name
    if given is not None:
        return replace(given, name=name or given.name)
    return BinsSweep.of(model.y_true, model.y_prob, n_bins=n_bins, name=name, **model.options)


def _draw_one(ax: Axes, sweep: BinsSweep) -> Ends:
    colors, ink = palette(ax), rcParams["text.color"]
    parts = {
        "ECE, equal width": (sweep.uniform, "-", colors[0]),
        "ECE, equal mass": (sweep.quantile, "--", colors[1]),
        _SMOOTHED: (sweep.logit_smoothed, "-.", colors[5]),
    }
    ends = {}
    for label, (values, style, color) in parts.items():
        known = np.isfinite(values)
        if known.any():
            ax.plot(sweep.n_bins[known], values[known], color=color, ls=style, lw=1.3)
            ends[label] = (float(values[known][-1]), color)
    smooth, reach = sweep.smooth, sweep.n_bins[[0, -1]]
    ax.fill_between(reach, smooth.low, smooth.high, color=ink, alpha=0.12, lw=0)
    ax.plot(reach, [smooth.value] * 2, color=ink, lw=2)
    ends[f"smECE, {percent(smooth.level)} interval"] = (smooth.value, ink)
    return ends


def _draw_several(ax: Axes, sweeps: list[BinsSweep]) -> Ends:
    ends = {}
    for sweep, color in zip(sweeps, resolve_colors(ax, [None] * len(sweeps)), strict=True):
        ax.plot(sweep.n_bins, sweep.uniform, color=color, lw=1.3)
        known = np.isfinite(sweep.logit_smoothed)
        ax.plot(sweep.n_bins[known], sweep.logit_smoothed[known], color=color, lw=1.3, ls="--")
        ax.plot(sweep.n_bins[[0, -1]], [sweep.smooth.value] * 2, color=color, lw=1.3, ls=":")
        ends[sweep.name] = (float(sweep.uniform[-1]), color)
    handles = [Line2D([], [], color=MUTED, lw=1.3, ls=style) for style in ("-", "--", ":")]
    # Below the names at the ends of the lines.
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (1 - _FOR_NAMES, 0)}
    labels = ["ECE", _SMOOTHED, "smECE"]
    ax.legend(handles, labels, frameon=False, fontsize=SMALL, borderaxespad=0.5, **place)
    return ends


def _frame(ax: Axes, counts: IntArray) -> None:
    """Set up both axes, with space for names to the right of the lines."""
    despine(ax)
    # Below the numbers, not below the names to their right.
    ax.set_xlabel("number of bins", x=(1 - _FOR_NAMES) / 2)
    ax.set_ylabel("calibration error")
    ax.set_ylim(bottom=0)
    first, last = float(counts[0]), float(counts[-1])
    if last > _MANY_BINS:
        ax.set_xscale("log")
        ax.set_xlim(first, last * (last / first) ** (_FOR_NAMES / (1 - _FOR_NAMES)))
        shown = counts if len(counts) <= _FEW_COUNTS else ticks_within(LogLocator(), first, last)
        ax.set_xticks(shown, [str(int(k)) for k in shown])
        ax.set_xticks([], minor=True)
    else:
        reach = max(last - first, 1.0)
        ax.set_xlim(first - 0.02 * reach, last + _FOR_NAMES / (1 - _FOR_NAMES) * reach)
        locator = MaxNLocator(6, integer=True, steps=[1, 2, 5, 10])
        ax.set_xticks(ticks_within(locator, first, last))
    ax.spines["bottom"].set_bounds(first, last)


def _label_ends(ax: Axes, last: float, ends: Ends) -> None:
    """Write names at the ends of lines, apart from each other, in the order of their heights."""
    low, high = ax.get_ylim()
    gap = _LINE * (high - low)
    ordered = sorted(ends.items(), key=lambda item: item[1][0])
    heights = spread_out(np.array([value for _, (value, _) in ordered]), gap)
    heights += max(gap - heights[0], 0.0)  # above 0
    style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": SMALL}
    for (label, (_, color)), height in zip(ordered, heights.tolist(), strict=True):
        ax.annotate(label, (last, height), xytext=(5, 0), color=color, **style)
