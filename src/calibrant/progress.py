"""Progress of long work: how much of it is done, shown on a terminal from two seconds on.

Work divides itself with :func:`steps` around a loop; steps within steps divide their part. Where
nobody has opened :func:`shown`, nothing is recorded and nothing is shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.table import Table

T = TypeVar("T")

_DELAY = 2.0
# A smaller fraction of the work tells too little about the rest.
_LEAST_DONE = 0.03
_BAR_WIDTH = 30


@dataclass
class Work:
    """What is going on, and which part of it: from `start` to `stop`, as fractions of the whole.

    `inner` returns how much of that part is done, where something else knows it.
    """

    what: str
    start: float = 0.0
    stop: float = 1.0
    inner: Callable[[], float] | None = None
    began: float = field(default_factory=time.monotonic)
    _most: float = 0.0

    @property
    def done(self) -> float:
        """The fraction that is done, which never decreases."""
        inside = 0.0 if self.inner is None else min(max(self.inner(), 0.0), 1.0)
        self._most = max(self._most, self.start + inside * (self.stop - self.start))
        return self._most

    def __rich__(self) -> Table:
        """Return a line with a bar, the percentage and the time left."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        done, elapsed = self.done, time.monotonic() - self.began
        remark = f"{_duration(elapsed)} so far"
        if done >= _LEAST_DONE:
            remark = f"about {_duration(elapsed / done - elapsed)} left"
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=done, width=_BAR_WIDTH)
        line.add_row(self.what, bar, f"{100 * done:3.0f}%", remark)
        return line


_current: ContextVar[Work | None] = ContextVar("work", default=None)


def steps(items: Iterable[T], inner: Callable[[], float] | None = None) -> Iterator[T]:
    """Yield items, the work on each being an equal part of that at hand.

    `inner` returns how much of the work on one item is done.
    """
    work = _current.get()
    if work is None:
        yield from items
        return
    items = list(items)
    whole = (work.start, work.stop, work.inner)
    width = (work.stop - work.start) / max(len(items), 1)
    try:
        for i, item in enumerate(items):
            work.start, work.stop = whole[0] + i * width, whole[0] + (i + 1) * width
            work.inner = inner
            yield item
    finally:
        work.start, work.stop, work.inner = whole


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Show on a terminal how much of the work inside is done, once it has taken two seconds."""
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if _current.get() is not None or not on_terminal or find_spec("rich") is None:
        yield
        return
    from rich.console import Console  # type: ignore[import-not-found, unused-ignore]
    from rich.live import Live

    work = Work(what)
    live = Live(work, console=Console(stderr=True), transient=True)
    timer = Timer(_DELAY, live.start)
    timer.daemon = True
    token = _current.set(work)
    timer.start()
    try:
        yield
    finally:
        _current.reset(token)
        timer.cancel()
        timer.join()
        live.stop()


def _duration(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> _duration(8.2), _duration(95), _duration(4000)
    ('8 s', '1 min 35 s', '1 h 7 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {round(whole % 3600 / 60)} min"
