"""What calibrant gives back: frozen dataclasses that print well and turn into dictionaries."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


class Result:
    """What all results share."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, arrays as lists, ready for JSON."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


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
        import pandas as pd

        columns = {"low": self.edges[:-1], "high": self.edges[1:]}
        names = ("n", "weight", "mean_pred", "mean_true", "gap")
        return pd.DataFrame(columns | {name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        lines = [f"{'bin':>15} {'n':>9} {'mean_pred':>9} {'mean_true':>9} {'gap':>8}"]
        for k in range(len(self.n)):
            span = f"{self.edges[k]:.4g} - {self.edges[k + 1]:.4g}"
            means = f"{self.mean_pred[k]:9.4f} {self.mean_true[k]:9.4f} {self.gap[k]:+8.4f}"
            lines.append(f"{span:>15} {self.n[k]:>9} " + (means if self.n[k] else "    empty"))
        return "\n".join(lines)


@dataclass(frozen=True)
class ScoreDecomposition(Result):
    """A mean score split into what calibration costs, what discrimination gains, and the rest.

    score = miscalibration - discrimination + uncertainty, exactly.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value
