"""Numbers that come with a range, a place or parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant._base import FloatArray, Result
from calibrant.data import validation
from calibrant.data.classes import ClassTable, one_problem, read_table, reduce_table
from calibrant.data.problem import Block, Problem
from calibrant.errors import CalibrantError
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.numerics.monotone import isotonic_fit

__all__ = ["brier_score", "log_score", "score_decomposition"]


@dataclass(frozen=True)
class ScoreDecomposition(Result):
    """A mean score split into what calibration costs, what discrimination gains, and the rest.

    score = miscalibration - discrimination + uncertainty, up to rounding.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


# Proper scores, and what part of them calibration is.
#
# A proper score mixes calibration with sharpness; isotonic regression takes them apart (CORP,
# Dimitriadis, Gneiting and Jordan 2021).

# The loss of each row from its prediction and outcome (or its rows of them, one column a class).
Loss = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class BrierScore(Measure):
    """The mean squared error."""

    def __call__(self, problem: Problem) -> float:
        """Return the score of one problem."""
        return problem.squared_error() / problem.weight

    def error_bound(self, problem: Problem) -> float:
        """Bound the distance from the score of the rows themselves: rounding alone."""
        return 2 * problem.sum_error


@dataclass(frozen=True)
class LogScore(Measure):
    """The mean negative log-likelihood."""

    def __call__(self, problem: Problem) -> float:
        """Return the score of one problem."""
        return _mean_loss(problem.rows.blocks(), _cross_entropy)


def brier_score(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean squared error of the probabilities; 0 is perfect.

    Binary: sum_i w_i (p_i - y_i)^2 / W, between 0 and 1. More than two columns: the full score
    sum_c (P_ic - 1{y_i = c})^2, between 0 and 2, unless `multiclass` asks for one problem.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        None for the full score; otherwise as in :func:`calibrant.ece`.

    Returns
    -------
    float
        The score. A soft label y counts (p - y)^2.

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
    return reduce_table(table, multiclass, labels).measure(BrierScore())


def log_score(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean negative log-likelihood (natural logarithm); 0 is perfect.

    Binary: -sum_i w_i (y_i log p_i + (1 - y_i) log(1 - p_i)) / W. More than two columns:
    -sum_i w_i log P[i, y_i] / W, unless `multiclass` asks for one problem.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        None for the full score; otherwise as in :func:`calibrant.ece`.

    Returns
    -------
    float
        The score; inf where an outcome that was given probability 0 happened. Nothing is clipped.

    Notes
    -----
    With soft labels it is the cross-entropy, whose least value is the labels' own entropy.

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
    return reduce_table(table, multiclass, labels).measure(LogScore())


def score_decomposition(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: Literal["brier", "log"] = "brier",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> ScoreDecomposition:
    """Split a mean score by isotonic regression: miscalibration - discrimination + uncertainty.

    With S(q) the mean score of predictions q, r the isotonic regression of outcomes on
    predictions and m the mean outcome: miscalibration = S(p) - S(r), what recalibration would
    save; discrimination = S(m) - S(r), what ranking gains; uncertainty = S(m).

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    score
        "brier" or "log".
    multiclass
        "confidence" or a class label; the decomposition is of one binary problem.

    Returns
    -------
    ScoreDecomposition
        All three parts are non-negative and add up to the score, up to rounding.

    Notes
    -----
    Miscalibration is positive even for calibrated predictions, since isotonic regression fits
    noise: it is a descriptive split of this sample's score. O(n log n).

    References
    ----------
    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams" (2021), eq. 4.

    Examples
    --------
    >>> parts = score_decomposition([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75])
    >>> parts.miscalibration, parts.discrimination, parts.uncertainty
    (0.0625, 0.0, 0.25)
    """
    validation.check_choice(score, "score", ("brier", "log"))
    loss = _squared_error if score == "brier" else _cross_entropy
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
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
        # Never negative, but for rounding.
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


def _squared_error(p: FloatArray, y: FloatArray) -> FloatArray:
    return (p - y) ** 2


def _cross_entropy(p: FloatArray, y: FloatArray) -> FloatArray:
    from scipy.special import xlog1py, xlogy

    if p.ndim == 2:
        return np.asarray(-xlogy(y, p))
    return np.asarray(-(xlogy(y, p) + xlog1py(1 - y, -p)))


def _brier_losses(prob: FloatArray, outcome: FloatArray) -> tuple[FloatArray, FloatArray]:
    # The squared errors of two outcomes are the same: one of them is the score.
    scale = 0.5 if prob.shape[1] == 2 else 1.0
    seen = scale * np.sum((prob - outcome) ** 2, axis=1)
    return seen, scale * (np.sum(prob**2, axis=1, keepdims=True) - 2 * prob + 1)


def _log_losses(prob: FloatArray, outcome: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.special import xlogy

    seen = -np.sum(xlogy(outcome, prob), axis=1)
    if np.isinf(seen).any():
        rows = np.flatnonzero(np.isinf(seen))
        raise CalibrantError(
            "must not be 0 for an outcome that happened, which makes log_score infinite",
            argument="y_prob",
            value=0.0,
            position=int(rows[0]),
            count=len(rows),
            hint="use {measure}='brier_score'",
        )
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
