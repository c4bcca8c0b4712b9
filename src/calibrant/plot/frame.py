"""The part of the plane that a reliability diagram shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from calibrant.arrays import FloatArray
from calibrant.plot.diagram import Window
from calibrant.plot.margin import MARGIN
from calibrant.plot.style import open_frame
from calibrant.results.curves import Curve

__all__ = ["Frame"]

# What the axes are called: whether of confidences, and whether of deviations.
_WORDS = {
    (False, False): ("predicted probability", "observed frequency"),
    (False, True): ("predicted probability", "observed less predicted"),
    (True, False): ("confidence", "accuracy"),
    (True, True): ("confidence", "accuracy less confidence"),
}


@dataclass(frozen=True)
class Frame:
    """The part of the plane that is shown, and the share of the Axes below it.

    Attributes
    ----------
    window
        The scores along the first axis.
    low, high
        What is shown along the second axis.
    margin
        The share of the height that is left below, for where outcomes lie.
    deviation
        Whether outcomes are shown less predictions.
    is_confidence
        Whether predictions are confidences, and outcomes whether they were right.
    """

    window: Window
    low: float
    high: float
    margin: float
    deviation: bool
    is_confidence: bool = False

    @classmethod
    def around(cls, window: Window, curves: list[Curve], *, margin: bool, deviation: bool) -> Frame:
        """Return the square on the diagonal, or for deviations as much below 0 as above."""
        share = MARGIN if margin else 0.0
        if not deviation:
            return cls(window, window.low, window.high, share, deviation)
        heights = np.concatenate([v for c in curves for v in (c.y, c.lower, c.upper)])
        most = 1.1 * float(np.nanmax(np.abs(heights))) or 0.1
        return cls(window, -most, most, share, deviation)

    @property
    def foot(self) -> float:
        """Where bars stand."""
        return 0.0 if self.deviation else self.low

    def set_up(self, ax: Axes) -> None:
        """Give an Axes its limits, ticks and words."""
        open_frame(ax)
        room = (self.high - self.low) * self.margin / (1 - self.margin)
        ax.set_xlim(self.window.low, self.window.high)
        ax.set_ylim(self.low - room, self.high)
        ax.set_xticks(_ticks(self.window.low, self.window.high))
        ax.set_yticks(_ticks(self.low, self.high))
        ax.spines["left"].set_bounds(self.low, self.high)
        predicted, observed = _WORDS[self.is_confidence, self.deviation]
        ax.set_xlabel(predicted)
        ax.set_ylabel(observed, y=(1 + self.margin) / 2)
        if not self.deviation:
            ax.set_aspect("equal", adjustable="box")


def _ticks(low: float, high: float) -> FloatArray:
    ticks = np.asarray(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    slack = 1e-9 * (high - low)
    return ticks[(ticks >= low - slack) & (ticks <= high + slack)]
