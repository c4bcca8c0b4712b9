"""Time two ways of doing one thing, alternately, and report the ratio with its spread."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """How many times longer the other way takes."""

    task: str
    other: str
    ratios: tuple[float, ...]

    def __str__(self) -> str:
        low, high = min(self.ratios), max(self.ratios)
        middle = statistics.median(self.ratios)
        return f"{self.task:<44} {middle:9.2f}x ({low:.2f} to {high:.2f}) vs {self.other}"


def ratio(
    task: str, ours: Callable[[], object], other: str, theirs: Callable[[], object], rounds: int = 5
) -> Ratio:
    """Run both once to warm up, then alternately; return theirs / ours of each round."""
    ours(), theirs()
    ratios = tuple(_seconds(theirs) / _seconds(ours) for _ in range(rounds))
    return Ratio(task, other, ratios)


def _seconds(call: Callable[[], object], at_least: float = 0.05) -> float:
    """Return the time of one call, repeating short ones until they can be timed."""
    gc.collect()
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        elapsed = time.perf_counter() - start
        if elapsed >= at_least:
            return elapsed / calls
        calls = max(2 * calls, int(calls * at_least / max(elapsed, 1e-9)))
