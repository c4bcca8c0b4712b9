"""Hold one contest: try everybody once, leave out who cannot, and time the others in turn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.peers import PEERS, Peer, Skill
from benchmarks.results import OURS, YARDSTICK_ROWS, Contest, Entry
from benchmarks.tasks import LIMITS, Task
from benchmarks.timing import Call, in_turn

_UNIT = "yardstick"
# A first call that takes no more seconds than this is followed by a second, with all loaded.
_QUICK_ENOUGH = 5.0


@dataclass
class Referee:
    """Knows how long contestants may take, and how long they took at the size before.

    `allowed` is the time, in seconds, that one call may take: who would need more at the next size
    is not called again, and who needs much of it takes part in fewer rounds.
    """

    allowed: float
    rounds: int = 5
    peers: tuple[Peer, ...] = PEERS
    _columns: np.ndarray = field(default_factory=lambda: np.ones((2, YARDSTICK_ROWS)))
    _last: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    def hold(self, task: Task, size: int) -> Contest:
        """Time calibrant, the limits and whoever else can do the task."""
        y, p = task.sample(size)
        calls = {OURS: task.ours(y, p), **{name: LIMITS[name](y, p) for name in task.limits}}
        trials = {name: self._try(task, size, name, call) for name, call in calls.items()}
        expected = trials[OURS].value
        for peer in self.peers if size in task.sizes else ():
            skill = peer.skills.get(task.skill or task.name)
            if skill is not None:
                trials[peer.name] = self._try_peer(task, size, peer, skill, expected)
        return self.timed(task.name, size, trials)

    def compare(self, task: str, size: int, calls: Mapping[str, Call]) -> Contest:
        """Time some calls, the first of which is calibrant's."""
        trials = {name: Trial(call, *_tried(call)) for name, call in calls.items()}
        return self.timed(task, size, trials)

    def timed(self, task: str, size: int, trials: Mapping[str, Trial]) -> Contest:
        """Time who got through the trial, each round beside the yardstick."""
        able = {name: trial for name, trial in trials.items() if trial.call is not None}
        calls: dict[str, Call] = {_UNIT: self._yardstick}
        calls |= {name: trial.call for name, trial in able.items() if trial.call is not None}
        rounds = {_UNIT: self.rounds, **{name: self._rounds(able[name]) for name in able}}
        times = in_turn(calls, rounds)
        units = times.pop(_UNIT)
        entries = []
        for name, trial in trials.items():
            taken = zip(times.get(name, ()), units, strict=False)
            entries.append(Entry(name, tuple(t / unit for t, unit in taken), trial.note))
        return Contest(task, size, tuple(entries))

    def _rounds(self, trial: Trial) -> int:
        return max(1, min(self.rounds, int(2 * self.allowed / max(trial.seconds, 1e-9))))

    def _yardstick(self) -> object:
        return self._columns[0].sum() + self._columns[1].sum()

    def _try_peer(self, task: Task, size: int, peer: Peer, skill: Skill, expected: object) -> Trial:
        if peer.version() is None:
            return Trial(note="not installed")
        try:
            call = skill.prepare(*task.sample(size))
        except Exception as error:  # noqa: BLE001 — whatever a peer does is told, not raised
            return Trial(note=_told(error))
        trial = self._try(task, size, peer.name, call)
        trial.note = "; ".join(
            filter(
                None, (skill.remark, trial.note, _difference(trial.value, expected, task, skill))
            )
        )
        return trial

    def _try(self, task: Task, size: int, name: str, call: Call) -> Trial:
        """Call once, unless the size before says that it would take too long."""
        key, work = (task.skill or task.name, name), task.sample(size)[1].size
        before, took = self._last.get(key, (work, 0.0))
        if name != OURS and took * work / before > self.allowed:
            return Trial(note=f"too slow for {size:,} {task.unit}")
        try:
            value, seconds = _tried(call)
        except Exception as error:
            if name == OURS:
                raise
            return Trial(note=_told(error))
        self._last[key] = (work, seconds)
        return Trial(call, value, seconds)


@dataclass
class Trial:
    """The first call of a contestant: what came out, and how long that took."""

    call: Call | None = None
    value: object = None
    seconds: float = 0.0
    note: str = ""


def _tried(call: Call) -> tuple[object, float]:
    """Call once to load and compile, and again, if that was quick, to see how long it takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, seconds = _clocked(call)
        if seconds < _QUICK_ENOUGH:
            value, seconds = _clocked(call)
    return value, seconds


def _clocked(call: Call) -> tuple[object, float]:
    start = time.perf_counter()
    value = call()
    return value, time.perf_counter() - start


def _told(error: Exception) -> str:
    words = " ".join(str(error).split())
    return f"raised {type(error).__name__}: {words[:80]}"


def _difference(value: object, expected: object, task: Task, skill: Skill) -> str:
    """Say by how much a value differs from ours, if both are numbers and it does."""
    if not isinstance(value, float) or not isinstance(expected, float):
        return ""
    if abs(value - expected) <= task.tolerance:
        return ""
    return f"gives {value:.5f} instead of {expected:.5f}" + (f": {skill.why}" if skill.why else "")
