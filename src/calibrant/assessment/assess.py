"""assess: everything about one set of predictions, at once.

Many rows are pooled in a sketch first, so that the rest costs the same for any number of them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import HTML_ENDINGS, Result, TabularResult, columns_of, written
from calibrant._version import __version__
from calibrant.assessment.verdict import (
    Findings,
    Interval,
    Kind,
    ScoreRange,
    Verdict,
    read_tolerance,
)
from calibrant.curves.bands import Band
from calibrant.curves.decisions import MurphyCurve, murphy_of
from calibrant.curves.reliability import Curve, binned_curve, isotonic_curve, smooth_curve
from calibrant.curves.reliability_view import PointMasses, ReliabilityView, point_masses
from calibrant.data import validation
from calibrant.data.binning import Bins, UniformBins
from calibrant.data.classes import (
    ClassTable,
    FrameOptions,
    check_is_one,
    read_table,
    reduce_table,
)
from calibrant.data.problem import Pooled, Problem
from calibrant.data.rows import Sample, read_columns
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import DEFAULT_CELLS, MOST_CELLS
from calibrant.data.sketch_problem import problem_of
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError
from calibrant.formatting import TextTable, counted, interval_cells, interval_digits, percent
from calibrant.inference.cell_noise import Clusters
from calibrant.inference.detectable import minimum_detectable_shift
from calibrant.inference.estimate import Estimate, estimated
from calibrant.inference.intervals import Question
from calibrant.inference.joint_test import CalibrationTest, joint_test
from calibrant.inference.level_spread_shape import Faults, find_faults
from calibrant.inference.regret import Cutoffs, ThresholdRegret, as_threshold
from calibrant.measures.bin_table import BinTable, table_of
from calibrant.measures.binned import BinnedError, read_binned_error, read_binning
from calibrant.measures.cumulative import (
    CumulativeCurve,
    CumulativeDifferences,
    as_curve,
    cumulative_differences,
    excursion_error,
)
from calibrant.measures.registry import MeasureInfo, assessed, measures
from calibrant.measures.scores import BrierScore
from calibrant.measures.smooth import SmoothError
from calibrant.progress import steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_BINS = 10_000
# From this many rows on they are pooled in a sketch, whose answers are as good, in one pass.
_MANY_ROWS = 1 << 20
# Cumulative sums over cells may differ from those over rows by this fraction of their noise. With
# evenly spread scores they differ by half as much, for this many rows in a sketch's default cells.
_BLUR = 0.02
_ROWS_OF_DEFAULT_CELLS = 3 << 20
# At levels near 1 no P-value of so many resamples is small enough.
_MAX_RESAMPLES = 10_000
# Below these, intervals are wide and asymptotic distributions are far off.
_FEW_ROWS, _FEW_EVENTS, _FEW_SCORES = 100, 15, 20


@dataclass(frozen=True, repr=False)
class ClassRow(Result):
    """One class against the rest.

    Attributes
    ----------
    label
        The class.
    prevalence, mean_prediction
        Weighted means of its outcomes and predictions.
    smooth_ece, ece
        Calibration errors of its probability.
    """

    label: Any
    prevalence: float
    mean_prediction: float
    smooth_ece: float
    ece: float


@dataclass(frozen=True, repr=False)
class Settings(Result):
    """The options and the version that reproduce an assessment."""

    level: float
    tolerance: float
    n_resamples: int
    seed: int | None
    n_bins: int
    problem: str
    version: str
    threshold: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(TabularResult):
    """Everything about the calibration of one set of predictions.

    Attributes
    ----------
    verdict
        The findings in plain words; `print` it.
    n
        The number of rows that carry weight.
    weight
        Their total weight.
    prevalence, mean_prediction
        Weighted means of outcomes and predictions.
    bias
        prevalence - mean_prediction, with an interval: negative where predictions are too high.
    slope
        The calibration slope b of logit q = a + b logit p: below 1 where predictions are
        over-confident; nan where there is only one score, or no fit.
    estimates
        Calibration errors with their intervals, whose lower end is 0 wherever the joint test does
        not reject.
    brier_score
        The mean squared error, which also rewards sharpness.
    test
        The joint test of calibration; None for predictions of 0 and 1 alone, which have no noise.
    curves
        Reliability curves, "smooth", "binned", and "isotonic" where rows were given, each with a
        confidence band for the whole of it; the last is thinned to what can be seen.
    cumulative
        The cumulative deviation, thinned to what can be seen.
    murphy
        The loss of decisions at every threshold, thinned to what can be seen.
    regret
        What recalibration would save at the threshold that was given; None without one.
    bins
        Counts and means bin by bin.
    masses
        Single scores that many rows have: each, where there are only a few distinct scores; else
        those that hold a twentieth of the weight, at least 30 rows, and ten times as many as the
        scores next to them.
    classes
        For (n, C) probabilities, each class against the rest.
    notes
        What is unusual about the data.
    settings
        The options of the call.
    """

    verdict: Verdict
    n: int
    weight: float
    prevalence: float
    mean_prediction: float
    bias: Interval
    slope: Interval
    estimates: tuple[Estimate, ...]
    brier_score: float
    test: CalibrationTest | None
    curves: tuple[Curve, ...]
    cumulative: CumulativeCurve
    murphy: MurphyCurve
    regret: ThresholdRegret | None
    bins: BinTable
    masses: PointMasses
    classes: tuple[ClassRow, ...]
    notes: tuple[str, ...]
    settings: Settings

    def __getitem__(self, measure: str) -> Estimate:
        """Return the estimate of a measure by its name."""
        for one in self.estimates:
            if one.measure == measure:
                return one
        known = ", ".join(one.measure for one in self.estimates)
        raise CalibrantError(f"there is no estimate of {measure!r} here; there are: {known}")

    def curve(self, method: str) -> Curve:
        """Return the reliability curve of this method."""
        for one in self.curves:
            if one.method == method:
                return one
        known = ", ".join(one.method for one in self.curves)
        raise CalibrantError(f"there is no {method!r} curve here; there are: {known}")

    def reliability_view(self, method: str = "smooth") -> ReliabilityView:
        """Return what a reliability diagram of one of the curves shows, whatever draws it."""
        tables = {"bins": self.bins} if method == "binned" else {"outcomes": self.bins}
        measure = {"smooth": "smooth_ece", "binned": "ece"}.get(method)
        return ReliabilityView(
            self.curve(method),
            masses=self.masses,
            scores=self.cumulative.score[[0, -1]],
            n=self.n,
            is_confidence=self.is_confidence,
            measured=None if measure is None else self[measure],
            **tables,
        )

    @property
    def is_confidence(self) -> bool:
        """Whether predictions are the confidence in a predicted class."""
        return self.settings.problem == "confidence"

    @property
    def mean_names(self) -> tuple[str, str]:
        """The names of `prevalence` and `mean_prediction` wherever they are printed."""
        if self.is_confidence:
            return "accuracy", "mean confidence"
        return "prevalence", "mean prediction"

    def _columns(self) -> dict[str, Any]:
        names = ("measure", "value", "bias_corrected", "low", "high", "level", "n", "error_bound")
        return columns_of(self.estimates, names)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw verdict, reliability diagram, cumulative plot and errors; return the Axes.

        Without `ax` a new figure is made, not registered with pyplot: see :mod:`calibrant.plot`.
        """
        from calibrant.plot.panels import assessment  # layers: a result may ask to be shown

        return assessment(self, ax=ax)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        from calibrant.plot.common import notebook_png  # layers: a result may ask to be shown

        return notebook_png(self.plot())

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Calibration report",
        source: Mapping[str, str] | str = "",
    ) -> str:
        """Return one self-contained page, and write it to `path` if that is given.

        Parameters
        ----------
        path : path, optional
            The file to write.
        title : str
            The heading of the page.
        source : str or dict of str
            The data, for the head of the page: a few words, or several by name, such as
            ``{"File": "rain.csv", "Predictions": "p"}``.

        Returns
        -------
        str
            The page: verdict, interactive diagrams, tables, and the numbers to download; about
            2 MB, and no network is needed. For several models see :func:`calibrant.report`.
        """
        from calibrant.reporting.html_page import page  # layers: a result may ask to be shown

        return written(path, page(self, title=title, source=source), HTML_ENDINGS)

    def _repr_html_(self) -> str:
        from calibrant.reporting.html_page import fragment  # layers: a result may ask to be shown

        return fragment(self)

    def _printed(self) -> list[str | TextTable]:
        others: dict[str, Any] = {"bias": self.bias, "slope": self.slope}
        others = {name: one for name, one in others.items() if not math.isnan(one.value)}
        if self.regret is not None:
            others[f"regret at {self.regret.threshold:g}"] = self.regret
        found = columns_of((*self.estimates, *others.values()), ("value", "low", "high"))
        digits = interval_digits(found["low"], found["high"])
        level, n = percent(self.settings.level), len(self.estimates)
        table = {
            "measure": [*(one.measure for one in self.estimates), *others],
            "estimate": [*(one.bias_corrected for one in self.estimates), *found["value"][n:]],
            f"{level} interval": interval_cells(found["low"], found["high"], digits),
            "raw value": [*found["value"][:n], *[None] * len(others)],
        }
        means = f"n = {self.n:,}, {self._means()}, Brier score {self.brier_score:.4g}"
        notes = [f"- {note}" for note in self.notes]
        return [str(self.verdict), "", TextTable.of(table, digits), "", means, *notes]

    def _means(self) -> str:
        observed, predicted = self.mean_names
        return f"{observed} {self.prevalence:.4g}, {predicted} {self.mean_prediction:.4g}"


class AssessOptions(FrameOptions, total=False):
    """Options of :func:`assess`."""

    level: float
    tolerance: float
    n_bins: int
    threshold: float | None
    n_resamples: int
    rng: int | Generator
    clusters: ArrayLike | None


@overload
def assess(y_true: Sketch, **options: Unpack[AssessOptions]) -> Assessment: ...
@overload
def assess(
    y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[AssessOptions]
) -> Assessment: ...
def assess(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    data: Any = None,
    level: float = 0.95,
    tolerance: float = 0.01,
    n_bins: int = 15,
    threshold: float | None = None,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    align: bool = True,
) -> Assessment:
    """Return errors with intervals, a test, curves, and a verdict in words.

    Parameters
    ----------
    y_true : array_like or Sketch
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes; or a sketch of all rows.
    y_prob : array_like, optional
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C); omitted for a sketch.

        (n, C) probabilities are assessed by the confidence in the predicted class, with each class
        against the rest beside it.
    data : dataframe, optional
        Table of pandas, polars or pyarrow; other arguments may then name its columns, or list them.
    level : float
        Confidence level.

        That of all intervals and bands; miscalibration is detected where P <= 1 - level.
    tolerance : float
        The largest acceptable smooth calibration error: the verdict says whether the error is
        within it, beyond it, or whether one cannot tell yet.
    n_bins : int
        Number of bins.

        Those of the binned error, its curve and the table; at most 10 000.
    threshold : float, optional
        A decision threshold: adds what recalibration would save at it, see
        :func:`calibrant.threshold_regret`.
    n_resamples : int
        Number of resamples, at least 39.

        A simulated P-value takes at least 1 / (1 - level) of them, or it could never be small
        enough.
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

    Returns
    -------
    Assessment
        Prints as the verdict and a table.

    See Also
    --------
    estimate : One measure with its interval.
    by_group : Each of many groups.
    compare : Several models on the same rows.

    Notes
    -----
    Whether there is miscalibration is decided by one test, :func:`calibrant.calibration_test`;
    where it does not reject, no fault is named and the lower end of every interval is 0. What is
    wrong is split by the likelihood of logit q = a + b logit p: the level (a at b = 1), the spread
    (b), and any other smooth shape of what is left (an adaptive Neyman test); the one that explains
    most gives the verdict its direction, if its own test rejects. Whether the error matters is
    decided by the interval of the smooth calibration error alone: the upper end within the
    tolerance, or the lower end beyond it.

    From a million rows on, they are pooled in a sketch first (two, for the logit scale), whose
    errors are within the `error_bound` of each estimate: about 1e-9, and for cumulative errors at
    most 2% or, for ecce_r, 4% of 1/sqrt(n). Where it would be more, as so many rows have tied
    scores, the rows are kept.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> rows = simulate("overconfident", 2000, rng=1)
    >>> found = assess(rows.y_true, rows.y_prob)
    >>> found.verdict.direction
    'over-confident'
    >>> found["smooth_ece"].low > 0.02
    True
    """
    level, n_bins = validation.as_level(level), validation.as_bins(n_bins)
    tolerance = read_tolerance(tolerance)
    n_resamples = validation.as_resamples(n_resamples)
    generator = read_generator(rng)
    if n_bins > _MAX_BINS:
        raise CalibrantError(
            "must be at most {maximum} for an assessment, which shows them all",
            argument="n_bins",
            value=n_bins,
            maximum=_MAX_BINS,
        )
    threshold = None if threshold is None else as_threshold(threshold)
    check_is_one(multiclass, labels)
    y_true, y_prob, sample_weight, clusters = read_columns(
        data, align, y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, clusters=clusters
    )
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    settings = Settings(
        level=level,
        tolerance=tolerance,
        n_resamples=n_resamples,
        seed=None if isinstance(rng, Generator) else int(rng),
        n_bins=n_bins,
        problem=_kind(table, multiclass),
        version=__version__,
        threshold=threshold,
    )
    problem = next(reduce_table(table, multiclass).problems())
    binned = read_binned_error(n_bins=settings.n_bins)
    classes: tuple[ClassRow, ...] = ()
    if isinstance(table, ClassTable) and settings.problem == "confidence":
        classes = tuple(class_rows(table, binned))
    known = Clusters.read(clusters, sample_weight, problem, generator)
    return Assessor(problem, settings, generator, known).assessment(classes)


@dataclass(frozen=True, eq=False)
class Assessor:
    """One problem, the options of its assessment, and its clusters."""

    given: Problem
    settings: Settings
    rng: Generator
    clusters: Clusters | None

    def assessment(self, classes: tuple[ClassRow, ...]) -> Assessment:
        """Return the assessment."""
        problem, faults = self.problem, self.faults
        # The test first: it and the bands share the generator.
        test, estimates = self.test, tuple(self.estimates())
        bins = read_binning(self.settings.n_bins, "uniform", "left").bins(problem)
        table = table_of(problem, bins)
        curves = tuple(self.curves(bins, table))
        findings = self.findings(
            curves[0], next(one for one in estimates if one.measure == "smooth_ece")
        )
        mean_prediction, prevalence = findings.means
        slope = math.nan if math.isnan(faults.spread.error) else faults.spread.value
        return Assessment(
            verdict=findings.verdict(),
            n=problem.n,
            weight=problem.weight,
            prevalence=prevalence,
            mean_prediction=mean_prediction,
            bias=self._interval(faults.bias, faults.bias_error),
            slope=self._interval(slope, faults.spread.error),
            estimates=estimates,
            brier_score=findings.brier_score,
            test=test,
            curves=curves,
            cumulative=as_curve(self.differences).thinned(),
            murphy=murphy_of(problem).thinned(),
            regret=self.regret(),
            bins=table,
            masses=findings.masses,
            classes=classes,
            notes=(*data_notes(problem, self.certain), *self._left_out()),
            settings=self.settings,
        )

    def verdict(self) -> Verdict:
        """Return the verdict alone, at a fraction of the cost of an assessment."""
        smooth = self._estimate(measures()["smooth_ece"], self.problem)
        return self.findings(
            smooth_curve(self.problem, None, clusters=self.clusters), smooth
        ).verdict()

    def findings(self, curve: Curve, smooth: Estimate) -> Findings:
        """Return what the verdict is made from."""
        problem, certain = self.problem, self.certain
        pred, true = problem.totals(UniformBins.of(1), "pred", "true")[:, 0].tolist()
        return Findings(
            smooth=smooth,
            is_significant=self.is_significant,
            p_value=math.nan if self.test is None else self.test.p_combined,
            faults=self.faults,
            score=self.differences.score,
            weight=self.differences.weight,
            curve=curve,
            masses=point_masses(problem),
            score_range=ScoreRange.of(self.differences),
            smallest_detectable=self._detectable(),
            means=(pred / problem.weight, true / problem.weight),
            brier_score=BrierScore()(problem),
            tolerance=self.settings.tolerance,
            n=problem.n,
            n_clusters=None if self.clusters is None else self.clusters.n,
            kind=self._kind,
            is_refuted=certain.contradicted > 0,
            is_hard=certain.n == problem.n,
        )

    @cached_property
    def certain(self) -> Certain:
        """The predictions of 0 or 1."""
        return Certain.of(self.given)

    @cached_property
    def faults(self) -> Faults:
        """What is wrong."""
        return find_faults(self.problem, 1 - self.settings.level, self.clusters)

    @cached_property
    def is_significant(self) -> bool:
        """Whether the test, or without one the interval of ecce_r, shows miscalibration."""
        if self.test is not None:
            return self.test.p_combined <= 1 - self.settings.level
        return self._interval_of(measures()["ecce_r"], self.problem).low > 0

    def _detectable(self) -> float:
        """Return the shift that is detected with power 0.8; nan where that is unknown."""
        if self.test is None or self.problem.is_soft or self.clusters is not None:
            return math.nan
        return minimum_detectable_shift(self.problem, self.settings.level)

    @property
    def _kind(self) -> Kind:
        if self.settings.problem == "confidence":
            return "confidence"
        return "soft" if self.given.is_soft else "binary"

    def _interval(self, value: float, error: float) -> Interval:
        from scipy.special import ndtri

        reach = float(ndtri((1 + self.settings.level) / 2)) * error
        return Interval(value, value - reach, value + reach, self.settings.level)

    @cached_property
    def problem(self) -> Problem:
        """The rows, pooled in a sketch where they are many."""
        if not self.given.is_exact or self.given.n < _MANY_ROWS or self.clusters is not None:
            return self.given
        rows = self.given.rows
        # Cumulative sums are blurred by what a cell holds, and noise shrinks with the root of n.
        n_cells = DEFAULT_CELLS * math.ceil(math.sqrt(rows.n / _ROWS_OF_DEFAULT_CELLS))
        sketch = problem_of(Sketch(min(n_cells, MOST_CELLS)).update(rows.y, rows.p, rows.w))
        noise = np.sqrt(float(sketch.pooled.weight_squared.sum())) / sketch.weight
        return sketch if excursion_error(sketch) <= _BLUR * noise else rows

    @cached_property
    def differences(self) -> CumulativeDifferences:
        """The cumulative differences."""
        return cumulative_differences(self.problem)

    def estimates(self) -> Iterator[Estimate]:
        """Yield the estimate of each measure."""
        for info in steps(assessed()):
            if info.sketch == "probability":
                yield self._estimate(info, self.problem)
            elif self.given.is_exact:
                yield self._estimate(info, _pooled_for(info, self.given.rows))

    def _left_out(self) -> Iterator[str]:
        """Yield why there is no estimate of a measure."""
        for info in assessed():
            if info.sketch != "probability" and not self.given.is_exact:
                needed = "rows" if info.sketch is None else f"a sketch on the {info.sketch} scale"
                yield f"No {info.name}: it needs {needed}."

    def curves(self, bins: Bins, table: BinTable) -> Iterator[Curve]:
        """Yield the reliability curves."""
        settings, problem = self.settings, self.problem
        # A diagram is looked at as a whole: bands are simultaneous.
        band = Band(
            "confidence", settings.level, True, settings.n_resamples, self.rng, self.clusters
        )
        yield smooth_curve(problem, band, clusters=self.clusters)
        yield binned_curve(problem, band, bins, table)
        if problem.is_exact:
            yield isotonic_curve(problem, band).thinned()

    @cached_property
    def test(self) -> CalibrationTest | None:
        """The joint test, or None where there is no noise to compare with."""
        if not (self.problem.is_soft or self.differences.sigma > 0):
            return None
        needed = math.ceil(1 / (1 - self.settings.level))
        n_resamples = min(max(self.settings.n_resamples, needed), _MAX_RESAMPLES)
        return joint_test(self.problem, self.clusters, n_resamples, self.rng)

    def regret(self) -> ThresholdRegret | None:
        """Return what recalibration would save at the threshold, if there is one."""
        settings = self.settings
        if settings.threshold is None:
            return None
        asked = (settings.threshold, settings.level, settings.n_resamples)
        return Cutoffs.of(self.problem).regret(*asked, self._fresh_rng())

    def _fresh_rng(self) -> Generator:
        """Return a seed started anew, so that each result is what its own function gives."""
        return self.rng if self.settings.seed is None else read_generator(self.settings.seed)

    def _estimate(self, info: MeasureInfo, problem: Problem) -> Estimate:
        """Return an estimate, whose interval excludes 0 only where the test rejects."""
        found = self._interval_of(info, problem)
        return found if self.is_significant else replace(found, low=0.0)

    def _interval_of(self, info: MeasureInfo, problem: Problem) -> Estimate:
        settings = self.settings
        options = {"n_bins": settings.n_bins} if "n_bins" in info.options else {}
        question = Question(settings.level, settings.n_resamples, self._fresh_rng(), self.clusters)
        return estimated(info.name, info.read(options), problem, question)


def _pooled_for(info: MeasureInfo, rows: Sample) -> Problem:
    """Return rows, or very many of them in a sketch that can answer a measure."""
    if info.sketch is None or rows.n < _MANY_ROWS:
        return rows
    return problem_of(Sketch(scale=info.sketch).update(rows.y, rows.p, rows.w))


def _kind(table: Problem | ClassTable, multiclass: Any) -> str:
    """Return the name of the binary problem that is assessed."""
    if isinstance(table, ClassTable):
        whole = multiclass is None or multiclass == "confidence"
        return "confidence" if whole else f"class {multiclass!r}"
    return "binary"


def class_rows(table: ClassTable, binned: BinnedError) -> Iterator[ClassRow]:
    """Yield a row for every class, in the order of the columns."""
    smooth, everything = SmoothError(), UniformBins.of(1)
    names = range(table.n_classes) if table.labels is None else table.labels
    for label, problem in zip(names, table.classwise().problems(), strict=True):
        weight, pred, true = problem.totals(everything, "weight", "pred", "true")[:, 0].tolist()
        yield ClassRow(label, true / weight, pred / weight, smooth(problem), binned(problem))


class Certain(NamedTuple):
    """The number of predictions of 0 or 1, and of those contradicted by the outcome."""

    n: int
    contradicted: int

    @classmethod
    def of(cls, problem: Problem) -> Certain:
        """Count them; none in a sketch, whose outer cells hold other scores too."""
        n = contradicted = 0
        if problem.is_exact:
            for p, y, _ in problem.rows.blocks():
                (ends,) = np.nonzero((p == 0) | (p == 1))
                n += len(ends)
                contradicted += int(np.count_nonzero(y[ends] != p[ends]))
        return cls(n, contradicted)


def data_notes(problem: Problem, certain: Certain) -> Iterator[str]:
    """Yield what is unusual about the data."""
    pooled = problem.pooled
    if problem.n < _FEW_ROWS:
        yield f"There {'is' if problem.n == 1 else 'are'} only {counted(problem.n, 'row')}."
    yield from _rarities(pooled)
    if len(pooled.score) < _FEW_SCORES:
        yield f"Scores take {counted(len(pooled.score), 'distinct value')}."
    if certain.n:
        yield (
            f"{counted(certain.n, 'prediction')} of exactly 0 or 1, and "
            f"{certain.contradicted or 'none'} of them contradicted by the outcome."
        )
    if not problem.is_exact:
        yield "Made from a sketch: rows of nearly equal score were pooled."
    if problem.is_soft:
        yield "Labels are soft: their noise is known from residuals alone."
    if problem.is_weighted:
        rows = problem.effective_rows
        yield f"Rows are weighted: they weigh as much as {rows:.0f} of equal weight."


def _rarities(pooled: Pooled) -> Iterator[str]:
    n = float(pooled.rows.sum())
    ones = n * float(pooled.true.sum() / pooled.weight.sum())
    for outcome, rows in ((1, ones), (0, n - ones)):
        if rows <= 0:
            yield f"Every outcome is {1 - outcome}."
        elif rows < _FEW_EVENTS and n >= _FEW_ROWS:
            yield f"Outcome {outcome} is rare: about {counted(round(rows), 'row')} have it."
