"""Numbers with their intervals one below the other: measures, models, groups, and forest plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from calibrant.data import validation
from calibrant.errors import CalibrantError
from calibrant.formatting import percent, shortened
from calibrant.inference.estimate import Estimate
from calibrant.inference.heterogeneity import Heterogeneity
from calibrant.plot.common import (
    DASHES,
    LINE_WIDTH,
    MUTED,
    SMALL,
    axes_or_new,
    despine,
    palette,
    resolve_colors,
)

# Inches of a figure, of intervals and of a forest: its width, the height of a row, and the rest.
_INTERVALS, _FOREST = (6.4, 0.32, 0.9), (5.6, 0.21, 1.0)
# The names of the axis and of the heading, and what a calibrated model has.
_NAMES = {
    "o_e": ("O:E ratio", "O:E", 1.0),
    "intercept": ("calibration intercept", "intercept", 0.0),
    "slope": ("calibration slope", "slope", 1.0),
}
# The area of a square that holds most of the precision, the least of one, and half the height of
# the diamond, in square points and rows.
_AREA, _LEAST_AREA, _HALF = 60.0, 6.0, 0.32
_MOST_NAME = 24
# A logarithmic axis whose ends are closer, as a ratio, has more ticks.
_FINE_RANGE = 10.0
# The row of the headings.
_HEAD = -0.9


def draw_intervals(
    ax: Axes | None,
    names: Sequence[str],
    estimates: Sequence[Estimate],
    label: str,
    filled: Sequence[bool] | None = None,
) -> Axes:
    """Draw estimates one below the other: bias-corrected, with intervals, and raw values.

    Without an Axes, on a new one that is high enough for them.
    """
    width, height, rest = _INTERVALS
    ax = axes_or_new(ax, width, height * len(estimates) + rest)
    despine(ax)
    color = palette(ax)[0]
    rows = np.arange(len(estimates))[::-1]
    low, high = ([getattr(one, end) for one in estimates] for end in ("low", "high"))
    ax.hlines(rows, low, high, color=color, lw=LINE_WIDTH)
    style: dict[str, Any] = {"ls": "none", "clip_on": False, "color": color}
    is_filled = np.zeros(len(rows), dtype=bool) if filled is None else np.asarray(filled)
    values = np.array([one.bias_corrected for one in estimates])
    for chosen, face in ((~is_filled, "white"), (is_filled, color)):
        if chosen.any():
            ax.plot(values[chosen], rows[chosen], "o", ms=5, mfc=face, mew=LINE_WIDTH, **style)
    ax.plot([one.value for one in estimates], rows, "|", ms=8, **style)
    ax.set_yticks(rows, [shortened(name) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.6, len(estimates) - 0.4)
    if min(low) >= 0:
        ax.set_xlim(left=0)
    ax.set_xlabel(label)
    return ax


def forest(
    result: Heterogeneity,
    *,
    measure: Literal["o_e", "intercept", "slope"] = "o_e",
    ax: Axes | None = None,
    color: Any = None,
) -> Axes:
    """Draw a forest plot: one interval per centre, the mean, and what a new centre may have.

    Beside the names stand the numbers of events and of rows. Squares are larger the more precise
    the estimate of a centre is. The diamond is the mean over centres with its confidence interval
    and the standard deviation tau of centres, of O:E on the log scale; the bar below it is the
    prediction interval for a new centre. Centres without an estimate are listed with a dash.

    Parameters
    ----------
    result : Heterogeneity
        What :func:`calibrant.heterogeneity` returned.
    measure : {"o_e", "intercept", "slope"}
        The measure to draw; O:E on a logarithmic axis.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    color : color, optional
        Colour of the curve.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn on.

    See Also
    --------
    calibrant.heterogeneity : The numbers of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.datasets import simulate
    >>> from calibrant import heterogeneity
    >>> y, p = simulate("perfect", 1000, rng=1)
    >>> forest(heterogeneity(y, p, np.arange(1000) % 5)).get_xlabel()
    'O:E ratio'
    """
    if not isinstance(result, Heterogeneity):
        raise CalibrantError(
            "must be what heterogeneity returned", argument="result", value=type(result)
        )
    validation.check_choice(measure, "measure", _NAMES)
    n_rows = len(result.centres)
    width, height, rest = _FOREST
    ax = axes_or_new(ax, width, height * (n_rows + 3) + rest)
    (mean_color,) = resolve_colors(ax, [color])
    name, _, perfect = _NAMES[measure]
    despine(ax)
    ax.spines["left"].set_visible(False)
    if measure == "o_e":
        ax.set_xscale("log")
    ax.axvline(perfect, color=MUTED, lw=0.8, ls=DASHES, zorder=1)
    _draw_centres(ax, result, measure)
    _draw_mean(ax, result, measure, mean_color)
    _write_rows(ax, result, measure)
    ax.set_xlabel(name)
    ax.set_ylim(n_rows + 2.2, -1.2)
    if measure == "o_e":
        low, high = ax.get_xlim()
        fine = high < _FINE_RANGE * low
        subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if fine else (1.0, 2.0, 5.0)
        ax.xaxis.set_major_locator(LogLocator(subs=subs))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
    return ax


def _draw_centres(ax: Axes, result: Heterogeneity, measure: str) -> None:
    found = [getattr(row, measure) for row in result.centres]
    value, low, high = (
        np.array([getattr(one, end) for one in found]) for end in ("value", "low", "high")
    )
    if measure == "o_e":
        # Without events the lower end is 0, which a logarithmic axis has not.
        value, low = (np.where(v > 0, v, np.nan) for v in (value, low))
    at = np.arange(len(found))
    ax.hlines(at, low, high, color="0.4", lw=LINE_WIDTH, zorder=2)
    width = np.log(high / low) if measure == "o_e" else high - low
    precision = np.nan_to_num(1 / width**2)
    area = np.maximum(_AREA * precision / max(precision.max(), 1e-300), _LEAST_AREA)
    ax.scatter(value, at, s=area, marker="s", color="0.4", lw=0, zorder=3)


def _draw_mean(ax: Axes, result: Heterogeneity, measure: str, color: Any) -> None:
    pooled, row = getattr(result, measure), len(result.centres) + 0.5
    corners = [
        (pooled.low, row),
        (pooled.value, row - _HALF),
        (pooled.high, row),
        (pooled.value, row + _HALF),
    ]
    ax.add_patch(Polygon(corners, color=color, lw=0, zorder=3))
    ax.hlines(row + 1, pooled.prediction_low, pooled.prediction_high, color=color, lw=3.5, zorder=2)
    ax.update_datalim(corners)


def _write_rows(ax: Axes, result: Heterogeneity, measure: str) -> None:
    """Write the names of the rows on the left and their numbers on the right."""
    pooled, n = getattr(result, measure), len(result.centres)
    names = [
        f"{shortened(str(row.centre), _MOST_NAME)}  {row.n_events}/{row.n}"
        for row in result.centres
    ]
    mean = f"mean of {pooled.n_centres}"
    if not np.isnan(pooled.tau):
        mean += f", τ = {pooled.tau:.2f}"
    at = [*range(n), n + 0.5, n + 1.5]
    ax.set_yticks([_HEAD, *at], ["events/rows", *names, mean, "new centre, prediction"])
    ax.tick_params(axis="y", length=0)
    ax.get_yticklabels()[0].set(color="0.4", fontsize=SMALL)
    found = [getattr(row, measure) for row in result.centres]
    texts = [_text(one.value, one.low, one.high) for one in found]
    texts.append(_text(pooled.value, pooled.low, pooled.high))
    texts.append(f"{pooled.prediction_low:.2f} to {pooled.prediction_high:.2f}")
    style: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "fontsize": SMALL}
    for row, text in zip(at, texts, strict=True):
        ax.text(1.03, row, text.replace("-", "−"), va="center", **style)  # as on the axis
    head = f"{_NAMES[measure][1]} ({percent(result.level)} interval)"
    ax.text(1.03, _HEAD, head, va="center", color="0.4", **style)


def _text(value: float, low: float, high: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f} ({low:.2f} to {high:.2f})"
