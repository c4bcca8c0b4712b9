"""The synthetic example of Arrieta-Ibarra et al. (2022): miscalibration at every scale."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.datasets import Dataset
from studies.frame import FloatArray

Transform = Literal["identity", "square", "sqrt"]

_TRANSFORMS = {"identity": np.positive, "square": np.square, "sqrt": np.sqrt}
# The published figures draw the outcomes with this seed of Python's own generator.
SEED = 987654321
_DIGITS = 7


@dataclass(frozen=True, eq=False, repr=False)
class Staircase(Dataset):
    """The staircase example, with the probabilities that its outcomes were drawn with.

    Attributes
    ----------
    true_prob : ndarray of float64, shape (n,)
        P(y = 1) of each row.
    """

    true_prob: FloatArray


def cantor_staircase(n: int = 32768, transform: Transform = "identity") -> Staircase:
    """Build the staircase example: deterministic, the very sample of the published figures.

    Scores are s_j = (j + 1/2) / n for j = 0, ..., n - 1, or their squares or square roots, and

        P(y_j = 1) = clip(s_j + D_j - 1 + exp(-e^2 j / n), 0, 1)

    with D a staircase in the manner of Cantor's: write round(8^7 j / n) in base 8, read every
    non-zero digit as 1 and the result as a binary number, divide by 2^7 - 1, and sort. The
    deviation varies on finer and finer scales, which no number of bins resolves.

    Parameters
    ----------
    n : int
        The number of rows.
    transform : {"identity", "square", "sqrt"}
        How the equispaced scores are transformed.

    Returns
    -------
    Staircase
        The sample, in order of score, with the probabilities of outcome 1 as `true_prob`.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), Metrics of calibration for probabilistic
    predictions, Section 3.1 and Figures 1 to 10.

    Examples
    --------
    >>> import numpy as np
    >>> y_true, y_prob = cantor_staircase(transform="sqrt")
    >>> round(float(np.abs(np.cumsum(y_true - y_prob)).max()) / len(y_prob), 5)
    0.01243
    """
    step = np.arange(n)
    y_prob = _TRANSFORMS[transform]((step + 0.5) / n)
    probability = y_prob + _stairs(n) - 1 + np.exp(-(math.e**2) * step / n)
    draw = random.Random(SEED).random
    y_true = np.array([draw() for _ in range(n)]) <= probability
    return Staircase(
        y_true=y_true.astype(np.uint8),
        y_prob=y_prob,
        name=f"cantor_staircase_{transform}",
        source="simulated, after Arrieta-Ibarra et al. (2022), Section 3.1",
        true_prob=np.clip(probability, 0, 1),
    )


def _stairs(n: int) -> FloatArray:
    """Return the staircase D, which climbs from 0 to 1 in 2^7 levels."""
    # For n above 2^22 the last positions would round up to an eighth digit.
    position = np.minimum(np.rint(np.arange(n) * 8.0**_DIGITS / n), 8.0**_DIGITS - 1)
    octal = position.astype(np.int64)
    total = np.zeros(n, dtype=np.int64)
    for digit in range(_DIGITS):
        non_zero = (octal >> (3 * digit)) & 7 > 0
        total += non_zero.astype(np.int64) << digit
    return np.sort(total / (2**_DIGITS - 1))
