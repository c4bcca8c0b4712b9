"""What all calibrators share: a scikit-learn estimator whose fit makes maps of probabilities."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from calibrant._base import FloatArray
from calibrant.data.classes import ClassTable
from calibrant.data.problem import Problem
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.recalibration import storage
from calibrant.recalibration.inputs import read_fit, read_predictions
from calibrant.recalibration.maps import ProbabilityMap

# How one map is used on probabilities.
Use = Callable[[ProbabilityMap, FloatArray], FloatArray]


class Calibrator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A scikit-learn estimator that learns to mend probabilities.

    Attributes
    ----------
    n_classes_
        How many classes it was fitted to.
    maps_
        What was learnt: one map, or one a class.

    Notes
    -----
    For more than two classes each class is mended against the rest, and the mended probabilities
    of a row are divided by their sum; a row whose sum is 0 stays as it is given.
    """

    # What scikit-learn would call X and y is no metadata that it might route.
    __metadata_request__fit = {"y_prob": UNUSED, "y_true": UNUSED}  # noqa: RUF012
    __metadata_request__predict = {"y_prob": UNUSED}  # noqa: RUF012

    n_classes_: int
    maps_: tuple[ProbabilityMap, ...]

    def fit(
        self,
        y_prob: Any,
        y_true: Any = None,
        *,
        sample_weight: Any = None,
        labels: Sequence[Any] | None = None,
        pos_label: Any = None,
    ) -> Self:
        """Learn from probabilities and outcomes, in scikit-learn's order of X and y.

        Parameters
        ----------
        y_prob
            Probabilities, shape (n,), (n, 1), (n, 2) or (n, classes); or a
            :class:`calibrant.Sketch`, alone, where the method can learn from one.
        y_true
            Outcomes, as in :func:`calibrant.ece`; soft labels are taken as they are.
        sample_weight, labels
            As in :func:`calibrant.ece`.
        pos_label
            As in :func:`calibrant.ece`, for one column of probabilities.

        Returns
        -------
        Calibrator
            Itself.
        """
        table = read_fit(y_prob, y_true, sample_weight, labels, pos_label)
        if isinstance(table, ClassTable):
            n_classes, maps = table.n_classes, self._fit_classes(table)
        else:
            n_classes, maps = 2, (self._fit_problem(table),)
        self.n_classes_, self.maps_ = n_classes, maps
        return self

    def predict(self, y_prob: Any) -> FloatArray:
        """Return the mended probabilities.

        Parameters
        ----------
        y_prob
            Probabilities. A calibrator of two classes takes shapes (n,), (n, 1) and (n, 2), the
            second column being the positive class; of more classes, one column a class.

        Returns
        -------
        ndarray
            Probabilities of the positive class, shape (n,), for one column; else of all classes.
        """
        return self._mend(y_prob, lambda learnt, p: learnt(p))

    @property
    def map_(self) -> ProbabilityMap:
        """The one map of a calibrator that has no more than one."""
        check_is_fitted(self, "maps_")
        if len(self.maps_) > 1:
            raise CalibrantError(
                f"this calibrator has {len(self.maps_)} maps, one per class: look at maps_"
            )
        return self.maps_[0]

    def to_sql(self, column: str) -> str:
        """Return the map of a binary calibrator as an SQL expression of a column.

        Parameters
        ----------
        column
            The name of the column; it is quoted.

        Returns
        -------
        str
            A CASE expression in standard SQL: NULL where the column is NULL, nan or outside [0, 1].
        """
        return self.map_.to_sql(column)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted calibrator to a file, whole or not at all.

        The file is JSON with a checksum, and nothing in it is ever run:
        ``calibrant.recalibration.load`` reads it.
        """
        check_is_fitted(self, "maps_")
        content = {
            "calibrator": type(self).__name__,
            "params": {name: _plain(name, value) for name, value in self.get_params().items()},
            "n_classes": self.n_classes_,
            "maps": [learnt.content() for learnt in self.maps_],
        }
        storage.write(path, content)

    def _fit_problem(self, problem: Problem) -> ProbabilityMap:
        """Return the map learnt from one binary problem."""
        raise NotImplementedError

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        """Return the maps learnt from several classes: each against the rest."""
        return tuple(self._fit_problem(problem) for problem in table.classwise().problems())

    def _mend(self, y_prob: Any, use: Use) -> FloatArray:
        check_is_fitted(self, "maps_")
        p = read_predictions(y_prob, self.n_classes_)
        if self.n_classes_ == 2 and p.ndim == 2:
            positive = use(self.maps_[0], p[:, 1])
            return np.stack((1 - positive, positive), axis=1)
        if len(self.maps_) == 1:
            return use(self.maps_[0], p)
        classes = zip(self.maps_, p.T, strict=True)
        mended: FloatArray = np.stack([use(learnt, column) for learnt, column in classes], axis=1)
        sums = mended.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(mended, sums, out=p.copy(), where=sums > 0))


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
    if isinstance(value, Generator):
        raise CalibrantError(
            "is a generator, which no file can hold", argument=name, hint="give a seed instead"
        )
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
