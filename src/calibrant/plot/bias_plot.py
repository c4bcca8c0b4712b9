"""Bias along a feature: mean outcome minus mean prediction at each of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

from calibrant._base import AnyArray, FloatArray, IntArray
from calibrant.curves.bias import BiasTable
from calibrant.curves.bias import bias_along as table_along
from calibrant.data import validation
from calibrant.data.classes import RowOptions
from calibrant.errors import CalibrantError
from calibrant.formatting import count, short_count, shortened
from calibrant.plot.common import (
    DASHES,
    LINE_WIDTH,
    MARKERS,
    MUTED,
    SMALL,
    SMALLEST,
    Colors,
    LegendText,
    Model,
    Record,
    axes_or_new,
    check_axes,
    despine,
    intervals_label,
    palette,
    read_models,
    records,
    resolve_colors,
    write_above,
)

# Inches: with numbers; and with names, around them all and for each, more with several models.
_WIDTH, _HEIGHT = 5.4, 3.8
_AROUND, _LANE, _LANE_OF_MORE = 1.1, 0.25, 0.09
# How far apart several models are drawn at one place, and the size of marks, in points.
_STEP, _MARK = 6.0, 5.0
# The names of outcomes and predictions, where predictions are confidences and where not.
_NAMES = {False: ("observed", "predicted"), True: ("accuracy", "confidence")}
# The fraction of the height that is left for numbers of rows below numbers and dates, and the
# fraction of values that is left free at either end.
_COUNTS, _FREE = 0.1, 0.05
# What is left free at either end of numbers, and before missing values, as a fraction of their
# range; and the same between names, which are 1 apart.
_ENDS, _APART = 0.04, 0.12
_ENDS_OF_NAMES, _APART_OF_NAMES = 0.6, 0.4
# Fewer rows than this are written with all their digits.
_PLAIN = 10_000
# About how much of the width a small letter takes.
_LETTER = 0.015


class BiasOptions(RowOptions, total=False):
    """Options of :func:`calibrant.bias_along`."""

    n_bins: int
    n_values: int
    level: float
    simultaneous: bool
    clusters: ArrayLike | None


def bias_along(
    y_true: ArrayLike | BiasTable | Mapping[str, BiasTable],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    feature: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    note: bool | str = True,
    deviation: bool = True,
    color: Colors = None,
    **options: Unpack[BiasOptions],
) -> Axes:
    """Draw the bias of predictions along a feature, such as a month or a region.

    Numbers and dates go from left to right, each bin at its mean (of skewed ones give the
    logarithm); names go from top to bottom, missing values apart. Grey numbers count rows.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.

        Or in place of both arrays a `BiasTable`, or a mapping from names of models to them.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    feature : array_like
        One value per row: numbers, dates or names; missing values are allowed. Omitted for results.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    note : bool or str
        Text above. True: the number of rows, and what the intervals are. False: the names of models
        alone. Or text.
    deviation : bool
        Draw observed minus predicted. If False, draw mean outcome, with its interval, and mean
        prediction side by side, for one model.
    color : color or list of colors, optional
        Colour of the model, or a list with one per model; by default the next of the palette.
    **options
        Explained in :func:`calibrant.bias_along`: `n_bins`, `n_values`, `level`, `simultaneous`
        (here True unless given), `clusters`, `sample_weight`, `multiclass`, `labels` and
        `pos_label`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn on.

    See Also
    --------
    calibrant.bias_along : The numbers of the plot.

    Notes
    -----
    A further call on the same Axes adds its models to those that are there.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> days = np.arange("2016-01-01", "2018-01-01", dtype="datetime64[D]")
    >>> ax = bias_along(*load_flares(), days)
    >>> ax.get_ylabel()
    'observed − predicted'
    """
    models = read_models(y_true, y_prob, options, color)
    deviation = validation.as_flag(deviation, "deviation")
    note = note if isinstance(note, str) else validation.as_flag(note, "note")
    check_axes(ax)
    tables = [_gather(model, feature) for model in models]
    earlier = [] if ax is None else [one.content for one in records(ax, "bias_along")]
    axis = _joint_axis(tables, earlier, deviation=deviation)
    height = _HEIGHT
    if axis.is_vertical:
        lanes = len(axis.names) + axis.has_missing + 1
        height = _AROUND + lanes * (_LANE + _LANE_OF_MORE * (len(models) - 1))
    ax = axes_or_new(ax, _WIDTH, height)
    n_before = sum(len(one.tables) for one in earlier)
    series = _series(ax, axis, models, tables, n_before, deviation=deviation)
    despine(ax)
    axis.set_up(ax)
    low, high = _set_up_values(ax, axis, series, earlier, with_zero=deviation)
    if not earlier:
        _name_axes(ax, axis, tables, deviation=deviation)
    # Outcomes and predictions are at the same place, models beside each other.
    step = _STEP if deviation else 0.0
    first = n_before if earlier else -(len(series) - 1) / 2
    points = [_draw_series(ax, axis, one, step * (first + i)) for i, one in enumerate(series)]
    n, has_counts = tables[0].n, any(one.has_counts for one in earlier)
    if not earlier and all(np.array_equal(table.n, n) for table in tables):
        axis.write_counts(ax, series[0].along, n)
        has_counts = True
    if has_counts and not axis.is_vertical:
        # The row of numbers is named by a minor tick, so that the layout leaves space for the name.
        bottom, top = ax.get_ylim()
        ax.set_yticks([bottom + (top - bottom) * _COUNTS / 2], ["rows"], minor=True)
        ax.tick_params(axis="y", which="minor", length=0, labelsize=SMALLEST, labelcolor=MUTED)
    write_above(ax, _text(series, tables, note, is_added=bool(earlier)), points)
    drawn = Drawn(tables, low, high, deviation, has_counts)
    ax.add_artist(Record("bias_along", drawn, len(tables)))
    return ax


@dataclass(frozen=True, eq=False)
class Drawn:
    """What one call drew: a table per model, and the range of values that is shown."""

    tables: list[BiasTable]
    low: float
    high: float
    deviation: bool
    has_counts: bool


def _gather(model: Model, feature: Any) -> BiasTable:
    """Return the table of a model, from rows or as it was given."""
    given = model.result(BiasTable)
    if given is not None:
        if feature is not None:
            raise CalibrantError("a BiasTable is drawn as it is: leave out feature")
        return given
    model.check_options("bias_along", table_along)
    # A picture is looked at as a whole, so its intervals are to hold for all of it.
    options = {"simultaneous": True, **model.options}
    return table_along(model.y_true, model.y_prob, feature, **options)


def _joint_axis(
    tables: list[BiasTable], earlier: Sequence[Drawn], *, deviation: bool
) -> FeatureAxis:
    """Return one axis for tables and for what is on the Axes."""
    before = [table for one in earlier for table in one.tables]
    n_models = len(before) + len(tables)
    if n_models > 1 and not (deviation and all(one.deviation for one in earlier)):
        raise CalibrantError(
            "must be True for several models",
            argument="deviation",
            value=False,
            found="{value} for {n_models}",
            n_models=n_models,
        )
    axis, drawn = FeatureAxis.of([*before, *tables]), before and FeatureAxis.of(before)
    if drawn and drawn.has_missing and drawn.missing != axis.missing:
        raise CalibrantError(
            "new values would overlap the missing ones that are on this Axes: draw all models in "
            "one call"
        )
    return axis


def _text(
    series: list[Series], tables: list[BiasTable], note: bool | str, *, is_added: bool
) -> LegendText | list[str]:
    """Return names, and what all tables have in common: rows, and what the intervals are."""
    lines = note.splitlines() if isinstance(note, str) else []
    if note is True and not is_added:
        numbers = {f"n = {count(int(table.n.sum()))}" for table in tables}
        intervals = {intervals_label(one.level, simultaneous=one.simultaneous) for one in tables}
        lines = [texts.pop() for texts in (numbers, intervals) if len(texts) == 1]
    names = [one.name for one in series]
    return LegendText(names, tuple(lines)) if len(names) > 1 or names[0] else lines


@dataclass(frozen=True, eq=False)
class Series:
    """Values at places along a feature."""

    along: FloatArray
    value: FloatArray
    interval: tuple[FloatArray, FloatArray] | None
    name: str
    color: Any
    marker: str


def _series(
    ax: Axes,
    axis: FeatureAxis,
    models: list[Model],
    tables: list[BiasTable],
    n_before: int,
    *,
    deviation: bool,
) -> list[Series]:
    """Return the deviations of each model, or else the outcomes and the predictions of one."""
    colors = resolve_colors(ax, [model.color for model in models], n_before)
    if not deviation:
        (table,), along = tables, axis.places(tables[0])
        interval = (table.mean_pred + table.low, table.mean_pred + table.high)
        observed, predicted = _NAMES[table.is_confidence]
        return [
            Series(along, table.mean_true, interval, observed, colors[0], MARKERS[0]),
            Series(along, table.mean_pred, None, predicted, palette(ax)[1], MARKERS[1]),
        ]
    names = [model.name for model in models]
    markers = [MARKERS[(n_before + i) % len(MARKERS)] for i in range(len(models))]
    return [
        Series(axis.places(table), table.gap, (table.low, table.high), *style)
        for table, *style in zip(tables, names, colors, markers, strict=True)
    ]


def _set_up_values(
    ax: Axes,
    axis: FeatureAxis,
    series: Sequence[Series],
    earlier: Sequence[Drawn],
    *,
    with_zero: bool,
) -> tuple[float, float]:
    """Set the limits and ticks of the axis of values, and return which of them are shown."""
    parts = [part for one in series for part in (one.value, *(one.interval or ()))]
    values = np.concatenate([*parts, [0.0] * with_zero])
    low, high = float(values.min()), float(values.max())
    free = _FREE * (high - low or 1.0)
    low = min([low - free, *(one.low for one in earlier)])
    high = max([high + free, *(one.high for one in earlier)])
    if axis.is_vertical:
        ax.set_xlim(low, high)
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    else:
        bottom = low - (high - low) * _COUNTS / (1 - _COUNTS)
        ax.set_ylim(bottom, high)
        ticks = MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10]).tick_values(bottom, high)
        ax.set_yticks([tick for tick in ticks if low <= tick <= high])
        ax.spines["left"].set_bounds(low, high)
    return low, high


def _name_axes(ax: Axes, axis: FeatureAxis, tables: list[BiasTable], *, deviation: bool) -> None:
    """Write the names of both axes, and draw the line of no deviation."""
    feature = tables[0].feature
    observed, predicted = _NAMES[all(table.is_confidence for table in tables)]
    values = f"{observed} {'−' if deviation else 'and'} {predicted}"
    if axis.is_vertical:
        ax.set_ylabel(feature)
        ax.set_xlabel(values)
    else:
        ax.set_xlabel(feature or {"dates": "date"}.get(axis.kind, "feature"))
        ax.set_ylabel(values, y=(1 + _COUNTS) / 2)
    if deviation:
        line = ax.axvline if axis.is_vertical else ax.axhline
        line(0, color=MUTED, lw=0.8, ls=DASHES, zorder=2)


def _draw_series(ax: Axes, axis: FeatureAxis, series: Series, shift: float) -> Line2D:
    """Draw points and their intervals, moved along the feature by a number of points."""
    # Down is forward among names.
    x, y = (0.0, -shift / 72) if axis.is_vertical else (shift / 72, 0.0)
    place = ax.transData + ScaledTranslation(x, y, ax.figure.dpi_scale_trans)
    if series.interval is not None:
        ends = [np.column_stack(axis.points(series.along, end)) for end in series.interval]
        stick: dict[str, Any] = {"linewidths": LINE_WIDTH, "transform": place, "zorder": 3}
        sticks = LineCollection(list(np.stack(ends, axis=1)), colors=[series.color], **stick)
        ax.add_collection(sticks, autolim=False)
    style: dict[str, Any] = {"color": series.color, "transform": place}
    if not axis.is_vertical:
        known = series.along < axis.missing
        ax.plot(series.along[known], series.value[known], lw=0.8, zorder=2.5, **style)
    style |= {"marker": series.marker, "ms": _MARK, "mfc": "white", "mew": LINE_WIDTH}
    (points,) = ax.plot(*axis.points(series.along, series.value), ls="none", zorder=4, **style)
    return points


@dataclass(frozen=True, eq=False)
class FeatureAxis:
    """Where the rows of tables lie along a feature.

    "names" are one below the other; "numbers" and "dates" go from `low` on the left to `high`.
    """

    kind: str
    names: tuple[str, ...]
    low: float
    high: float
    has_missing: bool
    is_whole: bool = False

    @classmethod
    def of(cls, tables: Sequence[BiasTable]) -> FeatureAxis:
        """Return the axis of some tables, which must be of one kind."""
        kind, *others = sorted({table.kind for table in tables})
        if others:
            kinds = " and ".join((kind, *others))
            raise CalibrantError(
                f"models drawn together must have features of one kind; got {kinds}"
            )
        names = tuple(dict.fromkeys(name for table in tables for name in _known_labels(table)))
        places: AnyArray = np.arange(len(names))
        if kind != "names":
            places = np.concatenate([_known_places(table) for table in tables])
        low, high = (places.min(), places.max()) if len(places) else (0.0, 0.0)
        has_missing = any(table.has_missing for table in tables)
        ends = [v[: len(_known_labels(one))] for one in tables for v in (one.minimum, one.maximum)]
        is_whole = kind == "numbers" and not np.any(np.concatenate(ends) % 1)
        return cls(kind, names, float(low), float(high), has_missing, is_whole)

    @property
    def is_vertical(self) -> bool:
        """Whether the feature goes from top to bottom."""
        return self.kind == "names"

    @property
    def missing(self) -> float:
        """Where rows without a value lie."""
        if self.is_vertical:
            return len(self.names) + _APART_OF_NAMES * bool(self.names)
        return self.high + _APART * self._span

    @property
    def _span(self) -> float:
        return self.high - self.low or 1.0

    def places(self, table: BiasTable) -> FloatArray:
        """Return where the rows of a table lie."""
        if self.is_vertical:
            known = np.array([self.names.index(name) for name in _known_labels(table)], dtype=float)
        else:
            known = _known_places(table)
        return np.append(known, [self.missing] * table.has_missing)

    def points(self, along: FloatArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return places along the feature, and values there, as x and y."""
        return (value, along) if self.is_vertical else (along, value)

    def set_up(self, ax: Axes) -> None:
        """Set the limits and ticks of the axis."""
        free = _ENDS_OF_NAMES if self.is_vertical else _ENDS * self._span
        last = self.missing if self.has_missing else self.high
        ends = (self.low - free, last + free)
        if self.is_vertical:
            ax.set_ylim(ends[::-1])
            ax.set_yticks(range(len(self.names)), [shortened(one) for one in self.names])
            ax.tick_params(axis="y", length=0)
            ax.spines["left"].set_visible(False)
        else:
            ax.set_xlim(ends)
            self._set_ticks(ax)
            ax.spines["bottom"].set_bounds(ends[0], self.high + free)
        if self.has_missing:
            axis = ax.yaxis if self.is_vertical else ax.xaxis
            axis.set_ticks([self.missing], ["missing"], minor=True)
            axis.set_tick_params(which="minor", length=0, labelsize=SMALL, labelcolor=MUTED)

    def _set_ticks(self, ax: Axes) -> None:
        """Set ticks where numbers are known, so that none lies where missing values are."""
        free = _ENDS * self._span
        if self.low == self.high:
            is_date = self.kind == "dates"
            label = [num2date(self.low).strftime("%Y-%m-%d")] if is_date else None  # type: ignore[no-untyped-call]
            ax.set_xticks([self.low], label)
            return
        if self.kind == "dates":
            ax.xaxis_date()
            locator: Any = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
            ends = num2date([self.low, self.high])  # type: ignore[no-untyped-call]
            ticks = np.asarray(locator.tick_values(*ends))
            ax.xaxis.get_offset_text().set_fontsize(SMALL)
        else:
            locator = MaxNLocator(8, steps=[1, 2, 2.5, 5, 10], integer=self.is_whole)
            ticks = np.asarray(locator.tick_values(self.low, self.high))
        inside = (ticks >= self.low - free) & (ticks <= self.high + free * (not self.has_missing))
        ax.set_xticks(ticks[inside])

    def write_counts(self, ax: Axes, places: FloatArray, n: IntArray) -> None:
        """Write the number of rows at each place, where there is space for it."""
        style: dict[str, Any] = {"fontsize": SMALLEST, "color": MUTED, "va": "center"}
        labels = [str(one) if one < _PLAIN else short_count(int(one)) for one in n]
        if self.is_vertical:
            for place, label in zip(places, labels, strict=True):
                ax.text(1.02, place, label, transform=ax.get_yaxis_transform(), **style)
            ax.text(1.02, 1.0, "rows", transform=ax.transAxes, **style)
            return
        (low, high), end = ax.get_xlim(), -np.inf
        style |= {"transform": ax.get_xaxis_transform(), "ha": "center"}
        for place, label in zip(places, labels, strict=True):
            half = _LETTER * (len(label) + 1) * (high - low) / 2
            if place - half >= end:
                end = place + half
                ax.text(place, _COUNTS / 2, label, **style)


def _known_labels(table: BiasTable) -> tuple[str, ...]:
    return table.label[:-1] if table.has_missing else table.label


def _known_places(table: BiasTable) -> FloatArray:
    values = table.mean[: len(_known_labels(table))]
    if values.dtype.kind == "M":
        values = date2num(values)  # type: ignore[no-untyped-call]
    return np.asarray(values, dtype=np.float64)
