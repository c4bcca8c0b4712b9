"""Time several ways of doing one thing, in turn, in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

Call: TypeAlias = Callable[[], object]

# Calls shorter than this are repeated until they are not.
_LEAST = 0.02


def seconds(call: Call, at_least: float = _LEAST) -> float:
    """Return the time of one call, repeating short ones until they can be timed."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        elapsed = time.perf_counter() - start
        if elapsed >= at_least:
            return elapsed / calls
        calls = max(2 * calls, int(1.2 * calls * at_least / max(elapsed, 1e-9)))


def in_turn(
    calls: Mapping[str, Call], rounds: Mapping[str, int], clock: Callable[[Call], float] = seconds
) -> dict[str, tuple[float, ...]]:
    """Return the times of each call, taken in turn, round after round.

    A call with fewer rounds than others takes part in the first ones, so that the times of two
    calls pair up from the first on.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    was_on = gc.isenabled()
    gc.disable()
    try:
        for i in range(max(rounds.values())):
            gc.collect()
            for name, call in calls.items():
                if i < rounds[name]:
                    times[name].append(clock(call))
    finally:
        if was_on:
            gc.enable()
    return {name: tuple(taken) for name, taken in times.items()}
