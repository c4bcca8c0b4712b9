"""Calibrators of bins and blocks, and METHODS, which names all calibrators.

==========================  ====================================================================
calibrator                  map
==========================  ====================================================================
IsotonicCalibrator          the non-decreasing least-squares fit
ScalingBinningCalibrator    Platt's map averaged over bins of equal weight
HistogramCalibrator         mean outcome of the bin
IdentityCalibrator          p
==========================  ====================================================================

Functions of the logit are in :mod:`calibrant.recalibration.parametric`, kernel estimates in
:mod:`calibrant.recalibration.kernel_methods`, and maps of all classes together in
:mod:`calibrant.recalibration.multiclass`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np
from sklearn.isotonic import isotonic_regression

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.binning import Bins
from calibrant.data.classes import ClassTable
from calibrant.data.problem import Problem
from calibrant.errors import CalibrantError
from calibrant.measures.binned import BinCount, Strategy, read_binning
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.kernel_methods import (
    DensityCalibrator,
    NoisyCalibrator,
    ResidualCalibrator,
    SmoothCalibrator,
)
from calibrant.recalibration.maps import AdjustedMap, PiecewiseLinearMap, ProbabilityMap, StepMap
from calibrant.recalibration.multiclass import (
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from calibrant.recalibration.parametric import (
    BetaCalibrator,
    PlattCalibrator,
    QuadraticCalibrator,
    ShiftCalibrator,
)


class IsotonicCalibrator(Calibrator):
    """Isotonic regression: the non-decreasing least-squares fit to the outcomes.

    Parameters
    ----------
    pseudo_count : float
        Number of rows added to a block of which all outcomes are 0, or all 1; their outcome is the
        mean score of the block. They keep the map strictly between 0 and 1 where probabilities
        are, so that no finite log score becomes infinite.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    scikit-learn's ``IsotonicRegression``, linear between the scores of the rows and constant beyond
    them, but for blocks of 0 and 1: there an outcome to the contrary would have an infinite log
    score. Refuses sketches, which do not know the order of scores within a cell.

    See Also
    --------
    ResidualCalibrator : Smooth, and not necessarily monotone.

    References
    ----------
    Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability
    estimates" (2002).

    Examples
    --------
    >>> plain = IsotonicCalibrator(pseudo_count=0).fit([0.1, 0.4, 0.6], [0, 1, 0])
    >>> plain.predict([0.1, 0.25, 0.9]).tolist()
    [0.0, 0.25, 0.5]
    >>> IsotonicCalibrator().fit([0.1, 0.4, 0.6], [0, 1, 0]).predict([0.1, 0.25, 0.9]).tolist()
    [0.05, 0.275, 0.5]
    """

    def __init__(self, pseudo_count: float = 1.0, mix: bool = False) -> None:
        self.pseudo_count = pseudo_count
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> PiecewiseLinearMap:
        pooled = problem.rows.pooled
        mean = np.clip(pooled.true / pooled.weight, 0.0, 1.0)
        fitted = isotonic_regression(mean, sample_weight=pooled.weight)
        block = np.cumsum(np.diff(fitted, prepend=fitted[0]) > 0)
        totals = (pooled.weight, pooled.true, pooled.weight * pooled.score)
        weight, true, pred = (np.asarray(np.bincount(block, v), dtype=float) for v in totals)
        value = _means(weight, true, pred / weight, _added_weight(self.pseudo_count, problem))
        # Blocks that were moved can be out of order.
        value = np.clip(isotonic_regression(value, sample_weight=weight), 0.0, 1.0)[block]
        # Within a block only the first and the last score matter.
        edge = np.diff(block, prepend=-1, append=block[-1] + 1) != 0
        knots = edge[:-1] | edge[1:]
        return PiecewiseLinearMap(pooled.score[knots], value[knots])


def _added_weight(pseudo_count: object, problem: Problem) -> float:
    """Return the weight of so many rows of mean weight."""
    count = validation.as_float(pseudo_count)
    if not 0 <= count < np.inf:
        raise CalibrantError(
            "must be a finite number of at least 0", argument="pseudo_count", value=pseudo_count
        )
    return count * problem.weight / problem.n


def _means(weight: FloatArray, true: FloatArray, prior: FloatArray, added: float) -> FloatArray:
    """Return mean outcomes, with weight added at the prior where they are 0 or 1."""
    pure = (true <= 0) | (true >= weight)
    weight, true = (np.where(pure, v + added * u, v) for v, u in ((weight, 1.0), (true, prior)))
    return np.divide(true, weight, out=prior.copy(), where=weight > 0)


class HistogramCalibrator(Calibrator):
    """Histogram binning: the mean outcome of the bin.

    Parameters
    ----------
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or its rule: "sqrt" is floor(sqrt(n)), "sweep" the largest number for which
        mean outcomes do not decrease, "cv" that of the smallest leave-one-out squared error.
    strategy : {"uniform", "quantile"} or array_like
        Bins of equal width or nearly equal weight, or edges from 0 to 1, which fix `n_bins`.
    pseudo_count : float
        Number of rows added to a bin of which all outcomes are 0, or all 1; their outcome is its
        centre. They keep the map strictly between 0 and 1, so that no finite log score becomes
        infinite.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    An empty bin has the value of its centre. The map may change the order of predictions and makes
    many of them equal. Without added rows it is 0 or 1 where all outcomes of a bin are. Can be
    fitted to a sketch with strategy="uniform".

    See Also
    --------
    ScalingBinningCalibrator : Bins of a fitted logistic map instead of the outcomes.

    References
    ----------
    Zadrozny and Elkan, "Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers" (2001).

    Examples
    --------
    >>> histogram = HistogramCalibrator(n_bins=2, strategy="uniform", pseudo_count=0)
    >>> histogram.fit([0.1, 0.2, 0.7, 0.9], [0, 1, 1, 1]).predict([0.4, 0.6]).tolist()
    [0.5, 1.0]
    """

    def __init__(
        self,
        n_bins: BinCount = 15,
        strategy: Strategy = "quantile",
        pseudo_count: float = 1.0,
        mix: bool = False,
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.pseudo_count = pseudo_count
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> StepMap:
        bins = read_binning(self.n_bins, self.strategy, "left").bins(problem)
        weight, true = problem.totals(bins, "weight", "true")
        added = _added_weight(self.pseudo_count, problem)
        return _step_map(bins, _means(weight, true, bins.centres, added))


class ScalingBinningCalibrator(Calibrator):
    """Scaling-binning: Platt's map averaged over bins of equal weight.

    It is fitted to few rows as well as Platt's map, and takes few values, so that its calibration
    error can be measured without a choice of bins.

    Parameters
    ----------
    n_bins : int or {"sqrt", "sweep", "cv"}
        Number of bins, or its rule: "sqrt" is floor(sqrt(n)), "sweep" the largest number for which
        mean outcomes do not decrease, "cv" that of the smallest leave-one-out squared error.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Notes
    -----
    All rows are used for the fit, the edges of the bins and the averages; the authors prove their
    bound for three separate samples. The map is non-decreasing. Refuses sketches, which do not
    determine bins of equal weight.

    See Also
    --------
    PlattCalibrator : The map that is averaged.

    References
    ----------
    Kumar, Liang and Ma, "Verified uncertainty calibration" (2019), section 4.

    Examples
    --------
    >>> from calibrant.datasets import simulate
    >>> y_true, y_prob = simulate("overconfident", 20_000)
    >>> ScalingBinningCalibrator(n_bins=5).fit(y_prob, y_true).map_.values.round(2)
    array([0.28, 0.42, 0.5 , 0.59, 0.72])
    """

    def __init__(self, n_bins: BinCount = 15, mix: bool = False) -> None:
        self.n_bins = n_bins
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> StepMap:
        bins = read_binning(self.n_bins, "quantile", "left").bins(problem)
        pooled, index = problem.rows.pooled, bins.index(problem.rows.pooled.score)
        fitted = PlattCalibrator()._fit_problem(problem)(pooled.score)
        weight, total = np.zeros((2, bins.n_bins))
        np.add.at(weight, index, pooled.weight)
        np.add.at(total, index, pooled.weight * fitted)
        # A bin of scores of 0 only, or of 1, has one row of its centre added.
        added = problem.weight / problem.n
        return _step_map(bins, _means(weight, total, bins.centres, added))


def _step_map(bins: Bins, mean: FloatArray) -> StepMap:
    """Return the map of bins to their means."""
    # Rounding may carry a mean beyond [0, 1].
    return StepMap(bins.edges[1:-1], np.clip(mean, 0.0, 1.0))


class IdentityCalibrator(Calibrator):
    """The identity: leave probabilities unchanged, or all but those of exactly 0 and 1.

    Parameters
    ----------
    ends : bool
        Whether probabilities of 0 and 1 that were wrong become the frequency of the outcome there,
        (s + p) / (n + 1) for s events in n rows. Of two classes only.
    mix : bool
        Whether to mix the result with the uniform distribution, (1 - m) q + m / C with
        m = 1 / (n + 1) for n rows and C classes, so that no probability is 0 or 1.

    Examples
    --------
    >>> IdentityCalibrator().fit([0.1, 0.9], [0, 1]).predict([0.3]).tolist()
    [0.3]
    """

    n_coefficients = 0

    def __init__(self, ends: bool = False, mix: bool = False) -> None:
        self.ends = ends
        self.mix = mix

    def _fit_problem(self, problem: Problem) -> ProbabilityMap:
        pooled = problem.pooled
        values: dict[str, float] = {}
        for name, end in (("low", 0.0), ("high", 1.0)):
            at = pooled.score == end
            rows, wrong = pooled.rows[at].sum(), np.abs(pooled.residual[at]).sum()
            if validation.as_flag(self.ends, "ends") and wrong > 0:
                frequency = wrong / pooled.weight[at].sum() * rows / (rows + 1)
                values[name] = float(abs(end - frequency))
        return AdjustedMap(_IDENTITY, low=values.get("low"), high=values.get("high")).simplified()

    def _fit_classes(self, table: ClassTable) -> tuple[ProbabilityMap, ...]:
        # One map for all columns, so that nothing is divided by a sum.
        return (_IDENTITY,)


_IDENTITY = PiecewiseLinearMap(np.array([0.0, 1.0]), np.array([0.0, 1.0]))

# Each makes a new calibrator; the simplest first.
METHODS: Mapping[str, Callable[[], Calibrator]] = MappingProxyType(
    {
        "ends": partial(IdentityCalibrator, ends=True),
        "shift": ShiftCalibrator,
        "temperature": TemperatureCalibrator,
        "platt": PlattCalibrator,
        "beta": BetaCalibrator,
        "quadratic": QuadraticCalibrator,
        "isotonic": IsotonicCalibrator,
        "residual": ResidualCalibrator,
        "scaling_binning": ScalingBinningCalibrator,
        "histogram": HistogramCalibrator,
        "smooth": SmoothCalibrator,
        "smooth_monotone": partial(SmoothCalibrator, monotone=True),
        "density": DensityCalibrator,
        "density_monotone": partial(DensityCalibrator, monotone=True),
        "noisy": NoisyCalibrator,
        "vector": VectorCalibrator,
        "matrix": MatrixCalibrator,
    }
)
