"""Contests that are not one call on two columns: imports, merges, pages, growth, small samples."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import calibrant as cb
from benchmarks import samples
from benchmarks.contest import Referee
from benchmarks.peers import PEERS, Peer
from benchmarks.results import OURS, Contest
from benchmarks.tasks import LIMITS, SUMS, TASKS, Task
from benchmarks.timing import Call
from calibrant.numerics import compiled_sums

LESS = "a hundredth of the rows"
SMALL, SMALL_SUM = 1000, "one sum of 1000 numbers"
ONE_PASS = ("ece", "smooth_ece", "sketch")


def one_pass() -> list[Task]:
    """Return the tasks that pass over the rows once."""
    return [task for task in TASKS if task.name in ONE_PASS]


def imports(referee: Referee, peers: tuple[Peer, ...] = PEERS) -> Contest:
    """Compare fresh interpreters that import calibrant with all it needs, a peer, or less."""
    statements = {
        OURS: "from calibrant import assess",
        "`import calibrant` alone": "import calibrant",
        "numpy": "import numpy",
        "nothing": "pass",
    }
    statements |= {peer.name: f"import {peer.module}" for peer in peers if peer.version()}
    return referee.compare("import", 1, {name: _fresh(code) for name, code in statements.items()})


def _fresh(code: str) -> Call:
    command = [sys.executable, "-W", "ignore", "-c", code]
    return lambda: subprocess.run(command, check=True, capture_output=True)


def merge(referee: Referee, n_sketches: int) -> Contest:
    """Compare a sum of sketches with adding their tables; each of a hundred comes several times."""
    y, p = samples.over_confident(10**5)
    some = [cb.Sketch().update(y[i::100], p[i::100]) for i in range(100)]
    many = some * (n_sketches // len(some))
    tables = [one.table.moments for one in many]
    calls: dict[str, Call] = {OURS: lambda: sum(many), "adding their tables": lambda: sum(tables)}
    return referee.compare("merge", n_sketches, calls)


def report(referee: Referee, n: int) -> Contest:
    """Compare writing the page with finding what it says."""
    y, p = samples.over_confident(n)
    found = cb.assess(y, p)
    return referee.compare(
        "report", n, {OURS: found.to_html, "the assessment itself": lambda: cb.assess(y, p)}
    )


def small(referee: Referee) -> Iterator[Contest]:
    """Compare calls on few rows, which are all overhead, with numpy's shortest."""
    y, p = samples.over_confident(SMALL)
    for name, call in (("ece", cb.ece), ("smooth_ece", cb.smooth_ece)):
        calls: dict[str, Call] = {OURS: lambda call=call: call(y, p), SMALL_SUM: p.sum}
        yield referee.compare(f"{name}, few rows", SMALL, calls)


@contextmanager
def numpy_alone() -> Iterator[None]:
    """Leave compiled code aside for a while."""
    usual, compiled_sums.MIN_ROWS = compiled_sums.MIN_ROWS, sys.maxsize
    try:
        yield
    finally:
        compiled_sums.MIN_ROWS = usual


def without_compiled(referee: Referee, n: int) -> Iterator[Contest]:
    """Compare with summing what numpy does by itself."""
    y, p = samples.over_confident(n)
    with numpy_alone():
        for task in one_pass():
            calls = {OURS: task.ours(y, p), SUMS: LIMITS[SUMS](y, p)}
            yield referee.compare(f"{task.name}, numpy alone", n, calls)


def growth(referee: Referee, n: int) -> Iterator[Contest]:
    """Compare n rows with a hundredth of them."""
    y, p = samples.over_confident(n)
    few_y, few_p = np.array(y[: n // 100]), np.array(p[: n // 100])
    for task in one_pass():
        calls = {OURS: task.ours(y, p), LESS: task.ours(few_y, few_p)}
        yield referee.compare(f"{task.name}, growth", n, calls)
