"""Results of tests of calibration."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.results.result import Result


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
