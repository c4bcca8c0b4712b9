"""What a run finds, kept as JSON. All times are in yardsticks, never in seconds."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

OURS = "calibrant"
# The unit of time, taken anew in every round: numpy adds up two columns of a million rows.
YARDSTICK_ROWS = 10**6
YARDSTICK = "numpy's sums of two columns of a million rows"


@dataclass(frozen=True)
class Ratio:
    """A median over rounds, and how far rounds spread."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: tuple[float, ...]) -> Ratio:
        """Summarise the rounds."""
        return cls(statistics.median(values), min(values), max(values))

    def times(self, factor: float) -> Ratio:
        """Return so many times the ratio."""
        return Ratio(factor * self.middle, factor * self.low, factor * self.high)

    def __str__(self) -> str:
        return f"{figure(self.middle)} ({figure(self.low)} to {figure(self.high)})"


@dataclass(frozen=True)
class Entry:
    """One contestant: its time in each round, and the peak of memory in MiB beyond the input."""

    name: str
    times: tuple[float, ...] = ()
    note: str = ""
    memory: float | None = None


@dataclass(frozen=True)
class Contest:
    """One task at one size, and how everybody fared."""

    task: str
    size: int
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry:
        """Return what is known of a contestant, which may be nothing."""
        return next((entry for entry in self.entries if entry.name == name), Entry(name))

    def ratio(self, name: str, to: str = OURS) -> Ratio | None:
        """Return how many times as long a contestant takes as another, if both ran."""
        pairs = zip(self.entry(name).times, self.entry(to).times, strict=False)
        ratios = tuple(theirs / ours for theirs, ours in pairs)
        return Ratio.of(ratios) if ratios else None


@dataclass(frozen=True)
class Results:
    """Everything that one run found."""

    versions: dict[str, str]
    is_quick: bool
    is_compiled: bool
    contests: tuple[Contest, ...]

    def contest(self, task: str, size: int | None = None) -> Contest:
        """Return a task's contest at a size, or at its largest; it may be without entries."""
        found = [c for c in self.contests if c.task == task and size in {None, c.size}]
        return max(found, key=lambda c: c.size, default=Contest(task, size or 0, ()))

    def of_task(self, task: str) -> list[Contest]:
        """Return the contests of a task, from small to large."""
        return sorted((c for c in self.contests if c.task == task), key=lambda c: c.size)

    def save(self, path: Path) -> None:
        """Write JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` wrote."""
        fields = json.loads(path.read_text())
        return cls(**{**fields, "contests": tuple(_contest(**c) for c in fields["contests"])})


def _contest(task: str, size: int, entries: list[dict[str, object]]) -> Contest:
    return Contest(task, size, tuple(_entry(**entry) for entry in entries))


def _entry(name: str, times: list[float], note: str, memory: float | None) -> Entry:
    return Entry(name, tuple(times), note, memory)


def figure(value: float) -> str:
    """Write a number with two or three digits that count."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
