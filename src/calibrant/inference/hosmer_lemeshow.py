"""The Hosmer-Lemeshow test, which journals ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from calibrant._base import Result
from calibrant.data import validation
from calibrant.data.classes import hard_problem
from calibrant.errors import CalibrantError
from calibrant.formatting import TextTable, p_equation
from calibrant.measures.bin_table import BinTable, table_of
from calibrant.measures.binned import read_binning
from calibrant.numerics.probability import SMALLEST

_CAUTION = "The P-value depends on the groups: report the slope, the intercept and a curve instead."


@dataclass(frozen=True, repr=False)
class HosmerLemeshowResult(Result):
    """The Hosmer-Lemeshow test.

    Attributes
    ----------
    statistic
        The sum over groups of (observed - expected)^2 / (n pbar (1 - pbar)).
    degrees_of_freedom
        The number of groups, or two less where the model was fitted to these rows.
    p_value
        The probability of a larger chi-squared variable; never 0.
    n
        The number of rows.
    groups
        The groups: counts, and means of predictions and outcomes.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    n: int
    groups: BinTable

    def _printed(self) -> list[str | TextTable]:
        found = f"chi2 = {self.statistic:.4g} on {self.degrees_of_freedom} degrees of freedom"
        p_value = p_equation(self.p_value)
        return [f"HosmerLemeshowResult({found}, {p_value}, n = {self.n})", _CAUTION]


def hosmer_lemeshow_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_groups: int = 10,
    fitted: bool = False,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> HosmerLemeshowResult:
    """Test calibration by Hosmer and Lemeshow's chi-squared statistic over groups of equal size.

    Parameters
    ----------
    y_true : array_like
        Outcomes: 0/1, bool or yes/no; two labels with `pos_label`; or classes.
    y_prob : array_like
        Predicted probabilities of shape (n,), (n, 1), (n, 2) or (n, C).
    n_groups : int
        Number of groups g of nearly equal numbers of rows; rows of equal score stay together, which
        may leave fewer.
    fitted : bool
        Whether a logistic model was fitted to these very rows: then g - 2 degrees of freedom, and g
        for new data.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.

    Returns
    -------
    HosmerLemeshowResult
        Statistic, degrees of freedom and P-value, with the groups.

    See Also
    --------
    calibration_slope_test, cumulative_test : Tests without groups.
    clinical_summary : How far from calibrated, with intervals.

    Notes
    -----
    Guidelines advise against it (Steyerberg, 2019; Van Calster et al., 2019). Its P-value depends
    on the number of groups and on how software cuts them; it has little power at moderate n,
    against a shift as against a wrong slope; at large n it rejects predictions that are as good as
    calibrated; and it says neither how large a departure is nor in which direction.

    References
    ----------
    Hosmer and Lemeshow, "Goodness of fit tests for the multiple logistic regression model" (1980).
    Hosmer, Hosmer, Le Cessie and Lemeshow, "A comparison of goodness-of-fit tests for the logistic
    regression model" (1997).
    Van Calster et al., "Calibration: the Achilles heel of predictive analytics" (2019).

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> hosmer_lemeshow_test(*load_flares("NOAA"))
    HosmerLemeshowResult(chi2 = 19.68 on 9 degrees of freedom, p = 0.02, n = 731)
    The P-value depends on the groups: report the slope, the intercept and a curve instead.
    """
    n_groups = validation.as_count(n_groups, "n_groups", minimum=2)
    fitted = validation.as_flag(fitted, "fitted")
    problem = hard_problem(y_true, y_prob, None, multiclass, labels, pos_label)
    table = table_of(problem, read_binning(n_groups, "quantile", "left").bins(problem))
    degrees = len(table.n) - 2 * fitted
    if degrees < 1:
        raise CalibrantError(
            "must have more than two different values where {fitted} is true",
            argument="y_prob",
            found="{n_found} groups",
            n_found=len(table.n),
        )
    expected, mean = table.n * table.mean_pred, table.mean_pred
    excess, variance = table.n * table.mean_true - expected, expected * (1 - mean)
    # Predictions of 0 or 1 allow no error at all.
    certain = np.where(excess == 0, 0.0, np.inf)
    with np.errstate(over="ignore"):
        parts = np.divide(excess**2, variance, out=certain, where=variance > 0)
        statistic = float(parts.sum())
    return HosmerLemeshowResult(
        statistic=statistic,
        degrees_of_freedom=degrees,
        p_value=max(float(chdtrc(degrees, statistic)), SMALLEST),
        n=problem.n,
        groups=table,
    )
