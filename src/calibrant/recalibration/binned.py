"""Calibrators that give every prediction of a bin the same value."""

from __future__ import annotations

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.binning import Bins
from calibrant.measures.binned_error import BinCount, Strategy, read_binning
from calibrant.problem import Problem
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.logistic import fit_logistic
from calibrant.recalibration.maps import StepMap


class HistogramCalibrator(Calibrator):
    """Mend probabilities by the mean outcome of their bin.

    Parameters
    ----------
    n_bins, strategy
        As in :func:`calibrant.ece`; bins of equal weight unless told otherwise.

    Notes
    -----
    A bin without rows has the value of its middle. May change the order of predictions, makes
    many of them equal, and is 0 or 1 where all outcomes of a bin are. Can be fitted to a sketch
    with strategy="uniform".

    References
    ----------
    Zadrozny and Elkan, "Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers" (2001).

    Examples
    --------
    >>> histogram = HistogramCalibrator(n_bins=2, strategy="uniform")
    >>> histogram.fit([0.1, 0.2, 0.7, 0.9], [0, 1, 1, 1]).predict([0.4, 0.6]).tolist()
    [0.5, 1.0]
    """

    def __init__(self, n_bins: BinCount = 15, strategy: Strategy = "quantile") -> None:
        self.n_bins = n_bins
        self.strategy = strategy

    def _fit_problem(self, problem: Problem) -> StepMap:
        bins = read_binning(self.n_bins, self.strategy, "left").bins(problem)
        weight, true = problem.totals(bins, "weight", "true")
        return _steps(bins, weight, true)


class ScalingBinningCalibrator(Calibrator):
    """Mend probabilities by Platt's map, averaged over bins of equal weight.

    The map is smooth where few rows must suffice, and takes few values, so that how well it is
    calibrated can be measured without doubt about bins.

    Parameters
    ----------
    n_bins
        The number of bins, as in :func:`calibrant.ece`.

    Notes
    -----
    All rows serve to fit, to lay the bins and to average; the authors prove their bound for three
    separate parts. Never falls. Refuses sketches, which cannot lay bins of equal weight.

    References
    ----------
    Kumar, Liang and Ma, "Verified uncertainty calibration" (2019), section 4.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> mended = ScalingBinningCalibrator(n_bins=5).fit(y_prob, y_true)
    >>> mended.map_.values.round(2)
    array([0.28, 0.42, 0.5 , 0.59, 0.72])
    """

    def __init__(self, n_bins: BinCount = 15) -> None:
        self.n_bins = n_bins

    def _fit_problem(self, problem: Problem) -> StepMap:
        bins = read_binning(self.n_bins, "quantile", "left").bins(problem)
        pooled, index = problem.rows.pooled, bins.index(problem.rows.pooled.score)
        mended = fit_logistic(problem, one_slope=True)(pooled.score)
        weight, total = np.zeros((2, bins.n_bins))
        np.add.at(weight, index, pooled.weight)
        np.add.at(total, index, pooled.weight * mended)
        return _steps(bins, weight, total)


def _steps(bins: Bins, weight: FloatArray, total: FloatArray) -> StepMap:
    """Return the mean of each bin as a map, the middle of the bin where it is empty."""
    mean = np.divide(total, weight, out=bins.centres.copy(), where=weight > 0)
    # Rounding of sums may have gone beyond what is a probability.
    return StepMap(bins.edges[1:-1], np.clip(mean, 0.0, 1.0))
