"""Which estimator of the calibration error to use, from a simulation study with known truth.

The study (``studies/estimating_ece``) follows Posocco and Bonnefoy (2021): models of four families
trained on Gaussian mixtures, evaluation sets of 30 to 500 rows. Its results are shipped as a table
of medians over score distributions, by setting, number of classes and sharpness of the scores.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, Result, TabularResult, columns_of
from calibrant.data.classes import ClassTable, of_rows, read_table, reduce_table
from calibrant.errors import CalibrantError
from calibrant.measures.binned import ece

Option = str | int | float | bool

_QUANTILE: dict[str, Option] = {"strategy": "quantile"}
_CONVEX: dict[str, Option] = {"assignment": "convex"}
_DEBIASED: dict[str, Option] = {**_QUANTILE, "debias": True}
_BINNED: dict[str, tuple[tuple[int | str, ...], dict[str, Option]]] = {
    "legacy": ((10, 30, "sqrt", 15), {}),
    "adaptive": ((10, 30, "sqrt", 15, "sweep"), _QUANTILE),
    "convex": ((10, 30, "sqrt"), _CONVEX),
    "adaptive-convex": ((10, 30, "sqrt"), {**_QUANTILE, **_CONVEX}),
    "debiased": ((5, 10), _DEBIASED),
}
# The function and the options behind each name of the study's table.
ESTIMATORS: dict[str, tuple[str, dict[str, Option]]] = {
    **{
        f"{family} {n_bins}": ("ece", {"n_bins": n_bins, **options})
        for family, (counts, options) in _BINNED.items()
        for n_bins in counts
    },
    **{f"density {h}": ("density_ece", {"bandwidth": h}) for h in ("silverman", 0.1, 0.033)},
    "smooth": ("smooth_ece", {}),
    "logit-smoothed": ("logit_smoothed_ece", {"sigma": 1.0, "noise": "uniform"}),
}


@dataclass(frozen=True)
class Evidence:
    """One line of the study's table: the error of an estimator on similar score distributions."""

    setting: str
    n_classes: int
    sharpness_from: float
    sharpness_to: float
    n: int
    distributions: int
    estimator: str  # a key of `ESTIMATORS`
    high: float  # the `high_error`, `expected_error` and `bias` of an `Alternative`
    expected: float
    bias: float


@dataclass(frozen=True, repr=False)
class Alternative(Result):
    """An estimator with its errors on similar data, relative to the true calibration error.

    Attributes
    ----------
    function
        The name of the function in calibrant.
    options
        Its keyword arguments, as pairs.
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
        """The call as Python code."""
        options = "".join(f", {name}={value!r}" for name, value in self.options)
        return f"calibrant.{self.function}(y_true, y_prob{options})"

    def _printed(self) -> list[str]:
        return [f"{self.expected_error:5.0%} {self.high_error:5.0%} {self.bias:+5.0%}  {self.call}"]


@dataclass(frozen=True, repr=False)
class Similar(Result):
    """The score distributions of the study that a recommendation is based on.

    Attributes
    ----------
    setting
        "confidence" or "classwise"; a binary problem is class-wise with two classes.
    n
        The number of rows of their evaluation sets.
    n_classes
        Their number of classes.
    sharpness_from, sharpness_to
        The range of the mean of (2 p - 1)^2 of their scores.
    distributions
        The number of score distributions.
    """

    setting: str
    n: int
    n_classes: int
    sharpness_from: float
    sharpness_to: float
    distributions: int


@dataclass(frozen=True, repr=False)
class Recommendation(TabularResult):
    """The estimator with the smallest expected error on similar data, and its evidence.

    Attributes
    ----------
    best
        The estimator.
    alternatives
        All estimators of the study that are defined on these scores, best first.
    n, n_classes, sharpness
        The number of rows, the number of classes and the mean of (2 p - 1)^2 of the data.
    similar
        The score distributions that they were matched with.
    """

    best: Alternative
    alternatives: tuple[Alternative, ...]
    n: int
    n_classes: int
    sharpness: float
    similar: Similar

    def _printed(self) -> list[str]:
        found, best, shown = self.similar, self.best, self.alternatives[:5]
        kind = "confidence" if found.setting == "confidence" else "class-wise"
        span = f"{found.sharpness_from:g} to {found.sharpness_to:g}"
        mean, high = f"{best.expected_error:.0%}", f"{best.high_error:.0%}"
        warnings = []
        for field, what in (("n", "rows"), ("n_classes", "classes")):
            value, studied = getattr(self, field), {getattr(line, field) for line in _evidence()}
            low, top = min(studied), max(studied)
            if not low <= value <= top:
                warnings.append(f"  {value} {what} are beyond the study: {low} to {top}.")
        if best.expected_error >= 1:
            warnings.append("  With so few rows even 0 would be as good an estimate.")
        return [
            f"Recommendation: {best.call}",
            f"  It was off by {mean} of the truth on average, by {high} or more 1 time in 20:",
            f"  medians over {found.distributions} simulated score distributions like yours",
            f"  ({kind}, {found.n_classes} classes, sharpness {span}, n = {found.n}).",
            *warnings,
            "   mean  95th  bias  of the relative error",
            *(f"  {one!r}" for one in shown),
            f"  and {len(self.alternatives) - len(shown)} more in alternatives",
        ]

    def _columns(self) -> dict[str, Any]:
        names = ("function", "call", "expected_error", "high_error", "bias")
        return columns_of(self.alternatives, names)


@of_rows
def recommend(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Recommendation:
    """Return the estimator of the calibration error with the smallest expected error on such data.

    Errors are those of a simulation study with known truth: the mean of
    abs(estimate - truth) / truth, the truth being E abs(P(y = 1 | p) - p), without any bins.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.

        They are validated, but the recommendation does not depend on them.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    multiclass : {"confidence", "classwise", "top_label"} or class label, optional
        Binary problem(s) of an (n, C) array: the predicted class is right (default for C > 2); each
        class against the rest; the predicted class is right, by predicted class; or one class.

        The class-wise results of the study are used for a class label; "top_label" was not studied.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    Recommendation
        The estimator, all others of the study beside it, and the score distributions regarded as
        similar: the nearest size, the nearest number of classes, and of those the third with the
        same sharpness of scores.

    See Also
    --------
    ece, density_ece, smooth_ece, logit_smoothed_ece : The estimators.

    Notes
    -----
    The study is a simulation: evaluation sets of 30 to 500 rows, calibration errors of 0.01 to
    0.2, balanced classes. Relative errors are large because the true errors are small: no
    estimator is precise on 100 rows. Deterministic.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), section 5.

    Examples
    --------
    >>> from calibrant.datasets import load_rain
    >>> found = recommend(*load_rain())
    >>> found.n, found.similar.n, found.best == found.alternatives[0]
    (347, 335, True)
    """
    table = read_table(y_true, y_prob, None, multiclass, labels, pos_label)
    if multiclass == "top_label":
        rule = "must be 'confidence', 'classwise' or a class label: others were not studied"
        raise CalibrantError(rule, argument="multiclass", value=multiclass)
    problems = list(reduce_table(table, multiclass).problems())
    if not all(problem.is_exact for problem in problems):
        raise CalibrantError("recommend needs the scores, which a sketch does not keep: give rows")
    is_top = isinstance(table, ClassTable) and multiclass in (None, "confidence")
    n, n_classes = problems[0].n, table.n_classes if isinstance(table, ClassTable) else 2
    sharp = float(np.mean([sharpness(problem.rows.columns()[0]) for problem in problems]))
    lines = _similar("confidence" if is_top else "classwise", n, n_classes, sharp)
    reading = {"multiclass": multiclass, "labels": labels, "pos_label": pos_label}
    given = {name: value for name, value in reading.items() if value is not None}
    alternatives = _ranked(lines, given, y_true, y_prob)
    return Recommendation(
        best=alternatives[0],
        alternatives=alternatives,
        n=n,
        n_classes=n_classes,
        sharpness=sharp,
        similar=Similar(**{field.name: getattr(lines[0], field.name) for field in fields(Similar)}),
    )


def sharpness(p: FloatArray) -> float:
    """Return the sharpness of scores: the mean of (2 p - 1)^2."""
    return float(np.mean((2 * p - 1) ** 2))


def _similar(setting: str, n: int, n_classes: int, sharp: float) -> list[Evidence]:
    """Return the lines of the score distributions most similar to the data."""
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
    lines: Iterable[Evidence], given: dict[str, Any], y_true: Any, y_prob: Any
) -> tuple[Alternative, ...]:
    """Return the estimators that take these data by increasing expected error."""
    found = []
    for line in lines:
        function, chosen = ESTIMATORS[line.estimator]
        options: dict[str, Any] = {**chosen, **given}
        # An estimator that was undefined on one of the score distributions has no median.
        if math.isnan(line.expected):
            continue
        if "debias" in options:
            try:
                ece(y_true, y_prob, **options)
            except CalibrantError:  # it refuses bins of one row
                continue
        errors = (line.expected, line.high, line.bias)
        found.append(Alternative(function, tuple(options.items()), *errors))
    return tuple(sorted(found, key=lambda one: one.expected_error))


@cache
def _evidence() -> tuple[Evidence, ...]:
    """Read the study's table."""
    text = files("calibrant.measures").joinpath("data/estimators.csv").read_text("utf-8")
    types = tuple(get_type_hints(Evidence).values())
    _, *rows = csv.reader(text.splitlines())
    return tuple(
        Evidence(*(kind(value) for kind, value in zip(types, row, strict=True))) for row in rows
    )
