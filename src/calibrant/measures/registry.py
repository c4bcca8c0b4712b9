"""The registry of measures: each is declared once, in its own file, for all that names measures.

A module of this package that defines measures has a tuple ``MEASURES`` of :class:`MeasureInfo`
beside them. The registry finds these by looking through the package: a new measure is one new file,
and `estimate`, `compare`, `assess`, `error_bound`, the command line, pictures, reports, scorers and
metrics know it from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.problem import Problem
from calibrant.data.read import one_problem
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import Scale
from calibrant.errors import CalibrantError, SketchError

if TYPE_CHECKING:
    from calibrant.measures.linear_image import LinearImage


# Takes class probabilities and outcomes, both (n, classes), to the loss of each row, (n,), and to
# what it would be for each outcome, (n, classes).
RowLosses = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


class Measure(ABC):
    """A measure of one binary problem, as a value made of its options."""

    @abstractmethod
    def __call__(self, problem: Problem) -> float:
        """Return the measure of one problem."""

    def error_bound(self, problem: Problem) -> float:
        """Bound the distance from the measure of the rows themselves."""
        if not problem.is_exact:
            raise SketchError("no bound is known for this measure of a sketch: give the rows")
        return 0.0

    @property
    def no_interval(self) -> str:
        """Why there is no confidence interval, as the end of a sentence; "" where there is one."""
        return ": it is not known as a norm of sums over cells of scores"

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the linear function of residual sums of which the measure, `value`, is a norm."""
        raise CalibrantError(f"there is no interval for {type(self).__name__} {self.no_interval}")


@dataclass(frozen=True)
class MeasureInfo:
    """What all others need to know of a measure.

    Attributes
    ----------
    function
        The public function, which has the name of the measure.
    label, title
        What it is called in a picture, and in a table.
    meaning, definition
        What it tells, and its formula, in one line each.
    make
        Takes options to the measure as a value; None for a special case of another measure.
    special_case_of
        The name of that other measure, by which functions that take names know both.
    losses
        The losses that a proper score is the mean of; None for a calibration error.
    sketch
        The scale of the sketches that can answer; None where rows are needed.
    in_assess
        Whether assessments hold it; it must have an interval.
    order
        Measures are listed by increasing order, then by name.
    """

    function: Callable[..., float]
    label: str
    title: str
    meaning: str
    definition: str
    make: Callable[..., Measure] | None = None
    special_case_of: str = ""
    losses: RowLosses | None = None
    sketch: Scale | None = None
    in_assess: bool = False
    order: int = 100

    @property
    def name(self) -> str:
        """The name of the measure."""
        return self.function.__name__

    @property
    def kind(self) -> Literal["error", "score"]:
        """Whether it is a calibration error or a proper score."""
        return "error" if self.losses is None else "score"

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its options, without arguments that are data."""
        if self.make is None:
            return ()
        known = signature(self.make).parameters
        return tuple(name for name in validation.keywords(self.function) if name in known)

    @property
    def has_interval(self) -> bool:
        """Whether there is a confidence interval, with the options left as they are."""
        return self.make is not None and not self.make().no_interval

    def read(self, options: Mapping[str, Any]) -> Measure:
        """Return the measure with these options, given as to the function itself."""
        if self.make is None:
            raise CalibrantError(
                f"{self.name} is a special case of {self.special_case_of}: name that"
            )
        validation.check_options(options, self.options, self.name)
        return self.make(**options)


@cache
def measures() -> Mapping[str, MeasureInfo]:
    """Return all measures by name, as the modules of this package declare them."""
    package = import_module(__name__.rpartition(".")[0])
    modules = [
        import_module(f"{package.__name__}.{one.name}") for one in iter_modules(package.__path__)
    ]
    declared = [info for module in modules for info in getattr(module, "MEASURES", ())]
    declared.sort(key=lambda info: (info.order, info.name))
    return MappingProxyType({info.name: info for info in declared})


def with_interval() -> list[MeasureInfo]:
    """Return the measures that have a confidence interval."""
    return [info for info in measures().values() if info.has_interval]


def comparable() -> list[MeasureInfo]:
    """Return the measures that models can be compared by: with intervals, or proper scores."""
    return [info for info in measures().values() if info.has_interval or info.kind == "score"]


def assessed() -> list[MeasureInfo]:
    """Return the measures that an assessment holds."""
    return [info for info in measures().values() if info.in_assess]


def answered_by_sketches() -> list[MeasureInfo]:
    """Return the measures that a sketch can answer."""
    return [info for info in measures().values() if info.make is not None and info.sketch]


def find_measure(measure: Any, choices: Iterable[MeasureInfo]) -> MeasureInfo:
    """Return the one of several measures that is given by its name or as the function itself."""
    known = list(choices)
    for info in known:
        if measure is info.function or (isinstance(measure, str) and measure == info.name):
            return info
    given = getattr(measure, "__name__", measure)
    names = ", ".join(info.name for info in known)
    raise CalibrantError(
        "must be one of {known}, or its name", argument="measure", value=given, known=names
    )


def error_bound(
    sketch: Sketch, measure: str | Callable[..., float] = "smooth_ece", **options: Any
) -> float:
    """Return how far a measure of a sketch may be from that of the rows themselves.

    Parameters
    ----------
    sketch
        The sketch.
    measure
        The name of a measure that a sketch can answer, such as "smooth_ece", "ece", "ecce_mad",
        "ecce_r", "logit_smoothed_ece", "density_ece" or "brier_score"; or that function.
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
            "must be a Sketch: rows have no such error", argument="sketch", value=type(sketch)
        )
    asked = find_measure(measure, answered_by_sketches()).read(options)
    problem = one_problem(sketch, None, None, None, None, None)
    asked(problem)  # refuses what a sketch cannot answer
    return asked.error_bound(problem)
