"""What a reliability diagram shows, gathered from results before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.curves.reliability import reliability_curve
from calibrant.curves.reliability_view import Mask, Window, near_scores, score_range
from calibrant.errors import CalibrantError
from calibrant.inference.estimate import estimate
from calibrant.measures.bin_table import bin_table
from calibrant.measures.masses import are_few, point_masses
from calibrant.measures.scores import score_decomposition
from calibrant.multiclass import one_problem
from calibrant.plot.models import ABOUT_ROWS, Model
from calibrant.plot.wording import Note, read_note
from calibrant.results.curves import Curve
from calibrant.results.masses import PointMasses
from calibrant.results.tables import BinTable
from calibrant.sketches.state import Sketch

__all__ = ["Diagram", "gather", "window_of"]

# How many places for outcomes there are along an axis: about one a point of print.
_PLACES = 200


@dataclass(frozen=True, eq=False)
class Diagram:
    """The results in one model's reliability diagram.

    Attributes
    ----------
    curve
        The outcome to expect at each score.
    outcomes
        A table of narrow bins that says where outcomes lie; None where it is not known.
    bins
        The bins of a binned curve; None for others.
    note
        What is said about the model in words; with no words at all, its band goes without, too.
    name
        The name of the model; empty where there is but one.
    color
        Its colour; None for the next one in turn.
    is_confidence
        Whether predictions are the confidence in a predicted class.
    masses
        Single scores that many rows have; None where they are not known.
    scores
        The lowest and the highest score; None where they are not known.
    """

    curve: Curve
    outcomes: BinTable | None = None
    bins: BinTable | None = None
    note: Note | None = None
    name: str = ""
    color: Any = None
    is_confidence: bool = False
    masses: PointMasses | None = None
    scores: FloatArray | None = None

    @property
    def rows(self) -> BinTable | None:
        """The table that says best where outcomes lie."""
        return self.bins if self.outcomes is None else self.outcomes

    @property
    def known_scores(self) -> FloatArray | None:
        """Scores that say how far rows reach; None where no row is known."""
        if self.scores is None and self.rows is not None:
            return self.rows.mean_pred
        return self.scores

    @property
    def is_binned(self) -> bool:
        """Whether the curve has a point a bin."""
        return self.curve.method == "binned"

    @property
    def is_smooth(self) -> bool:
        """Whether the curve is one of kernels, and has a density of scores."""
        return self.curve.method in ("smooth", "density", "local")

    @property
    def seen(self) -> Mask:
        """Where the curve is drawn: where it is known, within a bandwidth of some row."""
        known = np.isfinite(self.curve.y) & near_scores(self.curve, self.scores)
        if self.outcomes is None or not self.is_smooth:
            return known
        return np.asarray(known & (_distance(self.curve.x, self.outcomes) <= self.curve.bandwidth))

    def shown(self, window: Window, *, deviation: bool) -> Curve:
        """Return the curve, nan where it is not drawn, less the diagonal if asked for."""
        curve = self.curve
        known = self.seen & window.holds(curve.x)
        y, lower, upper = (np.where(known, v, np.nan) for v in (curve.y, curve.low, curve.high))
        if curve.method == "local":
            return replace(curve, y=y, low=lower, high=upper)
        level = curve.x if deviation else 0.0
        return replace(curve, y=y - level, low=lower - level, high=upper - level)

    def marked(self, *, deviation: bool) -> PointMasses | None:
        """Return what is marked place by place, less the diagonal if asked for."""
        masses = self.masses
        if masses is None and self.outcomes is not None:
            masses = _few_bins(self.outcomes)
        if masses is None or self.is_binned:
            return None
        return masses.less_scores() if deviation else masses

    def heights(self, window: Window, *, deviation: bool) -> list[FloatArray]:
        """Return all that is drawn up and down the second axis."""
        curve = self.shown(window, deviation=deviation)
        drawn = [curve.y, curve.low, curve.high]
        if (masses := self.marked(deviation=deviation)) is not None:
            drawn.append(masses.outcome[window.holds(masses.score)])
        return drawn


def window_of(diagrams: Sequence[Diagram]) -> Window:
    """Return the window that shows all of some diagrams."""
    return Window.around((one.curve, one.known_scores) for one in diagrams)


def _few_bins(table: BinTable) -> PointMasses | None:
    """Return the means of a table's bins where those are few, else nothing."""
    filled = table.n > 0
    if not are_few(table.n[filled]):
        return None
    share = table.weight[filled] / table.weight.sum()
    return PointMasses(table.mean_pred[filled], table.mean_true[filled], share, is_all=True)


def _distance(x: FloatArray, table: BinTable) -> FloatArray:
    """Return how far each x is from the nearest bin that is not empty; 0 inside of one."""
    filled = table.n > 0
    starts, ends = table.edges[:-1][filled], table.edges[1:][filled]
    after = np.searchsorted(starts, x, side="right")
    to_next = np.append(starts, np.inf)[after] - x
    from_last = x - np.concatenate(([-np.inf], ends))[after]
    return np.maximum(np.minimum(to_next, from_last), 0.0)


def gather(model: Model, table: BinTable | None, note: bool | Note) -> Diagram:
    """Return the results of a model, asking for those that were not given."""
    note = read_note(note)
    if table is not None and not isinstance(table, BinTable):
        raise CalibrantError("must be a BinTable", argument="table", value=table)
    words = {True: None, False: ""}[note] if isinstance(note, bool) else note
    if isinstance(model.y_true, BinTable):
        model.refuse_options("a BinTable")
        return Diagram(_curve_of(model.y_true), None, model.y_true, words, model.name, model.color)
    if isinstance(model.y_true, Curve):
        model.refuse_options("a Curve")
        outcomes, bins = (None, table) if model.y_true.method == "binned" else (table, None)
        return Diagram(model.y_true, outcomes, bins, words, model.name, model.color)
    if table is not None:
        raise CalibrantError("goes with a Curve: rows have their own", argument="table")
    model.check_options("reliability", reliability_curve)
    # A diagram is looked at as a whole, so its band is to hold for all of it.
    asked = {"simultaneous": True, **model.options}
    curve = reliability_curve(model.y_true, model.y_prob, **asked)
    bins = None
    if curve.method == "binned":
        about = model.about_rows("n_bins", "strategy")
        bins = bin_table(model.y_true, model.y_prob, **about)
    if note is True:
        words = _measured(model, curve)
    given = [model.options.get(name) for name in ABOUT_ROWS]
    problem = one_problem(model.y_true, model.y_prob, *given)
    scores = score_range(problem)
    return Diagram(
        curve,
        outcomes=_outcomes(model, Window.around([(curve, scores)]).span),
        bins=bins,
        note=words,
        name=model.name,
        color=model.color,
        is_confidence=model.is_confidence,
        masses=None if bins is not None else point_masses(problem),
        scores=scores,
    )


def _outcomes(model: Model, span: float) -> BinTable:
    """Return where outcomes lie, in bins so narrow that a page shows them as lines."""
    n_bins = _places(model.y_true, span)
    return bin_table(model.y_true, model.y_prob, n_bins=n_bins, **model.about_rows())


def _places(y_true: Any, span: float) -> int:
    """Return into how many bins [0, 1] is cut when so much of it is to be shown."""
    most = round(_PLACES / span)
    if not isinstance(y_true, Sketch):
        return most
    return max(k for k in range(1, most + 1) if y_true.n_cells % k == 0)


def _measured(model: Model, curve: Curve) -> Note:
    """Return the measure that a curve of this kind belongs to, with its interval if it has one."""
    y_true, y_prob = model.y_true, model.y_prob
    if curve.method == "isotonic":
        return score_decomposition(y_true, y_prob, **model.about_rows())
    about = model.about_rows("level", "n_resamples", "rng", "clusters")
    if curve.method == "smooth":
        return estimate("smooth_ece", y_true, y_prob, **about, **_only(model, "bandwidth"))
    if curve.method == "binned" and model.options.get("n_bins") not in ("sweep", "cv"):
        return estimate("ece", y_true, y_prob, **about, **_only(model, "n_bins", "strategy"))
    return curve


def _only(model: Model, *names: str) -> dict[str, Any]:
    return {name: model.options[name] for name in names if name in model.options}


def _curve_of(table: BinTable) -> Curve:
    """Return the curve through a table's bins."""
    filled = table.n > 0
    share = table.weight[filled] / table.weight.sum()
    unknown = np.full(len(share), np.nan)
    return Curve(
        x=table.mean_pred[filled],
        y=table.mean_true[filled],
        density=share / np.diff(table.edges)[filled],
        low=unknown,
        high=unknown,
        bandwidth=float("nan"),
        area=float(np.dot(share, np.abs(table.gap[filled]))),
        method="binned",
    )
