"""Cumulative plots by scikit-learn's conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from calibrant.integrations.sklearn.display import Display, axes_of_pyplot, read_name
from calibrant.plot.arguments import Model
from calibrant.plot.cumulative_plot import (
    CumulativeDiagram,
    draw_cumulative,
    gather_cumulative,
)
from calibrant.plot.text import Note
from calibrant.results.curves import CumulativeCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CumulativeDisplay"]


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
