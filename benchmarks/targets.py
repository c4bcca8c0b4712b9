"""Aims, and whether the run reaches them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks import parquet
from benchmarks.around import LESS, SMALL, SMALL_SUM
from benchmarks.results import OURS, Ratio, Results
from benchmarks.tasks import SUMS


@dataclass(frozen=True)
class Target:
    """A ratio that should be at least, or at most, so large."""

    what: str
    bound: float
    is_floor: bool
    find: Callable[[Results], Ratio | None]
    why_not: Callable[[Results], str] = lambda _: ""

    def judged(self, results: Results) -> Judgement:
        """Look the ratio up, or why there is none."""
        return Judgement(self, self.find(results), self.why_not(results) or "not measured")

    @property
    def aim(self) -> str:
        """Say what is aimed at."""
        return f"at {'least' if self.is_floor else 'most'} {self.bound:g}"


@dataclass(frozen=True)
class Judgement:
    """A target, what was measured, and whether the median is on the right side."""

    target: Target
    measured: Ratio | None
    why_not: str

    @property
    def verdict(self) -> str:
        """Say whether the target is met, or why nobody knows."""
        if self.measured is None:
            return self.why_not
        is_above = self.measured.middle >= self.target.bound
        holds = is_above == self.target.is_floor or self.measured.middle == self.target.bound
        return "yes" if holds else "no"

    def __str__(self) -> str:
        found = self.measured or ""
        return f"{self.target.what:<72} {self.target.aim:<14} {self.verdict:<13} {found}"


def _slower(task: str, size: int, peer: str, bound: float, what: str) -> Target:
    """Ask a peer to take so many times as long."""
    return Target(
        f"{what}, n = {_power(size)}: {peer} against calibrant",
        bound,
        True,
        lambda results: results.contest(task, size).ratio(peer),
        lambda results: results.contest(task, size).entry(peer).note,
    )


def _within(task: str, size: int, limit: str, bound: float, what: str) -> Target:
    """Ask calibrant to take no more than so many times as long as a limit."""
    return Target(
        f"{what}, n = {_power(size)}: calibrant against {limit}",
        bound,
        False,
        lambda results: results.contest(task, size).ratio(OURS, limit),
    )


def _classes(peer: str) -> Target:
    return Target(
        f"class-wise `ece`, 50 000 × 1000: {peer} against calibrant",
        5,
        True,
        lambda results: results.contest("thousand classes").ratio(peer),
        lambda results: results.contest("thousand classes").entry(peer).note,
    )


def _growth(task: str, what: str) -> Target:
    def find(results: Results) -> Ratio | None:
        found = results.contest(f"{task}, growth", 10**8).ratio(OURS, LESS)
        return found and found.times(0.01)

    words = f"{what}: 10⁸ rows against 100 times 10⁶"
    return Target(words, 1.15, False, find)


def _flat_memory(task: str, what: str) -> Target:
    """Ask for no more memory than a hundredth of the rows take, up to 1 % of the input."""

    def find(results: Results) -> Ratio | None:
        many, few = (results.contest(task, n).entry(OURS).memory for n in (10**8, 10**6))
        return None if many is None or few is None else Ratio.of((many - few,))

    return Target(f"{what}: MiB of memory that 10⁸ rows take more than 10⁶", 16, False, find)


def _file_memory(results: Results) -> Ratio | None:
    peak = results.contest("parquet", 10**8).entry(OURS).memory
    return None if peak is None else Ratio.of((peak / 1024,))


def _power(size: int) -> str:
    return "10" + str(len(str(size)) - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _targets() -> Iterator[Target]:
    # Compiled code serves from 2^23 rows on.
    for size, bound in ((10**3, 15), (10**5, 20), (10**7, 100)):
        yield _slower("smooth_ece", size, "relplot", bound, "`smooth_ece`")
    for size, bound in ((10**6, 4), (10**7, 10)):
        yield _slower("smooth_ece", size, "probcal", bound, "`smooth_ece`")
    for size, bound in ((10**7, 10), (10**3, 1)):
        for peer in ("scikit-learn", "torchmetrics", "netcal", "probcal"):
            yield _slower("ece", size, peer, bound, "`ece`")
    for peer in ("probcal", "mapie", "mcgrad"):
        yield _slower("test", 10**7, peer, 6, "ECCE with its P-value")
    yield _slower("assess", 10**5, "relplot", 30, "`assess`")
    # The last two know nothing of classes and are called once for each.
    yield from map(_classes, ("uncertainty-calibration", "mapie", "probcal", "relplot"))
    yield from _limits()


def _limits() -> Iterator[Target]:
    for task, bound in (("smooth_ece", 3), ("ece", 3), ("sketch", 6)):
        what = "`Sketch.update`" if task == "sketch" else f"`{task}`"
        yield _within(task, 10**7, SUMS, bound, what)
    yield _within("parquet", 10**8, parquet.SUMS, 3, "sketch of Parquet")
    yield Target("sketch of Parquet, n = 10⁸: peak of memory in GiB", 1, False, _file_memory)
    for task, what in (
        ("ece", "`ece`"),
        ("smooth_ece", "`smooth_ece`"),
        ("sketch", "`Sketch.update`"),
    ):
        yield _growth(task, what)
        yield _flat_memory(task, what)
    # 60 and 450 µs are aimed at, where a sum of 1000 numbers takes 1.5 µs.
    yield _within("ece, few rows", SMALL, SMALL_SUM, 40, "`ece`")
    yield _within("smooth_ece, few rows", SMALL, SMALL_SUM, 300, "`smooth_ece`")


TARGETS = tuple(_targets())
