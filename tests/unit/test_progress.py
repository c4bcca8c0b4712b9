"""Work in steps: how much of it is done, and when it is shown."""

import io
import re
import sys
import time

import pytest

from calibrant import progress
from calibrant.progress import Work, shown, steps
from tests import PATIENCE


@pytest.fixture
def work():
    """Return work that is followed."""
    one = Work("working")
    token = progress._current.set(one)
    yield one
    progress._current.reset(token)


def test_steps_divide_the_work_evenly(work):
    assert [work.done for _ in steps("abcd")] == [0, 0.25, 0.5, 0.75]


def test_steps_within_steps_divide_their_part(work):
    seen = [work.done for _ in steps("ab") for _ in steps("cd")]
    assert seen == [0, 0.25, 0.5, 0.75]
    assert (work.start, work.stop) == (0.0, 1.0)


def test_what_runs_inside_a_step_is_counted(work):
    # An engine that has not begun, one in the middle, and one that counts too far.
    inside = iter([-0.01, 0.5, 1.5])
    assert [work.done for _ in steps("abc", lambda: next(inside))] == pytest.approx([0, 0.5, 1])


def test_what_is_done_stays_done(work):
    seen = [work.done for items in ("ab", "abcd") for _ in steps(items)]
    assert seen == [0, 0.5, 0.5, 0.5, 0.5, 0.75]


def test_a_loop_that_is_left_early_leaves_the_rest_of_the_work(work):
    loop = steps("ab")
    next(loop)
    loop.close()
    assert (work.start, work.stop) == (0.0, 1.0)


def test_nothing_is_recorded_where_nobody_looks():
    assert list(steps(iter("ab"))) == ["a", "b"]
    assert progress._current.get() is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("delay", "appears"), [(0.0, True), (60.0, False)])
def test_long_work_is_shown_with_percentage_and_time_left(monkeypatch, delay, appears):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_DELAY", delay)
    monkeypatch.setenv("TERM", "xterm")

    def text():
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())

    half_done = re.compile(r"50%.*about \d+ .*left")
    with shown("measuring"), shown("something within"):
        for step in steps("abcd"):
            # On a busy machine the line may be drawn late: the third step lasts until it is.
            until = time.monotonic() + PATIENCE
            while appears and step == "c" and not half_done.search(text()):
                assert time.monotonic() < until, text()
                time.sleep(0.02)
    assert ("measuring" in text()) == appears
    assert "within" not in text()


def test_nothing_is_shown_elsewhere(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    with shown("measuring"):
        assert progress._current.get() is None
    monkeypatch.setattr(sys, "stderr", None)
    with shown("measuring"):
        pass
    assert stream.getvalue() == ""
