"""Tables as data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from calibrant.arrays import AnyArray, FloatArray, IntArray
from calibrant.results.formatting import percent, shortened
from calibrant.results.result import Result, frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class BinTable(Result):
    """Predictions and outcomes bin by bin.

    Attributes
    ----------
    edges
        The edges of the bins, one more than there are bins.
    n
        Rows in each bin.
    weight
        Total weight of each bin.
    mean_pred, mean_true
        Weighted means of prediction and outcome; nan where a bin is empty.
    gap
        mean_true - mean_pred: positive where predictions are too low; nan where a bin is empty.
    """

    edges: FloatArray
    n: IntArray
    weight: FloatArray
    mean_pred: FloatArray
    mean_true: FloatArray
    gap: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a bin."""
        names = ("n", "weight", "mean_pred", "mean_true", "gap")
        columns = {"low": self.edges[:-1], "high": self.edges[1:]}
        return frame(columns | {name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        weighted = bool(np.any(self.weight != self.n))
        spans = [f"{low:.4g} - {high:.4g}" for low, high in pairwise(self.edges)]
        width = max(15, *map(len, spans))
        heading = f"{'bin':>{width}} {'n':>9} " + (f"{'weight':>9} " if weighted else "")
        lines = [heading + f"{'mean_pred':>9} {'mean_true':>9} {'gap':>8}"]
        for k, span in enumerate(spans):
            line = f"{span:>{width}} {self.n[k]:>9} "
            line += f"{self.weight[k]:>9.6g} " if weighted else ""
            means = f"{self.mean_pred[k]:9.4f} {self.mean_true[k]:9.4f} {self.gap[k]:+8.4f}"
            lines.append(line + (means if self.n[k] else "    empty"))
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class BiasTable(Result):
    """Predictions and outcomes along a feature, one row a value, a bin or a name.

    Attributes
    ----------
    feature
        The name of the feature's column; empty where it has none.
    kind
        What the feature holds: "names", "numbers" or "dates".
    label
        What each row is about, in words.
    minimum, maximum, mean
        The minimum, maximum and mean value of the feature in each row: numbers, or datetime64;
        nan, or NaT, for names and for what is missing.
    n
        Rows of data in each.
    weight
        Total weight of each.
    mean_pred, mean_true
        Weighted means of prediction and outcome.
    gap
        mean_true - mean_pred: positive where predictions are too low.
    low, high
        The ends of the interval of the gap.
    level
        How often intervals should hold.
    simultaneous
        Whether all should hold at once, or each by itself.
    has_missing
        Whether the last row is of data without a value.
    n_pooled
        How many names share the row of others; 0 where all have their own.
    is_confidence
        Whether predictions are the confidence in a predicted class, and outcomes its accuracy.
    """

    feature: str
    kind: str
    label: tuple[str, ...]
    minimum: AnyArray
    maximum: AnyArray
    mean: AnyArray
    n: IntArray
    weight: FloatArray
    mean_pred: FloatArray
    mean_true: FloatArray
    gap: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    simultaneous: bool
    has_missing: bool = False
    n_pooled: int = 0
    is_confidence: bool = False

    def __len__(self) -> int:
        return len(self.label)

    @property
    def is_biased(self) -> npt.NDArray[np.bool_]:
        """Where the interval leaves out 0."""
        return np.asarray((self.low > 0) | (self.high < 0))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a value, a bin or a name."""
        measured = ("n", "weight", "mean_pred", "mean_true", "gap", "low", "high")
        values = () if self.kind == "names" else ("minimum", "maximum", "mean")
        names = ("label", *values, *measured)
        return frame({name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        weighted = bool(np.any(self.weight != self.n))
        first, *names = map(shortened, (self.feature or "feature", *self.label))
        width = max(map(len, (first, *names)))
        heading = f"{first:{width}} {'n':>9} " + (f"{'weight':>9} " if weighted else "")
        interval = f"{percent(self.level)} interval"
        lines = [heading + f"{'mean_pred':>9} {'mean_true':>9} {'gap':>8} {interval:>16}"]
        for k, name in enumerate(names):
            line = f"{name:{width}} {self.n[k]:>9} "
            line += f"{self.weight[k]:>9.6g} " if weighted else ""
            gap = round(float(self.gap[k]), 4) + 0.0  # which takes the sign off a zero
            line += f"{self.mean_pred[k]:9.4f} {self.mean_true[k]:9.4f} {gap:+8.4f} "
            line += f"{self.low[k]:+8.4f}{self.high[k]:+8.4f}"
            lines.append(line + (" *" if self.is_biased[k] else ""))
        scope = "all at once" if self.simultaneous else "each by itself"
        found = "* 0 lies outside; " if self.is_biased.any() else ""
        return "\n".join([*lines, f"{found}intervals hold {scope}"])
