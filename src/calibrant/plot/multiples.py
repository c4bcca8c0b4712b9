"""Small multiples: the same diagram for each class, group or model."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties

from calibrant import checks
from calibrant.arrays import as_array
from calibrant.errors import CalibrantError
from calibrant.plot.canvas import Panels, ShownAxes, new_figure
from calibrant.plot.cumulative_plot import draw_walks, gather_walk
from calibrant.plot.diagram import gather, window_of
from calibrant.plot.models import Model, read_models
from calibrant.plot.reliability_diagram import View, draw_diagrams
from calibrant.plot.style import SMALL
from calibrant.plot.wording import about_band, compact
from calibrant.reading import one_column

__all__ = ["small_multiples"]

# Inches of a panel, and of the words along the outer ones.
_SIZES = {"reliability": (2.3, 2.7), "cumulative": (3.0, 2.3)}
_AROUND = 0.5
_MOST_COLUMNS = 5
# Of the name of a panel; letters are about this wide, in units of their size.
_MOST_LINES, _LETTER = 2, 0.55


def small_multiples(
    y_true: Any,
    y_prob: Any = None,
    *,
    by: Any = None,
    kind: Literal["reliability", "cumulative"] = "reliability",
    n_columns: int | None = None,
    figure: Figure | SubFigure | None = None,
    **options: Any,
) -> Panels:
    """Draw the same diagram for each class, group or model, with the same limits.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.reliability_curve`. Class probabilities with
        ``multiclass="classwise"`` make a panel a class. A mapping from names makes a panel each: of
        predictions, in place of `y_prob`, or of sketches or results, in place of both.
    by
        A label a row, such as a region: a panel for each.
    kind
        "reliability" or "cumulative".
    n_columns
        How many panels stand side by side.
    figure
        The empty figure, or part of one, to draw on; without one a new figure is made that pyplot
        does not know of.
    **options
        As in :func:`reliability` or :func:`cumulative`, for the results.

    Returns
    -------
    Panels
        The Axes, in order: a tuple, with their `figure`.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> systems = {name: load_flares(name) for name in ("DAFFS", "NOAA", "SIDC")}
    >>> y_true = systems["NOAA"].y_true
    >>> panels = small_multiples(y_true, {name: days.y_prob for name, days in systems.items()})
    >>> [ax.get_title() for ax in panels]
    ['DAFFS', 'NOAA', 'SIDC']
    """
    checks.check_choice(kind, "kind", ("reliability", "cumulative"))
    if figure is not None and not isinstance(figure, Figure | SubFigure):
        raise CalibrantError("must be a matplotlib Figure", argument="figure", value=figure)
    models = _read_panels(y_true, y_prob, by, options)
    columns = _columns(n_columns, len(models))
    rows = -(-len(models) // columns)
    if figure is None:
        width, height = _SIZES[kind]
        figure = new_figure(columns * width + _AROUND, rows * height + _AROUND)
    places = range(1, len(models) + 1)
    panels = Panels(figure.add_subplot(rows, columns, i, axes_class=ShownAxes) for i in places)
    draw = _draw_reliability if kind == "reliability" else _draw_cumulative
    draw(panels, models)
    for i, (ax, model) in enumerate(zip(panels, models, strict=True)):
        ax.set_title(_wrapped(model.name, ax), fontsize="medium")
        _label_outer(ax, left=i % columns == 0, bottom=i + columns >= len(models))
    return panels


def _draw_reliability(panels: Sequence[Axes], models: list[Model]) -> None:
    """Draw reliability diagrams on one window, so that they can be compared."""
    diagrams = [gather(model, None, note=True) for model in models]
    window = window_of(diagrams)
    view = View(limits=(window.low, window.high), is_terse=True, inside=True)
    for ax, diagram in zip(panels, diagrams, strict=True):
        note = None if diagram.note is None else compact(diagram.note)
        draw_diagrams(ax, [replace(diagram, name="", note=note)], view)
    # What all bands say is said once, for there is no room in each panel.
    bands = {words for diagram in diagrams for words in about_band(diagram.curve)}
    if len(bands) == 1:
        panels[0].figure.supxlabel(bands.pop(), fontsize=SMALL)


def _draw_cumulative(panels: Sequence[Axes], models: list[Model]) -> None:
    """Draw cumulative plots with the same limits, so that they can be compared."""
    for ax, model in zip(panels, models, strict=True):
        draw_walks(ax, [replace(gather_walk(model, note=True), name="")])
        ax.set_ylabel("cumulative deviation")
    limits = np.array([ax.get_ylim() for ax in panels])
    for ax in panels:
        ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def _read_panels(y_true: Any, y_prob: Any, by: Any, options: Mapping[str, Any]) -> list[Model]:
    """Return one model a panel: a class, a group, or what a mapping names."""
    if by is not None:
        return _by_group(y_true, y_prob, by, options)
    multiclass = options.get("multiclass")
    if isinstance(multiclass, str) and multiclass == "classwise":
        return _by_class(y_true, y_prob, options)
    models = read_models(y_true, y_prob, options)
    if len(models) == 1 and not models[0].name:
        raise CalibrantError(
            "small_multiples needs something to go by: by=, multiclass='classwise', "
            "or a mapping from names to results, sketches or predictions"
        )
    return models


def _by_group(y_true: Any, y_prob: Any, by: Any, options: Mapping[str, Any]) -> list[Model]:
    labels = one_column(as_array(by, "by"), "by")
    y, p = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
    for rows, name in ((labels, "by"), (y, "y_true"), (p, "y_prob")):
        checks.check_not_empty(rows, name)
    checks.check_same_length(y, "y_true", labels, "by")
    checks.check_same_length(labels, "by", p, "y_prob")
    try:
        names, code = np.unique(labels, return_inverse=True)
    except TypeError:
        raise CalibrantError(
            "must hold labels of one type, such as all numbers or all strings", argument="by"
        ) from None
    # Weights and clusters come a row as well.
    given = {k: options.get(k) for k in ("sample_weight", "groups")}
    columns = {k: as_array(v, k) for k, v in given.items() if v is not None}
    for column, values in columns.items():
        checks.check_same_length(labels, "by", values, column)

    def part(rows: Any) -> dict[str, Any]:
        return {**options, **{k: values[rows] for k, values in columns.items()}}

    masks = [code == k for k in range(len(names))]
    return [
        Model(str(name), y[rows], p[rows], part(rows))
        for name, rows in zip(names.tolist(), masks, strict=True)
    ]


def _by_class(y_true: Any, y_prob: Any, options: Mapping[str, Any]) -> list[Model]:
    p, labels = as_array(y_prob, "y_prob"), options.get("labels")
    if p.ndim != 2:
        raise CalibrantError(
            "must have one column per class for {multiclass}='classwise'",
            argument="y_prob",
            value=p.shape,
            found="shape {value}",
        )
    names = range(p.shape[1]) if labels is None else list(labels)
    return [Model(str(name), y_true, y_prob, {**options, "multiclass": name}) for name in names]


def _wrapped(name: str, ax: Axes) -> str:
    """Return the name of a panel in lines no wider than it, its middle left out where too long."""
    points = 72 * ax.get_position().width * ax.figure.figure.get_figwidth()
    size = FontProperties(size="medium").get_size_in_points()
    letters = max(int(points / (_LETTER * size)), _MOST_LINES)
    lines = textwrap.wrap(name, letters)
    for half in range(len(name) // 2, 0, -1):
        if len(lines) <= _MOST_LINES:
            break
        lines = textwrap.wrap(f"{name[:half].rstrip()}…{name[-half:].lstrip()}", letters)
    return "\n".join(lines)


def _columns(n_columns: int | None, n_panels: int) -> int:
    if n_columns is not None:
        return min(checks.as_count(n_columns, "n_columns"), n_panels)
    return min(int(np.ceil(np.sqrt(n_panels))), _MOST_COLUMNS)


def _label_outer(ax: Axes, *, left: bool, bottom: bool) -> None:
    """Leave words only along the left and the bottom of all panels."""
    if not left:
        ax.set_ylabel("")
        ax.tick_params(axis="y", which="both", labelleft=False)
    if not bottom:
        ax.set_xlabel("")
        ax.tick_params(axis="x", which="both", labelbottom=False)
