"""Measure everything and keep it.

python -m benchmarks.run [--quick] [--out build/benchmarks/results.json]
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from benchmarks import around, memory, parquet
from benchmarks.contest import Referee
from benchmarks.peers import PEERS, is_peer
from benchmarks.results import OURS, Contest, Entry, Results
from benchmarks.targets import TARGETS
from benchmarks.tasks import LIMITS, TASKS, Task
from calibrant import __version__

_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Extent:
    """How far a run goes: rows of the longest columns, for calibrant and for everybody."""

    is_quick: bool
    most_alone: int
    most: int
    most_classes: int
    allowed: float
    rounds: int
    least_for_memory: int


FULL = Extent(False, 10**8, 10**7, 1000, 30.0, 5, 10**4)
QUICK = Extent(True, 10**6, 10**5, 100, 0.5, 3, 10**6)


def contests(extent: Extent) -> Iterator[Contest]:
    """Hold all contests, the columns of one length after those of another."""
    referee = Referee(extent.allowed, extent.rounds)
    yield around.imports(referee, () if extent.is_quick else PEERS)
    yield from around.small(referee)
    yield from _by_size(referee, extent)
    yield from around.growth(referee, extent.most_alone)
    yield from around.without_compiled(referee, extent.most)
    yield around.merge(referee, 1000)
    yield around.report(referee, min(10**5, extent.most))
    yield parquet.contest(referee, extent.most_alone)


def _by_size(referee: Referee, extent: Extent) -> Iterator[Contest]:
    """Try every task at its sizes, from few rows to many, so that slow peers stop in time."""
    tried = [(size, task) for task in TASKS for size in _sizes(task, extent)]
    for size, task in sorted(tried, key=lambda one: one[0]):
        yield _with_memory(referee.hold(task, size), task, extent)


def _sizes(task: Task, extent: Extent) -> list[int]:
    most = extent.most_classes
    if task.unit == "rows":
        most = extent.most_alone if task.alone else extent.most
    return [size for size in (*task.sizes, *task.alone) if size <= most]


def _with_memory(contest: Contest, task: Task, extent: Extent) -> Contest:
    """Measure memory, too, of who could be timed; limits need none to speak of."""
    is_small = task.unit == "rows" and contest.size < extent.least_for_memory
    if not task.has_memory or is_small:
        return contest

    def measured(entry: Entry) -> Entry:
        if entry.name in LIMITS or not entry.times:
            return entry
        found = memory.in_fresh_process(task.name, entry.name, contest.size, _ROOT)
        return replace(entry, memory=found)

    return replace(contest, entries=tuple(measured(entry) for entry in contest.entries))


def lines(contest: Contest) -> Iterator[str]:
    """Yield one line a contestant: how many times as long it or calibrant takes."""
    for entry in contest.entries:
        is_other = is_peer(entry.name)
        ratio = contest.ratio(entry.name) if is_other else contest.ratio(OURS, entry.name)
        said = f"{'takes' if is_other else 'calibrant takes'} {ratio} times as long"
        if ratio is None or entry.name == OURS:
            said = ""
        room = "" if entry.memory is None else f"{entry.memory:.0f} MiB"
        said = ", ".join(filter(None, (said, room, entry.note)))
        yield f"{contest.task:<24}{contest.size:>11}  {entry.name:<24} {said}"


def versions() -> dict[str, str]:
    """Return what was compared, by version."""
    found = {"Python": platform.python_version(), OURS: __version__}
    for name in ("numpy", "numba", "duckdb", *(peer.name for peer in PEERS)):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, in a few minutes")
    parser.add_argument("--out", type=Path, default=_ROOT / "build/benchmarks/results.json")
    options = parser.parse_args()
    held = []
    for contest in contests(QUICK if options.quick else FULL):
        held.append(contest)
        print("\n".join(lines(contest)), flush=True)
    results = Results(versions(), options.quick, find_spec("numba") is not None, tuple(held))
    results.save(options.out)
    print("\n".join(str(target.judged(results)) for target in TARGETS))


if __name__ == "__main__":
    main()
