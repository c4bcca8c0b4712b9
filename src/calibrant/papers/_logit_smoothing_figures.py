"""The figures of Chidambaram et al. (2024), drawn again, and their theorems as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibrant.papers._drawing import COLOURS, GREY, MARKERS, figure, from_zero, legend_below
from calibrant.papers._frame import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def parity(samples: Sequence[Row], shrinking: Sequence[Row]) -> Figure:
    """Draw errors against bins (figure 2), and what becomes of the smoothed one further on."""
    drawn = figure(1, 2, 10.5, 4.4, sharey=True)
    bins, scales = drawn.axes
    for measure, colour in zip(dict.fromkeys(r.measure for r in samples), COLOURS, strict=False):
        own = [row for row in samples if row.measure == measure]
        m, mean = (np.array([getattr(row, x) for row in own]) for x in ("bins", "mean"))
        spread = np.array([row.deviation for row in own])
        bins.plot(m, mean, color=colour, linewidth=1, marker=".", markersize=3, label=measure)
        bins.fill_between(m, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
    own = [row for row in shrinking if row.population == "2-point"]
    scales.plot([1 / r.sigma for r in own], [r.value for r in own], color=COLOURS[1], marker=".")
    scales.axhline(own[0].ece, color=GREY, linestyle="--", linewidth=1)
    scales.axvline(100, color=GREY, linestyle=":", linewidth=1)
    scales.set_xscale("log")
    bins.set_xlabel("number of bins, or 1 / σ")
    bins.set_ylabel("error")
    scales.set_xlabel("1 / σ (dotted: where figure 2 ends; dashed: the ECE)")
    legend_below(drawn, bins, 3)
    return drawn


def networks(rows: Sequence[Row]) -> Figure:
    """Draw every network's binned and smoothed errors (as figure 3)."""
    drawn = figure(1, 2, 10.5, 4.4, sharey=True)
    for axes, noise in zip(drawn.axes, ("gaussian", "uniform"), strict=True):
        for network, colour in zip(dict.fromkeys(r.network for r in rows), COLOURS, strict=False):
            own = [row for row in rows if row.network == network]
            m = [row.bins for row in own]
            smoothed = [getattr(row, noise) for row in own]
            axes.plot(m, [row.ece for row in own], color=colour, label=f"{network}, ECE")
            axes.plot(m, smoothed, color=colour, linestyle="--", label=f"{network}, LS-ECE")
            axes.plot(m, [r.smece for r in own], color=colour, ls=":", label=f"{network}, smECE")
        axes.set_title(f"{noise} noise")
        axes.set_xlabel("number of bins, or 1 / σ")
    from_zero(drawn.axes[0])
    drawn.axes[0].set_ylabel("error")
    legend_below(drawn, drawn.axes[0], 2)
    return drawn


def differences(rows: Sequence[Row]) -> Figure:
    """Draw how far the errors are apart, averaged over networks (figures 4 and 5)."""
    drawn = figure(1, 2, 10.5, 4.2, sharey=True)
    m = list(dict.fromkeys(row.bins for row in rows))
    for axes, noise in zip(drawn.axes, ("gaussian", "uniform"), strict=True):
        labels = {noise: "abs(ECE - LS-ECE)", "smece": "abs(ECE - smECE)"}
        for (other, label), colour, marker in zip(labels.items(), COLOURS, MARKERS, strict=False):
            gaps = [
                [abs(row.ece - getattr(row, other)) for row in rows if row.bins == bins]
                for bins in m
            ]
            mean, spread = np.mean(gaps, axis=1), np.std(gaps, axis=1)
            axes.plot(m, mean, color=colour, marker=marker, markersize=4, label=label)
            axes.fill_between(m, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
        axes.set_title(f"{noise} noise")
        axes.set_xlabel("number of bins, or 1 / σ")
    from_zero(drawn.axes[0])
    drawn.axes[0].set_ylabel("mean over networks")
    legend_below(drawn, drawn.axes[0], 2)
    return drawn


def jumps(rows: Sequence[Row]) -> Figure:
    """Draw errors against the size of the perturbation (proposition 3.5)."""
    drawn = figure(1, 1, 7.5, 4.8)
    axes = drawn.axes[0]
    measures = dict.fromkeys(row.measure for row in rows)
    for measure, colour, marker in zip(measures, COLOURS, MARKERS, strict=False):
        own = {row.cells: row.value for row in rows if row.measure == measure}
        unmoved = own.pop(0)
        delta = 1 / np.array(list(own))
        axes.plot(delta, list(own.values()), color=colour, marker=marker, ms=4, label=measure)
        axes.axhline(unmoved, color=colour, linestyle=":", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.invert_xaxis()
    axes.set_xlabel("δ: predictions differ from x₁ by less (dotted: the error of x₁)")
    axes.set_ylabel("error")
    legend_below(drawn, axes, 3)
    return drawn


def convergence(shrinking: Sequence[Row], rows: Sequence[Row]) -> Figure:
    """Draw populations against the scale, and samples against n (theorem 5.4)."""
    drawn = figure(1, 2, 10.5, 4.8, sharey=True)
    scales, sizes = drawn.axes
    populations = list(dict.fromkeys(r.population for r in shrinking if r.population != "2-point"))
    for population, colour in zip(populations, COLOURS, strict=False):
        own = [row for row in shrinking if row.population == population]
        scales.plot([r.sigma for r in own], [r.value for r in own], color=colour, label=population)
        scales.axhline(own[0].ece, color=colour, linestyle=":", linewidth=1)
        for rule, marker in zip(dict.fromkeys(r.rule for r in rows), MARKERS, strict=False):
            drawn_rows = [r for r in rows if (r.population, r.rule) == (population, rule)]
            if drawn_rows:
                n, mean, spread = (
                    np.array([getattr(r, x) for r in drawn_rows])
                    for x in ("n", "mean", "deviation")
                )
                sizes.errorbar(
                    n, mean, spread, color=colour, marker=marker, ms=4, label=f"σ = {rule}"
                )
                sizes.axhline(drawn_rows[0].ece, color=colour, linestyle=":", linewidth=1)
    scales.set_xscale("log")
    scales.invert_xaxis()
    sizes.set_xscale("log", base=2)
    scales.set_title("populations")
    sizes.set_title("samples")
    scales.set_xlabel("σ (dotted: the ECE)")
    sizes.set_xlabel("n (circles: σ = n^(-1/3), squares: σ = 1/n)")
    scales.set_ylabel("LS-ECE")
    scales.set_ylim(0, 1.08 * max(axes.dataLim.ymax for axes in drawn.axes))
    legend_below(drawn, scales, 3)
    return drawn
