"""What a comparison of models on the same rows says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibrant._base import Result, frame
from calibrant.data import validation
from calibrant.data.classes import one_problem
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, as_array, read_generator
from calibrant.errors import CalibrantError, shown
from calibrant.inference.estimate import Estimate, estimated
from calibrant.inference.intervals import Clusters, Question, View, check_has_interval, read_codes
from calibrant.inference.paired import Difference, MeanLoss, difference, drawn_together, read_losses
from calibrant.measures.registry import MeasureInfo, RowLosses, comparable, find_measure
from calibrant.numerics.probability import holm

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ComparedModel", "Comparison", "PairedDifference", "compare"]


@dataclass(frozen=True)
class ComparedModel(Result):
    """One model among those compared.

    Attributes
    ----------
    name
        Its name.
    rank
        1 + the number of models that are better, see `better` of :class:`PairedDifference`.
    estimate
        Its measure by itself.
    """

    name: str
    rank: int
    estimate: Estimate


@dataclass(frozen=True)
class PairedDifference(Result):
    """How much larger the measure of one model is than that of another, on the same rows.

    Attributes
    ----------
    a, b
        The names of the two.
    difference
        The value of a minus that of b.
    bias_corrected
        The same without the effect of noise, which may differ between the two.
    low, high
        The ends of the interval for the population's difference.
    p_value
        Chance of a difference as extreme if the population's is 0; never 0.
    p_adjusted
        The P-value adjusted for the number of pairs, by Holm's rule.
    better
        The one with the smaller measure, where the adjusted P-value is at most 1 - level; None
        where they are tied.
    """

    a: str
    b: str
    difference: float
    bias_corrected: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    better: str | None

    def turned(self) -> PairedDifference:
        """Return the difference the other way round."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            difference=-self.difference,
            bias_corrected=-self.bias_corrected,
            low=-self.high,
            high=-self.low,
        )


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Models compared on the same rows: a ranking, and the differences of all pairs.

    Attributes
    ----------
    models
        The models in order of rank; among equals, of the value without the effect of noise.
    pairs
        The differences of all pairs, in the order in which models were given.
    measure
        What was measured; less is better.
    level
        Of the intervals; models count as different where the adjusted P-value is at most
        1 - level.
    n
        How many rows were measured.
    """

    models: tuple[ComparedModel, ...]
    pairs: tuple[PairedDifference, ...]
    measure: str
    level: float
    n: int

    def __getitem__(self, name: str) -> ComparedModel:
        """Return a model by its name."""
        for model in self.models:
            if model.name == name:
                return model
        known = ", ".join(repr(model.name) for model in self.models)
        raise CalibrantError(f"there is no model {name!r} here; there are: {known}")

    def pair(self, a: str, b: str) -> PairedDifference:
        """Return the difference of two models, whichever way round it was made."""
        first, second = self[a].name, self[b].name
        for one in self.pairs:
            if (one.a, one.b) == (first, second):
                return one
            if (one.a, one.b) == (second, first):
                return one.turned()
        raise CalibrantError(f"a model is not compared with itself; got {a!r} twice")

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a pair."""
        rows = [one.to_dict() for one in self.pairs]
        return frame({name: [row[name] for row in rows] for name in rows[0]})

    def __repr__(self) -> str:
        heading = f"{self.measure} of {len(self.models)} models, n = {self.n}; less is better"
        note = (
            f"rank = 1 + number of models better at p_adjusted <= {1 - self.level:.2g} "
            f"(Holm, {len(self.pairs)} pair{'s' * (len(self.pairs) > 1)})"
        )
        return "\n".join([heading, "", *self._model_lines(), "", *self._pair_lines(), "", note])

    def _model_lines(self) -> Iterator[str]:
        width = max(len("model"), *(len(str(model.name)) for model in self.models))
        level = f"{100 * self.level:g}%"
        yield f"rank  {'model':{width}} {'value':>9} {'corrected':>9}  {level:>5} interval"
        for model in self.models:
            one = model.estimate
            yield (
                f"{model.rank:4}  {model.name!s:{width}} {one.value:9.4f} "
                f"{one.bias_corrected:9.4f}  {one.low:7.4f} {one.high:7.4f}"
            )

    def _pair_lines(self) -> Iterator[str]:
        names = [f"{one.a} - {one.b}" for one in self.pairs]
        width = max(len("difference"), *map(len, names))
        level = f"{100 * self.level:g}%"
        heading = f"{'value':>9}  {level:>6} interval {'p':>8} {'p_adjusted':>10}"
        yield f"{'difference':{width}} {heading}"
        for name, one in zip(names, self.pairs, strict=True):
            yield (
                f"{name:{width}} {one.difference:+9.4f} {one.low:+8.4f} {one.high:+8.4f} "
                f"{one.p_value:8.2g} {one.p_adjusted:10.2g}"
            )


# The rows and the predictions of several models, as they come in.

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows and the predictions of all models, as they were given.

    Attributes
    ----------
    y_true, sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.
    models
        Predictions by the name of their model.
    clusters
        One cluster label per row, or None.
    """

    y_true: Any
    models: Mapping[str, Any]
    sample_weight: Any
    multiclass: Any
    labels: Sequence[Any] | None
    pos_label: Any
    clusters: Any

    def read(self, reader: Callable[..., T]) -> list[T]:
        """Read each model, telling in errors which one it is."""
        rest = (self.sample_weight, self.multiclass, self.labels, self.pos_label)
        read = []
        for name, y_prob in self.models.items():
            with _named(name):
                read.append(reader(self.y_true, y_prob, *rest))
        return read


def read_models(y_true: Any, y_probs: Any) -> dict[str, Any]:
    """Return the predictions of two models or more by name."""
    given = y_probs.values() if isinstance(y_probs, Mapping) else [y_probs]
    if any(isinstance(one, Sketch) for one in (y_true, *given)):
        raise CalibrantError(
            "compare needs rows: sketches do not know which of their rows belong together"
        )
    if not isinstance(y_probs, Mapping) or len(y_probs) < 2:
        raise CalibrantError(
            "must hold the predictions of at least two models by name",
            argument="y_probs",
            value=len(y_probs) if isinstance(y_probs, Mapping) else type(y_probs),
            hint="give {{'a': y_prob_of_a, 'b': y_prob_of_b}}",
        )
    models = dict(y_probs)
    _check_same_classes(models)
    return models


def _check_same_classes(models: Mapping[str, Any]) -> None:
    """Refuse models of different numbers of classes, whose errors are not of the same events."""
    n_columns = {}
    for name, y_prob in models.items():
        with _named(name):
            shape = as_array(y_prob, "y_prob").shape
        n_columns[name] = shape[1] if len(shape) == 2 else 1
    (first, n_first), *others = n_columns.items()
    for other, n_other in others:
        if max(n_first, 2) != max(n_other, 2):
            raise CalibrantError(
                "must have the same classes, and so as many columns, for all models",
                argument="y_probs",
                value=n_other,
                found="{n_first} for {first} and {n_other} for {other}",
                first=shown(first),
                n_first=n_first,
                other=shown(other),
                n_other=n_other,
            )


def check_rows(n: int) -> None:
    """Refuse a single row, of whose noise nothing is known."""
    if n < 2:
        raise CalibrantError("compare needs at least two rows that carry weight; got 1")


@contextmanager
def _named(model: str) -> Iterator[None]:
    """Say in errors which model's predictions are meant."""
    try:
        yield
    except CalibrantError as problem:
        if problem.argument == "y_prob":
            problem.argument, problem.source = "y_probs", f"model {model!r}"
        raise


# compare: which of several models is better calibrated on the same rows, and how sure is that.


def compare(
    y_true: Any,
    y_probs: Mapping[str, Any],
    *,
    measure: str | Callable[..., float] = "smooth_ece",
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    clusters: Any = None,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    **options: Any,
) -> Comparison:
    """Compare models on the same rows: differences of a measure, a ranking, and how sure they are.

    Parameters
    ----------
    y_true
        Outcomes, as in :func:`calibrant.ece`.
    y_probs
        Predictions by the name of their model, each as `y_prob` in :func:`calibrant.ece`. Rows
        must be the same for all; a sketch does not know which they are.
    measure
        The name of a calibration error that has an interval, such as "smooth_ece", "ece",
        "ecce_mad", "ecce_r" or "logit_smoothed_ece", or of a proper score, "brier_score" or
        "log_score"; or that function.
    level
        Of the intervals. Models differ where the adjusted P-value is at most 1 - level.
    n_resamples
        The number of resamples, for calibration errors; no P-value of theirs is below
        2 / (n_resamples + 1), so that k pairs need at least 2 k / (1 - level) - 1 of them: 39 for
        one pair at level 0.95.
    rng
        A seed or a generator; the same seed gives the same comparison.
    clusters
        One cluster label per row, as in :func:`calibrant.estimate`.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`. Weights must not depend on the outcome given the scores.
    multiclass
        "confidence" or a class label. (n, C) predictions without it are compared by confidence,
        where each model has outcomes of its own (whether its predicted class is right), or by the
        full proper score.
    **options
        Options of the measure, as in :func:`calibrant.estimate`.

    Returns
    -------
    Comparison
        Models in order of rank, and a row a pair. A model's rank is 1 + the number of models that
        are better than it by their adjusted P-value: models that cannot be told apart share ranks.
        Among equals the order is that of `bias_corrected`.

    Notes
    -----
    P-values are two-sided, and adjusted for the number of pairs by Holm's rule; intervals are not.
    Being tied is no equivalence relation: with a, b tied and b, c tied, a may still be better
    than c.

    Calibration errors: noise is drawn for all models together, the same multiplier for the same row
    (or cluster). A model is called worse only if it is itself refuted as perfectly calibrated. Thus
    of two perfectly calibrated models one is called worse than the other with probability at most
    1 - level, however much larger the sample's error is that noise gives to one of them: this
    is proved, up to what :func:`calibrant.estimate` says of its lower end. For models that err
    equally it is argued, and checked by simulation (see ``calibrant.inference.paired``): a
    nominal 5% was at most 6%.

    The price is power where errors are near what noise makes of none; and for two models that err
    little and in much the same way, whose difference could be told with less noise if it were
    known that neither is calibrated. Equal predictions have a difference of 0 exactly.

    Proper scores: the mean difference of losses with its t-interval; where one outcome is rare, the
    variance is at least what outcomes drawn from the predictions would have. An infinite log score
    is refused.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> rows = simulate("overconfident", 2000, rng=1)
    >>> hedged = 0.5 + 0.6 * (rows.y_prob - 0.5)
    >>> found = compare(rows.y_true, {"as given": rows.y_prob, "hedged": hedged})
    >>> [(model.name, model.rank) for model in found.models]
    [('hedged', 1), ('as given', 2)]
    >>> found.pair("as given", "hedged").low > 0
    True
    """
    info = find_measure(measure, comparable())
    level, is_score = validation.as_level(level), info.kind == "score"
    models = read_models(y_true, y_probs)
    n_pairs = math.comb(len(models), 2)
    # Differences of proper scores have a formula; those of errors need P-values small enough.
    minimum = validation.MIN_RESAMPLES if is_score else validation.min_resamples(level, n_pairs)
    why = f" for {n_pairs} pair{'s' * (n_pairs > 1)} at level {level:g}"
    n_resamples = validation.as_resamples(n_resamples, minimum, "" if is_score else why)
    inputs = Inputs(y_true, models, sample_weight, multiclass, labels, pos_label, clusters)
    asked = Asked(info, options, level, n_resamples, rng)
    compared = (
        _by_error(asked, inputs) if info.losses is None else _by_score(asked, info.losses, inputs)
    )
    pairs = _adjusted(list(models), compared, level)
    return Comparison(
        models=_ranked(list(models), compared.estimates, pairs),
        pairs=pairs,
        measure=info.name,
        level=level,
        n=compared.estimates[0].n,
    )


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of the models."""

    measure: MeasureInfo
    options: dict[str, Any]
    level: float
    n_resamples: int
    rng: int | Generator


@dataclass(frozen=True, eq=False)
class Compared:
    """Each model by itself, and the differences of all pairs, in the order given."""

    estimates: list[Estimate]
    differences: list[Difference]


def _by_error(asked: Asked, inputs: Inputs) -> Compared:
    """Compare by a calibration error."""
    error = asked.measure.read(asked.options)
    check_has_interval(asked.measure.name, error)
    problems = inputs.read(one_problem)
    n = problems[0].n
    check_rows(n)
    estimates, views = [], []
    rng = read_generator(asked.rng)
    labels, weight = inputs.clusters, inputs.sample_weight
    together = Clusters.read(labels, weight, problems[0], rng) or Clusters.single_rows(n, rng)
    for problem in problems:
        # A seed starts anew for each, so that each is what `estimate` gives.
        own = read_generator(asked.rng)
        clusters = Clusters.read(labels, weight, problem, own)
        question = Question(asked.level, asked.n_resamples, own, clusters)
        estimates.append(estimated(asked.measure.name, error, problem, question))
        views.append(View.of(error, problem, estimates[-1].value, together))
    clustered = inputs.clusters is not None
    needed = validation.min_resamples(asked.level, math.comb(len(views), 2))
    models = drawn_together(views, asked.n_resamples, rng, clustered=clustered, needed=needed)
    differences = [
        Difference(0.0, 0.0, 1.0, 1.0)
        if _are_alike(problems[i], problems[j])
        else difference(models[i], models[j], asked.level)
        for i, j in combinations(range(len(models)), 2)
    ]
    return Compared(estimates, differences)


def _by_score(asked: Asked, row_losses: RowLosses, inputs: Inputs) -> Compared:
    """Compare by a proper score."""
    asked.measure.read(asked.options)  # refuses options that there are not
    losses = inputs.read(partial(read_losses, row_losses))
    n = len(losses[0].w)
    check_rows(n)
    cluster = None
    if inputs.clusters is not None:
        cluster = read_codes(inputs.clusters, inputs.sample_weight, n)
    means = [MeanLoss.of(one, cluster) for one in losses]
    estimates = [one.estimate(asked.measure.name, asked.level, n) for one in means]
    differences = [
        MeanLoss.of(a.minus(b), cluster).difference(asked.level) for a, b in combinations(losses, 2)
    ]
    return Compared(estimates, differences)


def _adjusted(names: list[str], compared: Compared, level: float) -> tuple[PairedDifference, ...]:
    adjusted = holm([one.p_value for one in compared.differences]).tolist()
    pairs = []
    both = combinations(zip(names, compared.estimates, strict=True), 2)
    for ((a, of_a), (b, of_b)), found, p in zip(both, compared.differences, adjusted, strict=True):
        smaller = b if found.p_more < found.p_less else a
        pairs.append(
            PairedDifference(
                a=a,
                b=b,
                difference=of_a.value - of_b.value,
                bias_corrected=of_a.bias_corrected - of_b.bias_corrected,
                low=found.low,
                high=found.high,
                p_value=found.p_value,
                p_adjusted=p,
                better=smaller if p <= 1 - level else None,
            )
        )
    return tuple(pairs)


def _ranked(
    names: list[str], estimates: list[Estimate], pairs: tuple[PairedDifference, ...]
) -> tuple[ComparedModel, ...]:
    """Return the models in order: rank, bias-corrected value, value."""
    worse = [one.a if one.better == one.b else one.b for one in pairs if one.better is not None]
    models = [
        ComparedModel(name, 1 + worse.count(name), estimate)
        for name, estimate in zip(names, estimates, strict=True)
    ]
    models.sort(key=lambda one: (one.rank, one.estimate.bias_corrected, one.estimate.value))
    return tuple(models)


def _are_alike(one: Problem, other: Problem) -> bool:
    """Tell whether two models make the same predictions, with the same outcomes."""
    pairs = zip(one.rows.columns(), other.rows.columns(), strict=True)
    return all(np.array_equal(first, second) for first, second in pairs)
