"""How likely the best of several correlated improvements is by noise alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import stdtr, xlog1py, xlogy
from sklearn.base import clone

from calibrant._base import AnyArray, FloatArray, Result, frame, write_atomically
from calibrant.assessment.assess import Assessment, assess
from calibrant.data import validation
from calibrant.data.classes import ClassTable
from calibrant.data.problem import Index
from calibrant.data.rows import Sample
from calibrant.data.validation import Generator, read_generator, read_weights
from calibrant.errors import CalibrantError
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.inputs import check_order, read_rows
from calibrant.recalibration.methods import (
    BetaCalibrator,
    DensityCalibrator,
    HistogramCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    NoisyCalibrator,
    PlattCalibrator,
    ScalingBinningCalibrator,
    SmoothCalibrator,
    TemperatureCalibrator,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METHODS", "Recalibration", "cross_fitted", "recalibrate"]

_DRAWS = 100_000


def joint_tails(
    mean: FloatArray, error: FloatArray, covariance: FloatArray, n: int, rng: Generator
) -> FloatArray:
    """Return, for each mean, the chance that any of them is so many errors above 0 by noise.

    That is the tail of the greatest of as many Student's t's, with n - 1 degrees of freedom and
    the correlations of `covariance`, drawn 100 000 times; it lies between the tail of one t and
    the number of means times that, which counts where draws are too few. It is at least 2^-n,
    since so often n differences all have the same sign by chance; and 1 for a mean not above 0.
    """
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    freedom = max(n - 1, 1)
    single = stdtr(freedom, -t)
    greatest = np.sort(_greatest(covariance, freedom, rng))
    beyond = _DRAWS - np.searchsorted(greatest, t, side="left")
    chance = np.clip((1 + beyond) / (1 + _DRAWS), single, single * len(t))
    chance = np.clip(chance, 2.0 ** -min(n, 1000), 1.0)
    return np.where((mean > 0) & (n > 1), chance, 1.0)


def _greatest(covariance: FloatArray, freedom: int, rng: Generator) -> FloatArray:
    """Draw the greatest of several t's that are correlated like this."""
    size = np.sqrt(covariance.diagonal())
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    values, vectors = np.linalg.eigh(covariance * np.outer(scale, scale))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = rng.standard_normal((_DRAWS, len(size))) @ root.T
    return np.asarray(normal.max(axis=1) / np.sqrt(rng.chisquare(freedom, _DRAWS) / freedom))


# Predictions for rows that were held out: every row is mended by what other rows taught.

Table = Sample | ClassTable


def cross_fitted(
    calibrator: Calibrator,
    y_prob: Any,
    y_true: Any,
    *,
    cv: int = 5,
    rng: int | Generator = 0,
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> FloatArray:
    """Return mended probabilities of every row, learnt from the other parts of the rows.

    Parameters
    ----------
    calibrator
        What to fit, once a part; it is cloned and stays as it is.
    y_prob, y_true, sample_weight, labels, pos_label
        As in :meth:`~calibrant.recalibration.Calibrator.fit`, in its order.
    cv
        In how many parts the rows are divided, at random, each with its share of every outcome.
    rng
        A seed or a generator for the division.

    Returns
    -------
    ndarray
        Shape (n,) for one or two columns, (n, classes) for more. Row i was mended by a map that
        has not seen row i.

    Examples
    --------
    >>> from calibrant.datasets import load_rain
    >>> from calibrant.measures.smooth import smooth_ece
    >>> from calibrant.recalibration import PlattCalibrator
    >>> y_true, y_prob = load_rain()
    >>> held_out = cross_fitted(PlattCalibrator(), y_prob, y_true)
    >>> round(smooth_ece(y_true, y_prob), 3), round(smooth_ece(y_true, held_out), 3)
    (0.134, 0.028)
    """
    if not isinstance(calibrator, Calibrator):
        raise CalibrantError(
            "must be one of calibrant.recalibration's", argument="calibrator", value=calibrator
        )
    check_order(y_prob, y_true)
    table = read_rows(y_true, y_prob, labels, pos_label)
    weight = read_weights(sample_weight, n_rows(table))
    return held_out(calibrator, table, weight, divided(table, weight, cv, rng))


def divided(table: Table, weight: AnyArray | None, cv: int, rng: int | Generator) -> Index:
    """Return the part of each row, equal outcomes being dealt out evenly.

    Rows without weight, which teach nothing, are dealt out by themselves: after all others.
    """
    cv, n = validation.as_count(cv, "cv"), n_rows(table)
    is_idle = np.zeros(n, dtype=bool) if weight is None else weight == 0
    n_counting = n - int(is_idle.sum())
    if not 2 <= cv <= n_counting:
        which = "rows" if n_counting == n else "rows with positive weight"
        raise CalibrantError(
            "must be between 2 and the number of {which}, {maximum}",
            argument="cv",
            value=cv,
            which=which,
            maximum=n_counting,
        )
    kind = columns(table)[1]
    kind = kind.argmax(axis=1) if kind.ndim == 2 else kind
    order = read_generator(rng).permutation(n)
    order = order[np.lexsort((kind[order], is_idle[order]))]
    part = np.empty(n, dtype=np.intp)
    part[order] = np.arange(n) % cv
    return part


def held_out(
    calibrator: Calibrator, table: Table, weight: AnyArray | None, part: Index
) -> FloatArray:
    """Return every row as mended by the rows of the other parts."""
    prob, outcome = columns(table)
    mended = np.empty(prob.shape)
    for k in range(int(part.max()) + 1):
        inside = part == k
        others = None if weight is None else weight[~inside]
        fitted = clone(calibrator).fit(prob[~inside], outcome[~inside], sample_weight=others)
        mended[inside] = fitted.predict(prob[inside])
    return mended


def columns(table: Table) -> tuple[AnyArray, AnyArray]:
    """Return probabilities and outcomes."""
    return (table.prob, table.outcome) if isinstance(table, ClassTable) else (table.p, table.y)


def with_predictions(table: Table, prob: FloatArray) -> Table:
    """Return the same outcomes under other probabilities."""
    if isinstance(table, ClassTable):
        return replace(table, prob=prob)
    return Sample(table.y, prob, table.w, table.lowest)


def n_rows(table: Table) -> int:
    """Return the number of rows."""
    return len(columns(table)[0])


# A trial of methods on held-out rows: which of them lower a proper score beyond noise.

Score = Literal["brier", "log"]


@dataclass(frozen=True)
class Candidate(Result):
    """How a method did on held-out rows.

    Attributes
    ----------
    method
        Its name.
    score
        Its mean score; less is better.
    improvement
        How much less that is than the score of the probabilities as given.
    standard_error
        Of the improvement.
    p_value
        One-sided, allowing for the number of methods tried; never 0.
    """

    method: str
    score: float
    improvement: float
    standard_error: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows divided into parts, and the score that is to decide.

    Attributes
    ----------
    table
        The rows with their probabilities as given.
    weight
        The weight of each row, or None.
    part
        The part that each row belongs to.
    score
        The proper score.
    """

    table: Table
    weight: AnyArray | None
    part: Index
    score: Score

    @cached_property
    def share(self) -> FloatArray:
        """The weight of each row as a share of all."""
        w = np.ones(n_rows(self.table)) if self.weight is None else self.weight
        return np.asarray(w / w.sum(dtype=np.float64), dtype=np.float64)

    @cached_property
    def before(self) -> FloatArray:
        """The score of every row as given; refused where it is infinite."""
        before = self._losses(self.table)
        infinite = np.isinf(before)
        if infinite.any():
            raise CalibrantError(
                "must not be 0 for an outcome that happened, which makes the log score infinite",
                argument="y_prob",
                value=0.0,
                position=int(np.argmax(infinite)),
                count=int(infinite.sum()),
                hint="use {score}='brier'",
            )
        return before

    def mended(self, calibrator: Calibrator) -> FloatArray:
        """Return every row as mended by the rows of the other parts."""
        return held_out(calibrator, self.table, self.weight, self.part)

    def candidates(self, mended: Mapping[str, FloatArray], rng: Generator) -> list[Candidate]:
        """Return how every method did."""
        after = np.stack([self._losses(with_predictions(self.table, q)) for q in mended.values()])
        score = after @ self.share
        # What has an infinite score is out, whatever noise there is.
        gain = np.where(np.isinf(score)[:, None], 0.0, self.before - after)
        mean = gain @ self.share
        n = int(np.count_nonzero(self.share))
        scatter = self.share * (gain - mean[:, None]) * np.sqrt(n / max(n - 1, 1))
        covariance = scatter @ scatter.T
        error = np.sqrt(
            [
                max(v, self._noise(q))
                for v, q in zip(covariance.diagonal(), mended.values(), strict=True)
            ]
        )
        p_value = joint_tails(mean, error, covariance, n, rng)
        improvement = np.where(np.isinf(score), -np.inf, mean)
        rows = zip(mended, *(v.tolist() for v in (score, improvement, error, p_value)), strict=True)
        return [Candidate(*row) for row in rows]

    def _losses(self, table: Table) -> FloatArray:
        """Return the score of every row, and 0 for those of weight 0."""
        return np.where(self.share > 0, losses(table, self.score), 0.0)

    def _noise(self, mended: FloatArray) -> float:
        """Return the variance of the improvement where neither probability is the better one."""
        if self.table.is_soft:
            return 0.0
        with np.errstate(over="ignore"):
            noise = outcome_noise(columns(self.table)[0], mended, self.score)
            return float(np.square(self.share) @ np.where(self.share > 0, noise, 0.0))


def losses(table: Table, score: Score) -> FloatArray:
    """Return the score of every row."""
    rows = []
    for p, y, _ in table.blocks():
        loss = np.square(p - y)
        if score == "log":
            # Of one column the other outcome counts too; of several each has its own.
            other = 0.0 if isinstance(table, ClassTable) else xlog1py(1 - y, -p)
            loss = np.asarray(-(xlogy(y, p) + other))
        rows.append(loss.reshape(len(p), -1).sum(axis=1))
    return np.concatenate(rows)


def outcome_noise(p: AnyArray, q: FloatArray, score: Score) -> FloatArray:
    """Return, row by row, the variance of S(p, y) - S(q, y) for y drawn from (p + q) / 2.

    Midway between them neither is better on average, exactly so for the Brier score. With g_c the
    difference for outcome c, up to what all outcomes share: sum m_c (g_c - sum m_k g_k)^2.
    """
    p = np.asarray(p, dtype=np.float64)
    if score == "brier":
        change = 2 * (q - p)
        if p.ndim == 1:
            change = np.stack((np.zeros_like(p), change), axis=1)
    if p.ndim == 1:
        p, q = (np.stack((1 - v, v), axis=1) for v in (p, q))
    middle = (p + q) / 2
    if score == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(middle > 0, np.log(q) - np.log(p), 0.0)
    with np.errstate(invalid="ignore"):
        # Around their mean: for predictions next to 0 or 1 a difference of sums would vanish.
        mean = (middle * change).sum(axis=1, keepdims=True)
        variance = (middle * (change - mean) ** 2).sum(axis=1)
    return np.where(np.isinf(change).any(axis=1), np.inf, variance)


# What recalibrate found.


@dataclass(frozen=True, eq=False, repr=False)
class Recalibration(Result):
    """A calibrator that helps on held-out rows, or none, and what that rests on.

    Attributes
    ----------
    method
        The name of the method chosen; "none" where the probabilities are best left alone.
    calibrator
        That method fitted to all rows; one that changes nothing for "none".
    score
        The proper score that decided: "brier" or "log".
    score_before
        The mean score of the probabilities as given.
    candidates
        How every method did on held-out rows.
    before, after
        Assessments of the probabilities as given, and of those mended while held out.
    held_out
        The latter probabilities themselves: no row was mended by a map that had seen it.
    cv, level
        As asked for.
    """

    method: str
    calibrator: Calibrator
    score: str
    score_before: float
    candidates: tuple[Candidate, ...]
    before: Assessment
    after: Assessment
    held_out: FloatArray
    cv: int
    level: float

    @property
    def helps(self) -> bool:
        """Whether any method helps beyond noise."""
        return self.method != "none"

    def predict(self, y_prob: Any) -> FloatArray:
        """Return other probabilities as mended by the calibrator."""
        return self.calibrator.predict(y_prob)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, but for the calibrator, which has its own `save`."""
        plain = super().to_dict() | {
            "candidates": [one.to_dict() for one in self.candidates],
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }
        return {
            field.name: plain[field.name] for field in fields(self) if field.name != "calibrator"
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a method."""
        names = [field.name for field in fields(Candidate)]
        return frame({name: [getattr(one, name) for one in self.candidates] for name in names})

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Recalibration",
        source: Mapping[str, str] | str = "",
    ) -> str:
        """Return a page with the assessments before and after, and write it if `path` is given.

        As :meth:`calibrant.Assessment.to_html`, with a table of methods and gains. Where nothing
        helps, only the first assessment is shown.
        """
        from calibrant.reporting.page import page  # layers: a result may ask to be shown

        both = {"as given": self.before, f"{self.method}, held out": self.after}
        shown = both if self.helps else self.before
        text = page(shown, title=title, source=source, recalibration=self)
        if path is not None:
            write_atomically(path, text.encode())
        return text

    def __repr__(self) -> str:
        width = max(len(one.method) for one in self.candidates)
        lines = [
            f"{self._sentence()}",
            "",
            f"{'':{width}} {self.score:>8} {'gain':>9} {'error':>8} {'P':>8}",
            f"{'as given':{width}} {self.score_before:8.4f}",
        ]
        lines += [
            f"{one.method:{width}} {one.score:8.4f} {one.improvement:+9.5f} "
            f"{one.standard_error:8.5f} {one.p_value:8.2g}"
            for one in self.candidates
        ]
        return "\n".join(lines)

    def _sentence(self) -> str:
        if not self.helps:
            return (
                f"Leave it alone: no method lowers the {self.score} score on held-out rows beyond "
                f"noise (level {self.level:g}, {self.cv} parts)."
            )
        before, after = (one["smooth_ece"].value for one in (self.before, self.after))
        return (
            f"{self.method} helps: on held-out rows smooth_ece goes from {before:.4f} to "
            f"{after:.4f} (level {self.level:g}, {self.cv} parts)."
        )


# recalibrate: the method that helps on held-out rows, or none.

Method = str | Calibrator

# By name, the simplest first.
METHODS: dict[str, Calibrator] = {
    "temperature": TemperatureCalibrator(),
    "platt": PlattCalibrator(),
    "beta": BetaCalibrator(),
    "isotonic": IsotonicCalibrator(),
    "scaling_binning": ScalingBinningCalibrator(),
    "histogram": HistogramCalibrator(),
    "smooth": SmoothCalibrator(),
    "smooth_monotone": SmoothCalibrator(monotone=True),
    "density": DensityCalibrator(),
    "density_monotone": DensityCalibrator(monotone=True),
    "noisy": NoisyCalibrator(),
}
# What "auto" tries: maps that keep the order of predictions, and no noise.
_AUTO = ("temperature", "platt", "beta", "isotonic", "smooth_monotone", "density_monotone")


def recalibrate(
    y_true: Any,
    y_prob: Any,
    *,
    method: Method | Sequence[Method] = "auto",
    cv: int = 5,
    score: Literal["brier", "log"] = "brier",
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Recalibration:
    """Choose a calibrator by its score on held-out rows, or leave the probabilities alone.

    Every method is fitted `cv` times, each time to all but one part of the rows, and scored on
    the part left out. Of those that help beyond noise the one with the best score is fitted to
    all rows; where none does, the probabilities are left as they are.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrant.ece`. Rows are taken to be independent.
    method
        "auto" tries temperature, platt, beta, isotonic, smooth_monotone and density_monotone,
        none of which reverses the order of predictions of one class. Otherwise a name out of
        `METHODS`, a calibrator, or several of these.
    cv
        In how many parts the rows are divided, at random, each with its share of every outcome.
    score
        "brier" or "log": the proper score that decides. Less is better.
    level
        A method helps where its P-value, see below, is at most 1 - level; also the level of the
        assessments.
    n_resamples
        For the assessments, as in :func:`calibrant.assess`.
    rng
        A seed or a generator, for the division and the assessments.

    Returns
    -------
    Recalibration
        The calibrator, fitted to all rows, with how every method did and an assessment before and
        after, all on held-out rows. Prints as a table and a sentence.

    Notes
    -----
    The test: with d_i the score of row i as given less its score as mended, held out, and w_i its
    weight over the sum of weights, the improvement is m = sum_i w_i d_i, and its variance the
    larger of

        n / (n - 1) sum_i w_i^2 (d_i - m)^2   and   sum_i w_i^2 v_i,

    v_i being the variance of d_i if outcomes were drawn midway between the probability as given
    and as mended, where neither is better: it does not vanish where no event has been seen (for
    soft labels, whose noise is unknown, the first alone). P is the chance, by noise alone, that
    any of the methods tried is as many standard errors above 0: the tail of the greatest of so
    many Student's t's with n - 1 degrees of freedom, correlated as the methods' d_i are. It is
    simulated, never above that of one t times the number of methods, and at least 2^-n.

    The null hypothesis is that mending does not lower the expected score. Calibrated predictions
    are made worse by mending, since maps learn noise. That the maps of different parts were learnt
    from overlapping rows is not corrected for: it makes the test more cautious, not less. In
    simulations with 100 and 300 rows, at and around an expected improvement of 0, methods were
    found to help in at most 1% of samples where 5% are allowed.

    The assessment after is of held-out predictions, but the choice among methods was made by
    them: with many methods and few rows it flatters the one chosen a little. It is of `cv` maps
    that were each learnt from fewer rows than the one returned.

    With score="log", probabilities of 0 or 1 that were wrong leave nothing to compare and are
    refused; a method that makes such predictions is never chosen.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 2000)
    >>> mended = recalibrate(y_true, y_prob, n_resamples=100)
    >>> mended.helps
    True
    >>> mended.after["smooth_ece"].value < mended.before["smooth_ece"].value / 2
    True
    >>> y_true, y_prob = simulate("perfect", 2000)
    >>> recalibrate(y_true, y_prob, n_resamples=100).method
    'none'
    """
    validation.check_choice(score, "score", ("brier", "log"))
    level = validation.as_level(level)
    n_resamples = validation.as_resamples(n_resamples)
    calibrators = _read_methods(method)
    table = read_rows(y_true, y_prob, labels, pos_label)
    weight = read_weights(sample_weight, n_rows(table))
    trial = Trial(table, weight, divided(table, weight, cv, rng), score)
    mended = {name: trial.mended(one) for name, one in calibrators.items()}
    candidates = trial.candidates(mended, read_generator(rng))
    best = _best(candidates, level)
    prob, outcome = columns(table)
    # The classes of an assessment go by the names that were given.
    truth, names = (y_true, labels) if isinstance(table, ClassTable) else (outcome, None)
    assessed = partial(
        assess,
        truth,
        level=level,
        n_resamples=n_resamples,
        rng=rng,
        sample_weight=sample_weight,
        labels=names,
    )
    before = assessed(prob)
    calibrator = clone(calibrators.get(best, IdentityCalibrator()))
    return Recalibration(
        method=best,
        calibrator=calibrator.fit(prob, outcome, sample_weight=weight),
        score=score,
        score_before=float(trial.share @ trial.before),
        candidates=tuple(candidates),
        before=before,
        after=assessed(mended[best]) if best in mended else before,
        held_out=np.asarray(mended.get(best, prob), dtype=np.float64),
        cv=int(cv),
        level=level,
    )


def _best(candidates: Sequence[Candidate], level: float) -> str:
    """Return the name of the best method of those that help, or "none"."""
    helping = [one for one in candidates if one.p_value <= 1 - level]
    return min(helping, key=lambda one: one.score).method if helping else "none"


def _read_methods(method: Method | Sequence[Method]) -> dict[str, Calibrator]:
    """Return the calibrators to try, by name."""
    if isinstance(method, str) and method == "auto":
        method = _AUTO
    several = [method] if isinstance(method, str | Calibrator) else method
    if not isinstance(several, Sequence) or not several:
        raise CalibrantError(
            "must name at least one method, or be a calibrator",
            argument="method",
            value=method,
            hint="'auto' tries several",
        )
    calibrators: dict[str, Calibrator] = {}
    for one in several:
        if isinstance(one, Calibrator):
            calibrators[str(one)] = one
        else:
            validation.check_choice(one, "method", ("auto", *METHODS))
            calibrators[one] = METHODS[one]
    return calibrators
