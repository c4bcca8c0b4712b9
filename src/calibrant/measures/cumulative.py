"""Cumulative calibration errors: the maximum excursion of cumulative differences from 0.

No bins and no bandwidth: rows are taken in order of score and their residuals summed. See
:mod:`calibrant.measures.cumulative_differences` for the definitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant import checks
from calibrant.arrays import FloatArray
from calibrant.binning import Bins
from calibrant.measures.cumulative_differences import (
    Statistic,
    cumulative_differences,
    excursion_error,
    known_sigma,
)
from calibrant.measures.image_norms import MaxNorm, RangeNorm
from calibrant.measures.linear_image import LinearImage, total
from calibrant.measures.registry import Measure, MeasureInfo
from calibrant.multiclass import reduce_classes
from calibrant.problem import Problem

__all__ = ["CumulativeError", "ecce_mad", "ecce_r"]

# Cells for the noise of cumulative sums, which exceed those at cell ends by 0.03 sigma on average.
_MOST_CELLS = 512


@dataclass(frozen=True)
class CumulativeError(Measure):
    """The maximum excursion of cumulative differences, as it is or in units of its noise."""

    statistic: Statistic
    normalize: bool = False

    def __call__(self, problem: Problem) -> float:
        """Return the error of one problem."""
        differences = cumulative_differences(problem, only_extremes=True)
        excursion = differences.excursion(self.statistic)
        if self.normalize:
            return excursion / known_sigma(differences, "normalize=True")
        return excursion

    def error_bound(self, problem: Problem) -> float:
        """Bound the distance from the error of the rows themselves."""
        # Cumulative sums may go farther on one side, or for the range on both.
        error = excursion_error(problem) * (1 if self.statistic is Statistic.MAX else 2)
        if not self.normalize or problem.is_exact:
            return error
        differences = cumulative_differences(problem)
        excursion = differences.excursion(self.statistic)
        sigma = known_sigma(differences, "normalize=True")
        # p (1 - p) changes by less than p does, and scores are known to a cell's width.
        squares = float(problem.pooled.weight_squared.sum())
        lost = squares * problem.cell_width / differences.total**2
        least = np.sqrt(max(sigma**2 - lost, 0.0))
        if least == 0:
            return float("inf")
        return float((excursion + error) / least - excursion / sigma)

    @property
    def no_interval(self) -> str:
        """Why there is no confidence interval."""
        return "with normalize=True, which changes units with n" if self.normalize else ""

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the cumulative sums over cells of about equal numbers of rows."""
        p = problem.scores
        n_cells = min(_MOST_CELLS, len(p))
        starts = np.unique(p[np.arange(n_cells) * len(p) // n_cells])
        norm = MaxNorm() if self.statistic is Statistic.MAX else RangeNorm()

        def of_totals(r: FloatArray, w: FloatArray) -> FloatArray:
            return np.asarray(np.cumsum(r, axis=-1) / total(w))

        return LinearImage(norm, Bins.starting_at(starts).index, len(starts), of_totals)


def read_cumulative_error(statistic: Statistic, *, normalize: bool = False) -> CumulativeError:
    """Parse the options of a call."""
    return CumulativeError(statistic, checks.as_flag(normalize, "normalize"))


def ecce_mad(
    y_true: Any,
    y_prob: Any = None,
    *,
    normalize: bool = False,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the largest cumulative deviation of outcomes from predictions; 0 is perfect.

    ECCE-MAD = max_k abs(C_k), C_k = (1/W) sum of w_i (y_i - p_i) over rows with p_i <= s_k, for
    the distinct scores s_1 < s_2 < ...

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`; soft labels are taken as they are.
    normalize
        Divide by sigma_n = sqrt(sum w_i^2 p_i (1 - p_i)) / W, the standard deviation of the last
        C_k under perfect calibration. Then about 1.25 is expected of calibrated predictions
        whatever their number. Soft labels have no sigma_n and raise.
    sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.

    Returns
    -------
    float
        The error, between 0 and 1; in units of sigma_n with `normalize`.

    Notes
    -----
    Equal scores make one increment, so the order of rows never matters. The error tends to 0 like
    1 / sqrt(n) for calibrated predictions: there is no floor that noise in bins would set. One
    sort, O(n log n). Rows with p = y = 0 or 1 add nothing.

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions" (2022), eq. 6.

    Examples
    --------
    >>> ecce_mad([0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75])
    0.125
    >>> ecce_mad([0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75], normalize=True)
    0.5393
    """
    error = read_cumulative_error(Statistic.MAX, normalize=normalize)
    return reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label).measure(
        error
    )


def ecce_r(
    y_true: Any,
    y_prob: Any = None,
    *,
    normalize: bool = False,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the largest total deviation over any interval of scores; 0 is perfect.

    ECCE-R = max_k C_k - min_k C_k with C_k as in :func:`ecce_mad` and C_0 = 0. It equals the
    maximum over intervals I of scores of abs(sum over p_i in I of w_i (y_i - p_i)) / W.

    Parameters
    ----------
    y_true, y_prob, normalize
        As in :func:`ecce_mad`; normalised, about 1.60 is expected of calibrated predictions.
    sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.

    Returns
    -------
    float
        The error, between ECCE-MAD and twice that; in units of sigma_n with `normalize`.

    Notes
    -----
    As for :func:`ecce_mad`. Predicting 1 - p of the opposite outcome gives the same error.

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions" (2022), eq. 7.

    Examples
    --------
    >>> ecce_r([0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75])
    0.21875
    """
    error = read_cumulative_error(Statistic.RANGE, normalize=normalize)
    return reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label).measure(
        error
    )


MEASURES = (
    MeasureInfo(
        ecce_r,
        label="ECCE-R",
        title="Largest total deviation (ECCE-R)",
        meaning="The most that outcomes deviate in total over any one interval of scores.",
        definition="max C − min C, with C the sum of w (y − p) / W over rows in order of p.",
        make=partial(read_cumulative_error, Statistic.RANGE),
        sketch="probability",
        in_assess=True,
        order=3,
    ),
    MeasureInfo(
        ecce_mad,
        label="ECCE-MAD",
        title="Largest cumulative deviation (ECCE-MAD)",
        meaning="The most that outcomes deviate in total, counted from the lowest score.",
        definition="max |C|, with C the sum of w (y − p) / W over rows in order of p.",
        make=partial(read_cumulative_error, Statistic.MAX),
        sketch="probability",
        in_assess=True,
        order=4,
    ),
)
