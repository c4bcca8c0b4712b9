"""Calibration in scikit-learn's own terms: displays of estimators, and scorers.

The displays are those of :mod:`calibrant.plot` under scikit-learn's conventions: made by
`from_estimator` or `from_predictions`, kept with their results, drawn by `plot`. The scorers go
where scikit-learn takes a `scoring`: ``cross_val_score(model, X, y, scoring=neg_smooth_ece)``.
Every calibration error NAME has one, `neg_NAME`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._base import AnyArray
from calibrant.curves.curve import Curve
from calibrant.data import validation
from calibrant.errors import CalibrantError, MissingDependencyError
from calibrant.measures.cumulative import CumulativeCurve
from calibrant.measures.registry import measures
from calibrant.plot.common import Model, Note, check_axes
from calibrant.plot.cumulative_plot import CumulativeDiagram, draw_cumulative, gather_cumulative
from calibrant.plot.reliability_plot import Diagram, Layout, Margin, draw_diagrams, gather

try:
    from sklearn.utils.metadata_routing import MetadataRequest
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError as problem:
    if (problem.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingDependencyError(
        "calibrant.integrations.sklearn needs scikit-learn",
        hint="pip install 'calibrant[sklearn]'",
    ) from problem

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CalibrationScorer", "CumulativeDisplay", "ReliabilityDisplay"]


def probabilities(estimator: Any, X: Any) -> tuple[AnyArray, list[Any]]:
    """Return the class probabilities of a fitted classifier, and the classes they are of."""
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        raise CalibrantError(
            "{name} has no predict_proba, and calibration needs probabilities",
            hint="CalibratedClassifierCV makes them",
            name=name,
        )
    check_is_fitted(estimator)
    classes = getattr(estimator, "classes_", None)
    if not isinstance(classes, np.ndarray):
        raise CalibrantError(f"{name} must have the one array of its classes in classes_")
    return estimator.predict_proba(X), classes.tolist()


# What displays have in common: reliability diagrams and cumulative plots as scikit-learn has them.
#
# A display keeps results, not rows. Where no `ax` is given the figure is pyplot's, as it is with
# scikit-learn's own displays, so that ``plt.show()`` shows it. A display drawn on the Axes of another
# is added to it, in the next colour and with its own name.


class Display:
    """What both displays share: how a fitted classifier becomes one."""

    line_: Artist
    ax_: Axes
    figure_: Figure

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any, **options: Any) -> Self:
        """Draw predictions."""
        raise NotImplementedError

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw how a fitted classifier's probabilities agree with what was observed.

        Parameters
        ----------
        estimator
            A fitted classifier with `predict_proba`.
        X, y
            Rows that it was not fitted to, and their classes.
        **options
            As in `from_predictions`. Unless `name` is given, it is that of the estimator's class.
            Of two classes `pos_label` is the second unless given; of more, the confidence in the
            predicted class is drawn unless `multiclass` names a class.

        Returns
        -------
        display
            The display, drawn.
        """
        y_prob, classes = probabilities(estimator, X)
        options = {"name": type(estimator).__name__, "labels": classes} | options
        if len(classes) == 2 and options.get("multiclass") is None:
            options.setdefault("pos_label", classes[1])
        return cls.from_predictions(y, y_prob, **options)


def axes_of_pyplot(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the Axes that was given, or else that of a new figure of pyplot's."""
    import matplotlib.pyplot as plt

    check_axes(ax)
    return plt.subplots(figsize=(width, height), layout="compressed")[1] if ax is None else ax


def read_name(name: object) -> str:
    """Return what an estimator is called, nothing if None."""
    if name is not None and not isinstance(name, str):
        raise CalibrantError("must be text", argument="name", value=name)
    return name or ""


# Reliability diagrams by scikit-learn's conventions.


class ReliabilityDisplay(Display):
    """A reliability diagram by scikit-learn's conventions.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    diagram
        The results that are shown.
    estimator_name
        The name of the estimator.
    pos_label
        The class that the probabilities refer to.

    Attributes
    ----------
    curve
        The outcome to expect at each score.
    note
        What is written beside the curve: a result, or words.
    line_
        The artist of the curve.
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(2000, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1000:], y[1000:])
    >>> display.note.measure
    'smooth_ece'
    """

    def __init__(
        self, diagram: Diagram, *, estimator_name: str | None = None, pos_label: Any = None
    ) -> None:
        self.diagram = diagram
        self.estimator_name = estimator_name
        self.pos_label = pos_label

    @property
    def curve(self) -> Curve:
        """The outcome to expect at each score."""
        return self.diagram.view.curve

    @property
    def note(self) -> Note | None:
        """What is written beside the curve: a result, or words."""
        return self.diagram.note

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        note: bool | Note = True,
        margin: Margin = True,
        deviation: bool = False,
        limits: tuple[float, float] | None = None,
        color: Any = None,
        **options: Any,
    ) -> Self:
        """Draw how predictions agree with what was observed.

        Parameters
        ----------
        y_true, y_prob
            As in :func:`calibrant.reliability_curve`.
        name
            What to call them.
        ax
            The Axes to draw on; a new one of pyplot's unless given.
        note, margin, deviation, limits, color
            As in :func:`calibrant.plot.reliability`.
        **options
            As in :func:`calibrant.reliability_curve`: `method`, `band`, `sample_weight`,
            `pos_label` and the rest; but the band holds for the whole curve unless
            ``simultaneous=False``.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        found = gather(Model(read_name(name), y_true, y_prob, options), None, note)
        display = cls(found, estimator_name=name, pos_label=options.get("pos_label"))
        return display.plot(ax=ax, margin=margin, deviation=deviation, limits=limits, color=color)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        margin: Margin = True,
        deviation: bool = False,
        limits: tuple[float, float] | None = None,
        color: Any = None,
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax
            The Axes to draw on; a new one of pyplot's unless given.
        name
            What to call it, instead of `estimator_name`.
        margin, deviation, limits, color
            As in :func:`calibrant.plot.reliability`.

        Returns
        -------
        ReliabilityDisplay
            Itself.
        """
        ax = axes_of_pyplot(ax, 4.2, 4.7)
        words = read_name(self.estimator_name if name is None else name)
        diagram = replace(self.diagram, name=words, color=color)
        layout = Layout(limits=limits, margin=margin, deviation=deviation)
        (self.line_,) = draw_diagrams(ax, [diagram], layout)
        self.ax_, self.figure_ = ax, ax.figure.figure
        if self.pos_label is not None:
            ax.set_xlabel(f"predicted probability of class {self.pos_label}")
        return self


# Cumulative plots by scikit-learn's conventions.


class CumulativeDisplay(Display):
    """A cumulative plot by scikit-learn's conventions.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    curve
        The cumulative deviation of outcomes from predictions.
    note
        What is written beside the curve: a result, or words.
    estimator_name
        The name of the estimator.
    pos_label
        The class that the probabilities speak of.

    Attributes
    ----------
    line_
        The artist of the curve.
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(2000, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> CumulativeDisplay.from_estimator(model, X[1000:], y[1000:]).note.p_value < 0.01
    True
    """

    def __init__(
        self,
        curve: CumulativeCurve,
        *,
        note: Note | None = None,
        estimator_name: str | None = None,
        pos_label: Any = None,
    ) -> None:
        self.curve = curve
        self.note = note
        self.estimator_name = estimator_name
        self.pos_label = pos_label

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        note: bool | Note = True,
        color: Any = None,
        **options: Any,
    ) -> Self:
        """Draw where along the scores outcomes depart from predictions.

        Parameters
        ----------
        y_true, y_prob
            As in :func:`calibrant.cumulative_curve`.
        name
            What to call them.
        ax
            The Axes to draw on; a new one of pyplot's unless given.
        note, color
            As in :func:`calibrant.plot.cumulative`.
        **options
            As in :func:`calibrant.cumulative_test`.

        Returns
        -------
        CumulativeDisplay
            The display, drawn.
        """
        found = gather_cumulative(Model(read_name(name), y_true, y_prob, options), note)
        pos_label = options.get("pos_label")
        display = cls(found.curve, note=found.note, estimator_name=name, pos_label=pos_label)
        return display.plot(ax=ax, color=color)

    def plot(self, *, ax: Axes | None = None, name: str | None = None, color: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax
            The Axes to draw on; a new one of pyplot's unless given.
        name
            What to call it, instead of `estimator_name`.
        color
            The colour of the curve.

        Returns
        -------
        CumulativeDisplay
            Itself.
        """
        ax = axes_of_pyplot(ax, 5.4, 3.8)
        words = read_name(self.estimator_name if name is None else name)
        diagram = CumulativeDiagram(self.curve, self.note, words, color)
        (self.line_,) = draw_cumulative(ax, [diagram])
        self.ax_, self.figure_ = ax, ax.figure.figure
        return self


# Scorers: calibration errors as scikit-learn's model selection takes them.
#
# A scorer is called with an estimator and knows its classes. Made of a bare function of outcomes and
# probabilities it would not: a fold without one of the classes would shift the columns of the others.


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
        known = [name for name in validation.keywords(measure) if name not in given]
        validation.check_options(options, known, _name_of(measure))
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


_SCORERS = scorers()

__all__ += list(_SCORERS)


def __getattr__(name: str) -> CalibrationScorer:
    if name not in _SCORERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _SCORERS[name]


def __dir__() -> list[str]:
    return sorted(__all__)
