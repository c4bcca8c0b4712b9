"""The figures of Arrieta-Ibarra et al. (2022), drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant.arrays import AnyArray, FloatArray
from calibrant.papers._drawing import (
    COLOURS,
    GREY,
    LIGHT,
    MARKERS,
    figure,
    from_zero,
    legend_below,
)
from calibrant.papers._frame import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCORES = {"identity": "equispaced", "square": "squared", "sqrt": "square rooted"}
_BOOTSTRAPPED_CURVES = 20
_MINOR_TICKS = 100


def binned(rows: Sequence[Row]) -> Figure:
    """Draw both errors against the number of bins, for both kinds of bins (figures 1, 35, 36)."""
    drawn = figure(2, 2, 9, 6.4, sharex=True, sharey="row")
    places = [(error, kind) for error in ("ece1", "ece2") for kind in ("equispaced", "equal count")]
    for axes, (error, kind) in zip(drawn.axes, places, strict=True):
        for transform, colour, marker in zip(SCORES, COLOURS, MARKERS, strict=False):
            own = [row for row in rows if (row.data, row.bins) == (transform, kind)]
            values = [getattr(row, error) for row in own]
            axes.plot(
                [row.m for row in own],
                values,
                marker=marker,
                color=colour,
                markersize=4,
                label=f"{SCORES[transform]} scores",
            )
        axes.set_xscale("log", base=2)
    for axes in drawn.axes[::2]:
        axes.set_ylim(bottom=0)
    for axes, title in zip(drawn.axes[:2], ("equispaced bins", "bins of equal count"), strict=True):
        axes.set_title(title)
    for axes in drawn.axes[2:]:
        axes.set_xlabel("number of bins m")
    drawn.axes[0].set_ylabel("ECE¹")
    drawn.axes[2].set_ylabel("ECE²")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def walk(y: AnyArray, p: FloatArray, chance: FloatArray) -> Figure:
    """Draw what was observed above what is expected (figure 7)."""
    drawn = figure(2, 1, 7.5, 7.2)
    sigma = cb.cumulative_curve(y, p).sigma
    for axes, outcomes, name in zip(drawn.axes, (y, chance), ("observed", "expected"), strict=True):
        _cumulative(axes, outcomes, p, sigma, n_labels=10)
        axes.set_title(name, loc="left", fontweight="bold")
    return drawn


def growing(
    rows: Sequence[Row],
    measures: tuple[str, str],
    labels: tuple[str, str],
    levels: dict[str, float],
) -> Figure:
    """Draw means over data sets against n, calibrated above the staircase (figures 8 to 10)."""
    drawn = figure(2, 2, 9, 6.4, sharex=True)
    places = [
        (outcomes, measure) for outcomes in ("calibrated", "staircase") for measure in measures
    ]
    for axes, (outcomes, measure) in zip(drawn.axes, places, strict=True):
        for transform, colour, marker in zip(SCORES, COLOURS, MARKERS, strict=False):
            own = [
                r
                for r in rows
                if (r.outcomes, r.measure, r.transform) == (outcomes, measure, transform)
            ]
            n, mean = [row.n for row in own], np.array([row.mean for row in own])
            noise = np.array([row.deviation / row.data_sets**0.5 for row in own])
            axes.fill_between(n, mean - noise, mean + noise, color=colour, alpha=0.2, linewidth=0)
            label = f"{SCORES[transform]} scores"
            axes.plot(n, mean, marker=marker, color=colour, markersize=4, label=label)
        if outcomes == "calibrated" and measure in levels:
            axes.axhline(levels[measure], color=GREY, linestyle="--", linewidth=1)
        axes.set_xscale("log", base=2)
        from_zero(axes)
        axes.set_title(f"{labels[measures.index(measure)]}, {outcomes}", loc="left")
    for axes in drawn.axes[2:]:
        axes.set_xlabel("sample size n")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def network(y: AnyArray, p: FloatArray, rows: Sequence[Row], n_bins: int) -> Figure:
    """Draw errors against bins, a reliability diagram and the walk (figures 31, 33, 34)."""
    drawn = figure(1, 3, 13, 4.4)
    against_bins, reliability, cumulated = drawn.axes
    for kind, colour, marker in zip(("equispaced", "equal count"), COLOURS, MARKERS, strict=False):
        own = [row for row in rows if row.bins == kind]
        against_bins.plot(
            [row.m for row in own],
            [row.ece1 for row in own],
            marker=marker,
            color=colour,
            markersize=4,
            label=f"{kind} bins",
        )
    against_bins.set_xscale("log", base=2)
    from_zero(against_bins)
    against_bins.set(xlabel="number of bins m", title="ECE¹")
    against_bins.legend(frameon=False)
    rng = np.random.default_rng(0)
    for _ in range(_BOOTSTRAPPED_CURVES):
        again = rng.integers(0, len(p), len(p))
        _mean_outcomes(reliability, y[again], p[again], n_bins, color=LIGHT, linewidth=0.8)
    reliability.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    _mean_outcomes(reliability, y, p, n_bins, color=COLOURS[0], linewidth=1.2)
    reliability.set(
        xlabel="mean confidence", ylabel="accuracy", title=f"{n_bins} bins of equal count"
    )
    _cumulative(cumulated, y, p, cb.cumulative_curve(y, p).sigma, n_labels=5)
    return drawn


def _mean_outcomes(axes: Axes, y: AnyArray, p: FloatArray, n_bins: int, **style: Any) -> None:
    table = cb.bin_table(y, p, n_bins=n_bins, strategy="quantile")
    axes.plot(table.mean_pred, table.mean_true, **style)


def _cumulative(axes: Axes, y: AnyArray, p: FloatArray, sigma: float, n_labels: int) -> None:
    """Draw cumulative differences, with a triangle four sigma high at the origin."""
    curve = cb.cumulative_curve(y, p)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.plot(curve.fraction, curve.deviation, color=COLOURS[0], linewidth=1)
    axes.fill([0, 0, 0.025], [-2 * sigma, 2 * sigma, 0], color="black", linewidth=0)
    at = np.arange(n_labels) / n_labels
    score = np.interp(at, curve.fraction, curve.score)
    axes.set_xticks(at, [f"{value:.2f}" for value in score])
    levels = np.arange(1, _MINOR_TICKS) / _MINOR_TICKS
    # How scores are spread: as many ticks at every score would be drawn one by one.
    ticks = np.interp(levels, curve.score, curve.fraction)
    below = axes.get_xaxis_transform()
    axes.plot(ticks, np.zeros_like(ticks), "|", color="black", markersize=5, transform=below)
    axes.set_xlim(0, 1)
    axes.set(xlabel="score", ylabel="cumulative difference")
    upper = axes.secondary_xaxis("top")
    upper.set_xlabel("share of rows k/n")
