"""What a measure is, and the registry of all measures.

A :class:`Measure` takes one binary problem to a number. One that has a confidence interval is a
norm of a linear function of residuals: see :mod:`calibrant.measures.norms`.

Every measure is declared once, as a :class:`MeasureInfo` in the tuple ``MEASURES`` of the module
that defines it. The registry imports the modules of this package and collects these tuples, so that
a new measure is one new file: functions that take the name of a measure, the command line,
pictures, reports, scorers and metrics all read the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, Literal

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.classes import one_problem
from calibrant.data.problem import Problem
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import Scale
from calibrant.errors import CalibrantError, SketchError
from calibrant.measures.norms import LinearImage

# Takes class probabilities and outcomes, both (n, classes), to the loss of each row, (n,), and to
# what it would be for each outcome, (n, classes).
RowLosses = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


class Measure(ABC):
    """A measure of one binary problem, as a value made of its options."""

    @abstractmethod
    def __call__(self, problem: Problem) -> float:
        """Return the measure of one problem."""

    def error_bound(self, problem: Problem, value: float) -> float:
        """Bound the distance of the measure, `value`, from that of the rows themselves."""
        return 0.0 if problem.is_exact else self.sketch_error(problem, value)

    def sketch_error(self, problem: Problem, value: float) -> float:
        """Bound the distance of the measure of a sketch, `value`, from that of its rows."""
        raise SketchError("no bound is known for this measure of a sketch: give the rows")

    @property
    def no_interval(self) -> str:
        """Why there is no confidence interval, as the end of a sentence; "" where there is one."""
        return ": it is not known as a norm of sums over cells of scores"

    def image(self, problem: Problem, value: float) -> LinearImage:
        """Return the linear function of residual sums of which the measure, `value`, is a norm."""
        raise CalibrantError(f"there is no interval for {type(self).__name__} {self.no_interval}")


@dataclass(frozen=True)
class MeasureInfo:
    """The declaration of a measure."""

    function: Callable[..., float]  # the public function, which has the name of the measure
    label: str  # label, title: its name in a picture and in a table
    title: str
    meaning: str  # meaning, definition: one line that explains it, and its formula
    definition: str
    # Takes options to the measure as a value; None for a special case of another measure.
    make: Callable[..., Measure] | None = None
    # The name of that other measure, by which functions that take names know both.
    special_case_of: str = ""
    # The losses that a proper score is the mean of; None for a calibration error.
    losses: RowLosses | None = None
    # Of a mean over pairs of rows: takes the measure, a problem and the cluster of each row to the
    # sum of each row's terms with rows of other clusters. None for other measures.
    row_sums: Callable[..., FloatArray] | None = None
    # The scale of the sketches that can answer; None where rows are needed.
    sketch: Scale | None = None
    in_assess: bool = False  # whether assessments contain it; it must have an interval
    order: int = 100  # measures are listed by increasing order, then by name

    @property
    def name(self) -> str:
        """The name of the measure."""
        return self.function.__name__

    @property
    def kind(self) -> Literal["error", "score"]:
        """Whether it is a calibration error or a proper score."""
        return "error" if self.losses is None else "score"

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The names of its options, without arguments that are data."""
        known = () if self.make is None else signature(self.make).parameters
        return tuple(name for name in validation.keywords(self.function) if name in known)

    @cached_property
    def has_interval(self) -> bool:
        """Whether there is a confidence interval with default options."""
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
    """Return the measures that models can be compared by: with intervals, or means of terms."""
    known = measures().values()
    return [info for info in known if info.has_interval or info.losses or info.row_sums]


def assessed() -> list[MeasureInfo]:
    """Return the measures that an assessment contains."""
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
    sketch : Sketch
        The sketch.
    measure : str or callable
        A measure that a sketch can answer, by name or as the function, such as "smooth_ece", "ece",
        "ecce_mad", "ecce_r", "logit_smoothed_ece", "density_ece" or "brier_score".
    **options
        Options of the measure, as given to its function.

    Returns
    -------
    float
        A certified bound on abs(measure of the sketch - measure of the rows), rounding included.

    See Also
    --------
    Sketch : Sums over narrow cells of scores that can be merged.
    estimate : Its intervals of a sketch include this bound.

    Notes
    -----
    Binned errors and the Brier score are exact up to rounding. A smooth error at scale s is off by
    at most 0.26 (1 / (N s))^3 / 32, for N cells: with rounding 1e-9 at 50 400 cells and s = 0.01.
    For a cumulative error the bound is the largest fraction of the weight that one cell holds, as
    the order of rows within a cell is unknown; with few distinct scores it is far too wide, since
    rows of equal score make one increment. The density error with Silverman's rule inherits the
    width of a cell from the quartiles.

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
    return asked.error_bound(problem, asked(problem))
