"""Measures by name, for functions that take a measure as an argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, Protocol

from calibrant import checks
from calibrant.errors import CalibrantError
from calibrant.measures.binned_error import read_binned_error
from calibrant.measures.cumulative import read_cumulative_error
from calibrant.measures.cumulative_differences import Statistic
from calibrant.measures.density_error import read_density_error
from calibrant.measures.logit import read_logit_smoothed_error
from calibrant.measures.scores import BrierScore
from calibrant.measures.smooth_error import read_smooth_error
from calibrant.multiclass import one_problem
from calibrant.problem import Problem
from calibrant.sketches.state import Sketch

__all__ = ["error_bound"]


class Measure(Protocol):
    """A measure of one problem, as a value."""

    def __call__(self, problem: Problem) -> float:
        """Return the measure of one problem."""

    def error_bound(self, problem: Problem) -> float:
        """Bound the distance from the measure of the rows themselves."""


_READERS: dict[str, Callable[..., Measure]] = {
    "smooth_ece": read_smooth_error,
    "ece": read_binned_error,
    "ecce_mad": partial(read_cumulative_error, Statistic.MAX),
    "ecce_r": partial(read_cumulative_error, Statistic.RANGE),
    "logit_smoothed_ece": read_logit_smoothed_error,
    "density_ece": read_density_error,
    "brier_score": BrierScore,
}


def read_measure(name: str, options: dict[str, Any]) -> Measure:
    """Return the measure of this name with these options, given as to the function itself."""
    checks.check_choice(name, "measure", _READERS)
    reader = _READERS[name]
    checks.check_options(options, signature(reader).parameters, name)
    return reader(**options)


def error_bound(sketch: Sketch, measure: str = "smooth_ece", **options: Any) -> float:
    """Return how far a measure of a sketch may be from that of the rows themselves.

    Parameters
    ----------
    sketch
        The sketch.
    measure
        "smooth_ece", "ece", "ecce_mad", "ecce_r", "logit_smoothed_ece", "density_ece" or
        "brier_score".
    **options
        Options of the measure, as given to it.

    Returns
    -------
    float
        A certified bound on abs(measure of the sketch - measure of the rows), rounding included.

    Notes
    -----
    Binned errors and the Brier score are exact up to rounding. A smooth error at scale s is off by
    at most 0.26 (1 / (N s))^3 / 32, for N cells: with rounding 1e-9 at 50 400 cells and s = 0.01.
    A cumulative error is off by what the rows of one cell can do between themselves: the bound is
    the share of one cell in the whole, which for few distinct scores is far more than there is,
    since rows of one score make one step. The density error with Silverman's rule inherits a
    cell's width from the quartiles.

    Examples
    --------
    >>> sketch = Sketch().update([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0])
    >>> error_bound(sketch, "smooth_ece") < 1e-8
    True
    """
    if not isinstance(sketch, Sketch):
        raise CalibrantError(
            f"error_bound is about sketches; got {type(sketch).__name__}: rows have no such error"
        )
    problem = one_problem(sketch, None, None, None, None, None)
    asked = read_measure(measure, options)
    asked(problem)  # refuses what a sketch cannot answer
    return asked.error_bound(problem)
