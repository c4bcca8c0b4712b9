"""What the page on the coverage of intervals shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calibrant.datasets import SCENARIOS
from calibrant.papers._drawing import COLOURS, GREY, MARKERS, figure, legend_below
from calibrant.papers._frame import Report, Row, Tables
from calibrant.papers._page import REMARKABLE, grid, page, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVEL = 0.95
# Coverage that passes for it.
_NEARLY = 0.93
_METHODS = {
    "uniform": "`estimate`",
    "percentile": "percentile bootstrap",
    "relplot": "value ± longer arm",
}
_MEASURES = ("smooth_ece", "ece", "ece l2", "ecce_mad", "ecce_r", "logit_smoothed_ece")
_DRAWN = ("smooth_ece", "ece")

Cell = tuple[str, str, int, str]


def report(tables: Tables) -> Report:
    """Set the kinds of interval side by side."""
    pooled = _pooled(tables["blocks"])
    cells: dict[Cell, Row] = {(r.measure, r.scenario, r.n, r.method): r for r in pooled}
    drawn = [measure for measure in _DRAWN if any(key[0] == measure for key in cells)]
    return Report(
        text=_text(cells, drawn),
        tables={"pooled": pooled},
        figures={measure: partial(_coverage, cells, measure) for measure in drawn},
    )


def _pooled(blocks: Sequence[Row]) -> list[Row]:
    """Make one row of all blocks of a cell: sums of counts, means of medians."""
    cells: dict[tuple[object, ...], list[Row]] = {}
    for block in blocks:
        cells.setdefault((block.scenario, block.n, block.measure, block.method), []).append(block)
    pooled = []
    for _, own in sorted(cells.items(), key=lambda item: _order(item[1][0])):
        shares = np.array([block.repetitions for block in own])
        counts = ("repetitions", "covered", "low_right", "high_right")
        sums = {name: sum(getattr(block, name) for block in own) for name in counts}
        means = {
            name: float(np.average([getattr(block, name) for block in own], weights=shares))
            for name in ("width", "high", "centre")
        }
        seconds = round(sum(block.seconds for block in own), 3)
        pooled.append(replace(own[0], block=0, seconds=seconds, **sums, **means))
    return pooled


def _order(row: Row) -> tuple[int, ...]:
    places = ((_MEASURES, row.measure), (list(SCENARIOS), row.scenario))
    return *(names.index(name) for names, name in places), row.n, list(_METHODS).index(row.method)


def _text(cells: Mapping[Cell, Row], drawn: Sequence[str]) -> str:
    measures = _in_order(key[0] for key in cells)
    return page(
        _INTRODUCTION,
        _scenarios(cells),
        "Population values, the errors of quadrature points weighted by their mass:",
        _truths(cells, measures),
        *(
            picture("coverage", name, f"{name}: coverage against n; grey: 95% ± what chance allows")
            for name in drawn
        ),
        *(block for measure in measures for block in _measure(cells, measure)),
        "## Below the mark",
        _missed(cells),
        "## What it costs",
        _price(cells),
    )


_INTRODUCTION = """
# Coverage of intervals

How often a 95% interval of `calibrant.estimate` holds the population value, in samples from
populations whose calibration error is known. Made by `calibrant papers coverage`, which takes many
hours.

Beside it stand two naive intervals: the percentile bootstrap, `method="percentile"`, and for
smECE the construction of the relplot package, the sample's value ± the longer arm of that interval.
Near perfect calibration the error of a sample is larger than that of its population, and so is that
of every bootstrap sample: such intervals do not come down to the truth.

Samples are the same for all. Intervals are made with 300 resamples, or 100 in a quick run.
"""

_WIDTHS = """
Median width of the interval of `estimate`, and in parentheses how many times that of the percentile
bootstrap:
"""


def _scenarios(cells: Mapping[Cell, Row]) -> str:
    """Return the formula of every scenario."""
    named = [(name, SCENARIOS[name]) for name in _in_order(key[1] for key in cells)]
    return grid(
        ["scenario", "scores p", "P(y = 1 \\| p)"],
        [[name, f"{one.scores}", f"{one.calibration}"] for name, one in named],
    )


def _truths(cells: Mapping[Cell, Row], measures: Sequence[str]) -> str:
    """Return the population values of every scenario."""
    truths = {(key[1], key[0]): f"{row.truth:.4f}" for key, row in cells.items()}
    return grid(
        ["scenario", *measures],
        [
            [name, *(truths.get((name, measure), "") for measure in measures)]
            for name in _in_order(key[1] for key in cells)
        ],
    )


def _measure(cells: Mapping[Cell, Row], measure: str) -> list[str]:
    methods = [m for m in _METHODS if any((k[0], k[3]) == (measure, m) for k in cells)]
    sizes = sorted({key[2] for key in cells if key[0] == measure})
    kinds = ", ".join(_METHODS[method] for method in methods)
    counts = "; ".join(_repetitions(cells, measure, method) for method in methods)
    places = {
        (scenario, n): [cells.get((measure, scenario, n, method)) for method in methods]
        for scenario in _in_order(key[1] for key in cells if key[0] == measure)
        for n in sizes
    }
    scenarios = _in_order(scenario for scenario, _ in places)
    heading = ["scenario", *(f"n = {n}" for n in sizes)]
    return [
        f"## {measure}",
        f"Coverage in per cent: {kinds} ({counts}).",
        grid(heading, [[s, *(_shares(places[s, n]) for n in sizes)] for s in scenarios]),
        _WIDTHS,
        grid(heading, [[s, *(_widths(places[s, n]) for n in sizes)] for s in scenarios]),
    ]


def _repetitions(cells: Mapping[Cell, Row], measure: str, method: str) -> str:
    own = [r.repetitions for k, r in cells.items() if (k[0], k[3]) == (measure, method)]
    span = f"{min(own)}" if min(own) == max(own) else f"{min(own)} to {max(own)}"
    return f"{span} samples"


def _shares(rows: Sequence[Row | None]) -> str:
    if not any(rows):
        return ""
    return " · ".join("–" if r is None else f"{100 * r.covered / r.repetitions:.1f}" for r in rows)


def _widths(rows: Sequence[Row | None]) -> str:
    ours, naive = rows[0], rows[1] if len(rows) > 1 else None
    if ours is None:
        return ""
    ratio = f" ({ours.width / naive.width:.2f})" if naive and naive.width else ""
    return f"{ours.width:.4f}{ratio}"


def _missed(cells: Mapping[Cell, Row]) -> str:
    """List where the new intervals hold the truth less often than chance explains."""
    ours = [row for row in cells.values() if row.method == "uniform"]
    low = [
        f"- {row.measure}, {row.scenario}, n = {row.n}: {100 * row.covered / row.repetitions:.1f}% "
        f"of {row.repetitions} ({_deviation(row):+.1f})"
        for row in ours
        if _deviation(row) < -REMARKABLE
    ]
    if low:
        return "\n".join(["In parentheses the deviation in Monte-Carlo errors.", "", *low])
    least = min(row.covered / row.repetitions for row in ours)
    return (
        f"No coverage of `estimate` is below 95% by more than {REMARKABLE:g} Monte-Carlo errors; "
        f"the least is {100 * least:.1f}%."
    )


def _price(cells: Mapping[Cell, Row]) -> str:
    """Say how much wider intervals are than naive ones, where those hold the truth as well."""
    ratios = [
        row.width / naive.width
        for (measure, scenario, n, method), row in cells.items()
        if method == "uniform"
        and (naive := cells.get((measure, scenario, n, "percentile"))) is not None
        and naive.covered >= _NEARLY * naive.repetitions
        and naive.width > 0
    ]
    if not ratios:
        return f"The percentile bootstrap covers {_NEARLY:.0%} nowhere."
    return (
        f"The percentile bootstrap covers {_NEARLY:.0%} or more in {len(ratios)} cells. There the "
        f"median width of `estimate` is {np.median(ratios):.2f} times its own in the middle cell "
        f"and {max(ratios):.2f} times at most."
    )


def _deviation(row: Row) -> float:
    """Return how far coverage is from its level, in standard deviations under that level."""
    share: float = row.covered / row.repetitions
    return float((share - _LEVEL) / np.sqrt(_LEVEL * (1 - _LEVEL) / row.repetitions))


def _coverage(cells: Mapping[Cell, Row], measure: str) -> Figure:
    """Draw coverage against n, one panel a scenario."""
    scenarios = _in_order(key[1] for key in cells if key[0] == measure)
    n_columns = min(3, len(scenarios))
    n_rows = -(-len(scenarios) // n_columns)
    size = (3.4 * n_columns, 2.3 * n_rows + 0.5)
    drawn = figure(n_rows, n_columns, *size, sharex=True, sharey=True)
    for axes, scenario in zip(drawn.axes, scenarios, strict=False):
        for method, colour, marker in zip(_METHODS, COLOURS, MARKERS, strict=False):
            keys = sorted(
                key for key in cells if key[:2] == (measure, scenario) and key[3] == method
            )
            own = [cells[key] for key in keys]
            shares = [row.covered / row.repetitions for row in own]
            label = _METHODS[method].replace("`", "")
            axes.plot(
                [row.n for row in own],
                shares,
                color=colour,
                marker=marker,
                markersize=4,
                label=label if own else None,
            )
        repetitions = max(row.repetitions for key, row in cells.items() if key[0] == measure)
        chance = 2 * np.sqrt(_LEVEL * (1 - _LEVEL) / repetitions)
        axes.axhspan(_LEVEL - chance, _LEVEL + chance, color=GREY, alpha=0.3, linewidth=0)
        axes.set_xscale("log")
        axes.set_ylim(-0.03, 1.03)
        axes.set_title(scenario.replace("_", " "), fontsize=10)
    for axes in drawn.axes[len(scenarios) :]:
        axes.set_visible(False)
    for axes in drawn.axes[-n_columns:]:
        axes.set_xlabel("n")
    drawn.supylabel("coverage", fontsize=10)
    legend_below(drawn, drawn.axes[0], 3)
    return drawn


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
