"""What an estimate of a calibration error says."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.results.result import Result

__all__ = ["Estimate"]


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """A calibration error with an interval for its population value.

    Attributes
    ----------
    value
        The error of the sample. Noise makes it larger, on average, than that of the population.
    bias_corrected
        The error without the effect of noise.
    low, high
        The ends of the interval. Near perfect calibration `high` may be below `value`.
    level
        The chance that the interval was to have of holding the population value.
    n
        How many rows were measured.
    error_bound
        How far `value` may be from that of the rows themselves: 0 for rows, certified for a
        sketch. The interval allows for it.
    measure
        The name of the measure.
    method
        "uniform", or "t" for the mean of a score.
    """

    value: float
    bias_corrected: float
    low: float
    high: float
    level: float
    n: int
    error_bound: float
    measure: str
    method: str

    def __repr__(self) -> str:
        return (
            f"Estimate({self.measure} = {self.value:.4g}, {100 * self.level:g}% interval "
            f"{self.low:.4g} to {self.high:.4g}, n = {self.n}, {self.method})"
        )
