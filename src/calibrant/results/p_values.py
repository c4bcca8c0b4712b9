"""What tests give back, and how P-values are printed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.results.result import Result

# P-values below this are all one to a reader; the smallest doubles stand for "smaller still".
_LEAST_P_VALUE = 1e-300


def printed_p_value(value: float, *, is_least: bool = False) -> tuple[str, str]:
    """Return the sign and the number of a P-value in print, with two figures that count.

    The least that simulated samples can give is a bound, rounded up; what no reader and next to no
    double tells from 0 is less than 1e-300.

    Examples
    --------
    >>> printed_p_value(0.0312), printed_p_value(1 / 701, is_least=True), printed_p_value(2e-308)
    (('=', '0.031'), ('<=', '0.0015'), ('<', '1e-300'))
    """
    if value < _LEAST_P_VALUE:
        return "<", f"{_LEAST_P_VALUE:.0e}"
    if not is_least:
        return "=", f"{value:.2g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    # A share such as 1 / 1000 is not to be rounded up for the last bit of a double.
    return "<=", f"{math.ceil(value / unit - 1e-9) * unit:.2g}"


@dataclass(frozen=True, repr=False)
class TestResult(Result):
    """A test of calibration: how far something strays from 0, and how surprising that is.

    Attributes
    ----------
    statistic
        How far, in units of probability.
    normalized
        The statistic in units of `sigma`.
    p_value
        Chance of a statistic at least as large under the null hypothesis; never 0.
    sigma
        The standard deviation by which the statistic is judged.
    n
        How many rows were tested.
    test
        What was tested, in a few words.
    method
        "asymptotic" or "monte_carlo": where the P-value comes from.
    n_resamples
        How many samples were simulated for it; 0 for an asymptotic one.
    """

    statistic: float
    normalized: float
    p_value: float
    sigma: float
    n: int
    test: str
    method: str
    n_resamples: int = 0

    # Its name makes pytest take it for a class of tests wherever it is imported.
    __test__ = False

    @property
    def is_least(self) -> bool:
        """Whether no simulated sample strayed as far: then the P-value is a bound, no more."""
        return self.n_resamples > 0 and self.p_value * (1 + self.n_resamples) < 1.5

    def __repr__(self) -> str:
        return (
            f"TestResult({self.test}: {self.statistic:.4g} = {self.normalized:.4g} sigma, "
            f"p {'<=' if self.is_least else '='} {self.p_value:.3g}, n = {self.n}, {self.method})"
        )


@dataclass(frozen=True, repr=False)
class SlopeTestResult(Result):
    """A logistic recalibration, logit P(y = 1) = intercept + slope logit(p), and its test.

    Attributes
    ----------
    intercept, slope
        The fitted coefficients, 0 and 1 for calibrated predictions; nan where the outcomes are
        separated and there is no fit.
    intercept_error, slope_error
        Their standard errors.
    statistic
        Rao's score statistic at intercept 0 and slope 1, which needs no fit.
    p_value
        Chance of a larger statistic under perfect calibration: chi-squared with 2 degrees of
        freedom, never 0.
    n
        How many rows were tested.
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    statistic: float
    p_value: float
    n: int

    def __repr__(self) -> str:
        return (
            f"SlopeTestResult(slope {self.slope:.4g} +- {self.slope_error:.2g}, "
            f"intercept {self.intercept:.4g} +- {self.intercept_error:.2g}, "
            f"p = {self.p_value:.3g}, n = {self.n})"
        )
