"""Murphy curves and decision curves: what predictions are worth at every threshold.

Acting where p >= t, with TP, FP and FN the fractions of the weight that are hits, false alarms and
misses:

===========  ===========================  =======================================================
loss         t FP + (1 - t) FN            mean of l_t = t (1 - y) 1{p >= t} + (1 - t) y 1{p < t}
net benefit  TP - FP t / (1 - t)          = prevalence - loss / (1 - t)
regret       loss - loss recalibrated     by isotonic regression: what any monotone map could save
===========  ===========================  =======================================================

Twice the integral of the loss over t is the Brier score, and twice that of the regret its
miscalibration in the sense of :func:`calibrant.score_decomposition`. The loss is linear between
two scores and jumps at each of them, as rows of that score are not acted on any longer; the
recalibrated loss is continuous, with kinks at the values of the isotonic regression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, TabularResult, columns_of
from calibrant.data import validation
from calibrant.data.classes import RowOptions, one_problem, rows_by_model, rows_or_sketch
from calibrant.data.problem import Index, Problem
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, as_array, read_generator
from calibrant.errors import CalibrantError
from calibrant.inference.regret import Cutoffs, first_acted_on
from calibrant.numerics.regression import isotonic_fit

# Thresholds of the band, where none are given.
_BAND = np.arange(1, 50) / 50


@dataclass(frozen=True, eq=False, repr=False)
class RegretBand(TabularResult):
    """The regret at several thresholds, with an interval at each: a pointwise band.

    Attributes
    ----------
    threshold
        The thresholds.
    loss
        The mean loss at each of them.
    regret
        What isotonic recalibration would save of it.
    low, high
        The ends of the intervals for the regret.
    level
        The confidence level of each interval.
    """

    threshold: FloatArray
    loss: FloatArray
    regret: FloatArray
    low: FloatArray
    high: FloatArray
    level: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        thresholds: FloatArray,
        level: float,
        n_resamples: int,
        rng: Generator,
    ) -> RegretBand:
        """Return the regret of a problem at thresholds strictly between 0 and 1."""
        cutoffs = Cutoffs.of(problem)
        found = [cutoffs.regret(float(t), level, n_resamples, rng) for t in thresholds]
        columns = columns_of(found, ("value", "low", "high"))
        regret, low, high = (np.array(column) for column in columns.values())
        return cls(thresholds, murphy_of(problem, thresholds).loss, regret, low, high, level)


@dataclass(frozen=True, eq=False, repr=False)
class MurphyCurve(TabularResult):
    """Mean loss at every threshold, as predicted and after isotonic recalibration.

    Attributes
    ----------
    threshold
        The thresholds. At every distinct score there are two points: the loss there, and its limit
        from above.
    loss
        Mean loss: a false alarm costs the threshold, a miss 1 minus the threshold.
    recalibrated_loss
        The same after isotonic recalibration.
    regret
        loss - recalibrated_loss.
    prevalence
        The weighted mean of outcomes.
    n
        The number of rows that carry weight.
    band
        Intervals for the regret at some thresholds; None where none were asked for.
    """

    threshold: FloatArray
    loss: FloatArray
    recalibrated_loss: FloatArray
    regret: FloatArray
    prevalence: float
    n: int
    band: RegretBand | None = None

    def thinned(self, n_points: int = 2048) -> MurphyCurve:
        """Return the curve with about `n_points` points at most, its maximal regret among them."""
        size = len(self.threshold)
        if size <= n_points:
            return self
        # In pairs, so that both points of a jump are kept.
        starts = np.linspace(0, size - 2, n_points // 2).astype(np.intp)
        kept = np.unique(np.concatenate((starts, starts + 1, [np.argmax(self.regret)])))
        columns = {name: values[kept] for name, values in self._columns().items()}
        return replace(self, **columns)

    def _printed(self) -> list[str]:
        if not len(self.threshold):
            return [f"MurphyCurve(no thresholds, n = {self.n})"]
        top = int(np.argmax(self.regret))
        most = f"regret at most {self.regret[top]:.4g}, at {self.threshold[top]:.4g}"
        return [f"MurphyCurve({len(self.threshold)} points, {most}, n = {self.n})"]


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(TabularResult):
    """Net benefit at every threshold; that of acting on no row is 0.

    Attributes
    ----------
    threshold
        The thresholds, below 1. At every distinct score there are two points: the net benefit
        there, and its limit from above.
    net_benefit
        Hits less false alarms times threshold / (1 - threshold), per row.
    treat_all
        The net benefit of acting on every row.
    recalibrated
        The net benefit after isotonic recalibration: at least `net_benefit`, 0 and `treat_all`.
    prevalence
        The weighted mean of outcomes.
    n
        The number of rows that carry weight.
    standardized
        Whether all are divided by the prevalence, so that 1 is the best possible.
    """

    threshold: FloatArray
    net_benefit: FloatArray
    treat_all: FloatArray
    recalibrated: FloatArray
    prevalence: float
    n: int
    standardized: bool = False

    @classmethod
    def of(cls, murphy: MurphyCurve, *, standardize: bool = False) -> DecisionCurve:
        """Return the losses of a Murphy curve as net benefits."""
        if standardize and murphy.prevalence == 0:
            raise CalibrantError(
                "must hold an outcome of 1 for {standardize}=True, which divides by the prevalence",
                argument="y_true",
                value=0,
                found="none",
            )
        below_1 = slice(int(np.searchsorted(murphy.threshold, 1.0)))
        t, prevalence = murphy.threshold[below_1], murphy.prevalence
        unit = prevalence if standardize else 1.0
        scale = -1 / (unit * (1 - t))
        net, recalibrated, everyone = (
            loss * scale
            for loss in (
                murphy.loss[below_1],
                murphy.recalibrated_loss[below_1],
                (1 - prevalence) * t,
            )
        )
        for benefit in (net, recalibrated, everyone):
            benefit += prevalence / unit
        return cls(t, net, everyone, recalibrated, prevalence, murphy.n, standardize)

    @property
    def lost(self) -> FloatArray:
        """The net benefit lost to miscalibration: that after recalibration less that before."""
        return np.asarray(self.recalibrated - self.net_benefit)

    def _printed(self) -> list[str]:
        unit = "standardized, " if self.standardized else ""
        size = f"{len(self.threshold)} points, {unit}prevalence {self.prevalence:.4g}"
        return [f"DecisionCurve({size}, n = {self.n})"]


class MurphyOptions(RowOptions, total=False):
    """Options of :func:`murphy_curve`."""

    thresholds: ArrayLike | None
    band: Literal["confidence"] | None
    level: float
    n_resamples: int
    rng: int | Generator


class DecisionOptions(RowOptions, total=False):
    """Options of :func:`decision_curve`."""

    thresholds: ArrayLike | None
    standardize: bool


@rows_or_sketch
def murphy_curve(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    thresholds: ArrayLike | None = None,
    band: Literal["confidence"] | None = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> MurphyCurve:
    """Return the mean loss of decisions at every threshold, before and after recalibration.

    Acting where p >= t, with a loss of t for a false alarm and 1 - t for a miss, the mean loss is
    (1/W) sum of w (t (1 - y) 1{p >= t} + (1 - t) y 1{p < t}). Twice its integral over t is the
    Brier score of 0/1 outcomes. The regret is what isotonic recalibration would save.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    thresholds : array_like, optional
        Thresholds in [0, 1] that do not decrease. By default all at which the curves jump or have
        a kink: 0 and 1, every distinct score, twice, and the values of the isotonic regression.
        The curves are linear between them.
    band : {"confidence"}, optional
        Add intervals for the regret, each for itself, at `thresholds` or at 0.02, 0.04, ..., 0.98.
    level : float
        Confidence level.
    n_resamples : int
        Number of resamples, at least 39.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
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
    MurphyCurve
        `threshold`, `loss`, `recalibrated_loss`, `regret` and, if asked for, `band`.

    See Also
    --------
    threshold_regret : The regret at one threshold, with its interval.
    decision_curve : The same losses as net benefits.
    plot.murphy : A picture of it.

    Notes
    -----
    The regret of the sample is positive for calibrated predictions too, as isotonic regression fits
    noise: the band shows what the population's may be. It is at most ECCE-R at every threshold.
    Exact, one sort. Of a sketch, rows of a cell are taken to be at their mean score.

    References
    ----------
    Ehm, Gneiting, Jordan and Krüger, "Of quantiles and expectiles" (2016): elementary
    scores and their mixtures.

    Examples
    --------
    >>> curve = murphy_curve([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], thresholds=[0.2, 0.5, 0.8])
    >>> curve.loss.tolist(), curve.regret.tolist()
    ([0.1, 0.25, 0.1], [0.0, 0.0, 0.0])
    """
    if band is not None:
        validation.check_choice(band, "band", ("confidence",))
    level = validation.as_level(level)
    n_resamples = validation.as_resamples(n_resamples)
    generator, given = read_generator(rng), read_thresholds(thresholds)
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    curve = murphy_of(problem, given)
    if band is None:
        return curve
    places = _BAND if given is None else given[(given > 0) & (given < 1)]
    return replace(curve, band=RegretBand.of(problem, places, level, n_resamples, generator))


@overload
def decision_curve(
    y_true: Sketch | Problem, **options: Unpack[DecisionOptions]
) -> DecisionCurve: ...
@overload
def decision_curve(
    y_true: ArrayLike, y_prob: Mapping[str, ArrayLike], **options: Unpack[DecisionOptions]
) -> dict[str, DecisionCurve]: ...
@overload
def decision_curve(
    y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[DecisionOptions]
) -> DecisionCurve: ...
def decision_curve(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    thresholds: ArrayLike | None = None,
    standardize: bool = False,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> DecisionCurve | dict[str, DecisionCurve]:
    """Return the net benefit of decisions at every threshold, beside that of acting on all rows.

    Acting where p >= t, NB(t) = TP - FP t / (1 - t), with TP and FP the fractions of the weight
    that are hits and false alarms. Acting on no row has a net benefit of 0, acting on every row
    prevalence - (1 - prevalence) t / (1 - t).

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    thresholds : array_like, optional
        Thresholds in [0, 1) that do not decrease. By default all at which the curves jump or have
        a kink: 0, every distinct score, twice, and the values of the isotonic regression.
    standardize : bool
        Divide by the prevalence: 1 is then the net benefit of perfect predictions.
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
    DecisionCurve or dict of str to DecisionCurve
        `threshold`, `net_benefit`, `treat_all` and `recalibrated`, the net benefit that isotonic
        recalibration would give on this sample. One for each model of a mapping.

    See Also
    --------
    murphy_curve : The same as losses, which are comparable between thresholds.
    plot.decision_curve : A picture of it.

    Notes
    -----
    NB(t) = prevalence - loss(t) / (1 - t), for the loss of :func:`murphy_curve`: the net benefit
    lost to miscalibration is regret(t) / (1 - t). Exact, one sort. Of a sketch, rows of a cell are
    taken to be at their mean score.

    References
    ----------
    Vickers and Elkin, "Decision curve analysis" (2006).

    Examples
    --------
    >>> curve = decision_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], thresholds=[0.2, 0.5])
    >>> curve.net_benefit.tolist(), curve.treat_all.tolist()
    ([0.4375, 0.0], [0.375, 0.0])
    """
    standardize = validation.as_flag(standardize, "standardize")
    given = read_thresholds(thresholds, below_1=True)

    def curve_of(prob: Any) -> DecisionCurve:
        problem = one_problem(y_true, prob, sample_weight, multiclass, labels, pos_label)
        return DecisionCurve.of(murphy_of(problem, given), standardize=standardize)

    if isinstance(y_prob, Mapping):
        return {name: curve_of(prob) for name, (_, prob) in rows_by_model(y_true, y_prob).items()}
    return curve_of(y_prob)


def last_shown(curve: DecisionCurve) -> float:
    """Return the threshold that a plot goes to: 1, unless all predictions are much lower."""
    benefit = np.abs(curve.net_benefit)
    # Above all predictions it is 0, but for rounding.
    acted_on = curve.threshold[benefit > 1e-6 * benefit.max(initial=0.0)]
    last = 1.1 * float(acted_on.max(initial=0.0))
    return last if 0 < last < 0.5 else 1.0


def read_thresholds(thresholds: Any, *, below_1: bool = False) -> FloatArray | None:
    """Return thresholds as float64, or None where none are given."""
    if thresholds is None:
        return None
    array = validation.as_numbers(as_array(thresholds, "thresholds"), "thresholds")
    validation.check_one_axis(array, "thresholds")
    validation.check_not_empty(array, "thresholds")
    validation.check_probabilities(array, "thresholds")
    falls = np.flatnonzero(array[1:] < array[:-1])
    if len(falls):
        raise CalibrantError(
            "must not decrease",
            argument="thresholds",
            value=array[falls[0] + 1],
            position=int(falls[0]) + 1,
        )
    if below_1 and array.max() == 1:
        raise CalibrantError(
            "must be below 1, where a false alarm would cost infinitely more than a miss",
            argument="thresholds",
            value=1.0,
            position=int(np.argmax(array)),
        )
    return array.astype(np.float64)


def murphy_of(problem: Problem, thresholds: FloatArray | None = None) -> MurphyCurve:
    """Return the Murphy curve of a problem, at some thresholds or at all that matter."""
    pooled, total = problem.pooled, problem.weight
    fitted = isotonic_fit(pooled.true / pooled.weight, pooled.weight)
    starts = np.flatnonzero(np.diff(fitted, prepend=-1.0))
    if thresholds is None:
        thresholds, n_below = _every_threshold(pooled.score, fitted[starts])
    else:
        n_below = first_acted_on(problem, thresholds)
    # The loss is linear in the threshold t for each cut-off: misses + t (alarms - misses).
    misses = pooled.running_true / total
    slope = (pooled.running_weight[-1] - pooled.running_weight) / total
    slope -= misses[-1]
    given = slope[n_below]
    given *= thresholds
    given += misses[n_below]
    # Thresholds beyond the value of a block of the regression, and up to the next, leave it out.
    beyond = np.searchsorted(thresholds, fitted[starts], side="right")
    repeats = np.diff(beyond, prepend=0, append=len(thresholds))
    cuts = np.append(starts, len(fitted))
    recalibrated = np.repeat(slope[cuts], repeats)
    recalibrated *= thresholds
    recalibrated += np.repeat(misses[cuts], repeats)
    return MurphyCurve(
        threshold=thresholds,
        loss=given,
        recalibrated_loss=recalibrated,
        # Negative by rounding only.
        regret=np.maximum(regret := given - recalibrated, 0.0, out=regret),
        prevalence=float(misses[-1]),
        n=problem.n,
    )


def _every_threshold(score: FloatArray, kinks: FloatArray) -> tuple[FloatArray, Index]:
    """Return where losses jump or have a kink, and how many scores are not acted on there.

    Every score stands there twice: with its rows acted on, and no longer.
    """
    m = len(score)
    threshold, n_below = np.empty(2 * m + 2), np.empty(2 * m + 2, dtype=np.intp)
    threshold[[0, -1]], n_below[[0, -1]] = (0.0, 1.0), (0, m)
    for k in (0, 1):
        threshold[1 + k : -1 : 2] = score
        n_below[1 + k : -1 : 2] = np.arange(k, m + k)
    # At 0 and 1 no more than once for each: nothing lies below the one or above the other.
    kept = slice(int(score[0] == 0), -2 if score[-1] == 1 else None)
    threshold, n_below = threshold[kept], n_below[kept]
    place = np.searchsorted(threshold, kinks)
    below = np.searchsorted(score, kinks)
    return np.insert(threshold, place, kinks), np.insert(n_below, place, below)
