"""Search for a calibrator: held-out predictions, their scores, and the choice among methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._base import AnyArray, FloatArray, Result
from calibrant.data import validation
from calibrant.data.classes import ClassTable, read_table
from calibrant.data.problem import Index
from calibrant.data.rows import Sample
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, read_generator
from calibrant.errors import CalibrantError
from calibrant.measures.scores import LOSSES, Score
from calibrant.recalibration.calibrator import Calibrator, check_columns
from calibrant.recalibration.evidence import (
    classes_p_value,
    identity_p_value,
    joint_tails,
    outcome_noise,
    shape_p_value,
)
from calibrant.recalibration.maps import AdjustedMap, mixed
from calibrant.recalibration.methods import METHODS, IdentityCalibrator
from calibrant.recalibration.multiclass import (
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)

Method = str | Calibrator
Table = Sample | ClassTable

# What "auto" tries for one probability, and for several classes.
_AUTO = ("shift", "temperature", "platt", "beta", "quadratic", "isotonic", "residual")
_AUTO_CLASSES = ("temperature", "vector", "matrix")
# Of several classes the simplest first: a penalty makes matrix and vector scaling as simple as
# temperature scaling where rows do not call for more.
_CLASS_ORDER = (MatrixCalibrator, VectorCalibrator, TemperatureCalibrator)
# A parametric map is out of the choice where the shape of what it leaves has a smaller P-value.
_MIN_SHAPE_P_VALUE = 0.02


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
    strength : float
        Weight of the map against the identity.
    """

    method: str
    score: float
    improvement: float
    standard_error: float
    p_value: float
    strength: float


@dataclass(frozen=True, eq=False)
class Choice:
    """A chosen method, fitted to all rows, with what it was chosen by."""

    method: str
    calibrator: Calibrator
    strength: float
    score_before: float
    p_value: float
    candidates: tuple[Candidate, ...]
    held_out: FloatArray


def choose(
    calibrators: Mapping[str, Calibrator],
    table: Table,
    weight: AnyArray | None,
    *,
    cv: int = 5,
    score: Score = "brier",
    level: float = 0.95,
    rng: int | Generator = 0,
    mix: bool = False,
) -> Choice:
    """Return the calibrator that :func:`calibrant.recalibration.recalibrate` chooses."""
    fold = assign_folds(table, weight, cv, rng)
    trial = _Trial.of(table, weight, score, validation.as_flag(mix, "mix"))
    check_finite(trial.before, "use {score}='brier' or {mix}=True")
    ends = METHODS["ends"]()
    at_ends = held_out(ends, table, weight, fold)
    fits = {
        name: trial.shrunk(one, held_out(one, table, weight, fold), at_ends)
        for name, one in calibrators.items()
    }
    if np.any(at_ends != trial.given):
        fits = {"ends": _Fit(ends, at_ends), **fits}
    candidates = trial.candidates(fits, read_generator(rng))
    p_value, inside = trial.identity_p_values()
    smallest = min(inside, *(c.p_value for c in candidates))
    evidence = 1 - np.sqrt(smallest / (1 - level))
    best = "none"
    if evidence > 0:
        best = trial.simplest(fits)
    elif "ends" in fits:
        best = "ends"
    fit = fits.get(best, _Fit(IdentityCalibrator(), trial.given))
    if best not in ("none", "ends"):
        fit = trial.weakened(fit, evidence, at_ends)
    return Choice(
        method=best,
        calibrator=trial.adjusted(fit, ends),
        strength=fit.strength,
        score_before=float(trial.weights @ trial.before),
        p_value=p_value,
        candidates=tuple(candidates),
        held_out=mixed(fit.held_out, trial.mix),
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    """A calibrator, its predictions of held-out rows, and the weight of its map."""

    calibrator: Calibrator
    held_out: FloatArray
    strength: float = 1.0


@dataclass(frozen=True, eq=False)
class _Trial:
    """Rows with their weights, and the score by which methods are compared.

    Predictions are compared after they are mixed with the uniform distribution at weight `mix`;
    `weights` are the weights over their sum.
    """

    table: Table
    weight: AnyArray | None
    weights: FloatArray
    score: Score
    mix: float

    @classmethod
    def of(cls, table: Table, weight: AnyArray | None, score: Score, mix: bool) -> _Trial:
        """Return the trial of a table."""
        w = relative_weights(table, weight)
        return cls(table, weight, w, score, 1 / (1 + np.count_nonzero(w)) if mix else 0.0)

    @cached_property
    def given(self) -> FloatArray:
        """The probabilities as given."""
        return np.asarray(columns(self.table)[0], dtype=np.float64)

    @cached_property
    def truth(self) -> FloatArray:
        """The outcomes, of several classes as rows of 0 and 1 or soft labels."""
        outcome = columns(self.table)[1]
        if isinstance(self.table, ClassTable) and not self.table.is_soft:
            outcome = np.arange(self.table.n_classes) == outcome[:, None]
        return np.asarray(outcome, dtype=np.float64)

    @cached_property
    def before(self) -> FloatArray:
        """The score of every row as given."""
        return self.losses(self.given)

    def losses(self, prob: FloatArray) -> FloatArray:
        """Return the score of every row."""
        table = with_predictions(self.table, mixed(prob, self.mix))
        return losses(table, self.score, self.weights)

    def fitted(self, calibrator: Calibrator) -> Calibrator:
        """Return a calibrator fitted to all rows."""
        p, outcome = columns(self.table)
        found: Calibrator = clone(calibrator).fit(p, outcome, sample_weight=self.weight)
        return found

    def shrunk(self, calibrator: Calibrator, q: FloatArray, at_ends: FloatArray) -> _Fit:
        """Return the held-out predictions mixed with the identity so that the error is smallest."""
        q = np.where(at_ends != self.given, at_ends, q)
        if isinstance(self.table, ClassTable):
            return _Fit(calibrator, q)
        change = (q - at_ends).reshape(len(q), -1)
        error = (self.truth - at_ends).reshape(len(q), -1)
        size = float(self.weights @ (change**2).sum(axis=1))
        along = float(self.weights @ (change * error).sum(axis=1))
        strength = min(max(along / size, 0.0), 1.0) if size > 0 else 0.0
        return _Fit(calibrator, at_ends + strength * (q - at_ends), strength)

    def weakened(self, fit: _Fit, factor: float, at_ends: FloatArray) -> _Fit:
        """Return a fit of which a fraction of the change is left."""
        if isinstance(self.table, ClassTable) and not fit.calibrator.is_joint:
            return fit
        q = at_ends + factor * (fit.held_out - at_ends)
        return replace(fit, held_out=q, strength=fit.strength * factor)

    def candidates(self, fits: Mapping[str, _Fit], rng: Generator) -> list[Candidate]:
        """Compare the held-out predictions of every method with the probabilities as given."""
        after = np.stack([self.losses(fit.held_out) for fit in fits.values()])
        score = after @ self.weights
        # A method with an infinite score is out of the comparison.
        gain = np.where(np.isinf(score)[:, None], 0.0, self.before - after)
        mean = gain @ self.weights
        n = int(np.count_nonzero(self.weights))
        deviation = self.weights * (gain - mean[:, None]) * np.sqrt(n / max(n - 1, 1))
        covariance = deviation @ deviation.T
        # The variance where neither probability is the better one; that of soft labels is unknown.
        noise = np.zeros(len(fits))
        if not self.table.is_soft:
            with np.errstate(over="ignore"):
                for k, fit in enumerate(fits.values()):
                    p, q = (mixed(one, self.mix) for one in (self.given, fit.held_out))
                    rows = outcome_noise(p, q, self.score)
                    noise[k] = np.square(self.weights) @ np.where(self.weights > 0, rows, 0.0)
        error = np.sqrt(np.maximum(covariance.diagonal(), noise))
        p_value = joint_tails(mean, error, covariance, n, rng)
        improvement = np.where(np.isinf(score), -np.inf, mean)
        strength = [fit.strength for fit in fits.values()]
        values = np.stack((score, improvement, error, p_value, strength), axis=1).tolist()
        return [Candidate(name, *row) for name, row in zip(fits, values, strict=True)]

    def identity_p_values(self) -> tuple[float, float]:
        """Return the P-value of calibration, and that of probabilities other than 0 and 1."""
        w, soft = self.weights * np.count_nonzero(self.weights), self.table.is_soft
        rows = w > 0
        p, y, w = self.given[rows], self.truth[rows], w[rows]
        if isinstance(self.table, ClassTable):
            p_value = classes_p_value(p, y, w, soft)
            return p_value, p_value
        inside = (p > 0) & (p < 1)
        whole, part = ((p, y, w), (p[inside], y[inside], w[inside]))
        return identity_p_value(*whole, soft), identity_p_value(*part, soft)

    def simplest(self, fits: Mapping[str, _Fit]) -> str:
        """Return the simplest method within one standard error of the best, or "none"."""
        losses = {name: self.losses(fit.held_out) for name, fit in fits.items()}
        adequate = [name for name, fit in fits.items() if self.is_adequate(fit)]
        mean = {name: float(self.weights @ losses[name]) for name in adequate or fits}
        if min(mean.values()) >= self.weights @ self.before:
            return "none"
        best = min(mean, key=mean.__getitem__)
        # Of equally simple ones the best; the first that is good enough.
        for name in sorted(mean, key=lambda one: (self.rank(fits[one].calibrator), mean[one])):
            excess = losses[name] - losses[best]
            error = np.sqrt(np.sum((self.weights * (excess - mean[name] + mean[best])) ** 2))
            if mean[name] <= mean[best] + error and mean[name] < self.weights @ self.before:
                return name
        return best

    def rank(self, calibrator: Calibrator) -> float:
        """Return how far a calibrator is from the simplest."""
        if isinstance(self.table, ClassTable):
            kind = type(calibrator)
            return _CLASS_ORDER.index(kind) if kind in _CLASS_ORDER else math.inf
        return math.inf if calibrator.n_coefficients is None else calibrator.n_coefficients

    def is_adequate(self, fit: _Fit) -> bool:
        """Return whether the shape of what a parametric map leaves is not significant."""
        n_fitted = fit.calibrator.n_coefficients
        if n_fitted is None or isinstance(self.table, ClassTable):
            return True
        rows, q = self.weights > 0, self.fitted(fit.calibrator).predict(self.given)
        p, q, y, w = (v[rows] for v in (self.given, q, self.truth, self.weights))
        return shape_p_value(p, q, y, w, self.table.is_soft, n_fitted) > _MIN_SHAPE_P_VALUE

    def adjusted(self, fit: _Fit, ends: Calibrator) -> Calibrator:
        """Return the calibrator fitted to all rows, its map mixed with the identity."""
        fitted, corrected = self.fitted(fit.calibrator), self.fitted(ends).maps_[0]
        change: dict[str, Any] = {"mix": self.mix, "n_classes": fitted.n_classes_}
        is_identity = isinstance(fit.calibrator, IdentityCalibrator) and not fit.calibrator.ends
        if isinstance(corrected, AdjustedMap) and not is_identity:
            change |= {"low": corrected.low, "high": corrected.high}
        change["strength"] = fit.strength
        fitted.maps_ = tuple(AdjustedMap(one, **change).simplified() for one in fitted.maps_)
        return fitted


def read_methods(method: Method | Sequence[Method], table: Table) -> dict[str, Calibrator]:
    """Return the calibrators to try, by name."""
    automatic = _AUTO_CLASSES if isinstance(table, ClassTable) else _AUTO
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
            for name in automatic if one == "auto" else (one,):
                calibrators[name] = METHODS[name]()
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
    """Return the fold of each row, at random.

    Not stratified by outcome: with as many events in each fold as in the others, the cost of
    fitting the level would count as a gain. Rows of weight 0, which no fit depends on, are assigned
    after all others.
    """
    cv, n = validation.as_count(cv, "cv"), n_rows(table)
    is_ignored = np.zeros(n, dtype=bool) if weight is None else weight == 0
    n_weighted = n - int(is_ignored.sum())
    if n_weighted < 2:
        raise CalibrantError(
            "must hold at least two rows that carry weight to recalibrate",
            argument="y_true",
            value=n_weighted,
        )
    if not 2 <= cv <= n_weighted:
        raise CalibrantError(
            "must be between 2 and the number of {rows}, {maximum}",
            argument="cv",
            value=cv,
            rows="rows" if n_weighted == n else "rows with positive weight",
            maximum=n_weighted,
        )
    order = read_generator(rng).permutation(n)
    order = order[np.argsort(is_ignored[order], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % cv
    return fold


def held_out(
    calibrator: Calibrator, table: Table, weight: AnyArray | None, fold: Index
) -> FloatArray:
    """Return every row as recalibrated by a map fitted to the other folds."""
    prob, outcome = columns(table)
    recalibrated = np.empty(prob.shape)
    for k in range(int(fold.max()) + 1):
        inside = fold == k
        others = None if weight is None else weight[~inside]
        fitted = clone(calibrator).fit(prob[~inside], outcome[~inside], sample_weight=others)
        recalibrated[inside] = fitted.predict(prob[inside])
    return recalibrated


def columns(table: Table) -> tuple[AnyArray, AnyArray]:
    """Return probabilities and outcomes of a table."""
    return (table.prob, table.outcome) if isinstance(table, ClassTable) else (table.p, table.y)


def n_rows(table: Table) -> int:
    """Return the number of rows of a table."""
    return len(columns(table)[0])


def relative_weights(table: Table, weight: AnyArray | None) -> FloatArray:
    """Return the weights of rows over their sum."""
    w = np.ones(n_rows(table)) if weight is None else np.asarray(weight, dtype=np.float64)
    return np.asarray(w / w.sum())


def losses(table: Table, score: Score, w: FloatArray) -> FloatArray:
    """Return the loss of every row, summed over classes, and 0 for those of weight 0."""
    loss = LOSSES[score]
    rows = [loss(p, y).reshape(len(p), -1).sum(axis=1) for p, y, _ in table.blocks()]
    return np.where(w > 0, np.concatenate(rows), 0.0)


def check_finite(given: FloatArray, hint: str) -> None:
    """Refuse losses of the probabilities as given that are infinite."""
    infinite = np.isinf(given)
    if infinite.any():
        raise CalibrantError(
            "must not be 0 for an outcome that happened, which makes the log score infinite",
            argument="y_prob",
            value=0.0,
            position=int(np.argmax(infinite)),
            count=int(infinite.sum()),
            hint=hint,
        )


def with_predictions(table: Table, prob: FloatArray) -> Table:
    """Return the same outcomes with other probabilities."""
    if isinstance(table, ClassTable):
        return replace(table, prob=prob)
    return Sample(table.y, prob, table.w, table.lowest)
