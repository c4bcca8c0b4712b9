"""What a comparison of models on the same rows says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from calibrant.errors import CalibrantError
from calibrant.inference.estimate_result import Estimate
from calibrant.results.result import Result, frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ComparedModel", "Comparison", "PairedDifference"]


@dataclass(frozen=True)
class ComparedModel(Result):
    """One model among those compared.

    Attributes
    ----------
    name
        Its name.
    rank
        1 + the number of models that are better, see `better` of :class:`PairedDifference`.
    estimate
        Its measure by itself.
    """

    name: str
    rank: int
    estimate: Estimate


@dataclass(frozen=True)
class PairedDifference(Result):
    """How much larger the measure of one model is than that of another, on the same rows.

    Attributes
    ----------
    a, b
        The names of the two.
    difference
        The value of a minus that of b.
    bias_corrected
        The same without the effect of noise, which may differ between the two.
    low, high
        The ends of the interval for the population's difference.
    p_value
        Chance of a difference as extreme if the population's is 0; never 0.
    p_adjusted
        The P-value adjusted for the number of pairs, by Holm's rule.
    better
        The one with the smaller measure, where the adjusted P-value is at most 1 - level; None
        where they are tied.
    """

    a: str
    b: str
    difference: float
    bias_corrected: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    better: str | None

    def turned(self) -> PairedDifference:
        """Return the difference the other way round."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            difference=-self.difference,
            bias_corrected=-self.bias_corrected,
            low=-self.high,
            high=-self.low,
        )


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Models compared on the same rows: a ranking, and the differences of all pairs.

    Attributes
    ----------
    models
        The models in order of rank; among equals, of the value without the effect of noise.
    pairs
        The differences of all pairs, in the order in which models were given.
    measure
        What was measured; less is better.
    level
        Of the intervals; models count as different where the adjusted P-value is at most
        1 - level.
    n
        How many rows were measured.
    """

    models: tuple[ComparedModel, ...]
    pairs: tuple[PairedDifference, ...]
    measure: str
    level: float
    n: int

    def __getitem__(self, name: str) -> ComparedModel:
        """Return a model by its name."""
        for model in self.models:
            if model.name == name:
                return model
        known = ", ".join(repr(model.name) for model in self.models)
        raise CalibrantError(f"there is no model {name!r} here; there are: {known}")

    def pair(self, a: str, b: str) -> PairedDifference:
        """Return the difference of two models, whichever way round it was made."""
        first, second = self[a].name, self[b].name
        for one in self.pairs:
            if (one.a, one.b) == (first, second):
                return one
            if (one.a, one.b) == (second, first):
                return one.turned()
        raise CalibrantError(f"a model is not compared with itself; got {a!r} twice")

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one row a pair."""
        rows = [one.to_dict() for one in self.pairs]
        return frame({name: [row[name] for row in rows] for name in rows[0]})

    def __repr__(self) -> str:
        heading = f"{self.measure} of {len(self.models)} models, n = {self.n}; less is better"
        note = (
            f"rank = 1 + number of models better at p_adjusted <= {1 - self.level:.2g} "
            f"(Holm, {len(self.pairs)} pair{'s' * (len(self.pairs) > 1)})"
        )
        return "\n".join([heading, "", *self._model_lines(), "", *self._pair_lines(), "", note])

    def _model_lines(self) -> Iterator[str]:
        width = max(len("model"), *(len(str(model.name)) for model in self.models))
        level = f"{100 * self.level:g}%"
        yield f"rank  {'model':{width}} {'value':>9} {'corrected':>9}  {level:>5} interval"
        for model in self.models:
            one = model.estimate
            yield (
                f"{model.rank:4}  {model.name!s:{width}} {one.value:9.4f} "
                f"{one.bias_corrected:9.4f}  {one.low:7.4f} {one.high:7.4f}"
            )

    def _pair_lines(self) -> Iterator[str]:
        names = [f"{one.a} - {one.b}" for one in self.pairs]
        width = max(len("difference"), *map(len, names))
        level = f"{100 * self.level:g}%"
        heading = f"{'value':>9}  {level:>6} interval {'p':>8} {'p_adjusted':>10}"
        yield f"{'difference':{width}} {heading}"
        for name, one in zip(names, self.pairs, strict=True):
            yield (
                f"{name:{width}} {one.difference:+9.4f} {one.low:+8.4f} {one.high:+8.4f} "
                f"{one.p_value:8.2g} {one.p_adjusted:10.2g}"
            )
