"""What the page on Błasiok and Nakkiran (2023) shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from calibrant.datasets import SCENARIOS
from calibrant.papers import _smooth_ece_figures as figures
from calibrant.papers import _smooth_ece_published as printed
from calibrant.papers._frame import Report, Row, Tables
from calibrant.papers._page import Comparison, compared, grid, page, picture, reasons, side_by_side
from calibrant.papers._smooth_ece_data import BUNDLED, MOVED_SIZE

_POPULATIONS = {
    "perfect": "calibrated: Beta(2, 2)",
    "skewed": "the synthetic set",
}
# With fewer rows than this within a bandwidth no law of large numbers holds.
_MANY = 10
_RAIN = "The public file has 347 rows, and none of them lacks a value."
_ENDS = (
    "Not a printed number, but what relplot gives. It smooths on a grid whose end nodes keep half "
    "their mass, by equation 2 read as a sum over a set: scores at 0 and 1, or within a thousandth "
    "of them, count too little. Counted that way our value is {:.4f}."
)


def report(tables: Tables) -> Report:
    """Set published numbers beside ours, and draw the figures again."""
    comparisons = [
        *_data(tables["diagrams"]),
        *_program(tables["diagrams"]),
        *_moves(tables["moved"]),
        *_constants(tables["constants"]),
        *_powers(tables["sizes"]),
    ]
    return Report(
        text=_text(tables, comparisons),
        tables={"comparisons": comparisons},
        figures={
            "figure_2": figures.diagrams,
            "figure_3": figures.moves,
            "consistency": partial(figures.consistency, tables["consistency"]),
            "theorem_9": partial(figures.sample_sizes, tables["sizes"], _POPULATIONS),
        },
    )


def _data(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare what section 4 says of the data."""
    for row in rows:
        for column, number in printed.DATA.get(row.data, {}).items():
            note = _RAIN if row.data == "rain" else ""
            yield compared("Data", row.data, column, number, getattr(row, column), 0.0, note)


def _program(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare with the released program, which halves its bandwidth ten times."""
    noise = printed.RELPLOT_STEP / math.sqrt(12)
    for row in rows:
        number, note = printed.RELPLOT[row.data], _ENDS.format(row.half_ends)
        yield compared("relplot", row.data, "smECE", number, row.smece, noise, note)
        ends = "ends counted as relplot does"
        yield compared("relplot", row.data, ends, number, row.half_ends, noise)


def _moves(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare the ECE of figure 3, each printed for one data set."""
    for row in rows:
        number = printed.FIGURE_3.get(int(row.data))
        if number is not None and row.measure.startswith("ECE"):
            where = f"distribution {row.data}"
            yield compared("Figure 3", where, row.measure, number, row.mean, row.deviation)


def _constants(rows: Sequence[Row]) -> Iterator[Comparison]:
    for row in rows:
        where = f"bandwidth {row.bandwidth:g}"
        yield compared("Footnote 2", where, "C", printed.CONSTANT, row.constant, 0.0)


def _powers(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Compare the power of m by which errors of calibrated samples fall."""
    for start in dict.fromkeys(row.start for row in rows):
        if start[0].isdigit():
            own = [r for r in rows if (r.population, r.start) == ("perfect", start)]
            slope, noise = _slope([r for r in own if r.m * float(start) >= _MANY])
            where = f"from s₀ = {start} on"
            yield compared("Theorem 9", where, "power of m", printed.POWER, slope, noise)


def _slope(rows: Sequence[Row]) -> tuple[float, float]:
    """Fit log(mean error) to log(m), and say how well the slope is known."""
    x = np.log([row.m for row in rows])
    y = np.log([row.mean for row in rows])
    noise = np.array([row.deviation / row.mean / math.sqrt(row.data_sets) for row in rows])
    weight = noise**-2.0
    centred = x - np.average(x, weights=weight)
    information = float(weight @ centred**2)
    return float(weight @ (centred * y)) / information, information**-0.5


def _text(tables: Tables, comparisons: list[Comparison]) -> str:
    shown = {
        table: side_by_side(one for one in comparisons if one.table == table)
        for table in dict.fromkeys(one.table for one in comparisons)
    }
    return page(
        _INTRODUCTION,
        "## Diagrams: figure 2",
        shown["Data"],
        _diagrams(tables["diagrams"]),
        _DIAGRAMS,
        _skewed(tables["skewed"]),
        picture("smooth-ece", "figure_2", "Figure 2: bins by cross-validation, and smooth"),
        "The smECE by relplot 1.0.3, the authors' program, beside ours. It halves the bandwidth "
        "ten times, so that its last digits mean little: the unit is that step, 2^-10 / √12.",
        shown["relplot"],
        "## Small moves: figure 3",
        _MOVES.format(n=MOVED_SIZE, sets=tables["moved"][0].data_sets),
        shown["Figure 3"],
        _all_moves(tables["moved"]),
        picture("smooth-ece", "figure_3", "Figure 3: samples, smooth and binned diagrams"),
        "## A consistent measure: theorem 6",
        _consistent(tables["consistency"]),
        picture("smooth-ece", "consistency", "smECE between dCE / 2 and 2 √dCE"),
        "## How many rows it takes: theorem 9",
        _SIZES,
        shown["Theorem 9"],
        picture("smooth-ece", "theorem_9", "Theorem 9: the bound falls as 1 / √(m s₀)"),
        "## What the diagram shows of a calibrated prediction",
        "The area between diagram and diagonal is within √(2/π) bandwidths of smECE (Lemma 10). A "
        "calibrated prediction of 1/2, whose smECE is 0, attains it: C = √(2/π) = 0.798, which "
        "footnote 2 cuts to 0.79.",
        shown["Footnote 2"],
        "## Deviations",
        reasons(comparisons),
        _CORRECTIONS,
    )


_INTRODUCTION = """
# Smooth ECE (Błasiok and Nakkiran 2023)

Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing" (2023):
figures 2 and 3, and theorems 6 and 9 as measurements. Made by `calibrant papers smooth-ece`, in a
few minutes.

In every place: published · here (the difference in units of Monte-Carlo error, or of rounding in
print where nothing is left to chance; bold beyond 3). The paper prints few numbers in its text;
those inside its pictures are compared with by way of the authors' program.
"""

_DIAGRAMS = """
Bins here are as many as predict left-out rows best. The area is what the eye sees of the smooth
diagram, within √(2/π) times the bandwidth of smECE. The paper calls its network ResNet32; bundled
from the same source is ResNet-34. NOAA and DenseNet-161 are not in the paper.
"""

_MOVES = """
Predictions are uniform and outcomes calibrated. Then within cells of 0.1, which are two of twenty
bins, outcomes 1 in the lower half move up and outcomes 0 in the upper half move down: by 0.025 in
distribution 2, by 0.05 in distribution 3, where all have parted. The paper does not print how
far each of its samples moves, nor how many there are; n = {n} gives distribution 1 the printed ECE.
Means over {sets} data sets; the printed numbers are those of one, and the Monte-Carlo error is the
standard deviation of one.
"""

_SIZES = """
With m rows, the errors at all scales from s₀ on are below a constant times 1 / √(m s₀), in two of
three samples. Calibrated predictions attain the power of m: the mean of the largest error over
scales falls as m^(-1/2). Where the population is not calibrated, and m s₀ large, errors at single
points cancel and samples do better. The fixed point of a population with smECE above s₀ is known
as well; that of calibrated samples, whose bandwidth falls with m, as m^(-1/3).
"""

_CORRECTIONS = """
## Corrections

- Equation 2 sums over a set of preimages, which has half as many members at 0 and 1; the kernel
  integrates to 1 there only if each is counted twice, as Lemma 25 supposes.
- Theorem 20 prints dCE ≤ wCE. For predictions of 0.45 and 0.55 with outcomes 0 and 1 the weak
  calibration error wCE is 0.0225, the distance 0.045: dCE ≤ 2 wCE.
- Theorem 16 takes the larger of abs(h(u) - h(v)) and 2 and means the smaller. Algorithm 1 lacks
  the division by n.
"""


def _diagrams(rows: Sequence[Row]) -> str:
    heading = ["", "n", "bins", "binned ECE", "smECE", "area"]
    return grid(
        heading,
        [
            [
                row.data,
                f"{row.n}",
                f"{row.n_bins}",
                *(f"{x:.4f}" for x in (row.binned, row.smece, row.visible)),
            ]
            for row in rows
        ],
    )


def _skewed(rows: Sequence[Row]) -> str:
    truth = SCENARIOS["skewed"]
    ece, smece = (f"{row.mean:.4f} ± {row.deviation:.4f}" for row in rows)
    return (
        f"Over {rows[0].data_sets} samples of the synthetic set, {truth.formula}, n = {rows[0].n}: "
        f"smECE {smece} where the population has {truth.smooth_ece():.4f}, ECE {ece} where it has "
        f"{truth.true_ece():.4f}."
    )


def _all_moves(rows: Sequence[Row]) -> str:
    measures = list(dict.fromkeys(row.measure for row in rows))
    places = {(row.data, row.measure): f"{row.mean:.4f} ± {row.deviation:.4f}" for row in rows}
    return grid(
        ["mean ± standard deviation", *measures],
        [
            [f"distribution {number}", *(places[number, measure] for measure in measures)]
            for number in dict.fromkeys(row.data for row in rows)
        ],
    )


def _consistent(rows: Sequence[Row]) -> str:
    low = min(row.smece / row.upper for row in rows if row.upper > 0)
    high = max(row.smece / math.sqrt(row.lower) for row in rows if row.lower > 0)
    return (
        "The distance to calibration dCE is known between bounds; smECE must be at least half of "
        f"it and at most twice its root. Over {len(rows)} distributions, smECE is at least "
        f"{low:.2f} times the upper bound of dCE, and at most {high:.2f} times the root of the "
        "lower one. Two points on either side of 1/2, outcomes 0 and 1, follow the root; a shift "
        "of all predictions follows the line. Of random distributions with 1 to 11 scores, and of "
        f"the {len(BUNDLED)} bundled data sets, most are nearer the line. The root is the price of "
        "a measure that moves continuously."
    )
