"""Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021): section 5.

Models of four families are trained on 300 points of Gaussian mixtures; every model has a true
calibration error, known from P(Y | X). On many small evaluation sets each estimator of it is off by

    abs(estimate - truth) / truth,

of which the paper takes the 95th percentile over 200 sets of one size, and then the median over
score distributions. Here as there: 45 mixtures (2, 5 and 7 classes and features, five each), three
training sets, four models, confidence and class-wise errors.

The paper says that means of modes are uniform on (0, 1); its code draws them from (-1, 1). Both are
measured, in rounds that each go through all shapes and models. A page of the rounds that are there
is made by `gather`; several processes may measure some rounds each, by `measure`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from calibrant.measures.recommendation import sharpness
from studies.estimating_ece.estimators import ESTIMATORS
from studies.estimating_ece.report import SUMMARIES, report, summarised
from studies.estimating_ece.score_distributions import (
    MEANS,
    MODELS,
    SETTINGS,
    Bias,
    Cell,
    PoolProblem,
    ScoreDistribution,
    truth_of,
    truths,
)
from studies.frame import (
    OUT,
    FloatArray,
    Index,
    Part,
    Study,
    StudyRun,
    Tables,
    measured,
    read_csv,
    write_report,
)

SHAPES = tuple(product((2, 5, 7), (2, 5, 7)))
N_MIXTURES = 5
N_TRAINING_SETS = 3
SIZES = (30, 45, 67, 100, 150, 224, 335, 500)
POOL_SIZE = 200_000
N_SETS = 200
_DIGITS = 5


@dataclass(frozen=True)
class Error:
    """Errors of an estimator on the evaluation sets of one size, relative to the truth.

    Attributes
    ----------
    means, n_classes, n_features, mixture, training, model
        The score distribution.
    setting, n, estimator
        Quantity, number of rows and estimator.
    truth
        The true calibration error, the middle of its bounds.
    uncertainty
        Standard deviation of the truth about this middle.
    sharpness
        Of the scores: the mean of (2 p - 1)^2.
    high
        The 95th percentile of abs(estimate - truth) / truth over evaluation sets.
    mean
        Its mean.
    bias
        The mean of (estimate - truth) / truth.
    seconds
        The processor time of the score distribution.
    """

    means: str
    n_classes: int
    n_features: int
    mixture: int
    training: int
    model: str
    setting: str
    n: int
    estimator: str
    truth: float
    uncertainty: float
    sharpness: float
    high: float
    mean: float
    bias: float
    seconds: float


def parts(quick: bool) -> list[Part]:
    """List the rounds, and the few truths that are measured as the paper did."""
    if quick:
        cells = [("code", *shape, 0, 0, model) for shape in ((2, 2), (5, 5)) for model in MODELS]
        measure = partial(errors, sizes=(30, 200), n_sets=40, pool_size=20_000)
        few = [("code", 2, 2, 0, 0, "logistic")]
        return [
            Part("round_01_code", Error, cells, measure),
            Part("truths", Bias, few, partial(truths, n=200_000)),
        ]
    rounds = [
        Part(f"round_{number + 1:02}_{means}", Error, _round(means, number), errors)
        for number in range(N_MIXTURES * N_TRAINING_SETS)
        for means in reversed(MEANS)
    ]
    few = [("code", *shape, 0, 0, model) for shape in ((2, 7), (7, 7)) for model in MODELS]
    return [*rounds, Part("truths", Bias, few, truths)]


def _round(means: str, number: int) -> list[Cell]:
    """List one score distribution of every shape and model, of many mixtures."""
    training, mixture = divmod(number, N_MIXTURES)
    return [
        (means, *shape, (mixture + place) % N_MIXTURES, training, model)
        for shape in SHAPES
        for place, model in enumerate(MODELS)
    ]


def errors(
    means: str,
    n_classes: int,
    n_features: int,
    mixture: int,
    training: int,
    model: str,
    *,
    sizes: Sequence[int] = SIZES,
    n_sets: int = N_SETS,
    pool_size: int = POOL_SIZE,
) -> Iterator[Error]:
    """Measure one score distribution."""
    start = time.process_time()
    cell = (means, n_classes, n_features, mixture, training, model)
    pool = ScoreDistribution.of(*cell).pool(pool_size)
    design = [list(MEANS).index(means), *cell[1:5], MODELS.index(model), 3]
    rng = np.random.default_rng(design)
    sets = [rng.integers(pool_size, size=(n_sets, n)) for n in sizes]
    found = []
    for setting in SETTINGS:
        problems = pool.problems(setting)
        facts = _facts(problems)
        for drawn in sets:
            for estimator, values in _estimates(problems, drawn).items():
                statistics = _statistics(values / facts[0] - 1)
                found.append(((setting, drawn.shape[1], estimator), facts, statistics))
    seconds = round(time.process_time() - start, 2)
    for where, facts, statistics in found:
        yield Error(*cell, *where, *map(_rounded, (*facts, *statistics, seconds)))


def _facts(problems: list[PoolProblem]) -> tuple[float, ...]:
    """Return truth, its uncertainty and sharpness: means over the problems."""
    truths = [truth_of(one) for one in problems]
    of_each = [
        [truth.value for truth in truths],
        [truth.uncertainty for truth in truths],
        [sharpness(one.p) for one in problems],
    ]
    return tuple(np.mean(of_each, axis=1).tolist())


def _estimates(problems: list[PoolProblem], drawn: Index) -> dict[str, FloatArray]:
    """Return every estimator on every evaluation set: means over the problems."""
    samples = [one.samples(drawn) for one in problems]
    return {
        name: np.mean([one.measure(sample, samples[0]) for sample in samples], axis=0)
        for name, one in ESTIMATORS.items()
    }


def _statistics(deviation: FloatArray) -> tuple[float, float, float]:
    """Return the 95th percentile and the mean of sizes of deviations, and the mean deviation.

    Where an estimator is not defined on a set, that set is left out.
    """
    known = deviation[~np.isnan(deviation)]
    if not len(known):
        return np.nan, np.nan, np.nan
    size = np.abs(known)
    return float(np.quantile(size, 0.95)), float(size.mean()), float(known.mean())


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def measure(names: Iterable[str], *, out: str | os.PathLike[str] = OUT) -> None:
    """Measure what is missing of the parts of these names, such as "round_01_text"."""
    known = {part.name: part for part in parts(False)}
    folder = Path(out, STUDY.name)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        measured(known[name], folder / f"{name}.csv", lambda *_: None)


def gather(folder: str | os.PathLike[str], *, out: str | os.PathLike[str] = OUT) -> StudyRun:
    """Write the page of the tables in a folder, without measuring anything."""
    return write_report(STUDY, tables_in(folder), Path(out))


def tables_in(folder: str | os.PathLike[str]) -> Tables:
    """Read the tables of a page, or summarise the rounds in a folder, complete or not."""
    is_page = Path(folder, "curves.csv").exists()
    kinds = SUMMARIES if is_page else {part.name: part.row for part in parts(False)}
    tables = {name: read_csv(Path(folder, f"{name}.csv"), row) for name, row in kinds.items()}
    return tables if is_page else summarised(tables)


STUDY = Study("estimating-ece", parts=parts, report=report)
