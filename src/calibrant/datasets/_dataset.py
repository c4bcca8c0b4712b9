"""What every loader and simulator hands out: outcomes and predictions that cannot change."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_ROWS", "ConfidenceDataset", "Dataset", "FloatArray"]

FloatArray = npt.NDArray[np.float64]
# Eight gigabytes of probabilities.
MAX_ROWS = 1_000_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Outcomes with the probabilities that were predicted for them.

    Iterating gives the two arrays in the order that every measure takes them, so
    ``y_true, y_prob = load_rain()`` and ``measure(*load_rain())`` both work. The arrays are
    read-only.

    Attributes
    ----------
    y_true : ndarray of uint8, shape (n,)
        The outcomes, 0 or 1.
    y_prob : ndarray of float64, shape (n,)
        The predicted probabilities of outcome 1.
    name : str
        A short name.
    source : str
        Where the values come from, and under which licence.
    """

    y_true: npt.NDArray[np.uint8]
    y_prob: FloatArray
    name: str
    source: str

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                # A view, so that locking it leaves the caller's own array as it was.
                locked = value.view()
                locked.flags.writeable = False
                object.__setattr__(self, field.name, locked)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.y_true)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        yield self.y_true
        yield self.y_prob

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, n={self.n})"


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceDataset(Dataset):
    """The confidence problem of a classifier: is the predicted class right.

    Here `y_true` is 1 where the predicted class is the true one, and `y_prob` is the probability
    the classifier gave to the predicted class.

    Attributes
    ----------
    true_label : ndarray of uint16, shape (n,)
        The index of the true class.
    pred_label : ndarray of uint16, shape (n,)
        The index of the predicted class.
    """

    true_label: npt.NDArray[np.uint16]
    pred_label: npt.NDArray[np.uint16]
