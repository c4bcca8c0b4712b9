"""Scorers: calibration errors as scikit-learn's model selection takes them.

A scorer is called with an estimator and knows its classes. Made of a bare function of outcomes and
probabilities it would not: a fold without one of the classes would shift the columns of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from sklearn.utils.metadata_routing import MetadataRequest

from calibrant import checks
from calibrant.errors import CalibrantError
from calibrant.integrations.sklearn.classifiers import probabilities
from calibrant.measures.registry import measures

__all__ = ["CalibrationScorer", "scorers"]


class CalibrationScorer:
    """A calibration error as a scorer: its negative, so that greater is better.

    Parameters
    ----------
    measure
        A measure of calibrant's, such as :func:`calibrant.smooth_ece`.
    **options
        Options of the measure, such as ``n_bins=10``, ``multiclass="classwise"`` or, for two
        classes, `pos_label`.

    Notes
    -----
    Calibration alone is a poor reason to prefer a model: one that always predicts the base rate is
    calibrated. Choose among models by a proper score, such as scikit-learn's "neg_brier_score", and
    look at these beside it.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant import ece
    >>> X, y = make_classification(600, random_state=0)
    >>> scores = cross_val_score(GaussianNB(), X, y, scoring=CalibrationScorer(ece, n_bins=10))
    >>> bool((scores < 0).all())
    True
    """

    def __init__(self, measure: Callable[..., float], **options: Any) -> None:
        if not callable(measure):
            raise CalibrantError(
                "must be a function of calibrant's, such as calibrant.smooth_ece",
                argument="measure",
                value=measure,
            )
        given = ("labels", "sample_weight")
        known = [name for name in checks.keywords(measure) if name not in given]
        checks.check_options(options, known, _name_of(measure))
        self.measure = measure
        self.options = options
        self._request = MetadataRequest(owner=type(self).__name__)
        self._request.score.add_request(param="sample_weight", alias=None)

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the negative error of an estimator's probabilities."""
        y_prob, classes = probabilities(estimator, X)
        about = {"labels": classes, "sample_weight": sample_weight}
        return -self.measure(y, y_prob, **about, **self.options)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Say whether weights are wanted, where scikit-learn routes metadata."""
        self._request.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Tell scikit-learn which metadata are wanted."""
        return self._request

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"CalibrationScorer({_name_of(self.measure)}{given})"


def _name_of(measure: Callable[..., float]) -> str:
    return getattr(measure, "__name__", type(measure).__name__)


def scorers() -> dict[str, CalibrationScorer]:
    """Return the scorer of every calibration error, neg_NAME."""
    errors = [info for info in measures().values() if info.kind == "error"]
    return {f"neg_{info.name}": CalibrationScorer(info.function) for info in errors}
