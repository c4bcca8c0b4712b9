"""Groups: their table, and a diagram of each one's error with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calibrant.assessment.group_result import GroupRow, GroupTable
from calibrant.report.numbers import UNKNOWN, Number, count, fixed, p_value, percent, share
from calibrant.report.tables import Ranged, ranged
from calibrant.report.traces import MARGIN, Spec, axis, figure, plotly_text

__all__ = ["GroupLine", "GroupSection", "group_section"]

_ADJUSTMENTS = {"holm": "Holm", "benjamini_hochberg": "Benjamini and Hochberg"}
# More than these are not told apart in a diagram; their table has all.
_MOST_SHOWN = 60
_LINE_HEIGHT = 26
_LONGEST_LABEL = 22
# One number of decimals for all errors in the table, to be compared along it and down.
_DIGITS = 4


@dataclass(frozen=True)
class GroupLine:
    """One group in the table."""

    label: str
    found: bool
    n: Number
    prevalence: Number
    mean_prediction: Number
    smooth_ece: Ranged
    ece: Number
    deviation: Number
    p_value: Number
    p_adjusted: Number
    remark: str


@dataclass(frozen=True)
class GroupSection:
    """All that a page says of groups."""

    summary: str
    caption: str
    level: str
    mean_names: tuple[str, str]
    lines: tuple[GroupLine, ...]
    figure: Spec


def group_section(
    table: GroupTable, mean_names: tuple[str, str] = ("prevalence", "mean prediction")
) -> GroupSection:
    """Return what a page says of groups; their means are called as those of all rows are."""
    lines = tuple(_lines(table))
    shown = sorted(range(len(lines)), key=lambda k: -table.rows[k].smooth_ece.value)[:_MOST_SHOWN]
    caption = (
        f"Smooth calibration error of each group, with its {percent(table.level)} interval. "
        "Filled: miscalibration detected; open: not."
    )
    if len(lines) > _MOST_SHOWN:
        caption += f" The {_MOST_SHOWN} groups with the largest errors are shown."
    drawn = [(lines[k], table.rows[k]) for k in sorted(shown)]
    drawing = _group_figure(drawn, mean_names[0])
    return GroupSection(_summary(table), caption, percent(table.level), mean_names, lines, drawing)


def _summary(table: GroupTable) -> str:
    n, found = len(table), len(table.miscalibrated)
    return (
        f"Miscalibration detected in {found or 'none'} of {n} group{'' if n == 1 else 's'}, "
        f"P-values adjusted for their number after {_ADJUSTMENTS.get(table.method, table.method)}."
    )


def _lines(table: GroupTable) -> Iterator[GroupLine]:
    for row in table:
        test = row.test
        remarks = ["few rows or events"] * row.small + [row.note] * bool(row.note)
        yield GroupLine(
            label="(none)" if row.group is None else str(row.group),
            found=row.p_adjusted <= 1 - table.level,
            n=count(row.n),
            prevalence=share(row.prevalence),
            mean_prediction=share(row.mean_prediction),
            smooth_ece=ranged(row.smooth_ece, _DIGITS),
            ece=fixed(row.ece, _DIGITS),
            deviation=fixed(row.deviation, _DIGITS),
            p_value=UNKNOWN if test is None else p_value(row.p_value, is_least=test.is_least),
            p_adjusted=UNKNOWN if test is None else p_value(row.p_adjusted, is_least=test.is_least),
            remark="; ".join(remarks),
        )


def _group_figure(groups: Sequence[tuple[GroupLine, GroupRow]], observed: str) -> Spec:
    """Return dots with their intervals, a group below the other."""
    across: list[float | None] = []
    down: list[float | None] = []
    for k, (_, row) in enumerate(groups):
        across += [row.smooth_ece.low, row.smooth_ece.high, None]
        down += [k, k, None]
    intervals = {
        "type": "scatter",
        "mode": "lines",
        "x": across,
        "y": down,
        "line": {"color": "--series-1 / 0.6", "width": 1.6},
        "hoverinfo": "skip",
    }
    farthest = max(max(row.smooth_ece.value, row.smooth_ece.high) for _, row in groups)
    layout = {
        "xaxis": axis("smooth calibration error", range=[0, 1.04 * max(farthest, 0.01)]),
        "yaxis": axis(
            "",
            range=[len(groups) - 0.4, -0.6],
            tickvals=list(range(len(groups))),
            ticktext=[plotly_text(_shortened(line.label)) for line, _ in groups],
            showgrid=False,
        ),
        "hovermode": "closest",
        "margin": {**MARGIN, "l": 20},
    }
    return figure(
        [intervals, _dots(groups, observed)], layout, pixels=_LINE_HEIGHT * len(groups) + 20
    )


def _dots(groups: Sequence[tuple[GroupLine, GroupRow]], observed: str) -> Spec:
    fills = ["--series-1" if line.found else "--paper" for line, _ in groups]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [row.smooth_ece.value for _, row in groups],
        "y": list(range(len(groups))),
        "text": ["<br>".join(map(plotly_text, _words(line, observed))) for line, _ in groups],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": fills, "size": 9, "line": {"color": "--series-1", "width": 1.6}},
        "cliponaxis": False,
        "meta": {"told": True},
    }


def _words(line: GroupLine, observed: str) -> Iterator[str]:
    error = line.smooth_ece
    yield line.label
    yield f"smECE {error.value.text}, interval {error.low.text} to {error.high.text}"
    yield f"{line.n.text} rows, {observed} {line.prevalence.text}"
    yield f"adjusted P {line.p_adjusted.text}"


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"
