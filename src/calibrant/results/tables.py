"""Tables as data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from calibrant.arrays import FloatArray, IntArray
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
