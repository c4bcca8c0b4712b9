"""A joint test of calibration: several statistics, simulated on the same outcomes.

No single statistic has power against every kind of miscalibration. Six of them, each with power
where others have little, are computed from residual totals over cells of scores, for the observed
outcomes and for resamples of the null hypothesis; :func:`calibration_test` defines them, and the
joint P-value by ranks. As the samples are exchangeable under the null hypothesis, it is valid
whatever n and however the statistics depend on each other. Equal minima of ranks are ordered by the
largest of the standardised statistics, which is exchangeable too. At most six times as many minima
as ranks of one statistic are as small: the joint P-value is at most six times that of any part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, Result, TabularResult, columns_of
from calibrant.data import validation
from calibrant.data.classes import one_problem, rows_or_sketch
from calibrant.data.problem import Index, Problem
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError
from calibrant.formatting import TextTable, p_cells, p_equation, p_text
from calibrant.formatting import cells as text_cells
from calibrant.inference.cell_noise import Cells, Clusters
from calibrant.inference.null_simulation import NullCells
from calibrant.numerics.probability import SMALLEST, brownian_range, logit, monotone_root

PARTS = ("level", "spread", "range", "smooth", "fine", "local")
# The scale of the smooth part, and the terms beyond which exp(-(pi k s)^2) is below 1e-4.
_SCALE, _N_SMOOTH = 1 / 32, 31
# The number of half cycles over all scores of the fine part.
_N_FINE = 64
# The weights of the intervals of the local part, each at steps of up to a quarter of its weight.
_INTERVALS, _STEPS = 0.01 * 2.0 ** (np.arange(7) / 2), 4
# Statistics that are equal in exact arithmetic are equal to so many decimals.
_DECIMALS = 9
# Where hardly any noise is left, an event may be farther than this from its expectation.
_FARTHEST = 1e9
# Coordinates of a direction that are smaller, relative to 1 or to the largest logit, are rounding.
_ROUNDING = 1e-12
# Chernoff's bound is sought up to this distance from where it ends, and with this precision.
_PRECISION = 1e-9
# In place of a variance of 0.
_NO_VARIANCE = 1e-100


@dataclass(frozen=True, repr=False)
class TestPart(Result):
    """One statistic of a joint test.

    Attributes
    ----------
    name
        "level", "spread", "range", "smooth", "fine" or "local".
    statistic
        The statistic, standardised; 0 where the data have no such direction.
    p_value
        Its own P-value by simulation, not adjusted for the other parts.
    p_asymptotic
        Its P-value by an asymptotic tail or a bound; nan for clusters and soft labels.
    """

    name: str
    statistic: float
    p_value: float
    p_asymptotic: float

    # Its name makes pytest take it for a class of tests wherever it is imported.
    __test__ = False


@dataclass(frozen=True, repr=False)
class CalibrationTest(TabularResult):
    """A joint test of calibration, with its parts.

    Attributes
    ----------
    p_value
        The joint P-value by simulation, valid at every n; at least 1 / (1 + n_resamples).
    p_asymptotic
        A bound by asymptotic tails, six times that of the most significant part: informative where
        `p_value` is the smallest that simulation can give. nan for clusters and soft labels.
    parts
        The statistics with their own P-values; ``test["level"]`` is one of them.
    n
        The number of rows tested.
    n_resamples
        The number of simulated samples.
    n_clusters
        The number of clusters; 0 where rows are independent.
    """

    p_value: float
    p_asymptotic: float
    parts: tuple[TestPart, ...]
    n: int
    n_resamples: int
    n_clusters: int = 0

    def __getitem__(self, name: str) -> TestPart:
        """Return a part by its name."""
        for part in self.parts:
            if part.name == name:
                return part
        known = ", ".join(part.name for part in self.parts)
        raise CalibrantError(f"there is no part {name!r} here; there are: {known}")

    @property
    def p_combined(self) -> float:
        """The simulated P-value, or the asymptotic bound where no resample is as extreme."""
        sharper = self.is_least and self.p_asymptotic < self.p_value
        return self.p_asymptotic if sharper else self.p_value

    @property
    def is_least(self) -> bool:
        """Whether no resample is as extreme: the simulated P-value is then an upper bound."""
        return self.p_value * (1 + self.n_resamples) < 1.5

    def _columns(self) -> dict[str, Any]:
        return columns_of(self.parts, ("name", "statistic", "p_value", "p_asymptotic"))

    def _printed(self) -> list[str | TextTable]:
        text = p_equation(self.p_value, is_bound=self.is_least)
        if self.is_least and not math.isnan(self.p_asymptotic):
            text += f" by simulation, {p_text(self.p_asymptotic)} asymptotically"
        found = self._columns()
        table = {
            "part": found["name"],
            "statistic": text_cells(found["statistic"], 2),
            "p": p_cells(found["p_value"]),
            "p_asymptotic": p_cells(found["p_asymptotic"]),
        }
        rows = f"n = {self.n}" + f" in {self.n_clusters} clusters" * (self.n_clusters > 0)
        head = f"CalibrationTest({text}, {rows}, {self.n_resamples} resamples)"
        return [head, TextTable(table)]


@rows_or_sketch
def calibration_test(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> CalibrationTest:
    """Test perfect calibration by several statistics at once, with one valid P-value.

    The null hypothesis is that every y_i is 1 with probability p_i, independently. The joint
    P-value is that of the minimum of the P-values of six statistics, all simulated on the same
    outcomes: no adjustment for their number is needed.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    n_resamples : int
        Number of resamples, at least 39.

        Simulated P-values are at least 1 / (n_resamples + 1).
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    CalibrationTest
        The joint P-value, and the P-values of its parts by name: ``test["level"].p_value``.

    See Also
    --------
    cumulative_test : The range or the maximum of cumulative differences alone.
    calibration_slope_test : Intercept and slope with their standard errors.

    Notes
    -----
    With r_c = sum w (y - p) and v_c = sum w^2 p (1 - p) over the rows of cell c, in order of
    scores, V the sum of v_c and U_c the fraction of V up to the middle of cell c, the parts are

    - level: abs(sum r_c) / sqrt(V), for predictions too high or too low throughout;
    - spread: abs(sum r_c x_c) / sqrt(sum v_c x_c^2), x being logit(p) less its mean weighted by v:
      the score test of the calibration slope, for over- and under-confidence;
    - range: that of the cumulative sums of r_c, over sqrt(V), as in :func:`calibrant.ecce_r`;
    - smooth: sum over k of exp(-(pi k / 32)^2) A_k^2, A_k = sqrt(2 / V) sum r_c cos(pi k U_c):
      residuals smoothed by a Gaussian kernel, for calibration curves of a few bends;
    - fine: the maximum over k = 1..64 of the chi-squared statistic, with 2 degrees of freedom, of
      the sums of r_c cos(pi k T_c) and r_c sin(pi k T_c), T_c being the place of the score between
      the lowest and the highest, for many bends;
    - local: the maximum over intervals I of 1 to 8% of the weight, and single scores of 1% or
      more, of abs(sum of r_c in I) / sqrt(m + sum of v_c in I) - sqrt(2 log(1 / weight of I)), m
      being the mean of w^2, for errors in one place.

    Each statistic of the observed sample and of the resamples is ranked among all of them. The
    P-value is the rank of the observed minimum of ranks among all minima: valid for every n, with
    ties, rare events and weights, as outcomes are simulated from the predictions themselves. Up to
    1024 cells are the distinct scores; more scores are pooled in so many cells. Beyond 8192 rows,
    or 32 768 weighted ones, there are 512 cells, whose totals are drawn as binomial or, where their
    variance is at least 9, normal; the cost no longer grows with n, but for one pass over the rows.

    A prediction of 0 that came true, or of 1 that did not, refutes the null hypothesis by itself.
    Here it has the influence of a residual of 1, not more.

    `p_asymptotic` is six times the smallest tail of the parts: normal for level and spread,
    Brownian motion for range, Chernoff's bound for smooth, 64 exp(-x / 2) for fine, the sum of
    Bennett's bounds for local. It is of use where the simulated P-value is the smallest that
    n_resamples allow, and too small where events are few.

    With `clusters`, resamples keep or change the sign of all residuals of a cluster together, which
    is valid as far as residual totals of clusters are symmetric or many; there is no asymptotic
    P-value. G clusters have 2^(G - 1) different resamples, so that P cannot be small where they are
    few. Soft labels, whose noise is known from their residuals alone, are treated as clusters of
    one row each: with them, the null hypothesis is E(y | p) = p.

    Of 4000 samples of each of twelve calibrated populations, with 30 to 100 000 rows, 4.1 to 5.4%
    were rejected at 5%, and with 50 clusters of intraclass correlation 0.2 from 3.5 to 5.7%.

    References
    ----------
    Westfall and Young, "Resampling-based multiple testing" (1993): minimum P-values.
    Lee, Huang, Hassani and Dobriban, "T-Cal: an optimal test for the calibration of predictive
    models" (2023): tests against errors that oscillate.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> calibration_test(*load_flares())
    CalibrationTest(p <= 0.001 by simulation, 1.5e-05 asymptotically, n = 731, 1000 resamples)
    part   statistic     p p_asymptotic
    level       3.64 0.001      0.00027
    spread      4.71 0.001      2.4e-06
    range       4.63 0.001      1.5e-05
    smooth     27.07 0.001       0.0038
    fine       29.15 0.001        3e-05
    local       1.94 0.005         0.52
    """
    n_resamples = validation.as_resamples(n_resamples)
    generator = read_generator(rng)
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    known = Clusters.read(clusters, sample_weight, problem, generator)
    return joint_test(problem, known, n_resamples, generator)


def joint_test(
    problem: Problem, clusters: Clusters | None, n_resamples: int, rng: Generator
) -> CalibrationTest:
    """Return the joint test of a problem; `clusters` are those of its rows, None if independent."""
    null = NullCells.of(problem, clusters, rng)
    statistics = Statistics(null.cells, problem.n)
    values = np.concatenate([statistics(r) for r in null.batches(n_resamples, rng)])
    ranks, p_value = minimum_rank(values)
    observed = values[0]
    is_known = clusters is None and not problem.is_soft
    tails = statistics.tails(observed) if is_known else np.full(len(PARTS), np.nan)
    columns = (observed.tolist(), ranks.tolist(), tails.tolist())
    return CalibrationTest(
        p_value=p_value,
        p_asymptotic=min(len(PARTS) * float(tails.min()), 1.0),
        parts=tuple(TestPart(*row) for row in zip(PARTS, *columns, strict=True)),
        n=problem.n,
        n_resamples=n_resamples,
        n_clusters=0 if clusters is None else clusters.n,
    )


def minimum_rank(values: FloatArray) -> tuple[FloatArray, float]:
    """Return the rank P-values of the first sample's statistics, and of their minimum.

    Statistics, shape (samples, statistics), are large where the null hypothesis fails; under it
    samples are exchangeable.
    """
    values = np.round(values, _DECIMALS)
    n_samples = len(values)
    ranks = np.empty(values.shape)
    for column, rank in zip(values.T, ranks.T, strict=True):
        rank[:] = n_samples - np.searchsorted(np.sort(column), column, side="left")
    spread = values.std(axis=0)
    standardised = (values - values.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    # At most sqrt(n_samples), so that ranks come first.
    key = ranks.min(axis=1) - np.maximum(standardised.max(axis=1), 0.0) / (n_samples + 1)
    joint = np.count_nonzero(key <= key[0] + 10.0**-_DECIMALS)
    return ranks[0] / n_samples, float(joint / n_samples)


@dataclass(frozen=True, eq=False)
class Statistics:
    """The six statistics of residual totals of cells that hold so many rows, and their tails."""

    cells: Cells
    n_rows: int

    @cached_property
    def variance(self) -> FloatArray:
        """The variance of residual totals of calibrated outcomes."""
        cells = self.cells
        variance: FloatArray = cells.weight_squared * cells.score * (1 - cells.score)
        if variance.any():
            return variance
        if cells.is_soft:
            return cells.weight_squared
        raise CalibrantError(
            "must hold a prediction strictly between 0 and 1 for a test of calibration: without "
            "any there is no noise",
            argument="y_prob",
        )

    @cached_property
    def sigma(self) -> float:
        """The standard deviation of the sum of all residuals."""
        return math.sqrt(float(self.variance.sum()))

    @cached_property
    def row_variance(self) -> float:
        """The mean of w^2, which is the largest square of a residual of weight 1."""
        return float(self.cells.weight_squared.sum()) / self.n_rows

    def __call__(self, totals: FloatArray) -> FloatArray:
        """Return the statistics of residual totals of shape (samples, cells), one row each."""
        with np.errstate(over="ignore"):
            return np.minimum(self._of(totals), _FARTHEST)

    def _of(self, totals: FloatArray) -> FloatArray:
        sums = totals @ self._features
        smooth, (cosine, sine) = sums[:, 2 : 2 + _N_SMOOTH], np.split(sums[:, -2 * _N_FINE :], 2, 1)
        cumulative = np.zeros((len(totals), totals.shape[1] + 1))
        np.cumsum(totals, axis=1, out=cumulative[:, 1:])
        windows = self.windows
        local = np.abs(cumulative[:, windows.stop] - cumulative[:, windows.start])
        local *= windows.scale
        local -= windows.penalty
        return np.column_stack(
            (
                np.abs(sums[:, :2]),
                (cumulative.max(axis=1) - cumulative.min(axis=1)) / self.sigma,
                np.square(smooth).sum(axis=1),
                (cosine * cosine + sine * sine).max(axis=1),
                local.max(axis=1),
            )
        )

    @cached_property
    def _features(self) -> FloatArray:
        """The linear functions of the totals that make level, spread, smooth and fine."""
        v, score = self.variance, self.cells.score
        inner = (score > 0) & (score < 1)
        x = np.where(inner, logit(np.where(inner, score, 0.5)), 0.0)
        largest = max(float(np.abs(x).max()), SMALLEST)
        x = np.where(inner, x - float(v @ x) / self.sigma**2, 0.0) / largest
        k = np.arange(1, _N_SMOOTH + 1)
        smooth = np.cos(np.pi * np.outer(_middles(v), k)) * np.exp(-((np.pi * k * _SCALE) ** 2) / 2)
        place = (score - score[0]) / max(float(score[-1] - score[0]), SMALLEST)
        angle = np.pi * np.outer(place, np.arange(1, _N_FINE + 1))
        cosine = _standardised(np.cos(angle), v)
        sine = np.sin(angle)
        sine -= cosine * (v @ (cosine * sine))
        level, spread = np.full((len(v), 1), 1 / self.sigma), _standardised(x[:, None], v)
        smooth *= math.sqrt(2) / self.sigma
        return np.hstack((level, spread, smooth, cosine, _standardised(sine, v)))

    @cached_property
    def windows(self) -> Windows:
        """The intervals of the local part."""
        return Windows.over(self.cells.weight, self.variance, self.row_variance)

    def tails(self, observed: FloatArray) -> FloatArray:
        """Return bounds of the P-values of observed statistics, by asymptotic tails."""
        level, spread, excursion, smooth, fine, local = observed.tolist()
        found = np.array(
            [
                math.erfc(level / math.sqrt(2)),
                math.erfc(spread / math.sqrt(2)),
                float(brownian_range.sf(excursion)),
                self._smooth_tail(smooth),
                _N_FINE * math.exp(-fine / 2),
                self.windows.tail(local, math.sqrt(self.row_variance)),
            ]
        )
        return np.asarray(np.clip(found, SMALLEST, 1.0))

    def _smooth_tail(self, x: float) -> float:
        """Return Chernoff's bound: the minimum over t of E exp(t Q) / exp(t x)."""
        smooth = self._features[:, 2 : 2 + _N_SMOOTH]
        size = np.linalg.eigvalsh((smooth.T * self.variance) @ smooth)
        size = size[size > 0]
        if x <= size.sum():
            return 1.0
        limit = 0.5 / float(size.max())
        t = monotone_root(
            lambda t: float((size / (1 - 2 * t * size)).sum()) - x,
            0.0,
            limit * (1 - _PRECISION),
            limit * _PRECISION,
        )
        return math.exp(-t * x - float(np.log1p(-2 * t * size).sum()) / 2)


@dataclass(frozen=True, eq=False)
class Windows:
    """Intervals of cells from `start` to before `stop`.

    A sum of residuals over one has this variance, and counts times its scale, less its penalty.
    """

    start: Index
    stop: Index
    variance: FloatArray
    scale: FloatArray
    penalty: FloatArray

    @classmethod
    def over(cls, weight: FloatArray, variance: FloatArray, row_variance: float) -> Windows:
        """Return the intervals that hold about the given fractions of the weight."""
        edge = np.concatenate(([0.0], np.cumsum(weight))) / weight.sum()
        middle = (edge[1:] + edge[:-1]) / 2
        (single,) = np.nonzero(np.diff(edge) >= _INTERVALS[0])
        pairs = [single * len(edge) + single + 1]
        for width in _INTERVALS:
            left = np.linspace(0, 1 - width, math.ceil(_STEPS * (1 / width - 1)) + 1)
            start, stop = np.searchsorted(middle, left), np.searchsorted(middle, left + width)
            pairs.append((start * len(edge) + stop)[stop > start])
        start, stop = np.divmod(np.unique(np.concatenate(pairs)), len(edge))
        # Without those of weights so light that they are lost in the sum of all.
        has_weight = edge[start] < edge[stop]
        start, stop = start[has_weight], stop[has_weight]
        total = np.concatenate(([0.0], np.cumsum(variance)))
        inside = np.maximum(total[stop] - total[start], 0.0)
        fraction = np.minimum(edge[stop] - edge[start], 1.0)
        scale, penalty = 1 / np.sqrt(inside + row_variance), np.sqrt(-2 * np.log(fraction))
        return cls(start, stop, inside, scale, penalty)

    def tail(self, x: float, bound: float) -> float:
        """Return the sum over intervals of Bennett's bound of P(statistic >= x).

        `bound` is the largest residual of a row.
        """
        variance = np.maximum(self.variance / bound**2, _NO_VARIANCE)
        excess = np.maximum(x + self.penalty, 0.0) / self.scale / bound
        rate = (variance + excess) * np.log1p(excess / variance) - excess
        return float((2 * np.exp(-rate)).sum())


def _middles(amounts: FloatArray) -> FloatArray:
    """Return the fraction of a total up to the middle of each of its amounts."""
    return np.asarray((np.cumsum(amounts) - amounts / 2) / amounts.sum())


def _standardised(columns: FloatArray, variance: FloatArray) -> FloatArray:
    """Return columns times factors with which their sums of residuals have variance 1."""
    columns = np.where(np.abs(columns) > _ROUNDING, columns, 0.0)
    size = np.sqrt(variance @ columns**2)
    scaled: FloatArray = columns / np.where(size > 0, size, np.inf)
    return scaled
