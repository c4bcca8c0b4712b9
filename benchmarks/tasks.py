"""What is measured: calibrant's calls, the sizes they are tried at, and the limits beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant as cb
from benchmarks import samples
from benchmarks.peers import PAPER, Prepare
from benchmarks.timing import Call

SUMS, SORT = "summing both arrays", "one sort"


@dataclass(frozen=True)
class Task:
    """One thing to do at several sizes.

    A value within `tolerance` of ours agrees. Sizes count rows, or classes; those of `alone` are
    tried without peers. Peers have a skill by the name of the task, unless another is given.
    """

    name: str
    title: str
    ours: Prepare
    sizes: tuple[int, ...]
    tolerance: float = 0.0
    limits: tuple[str, ...] = (SUMS,)
    sample: Callable[[int], tuple[NDArray[Any], NDArray[np.float64]]] = samples.over_confident
    unit: str = "rows"
    alone: tuple[int, ...] = ()
    has_memory: bool = True
    skill: str = ""


def _of(function: Callable[..., object], **options: object) -> Prepare:
    return lambda y, p: partial(function, y, p, **options)


def _p_value(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    return lambda: cb.cumulative_test(y, p).p_value


def _update(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    return lambda: cb.Sketch().update(y, p)


def _interval(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    return lambda: cb.estimate("ece", y, p)


def _summing(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    return lambda: (y.sum(), p.sum())


def _sorting(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    return lambda: np.sort(p)


def _sampling(y: NDArray[Any], p: NDArray[np.float64]) -> Call:
    """Average over 10 000 noisy points, a kernel regression at each."""
    u = np.log(p) - np.log1p(-p)

    def call() -> None:
        rng = np.random.default_rng(0)
        for _ in range(500):
            points = rng.choice(u, 20) + rng.standard_normal(20) / 15
            kernel = np.exp(-0.5 * (15 * (points[:, None] - u)) ** 2)
            np.abs(kernel @ y / kernel.sum(axis=1) - 1 / (1 + np.exp(-points))).mean()

    return call


LIMITS: dict[str, Prepare] = {SUMS: _summing, SORT: _sorting, PAPER: _sampling}

_LONG = tuple(10**k for k in range(2, 8))
_ROWS_1E8 = (10**8,)
_CLASSES = (2, 10, 100, 1000)

TASKS = (
    Task("ece", "`ece`", _of(cb.ece), _LONG, 1e-6, alone=_ROWS_1E8),
    Task("smooth_ece", "`smooth_ece`", _of(cb.smooth_ece), _LONG, 5e-4, alone=_ROWS_1E8),
    Task(
        "test",
        "`cumulative_test`: ECCE with its P-value",
        _p_value,
        _LONG,
        1e-6,
        (SUMS, SORT),
        samples.calibrated,
    ),
    Task("density_ece", "`density_ece`", _of(cb.density_ece), _LONG),
    Task(
        "logit_smoothed_ece",
        "`logit_smoothed_ece`",
        _of(cb.logit_smoothed_ece),
        _LONG,
        limits=(SUMS, PAPER),
    ),
    Task(
        "weak_calibration_error",
        "`weak_calibration_error`",
        _of(cb.weak_calibration_error),
        _LONG,
        limits=(SUMS, SORT),
    ),
    Task("sketch", "`Sketch.update`", _update, _LONG, alone=_ROWS_1E8),
    Task(
        "interval",
        "`estimate`: ECE with an interval, 1000 resamples",
        _interval,
        (10**3, 10**4, 10**5),
        has_memory=False,
    ),
    Task(
        "assess",
        "`assess`: everything, 1000 resamples",
        _of(cb.assess),
        (10**3, 10**4, 10**5),
        has_memory=False,
    ),
    Task(
        "classes",
        "`ece` class by class, two million probabilities",
        _of(cb.ece, multiclass="classwise"),
        _CLASSES,
        1e-6,
        sample=samples.few_rows,
        unit="classes",
    ),
    Task(
        "thousand classes",
        "`ece` class by class, 50 000 rows and 1000 classes",
        _of(cb.ece, multiclass="classwise"),
        (1000,),
        1e-6,
        sample=samples.many_classes,
        unit="classes",
        skill="classes",
    ),
)
