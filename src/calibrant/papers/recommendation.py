"""Which estimator of the calibration error to use, by what a study with known truth found.

The study is that of `calibrant.papers.estimating_ece`: Gaussian mixtures, four families of models,
evaluation sets of 30 to 500 rows. What it found is shipped as a table of medians over score
distributions, grouped by what is estimated, the number of classes and the sharpness of scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np

import calibrant as cb  # layers: papers are written with what users have
from calibrant.class_table import ClassTable
from calibrant.errors import CalibrantError
from calibrant.multiclass import read_table, reduce_table
from calibrant.papers._csv import read_csv
from calibrant.papers._ece_estimators import ESTIMATORS, Option
from calibrant.papers._ece_evidence import Evidence, sharpness
from calibrant.results.result import Result

__all__ = ["Alternative", "Recommendation", "Similar", "recommend"]

_FILE = "data/estimators.csv"
_N_SHOWN = 5


@dataclass(frozen=True, repr=False)
class Alternative(Result):
    """An estimator and how far it was off on similar data, in units of the truth.

    Attributes
    ----------
    function
        The name of the function of calibrant.
    options
        Its keywords, as pairs.
    expected_error
        Median over score distributions of the mean of abs(estimate - truth) / truth.
    high_error
        Median of its 95th percentile.
    bias
        Median of the mean of (estimate - truth) / truth.
    """

    function: str
    options: tuple[tuple[str, Option], ...]
    expected_error: float
    high_error: float
    bias: float

    @property
    def call(self) -> str:
        """The call, as one would write it."""
        options = "".join(f", {name}={value!r}" for name, value in self.options)
        return f"calibrant.{self.function}(y_true, y_prob{options})"

    def __repr__(self) -> str:
        return f"{self.expected_error:5.0%} {self.high_error:5.0%} {self.bias:+5.0%}  {self.call}"


@dataclass(frozen=True)
class Similar(Result):
    """The score distributions of the study that a recommendation rests on.

    Attributes
    ----------
    setting
        "confidence" or "classwise"; a binary problem is class-wise with two classes.
    n
        The rows of their evaluation sets.
    n_classes
        Their number of classes.
    sharpness_from, sharpness_to
        Between which the mean of (2 p - 1)^2 of their scores lies.
    distributions
        How many there are.
    """

    setting: str
    n: int
    n_classes: int
    sharpness_from: float
    sharpness_to: float
    distributions: int


@dataclass(frozen=True, repr=False)
class Recommendation(Result):
    """The estimator with the least expected error on similar data, and what that rests on.

    Attributes
    ----------
    best
        The estimator.
    alternatives
        All estimators of the study that are defined on these scores, best first.
    n, n_classes, sharpness
        The rows, the classes and the mean of (2 p - 1)^2 of the data.
    similar
        What they were matched with.
    """

    best: Alternative
    alternatives: tuple[Alternative, ...]
    n: int
    n_classes: int
    sharpness: float
    similar: Similar

    def __repr__(self) -> str:
        found, best, shown = self.similar, self.best, self.alternatives[:_N_SHOWN]
        kind = "confidence" if found.setting == "confidence" else "class-wise"
        span = f"{found.sharpness_from:g} to {found.sharpness_to:g}"
        mean, high = f"{best.expected_error:.0%}", f"{best.high_error:.0%}"
        lines = [
            f"Recommendation: {best.call}",
            f"  It was off by {mean} of the truth on average, by {high} or more 1 time in 20:",
            f"  medians over {found.distributions} simulated score distributions like yours",
            f"  ({kind}, {found.n_classes} classes, sharpness {span}, n = {found.n}).",
            *self._warnings(),
            "   mean  95th  bias  of the relative error",
            *(f"  {one!r}" for one in shown),
            f"  and {len(self.alternatives) - len(shown)} more in alternatives",
        ]
        return "\n".join(lines)

    def _warnings(self) -> Iterator[str]:
        for value, studied, words in (
            (self.n, {line.n for line in _evidence()}, "rows"),
            (self.n_classes, {line.n_classes for line in _evidence()}, "classes"),
        ):
            if not min(studied) <= value <= max(studied):
                yield f"  {value} {words} are beyond the study: {min(studied)} to {max(studied)}."
        if self.best.expected_error >= 1:
            yield "  With so few rows even 0 would be as good an estimate."


def recommend(
    y_true: Any,
    y_prob: Any,
    *,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Recommendation:
    """Return the estimator of the calibration error with the least expected error on such data.

    Errors are those of a study with known truth: the mean of abs(estimate - truth) / truth, where
    the truth is E abs(P(y = 1 | p) - p), the calibration error without any bins.

    Parameters
    ----------
    y_true, y_prob
        Outcomes and predicted probabilities, as in :func:`calibrant.ece`. Outcomes are read but
        play no part: what is recommended does not depend on what it would say.
    multiclass
        "confidence" (what None means for more than two columns), "classwise" or a class label, for
        which what was found class-wise has to do.
    labels, pos_label
        As in :func:`calibrant.ece`.

    Returns
    -------
    Recommendation
        The estimator, all others of the study beside it, and the score distributions that were
        taken to be similar: the nearest size, the nearest number of classes, and of those the
        third whose scores are as sharp.

    Notes
    -----
    The study simulates: evaluation sets of 30 to 500 rows, calibration errors of 0.01 to 0.2,
    classes as likely as one another. Relative errors are large because truths are small: no
    estimator is exact on 100 rows. Deterministic.

    Examples
    --------
    >>> from calibrant.datasets import load_rain
    >>> found = recommend(*load_rain())
    >>> found.n, found.similar.n, found.best == found.alternatives[0]
    (347, 335, True)
    """
    table = read_table(y_true, y_prob, None, multiclass, labels, pos_label)
    if multiclass == "top_label":
        raise CalibrantError(
            "multiclass must be 'confidence', 'classwise' or a class label; got 'top_label', which "
            "was not studied"
        )
    problems = list(reduce_table(table, multiclass, labels).problems())
    if not all(problem.is_exact for problem in problems):
        raise CalibrantError("recommend looks at scores, which a sketch does not keep: give rows")
    is_top = isinstance(table, ClassTable) and multiclass in (None, "confidence")
    n, n_classes = problems[0].n, table.n_classes if isinstance(table, ClassTable) else 2
    sharp = float(np.mean([sharpness(problem.columns()[0]) for problem in problems]))
    lines = _similar("confidence" if is_top else "classwise", n, n_classes, sharp)
    how = {"multiclass": multiclass, "labels": labels, "pos_label": pos_label}
    given = tuple((name, value) for name, value in how.items() if value is not None)
    ranked = _ranked(lines, given)
    alternatives = tuple(one for one in ranked if _is_defined(one, y_true, y_prob))
    one = lines[0]
    return Recommendation(
        best=alternatives[0],
        alternatives=alternatives,
        n=n,
        n_classes=n_classes,
        sharpness=sharp,
        similar=Similar(
            *(one.setting, one.n, one.n_classes),
            *(one.sharpness_from, one.sharpness_to, one.distributions),
        ),
    )


def _is_defined(one: Alternative, y_true: Any, y_prob: Any) -> bool:
    """Tell whether an estimator takes these data; debiasing refuses bins of one row."""
    options = dict(one.options)
    if "debias" not in options:
        return True
    try:
        getattr(cb, one.function)(y_true, y_prob, **options)
    except CalibrantError:
        return False
    return True


def _similar(setting: str, n: int, n_classes: int, sharp: float) -> list[Evidence]:
    """Return the lines of the score distributions most like these."""
    lines = [line for line in _evidence() if line.setting == setting]
    size = _nearest({line.n for line in lines}, n)
    classes = _nearest({line.n_classes for line in lines}, n_classes)
    lines = [line for line in lines if (line.n, line.n_classes) == (size, classes)]
    distance = [max(line.sharpness_from - sharp, sharp - line.sharpness_to) for line in lines]
    third = lines[int(np.argmin(distance))].sharpness_from
    return [line for line in lines if line.sharpness_from == third]


def _nearest(known: Iterable[int], value: int) -> int:
    return min(sorted(known), key=lambda one: abs(math.log(one / value)))


def _ranked(
    lines: Iterable[Evidence], given: tuple[tuple[str, Any], ...]
) -> tuple[Alternative, ...]:
    """Return the estimators, the least expected error first."""
    found = [
        Alternative(
            ESTIMATORS[line.estimator].call,
            (*ESTIMATORS[line.estimator].options.items(), *given),
            *(line.expected, line.high, line.bias),
        )
        for line in lines
        if not math.isnan(line.expected)
    ]
    return tuple(sorted(found, key=lambda one: one.expected_error))


@lru_cache(maxsize=1)
def _evidence() -> tuple[Evidence, ...]:
    """Read what the study found."""
    with as_file(files("calibrant.papers").joinpath(_FILE)) as path:
        return tuple(read_csv(path, Evidence))
