"""The table of a clinical validation: calibration, overall performance, discrimination."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri, stdtrit

from calibrant._base import FloatArray, Result, TabularResult, columns_of
from calibrant.data import validation
from calibrant.data.classes import hard_problem
from calibrant.data.problem import Index, Problem
from calibrant.data.rows import read_columns
from calibrant.data.validation import Generator, read_generator
from calibrant.formatting import TextTable, counted, decimals, percent
from calibrant.inference.cell_noise import Clusters, read_codes
from calibrant.inference.fitted_curve import CurveDistance, CurveNoise, FittedCurve, SmootherName
from calibrant.inference.intervals import Question
from calibrant.inference.slope_tests import (
    ClusteredRows,
    LogisticRecalibration,
    relative_logits,
)
from calibrant.numerics.probability import logit, proportion_lower

_TITLES = {
    "o_e": "O:E ratio",
    "intercept": "Calibration intercept",
    "slope": "Calibration slope",
    "joint_intercept": "Intercept fitted with slope",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "eci": "ECI",
    "brier": "Brier score",
    "scaled_brier": "Scaled Brier score",
    "c_statistic": "C-statistic",
}


@dataclass(frozen=True, repr=False)
class ClinicalEstimate(Result):
    """A measure with its confidence interval.

    Attributes
    ----------
    value
        The measure; nan where it does not exist.
    low, high
        The ends of the interval.
    """

    value: float
    low: float
    high: float

    def _printed(self) -> list[str]:
        text = self._field_texts()
        return [f"{text['value']} ({text['low']} to {text['high']})"]


@dataclass(frozen=True, repr=False)
class ClinicalSummary(TabularResult):
    """Calibration, overall performance and discrimination, each with a confidence interval.

    Attributes
    ----------
    o_e
        Observed over expected events, sum w y / sum w p; 1 is perfect.
    intercept
        Calibration-in-the-large: a in logit P(y = 1) = a + logit(p); 0 is perfect.
    slope, joint_intercept
        b and a in logit P(y = 1) = a + b logit(p); 1 and 0 are perfect.
    ici, e50, e90, emax
        Mean, median, 90th percentile and maximum of abs(f(p) - p), f the fitted curve.
    eci
        Mean of (f(p) - p)^2 over mean of (ybar - p)^2.
    brier, scaled_brier
        B, the mean of (y - p)^2; 1 - B / (ybar (1 - ybar)).
    c_statistic
        The probability that an event has a higher score than a non-event, ties counted half.
    n, n_events
        The number of rows and of events among them.
    n_excluded
        The number of rows with p = 0 or 1, which have no logit: intercepts and slope leave them
        out.
    smoother
        "loess" or "kernel": how f was fitted.
    level
        The confidence level.
    """

    o_e: ClinicalEstimate
    intercept: ClinicalEstimate
    slope: ClinicalEstimate
    joint_intercept: ClinicalEstimate
    ici: ClinicalEstimate
    e50: ClinicalEstimate
    e90: ClinicalEstimate
    emax: ClinicalEstimate
    eci: ClinicalEstimate
    brier: ClinicalEstimate
    scaled_brier: ClinicalEstimate
    c_statistic: ClinicalEstimate
    n: int
    n_events: int
    n_excluded: int
    smoother: str
    level: float

    def _columns(self) -> Mapping[str, Any]:
        rows = (getattr(self, name) for name in _TITLES)
        return {"measure": [*_TITLES], **columns_of(rows, ("value", "low", "high"))}

    def _table(self) -> TextTable:
        values, intervals = zip(*(_texts(getattr(self, name)) for name in _TITLES), strict=True)
        interval = f"{percent(self.level)} interval"
        return TextTable({"measure": [*_TITLES.values()], "value": values, interval: intervals})

    def _printed(self) -> list[str | TextTable]:
        head = f"{self.n} rows, {counted(self.n_events, 'event')}; curve by {self.smoother}"
        if self.n_excluded:
            head += f"; {counted(self.n_excluded, 'row')} at 0 or 1 left out of logistic fits"
        return [f"ClinicalSummary({head})", self._table()]

    def to_latex(self) -> str:
        """Return the table as a LaTeX tabular."""
        return self._table().to_latex()


def _texts(one: ClinicalEstimate) -> tuple[str, str]:
    """Return a value and its interval with two digits of the width of the interval."""
    if math.isnan(one.value):
        return "-", "-"
    digits = min(decimals(one.low, one.high), 4)
    value, low, high = (f"{v + 0.0:.{digits}f}" for v in (one.value, one.low, one.high))
    return value, "-" if math.isnan(one.low) else f"{low} to {high}"


def clinical_summary(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    data: Any = None,
    smoother: SmootherName = "loess",
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    align: bool = True,
) -> ClinicalSummary:
    """Return what a clinical validation reports, each measure with a confidence interval.

    Parameters
    ----------
    y_true : array_like
        Outcomes: 0/1, bool or yes/no; two labels with `pos_label`; or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    data : dataframe, optional
        Table of pandas, polars or pyarrow; other arguments may then name its columns, or list them.
    smoother : {"loess", "kernel"}
        The fitted curve f. "loess": R's default, span 0.75, degree 2, tricube weights. "kernel":
        p plus the mean residual by the Gaussian kernel of Silverman's bandwidth, which depends on
        the scores alone.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    level : float
        Confidence level.
    n_resamples : int
        Number of resamples, at least 39.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.
    align : bool
        Whether pandas objects with different indexes are refused; False pairs rows by position.

    Returns
    -------
    ClinicalSummary
        It prints as the table of a paper; `to_frame`, `to_markdown` and `to_latex` give the table.

    See Also
    --------
    calibration_slope_test : Tests intercept 0 and slope 1.
    heterogeneity : O:E, intercept and slope of several centres, and what a new one may have.
    sample_size : How many rows intervals of a given width take.
    hosmer_lemeshow_test : A test that journals ask for, and why not to use it.

    Notes
    -----
    Intercepts and slope are fitted by maximum (weighted) likelihood without a penalty. Their
    intervals are estimate +- z standard error, by the sandwich formula A^-1 (sum U U') A^-1 with
    U = w (y - m) x, x = (1, logit p), m the fitted probabilities and A = sum w m (1 - m) x x': they
    hold where no logistic curve is right. Standard errors of the likelihood alone, which other
    software prints, are those of :func:`calibrant.calibration_slope_test`.

    O:E is a ratio of two sums over the rows: its interval is symmetric on the log scale, with
    variance sum w^2 (y - O:E p)^2 / (sum w y)^2. This is smaller than the usual
    (1 - ybar) / sum y, which ignores that predictions explain part of the variation of outcomes.
    The Brier score has the normal interval of a mean, the scaled one that of the delta method, the
    c-statistic that of DeLong on the logit scale. With clusters all standard errors are those of
    sums over clusters, with quantiles of Student's t. Where a few rows have most of the weight all
    of these are too short: 95% intervals cover 84 to 92% where 100 rows weigh as much as 20 to 40.

    Loess is evaluated at every score up to 1000 distinct scores, beyond that at 800 cells, and
    interpolated. It is not cut off at 0 and 1.

    A sample of calibrated predictions has ICI > 0, and bootstrap intervals of it miss 0. f(p) - p
    is a linear function of the residuals y - p, so that the interval of ICI, and of the root of
    ECI, is that of :func:`calibrant.estimate`: its low end is 0 unless perfect calibration is
    rejected. The interval of ECI ignores the noise of its denominator. Intervals of E50, E90 and
    Emax are those of a simultaneous confidence band around the curve: at least as wide as needed.
    All refer to the curve that the same smoother fits to the population.

    Cost: a sort of the rows, and some passes over them.

    References
    ----------
    Van Calster et al., "Evaluation of performance measures in predictive artificial intelligence
    models to support medical decisions" (2025).
    Austin and Steyerberg, "The Integrated Calibration Index (ICI) and related metrics" (2019).
    Van Hoorde et al., "A spline-based tool to assess and visualize the calibration of multiclass
    risk predictions" (2015): ECI.
    Cleveland, "Robust locally weighted regression and smoothing scatterplots" (1979).
    DeLong, DeLong and Clarke-Pearson, "Comparing the areas under two or more correlated receiver
    operating characteristic curves" (1988).

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> summary = clinical_summary(*load_flares("NOAA"))
    >>> summary.slope
    1.155 (0.932 to 1.378)
    >>> print(summary.to_markdown().splitlines()[4])
    | O:E ratio | 0.94 | 0.85 to 1.04 |
    """
    validation.check_choice(smoother, "smoother", get_args(SmootherName))
    level = validation.as_level(level)
    n_resamples = validation.as_resamples(n_resamples)
    generator = read_generator(rng)
    y_true, y_prob, sample_weight, clusters = read_columns(
        data, align, y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, clusters=clusters
    )
    problem = hard_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    codes, known = None, None
    if clusters is not None:
        codes = read_codes(clusters, sample_weight, problem.n, stacklevel=3)
        known = Clusters.of_codes(codes, generator)
    rows = Rows.of(problem, codes, level)
    curve = FittedCurve.of(problem, smoother)
    return ClinicalSummary(
        o_e=rows.o_e(),
        **rows.recalibration(),
        **_distances(curve, problem, Question(level, n_resamples, generator, known)),
        brier=rows.brier(),
        scaled_brier=rows.scaled_brier(),
        c_statistic=rows.c_statistic(),
        n=problem.n,
        n_events=int(np.count_nonzero(rows.y)),
        n_excluded=int(np.count_nonzero((rows.p == 0) | (rows.p == 1))),
        smoother=smoother,
        level=level,
    )


_NONE = ClinicalEstimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of 0/1 outcomes, and how measures of them vary."""

    problem: Problem
    p: FloatArray  # p, y, w: predictions, outcomes and weights
    y: FloatArray
    w: FloatArray
    cluster: Index | None  # the number of the cluster of each row
    level: float  # confidence level

    @classmethod
    def of(cls, problem: Problem, cluster: Index | None, level: float) -> Rows:
        """Return the rows of a problem."""
        return cls(problem, *problem.rows.columns(), cluster, level)

    @cached_property
    def critical(self) -> float:
        """The quantile of standardised estimates: normal, or t with the clusters less one."""
        tail = (1 + self.level) / 2
        if self.cluster is None:
            return float(ndtri(tail))
        return float(stdtrit(int(self.cluster.max()), tail))

    def variance(self, influence: FloatArray, *, corrected: bool = True) -> float:
        """Return the variance of a sum of independent contributions of rows, or of clusters."""
        if self.cluster is not None:
            influence = np.bincount(self.cluster, influence).astype(np.float64)
        n = len(influence)
        factor = n / (n - 1) if n > 1 and (corrected or self.cluster is not None) else 1.0
        return float(influence @ influence) * factor

    def around(self, value: float, variance: float) -> ClinicalEstimate:
        """Return value +- critical value times standard error."""
        reach = self.critical * math.sqrt(variance)
        return ClinicalEstimate(value, value - reach, value + reach)

    def o_e(self) -> ClinicalEstimate:
        """Return observed over expected events."""
        expected, observed = float(self.w @ self.p), float(self.w @ self.y)
        if expected == 0:
            return _NONE
        ratio = observed / expected
        if observed == 0:
            # As for a Poisson count of which none was seen.
            unit = float(self.w @ self.w) / float(self.w.sum())
            return ClinicalEstimate(0.0, 0.0, -math.log((1 - self.level) / 2) * unit / expected)
        variance = self.variance(self.w * (self.y - ratio * self.p)) / observed**2
        reach = math.exp(self.critical * math.sqrt(variance))
        return ClinicalEstimate(ratio, ratio / reach, ratio * reach)

    def recalibration(self, *, robust: bool = True) -> dict[str, ClinicalEstimate]:
        """Return intercept, slope and joint intercept; rows without a logit are left out.

        Robust standard errors hold where no logistic curve is right; others are those of maximum
        likelihood.
        """
        names = ("intercept", "slope", "joint_intercept")
        pooled = self.problem.rows.pooled.inner
        if not len(pooled.score):
            return dict.fromkeys(names, _NONE)
        rows = ClusteredRows.of(self.problem, pooled, self.cluster) if robust else None
        fit = LogisticRecalibration.of(pooled, relative_logits(pooled), rows)
        return {
            name: self.around(getattr(fit, name), getattr(fit, f"{name}_error") ** 2)
            for name in names
        }

    def _brier_influence(self) -> tuple[float, FloatArray]:
        loss, total = (self.y - self.p) ** 2, float(self.w.sum())
        mean = float(self.w @ loss) / total
        return mean, self.w * (loss - mean) / total

    def brier(self) -> ClinicalEstimate:
        """Return the mean squared error."""
        mean, influence = self._brier_influence()
        found = self.around(mean, self.variance(influence))
        return replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))

    def scaled_brier(self) -> ClinicalEstimate:
        """Return the fraction of the variance of outcomes that predictions explain."""
        mean, influence = self._brier_influence()
        total = float(self.w.sum())
        base = float(self.w @ self.y) / total
        spread = base * (1 - base)
        if spread == 0:
            return _NONE
        of_spread = (1 - 2 * base) * self.w * (self.y - base) / total
        influence = (influence - mean / spread * of_spread) / spread
        found = self.around(1 - mean / spread, self.variance(influence))
        return replace(found, high=min(found.high, 1.0))

    def c_statistic(self) -> ClinicalEstimate:
        """Return the probability that an event scores higher than a non-event, by DeLong."""
        ones, zeros = self.w * self.y, self.w * (1 - self.y)
        if not ones.any() or not zeros.any():
            return _NONE
        # Of the other outcome, the weight at lower (higher) scores, ties counted half.
        pooled = self.problem.rows.pooled
        at = np.empty(len(self.p), dtype=np.intp)
        rows = pooled.rows.astype(np.intp)
        at[np.argsort(self.p)] = np.repeat(np.arange(len(rows)), rows)
        true, false = pooled.true, pooled.weight - pooled.true
        lower = (np.cumsum(false) - false / 2) / false.sum()
        higher = 1 - (np.cumsum(true) - true / 2) / true.sum()
        placed = np.where(self.y > 0, lower[at], higher[at])
        ones, zeros = ones / ones.sum(), zeros / zeros.sum()
        c = float(ones @ placed)
        influence = (_unbiased(ones) + _unbiased(zeros)) * (placed - c)
        variance = self.variance(influence, corrected=False)
        if not 0 < c < 1:
            fewer = np.array(float(min(1 / (ones @ ones), 1 / (zeros @ zeros))))
            end = float(proportion_lower(np.array(1.0), fewer, np.array((1 - self.level) / 2)))
            return ClinicalEstimate(c, min(c, end), max(c, 1 - end))
        reach, centre = (
            self.critical * math.sqrt(variance) / (c * (1 - c)),
            float(logit(np.array(c))),
        )
        return ClinicalEstimate(c, float(expit(centre - reach)), float(expit(centre + reach)))


def _unbiased(fraction: FloatArray) -> FloatArray:
    """Return weights that sum to 1, scaled so that squared deviations are unbiased."""
    rest = 1 - float(fraction @ fraction)
    return fraction / math.sqrt(rest) if rest > 0 else fraction


def _distances(
    curve: FittedCurve, problem: Problem, question: Question
) -> dict[str, ClinicalEstimate]:
    """Return ICI, E50, E90, Emax and ECI."""
    l1, l2 = CurveDistance(curve), CurveDistance(curve, "l2")
    ici, rms = l1(problem), l2(problem)
    of_ici = question.interval(l1, problem, ici)
    base = float(problem.rows.pooled.true.sum()) / problem.weight
    scale = curve.mean((base - curve.score) ** 2)
    eci = _NONE
    if scale > 0:
        of_rms = question.interval(l2, problem, rms)
        eci = ClinicalEstimate(*(v * v / scale for v in (rms, of_rms.low, of_rms.high)))
    return {
        "ici": ClinicalEstimate(ici, of_ici.low, of_ici.high),
        **_quantiles(curve, problem, question),
        "eci": eci,
    }


def _quantiles(
    curve: FittedCurve, problem: Problem, question: Question
) -> dict[str, ClinicalEstimate]:
    """Return quantiles of the absolute deviation, with those of a simultaneous band around it."""
    noise = CurveNoise.of(curve, problem, question)
    reach, size = noise.critical(question.level) * noise.sd_at_scores, np.abs(curve.deviation)
    bands = [replace(curve, deviation=band) for band in (np.maximum(size - reach, 0), size + reach)]
    found = {}
    for name, q in (("e50", 0.5), ("e90", 0.9), ("emax", 1.0)):
        low, high = (band.quantile(q) for band in bands)
        found[name] = ClinicalEstimate(curve.quantile(q), low, min(high, 1.0))
    return found
