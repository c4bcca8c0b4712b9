"""Proper scores, and how much of them is miscalibration.

A proper score mixes calibration with sharpness; isotonic regression separates them (CORP,
Dimitriadis, Gneiting and Jordan 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, Result
from calibrant.data import validation
from calibrant.data.classes import (
    ClassTable,
    of_rows,
    one_problem,
    read_table,
    reduce_table,
    rows_or_sketch,
)
from calibrant.data.problem import Block, Problem
from calibrant.data.sketch import Sketch
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.numerics.regression import isotonic_fit

# The loss of each row, or of each row and class, from predictions and outcomes.
Loss = Callable[[FloatArray, FloatArray], FloatArray]
Score = Literal["brier", "log"]


@dataclass(frozen=True, repr=False)
class ScoreDecomposition(Result):
    """A mean score split into miscalibration, discrimination and uncertainty.

    score = miscalibration - discrimination + uncertainty, up to rounding.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def _squared_error(p: FloatArray, y: FloatArray) -> FloatArray:
    return (p - y) ** 2


def _cross_entropy(p: FloatArray, y: FloatArray) -> FloatArray:
    from scipy.special import xlog1py, xlogy

    if p.ndim == 2:
        return np.asarray(-xlogy(y, p))
    return np.asarray(-(xlogy(y, p) + xlog1py(1 - y, -p)))


LOSSES: dict[str, Loss] = {"brier": _squared_error, "log": _cross_entropy}


@dataclass(frozen=True)
class BrierScore(Measure):
    """The mean squared error."""

    def __call__(self, problem: Problem) -> float:
        return problem.squared_error() / problem.weight

    def sketch_error(self, problem: Problem, value: float) -> float:
        """Bound the distance from the score of the rows themselves: rounding alone."""
        return 2 * problem.sum_error


@dataclass(frozen=True)
class LogScore(Measure):
    """The mean negative log-likelihood."""

    def __call__(self, problem: Problem) -> float:
        return _mean_loss(problem.rows.blocks(), _cross_entropy)


@rows_or_sketch
def brier_score(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean squared error of the probabilities; 0 is perfect.

    Binary: sum_i w_i (p_i - y_i)^2 / W, between 0 and 1. More than two columns: the full score
    sum_c (P_ic - 1{y_i = c})^2, between 0 and 2, unless `multiclass` asks for one problem.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"}, class label or None
        None: the score of all classes together. Otherwise binary problem(s) of an (n, C) array: the
        predicted class is right; each class against the rest; the predicted class is right, by
        predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The score. A soft label y has loss (p - y)^2.

    See Also
    --------
    score_decomposition : Miscalibration, discrimination and uncertainty.
    compare : The scores of several models.

    References
    ----------
    Brier, "Verification of forecasts expressed in terms of probability" (1950).

    Examples
    --------
    >>> brier_score([0, 1], [0.5, 1.0])
    0.125
    >>> brier_score([2], [[0.25, 0.25, 0.5]])
    0.375
    """
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    if isinstance(table, ClassTable) and multiclass is None:
        return _mean_loss(table.blocks(), _squared_error)
    return reduce_table(table, multiclass).measure(BrierScore())


@of_rows
def log_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean negative log-likelihood (natural logarithm); 0 is perfect.

    Binary: -sum_i w_i (y_i log p_i + (1 - y_i) log(1 - p_i)) / W. More than two columns:
    -sum_i w_i log P[i, y_i] / W, unless `multiclass` asks for one problem.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : {"confidence", "classwise", "top_label"}, class label or None
        None: the score of all classes together. Otherwise binary problem(s) of an (n, C) array: the
        predicted class is right; each class against the rest; the predicted class is right, by
        predicted class; or one class.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The score; inf where an outcome that was given probability 0 happened. Nothing is clipped.

    See Also
    --------
    score_decomposition : Miscalibration, discrimination and uncertainty.
    compare : The scores of several models.

    Notes
    -----
    With soft labels it is the cross-entropy, whose minimum is the entropy of the labels.

    References
    ----------
    Good, "Rational decisions" (1952).

    Examples
    --------
    >>> round(log_score([1, 0], [0.5, 0.5]), 6)
    0.693147
    >>> log_score([1], [0.0])
    inf
    """
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    if isinstance(table, ClassTable) and multiclass is None:
        return _mean_loss(table.blocks(), _cross_entropy)
    return reduce_table(table, multiclass).measure(LogScore())


@of_rows
def score_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: Score = "brier",
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> ScoreDecomposition:
    """Decompose a mean score by isotonic regression into three parts.

    score = miscalibration - discrimination + uncertainty. With S(q) the mean score of predictions
    q, r the isotonic regression of outcomes on predictions and m the mean outcome:
    miscalibration = S(p) - S(r), discrimination = S(m) - S(r) and uncertainty = S(m).

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    score : {"brier", "log"}
        The Brier score or the log score.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    ScoreDecomposition
        All three parts are non-negative; they combine to the score up to rounding.

    See Also
    --------
    brier_score, log_score : The scores.
    recalibration.calibration_gain : What recalibration gains on new rows, with a standard error.

    Notes
    -----
    Miscalibration is positive even for calibrated predictions, since isotonic regression fits
    noise: the decomposition describes the score of this sample. Use it to split a score that is
    reported, or to draw beside an isotonic reliability diagram. Whether recalibration would pay,
    and by how much, is another question: :func:`calibrant.recalibration.calibration_gain` fits and
    judges on different rows. O(n log n).

    References
    ----------
    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams" (2021), eq. 4.

    Examples
    --------
    >>> parts = score_decomposition([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75])
    >>> parts.miscalibration, parts.discrimination, parts.uncertainty
    (0.0625, 0.0, 0.25)
    """
    validation.check_choice(score, "score", LOSSES)
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return decomposition_of(problem, LOSSES[score])


def decomposition_of(problem: Problem, loss: Loss = _squared_error) -> ScoreDecomposition:
    """Return the decomposition of the mean loss of one problem."""
    p, y, w = problem.rows.columns()
    pooled = problem.rows.pooled
    fitted = isotonic_fit(pooled.true / pooled.weight, pooled.weight)
    recalibrated_p = fitted[np.searchsorted(pooled.score, p)]
    mean = np.full_like(p, np.average(y, weights=w))
    actual, recalibrated, constant = (
        float(np.average(loss(q, y), weights=w)) for q in (p, recalibrated_p, mean)
    )
    return ScoreDecomposition(
        score=actual,
        # Negative by rounding only.
        miscalibration=max(actual - recalibrated, 0.0),
        discrimination=max(constant - recalibrated, 0.0),
        uncertainty=constant,
    )


def _mean_loss(blocks: Iterable[Block], loss: Loss) -> float:
    total = weight = 0.0
    for p, y, w in blocks:
        rows = loss(p, y).reshape(len(p), -1).sum(axis=1)
        total += float(rows.sum() if w is None else np.dot(w, rows))
        weight += float(len(p) if w is None else w.sum())
    return total / weight


def _brier_losses(prob: FloatArray, outcome: FloatArray) -> tuple[FloatArray, FloatArray]:
    # With two classes the squared errors of both are equal, and the binary score is one of them.
    scale = 0.5 if prob.shape[1] == 2 else 1.0
    seen = scale * np.sum(_squared_error(prob, outcome), axis=1)
    return seen, scale * (np.sum(prob**2, axis=1, keepdims=True) - 2 * prob + 1)


def _log_losses(prob: FloatArray, outcome: FloatArray) -> tuple[FloatArray, FloatArray]:
    seen = np.sum(_cross_entropy(prob, outcome), axis=1)
    rule = "must not be 0 for an outcome that happened, which makes log_score infinite"
    hint = "use {measure}='brier_score'"
    validation.refuse(np.zeros(len(seen)), np.isinf(seen), "y_prob", rule, hint)
    with np.errstate(divide="ignore"):
        return seen, -np.log(prob)


MEASURES = (
    MeasureInfo(
        brier_score,
        label="Brier score",
        title="Brier score",
        meaning="Mean squared error; rewards sharp predictions as well as calibrated ones.",
        definition="Σ w (y − p)² / W.",
        make=BrierScore,
        losses=_brier_losses,
        sketch="probability",
    ),
    MeasureInfo(
        log_score,
        label="log score",
        title="Log score",
        meaning="Mean negative log-likelihood; rewards sharp as well as calibrated predictions.",
        definition="−Σ w (y log p + (1 − y) log(1 − p)) / W.",
        make=LogScore,
        losses=_log_losses,
    ),
)
