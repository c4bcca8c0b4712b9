"""Draw the curves of time and memory, log-log, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.peers import PEERS
from benchmarks.results import OURS, Contest, Results
from benchmarks.tasks import SORT, SUMS

_STYLE: dict[str, Any] = {"font.size": 9, "svg.hashsalt": "calibrant"}
# Distinct in print, and to eyes that do not tell red from green; calibrant is black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b8860b", "#7a4fbf", "#8c564b")
_MARKS = "os^Dv<>pX"
_OTHERS = tuple(peer.name for peer in PEERS)
_WITH_PEERS = {"ece": "ece", "smooth_ece": "smooth_ece", "test": "ECCE with P-value"}
_ALONE = {
    "ece": "ece",
    "smooth_ece": "smooth_ece",
    "sketch": "Sketch.update",
    "density_ece": "density_ece",
    "logit_smoothed_ece": "logit_smoothed_ece",
    "test": "cumulative_test",
    "weak_calibration_error": "weak_calibration_error",
}
_TIME = "time, in yardsticks"
_MEMORY = "memory beyond the input, MiB"
# The least that memory is told in: a process grows by pages.
_LEAST_MIB = 0.1

Value = Callable[[Contest, str], float | None]


def time_of(contest: Contest, name: str) -> float | None:
    """Return the median time, in yardsticks."""
    times = contest.entry(name).times
    return sorted(times)[len(times) // 2] if times else None


def memory_of(contest: Contest, name: str) -> float | None:
    """Return the peak of memory, in MiB, a tenth at least."""
    found = contest.entry(name).memory
    return None if found is None else max(found, _LEAST_MIB)


def draw(results: Results, folder: Path) -> list[str]:
    """Write all pictures, and return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    with mpl.rc_context(_STYLE):
        for name, figure in _figures(results):
            path = folder / f"benchmarks-{name}.svg"
            # Neither dates nor random identifiers: the same numbers are the same file.
            figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
            names.append(path.name)
    return names


def _figures(results: Results) -> Iterator[tuple[str, Figure]]:
    yield "time", _beside_peers(results, time_of, _TIME)
    yield "memory", _beside_peers(results, memory_of, _MEMORY)
    yield "measures", _alone(results)
    yield "classes", _by_classes(results)


def _beside_peers(results: Results, value: Value, label: str) -> Figure:
    """Draw a panel a task, calibrant and its peers in each."""
    figure = Figure(figsize=(9.5, 3.6))
    panels = figure.subplots(1, len(_WITH_PEERS), sharey=True)
    limits = (SUMS,) if value is time_of else ()
    for panel, (task, title) in zip(panels, _WITH_PEERS.items(), strict=True):
        _lines(panel, results.of_task(task), value, limits)
        panel.set(title=title, xlabel="rows")
    panels[0].set_ylabel(label)
    _legend(figure, panels)
    return figure


def _alone(results: Results) -> Figure:
    """Draw all measures of calibrant in one panel for time and one for memory."""
    figure = Figure(figsize=(9.5, 3.6))
    panels = figure.subplots(1, 2)
    for panel, value, label in zip(panels, (time_of, memory_of), (_TIME, _MEMORY), strict=True):
        for (task, name), colour, mark in zip(_ALONE.items(), _COLOURS, _MARKS, strict=False):
            _line(panel, results.of_task(task), OURS, value, name, color=colour, marker=mark)
        _finish(panel)
        panel.set(xlabel="rows", ylabel=label)
    for name, dashes in ((SUMS, "--"), (SORT, ":")):
        contests = results.of_task("test")
        _line(panels[0], contests, name, time_of, name, color="0.5", linestyle=dashes)
    _legend(figure, panels)
    return figure


def _by_classes(results: Results) -> Figure:
    """Draw class-wise errors of as many probabilities in ever more columns."""
    figure = Figure(figsize=(9.5, 3.4))
    panels = figure.subplots(1, 2)
    for panel, value, label in zip(panels, (time_of, memory_of), (_TIME, _MEMORY), strict=True):
        _lines(panel, results.of_task("classes"), value, (SUMS,) if value is time_of else ())
        panel.set(xlabel="classes", ylabel=label)
    _legend(figure, panels)
    return figure


def _lines(panel: Axes, contests: list[Contest], value: Value, limits: tuple[str, ...]) -> None:
    for i, name in enumerate(_OTHERS):
        style = {"color": _COLOURS[i % len(_COLOURS)], "marker": _MARKS[i]}
        _line(panel, contests, name, value, name, **style)
    for name in limits:
        _line(panel, contests, name, value, name, color="0.5", linestyle="--")
    _line(panel, contests, OURS, value, OURS, color="black", marker="o", linewidth=2.2)
    _finish(panel)


def _line(
    panel: Axes, contests: list[Contest], name: str, value: Value, label: str, **style: Any
) -> None:
    points = [(contest.size, value(contest, name)) for contest in contests]
    points = [(size, found) for size, found in points if found is not None]
    if points:
        panel.plot(*zip(*points, strict=True), label=label, markersize=3.5, **style)


def _finish(panel: Axes) -> None:
    panel.set(xscale="log", yscale="log")
    panel.grid(True, color="0.9", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure, panels: list[Axes]) -> None:
    """Name every line once, below all panels."""
    named: dict[str, Artist] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    figure.tight_layout()
    figure.legend(
        list(named.values()),
        list(named),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        ncols=5,
        frameon=False,
    )
