"""What recalibration gains under a proper score, from maps that were fitted to other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from calibrant._base import FloatArray, Result
from calibrant.data import validation
from calibrant.data.classes import of_rows
from calibrant.data.validation import Generator, read_generator, read_weights
from calibrant.measures.scores import LOSSES, Score
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.evidence import outcome_noise
from calibrant.recalibration.methods import METHODS, IdentityCalibrator
from calibrant.recalibration.search import (
    assign_folds,
    check_finite,
    columns,
    held_out,
    losses,
    read_rows,
    relative_weights,
    with_predictions,
)

# What "auto" chooses from, within every training part. Steps and smooth curves may predict 0 or 1,
# of which a wrong one has an infinite log score.
_AUTO = {
    "brier": ("temperature", "platt", "beta", "isotonic", "smooth_monotone"),
    "log": ("temperature", "platt", "beta"),
}


@dataclass(frozen=True, repr=False)
class CalibrationGain(Result):
    """What recalibration gains on rows that it was not fitted to.

    Attributes
    ----------
    value
        Mean score as predicted less mean score as recalibrated: positive where that pays.
    standard_error
        Its standard error.
    over_confidence, under_confidence
        The parts of `value` from rows whose predictions recalibration moves towards 1/2, and away
        from it.
    score
        The score, "brier" or "log".
    method
        The method, or "auto".
    cv
        The number of folds.
    n
        The number of rows that carry weight.
    """

    value: float
    standard_error: float
    over_confidence: float
    under_confidence: float
    score: str
    method: str
    cv: int
    n: int

    def _printed(self) -> list[str]:
        gain = f"{self.score} gain {self.value:.3g} ± {self.standard_error:.2g}"
        over = f"over-confidence {self.over_confidence:.3g}"
        under = f"under-confidence {self.under_confidence:.3g}"
        return [f"CalibrationGain({gain}, {over}, {under}, {self.method}, n = {self.n})"]


@of_rows
def calibration_gain(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: Score = "brier",
    method: str | Calibrator = "auto",
    cv: int = 5,
    rng: int | Generator = 0,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> CalibrationGain:
    """Return what recalibration gains under a proper score, with its standard error.

    With S the loss of a row and g the map fitted to all folds but that of row i, the gain is the
    weighted mean of d_i = S(p_i) - S(g(p_i)). It answers whether recalibration would pay.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    score : {"brier", "log"}
        The Brier score or the log score.
    method : str or Calibrator
        A name out of `METHODS`, or a calibrator. "auto" chooses within every training part, by a
        cross-validation of its own, the best of temperature, platt, beta, isotonic,
        smooth_monotone and the identity; under the log score the best of temperature, platt, beta
        and the identity.
    cv : int
        Number of folds, drawn at random.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    CalibrationGain
        `value`, `standard_error`, `over_confidence` and `under_confidence`, which add up to
        `value`.

    See Also
    --------
    recalibrate : Choose a calibrator, with a test of each.
    calibrant.score_decomposition : The miscalibration of this very sample.
    calibrant.threshold_regret : What recalibration saves at one threshold.

    Notes
    -----
    No row is recalibrated by a map that was fitted to it, nor by a method chosen with it: the value
    is an unbiased estimate of what maps fitted to (cv - 1) / cv of so many rows gain on new rows.
    It is slightly negative for calibrated predictions, where maps fit noise.
    :func:`calibrant.score_decomposition` fits and judges on the same rows, and its miscalibration
    is positive there.

    The standard error is the root of the larger of n / (n - 1) sum_i w_i^2 (d_i - m)^2, weights
    adding up to 1, and the same with outcomes drawn from the mean of the two probabilities, which
    does not vanish where no event was seen. It takes rows to be independent, and the maps as given.

    A row counts as over-confident where the largest of its recalibrated probabilities is smaller
    than before: for two classes, where p moves towards 1/2.

    References
    ----------
    Bröcker, "Estimating reliability and resolution of probability forecasts" (2012): the bias of
    decompositions.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 2000)
    >>> found = calibration_gain(y_true, y_prob, method="platt")
    >>> found.value > 3 * found.standard_error, found.over_confidence > found.under_confidence
    (True, True)
    """
    validation.check_choice(score, "score", LOSSES)
    calibrator = _read_method(method, score, cv, rng)
    table = read_rows(y_true, y_prob, labels, pos_label)
    p = np.asarray(columns(table)[0], dtype=np.float64)
    weight = read_weights(sample_weight, len(p))
    w = relative_weights(table, weight)
    before = losses(table, score, w)
    check_finite(before, "use {score}='brier'")
    q = held_out(calibrator, table, weight, assign_folds(table, weight, cv, rng))
    gain = before - losses(with_predictions(table, q), score, w)
    value, n = float(w @ gain), int(np.count_nonzero(w))
    with np.errstate(invalid="ignore"):
        variance = float(np.square(w) @ np.square(gain - value)) * n / max(n - 1, 1)
    if not table.is_soft:
        expected = np.where(w > 0, outcome_noise(p, q, score), 0.0)
        variance = max(variance, float(np.square(w) @ expected))
    is_over = _confidence(q) < _confidence(p)
    over = float(w @ np.where(is_over, gain, 0.0))
    return CalibrationGain(
        value=value,
        standard_error=float(np.sqrt(variance)),
        over_confidence=over,
        under_confidence=float(w @ np.where(is_over, 0.0, gain)),
        score=score,
        method=str(method),
        cv=int(cv),
        n=n,
    )


class _BestCalibrator(Calibrator):
    """The calibrator with the best score in a cross-validation of its own, or the identity."""

    def __init__(
        self, candidates: Sequence[Calibrator], score: Score, cv: int, rng: int | Generator
    ) -> None:
        self.candidates, self.score, self.cv, self.rng = candidates, score, cv, rng

    def fit(self, y_prob: Any, y_true: Any = None, **options: Any) -> Self:
        """Fit all candidates to folds, and the best of them to all rows."""
        table, weight = read_rows(y_true, y_prob, None, None), options.get("sample_weight")
        w = relative_weights(table, weight)
        fold = assign_folds(table, weight, min(self.cv, int(np.count_nonzero(w))), self.rng)
        best: Calibrator = IdentityCalibrator()
        lowest = float(w @ losses(table, self.score, w))
        for one in self.candidates:
            recalibrated = with_predictions(table, held_out(one, table, weight, fold))
            found = float(w @ losses(recalibrated, self.score, w))
            if found < lowest:
                best, lowest = one, found
        self.best_: Calibrator = clone(best).fit(y_prob, y_true, **options)
        return self

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return the probabilities as the best calibrator maps them."""
        return self.best_.predict(y_prob)


def _read_method(method: Any, score: Score, cv: Any, rng: Any) -> Calibrator:
    if isinstance(method, Calibrator):
        return method
    validation.check_choice(method, "method", ("auto", *METHODS))
    if method != "auto":
        return METHODS[method]()
    # A generator would be advanced by every fit: all of them use one seed drawn from it.
    seed = int(read_generator(rng).integers(1 << 31))
    candidates = [METHODS[name]() for name in _AUTO[score]]
    return _BestCalibrator(candidates, score, validation.as_count(cv, "cv"), seed)


def _confidence(p: FloatArray) -> FloatArray:
    """Return the largest probability of each row."""
    return np.asarray(np.maximum(p, 1 - p) if p.ndim == 1 else p.max(axis=1))
