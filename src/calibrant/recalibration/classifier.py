"""A classifier whose probabilities are recalibrated by cross-fitting."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, indexable

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.validation import Generator, read_generator
from calibrant.measures.scores import LOSSES, Score
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.methods import IdentityCalibrator
from calibrant.recalibration.search import Method, choose, read_methods, read_rows


class CalibrantClassifierCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with a calibrator that is fitted to its predictions of held-out rows.

    The classifier is fitted `cv` times, each time to all folds but one, for predictions that are as
    uncertain as those of new rows; the calibrator is chosen by and fitted to these. The classifier
    that predicts is fitted to all rows.

    Parameters
    ----------
    estimator : classifier, optional
        A classifier of scikit-learn's kind with ``predict_proba``; logistic regression by default.
    method : str, Calibrator or sequence of these
        As of :func:`~calibrant.recalibration.recalibrate`: "auto" chooses, or leaves probabilities
        as they are; one calibrator is fitted as it is.
    cv : int, splitter of scikit-learn or iterable of (train, test)
        Number of folds, drawn at random and stratified by outcome, fewer where a class has fewer
        rows; or the folds themselves, which each row is held out in once.
    proper_score : {"brier", "log"}
        The proper score to lower.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The classes, in the order of columns.
    estimator_ : classifier
        The classifier fitted to all rows.
    calibrator_ : Calibrator
        The calibrator fitted to held-out predictions; the identity where nothing is to be done.
    method_ : str
        The method that was chosen, "none" for none.
    n_features_in_, feature_names_in_
        As of the classifier, where it has them.

    Notes
    -----
    A class of one row is in no classifier that predicts it: then nothing is recalibrated. Weights
    are given to the classifier if its `fit` takes them, and to the calibrator.

    See Also
    --------
    recalibrate : Recalibrate probabilities at hand.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(1000, n_redundant=10, random_state=0)
    >>> model = CalibrantClassifierCV(GaussianNB()).fit(X, y)
    >>> model.method_ != "none"
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        estimator: Any = None,
        method: Method | tuple[Method, ...] = "auto",
        cv: Any = 5,
        proper_score: Score = "brier",
        rng: int | Generator = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.proper_score = proper_score
        self.rng = rng

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier, and the calibrator to its predictions of held-out rows.

        Parameters
        ----------
        X : array_like of shape (n, k)
            Features, of any kind that the classifier takes.
        y : array_like of shape (n,)
            Class labels.
        sample_weight : array_like, optional
            Non-negative weights; rows of weight 0 are ignored.

        Returns
        -------
        CalibrantClassifierCV
            The fitted classifier itself.
        """
        estimator = LogisticRegression() if self.estimator is None else self.estimator
        X, labels, sample_weight = indexable(X, y, sample_weight)
        check_classification_targets(labels)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        takes = weight is not None and has_fit_parameter(estimator, "sample_weight")
        params = {"sample_weight": weight} if takes else {}
        self.estimator_ = clone(estimator).fit(X, labels, **params)
        self.classes_ = np.asarray(self.estimator_.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        codes = np.searchsorted(self.classes_, np.asarray(labels).reshape(-1))
        kept = np.ones(len(codes), bool) if weight is None else weight > 0
        n_folds = min(self._n_folds(), *np.bincount(codes[kept]))
        if n_folds < 2 or len(self.classes_) < 2:
            n_classes = max(len(self.classes_), 2)
            identity = IdentityCalibrator().fit(np.eye(n_classes), np.arange(n_classes))
            self.method_, self.calibrator_ = "none", identity
            return self
        folds = self.cv
        if isinstance(folds, Integral):
            seed = int(read_generator(self.rng).integers(2**31))
            folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        prob = cross_val_predict(
            clone(estimator), X, codes, cv=folds, method="predict_proba", params=params
        )
        self.method_, self.calibrator_ = self._calibrator(prob, codes, weight, n_folds)
        return self

    def _n_folds(self) -> int:
        """Return the number of folds, five where they are given as such."""
        is_number = isinstance(self.cv, Integral) or not np.iterable(self.cv)
        if is_number and not hasattr(self.cv, "split"):
            return validation.as_count(self.cv, "cv", minimum=2)
        return 5

    def _calibrator(
        self, prob: FloatArray, codes: Any, weight: FloatArray | None, n_folds: int
    ) -> tuple[str, Calibrator]:
        """Return the name and the calibrator fitted to held-out predictions."""
        prob = prob[:, 1] if prob.shape[1] == 2 else prob
        table = read_rows(codes, prob, None, None)
        methods = read_methods(self.method, table)
        validation.check_choice(self.proper_score, "proper_score", LOSSES)
        if self.method != "auto" and len(methods) == 1:
            [(name, one)] = methods.items()
            return name, clone(one).fit(prob, codes, sample_weight=weight)
        options: Any = {"cv": n_folds, "score": self.proper_score, "rng": self.rng}
        chosen = choose(methods, table, weight, **options)
        return chosen.method, chosen.calibrator

    def predict_proba(self, X: Any) -> FloatArray:
        """Return recalibrated probabilities of all classes.

        Parameters
        ----------
        X : array_like of shape (n, k)
            Features.

        Returns
        -------
        ndarray of shape (n, C)
            One column per class of `classes_`.
        """
        check_is_fitted(self, "calibrator_")
        prob = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        return prob if self.method_ == "none" else self.calibrator_.predict(prob)

    def predict(self, X: Any) -> Any:
        """Return the class of the highest recalibrated probability.

        Parameters
        ----------
        X : array_like of shape (n, k)
            Features.

        Returns
        -------
        ndarray of shape (n,)
            Class labels.
        """
        check_is_fitted(self, "calibrator_")
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: those of the classifier where they concern the features."""
        tags = super().__sklearn_tags__()
        inner = get_tags(LogisticRegression() if self.estimator is None else self.estimator)
        tags.input_tags = inner.input_tags
        return tags
