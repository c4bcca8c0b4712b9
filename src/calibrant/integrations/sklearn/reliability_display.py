"""Reliability diagrams by scikit-learn's conventions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from calibrant.integrations.sklearn.display import Display, axes_of_pyplot, read_name
from calibrant.plot.arguments import Model
from calibrant.plot.reliability_plot import Diagram, Layout, Margin, draw_diagrams, gather
from calibrant.plot.text import Note
from calibrant.results.curves import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReliabilityDisplay"]


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
