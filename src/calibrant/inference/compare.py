"""Models compared on the same rows: differences of a measure, and a ranking.

Differences of calibration errors come from noise simulated for all models together, differences of
mean scores from the t-distribution: see :mod:`calibrant.inference.paired`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import FloatArray, Result, TabularResult, columns_of
from calibrant.data import validation
from calibrant.data.classes import one_problem
from calibrant.data.problem import Index, Problem
from calibrant.data.rows import read_columns
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, as_array, column_labels, read_generator
from calibrant.errors import CalibrantError, shown
from calibrant.formatting import (
    TextTable,
    counted,
    interval_cells,
    interval_digits,
    p_cells,
    percent,
)
from calibrant.inference.cell_noise import Clusters, read_codes
from calibrant.inference.estimate import Estimate, estimated
from calibrant.inference.intervals import Question, View, check_has_interval
from calibrant.inference.joint_test import joint_test
from calibrant.inference.paired import (
    Difference,
    MeanLoss,
    difference,
    joint_noise,
    read_losses,
)
from calibrant.measures.registry import Measure, comparable, find_measure
from calibrant.numerics.probability import holm
from calibrant.progress import steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
class PairedDifference(Result):
    """The measure of one model minus that of another, on the same rows.

    Attributes
    ----------
    a, b
        The names of the two models.
    difference
        The value of a minus that of b.
    bias_corrected
        The same without the effect of noise, which may differ between the two.
    low, high
        The ends of the confidence interval for the population's difference.
    p_value
        Probability of a difference at least as extreme if the population's is 0; never 0.
    p_adjusted
        The P-value adjusted for the number of pairs by Holm's method.
    better
        The model with the smaller measure, where the adjusted P-value is at most 1 - level; None
        where the two are tied.
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

    def reversed(self) -> PairedDifference:
        """Return b minus a."""
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
class Comparison(TabularResult):
    """Models compared on the same rows: a ranking, and the differences of all pairs.

    Attributes
    ----------
    models
        The models in order of rank, then of their bias-corrected value.
    pairs
        The differences of all pairs, in the order in which models were given.
    measure
        The name of the measure; lower is better.
    level
        Confidence level of the intervals; models differ where the adjusted P-value is at most
        1 - level.
    n
        The number of rows that carry weight.
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
        """Return the difference of two models, a minus b."""
        first, second = self[a].name, self[b].name
        for one in self.pairs:
            if (one.a, one.b) == (first, second):
                return one
            if (one.a, one.b) == (second, first):
                return one.reversed()
        raise CalibrantError(f"a model is not compared with itself; got {a!r} twice")

    def _columns(self) -> dict[str, Any]:
        return columns_of(self.pairs, (field.name for field in fields(PairedDifference)))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the measure of each model with its interval, in order of rank; return the Axes."""
        from calibrant.plot.interval_plot import draw_intervals  # layers: to be shown

        label = f"{self.measure}, {percent(self.level)} interval; | raw value"
        names = [f"{model.rank}. {model.name}" for model in self.models]
        return draw_intervals(ax, names, [model.estimate for model in self.models], label)

    def _printed(self) -> list[str | TextTable]:
        threshold = f"{1 - self.level:.2g} (Holm, {counted(len(self.pairs), 'pair')})"
        return [
            f"{self.measure} of {len(self.models)} models, n = {self.n:,}; lower is better",
            "",
            self._model_table(),
            "",
            self._pair_table(),
            "",
            f"rank = 1 + number of models better at p_adjusted <= {threshold}",
        ]

    def _model_table(self) -> TextTable:
        found = columns_of(
            (model.estimate for model in self.models), ("value", "bias_corrected", "low", "high")
        )
        digits = interval_digits(found["low"], found["high"])
        columns: dict[str, Any] = {
            "rank": [model.rank for model in self.models],
            "model": [model.name for model in self.models],
            "estimate": found["bias_corrected"],
            f"{percent(self.level)} interval": interval_cells(found["low"], found["high"], digits),
            "raw value": found["value"],
        }
        return TextTable.of(columns, digits)

    def _pair_table(self) -> TextTable:
        found = self._columns()
        digits = interval_digits(found["low"], found["high"])
        columns: dict[str, Any] = {
            "difference": [f"{one.a} - {one.b}" for one in self.pairs],
            "estimate": found["bias_corrected"],
            f"{percent(self.level)} interval": interval_cells(found["low"], found["high"], digits),
            "raw value": found["difference"],
            "p": p_cells(found["p_value"]),
            "p_adjusted": p_cells(found["p_adjusted"]),
        }
        return TextTable.of(columns, digits)


def compare(
    y_true: ArrayLike,
    y_prob: Mapping[str, ArrayLike] | ArrayLike,
    *,
    data: Any = None,
    measure: str | Callable[..., float] = "smooth_ece",
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    align: bool = True,
    **options: Any,
) -> Comparison:
    """Compare models on the same rows: paired differences of a measure, and a ranking.

    Parameters
    ----------
    y_true : array_like of outcomes or soft labels
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
    y_prob : dict of array_like or dataframe
        The predictions of each model by its name, all for the same rows, or one column per model;
        with `data` also the names of columns. Sketches are refused.
    data : dataframe, optional
        Table of pandas, polars or pyarrow; other arguments may then name its columns, or list them.
    measure : str or callable
        The name of a calibration error that has an interval, such as "smooth_ece", "ece",
        "ecce_mad", "ecce_r" or "logit_smoothed_ece", or "skce", or of a proper score, "brier_score"
        or "log_score"; or that function.
    level : float
        Confidence level.

        Models differ where the adjusted P-value is at most 1 - level.
    n_resamples : int
        Number of resamples, at least 39.

        No P-value of a calibration error is below 2 / (n_resamples + 1), so that k pairs need at
        least 2 k / (1 - level) - 1 resamples: 39 for one pair at level 0.95.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.

        Proper scores of (n, C) predictions are those of all classes by default. By confidence each
        model has outcomes of its own: whether its predicted class is right.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.
    align : bool
        Whether pandas objects with different indexes are refused; False pairs rows by position.
    **options
        Options of the measure, as given to it.

    Returns
    -------
    Comparison
        Models in order of rank, and the difference of each pair. A model's rank is 1 + the number
        of models that are better by their adjusted P-value; ties in rank are in order of
        `bias_corrected`.

    See Also
    --------
    estimate : The measure of one model with its interval.
    by_group : One model on different rows.

    Notes
    -----
    P-values are two-sided, and adjusted for the number of pairs by Holm's method; intervals are
    not. Ties are not transitive: with a, b tied and b, c tied, a may still be better than c.

    Calibration errors: noise is simulated for all models together, the same multiplier for the same
    row (or cluster). A model is called worse only if perfect calibration of it is rejected. Thus
    of two perfectly calibrated models one is called worse than the other with probability at most
    1 - level, however much more noise adds to the error of one of them: this is proved, up to the
    approximations that :func:`calibrant.estimate` makes for `low`. For models of equal error it is
    argued, and checked by simulation (see ``calibrant.inference.paired``): a nominal 5% was at
    most 5.5% in every population tried.

    The price is power where errors are near the noise level; and for two models with small errors
    of much the same shape, whose difference would be less noisy if it were known that neither is
    calibrated. Equal predictions have a difference of 0 exactly.

    Which measure: `skce`, a mean over pairs of rows to which noise adds nothing on average, has the
    most power. Its difference has a jackknife standard error, and a model is worse only where
    :func:`calibrant.calibration_test` rejects its calibration. Binned errors see far less: `ece` is
    dominated by the noise of its bins, and that two models have equal values of it means little.

    Proper scores: the mean difference of losses with its t-interval; where one outcome is rare, the
    variance is at least that of outcomes drawn from the predictions. An infinite log score
    is refused.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> rows = simulate("overconfident", 4000, rng=1)
    >>> hedged = 0.5 + 0.6 * (rows.y_prob - 0.5)
    >>> found = compare(rows.y_true, {"as given": rows.y_prob, "hedged": hedged})
    >>> [(model.name, model.rank) for model in found.models]
    [('hedged', 1), ('as given', 2)]
    >>> found.pair("as given", "hedged").low > 0
    True
    """
    info = find_measure(measure, comparable())
    level, is_score = validation.as_level(level), info.kind == "score"
    y_true, y_prob, sample_weight, clusters = read_columns(
        *(data, align),
        y_true=y_true,
        y_prob=y_prob,
        sample_weight=sample_weight,
        clusters=clusters,
    )
    models = _read_models(y_true, y_prob)
    n_pairs = math.comb(len(models), 2)
    # Differences of proper scores have a formula; those of errors need P-values small enough.
    minimum = validation.MIN_RESAMPLES if is_score else validation.min_resamples(level, n_pairs)
    why = f" for {n_pairs} pair{'s' * (n_pairs > 1)} at level {level:g}"
    n_resamples = validation.as_resamples(n_resamples, minimum, "" if is_score else why)
    error = info.read(options)
    about_rows = (sample_weight, multiclass, labels, pos_label)
    if info.losses is None:
        problems = _read_each(one_problem, y_true, models, about_rows)
        cluster = _read_clusters(clusters, sample_weight, problems[0].n)
        asked = (problems, level, n_resamples, rng, cluster)
        if info.row_sums is None:
            check_has_interval(info.name, error)
            estimates, differences = _by_error(info.name, error, *asked)
        else:
            of_rows = partial(info.row_sums, error)
            estimates, differences = _by_pairs(info.name, error, of_rows, *asked)
    else:
        losses = _read_each(partial(read_losses, info.losses), y_true, models, about_rows)
        n = len(losses[0].w)
        cluster = _read_clusters(clusters, sample_weight, n)
        means = [MeanLoss.of(one, cluster) for one in losses]
        estimates = [one.estimate(info.name, level, n) for one in means]
        differences = [
            MeanLoss.of(a.minus(b), cluster).difference(level) for a, b in combinations(losses, 2)
        ]
    pairs = _adjusted(list(models), estimates, differences, level)
    return Comparison(
        models=_ranked(list(models), estimates, pairs),
        pairs=pairs,
        measure=info.name,
        level=level,
        n=estimates[0].n,
    )


def _read_models(y_true: Any, y_prob: Any) -> dict[str, Any]:
    """Return the predictions of two models or more by name, all of the same classes."""
    columns = column_labels(y_prob)
    if columns is not None:
        y_prob = {str(name): y_prob[name] for name in columns}
    given = y_prob.values() if isinstance(y_prob, Mapping) else [y_prob]
    if any(isinstance(one, Sketch) for one in (y_true, *given)):
        raise CalibrantError(
            "compare needs rows: sketches do not know which of their rows belong together"
        )
    if not isinstance(y_prob, Mapping) or len(y_prob) < 2:
        raise CalibrantError(
            "must hold the predictions of at least two models by name",
            argument="y_prob",
            value=len(y_prob) if isinstance(y_prob, Mapping) else type(y_prob),
            hint="give {{'a': y_prob_of_a, 'b': y_prob_of_b}}, or one column per model",
        )
    n_columns = {}
    for name, one in y_prob.items():
        with _named(name):
            shape = as_array(one, "y_prob").shape
        n_columns[name] = shape[1] if len(shape) == 2 else 1
    (first, n_first), *others = n_columns.items()
    for other, n_other in others:
        if max(n_first, 2) != max(n_other, 2):
            raise CalibrantError(
                "must have the same classes, and so as many columns, for all models",
                argument="y_prob",
                value=n_other,
                found="{n_first} for {first} and {n_other} for {other}",
                first=shown(first),
                n_first=n_first,
                other=shown(other),
                n_other=n_other,
            )
    return dict(y_prob)


def _read_each(
    reader: Callable[..., T], y_true: Any, models: Mapping[str, Any], about_rows: tuple[Any, ...]
) -> list[T]:
    """Read the rows of each model; an error names the model."""
    read = []
    for name, y_prob in models.items():
        with _named(name):
            read.append(reader(y_true, y_prob, *about_rows))
    return read


@contextmanager
def _named(model: str) -> Iterator[None]:
    """Name the model in errors about its predictions."""
    try:
        yield
    except CalibrantError as problem:
        if problem.argument == "y_prob":
            problem.source = f"model {model!r}"
        raise


def _read_clusters(labels: Any, sample_weight: Any, n: int) -> Index | None:
    """Read the clusters, if any, of at least two rows: the noise of a single one is unknown."""
    if n < 2:
        raise CalibrantError("compare needs at least two rows that carry weight; got 1")
    return None if labels is None else read_codes(labels, sample_weight, n)


def _by_error(
    measure: str,
    error: Measure,
    problems: list[Problem],
    level: float,
    n_resamples: int,
    seed: int | Generator,
    cluster: Index | None,
) -> tuple[list[Estimate], list[Difference]]:
    """Return the calibration error of each model, and the differences of all pairs."""
    estimates, views = [], []
    rng = read_generator(seed)
    shared = None if cluster is None else Clusters.of_codes(cluster, rng)
    units = shared or Clusters.single_rows(problems[0].n, rng)
    for problem in steps(problems):
        # A seed starts anew for each, so that each is what `estimate` gives.
        own_rng = read_generator(seed)
        own = None if cluster is None else Clusters.of_codes(cluster, own_rng)
        question = Question(level, n_resamples, own_rng, own)
        estimates.append(estimated(measure, error, problem, question))
        views.append(View.of(error, problem, estimates[-1].value, units))
    needed = validation.min_resamples(level, math.comb(len(views), 2))
    noisy = joint_noise(views, n_resamples, rng, clustered=shared is not None, needed=needed)
    differences = []
    for (a, of_a), (b, of_b) in combinations(zip(problems, noisy, strict=True), 2):
        # The same predictions, with the same outcomes, have a difference of 0 exactly.
        same = all(map(np.array_equal, a.rows.columns(), b.rows.columns()))
        found = Difference(0.0, 0.0, 1.0, 1.0) if same else difference(of_a, of_b, level)
        differences.append(found)
    return estimates, differences


def _by_pairs(
    measure: str,
    error: Measure,
    row_sums: Callable[[Problem, Index], FloatArray],
    problems: list[Problem],
    level: float,
    n_resamples: int,
    seed: int | Generator,
    cluster: Index | None,
) -> tuple[list[Estimate], list[Difference]]:
    """Return the mean over pairs of rows of each model, and the differences of all pairs."""
    n, rng = problems[0].n, read_generator(seed)
    code = np.arange(n) if cluster is None else cluster
    if code.max() < 2:
        raise CalibrantError(f"differences of {measure} need at least three rows; got {n}")
    error(problems[0])  # refuses weights that leave no pairs of rows
    _, _, w = problems[0].rows.columns()
    sums = [row_sums(problem, code) for problem in problems]
    estimates = [MeanLoss.of_pairs(one, w, code).estimate(measure, level, n) for one in sums]
    p_values = []
    for problem in problems:
        known = None if cluster is None else Clusters.of_codes(cluster, rng)
        p_values.append(joint_test(problem, known, n_resamples, rng).p_combined)
    return estimates, [
        MeanLoss.of_pairs(a - b, w, code).difference(level).gated(p_a, p_b, level)
        for (a, p_a), (b, p_b) in combinations(zip(sums, p_values, strict=True), 2)
    ]


def _adjusted(
    names: list[str], estimates: list[Estimate], differences: list[Difference], level: float
) -> tuple[PairedDifference, ...]:
    """Return the differences of all pairs with adjusted P-values."""
    adjusted = holm([one.p_value for one in differences]).tolist()
    models = combinations(zip(names, estimates, strict=True), 2)
    pairs = []
    for ((a, of_a), (b, of_b)), found, p in zip(models, differences, adjusted, strict=True):
        smaller = b if found.p_greater < found.p_less else a
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
