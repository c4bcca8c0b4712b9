"""Calibration in several centres: random effects, and what to expect of a new centre.

The effects y_i of k centres, with sampling variances v_i, are those of their populations and noise:
y_i ~ N(theta_i, v_i), theta_i ~ N(mu, tau^2). tau^2 maximises the restricted likelihood,

    -1/2 [ sum log(v_i + tau^2) + log sum W_i + sum W_i (y_i - mu)^2 ],   W_i = 1 / (v_i + tau^2),

and mu is the mean weighted by W.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import stdtrit

from calibrant._base import FloatArray, Result, TabularResult, columns_of
from calibrant.data import validation
from calibrant.data.classes import one_problem
from calibrant.data.labels import read_labels
from calibrant.data.problem import Problem
from calibrant.data.rows import Sample
from calibrant.errors import CalibrantError
from calibrant.formatting import TextTable, interval_cells, percent
from calibrant.inference.clinical import ClinicalEstimate, Rows
from calibrant.inference.slope_tests import hard_outcomes

__all__ = ["CentreRow", "Heterogeneity", "RandomEffects", "heterogeneity", "random_effects"]

_MEASURES = ("o_e", "intercept", "slope")
# tau^2 is searched for between 0 and the largest of the squared deviations, in so many steps that
# no maximum of the restricted likelihood is missed.
_STEPS = 200


@dataclass(frozen=True, repr=False)
class RandomEffects(Result):
    """The mean effect of a population of centres, and what a new centre may have.

    Attributes
    ----------
    value
        The mean effect mu.
    low, high
        Its confidence interval, by Hartung and Knapp.
    standard_error
        The standard error of mu, by Hartung and Knapp.
    tau
        The standard deviation of the effects of centres.
    prediction_low, prediction_high
        The prediction interval for the effect of a new centre; nan with fewer than three centres.
    n_centres
        The number of centres that have an effect.
    level
        The confidence level of both intervals.
    """

    value: float
    low: float
    high: float
    standard_error: float
    tau: float
    prediction_low: float
    prediction_high: float
    n_centres: int
    level: float

    def exponential(self) -> RandomEffects:
        """Return the effects on the scale of which this is the logarithm; tau stays."""
        ends = ("value", "low", "high", "prediction_low", "prediction_high")
        return RandomEffects(**self._fields() | {end: math.exp(getattr(self, end)) for end in ends})


def random_effects(effect: ArrayLike, variance: ArrayLike, *, level: float = 0.95) -> RandomEffects:
    """Return the mean of effects by restricted maximum likelihood, with a prediction interval.

    Parameters
    ----------
    effect : array_like
        One effect per centre, at least two.
    variance : array_like
        Their sampling variances, positive.
    level : float
        Confidence level.

    Returns
    -------
    RandomEffects
        The mean, tau, the interval by Hartung and Knapp with quantiles of t with k - 1 degrees of
        freedom, and the prediction interval mu +- t sqrt(tau^2 + 1 / sum W) with k - 2.

    References
    ----------
    Hartung and Knapp, "A refined method for the meta-analysis of controlled clinical trials with
    binary outcome" (2001).
    Higgins, Thompson and Spiegelhalter, "A re-evaluation of random-effects meta-analysis" (2009).

    Examples
    --------
    >>> found = random_effects([-0.5, 0.1, 0.3], [0.04, 0.02, 0.05])
    >>> round(found.value, 3), round(found.tau, 3)
    (-0.019, 0.338)
    """
    level = validation.as_level(level)
    y, v = (np.asarray(values, dtype=np.float64) for values in (effect, variance))
    if y.ndim != 1 or y.shape != v.shape or len(y) < 2:
        raise CalibrantError(
            "must hold at least two effects, with one {variance} each",
            argument="effect",
            value=y.shape,
            found="shapes {value} and {other}",
            other=v.shape,
        )
    if not (np.isfinite(y).all() and np.isfinite(v).all() and (v > 0).all()):
        raise CalibrantError("must be positive, and all effects finite", argument="variance")
    tau2, k = _reml(y, v), len(y)
    weight = 1 / (v + tau2)
    total = float(weight.sum())
    mean = float(weight @ y) / total
    error = math.sqrt(float(weight @ (y - mean) ** 2) / ((k - 1) * total))
    reach = float(stdtrit(k - 1, (1 + level) / 2)) * error
    beyond = math.nan
    if k > 2:
        beyond = float(stdtrit(k - 2, (1 + level) / 2)) * math.sqrt(tau2 + 1 / total)
    return RandomEffects(
        value=mean,
        low=mean - reach,
        high=mean + reach,
        standard_error=error,
        tau=math.sqrt(tau2),
        prediction_low=mean - beyond,
        prediction_high=mean + beyond,
        n_centres=k,
        level=level,
    )


def _reml(y: FloatArray, v: FloatArray) -> float:
    """Return the tau^2 of maximum restricted likelihood."""

    def parts(tau2: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the restricted likelihood and its derivative, one per tau^2."""
        w = 1 / (v + tau2[:, None])
        total = w.sum(axis=1)
        squares = (y - (w @ y / total)[:, None]) ** 2
        log = np.log(w).sum(axis=1) - np.log(total) - (w * squares).sum(axis=1)
        slope = (w * w * squares).sum(axis=1) - total + (w * w).sum(axis=1) / total
        return log / 2, slope / 2

    most = float(np.square(y - y.mean()).sum()) + float(v.min())
    grid = np.concatenate(([0.0], np.geomspace(1e-8 * most, most, _STEPS)))
    log, slope = parts(grid)
    best = int(np.argmax(log))
    if best == 0 and slope[0] <= 0:
        return 0.0
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _STEPS)]
    return float(brentq(lambda t: float(parts(np.array([t]))[1][0]), low, high, xtol=1e-14 * most))


@dataclass(frozen=True, repr=False)
class CentreRow(Result):
    """The calibration of one centre.

    Attributes
    ----------
    centre
        Its label.
    n, n_events
        The number of its rows and of events among them.
    o_e, intercept, slope
        As in :class:`calibrant.inference.clinical.ClinicalSummary`; nan where there is no fit.
    """

    centre: Any
    n: int
    n_events: int
    o_e: ClinicalEstimate
    intercept: ClinicalEstimate
    slope: ClinicalEstimate


@dataclass(frozen=True, repr=False)
class Heterogeneity(TabularResult):
    """The calibration of several centres, and of a new one.

    Attributes
    ----------
    centres
        One row per centre.
    o_e, intercept, slope
        The means over centres, with prediction intervals for a new centre; tau of O:E is on the log
        scale.
    level
        The confidence level of all intervals.
    """

    centres: tuple[CentreRow, ...]
    o_e: RandomEffects
    intercept: RandomEffects
    slope: RandomEffects
    level: float

    def _columns(self) -> Mapping[str, Any]:
        columns = columns_of(self.centres, ("centre", "n", "n_events"))
        for name in _MEASURES:
            rows = [getattr(row, name) for row in self.centres]
            columns[name] = [one.value for one in rows]
            columns[f"{name}_low"] = [one.low for one in rows]
            columns[f"{name}_high"] = [one.high for one in rows]
        return columns

    def _printed(self) -> list[str | TextTable]:
        pooled = [getattr(self, name) for name in _MEASURES]
        ends = columns_of(pooled, ("low", "high", "prediction_low", "prediction_high"))
        summary = {
            "measure": ["O:E ratio", "calibration intercept", "calibration slope"],
            "mean": [one.value for one in pooled],
            f"{percent(self.level)} interval": interval_cells(ends["low"], ends["high"], 2),
            "tau": [one.tau for one in pooled],
            "new centre": interval_cells(ends["prediction_low"], ends["prediction_high"], 2),
            "centres": [one.n_centres for one in pooled],
        }
        table = columns_of(self.centres, ("centre", "n", "n_events"))
        for name in _MEASURES:
            rows = [getattr(row, name) for row in self.centres]
            table[name] = [one.value for one in rows]
        head = f"Heterogeneity({len(self.centres)} centres)"
        return [head, TextTable.of(summary, 2), TextTable.of(table, 2)]


def heterogeneity(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    centre: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Heterogeneity:
    """Return O:E, calibration intercept and slope of several centres, and of a new one.

    Parameters
    ----------
    y_true : array_like
        Outcomes: 0/1 or bool; two labels with `pos_label`; class labels where `y_prob` has several
        columns.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    centre : array_like
        One label per row, such as a hospital; at least two different ones.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    level : float
        Confidence level.
    multiclass : "confidence" or class label, optional
        Binary problem of an (n, C) array: the predicted class is right (default for C > 2), or one
        class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; 0 to C - 1 by default.
    pos_label : label, optional
        The label whose probability `y_prob` is, where the two labels are not 0 and 1.

    Returns
    -------
    Heterogeneity
        One row per centre, the means over centres, tau, and prediction intervals for a new centre.

    See Also
    --------
    clinical_summary : All rows together; with `clusters`, the uncertainty of rows in clusters.
    calibrant.plot.forest : The picture.

    Notes
    -----
    Each centre has log O:E, intercept and slope with standard errors as in
    :func:`calibrant.clinical_summary`; these are pooled by :func:`random_effects`. A centre without
    events enters with half an event; one whose outcomes are separated by the predictions has no
    slope and is left out there: see `n_centres`.

    Centres are a sample of those where predictions might be used: the prediction interval says
    what a new one would have, and is wider than the confidence interval of the mean however many
    rows there are. Clusters answer another question: how sure the mean is.

    References
    ----------
    Debray et al., "A guide to systematic review and meta-analysis of prediction model performance"
    (2017).
    Barreñada et al., "Calibration plots with multiple clusters" (2025).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.datasets import simulate
    >>> y, p = simulate("perfect", 2000, rng=1)
    >>> found = heterogeneity(y, p, np.arange(2000) % 10)
    >>> found.o_e.n_centres, found.o_e.prediction_low < 1 < found.o_e.prediction_high
    (10, True)
    """
    level = validation.as_level(level)
    problem = hard_outcomes(
        one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    )
    names, parts = _centres(problem, centre, sample_weight)
    rows, effects = [], []
    for name, part in zip(names, parts, strict=True):
        row, effect = _centre_row(name, part, level)
        rows.append(row)
        effects.append(effect)
    o_e, intercept, slope = (_pooled(np.array(one), level) for one in zip(*effects, strict=True))
    return Heterogeneity(tuple(rows), o_e.exponential(), intercept, slope, level)


def _centres(
    problem: Problem, centre: Any, sample_weight: Any
) -> tuple[list[Any], Iterator[Sample]]:
    """Return the labels of centres, and the rows of each."""
    names, code = read_labels(centre, "centre", sample_weight, problem.n, allow_missing=False)
    if len(names) < 2:
        raise CalibrantError(
            "must hold at least two centres", argument="centre", value=1, found="one"
        )
    order = np.argsort(code, kind="stable")
    parts = np.split(order, np.searchsorted(code[order], np.arange(1, len(names))))
    return names, (problem.rows.take(rows) for rows in parts)


def _centre_row(
    name: Any, part: Sample, level: float
) -> tuple[CentreRow, list[tuple[float, float]]]:
    """Return the row of a centre, and its effects with their variances."""
    rows = Rows.of(part, None, level)
    o_e, fits = rows.o_e(), rows.recalibration()
    row = CentreRow(
        centre=name,
        n=part.n,
        n_events=int(np.count_nonzero(rows.y)),
        o_e=o_e,
        intercept=fits["intercept"],
        slope=fits["slope"],
    )
    width = 2 * rows.critical
    if o_e.value > 0:
        effect = math.log(o_e.value), (math.log(o_e.high / o_e.low) / width) ** 2
    else:
        expected = float(rows.w @ rows.p) / float(rows.w @ rows.w) * float(rows.w.sum())
        effect = math.log(0.5 / (expected + 0.5)), 2.0
    others = (row.intercept, row.slope)
    return row, [effect, *((one.value, ((one.high - one.low) / width) ** 2) for one in others)]


def _pooled(effects: FloatArray, level: float) -> RandomEffects:
    """Return random effects of the centres that have an effect with a variance."""
    known = np.isfinite(effects).all(axis=1) & (effects[:, 1] > 0)
    if known.sum() < 2:
        nan = math.nan
        return RandomEffects(nan, nan, nan, nan, nan, nan, nan, int(known.sum()), level)
    return random_effects(*effects[known].T, level=level)
