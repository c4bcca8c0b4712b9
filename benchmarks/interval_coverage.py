"""Measure how often intervals hold the population value, and how wide they are.

    python benchmarks/interval_coverage.py results.csv  # the whole study, hours on one core
    python benchmarks/interval_coverage.py results.csv --quick  # a look at it, minutes
    python benchmarks/interval_coverage.py results.csv --table  # what has been measured so far

Repetitions are made in blocks that go round all cells of the study; a finished block is a line of
the CSV file, and running the same command again goes on after the last one. Every block has a seed
of its own.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from calibrant.datasets import SCENARIOS, Scenario, simulate
from calibrant.inference.estimate import estimate
from calibrant.measures.named import read_measure
from calibrant.sample import Sample

MEASURES: dict[str, tuple[str, dict[str, str]]] = {
    "smooth_ece": ("smooth_ece", {}),
    "ece": ("ece", {}),
    "ece l2": ("ece", {"norm": "l2"}),
    "ecce_mad": ("ecce_mad", {}),
    "ecce_r": ("ecce_r", {}),
    "logit_smoothed_ece": ("logit_smoothed_ece", {}),
}
METHODS = ("uniform", "percentile")
NAMES = [name for name in SCENARIOS if name != "skewed"]
SIZES = (50, 200, 1000, 10_000, 100_000)
LEVEL = 0.95
# What floating-point sums of a population may lack.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Block:
    """What a block of repetitions showed; the last three are medians."""

    scenario: str
    n: int
    measure: str
    method: str
    block: int
    truth: float
    repetitions: int
    covered: int
    low_right: int
    high_right: int
    seconds: float
    width: float
    high: float
    centre: float


def truth(scenario: Scenario, measure: str) -> float:
    """Return the population value, from points and masses that stand for the population."""
    name, options = MEASURES[measure]
    if name == "smooth_ece":
        return scenario.smooth_ece()
    if name in ("ecce_mad", "ecce_r"):
        return float(getattr(scenario, name)())
    p, mass = scenario.quadrature(np.arange(16) / 15)
    y = scenario.outcome_probability(p)
    kept = mass > 0
    return read_measure(name, dict(options))(Sample(y[kept], p[kept], mass[kept]))


def measured(
    scenario: str,
    n: int,
    measure: str,
    method: str,
    block: int,
    exact: float,
    plan: argparse.Namespace,
) -> Block:
    """Run one block."""
    name, options = MEASURES[measure]
    key = [NAMES.index(scenario), n, block]
    ends, start = [], time.perf_counter()
    for repetition in range(plan.block):
        # All measures see the same samples, scenarios and sizes do not share theirs.
        drawn = simulate(scenario, n, rng=np.random.default_rng([*key, repetition]))
        found = estimate(
            *(name, drawn.y_true, drawn.y_prob),
            level=LEVEL,
            method=method,
            n_resamples=plan.resamples,
            rng=repetition,
            **options,
        )
        ends.append((found.low, found.high, found.bias_corrected))
    low, high, centre = np.array(ends).T
    low_right, high_right = low <= exact + ROUNDING, high >= exact - ROUNDING
    return Block(
        *(scenario, n, measure, method, block, exact, plan.block),
        covered=int(np.sum(low_right & high_right)),
        low_right=int(low_right.sum()),
        high_right=int(high_right.sum()),
        seconds=round(time.perf_counter() - start, 3),
        width=float(np.median(high - low)),
        high=float(np.median(high)),
        centre=float(np.median(centre)),
    )


def read(path: Path) -> list[Block]:
    """Read the blocks measured so far."""
    if not path.exists():
        return []
    types = {"str": str, "int": int, "float": float}
    with path.open(newline="") as file:
        return [
            Block(*(types[str(field.type)](line[field.name]) for field in fields(Block)))
            for line in csv.DictReader(file)
        ]


def study(path: Path, plan: argparse.Namespace) -> Iterator[Block]:
    """Measure what is not in the file yet, block by block, and write it there."""
    done = {(b.scenario, b.n, b.measure, b.method, b.block) for b in read(path)}
    truths = {(s, m): truth(SCENARIOS[s], m) for s in plan.scenarios for m in plan.measures}
    cells = [
        (s, n, m, method, block)
        for block in range(-(-plan.repetitions // plan.block))
        for n in plan.sizes
        for s in plan.scenarios
        for m in plan.measures
        for method in METHODS
        if method == "uniform" or block < plan.naive_blocks
    ]
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Block)])
        if file.tell() == 0:
            writer.writeheader()
        for at, cell in enumerate(cells):
            if cell in done:
                continue
            result = measured(*cell, truths[cell[0], cell[2]], plan)
            writer.writerow(asdict(result))
            file.flush()
            print(f"{at + 1} of {len(cells)}: {cell} {result.covered}", file=sys.stderr)
            yield result


def table(blocks: list[Block]) -> str:
    """Return coverage and width of both methods, a line a cell of the study."""
    cells: dict[tuple[str, str, int], dict[str, list[Block]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for block in blocks:
        cells[block.measure, block.scenario, block.n][block.method].append(block)
    head = "| measure | scenario | n | truth | repetitions | coverage | low right | high right "
    lines = [head + "| high | centre | width | percentile coverage | its width | ratio |"]
    lines.append("|---" * 14 + "|")
    for (measure, scenario, n), methods in sorted(cells.items()):
        ours, naive = methods["uniform"], methods["percentile"]
        width, naive_width = _mean(ours, "width"), _mean(naive, "width")
        numbers = [_share(ours, name) for name in ("covered", "low_right", "high_right")]
        sizes = [_mean(ours, name) for name in ("high", "centre", "width")]
        lines.append(
            f"| {measure} | {scenario} | {n} | {(ours or naive)[0].truth:.4f} "
            f"| {sum(block.repetitions for block in ours)} | "
            + " | ".join(f"{number:.3f}" for number in numbers)
            + " | "
            + " | ".join(f"{size:.4f}" for size in sizes)
            + f" | {_share(naive, 'covered'):.3f} | {naive_width:.4f} | {width / naive_width:.2f} |"
        )
    return "\n".join(lines)


def _share(blocks: list[Block], name: str) -> float:
    repetitions = sum(block.repetitions for block in blocks)
    return sum(getattr(block, name) for block in blocks) / repetitions if blocks else np.nan


def _mean(blocks: list[Block], name: str) -> float:
    return float(np.mean([getattr(block, name) for block in blocks])) if blocks else np.nan


def main() -> None:
    """Read the command, run what it asks for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="the CSV file to write or go on with")
    parser.add_argument("--quick", action="store_true", help="100 repetitions, n up to 1000")
    parser.add_argument("--table", action="store_true", help="only print what was measured")
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--block", type=int, default=50, help="repetitions in a block")
    parser.add_argument("--naive-blocks", type=int, default=40, help="blocks with percentile too")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--scenarios", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--measures", nargs="+", choices=MEASURES, default=list(MEASURES))
    plan = parser.parse_args()
    if plan.quick:
        plan.repetitions, plan.naive_blocks = 100, 1
        plan.sizes = [n for n in plan.sizes if n <= 1000]
    if not plan.table:
        for _ in study(plan.path, plan):
            pass
    print(table(read(plan.path)))


if __name__ == "__main__":
    main()
