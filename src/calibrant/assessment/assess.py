"""assess: everything about one set of predictions, at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from calibrant import checks
from calibrant._version import __version__
from calibrant.assessment.classes import ClassRow, class_rows
from calibrant.assessment.notes import Certain, data_notes, effective_rows
from calibrant.assessment.result import Assessment, Settings
from calibrant.assessment.summary import Summary, main_stretch
from calibrant.assessment.verdict import Findings
from calibrant.binning import Binning
from calibrant.class_table import ClassTable
from calibrant.curves.bands import Band
from calibrant.curves.cumulative import as_curve
from calibrant.curves.makers import BinnedCurve, SmoothCurve, isotonic_curve
from calibrant.errors import CalibrantError
from calibrant.inference.cumulative import ExcursionTest
from calibrant.inference.estimate import estimated
from calibrant.inference.estimate_result import Estimate
from calibrant.inference.intervals import Question
from calibrant.inference.null import CalibratedOutcomes
from calibrant.measures.bin_table import table_of
from calibrant.measures.binned_error import read_binned_error, read_binning
from calibrant.measures.cumulative_differences import (
    CumulativeDifferences,
    Statistic,
    cumulative_differences,
    excursion_error,
)
from calibrant.measures.masses import point_masses
from calibrant.measures.registry import MeasureInfo, assessed
from calibrant.measures.scores import BrierScore
from calibrant.multiclass import check_is_one, read_table, reduce_table
from calibrant.problem import Problem
from calibrant.randomness import Generator, read_generator
from calibrant.results.curves import Curve
from calibrant.results.p_values import TestResult
from calibrant.sample import Sample
from calibrant.sketches.answers import problem_of
from calibrant.sketches.cells import DEFAULT_CELLS, MOST_CELLS
from calibrant.sketches.state import Sketch

__all__ = ["assess"]

_MOST_BINS = 10_000
# From here on rows are pooled in a sketch first, whose answers are as good, in one pass.
_MANY_ROWS = 1 << 20
# Cumulative sums over cells may differ from those over rows by this fraction of their noise. With
# scores spread evenly they may by half as much, for so many rows in a sketch's usual cells.
_BLUR = 0.02
_ROWS_OF_DEFAULT_CELLS = 3 << 20
# Up to this many distinct scores the test is simulated: exact, and quick enough, unless a level
# near 1 asks for more resamples than this before any P-value can be small enough.
_FEW_SCORES, _MOST_RESAMPLES = 2000, 10_000


def assess(
    y_true: Any,
    y_prob: Any = None,
    *,
    level: float = 0.95,
    n_bins: int = 15,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Assessment:
    """Return the whole picture: errors with intervals, a test, curves, and a verdict in words.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`, or a :class:`calibrant.Sketch`. (n, C) probabilities are
        assessed by the confidence in the predicted class, with a row a class beside it.
    level
        Of all intervals and bands; miscalibration counts as detected where P <= 1 - level.
    n_bins
        For the binned error, its curve and the table of bins; at most 10 000.
    n_resamples
        The number of resamples for each interval, band and simulated P-value, at least 39; for the
        last at least 1 / (1 - level) are drawn, or it could never be small enough.
    rng
        A seed or a generator; the same seed gives the same assessment.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`. Weights must not depend on the outcome given the score.
    multiclass
        "confidence" or a class label; an assessment is about one binary problem.

    Returns
    -------
    Assessment
        Prints as the verdict and a table. Rows are taken to be independent; for clusters see
        `clusters` of :func:`calibrant.estimate`.

    Notes
    -----
    The verdict rests on one test, :func:`calibrant.cumulative_test` of the range: simulated where
    there are at most 2000 distinct scores, asymptotic otherwise and at levels above 0.9999. Where
    it finds nothing the verdict says nothing of where or which way. `smallest_detectable` and
    `n_needed` come from Brownian motion: with the drift of a constant error of m sigma_n, its range
    is about m + 1/m sigma_n; m + 1/m = c + 0.84, c being the critical value, is found in 81
    to 83% of samples. Where events are few, `smallest_detectable` is at least the error that makes,
    with a chance of 0.8, more of them than calibrated predictions would.

    From a million rows on, they are pooled in a sketch first (two, for the logit scale), whose
    errors are within the `error_bound` of each estimate: about 1e-9, and for cumulative errors at
    most 2% or, for ecce_r, 4% of 1/sqrt(n). Where so many rows share their scores that it would be
    more, the rows are kept.

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
    level, n_bins = checks.as_level(level), checks.as_bins(n_bins)
    n_resamples = checks.as_resamples(n_resamples)
    generator = read_generator(rng)
    if n_bins > _MOST_BINS:
        raise CalibrantError(
            "must be at most {maximum} for an assessment, which shows them all",
            argument="n_bins",
            value=n_bins,
            maximum=_MOST_BINS,
        )
    check_is_one(multiclass)
    table = read_table(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    settings = Settings(
        level=level,
        n_resamples=n_resamples,
        seed=None if isinstance(rng, Generator) else int(rng),
        n_bins=n_bins,
        problem=_kind(table, multiclass),
        version=__version__,
    )
    problem = next(reduce_table(table, multiclass, labels).problems())
    binned = read_binned_error(n_bins=settings.n_bins)
    classes: tuple[ClassRow, ...] = ()
    if isinstance(table, ClassTable) and settings.problem == "confidence":
        classes = tuple(class_rows(table, labels, binned))
    return Assessor(problem, settings, generator).assessment(classes)


@dataclass(frozen=True, eq=False)
class Assessor:
    """One problem, and how it is to be assessed."""

    given: Problem
    settings: Settings
    rng: Generator

    def assessment(self, classes: tuple[ClassRow, ...]) -> Assessment:
        """Return the whole picture."""
        problem, certain = self.problem, Certain.of(self.given)
        summary = Summary.of(problem, self.settings.level)
        estimates, test = tuple(self.estimates()), self.test()
        by_name = {one.measure: one for one in estimates}
        binning = read_binning(self.settings.n_bins, "uniform", "left")
        findings = Findings(
            smooth=by_name["smooth_ece"],
            deviation=by_name["ecce_r"],
            test=test,
            summary=summary,
            stretch=main_stretch(self.differences),
            level=self.settings.level,
            n=problem.n,
            rows=effective_rows(problem),
            is_confidence=self.settings.problem == "confidence",
            is_refuted=certain.contradicted > 0,
        )
        return Assessment(
            verdict=findings.verdict(),
            n=problem.n,
            weight=problem.weight,
            prevalence=summary.prevalence,
            mean_prediction=summary.mean_prediction,
            bias=summary.bias,
            slope=summary.slope,
            estimates=estimates,
            brier_score=BrierScore()(problem),
            test=test,
            curves=tuple(self.curves(binning)),
            cumulative=as_curve(self.differences).thinned(),
            bins=table_of(problem, binning),
            masses=point_masses(problem),
            classes=classes,
            notes=(*data_notes(problem, certain), *self._left_out()),
            settings=self.settings,
        )

    @cached_property
    def problem(self) -> Problem:
        """The rows, or so many of them pooled in a sketch."""
        if not self.given.is_exact or self.given.n < _MANY_ROWS:
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
        for info in assessed():
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

    def curves(self, binning: Binning) -> Iterator[Curve]:
        """Yield the reliability curves."""
        settings, problem = self.settings, self.problem
        # Bands that hold for the whole curve: that is how a diagram is looked at.
        band = Band("confidence", settings.level, True, settings.n_resamples, self.rng)
        yield SmoothCurve()(problem, band)
        yield BinnedCurve(binning)(problem, band)
        if problem.is_exact:
            yield isotonic_curve(problem, band).thinned()

    def test(self) -> TestResult | None:
        """Return the cumulative test, or None where there is no noise to compare with."""
        if not self.differences.sigma > 0:
            return None
        least = math.ceil(1 / (1 - self.settings.level))
        problem = self.problem
        few = len(self.differences.score) <= _FEW_SCORES and least <= _MOST_RESAMPLES
        # A sketch does not know which weights belong to which score.
        known = problem.is_exact or not problem.is_weighted
        n_resamples = max(self.settings.n_resamples, least) if few and known else 0
        test = ExcursionTest(Statistic.RANGE, n_resamples, self.rng)
        null = partial(CalibratedOutcomes.of, problem)
        return test(self.differences, null, problem.n, "calibration")

    def _estimate(self, info: MeasureInfo, problem: Problem) -> Estimate:
        settings = self.settings
        options = {"n_bins": settings.n_bins} if "n_bins" in info.options else {}
        # A seed starts anew for each, so that each is what `estimate` gives.
        rng = self.rng if settings.seed is None else read_generator(settings.seed)
        question = Question(settings.level, settings.n_resamples, rng)
        return estimated(info.name, info.read(options), problem, question)


def _pooled_for(info: MeasureInfo, rows: Sample) -> Problem:
    """Return rows, or very many of them in a sketch that can answer a measure."""
    if info.sketch is None or rows.n < _MANY_ROWS:
        return rows
    return problem_of(Sketch(scale=info.sketch).update(rows.y, rows.p, rows.w))


def _kind(table: Problem | ClassTable, multiclass: Any) -> str:
    """Say which binary problem is assessed."""
    if isinstance(table, ClassTable):
        whole = multiclass is None or multiclass == "confidence"
        return "confidence" if whole else f"class {multiclass!r}"
    return "binary"
