"""What predictions and targets mean: how a batch becomes rows of one binary problem.

What can be seen from shapes and types is always checked. What takes a look at the values is
answered as a tensor, so that the caller decides whether to wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from calibrant import checks
from calibrant.arrays import as_array
from calibrant.errors import CalibrantError


class Task(Protocol):
    """A way to read predictions and targets."""

    def flatten(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions and targets with one row a prediction, refusing wrong shapes."""

    def reduce(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the float64 score of each row, and whether its outcome is 1."""

    def is_target(self, target: Tensor) -> Tensor:
        """Tell which targets can be."""

    def is_prediction(self, preds: Tensor) -> Tensor:
        """Tell which rows of predictions can be, as far as their scores do not tell."""

    def check(self, preds: Tensor, target: Tensor, ignored: Tensor) -> None:
        """Refuse rows that cannot be and are not ignored, saying what is wrong."""


@dataclass(frozen=True)
class Binary:
    """One probability a row, of the outcome 1."""

    from_logits: bool

    def flatten(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return both with one axis."""
        _check_floating(preds)
        if preds.shape != target.shape:
            raise CalibrantError(
                "must have the shape of {target}",
                argument="preds",
                value=tuple(preds.shape),
                found="{value} and {shape}",
                hint="{task}='multiclass' takes one column per class",
                shape=tuple(target.shape),
            )
        return preds.reshape(-1), target.reshape(-1)

    def reduce(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities and whether the target is 1."""
        score = preds.double()
        return score.sigmoid() if self.from_logits else score, target == 1

    def is_target(self, target: Tensor) -> Tensor:
        """Tell which targets are 0 or 1."""
        return (target == 0) | (target == 1)

    def is_prediction(self, preds: Tensor) -> Tensor:
        """Leave it to the scores."""
        return torch.ones_like(preds, dtype=torch.bool)

    def check(self, preds: Tensor, target: Tensor, ignored: Tensor) -> None:
        """Refuse rows that cannot be."""
        target = target.masked_fill(ignored, 0)
        hint = (
            "soft labels are for calibrant.Sketch"
            if target.is_floating_point()
            else "name a value to leave out with ignore_index, or give task='multiclass'"
        )
        _check_targets(target, self.is_target(target), "must be 0 or 1", hint)
        preds = preds.masked_fill(ignored, 0)
        if self.from_logits:
            checks.check_logits(as_array(preds, "preds"), "preds")
        else:
            _check_probabilities(preds)


@dataclass(frozen=True)
class Multiclass:
    """One column of probabilities a class, of which the highest predicts that class."""

    n_classes: int
    from_logits: bool

    def flatten(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions of shape (n, classes) and as many targets."""
        _check_floating(preds)
        if target.is_floating_point():
            raise CalibrantError(
                "must hold classes as whole numbers",
                argument="target",
                value=target.dtype,
            )
        shape = (*target.shape[:1], self.n_classes, *target.shape[1:])
        if target.ndim == 0 or preds.shape != shape:
            raise CalibrantError(
                "must have shape (n, {n_classes}, ...) and {target} (n, ...)",
                argument="preds",
                value=tuple(preds.shape),
                found="{value} and {shape}",
                n_classes=self.n_classes,
                shape=tuple(target.shape),
            )
        return preds.movedim(1, -1).reshape(-1, self.n_classes), target.reshape(-1)

    def reduce(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the highest probability and whether its class, the first of equals, is right."""
        prob = preds.softmax(dim=1, dtype=torch.float64) if self.from_logits else preds
        top, predicted = prob.max(dim=1)
        return top.double(), predicted == target

    def is_target(self, target: Tensor) -> Tensor:
        """Tell which targets are classes."""
        return (target >= 0) & (target < self.n_classes)

    def is_prediction(self, preds: Tensor) -> Tensor:
        """Tell which rows are not negative anywhere and sum to 1."""
        if self.from_logits:
            return torch.ones_like(preds[:, 0], dtype=torch.bool)
        excess = preds.sum(dim=1, dtype=torch.float64) - 1
        return (preds.amin(dim=1) >= 0) & (excess.abs() <= checks.ROW_SUM_TOLERANCE)

    def check(self, preds: Tensor, target: Tensor, ignored: Tensor) -> None:
        """Refuse rows that cannot be."""
        target = target.masked_fill(ignored, 0)
        rule = f"must be a class from 0 to {self.n_classes - 1}"
        hint = "name a value to leave out with {ignore_index}"
        _check_targets(target, self.is_target(target), rule, hint)
        preds = preds.masked_fill(ignored[:, None], 1 / self.n_classes)
        if self.from_logits:
            # -inf rules a class out; only these have no softmax.
            bad = preds.softmax(dim=1, dtype=torch.float64).isnan().any(dim=1)
            raise CalibrantError(
                "must have rows with a softmax",
                argument="preds",
                value=preds[_first(bad)].tolist(),
                found="nan, inf or nothing but -inf",
                position=_first(bad),
                count=int(bad.sum()),
            )
        _check_probabilities(preds)
        checks.check_row_sums(as_array(preds, "preds"), "preds")


def _check_floating(preds: Tensor) -> None:
    if not preds.is_floating_point():
        raise CalibrantError(
            "must be a floating-point tensor",
            argument="preds",
            value=preds.dtype,
            hint="the order is ({preds}, {target})",
        )


def _check_targets(target: Tensor, known: Tensor, rule: str, hint: str) -> None:
    if bool(known.all()):
        return
    index = _first(~known)
    raise CalibrantError(
        rule,
        argument="target",
        value=target[index],
        position=index,
        count=int((~known).sum()),
        hint=hint,
    )


def _check_probabilities(preds: Tensor) -> None:
    values = as_array(preds, "preds")
    checks.check_finite(values, "preds")
    try:
        checks.check_probabilities(values, "preds")
    except CalibrantError as problem:
        raise CalibrantError(
            problem.rule,
            argument=problem.argument,
            value=problem.value,
            position=problem.position,
            count=problem.count,
            hint="{from_logits}=True takes logits",
        ) from None


def _first(bad: Tensor) -> int:
    return int(bad.nonzero()[0])
