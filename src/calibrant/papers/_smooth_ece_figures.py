"""The figures of Błasiok and Nakkiran (2023), drawn again, and their theorems as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant.arrays import AnyArray, FloatArray
from calibrant.datasets import SCENARIOS, simulate
from calibrant.papers._drawing import COLOURS, GREY, LIGHT, MARKERS, figure, legend_below
from calibrant.papers._frame import Row
from calibrant.papers._smooth_ece_data import (
    BUNDLED,
    MOVED_BINS,
    MOVED_SIZE,
    SKEWED_SIZE,
    moved_sample,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SEED = 0
_TITLES = {
    "resnet34": "2a, ResNet-34",
    "flares DAFFS": "2b, solar flares",
    "rain": "2c, rain in Finland",
}


def diagrams() -> Figure:
    """Draw each data set twice, binned and smooth (figure 2)."""
    sets = {title: tuple(BUNDLED[name]()) for name, title in _TITLES.items()}
    sets["2d, synthetic"] = tuple(simulate("skewed", SKEWED_SIZE, rng=_SEED))
    drawn = figure(len(sets), 2, 8.5, 3.9 * len(sets))
    pairs = zip(drawn.axes[::2], drawn.axes[1::2], sets.items(), strict=True)
    for left, right, (title, (y, p)) in pairs:
        _binned(left, y, p, n_bins="cv")
        _smooth(right, y, p)
        left.set_title(title, loc="left")
    t = np.linspace(0, 1, 1001)
    for axes in drawn.axes[-2:]:
        chance = SCENARIOS["skewed"].outcome_probability(t)
        axes.plot(t, chance, color=COLOURS[2], linewidth=1.2, linestyle="--", zorder=5)
    return drawn


def moves() -> Figure:
    """Draw three samples, each moved a little, and both diagrams of each (figure 3)."""
    drawn = figure(3, 3, 13, 11, height_ratios=(0.5, 1, 1))
    for i in range(3):
        scores, smooth, binned = drawn.axes[i::3]
        y, p = moved_sample(i + 1, MOVED_SIZE, np.random.default_rng(_SEED))
        jitter = np.random.default_rng(_SEED + 1).uniform(-0.2, 0.2, len(p))
        for outcome in (0, 1):
            own = y == outcome
            scores.plot(
                p[own], outcome + jitter[own], ".", color=COLOURS[1 - outcome], markersize=2.5
            )
        scores.set_yticks([0, 1])
        scores.set_title(f"distribution {i + 1}")
        _smooth(smooth, y, p)
        _binned(binned, y, p, n_bins=MOVED_BINS)
    drawn.axes[0].set_ylabel("outcome")
    return drawn


def _smooth(axes: Axes, y: AnyArray, p: FloatArray) -> None:
    cb.plot.reliability(y, p, ax=axes, note=False, margin=False, limits=(0, 1))
    axes.set_title(f"smECE {cb.smooth_ece(y, p):.4f}", loc="right", fontsize="medium")


def _binned(axes: Axes, y: AnyArray, p: FloatArray, n_bins: int | Literal["cv"]) -> None:
    table = cb.bin_table(y, p, n_bins=n_bins)
    cb.plot.reliability(table, ax=axes, note=False, margin=False, limits=(0, 1))
    words = f"ECE {cb.ece(y, p, n_bins=n_bins):.4f}, {len(table.edges) - 1} bins"
    axes.set_title(words, loc="right", fontsize="medium")


def consistency(rows: Sequence[Row]) -> Figure:
    """Draw smECE against the distance to calibration, between the bounds of theorem 6."""
    drawn = figure(1, 1, 7.5, 5.6)
    axes = drawn.axes[0]
    d = np.geomspace(1e-6, 1, 200)
    axes.fill_between(d, d / 2, 2 * np.sqrt(d), color=LIGHT, alpha=0.5, linewidth=0)
    axes.plot(d, 2 * np.sqrt(d), color=GREY, linewidth=1, label="2 √dCE")
    axes.plot(d, d / 2, color=GREY, linewidth=1, linestyle="--", label="dCE / 2")
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault("bundled data" if row.family in BUNDLED else row.family, []).append(row)
    for (family, own), colour, marker in zip(families.items(), COLOURS, MARKERS, strict=False):
        low, high = np.array([(row.lower, row.upper) for row in own]).T
        smece = [row.smece for row in own]
        size, order = (2.5, 2) if family == "random" else (4.5, 3)
        axes.hlines(smece, low, high, color=colour, linewidth=0.8)
        middle = np.sqrt(low * high)
        axes.plot(middle, smece, marker, color=colour, ms=size, zorder=order, label=family)
    axes.set(xscale="log", yscale="log", xlim=(1e-6, 1), ylim=(1e-6, 1))
    axes.set_xlabel("distance to calibration dCE (bars: between its bounds)")
    axes.set_ylabel("smECE")
    legend_below(drawn, axes, 4)
    return drawn


def sample_sizes(rows: Sequence[Row], titles: dict[str, str]) -> Figure:
    """Draw errors of samples against their size, plain and in units of the bound (theorem 9)."""
    drawn = figure(2, 2, 9.5, 7.4, sharex=True, sharey="row")
    starts = list(dict.fromkeys(row.start for row in rows))
    for column, population in enumerate(titles):
        plain, scaled = drawn.axes[column], drawn.axes[2 + column]
        for start, colour, marker in zip(starts, COLOURS, MARKERS, strict=False):
            own = [row for row in rows if (row.population, row.start) == (population, start)]
            m, found = (np.array([getattr(row, x) for row in own]) for x in ("m", "quantile"))
            is_fixed = not _is_number(start)
            label = "in the fixed point" if is_fixed else f"from s₀ = {start} on"
            style: dict[str, Any] = {
                "color": colour,
                "marker": marker,
                "markersize": 4,
                "label": label,
            }
            plain.plot(m, found, **style)
            if not is_fixed:
                scaled.plot(m, found * np.sqrt(m * float(start)), **style)
        plain.plot(m, 4 / np.sqrt(m), color=GREY, linestyle=":", label="slope -1/2")
        plain.set_title(titles[population])
        plain.set_xscale("log", base=2)
        plain.set_yscale("log")
        scaled.set_xlabel("rows m")
    drawn.axes[2].set_ylim(bottom=0)
    drawn.axes[0].set_ylabel("largest error in 2 of 3 samples")
    drawn.axes[2].set_ylabel("times √(m s₀)")
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def _is_number(text: str) -> bool:
    return text[0].isdigit()
