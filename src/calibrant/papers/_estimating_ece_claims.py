"""What section 5.2 of Posocco and Bonnefoy (2021) says, each beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from calibrant.papers._ece_study import AS_CODED, RIGHT, Study
from calibrant.papers._page import Comparison, compared

# An error this many times the least is as good as the least.
_AS_GOOD = 1.05
_PERCENT = "0.1"
_NOTE = (
    "The released plotting code takes medians of the deviations before they are divided by the "
    "truth: figure 2 shows absolute errors, and 0.1 is one of those."
)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, whether it holds here, and by what numbers."""

    said: str
    holds: bool
    found: str


def comparisons(study: Study) -> Iterator[Comparison]:
    """Compare the one number of the section: errors "around 10% of the true value"."""
    n = study.sizes[0]
    for setting in ("confidence", "classwise"):
        points = [study.points[setting, name, n] for name in AS_CODED]
        for measure, note in (("relative", _NOTE), ("absolute", "")):
            middle = sorted(points, key=attrgetter(measure))[len(points) // 2]
            ours, noise = (getattr(middle, name) for name in (measure, f"{measure}_noise"))
            where = f"{measure} error, n = {n}"
            yield compared("Section 5.2", setting, where, _PERCENT, ours, noise, note)


def claims(study: Study) -> list[Claim]:
    """Check what the paper reads from figure 2, on what figure 2 shows: absolute errors."""
    return [
        _silverman_confidence(study),
        _mapping(study, "convex", "legacy"),
        _mapping(study, "adaptive-convex", "adaptive"),
        _adaptive(study),
        _alike(study),
        _square_root(study),
        *_class_wise(study),
        _silverman_class_wise(study),
    ]


def _silverman_confidence(study: Study) -> Claim:
    times = _silverman(study, "confidence")
    n_good = sum(one <= _AS_GOOD for one in times)
    return Claim(
        "Confidence: ECE_d with Silverman's rule is best in almost all data regimes.",
        n_good >= len(times) - 1,
        f"{n_good} of {len(times)} sizes within 5% of the least error; "
        f"{min(times):.2f} to {max(times):.2f} times it",
    )


def _silverman_class_wise(study: Study) -> Claim:
    there, here = _silverman(study, "confidence"), _silverman(study, "classwise")
    return Claim(
        "Class-wise: Silverman's rule is a less relevant choice than for confidence.",
        sum(here) > sum(there),
        f"{min(here):.2f} to {max(here):.2f} times the least error, for confidence "
        f"{min(there):.2f} to {max(there):.2f} times",
    )


def _silverman(study: Study, setting: str) -> list[float]:
    """Return how many times the least error that of Silverman's rule is, for every size."""
    name = "density, code silverman"
    return [study.times_the_best(setting, name, AS_CODED, n, "absolute") for n in study.sizes]


def _mapping(study: Study, convex: str, hard: str) -> Claim:
    coded_hard = hard if hard == "legacy" else f"{hard}, code"
    ratios = {
        (setting, count): study.ratio(
            setting, f"{convex}, code {count}", f"{coded_hard} {count}", "absolute"
        )
        for setting in ("confidence", "classwise")
        for count in ("10", "30", "sqrt")
    }
    listed = ", ".join(f"{ratios['confidence', count]:.2f}" for count in ("10", "30", "sqrt"))
    return Claim(
        f"The convex mapping improves the {hard} estimator.",
        all(one < 1 for one in ratios.values()),
        f"errors {listed} times as large for 10, 30 and √n bins, confidence",
    )


def _adaptive(study: Study) -> Claim:
    ratios = [
        study.ratio("confidence", f"adaptive, code {count}", f"legacy {count}", "absolute")
        for count in ("10", "30", "sqrt")
    ]
    listed = ", ".join(f"{one:.2f}" for one in ratios)
    return Claim(
        "Confidence: adaptive bins underperform when alone.",
        all(one > 1 for one in ratios),
        f"errors {listed} times those of uniform bins",
    )


def _alike(study: Study) -> Claim:
    spans = [
        study.span("confidence", AS_CODED, n, "absolute") for n in (study.sizes[0], study.sizes[-1])
    ]
    first, last = (middle / least for least, middle, _ in spans)
    return Claim(
        "Confidence: above 300 samples many estimators perform alike.",
        last < first and last < 1.2,
        f"the middle one of fifteen is {first:.2f} times the best at n = {study.sizes[0]}, "
        f"{last:.2f} times at n = {study.sizes[-1]}",
    )


def _square_root(study: Study) -> Claim:
    n = study.sizes[-1]
    families = ("legacy", "adaptive, code", "convex, code", "adaptive-convex, code")
    ratios = [
        study.ratio(setting, f"{family} sqrt", f"{family} 10", "absolute", [n])
        for setting in ("confidence", "classwise")
        for family in families
    ]
    return Claim(
        "On average the square root of n is slightly too many bins as n grows.",
        math.prod(ratios) > 1,
        f"at n = {n} errors are {min(ratios):.2f} to {max(ratios):.2f} times those of 10 bins",
    )


def _class_wise(study: Study) -> Iterator[Claim]:
    few = [n for n in study.sizes if n < 100]
    many = [n for n in study.sizes if n > 100]
    for said, name, sizes in (
        ("below 100 samples ECE_ac with √n bins is best", "adaptive-convex, code sqrt", few),
        ("above, ECE_ac with a fixed small number of bins", "adaptive-convex, code 10", many),
    ):
        times = [study.times_the_best("classwise", name, AS_CODED, n, "absolute") for n in sizes]
        winners = dict.fromkeys(study.best("classwise", AS_CODED, n, "absolute") for n in sizes)
        yield Claim(
            f"Class-wise: {said}.",
            max(times) <= _AS_GOOD,
            f"{min(times):.2f} to {max(times):.2f} times the least error; least: "
            + ", ".join(winners),
        )


def best_table(study: Study, setting: str) -> list[list[str]]:
    """Return, for every size, the best of the fifteen as coded, as meant, and of all."""
    return [
        [str(n)]
        + [
            f"{name} {study.value(setting, name, n, measure):.3g}"
            for names, measure in ((AS_CODED, "absolute"), (RIGHT, "absolute"), (RIGHT, "relative"))
            for name in [study.best(setting, names, n, measure)]
        ]
        for n in study.sizes
    ]
