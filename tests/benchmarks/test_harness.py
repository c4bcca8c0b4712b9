"""The benchmarks time in turn, tell who fails or differs, and keep what they find."""

import gc
import itertools

import numpy as np
import pytest

from benchmarks import page
from benchmarks.contest import Referee
from benchmarks.peers import PEERS, Peer, Skill
from benchmarks.results import OURS, Contest, Entry, Ratio, Results
from benchmarks.run import lines
from benchmarks.targets import Target
from benchmarks.tasks import SUMS, TASKS, Task
from benchmarks.timing import in_turn, seconds


def _mean(shift=0.0):
    return lambda y, p: lambda: float(np.mean(p)) + shift


def _refusing(y, p):
    raise RuntimeError("no\nthanks")


TASK = Task("mean", "the mean", _mean(), (10, 1000), 1e-6)


# Packages that are certainly there lend their names.
_NAMES = ("numpy", "scipy", "narwhals", "matplotlib")


def _held(**skills):
    """Hold a contest of peers with a skill each; return their entries, and all of it."""
    lent = dict(zip(skills, _NAMES, strict=False))
    peers = tuple(Peer(lent[who], "", {"mean": skills[who]}) for who in skills)
    contest = Referee(10.0, 2, peers).hold(TASK, 10)
    return {who: contest.entry(name) for who, name in lent.items()}, contest


def test_calls_take_turns_and_slow_ones_leave_early():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "abc"}
    ticks = itertools.count()

    def clock(call):
        call()
        return next(ticks)

    times = in_turn(calls, {"a": 3, "b": 1, "c": 2}, clock)
    assert "".join(order) == "abcaca"
    assert times == {"a": (0, 3, 5), "b": (1,), "c": (2, 4)}


def test_garbage_is_not_collected_meanwhile_and_is_again_after_an_error():
    seen = []
    in_turn({"a": lambda: seen.append(gc.isenabled())}, {"a": 1}, lambda call: call())
    assert seen == [False]
    with pytest.raises(ZeroDivisionError):
        in_turn({"a": lambda: 1 / 0}, {"a": 1})
    assert gc.isenabled()


def test_short_calls_are_repeated():
    calls = []
    taken = seconds(lambda: calls.append(0), at_least=0.01)
    assert len(calls) > 100
    assert 0 < taken < 0.001


def test_ratios_pair_the_rounds_of_both():
    contest = Contest("t", 1, (Entry(OURS, (1.0, 2.0, 10.0)), Entry("x", (3.0, 4.0)), Entry("y")))
    assert contest.ratio("x") == Ratio(2.5, 2.0, 3.0)
    assert contest.ratio(OURS, "x").low == pytest.approx(1 / 3)
    assert contest.ratio("y") is None
    assert contest.ratio("nobody") is None


def test_a_peer_that_agrees_is_timed_without_a_word():
    entries, contest = _held(good=Skill(_mean(1e-9)))
    assert entries["good"].note == ""
    assert len(entries["good"].times) == len(contest.entry(OURS).times) == 2
    assert contest.entry(SUMS).times


def test_who_raises_differs_or_is_missing_says_so():
    entries, _ = _held(
        raises=Skill(_refusing), late=Skill(lambda y, p: lambda: 1 / 0),
        differs=Skill(_mean(0.25), "quick", "adds a quarter"), silent=Skill(lambda y, p: list),
    )  # fmt: skip
    assert entries["raises"] == Entry("numpy", (), "raised RuntimeError: no thanks")
    assert entries["late"].note == "raised ZeroDivisionError: division by zero"
    assert entries["differs"].note.startswith("quick; gives 0.")
    assert entries["differs"].note.endswith(": adds a quarter")
    assert entries["differs"].times
    assert entries["silent"].note == ""
    peer = Peer("no-such-package", "nothing", {"mean": Skill(_mean())})
    missing = Referee(1.0, 1, (peer,)).hold(TASK, 10).entry(peer.name)
    assert missing == Entry(peer.name, (), "not installed")


def test_who_was_slow_is_not_tried_with_more_rows():
    tried = []

    def slow(y, p):
        return lambda: tried.append(sum(range(10**5))) or float(np.mean(p))

    referee = Referee(0.01, 1, (Peer("numpy", "numpy", {"mean": Skill(slow)}),))
    assert referee.hold(TASK, 10).entry("numpy").times
    before = len(tried)
    entry = referee.hold(TASK, 1000).entry("numpy")
    assert (entry.times, entry.note) == ((), "too slow for 1,000 rows")
    assert len(tried) == before


def test_our_own_errors_are_not_swallowed():
    broken = Task("mean", "the mean", _refusing, (10,))
    with pytest.raises(RuntimeError):
        Referee(1.0, 1, ()).hold(broken, 10)


def test_every_skill_is_asked_for():
    asked = {task.skill or task.name for task in TASKS}
    assert all(set(peer.skills) <= asked for peer in PEERS)


@pytest.fixture
def results():
    def contest(task, size, *entries):
        return Contest(task, size, (Entry(OURS, (2.0, 2.0), "", 3.25), *entries))

    slow, sums = Entry("relplot", (64.0, 68.0)), Entry(SUMS, (1.0, 0.5))
    odd = Entry("probcal", (8.0,), "gives 0.2 instead of 0.1: by design", 40.0)
    held = (
        contest("smooth_ece", 1000, slow, odd, sums),
        contest("smooth_ece", 10**7, Entry("relplot", (), "too slow for 10,000,000 rows"), sums),
    )
    return Results({OURS: "1.2.3"}, False, True, held)


def test_results_survive_json(results, tmp_path):
    results.save(tmp_path / "new" / "results.json")
    assert Results.load(tmp_path / "new" / "results.json") == results


def test_targets_are_judged_by_the_median(results):
    def verdict(bound, is_floor, size=1000):
        find = lambda found: found.contest("smooth_ece", size).ratio("relplot")  # noqa: E731
        return Target("", bound, is_floor, find).judged(results).verdict

    assert [verdict(bound, True) for bound in (30, 33, 35)] == ["yes", "yes", "no"]
    assert [verdict(bound, False) for bound in (30, 33, 35)] == ["no", "yes", "yes"]
    assert verdict(30, True, 10**7) == "not measured"


def test_lines_tell_peers_from_limits(results):
    _, relplot, probcal, sums = lines(results.contests[0])
    assert relplot.endswith("takes 33.0 (32.0 to 34.0) times as long")
    assert probcal.endswith("40 MiB, gives 0.2 instead of 0.1: by design")
    assert sums.endswith("calibrant takes 3.00 (2.00 to 4.00) times as long")


def test_the_page_is_made_of_the_file_alone(results, tmp_path, monkeypatch):
    results.save(tmp_path / "results.json")
    monkeypatch.setattr("sys.argv", ["page", str(tmp_path / "results.json"), str(tmp_path)])
    page.main()
    text = (tmp_path / "benchmarks.md").read_text()
    wanted = (
        "calibrant 1.2.3",
        "n = 10³: relplot against calibrant | at least 15 | 33.0 (32.0 to 34.0) | yes |",
        "n = 10⁷: relplot against calibrant | at least 100 | – | too slow for 10,000,000 rows |",
        "| relplot | 33.0 (32.0 to 34.0) | – |",
        "| calibrant, against summing both arrays | 3.00 (2.00 to 4.00) | 3.00 (2.00 to 4.00) |",
        "- relplot: not tried from 10⁷ on.",
        "- probcal: by design (0.2 instead of 0.1 at 10³).",
    )
    assert [line for line in wanted if line not in text] == []
    drawn = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert drawn == {f"benchmarks-{name}.svg" for name in page._PICTURES}
