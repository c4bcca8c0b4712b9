"""Tests of calibration without bins, by the maximum excursion of cumulative differences.

The statistics are those of :func:`calibrant.ecce_r` ("range") and :func:`calibrant.ecce_mad`
("max"). Under the null hypothesis the cumulative differences of many rows are close to Brownian
motion, which gives the asymptotic P-values; simulation gives P-values for any number of rows. Both
are conditional on the weights: these may depend on the scores, but not on the outcomes given the
scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import Result
from calibrant.data import validation
from calibrant.data.classes import RowOptions, one_problem, rows_or_sketch
from calibrant.data.problem import Problem
from calibrant.data.rows import check_same_index
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError
from calibrant.formatting import p_equation
from calibrant.inference.cell_noise import Clusters
from calibrant.inference.null_simulation import (
    TIE,
    Null,
    NullCells,
    calibrated_outcomes,
    permuted_within,
    simulate,
)
from calibrant.measures.cumulative import (
    CumulativeDifferences,
    CumulativeError,
    Statistic,
    cumulative_differences,
    known_sigma,
)
from calibrant.measures.subpopulation import Against, GroupCells, group_alone, read_group
from calibrant.numerics.probability import SMALLEST, brownian_max, brownian_range, rank_p_value

StatisticName = Literal["range", "max"]
TestMethod = Literal["asymptotic", "monte_carlo"]


@dataclass(frozen=True, repr=False)
class TestResult(Result):
    """A test of calibration: its statistic and P-value.

    Attributes
    ----------
    statistic
        The statistic, in units of probability.
    normalized
        The statistic divided by `sigma`.
    p_value
        Probability of a statistic at least as large under the null hypothesis; never 0.
    sigma
        The standard deviation to which the statistic is compared.
    n
        The number of rows tested.
    test
        The null hypothesis and the statistic, in a few words.
    method
        "asymptotic" or "monte_carlo": how the P-value was found.
    n_resamples
        The number of simulated samples; 0 for an asymptotic P-value.
    n_clusters
        The number of clusters; 0 where rows are independent.
    """

    statistic: float
    normalized: float
    p_value: float
    sigma: float
    n: int
    test: str
    method: str
    n_resamples: int = 0
    n_clusters: int = 0

    # Its name makes pytest take it for a class of tests wherever it is imported.
    __test__ = False

    @property
    def is_least(self) -> bool:
        """Whether no simulated statistic is as large: the P-value is then an upper bound."""
        return self.n_resamples > 0 and self.p_value * (1 + self.n_resamples) < 1.5

    def _printed(self) -> list[str]:
        statistic = f"{self.statistic:.4g} = {self.normalized:.3g} sigma"
        found = p_equation(self.p_value, is_bound=self.is_least)
        rows = f"n = {self.n}" + f" in {self.n_clusters} clusters" * (self.n_clusters > 0)
        return [f"TestResult({self.test}: {statistic}, {found}, {rows}, {self.method})"]


class CumulativeTestOptions(RowOptions, total=False):
    """Options of :func:`cumulative_test`."""

    statistic: StatisticName
    method: TestMethod
    clusters: ArrayLike | None
    n_resamples: int
    rng: int | Generator


@rows_or_sketch
def cumulative_test(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    statistic: StatisticName = "range",
    method: TestMethod = "asymptotic",
    clusters: ArrayLike | None = None,
    n_resamples: int = 9999,
    rng: int | Generator = 0,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> TestResult:
    """Test perfect calibration by cumulative differences, without bins.

    The null hypothesis is that every y_i is 1 with probability p_i, independently.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.

        Soft labels, whose noise is unknown, are refused.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    statistic : {"range", "max"}
        The range of the cumulative differences, :func:`calibrant.ecce_r`, or their maximum
        absolute value, :func:`calibrant.ecce_mad`.
    method : {"asymptotic", "monte_carlo"}
        "asymptotic": the distribution of Brownian motion at statistic / sigma. "monte_carlo": the
        rank among simulated samples, (1 + number at least as large) / (1 + n_resamples).
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.

        P-values are then simulated, whatever the method.
    n_resamples : int
        Number of resamples, at least 39.

        For "monte_carlo" and clusters alone. P-values are at least 1 / (n_resamples + 1).
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
    TestResult
        The statistic, in units of probability and of sigma_n, and its P-value, never 0: an
        asymptotic one too small for a double is given as the smallest, 2.2e-308.

    See Also
    --------
    subpopulation_test : A group against its population.
    calibration_slope_test : More powerful where the calibration curve is logistic.

    Notes
    -----
    Weights may be counts, or fractions of a population; class weights, or inverse sampling
    probabilities that differ between outcomes, make any P-value meaningless. Doubling all weights
    changes nothing; doubling the rows does reduce noise.

    Monte-Carlo P-values are valid for every n, with ties too. Asymptotic ones need many rows and
    nearly distinct scores: with heavily tied scores there are few increments, excursions are
    smaller than those of Brownian motion, and P-values are conservative. For calibrated scores in
    tenths at n = 10 000, a nominal 5% is really about 2% for "range" and 3% for "max".

    With `clusters`, resamples keep or change the sign of all residuals of a cluster together: valid
    as far as residual totals of clusters are symmetric or many. sigma is then the root of the sum
    of squared residual totals of clusters, over W. Of more than 1024 distinct scores, or of
    512 where there are more than 8192 rows, excursions are compared at so many.

    An outcome of 1 at a prediction of 0, or of 0 at a prediction of 1, refutes the null hypothesis
    by itself, but hardly changes the P-value.

    Asymptotic: two passes over many rows and a sort of few of them. Monte Carlo: time in proportion
    to `n_resamples` times the number of distinct scores, about 0.1 s for a product of 10^7, and
    refused where it would be more than 5 s; memory a few megabytes.

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions" (2022), Theorem 6.
    Tygert, "Calibration of P-values for calibration and for deviation of a subpopulation
    from the full population" (2022).

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> cumulative_test(*load_flares())
    TestResult(calibration, range: 0.06351 = 4.63 sigma, p = 1.5e-05, n = 731, asymptotic)
    >>> cumulative_test([0, 1, 1, 1], [0.5, 0.5, 0.5, 1.0], method="monte_carlo").p_value
    1.0
    """
    test = _read_test(statistic, method, n_resamples, rng, clustered=clusters is not None)
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    known = Clusters.read(clusters, sample_weight, problem, test.rng)
    differences = cumulative_differences(problem, only_extremes=True)
    if known is not None:
        return test.of_clusters(differences, problem, known)
    return test(differences, lambda: calibrated_outcomes(problem), problem.n, "calibration")


def subpopulation_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    group: ArrayLike,
    against: Against = "population",
    statistic: StatisticName = "range",
    method: TestMethod = "asymptotic",
    n_resamples: int = 9999,
    rng: int | Generator = 0,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> TestResult:
    """Test whether a group differs from its population, or from its own predictions.

    Against the population the null hypothesis is that outcomes are independent of membership given
    the score; predictions may be miscalibrated, as long as they are equally so for all (see Notes
    where scores are not shared). Against calibration it is that the group's own outcomes follow the
    predictions: :func:`cumulative_test` of its rows.

    Parameters
    ----------
    y_true : array_like
        Outcomes: 0/1, bool or yes/no; two labels with `pos_label`; or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    group : array_like of bool
        True for the rows of the group; all rows are the population.
    against : {"population", "calibration"}
        The null hypothesis.
    statistic : {"range", "max"}
        The range of the cumulative differences, or their maximum absolute value.
    method : {"asymptotic", "monte_carlo"}
        "asymptotic": the distribution of Brownian motion at statistic / sigma. "monte_carlo": the
        rank among simulated samples, (1 + number at least as large) / (1 + n_resamples).
    n_resamples : int
        Number of resamples, at least 39.

        For "monte_carlo" alone, whose P-values are at least 1 / (n_resamples + 1).
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
    TestResult
        The statistic of :func:`calibrant.subpopulation_curve`, its sigma and its P-value; `n`
        counts the group's rows.

    See Also
    --------
    subpopulation_curve : The cumulative differences that are tested.
    by_group : Each of many groups against its own predictions.

    Notes
    -----
    At each distinct score of the group, the residuals y - p of its rows are compared with those of
    all rows of the population, the group's included, that are nearer to this score than to any
    other of the group's (at equal distance, the lower). Where there are no others, the increment
    is 0.

    sigma is the exact standard deviation of the last cumulative difference when residuals are
    permuted within these cells, which "monte_carlo" does: it allows for the group's being part of
    the population. Where each cell holds a single score, outcomes are permuted, and Monte-Carlo
    P-values are valid for every n. Elsewhere they are approximate: residuals should hardly depend
    on the score within a cell, as in narrow cells, or with calibrated predictions in wide ones. For
    a group of calibrated scores in tenths, the others' being continuous, a nominal 5% was 4 to 8%
    at n = 2000; with two or three events in all, and the group's scores rounded up, 12 to 14%.

    References
    ----------
    Tygert, "Cumulative deviation of a subpopulation from the full population" (2021). There the
    first and last cells reach to the ends of the scores, and outcomes are compared instead of
    residuals. Here rows beyond the group's lowest and highest scores are left out: they may be far
    away, with noise unlike the group's.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(2000)
    >>> group = rng.random(2000) < 0.3
    >>> y_true = rng.random(2000) < np.where(group, y_prob**2, y_prob)
    >>> subpopulation_test(y_true, y_prob, group=group).p_value < 1e-4
    True
    """
    test = _read_test(statistic, method, n_resamples, rng)
    validation.check_choice(against, "against", get_args(Against))
    check_same_index({"y_true": y_true, "group": group})
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    member = read_group(group, sample_weight, problem)
    n = int(member.sum())
    if against == "calibration":
        alone = group_alone(problem, member)
        about = "group against calibration"
        differences = cumulative_differences(alone, only_extremes=True)
        return test(differences, lambda: calibrated_outcomes(alone), n, about)
    cells = GroupCells.around(problem, member)
    if not cells.is_informative:
        raise CalibrantError(
            "cannot be compared with its population: near none of its scores are there both rows "
            "of others and outcomes of either kind",
            argument="group",
        )
    return test(cells.differences(), lambda: permuted_within(cells), n, "group against population")


@dataclass(frozen=True)
class ExcursionTest:
    """A test of cumulative differences, simulated unless `n_resamples` is 0."""

    statistic: Statistic
    n_resamples: int
    rng: Generator

    def __call__(
        self, differences: CumulativeDifferences, null: Callable[[], Null], n: int, about: str
    ) -> TestResult:
        """Test differences over n rows; the null hypothesis is made only if it is simulated."""
        observed = differences.excursion(self.statistic)
        if differences.sigma == 0 and observed > 0:
            certain = differences.score[differences.increment != 0][0]
            raise CalibrantError(
                "{about} is refuted without a test: all predictions are 0 or 1, which leaves no "
                "noise, and one of {certain:g} has the outcome {outcome:g}",
                about=about,
                certain=certain,
                outcome=1 - certain,
            )
        sigma = known_sigma(differences, f"a test of {about}")
        if self.n_resamples:
            high, low = simulate(null(), self.n_resamples, self.rng)
            simulated = self.statistic.of(high, low) / differences.total
            p_value = rank_p_value(simulated, observed, TIE * sigma)
        else:
            distribution = brownian_max if self.statistic is Statistic.MAX else brownian_range
            p_value = max(float(distribution.sf(observed / sigma)), SMALLEST)
        return TestResult(
            statistic=observed,
            normalized=observed / sigma,
            p_value=p_value,
            sigma=sigma,
            n=n,
            test=f"{about}, {self.statistic.value}",
            method="monte_carlo" if self.n_resamples else "asymptotic",
            n_resamples=self.n_resamples,
        )

    def of_clusters(
        self, differences: CumulativeDifferences, problem: Problem, clusters: Clusters
    ) -> TestResult:
        """Test the calibration of rows that may depend on each other within clusters."""
        known_sigma(differences, "a test of calibration")
        p, y, w = problem.rows.columns()
        totals = np.bincount(clusters.bundle, clusters.sign * w * (y - p))
        sigma = math.sqrt(float(totals @ totals)) / differences.total
        null = NullCells.of(problem, clusters, self.rng)
        excursions = []
        for drawn in null.batches(self.n_resamples, self.rng):
            sums = np.cumsum(drawn, axis=1) / differences.total
            high, low = np.maximum(sums.max(axis=1), 0.0), np.minimum(sums.min(axis=1), 0.0)
            excursions.append(self.statistic.of(high, low))
        pooled, *simulated = excursions
        scale = differences.sigma + sigma
        p_value = rank_p_value(np.concatenate(simulated), float(pooled[0]), TIE * scale)
        observed = differences.excursion(self.statistic)
        return TestResult(
            statistic=observed,
            normalized=observed / sigma if sigma > 0 else math.nan,
            p_value=p_value,
            sigma=sigma,
            n=problem.n,
            test=f"calibration, {self.statistic.value}",
            method="monte_carlo",
            n_resamples=self.n_resamples,
            n_clusters=clusters.n,
        )


def _read_test(
    statistic: str, method: str, n_resamples: int, rng: int | Generator, *, clustered: bool = False
) -> ExcursionTest:
    validation.check_choice(statistic, "statistic", get_args(StatisticName))
    validation.check_choice(method, "method", get_args(TestMethod))
    n_resamples = validation.as_resamples(n_resamples)
    n_simulated = n_resamples if clustered or method == "monte_carlo" else 0
    return ExcursionTest(Statistic(statistic), n_simulated, read_generator(rng))


@rows_or_sketch
def certificate(
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return an upper bound on the cutoff calibration error that needs independence alone.

    ECCE-R + 2 sqrt(log(2 / a) / (2 n)), a = 1 - level. With probability `level` or more, whatever
    the true probabilities q are, over no interval of scores does the sum of w (q - p) / W exceed
    it, and at no threshold could a monotone recalibration save more.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    level : float
        Confidence level.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.

        n is then the effective number of rows, W^2 / sum w^2.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    float
        The bound, at most 1. That of a sketch includes its error bound.

    See Also
    --------
    ecce_r : The cutoff calibration error of the sample.
    estimate : An interval for it, narrower and not a theorem for every population.
    threshold_regret : The regret at one threshold.

    Notes
    -----
    Given scores and weights, the cumulative sums of w (y - q) / W over increasing scores are a
    martingale whose increments lie in intervals of length w / W. By Hoeffding's inequality for its
    maximum, they exceed x somewhere with probability exp(-2 n x^2) at most, and so they fall below
    -x; apart from both events the range of the sums changes by no more than 2x. Nothing is
    assumed but that outcomes are independent given the scores. The target is that of the scores
    at hand: q is a function of the rows, not of the scores alone.

    References
    ----------
    Rossellini et al., "Can a calibration metric be both testable and actionable?" (2025).
    Hoeffding, "Probability inequalities for sums of bounded random variables" (1963), eq. 2.17.

    Examples
    --------
    >>> from calibrant.datasets import load_imagenet
    >>> y_true, y_prob = load_imagenet("resnet34")
    >>> round(certificate(y_true, y_prob), 4)
    0.0904
    """
    level = validation.as_level(level)
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    error = CumulativeError(Statistic.RANGE)
    value = error(problem)
    noise = 2 * float(np.sqrt(np.log(2 / (1 - level)) / (2 * problem.effective_rows)))
    return min(value + error.error_bound(problem, value) + noise, 1.0)
