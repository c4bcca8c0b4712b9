"""What displays have in common: reliability diagrams and cumulative plots as scikit-learn has them.

A display keeps results, not rows. Where no `ax` is given the figure is pyplot's, as it is with
scikit-learn's own displays, so that ``plt.show()`` shows it. A display drawn on the Axes of another
is added to it, in the next colour and with its own name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from calibrant.errors import CalibrantError
from calibrant.integrations.sklearn.classifiers import probabilities
from calibrant.plot.style import check_axes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Display", "axes_of_pyplot", "read_name"]


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
