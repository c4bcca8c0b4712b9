"""Several diagrams in one figure: small multiples, and an assessment at a glance."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties
from numpy.typing import ArrayLike

from calibrant.assessment.assess import Assessment, AssessOptions, assess
from calibrant.assessment.verdict import Verdict
from calibrant.curves.reliability_view import Window
from calibrant.data import validation
from calibrant.data.classes import ROW_OPTIONS, ClassTable, one_problem, read_table
from calibrant.data.labels import read_labels, rows_by_code
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.formatting import group_name, percent, shortened
from calibrant.inference.cell_noise import read_codes
from calibrant.plot.common import (
    SMALL,
    WIDER_ON_SCREEN,
    Model,
    Panels,
    ShownAxes,
    axes_or_new,
    band_lines,
    compact,
    measure_label,
    new_figure,
    read_models,
    size_in_points,
    text_width,
)
from calibrant.plot.cumulative_plot import CumulativeDiagram, draw_cumulative, gather_cumulative
from calibrant.plot.interval_plot import draw_intervals
from calibrant.plot.reliability_plot import Diagram, Layout, draw_diagrams, gather

# Inches of a panel, and of the labels along the outer ones.
_SIZES = {"reliability": (2.3, 2.7), "cumulative": (3.0, 2.3)}
_AROUND = 0.5
_MOST_COLUMNS = 5
# The maximum number of lines of a panel's name, and the mean width of letters, in sizes; where
# words like RandomForestClassifier and random_forest can be divided.
_MOST_LINES, _LETTER = 2, 0.55
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=_)(?=[^_])")
# The size of an assessment in inches, and its parts: left, bottom, width, height, as fractions.
_WIDTH, _HEIGHT = 9.4, 6.2
_RELIABILITY = (0.0, 0.0, 0.42, 0.8)
_CUMULATIVE = (0.54, 0.42, 0.46, 0.36)
_ESTIMATES = (0.54, 0.0, 0.46, 0.24)
# The height of a line of its heading, and how far to the left of its diagrams text begins.
_HEADING, _OUTDENT = 0.06, 0.05


def small_multiples(
    y_true: ArrayLike | Mapping[str, Any],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    by: ArrayLike | None = None,
    kind: Literal["reliability", "cumulative"] = "reliability",
    n_columns: int | None = None,
    figure: Figure | SubFigure | None = None,
    **options: Any,
) -> Panels:
    """Draw the same diagram for each class, group or model, with the same limits.

    Class probabilities with ``multiclass="classwise"`` make one panel per class, `by` one per
    group, and a mapping one per model.

    Parameters
    ----------
    y_true : array_like, Sketch, result or mapping of them
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes. Or in place of both
        arrays a sketch or a result, or for several models a mapping from names to these.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    by : array_like, optional
        One group label per row, such as a region.
    kind : {"reliability", "cumulative"}
        The diagram.
    n_columns : int, optional
        Number of panels side by side.
    figure : matplotlib.figure.Figure or SubFigure, optional
        An empty figure, or part of one, to draw on; a new figure by default.
    **options
        Of reliability diagrams, explained in :func:`calibrant.reliability_curve`: `method`,
        `band`, `level`, `simultaneous` (here True unless given), `n_resamples`, `rng`, `clusters`,
        `bandwidth`, `n_bins`, `strategy`. Of cumulative plots, explained in
        :func:`calibrant.cumulative_test`: `statistic`, `method`, `n_resamples`, `rng`. Of both:
        `sample_weight`, `multiclass`, `labels` and `pos_label`.

    Returns
    -------
    Panels
        A tuple of the Axes, in order; its `figure` holds them.

    See Also
    --------
    reliability, cumulative : Several models on one Axes.
    calibrant.by_group : Errors and tests of each group.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> systems = {name: load_flares(name) for name in ("DAFFS", "NOAA", "SIDC")}
    >>> y_true = systems["NOAA"].y_true
    >>> panels = small_multiples(y_true, {name: days.y_prob for name, days in systems.items()})
    >>> [ax.get_title() for ax in panels]
    ['DAFFS', 'NOAA', 'SIDC']
    """
    validation.check_choice(kind, "kind", _SIZES)
    if figure is not None and not isinstance(figure, Figure | SubFigure):
        raise CalibrantError("must be a matplotlib Figure", argument="figure", value=figure)
    models = _read_panels(y_true, y_prob, by, options)
    columns = min(int(np.ceil(np.sqrt(len(models)))), _MOST_COLUMNS)
    if n_columns is not None:
        columns = min(validation.as_count(n_columns, "n_columns"), len(models))
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
        label = ax.get_xlabel()
        ax.label_outer()
        if i + columns >= len(models):
            # The lowest of its column, though perhaps not in the last row.
            ax.set_xlabel(label)
            ax.tick_params(axis="x", labelbottom=True)
    return panels


def _draw_reliability(panels: Sequence[Axes], models: list[Model]) -> None:
    """Draw reliability diagrams on one window, so that they can be compared."""
    diagrams = [gather(model, None, note=True) for model in models]
    window = Window.around(diagram.view for diagram in diagrams)
    layout = Layout(limits=(window.low, window.high), is_terse=True, inside=True)
    for ax, diagram in zip(panels, diagrams, strict=True):
        note = None if diagram.note is None else compact(diagram.note)
        draw_diagrams(ax, [replace(diagram, name="", note=note)], layout)
    # There is no space for the label of the bands in each panel.
    bands = {line for diagram in diagrams for line in band_lines(diagram.view.curve)}
    if len(bands) == 1:
        panels[0].figure.supxlabel(bands.pop(), fontsize=SMALL)


def _draw_cumulative(panels: Sequence[Axes], models: list[Model]) -> None:
    """Draw cumulative plots with the same limits, so that they can be compared."""
    for ax, model in zip(panels, models, strict=True):
        draw_cumulative(ax, [replace(gather_cumulative(model, note=True), name="")])
        ax.set_ylabel("cumulative deviation")
    limits = np.array([ax.get_ylim() for ax in panels])
    for ax in panels:
        ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def _read_panels(y_true: Any, y_prob: Any, by: Any, options: Mapping[str, Any]) -> list[Model]:
    """Return one model per panel: a class, a group, or what a mapping names."""
    if by is not None:
        return _by_group(y_true, y_prob, by, options)
    multiclass = options.get("multiclass")
    if isinstance(multiclass, str) and multiclass == "classwise":
        table = read_table(y_true, y_prob, *map(options.get, ROW_OPTIONS))
        assert isinstance(table, ClassTable)  # nothing else has several classes
        names = range(table.n_classes) if table.labels is None else table.labels
        classes = zip(names, table.classwise().problems(), strict=True)
        others = {name: one for name, one in options.items() if name not in ROW_OPTIONS}
        return [Model(str(name), problem, None, others) for name, problem in classes]
    models = read_models(y_true, y_prob, options)
    if len(models) == 1 and not models[0].name:
        raise CalibrantError(
            "small_multiples needs several panels: by=, multiclass='classwise', "
            "or a mapping from names to results, sketches or predictions"
        )
    return models


def _by_group(y_true: Any, y_prob: Any, by: Any, options: Mapping[str, Any]) -> list[Model]:
    whole = one_problem(y_true, y_prob, *map(options.get, ROW_OPTIONS))
    weight, clusters = options.get("sample_weight"), options.get("clusters")
    names, code = read_labels(by, "by", weight, whole.n)
    own = {} if clusters is None else {"clusters": read_codes(clusters, weight, whole.n)}
    others = {name: one for name, one in options.items() if name not in (*ROW_OPTIONS, *own)}
    models = []
    for name, rows in zip(names, rows_by_code(code, len(names)), strict=True):
        part = others | {column: values[rows] for column, values in own.items()}
        models.append(Model(group_name(name), whole.rows.take(rows), None, part))
    return models


def _wrapped(name: str, ax: Axes) -> str:
    """Return the name of a panel in lines no wider than it, without its middle where too long."""
    size = FontProperties(size="medium").get_size_in_points()
    letters = max(int(size_in_points(ax)[0] / (_LETTER * size)), _MOST_LINES)
    lines = _lines(name, letters)
    most = _MOST_LINES * letters
    while len(lines) > _MOST_LINES:
        lines, most = _lines(shortened(name, most), letters), most - 1
    return "\n".join(lines)


def _lines(name: str, letters: int) -> list[str]:
    """Return lines of at most so many letters; a word that is longer ends one where parts join."""
    # A vertical tab is a space to break at, and is taken out again.
    words = [_JOINT.sub("\v", one) if len(one) > letters else one for one in name.split(" ")]
    lines = textwrap.wrap(" ".join(words), letters, replace_whitespace=False)
    return [line.replace("\v", "") for line in lines]


def assessment(
    y_true: ArrayLike | Sketch | Assessment,
    y_prob: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    **options: Unpack[AssessOptions],
) -> Axes:
    """Draw an assessment: verdict, reliability diagram, cumulative plot, errors with intervals.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.

        So does an `Assessment`.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

        It becomes the frame of three smaller ones, its `child_axes`.
    **options
        Explained in :func:`calibrant.assess`: `level`, `n_bins`, `n_resamples`, `rng`,
        `sample_weight`, `multiclass`, `labels` and `pos_label`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn on.

    See Also
    --------
    calibrant.assess : The numbers, and a report in HTML.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> ax = assessment(*load_flares())
    >>> len(ax.child_axes)
    3
    """
    model = Model("", y_true, y_prob, options)
    found = model.result(Assessment)
    if found is None:
        model.check_options("assessment", assess)
        found = assess(model.y_true, model.y_prob, **options)
    is_new = ax is None
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    ax.set_axis_off()
    view = found.reliability_view("smooth")
    diagram = Diagram(view, view.measured)
    draw_diagrams(ax.inset_axes(_RELIABILITY), [diagram], Layout(inside=True))
    cumulative = CumulativeDiagram(found.cumulative, found["ecce_r"])
    draw_cumulative(ax.inset_axes(_CUMULATIVE), [cumulative])
    label = f"calibration error, {percent(found.settings.level)} interval; | raw value"
    names = [measure_label(one) for one in found.estimates]
    draw_intervals(ax.inset_axes(_ESTIMATES), names, found.estimates, label)
    if is_new:
        # How wide it is, the layout decides.
        ax.figure.figure.draw_without_rendering()
    _write_verdict(ax, found.verdict)
    return ax


def _write_verdict(ax: Axes, verdict: Verdict) -> None:
    """Write a verdict across the top, its heading large."""
    style: dict[str, Any] = {"x": -_OUTDENT, "transform": ax.transAxes, "va": "top"}
    heading = _filled(f"{verdict.heading}.", ax, "large")
    ax.text(y=1.0, s=heading, fontsize="large", weight="bold", **style)
    below = 1.0 - _HEADING * (1 + heading.count("\n"))
    details = _filled(verdict.details, ax, SMALL)
    ax.text(y=below, s=details, fontsize=SMALL, linespacing=1.4, **style)


def _filled(text: str, ax: Axes, size: str) -> str:
    """Return text in lines of letters of a size that end where an Axes does."""
    letter = WIDER_ON_SCREEN * text_width(text, size) / len(text)
    return textwrap.fill(text, int((1 + _OUTDENT) * float(size_in_points(ax)[0]) / letter))
