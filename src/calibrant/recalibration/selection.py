"""Choice of a calibrator by cross-validation: the one that lowers a proper score, or none.

`recalibrate` and `cross_fitted` hold out each fold in turn, so that no row is recalibrated by a map
that was fitted to it. The cost is `cv` fits of every method, and two assessments.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr
from sklearn.base import clone

from calibrant._base import (
    AnyArray,
    FloatArray,
    Result,
    TabularResult,
    columns_of,
    written,
)
from calibrant.assessment.assess import Assessment, assess
from calibrant.data import validation
from calibrant.data.classes import ClassTable, read_table
from calibrant.data.problem import Index
from calibrant.data.rows import Sample
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, read_generator, read_weights
from calibrant.errors import CalibrantError
from calibrant.formatting import TextTable, p_cells
from calibrant.measures.scores import LOSSES
from calibrant.progress import steps
from calibrant.recalibration.calibrator import Calibrator, check_columns, check_order
from calibrant.recalibration.methods import METHODS, IdentityCalibrator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Method = str | Calibrator
Score = Literal["brier", "log"]
Table = Sample | ClassTable

# What "auto" tries: maps that keep the order of predictions and add no noise.
_AUTO = ("temperature", "platt", "beta", "isotonic", "smooth_monotone", "density_monotone")
_DRAWS = 100_000


def recalibrate(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    method: Method | Sequence[Method] = "auto",
    cv: int = 5,
    score: Score = "brier",
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Recalibration:
    """Choose a calibrator by its score on held-out rows, or keep the probabilities as they are.

    Every method is fitted `cv` times, each time to all folds but one, and scored on the fold left
    out. Of the methods that lower the score significantly, the one with the lowest score is fitted
    to all rows; where there is none, the probabilities are kept.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no or soft labels in [0, 1]; two labels with `pos_label`; or
        classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    method : str, Calibrator or sequence of these
        A name out of `METHODS`, a calibrator, or several of them. "auto" tries temperature, platt,
        beta, isotonic, smooth_monotone and density_monotone, none of which reverses the order of
        the predictions of one class.
    cv : int
        Number of folds, drawn at random and stratified by outcome.
    score : {"brier", "log"}
        The proper score to lower.
    level : float
        Confidence level.

        A method helps where its P-value is at most 1 - level; also the level of the assessments.
    n_resamples : int
        Number of draws of the noise, at least 39.

        For the assessments.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.

        For the folds and the assessments.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of a dataframe's columns, where they
        are those of the classes, or else 0 to C - 1.
    pos_label : label, optional
        The label whose probability `y_prob` is, where the two labels are not 0 and 1, no and yes,
        or false and true.

    Returns
    -------
    Recalibration
        The calibrator, fitted to all rows, with the score of every method and an assessment before
        and after, all on held-out rows. Prints as a sentence and a table.

    Notes
    -----
    Rows are taken to be independent. With d_i the score of row i as given less its score as
    recalibrated while held out, and w_i its weight over the sum of weights, the improvement is
    m = sum_i w_i d_i, and its variance the larger of

        n / (n - 1) sum_i w_i^2 (d_i - m)^2   and   sum_i w_i^2 v_i,

    v_i being the variance of d_i if outcomes were drawn from the mean of the probability as given
    and as recalibrated, where neither is better. The second does not vanish where no event has been
    observed; it is left out for soft labels, whose noise is unknown. P is the probability under the
    null hypothesis that any of the methods is as many standard errors above 0: the tail of the
    maximum of that many Student's t variables with n - 1 degrees of freedom, correlated as the
    methods' d_i are. It is simulated, never above that of one t times the number of methods, and at
    least 2^-n.

    The null hypothesis is that recalibration does not lower the expected score. It raises the score
    of calibrated predictions, since maps fit noise. That the maps of different folds were fitted to
    overlapping rows is not corrected for: it makes the test more conservative. In simulations with
    100 and 300 rows, at and around an expected improvement of 0, methods were found to help in at
    most 1% of samples at a nominal 5%.

    The assessment after is of held-out predictions, but they were used to choose the method: with
    many methods and few rows it is slightly optimistic. It describes `cv` maps that were each
    fitted to fewer rows than the one returned.

    With score="log", probabilities of 0 or 1 that were wrong leave nothing to compare and are
    refused; a method that makes such predictions is never chosen.

    See Also
    --------
    cross_fitted : Held-out predictions of one calibrator.
    calibrant.assess : The assessments before and after.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 2000)
    >>> found = recalibrate(y_true, y_prob, n_resamples=100)
    >>> found.helps
    True
    >>> found.after["smooth_ece"].value < found.before["smooth_ece"].value / 2
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
    weight = read_weights(sample_weight, _n_rows(table))
    fold = assign_folds(table, weight, cv, rng)
    held_out = {
        name: _held_out(one, table, weight, fold) for name, one in steps(calibrators.items())
    }
    w = np.ones(_n_rows(table)) if weight is None else weight
    trial = _Trial(table, np.asarray(w / w.sum(dtype=np.float64), dtype=np.float64), score)
    candidates = trial.candidates(held_out, read_generator(rng))
    helping = [one for one in candidates if one.p_value <= 1 - level]
    best = min(helping, key=lambda one: one.score).method if helping else "none"
    prob, outcome = _columns(table)
    # An assessment of classes refers to them by the labels that were given.
    truth, names = (y_true, table.labels) if isinstance(table, ClassTable) else (outcome, None)
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
        score_before=float(trial.weights @ trial.before),
        candidates=tuple(candidates),
        before=before,
        after=assessed(held_out[best]) if best in held_out else before,
        held_out=np.asarray(held_out.get(best, prob), dtype=np.float64),
        cv=int(cv),
        level=level,
    )


def cross_fitted(
    calibrator: Calibrator,
    y_prob: ArrayLike,
    y_true: ArrayLike,
    *,
    cv: int = 5,
    rng: int | Generator = 0,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> FloatArray:
    """Return recalibrated probabilities of every row, from a map fitted to the other folds.

    Parameters
    ----------
    calibrator : Calibrator
        What to fit, once per fold; it is cloned and not changed.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no or soft labels in [0, 1]; two labels with `pos_label`; or
        classes.
    cv : int
        Number of folds, drawn at random and stratified by outcome.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of a dataframe's columns, where they
        are those of the classes, or else 0 to C - 1.
    pos_label : label, optional
        The label whose probability `y_prob` is, where the two labels are not 0 and 1, no and yes,
        or false and true.

    Returns
    -------
    ndarray
        Shape (n,) for one or two columns, (n, C) for more. The map of row i was not fitted to it.

    See Also
    --------
    recalibrate : Choose a calibrator by its score on held-out rows.

    Examples
    --------
    >>> from calibrant import smooth_ece
    >>> from calibrant.datasets import load_rain
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
    weight = read_weights(sample_weight, _n_rows(table))
    return _held_out(calibrator, table, weight, assign_folds(table, weight, cv, rng))


@dataclass(frozen=True, repr=False)
class Candidate(Result):
    """The score of a method on held-out rows.

    Attributes
    ----------
    method : str
        Its name.
    score : float
        Its mean score; lower is better.
    improvement : float
        Score of the probabilities as given less that of the method.
    standard_error : float
        Standard error of the improvement.
    p_value : float
        One-sided P-value of the improvement, adjusted for the number of methods; never 0.
    """

    method: str
    score: float
    improvement: float
    standard_error: float
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class Recalibration(TabularResult):
    """A calibrator that helps on held-out rows, or none, with the evidence.

    Attributes
    ----------
    method : str
        Name of the chosen method; "none" where the probabilities are kept as they are.
    calibrator : Calibrator
        That method fitted to all rows; the identity for "none".
    score : {"brier", "log"}
        The proper score that decided.
    score_before : float
        Mean score of the probabilities as given.
    candidates : tuple of Candidate
        The scores of all methods on held-out rows.
    before, after : Assessment
        Assessments of the probabilities as given, and as recalibrated while held out.
    held_out : ndarray
        The latter probabilities: the map of no row was fitted to it.
    cv : int
        Number of folds.
    level : float
        Confidence level.
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
        """Whether a method lowers the score significantly."""
        return self.method != "none"

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return probabilities of other rows as recalibrated by the chosen method."""
        return self.calibrator.predict(y_prob)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, without the calibrator, which has its own `save`."""
        plain = super().to_dict()
        del plain["calibrator"]
        return plain

    def _columns(self) -> dict[str, Any]:
        return columns_of(self.candidates, (field.name for field in fields(Candidate)))

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Recalibration",
        source: Mapping[str, str] | str = "",
    ) -> str:
        """Return a page with the assessments before and after, and the scores of all methods.

        Where no method helps, only the first assessment is shown.

        Parameters
        ----------
        path : str or path, optional
            File to write the page to as well.
        title : str
            Title of the page.
        source : str or mapping, optional
            Description of the data: text, or several by name, such as ``{"File": "rain.csv"}``.

        Returns
        -------
        str
            The page, which needs no other file.

        See Also
        --------
        calibrant.Assessment.to_html : The page of one assessment.
        """
        from calibrant.reporting.html_page import page  # layers: a result may ask to be shown

        return written(path, page(self._shown(), title=title, source=source, recalibration=self))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw reliability diagrams as given and as recalibrated while held out; return the Axes.

        Where no method helps, only the first is drawn.
        """
        from calibrant.plot import reliability  # layers: a result may ask to be shown

        return reliability(self._shown(), ax=ax)

    def _shown(self) -> Any:
        both = {"as given": self.before, f"{self.method}, held out": self.after}
        return both if self.helps else self.before

    def _printed(self) -> list[str | TextTable]:
        design = f"(level {self.level:g}, {self.cv} folds)"
        before, after = (one["smooth_ece"].value for one in (self.before, self.after))
        sentence = (
            f"{self.method} helps: on held-out rows smooth_ece goes from {before:.4f} to "
            f"{after:.4f} {design}."
            if self.helps
            else f"No method lowers the {self.score} score on held-out rows significantly {design}."
        )
        found = self._columns()
        table = {
            "method": ["as given", *found["method"]],
            self.score: [self.score_before, *found["score"]],
            "gain": [None, *found["improvement"]],
            "error": [None, *found["standard_error"]],
            "P": ["", *p_cells(found["p_value"])],
        }
        return [sentence, "", TextTable.of(table, digits=5)]


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
            calibrators[one] = METHODS[one]()
    return calibrators


def read_rows(
    y_true: Any, y_prob: Any, labels: Sequence[Any] | None, pos_label: Any
) -> Sample | ClassTable:
    """Read all rows, those of weight 0 included, to split them into folds."""
    if isinstance(y_prob, Sketch) or isinstance(y_true, Sketch):
        raise CalibrantError(
            "a sketch cannot be split into folds", hint="give the rows, or fit a calibrator to it"
        )
    check_columns(y_true, y_prob, labels, pos_label)
    table = read_table(y_true, y_prob, None, None, labels, pos_label)
    return table if isinstance(table, ClassTable) else table.rows


def assign_folds(table: Table, weight: AnyArray | None, cv: int, rng: int | Generator) -> Index:
    """Return the fold of each row, stratified by outcome.

    Rows of weight 0, which no fit depends on, are assigned after all others.
    """
    cv, n = validation.as_count(cv, "cv"), _n_rows(table)
    is_ignored = np.zeros(n, dtype=bool) if weight is None else weight == 0
    n_weighted = n - int(is_ignored.sum())
    if not 2 <= cv <= n_weighted:
        raise CalibrantError(
            "must be between 2 and the number of {rows}, {maximum}",
            argument="cv",
            value=cv,
            rows="rows" if n_weighted == n else "rows with positive weight",
            maximum=n_weighted,
        )
    _, outcome = _columns(table)
    stratum = outcome.argmax(axis=1) if outcome.ndim == 2 else outcome
    order = read_generator(rng).permutation(n)
    order = order[np.lexsort((stratum[order], is_ignored[order]))]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % cv
    return fold


def _held_out(
    calibrator: Calibrator, table: Table, weight: AnyArray | None, fold: Index
) -> FloatArray:
    """Return every row as recalibrated by a map fitted to the other folds."""
    prob, outcome = _columns(table)
    recalibrated = np.empty(prob.shape)
    for k in range(int(fold.max()) + 1):
        inside = fold == k
        others = None if weight is None else weight[~inside]
        fitted = clone(calibrator).fit(prob[~inside], outcome[~inside], sample_weight=others)
        recalibrated[inside] = fitted.predict(prob[inside])
    return recalibrated


def _columns(table: Table) -> tuple[AnyArray, AnyArray]:
    """Return probabilities and outcomes."""
    return (table.prob, table.outcome) if isinstance(table, ClassTable) else (table.p, table.y)


def _n_rows(table: Table) -> int:
    return len(_columns(table)[0])


def with_predictions(table: Table, prob: FloatArray) -> Table:
    """Return the same outcomes with other probabilities."""
    if isinstance(table, ClassTable):
        return replace(table, prob=prob)
    return Sample(table.y, prob, table.w, table.lowest)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Rows, their weights over the sum of weights, and the score by which methods are compared."""

    table: Table
    weights: FloatArray
    score: Score

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

    def candidates(self, held_out: Mapping[str, FloatArray], rng: Generator) -> list[Candidate]:
        """Compare the held-out predictions of every method with the probabilities as given."""
        predictions = held_out.values()
        after = np.stack([self._losses(with_predictions(self.table, q)) for q in predictions])
        score = after @ self.weights
        # A method with an infinite score is out of the comparison.
        gain = np.where(np.isinf(score)[:, None], 0.0, self.before - after)
        mean = gain @ self.weights
        n = int(np.count_nonzero(self.weights))
        deviation = self.weights * (gain - mean[:, None]) * np.sqrt(n / max(n - 1, 1))
        covariance = deviation @ deviation.T
        # The variance where neither probability is the better one; that of soft labels is unknown.
        noise = np.zeros(len(predictions))
        if not self.table.is_soft:
            with np.errstate(over="ignore"):
                for k, q in enumerate(predictions):
                    rows = outcome_noise(_columns(self.table)[0], q, self.score)
                    noise[k] = np.square(self.weights) @ np.where(self.weights > 0, rows, 0.0)
        error = np.sqrt(np.maximum(covariance.diagonal(), noise))
        p_value = joint_tails(mean, error, covariance, n, rng)
        improvement = np.where(np.isinf(score), -np.inf, mean)
        values = np.stack((score, improvement, error, p_value), axis=1).tolist()
        return [Candidate(name, *row) for name, row in zip(held_out, values, strict=True)]

    def _losses(self, table: Table) -> FloatArray:
        """Return the score of every row, and 0 for those of weight 0."""
        loss = LOSSES[self.score]
        rows = [loss(p, y).reshape(len(p), -1).sum(axis=1) for p, y, _ in table.blocks()]
        return np.where(self.weights > 0, np.concatenate(rows), 0.0)


def outcome_noise(p: AnyArray, q: FloatArray, score: Score) -> FloatArray:
    """Return for every row the variance of S(p, y) - S(q, y) with y drawn from m = (p + q) / 2.

    There neither is better on average, exactly so for the Brier score. With g_c the difference for
    outcome c, up to a constant: sum_c m_c (g_c - sum_k m_k g_k)^2.
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
        # About the mean: next to 0 or 1 a difference of sums would cancel.
        mean = (middle * change).sum(axis=1, keepdims=True)
        variance = (middle * (change - mean) ** 2).sum(axis=1)
    return np.where(np.isinf(change).any(axis=1), np.inf, variance)


def joint_tails(
    mean: FloatArray, error: FloatArray, covariance: FloatArray, n: int, rng: Generator
) -> FloatArray:
    """Return one-sided P-values of several correlated means, adjusted for their number.

    That of a mean is the probability that the maximum of as many Student's t variables, with n - 1
    degrees of freedom and the correlations of `covariance`, exceeds mean / error, from 100 000
    draws. It lies between the tail of one t and the number of means times that, which decides where
    draws are too few; it is at least 2^-n, the probability that n differences all have the same
    sign, and 1 for a mean that is not positive.
    """
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    freedom = max(n - 1, 1)
    single = stdtr(freedom, -t)
    size = np.sqrt(covariance.diagonal())
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    values, vectors = np.linalg.eigh(covariance * np.outer(scale, scale))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = rng.standard_normal((_DRAWS, len(size))) @ root.T
    maximum = normal.max(axis=1) / np.sqrt(rng.chisquare(freedom, _DRAWS) / freedom)
    n_beyond = _DRAWS - np.searchsorted(np.sort(maximum), t)
    p_value = np.clip((1 + n_beyond) / (1 + _DRAWS), single, single * len(t))
    p_value = np.clip(p_value, 2.0 ** -min(n, 1000), 1.0)
    return np.where((mean > 0) & (n > 1), p_value, 1.0)
