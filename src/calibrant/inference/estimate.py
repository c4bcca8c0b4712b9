"""A calibration error with a confidence interval that holds at perfect calibration too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from numpy.typing import ArrayLike

from calibrant._base import Result
from calibrant.data import validation
from calibrant.data.classes import one_problem
from calibrant.data.problem import Problem
from calibrant.data.rows import read_columns
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, read_generator
from calibrant.formatting import percent
from calibrant.inference.cell_noise import Clusters
from calibrant.inference.intervals import Question, check_has_interval
from calibrant.measures.registry import Measure, find_measure, with_interval


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """A calibration error with a confidence interval for its population value.

    Attributes
    ----------
    value
        The error of the sample: noise makes it larger, on average, than that of the population.
    bias_corrected
        The error without the effect of noise: median-unbiased, nearly.
    low, high
        The ends of the interval. Near perfect calibration `high` may be below `value`.
    level
        The confidence level.
    n
        The number of rows that carry weight.
    error_bound
        A bound on the distance between `value` and that of the rows themselves: 0 for rows,
        certified for a sketch. The interval allows for it.
    measure
        The name of the measure.
    method
        "uniform", or "t" for the mean of a score.
    """

    value: float
    bias_corrected: float
    low: float
    high: float
    level: float
    n: int
    error_bound: float
    measure: str
    method: str

    def _printed(self) -> list[str]:
        text = self._field_texts()
        interval = f"{percent(self.level)} interval {text['low']} to {text['high']}"
        head = f"{self.measure} = {text['bias_corrected']}"
        raw = f", raw value {text['value']}" if self.method == "uniform" else ""
        return [f"Estimate({head}, {interval}{raw}, n = {self.n:,})"]


@overload
def estimate(
    measure: str | Callable[..., float], y_true: Sketch | Problem, **options: Any
) -> Estimate: ...
@overload
def estimate(
    measure: str | Callable[..., float], y_true: ArrayLike, y_prob: ArrayLike, **options: Any
) -> Estimate: ...
def estimate(
    measure: str | Callable[..., float],
    y_true: ArrayLike | Sketch | Problem,
    y_prob: ArrayLike | None = None,
    *,
    data: Any = None,
    level: float = 0.95,
    method: Literal["uniform"] = "uniform",
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    align: bool = True,
    **options: Any,
) -> Estimate:
    """Return a calibration error with a confidence interval for its population value.

    The population value is that at the same bins or scale, and the fixed point for smECE. The
    error of a sample is larger than that of its population, near perfect calibration by far; the
    interval allows for this. At perfect calibration `low` is 0 with probability (1 + level) / 2.

    Parameters
    ----------
    measure : str or callable
        The name of a calibration error that has an interval, such as "smooth_ece", "ece",
        "ecce_mad", "ecce_r" or "logit_smoothed_ece"; or that function.
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.
    data : dataframe, optional
        Table of pandas, polars or pyarrow; other arguments may then name its columns, or list them.
    level : float
        Confidence level.
    method : {"uniform"}
        The coverage holds at perfect calibration too, where that of percentile bootstrap
        intervals is 0.
    n_resamples : int
        Number of resamples, at least 39.

        At least 10 / (1 - level) - 1 of them are made, 199 for 0.95, as far as 64 MB hold them.
        Where the scale is finer than 0.004 of the range of scores fewer, but at least 300, do as
        well.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.
    align : bool
        Whether pandas objects with different indexes are refused; False pairs rows by position.
    **options
        Options of the measure, as given to it: `n_bins`, `strategy` and `norm` ("l1" or "l2") of
        ece, `bandwidth` of smooth_ece, `sigma` of logit_smoothed_ece.

    Returns
    -------
    Estimate
        `value`, `bias_corrected`, `low` and `high`. Near perfect calibration `high` may be below
        `value`: most of `value` is then noise.

    See Also
    --------
    compare : Differences between the errors of several models on the same rows.
    assess : Several measures with their intervals, a test, curves and a verdict.

    Notes
    -----
    Every error here is a norm N of an image h, linear in the residuals summed over narrow cells of
    scores: h = h0 + e, the population's image and noise. The target is theta = N(h0), observed is
    T = N(h). With a = (1 - level) / 2 and Q_a the a-quantile over simulated noise,

    - low = 0 unless T > Q_{1-a} N(e0), e0 being drawn with outcomes Bernoulli(p);
    - otherwise low = T - Q_{1-a+2b}[N(g + e) - N(g)], b = a / 5, g the image of minimum norm
      within kappa standard deviations of h at every coordinate, kappa = Q_{1-b} max_k abs(e_k) /
      sd_k, or N'(h) - Q_{1-b} N'(e) if that is larger, N' the largest sum of h with signs that
      change once at most; for cumulative errors T - Q_{1-a+b} of a bound on what noise adds to any
      image within that distance; for the l2 error the x with Q_{1-a} N(x d + e) = T, d the
      direction of h or of sd;
    - high = the x with Q_a N(g_x + e) = max(T, median N(g_0 + e)), g_x images of norm x to which
      noise adds least; where fewer than 15 events make the noise, T + the x with x = -Q_a <s, e>,
      s being the linear function that attains the norm, and the variance of e growing with x;
    - bias_corrected = the x with median N(g_x + e) = T, g_x images of norm x with the coordinates
      of h that are significantly different from 0; or 0 where there is none.

    smECE is at least s exactly where its norm at scale s is at least s, so that its ends are found
    from norms at fixed scales.

    Proved, given the distribution of the noise: theta < low has probability a at most for every
    population, at perfect calibration and, but for the l2 error with noise of unequal sd, anywhere
    else. Argued, and checked by simulation: that no population of error `high` makes T as small
    with more than probability a, and that smECE's allowance for noise is the same at neighbouring
    scales. docs/methods/intervals.md has the proofs, and a derivation or a table of each constant.

    The noise of soft labels is known from their residuals alone: where all of these are 0 the
    interval is [0, 0]. A sketch takes soft labels for the probabilities of 0/1 outcomes, which
    makes intervals wider; its `error_bound` is added at both ends. The noise of clusters is
    simulated by multipliers: the sum of z_g (R_gc - (W_g / W) r_c), R_gc being the residuals of
    cluster g in cell c, also in the test for low.

    One pass over the rows (one sort for cumulative errors), then the same work for any n.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> calibrated = simulate("perfect", 1000, rng=1)
    >>> estimate("smooth_ece", calibrated.y_true, calibrated.y_prob).low
    0.0
    """
    info = find_measure(measure, with_interval())
    error = info.read(options)
    check_has_interval(info.name, error)
    validation.check_choice(method, "method", ("uniform",))
    level = validation.as_level(level)
    n_resamples = validation.as_resamples(n_resamples)
    generator = read_generator(rng)
    y_true, y_prob, sample_weight, clusters = read_columns(
        data, align, y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, clusters=clusters
    )
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    known = Clusters.read(clusters, sample_weight, problem, generator)
    question = Question(level, n_resamples, generator, known)
    return estimated(info.name, error, problem, question)


def estimated(name: str, error: Measure, problem: Problem, question: Question) -> Estimate:
    """Return the estimate of a measure of a problem, both read and checked."""
    value = error(problem)
    bound = error.error_bound(problem, value)
    interval = question.interval(error, problem, value)
    return Estimate(
        value=value,
        bias_corrected=interval.centre + 0.0,  # no negative zero
        low=max(interval.low - bound, 0.0),
        high=min(interval.high + bound, 1.0),
        level=question.level,
        n=problem.n,
        error_bound=bound,
        measure=name,
        method="uniform",
    )
