"""Requests: what a command line says about its input, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.sources.faults import OnInvalid


@dataclass(frozen=True)
class Wanted:
    """The columns that the command line names: all, some or none."""

    label: str | None = None
    probs: tuple[str, ...] = ()
    weight: str | None = None
    by: str | None = None
    along: str | None = None


@dataclass(frozen=True)
class Request:
    """What a command line says about its input.

    With `each`, every column of probabilities is a model of its own; otherwise several are classes
    of one. `on_invalid` is None where the command knows nothing but refusal.
    """

    files: tuple[str, ...]
    wanted: Wanted = field(default_factory=Wanted)
    pos_label: str | None = None
    multiclass: str | None = None
    on_invalid: OnInvalid | None = None
    form: str | None = None
    each: bool = False

    def source(self) -> dict[str, str]:
        """Return what a page made for this request is about."""
        names = {
            "File": ", ".join(Path(file).name for file in self.files),
            "Outcomes": self.wanted.label or "",
            "Predictions": ", ".join(self.wanted.probs),
            "Weights": self.wanted.weight or "",
            "Groups": self.wanted.by or "",
            "Date": date.today().isoformat(),
        }
        return {name: words for name, words in names.items() if words}

    def check_speaks_of_no_column(self) -> None:
        """Refuse to be about a sketch and about columns, which it has no more."""
        about = {
            "--label": self.wanted.label,
            "--prob": self.wanted.probs,
            "--weight": self.wanted.weight,
            "--by": self.wanted.by,
            "--along": self.wanted.along,
            "--pos-label": self.pos_label,
            "--multiclass": self.multiclass,
        }
        given = [option for option, value in about.items() if value]
        if given:
            raise CalibrantError(f"a sketch has no columns: leave out {', '.join(given)}")
