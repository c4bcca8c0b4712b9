"""Assessment: the whole picture of one set of predictions."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.assessment.classes import ClassRow
from calibrant.assessment.verdict import Verdict
from calibrant.curves.reliability_view import ReliabilityView
from calibrant.errors import CalibrantError
from calibrant.files import write_atomically
from calibrant.inference.estimate_result import Estimate
from calibrant.results.curves import CumulativeCurve, Curve
from calibrant.results.masses import PointMasses
from calibrant.results.p_values import TestResult
from calibrant.results.result import Result, frame
from calibrant.results.tables import BinTable
from calibrant.results.values import Interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Assessment"]


@dataclass(frozen=True)
class Settings(Result):
    """How an assessment was made, so that it can be made again."""

    level: float
    n_resamples: int
    seed: int | None
    n_bins: int
    problem: str
    version: str


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Result):
    """The whole picture of one set of predictions.

    Attributes
    ----------
    verdict
        What may be said in plain words; `print` it.
    n
        How many rows carry weight.
    weight
        Their total weight.
    prevalence, mean_prediction
        Weighted means of outcomes and predictions.
    bias
        prevalence - mean_prediction, with an interval: negative where predictions are too high.
    slope
        How fast outcomes rise with predictions, by least squares: below 1 where they are too
        extreme; nan where there is only one score.
    estimates
        Calibration errors with their intervals.
    brier_score
        The mean squared error, which also rewards sharpness.
    test
        The cumulative test of calibration; None where noise is unknown (soft labels) or there is
        none (predictions of 0 and 1 alone).
    curves
        Reliability curves, "smooth", "binned", and "isotonic" where rows were given, each with a
        confidence band for the whole of it; the last is thinned to what can be seen.
    cumulative
        The cumulative deviation, thinned to what can be seen.
    bins
        Counts and means bin by bin.
    masses
        Single scores that many rows have: each, where there are but a few distinct scores; else
        those that hold a twentieth of the weight, at least 30 rows, and ten times as many as the
        scores next to them.
    classes
        For (n, C) probabilities, each class against the rest.
    notes
        What is unusual about the data.
    settings
        How all this was made.
    """

    verdict: Verdict
    n: int
    weight: float
    prevalence: float
    mean_prediction: float
    bias: Interval
    slope: Interval
    estimates: tuple[Estimate, ...]
    brier_score: float
    test: TestResult | None
    curves: tuple[Curve, ...]
    cumulative: CumulativeCurve
    bins: BinTable
    masses: PointMasses
    classes: tuple[ClassRow, ...]
    notes: tuple[str, ...]
    settings: Settings

    def __getitem__(self, measure: str) -> Estimate:
        """Return the estimate of a measure by its name."""
        for one in self.estimates:
            if one.measure == measure:
                return one
        known = ", ".join(one.measure for one in self.estimates)
        raise CalibrantError(f"there is no estimate of {measure!r} here; there are: {known}")

    def curve(self, method: str) -> Curve:
        """Return the reliability curve of this method."""
        for one in self.curves:
            if one.method == method:
                return one
        known = ", ".join(one.method for one in self.curves)
        raise CalibrantError(f"there is no {method!r} curve here; there are: {known}")

    def reliability_view(self, method: str = "smooth") -> ReliabilityView:
        """Return what a reliability diagram of one of the curves shows, whatever draws it."""
        tables = {"bins": self.bins} if method == "binned" else {"outcomes": self.bins}
        measure = {"smooth": "smooth_ece", "binned": "ece"}.get(method)
        return ReliabilityView(
            self.curve(method),
            masses=self.masses,
            scores=self.cumulative.score[[0, -1]],
            n=self.n,
            is_confidence=self.is_confidence,
            measured=None if measure is None else self[measure],
            **tables,
        )

    @property
    def is_confidence(self) -> bool:
        """Whether predictions are the confidence in a predicted class."""
        return self.settings.problem == "confidence"

    @property
    def mean_names(self) -> tuple[str, str]:
        """What `prevalence` and `mean_prediction` are called wherever they are printed."""
        if self.is_confidence:
            return "accuracy", "mean confidence"
        return "prevalence", "mean prediction"

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a measure."""
        names = ("measure", "value", "bias_corrected", "low", "high", "level", "n", "error_bound")
        return frame({name: [getattr(one, name) for one in self.estimates] for name in names})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw verdict, reliability diagram, cumulative plot and errors; return the Axes.

        Without `ax` a new figure is made that pyplot does not know of: see :mod:`calibrant.plot`.
        """
        from calibrant.plot.panels import assessment  # layers: a result may ask to be shown

        return assessment(self, ax=ax)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        from calibrant.plot.style import picture  # layers: a result may ask to be shown

        return picture(self.plot())

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Calibration report",
        source: Mapping[str, str] | str = "",
    ) -> str:
        """Return one self-contained page, and write it to `path` if that is given.

        Parameters
        ----------
        path
            Where to write it.
        title
            The heading of the page.
        source
            What it is about, for its head: a few words, or several by name, such as
            ``{"File": "rain.csv", "Predictions": "p"}``.

        Returns
        -------
        str
            The page: verdict, interactive diagrams, tables, and the numbers to download; about
            2 MB, and no network is needed. For several models see ``calibrant.report``.
        """
        from calibrant.report.page import page  # layers: a result may ask to be shown

        text = page(self, title=title, source=source)
        if path is not None:
            write_atomically(path, text.encode())
        return text

    def _repr_html_(self) -> str:
        from calibrant.report.page import fragment  # layers: a result may ask to be shown

        return fragment(self)

    def __repr__(self) -> str:
        width = max(len(one.measure) for one in self.estimates)
        lines = [str(self.verdict), ""]
        lines.append(f"{'':{width}} {'value':>8} {'low':>8} {'high':>8} {'corrected':>9}")
        lines += [
            f"{one.measure:{width}} {one.value:8.4f} {one.low:8.4f} {one.high:8.4f} "
            f"{one.bias_corrected:9.4f}"
            for one in self.estimates
        ]
        lines += [
            f"{name:{width}} {one.value:8.4f} {one.low:8.4f} {one.high:8.4f}"
            for name, one in (("bias", self.bias), ("slope", self.slope))
            if not math.isnan(one.value)
        ]
        lines += ["", f"n = {self.n}, {self._means()}, Brier score {self.brier_score:.4g}"]
        lines += [f"- {note}" for note in self.notes]
        return "\n".join(lines)

    def _means(self) -> str:
        observed, predicted = self.mean_names
        return f"{observed} {self.prevalence:.4g}, {predicted} {self.mean_prediction:.4g}"
