"""The models that a call draws: one, or several by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.colors import is_color_like

from calibrant.curves.reliability_view import ABOUT_ROWS
from calibrant.data import validation
from calibrant.errors import CalibrantError

__all__ = ["Model", "read_models"]


@dataclass(frozen=True, eq=False)
class Model:
    """A result, a sketch, or outcomes and predictions, with the options that describe them."""

    name: str
    y_true: Any
    y_prob: Any
    options: Mapping[str, Any]
    color: Any = None

    @property
    def about_rows(self) -> list[Any]:
        """The options that describe the rows, in the order in which they are read."""
        return [self.options.get(name) for name in ABOUT_ROWS]

    def check_options(self, of: str, made_by: Callable[..., Any], *others: str) -> None:
        """Refuse options of a plot that the function that makes its result does not take."""
        known = (*ABOUT_ROWS, *validation.keywords(made_by), *others)
        validation.check_options(self.options, tuple(dict.fromkeys(known)), of)

    def refuse_options(self, what: str) -> None:
        """Refuse options that a result, which is drawn as it is, would ignore."""
        if self.y_prob is not None or self.options:
            given = ", ".join([*(["y_prob"] if self.y_prob is not None else []), *self.options])
            raise CalibrantError(f"{what} is drawn as it is: leave out {given}")


def read_models(
    y_true: Any, y_prob: Any, options: Mapping[str, Any], color: Any = None
) -> list[Model]:
    """Return one model, or those of a mapping from names to results, sketches or predictions."""
    if isinstance(y_true, Mapping):
        rows = {str(name): (one, y_prob) for name, one in y_true.items()}
    elif isinstance(y_prob, Mapping):
        rows = {str(name): (y_true, one) for name, one in y_prob.items()}
    else:
        rows = {"": (y_true, y_prob)}
    if not rows:
        raise CalibrantError("there must be at least one model to draw; got an empty mapping")
    colors = color if isinstance(color, list) else [color] * len(rows)
    for own in colors:
        if own is not None and not is_color_like(own):
            raise CalibrantError(
                "must be a colour that matplotlib knows", argument="color", value=own
            )
    if len(colors) != len(rows):
        raise CalibrantError(
            "must be one colour, or a list with one per model",
            argument="color",
            value=len(colors),
            found="{value} for {n_models} models",
            n_models=len(rows),
        )
    pairs = zip(rows.items(), colors, strict=True)
    return [Model(name, y, p, options, own) for (name, (y, p)), own in pairs]
