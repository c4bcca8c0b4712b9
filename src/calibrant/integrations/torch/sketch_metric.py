"""What all metrics share: options, state, and how batches come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor
from torchmetrics import Metric

from calibrant import checks
from calibrant.errors import CalibrantError
from calibrant.integrations.torch.deposit import TensorCells, add_rows
from calibrant.integrations.torch.tasks import Binary, Multiclass, Task
from calibrant.measures.registry import answered_by_sketches, find_measure, measures
from calibrant.sketches.cells import DEFAULT_CELLS, Scale
from calibrant.sketches.state import Sketch
from calibrant.sketches.table import CellTable

# Devices that have no float64: their tensors are counted on the CPU, where the state stays.
_WITHOUT_FLOAT64 = ("mps",)


class SketchMetric(Metric):
    """A measure whose state is a sketch: any that a sketch can answer.

    Parameters
    ----------
    task
        "binary": `preds` are probabilities of the outcome 1 and `target` is 0 or 1, both of any
        same shape. "multiclass": `preds` has shape (n, classes, ...) and `target` holds classes,
        shape (n, ...); measured is whether the class of highest probability, the first of equals,
        is right as often as its probability says.
    measure
        The name of the measure, such as "density_ece", or the function itself.
    options
        Its options by name, such as ``{"bandwidth": 0.1}``.
    num_classes
        The number of classes, for the multiclass task alone.
    from_logits
        Take `preds` for logits, and their sigmoid or softmax, in float64, for the probabilities.
        Otherwise values outside [0, 1] are refused: unlike metrics of torchmetrics, this one never
        guesses, batch by batch, what it was given.
    ignore_index
        A value of `target` whose rows count for nothing, whatever their predictions.
    validate_args
        Check the values of every batch and say which row is wrong, which waits for the device
        once a batch. Otherwise nothing waits: rows that cannot be counted are left out, their
        number is kept, and `compute` raises if there are any. Class probabilities are then not
        checked to sum to 1.
    n_cells
        How many cells the sketch has; see :class:`calibrant.Sketch`.
    **kwargs
        Those of ``torchmetrics.Metric``, such as `sync_on_compute` or `process_group`.

    Notes
    -----
    Predictions of any float type are counted as the numbers that they are, in float64, on the
    device that holds them; on MPS, which has no float64, they are moved to the CPU, where the
    state stays. Casting a module to another dtype leaves the state as it is.

    A call of the metric itself (`forward`) also measures the batch alone; `update` is cheaper.
    Metrics in one ``MetricCollection`` that differ only in what they measure share one state.

    Examples
    --------
    >>> import torch
    >>> metric = SketchMetric(measure="brier_score")
    >>> metric(torch.tensor([0.5, 1.0]), torch.tensor([0, 1]))
    tensor(0.1250, dtype=torch.float64)
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    counts: Tensor
    offsets: Tensor
    # How many batches came in, and how many of their rows could not be counted.
    tally: Tensor

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        measure: str | Callable[..., float] = "smooth_ece",
        options: Mapping[str, Any] | None = None,
        num_classes: int | None = None,
        from_logits: bool = False,
        ignore_index: int | None = None,
        validate_args: bool = True,
        n_cells: int = DEFAULT_CELLS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if ignore_index is not None and not isinstance(ignore_index, int):
            raise CalibrantError(
                "must be a whole number", argument="ignore_index", value=ignore_index
            )
        from_logits = checks.as_flag(from_logits, "from_logits")
        self._task = _read_task(task, num_classes, from_logits)
        info = find_measure(measure, answered_by_sketches())
        self.options = dict(options or {})
        info.read(self.options)  # refuses options that there are not, and what they may not be
        self.measure = info.name
        self._cells = Sketch(n_cells, info.sketch or "probability").cells
        self._tensor_cells = TensorCells(self._cells)
        self.ignore_index = ignore_index
        self.validate_args = checks.as_flag(validate_args, "validate_args")
        size = self._cells.size
        home = _home(self.device)
        for name, shape, dtype in (
            ("counts", (2, size), torch.int64),
            ("offsets", (2, 2, size), torch.float64),
            ("tally", (2,), torch.int64),
        ):
            state = torch.zeros(shape, dtype=dtype, device=home)
            self.add_state(name, state, dist_reduce_fx="sum")

    @property
    def scale(self) -> Scale:
        """The scale of the sketch."""
        return self._cells.scale

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Take in a batch; where it is refused, none of it has been taken in."""
        preds, target = _at_home(preds, "preds"), _at_home(target, "target")
        preds, target = self._task.flatten(preds, target)
        ignored = _equals(target, self.ignore_index)
        score, outcome = self._task.reduce(preds, target)
        sound = (score >= 0) & (score <= 1) & self._task.is_target(target)
        if self.validate_args:
            sound = sound & self._task.is_prediction(preds)
            if not bool((sound | ignored).all()):
                self._task.check(preds, target, ignored)
        self._make_writable()
        counted = sound & ~ignored
        add_rows(self._tensor_cells, self.counts, self.offsets, score, outcome, counted)
        self.tally[0] += 1
        self.tally[1] += (~(sound | ignored)).sum()

    def compute(self) -> Tensor:
        """Return the error as a float64 number; nan where every row was ignored.

        Before any batch came in, it raises :class:`calibrant.SketchError`.
        """
        sketch = self.sketch()
        # An error here would stop a training run at the first batch that is all padding.
        is_void = sketch.n == 0 and int(self.tally[0]) > 0
        function = measures()[self.measure].function
        value = float("nan") if is_void else function(sketch, **self.options)
        return torch.tensor(value, dtype=torch.float64, device=self.counts.device)

    def sketch(self) -> Sketch:
        """Return the rows of this process as a :class:`calibrant.Sketch` of its own.

        Within ``with metric.sync_context():`` it holds the rows of all processes.
        """
        if refused := int(self.tally[1]):
            raise CalibrantError(
                "must lie in [0, 1] and {target} be a class",
                argument="preds",
                value=refused,
                found="{value} invalid rows",
                hint="{validate_args}=True tells which",
            )
        first, second = self.offsets.cpu().numpy()
        counts = self.counts.cpu().numpy().copy()
        return Sketch.of_table(self._cells, CellTable(counts, first + 1j * second))

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one value or several, as every metric of torchmetrics does."""
        return self._plot(val, ax)

    def _make_writable(self) -> None:
        """Own the state: made within torch.inference_mode, it cannot be changed outside."""
        if self.counts.is_inference() and not torch.is_inference_mode_enabled():
            for name in self._defaults:
                setattr(self, name, getattr(self, name).clone())

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in self._defaults:
            state = getattr(self, name)
            loaded = state_dict.get(prefix + name, state)
            if loaded.shape != state.shape:
                raise CalibrantError(
                    "must have shape {shape}",
                    argument=name,
                    value=tuple(loaded.shape),
                    hint="a state fits metrics of the same {n_cells}",
                    shape=tuple(state.shape),
                )
            # A copy, because states change in place and the caller's are not ours to change.
            setattr(self, name, loaded.to(state, copy=True))
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ()) -> Self:
        """Move the state with the module, but never change its dtype."""
        super()._apply(fn, exclude_state=[*self._defaults, *exclude_state])
        home = _home(self.device)
        for name in self._defaults:
            state = getattr(self, name).to(home)
            setattr(self, name, state)
            self._defaults[name] = torch.zeros_like(state)
        return self


def _read_task(task: str, num_classes: int | None, from_logits: bool) -> Task:
    checks.check_choice(task, "task", ("binary", "multiclass"))
    if task == "binary":
        if num_classes is not None:
            raise CalibrantError(
                "is for {task}='multiclass'", argument="num_classes", value=num_classes
            )
        return Binary(from_logits)
    if num_classes is None or checks.as_count(num_classes, "num_classes") < 2:
        raise CalibrantError(
            "must be at least 2 for {task}='multiclass'", argument="num_classes", value=num_classes
        )
    return Multiclass(num_classes, from_logits)


def _equals(target: Tensor, value: int | None) -> Tensor:
    if value is None:
        return torch.zeros_like(target, dtype=torch.bool)
    return target == value


def _at_home(values: Tensor, name: str) -> Tensor:
    if not isinstance(values, Tensor):
        raise CalibrantError("must be a tensor", argument=name, value=type(values))
    return values.detach().to(_home(values.device))


def _home(device: torch.device) -> torch.device:
    """Return where tensors of this device are counted."""
    return torch.device("cpu") if device.type in _WITHOUT_FLOAT64 else device
