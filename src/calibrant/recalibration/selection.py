"""Choice of a calibrator: a test says whether one is needed, cross-validation which.

`recalibrate` and `cross_fitted` hold out each fold in turn, so that no row is recalibrated by a map
that was fitted to it. The cost is `cv` + 1 fits of every method, and two assessments.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from calibrant._base import HTML_ENDINGS, AnyArray, FloatArray, TabularResult, columns_of, written
from calibrant.assessment.assess import Assessment, assess
from calibrant.data import validation
from calibrant.data.classes import ClassTable, of_rows
from calibrant.data.validation import Generator, read_weights
from calibrant.errors import CalibrantError
from calibrant.formatting import TextTable, p_cells, p_statement, percent
from calibrant.measures.scores import LOSSES, Score
from calibrant.recalibration.calibrator import Calibrator, check_order
from calibrant.recalibration.search import (
    Candidate,
    Method,
    Table,
    assign_folds,
    choose,
    columns,
    held_out,
    n_rows,
    read_methods,
    read_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@of_rows
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
    mix: bool = False,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Recalibration:
    """Choose a calibrator, shrunk towards the identity, or keep the probabilities as they are.

    A test says whether the probabilities are miscalibrated; if not, they are kept. Every method is
    fitted `cv` times, each time to all folds but one, and scored on the fold left out. The simplest
    map whose score is within one standard error of the best is fitted to all rows, and mixed with
    the identity in the proportion that is best on held-out rows.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    method : str, Calibrator or sequence of these
        A name out of `METHODS`, a calibrator, or several of them. "auto" tries shift, temperature,
        platt, beta, quadratic, isotonic and residual, of which only the last may change the order
        of predictions; for several classes temperature, vector and matrix.
    cv : int
        Number of folds, drawn at random.
    score : {"brier", "log"}
        The proper score to lower.
    level : float
        Confidence level.

        Probabilities are recalibrated where a P-value is at most 1 - level; also the level of the
        assessments.
    n_resamples : int
        Number of resamples, at least 39.

        For the assessments.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.

        For the folds and the assessments.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1. Methods are
        compared, among each other and with the probabilities as given, after mixing.
    sample_weight : array_like, optional
        Non-negative weights; rows of weight 0 are ignored.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    Recalibration
        The calibrator, fitted to all rows, with the score of every method and an assessment before
        and after, all on held-out rows. Prints as a sentence and a table.

    Notes
    -----
    **Whether.** Rows are taken to be independent. Three score tests of the hypothesis that
    probabilities are calibrated look for a wrong level, a wrong spread on the logit scale, and any
    smooth difference (six cosines of p); the smallest P-value, times three, is `p_value`. An event
    that had probability 0, or the reverse, is impossible under the hypothesis. For several classes
    the tests are of one temperature, and of a slope and an intercept for every class. Recalibration
    is also offered where the gain of a method on held-out rows is significant: with d_i the score
    of row i as given less its score as recalibrated while held out, and w_i its weight over the sum
    of weights, the gain is m = sum_i w_i d_i, and its variance the larger of

        n / (n - 1) sum_i w_i^2 (d_i - m)^2   and   sum_i w_i^2 v_i,

    v_i being the variance of d_i if outcomes were drawn from the mean of the probability as given
    and as recalibrated, where neither is better (left out for soft labels). Its P-value is that of
    the maximum of as many Student's t variables as there are methods, correlated as their d_i are.
    This test is conservative: it rarely decides where the first does not.

    **Which.** Maps of one probability with one, two and three coefficients are simpler than all
    others; among equally simple ones the score decides. Of several classes matrix comes first, then
    vector, then temperature: their penalty makes the first two as simple as the last where rows do
    not call for more. A parametric map is left out where the test of shape still rejects the
    probabilities that it gives, P <= 0.02.

    **How much.** q = p + f (g(p) - p), `strength` f being that in [0, 1] which minimises the
    squared error of the held-out g, times 1 - sqrt(P / (1 - level)), with P the P-value that
    decided. Calibrated probabilities that are recalibrated by chance are thus changed little. Of
    several classes f is the second factor alone, as vector and matrix scaling have a penalty of
    their own, and 1 for maps of each class against the rest.

    **Probabilities of exactly 0 and 1** cannot be moved by functions of the logit. Where some were
    wrong, they become the frequency of the outcome there, (s + p) / (n + 1) for s events in n rows,
    whatever map the others have; "ends" is the method that changes nothing else.

    The assessment after is of held-out predictions, but they were used to choose the method: with
    many methods and few rows it is slightly optimistic. It describes `cv` maps that were each
    fitted to fewer rows than the one returned.

    Where all outcomes are alike, recalibrated probabilities are near certainty, and a warning says
    so.

    With score="log", probabilities of 0 or 1 that were wrong leave nothing to compare and are
    refused, unless `mix`; a method that makes such predictions is never chosen.

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
    validation.check_choice(score, "score", LOSSES)
    level = validation.as_level(level)
    n_resamples = validation.as_resamples(n_resamples)
    table = read_rows(y_true, y_prob, labels, pos_label)
    weight = read_weights(sample_weight, n_rows(table))
    methods = read_methods(method, table)
    chosen = choose(methods, table, weight, cv=cv, score=score, level=level, rng=rng, mix=mix)
    prob, outcome = columns(table)
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
    if chosen.method != "none" and _are_alike(table, weight):
        warnings.warn(
            "all outcomes are alike: recalibrated probabilities are near certainty, and nothing "
            "shows that they should be",
            UserWarning,
            stacklevel=3,
        )
    return Recalibration(
        **vars(chosen),
        score=score,
        before=before,
        after=before if chosen.method == "none" and not mix else assessed(chosen.held_out),
        cv=int(cv),
        level=level,
    )


def _are_alike(table: Table, weight: AnyArray | None) -> bool:
    """Tell whether all rows that carry weight have the same outcome, with certainty."""
    _, outcome = columns(table)
    known = outcome if weight is None else outcome[weight > 0]
    is_certain = not table.is_soft and known.ndim == 1
    return bool(is_certain and known.min() == known.max())


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
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
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
    >>> round(smooth_ece(y_true, y_prob), 2), round(smooth_ece(y_true, held_out), 2)
    (0.13, 0.03)
    """
    if not isinstance(calibrator, Calibrator):
        raise CalibrantError(
            "must be one of calibrant.recalibration's", argument="calibrator", value=calibrator
        )
    check_order(y_prob, y_true)
    table = read_rows(y_true, y_prob, labels, pos_label)
    weight = read_weights(sample_weight, n_rows(table))
    return held_out(calibrator, table, weight, assign_folds(table, weight, cv, rng))


@dataclass(frozen=True, eq=False, repr=False)
class Recalibration(TabularResult):
    """A calibrator, or none, with the evidence.

    Attributes
    ----------
    method : str
        Name of the chosen method; "none" where the probabilities are kept as they are.
    calibrator : Calibrator
        That method fitted to all rows and mixed with the identity; the identity for "none".
    strength : float
        Weight of the map against the identity.
    score : {"brier", "log"}
        The proper score that decided.
    score_before : float
        Mean score of the probabilities as given.
    p_value : float
        P-value of the hypothesis that the probabilities are calibrated; never 0.
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
    strength: float
    score: str
    score_before: float
    p_value: float
    candidates: tuple[Candidate, ...]
    before: Assessment
    after: Assessment
    held_out: FloatArray
    cv: int
    level: float

    @property
    def helps(self) -> bool:
        """Whether a method was chosen."""
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

        text = page(self._shown(), title=title, source=source, recalibration=self)
        return written(path, text, HTML_ENDINGS)

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
        found = self._columns()
        scores = [self.score_before, *found["score"]]
        table = {
            "method": ["as given", *found["method"]],
            # Assessments of several classes have a Brier score, too, of the confidence alone.
            self.score + ", all classes" * (self.held_out.ndim > 1): scores,
            "gain": [None, *found["improvement"]],
            "error": [None, *found["standard_error"]],
            "P": ["", *p_cells(found["p_value"])],
            "strength": ["", *(f"{one:.2f}" for one in found["strength"])],
        }
        return [self._sentence, "", TextTable.of(table, digits=5)]

    @property
    def _sentence(self) -> str:
        evidence = p_statement(self.p_value)
        if not self.helps and self.p_value > 1 - self.level:
            return f"Left as given: no significant miscalibration ({evidence})."
        if not self.helps:
            return (
                f"Left as given: the probabilities are miscalibrated ({evidence}), but no method "
                "is significantly better on held-out rows."
            )
        a, b = (one["smooth_ece"] for one in (self.before, self.after))
        before, after = (f"{x.bias_corrected:.3f}" for x in (a, b))
        name = {"brier": "Brier"}.get(self.score, self.score)
        (score,) = (one.score for one in self.candidates if one.method == self.method)
        return (
            f"Recalibrated by {self.method}: on held-out rows ({self.cv} folds) the {name} score "
            f"goes from {self.score_before:.4f} to {score:.4f}, and smooth_ece from {before} "
            f"({percent(self.level)} interval {a.low:.3f} to {a.high:.3f}) to {after} "
            f"({b.low:.3f} to {b.high:.3f})."
        )
