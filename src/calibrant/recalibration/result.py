"""What recalibrate found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from calibrant.arrays import FloatArray
from calibrant.assessment.result import Assessment
from calibrant.files import write_atomically
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.trial import Candidate
from calibrant.results.result import Result, frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Recalibration"]


@dataclass(frozen=True, eq=False, repr=False)
class Recalibration(Result):
    """A calibrator that helps on held-out rows, or none, and what that rests on.

    Attributes
    ----------
    method
        The name of the method chosen; "none" where the probabilities are best left alone.
    calibrator
        That method fitted to all rows; one that changes nothing for "none".
    score
        The proper score that decided: "brier" or "log".
    score_before
        The mean score of the probabilities as given.
    candidates
        How every method did on held-out rows.
    before, after
        Assessments of the probabilities as given, and of those mended while held out.
    held_out
        The latter probabilities themselves: no row was mended by a map that had seen it.
    cv, level
        As asked for.
    """

    method: str
    calibrator: Calibrator
    score: str
    score_before: float
    candidates: tuple[Candidate, ...]
    before: Assessment
    after: Assessment
    held_out: FloatArray
    cv: int
    level: float

    @property
    def helps(self) -> bool:
        """Whether any method helps beyond noise."""
        return self.method != "none"

    def predict(self, y_prob: Any) -> FloatArray:
        """Return other probabilities as mended by the calibrator."""
        return self.calibrator.predict(y_prob)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, but for the calibrator, which has its own `save`."""
        plain = super().to_dict() | {
            "candidates": [one.to_dict() for one in self.candidates],
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }
        return {
            field.name: plain[field.name] for field in fields(self) if field.name != "calibrator"
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a method."""
        names = [field.name for field in fields(Candidate)]
        return frame({name: [getattr(one, name) for one in self.candidates] for name in names})

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Recalibration",
        source: Mapping[str, str] | str = "",
    ) -> str:
        """Return a page with the assessments before and after, and write it if `path` is given.

        As :meth:`calibrant.Assessment.to_html`, with a table of methods and gains. Where nothing
        helps, only the first assessment is shown.
        """
        from calibrant.report.page import page

        both = {"as given": self.before, f"{self.method}, held out": self.after}
        shown = both if self.helps else self.before
        text = page(shown, title=title, source=source, trials=self)
        if path is not None:
            write_atomically(path, text.encode())
        return text

    def __repr__(self) -> str:
        width = max(len(one.method) for one in self.candidates)
        lines = [
            f"{self._sentence()}",
            "",
            f"{'':{width}} {self.score:>8} {'gain':>9} {'error':>8} {'P':>8}",
            f"{'as given':{width}} {self.score_before:8.4f}",
        ]
        lines += [
            f"{one.method:{width}} {one.score:8.4f} {one.improvement:+9.5f} "
            f"{one.standard_error:8.5f} {one.p_value:8.2g}"
            for one in self.candidates
        ]
        return "\n".join(lines)

    def _sentence(self) -> str:
        if not self.helps:
            return (
                f"Leave it alone: no method lowers the {self.score} score on held-out rows beyond "
                f"noise (level {self.level:g}, {self.cv} parts)."
            )
        before, after = (one["smooth_ece"].value for one in (self.before, self.after))
        return (
            f"{self.method} helps: on held-out rows smooth_ece goes from {before:.4f} to "
            f"{after:.4f} (level {self.level:g}, {self.cv} parts)."
        )
