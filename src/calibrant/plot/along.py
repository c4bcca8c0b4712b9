"""Bias along a feature: outcomes less predictions at each of its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from calibrant import checks
from calibrant.curves.along import bias_along as table_along
from calibrant.errors import CalibrantError
from calibrant.plot.canvas import check_axes, new_axes
from calibrant.plot.corners import Above
from calibrant.plot.feature_axis import FeatureAxis
from calibrant.plot.feature_series import Series, draw_level, draw_series, set_up_values
from calibrant.plot.models import Model, read_models
from calibrant.plot.overlay import drawn_before, drawn_together
from calibrant.plot.style import MARKERS, colors_of, open_frame, palette
from calibrant.plot.wording import Key, count
from calibrant.results.tables import BiasTable

__all__ = ["bias_along"]

# Inches: of numbers; and of names, around them all and for each, more with several models.
_WIDTH, _HEIGHT = 5.4, 3.8
_AROUND, _LANE, _LANE_OF_MORE = 1.1, 0.25, 0.09
# How far apart several models are drawn at one place, in points of print.
_STEP = 6.0
# What outcomes and predictions are called, where predictions are confidences and where not.
_WORDS = {False: ("observed", "predicted"), True: ("accuracy", "confidence")}


def bias_along(
    y_true: Any,
    y_prob: Any = None,
    feature: Any = None,
    *,
    ax: Axes | None = None,
    note: bool | str = True,
    deviation: bool = True,
    color: Any = None,
    **options: Any,
) -> Axes:
    """Draw whether predictions are right on average along a feature, such as a month or a region.

    Numbers and dates go from left to right, each bin at its mean (of skewed ones give the
    logarithm); names go from top to bottom. What is missing is drawn apart. Small grey numbers tell
    how many rows there are. Several calls on one Axes draw their models together.

    Parameters
    ----------
    y_true, y_prob, feature
        As in :func:`calibrant.bias_along`, or its result. For several models give a mapping from
        names: of predictions, in place of `y_prob`, or of results, in place of `y_true`.
    ax
        The Axes to draw on; without one a new figure is made that pyplot does not know of. With
        ``ax=plt.gca()`` it is pyplot's, and ``plt.show()`` shows it.
    note
        What is written above. True: what the intervals say, and the number of rows. False: nothing
        but names. Or words.
    deviation
        Draw outcomes less predictions. If not, draw mean outcome, with its interval, and mean
        prediction side by side, for one model.
    color
        The colour of the points, or a list of colours for several models.
    **options
        As in :func:`calibrant.bias_along`: `n_bins`, `n_values`, `level` and the rest; but
        intervals hold all at once unless ``simultaneous=False``.

    Returns
    -------
    Axes
        The Axes drawn on.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> days = np.arange("2016-01-01", "2018-01-01", dtype="datetime64[D]")
    >>> ax = bias_along(*load_flares(), days)
    >>> ax.get_ylabel()
    'observed less predicted'
    """
    models = read_models(y_true, y_prob, options, color)
    deviation, note = checks.as_flag(deviation, "deviation"), _read_note(note)
    check_axes(ax)
    items = [_gather(model, feature) for model in models]
    before = [] if ax is None else drawn_before(ax, "bias_along")
    # Looked at before anything is taken off the Axes.
    axis = FeatureAxis.of([item.table for item in (*before, *items)])
    if not deviation and len(before) + len(items) > 1:
        raise CalibrantError(
            "must be True for several models",
            argument="deviation",
            value=False,
            found="{value} for {n_models} models",
            hint="draw them with {deviation}=True, or each by itself",
            n_models=len(before) + len(items),
        )
    if ax is None:
        ax = new_axes(_WIDTH, _height(axis, len(items)))
    with drawn_together(ax, "bias_along", items) as together:
        _draw(ax, axis, together, note, deviation=deviation)
    return ax


@dataclass(frozen=True, eq=False)
class Item:
    """What is drawn of one model."""

    table: BiasTable
    name: str
    color: Any


def _read_note(note: Any) -> bool | str:
    return note if isinstance(note, str) else checks.as_flag(note, "note")


def _gather(model: Model, feature: Any) -> Item:
    """Return the table of a model, asking for it where it was not given."""
    if isinstance(model.y_true, BiasTable):
        model.refuse_options("a BiasTable")
        if feature is not None:
            raise CalibrantError(
                "must be left out: a BiasTable is drawn as it is", argument="feature"
            )
        return Item(model.y_true, model.name, model.color)
    model.check_options("bias_along", table_along)
    # A picture is looked at as a whole, so its intervals are to hold for all of it.
    asked = {"simultaneous": True, **model.options}
    table = table_along(model.y_true, model.y_prob, feature, **asked)
    return Item(table, model.name, model.color)


def _height(axis: FeatureAxis, n_models: int) -> float:
    """Return how high a figure is, in inches."""
    if not axis.is_sideways:
        return _HEIGHT
    lanes = len(axis.names) + axis.has_missing + 1
    return _AROUND + lanes * (_LANE + _LANE_OF_MORE * (n_models - 1))


def _draw(
    ax: Axes, axis: FeatureAxis, items: list[Item], note: bool | str, *, deviation: bool
) -> None:
    """Draw items, either outcomes less predictions or both."""
    series = _deviations(ax, axis, items) if deviation else _pair(ax, axis, items[0])
    observed, predicted = _WORDS[all(item.table.is_confidence for item in items)]
    open_frame(ax)
    axis.set_up(ax, items[0].table.feature)
    words = f"{observed} {'less' if deviation else 'and'} {predicted}"
    set_up_values(ax, axis, series, words, level=deviation)
    if deviation:
        draw_level(ax, axis)
    # Outcomes and predictions are compared at one place, models beside each other.
    step = _STEP if deviation else 0.0
    middle = (len(series) - 1) / 2
    points = [draw_series(ax, axis, one, step * (i - middle)) for i, one in enumerate(series)]
    first = items[0].table
    if all(np.array_equal(item.table.n, first.n) for item in items):
        axis.write_counts(ax, series[0].along, first.n)
    _write(ax, items, points, [one.name for one in series], note)


def _deviations(ax: Axes, axis: FeatureAxis, items: Sequence[Item]) -> list[Series]:
    """Return outcomes less predictions, a series a model."""
    pairs = zip(items, colors_of(ax, items), strict=True)
    return [
        Series(
            axis.places(item.table),
            item.table.gap,
            (item.table.low, item.table.high),
            item.name,
            color,
            MARKERS[i % len(MARKERS)],
            axis.n_joined(item.table),
        )
        for i, (item, color) in enumerate(pairs)
    ]


def _pair(ax: Axes, axis: FeatureAxis, item: Item) -> list[Series]:
    """Return the outcomes and the predictions of one model, a series each."""
    table, turn = item.table, palette(ax)
    along, n_joined = axis.places(table), axis.n_joined(table)
    reach = (table.mean_pred + table.low, table.mean_pred + table.high)
    own = turn[0] if item.color is None else item.color
    observed, predicted = _WORDS[table.is_confidence]
    return [
        Series(along, table.mean_true, reach, observed, own, MARKERS[0], n_joined),
        Series(along, table.mean_pred, None, predicted, turn[1], MARKERS[1], n_joined),
    ]


def _write(
    ax: Axes, items: Sequence[Item], points: list[Line2D], names: list[str], note: bool | str
) -> None:
    """Write names and what the intervals say above all."""
    lines = _noted(items) if note is True else (note or "").splitlines()
    if len(points) > 1:
        Above().write_key(ax, points, Key(names, tuple(lines)))
    elif lines or names[0]:
        Above().write(ax, [*([names[0]] if names[0] else []), *lines])


def _noted(items: Sequence[Item]) -> list[str]:
    """Return what is said of all items: of their intervals, and how many rows they have."""
    about = {(item.table.level, item.table.simultaneous) for item in items}
    numbers = {int(item.table.n.sum()) for item in items}
    lines = [f"n = {count(n)}" for n in numbers if len(numbers) == 1]
    for level, simultaneous in about if len(about) == 1 else ():
        lines.append(
            f"{100 * level:g}% intervals, {'all at once' if simultaneous else 'one by one'}"
        )
    return lines
