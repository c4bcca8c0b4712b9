"""recalibrate: the method that helps on held-out rows, or none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from calibrant import checks
from calibrant.assessment.assess import assess
from calibrant.class_table import ClassTable
from calibrant.errors import CalibrantError
from calibrant.randomness import Generator, read_generator
from calibrant.reading import read_weights
from calibrant.recalibration.binned import HistogramCalibrator, ScalingBinningCalibrator
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.folds import columns, divided, n_rows
from calibrant.recalibration.kernel import DensityCalibrator, NoisyCalibrator, SmoothCalibrator
from calibrant.recalibration.parametric import (
    BetaCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
)
from calibrant.recalibration.reading import read_rows
from calibrant.recalibration.result import Recalibration
from calibrant.recalibration.temperature import TemperatureCalibrator
from calibrant.recalibration.trial import Candidate, Trial

__all__ = ["METHODS", "recalibrate"]

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
    checks.check_choice(score, "score", ("brier", "log"))
    level = checks.as_level(level)
    n_resamples = checks.as_resamples(n_resamples)
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
            checks.check_choice(one, "method", ("auto", *METHODS))
            calibrators[one] = METHODS[one]
    return calibrators
