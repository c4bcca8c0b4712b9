"""The rows and the predictions of several models, as they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from calibrant.arrays import as_array
from calibrant.errors import CalibrantError, shown
from calibrant.sketches.state import Sketch

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows and the predictions of all models, as they were given.

    Attributes
    ----------
    y_true, sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.
    models
        Predictions by the name of their model.
    clusters
        One cluster label per row, or None.
    """

    y_true: Any
    models: Mapping[str, Any]
    sample_weight: Any
    multiclass: Any
    labels: Sequence[Any] | None
    pos_label: Any
    clusters: Any

    def read(self, reader: Callable[..., T]) -> list[T]:
        """Read each model, telling in errors which one it is."""
        rest = (self.sample_weight, self.multiclass, self.labels, self.pos_label)
        read = []
        for name, y_prob in self.models.items():
            with _named(name):
                read.append(reader(self.y_true, y_prob, *rest))
        return read


def read_models(y_true: Any, y_probs: Any) -> dict[str, Any]:
    """Return the predictions of two models or more by name."""
    given = y_probs.values() if isinstance(y_probs, Mapping) else [y_probs]
    if any(isinstance(one, Sketch) for one in (y_true, *given)):
        raise CalibrantError(
            "compare needs rows: sketches do not know which of their rows belong together"
        )
    if not isinstance(y_probs, Mapping) or len(y_probs) < 2:
        raise CalibrantError(
            "must hold the predictions of at least two models by name",
            argument="y_probs",
            value=len(y_probs) if isinstance(y_probs, Mapping) else type(y_probs),
            hint="give {{'a': y_prob_of_a, 'b': y_prob_of_b}}",
        )
    models = dict(y_probs)
    _check_same_classes(models)
    return models


def _check_same_classes(models: Mapping[str, Any]) -> None:
    """Refuse models of different numbers of classes, whose errors are not of the same events."""
    n_columns = {}
    for name, y_prob in models.items():
        with _named(name):
            shape = as_array(y_prob, "y_prob").shape
        n_columns[name] = shape[1] if len(shape) == 2 else 1
    (first, n_first), *others = n_columns.items()
    for other, n_other in others:
        if max(n_first, 2) != max(n_other, 2):
            raise CalibrantError(
                "must have the same classes, and so as many columns, for all models",
                argument="y_probs",
                value=n_other,
                found="{n_first} for {first} and {n_other} for {other}",
                first=shown(first),
                n_first=n_first,
                other=shown(other),
                n_other=n_other,
            )


def check_rows(n: int) -> None:
    """Refuse a single row, of whose noise nothing is known."""
    if n < 2:
        raise CalibrantError("compare needs at least two rows that carry weight; got 1")


@contextmanager
def _named(model: str) -> Iterator[None]:
    """Say in errors which model's predictions are meant."""
    try:
        yield
    except CalibrantError as problem:
        if problem.argument == "y_prob":
            problem.argument, problem.source = "y_probs", f"model {model!r}"
        raise
