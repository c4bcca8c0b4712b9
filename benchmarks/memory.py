"""Measure the peak of memory beyond the input, each time in a fresh process.

Run as ``python -m benchmarks.memory TASK CONTESTANT SIZE``; prints MiB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

_MIB = 2**20
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Enough rows to load and compile what the task needs, before memory is looked at.
_WARM_ROWS, _WARM_TABLE = 1 << 16, 64


def peak() -> float:
    """Return the peak of this process so far, in MiB.

    Where there is /proc it is asked: the system's own count of resources starts, in a new
    process, at the size of the one that started it.
    """
    if _STATUS.exists():
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _MIB


def _status(field: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024 / _MIB


def _mark() -> float:
    """Start a new peak, where the system can, and return where it starts."""
    if _CLEAR.exists():
        _CLEAR.write_text("5")
    return peak()


def of_call(task_name: str, contestant: str, size: int) -> float:
    """Return how much one call takes beyond its input, in MiB."""
    from benchmarks.peers import PEERS
    from benchmarks.results import OURS
    from benchmarks.tasks import TASKS

    task = next(task for task in TASKS if task.name == task_name)
    prepare = task.ours
    if contestant != OURS:
        peer = next(peer for peer in PEERS if peer.name == contestant)
        prepare = peer.skills[task.skill or task.name].prepare
    y, p = task.sample(size)
    few = slice(_WARM_ROWS if p.ndim == 1 else _WARM_TABLE)
    with suppress(Exception):  # a few rows may be too few for some, but what it needs is loaded
        prepare(y[few].copy(), p[few].copy())()
    call = prepare(y, p)
    before = _mark()
    call()
    return peak() - before


def in_fresh_process(task: str, contestant: str, size: int, folder: Path) -> float | None:
    """Return what `of_call` says in a process of its own, or None if that fails."""
    command = [sys.executable, "-m", __name__, task, contestant, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with suppress(ImportError):  # loaded when first needed, and not part of a call's own memory
        import calibrant.numerics.compiled  # noqa: F401
    print(of_call(sys.argv[1], sys.argv[2], int(sys.argv[3])))
