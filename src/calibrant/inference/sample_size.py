"""How many rows a validation takes, and what calibrated predictions would score on given rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from calibrant._base import FloatArray, Result, TabularResult
from calibrant.data import validation
from calibrant.data.rows import Sample, read_sample
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError
from calibrant.formatting import TextTable, count, counted, percent
from calibrant.inference.estimate import estimated
from calibrant.inference.intervals import Question
from calibrant.measures.registry import MeasureInfo, find_measure
from calibrant.measures.registry import measures as all_measures
from calibrant.numerics.probability import logit, monotone_root

Planned = Literal["o_e", "intercept", "slope", "smooth_ece", "ecce_r", "ecce_mad"]
_ERRORS = ("smooth_ece", "ecce_r", "ecce_mad")
# Samples whose median width is that of a size, and resamples of each.
_SAMPLES, _DRAWS = 11, 400
# Widths are simulated between these sizes; beyond the larger they shrink as the root of n.
_FEWEST, _MOST = 50, 1_000_000
# The search ends when one more step changes n by less than this, or after so many.
_CLOSE, _MAX_STEPS = 0.02, 8
_MOST_ROWS = 1e15
# How many times as long as others these measures take, and how many rows others may take in all
# draws: a few seconds.
_SLOW = {"interval_error": 20, "weak_calibration_error": 5, "skce": 4, "laplace_kernel_error": 3}
_MOST_DRAWN = 20_000_000
# No logit is shifted further than this.
_FARTHEST = 40.0


@dataclass(frozen=True, repr=False)
class SampleSize(Result):
    """The number of rows that makes the interval of a measure as narrow as asked for.

    Attributes
    ----------
    n
        The number of rows.
    n_events
        The number of events to expect among them.
    measure
        The measure.
    width
        The width of its interval.
    prevalence
        The probability of an event.
    level
        The confidence level of the interval.
    """

    n: int
    n_events: int
    measure: str
    width: float
    prevalence: float
    level: float

    def _printed(self) -> list[str]:
        size = f"{count(self.n)} rows, {count(self.n_events)} events"
        what = f"{self.measure} with a {percent(self.level)} interval {self.width:g} wide"
        return [f"SampleSize({size}: {what}, prevalence {self.prevalence:.3g})"]


def sample_size(
    measure: Planned,
    width: float,
    y_prob: ArrayLike,
    *,
    prevalence: float | None = None,
    level: float = 0.95,
    rng: int | Generator = 0,
) -> SampleSize:
    """Return how many rows make the interval of a measure of calibrated predictions so narrow.

    Parameters
    ----------
    measure : {"o_e", "intercept", "slope", "smooth_ece", "ecce_r", "ecce_mad"}
        The measure whose interval is to be narrow.
    width : float
        The width of the interval, high - low.
    y_prob : array_like of shape (n,)
        Predicted probabilities.

        They show how predictions will be distributed: those of a pilot, of the development data, or
        draws from a distribution.
    prevalence : float, optional
        The probability of an event in the new data: all logits are shifted so that predictions have
        this mean. By default the mean of `y_prob`.
    level : float
        Confidence level.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.

    Returns
    -------
    SampleSize
        The number of rows, and of events among them.

    See Also
    --------
    clinical_summary, estimate : The intervals.
    noise_floor : What calibrated predictions would score on given rows.

    Notes
    -----
    With v = p(1 - p), x = logit p, E the mean over predictions and z the normal quantile, standard
    errors of calibrated predictions are

        log O:E      sqrt(E v / n) / E p,   and the width of O:E is 2 sinh(z times this)
        intercept    1 / sqrt(n E v)
        slope        sqrt(E v / (n (E v E v x^2 - (E v x)^2)))

    Slope and intercept are those of Riley et al. They take (1 - prevalence) / prevalence for the
    variance of log O:E per row, which is right where all predictions are the same, and asks for
    more rows the better predictions discriminate.

    A calibration error has an interval from 0 upwards. Its width is the median of those of
    simulated samples, which is searched for to within 2% of n.

    References
    ----------
    Riley et al., "Minimum sample size for external validation of a clinical prediction model with a
    binary outcome" (2021).
    Pavlou et al., "Estimation of required sample size for external validation of risk models for
    binary outcomes" (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> risk = expit(np.random.default_rng(0).normal(-2, 1.2, 100_000))
    >>> sample_size("slope", 0.2, risk)
    SampleSize(3,332 rows, 562 events: slope with a 95% interval 0.2 wide, prevalence 0.169)
    """
    validation.check_choice(measure, "measure", get_args(Planned))
    width, level = validation.as_positive(width, "width"), validation.as_level(level)
    generator = read_generator(rng)
    p = _at_prevalence(_predictions(y_prob), prevalence)
    if measure in _ERRORS:
        n = _simulated_size(
            find_measure(measure, all_measures().values()), width, p, level, generator
        )
    else:
        z = float(ndtri((1 + level) / 2))
        wanted = math.asinh(width / 2) if measure == "o_e" else width / 2
        n = _variance_per_row(measure, p) * (z / wanted) ** 2
    if not n < _MOST_ROWS:
        raise CalibrantError(
            "must be wider: it would take {most:g} rows or more",
            argument="width",
            value=width,
            most=_MOST_ROWS,
        )
    rows, mean = max(math.ceil(n * (1 - 1e-12)), 1), float(p.mean())
    return SampleSize(rows, round(rows * mean), measure, width, mean, level)


def _predictions(y_prob: Any) -> FloatArray:
    """Return predictions, of which outcomes are not known."""
    p = validation.one_column(validation.as_array(y_prob, "y_prob"), "y_prob")
    validation.check_not_empty(p, "y_prob")
    p = validation.as_numbers(p, "y_prob")
    validation.check_probabilities(p)
    return np.asarray(p, dtype=np.float64)


def _at_prevalence(p: FloatArray, prevalence: float | None) -> FloatArray:
    """Return predictions with their logits shifted to a mean prediction."""
    if prevalence is None:
        return p
    wanted = validation.as_float(prevalence)
    if not 0 < wanted < 1:
        raise CalibrantError("must lie between 0 and 1", argument="prevalence", value=prevalence)
    x = logit(p)
    shift = monotone_root(
        lambda a: float(expit(x + a).mean()) - wanted, -_FARTHEST, _FARTHEST, 1e-10
    )
    return np.asarray(expit(x + shift))


def _variance_per_row(measure: str, p: FloatArray) -> float:
    """Return n times the variance of log O:E, intercept or slope of calibrated predictions."""
    v = p * (1 - p)
    noise = float(v.mean())
    if noise == 0:
        raise CalibrantError(
            "must hold a prediction other than 0 and 1", argument="y_prob", value=p[0]
        )
    if measure == "o_e":
        return noise / float(p.mean()) ** 2
    if measure == "intercept":
        return 1 / noise
    inner = v > 0
    x, v = logit(p[inner]), v[inner]
    centred = x - np.average(x, weights=v)
    information = float(v @ centred**2) / len(p)
    if not information > 0:
        raise CalibrantError(
            "must have two different values for the calibration slope",
            argument="y_prob",
            value=p[0],
            found="{value} in every row",
        )
    return 1 / information


def _simulated_size(
    info: MeasureInfo, width: float, p: FloatArray, level: float, rng: Generator
) -> float:
    """Return the n at which the median interval of calibrated samples is so wide."""
    seed = int(rng.integers(1 << 32))

    def log_width(n: int) -> float:
        """Return the logarithm of the median width, from the same random numbers for every n."""
        own = np.random.default_rng([seed, n])
        widths = []
        for _ in range(_SAMPLES):
            drawn = own.choice(p, n)
            sample = Sample((own.random(n) < drawn).astype(np.float64), drawn)
            one = estimated(info.name, info.read({}), sample, Question(level, _DRAWS, own))
            widths.append(one.high - one.low)
        return math.log(float(np.median(widths)))

    n, slope, target = 1000, -0.5, math.log(width)
    found = log_width(n)
    for _ in range(_MAX_STEPS):
        step = (target - found) / slope
        if abs(step) < _CLOSE or (step > 0 and n == _MOST) or (step < 0 and n == _FEWEST):
            break
        following = round(min(max(n * math.exp(step), _FEWEST), _MOST))
        again = log_width(following)
        if following != n:
            slope = min(max((again - found) / math.log(following / n), -0.7), -0.3)
        n, found = following, again
    return n * math.exp((target - found) / (slope if n < _MOST else -0.5))


@dataclass(frozen=True, eq=False, repr=False)
class NoiseFloor(TabularResult):
    """What perfectly calibrated predictions score on rows like these.

    Attributes
    ----------
    measure
        The names of the measures.
    mean
        The mean score over simulated outcomes.
    high
        The score that calibrated predictions stay below with probability `level`.
    level
        That probability.
    n
        The number of rows.
    """

    measure: tuple[str, ...]
    mean: FloatArray
    high: FloatArray
    level: float
    n: int

    def _columns(self) -> Mapping[str, Any]:
        return {"measure": self.measure, "mean": self.mean, "high": self.high}

    def _printed(self) -> list[str | TextTable]:
        head = f"NoiseFloor({counted(self.n, 'row')}, calibrated predictions; level {self.level:g})"
        return [head, self._table()]


def noise_floor(
    y_prob: ArrayLike,
    *,
    measures: Sequence[str | Callable[..., float]] | None = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 200,
    rng: int | Generator = 0,
) -> NoiseFloor:
    """Return what perfectly calibrated predictions would score on these rows, for every measure.

    Parameters
    ----------
    y_prob : array_like of shape (n,)
        Predicted probabilities.
    measures : list of str or callable, optional
        The measures, by name or as functions, with their default options; by default all of them.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    level : float
        Confidence level.
    n_resamples : int
        Number of resamples, at least 39.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.

    Returns
    -------
    NoiseFloor
        Mean and quantile of each measure over outcomes y ~ Bernoulli(p).

    See Also
    --------
    estimate : A measure with an interval, which allows for this noise.
    sample_size : How many rows make the noise as small as asked for.

    Notes
    -----
    Cost: `n_resamples` times that of all measures, 4 ms for 1000 rows and 0.15 s for 100 000. What
    would take more than a few seconds is refused: all measures with 200 draws take up to 2400 rows,
    one of the faster ones 100 000.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).beta(2, 2, 500)
    >>> floor = noise_floor(p, measures=["ece", "smooth_ece"])
    >>> floor.measure, bool((floor.mean < floor.high).all())
    (('ece', 'smooth_ece'), True)
    """
    level = validation.as_level(level)
    n_resamples = validation.as_resamples(n_resamples)
    generator = read_generator(rng)
    known = [info for info in all_measures().values() if info.make is not None]
    if measures is not None and not isinstance(measures, list | tuple):
        raise CalibrantError("must be a list of measures", argument="measures", value=measures)
    infos = [find_measure(one, known) for one in measures] if measures else known
    p = _predictions(y_prob)
    sample = read_sample(np.zeros(len(p)), p, sample_weight=sample_weight)
    p, _, w = sample.columns()
    most = _MOST_DRAWN // (len(p) * sum(_SLOW.get(info.name, 1) for info in infos) or 1)
    if n_resamples > most:
        raise CalibrantError(
            "must be at most {maximum} for so many rows and measures",
            argument="n_resamples",
            value=n_resamples,
            maximum=most,
            hint="name fewer in measures, or the faster ones",
        )
    asked = [info.read({}) for info in infos]
    scores = np.empty((n_resamples, len(asked)))
    for score in scores:
        drawn = Sample((generator.random(len(p)) < p).astype(np.float64), p)
        drawn = drawn if sample.w is None else drawn.weighted(w)
        score[:] = [one(drawn) for one in asked]
    return NoiseFloor(
        measure=tuple(info.name for info in infos),
        mean=scores.mean(axis=0),
        high=np.quantile(scores, level, axis=0, method="weibull"),
        level=level,
        n=sample.n,
    )
