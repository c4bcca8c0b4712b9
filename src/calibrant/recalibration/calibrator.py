"""Calibrators: scikit-learn estimators whose `fit` makes maps of probabilities."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.classes import ClassTable, by_name, read_table
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator, as_array, column_labels, is_real, one_column
from calibrant.errors import CalibrantError, shown
from calibrant.recalibration import storage
from calibrant.recalibration.maps import (
    AdjustedMap,
    ProbabilityMap,
    as_probabilities,
    normalised,
    quoted,
    where_valid,
)


class Calibrator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of calibrators, which are scikit-learn estimators.

    Parameters
    ----------
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Attributes
    ----------
    n_classes_ : int
        Number of classes it was fitted to.
    maps_ : tuple of ProbabilityMap
        The fitted maps: one, or one per class.

    Notes
    -----
    For more than two classes each class is recalibrated against the rest, and the recalibrated
    probabilities of a row are divided by their sum; a row whose sum is 0 is left unchanged.

    A subclass defines ``_fit_problem(problem)``, which returns the map of one binary problem.
    """

    def __init__(self, mix: bool = False) -> None:
        self.mix = mix

    # What scikit-learn would call X and y is not metadata to route.
    __metadata_request__fit = {"y_prob": UNUSED, "y_true": UNUSED}  # noqa: RUF012
    __metadata_request__predict = {"y_prob": UNUSED}  # noqa: RUF012

    n_classes_: int
    maps_: tuple[ProbabilityMap, ...]
    # Whether several classes are recalibrated by one map of all of them.
    is_joint = False
    # Of the map of one probability, if that is simple.
    n_coefficients: ClassVar[int | None] = None

    @overload
    def fit(self, y_prob: Sketch) -> Self: ...
    @overload
    def fit(
        self,
        y_prob: ArrayLike,
        y_true: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: Sequence[Any] | None = None,
        pos_label: Any = None,
    ) -> Self: ...
    def fit(
        self,
        y_prob: ArrayLike | Sketch,
        y_true: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        labels: Sequence[Any] | None = None,
        pos_label: Any = None,
    ) -> Self:
        """Fit to probabilities and outcomes, in scikit-learn's order of X and y.

        Parameters
        ----------
        y_prob : array_like
            Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).

            Or a :class:`calibrant.Sketch`, alone, where the method can be fitted to one.
        y_true : array_like of outcomes or soft labels
            Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
        sample_weight : array_like, optional
            Non-negative weights; rows of weight 0 are ignored.
        labels : sequence, optional
            Class of each column of `y_prob`; by default the names of the columns, or else 0 to C -
            1.
        pos_label : label, optional
            Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

            Not with two columns, of which the second is that of the positive class.

        Returns
        -------
        Calibrator
            The fitted calibrator itself.

        See Also
        --------
        recalibrate : Choose a calibrator by its score on held-out rows.
        """
        check_order(y_prob, y_true)
        if isinstance(y_prob, Sketch):
            table = read_table(y_prob, y_true, sample_weight, None, labels, pos_label)
        else:
            check_columns(y_true, y_prob, labels, pos_label)
            table = read_table(y_true, y_prob, sample_weight, None, labels, pos_label)
        self.n_classes_, self.maps_ = self._fit_table(table)
        return self

    def _fit_table(self, table: Problem | ClassTable) -> tuple[int, tuple[ProbabilityMap, ...]]:
        """Return the number of classes and the maps fitted to all of them."""
        if isinstance(table, ClassTable):
            n_rows, n_classes, maps = len(table.prob), table.n_classes, self._fit_classes(table)
        else:
            n_rows, n_classes, maps = table.n, 2, (self._fit_problem(table),)
        return n_classes, self._mixed(maps, n_rows, n_classes)

    def _mixed(
        self, maps: tuple[ProbabilityMap, ...], n_rows: int, n_classes: int = 2
    ) -> tuple[ProbabilityMap, ...]:
        """Return maps mixed with the uniform distribution if that is asked for."""
        if not validation.as_flag(getattr(self, "mix", False), "mix"):
            return maps
        weight = 1 / (n_rows + 1)
        return tuple(AdjustedMap(one, mix=weight, n_classes=n_classes) for one in maps)

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return the recalibrated probabilities.

        Parameters
        ----------
        y_prob : array_like
            Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).

            With as many classes as the calibrator was fitted to.

        Returns
        -------
        ndarray
            Probabilities of the positive class, shape (n,), for one column; else of all classes.
        """
        check_is_fitted(self, "maps_")
        return self._apply(read_predictions(y_prob, self.n_classes_), self._noise())

    @property
    def map_(self) -> ProbabilityMap:
        """The only map of a calibrator that does not have one per class."""
        check_is_fitted(self, "maps_")
        if len(self.maps_) > 1:
            raise CalibrantError(
                f"this calibrator has {len(self.maps_)} maps, one per class: look at maps_"
            )
        return self.maps_[0]

    @overload
    def to_sql(self, column: str) -> str: ...
    @overload
    def to_sql(self, column: list[str] | tuple[str, ...]) -> list[str]: ...
    def to_sql(self, column: str | list[str] | tuple[str, ...]) -> str | list[str]:
        """Return the map as an SQL expression of a column, or one per class of several.

        Parameters
        ----------
        column : str, list or tuple of str
            Name of the column of a binary calibrator, or the names of the columns of all classes;
            they are quoted.

        Returns
        -------
        str or list of str
            CASE expressions in standard SQL: NULL where a column is NULL, nan or outside [0, 1]. An
            expression of one class of C has a length of the order of C; of a
            :class:`~calibrant.recalibration.VectorCalibrator` C^2, of a
            :class:`~calibrant.recalibration.MatrixCalibrator` C^3.
        """
        if isinstance(column, str):
            return self.map_.to_sql(column)
        check_is_fitted(self, "maps_")
        if len(column) != self.n_classes_:
            raise CalibrantError(
                "must name {n_classes} columns",
                argument="column",
                value=len(column),
                n_classes=self.n_classes_,
            )
        names = [quoted(one) for one in column]
        if len(self.maps_) == 1:
            expressions = self.maps_[0]._class_expressions(names)
        else:
            pairs = zip(self.maps_, names, strict=True)
            each = [f"({one._expression(name)})" for one, name in pairs]
            total = " + ".join(each)
            # A row of which nothing is left stays as it is.
            expressions = [
                f"CASE WHEN {total} > 0 THEN {one} ELSE {name} END"
                for one, name in zip(normalised(each), names, strict=True)
            ]
        return where_valid(names, expressions)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted calibrator to a JSON file, for :func:`calibrant.recalibration.load`.

        Parameters
        ----------
        path : str or path
            The file, which is written completely or not at all.
        """
        check_is_fitted(self, "maps_")
        content = {
            "calibrator": type(self).__name__,
            "params": {name: _plain(name, value) for name, value in self.get_params().items()},
            "n_classes": self.n_classes_,
            "maps": [fitted.content() for fitted in self.maps_],
        }
        storage.write(path, content)

    def _fit_problem(self, problem: Problem) -> ProbabilityMap:
        """Return the map fitted to one binary problem."""
        raise NotImplementedError

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        """Return the maps fitted to several classes: each against the rest."""
        return tuple(self._fit_problem(problem) for problem in table.classwise().problems())

    def _noise(self) -> Generator | None:
        """Return the generator of a random map's noise."""
        return None

    def _apply(self, p: FloatArray, rng: Generator | None) -> FloatArray:
        """Return the probabilities with each map applied to its column."""
        if self.n_classes_ == 2 and p.ndim == 2:
            positive = self.maps_[0].of_second(p[:, 1], rng)
            return np.stack((1 - positive, positive), axis=1)
        if self.n_classes_ == 2:
            return self.maps_[0].of_second(p, rng)
        if len(self.maps_) == 1:
            return self.maps_[0].draw(p, rng)
        classes = zip(self.maps_, p.T, strict=True)
        mapped: FloatArray = np.stack([one.draw(column, rng) for one, column in classes], axis=1)
        sums = mapped.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(mapped, sums, out=p.copy(), where=sums > 0))


def check_order(y_prob: Any, y_true: Any) -> None:
    """Refuse (y_true, y_prob), the order of measures, in place of (y_prob, y_true)."""
    if isinstance(y_prob, Sketch):
        return
    if isinstance(y_true, Sketch):
        raise CalibrantError(
            "must not be a sketch, which represents {y_prob}, too",
            argument="y_true",
            hint="give it alone, fit(sketch)",
        )
    if y_true is None:
        raise CalibrantError("is missing", argument="y_true", hint="fit takes ({y_prob}, {y_true})")
    p, y = as_array(y_prob, "y_prob"), as_array(y_true, "y_true")
    if p.ndim != 1 or p.shape != y.shape or len(p) == 0 or not (is_real(p) and is_real(y)):
        return
    try:
        validation.check_not_swapped(y, p)
    except CalibrantError as problem:
        raise CalibrantError(
            problem.rule,
            argument=problem.argument,
            hint="calibrators take scikit-learn's order, fit({y_prob}, {y_true})",
        ) from None


def check_columns(y_true: Any, y_prob: Any, labels: Any, pos_label: Any) -> None:
    """Refuse columns that `predict`, which knows no labels, would take for other classes.

    Those of two classes are the negative one and the positive one.
    """
    shape = as_array(y_prob, "y_prob").shape
    if pos_label is not None and len(shape) == 2 and shape[1] == 2:
        raise CalibrantError(
            "must be left out with two columns of probabilities, of which the second is that of "
            "the positive class",
            argument="pos_label",
            hint="{labels} names both in order",
        )
    names = column_labels(y_prob)
    _, classes, positive = by_name(y_true, y_prob, labels)
    if names is None or classes is None:
        return
    expected = list(classes) if positive in (None, classes[-1]) else list(classes)[::-1]
    if expected != list(classes) or (names != expected and set(names) == set(expected)):
        raise CalibrantError(
            "must have its columns in the order of the classes, {expected}",
            argument="y_prob",
            value=names,
            hint="reorder them",
            expected=shown(expected),
        )


def read_predictions(y_prob: Any, n_classes: int) -> FloatArray:
    """Read probabilities to map: one or two columns of two classes, else one column per class."""
    p = as_array(y_prob, "y_prob")
    validation.check_not_empty(p, "y_prob")
    if n_classes == 2 and (p.ndim == 1 or p.shape[1:] == (1,)):
        return as_probabilities(one_column(p, "y_prob"))
    if p.ndim != 2 or p.shape[1] != n_classes:
        columns = "one column or two" if n_classes == 2 else f"{n_classes} columns"
        raise CalibrantError(
            "must have {columns}, as when fitted",
            argument="y_prob",
            value=p.shape if p.ndim > 2 else p.shape[1] if p.ndim == 2 else 1,
            columns=columns,
        )
    p = as_probabilities(p)
    validation.check_row_sums(p)
    return p


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as JSON can represent it."""
    if isinstance(value, Generator):
        raise CalibrantError(
            "is a generator, which a file cannot store", argument=name, hint="give a seed instead"
        )
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
