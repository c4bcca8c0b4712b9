"""The part of the plane that a reliability diagram shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox, TransformedBbox

from calibrant import checks
from calibrant.arrays import FloatArray
from calibrant.curves.reliability_view import Mask, Window
from calibrant.errors import CalibrantError
from calibrant.plot.style import open_frame

__all__ = ["Frame", "Margin", "check_limits", "check_margin"]

# What is shown beside the diagram: nothing, outcomes below, or recalibrated scores as well.
Margin = bool | Literal["both"]

# The share of the Axes that a strip beside the diagram takes.
_STRIP = 0.17

# What the axes are called: whether of confidences, and whether of deviations.
_WORDS = {
    (False, False): ("predicted probability", "observed frequency"),
    (False, True): ("predicted probability", "observed less predicted"),
    (True, False): ("confidence", "accuracy"),
    (True, True): ("confidence", "accuracy less confidence"),
}


@dataclass(frozen=True)
class Frame:
    """The part of the plane that is shown, and the shares of the Axes beside it.

    Attributes
    ----------
    window
        The scores along the first axis.
    low, high
        What is shown along the second axis.
    margin
        The share of the height that is left below, for where outcomes lie.
    side
        The share of the width that is left on the right, for recalibrated scores.
    deviation
        Whether outcomes are shown less predictions.
    is_confidence
        Whether predictions are confidences, and outcomes whether they were right.
    """

    window: Window
    low: float
    high: float
    margin: float
    side: float
    deviation: bool
    is_confidence: bool = False

    @classmethod
    def around(
        cls, window: Window, heights: list[FloatArray], *, margin: Margin, deviation: bool
    ) -> Frame:
        """Return the square on the diagonal, or for deviations as much below 0 as above."""
        below, side = _STRIP * bool(margin), _STRIP * (margin == "both")
        if not deviation:
            return cls(window, window.low, window.high, below, side, deviation)
        most = 1.1 * float(np.nanmax(np.abs(np.concatenate(heights)))) or 0.1
        return cls(window, -most, most, below, side, deviation)

    @property
    def foot(self) -> float:
        """Where bars stand."""
        return 0.0 if self.deviation else self.low

    def holds(self, x: FloatArray, y: FloatArray) -> Mask:
        """Tell which points are shown."""
        slack = 1e-9 * (self.high - self.low)
        return self.window.holds(x) & (y >= self.low - slack) & (y <= self.high + slack)

    def clip(self, ax: Axes, artist: Artist) -> None:
        """Cut off what of an artist lies beyond, strips beside the diagram included."""
        box = Bbox([[self.window.low, self.low], [self.window.high, self.high]])
        artist.set_clip_box(TransformedBbox(box, ax.transData))

    def set_up(self, ax: Axes) -> None:
        """Give an Axes its limits, ticks and words."""
        open_frame(ax)
        below = (self.high - self.low) * self.margin / (1 - self.margin)
        beside = self.window.span * self.side / (1 - self.side)
        ax.set_xlim(self.window.low, self.window.high + beside)
        ax.set_ylim(self.low - below, self.high)
        ax.set_xticks(_ticks(self.window.low, self.window.high))
        ax.set_yticks(_ticks(self.low, self.high))
        ax.spines["left"].set_bounds(self.low, self.high)
        ax.spines["bottom"].set_bounds(self.window.low, self.window.high)
        predicted, observed = _WORDS[self.is_confidence, self.deviation]
        ax.set_xlabel(predicted, x=(1 - self.side) / 2)
        ax.set_ylabel(observed, y=(1 + self.margin) / 2)
        if not self.deviation:
            ax.set_aspect("equal", adjustable="box")


def check_margin(margin: object) -> None:
    """Refuse what is no margin."""
    if not isinstance(margin, bool | np.bool_) and not (
        isinstance(margin, str) and margin == "both"
    ):
        raise CalibrantError("must be True, False or 'both'", argument="margin", value=margin)


def check_limits(limits: object) -> None:
    """Refuse what is no interval of scores."""
    low, high = checks.as_pair(limits)
    if not 0 <= low < high <= 1:
        raise CalibrantError(
            "must be two scores 0 <= low < high <= 1", argument="limits", value=limits
        )


def _ticks(low: float, high: float) -> FloatArray:
    ticks = np.asarray(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    slack = 1e-9 * (high - low)
    return ticks[(ticks >= low - slack) & (ticks <= high + slack)]
