"""Calibration in scikit-learn: displays of estimators, and scorers.

The displays are those of :mod:`calibrant.plot` by scikit-learn's conventions: made by
`from_estimator` or `from_predictions`, redrawn by `plot`. They keep results, not rows. Without
`ax` the figure is pyplot's, so that ``plt.show()`` shows it. A display drawn on the Axes of another
is added to it, in the next colour and with its own name.

The scorers go where scikit-learn takes a `scoring`:
``cross_val_score(model, X, y, scoring=neg_smooth_ece)``: `neg_NAME` for every error NAME.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant._base import AnyArray
from calibrant.curves.reliability import Curve
from calibrant.data import validation
from calibrant.errors import CalibrantError, required
from calibrant.measures.cumulative import CumulativeCurve
from calibrant.measures.registry import measures
from calibrant.plot.common import Model, Note, check_axes
from calibrant.plot.cumulative_plot import CumulativeDiagram, draw_cumulative, gather_cumulative
from calibrant.plot.reliability_plot import Diagram, Layout, Margin, draw_diagrams, gather

with required("calibrant.integrations.sklearn", "sklearn", "sklearn"):
    from sklearn.utils.metadata_routing import MetadataRequest
    from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CalibrationScorer", "CumulativeDisplay", "ReliabilityDisplay"]


class Display:
    """Base class of the displays."""

    line_: Artist
    ax_: Axes
    figure_: Figure

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, y_prob: ArrayLike, **options: Any) -> Self:
        """Make and draw a display of predictions."""
        raise NotImplementedError

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> Self:
        """Make and draw a display of the probabilities of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba`.
        X : array_like of shape (n, n_features)
            Rows that it was not fitted to.
        y : array_like of shape (n,)
            Their classes.
        **options
            Options of `from_predictions`. By default `name` is the class of the estimator and, of
            two classes, `pos_label` the second; of more, the confidence in the predicted class is
            drawn unless `multiclass` is a class.

        Returns
        -------
        display
            The display, drawn.
        """
        y_prob, classes = _probabilities(estimator, X)
        options = {"name": type(estimator).__name__, "labels": classes} | options
        if len(classes) == 2 and options.get("multiclass") is None:
            options.setdefault("pos_label", classes[1])
        return cls.from_predictions(y, y_prob, **options)


class ReliabilityDisplay(Display):
    """A reliability diagram by scikit-learn's conventions.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    diagram : Diagram
        The results that are shown.
    estimator_name : str, optional
        Name of the estimator.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Attributes
    ----------
    curve : Curve
        The expected outcome at each score.
    note : result or str
        What is written beside the curve.
    line_ : matplotlib artist
        The curve.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    calibrant.plot.reliability : The same diagram of predictions.

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
        """The expected outcome at each score."""
        return self.diagram.view.curve

    @property
    def note(self) -> Note | None:
        """What is written beside the curve: a result, or text."""
        return self.diagram.note

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
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
        """Make and draw a reliability diagram of predictions.

        Parameters
        ----------
        y_true : array_like of outcomes or soft labels
            Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels (see `pos_label`) or classes.
        y_prob : array_like
            Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
        name : str, optional
            Name of the predictions.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure by default.
        note : bool, result or str
            What is written beside the curve. True: the calibration error with its interval.
        margin : bool or "both"
            Whether to draw outcomes below; "both": and the recalibrated scores along the right.
        deviation : bool
            Whether to draw outcomes less predictions.
        limits : pair of float, optional
            Range of scores to show.
        color : color, optional
            Colour of the curve.
        **options
            Options of :func:`calibrant.reliability_curve`, such as `method`, `band`,
            `sample_weight` and `pos_label`; but the band is simultaneous unless
            ``simultaneous=False``.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        found = gather(Model(_read_name(name), y_true, y_prob, options), None, note)
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
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure by default.
        name : str, optional
            Name in place of `estimator_name`.
        margin : bool or "both"
            Whether to draw outcomes below; "both": and the recalibrated scores along the right.
        deviation : bool
            Whether to draw outcomes less predictions.
        limits : pair of float, optional
            Range of scores to show.
        color : color, optional
            Colour of the curve.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        ax = _pyplot_axes(ax, 4.2, 4.7)
        label = _read_name(self.estimator_name if name is None else name)
        diagram = replace(self.diagram, name=label, color=color)
        layout = Layout(limits=limits, margin=margin, deviation=deviation)
        (self.line_,) = draw_diagrams(ax, [diagram], layout)
        self.ax_, self.figure_ = ax, ax.figure.figure
        if self.pos_label is not None:
            ax.set_xlabel(f"predicted probability of class {self.pos_label}")
        return self


class CumulativeDisplay(Display):
    """A plot of cumulative differences by scikit-learn's conventions.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    curve : CumulativeCurve
        The cumulative difference between outcomes and predictions.
    note : result or str, optional
        What is written beside the curve.
    estimator_name : str, optional
        Name of the estimator.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Attributes
    ----------
    line_ : matplotlib artist
        The curve.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    calibrant.plot.cumulative : The same plot of predictions.

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
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        note: bool | Note = True,
        color: Any = None,
        **options: Any,
    ) -> Self:
        """Make and draw a plot of the cumulative differences of predictions.

        Parameters
        ----------
        y_true : array_like
            Outcomes: 0/1, bool or yes/no; two labels with `pos_label`; or classes.
        y_prob : array_like
            Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
        name : str, optional
            Name of the predictions.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure by default.
        note : bool, result or str
            What is written beside the curve. True: the result of the cumulative test.
        color : color, optional
            Colour of the curve.
        **options
            Options of :func:`calibrant.cumulative_test`.

        Returns
        -------
        CumulativeDisplay
            The display, drawn.
        """
        found = gather_cumulative(Model(_read_name(name), y_true, y_prob, options), note)
        pos_label = options.get("pos_label")
        display = cls(found.curve, note=found.note, estimator_name=name, pos_label=pos_label)
        return display.plot(ax=ax, color=color)

    def plot(self, *, ax: Axes | None = None, name: str | None = None, color: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure by default.
        name : str, optional
            Name in place of `estimator_name`.
        color : color, optional
            Colour of the curve.

        Returns
        -------
        CumulativeDisplay
            The display itself.
        """
        ax = _pyplot_axes(ax, 5.4, 3.8)
        label = _read_name(self.estimator_name if name is None else name)
        (self.line_,) = draw_cumulative(
            ax, [CumulativeDiagram(self.curve, self.note, label, color)]
        )
        self.ax_, self.figure_ = ax, ax.figure.figure
        return self


def _pyplot_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given Axes, or that of a new figure of pyplot's."""
    import matplotlib.pyplot as plt

    check_axes(ax)
    return plt.subplots(figsize=(width, height), layout="compressed")[1] if ax is None else ax


def _read_name(name: object) -> str:
    if name is not None and not isinstance(name, str):
        raise CalibrantError("must be text", argument="name", value=name)
    return name or ""


def _probabilities(estimator: Any, X: Any) -> tuple[AnyArray, list[Any]]:
    """Return the class probabilities of a fitted classifier, and the class of each column."""
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        rule = "{name} has no predict_proba, and calibration needs probabilities"
        raise CalibrantError(rule, hint="CalibratedClassifierCV makes them", name=name)
    check_is_fitted(estimator)
    classes = getattr(estimator, "classes_", None)
    if not isinstance(classes, np.ndarray):
        raise CalibrantError(f"{name} must have one array of classes in classes_")
    return estimator.predict_proba(X), classes.tolist()


class CalibrationScorer:
    """A calibration error as a scorer: its negative, so that greater is better.

    It takes the classes from the estimator, so that a fold may lack some of them.

    Parameters
    ----------
    measure : callable
        A measure of calibrant, such as :func:`calibrant.smooth_ece`.
    **options
        Options of the measure, such as ``n_bins=10``, ``multiclass="classwise"`` or, for two
        classes, `pos_label`.

    Notes
    -----
    Do not select models by calibration alone: one that always predicts the base rate is calibrated.
    Select by a proper score, such as scikit-learn's "neg_brier_score", and report these beside it.

    See Also
    --------
    calibrant.recalibration.recalibrate : Select a calibrator by a proper score.

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
        set_per_call = ("labels", "sample_weight")
        known = [name for name in validation.keywords(measure) if name not in set_per_call]
        validation.check_options(options, known, _name_of(measure))
        self.measure = measure
        self.options = options
        self._request = MetadataRequest(owner=type(self).__name__)
        self._request.score.add_request(param="sample_weight", alias=None)

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the negative error of the probabilities of a fitted classifier."""
        y_prob, classes = _probabilities(estimator, X)
        return -self.measure(y, y_prob, labels=classes, sample_weight=sample_weight, **self.options)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Request sample weights, or not, where scikit-learn routes metadata."""
        self._request.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata requested of scikit-learn."""
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
